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

import reprlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from pmdc._support.arrays import Codes, Floats
from pmdc.candidates.families import Family
from pmdc.learners.protocols import TINY, LocalLearner, Start
from pmdc.learners.tasks import local_task
from pmdc.model_selection import MultiStratifiedKFold

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
    """Each row by models fitted on the training rows of the fold that holds it out.

    Attributes
    ----------
    folds : sequence of (training rows, test rows)
        Every row is in one test part; a training part may be empty, which says nothing of its test rows.
    """

    folds: Sequence[tuple[Codes, Codes]]

    @classmethod
    def of(cls, codes: Codes, cv: Any, kept: npt.NDArray[np.bool_] | None = None) -> CrossValidation:
        """Folds, the same for every family: those of a splitter or of a list of (training rows, test rows).

        With a number, folds in which all class variables have about the same shares of states.

        Parameters
        ----------
        codes : array of shape (n, n_classes)
        cv : int, splitter or iterable of (training rows, test rows)
            An iterable has the rows of the whole table, a splitter is shown those that are kept.
        kept : boolean array with one value for each row of the table, or None
            Which of them are the rows of `codes`; None: all.
        """
        name, listed = f"cv={cv!r}", not isinstance(cv, Integral) and not hasattr(cv, "split")
        if listed:
            name = "cv"  # lists of rows are long
        elif len(codes) == 1:
            return cls([(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))])
        elif isinstance(cv, Integral):
            cv = MultiStratifiedKFold(min(int(cv), len(codes)), shuffle=True, random_state=0)
        try:
            with warnings.catch_warnings():  # states with fewer rows than folds are what back-off is for
                warnings.simplefilter("ignore", UserWarning)
                pairs = list(cv if listed else cv.split(codes, codes))
        except Exception as error:
            raise ValueError(
                f"{name} gave no folds of the {len(codes)} rows ({type(error).__name__}: {error}). Give a number of "
                "folds, a pmdc.model_selection.MultiStratifiedKFold or a list of (train, test) rows."
            ) from error
        if not pairs:
            raise ValueError(f"{name} has no folds: give a list of (train, test) rows; a generator is read only once.")
        rows = np.arange(len(codes)) if kept is None else np.flatnonzero(kept)
        place = np.arange(len(codes))
        if listed and kept is not None:
            place = np.full(len(kept), -1)
            place[rows] = np.arange(len(rows))
        folds = []
        for number, pair in enumerate(pairs):
            train, test = (place[part] for part in _read_fold(pair, len(place), f"{name}, fold {number}"))
            folds.append((train[train >= 0], test[test >= 0]))
        times = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(codes))
        if (times != 1).any():
            row = int(np.argmax(times != 1))
            told = f"holds row {rows[row]} out {times[row]} times" if times[row] else f"never holds row {rows[row]} out"
            raise ValueError(f"{name} {told}: every row must be in one test fold.")
        return cls([fold for fold in folds if len(fold[1])])

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
        starts: list[Start | None] = []
        for number, (seen, held) in enumerate(self.folds):
            if not len(seen):
                starts.append(None)
                continue
            some = learner.on(seen)
            task = local_task(child, family, codes[seen], sizes)
            part = task.partition.configurations.find(codes[held])[:, 0]
            inputs = codes[held][:, list(family.inputs)] if family.inputs else None
            try:
                models, own = some.fit_from(task, None if start is None else start[number])
                answers = models.log_proba(learner.X[held], part, inputs)
            except (ValueError, FloatingPointError) as error:
                if not hasattr(learner, "estimator"):
                    raise
                raise ValueError(
                    f"estimator={learner.estimator!r} failed in fold {number} of cv, which trains on {len(seen)} of "
                    f"the {len(codes)} rows of the table ({error}). Choose another estimator, or a cv whose folds "
                    "train on more rows."
                ) from error
            log_proba[held] = answers[np.arange(len(held)), codes[held, child]]
            weights = task.partition.weights(some.sample_weight)
            weight[held] = np.where(part >= 0, weights[part], 0.0)
            starts.append(own)
        return Rows(log_proba, weight, starts)


def _read_fold(pair: Any, n_rows: int, name: str) -> tuple[Codes, Codes]:
    """The training rows and the test rows of a fold, as numbers."""
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {reprlib.repr(pair)}: it must be a pair of (train, test) rows.") from None
    train, test = _read_rows(train, n_rows, name), _read_rows(test, n_rows, name)
    both = np.intersect1d(train, test)
    if len(both):
        raise ValueError(f"{name} trains on row {both[0]}, which it holds out: take it out of the training rows.")
    return train, test


def _read_rows(given: Any, n_rows: int, name: str) -> Codes:
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(
            f"{name} has rows of type {rows.dtype} and shape {rows.shape}: give the numbers of rows, from 0 to "
            f"{n_rows - 1}, or {n_rows} booleans."
        )
    outside = (rows < 0) | (rows >= n_rows)
    if outside.any():
        raise ValueError(
            f"{name} has row {rows[outside][0]}, but there are {n_rows} rows: give numbers from 0 to {n_rows - 1}."
        )
    return rows.astype(np.int64)


_CLOSED_FORMS = {
    LogisticRegression: "an L2 penalty with a positive number as C, an intercept, any solver but 'liblinear', and "
    "neither class_weight nor dual nor warm_start",
    GaussianNB: "a positive var_smoothing and no priors",
}
"""For which settings of scikit-learn's estimators there is a closed form (`pmdc.learners.make_learner`)."""


def make_evaluator(
    criterion: str, learner: LocalLearner, classes: Codes, cv: Any, kept: npt.NDArray[np.bool_] | None = None
) -> Evaluator:
    """The evaluator behind a held-out criterion; folds that were given come before what is out of the bag.

    Parameters
    ----------
    criterion : {"auto", "loo", "cv"}
    learner : LocalLearner
    classes : array of shape (n, n_classes)
    cv, kept : as in `CrossValidation.of`
    """
    closed = hasattr(learner, "leave_one_out")
    if criterion == "loo" and not closed:
        estimator = getattr(learner, "estimator", None)
        covered = _CLOSED_FORMS.get(type(estimator))
        if covered is None:
            prevented = (
                "pmdc.learners.Logistic and NaiveBayes do, and scikit-learn's LogisticRegression and GaussianNB by "
                "themselves"
            )
        else:
            prevented = f"{type(estimator).__name__} has it with {covered}"
        raise ValueError(
            f"criterion='loo' needs a closed form, which estimator={estimator!r} does not have: {prevented}. Change "
            "the estimator or choose criterion='cv'."
        )
    if closed and criterion != "cv":
        return LeaveOneOut()
    if isinstance(cv, Integral) and getattr(learner, "has_out_of_bag", False):
        return OutOfBag()
    return CrossValidation.of(classes, cv, kept)


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
