"""Phase P1: local models P(Y | pi, x), one for each configuration pi of a parent set."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import check_random_state

from pmdc._support.arrays import Floats
from pmdc.learners.clones import EstimatorLearner, random_states
from pmdc.learners.logistic.logistic import Logistic, LogisticLearner
from pmdc.learners.naive_bayes.naive_bayes import NaiveBayes, NaiveBayesLearner
from pmdc.learners.protocols import LocalLearner, LocalModels, LocalTask
from pmdc.table.features import Features

__all__ = ["LocalLearner", "LocalModels", "LocalTask", "Logistic", "NaiveBayes", "make_learner"]


def make_learner(
    estimator: Any,
    inputs: Features,
    sample_weight: Floats,
    sizes: Sequence[int] = (),
    *,
    weighted: bool,
    random_state: Any = None,
    backoff: str = "parents",
    has_discrete: bool = True,
) -> LocalLearner:
    """The learner that runs an estimator: our own engines where there is one, clones for any other.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
    inputs : Features
        What the models see of the training rows.
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input.
    weighted : bool
        Whether weights were given at all.
    random_state : int, RandomState or None
        Where the random states of the clones come from; with None those that an estimator was given stay.
    backoff : {"parents", "none", "paper"}
        See `GBNC`.
    has_discrete : bool
        Whether the table has discrete features, which makes a difference to ``backoff="paper"``.
    """
    if estimator is None:
        estimator = Logistic(C="auto")
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        example = f"{estimator.__name__}()" if isinstance(estimator, type) else "sklearn.naive_bayes.GaussianNB()"
        raise TypeError(f"estimator={estimator!r} is no scikit-learn classifier: give an instance, such as {example}.")
    options = {
        "smooth": backoff == "parents",
        "paper": backoff == "paper" and has_discrete,
        "min_max": backoff == "paper",
    }
    if type(estimator) is Logistic or _is_plain_logistic(estimator):
        return LogisticLearner(estimator, inputs, sample_weight, sizes, **options)
    if type(estimator) is NaiveBayes or _is_plain_naive_bayes(estimator, sizes):
        return NaiveBayesLearner(estimator, inputs, sample_weight, sizes, **options)
    reseed = random_state is not None
    seed = 0
    if reseed or any(value is None for value in random_states(estimator).values()):
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    return EstimatorLearner(
        estimator, inputs, sample_weight, sizes, weighted=weighted, seed=seed, reseed=reseed, **options
    )


def _is_plain_logistic(estimator: Any) -> bool:
    """Whether `LogisticLearner` has the same objective: an L2 penalty, a free intercept, no weights of classes.

    It is then solved to its optimum, whatever the solver, `tol` and `max_iter` of the estimator.
    """
    return (
        type(estimator) is LogisticRegression
        and getattr(estimator, "penalty", "l2") in ("deprecated", "l2")
        and estimator.l1_ratio == 0
        and isinstance(estimator.C, Real)
        and float(estimator.C) > 0
        and estimator.solver != "liblinear"  # it penalises the intercept
        and estimator.fit_intercept
        and estimator.class_weight is None
        and not estimator.dual
        and not estimator.warm_start
    )


def _is_plain_naive_bayes(estimator: Any, sizes: Sequence[int]) -> bool:
    """Whether `NaiveBayesLearner` gives the same models: no priors of its own, and numbers alone as inputs."""
    return (
        type(estimator) is GaussianNB
        and estimator.priors is None
        and isinstance(estimator.var_smoothing, Real)
        and float(estimator.var_smoothing) > 0
        and not sizes
    )
