"""Phase P2: the DAG over the class variables with the greatest score.

`find_structure` is given one score for each (class variable, parent set) and returns a best DAG together with
what is proved about it.
"""

import time
from collections.abc import Iterable, Mapping

from .files import read_scores, write_scores
from .inexact import best_forest, hill_climb
from .problem import Outcome, Problem, build_problem, greedy_dag, inside, settle_ties, split, start_masks, whole
from .structure import Edge, Structure, check_edges, check_method, check_scores, check_start, check_time_limit

__all__ = ["METHODS", "Structure", "find_structure", "read_scores", "write_scores"]

METHODS = ("auto", "dynamic-programming", "integer-program", "local-search", "hill-climb", "tree")

# Time and memory of the dynamic program double with each class variable: about a second at 20, ten at 24, where it
# takes half a gigabyte. Up to there its time is known beforehand, which that of the integer program never is.
_LARGEST_DYNAMIC_PROGRAM = 24


def find_structure(
    scores: Mapping[str, Mapping[frozenset[str], float]],
    method: str = "auto",
    *,
    required_edges: Iterable[Edge] | None = None,
    forbidden_edges: Iterable[Edge] | None = None,
    start: Structure | Mapping[str, Iterable[str]] | None = None,
    time_limit: float | None = None,
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
        24 class variables and the second for larger ones. Both are exact, the integer
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
        is found, or where scores are equal.
    time_limit : float, optional
        Seconds after which the best DAG so far is returned, with a bound on the greatest score. There always
        is one. The limit is looked at between steps of the search, so it may be overrun by a little.

    Returns
    -------
    Structure
        The parents of each class variable with `score`, `bound`, `gap` and `status`.

    Raises
    ------
    ValueError
        If an argument is not as described, if nothing is left for a class variable, if there is no DAG, or if
        the dynamic program would take too much memory.

    Notes
    -----
    The answer is the same in every run. Among DAGs of equal score, no parent set of the one returned can be
    replaced by another of the same score that has fewer parents, or as many that stand earlier in `scores`,
    without a cycle.

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
    deadline = started + check_time_limit(time_limit)
    table = check_scores(scores)
    required, forbidden = check_edges(tuple(table), required_edges, forbidden_edges)
    problem = build_problem(table, required, forbidden)
    before = None if start is None else start_masks(problem, check_start(start, table))
    used: dict[str, None] = {}
    found = [-1] * len(table)
    least_regret, status = 0.0, "optimal"
    for part in [whole(problem)] if method in ("hill-climb", "tree") else split(problem):
        chosen = method
        if method == "auto":
            small = len(part.members) <= _LARGEST_DYNAMIC_PROGRAM
            chosen = "dynamic-programming" if small else "integer-program"
        outcome = _solve(part.problem, chosen, deadline, None if before is None else inside(part, before))
        if len(part.members) > 1:
            used[chosen] = None
        least_regret += outcome.least_regret
        if outcome.status != "optimal" and status == "optimal":
            status = outcome.status
        for child, rank, ranks_of_all in zip(part.members, outcome.ranks, part.whole_ranks, strict=True):
            found[child] = ranks_of_all[rank]

    ranks = settle_ties(problem, found)
    score = problem.total_score(ranks)
    bound = score
    if status != "optimal":
        best_of_each = problem.total_score([0] * len(ranks))
        bound = max(score, best_of_each - least_regret)
    return Structure(
        parents=problem.parents(ranks),
        score=score,
        bound=bound,
        gap=(bound - score) / max(1.0, abs(score)),
        status=status,
        seconds=time.perf_counter() - started,
        method=" and ".join(used) or chosen,
    )


def _solve(problem: Problem, method: str, deadline: float, start: list[int] | None) -> Outcome:
    """The best DAG of class variables that may stand on a cycle together, from a given DAG or a greedy one on."""
    first = greedy_dag(problem)
    if start is not None and problem.total_regret(start) < problem.total_regret(first.ranks):
        first = first._replace(ranks=start)
    if method == "hill-climb":
        return hill_climb(problem, first, deadline)
    if method == "tree":
        return best_forest(problem, first, deadline)
    if problem.total_regret(first.ranks) <= first.least_regret:
        return first._replace(status="optimal")
    # Imported here because numba and SCIP take longer to import than most users' searches take to run.
    if method == "dynamic-programming":
        from .dynamic_programming import solve
    elif method == "integer-program":
        from .integer_program import solve
    else:
        from .orders import solve
    return solve(problem, first, deadline)
