"""What is needed to fit the local models of any family: the learner, the rows and C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.candidates.families import Family
from pmdc.learners.protocols import LocalLearner, Regularised, Start, WarmStart
from pmdc.learners.tasks import LocalTask, local_task
from pmdc.table.rows import TrainingRows


class LocalFit(NamedTuple):
    """The data of one family and the learner that fits it.

    Attributes
    ----------
    task : LocalTask
    learner : LocalLearner
        On the rows of the task.
    kept : array of shape (m,) or None
        The rows of the task, if they are not all rows: without those in which a state of the family is missing, and
        with one row for all completions of a row that agree in the family.
    place : array of shape (n,)
        The row of the task that stands for each row; -1 for those without.
    """

    task: LocalTask
    learner: LocalLearner
    kept: Codes | None = None
    place: Any = None

    def spread(self, values: Floats, otherwise: float) -> Floats:
        """Return values of the rows of the task for all rows."""
        if self.kept is None:
            return values
        if not len(values):
            return np.full(len(self.place), otherwise)
        return np.where(self.place >= 0, values[self.place], otherwise)


@dataclass(frozen=True)
class Fitter:
    """Everything that workers need to fit the local models of any family.

    Attributes
    ----------
    learners : tuple of LocalLearner
        One for each class variable; several may share one. Their weights are those of the class variable's states.
    codes : array of shape (n, n_nodes)
        Negative where a state is missing: a family is fitted on the rows in which it is complete.
    sizes : sequence of int
        The number of states of each node; the first nodes are the class variables.
    n_classes : int
    ranking : sequence of sequences of int
        For each class variable its possible parents, the most informative first.
    origin : array of shape (n,)
        Rows with the same number are copies of one row of the table.
    sample_weight : array of shape (n,)
        The weights of the rows.
    merge : bool
        Whether copies of a row that agree in a family are one row there, with the sum of their weights.
    C : tuple of pairs of float or None, or None
        With ``C="auto"``, the chosen C for each class variable: of models without and with class variables as parents.
    """

    learners: tuple[LocalLearner, ...]
    codes: Codes
    sizes: tuple[int, ...]
    n_classes: int
    ranking: Sequence[Sequence[int]]
    origin: Codes
    sample_weight: Floats
    merge: bool
    C: tuple[tuple[float, float] | None, ...] | None = None

    @classmethod
    def of(cls, rows: TrainingRows, learners: Sequence[LocalLearner], ranking: Sequence[Sequence[int]]) -> Fitter:
        codes, merge = rows.codes, rows.weighted and rows.has_copies
        return cls(tuple(learners), codes, rows.sizes, rows.n_classes, ranking, rows.origin, rows.weights, merge)

    def on(self, rows: Codes, share: Floats, origin: Codes) -> Fitter:
        """Return the same fitter on some of its rows, with a share of their weights."""
        if np.array_equal(rows, np.arange(len(self.codes))):  # each is there once, with its whole weight
            return replace(self, origin=origin)
        codes = np.asfortranarray(self.codes[rows])
        arrays = [self.sample_weight, *(one.sample_weight for one in self.learners)]
        weights = {id(own): own[rows] * share for own in arrays}
        some = {id(one): one.on(rows, weights[id(one.sample_weight)]) for one in self.learners}
        learners = tuple(some[id(learner)] for learner in self.learners)  # shared ones stay shared
        return replace(
            self, learners=learners, codes=codes, origin=origin, sample_weight=weights[id(self.sample_weight)]
        )

    def learner_of(self, child: int, family: Family) -> LocalLearner:
        """Return the learner of a family: the one with its C."""
        learner, C = self.learners[child], None if self.C is None else self.C[child]
        if C is None:
            return learner
        assert isinstance(learner, Regularised)
        return learner.with_C(C[bool(family.classes(self.n_classes))])

    def cell_weight(self, child: int) -> Floats | float:
        """Return the weights of the states of a class variable relative to those of the rows."""
        own = self.learners[child].sample_weight
        return 1.0 if own is self.sample_weight else own / self.sample_weight

    def weight(self, child: int, *parents: int) -> float:
        """Return the weight of the states of a class variable in the rows in which it and these parents are known."""
        known = (self.codes[:, [child, *parents]] >= 0).all(axis=1)
        return float(self.learners[child].sample_weight[known].sum())

    def local(self, child: int, family: Family, learner: LocalLearner | None = None) -> LocalFit:
        """Return the data of a family and its learner, by default the one with the chosen C."""
        learner = self.learner_of(child, family) if learner is None else learner
        rows = self._rows(child, family)
        if rows is None:
            return LocalFit(local_task(child, family, self.codes, self.sizes), learner)
        kept, place = rows
        used = place >= 0
        weights: Floats = np.bincount(place[used], learner.sample_weight[used], len(kept)).astype(float)
        task = local_task(child, family, self.codes[kept], self.sizes)
        return LocalFit(task, learner.on(kept, weights), kept, place)

    def _rows(self, child: int, family: Family) -> tuple[Codes, Codes] | None:
        """Return the rows that a family is fitted on and the place of each row among them; None if it is all rows."""
        variables = (child, *family.classes(self.n_classes))
        if self._owner is None:
            complete = (self.codes[:, variables] >= 0).all(axis=1)
            if not self.has_gaps or complete.all():
                return None
            return np.flatnonzero(complete), np.where(complete, np.cumsum(complete) - 1, -1)
        number = self._owner
        if math.prod(self.sizes[v] for v in variables) >= np.iinfo(np.int64).max // (1 + len(number)):
            return None
        for v in variables:  # copies of a row that agree in these variables are one row
            number = number * self.sizes[v] + self.codes[:, v]
        _, kept, place = np.unique(number, return_index=True, return_inverse=True)
        return None if len(kept) == len(number) else (kept, place)

    def unknown(self, child: int, family: Family) -> tuple[Marks, list[tuple[tuple[int, ...], Codes]]]:
        """Return the rows without the class variable, and those in which only parents are missing, by these parents."""
        absent = self.codes[:, child] < 0
        parents = np.array(family.classes(self.n_classes), dtype=np.int64)
        missing = (self.codes[:, parents] < 0) & ~absent[:, None]
        patterns, number = np.unique(missing, axis=0, return_inverse=True)
        cases = [
            (tuple(parents[pattern].tolist()), np.flatnonzero(number.ravel() == i))
            for i, pattern in enumerate(patterns)
            if pattern.any()
        ]
        return absent, cases

    @cached_property
    def has_gaps(self) -> bool:
        """Whether states are missing."""
        return bool((self.codes[:, : self.n_classes] < 0).any())

    @cached_property
    def _owner(self) -> Codes | None:
        """The row of the table that each row is a copy of, numbered from 0; None if copies are not merged."""
        return np.unique(self.origin, return_inverse=True)[1].astype(np.int64) if self.merge else None

    def coarser(self, child: int, family: Family) -> Family | None:
        return family.coarser(self.ranking[child])

    def start(self, child: int, family: Family) -> Start | None:
        """Fit the models of the coarser family, from which the models of a family start.

        The result depends on the family only, so scores are the same bits in whichever order families are scored.
        """
        coarser = self.coarser(child, family)
        if coarser is None or not isinstance(self.learners[child], WarmStart):
            return None
        local = self.local(child, coarser)
        assert isinstance(local.learner, WarmStart)
        return local.learner.start(local.task, self.start(child, coarser))
