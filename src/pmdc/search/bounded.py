"""The best structure within limits on its cliques.

1. If no parent set has two members, the best forest is the answer: its moral graph is the forest itself.
2. Solve the problem without limits. Its optimum bounds the score, and if it is within the limits, it is the answer.
3. For few class variables, branch and bound (`bounded_exact`).
4. For more, search region by region (`regions`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from pmdc._support.checks import shorten

from . import bounded_exact
from .bounded_start import Bounded, along, better, chosen, first_dag, with_order
from .chordal import cliques, moral_graph
from .forest import best_forest
from .limits import Limits
from .methods import choose, solve_component
from .problem import Problem, SearchResult, members, settle_ties, split, topological_order
from .progress import SearchState

METHOD = "bounded-search"

_RELAXATION_SHARE = 0.2
"""The share of the time limit that the problem without limits may take."""
_MAX_ROOT_SETS = 3000
"""The root node of the integer program takes about a second for so many parent sets."""
_PATIENCE = 20
"""Restarts of the local search without improvement, if there is no time limit."""
_EXACT_SHARE = 0.5
"""The share of the time left that branch and bound may take."""


def begin(problem: Problem, limits: Limits, start: Sequence[int] | None, state: SearchState) -> Bounded:
    """Return a first DAG within the limits; raise a ValueError if none is found."""
    first = first_dag(problem, limits, start)
    if first is None and _is_small(problem, state):
        outcome = bounded_exact.solve(problem, limits, math.inf, lambda least: state.out_of_time())
        if outcome.least_regret == math.inf:
            raise ValueError(
                f"scores admit no DAG within {limits}: {_needy(problem)} must have parents, and all choices of parent "
                "sets have a cycle or exceed the bound; add smaller sets, such as frozenset(), relax required_edges, "
                "or raise the bound."
            )
        first = outcome.best
    if first is None:
        raise ValueError(
            f"no DAG within {limits} was found: {_needy(problem)} must have parents, and there may be no choice of "
            "parent sets that fits; add smaller sets, such as frozenset(), relax required_edges, or raise the bound."
        )
    state.begin(first.ranks, start is not None)
    return first


def _needy(problem: Problem) -> str:
    return shorten([name for name, row in zip(problem.names, problem.masks, strict=True) if 0 not in row])


def _is_small(problem: Problem, state: SearchState) -> bool:
    """Return whether branch and bound can be used."""
    return choose(problem, state.memory_budget) == "dynamic-programming"


def solve(
    problem: Problem, limits: Limits, first: Bounded, state: SearchState, budget: tuple[int, int | None]
) -> Bounded:
    """Return the best DAG found within the limits; what is proved about it is in `state`.

    `budget` is the seed and the number of iterations of the search by regions.
    """
    if all(mask.bit_count() < 2 for row in problem.masks for mask in row):
        forest = best_forest(problem, state.enter(0, "tree"), state)
        state.keep(forest._replace(least_regret=problem.total_regret(forest.ranks)))
        return with_order(problem, limits, forest.ranks) or first
    state.enter(0, METHOD)
    state.log(f"{METHOD} for {len(problem.names)} class variables within {limits}")

    least, relaxed, method = _without_limits(problem, first, state)
    for ranks in (settle_ties(problem, relaxed), relaxed):
        fitting = with_order(problem, limits, ranks)
        if fitting is not None and problem.total_regret(ranks) <= least:
            return _keep(problem, fitting, least, method, state)
        first = better(problem, [first, fitting, along(problem, limits, ranks)]) or first
    reason = state.stop(first.ranks, least)
    if not reason and _is_small(problem, state):
        first, least, reason = _branch_and_bound(problem, limits, first, least, state)
        if problem.total_regret(first.ranks) <= least:
            return _keep(problem, first, least, "branch-and-bound", state)
    if not reason:
        from .regions import search  # importing numba takes longer than most searches

        ranks, order, reason = search(problem, limits, *first, state, *budget, least)
        first = Bounded(ranks, order)
        _verify(problem, limits, first)
    return _keep(problem, first, least, METHOD, state, reason or "unproved")


def _verify(problem: Problem, limits: Limits, found: Bounded) -> None:
    parents = chosen(problem, found.ranks)
    if topological_order(parents) is None:
        raise RuntimeError("the bounded search returned parent sets that form a cycle")
    if not all(limits.fits(clique) for clique in cliques(moral_graph(parents), found.order)):
        raise RuntimeError(f"the bounded search returned a structure that exceeds {limits}")


def _keep(
    problem: Problem, found: Bounded, least: float, method: str, state: SearchState, status: str = "optimal"
) -> Bounded:
    state.enter(0, method)
    state.keep(SearchResult(found.ranks, least, status))
    return found


def _branch_and_bound(
    problem: Problem, limits: Limits, first: Bounded, least: float, state: SearchState
) -> tuple[Bounded, float, str]:
    """Return the best DAG known, a lower bound on the regret, and why the search must stop, or ""."""
    deadline = time.perf_counter() + _EXACT_SHARE * state.time_left()

    def stop(bound: float) -> str:
        late = "time limit" if time.perf_counter() >= deadline else ""
        return state.stop(first.ranks, max(least, bound)) or late

    outcome = bounded_exact.solve(problem, limits, problem.total_regret(first.ranks), stop)
    best, least = outcome.best or first, max(least, outcome.least_regret)
    return best, least, state.stop(best.ranks, least)


def settle_ties_within(problem: Problem, found: Bounded) -> Bounded:
    """Replace parent sets by higher-ranked ones of the same score whose family is within a clique of the order."""
    eliminated = {position: place for place, position in enumerate(found.order)}
    clique = cliques(moral_graph(chosen(problem, found.ranks)), found.order)

    def allowed(child: int, mask: int) -> bool:
        # In a chordal graph, a set is a clique if it is within the clique of its first eliminated member.
        family = mask | 1 << child
        return not family & ~clique[min(members(family), key=eliminated.__getitem__)]

    return found._replace(ranks=settle_ties(problem, found.ranks, allowed))


# Without limits -----------------------------------------------------------------------------------------------


def _without_limits(problem: Problem, first: Bounded, state: SearchState) -> tuple[float, list[int], str]:
    """Return a lower bound on the regret of every DAG, a good DAG that may exceed the limits, and the method used."""
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
    used = [_relax(component.problem, number, relaxation) for number, component in enumerate(components)]
    ranks = relaxation.ranks()
    least = problem.total_regret(ranks) if relaxation.status() == "optimal" else relaxation.least_regret()
    return least, ranks, " and ".join(dict.fromkeys(name for name in used if name)) or METHOD


def _relax(problem: Problem, number: int, relaxation: SearchState) -> str:
    """Solve a component without limits; return the method.

    Without a time limit, the time of the integer program cannot be predicted. Then only its root node is solved, and
    only for few parent sets; and the local search is short.
    """
    method = choose(problem, relaxation.memory_budget)
    if method == "dynamic-programming" or relaxation.deadline < math.inf:
        return solve_component(problem, number, method, relaxation)
    if method == "integer-program" and sum(map(len, problem.masks)) <= _MAX_ROOT_SETS:
        from . import integer_program

        outcome = integer_program.solve(problem, relaxation.enter(number, method), relaxation, max_nodes=1)
    else:
        from . import orders

        method = "local-search"
        outcome = orders.solve(problem, relaxation.enter(number, method), relaxation, patience=_PATIENCE)
    relaxation.keep(outcome)
    return method
