"""Where the local models of a family start: at those of the best family that differs by one parent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pmdc.candidates.families import Family

_MOST_BYTES = 2**27
"""The most memory that is kept for starts (128 MiB); families beyond it start from nothing."""


class WarmStarts:
    """The starts of the families scored last, one level of sizes at a time.

    What is kept depends on the scores alone, not on who computed them, so results are the same for any number of
    workers.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, Family], tuple[float, Any]] = {}
        self._bytes = 0

    def find(self, child: int, family: Family) -> Any:
        """The start of a family: that of the best one with a parent less or an input more."""
        known = [value for (k, other), value in self._kept.items() if k == child and _leads_to(other, family)]
        return max(known, key=lambda pair: pair[0], default=(0.0, None))[1]

    def keep(self, tasks: Sequence[tuple[int, Family]], scores: Sequence[float], starts: Sequence[Any]) -> None:
        """Keep the starts of families just scored, and forget those that are two sizes smaller."""
        largest = max((_size(family) for _, family in tasks), default=0)
        self._kept = {key: value for key, value in self._kept.items() if _size(key[1]) >= largest - 1}
        self._bytes = sum(_bytes(start) for _, start in self._kept.values())
        for task, score, start in zip(tasks, scores, starts, strict=True):
            if start is not None and self._bytes + _bytes(start) <= _MOST_BYTES:
                self._kept[task] = score, start
                self._bytes += _bytes(start)


def _leads_to(other: Family, family: Family) -> bool:
    """Whether the models of a family can start from those of another, of which they differ little."""
    more = _size(family) - _size(other)
    if more == 1:
        return set(other.partition) <= set(family.partition) and set(other.inputs) <= set(family.inputs)
    return more == -1 and other.partition == family.partition and set(other.inputs) > set(family.inputs)


def _size(family: Family) -> int:
    return len(family.partition) + len(family.inputs)


def _bytes(start: Any) -> int:
    """The memory of a start, or of one for each fold."""
    return sum(map(_bytes, start)) if isinstance(start, list) else 0 if start is None else int(start.nbytes)
