"""A small table, a model of it, and two ways to call the command line."""

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from small_survey import FIT, survey

pytest.importorskip("typer")
pytest.importorskip("skops")


class Answer(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def pmdc(capsys, tmp_path, monkeypatch):
    """The command line within this process, in a folder of its own."""
    from pmdc.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def process(tmp_path):
    """The command line as a process of its own."""

    def run(*arguments, stdin=None):
        done = subprocess.run(
            [sys.executable, "-m", "pmdc", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "ascii"},
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with table.csv, new.csv and model.skops."""
    from pmdc.cli import main

    folder = tmp_path_factory.mktemp("cli")
    (folder / "table.csv").write_text(survey())
    (folder / "new.csv").write_text(survey(30, seed=1))
    assert main(["fit", str(folder / "table.csv"), *FIT, "-o", str(folder / "model.skops"), "--quiet"]) == 0
    return folder
