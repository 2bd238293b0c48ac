"""The fitted network: local models with their back-off, and the conditional tables they give for a batch of rows.

Back-off. Under a configuration with no rows, or for a state with no row under a configuration, a local model
knows nothing; it asks the model with one parent less, recursively, and after the model without parents the
uniform distribution. With W the weight of the rows of the part, U the states absent from it and q the answer of
the model with fewer parents, the probability of a state is

    q(y | x) / (1 + W)                                   for y in U,
    p(y | x) (1 - sum over u in U of q(u | x) / (1 + W))   otherwise.

So absent states share what one more row could have brought, a part with all states keeps its own answer, and
with no rows (W = 0, U all states) the answer is q itself. Nothing has probability zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmdc.candidates import ParentSet
from pmdc.learners.base import LocalLearner, LocalModels, LocalTask, Preparation
from pmdc.partition import Configurations, Partition
from pmdc.table import Codes, Features, Floats


@dataclass(frozen=True)
class Level:
    """The local models of one parent set, with the weight of the rows behind each."""

    configurations: Configurations
    models: LocalModels
    weights: Floats


@dataclass(frozen=True)
class Node:
    """One class variable: its parents and its local models, followed by those they back off to.

    With a single level there is no back-off: absent states have probability zero, and a configuration without
    rows is answered by the uniform distribution (the paper's behaviour).
    """

    parents: ParentSet
    n_states: int
    levels: Sequence[Level]
    backoff: bool

    def log_proba(self, X: Floats, codes: Codes, level: int = 0) -> Floats:
        """log P(Y | pi, x) for prepared rows, pi read off their codes; shape (n, n_states)."""
        if level == len(self.levels):
            return np.full((len(X), self.n_states), -math.log(self.n_states))
        here = self.levels[level]
        part = here.configurations.find(codes)
        out = here.models.log_proba(X, part)
        if not self.backoff:
            out[part < 0] = -math.log(self.n_states)
            return out
        absent = np.isneginf(out)
        rows = np.flatnonzero(absent.any(axis=1))
        if rows.size:
            weight = np.where(part[rows] < 0, 0.0, here.weights[part[rows]])
            absent = absent[rows]
            log_share = self.log_proba(X[rows], codes[rows], level + 1) - np.log1p(weight)[:, None]
            taken = np.where(absent, np.exp(log_share), 0.0).sum(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                own = out[rows] + np.log1p(-np.minimum(taken, 1.0))
            out[rows] = np.where(absent, log_share, own)
        return out


@dataclass(frozen=True)
class Network:
    """All class variables with their local models."""

    nodes: Sequence[Node]
    prepare: Preparation
    sizes: tuple[int, ...]

    @property
    def class_parents(self) -> list[ParentSet]:
        """The class variables among the parents of each class variable."""
        return [tuple(v for v in node.parents if v < len(self.nodes)) for node in self.nodes]

    @property
    def cells_per_row(self) -> int:
        """Numbers in the conditional tables of one row: what a batch costs, known before it is paid."""
        return sum(
            node.n_states * math.prod(self.sizes[p] for p in parents)
            for node, parents in zip(self.nodes, self.class_parents, strict=True)
        )

    def tables(self, features: Features) -> list[Floats]:
        """The conditional tables of a batch (Algorithms 4 and 5, lines 2-7), as logarithms.

        For each class variable an array of shape (n, states of its class-variable parents ..., own states):
        discrete features and continuous features are fixed by the row, class-variable parents run through all
        their configurations.
        """
        X = self.prepare(features.continuous)
        codes = np.hstack([np.zeros((len(features), len(self.nodes)), dtype=np.int64), features.discrete])
        tables = []
        for node, parents in zip(self.nodes, self.class_parents, strict=True):
            shape = tuple(self.sizes[p] for p in parents)
            table = np.empty((len(features), *shape, node.n_states))
            for configuration in np.ndindex(shape):
                codes[:, parents] = configuration
                table[(slice(None), *configuration)] = node.log_proba(X, codes)
            tables.append(table)
        return tables


def fit_node(
    learner: LocalLearner,
    child: int,
    codes: Codes,
    sizes: Sequence[int],
    levels: Sequence[ParentSet],
    sample_weight: Floats,
    backoff: bool,
) -> Node:
    """Fit the chosen local models of one class variable and, if wanted, those they back off to."""
    fitted = []
    for parents in levels if backoff else levels[:1]:
        partition = Partition(codes, parents, sizes)
        models = learner.fit(LocalTask(child, codes[:, child], sizes[child], partition))
        fitted.append(Level(partition.configurations, models, partition.weights(sample_weight)))
    return Node(levels[0], sizes[child], fitted, backoff)
