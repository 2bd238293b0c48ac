"""The commands in docs/service.md run and print what the page shows.

``python tests/explore/test_service_page.py --write`` updates the output in the page.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
BLOCK = re.compile(r"```\n(\$ .*?)```", re.DOTALL)
FILE = re.compile(r"`(\w+\.json)`:\n\n```json\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+(?:e-\d+)?")
ADDRESS = "http://127.0.0.1:8000"


class Shell:
    """Runs commands in a folder; a service that they start has any free port, and ends with the shell."""

    def __init__(self, folder):
        self.folder, self.service, self.address = folder, None, ADDRESS

    def run(self, command):
        """Return what a command prints."""
        if command.startswith("pmdc serve"):
            return self.serve(command)
        shell = f'pmdc() {{ "{sys.executable}" -m pmdc "$@"; }}; python() {{ "{sys.executable}" "$@"; }}\n'
        done = subprocess.run(
            ["bash", "-c", shell + command.replace(ADDRESS, self.address)],
            cwd=self.folder, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "80"},
        )  # fmt: skip
        return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines())

    def serve(self, command):
        words = [sys.executable, "-m", *command.replace("8000", "0").split()]
        self.service = subprocess.Popen(
            words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = self.service.stdout.readline().rstrip()
        self.address = re.search(r"http://\S+", line)[0]
        return line.replace(self.address, ADDRESS)


@contextmanager
def shell_for(text):
    """Yield a shell in a folder with the files of the page."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILE.findall(text):
            (Path(folder) / name).write_text(content)
        shell = Shell(folder)
        try:
            yield shell
        finally:
            if shell.service is not None:
                shell.service.kill()
                shell.service.communicate()


def commands(block):
    """Yield the commands of a block and the output that it shows."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.rstrip()


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl and bash")
def test_the_commands_of_the_page():
    text = PAGE.read_text(encoding="utf-8")
    n_commands = 0
    with shell_for(text) as shell:
        for block in BLOCK.findall(text):
            for command, shown in commands(block):
                found = shell.run(command)
                assert NUMBER.sub("0.0", found) == NUMBER.sub("0.0", shown), command
                numbers = [list(map(float, NUMBER.findall(one))) for one in (found, shown)]
                assert numbers[0] == pytest.approx(numbers[1], abs=1e-4), command
                n_commands += 1
    assert n_commands > 7


def rewrite():
    """Run the commands of the page and update their output."""
    text = PAGE.read_text(encoding="utf-8")
    with shell_for(text) as shell:

        def update(match):
            lines = [part for command, _ in commands(match[1]) for part in (f"$ {command}", shell.run(command)) if part]
            return "\n".join(["```", *lines, "```"])

        PAGE.write_text(BLOCK.sub(update, text), encoding="utf-8")


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    rewrite()
