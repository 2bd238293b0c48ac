"""The README's example runs, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a picture
    examples = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len([line for line in examples[0].splitlines() if line.strip()]) <= 11
    names = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/theory.md",
        "docs/questions.md",
        "docs/pictures.md",
        "docs/report.md",
        "docs/explain.md",
        "docs/explore.md",
        "docs/service.md",
        "docs/incomplete.md",
        "docs/command-line.md",
        "docs/architecture.md",
        "docs/errata/README.md",
        "docs/contributing/add-a-learner.md",
        "docs/contributing/add-a-loss.md",
        "docs/contributing/add-a-search-method.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
    ],
)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (ROOT / page).parent.joinpath(target).exists(), target
