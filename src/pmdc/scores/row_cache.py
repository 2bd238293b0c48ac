"""A cache of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Value = TypeVar("Value", bound=Sized)


class BoundedCache(Generic[Value]):
    """Values by key; the oldest are dropped when all together exceed `max_bytes`."""

    def __init__(self, max_bytes: int):
        self.max_bytes = max_bytes
        self._values: dict[Hashable, Value] = {}
        self._bytes = 0

    def put(self, key: Hashable, value: Value) -> None:
        if key in self._values:
            self._bytes -= self._values.pop(key).nbytes
        while self._values and self._bytes + value.nbytes > self.max_bytes:
            self._bytes -= self._values.pop(next(iter(self._values))).nbytes
        self._values[key] = value
        self._bytes += value.nbytes

    def get(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the value of a key; compute and keep it if it is missing."""
        if key not in self._values:
            self.put(key, compute())
        return self._values[key]

    def find(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None."""
        return self._values.get(key)
