"""Scores on rows that the models have not seen, and the shrinkage that these choose.

For one class variable and one family each row gets the log-probability of its own state by models that were fitted
without it: `LeaveOneOut` where the estimator has a closed form, `CrossValidation` for any, `OutOfBag` for forests that
know which trees have not seen a row. Beside it stands the weight W of the rows behind the model that answered, because
a configuration with few rows is not to be believed: its answer p is shrunk towards the answer q of the family with a
parent less,

    (W p + kappa q) / (W + kappa),

which is q where the configuration has no rows, gives absent states the share kappa q / (W + kappa), and is never 0.
The strength kappa is the one on a grid under which the held-out rows have the greatest log-likelihood, for each family
its own. q is shrunk towards its own q in the same way, down to the family whose parents divide nothing, and that
towards the uniform distribution.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from sklearn.model_selection import check_cv

from pmdc.families import Family, local_task
from pmdc.learners.base import TINY, LocalLearner, Start
from pmdc.model_selection import MultiStratifiedKFold
from pmdc.table import Codes, Floats

STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The strengths of shrinkage that are tried: how many rows the family with a parent less is worth."""


@dataclass(frozen=True)
class Rows:
    """What models say of rows that they have not seen.

    Attributes
    ----------
    log_proba : array of shape (n,)
        Of the row's own state; -inf where the model knows nothing of it.
    weight : array of shape (n,)
        The weight of the rows behind the model.
    start : Start or sequence of Start or None
        What the models of finer partitions may start from.
    """

    log_proba: Floats
    weight: Floats
    start: Any = None


class Evaluator(Protocol):
    """Finds the held-out log-probabilities of a family."""

    def __call__(
        self, learner: Any, child: int, family: Family, codes: Codes, sizes: Sequence[int], start: Any
    ) -> Rows: ...


class LeaveOneOut:
    """Each row by models fitted without it, in closed form."""

    def __call__(
        self, learner: Any, child: int, family: Family, codes: Codes, sizes: Sequence[int], start: Start | None
    ) -> Rows:
        task = local_task(child, family, codes, sizes)
        log_proba, own = learner.leave_one_out(task, start)
        leaves = np.minimum(learner.sample_weight, 1.0)
        weight = task.partition.weights(learner.sample_weight)[task.partition.part] - leaves
        return Rows(log_proba, np.maximum(weight, 0.0), own)


class OutOfBag:
    """Each row by the members of an ensemble that have not seen it; where all have, nothing is known of it."""

    def __call__(
        self, learner: Any, child: int, family: Family, codes: Codes, sizes: Sequence[int], start: Any
    ) -> Rows:
        task = local_task(child, family, codes, sizes)
        weight = task.partition.weights(learner.sample_weight)[task.partition.part] - learner.sample_weight
        log_proba, answered = learner.out_of_bag(task)
        return Rows(log_proba, np.where(answered, np.maximum(weight, 0.0), 0.0))


@dataclass(frozen=True)
class CrossValidation:
    """Each row by models fitted without its fold.

    Attributes
    ----------
    fold : array of shape (n,)
        The fold of each row.
    """

    fold: Codes

    @classmethod
    def of(cls, codes: Codes, cv: Any) -> CrossValidation:
        """Folds, the same for every family: those of a splitter or of a list of (training rows, test rows).

        With a number, folds in which all class variables have about the same shares of states.
        """
        fold = np.full(len(codes), -1)
        if len(codes) == 1:
            return cls(np.zeros(1, dtype=np.int64))
        if isinstance(cv, Integral):
            cv = MultiStratifiedKFold(min(int(cv), len(codes)), shuffle=True, random_state=0)
        with warnings.catch_warnings():  # states with fewer rows than folds are what back-off is for
            warnings.simplefilter("ignore", UserWarning)
            for number, (_, test) in enumerate(check_cv(cv).split(codes, codes)):
                if (fold[test] >= 0).any():
                    raise ValueError(f"cv={cv!r} holds rows out more than once: every row must be in one test fold.")
                fold[test] = number
        if (fold < 0).any():
            raise ValueError(
                f"cv={cv!r} never holds row {int(np.argmax(fold < 0))} out: every row must be in one test fold."
            )
        return cls(fold)

    def __call__(
        self,
        learner: Any,
        child: int,
        family: Family,
        codes: Codes,
        sizes: Sequence[int],
        start: Sequence[Start | None] | None,
    ) -> Rows:
        log_proba, weight = np.full(len(codes), -np.inf), np.zeros(len(codes))
        starts = []
        for number in range(int(self.fold.max()) + 1):
            seen, held = np.flatnonzero(self.fold != number), np.flatnonzero(self.fold == number)
            if not len(seen):
                continue
            some = learner.on(seen)
            task = local_task(child, family, codes[seen], sizes)
            models, own = some.fit_from(task, None if start is None else start[number])
            part = task.partition.configurations.find(codes[held])[:, 0]
            inputs = codes[held][:, list(family.inputs)] if family.inputs else None
            answers = models.log_proba(learner.X[held], part, inputs)
            log_proba[held] = answers[np.arange(len(held)), codes[held, child]]
            weights = task.partition.weights(some.sample_weight)
            weight[held] = np.where(part >= 0, weights[part], 0.0)
            starts.append(own)
        return Rows(log_proba, weight, starts)


def make_evaluator(criterion: str, learner: LocalLearner, classes: Codes, cv: Any) -> Evaluator:
    """The evaluator behind a held-out criterion."""
    closed = hasattr(learner, "leave_one_out")
    if criterion == "loo" and not closed:
        raise ValueError(
            "criterion='loo' needs a closed form, which logistic regression and naive Bayes have: for this estimator "
            "choose criterion='cv'."
        )
    if closed and criterion != "cv":
        return LeaveOneOut()
    if getattr(learner, "has_out_of_bag", False):
        return OutOfBag()
    return CrossValidation.of(classes, cv)


def counted(rows: Rows, fewer: Floats, sample_weight: Floats, shrunk: bool = True) -> tuple[Floats, float | None]:
    """The held-out log-probabilities that count, and the strength of the shrinkage that made them, if there is any.

    Without shrinkage, `fewer` answers where nothing is known, and no probability is less than the machine precision.
    """
    if shrunk:
        return shrink(rows, fewer, sample_weight)
    return np.where(rows.weight > 0, np.maximum(rows.log_proba, TINY), fewer), None


def shrink(rows: Rows, fewer: Floats, sample_weight: Floats) -> tuple[Floats, float]:
    """The held-out log-probabilities after shrinkage, and the strength that serves them best.

    Parameters
    ----------
    rows : Rows
    fewer : array of shape (n,)
        log q of each row.
    sample_weight : array of shape (n,)
    """
    own = rows.weight * np.exp(rows.log_proba)
    q = np.exp(fewer)
    best: tuple[float, Floats, float] | None = None
    for strength in STRENGTHS:
        value = np.log((own + strength * q) / (rows.weight + strength))
        total = float(np.dot(sample_weight, value))
        if best is None or total > best[0]:
            best = total, value, strength
    assert best is not None
    return best[1], best[2]
