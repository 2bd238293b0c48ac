"""The fitted network: local models with back-off, and the conditional tables that they give for a batch of rows.

Back-off. A local model knows little about a configuration with few rows and nothing about a state without rows there.
It is therefore combined with the model with one parent fewer, recursively; the model without parents is combined with
the uniform distribution. With W the weight of the rows of the part, p the probability by its own model and q that by
the model with fewer parents, the combination is

    (W p + kappa q) / (W + kappa),

if a held-out criterion has chosen the shrinkage kappa (`pmdc.scores`). Otherwise only the states U that are absent from
the part take probability from q,

    q(y | x) / (1 + W)                                   for y in U,
    p(y | x) (1 - sum over u in U of q(u | x) / (1 + W))   otherwise,

so that absent states share what one more row could have contributed, and a part with all states keeps p. In both cases
a configuration without rows (W = 0) has the distribution q, and no probability is zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.candidates.families import Family, ParentSet
from pmdc.experts.features import ExpertFeatures
from pmdc.learners.partition import Configurations
from pmdc.learners.protocols import LocalModels, Preparation
from pmdc.network.backoff import fill_absent, shrink
from pmdc.table.columns import UNKNOWN
from pmdc.table.features import Features

MAX_REPEATED = 2**22
"""The most numbers of features that are repeated at once for experts given the parents (32 MiB)."""


@dataclass(frozen=True)
class Level:
    """The local models of one family, with the weight of the rows of each part.

    `kappa` is their shrinkage towards the models of the coarser family; with None only absent states take probability
    from these.
    """

    configurations: Configurations
    models: LocalModels
    weights: Floats
    kappa: float | None = None


@dataclass(frozen=True)
class Node:
    """One class variable: its parents, its local models, and the models that these back off to.

    Attributes
    ----------
    family : Family
        Its parents, and how they enter.
    n_states : int
    sizes : tuple of int
        The number of states of each node.
    levels : dict
        Local models by family: those of `family` and all that these may back off to. All have the same inputs.
    fewer : dict
        The family that a family backs off to; without an entry, that is the uniform distribution.
    backoff : bool
        If False, absent states have probability zero and configurations without rows the uniform distribution, as in
        the paper.
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
        """Return log P(Y | pi, x) for prepared rows, with pi read from their codes; shape (n, n_states)."""
        return self._log_table(X, codes, self.family, ())[:, 0, 0]

    def table(self, X: Floats, codes: Codes, free: ParentSet) -> Floats:
        """Return log P(Y | pi, x) for prepared rows and all configurations of the parents in `free`.

        The other parents are read from the codes. The shape is (n, number of configurations, n_states); the last of
        the free parents runs fastest.
        """
        out = self._log_table(X, codes, self.family, free)
        inputs = [p for p in self.family.inputs if p in free]
        if inputs:
            axes = [*inputs, *(p for p in self.family.partition if p in free)]
            out = out.reshape(len(X), *(self.sizes[p] for p in axes), self.n_states)
            order = sorted(range(len(axes)), key=axes.__getitem__)
            out = out.transpose(0, *(place + 1 for place in order), len(axes) + 1)
        return out.reshape(len(X), -1, self.n_states)

    def _log_table(self, X: Floats, codes: Codes, family: Family | None, free: ParentSet) -> Floats:
        """Return an array (n, configurations of the free inputs, of the other free parents, n_states)."""
        if family is None:
            return np.full((len(X), 1, 1, self.n_states), -math.log(self.n_states))
        fixed = [p for p in family.partition if p not in free]
        if self.backoff and fixed and (codes[:, fixed] == UNKNOWN).any():
            return self._without_unknown(X, codes, family, free, fixed)
        level = self.levels[family]
        part = level.configurations.find(codes, free)
        out = self._own_log_table(level, X, part, codes, family.inputs, free)
        if not self.backoff:
            np.moveaxis(out, 2, 1)[part < 0] = -math.log(self.n_states)
        elif level.kappa is not None or np.isneginf(out).any():
            coarser = self.fewer.get(family)
            columns = level.configurations.columns(() if coarser is None else coarser.partition, free)
            other = self._log_table(X, codes, coarser, free)[:, :, columns]
            weight = np.where(part >= 0, level.weights[part], 0.0)[:, None]
            if level.kappa is None:
                return fill_absent(out, other, weight)
            return shrink(out, other, weight, level.kappa)
        return out

    def _own_log_table(
        self, level: Level, X: Floats, part: Codes, codes: Codes, inputs: ParentSet, free: ParentSet
    ) -> Floats:
        """Return what the models of a level give without back-off."""
        if not inputs:
            return level.models.log_proba(X, part)[:, None]
        free_inputs = {place: self.sizes[p] for place, p in enumerate(inputs) if p in free}
        if not free_inputs:
            return level.models.log_proba(X, part, codes[:, list(inputs)])[:, None]
        return level.models.log_table(X, part, codes[:, list(inputs)], free_inputs)

    def _without_unknown(
        self, X: Floats, codes: Codes, family: Family, free: ParentSet, fixed: Sequence[int]
    ) -> Floats:
        """Return the table of rows with unknown states: each by the models without its unknown parents."""
        patterns, pattern = np.unique(codes[:, fixed] == UNKNOWN, axis=0, return_inverse=True)
        pieces: list[tuple[Codes, Floats]] = []
        for number, unknown in enumerate(patterns):
            rows = np.flatnonzero(pattern.ravel() == number)
            known = family.without(*(p for p, missing in zip(fixed, unknown, strict=True) if missing))
            pieces.append((rows, self._log_table(X[rows], codes[rows], known, free)))
        out = np.empty((len(X), *pieces[0][1].shape[1:]))
        for rows, table in pieces:
            out[rows] = table
        return out


@dataclass(frozen=True)
class Network:
    """All class variables with their local models.

    Attributes
    ----------
    nodes : sequence of Node
    prepares : sequence of Preparation
        For each class variable, how the features, or its expert features, become the inputs of its models.
    sizes : tuple of int
        The number of states of each node.
    experts : ExpertFeatures, optional
        Computes the expert features.
    """

    nodes: Sequence[Node]
    prepares: Sequence[Preparation]
    sizes: tuple[int, ...]
    experts: ExpertFeatures | None = None

    @property
    def class_parents(self) -> list[ParentSet]:
        """The class variables among the parents of each class variable."""
        return [self._parents(k) for k in range(len(self.nodes))]

    def _parents(self, child: int) -> ParentSet:
        return self.nodes[child].family.classes(len(self.nodes))

    @property
    def cells_per_row(self) -> int:
        """The number of cells of the conditional tables of one row."""
        return sum(
            node.n_states * math.prod(self.sizes[p] for p in parents)
            for node, parents in zip(self.nodes, self.class_parents, strict=True)
        )

    def inputs(self, features: Features, expert: Sequence[Floats] | None = None) -> list[Floats]:
        """Return the inputs of the local models of each class variable; `expert` features may be given."""
        numbers = features.numbers()
        if expert is None:
            nothing = [np.empty((len(features), 0))] * len(self.nodes)
            expert = nothing if self.experts is None else self.experts(features)
        shared: dict[int, Floats] = {}
        inputs = []
        for k, prepare in enumerate(self.prepares):
            if self.has_experts(k):
                X = prepare(Features(expert[k], numbers.discrete))
            else:
                if id(prepare) not in shared:
                    shared[id(prepare)] = prepare(numbers)
                X = shared[id(prepare)]
            inputs.append(np.ascontiguousarray(X))
        return inputs

    def has_experts(self, child: int) -> bool:
        """Return whether the local models of a class variable are on expert features."""
        return self.experts is not None and bool(self.experts.order[child])

    def tables(self, features: Features, inputs: Sequence[Floats] | None = None) -> list[Floats]:
        """Return the logarithms of the conditional tables of a batch (Algorithms 4 and 5, lines 2-7).

        There is one array for each class variable, of shape (n, states of its class-variable parents ..., own states):
        the row fixes the features, and class-variable parents run through all their configurations. `inputs` of the
        local models may be given, for example from experts that have not seen the rows.
        """
        inputs = self.inputs(features) if inputs is None else inputs
        return [self._table(k, X, features) for k, X in enumerate(inputs)]

    def table(self, child: int, features: Features, expert: Floats) -> Floats:
        """Return the conditional table of a class variable with given expert features; see `tables`."""
        X = self.prepares[child](Features(expert, features.discrete[:, :0]))
        return self._table(child, np.ascontiguousarray(X), features)

    def _table(self, child: int, X: Floats, features: Features) -> Floats:
        node, parents = self.nodes[child], self._parents(child)
        codes = np.hstack([np.zeros((len(features), len(self.nodes)), dtype=np.int64), features.discrete])
        if self.experts is None or self.experts.conditional(child) is None:
            table = node.table(X, codes, parents)
        else:
            table = self._table_given_parents(child, X, features, codes)
        return table.reshape(len(features), *(self.sizes[p] for p in parents), node.n_states)

    def _table_given_parents(self, child: int, Z: Floats, features: Features, codes: Codes) -> Floats:
        """Return the table of a class variable with experts on the features and its parents.

        Their features are computed for each configuration of the parents, so rows are repeated, a block at a time.
        """
        assert self.experts is not None
        given = self.experts.conditional(child)
        assert given is not None
        node, parents = self.nodes[child], self._parents(child)
        every = self.experts.inputs(features)
        configurations = np.array(list(np.ndindex(*(self.sizes[p] for p in parents))), dtype=np.int64)
        step = max(1, MAX_REPEATED // (len(configurations) * max(1, every.raw.shape[1])))
        blocks = [np.empty((0, len(configurations), node.n_states))]
        for start in range(0, len(Z), step):
            rows = np.repeat(np.arange(start, min(start + step, len(Z))), len(configurations))
            repeated = codes[rows]
            repeated[:, list(parents)] = np.tile(configurations, (len(rows) // len(configurations), 1))
            inputs = np.hstack([Z[rows], given(every.rows(rows), repeated[:, list(given.parents)])])
            blocks.append(node.log_proba(inputs, repeated).reshape(-1, len(configurations), node.n_states))
        return np.concatenate(blocks)
