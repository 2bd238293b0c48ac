"""How loops are compiled.

Modules of compiled loops are imported by those who call them, when they do: importing numba takes longer than importing
all the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from numba import njit

SUMS = {"reassoc", "contract", "nsz"}
"""What the compiler may do to sums so that they run in vector registers. Infinities and NaN keep their meaning."""


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Compile a function once and keep it; dividing by zero gives infinity or NaN, as in numpy, and costs no check.

    What numba keeps has the functions within that it calls, those of other modules too, but is thought to be up to date
    as long as its own module is. Here it is as long as all modules of compiled loops are.
    """

    def decorate(function: Any) -> Any:
        dispatcher = njit(cache=True, error_model="numpy", **options)(function)
        with suppress(AttributeError):  # without compilation (NUMBA_DISABLE_JIT) there is nothing to keep
            file = dispatcher._cache._cache_file
            file._source_stamp = file._source_stamp, _sources()
        return dispatcher

    return decorate


@cache
def _sources() -> str:
    """A hash of all modules of compiled loops, be they files or within a zip."""

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
