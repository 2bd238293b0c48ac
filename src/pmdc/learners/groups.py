"""Groups of rows with the same part and state: the basis of engines that fit all parts of a partition together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from pmdc._support.arrays import Array, Codes, Floats, Marks
from pmdc.learners.fitted import Fitted, are_places
from pmdc.learners.inputs import Joining
from pmdc.learners.options import Options
from pmdc.learners.protocols import LocalLearner, LocalModels, Preparation
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import LocalTask
from pmdc.table.features import FeatureTable


@dataclass(frozen=True)
class Groups:
    """The observed pairs of a part and a state, numbered part by part.

    Attributes
    ----------
    number : array of shape (n_parts, n_states)
        The group of each pair; -1 where it has no row.
    of_row : array of shape (n,)
        The group of each row.
    part : array of shape (n_groups,)
        The part that a group belongs to.
    weights : array of shape (n_groups,)
        The sum of the weights of its rows.
    part_weights : array of shape (n_parts,)
    log_frequency : array of shape (n_groups,)
        Logarithm of the share of a group in its part.
    """

    number: Codes
    of_row: Codes
    part: Codes
    weights: Floats
    part_weights: Floats
    log_frequency: Floats

    @classmethod
    def of(cls, task: LocalTask, sample_weight: Floats) -> Groups:
        n_parts, n_states = task.partition.n_parts, task.n_states
        pair = task.partition.part * n_states + task.codes
        present = np.bincount(pair, minlength=n_parts * n_states) > 0
        number = np.where(present, np.cumsum(present) - 1, -1)
        of_row = number[pair]
        weights: Floats = np.bincount(of_row, weights=sample_weight).astype(float)
        part = np.flatnonzero(present) // n_states
        part_weights: Floats = np.bincount(part, weights=weights, minlength=n_parts).astype(float)
        return cls(
            number.reshape(n_parts, n_states), of_row, part, weights, part_weights, np.log(weights / part_weights[part])
        )


@dataclass(frozen=True)
class GroupedModels(LocalModels):
    """`LocalModels` kept as arrays over the groups of a partition.

    Attributes
    ----------
    number, part_weights, log_frequency : as in `Groups`
    uniform : array of shape (n_parts,)
        Parts with the uniform distribution over all states (only with ``backoff="paper"``).
    smooth : bool
        Whether states seen in a part never get probability zero there.
    join : Joining
        Joins parents that are inputs with the other inputs.
    """

    number: Codes
    part_weights: Floats
    log_frequency: Floats
    uniform: Marks
    smooth: bool
    join: Joining

    @abstractmethod
    def scores(self, X: Floats, part: Codes, out: Floats) -> None:
        """Write to `out` the scores whose softmax over the states of a part gives the probabilities.

        Parts have shape (n, n_columns), `out` has shape (n, n_columns, n_states).
        """

    @abstractmethod
    def split_inputs(self, X: Floats, input_codes: Codes, free: Mapping[int, int]) -> tuple[Floats, list[Floats]]:
        """Return all inputs of rows, without an effect of the free ones, and what each of these adds to the scores.

        The latter have shape (n_states of the input, n_groups); the arguments are those of `log_table`.
        """

    def fits(self, fitted: Fitted) -> bool:
        n_groups = len(self.log_frequency)
        return (
            self.number.shape == (fitted.n_parts, fitted.n_states)
            and are_places(self.number + 1, n_groups + 1)
            and self.part_weights.shape == self.uniform.shape == (fitted.n_parts,)
        )

    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        if input_codes is not None:
            X = self.join(X, input_codes)
        return self.log_proba_of(X, part)

    def log_proba_of(self, X: Floats, part: Codes) -> Floats:
        """Return the same for inputs that are joined already."""
        out = np.empty((*part.shape, self.number.shape[1]))
        self.scores(X, part.reshape(len(X), -1), out.reshape(len(X), -1, out.shape[-1]))
        self.normalise(out, part)
        return out

    def log_table(self, X: Floats, part: Codes, input_codes: Codes, free: Mapping[int, int]) -> Floats:
        """As `LocalModels.log_table`: inputs add to the scores, so features are evaluated once per row."""
        X, added = self.split_inputs(X, input_codes, free)
        base = np.zeros((*part.shape, self.number.shape[1]))
        self.scores(X, part, base)
        total = np.zeros((1, len(self.log_frequency)))
        for scores in added:
            total = (total[:, None] + scores).reshape(-1, total.shape[1])
        out = np.add(base[:, None], total[:, self.number[part]].swapaxes(0, 1), order="C")
        self.normalise(out, np.broadcast_to(part[:, None], out.shape[:-1]))
        return out

    def normalise(self, out: Floats, part: Codes) -> None:
        """Turn scores into log-probabilities, in place."""
        from pmdc.learners import kernels

        flat = out.reshape(-1, out.shape[-1])
        kernels.normalise(flat, part.ravel(), self.number, self.log_frequency, self.part_weights, self.smooth, TINY)
        refuse_nan(flat)
        if self.uniform.any():
            out[(part >= 0) & self.uniform[part]] = -np.log(out.shape[-1])


def constant_parts(X: Floats, part: Codes, n_parts: int) -> Marks:
    """Return for each part whether all its rows have the same inputs."""
    first = np.unique(part, return_index=True)[1]
    return np.bincount(part, (X[first[part]] != X).any(axis=1), n_parts) == 0


def refuse_nan(log_proba: Floats) -> None:
    """Raise an error if a log-probability is NaN."""
    if np.isnan(log_proba).any():
        raise FloatingPointError("a local model returned NaN probabilities. Check the scale of the features.")


Models = TypeVar("Models", bound=GroupedModels)


class GroupedLearner(LocalLearner, Generic[Models]):
    """`LocalLearner` that fits all parts of a partition together.

    Parameters
    ----------
    estimator : scikit-learn classifier
        What the user gave, for messages.
    X : array of shape (n, d)
        The prepared inputs of the training rows.
    sample_weight : array of shape (n,)
    prepare : Preparation
        Prepares the inputs of other rows in the same way.
    options : Options
    """

    def __init__(self, estimator: Any, X: Floats, sample_weight: Floats, prepare: Preparation, options: Options):
        self.estimator = estimator
        self.X = self.plain = np.ascontiguousarray(X)  # plain: before any rotation, so that equal rows are equal
        self.sample_weight = sample_weight
        self.prepare = prepare
        self.smooth = options.smooth
        self.paper = options.paper

    @abstractmethod
    def joining(self, task: LocalTask) -> Joining:
        """Return how the parents that are inputs of a task are joined with the other inputs."""

    def design(self, task: LocalTask) -> Floats:
        """Return all inputs of the training rows: those of the learner, and the parents that are inputs."""
        return self.X if task.input_codes is None else self.joining(task)(self.X, task.input_codes)

    @abstractmethod
    def _fit_groups(self, task: LocalTask, X: Floats, groups: Groups, uniform: Marks) -> Models:
        """Fit the models of all parts; X contains all inputs."""

    def on(self, rows: Codes, sample_weight: Floats | None = None) -> Self:
        other = copy(self)
        other.X = self.X[rows]
        other.plain = other.X if self.plain is self.X else self.plain[rows]
        other.sample_weight = self.sample_weight[rows] if sample_weight is None else sample_weight
        return other

    def fit(self, task: LocalTask) -> Models:
        return self._fit_to(task, self.design(task))

    def _fit_to(self, task: LocalTask, X: Floats) -> Models:
        return self._fit_groups(task, X, *self._groups(task))

    def _groups(self, task: LocalTask) -> tuple[Groups, Marks]:
        """Return the groups of a task, and which parts have the uniform distribution."""
        groups = Groups.of(task, self.sample_weight)
        uniform = np.zeros(task.partition.n_parts, dtype=bool)
        if self.paper:
            several = (groups.number >= 0).sum(axis=1) > 1
            uniform = several & constant_parts(self.plain, task.partition.part, task.partition.n_parts)
        return groups, uniform

    def log_likelihood(self, task: LocalTask) -> float:
        X = self.design(task)
        return self._log_likelihood_of(task, X, self._fit_to(task, X))

    def _log_likelihood_of(self, task: LocalTask, X: Floats, models: Models) -> float:
        part = task.partition.part
        own = models.log_proba_of(X, part)[np.arange(len(part)), task.codes]
        if not self.smooth:  # scores stay finite, as in scikit-learn's log_loss and so in the paper
            own = np.maximum(own, TINY)
        weights = np.where(models.uniform[part], 0.0, self.sample_weight) if self.paper else self.sample_weight
        return float(np.dot(weights, own))


class LogProbaClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base class of `Logistic` and `NaiveBayes`: a classifier defined by its log-probabilities."""

    classes_: Array
    _models: GroupedModels
    _prepare: Preparation

    def fitted_parts(self) -> tuple[GroupedModels, Preparation, FeatureTable | None]:
        """Return the fitted models, the preparation of the inputs, and the table of features."""
        return self._models, self._prepare, None

    @abstractmethod
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities, shape (n, n_classes)."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, shape (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]
