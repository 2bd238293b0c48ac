"""What is needed to fit the local models of any family: the learner, the rows and C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.candidates.families import Family
from pmdc.learners.protocols import LocalLearner, Regularised, Start, WarmStart
from pmdc.learners.tasks import LocalTask, local_task
from pmdc.table.rows import TrainingRows


@dataclass(frozen=True)
class Fitter:
    """Everything that workers need to fit the local models of any family.

    Attributes
    ----------
    learners : tuple of LocalLearner
        One for each class variable; several may share one.
    codes : array of shape (n, n_nodes)
    sizes : sequence of int
        The number of states of each node; the first nodes are the class variables.
    n_classes : int
    ranking : sequence of sequences of int
        For each class variable its possible parents, the most informative first.
    origin : array of shape (n,)
        Rows with the same number are copies of one row of the table.
    C : tuple of pairs of float or None, or None
        With ``C="auto"``, the chosen C for each class variable: of models without and with class variables as parents.
    """

    learners: tuple[LocalLearner, ...]
    codes: Codes
    sizes: tuple[int, ...]
    n_classes: int
    ranking: Sequence[Sequence[int]]
    origin: Codes
    C: tuple[tuple[float, float] | None, ...] | None = None

    @classmethod
    def of(cls, rows: TrainingRows, learners: Sequence[LocalLearner], ranking: Sequence[Sequence[int]]) -> Fitter:
        return cls(tuple(learners), rows.codes, rows.sizes, rows.n_classes, ranking, rows.origin)

    def on(self, rows: Codes, weights: Floats, origin: Codes) -> Fitter:
        """Return the same fitter on some of its rows, with other weights."""
        if np.array_equal(rows, np.arange(len(self.codes))):  # each is there once, with its whole weight
            return replace(self, origin=origin)
        codes = np.asfortranarray(self.codes[rows])
        some = {id(learner): learner.on(rows, weights) for learner in self.learners}  # shared ones stay shared
        learners = tuple(some[id(learner)] for learner in self.learners)
        return replace(self, learners=learners, codes=codes, origin=origin)

    @property
    def sample_weight(self) -> Floats:
        return self.learners[0].sample_weight

    def learner_of(self, child: int, family: Family) -> LocalLearner:
        """Return the learner of a family: the one with its C."""
        learner, C = self.learners[child], None if self.C is None else self.C[child]
        if C is None:
            return learner
        assert isinstance(learner, Regularised)
        return learner.with_C(C[bool(family.classes(self.n_classes))])

    def task(self, child: int, family: Family) -> LocalTask:
        return local_task(child, family, self.codes, self.sizes)

    def coarser(self, child: int, family: Family) -> Family | None:
        return family.coarser(self.ranking[child])

    def start(self, child: int, family: Family) -> Start | None:
        """Fit the models of the coarser family, from which the models of a family start.

        The result depends on the family only, so scores are the same bits in whichever order families are scored.
        """
        coarser = self.coarser(child, family)
        learner = None if coarser is None else self.learner_of(child, coarser)
        if coarser is None or not isinstance(learner, WarmStart):
            return None
        return learner.start(self.task(child, coarser), self.start(child, coarser))
