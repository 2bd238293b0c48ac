"""What is compiled and kept is compiled anew when anything within it changes."""

import subprocess
import sys
from pathlib import Path

import pmdc.compiled

INNER = """
from pmdc.compiled import compiled

@compiled()
def inner(x):
    return x + {number}
"""
OUTER = """
from pmdc.compiled import compiled
from pmdc.within.inner import inner

@compiled()
def outer(x):
    return 2 * inner(x)
"""
ASK = "from pmdc.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"


def test_a_change_of_another_module_is_noticed(tmp_path):
    package = tmp_path / "pmdc"
    (package / "within").mkdir(parents=True)
    for place in (package, package / "within"):
        (place / "__init__.py").touch()
    (package / "compiled.py").write_text(Path(pmdc.compiled.__file__).read_text())
    (package / "outer.py").write_text(OUTER)
    answers = []
    for number in (1, 1, 10):
        (package / "within" / "inner.py").write_text(INNER.format(number=number))
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {ASK}"]
        answers.append(subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.split())
    assert answers == [["4", "0"], ["4", "1"], ["22", "0"]]
