"""The best DAG by dynamic programming over the subsets of the class variables.

Silander and Myllymäki, "A simple approach for finding the globally optimal Bayesian network structure", UAI
2006: the best DAG over a subset has a sink, whose parents are its best set within the rest of the subset, and
without the sink it is a best DAG over that rest. Both steps are exact, so the result is proved when it is
found.

Kept is only the total regret of each subset, eight bytes; the sinks of the best DAG are found again on the way
back. The best parent set within each subset would take K/2 times as much and is never kept: subsets are gone through in
blocks that differ in the first few class variables only, and for each block the table of the best sets within is made
anew, in the cache.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc._support.compiled import compiled

from .problem import Outcome, Problem
from .progress import Watch

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_STRIDE = 1 << 20
"""Subsets between two looks at the clock: some hundredths of a second."""
_BLOCK = 11
"""Class variables whose subsets make a block, at least: its tables stay in the cache of a core."""
_CHUNK = 5
"""Class variables whose subsets are gone through one by one; the rest goes by vectors of 2**_CHUNK subsets."""


def memory_needed(class_variables: int, most_sets: int) -> int:
    """Bytes that the search takes for so many class variables with at most so many parent sets each.

    For each subset of the class variables the total regret, for each class variable a block of regrets, and the parent
    sets themselves; 8 bytes each.
    """
    bits = _block_bits(class_variables, most_sets)
    subsets = 1 << max(class_variables, bits)
    return 8 * (subsets + (class_variables << bits) + 2 * class_variables * most_sets)


def _block_bits(class_variables: int, most_sets: int) -> int:
    # Each block looks at all parent sets, so it should not be much smaller than their number.
    return max(_CHUNK, min(class_variables, max(_BLOCK, most_sets.bit_length())))


def solve(problem: Problem, first: Outcome, watch: Watch) -> Outcome:
    """The best DAG, or `first` if the watch ends the search before."""
    count = len(problem.names)
    most_sets = max(map(len, problem.masks))
    watch.take_memory(memory_needed(count, most_sets), f"dynamic programming over {count} class variables")

    bits = _block_bits(count, most_sets)
    start = np.cumsum([0, *map(len, problem.masks)])
    masks = np.array([mask for row in problem.masks for mask in row], dtype=np.int64)
    regrets = np.array([regret for row in problem.regrets for regret in row])
    possible = np.bitwise_or.reduceat(masks, start[:-1])
    within = np.empty((count, 1 << bits))
    made_for = np.full(count, -1)
    total = np.full(1 << max(count, bits), np.inf)
    total[0] = 0.0
    stride = max(1, _STRIDE >> bits)
    blocks = total.size >> bits
    for block in range(0, blocks, stride):
        if reason := watch.stop(first.ranks, first.least_regret):
            return first._replace(status=reason)
        _fill_blocks(start, masks, regrets, possible, within, made_for, total, block, min(block + stride, blocks))

    chosen = [-1] * count
    subset = (1 << count) - 1
    while subset:
        child, rank = _sink(problem, total, subset)
        chosen[child] = rank
        subset ^= 1 << child
    return Outcome(chosen, problem.total_regret(chosen), "optimal")


def _sink(problem: Problem, total: Floats, subset: int) -> tuple[int, int]:
    """The sink of a best DAG over a subset, and the rank of its parent set.

    The last one, so that among equals the class variables that stand first become ancestors.
    """
    for child in range(len(problem.names) - 1, -1, -1):
        rest = subset & ~(1 << child)
        if rest != subset:
            rank = next((rank for rank, mask in enumerate(problem.masks[child]) if not mask & ~rest), None)
            if rank is not None and total[rest] + problem.regrets[child][rank] == total[subset]:
                return child, rank
    raise RuntimeError(f"no sink explains the best DAG over the subset {subset:b}")


@compiled()
def _fill_blocks(
    start: Ints,
    masks: Ints,
    regrets: Floats,
    possible: Ints,
    within: Floats,
    made_for: Ints,
    total: Floats,
    first: int,
    last: int,
) -> None:
    """The least regret of a DAG over each subset of some blocks."""
    count, size = within.shape
    chunk = 1 << _CHUNK
    for block in range(first, last):
        outside = block * size  # the class variables that all subsets of the block have, besides those that vary
        for child in range(count):
            relevant = outside & possible[child]
            if relevant != made_for[child] and (1 << child < size or outside >> child & 1):
                made_for[child] = relevant
                _best_within(start, masks, regrets, child, outside, within[child])
        for at in range(outside, outside + size, chunk):
            inside = at - outside
            for child in range(_CHUNK, count):
                if at >> child & 1:
                    _add_sink(total, at, at ^ (1 << child), within[child], inside)
            for subset in range(chunk):
                best = total[at + subset]
                for child in range(min(_CHUNK, count)):
                    if subset >> child & 1:
                        value = total[at + (subset ^ (1 << child))] + within[child, inside + subset]
                        if value < best:
                            best = value
                total[at + subset] = best


@compiled()
def _best_within(start: Ints, masks: Ints, regrets: Floats, child: int, outside: int, best: Floats) -> None:
    """The least regret of the parent sets of a class variable within each subset of a block."""
    size = len(best)
    chunk = (1 << _CHUNK) - 1
    best[:] = np.inf
    for i in range(start[child], start[child + 1]):
        if masks[i] & ~(outside | (size - 1)) == 0:
            inside = masks[i] & (size - 1)
            # The subsets of the chunk one by one, because vectors are of no use below their own length.
            free = chunk & ~inside
            more = free
            while True:
                place = inside | more
                if regrets[i] < best[place]:
                    best[place] = regrets[i]
                if more == 0:
                    break
                more = (more - 1) & free
    step = chunk + 1
    while step < size:
        for at in range(0, size, 2 * step):
            pair = best[at : at + 2 * step]
            for i in range(step):
                pair[step + i] = pair[i] if pair[i] < pair[step + i] else pair[step + i]
        step *= 2


@compiled()
def _add_sink(total: Floats, at: int, rest: int, within: Floats, inside: int) -> None:
    for i in range(1 << _CHUNK):
        value = total[rest + i] + within[inside + i]
        total[at + i] = value if value < total[at + i] else total[at + i]
