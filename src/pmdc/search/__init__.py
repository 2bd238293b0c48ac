"""Phase P2: find the DAG over the class variables with the greatest score.

`find_structure` takes one score for each (class variable, parent set) and returns a DAG together with what is proved
about it.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pmdc._support.checks import check_choice, check_count
from pmdc._support.extras import require
from pmdc._support.warn import warn_user

from .files import read_scores, write_scores
from .limits import Limits, check_limits, check_required
from .methods import solve_component
from .problem import Component, Problem, build_problem, settle_ties, split, start_masks, whole
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
    check_tiers,
    check_time_limit,
)

__all__ = ["METHODS", "Structure", "find_structure", "read_scores", "write_scores"]

METHODS = ("auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree")

BOUNDED_METHODS = ("auto", "hill-climb", "tree")
"""The methods that can keep a structure within limits."""

MEMORY_BUDGET = 4 * 2**30


def find_structure(
    scores: Mapping[str, Mapping[frozenset[str], float]],
    method: str = "auto",
    *,
    required_edges: Iterable[Edge] | None = None,
    forbidden_edges: Iterable[Edge] | None = None,
    tiers: Sequence[Iterable[str]] | None = None,
    max_treewidth: int | None = None,
    max_clique_cells: int | None = None,
    n_states: Mapping[str, int] | None = None,
    start: Structure | Mapping[str, Iterable[str]] | None = None,
    random_state: int = 0,
    max_iter: int | None = None,
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
    tiers : sequence of iterables of str, optional
        A partial order of the class variables: each tier comes before the next, so that no edge leads from a later
        tier to an earlier one. Class variables in no tier are free.
    max_treewidth : int, optional
        Greatest treewidth of the moral graph: exact inference needs no table over more than ``max_treewidth + 1``
        class variables. With a bound, `method` can be

        - "auto": the answer without bounds if it is within them; the best forest if no parent set within the bounds
          has two members; otherwise a search over structures together with their elimination orders, which starts
          from the best DAG without bounds. Up to a few class variables the result is proved to be the best.
        - "hill-climb": single-edge changes that stay within the bounds.
        - "tree": as without bounds; a forest has treewidth 1.
    max_clique_cells : int, optional
        Greatest number of cells of such a table: the product of the numbers of states of its class variables.
    n_states : dict of str to int, optional
        The number of states of each class variable, needed with `max_clique_cells`.
    start : Structure or dict of str to parents, optional
        A DAG to start from (warm start), such as the solution of a similar problem. "tree" ignores it. Of a DAG that
        exceeds the bounds only some edges are used.
    random_state : int, default=0
        Seed of the bounded search of "auto"; the other methods draw no random numbers.
    max_iter : int, optional
        Iterations of the bounded search of "auto". None sets a number by the size of the problem, or no limit if there
        is a `time_limit`. The result is the same in every run with the same seed and number of iterations.
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
    The result is deterministic unless a limit or an interruption ends the search; the bounded search of "auto" is so
    for a given `random_state` and `max_iter`. Ties: no parent set of the result can
    be replaced, without a cycle, by a set of the same score with fewer parents, or with as many that come earlier in
    `scores`. Several DAGs may satisfy this, and different methods may return different ones. With a bound, only sets
    within the cliques of `Structure.elimination_order` replace others.

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
    names = tuple(table)
    required, forbidden = check_edges(names, required_edges, forbidden_edges)
    later = check_tiers(names, tiers, required)
    limits = check_limits(names, max_treewidth, max_clique_cells, n_states)
    budget = _check_budget(random_state, max_iter)
    if limits:
        _check_bounded(method, limits)
        check_required(names, required, limits)
    problem = build_problem(table, required, {name: forbidden[name] | later[name] for name in names}, limits)
    components = [whole(problem)] if limits or method in ("hill-climb", "tree") else split(problem)
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
    masks = None if start is None else start_masks(problem, check_start(start, table, later))
    with handle_interrupts(state):
        if limits:
            ranks, order = _search_bounded(problem, limits, method, masks, state, budget)
        else:
            ranks, order = _search(problem, components, method, masks, state), None
    found = state.structure(ranks, state.status(), order)
    state.log(str(found))
    if method == "auto" and found.status == "unproved" and not limits:
        warn_user(
            f"The structure is not proved to be the best: its score {found.score:.6g} may be up to "
            f"{found.bound - found.score:.3g} below the greatest. The problem is too large for dynamic programming "
            "and PySCIPOpt is not installed, so local search was used. For an exact search by an integer program: "
            'pip install "pmdc[ip]"'
        )
    return found


def _check_budget(random_state: Any, max_iter: Any) -> tuple[int, int | None]:
    check_count("random_state", random_state, 0)
    if max_iter is not None:
        check_count("max_iter", max_iter, 1)
    return int(random_state), max_iter


def _check_bounded(method: str, limits: Limits) -> None:
    if method not in BOUNDED_METHODS:
        raise ValueError(
            f"method={method!r} cannot keep {limits}: use method='auto', 'hill-climb' or 'tree', or remove the bound."
        )


def _search(
    problem: Problem, components: Sequence[Component], method: str, start: Sequence[int] | None, state: SearchState
) -> list[int]:
    """Return the best DAG found, as ranks."""
    if method == "integer-program":
        require("pyscipopt")
    if start is not None:
        state.start_from(start)
    used = [solve_component(each.problem, number, method, state) for number, each in enumerate(components)]
    state.method = " and ".join(dict.fromkeys(name for name in used if name)) or state.method
    return settle_ties(problem, state.ranks())


def _search_bounded(
    problem: Problem,
    limits: Limits,
    method: str,
    start: Sequence[int] | None,
    state: SearchState,
    budget: tuple[int, int | None],
) -> tuple[list[int], list[int]]:
    """Return the best DAG found within limits, as ranks, and its order of elimination."""
    from .bounded import begin, settle_ties_within, solve
    from .bounded_start import with_order

    first = begin(problem, limits, start, state)
    if method == "auto":
        found = solve(problem, limits, first, state, budget)
    else:
        solve_component(problem, 0, method, state, limits)
        found = with_order(problem, limits, state.ranks()) or first
    return settle_ties_within(problem, found)


def _log(message: str) -> None:
    sys.stderr.write(f"[search] {message}\n")
