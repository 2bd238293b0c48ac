"""Who is told how far a long piece of work is.

Whoever wants to know says so with `watching`; the work tells its phases, and within them how much is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol


class Watcher(Protocol):
    """What is told of the work."""

    def phase(self, name: str) -> None:
        """A new phase begins."""

    def step(self, done: float, total: float) -> None:
        """So much of the present phase is done."""


class _Span(NamedTuple):
    start: float
    size: float
    total: float


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_span: ContextVar[_Span | None] = ContextVar("span", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Within this, `watcher` is told of all work."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell_phase(name: str) -> None:
    """A new phase of the work begins."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher.phase(name)


def tell_step(done: float, total: float) -> None:
    """So much is done of the phase, or of the part of it that `part_of` has named."""
    watcher = _watcher.get()
    if watcher is None:
        return
    span = _span.get()
    if span is None:
        watcher.step(done, total)
    else:
        watcher.step(span.start + span.size * done / total, span.total)


@contextmanager
def part_of(start: float, size: float, total: float) -> Iterator[None]:
    """Within this, steps are steps of a part of the phase."""
    token = _span.set(_Span(start, size, total))
    try:
        yield
    finally:
        _span.reset(token)
