"""The pages of the documentation say what the library does."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["docs/questions.md", "docs/saving.md", "docs/scores.md", "docs/search.md"])
def test_examples_of_the_page(page, tmp_path, monkeypatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)  # some write files
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, run = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=flags)
    assert run > 10
    assert not failed


def test_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("statsmodels")
    pytest.importorskip("matplotlib")
    import runpy
    import sys
    from unittest.mock import patch

    with patch.object(sys, "argv", ["ten_questions.py", "--out", str(tmp_path)]):
        runpy.run_path(str(ROOT / "examples" / "ten_questions.py"), run_name="__main__")
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for path in (ROOT / "docs" / "images").glob("questions-*.png")
    }
