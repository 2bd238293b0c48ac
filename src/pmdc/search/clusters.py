"""Cluster constraints that a solution of the relaxed integer program violates.

A cluster C is a set of class variables. In a DAG one of its members comes first, so at least one takes a parent set
without a member of the cluster. The second has at most one member as a parent, and so on: at least k members take sets
with fewer than k members. A solution, in which class variables may take several sets in part, violates this if

    outside(C, k) = sum of x[i, S] over the members i of C and their sets S that have fewer than k members of C

is less than k. (Cussens, "Bayesian network learning with cutting planes", UAI 2011.) The constraints with k = 1 alone
make a DAG of every whole-numbered solution; those with k = 2 cut off much of what is not whole-numbered.

Three ways to find violated ones, from the quickest to the most thorough: short cycles, clusters that grow and shrink
from these by single class variables, and, for k = 1, the integer program that finds the least outside(C, 1). Only the
last can tell that there is none, if the solution is not whole-numbered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra

from pmdc._support.compiled import compiled

from .problem import members

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

VIOLATION = 1e-5
"""A cluster constraint counts as violated from here on; the solver's own feasibility tolerance is 1e-6."""

_LONGEST_START = 0.5
"""Clusters also grow from cycles that are longer by this than those whose own constraint is violated."""
_STEPS = 100
"""Steps without a better cluster after which its growth ends."""
_REST = 1 / 3
"""For so many steps, as a share of the class variables, one that was added or removed is left alone."""


class Cut(NamedTuple):
    """The constraint that outside(cluster, k) is at least k."""

    cluster: tuple[int, ...]
    k: int = 1


class Columns:
    """The parent sets that a solution chooses from, as arrays: whose each is, and the parents in it."""

    def __init__(self, masks: Sequence[Sequence[int]]):
        self.count = len(masks)
        self.child = np.repeat(np.arange(self.count), [len(row) for row in masks])
        parents = [members(mask) for row in masks for mask in row]
        self.start = np.cumsum([0, *map(len, parents)])
        self.parents = np.array([p for some in parents for p in some], dtype=np.int64)
        self.column = np.repeat(np.arange(len(parents)), np.diff(self.start))  # of each entry of `parents`

    def support(self, values: Floats) -> Support:
        """What is needed of a solution: the columns it takes at all."""
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

    def outside(self, cut: Cut) -> Ints:
        """The columns of a constraint: its members' sets that have fewer than k members."""
        inside = np.zeros(self.count, dtype=bool)
        inside[list(cut.cluster)] = True
        within = np.bincount(self.column[inside[self.parents]], minlength=len(self.child))
        return np.flatnonzero(inside[self.child] & (within < cut.k))


class Support(NamedTuple):
    """The columns that a solution takes, class variable after class variable."""

    n_variables: int
    child: Ints
    value: Floats
    own: Ints
    """Where the columns of each class variable begin."""
    column: Ints
    parent: Ints
    """Together: which column has which parent."""
    with_parent: Ints
    parent_start: Ints
    """The columns that have each class variable as a parent, and where they begin."""

    def weights(self) -> Floats:
        """How much of each edge (parent, child) the solution takes."""
        weights = np.zeros((self.n_variables, self.n_variables))
        np.add.at(weights, (self.parent, self.child[self.column]), self.value[self.column])
        return weights


def by_cycles(support: Support) -> list[Cut]:
    """The members of the shortest cycle through each class variable, where it violates their constraint.

    An edge is as long as its weight falls short of 1. Along a cycle each member takes sets with its
    predecessor to at least the weight of that edge, so the sets without any member of the cycle sum up to its
    length at most: a cycle shorter than 1 violates the constraint of its members. If the weights are 0 and 1,
    every cycle has length 0, and none is overlooked.
    """
    return list(_cycles(support, 1.0 - VIOLATION))


def _cycles(support: Support, longest: float) -> dict[Cut, float]:
    """The shortest cycle through each class variable with its length, shortest first."""
    weights = support.weights()
    parents, children = np.nonzero(weights)
    if not parents.size:
        return {}
    # Not quite 0 for a whole edge, because a graph library may take 0 for no edge.
    lengths = np.maximum(1.0 - weights[parents, children], 1e-12)
    graph = csr_array((lengths, (parents, children)), shape=weights.shape)
    distance, before = dijkstra(graph, return_predecessors=True, limit=longest)

    # Close each shortest path from a child to its parent by the edge back to the child.
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
    """Cycles, and clusters that grow from them; if that gives none, from single edges; then with k = 2.

    With k = 2 they grow from longer cycles and from class variables with the parents they take. From each start, single
    class variables are added or removed: always that which leaves outside(C, k) least. One that was added or removed is
    left alone for some steps, so that the search leaves clusters that no single change makes better. The best cluster
    on the way of each start counts, if its constraint is violated.
    """
    cycles = _cycles(support, 1.0 + _LONGEST_START)
    violated = [cut for cut, length in cycles.items() if length <= 1.0 - VIOLATION]
    found = _grow_all(support, (cut.cluster for cut in cycles), 1)
    if not found:
        edges = zip(support.parent.tolist(), support.child[support.column].tolist(), strict=True)
        found = _grow_all(support, sorted({(min(edge), max(edge)) for edge in edges}), 1)
    if not found and not violated:
        sets: list[set[int]] = [{child} for child in support.child.tolist()]
        for column, parent in zip(support.column.tolist(), support.parent.tolist(), strict=True):
            sets[column].add(parent)
        long = _cycles(support, 2.0 + _LONGEST_START)
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
    """The least outside(C, 1), by an integer program; None if that is no less than 1 or takes too long.

    The second answer is whether it is proved that no constraint with k = 1 is violated.

    One variable for each class variable (it is a member) and one for each column of the solution (it counts as outside,
    which it must if its child is a member and none of its parents is).
    """
    n, m = support.n_variables, len(support.value)
    rows = np.concatenate([np.arange(m), np.arange(m), support.column])
    columns = np.concatenate([n + np.arange(m), support.child, support.parent])
    entries = np.concatenate([np.ones(m), -np.ones(m), np.ones(len(support.column))])
    # counts >= child - sum of parents; two members at least
    counts = LinearConstraint(coo_array((entries, (rows, columns)), shape=(m, n + m)).tocsr(), lb=0.0)
    size = LinearConstraint(np.concatenate([np.ones(n), np.zeros(m)])[None, :], lb=2.0)
    answer = milp(
        np.concatenate([np.zeros(n), support.value]),
        integrality=np.concatenate([np.ones(n), np.zeros(m)]),
        bounds=Bounds(0.0, 1.0),
        constraints=[counts, size],
        options={"time_limit": max(0.0, time_limit)} if time_limit < np.inf else None,
    )
    if not answer.success and answer.status != 1:  # 1 is the limit
        raise RuntimeError(f"the search for a violated cluster ended with {answer.message!r}")
    if answer.x is None or answer.fun >= 1.0 - VIOLATION:
        return None, bool(answer.success)
    return Cut(tuple(np.flatnonzero(answer.x[:n] > 0.5).tolist())), False


@compiled()
def _grow(
    own: Ints,
    value: Floats,
    child: Ints,
    column: Ints,
    parent: Ints,
    with_parent: Ints,
    parent_start: Ints,
    k: int,
    inside: npt.NDArray[np.bool_],
) -> float:
    """The least outside(C, k) on the way from a cluster, which becomes the cluster where it was."""
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
    rest = np.zeros(n, dtype=np.int64)  # the step before which a class variable is left alone
    pause = max(5, int(n * _REST))
    step, last = 0, 0
    while step - last < _STEPS:
        least_change, at = np.inf, -1
        for i in range(n):
            if rest[i] > step or (inside[i] and size <= k + 1):
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
        rest[at] = step + pause
        for e in range(parent_start[at], parent_start[at + 1]):
            within[with_parent[e]] += sign
        if outside < least - 1e-9:
            least, last = outside, step
            best[:] = inside
    inside[:] = best
    return least
