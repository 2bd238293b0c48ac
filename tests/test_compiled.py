"""Compilation of kernels: the cache, its absence, and the message at first use."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pmdc._support

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


@pytest.fixture
def package(tmp_path):
    """A package with two modules of kernels."""
    package = tmp_path / "pmdc"
    (package / "within").mkdir(parents=True)
    for place in (package, package / "within"):
        (place / "__init__.py").touch()
    support = Path(pmdc._support.__file__).parent
    shutil.copytree(support, package / "_support", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "outer.py").write_text(OUTER)
    (package / "within" / "inner.py").write_text(INNER.format(number=1))
    return package


def run(program, package, zipped=False, **environment):
    """Run a program with that package in a new process; return its lines and its standard error stream."""
    folder = package.parent
    place = shutil.make_archive(str(folder / "archive"), "zip", folder, "pmdc") if zipped else str(folder)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {place!r})\n{textwrap.dedent(program)}"]
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env={**clean, **environment})
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("zipped", [False, True])
def test_a_change_of_another_module_is_noticed(package, zipped):
    answers = []
    for number in (1, 1, 10):
        (package / "within" / "inner.py").write_text(INNER.format(number=number))
        lines, _ = run(ASK, package, zipped, NUMBA_CACHE_DIR=str(package.parent / "cache"))
        answers += lines
    assert answers == ["4 0", "4 1", "22 0"]


@pytest.mark.skipif(os.name == "nt", reason="has no path that nobody can write to")
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("cache", [{}, {"NUMBA_CACHE_DIR": "/dev/null/cache"}])
def test_without_a_writable_cache_kernels_run_with_one_warning(package, zipped, cache):
    """A file in place of each `__pycache__` is what a read-only installation is to anybody but root."""
    for folder in (package, package / "within"):
        (folder / "__pycache__").touch()
    home = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}
    lines, errors = run(ASK, package, zipped, **home, **cache)
    assert lines == ["4 0"]
    assert errors.count("NUMBA_CACHE_DIR") == 1
    assert "<string>:2: UserWarning" in errors, "it points at the import by the user"


def test_compilation_is_a_phase_of_its_own_and_only_if_it_happens(package):
    program = """
        from pmdc._support import progress
        class Print:
            def phase(self, name): print("phase:", name)
            def step(self, done, total): print("step:", done)
        from pmdc.within.inner import inner
        with progress.messages_to(lambda message: print("message:", message)), progress.watching(Print()):
            progress.tell_phase("work")
            from pmdc.outer import outer
            outer(1), outer(1.0)
            progress.tell_step(1, 2)
            outer(True)
            progress.tell_step(2, 2)
    """
    notice = "compiling numerical kernels, first use only"
    cache = {"NUMBA_CACHE_DIR": str(package.parent / "cache")}
    first, _ = run(program, package, **cache)
    told = [f"phase: {notice}", f"message: {notice}", "phase: work"]
    again = [f"phase: {notice}", "phase: work"]
    assert first == ["phase: work", *told, *again, "step: 1", *again, "step: 2"], "one message, three compilations"
    second, _ = run(program, package, **cache)
    assert second == ["phase: work", "step: 1", "step: 2"]


def test_kernels_release_the_gil(package):
    program = """
        import threading, time
        from pmdc._support.compiled import compiled
        @compiled()
        def spin(n):
            total = 0.0
            for i in range(n):
                total += (total * 0.5 + i) ** 0.5
            return total
        spin(1)
        thread = threading.Thread(target=spin, args=[10**8])
        thread.start()
        count = 0
        while thread.is_alive():
            count += 1
            time.sleep(0.001)
        print(count > 10)
    """
    (package / "spin.py").write_text(textwrap.dedent(program))
    lines, _ = run("import pmdc.spin", package)
    assert lines == ["True"]
