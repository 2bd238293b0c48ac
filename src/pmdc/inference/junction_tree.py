"""Exact inference in a network of class variables, for a batch of rows at once.

A `JunctionTree` is compiled once from the structure and knows what it will cost; it is then run on log
conditional tables, one per class variable and row. Everything happens in log space and without division
(Shafer and Shenoy), so that probabilities of zero and of 1e-300 are as good as any other. The semiring is a
parameter of the elimination: summing gives marginals, maximising gives the most probable outcome.

The tree has one clique for each class variable: the variable that is eliminated there, followed by its
separator, all in elimination order. Three things become simple by this. The message of a clique is always a
reduction over its first axis; a back-pointer is the state of a single variable; and a table fits into a
clique by inserting axes of length one. Inside, rows are the last axis: the inner loops run over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc.columns import Codes, Floats
from pmdc.inference.elimination import greedy_elimination, moral_graph

Semiring = Callable[[Floats, tuple[int, ...]], Floats]
"""How a log potential, which may be overwritten, is reduced over axes; products are always sums of logs."""
Messages = dict[int, Floats]

MEMORY_BUDGET = 2**30
"""Bytes that inference may use besides its input and output, unless told otherwise."""

_CHUNK_BYTES = 2**23
_CHUNK_ROWS = 32
"""Rows are worked on in chunks of about this size: larger ones leave the cache and gain nothing. But an inner
loop runs over the rows of a chunk, so a wide network gets at least so many, if the memory budget allows."""

TOTAL_TOLERANCE = 1e-5
"""How far from one the probability of a row may add up: enough for tables that once were float32."""


class NetworkTooWideError(ValueError):
    """Exact inference in this network needs more memory for a single row than the budget allows."""


@dataclass(frozen=True)
class Clique:
    """The clique in which one class variable is eliminated, and its place in the tree."""

    scope: tuple[int, ...]
    """The eliminated class variable, then its separator, in elimination order."""
    parent: int | None
    children: tuple[int, ...]
    families: tuple[int, ...]
    """The class variables whose conditional tables are multiplied in here."""

    @property
    def separator(self) -> tuple[int, ...]:
        return self.scope[1:]


class JunctionTree:
    """A junction tree over class variables, compiled once and run on batches of conditional tables.

    Parameters
    ----------
    sizes : sequence of int
        The number of states of each class variable.
    parents : sequence of tuples of int
        The parents of each class variable, as indices.
    memory_budget : int
        Bytes that may be used besides input and output. Rows are worked on in chunks that fit into it.

    Attributes
    ----------
    order : tuple of int
        The elimination order: the cheaper one of min-fill and min-weight.
    cliques : tuple of Clique
        The clique of each class variable.
    width : int
        The size of the largest clique, less one.
    bytes_per_row : int
        The memory that one row takes at the peak, besides input and output.

    Raises
    ------
    NetworkTooWideError
        If one row alone does not fit into the memory budget.

    Examples
    --------
    >>> import numpy as np
    >>> tree = JunctionTree(sizes=[2, 2], parents=[(), (0,)])
    >>> tree.width
    1
    >>> tables = [np.log([[0.4, 0.6]]), np.log([[[0.5, 0.5], [0.25, 0.75]]])]
    >>> tree.marginals(tables)[1]
    array([[0.35, 0.65]])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        parents: Sequence[tuple[int, ...]],
        *,
        memory_budget: int = MEMORY_BUDGET,
    ):
        self.sizes = tuple(int(size) for size in sizes)
        self.parents = tuple(tuple(int(p) for p in members) for members in parents)
        self.memory_budget = int(memory_budget)
        _check_structure(self.sizes, self.parents)
        scopes = greedy_elimination(self.sizes, moral_graph(self.parents))
        self.order = tuple(scopes)
        self._position = {variable: i for i, variable in enumerate(self.order)}
        families = ((*members, k) for k, members in enumerate(self.parents))
        self._families = tuple(tuple(sorted(f, key=self._position.__getitem__)) for f in families)
        self.cliques = self._assemble(scopes)
        self.width = max(len(scope) for scope in scopes.values()) - 1
        self.bytes_per_row = self._count_bytes()
        self._refuse_too_wide()

    def _assemble(self, scopes: dict[int, tuple[int, ...]]) -> tuple[Clique, ...]:
        # A separator is handed to the clique of its first member: all the others are still there.
        parent = {variable: scope[1] for variable, scope in scopes.items() if len(scope) > 1}
        children: dict[int, list[int]] = {variable: [] for variable in scopes}
        for variable, above in parent.items():
            children[above].append(variable)
        families: dict[int, list[int]] = {variable: [] for variable in scopes}
        for k, family in enumerate(self._families):
            families[family[0]].append(k)
        return tuple(Clique(scopes[v], parent.get(v), tuple(children[v]), tuple(families[v])) for v in sorted(scopes))

    def _cells(self, scope: Iterable[int]) -> int:
        return prod(self.sizes[variable] for variable in scope)

    def _count_bytes(self) -> int:
        tables = sum(self._cells(family) for family in self._families)
        messages = sum(self._cells(clique.separator) for clique in self.cliques)
        largest = max(self._cells(clique.scope) for clique in self.cliques)
        # Messages go both ways (or one way with back-pointers). While a clique is reduced, which takes up to
        # one and a half times its own size (two states), the one before it may still be there.
        return 8 * (tables + 2 * messages + 4 * largest)

    def _refuse_too_wide(self) -> None:
        if self.bytes_per_row > self.memory_budget:
            raise NetworkTooWideError(
                f"Exact inference in this network of {len(self.sizes)} class variables has width "
                f"{self.width} (a table over {self.width + 1} class variables) and needs "
                f"{self.bytes_per_row:,} bytes for each row; memory_budget is {self.memory_budget:,} bytes. "
                "Learn a sparser network by lowering max_parents, merge rare states of class variables that "
                "have many, or raise memory_budget."
            )

    def __repr__(self) -> str:
        cost = f"width={self.width}, bytes_per_row={self.bytes_per_row}"
        return f"JunctionTree({len(self.sizes)} class variables, {cost})"

    # Questions ---------------------------------------------------------------------------------------------

    def marginals(self, tables: Sequence[Floats]) -> list[Floats]:
        """The distribution of each class variable, in each row.

        Parameters
        ----------
        tables : list of K arrays of shape (n_rows, *sizes of the parents, size)
            Log conditional probabilities of each class variable given its parents.

        Returns
        -------
        list of K arrays of shape (n_rows, size)

        Raises
        ------
        ValueError
            If the probabilities of some row do not add up to one.
        """
        return self._beliefs(tables, [(variable,) for variable in range(len(self.sizes))])

    def family_marginals(self, tables: Sequence[Floats]) -> list[Floats]:
        """The joint distribution of each class variable and its parents, in the shape of `tables`."""
        return self._beliefs(tables, [(*members, k) for k, members in enumerate(self.parents)])

    def mode(self, tables: Sequence[Floats]) -> tuple[Codes, Floats]:
        """The most probable outcome of each row, and its log probability.

        Ties are broken by the elimination order: from its last class variable to its first, each takes the
        first of its states that is best together with those already chosen. In a network without edges this
        is the first of the most probable states of each class variable. That probabilities add up to one is
        not checked here: maximising does not see the total.
        """
        n_rows = check_tables(self.sizes, self.parents, tables)
        codes = np.empty((n_rows, len(self.sizes)), dtype=np.int64)
        for rows in self._chunks(n_rows):
            codes[rows] = self._mode_chunk(self._factors(tables, rows))
        log_prob = outcome_log_prob(self.parents, tables, codes)
        if np.isneginf(log_prob).any():
            raise ValueError(f"In row {np.argmin(log_prob)} every outcome has probability zero.")
        return codes, log_prob

    # One chunk of rows -------------------------------------------------------------------------------------

    def _chunks(self, n_rows: int) -> Iterator[slice]:
        wanted = max(_CHUNK_BYTES // self.bytes_per_row, _CHUNK_ROWS)
        step = min(wanted, self.memory_budget // self.bytes_per_row)
        return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))

    def _factors(self, tables: Sequence[Floats], rows: slice) -> list[Floats]:
        """The tables of these rows with axes in elimination order, rows last."""
        factors = []
        for k, (table, family) in enumerate(zip(tables, self._families, strict=True)):
            axis = {variable: i for i, variable in enumerate((*self.parents[k], k), start=1)}
            factor = np.transpose(table[rows], (*(axis[variable] for variable in family), 0))
            if not np.all(factor <= TOTAL_TOLERANCE):
                raise ValueError(f"tables[{k}] holds NaN or a probability above one: give log probabilities.")
            factors.append(np.ascontiguousarray(factor, dtype=np.float64))
        return factors

    def _inserted(self, factor: Floats, scope: tuple[int, ...], clique: Clique) -> Floats:
        """A factor with axes of length one where the clique has variables that its scope has not."""
        return factor.reshape(*(self.sizes[v] if v in scope else 1 for v in clique.scope), -1)

    def _product(
        self,
        clique: Clique,
        factors: list[Floats],
        upward: Messages,
        downward: Messages,
        skip: int | None = None,
    ) -> Floats:
        """The product of the tables in a clique and the messages to it, but for that of one child."""
        potential = np.zeros((*(self.sizes[v] for v in clique.scope), factors[0].shape[-1]))
        for k in clique.families:
            potential += self._inserted(factors[k], self._families[k], clique)
        for child in clique.children:
            if child != skip:
                potential += self._inserted(upward[child], self.cliques[child].separator, clique)
        if clique.scope[0] in downward:
            potential += downward[clique.scope[0]]  # over the separator, that is all axes but the first
        return potential

    def _collect(self, factors: list[Floats], semiring: Semiring) -> Messages:
        """Messages towards the roots; the message of a root is the log total of its part of the network."""
        upward: Messages = {}
        for variable in self.order:
            upward[variable] = semiring(self._product(self.cliques[variable], factors, upward, {}), (0,))
        return upward

    def _distribute(
        self, factors: list[Floats], upward: Messages, semiring: Semiring
    ) -> Iterator[tuple[Clique, Floats]]:
        """Send messages back from the roots, and give each clique with its final log potential on the way."""
        downward: Messages = {}
        for variable in reversed(self.order):
            clique = self.cliques[variable]
            for child in clique.children:
                axes = self._axes_without(clique, self.cliques[child].separator)
                downward[child] = semiring(self._product(clique, factors, upward, downward, child), axes)
            yield clique, self._product(clique, factors, upward, downward)
            downward.pop(variable, None)

    @staticmethod
    def _axes_without(clique: Clique, kept: Sequence[int]) -> tuple[int, ...]:
        return tuple(axis for axis, variable in enumerate(clique.scope) if variable not in kept)

    def _beliefs(self, tables: Sequence[Floats], targets: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Joint distributions over target variables, each of which must lie within one family."""
        n_rows = check_tables(self.sizes, self.parents, tables)
        results = [np.empty((n_rows, *(self.sizes[v] for v in target))) for target in targets]
        # The clique of the first eliminated variable of a family holds all of it.
        home: dict[int, list[int]] = {}
        for i, target in enumerate(targets):
            home.setdefault(min(target, key=self._position.__getitem__), []).append(i)
        for rows in self._chunks(n_rows):
            factors = self._factors(tables, rows)
            upward = self._collect(factors, log_sum)
            self._check_totals(upward, rows)
            for clique, potential in self._distribute(factors, upward, log_sum):
                if clique.scope[0] in home:
                    belief = _probabilities(potential)
                    for i in home[clique.scope[0]]:
                        results[i][rows] = self._projected(belief, clique, targets[i])
        return results

    def _projected(self, belief: Floats, clique: Clique, target: tuple[int, ...]) -> Floats:
        """Sum a clique's probabilities down to some of its variables; rows become the first axis."""
        table = belief.sum(axis=self._axes_without(clique, target))
        table /= table.sum(axis=tuple(range(len(target))))
        kept = [variable for variable in clique.scope if variable in target]
        return np.transpose(table, (len(kept), *(kept.index(variable) for variable in target)))

    def _check_totals(self, upward: Messages, rows: slice) -> None:
        """No evidence is given, so the probabilities in each part of the network must add up to one."""
        roots = [variable for variable in self.order if self.cliques[variable].parent is None]
        log_totals = np.stack([upward[root] for root in roots])
        wrong = np.argwhere(np.abs(log_totals) > TOTAL_TOLERANCE)
        if len(wrong):
            part, row = wrong[0]
            with np.errstate(over="ignore"):
                total = np.exp(log_totals[part, row])
            raise ValueError(
                f"The probabilities of row {rows.start + row} add up to {total:.6g}: for each configuration "
                "of the parents, the probabilities in a table must add up to one."
            )

    def _mode_chunk(self, factors: list[Floats]) -> Codes:
        pointers: list[npt.NDArray[Any]] = []

        def maximise(potential: Floats, axes: tuple[int, ...]) -> Floats:
            best, pointer = _first_maximum(potential)
            pointers.append(pointer)
            return best

        self._collect(factors, maximise)
        n_rows = factors[0].shape[-1]
        codes = np.empty((n_rows, len(self.sizes)), dtype=np.int64)
        every = np.arange(n_rows)
        for variable, pointer in zip(reversed(self.order), reversed(pointers), strict=True):
            chosen = tuple(codes[:, v] for v in self.cliques[variable].separator)
            codes[:, variable] = pointer[(*chosen, every)]
        return codes


# Log-space arithmetic -------------------------------------------------------------------------------------


def log_sum(potential: Floats, axes: tuple[int, ...]) -> Floats:
    """Logarithm of the sum of exponentials over some axes; overwrites its argument."""
    if all(potential.shape[axis] == 1 for axis in axes):
        return potential.squeeze(axes)
    largest = potential.max(axis=axes, keepdims=True)
    largest[np.isneginf(largest)] = 0.0  # an impossible configuration: -inf less -inf would be NaN
    potential -= largest
    with np.errstate(divide="ignore", under="ignore"):
        np.exp(potential, out=potential)
        total = np.log(potential.sum(axis=axes))
    total += largest.reshape(total.shape)
    return total


def _probabilities(potential: Floats) -> Floats:
    """A log potential scaled to probabilities that add up to one in each row; overwrites its argument."""
    axes = tuple(range(potential.ndim - 1))
    potential -= potential.max(axis=axes)
    with np.errstate(under="ignore"):
        np.exp(potential, out=potential)
        potential /= potential.sum(axis=axes)
    return potential


def _first_maximum(potential: Floats) -> tuple[Floats, npt.NDArray[Any]]:
    """The maximum over the first axis and where it is attained first.

    State by state rather than by `argmax`, which would first move the axis to the end.
    """
    best = potential[0].copy()
    pointer = np.zeros(best.shape, dtype=np.min_scalar_type(len(potential) - 1))
    for state in range(1, len(potential)):
        better = potential[state] > best
        pointer[better] = state
        np.maximum(best, potential[state], out=best)
    return best, pointer


def outcome_log_prob(parents: Sequence[tuple[int, ...]], tables: Sequence[Floats], codes: Codes) -> Floats:
    """Log probability of one outcome for each row: the sum of its entries in the tables."""
    every = np.arange(len(codes))
    total = np.zeros(len(codes))
    for k, table in enumerate(tables):
        total += table[(every, *(codes[:, p] for p in parents[k]), codes[:, k])]
    return total


# Checks ---------------------------------------------------------------------------------------------------


def _check_structure(sizes: tuple[int, ...], parents: tuple[tuple[int, ...], ...]) -> None:
    if not sizes or min(sizes) < 1:
        raise ValueError(f"sizes={sizes}: give at least one class variable, each with at least one state.")
    if len(parents) != len(sizes):
        raise ValueError(f"parents has {len(parents)} entries, one is needed for each of {len(sizes)} variables.")
    for k, members in enumerate(parents):
        if len({*members, k}) != len(members) + 1 or not all(0 <= p < len(sizes) for p in members):
            raise ValueError(
                f"parents[{k}]={members}: give distinct indices of other class variables, below {len(sizes)}."
            )


def check_tables(sizes: Sequence[int], parents: Sequence[tuple[int, ...]], tables: Sequence[Floats]) -> int:
    """The number of rows, after comparing the shape of each conditional table with the structure."""
    if len(tables) != len(sizes):
        raise ValueError(f"{len(tables)} conditional tables given, one is needed for each of {len(sizes)} variables.")
    n_rows = len(tables[0])
    for k, table in enumerate(tables):
        shape = (n_rows, *(sizes[p] for p in parents[k]), sizes[k])
        if table.shape != shape:
            raise ValueError(
                f"The conditional table of class variable {k} has shape {table.shape}; by its parents "
                f"{tuple(parents[k])} it must be {shape}."
            )
    return n_rows
