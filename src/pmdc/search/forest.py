"""The best DAG in which no class variable has more than one parent (a directed Chow-Liu tree).

With a root that stands for "no parent", such a DAG is an arborescence, and the best one has the least total regret.
(Edmonds, "Optimum branchings", 1967.)

1. Each class variable takes its cheapest parent. Without a cycle this is the answer.
2. Contract each cycle to one node. An edge into it costs what it costs more than the edge of the cycle that it
   replaces.
3. Solve the contracted problem, and open the cycles where its edges enter.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats

from .problem import Problem, SearchResult, members
from .progress import SearchState


def best_forest(problem: Problem, first: SearchResult, state: SearchState) -> SearchResult:
    """Return the best DAG in which no class variable has more than one parent."""
    ranks = forest_ranks(problem)
    if ranks is None:
        rooted = [0 in row for row in problem.masks]
        single = [any(mask.bit_count() < 2 for mask in row) for row in problem.masks]
        name = problem.names[single.index(False) if not all(single) else rooted.index(False)]
        raise ValueError(
            f"method='tree' finds no DAG in which {name!r} has at most one parent: add the empty set or single-parent "
            f"sets to scores[{name!r}], or use another method."
        )
    return SearchResult(ranks, first.least_regret, "unproved")


def forest_ranks(problem: Problem) -> list[int] | None:
    """Return the best DAG in which no class variable has more than one parent, or None if there is none."""
    root = len(problem.names)
    cost = np.full((root + 1, root + 1), np.inf)
    rank_of = np.full((root + 1, root), -1)
    for child, row in enumerate(problem.masks):
        for rank, mask in enumerate(row):
            if mask.bit_count() < 2:
                parent = members(mask)[0] if mask else root
                cost[parent, child], rank_of[parent, child] = problem.regrets[child][rank], rank
    parents = arborescence(cost)
    return None if parents is None else rank_of[parents[:root], np.arange(root)].tolist()


def arborescence(cost: Floats) -> Codes | None:
    """Return the parent of each node in an arborescence of least cost, None if there is none.

    ``cost[parent, child]`` is infinite where there is no edge. The last node is the root, its own parent.
    """
    root = len(cost) - 1
    parent = cost.argmin(axis=0)
    parent[root] = root
    least = cost[parent, np.arange(root + 1)]
    least[root] = 0.0
    if np.isinf(least).any():
        return None
    label = _contract(parent)
    if label[root] == root:
        return parent
    # The cheapest edge from each node of the contracted problem to each other one.
    inside = np.bincount(label)[label] > 1
    reduced = cost - np.where(inside, least, 0.0)
    by_label = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[by_label], np.arange(label[root] + 1))
    between = np.minimum.reduceat(reduced[by_label][:, by_label], starts, axis=0)
    between = np.minimum.reduceat(between, starts, axis=1)
    np.fill_diagonal(between, np.inf)
    above = arborescence(between)
    if above is None:
        return None
    for child, source in enumerate(above[:-1]):
        heads, tails = np.flatnonzero(label == child), np.flatnonzero(label == source)
        edges = reduced[np.ix_(tails, heads)]
        tail, head = np.unravel_index(edges.argmin(), edges.shape)
        parent[heads[head]] = tails[tail]
    return parent


def _contract(parent: Codes) -> Codes:
    """Return the node of the contracted problem for each node: that of its cycle or its own; the root is the last."""
    count = len(parent)
    on_cycle = np.arange(count)
    # After as many steps as there are nodes, every walk is on a cycle; the root is a cycle of one.
    step, jumps = parent.copy(), 1
    while jumps < count:
        step, jumps = step[step], 2 * jumps
    label = np.full(count, -1)
    names = 0
    for node in np.unique(step[on_cycle]).tolist():
        if node != count - 1 and label[node] < 0:
            while label[node] < 0:
                label[node] = names
                node = parent[node]
            names += 1
    for node in range(count):
        if label[node] < 0:
            label[node], names = names, names + 1
    return label
