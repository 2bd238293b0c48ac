"""A bounded cache: what it has forgotten is computed again, to the same bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Value = TypeVar("Value", bound=Sized)


class BoundedCache(Generic[Value]):
    """Values by key, the oldest forgotten first when they are more than some bytes.

    Parameters
    ----------
    max_bytes : int
    """

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
        """Return the value of a key, computed and kept if it is not there."""
        if key not in self._values:
            self.put(key, compute())
        return self._values[key]

    def find(self, key: Hashable) -> Value | None:
        """Return the value of a key if it is there."""
        return self._values.get(key)
