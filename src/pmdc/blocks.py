"""Blocks: several class variables as one node of the network, whose states are their observed combinations.

A network over blocks is learned like any other. Its tables are then split by the chain rule into tables of the class
variables, P(A, B | pi, x) = P(A | pi, x) P(B | A, pi, x), so that every question and picture is about class variables.

Combinations that no training row has share the probability n1 / (1 + N), where n1 is the number of rows whose
combination no other row has, at least 1. They share it in proportion to the product of the members' frequencies. As a
parent, such a combination has the mean of the tables of those seen, weighted by their frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks, log_sum_exp
from pmdc._support.checks import shorten
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx

MAX_CELLS = 2**10
"""Largest number of combinations, observed or not, of a block that ``blocks="auto"`` tries."""

MAX_COMBINATIONS = 2**20
"""Largest number of combinations, observed or not, of any block."""

MAX_TRIES = 3
"""How many pairs ``blocks="auto"`` tries at most; each costs another fit."""


@dataclass(frozen=True)
class Blocks:
    """A partition of the class variables into blocks.

    Attributes
    ----------
    members : tuple of tuples of int
        The class variables of each block, ascending.
    sizes : tuple of int
        The numbers of states of the class variables.
    combinations : tuple of arrays of shape (n_combinations, n_members)
        The observed combinations of each block, in lexicographic order.
    shares : tuple of arrays of shape (n_combinations,)
        Their frequencies.
    unseen : tuple of arrays
        Log-probability of each combination of states, observed or not, among those not observed; -inf for observed
        ones. Flat, the last member fastest.
    rest : tuple of float
        The probability of all combinations not observed: the share of rows whose combination no other row has (Good
        and Turing's estimate), counted as at least one row.
    """

    members: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    combinations: tuple[Codes, ...]
    shares: tuple[Floats, ...]
    unseen: tuple[Floats, ...]
    rest: tuple[float, ...]

    @classmethod
    def of(cls, members: Sequence[Sequence[int]], rows: TrainingRows) -> Blocks:
        """Find the combinations of each block; class variables in no block are blocks of their own."""
        given = [tuple(sorted(block)) for block in members]
        for block in given:
            if math.prod(rows.class_sizes[k] for k in block) > MAX_COMBINATIONS:
                raise ValueError(
                    f"blocks: {len(block)} class variables together have more than {MAX_COMBINATIONS:,} combinations: "
                    "make smaller blocks."
                )
        alone = [(k,) for k in range(rows.n_classes) if not any(k in block for block in given)]
        every = tuple(sorted([*given, *alone]))
        found, shares, unseen = [], [], []
        for block in every:
            if len(block) == 1:  # all states, with or without rows
                size = rows.class_sizes[block[0]]
                observed = np.arange(size, dtype=np.int64)[:, None]
                share = np.bincount(rows.classes[:, block[0]], rows.weights, size) / rows.weights.sum()
            else:
                observed, number = np.unique(rows.classes[:, list(block)], axis=0, return_inverse=True)
                share = np.bincount(number.ravel(), rows.weights) / rows.weights.sum()
            found.append(observed)
            shares.append(share)
            unseen.append(_unseen(rows, block, observed))
        rest = tuple(_rest(rows, block) for block in every)
        return cls(every, rows.class_sizes, tuple(found), tuple(shares), tuple(unseen), rest)

    @classmethod
    def alone(cls, sizes: Sequence[int]) -> Blocks:
        """Return one block for each class variable."""
        states = tuple(np.arange(size, dtype=np.int64)[:, None] for size in sizes)
        shares = tuple(np.full(size, 1.0 / size) for size in sizes)
        unseen = tuple(np.full(size, -np.inf) for size in sizes)
        return cls(tuple((k,) for k in range(len(sizes))), tuple(sizes), states, shares, unseen, (0.5,) * len(sizes))

    @property
    def n_states(self) -> tuple[int, ...]:
        return tuple(map(len, self.combinations))

    @property
    def n_cells(self) -> tuple[int, ...]:
        """The number of combinations of states of each block, observed or not."""
        return tuple(math.prod(self.sizes[k] for k in block) for block in self.members)

    def names(self, class_names: Sequence[str]) -> list[str]:
        return [" + ".join(class_names[k] for k in block) for block in self.members]

    def check_names(self, class_names: Sequence[str], discrete_names: Sequence[str]) -> None:
        """Raise an error if the name of a block is that of a column."""
        taken = {*class_names, *discrete_names}
        for name, block in zip(self.names(class_names), self.members, strict=True):
            if len(block) > 1 and name in taken:
                raise ValueError(f"blocks: the block {name!r} has the name of a column: rename the column.")

    def merge(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows with the blocks as class variables."""
        columns = []
        for block, observed in zip(self.members, self.combinations, strict=True):
            codes = self._numbers(block, rows.classes[:, list(block)])
            columns.append(np.searchsorted(self._numbers(block, observed), codes))
        return replace(rows, classes=np.column_stack(columns), class_sizes=self.n_states)

    def block_edges(self, edges: Any, class_names: Sequence[str]) -> Any:
        """Return edges between class variables as edges between blocks; those within a block are dropped."""
        if len(self.members) == len(self.sizes) or not isinstance(edges, (list, tuple, set, frozenset)):
            return edges  # nothing to move; what is no list of edges is refused later
        home = {class_names[k]: b for b, block in enumerate(self.members) for k in block}
        names = self.names(class_names)
        moved = [tuple(names[home[v]] if v in home else v for v in edge) for edge in edges]
        return [edge for edge in dict.fromkeys(moved) if len(edge) != 2 or edge[0] != edge[1]]

    def block_tiers(
        self, tiers: Sequence[Collection[str]] | None, class_names: Sequence[str]
    ) -> Sequence[Collection[str]] | None:
        """Return tiers of class variables as tiers of blocks; a block must not be in two of them."""
        if len(self.members) == len(self.sizes) or tiers is None:
            return tiers
        home = {class_names[k]: b for b, block in enumerate(self.members) for k in block}
        names, tier_of = self.names(class_names), dict[str, int]()
        for number, tier in enumerate(tiers):
            for name in tier:
                block = names[home[name]]
                if tier_of.setdefault(block, number) != number:
                    raise ValueError(
                        f"blocks has {block!r}, but tiers has members of it in tiers[{tier_of[block]}] and "
                        f"tiers[{number}]: change one of them."
                    )
        return [[name for name, own in tier_of.items() if own == number] for number in range(len(tiers))]

    def class_parents(self, parents: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """Return the parents of each class variable, given those of each block: also the members before it."""
        out: list[tuple[int, ...]] = [()] * len(self.sizes)
        for block, own in zip(self.members, parents, strict=True):
            above = [k for parent in own for k in self.members[parent]]
            for place, k in enumerate(block):
                out[k] = tuple(sorted((*above, *block[:place])))
        return out

    def split(self, tables: Sequence[Floats], parents: Sequence[Sequence[int]]) -> list[Floats]:
        """Return the tables of the class variables, given those of the blocks with these parents."""
        if len(self.members) == len(self.sizes):
            return list(tables)
        out: list[Floats] = [np.empty(0)] * len(self.sizes)
        for b, (block, own, table) in enumerate(zip(self.members, parents, tables, strict=True)):
            for axis, parent in enumerate(own):
                table = self._spread_parent(table, axis + 1, parent)
            table = self._spread_states(table, b)
            above = [k for parent in own for k in self.members[parent]]
            sizes = [self.sizes[k] for k in above]
            joint = table.reshape(len(table), *sizes, *(self.sizes[k] for k in block))
            for place, k in enumerate(block):
                # P(member | parents, members before it): sum out the members after it, divide by those before it.
                n_axes = 1 + len(above) + place + 1
                after = tuple(range(n_axes, joint.ndim))
                upto = log_sum_exp(joint, after).squeeze(after) if after else joint
                conditional = upto - log_sum_exp(upto)
                variables = [*above, *block[:place]]
                order = sorted(range(len(variables)), key=variables.__getitem__)
                out[k] = conditional.transpose(0, *(place + 1 for place in order), n_axes - 1)
        return out

    def _numbers(self, block: tuple[int, ...], codes: Codes) -> Codes:
        """Return the number of each combination among all, the last member fastest."""
        number = np.zeros(len(codes), dtype=np.int64)
        for place, k in enumerate(block):
            number = number * self.sizes[k] + codes[:, place]
        return number

    def _spread_parent(self, table: Floats, axis: int, parent: int) -> Floats:
        """Replace the observed combinations of a parent by all combinations."""
        block, observed = self.members[parent], self.combinations[parent]
        n_all = math.prod(self.sizes[k] for k in block)
        if len(observed) == n_all:
            return table
        with np.errstate(divide="ignore"):
            weights = np.log(self.shares[parent])
        shape = [1] * table.ndim
        shape[axis] = len(weights)
        mean = log_sum_exp(table + weights.reshape(shape), axis)
        place = np.full(n_all, len(observed))
        place[self._numbers(block, observed)] = np.arange(len(observed))
        return np.take(np.concatenate([table, mean], axis=axis), place, axis=axis)

    def _spread_states(self, table: Floats, b: int) -> Floats:
        """Replace the observed combinations of a block by all combinations, in the last axis."""
        block, observed, unseen = self.members[b], self.combinations[b], self.unseen[b]
        if len(observed) == len(unseen):
            return table
        out = np.broadcast_to(unseen + math.log(self.rest[b]), (*table.shape[:-1], len(unseen))).copy()
        out[..., self._numbers(block, observed)] = table + math.log1p(-self.rest[b])
        return out

    def new_row_log_prob(self, held_out: Floats, rows: TrainingRows) -> Floats:
        """Return the held-out log-probability of each row's outcome as a new row would get it.

        The states of a block are the combinations of all rows, also of the one that is held out. Without it, a
        combination that no other row has would be unseen, so it gets its share of `rest` instead.

        Parameters
        ----------
        held_out : array of shape (n, n_blocks)
            Held-out log-probabilities of the states of the blocks.
        rows : TrainingRows
            Of the class variables.
        """
        total = np.zeros(len(held_out))
        for b, (block, observed, unseen) in enumerate(zip(self.members, self.combinations, self.unseen, strict=True)):
            own = held_out[:, b]
            if len(block) > 1:
                number = self._numbers(block, rows.classes[:, list(block)])
                alone = _alone(number, rows)[number]
                seen = own + (math.log1p(-self.rest[b]) if len(observed) < len(unseen) or alone.any() else 0.0)
                product = _log_products(rows, block)
                others = np.full(1, -np.inf) if len(observed) == len(unseen) else product[np.isfinite(unseen)]
                share = product[number] - np.logaddexp(log_sum_exp(others), product[number])
                own = np.where(alone, math.log(self.rest[b]) + share, seen)
            total += own
        return total

    def named_graph(
        self, graph: networkx.DiGraph, class_names: Sequence[str], block_names: Sequence[str]
    ) -> networkx.DiGraph:
        """Return the graph of the class variables, given that of the blocks."""
        import networkx as nx

        members = {name: [class_names[k] for k in block] for name, block in zip(block_names, self.members, strict=True)}
        out = nx.DiGraph()
        out.add_nodes_from(class_names)
        out.add_nodes_from((one, dict(graph.nodes[name])) for name, own in members.items() for one in own)
        out.add_nodes_from((name, about) for name, about in graph.nodes(data=True) if about["kind"] != "class")
        for block in members.values():
            out.add_edges_from(
                ((a, b) for i, b in enumerate(block) for a in block[:i]), conditioning="block", determined=False
            )
        for parent, child, about in graph.edges(data=True):
            for one in members[child]:
                out.add_edges_from((other, one, dict(about)) for other in members.get(parent, [parent]))
        return out

    def consistent(self, sizes: Sequence[int]) -> bool:
        """Return whether blocks read from a file fit the class variables and each other."""
        return (
            tuple(self.sizes) == tuple(sizes)
            and sorted(k for block in self.members for k in block) == list(range(len(sizes)))
            and len(self.members) == len(self.combinations) == len(self.shares) == len(self.unseen)
            and len(self.rest) == len(self.members)
            and all(type(rest) is float and 0.0 < rest < 1.0 for rest in self.rest)
            and all(
                codes.ndim == 2
                and codes.shape[1] == len(block)
                and len(codes) > 0
                and codes.dtype == np.int64
                and bool(((codes >= 0) & (codes < [sizes[k] for k in block])).all())
                and len(np.unique(codes, axis=0)) == len(codes)
                and (len(block) > 1 or len(codes) == sizes[block[0]])
                and share.shape == (len(codes),)
                and bool((share >= 0).all())
                and unseen.shape == (math.prod(sizes[k] for k in block),)
                and bool((unseen <= 0.0).all())
                for block, codes, share, unseen in zip(
                    self.members, self.combinations, self.shares, self.unseen, strict=True
                )
            )
        )


def _unseen(rows: TrainingRows, block: tuple[int, ...], observed: Codes) -> Floats:
    """Return the log-probability of each combination among those not observed."""
    total, number = _log_products(rows, block), np.zeros(len(observed), dtype=np.int64)
    for place, k in enumerate(block):
        number = number * rows.class_sizes[k] + observed[:, place]
    total[number] = -np.inf
    return total - log_sum_exp(total) if len(observed) < len(total) else total


def _log_products(rows: TrainingRows, block: tuple[int, ...]) -> Floats:
    """Return the log of the product of smoothed frequencies of each combination, the last member fastest."""
    total = np.zeros(1)
    for k in block:
        size = rows.class_sizes[k]
        counts = np.bincount(rows.classes[:, k], rows.weights, size) + 1.0 / size
        total = (total[:, None] + np.log(counts / counts.sum())).ravel()
    return total


def _alone(number: Codes, rows: TrainingRows) -> Marks:
    """Return which combinations, by number, occur in one row of the table only, with a weight of at most 1."""
    n = int(number.max()) + 1
    pairs = np.unique(np.column_stack([number, rows.origin]), axis=0)
    return (np.bincount(pairs[:, 0], minlength=n) == 1) & (np.bincount(number, rows.weights, n) <= 1.0)


def _rest(rows: TrainingRows, block: tuple[int, ...]) -> float:
    number = np.unique(rows.classes[:, list(block)], axis=0, return_inverse=True)[1].ravel()
    alone = float(np.count_nonzero(_alone(number, rows)))
    return max(alone, 1.0) / (1.0 + max(float(rows.weights.sum()), alone))


def read_blocks(given: Any, class_names: Sequence[str]) -> list[tuple[int, ...]]:
    """Read ``blocks`` as given to `GBNC`: lists of class variables, each in at most one block."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ValueError(f"blocks={given!r} must be None, 'auto', or lists of class variables, such as [['a', 'b']].")
    used: dict[str, int] = {}
    out = []
    for place, block in enumerate(given):
        if isinstance(block, str) or not isinstance(block, (Sequence, set, frozenset)) or not block:
            raise ValueError(f"blocks[{place}]={block!r} must be a list of class variables.")
        for name in block:
            if name not in class_names:
                raise ValueError(
                    f"blocks[{place}] names {name!r}, which is not a class variable; they are "
                    f"{shorten(list(class_names))}."
                )
            if used.setdefault(name, place) != place or list(block).count(name) > 1:
                raise ValueError(f"blocks names {name!r} more than once: a class variable is in one block.")
        out.append(tuple(class_names.index(name) for name in block))
    return out


def proposed_blocks(sizes: Sequence[int], arcs: Sequence[tuple[float, int, int]]) -> list[tuple[int, ...]]:
    """Return the blocks that ``blocks="auto"`` tries: all class variables if they are few, then the strongest arcs."""
    out: list[tuple[int, ...]] = []
    every = tuple(range(len(sizes)))
    if len(sizes) > 1 and math.prod(sizes) <= MAX_CELLS:
        out.append(every)
    pairs = [tuple(sorted(pair)) for _, *pair in sorted(arcs, reverse=True)]
    small = [pair for pair in dict.fromkeys(pairs) if pair != every and math.prod(sizes[k] for k in pair) <= MAX_CELLS]
    out += small[:MAX_TRIES]
    return out
