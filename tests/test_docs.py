"""The pages of the documentation say what the library does."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "page",
    [
        f"docs/{name}.md"
        for name in ("questions", "incomplete", "explain", "explore", "report", "saving", "scores", "search", "paper")
    ],
)
def test_examples_of_the_page(page, tmp_path, monkeypatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)  # some write files
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, run = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=flags)
    assert run > 5
    assert not failed


@pytest.mark.parametrize(
    ("script", "prefixes"), [("ten_questions", ["questions"]), ("pictures", ["pictures", "explain"])]
)
def test_pictures_can_be_drawn(tmp_path, script, prefixes):
    """And, of docs/pictures.md and docs/explain.md, that its examples are true: they are what draws."""
    pytest.importorskip("statsmodels")
    plt = pytest.importorskip("matplotlib.pyplot")
    import runpy
    import sys
    from unittest.mock import patch

    with patch.object(sys, "argv", [script, "--out", str(tmp_path)]):
        runpy.run_path(str(ROOT / "examples" / f"{script}.py"), run_name="__main__")
    plt.close("all")
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for prefix in prefixes for path in (ROOT / "docs" / "images").glob(f"{prefix}-*.png")
    }
    assert all(path.stat().st_size < 150_000 for path in (ROOT / "docs" / "images").iterdir())
