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
    ("text", "message"),
    [
        ("", "ends after line 0: .*number of class variables"),
        ("two\n", "line 1: the number of class variables .*'two'"),
        ("2 3\n", "line 1: .* after '2'"),
        ("2\na 1\n-1 0\n", "ends after line 3: .*class variable 2 of 2"),
        ("1\na 2\n-1 0\n", "ends after line 3: .*parent set 2 of 2 of 'a'"),
        ("1\na\n", "line 2: the number of parent sets of 'a' .*''"),
        ("1\na 1\nx 0\n", "line 3: the score .*'x'"),
        ("1\na 1\nnan 0\n", "line 3: the score .*'nan'"),
        ("1\n# here\na 1\n-1 1\n", "line 4: .*1 parents.* 0"),
        ("2\na 1\n-1 2 b b\nb 1\n-1 0\n", "line 3: duplicate parent"),
        ("2\na 2\n-1 0\n-2 0\nb 1\n-1 0\n", "line 4: duplicate parent set of 'a'"),
        ("2\na 1\n-1 0\na 1\n-1 0\n", "line 4: duplicate class variable 'a'"),
        ("1\na 1\n-1 1 z\n", "line 3: the parent 'z'"),
        ("1\na 1\n-1 0\n-2 0\n", "line 4: .*after the last class variable"),
    ],
)
def test_lines_that_are_wrong(tmp_path, text, message):
    path = tmp_path / "scores.jkl"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_scores(path)


def test_names_that_do_not_fit_into_a_file(tmp_path):
    with pytest.raises(ValueError, match="'the sky'.*rename"):
        write_scores({"the sky": {frozenset(): 0.0}}, tmp_path / "scores.jkl")
