"""Which engine fits the local models of an estimator.

An engine is one entry of `ENGINES`: what it accepts, the learner that it builds, what this learner can do beyond a fit,
and the types that its fitted models consist of. The first engine that accepts an estimator is taken; the last accepts
any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from pmdc._support.arrays import Floats
from pmdc.learners import clones, inputs, logistic, naive_bayes
from pmdc.learners.options import Options
from pmdc.learners.protocols import (
    CrossValidated,
    LeaveOneOut,
    LocalLearner,
    LocalModels,
    OutOfBag,
    Regularised,
    WarmStart,
)
from pmdc.table.features import Features

CAPABILITIES: tuple[type[LocalLearner], ...] = (WarmStart, CrossValidated, LeaveOneOut, OutOfBag, Regularised)


@dataclass(frozen=True)
class Engine:
    """One way to fit local models.

    Attributes
    ----------
    accepts : function (estimator, sizes of the discrete inputs) -> bool
    learner : type of the learner, made of (estimator, features, sample_weight, sizes, options)
    models : type of its fitted models
    saved, functions : other types and functions that fitted models consist of, for files
    estimators : estimators of pmdc that are fitted by this engine alone, by the name that files have for them
    settings : str
        Which estimators and settings it accepts, for messages of what it alone can do.
    """

    accepts: Callable[[Any, Sequence[int]], bool]
    learner: Callable[[Any, Features, Floats, Sequence[int], Options], LocalLearner]
    models: type[LocalModels]
    saved: tuple[type, ...] = ()
    functions: tuple[Callable[..., Any], ...] = ()
    estimators: tuple[type[BaseEstimator], ...] = ()
    settings: str = ""

    @property
    def capabilities(self) -> tuple[type[LocalLearner], ...]:
        """What the learner can do beyond a fit."""
        return tuple(one for one in CAPABILITIES if isinstance(self.learner, type) and issubclass(self.learner, one))


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
        clones.accepts_forest,
        clones.ForestLearner,
        clones.EstimatorModels,
    ),
    Engine(
        lambda estimator, sizes: True,
        clones.EstimatorLearner,
        clones.EstimatorModels,
        (clones.PartModel, inputs.Affine, inputs.Indicators, inputs.IndicatorsBehind),
    ),
)


def default_estimator() -> logistic.Logistic:
    """Make the estimator that ``estimator=None`` stands for, everywhere."""
    return logistic.Logistic(C="auto")


def make_learner(
    estimator: Any,
    features: Features,
    sample_weight: Floats,
    sizes: Sequence[int] = (),
    options: Options | None = None,
) -> LocalLearner:
    """Make the learner of an estimator: of the first engine that accepts it.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
    features : Features
        What the models see of the training rows.
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input.
    options : Options, optional
    """
    if estimator is None:
        estimator = default_estimator()
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        example = f"{estimator.__name__}()" if isinstance(estimator, type) else "sklearn.naive_bayes.GaussianNB()"
        raise TypeError(f"estimator={estimator!r} is no scikit-learn classifier: give an instance, such as {example}.")
    engine = next(engine for engine in ENGINES if engine.accepts(estimator, sizes))
    return engine.learner(estimator, features, sample_weight, sizes, options or Options())
