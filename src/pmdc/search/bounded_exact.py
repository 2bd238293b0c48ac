"""The best DAG within limits by branch and bound, for few class variables.

Each node is a problem without limits, solved by dynamic programming, with two kinds of constraints: parents that a
class variable must have, and sets of parents that it must not have together.

1. Take the node of least regret. If its best DAG is within the limits, no other DAG within them is better.
2. Otherwise find a conflict: as few parents as possible, for as few class variables as possible, whose moral graph
   alone exceeds the limits. Every DAG within the limits lacks some of them.
3. Branch on the first class variable that does: those before it have all their parents of the conflict, it has not.

The constraints of a conflict also exclude every larger set of parents. This is what keeps the tree small: excluding one
whole DAG at a time would enumerate the DAGs by score. The regret of the best open node bounds that of every DAG.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from .bounded_start import Bounded, chosen
from .chordal import exact_order, moral_graph
from .dynamic_programming import NUMPY_LIMIT, best_dag
from .limits import Limits
from .problem import Problem, members

_MAX_NODES = 1000
"""About ten seconds with twelve class variables."""
_MAX_SUBSETS = 2**28
"""Subsets in all dynamic programs, about ten seconds; those of numpy count as 32, because they take longer."""


class Outcome(NamedTuple):
    """The result of branch and bound."""

    best: Bounded | None
    """The best DAG within the limits, if it was found."""
    least_regret: float
    """A lower bound on the regret of every DAG within the limits; infinity if there is none."""


class Constraints(NamedTuple):
    """What distinguishes a node."""

    needed: list[int]
    """The parents that each class variable must have."""
    banned: list[tuple[int, ...]]
    """The sets of parents that each class variable must not have together."""


class _Node(NamedTuple):
    regret: float
    number: int
    """Nodes of equal regret are taken in the order of their creation."""
    ranks: list[int]
    constraints: Constraints


def solve(problem: Problem, limits: Limits, most: float, stop: Callable[[float], str]) -> Outcome:
    """Return the best DAG within the limits if its regret is below `most`, otherwise a bound.

    `stop` takes the lower bound so far and returns why to stop, or "".
    """
    count = len(problem.names)
    max_nodes = min(_MAX_NODES, _MAX_SUBSETS >> (count if count > NUMPY_LIMIT else count + 5))
    least, n_nodes = 0.0, 0
    waiting: list[_Node] = []
    branches = iter([Constraints([0] * count, [()] * count)])
    while True:
        for constraints in branches:
            ranks, reason = _best_with(problem, constraints, partial(stop, least))
            if reason:
                return Outcome(None, least)
            n_nodes += 1
            if ranks is not None and (regret := problem.total_regret(ranks)) < most:
                heapq.heappush(waiting, _Node(max(least, regret), n_nodes, ranks, constraints))
        if not waiting:
            return Outcome(None, most)
        node = heapq.heappop(waiting)
        least = node.regret
        order, certain = exact_order(moral_graph(chosen(problem, node.ranks)), limits)
        if order is not None:
            return Outcome(Bounded(node.ranks, order), problem.total_regret(node.ranks))
        if not certain or n_nodes >= max_nodes or stop(least):
            return Outcome(None, least)
        branches = _branches(problem, limits, node)


def _best_with(problem: Problem, constraints: Constraints, stop: Callable[[], str]) -> tuple[list[int] | None, str]:
    """Return the best DAG under constraints, None if there is none; and why to stop, or ""."""
    kept = [
        [rank for rank, mask in enumerate(row) if not needed & ~mask and all(each & ~mask for each in banned)]
        for row, needed, banned in zip(problem.masks, *constraints, strict=True)
    ]
    if not all(kept):
        return None, ""
    ranks, reason = best_dag(problem.select(kept), stop)
    return ranks and [row[rank] for row, rank in zip(kept, ranks, strict=True)], reason


def _branches(problem: Problem, limits: Limits, node: _Node) -> Iterator[Constraints]:
    """Yield the constraints of the branches for a node whose best DAG exceeds the limits."""
    families = chosen(problem, node.ranks)
    costs = [_cost_without(problem, child, rank) for child, rank in enumerate(node.ranks)]
    conflict = _conflict(limits, families, costs)
    needed, banned = list(node.constraints.needed), node.constraints.banned
    # The most expensive class variables first: the later ones need what was excluded before.
    for child in sorted(range(len(families)), key=lambda child: -costs[child]):
        if not conflict[child] & ~needed[child]:
            continue
        if not _exceeds(limits, needed):
            yield Constraints(list(needed), [*banned[:child], (*banned[child], conflict[child]), *banned[child + 1 :]])
        needed[child] |= conflict[child]


def _cost_without(problem: Problem, child: int, rank: int) -> float:
    """Return the regret added when a class variable takes a set that lacks some of its parents."""
    mask, regrets = problem.masks[child][rank], problem.regrets[child]
    return next((regrets[r] - regrets[rank] for r, other in enumerate(problem.masks[child]) if mask & ~other), math.inf)


def _conflict(limits: Limits, families: Sequence[int], costs: Sequence[float]) -> list[int]:
    """Return a minimal part of the parents of each class variable whose moral graph exceeds the limits.

    Parents are left out one class variable at a time, from the cheapest: so the branches are few and expensive.
    """
    conflict = list(families)
    for child in sorted(range(len(conflict)), key=costs.__getitem__):
        for left_out in (conflict[child], *(1 << parent for parent in members(conflict[child]))):
            fewer = [*conflict[:child], conflict[child] & ~left_out, *conflict[child + 1 :]]
            if _exceeds(limits, fewer):
                conflict = fewer
    return conflict


def _exceeds(limits: Limits, parents: Sequence[int]) -> bool:
    """Return whether these parents certainly exceed the limits."""
    order, certain = exact_order(moral_graph(parents), limits)
    return order is None and certain
