"""Held-out log-probabilities of a family, in three ways: leave-one-out, out-of-bag and cross-validation.

All families of a fit use the same evaluator, so that their scores can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.candidates.families import Family
from pmdc.learners.protocols import CrossValidated, LeaveOneOut, LocalLearner, OutOfBag, Start
from pmdc.learners.registry import ENGINES
from pmdc.learners.tasks import local_task
from pmdc.scores.fitter import Fitter, LocalFit
from pmdc.scores.folds import Folds, read_folds
from pmdc.scores.shrinkage import HeldOutRows
from pmdc.table.rows import TrainingRows


class Evaluator(Protocol):
    """Computes the held-out log-probabilities of a family."""

    def __call__(
        self, fitter: Fitter, learner: LocalLearner, child: int, family: Family, start: Start | None
    ) -> tuple[HeldOutRows, Start | None]:
        """Evaluate a family with a learner and a warm start; return also the start for the next."""


class LeaveOneOutEvaluator:
    """Models fitted without the row, in closed form."""

    def __call__(
        self, fitter: Fitter, learner: LocalLearner, child: int, family: Family, start: Start | None
    ) -> tuple[HeldOutRows, None]:
        local = fitter.local(child, family, learner)
        if not len(local.task.codes):
            return _spread(local, np.zeros(0), np.zeros(0)), None
        assert isinstance(local.learner, LeaveOneOut)
        sample_weight, partition = local.learner.sample_weight, local.task.partition
        weight = partition.weights(sample_weight)[partition.part] - np.minimum(sample_weight, 1.0)
        return _spread(local, local.learner.leave_one_out(local.task), np.maximum(weight, 0.0)), None


class OutOfBagEvaluator:
    """Members of an ensemble that have not seen the row; a row that all have seen has weight 0."""

    def __call__(
        self, fitter: Fitter, learner: LocalLearner, child: int, family: Family, start: Start | None
    ) -> tuple[HeldOutRows, None]:
        local = fitter.local(child, family, learner)
        if not len(local.task.codes):
            return _spread(local, np.zeros(0), np.zeros(0)), None
        assert isinstance(local.learner, OutOfBag)
        sample_weight, partition = local.learner.sample_weight, local.task.partition
        weight = partition.weights(sample_weight)[partition.part] - sample_weight
        log_proba, answered = local.learner.out_of_bag(local.task)
        return _spread(local, log_proba, np.where(answered, np.maximum(weight, 0.0), 0.0)), None


@dataclass(frozen=True)
class CrossValidation:
    """Models fitted on the training rows of the fold that holds the row out."""

    folds: Folds

    def __call__(
        self, fitter: Fitter, learner: LocalLearner, child: int, family: Family, start: Start | None
    ) -> tuple[HeldOutRows, Start | None]:
        local, own = fitter.local(child, family, learner), None
        folds = self.folds.of(local.kept)
        if not len(local.task.codes):
            return _spread(local, np.zeros(0), np.zeros(0)), None
        if folds.fold is not None and isinstance(local.learner, CrossValidated):
            log_proba, own = local.learner.cross_validate(local.task, folds.fold, start)
            weight = _weight_outside(local, folds.fold, len(folds.pairs))
        else:
            codes = fitter.codes if local.kept is None else fitter.codes[local.kept]
            log_proba, weight = _one_by_one(fitter, local, family, codes, folds)
        return _spread(local, log_proba, weight), own


def _spread(local: LocalFit, log_proba: Floats, weight: Floats) -> HeldOutRows:
    """Return the held-out probabilities for all rows; without the row's states, no model has an answer."""
    return HeldOutRows(local.spread(log_proba, -np.inf), local.spread(weight, 0.0))


def _weight_outside(local: LocalFit, fold: Codes, n_folds: int) -> Floats:
    """Return the weight of the rows of each row's part outside its fold."""
    part, sample_weight = local.task.partition.part, local.learner.sample_weight
    cell = part * n_folds + fold
    others = np.bincount(part)[part] > np.bincount(cell)[cell]
    weight = np.bincount(part, sample_weight)[part] - np.bincount(cell, sample_weight)[cell]
    return np.asarray(np.where(others, weight, 0.0), dtype=float)


def _one_by_one(fitter: Fitter, local: LocalFit, family: Family, codes: Codes, folds: Folds) -> tuple[Floats, Floats]:
    """Fit the models without each fold in turn."""
    child, learner = local.task.child, local.learner
    log_proba, weight = np.full(len(codes), -np.inf), np.zeros(len(codes))
    for number, (seen, held) in enumerate(folds.pairs):
        if not len(seen) or not len(held):
            continue
        some = learner.on(seen)
        task = local_task(child, family, codes[seen], fitter.sizes)
        part = task.partition.configurations.find(codes[held])[:, 0]
        inputs = codes[held][:, list(family.inputs)] if family.inputs else None
        try:
            answers = some.fit(task).log_proba(learner.X[held], part, inputs)
        except (ValueError, FloatingPointError) as error:
            raise ValueError(
                f"estimator={learner.estimator!r} failed in fold {number} of cv with {len(seen)} of the "
                f"{len(codes)} rows for training ({error}). Choose another estimator, or larger folds."
            ) from error
        log_proba[held] = answers[np.arange(len(held)), codes[held, child]]
        weights = task.partition.weights(some.sample_weight)
        weight[held] = np.where(part >= 0, weights[part], 0.0)
    return log_proba, weight


def make_evaluator(
    criterion: str, learners: Sequence[LocalLearner], rows: TrainingRows, cv: Any, whole_rows: bool = False
) -> Evaluator:
    """Make the evaluator of a held-out criterion.

    "auto" is leave-one-out if all learners can do it exactly and rows have no copies. Otherwise forests are evaluated
    out of the bag unless folds are given or rows have copies, and all others by folds.

    Parameters
    ----------
    criterion : {"auto", "loo", "cv"}
    learners : the learners of all class variables
    rows : TrainingRows
    cv : int, splitter or iterable, as in `read_folds`
    whole_rows : bool
        As in `read_folds`.
    """
    unable = [learner for learner in learners if not isinstance(learner, LeaveOneOut)]
    if criterion == "loo" and unable:
        able = "; ".join(engine.settings for engine in ENGINES if engine.settings)
        raise ValueError(
            f"criterion='loo' is not available for estimator={unable[0].estimator!r}, only for {able}. Change the "
            "estimator or choose criterion='cv'."
        )
    if criterion == "loo" and rows.has_copies:
        raise ValueError("criterion='loo' is not available for rows with copies: choose criterion='cv'.")
    if not rows.has_copies:
        exact = all(isinstance(learner, LeaveOneOut) and learner.exact_leave_one_out for learner in learners)
        if criterion == "loo" or (criterion == "auto" and exact):
            return LeaveOneOutEvaluator()
        if isinstance(cv, Integral) and all(isinstance(learner, OutOfBag) for learner in learners):
            return OutOfBagEvaluator()
    return CrossValidation(read_folds(cv, rows, whole_rows))
