"""Local models from any scikit-learn classifier with `predict_proba`, cloned for each configuration."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import has_fit_parameter

from pmdc.learners.base import LocalTask, Preparation, fill_zeros, rows_by_part
from pmdc.table import Codes, Floats


@dataclass(frozen=True)
class PartModel:
    """The model of one part: a classifier over the states seen there, or constant frequencies."""

    states: Codes
    frequencies: Floats
    weight: float
    classifier: Any | None

    def log_proba(self, X: Floats, smooth: bool) -> Floats:
        """log-probabilities of the part's own states."""
        if self.classifier is None:
            return np.broadcast_to(np.log(self.frequencies), (len(X), len(self.states)))
        log_proba = _predict_log_proba(self.classifier, X)
        return fill_zeros(log_proba, self.frequencies, self.weight) if smooth else log_proba


@dataclass(frozen=True)
class EstimatorModels:
    """`LocalModels` made of one classifier for each part."""

    n_states: int
    models: Sequence[PartModel]
    smooth: bool

    def log_proba(self, X: Floats, part: Codes) -> Floats:
        out = np.full((len(X), self.n_states), -np.inf)
        for number, rows in rows_by_part(part):
            model = self.models[number]
            out[np.ix_(rows, model.states)] = model.log_proba(X[rows], self.smooth)
        return out


def as_it_is(X: Floats) -> Floats:
    """The preparation that does nothing."""
    return X


@dataclass(frozen=True)
class MinMax:
    """The preparation of the paper's experiments: features scaled to [0, 1] over the training rows."""

    low: Floats
    width: Floats

    @classmethod
    def fit(cls, X: Floats) -> MinMax:
        low, high = X.min(axis=0), X.max(axis=0)
        return cls(low, np.where(high > low, high - low, 1.0))

    def __call__(self, X: Floats) -> Floats:
        return (X - self.low) / self.width


def has_random_state(estimator: BaseEstimator | None) -> bool:
    """Whether a classifier was given a random state of its own, which is then to be respected."""
    return estimator is not None and any(
        value is not None for name, value in estimator.get_params().items() if name.endswith("random_state")
    )


class EstimatorLearner:
    """`LocalLearner` around a scikit-learn classifier.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
        Cloned for each part; None fits the frequencies of the states alone.
    X : array of shape (n, d)
        Continuous features of the training rows. Without any, the frequencies of the states are all there is
        to learn, whatever the estimator.
    sample_weight : array of shape (n,)
    weighted : bool
        Whether weights were given; only then are they handed to the estimator.
    seed : int or None
        Where the random states of the clones come from; None leaves the estimator's own in place. Each clone's
        state depends on its class variable, parent set and part alone, never on the order of the work.
    smooth : bool
        Whether states seen in a part may not get probability zero (`fill_zeros`).
    paper : bool
        Do as the paper's code: a part whose rows all agree in the features but not in the state is answered by
        the uniform distribution and adds nothing to the log-likelihood.
    prepare : function
        What is done to the continuous features, of these rows and of those to predict.
    """

    def __init__(
        self,
        estimator: BaseEstimator | None,
        X: Floats,
        sample_weight: Floats,
        *,
        weighted: bool = False,
        seed: int | None = None,
        smooth: bool = True,
        paper: bool = False,
        prepare: Preparation = as_it_is,
    ):
        if estimator is not None and not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator={estimator!r} has no predict_proba: a local model must give probabilities. Choose "
                "another classifier or wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        if estimator is not None and weighted and not has_fit_parameter(estimator, "sample_weight"):
            raise TypeError(
                f"sample_weight was given, but fit of estimator={estimator!r} does not take it. Choose another "
                "classifier or leave the weights out."
            )
        self.estimator = estimator if X.shape[1] else None
        self.prepare = prepare
        self.X = prepare(X)
        self.sample_weight = sample_weight
        self.weighted = weighted
        self.seed = seed
        self.smooth = smooth
        self.paper = paper

    def fit(self, task: LocalTask) -> EstimatorModels:
        return EstimatorModels(task.n_states, [model for model, _ in self._fit_parts(task)], self.smooth)

    def log_likelihood(self, task: LocalTask) -> float:
        return float(sum(value for _, value in self._fit_parts(task)))

    def _fit_parts(self, task: LocalTask) -> list[tuple[PartModel, float]]:
        failures: list[str] = []
        fitted = [self._fit_part(task, number, rows, failures) for number, rows in rows_by_part(task.partition.part)]
        if failures:
            warnings.warn(
                f"{type(self.estimator).__name__} could not be fitted on {len(failures)} of {len(fitted)} parts of "
                f"the rows (the first time: {failures[0]}). There the frequencies of the states are used.",
                UserWarning,
                stacklevel=2,
            )
        return fitted

    def _fit_part(self, task: LocalTask, number: int, rows: Codes, failures: list[str]) -> tuple[PartModel, float]:
        weights = self.sample_weight[rows]
        states, codes = np.unique(task.codes[rows], return_inverse=True)
        counts = np.bincount(codes, weights=weights)
        model = PartModel(states, counts / counts.sum(), float(counts.sum()), None)
        if len(states) == 1:
            return model, 0.0
        X = self.X[rows]
        if self.paper and (X[0] == X).all():
            uniform = np.full(task.n_states, 1.0 / task.n_states)
            return PartModel(np.arange(task.n_states), uniform, model.weight, None), 0.0
        if self.estimator is not None:
            try:
                classifier = self._fit_clone(X, codes, weights, (task.child, *task.partition.parents, number))
                model = PartModel(states, model.frequencies, model.weight, classifier)
                return model, self._weighted_log_likelihood(model, X, codes, weights)
            except (ValueError, FloatingPointError) as error:
                # Too few rows for this estimator (folds, neighbours, variances, ...): the part keeps its
                # frequencies. With all rows in one part there is nothing to blame but the estimator or the table.
                if not task.partition.parents:
                    raise
                failures.append(str(error).splitlines()[0])
        model = PartModel(states, counts / counts.sum(), float(counts.sum()), None)
        return model, self._weighted_log_likelihood(model, X, codes, weights)

    def _weighted_log_likelihood(self, model: PartModel, X: Floats, codes: Codes, weights: Floats) -> float:
        own = model.log_proba(X, self.smooth)[np.arange(len(codes)), codes]
        if not self.smooth:  # no score is infinite; scikit-learn's log_loss, and so the paper's scores, do the same
            own = np.maximum(own, np.log(np.finfo(float).eps))
        return float(np.dot(weights, own))

    def _fit_clone(self, X: Floats, codes: Codes, weights: Floats, key: tuple[int, ...]) -> Any:
        classifier = clone(self.estimator)
        if self.seed is not None:
            _set_random_states(classifier, np.random.SeedSequence(self.seed, spawn_key=key))
        return classifier.fit(X, codes, **({"sample_weight": weights} if self.weighted else {}))


def _set_random_states(estimator: BaseEstimator, sequence: np.random.SeedSequence) -> None:
    """Give every `random_state` of an estimator, nested ones included, a value of its own."""
    names = sorted(n for n in estimator.get_params(deep=True) if n == "random_state" or n.endswith("__random_state"))
    values = sequence.generate_state(len(names)).tolist() if names else []
    estimator.set_params(**dict(zip(names, values, strict=True)))


def _predict_log_proba(classifier: Any, X: Floats) -> Floats:
    """Logarithms from the classifier itself where it has them: they do not underflow."""
    with np.errstate(divide="ignore", invalid="ignore"):  # zeros are meant, and what is no number is found below
        if hasattr(classifier, "predict_log_proba"):
            log_proba = np.asarray(classifier.predict_log_proba(X), dtype=float)
        else:
            log_proba = np.log(np.asarray(classifier.predict_proba(X), dtype=float))
    if np.isnan(log_proba).any() or np.isposinf(log_proba).any():
        raise FloatingPointError(
            f"{type(classifier).__name__} answered probabilities that are no numbers (NaN or infinite). Check the "
            "scale of the features or choose another estimator."
        )
    return log_proba
