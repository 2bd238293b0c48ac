"""What is compiled and kept is compiled anew when anything within it changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pmdc._support.compiled

INNER = """
from pmdc._support.compiled import compiled

@compiled()
def inner(x):
    return x + {number}
"""
OUTER = """
from pmdc._support.compiled import compiled
from pmdc.within.inner import inner

@compiled()
def outer(x):
    return 2 * inner(x)
"""
ASK = "from pmdc.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"


@pytest.mark.parametrize("zipped", [False, True])
def test_a_change_of_another_module_is_noticed(tmp_path, zipped):
    package = tmp_path / "pmdc"
    (package / "within").mkdir(parents=True)
    (package / "_support").mkdir()
    for place in (package, package / "within", package / "_support"):
        (place / "__init__.py").touch()
    (package / "_support" / "compiled.py").write_text(Path(pmdc._support.compiled.__file__).read_text())
    (package / "outer.py").write_text(OUTER)
    answers = []
    for number in (1, 1, 10):
        (package / "within" / "inner.py").write_text(INNER.format(number=number))
        place = shutil.make_archive(str(tmp_path / "archive"), "zip", tmp_path, "pmdc") if zipped else str(tmp_path)
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {place!r}); {ASK}"]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
        answers.append(done.stdout.split())
    assert answers == [["4", "0"], ["4", "1"], ["22", "0"]]
