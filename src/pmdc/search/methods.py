"""Which method solves a component, and the call to it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from .forest import best_forest
from .hill_climbing import hill_climb
from .limits import UNLIMITED, Limits
from .problem import Problem, SearchResult
from .progress import SearchState

# Time and memory of dynamic programming double with each class variable: 0.02 s at 20, 2 s and 0.5 GiB at 26. The time
# of the integer program cannot be predicted.
MAX_DYNAMIC_PROGRAMMING = 26


def solve_component(problem: Problem, number: int, method: str, state: SearchState, limits: Limits = UNLIMITED) -> str:
    """Solve one component and return the method used, or "" if it has a single class variable.

    Only "hill-climb" needs the limits; a forest is within them.
    """
    n_variables = len(problem.names)
    chosen = choose(problem, state.memory_budget) if method == "auto" else method
    first = state.enter(number, chosen)
    if chosen not in ("hill-climb", "tree") and problem.total_regret(first.ranks) <= first.least_regret:
        state.keep(first._replace(status="optimal"))
        return chosen if n_variables > 1 else ""
    state.log(f"{chosen} for {n_variables} class variables with {sum(map(len, problem.masks))} candidate parent sets")
    if chosen == "hill-climb":
        state.keep(hill_climb(problem, first, state, limits))
    else:
        state.keep(_method(chosen)(problem, first, state))
    return chosen


def choose(problem: Problem, memory_budget: float) -> str:
    """Return the method that "auto" takes for one component."""
    if len(problem.names) <= MAX_DYNAMIC_PROGRAMMING:
        from .dynamic_programming import memory_needed

        if memory_needed(len(problem.names), max(map(len, problem.masks))) <= memory_budget:
            return "dynamic-programming"
    return "integer-program" if find_spec("pyscipopt") else "local-search"


def _method(name: str) -> Callable[[Problem, SearchResult, SearchState], SearchResult]:
    # Imported here because importing numba and SCIP takes longer than most searches.
    if name == "tree":
        return best_forest
    if name == "dynamic-programming":
        from .dynamic_programming import solve
    elif name == "integer-program":
        from .integer_program import solve
    else:
        from .orders import solve
    return solve
