"""The best structure within limits on its cliques.

1. Solve the problem without limits. Its optimum bounds the score, and if it is within the limits, it is the answer.
2. If no parent set has two members, the best forest is the answer: its moral graph is the forest itself.
3. For few class variables, branch and bound (`bounded_exact`).
4. For more, search region by region (`regions`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pmdc._support.checks import shorten

from .chordal import cliques, find_order, moral_graph
from .inexact import best_forest
from .limits import Limits
from .methods import choose, solve_component
from .problem import (
    Problem,
    SearchResult,
    greedy_dag,
    members,
    ranks_within,
    settle_ties,
    split,
    topological_order,
    whole,
)
from .progress import SearchState

METHOD = "bounded-search"

_RELAXATION_SHARE = 0.2
"""The share of the time limit that the problem without limits may take."""


class Bounded(NamedTuple):
    """A DAG within the limits."""

    ranks: list[int]
    """The rank of the parent set of each class variable."""
    order: list[int]
    """An order of elimination within the limits."""


def solve(
    problem: Problem, limits: Limits, first: Bounded, state: SearchState, budget: tuple[int, int | None]
) -> Bounded:
    """Return the best DAG found within the limits; what is proved about it is in `state`.

    `budget` is the seed and the number of iterations of the search by regions.
    """
    known = state.enter(0, METHOD)
    if all(mask.bit_count() < 2 for row in problem.masks for mask in row):
        known = state.enter(0, "tree")
        forest = best_forest(problem, known, state)
        state.keep(forest._replace(least_regret=problem.total_regret(forest.ranks)))
        return with_order(problem, limits, forest.ranks) or first
    state.log(f"{METHOD} for {len(problem.names)} class variables within {limits}")

    least, relaxed, method = _without_limits(problem, first, state)
    for ranks in (settle_ties(problem, relaxed), relaxed):
        fitting = with_order(problem, limits, ranks)
        if fitting is not None and problem.total_regret(ranks) <= least:
            state.enter(0, method)
            state.keep(SearchResult(ranks, least, "optimal"))
            return fitting
        along = _along(problem, limits, ranks)
        first = _better(problem, [first, fitting, along])
    reason = state.stop(first.ranks, least)
    if not reason:
        from .regions import search  # importing numba takes longer than most searches

        ranks, order, reason = search(problem, limits, *first, state, *budget, least)
        first = Bounded(ranks, order)
    state.keep(SearchResult(first.ranks, least, reason or "unproved"))
    return first


def settle_ties_within(problem: Problem, found: Bounded) -> Bounded:
    """Replace parent sets by higher-ranked ones of the same score whose family is within a clique of the order."""
    eliminated = {position: place for place, position in enumerate(found.order)}
    clique = cliques(moral_graph(_chosen(problem, found.ranks)), found.order)

    def allowed(child: int, mask: int) -> bool:
        # In a chordal graph, a set is a clique if it is within the clique of its first eliminated member.
        family = mask | 1 << child
        return not family & ~clique[min(members(family), key=eliminated.__getitem__)]

    return found._replace(ranks=settle_ties(problem, found.ranks, allowed))


# Without limits -----------------------------------------------------------------------------------------------


def _without_limits(problem: Problem, first: Bounded, state: SearchState) -> tuple[float, list[int], str]:
    """Return a lower bound on the regret of every DAG, a good DAG that may exceed the limits, and the method used.

    The integer program is used only under a time limit, because its time cannot be predicted.
    """
    components = split(problem)

    def watch(_: object) -> bool:
        return bool(state.stop(first.ranks, min(relaxation.least_regret(), problem.total_regret(first.ranks))))

    relaxation = SearchState(
        problem,
        components,
        time.perf_counter(),
        time_limit=_RELAXATION_SHARE * state.time_left(),
        gap=0.0,
        memory_budget=state.memory_budget,
        callback=watch,
        log=state.log,
    )
    used = []
    for number, component in enumerate(components):
        method = choose(component.problem, state.memory_budget)
        if method == "integer-program" and state.deadline == math.inf:
            method = "local-search"
        used.append(solve_component(component.problem, number, method, relaxation))
    ranks = relaxation.ranks()
    least = problem.total_regret(ranks) if relaxation.status() == "optimal" else relaxation.least_regret()
    return least, ranks, " and ".join(dict.fromkeys(name for name in used if name)) or METHOD


# A first DAG --------------------------------------------------------------------------------------------------


def first_dag(problem: Problem, limits: Limits, start: Sequence[int] | None) -> Bounded:
    """Return a DAG within the limits: the start if it is, otherwise one made of its subsets or a simple one."""
    by_size = replace(problem, regrets=tuple(tuple(float(m.bit_count()) for m in row) for row in problem.masks))
    fewest = greedy_dag(by_size).ranks
    found = [
        with_order(problem, limits, fewest),
        _along(problem, limits, fewest),
        _along(problem, limits, greedy_dag(problem).ranks),
    ]
    if start is not None:
        ranks = ranks_within(whole(problem), start)
        found.append(with_order(problem, limits, ranks) or _along(problem, limits, ranks, start))
    if not any(found):
        needy = [name for name, row in zip(problem.names, problem.masks, strict=True) if 0 not in row]
        raise ValueError(
            f"no DAG within {limits} was found for scores: {shorten(needy)} must have parents, and no choice of parent "
            "sets was found that fits; add smaller sets, such as frozenset(), relax required_edges, or raise the bound."
        )
    return _better(problem, found)


def _better(problem: Problem, found: Sequence[Bounded | None]) -> Bounded:
    return min((each for each in found if each), key=lambda each: problem.total_regret(each.ranks))


def _chosen(problem: Problem, ranks: Sequence[int]) -> list[int]:
    return [row[rank] for row, rank in zip(problem.masks, ranks, strict=True)]


def with_order(problem: Problem, limits: Limits, ranks: Sequence[int]) -> Bounded | None:
    """Return a DAG with an order of elimination within the limits, or None if none is found."""
    order, _ = find_order(moral_graph(_chosen(problem, ranks)), limits)
    return None if order is None else Bounded(list(ranks), order)


def _along(
    problem: Problem, limits: Limits, ranks: Sequence[int], within: Sequence[int] | None = None
) -> Bounded | None:
    """Return a DAG with the topological order of the given one, built together with a chordal graph, or None.

    Each class variable takes its best parent set that is a clique of the graph so far (and within the given parents),
    and is joined with these and with as many others of their clique as the limits allow. In reverse order, each is
    eliminated with its clique.
    """
    order = topological_order(_chosen(problem, ranks))
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
