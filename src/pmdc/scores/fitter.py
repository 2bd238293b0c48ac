"""What phase P1 fits: the learner, the rows and C of any family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
    learner : LocalLearner
    codes : array of shape (n, n_nodes)
    sizes : sequence of int
        The number of states of each node; the first nodes are the class variables.
    n_classes : int
    ranking : sequence of sequences of int
        For each class variable its possible parents, the most informative first.
    C : tuple of pairs of float, or None
        C of the local models of each class variable without and with class variables as parents, where it was chosen.
    """

    learner: LocalLearner
    codes: Codes
    sizes: tuple[int, ...]
    n_classes: int
    ranking: Sequence[Sequence[int]]
    C: tuple[tuple[float, float], ...] | None = None

    @classmethod
    def of(cls, rows: TrainingRows, learner: LocalLearner, ranking: Sequence[Sequence[int]]) -> Fitter:
        return cls(learner, rows.codes, rows.sizes, rows.n_classes, ranking)

    @property
    def sample_weight(self) -> Floats:
        return self.learner.sample_weight

    @cached_property
    def warm(self) -> bool:
        """Whether models start from those of the coarser family."""
        return isinstance(self.learner, WarmStart)

    def with_C(self, C: Sequence[tuple[float, float]]) -> Fitter:
        return replace(self, C=tuple(C))

    def C_of(self, child: int, family: Family) -> float | None:
        return None if self.C is None else self.C[child][bool(family.classes(self.n_classes))]

    def learner_of(self, child: int, family: Family) -> LocalLearner:
        C = self.C_of(child, family)
        if C is None:
            return self.learner
        assert isinstance(self.learner, Regularised)
        return self.learner.with_C(C)

    def task(self, child: int, family: Family) -> LocalTask:
        return local_task(child, family, self.codes, self.sizes)

    def coarser(self, child: int, family: Family) -> Family | None:
        return family.coarser(self.ranking[child])

    def start(self, child: int, family: Family) -> Start | None:
        """Fit what the models of a family start from: those of the coarser one, which start from theirs.

        It depends on nothing but the family, so scores have the same bits in whichever order families are scored.
        """
        coarser = self.coarser(child, family)
        learner = None if coarser is None else self.learner_of(child, coarser)
        if coarser is None or not isinstance(learner, WarmStart):
            return None
        return learner.start(self.task(child, coarser), self.start(child, coarser))
