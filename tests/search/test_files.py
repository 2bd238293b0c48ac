import numpy as np
import pytest

from pmdc.search import find_structure, read_scores, write_scores
from problems import random_scores


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read(tmp_path, seed):
    scores = random_scores(6, seed)
    scores["y0"][frozenset({"y1"})] = -np.pi * 1e-300
    write_scores(scores, tmp_path / "scores.jkl")
    read = read_scores(tmp_path / "scores.jkl")
    assert read == scores
    assert list(read) == list(scores)
    assert find_structure(read).score == find_structure(scores).score


def test_a_file_of_another_program(tmp_path):
    path = tmp_path / "scores.jkl"
    path.write_text("# META data = weather\n2\nsky 2\n-1.5 1 street\n-3 0\n\nstreet 2\n-1.0 1 sky\n-4.0 0\n")
    scores = read_scores(path)
    assert scores == {
        "sky": {frozenset({"street"}): -1.5, frozenset(): -3.0},
        "street": {frozenset({"sky"}): -1.0, frozenset(): -4.0},
    }
    assert find_structure(scores).score == -4.0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "ends after line 0, where there should be the number of class variables"),
        ("two\n", "line 1: the number of class variables should be a whole number, not 'two'"),
        ("2 3\n", "line 1: there should be nothing after '2'"),
        ("2\na 1\n-1 0\n", "ends after line 3, where there should be a class variable: 2 are announced, 1 are there"),
        (
            "1\na 2\n-1 0\n",
            "ends after line 3, where there should be a parent set of 'a': 2 are announced, 1 are there",
        ),
        ("1\na\n", "line 2: the number of parent sets of 'a' should be a whole number, not ''"),
        ("1\na 1\nx 0\n", "line 3: the score should be a number, not 'x'"),
        ("1\na 1\nnan 0\n", "line 3: the score should be a number, not 'nan'"),
        ("1\n# here\na 1\n-1 1\n", "line 4: 1 parents are announced, 0 are there"),
        ("2\na 1\n-1 2 b b\nb 1\n-1 0\n", "line 3: a parent comes twice"),
        ("2\na 2\n-1 0\n-2 0\nb 1\n-1 0\n", "line 4: this parent set of 'a' comes a second time"),
        ("2\na 1\n-1 0\na 1\n-1 0\n", "line 4: the class variable 'a' comes a second time"),
        ("1\na 1\n-1 1 z\n", "line 3: the parent 'z' is no class variable of this file"),
        ("1\na 1\n-1 0\n-2 0\n", "line 4: there should be nothing after the last class variable"),
    ],
)
def test_lines_that_are_wrong(tmp_path, text, complaint):
    path = tmp_path / "scores.jkl"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_scores(path)


def test_names_that_do_not_fit_into_a_file(tmp_path):
    with pytest.raises(ValueError, match="'the sky': in a local-score file names have no blanks"):
        write_scores({"the sky": {frozenset(): 0.0}}, tmp_path / "scores.jkl")
