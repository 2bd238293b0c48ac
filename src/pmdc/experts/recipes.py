"""Recipes of experts: how a classifier of x is fitted on some rows, for one or several class variables."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.utils.validation import has_fit_parameter

from pmdc._support.arrays import Codes, Floats
from pmdc.experts.members import BoostingMember, ClassifierMember, ForestMember, Member
from pmdc.experts.trees import boosting_trees, forest_trees
from pmdc.learners.clones import random_states
from pmdc.learners.logistic import Logistic
from pmdc.learners.nan import fill_empty, takes_nan

MAX_BINS = 64
"""Bins of histogram boosting; on small wide tables scikit-learn's 255 take three times as long."""


class Sample(NamedTuple):
    """The rows that a member is fitted on.

    Attributes
    ----------
    X : array of shape (n, d)
    codes : array of shape (n, n_targets)
        The states of the class variables. The code after the last state stands for a missing one; with a single class
        variable there is none.
    sizes : tuple of int
        Their numbers of states.
    weights : array of shape (n,), or None if no weights were given
    seed : int
    """

    X: Floats
    codes: Codes
    sizes: tuple[int, ...]
    weights: Floats | None
    seed: int

    @property
    def weighting(self) -> dict[str, Floats]:
        return {} if self.weights is None else {"sample_weight": self.weights}


class Recipe(ABC):
    """One way to make an expert."""

    name: str
    together: bool = False
    """Whether one model serves all class variables."""
    raw: bool = False
    """Whether it sees the numbers of the table instead of standardised ones."""
    nan: bool = False
    """Whether it sees NaN for missing numbers instead of filled ones and indicators; only if `raw`."""
    needs_pilot: bool = True
    """Whether it is tried on some folds before it is fitted on all."""

    @abstractmethod
    def fit(self, sample: Sample) -> Member:
        """Fit a member."""


@dataclass(frozen=True)
class ForestRecipe(Recipe):
    """A forest of scikit-learn for all class variables together.

    Its splits serve all class variables, so it costs one forest instead of K.
    """

    name: str
    kind: str
    n_trees: int
    min_leaf: int
    max_features: Any = "sqrt"
    together = True
    needs_pilot = False

    def fit(self, sample: Sample) -> ForestMember | ClassifierMember:
        if not len(sample.X):
            return ClassifierMember(None, np.arange(sum(sample.sizes)), sum(sample.sizes))
        forest = {"extra trees": ExtraTreesClassifier, "random forest": RandomForestClassifier}[self.kind](
            self.n_trees, min_samples_leaf=self.min_leaf, max_features=self.max_features, random_state=sample.seed
        )
        codes = sample.codes[:, 0] if sample.codes.shape[1] == 1 else sample.codes
        forest.fit(sample.X, codes, **sample.weighting)
        classes = [forest.classes_] if sample.codes.shape[1] == 1 else forest.classes_
        begin = np.cumsum([0, *sample.sizes[:-1]])
        places = np.concatenate([b + np.asarray(own, dtype=np.int64) for b, own in zip(begin, classes, strict=True)])
        seen = np.concatenate([np.asarray(own) < size for own, size in zip(classes, sample.sizes, strict=True)])
        if seen.all():
            return ForestMember(forest_trees(forest), places, sum(sample.sizes))
        return ForestMember(forest_trees(forest).outputs(seen), places[seen], sum(sample.sizes), sample.sizes)


@dataclass(frozen=True)
class LogisticRecipe(Recipe):
    """The library's logistic regression, with C chosen on the rows of each fold."""

    name: str = "logistic regression"

    def fit(self, sample: Sample) -> ClassifierMember:
        return _fit_classifier(Logistic(C="auto"), sample)


@dataclass(frozen=True)
class BoostingRecipe(Recipe):
    """Histogram gradient boosting; the number of iterations is chosen by the held-out rows of all folds."""

    name: str
    learning_rate: float
    n_iterations: int
    min_leaf: int
    max_leaves: int
    l2: float

    def fit(self, sample: Sample) -> ClassifierMember | BoostingMember:
        states = np.unique(sample.codes[:, 0])
        if len(states) < 2:
            return _constant(states, sample)
        booster = HistGradientBoostingClassifier(
            learning_rate=self.learning_rate,
            max_iter=self.n_iterations,
            min_samples_leaf=self.min_leaf,
            max_leaf_nodes=self.max_leaves,
            l2_regularization=self.l2,
            max_bins=MAX_BINS,
            early_stopping=False,
            random_state=sample.seed,
        )
        booster.fit(sample.X, sample.codes[:, 0], **sample.weighting)
        return BoostingMember(boosting_trees(booster), np.asarray(booster.classes_, dtype=np.int64), sample.sizes[0])


@dataclass(frozen=True, eq=False)  # classifiers need not be hashable
class ClassifierRecipe(Recipe):
    """A classifier that the user gave."""

    name: str
    classifier: Any
    nan: bool = False
    raw = True
    needs_pilot = False

    def fit(self, sample: Sample) -> ClassifierMember:
        classifier = clone(self.classifier)
        seeds = {name: sample.seed for name, value in random_states(classifier).items() if value is None}
        return _fit_classifier(classifier.set_params(**seeds), sample)


def _fit_classifier(classifier: Any, sample: Sample) -> ClassifierMember:
    states = np.unique(sample.codes[:, 0])
    if len(states) < 2 or not sample.X.shape[1]:
        return _constant(states[:1], sample)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            classifier.fit(fill_empty(sample.X), sample.codes[:, 0], **sample.weighting)
    except Exception as error:
        raise ValueError(
            f"experts: {type(classifier).__name__} could not be fitted on {len(sample.X)} rows with {len(states)} "
            f"states ({type(error).__name__}: {error}). Choose another classifier for `experts`, or experts=None."
        ) from error
    seen = np.asarray(getattr(classifier, "classes_", states))
    if not np.array_equal(seen, states):
        raise TypeError(f"experts: {type(classifier).__name__} has classes_={seen} after a fit on the states {states}.")
    return ClassifierMember(classifier, states, sample.sizes[0])


def _constant(states: Codes, sample: Sample) -> ClassifierMember:
    """Return a member for rows of one state; without rows, all states are equally probable."""
    return ClassifierMember(None, states if len(states) else np.arange(sample.sizes[0]), sample.sizes[0])


def check_classifier(classifier: Any, weighted: bool) -> None:
    """Raise an error unless a classifier given as an expert can be one."""
    if isinstance(classifier, type) or not hasattr(classifier, "fit") or not hasattr(classifier, "get_params"):
        raise TypeError(f"experts: {classifier!r} must be an instance of a scikit-learn classifier.")
    if is_regressor(classifier) or not hasattr(classifier, "predict_proba"):
        raise TypeError(
            f"experts: {classifier!r} has no predict_proba. Choose another classifier or wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )
    if weighted and not has_fit_parameter(classifier, "sample_weight"):
        raise TypeError(
            f"experts: sample_weight was given, but fit of {classifier!r} does not accept it (a Pipeline never gets "
            "weights). Choose another classifier or omit the weights."
        )


def user_recipes(classifiers: Sequence[Any]) -> list[Recipe]:
    """Return the recipes of classifiers that the user gave, with different names."""
    names = [type(classifier).__name__ for classifier in classifiers]
    return [
        ClassifierRecipe(name if names.count(name) == 1 else f"{name} {place + 1}", classifier, takes_nan(classifier))
        for place, (name, classifier) in enumerate(zip(names, classifiers, strict=True))
    ]
