"""Phase P1: local models P(Y | pi, x), one for each configuration pi of a parent set."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pmdc.learners.base import LocalLearner, LocalModels, LocalTask
from pmdc.learners.estimator import EstimatorLearner, MinMax, random_states
from pmdc.learners.logistic import Logistic, LogisticLearner
from pmdc.table import Floats

__all__ = ["LocalLearner", "LocalModels", "LocalTask", "Logistic", "make_learner"]


def make_learner(
    estimator: Any,
    X: Floats,
    sample_weight: Floats,
    *,
    weighted: bool,
    random_state: Any = None,
    backoff: str = "parents",
    has_discrete: bool = True,
) -> LocalLearner:
    """The learner that runs an estimator: our own engine for `Logistic` (or None), clones for any other.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
    X : array of shape (n, d)
        Continuous features of the training rows.
    sample_weight : array of shape (n,)
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
        estimator = Logistic()
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        example = f"{estimator.__name__}()" if isinstance(estimator, type) else "sklearn.naive_bayes.GaussianNB()"
        raise TypeError(f"estimator={estimator!r} is no scikit-learn classifier: give an instance, such as {example}.")
    reseed = random_state is not None
    seed = 0
    if reseed or any(value is None for value in random_states(estimator).values()):
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    options: dict[str, Any] = {
        "weighted": weighted,
        "seed": seed,
        "reseed": reseed,
        "smooth": backoff == "parents",
        "paper": backoff == "paper" and has_discrete,
    }
    if backoff == "paper":
        return EstimatorLearner(estimator, X, sample_weight, prepare=MinMax.fit(X), **options)
    kind = LogisticLearner if type(estimator) is Logistic else EstimatorLearner
    return kind(estimator, X, sample_weight, **options)
