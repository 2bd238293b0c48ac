"""Expert features: smoothed, centred log-probabilities, and the fitted experts that compute them for new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.experts.members import BoostingMember, ClassifierMember, ForestMember, Member, mean_proba
from pmdc.experts.trees import TreeEnsemble
from pmdc.learners.fitted import is_affine
from pmdc.learners.inputs import Indicators, one_hot
from pmdc.table.features import Features


class ExpertScore(NamedTuple):
    """How an expert does for a class variable.

    Attributes
    ----------
    name : str
    log_loss : float
        Held-out log-loss of the conditional logit on this expert alone, in nats per row; NaN if it was dropped after a
        third of the rows.
    used : bool
        Whether the class variable uses it.
    """

    name: str
    log_loss: float
    used: bool


def log_features(proba: Floats, m: float) -> Floats:
    """Return log((m p + 1/M) / (m + 1)) of the probabilities p of M states, centred over the states.

    As if one more observation were spread evenly over m observations of the model; a state that a model has not seen
    is unlikely, never impossible.
    """
    z = np.log((m * proba + 1.0 / proba.shape[1]) / (m + 1.0))
    return z - z.mean(axis=1, keepdims=True)


@dataclass(frozen=True)
class Expert:
    """A fitted expert of one or several class variables.

    Attributes
    ----------
    name : str
    targets : tuple of int
        The class variables that use it.
    columns : tuple of (int, int)
        Where the states of each of these begin and end among the members' probabilities.
    smoothing : tuple of float
        m of `log_features` for each of these.
    members : tuple of Member
        The models without each fold, or one model of all rows; their probabilities are averaged.
    raw : bool
        Whether it sees the numbers of the table, as classifiers that the user gave do, instead of standardised ones.
    nan : bool
        Whether it sees NaN for missing numbers, instead of filled ones and indicators.
    """

    name: str
    targets: tuple[int, ...]
    columns: tuple[tuple[int, int], ...]
    smoothing: tuple[float, ...]
    members: tuple[Member, ...]
    raw: bool = False
    nan: bool = False

    def consistent(self, n_inputs: int, class_sizes: Sequence[int], n_indicators: int = 0) -> bool:
        """Return whether an expert read from a file may be evaluated on this number of inputs.

        So many of these are indicators of missing numbers.
        """
        n_inputs -= n_indicators if self.nan else 0
        width = getattr(self.members[0], "width", 0) if self.members else 0
        return (
            len(self.members) > 0
            and len(self.targets) == len(self.columns) == len(self.smoothing)
            and width <= sum(class_sizes)
            and all(type(m) is float and 0 < m < np.inf for m in self.smoothing)
            and all(
                all(type(number) is int for number in (k, begin, end))
                and 0 <= k < len(class_sizes)
                and begin >= 0
                and end <= width
                and end - begin == class_sizes[k]
                for k, (begin, end) in zip(self.targets, self.columns, strict=True)
            )
            and all(m.width == width and m.consistent(n_inputs) for m in self.members)
        )


class Inputs(NamedTuple):
    """The features of rows as experts see them, discrete ones as indicators.

    Standardised, as in the table, and as in the table with NaN for missing numbers; None if nothing is missing.
    """

    standard: Floats
    raw: Floats
    nan: Floats | None = None

    def rows(self, rows: Codes) -> Inputs:
        return Inputs(self.standard[rows], self.raw[rows], None if self.nan is None else self.nan[rows])

    def beside(self, columns: Floats) -> Inputs:
        """Return the same with more columns."""
        nan = None if self.nan is None else np.hstack([self.nan, columns])
        return Inputs(np.hstack([self.standard, columns]), np.hstack([self.raw, columns]), nan)

    def proba(self, expert: Expert) -> Floats:
        inputs = self.raw if expert.raw else self.standard
        if expert.nan and self.nan is not None:
            inputs = self.nan
        return mean_proba(expert.members, np.ascontiguousarray(inputs))


@dataclass(frozen=True)
class ConditionalExperts:
    """Experts of one class variable on the features and its parents (`given_parents`).

    Attributes
    ----------
    parents : tuple of int
        Class variables.
    sizes : tuple of int
        Their numbers of states.
    experts : tuple of Expert
        Their inputs are the features, then the indicators of the parents.
    """

    parents: tuple[int, ...]
    sizes: tuple[int, ...]
    experts: tuple[Expert, ...]

    def __call__(self, inputs: Inputs, codes: Codes) -> Floats:
        """Return the features of rows with these states of the parents, shape (n, n_experts * n_states)."""
        both = inputs.beside(one_hot(codes, self.sizes))
        return np.hstack([log_features(both.proba(expert), expert.smoothing[0]) for expert in self.experts])

    def consistent(self, n_inputs: int, child: int, class_sizes: Sequence[int], n_indicators: int = 0) -> bool:
        """Return whether experts read from a file fit the table."""
        return (
            len(self.experts) > 0
            and len(self.parents) == len(self.sizes)
            and all(
                type(p) is int and 0 <= p < len(class_sizes) and class_sizes[p] == size
                for p, size in zip(self.parents, self.sizes, strict=True)
            )
            and all(
                type(expert) is Expert
                and expert.targets == (child,)
                and expert.consistent(n_inputs + sum(self.sizes), class_sizes, n_indicators)
                and expert.members[0].width == class_sizes[child]
                for expert in self.experts
            )
        )


@dataclass(frozen=True)
class ExpertFeatures:
    """Computes the expert features of new rows.

    Attributes
    ----------
    prepare : Indicators
        The features as numbers, discrete ones as indicators.
    experts : tuple of Expert
    order : tuple of tuples of int
        For each class variable, the numbers of its experts in `experts`; empty if it has none.
    given_parents : tuple of ConditionalExperts or None
        For each class variable, its experts on the features and its parents, if it has any.
    """

    prepare: Indicators
    experts: tuple[Expert, ...]
    order: tuple[tuple[int, ...], ...]
    given_parents: tuple[ConditionalExperts | None, ...] = ()

    def conditional(self, child: int) -> ConditionalExperts | None:
        return self.given_parents[child] if self.given_parents else None

    def width(self, child: int) -> int:
        """Return the number of experts of a class variable."""
        given = self.conditional(child)
        return len(self.order[child]) + (0 if given is None else len(given.experts))

    def consistent(
        self, n_continuous: int, feature_sizes: Sequence[int], class_sizes: Sequence[int], n_indicators: int = 0
    ) -> bool:
        """Return whether experts read from a file fit the table and each other, before any of them is evaluated."""
        n_inputs = n_continuous + sum(feature_sizes)
        return (
            type(self.prepare) is Indicators
            and (self.prepare.affine is None or _is_affine(self.prepare.affine, n_inputs))
            and list(self.prepare.sizes) == list(feature_sizes)
            and len(self.order) == len(class_sizes)
            and all(
                type(expert) is Expert and expert.consistent(n_inputs, class_sizes, n_indicators)
                for expert in self.experts
            )
            and len(self.given_parents) in (0, len(class_sizes))
            and all(
                own is None
                or (
                    type(own) is ConditionalExperts
                    and bool(self.order[k])
                    and own.consistent(n_inputs, k, class_sizes, n_indicators)
                )
                for k, own in enumerate(self.given_parents)
            )
            and all(
                type(e) is int and 0 <= e < len(self.experts) and k in self.experts[e].targets
                for k, order in enumerate(self.order)
                for e in order
            )
        )

    def inputs(self, features: Features) -> Inputs:
        """Return the features as the experts see them."""
        raw = Indicators(self.prepare.sizes)(features)
        nan = None if features.missing is None else Indicators(self.prepare.sizes, nan=True)(features)
        return Inputs(raw if self.prepare.affine is None else self.prepare.affine(raw), raw, nan)

    def __call__(self, features: Features) -> list[Floats]:
        """Return the features of x alone for each class variable, shape (n, n_experts * n_states)."""
        inputs = self.inputs(features)
        found: list[dict[int, Floats]] = []
        for expert in self.experts:
            proba = inputs.proba(expert)
            found.append(
                {
                    target: log_features(proba[:, begin:end], m)
                    for target, (begin, end), m in zip(expert.targets, expert.columns, expert.smoothing, strict=True)
                }
            )
        return [
            np.hstack([np.empty((len(features), 0)), *(found[expert][target] for expert in order)])
            for target, order in enumerate(self.order)
        ]


def _is_affine(affine: Any, n_columns: int) -> bool:
    return (
        is_affine(affine)
        and affine.shift.shape == affine.width.shape == (n_columns,)
        and bool(np.isfinite(affine.shift).all() and (affine.width > 0).all())
    )


EXPERT_TYPES: tuple[type, ...] = (
    ExpertFeatures,
    ConditionalExperts,
    Expert,
    ExpertScore,
    ForestMember,
    BoostingMember,
    ClassifierMember,
    TreeEnsemble,
)
"""What fitted experts consist of, for saving."""


def columns_of(sizes: Sequence[int], targets: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return where the states of each target begin and end side by side."""
    ends = np.cumsum([sizes[t] for t in targets]).tolist()
    return {t: (end - sizes[t], end) for t, end in zip(targets, ends, strict=True)}
