"""Fitted classifiers of x as the experts use them: probabilities of all states, for one or several class variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.experts.trees import TreeEnsemble, concatenate
from pmdc.learners.logistic import Logistic
from pmdc.table.features import Features


class Member(Protocol):
    """A classifier fitted on some of the rows.

    Attributes
    ----------
    width : int
        The number of states of all its class variables.
    """

    @property
    def width(self) -> int: ...

    def consistent(self, n_inputs: int) -> bool:
        """Return whether a member read from a file may be evaluated on this number of inputs."""

    def proba(self, X: Floats) -> Floats:
        """Return the probabilities of the states of all its class variables, side by side; 0 for unseen states."""


@dataclass(frozen=True)
class ForestMember:
    """A forest of one or several class variables.

    Attributes
    ----------
    trees : TreeEnsemble
    places : array of int
        The column of each output of the trees among the states of all class variables.
    width : int
        The number of these states.
    sizes : tuple of int
        The numbers of states of the class variables, if some states were missing in training; otherwise empty. The
        leaves then hold the shares of the known states, which are divided by their sum.
    """

    trees: TreeEnsemble
    places: Codes
    width: int
    sizes: tuple[int, ...] = ()

    def consistent(self, n_inputs: int) -> bool:
        return (
            _are_places(self)
            and _are_trees(self.trees, n_inputs, len(self.places))
            and self._are_probabilities()
            and all(type(size) is int and size > 0 for size in self.sizes)
            and (not self.sizes or sum(self.sizes) == self.width)
        )

    def _are_probabilities(self) -> bool:
        trees = self.trees
        inside = (trees.values >= 0.0) & (trees.values <= 1.0)
        return trees.average and bool(inside.all()) and not trees.baseline.any()

    def proba(self, X: Floats) -> Floats:
        shares = _scatter(self.trees.scores(X), self.places, self.width)
        for size, end in zip(self.sizes, np.cumsum(self.sizes).tolist(), strict=True):
            own = shares[:, end - size : end]
            total = own.sum(axis=1, keepdims=True)
            shares[:, end - size : end] = np.where(total > 0, own / np.where(total > 0, total, 1.0), 1.0 / size)
        return shares


@dataclass(frozen=True)
class BoostingMember:
    """Gradient boosting of one class variable; `places` are the states that it has seen, among `width`."""

    trees: TreeEnsemble
    places: Codes
    width: int

    def consistent(self, n_inputs: int) -> bool:
        n_outputs = len(self.places) if len(self.places) > 2 else 1
        return _are_places(self) and _are_trees(self.trees, n_inputs, n_outputs)

    def proba(self, X: Floats) -> Floats:
        return _scatter(_softmax(self.trees.scores(X)), self.places, self.width)

    def first(self, n_iterations: int) -> BoostingMember:
        """Return the model after the first so many iterations."""
        return replace(self, trees=self.trees.first(n_iterations * self.trees.n_outputs))

    def path(self, X: Floats, codes: Codes, weights: Floats) -> Floats:
        """Return the log-likelihood of rows after each iteration; states without training rows are left out."""
        place = np.full(self.width, -1)
        place[self.places] = np.arange(len(self.places))
        known = np.flatnonzero(place[codes] >= 0)
        X, own, weights = X[known], place[codes[known]], weights[known]
        out = []
        scores = np.tile(self.trees.baseline, (len(X), 1))
        for trees in self.trees.groups(self.trees.n_outputs):
            scores += trees.scores(X)
            p = _softmax(scores)[np.arange(len(own)), own]
            out.append(float(weights @ np.log(np.maximum(p, np.finfo(float).tiny))))
        return np.array(out)


@dataclass(frozen=True)
class ClassifierMember:
    """Any fitted classifier of one class variable with codes of `places` as its classes.

    Without a classifier (None), all of `places` are equally probable.
    """

    classifier: Any
    places: Codes
    width: int

    def consistent(self, n_inputs: int) -> bool:
        n_states = len(getattr(self.classifier, "classes_", self.places))
        n_features = getattr(self.classifier, "n_features_in_", n_inputs)
        return _are_places(self) and len(self.places) == n_states and n_features == n_inputs

    def proba(self, X: Floats) -> Floats:
        if self.classifier is None:
            n_states = len(self.places)
            return _scatter(np.full((len(X), n_states), 1.0 / n_states), self.places, self.width)
        p = self._own_proba(X)
        check_proba(self.classifier, p, len(X), len(self.places))
        return _scatter(p, self.places, self.width)

    def _own_proba(self, X: Floats) -> Floats:
        if isinstance(self.classifier, Logistic):  # without the checks of a table, which take longer than the rest
            models, prepare, _ = self.classifier.fitted_parts()
            rows = Features(X, np.empty((len(X), 0), dtype=np.int64))
            return np.exp(models.log_proba(prepare(rows), np.zeros(len(X), dtype=np.int64)))
        try:
            return np.asarray(self.classifier.predict_proba(X), dtype=float)
        except Exception as error:
            raise ValueError(
                f"experts: {type(self.classifier).__name__}.predict_proba failed for {len(X)} rows "
                f"({type(error).__name__}: {error}). Choose another classifier for `experts`, or experts=None."
            ) from error


def _are_places(member: Any) -> bool:
    """Return whether `places` are different states among `width`."""
    places, width = member.places, member.width
    return (
        type(width) is int
        and type(places) is np.ndarray
        and places.dtype == np.int64
        and places.ndim == 1
        and 0 < len(places) == len(np.unique(places))
        and bool(((places >= 0) & (places < width)).all())
    )


def _are_trees(trees: Any, n_inputs: int, n_outputs: int) -> bool:
    return type(trees) is TreeEnsemble and trees.consistent(n_inputs) and trees.n_outputs == n_outputs


def check_proba(classifier: Any, p: Floats, n_rows: int, n_states: int) -> None:
    """Raise an error unless these are probabilities of the right shape."""
    name = type(classifier).__name__
    if p.shape != (n_rows, n_states):
        raise TypeError(
            f"experts: {name}.predict_proba returned shape {p.shape} instead of {(n_rows, n_states)}. Choose another "
            "classifier."
        )
    if not np.isfinite(p).all():
        raise FloatingPointError(
            f"experts: {name}.predict_proba returned NaN or infinite values. Check the scale of the features or choose "
            "another classifier."
        )
    total = p.sum(axis=1)
    if (p < -1e-9).any() or (np.abs(total - 1.0) > 1e-3).any():
        worst = total[np.abs(total - 1.0).argmax()]
        raise TypeError(
            f"experts: {name}.predict_proba returned values that are not probabilities (a row sums to {worst:g}). "
            "Choose another classifier."
        )


def _softmax(scores: Floats) -> Floats:
    """Return the probabilities of raw scores; one column means two states."""
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _scatter(p: Floats, places: Codes, width: int) -> Floats:
    if len(places) == width:
        return p
    out = np.zeros((len(p), width))
    out[:, places] = p
    return out


def join_members(members: Sequence[Member]) -> tuple[Member, ...]:
    """Return members with the same mean of probabilities: forests of equal size become one forest."""
    forests = [member for member in members if isinstance(member, ForestMember)]
    first = forests[0] if forests else None
    if first is None or len(forests) < len(members):
        return tuple(members)
    if any(
        forest.sizes != first.sizes
        or not np.array_equal(forest.places, first.places)
        or len(forest.trees.roots) != len(first.trees.roots)
        for forest in forests
    ):
        return tuple(members)
    return (replace(first, trees=concatenate([forest.trees for forest in forests])),)


def mean_proba(members: Sequence[Member], X: Floats) -> Floats:
    """Return the mean of the probabilities of several members."""
    total = members[0].proba(X).astype(float, copy=True)
    for member in members[1:]:
        total += member.proba(X)
    return total / len(members)
