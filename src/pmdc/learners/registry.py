"""The registry of engines that fit local models.

An engine is one entry of `ENGINES`: the estimators that it accepts, its learner, and the types of its fitted models.
The first engine that accepts an estimator is used; the last accepts any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from pmdc._support.arrays import Floats
from pmdc.learners import clones, conditional_logit, inputs, logistic, naive_bayes
from pmdc.learners.options import Options
from pmdc.learners.protocols import LocalLearner, LocalModels
from pmdc.table.features import Features


@dataclass(frozen=True)
class Engine:
    """One way to fit local models.

    Attributes
    ----------
    accepts : function (estimator, sizes of the discrete inputs) -> bool
    learner : type of the learner, called with (estimator, features, sample_weight, sizes, options)
    models : type of its fitted models
    saved, functions : other types and functions that fitted models contain, for saving
    estimators : estimators of pmdc that this engine fits, for saving
    settings : str
        For engines with leave-one-out: the estimators and settings that they accept, for messages.
    """

    accepts: Callable[[Any, Sequence[int]], bool]
    learner: Callable[[Any, Features, Floats, Sequence[int], Options], LocalLearner]
    models: type[LocalModels]
    saved: tuple[type, ...] = ()
    functions: tuple[Callable[..., Any], ...] = ()
    estimators: tuple[type[BaseEstimator], ...] = ()
    settings: str = ""


ENGINES: tuple[Engine, ...] = (
    Engine(
        logistic.accepts,
        logistic.LogisticLearner,
        logistic.LogisticModels,
        (inputs.Affine, inputs.Indicators, inputs.IndicatorsBefore, inputs.Rotated),
        estimators=(logistic.Logistic,),
    ),
    Engine(
        naive_bayes.accepts,
        naive_bayes.NaiveBayesLearner,
        naive_bayes.NaiveBayesModels,
        (inputs.Affine, inputs.CodesBehind),
        functions=(inputs.codes_behind,),
        estimators=(naive_bayes.NaiveBayes,),
        settings="pmdc.learners.NaiveBayes, and scikit-learn's GaussianNB with a positive var_smoothing and no priors",
    ),
    Engine(
        lambda estimator, sizes: False,  # the default on expert features, not an estimator
        lambda estimator, inputs, weights, sizes, options: conditional_logit.ConditionalLogitLearner(
            inputs.continuous, weights
        ),
        conditional_logit.ConditionalLogitModels,
        functions=(conditional_logit.continuous,),
        settings="the default on experts",
    ),
    Engine(clones.accepts_forest, clones.ForestLearner, clones.EstimatorModels),
    Engine(
        lambda estimator, sizes: True,
        clones.EstimatorLearner,
        clones.EstimatorModels,
        (clones.PartModel, inputs.Affine, inputs.Indicators, inputs.IndicatorsBehind),
    ),
)


def default_estimator() -> logistic.Logistic:
    """Return the estimator that ``estimator=None`` stands for."""
    return logistic.Logistic(C="auto")


def make_learner(
    estimator: Any, features: Features, sample_weight: Floats, sizes: Sequence[int] = (), options: Options | None = None
) -> LocalLearner:
    """Make the learner of an estimator, with the first engine that accepts it.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
    features : Features
        The inputs of the training rows.
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input.
    options : Options, optional
    """
    if estimator is None:
        estimator = default_estimator()
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        example = f"{estimator.__name__}()" if isinstance(estimator, type) else "sklearn.naive_bayes.GaussianNB()"
        raise TypeError(f"estimator={estimator!r} must be an instance of a scikit-learn classifier, such as {example}.")
    engine = next(engine for engine in ENGINES if engine.accepts(estimator, sizes))
    return engine.learner(estimator, features, sample_weight, sizes, options or Options())
