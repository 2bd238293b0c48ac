"""Phase P1: local models P(Y | pi, x), one for each configuration pi of a parent set."""

from __future__ import annotations

from typing import Any

from pmdc.learners.base import LocalLearner, LocalModels, LocalTask
from pmdc.learners.estimator import EstimatorLearner
from pmdc.learners.logistic import Logistic, LogisticLearner
from pmdc.table import Floats

__all__ = ["LocalLearner", "LocalModels", "LocalTask", "Logistic", "make_learner"]


def make_learner(estimator: Any, X: Floats, sample_weight: Floats, **options: Any) -> EstimatorLearner:
    """The learner that runs an estimator: our own engine for `Logistic` (or None), clones for any other.

    ``options`` are those of `EstimatorLearner`.
    """
    if estimator is None:
        estimator = Logistic()
    kind = LogisticLearner if type(estimator) is Logistic else EstimatorLearner
    return kind(estimator, X, sample_weight, **options)
