"""The scores of many families at once, in parallel; the greater, the better.

A score depends on the family alone: neither on the order in which families are asked for, nor on the number of workers,
nor on what was forgotten in between.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from pmdc._support.progress import part_of
from pmdc.candidates.families import Family, Task
from pmdc.learners.protocols import Start
from pmdc.scores.fitter import Fitter
from pmdc.scores.row_cache import BoundedCache

Parallel = Callable[..., list[Any]]

_CHUNK_SIZE, _MIN_CHUNKS = 16, 16
"""Families in one parallel task, enough to outweigh sending it, and tasks that a call has at least, if it can."""

_START_BYTES = 2**27
"""Memory for what models start from (128 MiB); beyond it, starts are fitted again."""

_BATCH_BYTES = 2**27
"""Memory for answers of workers that wait to be read (128 MiB)."""


class Gain(NamedTuple):
    """By how much one family scores better than another, and the standard error of that."""

    value: float
    standard_error: float


class Scorer(ABC):
    """Scores families.

    Parameters
    ----------
    fitter : Fitter
    parallel : function that runs ``work(chunk, *rest)`` for many chunks (`pmdc._support.parallel.workers`)
    """

    def __init__(self, fitter: Fitter, parallel: Parallel):
        self.fitter = fitter
        self.parallel = parallel
        self._known: dict[Task, float] = {}
        self._starts: BoundedCache[Start] = BoundedCache(_START_BYTES)

    def score(self, tasks: Sequence[Task]) -> dict[Task, float]:
        """Score some families, and those that their scores need."""
        wanted = self._needed(tasks)
        new = [task for task in wanted if task not in self._known]
        done = 0
        for batch in self._batches(new):
            with part_of(done, len(batch), len(new)):
                answers = self._evaluate(batch)
            done += len(batch)
            for task, (answer, start) in zip(batch, answers, strict=True):
                self._known[task] = self._read(task, answer)
                if start is not None:
                    self._starts.put(task, start)
        return {task: self._known[task] for task in wanted}

    def _needed(self, tasks: Sequence[Task]) -> list[Task]:
        """The families whose scores these need, themselves included."""
        return list(dict.fromkeys(tasks))

    def _batches(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Coarse partitions first: finer ones are shrunk towards them and start from them."""
        size = max(1, _BATCH_BYTES // (16 * len(self.fitter.codes)))
        ordered = sorted(tasks, key=lambda task: len(task[1].partition))
        levels = [list(level) for _, level in groupby(ordered, key=lambda task: len(task[1].partition))]
        return [level[i : i + size] for level in levels for i in range(0, len(level), size)]

    def _evaluate(self, tasks: Sequence[Task]) -> list[tuple[Any, Start | None]]:
        with_starts = [(task, self._start(*task)) for task in tasks]
        size = min(_CHUNK_SIZE, max(1, len(tasks) // _MIN_CHUNKS))
        chunks = [with_starts[i : i + size] for i in range(0, len(tasks), size)]
        work, *rest = self._work()
        return list(chain.from_iterable(self.parallel(work, chunks, *rest)))

    def _start(self, child: int, family: Family) -> Start | None:
        """The start of a family, if it is kept; workers fit those that are not."""
        coarser = self.fitter.coarser(child, family)
        return None if coarser is None else self._starts.find((child, coarser))

    @abstractmethod
    def _work(self) -> tuple[Any, ...]:
        """The function that workers run for chunks of families with their starts, and its other arguments."""

    @abstractmethod
    def _read(self, task: Task, answer: Any) -> float:
        """The score of a family from what a worker has answered."""

    @abstractmethod
    def gain(self, child: int, family: Family, other: Family) -> Gain:
        """Compare two families that were scored."""

    def kappa(self, child: int, family: Family) -> float | None:
        """Return how strongly a family that was scored is shrunk towards the coarser one, if that was chosen."""
        return None


def start_of(fitter: Fitter, child: int, family: Family, start: Start | None) -> Start | None:
    """Return the start of a family, fitted anew where it was not kept."""
    return fitter.start(child, family) if start is None and fitter.warm else start
