"""The best DAG by dynamic programming over the subsets of the class variables.

Silander and Myllymäki, "A simple approach for finding the globally optimal Bayesian network structure", UAI
2006: the best DAG over a subset has a sink, whose parents are its best set within the rest of the subset, and
without the sink it is a best DAG over that rest. Both steps are exact, so the result is proved when it is
found.
"""

import time

import numpy as np
import numpy.typing as npt
from numba import njit

from .problem import Outcome, Problem

# Above this the search is refused: it would take most of the memory of an ordinary machine.
MEMORY_LIMIT = 4 * 2**30

# Subsets between two looks at the clock: some hundredths of a second.
_STRIDE = 1 << 18


def memory_needed(class_variables: int, most_sets: int) -> int:
    """Bytes that the search takes for so many class variables with at most so many parent sets each.

    For each class variable and each subset of the others the rank of the best parent set within, and for each
    subset of all of them the total regret (8 bytes) and the sink (1 byte).
    """
    ranks = class_variables << (class_variables - 1)
    return ranks * _rank_type(most_sets).itemsize + (9 << class_variables)


def _rank_type(most_sets: int) -> np.dtype[np.unsignedinteger]:
    # One value more than there are ranks, because the last stands for "no set fits".
    return np.dtype(np.uint16) if most_sets < 2**16 else np.dtype(np.uint32)


def solve(problem: Problem, first: Outcome, deadline: float) -> Outcome:
    """The best DAG, or `first` if the deadline (in terms of `time.perf_counter`) comes before."""
    count = len(problem.names)
    most_sets = max(map(len, problem.masks))
    needed = memory_needed(count, most_sets)
    if needed > MEMORY_LIMIT:
        raise ValueError(
            f"method='dynamic-programming' would take {needed:,} bytes of memory for {count} class "
            f"variables, more than the limit of {MEMORY_LIMIT:,}: use method='integer-program'"
        )

    # The regret of "no set fits" is infinite, so neither step needs a case for it.
    regrets = np.full((count, most_sets + 1), np.inf)
    ranks = np.full((count, 1 << (count - 1)), most_sets, dtype=_rank_type(most_sets))
    for child, row in enumerate(problem.masks):
        if time.perf_counter() >= deadline:
            return first._replace(status="time limit")
        regrets[child, : len(row)] = problem.regrets[child]
        ranks[child, _without(np.array(row, dtype=np.int64), child)] = np.arange(len(row))
        _best_within_each_subset(ranks[child])

    regret = np.zeros(1 << count)
    sink = np.zeros(1 << count, dtype=np.int8)
    for start in range(1, 1 << count, _STRIDE):
        if time.perf_counter() >= deadline:
            return first._replace(status="time limit")
        _best_sinks(ranks, regrets, regret, sink, start, min(start + _STRIDE, 1 << count))

    chosen = [-1] * count
    subset = (1 << count) - 1
    while subset:
        child = int(sink[subset])
        subset ^= 1 << child
        chosen[child] = int(ranks[child, _without(subset, child)])
    return Outcome(chosen, problem.total_regret(chosen), "optimal")


@njit(cache=True)
def _without(subset: int, child: int) -> int:
    """The number of a subset among those that do not contain the child: its bit is closed up."""
    below = (1 << child) - 1
    return (subset & below) | (subset >> 1 & ~below)


@njit(cache=True)
def _best_within_each_subset(ranks: npt.NDArray[np.unsignedinteger]) -> None:
    """Turn the rank of each subset itself into the least rank among its subsets, one member at a time."""
    step = 1
    while step < ranks.size:
        for block in range(0, ranks.size, 2 * step):
            for without in range(block, block + step):
                if ranks[without] < ranks[without + step]:
                    ranks[without + step] = ranks[without]
        step *= 2


@njit(cache=True)
def _best_sinks(
    ranks: npt.NDArray[np.unsignedinteger],
    regrets: npt.NDArray[np.float64],
    regret: npt.NDArray[np.float64],
    sink: npt.NDArray[np.int8],
    start: int,
    stop: int,
) -> None:
    """The least regret of a DAG over each subset from start to stop, and the sink of that DAG."""
    for subset in range(start, stop):
        best = np.inf
        # From the last, so that among equals the class variables that stand first become ancestors.
        for child in range(ranks.shape[0] - 1, -1, -1):
            if subset >> child & 1:
                rest = subset ^ (1 << child)
                total = regret[rest] + regrets[child, ranks[child, _without(rest, child)]]
                if total < best:
                    best = total
                    sink[subset] = child
        regret[subset] = best
