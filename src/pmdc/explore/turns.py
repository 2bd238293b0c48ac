"""A lock whose waiting threads have their turn in the order of their coming."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any


class Turns:
    """A fair lock: unlike with `threading.Lock`, a thread that comes back at once lets the others go first."""

    def __init__(self) -> None:
        self._queue: deque[threading.Lock] = deque()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        mine = threading.Lock()
        with self._lock:
            if self._queue:
                mine.acquire()  # released by the one before
            self._queue.append(mine)
        mine.acquire()

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._queue.popleft()
            if self._queue:
                self._queue[0].release()
