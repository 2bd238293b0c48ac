"""The fitted network: local models with their back-off, and the conditional tables they give for a batch of rows.

Back-off. Under a configuration with few rows a local model knows little, and for a state with no row there it knows
nothing; it asks the model with one parent less, recursively, and after the model without parents the uniform
distribution. With W the weight of the rows of the part, p its own answer and q that of the model with fewer parents,
the answer is

    (W p + kappa q) / (W + kappa),

where a held-out criterion has chosen the strength kappa (`pmdc.scores`). Where none has, p is left as it is but for the
states U that are absent from the part,

    q(y | x) / (1 + W)                                   for y in U,
    p(y | x) (1 - sum over u in U of q(u | x) / (1 + W))   otherwise.

So absent states share what one more row could have brought, a part with all states keeps its own answer. Either way the
answer is q itself with no rows (W = 0, U all states), and nothing has probability zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.candidates.families import Family, ParentSet
from pmdc.learners.partition import Configurations
from pmdc.learners.protocols import LocalModels, Preparation
from pmdc.network.backoff import fill_absent, shrink
from pmdc.table.columns import UNKNOWN
from pmdc.table.features import Features


@dataclass(frozen=True)
class Level:
    """The local models of one family, with the weight of the rows behind each.

    `kappa` is how strongly they are shrunk towards those of the coarser family; None where absent states alone are.
    """

    configurations: Configurations
    models: LocalModels
    weights: Floats
    kappa: float | None = None


@dataclass(frozen=True)
class Node:
    """One class variable: its parents, its local models, and those they back off to.

    Attributes
    ----------
    family : Family
        Its parents, and how they enter.
    n_states : int
    sizes : tuple of int
        The number of states of each node.
    levels : dict
        Local models by family: those of `family` and of all that may be asked instead. All have the same inputs.
    fewer : dict
        The family that a family backs off to; the one that divides nothing backs off to the uniform distribution.
    backoff : bool
        Without it, absent states have probability zero, and a configuration without rows is answered by the uniform
        distribution (the paper's behaviour).
    """

    family: Family
    n_states: int
    sizes: tuple[int, ...]
    levels: Mapping[Family, Level]
    fewer: Mapping[Family, Family]
    backoff: bool

    @property
    def parents(self) -> ParentSet:
        return self.family.parents

    def log_proba(self, X: Floats, codes: Codes) -> Floats:
        """log P(Y | pi, x) for prepared rows, pi read off their codes; shape (n, n_states)."""
        return self._log_proba(X, codes, self.family, ())[:, 0]

    def table(self, X: Floats, codes: Codes, free: ParentSet) -> Floats:
        """log P(Y | pi, x) for prepared rows and all configurations of the parents in `free`.

        The other parents are read off the codes. Shape (n, number of configurations, n_states), the last of the free
        parents running fastest.
        """
        inputs = [p for p in self.family.inputs if p in free]
        if not inputs:
            return self._log_proba(X, codes, self.family, free)
        dividing = [p for p in self.family.partition if p in free]
        shape = tuple(self.sizes[p] for p in inputs)
        rest = tuple(self.sizes[p] for p in dividing)
        out = np.empty((len(X), math.prod(shape), math.prod(rest), self.n_states))
        codes = codes.copy()
        for number, states in enumerate(product(*map(range, shape))):
            codes[:, inputs] = states
            out[:, number] = self._log_proba(X, codes, self.family, tuple(dividing))
        # Free parents in their own order, whichever way they enter.
        order = np.argsort([*inputs, *dividing], kind="stable")
        out = out.reshape(len(X), *shape, *rest, self.n_states)
        out = out.transpose(0, *(order + 1), len(order) + 1)
        return out.reshape(len(X), -1, self.n_states)

    def _log_proba(self, X: Floats, codes: Codes, family: Family | None, free: ParentSet) -> Floats:
        if family is None:
            return np.full((len(X), 1, self.n_states), -math.log(self.n_states))
        if self.backoff and (codes[:, [p for p in family.partition if p not in free]] == UNKNOWN).any():
            return self._without_unknown(X, codes, family, free)
        here = self.levels[family]
        part = here.configurations.find(codes, free)
        out = here.models.log_proba(X, part, codes[:, list(family.inputs)] if family.inputs else None)
        if not self.backoff:
            out[part < 0] = -math.log(self.n_states)
        elif here.kappa is not None or np.isneginf(out).any():
            fewer = self.fewer.get(family)
            columns = here.configurations.columns(() if fewer is None else fewer.partition, free)
            answer = self._log_proba(X, codes, fewer, free)[:, columns]
            weight = np.where(part >= 0, here.weights[part], 0.0)
            if here.kappa is None:
                return fill_absent(out, answer, weight)
            return shrink(out, answer, weight, here.kappa)
        return out

    def _without_unknown(self, X: Floats, codes: Codes, family: Family, free: ParentSet) -> Floats:
        """A value never seen says nothing: those rows are answered by the models without that parent."""
        read = [p for p in family.partition if p not in free]
        patterns, pattern = np.unique(codes[:, read] == UNKNOWN, axis=0, return_inverse=True)
        pieces: list[tuple[Codes, Floats]] = []
        for number, unknown in enumerate(patterns):
            rows = np.flatnonzero(pattern.ravel() == number)
            gone = {p for p, missing in zip(read, unknown, strict=True) if missing}
            pieces.append((rows, self._log_proba(X[rows], codes[rows], family.without(*gone), free)))
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
        return [node.family.classes(len(self.nodes)) for node in self.nodes]

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
