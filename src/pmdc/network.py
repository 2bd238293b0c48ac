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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pmdc.candidates import ParentSet, class_part
from pmdc.learners.base import LocalLearner, LocalModels, LocalTask, Preparation
from pmdc.partition import Configurations, Partition
from pmdc.table import UNKNOWN, Codes, Features, Floats


@dataclass(frozen=True)
class Level:
    """The local models of one parent set, with the weight of the rows behind each."""

    configurations: Configurations
    models: LocalModels
    weights: Floats


@dataclass(frozen=True)
class Node:
    """One class variable: its parents, its local models, and those they back off to.

    Attributes
    ----------
    parents : tuple of int
    n_states : int
    levels : dict
        Local models by parent set: those of `parents` and of all sets that may be asked instead.
    fewer : dict
        The set that a set backs off to; the empty set backs off to the uniform distribution.
    backoff : bool
        Without it, absent states have probability zero, and a configuration without rows is answered by the uniform
        distribution (the paper's behaviour).
    """

    parents: ParentSet
    n_states: int
    levels: Mapping[ParentSet, Level]
    fewer: Mapping[ParentSet, ParentSet]
    backoff: bool

    def log_proba(self, X: Floats, codes: Codes) -> Floats:
        """log P(Y | pi, x) for prepared rows, pi read off their codes; shape (n, n_states)."""
        return self._log_proba(X, codes, self.parents, ())[:, 0]

    def table(self, X: Floats, codes: Codes, free: ParentSet) -> Floats:
        """log P(Y | pi, x) for prepared rows and all configurations of the parents in `free`.

        The other parents are read off the codes. Shape (n, number of configurations, n_states), the last of the free
        parents running fastest.
        """
        return self._log_proba(X, codes, self.parents, free)

    def _log_proba(self, X: Floats, codes: Codes, parents: ParentSet | None, free: ParentSet) -> Floats:
        if parents is None:
            return np.full((len(X), 1, self.n_states), -math.log(self.n_states))
        if self.backoff and (codes[:, [p for p in parents if p not in free]] == UNKNOWN).any():
            return self._without_unknown(X, codes, parents, free)
        here = self.levels[parents]
        part = here.configurations.find(codes, free)
        out = here.models.log_proba(X, part)
        if not self.backoff:
            out[part < 0] = -math.log(self.n_states)
        elif np.isneginf(out).any():
            from pmdc.learners import kernels

            fewer = self.fewer.get(parents)
            answer = self._log_proba(X, codes, fewer, free)
            kernels.back_off(out, answer, here.configurations.columns(fewer or (), free), part, here.weights)
        return out

    def _without_unknown(self, X: Floats, codes: Codes, parents: ParentSet, free: ParentSet) -> Floats:
        """A value never seen says nothing: those rows are answered by the models without that parent."""
        read = [p for p in parents if p not in free]
        patterns, pattern = np.unique(codes[:, read] == UNKNOWN, axis=0, return_inverse=True)
        pieces: list[tuple[Codes, Floats]] = []
        for number, unknown in enumerate(patterns):
            rows = np.flatnonzero(pattern.ravel() == number)
            gone = {p for p, missing in zip(read, unknown, strict=True) if missing}
            known = tuple(p for p in parents if p not in gone)
            pieces.append((rows, self._log_proba(X[rows], codes[rows], known, free)))
        out = np.empty((len(X), *pieces[0][1].shape[1:]))
        for rows, answer in pieces:
            out[rows] = answer
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
        return [class_part(node.parents, len(self.nodes)) for node in self.nodes]

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
        X = self.prepare(features.numbers())
        codes = np.hstack([np.zeros((len(features), len(self.nodes)), dtype=np.int64), features.discrete])
        tables = []
        for node, parents in zip(self.nodes, self.class_parents, strict=True):
            shape = tuple(self.sizes[p] for p in parents)
            tables.append(node.table(X, codes, parents).reshape(len(features), *shape, node.n_states))
        return tables


def fit_node(
    learner: LocalLearner,
    child: int,
    states: Codes,
    n_states: int,
    codes: Codes,
    sizes: Sequence[int],
    chains: Sequence[Sequence[ParentSet]],
    sample_weight: Floats,
    backoff: bool,
) -> Node:
    """Fit the chosen local models of one class variable and, if wanted, those they back off to.

    Parameters
    ----------
    learner : LocalLearner
    child : int
        The number of the class variable.
    states : array of shape (n,)
        Its states.
    n_states : int
    codes, sizes : codes of all nodes, shape (n, n_nodes), and their numbers of states
    chains : sequence of sequences of parent sets
        The first begins with the chosen parent set. Each goes down to the empty set, a parent less at every step.
    sample_weight : array of shape (n,)
    backoff : bool
    """
    levels: dict[ParentSet, Level] = {}
    fewer: dict[ParentSet, ParentSet] = {}
    for chain in chains if backoff else [chains[0][:1]]:
        fewer.update(pairwise(chain))
        for parents in chain:
            if parents not in levels:
                partition = Partition(codes, parents, sizes)
                models = learner.fit(LocalTask(child, states, n_states, partition))
                levels[parents] = Level(partition.configurations, models, partition.weights(sample_weight))
    return Node(chains[0][0], n_states, levels, fewer, backoff)
