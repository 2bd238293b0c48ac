"""The commands of the documentation run, and print what it shows."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKER = doctest.OutputChecker()
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def commands(page):
    """The commands of a page, and what it shows of their output."""
    blocks = re.findall(r"```\n(\$ .*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


def run(pmdc, command, folder):
    words = shlex.split(command)
    if words[0] == "pmdc" and "|" not in words:
        done = pmdc(*words[1:])
        return done.out + "".join(line for line in done.err.splitlines(True) if " is in " not in line)
    shell = f'pmdc() {{ "{sys.executable}" -m pmdc "$@"; }}\n{command}'
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    return done.stdout


def test_the_page_and_the_readme(pmdc, tmp_path):
    pytest.importorskip("statsmodels")
    pytest.importorskip("matplotlib")
    for command, shown in commands("docs/command-line.md"):
        found = run(pmdc, command, tmp_path)
        assert CHECKER.check_output(shown, found, FLAGS), f"$ {command}\n{found}"
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".skops", ".svg", ".graphml"}
    assert "<svg" in (tmp_path / "graph.svg").read_text()
    (section,) = re.findall(r"## With a table and no Python\n(.*?)\n## ", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    for command in block.splitlines():
        run(pmdc, command.partition("  # ")[0] + ("" if "evaluate" in command else " --force"), tmp_path)
    assert (tmp_path / "predicted.csv").read_text().startswith("vote,party,self,clinton,dole,P(vote=Clinton)")
