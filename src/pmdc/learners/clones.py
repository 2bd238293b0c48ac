"""Local models from any scikit-learn classifier with `predict_proba`, cloned for each configuration."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.learners.fitted import Fitted
from pmdc.learners.inputs import Affine, Indicators, IndicatorsBehind, Joining, state_shares
from pmdc.learners.nan import fill_empty, takes_nan
from pmdc.learners.options import Options
from pmdc.learners.protocols import LocalLearner, LocalModels, OutOfBag, Preparation
from pmdc.learners.smoothing import TINY, fill_zeros
from pmdc.learners.tasks import LocalTask, rows_by_part
from pmdc.table.features import Features


@dataclass(frozen=True)
class PartModel:
    """The model of one part: a classifier over the states seen there, or constant frequencies."""

    states: Codes
    frequencies: Floats
    weight: float
    classifier: Any | None

    def log_proba(self, X: Floats, smooth: bool) -> Floats:
        """Return the log-probabilities of the states seen in the part."""
        if self.classifier is None:
            return np.broadcast_to(np.log(self.frequencies), (len(X), len(self.states)))
        log_proba = _predict_log_proba(self.classifier, X, len(self.states))
        return fill_zeros(log_proba, self.frequencies, self.weight) if smooth else log_proba


@dataclass(frozen=True)
class EstimatorModels(LocalModels):
    """`LocalModels` made of one classifier for each part."""

    n_states: int
    models: Sequence[PartModel]
    smooth: bool
    join: Joining

    def fits(self, fitted: Fitted) -> bool:
        return self.n_states == fitted.n_states

    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        if input_codes is not None:
            X = self.join(X, input_codes)
        out = np.full((part.size, self.n_states), -np.inf)
        columns = part.size // max(1, len(X))
        for number, places in rows_by_part(part.ravel()):
            model = self.models[number]
            out[np.ix_(places, model.states)] = model.log_proba(X[places // columns], self.smooth)
        return out.reshape(*part.shape, self.n_states)


def random_states(estimator: BaseEstimator | None) -> dict[str, Any]:
    """Return every `random_state` of an estimator, including nested ones."""
    parameters = [] if estimator is None else sorted(estimator.get_params(deep=True).items())
    return {name: value for name, value in parameters if name.split("__")[-1] == "random_state"}


class EstimatorLearner(LocalLearner):
    """`LocalLearner` around a scikit-learn classifier.

    Parameters
    ----------
    estimator : scikit-learn classifier or None
        Cloned for each part; None fits the frequencies of the states alone.
    inputs : Features
        Continuous and discrete inputs of the training rows. Without any, the frequencies of the states are fitted,
        whatever the estimator. Missing numbers are NaN if the estimator takes it, else filled and indicated.
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input; the estimator sees them as indicators.
    options : Options, optional
        Weights are passed to the estimator only if the user gave them. The random state of a clone depends only on its
        class variable, parent set and part, not on the order of the work.
    """

    def __init__(
        self,
        estimator: BaseEstimator | None,
        inputs: Features,
        sample_weight: Floats,
        sizes: Sequence[int] = (),
        options: Options | None = None,
    ):
        options = options or Options()
        if is_regressor(estimator):
            raise TypeError(f"estimator={estimator!r} is a regressor; give a classifier with predict_proba.")
        if estimator is not None and not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator={estimator!r} has no predict_proba, which local models need. Choose another classifier or "
                "wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        if estimator is not None and options.weighted and not has_fit_parameter(estimator, "sample_weight"):
            raise TypeError(
                f"sample_weight was given, but fit of estimator={estimator!r} does not accept it (a Pipeline never "
                "gets weights). Choose another classifier or omit the weights."
            )
        nan = takes_nan(estimator)
        self.prepare: Preparation = Indicators(sizes, nan=nan)
        self.X = self.prepare(inputs)
        if options.min_max:
            self.prepare = Indicators(sizes, Affine.min_max(self.X), nan)
            self.X = self.prepare(inputs)
        self.estimator = estimator
        self.sample_weight = sample_weight
        self.weighted = options.weighted
        self.smooth = options.smooth
        self.paper = options.paper
        self.reseed = options.random_state is not None
        self.seed = 0
        if self.reseed or any(value is None for value in random_states(estimator).values()):
            self.seed = int(check_random_state(options.random_state).randint(np.iinfo(np.int32).max))

    def fit(self, task: LocalTask) -> EstimatorModels:
        models = [model for model, _ in self._fit_parts(task)]
        return EstimatorModels(task.n_states, models, self.smooth, self._joining(task))

    def on(self, rows: Codes, sample_weight: Floats | None = None) -> Self:
        other = copy(self)
        other.X, other.sample_weight = (
            self.X[rows],
            self.sample_weight[rows] if sample_weight is None else sample_weight,
        )
        return other

    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> None:
        return None

    def design(self, task: LocalTask) -> Floats:
        """Return all inputs of the training rows: those of the learner, and the parents that are inputs."""
        return self.X if task.input_codes is None else self._joining(task)(self.X, task.input_codes)

    def _joining(self, task: LocalTask) -> IndicatorsBehind:
        shares = np.zeros(0)
        if task.input_codes is not None:
            shares = state_shares(task.input_codes, task.input_sizes, self.sample_weight)
        return IndicatorsBehind(task.input_sizes, shares)

    def log_likelihood(self, task: LocalTask) -> float:
        return float(sum(value for _, value in self._fit_parts(task)))

    def _fit_parts(self, task: LocalTask) -> list[tuple[PartModel, float]]:
        failures: list[str] = []
        X = self.design(task)
        fitted = [self._fit_part(task, X, number, rows, failures) for number, rows in rows_by_part(task.partition.part)]
        if failures:
            warnings.warn(
                f"{type(self.estimator).__name__} could not be fitted on {len(failures)} of {len(fitted)} parts of "
                f"the rows (first error: {failures[0]}). The frequencies of the states are used there.",
                UserWarning,
                stacklevel=2,
            )
        return fitted

    def _fit_part(
        self, task: LocalTask, inputs: Floats, number: int, rows: Codes, failures: list[str]
    ) -> tuple[PartModel, float]:
        weights, X = self.sample_weight[rows], inputs[rows]
        states, codes = np.unique(task.codes[rows], return_inverse=True)
        counts = np.bincount(codes, weights=weights)
        model = PartModel(states, counts / counts.sum(), float(counts.sum()), None)
        if len(states) == 1:
            return model, 0.0
        if self.paper and (X[0] == X).all():
            uniform = np.full(task.n_states, 1.0 / task.n_states)
            return PartModel(np.arange(task.n_states), uniform, model.weight, None), 0.0
        if self.estimator is not None and X.shape[1]:
            try:
                classifier = self._fit_clone(X, codes, weights, self._key(task, number))
                fitted = replace(model, classifier=classifier)
                return fitted, self._weighted_log_likelihood(fitted, X, codes, weights)
            except (ValueError, FloatingPointError) as error:
                # A part may have too few rows for the estimator: it gets the frequencies. If the rows are not
                # partitioned, the error comes from the estimator or the table.
                if not task.partition.parents:
                    raise
                failures.append(str(error).splitlines()[0])
        return model, self._weighted_log_likelihood(model, X, codes, weights)

    @staticmethod
    def _key(task: LocalTask, number: int) -> tuple[int, ...]:
        """Return what the random state of a clone depends on."""
        behind = (*task.inputs, len(task.inputs)) if task.inputs else ()
        return (task.child, *task.partition.parents, number, *behind)

    def _weighted_log_likelihood(self, model: PartModel, X: Floats, codes: Codes, weights: Floats) -> float:
        own = model.log_proba(X, self.smooth)[np.arange(len(codes)), codes]
        if not self.smooth:  # scores stay finite, as in scikit-learn's log_loss and so in the paper
            own = np.maximum(own, TINY)
        return float(np.dot(weights, own))

    def _fit_clone(self, X: Floats, codes: Codes, weights: Floats, key: tuple[int, ...]) -> Any:
        classifier = clone(self.estimator)
        names = [name for name, value in random_states(classifier).items() if self.reseed or value is None]
        if names:
            values = np.random.SeedSequence(self.seed, spawn_key=key).generate_state(len(names)).tolist()
            classifier.set_params(**dict(zip(names, values, strict=True)))
        return classifier.fit(fill_empty(X), codes, **({"sample_weight": weights} if self.weighted else {}))


class ForestLearner(EstimatorLearner, OutOfBag):
    """`EstimatorLearner` of ensembles that are fitted on bootstrap samples."""

    def out_of_bag(self, task: LocalTask) -> tuple[Floats, Marks]:
        some = copy(self)
        some.estimator = clone(self.estimator).set_params(oob_score=True)
        out, answered = np.full(len(task.codes), -np.inf), np.ones(len(task.codes), dtype=bool)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
            warnings.filterwarnings("ignore", message="invalid value encountered in divide")
            models = some.fit(task).models
        for (_, rows), model in zip(rows_by_part(task.partition.part), models, strict=True):
            place = np.searchsorted(model.states, task.codes[rows])
            if model.classifier is None:  # the frequencies without the row
                weights = self.sample_weight[rows]
                own, total = model.frequencies[place] * model.weight - weights, model.weight - weights
                with np.errstate(divide="ignore", invalid="ignore"):
                    out[rows] = np.where(total > 1e-12 * model.weight, np.log(np.maximum(own / total, 0.0)), -np.inf)
                continue
            proba = np.asarray(model.classifier.oob_decision_function_, dtype=float)
            known = np.isfinite(proba).all(axis=1) & (proba.sum(axis=1) > 0)
            with np.errstate(divide="ignore"):
                log_proba = np.log(proba[known])
            log_proba = fill_zeros(log_proba, model.frequencies, model.weight)
            out[rows[known]] = log_proba[np.arange(len(log_proba)), place[known]]
            alone = np.bincount(place, minlength=len(model.states))[place] == 1
            out[rows[alone]] = -np.inf
            answered[rows] = known | alone
        return out, answered


def accepts_forest(estimator: Any, sizes: Sequence[int]) -> bool:
    """Return whether the estimator is an ensemble with out-of-bag predictions."""
    parameters = estimator.get_params(deep=False)
    return "oob_score" in parameters and bool(parameters.get("bootstrap"))


def _predict_log_proba(classifier: Any, X: Floats, n_states: int) -> Floats:
    """Return log-probabilities, from `predict_log_proba` if possible since it does not underflow."""
    with np.errstate(divide="ignore", invalid="ignore"):  # zeros are allowed, NaN is checked below
        if hasattr(classifier, "predict_log_proba"):
            log_proba = np.asarray(classifier.predict_log_proba(X), dtype=float)
        else:
            log_proba = np.log(np.asarray(classifier.predict_proba(X), dtype=float))
    name = type(classifier).__name__
    if log_proba.shape != (len(X), n_states):
        raise TypeError(
            f"{name} returned probabilities of shape {log_proba.shape} instead of ({len(X)}, {n_states}). Choose "
            "another estimator."
        )
    if np.isnan(log_proba).any():
        raise FloatingPointError(
            f"{name} returned NaN probabilities. Check the scale of the features or choose another estimator."
        )
    total = np.exp(log_proba).sum(axis=1, keepdims=True)
    error = np.abs(total - 1.0)
    if (error > 1e-3).any():
        raise TypeError(
            f"{name} returned probabilities that sum to {total[error.argmax()].item():g} instead of 1. Choose another "
            "estimator."
        )
    return log_proba - np.log(total) if (error > 1e-12).any() else log_proba
