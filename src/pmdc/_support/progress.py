"""Progress of long operations.

A caller that wants to follow the progress enters `watching` or `messages_to`; the work reports its phases, the steps
within a phase, and notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol


class Watcher(Protocol):
    """A receiver of progress."""

    def phase(self, name: str) -> None:
        """Begin a new phase."""

    def step(self, done: float, total: float) -> None:
        """Report how much of the current phase is done."""


class _Watched:
    """A watcher with its current phase, and whether a notice is shown in place of it."""

    def __init__(self, watcher: Watcher):
        self.watcher = watcher
        self.phase: str | None = None
        self.noticed = False


class _Span(NamedTuple):
    start: float
    size: float
    total: float


_watched: ContextVar[_Watched | None] = ContextVar("watched", default=None)
_messages: ContextVar[Callable[[str], None] | None] = ContextVar("messages", default=None)
_span: ContextVar[_Span | None] = ContextVar("span", default=None)
_prefix: ContextVar[str] = ContextVar("prefix", default="")
_note: ContextVar[Callable[[], str] | None] = ContextVar("note", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Report all progress within this context to `watcher`."""
    token = _watched.set(_Watched(watcher))
    try:
        yield
    finally:
        _watched.reset(token)


@contextmanager
def messages_to(write: Callable[[str], None] | None) -> Iterator[None]:
    """Pass notices within this context to `write`, too."""
    token = _messages.set(write)
    try:
        yield
    finally:
        _messages.reset(token)


@contextmanager
def noting(note: Callable[[], str]) -> Iterator[None]:
    """Add a note in parentheses to the phases that begin within this context, unless it is empty."""
    token = _note.set(note)
    try:
        yield
    finally:
        _note.reset(token)


def tell_phase(name: str) -> None:
    """Report that a new phase begins."""
    watched, note = _watched.get(), _note.get()
    if watched is not None:
        watched.phase, watched.noticed = name, False
        text = "" if note is None else note()
        watched.watcher.phase(_prefix.get() + (f"{name} ({text})" if text else name))


def tell_step(done: float, total: float) -> None:
    """Report how much of the phase is done, or of the part of it that `part_of` has set."""
    watched = _watched.get()
    if watched is None:
        return
    end_notice()
    span = _span.get()
    if span is None:
        watched.watcher.step(done, total)
    else:
        watched.watcher.step(span.start + span.size * done / total, span.total)


def tell_notice(message: str, watcher_only: bool = False) -> bool:
    """Show a message in place of the phase until `end_notice` or the next step; return whether anybody receives it.

    With `watcher_only` it is not passed to the function of `messages_to`.
    """
    watched, write = _watched.get(), _messages.get()
    if watched is not None:
        watched.noticed = True
        watched.watcher.phase(message)
    if write is not None and not watcher_only:
        write(message)
    return watched is not None or write is not None


def end_notice() -> None:
    """Return to the phase in place of which a notice is shown."""
    watched = _watched.get()
    if watched is not None and watched.noticed and watched.phase is not None:
        tell_phase(watched.phase)


@contextmanager
def part_of(start: float, size: float, total: float) -> Iterator[None]:
    """Let the steps within this context be steps of a part of the phase."""
    token = _span.set(_Span(start, size, total))
    try:
        yield
    finally:
        _span.reset(token)


@contextmanager
def phases_of(work: str) -> Iterator[None]:
    """Name the work of which the phases within this context are phases, such as "resample 2 of 10"."""
    token = _prefix.set(f"{_prefix.get()}{work}: ")
    try:
        yield
    finally:
        _prefix.reset(token)
