"""Expert features: smoothed, centred log-probabilities, and the fitted experts that compute them for new rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Floats
from pmdc.experts.members import BoostingMember, ClassifierMember, ForestMember, Member, mean_proba
from pmdc.experts.trees import TreeEnsemble
from pmdc.learners.inputs import Indicators
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
    """

    name: str
    targets: tuple[int, ...]
    columns: tuple[tuple[int, int], ...]
    smoothing: tuple[float, ...]
    members: tuple[Member, ...]

    def consistent(self, n_inputs: int, class_sizes: Sequence[int]) -> bool:
        """Return whether an expert read from a file may be evaluated on this number of inputs."""
        width = getattr(self.members[0], "width", 0) if self.members else 0
        return (
            len(self.targets) == len(self.columns) == len(self.smoothing)
            and all(type(m) is float and 0 < m < np.inf for m in self.smoothing)
            and all(
                0 <= k < len(class_sizes) and begin >= 0 and end <= width and end - begin == class_sizes[k]
                for k, (begin, end) in zip(self.targets, self.columns, strict=True)
            )
            and all(m.width == width and m.consistent(n_inputs) for m in self.members)
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
    """

    prepare: Indicators
    experts: tuple[Expert, ...]
    order: tuple[tuple[int, ...], ...]

    def consistent(self, n_continuous: int, feature_sizes: Sequence[int], class_sizes: Sequence[int]) -> bool:
        """Return whether experts read from a file fit the table and each other, before any of them is evaluated."""
        n_inputs = n_continuous + sum(feature_sizes)
        return (
            type(self.prepare) is Indicators
            and self.prepare.affine is None
            and list(self.prepare.sizes) == list(feature_sizes)
            and len(self.order) == len(class_sizes)
            and all(type(expert) is Expert and expert.consistent(n_inputs, class_sizes) for expert in self.experts)
            and all(
                type(e) is int and 0 <= e < len(self.experts) and k in self.experts[e].targets
                for k, order in enumerate(self.order)
                for e in order
            )
        )

    def __call__(self, features: Features) -> list[Floats]:
        """Return for each class variable an array (n, n_experts * n_states); without experts it has no columns."""
        X = np.ascontiguousarray(self.prepare(features))
        found: list[dict[int, Floats]] = []
        for expert in self.experts:
            proba = mean_proba(expert.members, X)
            found.append(
                {
                    target: log_features(proba[:, begin:end], m)
                    for target, (begin, end), m in zip(expert.targets, expert.columns, expert.smoothing, strict=True)
                }
            )
        return [
            np.hstack([np.empty((len(X), 0)), *(found[expert][target] for expert in order)])
            for target, order in enumerate(self.order)
        ]


EXPERT_TYPES: tuple[type, ...] = (
    ExpertFeatures,
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
