"""Compilation of numerical kernels with numba, cached on disk.

Modules of kernels are imported where they are called, because importing numba takes longer than all other imports.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from numba import njit
from numba.core import event
from numba.core.caching import FunctionCache

from pmdc._support.progress import end_notice, tell_notice
from pmdc._support.warn import warn_user

SUMS = {"reassoc", "contract", "nsz"}
"""`fastmath` flags that let sums run in vector registers; infinities and NaN keep their meaning.

Only for kernels that no other kernel calls: a kernel and its copy inside a caller would round differently, and which of
the two runs depends on the cache.
"""


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function at its first call and caches the result on disk.

    Division by zero gives infinity or NaN, as in numpy, and kernels release the GIL. Without a writable cache folder,
    functions are compiled in each process.
    """

    def decorate(function: Any) -> Any:
        defaults = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}  # the wrapper would not be called
        dispatcher = njit(**{**defaults, **options})(function)
        if dispatcher is not function:  # NUMBA_DISABLE_JIT returns the function itself
            try:
                dispatcher._cache = _KernelCache(function)
            except RuntimeError:  # numba: no locator available
                _warn_uncached()
        return dispatcher

    return decorate


class _KernelCache(FunctionCache):
    """numba's cache of a function, outdated as soon as any module of kernels changes.

    numba compares only the module of the function itself, although its code may contain functions of other modules.
    """

    def __init__(self, function: Any):
        super().__init__(function)
        self._cache_file._source_stamp = self._cache_file._source_stamp, _sources()

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return super().load_overload(*arguments)
        except OSError:
            return None

    def save_overload(self, *arguments: Any) -> None:
        try:
            super().save_overload(*arguments)
        except OSError:
            _warn_uncached()


@cache
def _warn_uncached() -> None:
    warn_user(
        "Compiled kernels cannot be cached, because no cache folder is writable: each process compiles them again. Set "
        "the environment variable NUMBA_CACHE_DIR to a writable folder."
    )


@cache
def _sources() -> str:
    """Return a hash of all modules of kernels, in a folder or in a zip file."""

    def texts(folder: Traversable) -> Iterator[bytes]:
        for item in sorted(folder.iterdir(), key=lambda item: item.name):
            if item.is_dir():
                yield from texts(item)
            elif item.name.endswith(".py"):
                yield item.read_bytes()

    found = hashlib.sha256()
    for text in texts(files("pmdc")):
        if b"pmdc._support.compiled" in text:
            found.update(text)
    return found.hexdigest()


COMPILING = "compiling numerical kernels, first use only"
"""The phase that is shown while kernels are compiled."""


class _Compilations(event.Listener):
    """Count the compiled kernels, and show whoever watches the progress that they are being compiled."""

    count = 0
    running = 0
    announced = False

    def on_start(self, started: Any) -> None:
        if _is_kernel(started):
            self.count += 1
            self.running += 1  # a kernel may compile those that it calls
            if self.running == 1:
                self.announced |= tell_notice(COMPILING, watcher_only=self.announced)

    def on_end(self, ended: Any) -> None:
        if _is_kernel(ended):
            self.running -= 1
            if self.running == 0:
                end_notice()


def _is_kernel(event: Any) -> bool:
    return bool(event.data["dispatcher"].py_func.__module__.startswith("pmdc."))


COMPILATIONS = _Compilations()
event.register("numba:compile", COMPILATIONS)
