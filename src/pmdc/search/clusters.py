"""Cluster constraints that a solution of the relaxed integer program violates.

A cluster C is a set of class variables. In the order of a DAG, the first member of C has no parent in C, the second has
at most one, and so on: at least k members take parent sets with fewer than k members of C. A fractional solution x of
the LP relaxation violates this if

    outside(C, k) = sum of x[i, S] over the members i of C and their sets S that have fewer than k members of C

is less than k. (Cussens, "Bayesian network learning with cutting planes", UAI 2011.) With k = 1 the constraints exclude
every cycle of an integral solution; with k = 2 they also cut off many fractional ones.

Violated constraints are found in three ways, from the fastest to the most thorough: short cycles; local search from
these, adding and removing single class variables; and, for k = 1, the integer program that minimises outside(C, 1).
Only the last can prove that there is none, if the solution is fractional.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.compiled import compiled

from .problem import members

VIOLATION = 1e-5
"""Least violation of a cut; the feasibility tolerance of the solver is 1e-6."""

_EXTRA_LENGTH = 0.5
"""The local search also starts from cycles that are longer by this than those that violate their own constraint."""
_PATIENCE = 100
"""Stop the local search after so many steps without improvement."""
_TABU = 1 / 3
"""A class variable that was added or removed is not changed for so many steps, as a share of the class variables."""


class Cut(NamedTuple):
    """The constraint that outside(cluster, k) is at least k."""

    cluster: tuple[int, ...]
    k: int = 1


class Columns:
    """The columns of the integer program as arrays: the child and the parents of each parent set."""

    def __init__(self, masks: Sequence[Sequence[int]]):
        self.count = len(masks)
        self.child = np.repeat(np.arange(self.count), [len(row) for row in masks])
        parents = [members(mask) for row in masks for mask in row]
        self.parents = np.array([p for each in parents for p in each], dtype=np.int64)
        self.column = np.repeat(np.arange(len(parents)), [len(each) for each in parents])  # of each parent

    def support(self, values: Floats) -> Support:
        """Return the columns that are positive in a solution."""
        taken = np.flatnonzero(values > 1e-9)
        entries = np.flatnonzero(values[self.column] > 1e-9)
        place = np.empty(len(values), dtype=np.int64)
        place[taken] = np.arange(len(taken))
        column, parent = place[self.column[entries]], self.parents[entries]
        by_parent = np.argsort(parent, kind="stable")
        return Support(
            n_variables=self.count,
            child=self.child[taken],
            value=values[taken],
            own=np.searchsorted(self.child[taken], np.arange(self.count + 1)),
            column=column,
            parent=parent,
            with_parent=column[by_parent],
            parent_start=np.searchsorted(parent[by_parent], np.arange(self.count + 1)),
        )

    def outside(self, cut: Cut) -> Codes:
        """Return the columns of a constraint: the members' parent sets with fewer than k members."""
        inside = np.zeros(self.count, dtype=bool)
        inside[list(cut.cluster)] = True
        within = np.bincount(self.column[inside[self.parents]], minlength=len(self.child))
        return np.flatnonzero(inside[self.child] & (within < cut.k))


class Support(NamedTuple):
    """The columns that are positive in a solution, ordered by class variable."""

    n_variables: int
    child: Codes
    value: Floats
    own: Codes
    """Index of the first column of each class variable."""
    column: Codes
    parent: Codes
    """`column` and `parent` together: which column has which parent."""
    with_parent: Codes
    parent_start: Codes
    """The columns that have each class variable as a parent, and the index of the first."""

    def weights(self) -> Floats:
        """Return the weight of each edge (parent, child) in the solution."""
        weights = np.zeros((self.n_variables, self.n_variables))
        np.add.at(weights, (self.parent, self.child[self.column]), self.value[self.column])
        return weights


def by_cycles(support: Support) -> list[Cut]:
    """Return the violated constraints among the shortest cycles through each class variable.

    The length of an edge is 1 minus its weight. On a cycle, the sets without any member of the cycle sum up to at most
    the length of the cycle, so a cycle shorter than 1 violates the constraint of its members. In an integral solution
    every cycle has length 0, so none is missed.
    """
    return list(_cycles(support, 1.0 - VIOLATION))


def _cycles(support: Support, longest: float) -> dict[Cut, float]:
    """Return the shortest cycle through each class variable with its length, shortest first."""
    weights = support.weights()
    parents, children = np.nonzero(weights)
    if not parents.size:
        return {}
    # Positive, because scipy treats 0 as no edge.
    lengths = np.maximum(1.0 - weights[parents, children], 1e-12)
    # scipy before 1.14 needs indices of 32 bits here.
    graph = csr_array((lengths, (parents.astype(np.int32), children.astype(np.int32))), shape=weights.shape)
    distance, before = dijkstra(graph, return_predecessors=True, limit=longest)

    # Close each shortest path from a child to its parent with the edge back to the child.
    cycle_lengths = distance[children, parents] + lengths
    cuts: dict[Cut, float] = {}
    closed = set()
    for edge in np.argsort(cycle_lengths, kind="stable"):
        if cycle_lengths[edge] > longest:
            break
        child, position = int(children[edge]), int(parents[edge])
        if child in closed:
            continue
        closed.add(child)
        cluster = [child]
        while position != child:
            cluster.append(position)
            position = int(before[child, position])
        cuts.setdefault(Cut(tuple(sorted(cluster))), float(cycle_lengths[edge]))
    return cuts


def by_growth(support: Support) -> list[Cut]:
    """Return violated constraints found by cycles and by a tabu search from them.

    The starts are cycles; if these give nothing, single edges; then, with k = 2, longer cycles and class variables with
    their parents. Each step adds or removes the class variable that makes outside(C, k) least; it is then not changed
    for some steps, so that the search leaves local optima. The best cluster of each start is returned if its constraint
    is violated.
    """
    cycles = _cycles(support, 1.0 + _EXTRA_LENGTH)
    violated = [cut for cut, length in cycles.items() if length <= 1.0 - VIOLATION]
    found = _grow_all(support, (cut.cluster for cut in cycles), 1)
    if not found:
        edges = zip(support.parent.tolist(), support.child[support.column].tolist(), strict=True)
        found = _grow_all(support, sorted({(min(edge), max(edge)) for edge in edges}), 1)
    if not found and not violated:
        sets: list[set[int]] = [{child} for child in support.child.tolist()]
        for column, parent in zip(support.column.tolist(), support.parent.tolist(), strict=True):
            sets[column].add(parent)
        long = _cycles(support, 2.0 + _EXTRA_LENGTH)
        starts = {tuple(sorted(members)) for members in sets} | {cut.cluster for cut in long}
        found = _grow_all(support, sorted(start for start in starts if len(start) > 2), 2)
    return list(dict.fromkeys([*found, *violated]))


def _grow_all(support: Support, starts: Iterable[tuple[int, ...]], k: int) -> list[Cut]:
    found: dict[Cut, float] = {}
    for start in starts:
        inside = np.zeros(support.n_variables, dtype=np.bool_)
        inside[list(start)] = True
        value = _grow(
            support.own,
            support.value,
            support.child,
            support.column,
            support.parent,
            support.with_parent,
            support.parent_start,
            k,
            inside,
        )
        if value < k - VIOLATION:
            found[Cut(tuple(np.flatnonzero(inside).tolist()), k)] = value
    return sorted(found, key=lambda cut: (found[cut], cut))


def by_program(support: Support, time_limit: float = np.inf) -> tuple[Cut | None, bool]:
    """Minimise outside(C, 1) by an integer program; return the cut, or None if there is none or the time is over.

    The second value says whether it is proved that no constraint with k = 1 is violated.

    There is one variable for each class variable (it is a member) and one for each column of the solution (it counts as
    outside: its child is a member and none of its parents is).
    """
    n, m = support.n_variables, len(support.value)
    rows = np.concatenate([np.arange(m), np.arange(m), support.column])
    columns = np.concatenate([n + np.arange(m), support.child, support.parent])
    entries = np.concatenate([np.ones(m), -np.ones(m), np.ones(len(support.column))])
    # counts >= child - sum of parents; at least two members
    counts = LinearConstraint(coo_array((entries, (rows, columns)), shape=(m, n + m)).tocsr(), lb=0.0)
    size = LinearConstraint(np.concatenate([np.ones(n), np.zeros(m)])[None, :], lb=2.0)
    answer = milp(
        np.concatenate([np.zeros(n), support.value]),
        integrality=np.concatenate([np.ones(n), np.zeros(m)]),
        bounds=Bounds(0.0, 1.0),
        constraints=[counts, size],
        options={"time_limit": max(0.0, time_limit)} if time_limit < np.inf else None,
    )
    if not answer.success and answer.status != 1:  # 1: time limit
        raise RuntimeError(f"the integer program for violated clusters failed: {answer.message!r}")
    if answer.x is None or answer.fun >= 1.0 - VIOLATION:
        return None, bool(answer.success)
    return Cut(tuple(np.flatnonzero(answer.x[:n] > 0.5).tolist())), False


@compiled()
def _grow(
    own: Codes,
    value: Floats,
    child: Codes,
    column: Codes,
    parent: Codes,
    with_parent: Codes,
    parent_start: Codes,
    k: int,
    inside: Marks,
) -> float:
    """Search from a cluster; return the least outside(C, k) found and set `inside` to its cluster."""
    n = len(inside)
    within = np.zeros(len(value), dtype=np.int64)  # members of the cluster among the parents of each column
    for entry in range(len(column)):
        if inside[parent[entry]]:
            within[column[entry]] += 1
    size = 0
    outside = 0.0
    for i in range(n):
        if inside[i]:
            size += 1
            for c in range(own[i], own[i + 1]):
                if within[c] < k:
                    outside += value[c]
    least, best = outside, inside.copy()
    tabu = np.zeros(n, dtype=np.int64)  # the step before which a class variable is not changed
    pause = max(5, int(n * _TABU))
    step, last = 0, 0
    while step - last < _PATIENCE:
        least_change, at = np.inf, -1
        for i in range(n):
            if tabu[i] > step or (inside[i] and size <= k + 1):
                continue
            change = 0.0
            for c in range(own[i], own[i + 1]):
                if within[c] < k:
                    change += value[c]
            if inside[i]:
                change = -change
            bar = k if inside[i] else k - 1
            for e in range(parent_start[i], parent_start[i + 1]):
                c = with_parent[e]
                if within[c] == bar and inside[child[c]]:
                    change += value[c] if inside[i] else -value[c]
            if change < least_change:
                least_change, at = change, i
        if at < 0:
            break
        step += 1
        outside += least_change
        sign = -1 if inside[at] else 1
        size += sign
        inside[at] = not inside[at]
        tabu[at] = step + pause
        for e in range(parent_start[at], parent_start[at + 1]):
            within[with_parent[e]] += sign
        if outside < least - 1e-9:
            least, last = outside, step
            best[:] = inside
    inside[:] = best
    return least
