"""Phase P2: find the DAG over the class variables with the greatest score.

`find_structure` takes one score for each (class variable, parent set) and returns a DAG together with what is proved
about it.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from pmdc._support.checks import check_choice
from pmdc._support.extras import require
from pmdc._support.warn import warn_user

from .files import read_scores, write_scores
from .inexact import best_forest, hill_climb
from .problem import Problem, SearchResult, build_problem, settle_ties, split, start_masks, whole
from .progress import SearchState, handle_interrupts
from .structure import (
    Edge,
    Structure,
    check_callback,
    check_edges,
    check_gap,
    check_memory_budget,
    check_scores,
    check_start,
    check_time_limit,
)

__all__ = ["METHODS", "Structure", "find_structure", "read_scores", "write_scores"]

METHODS = ("auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree")

# Time and memory of dynamic programming double with each class variable: 0.02 s at 20, 2 s and 0.5 GiB at 26. The time
# of the integer program cannot be predicted.
MAX_DYNAMIC_PROGRAMMING = 26

MEMORY_BUDGET = 4 * 2**30


def find_structure(
    scores: Mapping[str, Mapping[frozenset[str], float]],
    method: str = "auto",
    *,
    required_edges: Iterable[Edge] | None = None,
    forbidden_edges: Iterable[Edge] | None = None,
    start: Structure | Mapping[str, Iterable[str]] | None = None,
    time_limit: float | None = None,
    gap: float = 0.0,
    callback: Callable[[Structure], Any] | None = None,
    memory_budget: int = MEMORY_BUDGET,
    verbose: int = 0,
) -> Structure:
    """Find a DAG over the class variables whose parent sets have the greatest total score.

    Parameters
    ----------
    scores : dict of str to dict of frozenset to float
        For each class variable the score of each candidate parent set. Other sets are not considered; a score of -inf
        forbids a set.
    method : {"auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree"}, default="auto"
        The problem is first split into components, sets of class variables that can be on a common cycle; each is
        solved separately.

        - "dynamic-programming" is exact. Time and memory double with each class variable.
        - "integer-program" solves the integer program (P2) of the paper by branch and cut. It needs PySCIPOpt
          (``pip install "pmdc[ip]"``) and is exact up to the solver's tolerance: two DAGs count as equal if their
          scores differ by less than about 1e-6 of the difference between the best DAG and the sum of the best scores
          of all class variables.
        - "local-search" searches over the orders of the class variables. It is fast and usually finds a best DAG, but
          rarely proves it.
        - "hill-climb" (single-edge changes) and "tree" (at most one parent per class variable, as Chow and Liu) are
          for comparison.
        - "auto" takes dynamic programming for components of up to 26 class variables and the integer program for
          larger ones; without PySCIPOpt it takes local search for these, and warns if the result is not proved.
    required_edges : iterable of (parent, child), optional
        Edges that the DAG must have.
    forbidden_edges : iterable of (parent, child), optional
        Edges that the DAG must not have.
    start : Structure or dict of str to parents, optional
        A DAG to start from (warm start), such as the solution of a similar problem. "tree" ignores it.
    time_limit : float, optional
        Seconds after which the best DAG found so far is returned, with a bound on the greatest score. The limit is
        checked between steps, so it can be exceeded slightly.
    gap : float, default=0.0
        Stop as soon as `Structure.gap` is proved to be at most this. 0.0 asks for a best DAG.
    callback : callable, optional
        Called with the best `Structure` so far (status "searching") after each improvement of the score or the bound,
        and about once a second. If it returns a true value, the search stops with status "interrupted".
    memory_budget : int, default=2**32
        Bytes that the search may use. Dynamic programming raises a ValueError if it needs more ("auto" then takes
        another method); the integer program stops with status "memory limit".
    verbose : int, default=0
        1 writes the methods used, the memory needed and the result to standard error.

    Returns
    -------
    Structure
        The parents of each class variable with `score`, `bound`, `gap` and `status`.

    Raises
    ------
    ValueError
        If an argument is invalid, if a class variable has no parent set left, if there is no DAG, or if dynamic
        programming needs more than `memory_budget`.
    ImportError
        If `method` is "integer-program" and PySCIPOpt is not installed.

    Notes
    -----
    The result is deterministic unless a limit or an interruption ends the search. Ties: no parent set of the result can
    be replaced, without a cycle, by a set of the same score with fewer parents, or with as many that come earlier in
    `scores`. Several DAGs may satisfy this, and different methods may return different ones.

    The first Ctrl-C stops the search like a callback that returns True; the second raises KeyboardInterrupt.

    Examples
    --------
    Each of the two class variables is better explained by the other, but only one edge is possible:

    >>> from pmdc.search import find_structure
    >>> scores = {
    ...     "sky": {frozenset(): -3.0, frozenset({"street"}): -1.5},
    ...     "street": {frozenset(): -4.0, frozenset({"sky"}): -1.0},
    ... }
    >>> best = find_structure(scores)
    >>> best.parents
    {'sky': frozenset(), 'street': frozenset({'sky'})}
    >>> best.score, best.status, best.method
    (-4.0, 'optimal', 'dynamic-programming')
    >>> find_structure(scores, forbidden_edges=[("sky", "street")]).score
    -5.5
    """
    started = time.perf_counter()
    check_choice("method", method, METHODS)
    table = check_scores(scores)
    required, forbidden = check_edges(tuple(table), required_edges, forbidden_edges)
    problem = build_problem(table, required, forbidden)
    components = [whole(problem)] if method in ("hill-climb", "tree") else split(problem)
    state = SearchState(
        problem,
        components,
        started,
        time_limit=check_time_limit(time_limit),
        gap=check_gap(gap),
        memory_budget=check_memory_budget(memory_budget),
        callback=check_callback(callback),
        log=_log if verbose else lambda message: None,
    )
    if start is not None:
        state.start_from(start_masks(problem, check_start(start, table)))
    if method == "integer-program":
        require("pyscipopt")
    with handle_interrupts(state):
        used = [_solve(each.problem, number, method, state) for number, each in enumerate(components)]

    state.method = " and ".join(dict.fromkeys(name for name in used if name)) or state.method
    found = state.structure(settle_ties(problem, state.ranks()), state.status())
    state.log(str(found))
    if method == "auto" and found.status == "unproved":
        warn_user(
            f"The structure is not proved to be the best: its score {found.score:.6g} may be up to "
            f"{found.bound - found.score:.3g} below the greatest. The problem is too large for dynamic programming "
            "and PySCIPOpt is not installed, so local search was used. For an exact search by an integer program: "
            'pip install "pmdc[ip]"'
        )
    return found


def _solve(problem: Problem, number: int, method: str, state: SearchState) -> str:
    """Solve one component and return the method used, or "" if it has a single class variable."""
    n_variables = len(problem.names)
    chosen = _choose(problem, state.memory_budget) if method == "auto" else method
    first = state.enter(number, chosen)
    if chosen not in ("hill-climb", "tree") and problem.total_regret(first.ranks) <= first.least_regret:
        state.keep(first._replace(status="optimal"))
        return chosen if n_variables > 1 else ""
    state.log(f"{chosen} for {n_variables} class variables with {sum(map(len, problem.masks))} candidate parent sets")
    state.keep(_method(chosen)(problem, first, state))
    return chosen


def _choose(problem: Problem, memory_budget: float) -> str:
    """Return the method that "auto" takes for one component."""
    if len(problem.names) <= MAX_DYNAMIC_PROGRAMMING:
        from .dynamic_programming import memory_needed

        if memory_needed(len(problem.names), max(map(len, problem.masks))) <= memory_budget:
            return "dynamic-programming"
    return "integer-program" if find_spec("pyscipopt") else "local-search"


def _method(name: str) -> Callable[[Problem, SearchResult, SearchState], SearchResult]:
    # Imported here because importing numba and SCIP takes longer than most searches.
    if name == "hill-climb":
        return hill_climb
    if name == "tree":
        return best_forest
    if name == "dynamic-programming":
        from .dynamic_programming import solve
    elif name == "integer-program":
        from .integer_program import solve
    else:
        from .orders import solve
    return solve


def _log(message: str) -> None:
    sys.stderr.write(f"[search] {message}\n")
