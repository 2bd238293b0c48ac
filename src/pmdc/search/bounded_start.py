"""A first DAG within limits, where a bounded search starts.

`along` builds a DAG together with its chordal graph: class variables come in a given order, and each takes its best
parent set within a clique that is there already; with others of that clique it forms a new one. BLIP's k-greedy does
this for many random orders (Scanagatta, Corani, de Campos and Zaffalon, "Learning treewidth-bounded Bayesian networks
with thousands of variables", NIPS 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .chordal import exact_order, greedy_order, moral_graph
from .forest import forest_ranks
from .limits import Limits
from .problem import Problem, greedy_dag, members, ranks_within, topological_order, whole

_EXACT_UP_TO = 26


class Bounded(NamedTuple):
    """A DAG within the limits."""

    ranks: list[int]
    """The rank of the parent set of each class variable."""
    order: list[int]
    """An order of elimination within the limits."""


def first_dag(problem: Problem, limits: Limits, start: Sequence[int] | None) -> Bounded | None:
    """Return a DAG within the limits, None if none is found.

    It is the best of some simple ones and of the start, or of a DAG made of parents in the start if that exceeds them.
    """
    by_size = replace(problem, regrets=tuple(tuple(float(m.bit_count()) for m in row) for row in problem.masks))
    fewest = greedy_dag(by_size).ranks
    found = [
        with_order(problem, limits, fewest),
        along(problem, limits, fewest),
        along(problem, limits, greedy_dag(problem).ranks),
    ]
    forest = forest_ranks(problem)
    if forest is not None:  # its parents are cliques, so each class variable gets at least as good a set
        found.append(along(problem, limits, forest))
    if start is not None:
        ranks = ranks_within(whole(problem), start)
        found.append(with_order(problem, limits, ranks) or along(problem, limits, ranks, start))
    return better(problem, found)


def better(problem: Problem, found: Sequence[Bounded | None]) -> Bounded | None:
    """Return the best of some DAGs."""
    there = (each for each in found if each is not None)
    return min(there, key=lambda each: problem.total_regret(each.ranks), default=None)


def chosen(problem: Problem, ranks: Sequence[int]) -> list[int]:
    """Return the parents of each class variable as bit masks."""
    return [row[rank] for row, rank in zip(problem.masks, ranks, strict=True)]


def with_order(problem: Problem, limits: Limits, ranks: Sequence[int]) -> Bounded | None:
    """Return a DAG with an order of elimination within the limits, or None if none is found.

    All orders are searched only if the class variables are few: the exact search takes minutes for a hundred.
    """
    graph = moral_graph(chosen(problem, ranks))
    order = greedy_order(graph, limits)
    if order is None and len(graph) <= _EXACT_UP_TO:
        order, _ = exact_order(graph, limits)
    return None if order is None else Bounded(list(ranks), order)


def along(
    problem: Problem, limits: Limits, ranks: Sequence[int], within: Sequence[int] | None = None
) -> Bounded | None:
    """Return a DAG with the topological order of the given one, built together with a chordal graph, or None.

    Each class variable takes its best parent set that is a clique of the graph so far (and within the given parents),
    and is joined with these and with as many others of their clique as the limits allow. In reverse order, each is
    eliminated with its clique.
    """
    order = topological_order(chosen(problem, ranks))
    assert order is not None
    place = {child: position for position, child in enumerate(order)}
    clique, found, before = [0] * len(order), [-1] * len(order), 0
    for child in order:
        possible = before if within is None else before & within[child]
        for rank, mask in enumerate(problem.masks[child]):
            if mask & ~possible:
                continue
            # A set is a clique if it is within the clique of its last member.
            around = clique[max(members(mask), key=place.__getitem__)] if mask else 0
            if not mask & ~around:
                found[child] = rank
                clique[child] = _extend(limits, mask | 1 << child, around)
                break
        else:
            return None
        before |= 1 << child
    return Bounded(found, order[::-1])


def _extend(limits: Limits, clique: int, around: int) -> int:
    """Add members of `around` to a clique as long as it fits."""
    for member in members(around & ~clique):
        if limits.fits(clique | 1 << member):
            clique |= 1 << member
    return clique
