"""Held-out scores after shrinkage, with standard errors of their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pmdc._support.arrays import Floats
from pmdc._support.deadline import NEVER, Deadline
from pmdc.candidates.families import Family, Task
from pmdc.learners.protocols import Start
from pmdc.learners.validation import standard_error
from pmdc.scores.evaluators import Evaluator
from pmdc.scores.fitter import Fitter
from pmdc.scores.row_cache import BoundedCache
from pmdc.scores.scorer import Gain, Parallel, Scorer
from pmdc.scores.shrinkage import HeldOutRows, floor, shrink, uniform


class HeldOutScorer(Scorer):
    """Log-likelihoods of held-out rows.

    Parameters
    ----------
    evaluator : Evaluator
    shrunk : bool
        Whether models are shrunk towards those of the coarser family. Otherwise absent configurations get the uniform
        distribution, and probabilities in scores are at least the machine precision.
    memory_budget : int
        Bytes for caching the rows of families for comparisons; others are computed again.
    kappas : mapping from task to float
        The shrinkage of families for which it is known; that of others is chosen.
    otherwise : array of shape (n,) or None
        What rows with missing parents get; by default, the log-probability by the same family without these parents.
    """

    def __init__(
        self,
        fitter: Fitter,
        parallel: Parallel,
        evaluator: Evaluator,
        shrunk: bool,
        memory_budget: int,
        deadline: Deadline = NEVER,
        kappas: Mapping[Task, float] = MappingProxyType({}),
        otherwise: Floats | None = None,
    ):
        super().__init__(fitter, parallel, deadline)
        self.evaluator = evaluator
        self.otherwise = otherwise
        self.shrunk = shrunk
        self._rows: BoundedCache[Floats] = BoundedCache(memory_budget)
        self.kappas = dict(kappas)
        self._gains: dict[tuple[int, Family, Family], Gain] = {}

    def _needed(self, tasks: Sequence[Task]) -> list[Task]:
        needed = dict.fromkeys(tasks)
        waiting = list(needed)
        while waiting:
            child, family = waiting.pop()
            fewer = [self.fitter.coarser(child, family)] if self.shrunk else []
            if self.fitter.has_gaps and self.otherwise is None:
                fewer += [family.without(*missing) for missing, _ in self.fitter.unknown(child, family)[1]]
            for other in fewer:
                if other is not None and (child, other) not in needed:
                    needed[child, other] = None
                    waiting.append((child, other))
        return list(needed)

    def _work(self) -> tuple[Any, ...]:
        return _held_out, self.fitter, self.evaluator

    def _read(self, task: Task, answer: HeldOutRows) -> float:
        rows = self._after_shrinkage(task, answer)
        self._rows.put(task, rows)
        return float(np.dot(self._weights(task[0]), rows))

    def _weights(self, child: int) -> Floats:
        """Return the weights of the states of a class variable."""
        return self.fitter.learners[child].sample_weight

    def _after_shrinkage(self, task: Task, answer: HeldOutRows) -> Floats:
        child, family = task
        coarser = self.fitter.coarser(child, family) if self.shrunk else None
        if coarser is None:
            towards = uniform(len(self.fitter.codes), self.fitter.sizes[child])
        else:
            towards = self.rows(child, coarser)
        if self.shrunk:
            rows, self.kappas[task] = shrink(answer, towards, self._weights(child), self.kappas.get(task))
        else:
            rows = floor(answer, towards)
        return self._without_missing(child, family, rows) if self.fitter.has_gaps else rows

    def _without_missing(self, child: int, family: Family, rows: Floats) -> Floats:
        """Return the rows with those in which parents are missing by the models without these parents.

        So families can be compared: a parent counts only in the rows in which it is known. Rows in which the class
        variable is missing add nothing.
        """
        absent, cases = self.fitter.unknown(child, family)
        rows = np.where(absent, 0.0, rows)
        for missing, some in cases:
            fewer = self.rows(child, family.without(*missing)) if self.otherwise is None else self.otherwise
            rows[some] = fewer[some]
        return rows

    def rows(self, child: int, family: Family) -> Floats:
        """Return the held-out log-probability of each row's state, after shrinkage."""
        task = child, family

        def compute() -> Floats:
            [(answer, _)] = self._evaluate([task])
            return self._after_shrinkage(task, answer)

        return self._rows.get(task, compute)

    def gain(self, child: int, family: Family, other: Family) -> Gain:
        key = child, family, other
        if key not in self._gains:
            self._gains[key] = super().gain(child, family, other)
        return self._gains[key]

    def gain_of(self, changes: Sequence[tuple[int, Family, Family]]) -> Gain:
        differences = np.zeros(len(self.fitter.codes))
        for child, family, other in changes:
            own = self.rows(child, family) - self.rows(child, other)
            differences += own * self.fitter.cell_weight(child)
        value = sum(self._known[child, own] - self._known[child, other] for child, own, other in changes)
        return Gain(value, standard_error(differences, self.fitter.sample_weight, self.fitter.origin))

    def kappa(self, child: int, family: Family) -> float | None:
        return self.kappas.get((child, family))


def _held_out(
    tasks: Sequence[tuple[Task, Start | None]], fitter: Fitter, evaluator: Evaluator
) -> list[tuple[HeldOutRows, Start | None]]:
    return [
        evaluator(fitter, fitter.learner_of(child, family), child, family, start or fitter.start(child, family))
        for (child, family), start in tasks
    ]
