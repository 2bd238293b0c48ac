"""Exact structure search by dynamic programming over the subsets of the class variables.

Silander and Myllymäki, "A simple approach for finding the globally optimal Bayesian network structure", UAI 2006: a
best DAG over a subset has a sink, which takes its best parent set within the rest of the subset; without the sink it is
a best DAG over the rest.

1. For each subset compute the least total regret of a DAG over it.
2. Go back from the full set: find a sink that explains the total, remove it, repeat.

Step 1 is plain numpy for up to `NUMPY_LIMIT` class variables, so that small problems need no compilation, and the
compiled loop of `subset_kernel` above.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmdc._support.arrays import Floats

from .problem import Problem, SearchResult
from .progress import SearchState

NUMPY_LIMIT = 18
"""Up to here numpy takes less than a tenth of a second."""
_STRIDE = 1 << 20
"""Number of subsets between two checks of the limits: some hundredths of a second."""
_BLOCK_BITS = 11
"""Least number of class variables whose subsets form a block; the tables of a block fit in the cache of a core."""


def memory_needed(n_variables: int, max_sets: int) -> int:
    """Return the bytes needed for `n_variables` class variables with at most `max_sets` parent sets each."""
    if n_variables <= NUMPY_LIMIT:
        return 8 * (n_variables + 1) << n_variables
    # The totals, one block of regrets for each class variable, and the parent sets with their regrets.
    blocks = n_variables << _block_bits(n_variables, max_sets)
    return 8 * ((1 << n_variables) + blocks + 2 * n_variables * max_sets)


def _block_bits(n_variables: int, max_sets: int) -> int:
    # Each block reads all parent sets, so it should not be much smaller than their number.
    return min(n_variables, max(_BLOCK_BITS, max_sets.bit_length()))


def solve(problem: Problem, first: SearchResult, state: SearchState) -> SearchResult:
    """Return a best DAG, or `first` if a limit ends the search before."""
    n_variables = len(problem.names)
    needed = memory_needed(n_variables, max(map(len, problem.masks)))
    state.check_memory(needed, f"dynamic programming over {n_variables} class variables")
    ranks, reason = best_dag(problem, lambda: state.stop(first.ranks, first.least_regret))
    if ranks is None:
        return first._replace(status=reason)
    return SearchResult(ranks, problem.total_regret(ranks), "optimal")


def best_dag(problem: Problem, stop: Callable[[], str]) -> tuple[list[int] | None, str]:
    """Return a best DAG and ""; None if `stop` returned a reason, the second value, or if there is no DAG."""
    n_variables = len(problem.names)
    if reason := stop():
        return None, reason
    if n_variables <= NUMPY_LIMIT:
        total = least_totals(problem)
    else:
        total, reason = _least_totals_in_blocks(problem, stop)
    subset = (1 << n_variables) - 1
    if reason or total[subset] == np.inf:
        return None, reason
    ranks = [-1] * n_variables
    while subset:
        child, rank = _sink(problem, total, subset)
        ranks[child] = rank
        subset ^= 1 << child
    return ranks, ""


def least_totals(problem: Problem) -> Floats:
    """Compute the least total regret of a DAG over each subset of the class variables."""
    n_variables = len(problem.names)
    # The least regret of each child's parent sets within each subset: first the sets, then by adding class variables.
    within = np.full((n_variables, 1 << n_variables), np.inf)
    for child, row in enumerate(within):
        row[list(problem.masks[child])] = problem.regrets[child]
    for variable in range(n_variables):
        halves = within.reshape(n_variables, -1, 2, 1 << variable)
        np.minimum(halves[:, :, 1], halves[:, :, 0], out=halves[:, :, 1])

    subsets = np.arange(1 << n_variables)
    sizes = np.bitwise_count(subsets)
    total = np.full(len(subsets), np.inf)
    total[0] = 0.0
    for size in range(1, n_variables + 1):
        of_size = subsets[sizes == size]
        for child in range(n_variables):
            rest = of_size[of_size >> child & 1 == 1] ^ 1 << child
            subset = rest | 1 << child
            total[subset] = np.minimum(total[subset], total[rest] + within[child, rest])
    return total


def _least_totals_in_blocks(problem: Problem, stop: Callable[[], str]) -> tuple[Floats, str]:
    """Compute the same totals by the compiled loop; the second value says why `stop` ended it, if it did."""
    from .subset_kernel import fill_blocks

    n_variables = len(problem.names)
    bits = _block_bits(n_variables, max(map(len, problem.masks)))
    start = np.cumsum([0, *map(len, problem.masks)])
    masks = np.array([mask for row in problem.masks for mask in row], dtype=np.int64)
    regrets = np.array([regret for row in problem.regrets for regret in row])
    possible = np.bitwise_or.reduceat(masks, start[:-1])
    within = np.empty((n_variables, 1 << bits))
    made_for = np.full(n_variables, -1)
    total = np.full(1 << n_variables, np.inf)
    total[0] = 0.0
    stride, n_blocks = max(1, _STRIDE >> bits), total.size >> bits
    for block in range(0, n_blocks, stride):
        if reason := stop():
            return total, reason
        last = min(block + stride, n_blocks)
        fill_blocks(start, masks, regrets, possible, within, made_for, total, block, last)
    return total, ""


def _sink(problem: Problem, total: Floats, subset: int) -> tuple[int, int]:
    """Return the sink of a best DAG over a subset and the rank of its parent set.

    Ties are broken in favour of the last one, so that the first class variables become ancestors.
    """
    for child in range(len(problem.names) - 1, -1, -1):
        rest = subset & ~(1 << child)
        if rest != subset:
            rank = next((rank for rank, mask in enumerate(problem.masks[child]) if not mask & ~rest), None)
            if rank is not None and total[rest] + problem.regrets[child][rank] == total[subset]:
                return child, rank
    raise RuntimeError(f"no sink explains the best DAG over the subset {subset:b}")
