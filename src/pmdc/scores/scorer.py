"""Scores of many families, computed in parallel; greater is better.

A score depends on the family only, not on the order of requests, the number of workers or the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from pmdc._support.deadline import NEVER, Deadline
from pmdc._support.progress import part_of
from pmdc.candidates.families import Family, Task
from pmdc.learners.protocols import Start
from pmdc.scores.fitter import Fitter
from pmdc.scores.row_cache import BoundedCache

Parallel = Callable[..., list[Any]]

_CHUNK_SIZE, _MIN_CHUNKS = 16, 16
"""Families in one parallel task, and the number of tasks that a call should have at least."""

_START_BYTES = 2**27
"""Memory for warm starts (128 MiB); others are fitted again."""

_BATCH_BYTES = 2**27
"""Memory for results of workers (128 MiB)."""


class Gain(NamedTuple):
    """The difference between the scores of two families, and its standard error."""

    value: float
    standard_error: float


class Scorer(ABC):
    """Scores families.

    Parameters
    ----------
    fitter : Fitter
    parallel : function that runs ``work(chunk, *rest)`` for many chunks (`pmdc._support.parallel.workers`)
    deadline : Deadline
        No family is scored after it.
    """

    def __init__(self, fitter: Fitter, parallel: Parallel, deadline: Deadline = NEVER):
        self.fitter = fitter
        self.parallel = parallel
        self.deadline = deadline
        self._stopped = False
        self._known: dict[Task, float] = {}
        self._starts: BoundedCache[Start] = BoundedCache(_START_BYTES)

    def score(self, tasks: Sequence[Task]) -> dict[Task, float]:
        """Return the scores of families, and of those that these scores depend on.

        When the time is up, only those that were scored so far.
        """
        needed = self._needed(tasks)
        new = [task for task in needed if task not in self._known]
        if new and not self.out_of_time():
            self._stopped = not self._score_new(new, self.deadline)
        return {task: self._known[task] for task in needed if task in self._known}

    def score_always(self, tasks: Sequence[Task]) -> None:
        """Score families that a result needs, however little time is left."""
        self._score_new([task for task in self._needed(tasks) if task not in self._known], NEVER)

    def out_of_time(self) -> bool:
        """Return whether no further family will be scored."""
        self._stopped = self._stopped or self.deadline.passed()
        return self._stopped

    @property
    def stopped(self) -> bool:
        """Whether the scores of families are missing because the time was up."""
        return self._stopped

    def _score_new(self, new: Sequence[Task], deadline: Deadline) -> bool:
        """Score families until the deadline; return whether all were scored."""
        done = 0
        for batch in self._batches(new):
            with part_of(done, len(batch), len(new)):
                answers = self._evaluate(batch, deadline)
            done += len(answers)
            for task, (answer, start) in zip(batch, answers, strict=False):
                self._known[task] = self._read(task, answer)
                if start is not None:
                    self._starts.put(task, start)
            if len(answers) < len(batch):  # later batches may depend on this one
                break
        return done == len(new)

    def _needed(self, tasks: Sequence[Task]) -> list[Task]:
        """Return these families and those that their scores depend on."""
        return list(dict.fromkeys(tasks))

    def _batches(self, tasks: Sequence[Task]) -> list[list[Task]]:
        """Return batches with coarse partitions first: finer ones are shrunk towards them and start from them."""
        size = max(1, _BATCH_BYTES // (16 * len(self.fitter.codes)))
        ordered = sorted(tasks, key=lambda task: len(task[1].partition))
        levels = [list(level) for _, level in groupby(ordered, key=lambda task: len(task[1].partition))]
        return [level[i : i + size] for level in levels for i in range(0, len(level), size)]

    def _evaluate(self, tasks: Sequence[Task], deadline: Deadline = NEVER) -> list[tuple[Any, Start | None]]:
        """Return the results of the first families: of all of them if the deadline allows it."""
        with_starts = [(task, self._start(*task)) for task in tasks]
        size = 1 if deadline.exists else min(_CHUNK_SIZE, max(1, len(tasks) // _MIN_CHUNKS))
        chunks = [with_starts[i : i + size] for i in range(0, len(tasks), size)]
        work, *rest = self._work()
        return list(chain.from_iterable(self.parallel(work, chunks, *rest, deadline=deadline)))

    def _start(self, child: int, family: Family) -> Start | None:
        """Return the cached start of a family; workers fit missing ones."""
        coarser = self.fitter.coarser(child, family)
        return None if coarser is None else self._starts.find((child, coarser))

    @abstractmethod
    def _work(self) -> tuple[Any, ...]:
        """Return the function that workers run for chunks of (family, start), and its other arguments."""

    @abstractmethod
    def _read(self, task: Task, answer: Any) -> float:
        """Return the score of a family from the result of a worker."""

    def gain(self, child: int, family: Family, other: Family) -> Gain:
        """Return by how much a scored family is better than another."""
        return self.gain_of([(child, family, other)])

    @abstractmethod
    def gain_of(self, changes: Sequence[tuple[int, Family, Family]]) -> Gain:
        """Return by how much families of several class variables are better than others, all together."""

    def kappa(self, child: int, family: Family) -> float | None:
        """Return the kappa of a scored family, if one was chosen."""
        return None
