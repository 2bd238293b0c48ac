"""The commands in the documentation run and print what it shows.

``python tests/cli/test_docs.py --write`` updates the output in docs/command-line.md.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "command-line.md"
BLOCK = re.compile(r"```\n(\$ .*?)```", re.DOTALL)
CHECKER = doctest.OutputChecker()
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def commands(block):
    """Yield the commands of a block and the output that it shows."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def by_shell(command, folder):
    """Return what a command prints."""
    shell = f'pmdc() {{ "{sys.executable}" -m pmdc "$@"; }}\n{command}'
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        ["bash", "-c", shell], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    return without_places(done.stdout, done.stderr)


def without_places(out, err):
    """Join both streams without the notes on where a picture was written."""
    return out + "".join(line for line in err.splitlines(True) if " was written to " not in line or "The model" in line)


def test_the_page_and_the_readme(pmdc, tmp_path):
    pytest.importorskip("statsmodels")
    pytest.importorskip("matplotlib")

    def run(command):
        words = shlex.split(command)
        if words[0] != "pmdc" or "|" in words:
            return by_shell(command, tmp_path)
        done = pmdc(*words[1:])
        return without_places(done.out, done.err)

    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        for command, shown in commands(block):
            found = run(command)
            assert CHECKER.check_output(shown, found, FLAGS), f"$ {command}\n{found}"
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".skops", ".svg", ".graphml", ".html", ".md"}
    assert "<svg" in (tmp_path / "graph.svg").read_text(encoding="utf-8")

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## With a table and no Python\n\n```\n(.*?)```", readme, re.DOTALL)
    for line in block.splitlines():
        command = line.partition("  # ")[0]
        found = run(command if "evaluate" in command else f"{command} --force")
        assert "pmdc: " not in found
        assert "pmdc fit:" not in found
    assert (tmp_path / "predicted.csv").read_text().startswith("vote,party,self,clinton,dole,P(vote=Clinton)")


def rewrite():
    """Run the commands of the page and update their output."""
    with tempfile.TemporaryDirectory() as folder:

        def update(match):
            parts = []
            for command, _ in commands(match[1]):
                found = re.sub(r"(,0\.\d{3})\d+$", r"\1...", by_shell(command, folder), flags=re.MULTILINE)
                parts += [f"$ {command}", *(line.rstrip() for line in found.splitlines())]
            return "\n".join(["```", *parts, "```"])

        PAGE.write_text(BLOCK.sub(update, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    rewrite()
