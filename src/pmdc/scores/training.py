"""Scores on the training rows: log-likelihoods of the local models minus a penalty."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pmdc._support.deadline import NEVER, Deadline
from pmdc.candidates.families import Family, Task
from pmdc.learners.protocols import Start, WarmStart
from pmdc.scores.fitter import Fitter, LocalFit
from pmdc.scores.scorer import Gain, Parallel, Scorer


class TrainingScorer(Scorer):
    """S(Y, D) = C(Y, D) - pen(D): Eq. 23.

    Parameters
    ----------
    penalty : function (child, family) -> pen(D)
    """

    def __init__(
        self,
        fitter: Fitter,
        parallel: Parallel,
        penalty: Callable[[int, Family], float],
        deadline: Deadline = NEVER,
    ):
        super().__init__(fitter, parallel, deadline)
        self.penalty = penalty

    def _work(self) -> tuple[Any, ...]:
        return _log_likelihoods, self.fitter

    def _read(self, task: Task, answer: Any) -> float:
        return float(answer) - self.penalty(*task)

    def gain_of(self, changes: Sequence[tuple[int, Family, Family]]) -> Gain:
        return Gain(sum(self._known[child, own] - self._known[child, other] for child, own, other in changes), 0.0)


def _log_likelihoods(tasks: Sequence[tuple[Task, Start | None]], fitter: Fitter) -> list[tuple[float, Start | None]]:
    """Run phase P1 (Eq. 17) for some families: return C(Y, D) of Eq. 20, the sum over all parts."""
    answers: list[tuple[float, Start | None]] = []
    for (child, family), start in tasks:
        local = fitter.local(child, family)
        if not len(local.task.codes):
            answers.append((-math.inf, None))
        elif isinstance(local.learner, WarmStart):
            value, own = local.learner.log_likelihood_from(local.task, start or fitter.start(child, family))
            answers.append((value * _scale(fitter, child, local), own))
        else:
            answers.append((local.learner.log_likelihood(local.task) * _scale(fitter, child, local), None))
    return answers


def _scale(fitter: Fitter, child: int, local: LocalFit) -> float:
    """Return the weight of the rows with the class variable divided by that of the rows of the family.

    So families with missing parents are compared by their average log-likelihood of a row, the node-average likelihood
    of Balov (2013).
    """
    if not fitter.has_gaps:
        return 1.0
    return fitter.weight(child) / float(local.learner.sample_weight.sum())
