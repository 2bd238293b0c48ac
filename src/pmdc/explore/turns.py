"""Whose turn it is to compute: one thread at a time, short questions first, and nothing for clients that have gone."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PATIENCE = 0.2
"""Seconds by which a long question counts as having come later than it did."""

CLIENT_GONE: ContextVar[threading.Event | None] = ContextVar("CLIENT_GONE", default=None)
"""Set, in the context of a request, when its client has closed the connection."""


class Turns:
    """A fair lock: threads have their turn in the order of their coming, but short questions overtake long ones.

    A long question is overtaken only by those that come in the next `PATIENCE` seconds, so that its turn does come.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[float, int, threading.Lock]] = []
        self._numbers = itertools.count()
        self._taken = False

    @contextmanager
    def take(self, *, short: bool) -> Iterator[None]:
        mine = threading.Lock()
        with self._lock:
            if self._taken:
                mine.acquire()  # released by the one before
                time_of_coming = time.monotonic() + (0.0 if short else PATIENCE)
                heapq.heappush(self._waiting, (time_of_coming, next(self._numbers), mine))
            self._taken = True
        mine.acquire()
        try:
            yield
        finally:
            with self._lock:
                if self._waiting:
                    heapq.heappop(self._waiting)[2].release()
                else:
                    self._taken = False


def client_gone() -> bool:
    """Return whether nobody waits for the answer of the request that is being computed."""
    gone = CLIENT_GONE.get()
    return gone is not None and gone.is_set()
