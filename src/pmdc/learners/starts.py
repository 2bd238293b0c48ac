"""Where the local models of a parent set start: at those of its best subset."""

from __future__ import annotations

from collections.abc import Sequence

from pmdc.candidates import ParentSet
from pmdc.learners.base import Start

_MOST_BYTES = 2**27
"""The most memory that is kept for starts (128 MiB); sets beyond it start from nothing."""


class WarmStarts:
    """The starts of the parent sets scored last, one level of sizes at a time.

    What is kept depends on the scores alone, not on who computed them, so results are the same for any number of
    workers.

    Parameters
    ----------
    max_sizes : sequence of int
        The size of the largest parent set of each class variable: nothing starts from these.
    """

    def __init__(self, max_sizes: Sequence[int]):
        self._max_sizes = max_sizes
        self._kept: dict[tuple[int, ParentSet], tuple[float, Start]] = {}
        self._bytes = 0

    def find(self, child: int, parents: ParentSet) -> tuple[Start | None, bool]:
        """The start of a parent set, and whether its own will be wanted."""
        subsets = ((child, parents[:i] + parents[i + 1 :]) for i in range(len(parents)))
        known = [self._kept[subset] for subset in subsets if subset in self._kept]
        best = max(known, key=lambda pair: pair[0], default=(0.0, None))[1]
        return best, len(parents) < self._max_sizes[child]

    def keep(
        self, tasks: Sequence[tuple[int, ParentSet]], scores: Sequence[float], starts: Sequence[Start | None]
    ) -> None:
        """Keep the starts of sets just scored, and forget those that are two sizes smaller."""
        largest = max((len(parents) for _, parents in tasks), default=0)
        self._kept = {key: value for key, value in self._kept.items() if len(key[1]) >= largest - 1}
        self._bytes = sum(start.nbytes for _, start in self._kept.values())
        for task, score, start in zip(tasks, scores, starts, strict=True):
            if start is not None and self._bytes + start.nbytes <= _MOST_BYTES:
                self._kept[task] = score, start
                self._bytes += start.nbytes
