"""Phase P2: the DAG over the class variables with the greatest score.

`find_structure` is given one score for each (class variable, parent set) and returns a best DAG together with
what is proved about it.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .files import read_scores, write_scores
from .inexact import best_forest, hill_climb
from .problem import Outcome, Problem, build_problem, settle_ties, split, start_masks, whole
from .progress import Watch, until_interrupted
from .structure import (
    Edge,
    Structure,
    check_callback,
    check_edges,
    check_gap,
    check_memory_budget,
    check_method,
    check_scores,
    check_start,
    check_time_limit,
)

__all__ = ["METHODS", "Structure", "find_structure", "read_scores", "write_scores"]

METHODS = ("auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree")

# Time and memory of the dynamic program double with each class variable: about a tenth of a second at 20, some seconds
# at 26, where it takes half a gigabyte. Up to there its time is known beforehand, which that of the integer program
# never is.
_LARGEST_DYNAMIC_PROGRAM = 26

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
        For each class variable the score of each candidate parent set. Only these sets are considered; a
        score of -inf forbids a set.
    method : {"auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree"}, default="auto"
        "dynamic-programming" goes through all subsets of the class variables, in time and memory that double
        with each of them. "integer-program" solves the integer program (P2) of the paper by branch and cut.
        Class variables that cannot stand on a cycle together, because no chain of possible parents leads from
        one to the other and back, are searched apart from each other. "auto" takes the first for groups of up to
        26 class variables and the second for larger ones. Both are exact, the integer
        program up to the solver's tolerance: scores that differ by less than about a millionth of what the
        best DAG loses against the best parent set of every class variable count as equal. "local-search" goes
        from order to order of the class variables; it is fast and usually right, but proves little: `bound` is
        what is known without it. For comparison there are "hill-climb" (single edges, as long as they help) and
        "tree" (the best DAG with at most one parent for each class variable, as Chow and Liu's).
    required_edges : iterable of (parent, child), optional
        Edges that the DAG must have.
    forbidden_edges : iterable of (parent, child), optional
        Edges that the DAG must not have.
    start : Structure or dict of str to parents, optional
        A DAG to start from, such as the answer to a similar problem. It changes what is found only where nothing better
        is found, or where scores are equal. "tree" needs no start and makes no use of it.
    time_limit : float, optional
        Seconds after which the best DAG so far is returned, with a bound on the greatest score. There always
        is one. The limit is looked at between steps of the search, so it may be overrun by a little.
    gap : float, default=0.0
        The search may end as soon as `Structure.gap` is proved to be no greater. 0.0 asks for a best DAG.
    callback : callable, optional
        Called with the best `Structure` so far (its status is "searching") for every better DAG or bound, and at least
        about once a second. If it answers something true, the search ends: the status is "interrupted".
    memory_budget : int, default=2**32
        Bytes that the search may take. The dynamic program, whose need is known beforehand, is refused above it ("auto"
        then takes the integer program); the solver of the integer program stops there, by its own count.
    verbose : int, default=0
        1 reports on the standard error stream what is searched how, the memory before it is taken, and what was proved.

    Returns
    -------
    Structure
        The parents of each class variable with `score`, `bound`, `gap` and `status`.

    Raises
    ------
    ValueError
        If an argument is not as described, if nothing is left for a class variable, if there is no DAG, or if
        the dynamic program would take more than `memory_budget`.

    Notes
    -----
    The answer is the same in every run. Among DAGs of equal score, no parent set of the one returned can be
    replaced by another of the same score that has fewer parents, or as many that stand earlier in `scores`,
    without a cycle. There may be several such DAGs, and different methods may find different ones. Only limits and
    interruptions may change the answer, because they depend on time.

    The first Ctrl-C ends the search like a callback that returns True, the second raises KeyboardInterrupt as usual.

    Examples
    --------
    Each of the two class variables is better explained by the other, but not both can be:

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
    check_method(method, METHODS)
    table = check_scores(scores)
    required, forbidden = check_edges(tuple(table), required_edges, forbidden_edges)
    problem = build_problem(table, required, forbidden)
    budget = check_memory_budget(memory_budget)
    parts = [whole(problem)] if method in ("hill-climb", "tree") else split(problem)
    watch = Watch(
        problem,
        parts,
        started,
        time_limit=check_time_limit(time_limit),
        gap=check_gap(gap),
        memory_budget=budget,
        callback=check_callback(callback),
        say=_say if verbose else _say_nothing,
    )
    if start is not None:
        watch.start_from(start_masks(problem, check_start(start, table)))
    with until_interrupted(watch):
        used = [_solve(part.problem, number, method, watch) for number, part in enumerate(parts)]

    watch.method = " and ".join(dict.fromkeys(name for name in used if name)) or watch.method
    found = watch.structure(settle_ties(problem, watch.ranks()), watch.status())
    watch.say(str(found))
    return found


def _solve(problem: Problem, number: int, method: str, watch: Watch) -> str:
    """Find the best DAG of class variables that may stand on a cycle together; the method that was needed, if any."""
    count, sets = len(problem.names), sum(map(len, problem.masks))
    chosen = method
    if method == "auto":
        chosen = "dynamic-programming" if count <= _LARGEST_DYNAMIC_PROGRAM else "integer-program"
    first = watch.enter(number, chosen)
    if chosen not in ("hill-climb", "tree") and problem.total_regret(first.ranks) <= first.least_regret:
        watch.keep(first._replace(status="optimal"))
        return chosen if count > 1 else ""
    if method == "auto" and chosen == "dynamic-programming" and not _fits(problem, watch.memory_budget):
        first = watch.enter(number, chosen := "integer-program")
    watch.say(f"{chosen} for {count} class variables with {sets} parent sets that may be in a best DAG")
    watch.keep(_method(chosen)(problem, first, watch))
    return chosen


def _fits(problem: Problem, memory_budget: float) -> bool:
    """Whether the dynamic program has the memory it needs."""
    from .dynamic_programming import memory_needed

    return memory_needed(len(problem.names), max(map(len, problem.masks))) <= memory_budget


def _method(name: str) -> Callable[[Problem, Outcome, Watch], Outcome]:
    # Imported here because numba and SCIP take longer to import than most users' searches take to run.
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


def _say(message: str) -> None:
    sys.stderr.write(f"[search] {message}\n")


def _say_nothing(message: str) -> None:
    pass
