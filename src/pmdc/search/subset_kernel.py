"""The compiled loop of `dynamic_programming` for many class variables.

Only the total of each subset is kept, eight bytes. The best parent set within each subset would take K/2 times as much:
subsets are processed in blocks that differ in the first few class variables only, and the table of the best sets is
recomputed for each block, in the cache of the core.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import compiled

CHUNK_BITS = 5
"""The subsets of so many class variables are processed one by one; the rest by vectors of 2**CHUNK_BITS subsets."""


@compiled()
def fill_blocks(
    start: Codes,
    masks: Codes,
    regrets: Floats,
    possible: Codes,
    within: Floats,
    made_for: Codes,
    total: Floats,
    first: int,
    last: int,
) -> None:
    """Compute the least total regret of a DAG over each subset of the blocks from `first` up to `last`.

    `within` and `made_for` are scratch space: a block of regrets for each child, and the class variables outside the
    block that it was made for.
    """
    n_variables, size = within.shape
    chunk = 1 << CHUNK_BITS
    for block in range(first, last):
        outside = block * size  # the class variables outside the block that all of its subsets have
        for child in range(n_variables):
            relevant = outside & possible[child]
            if relevant != made_for[child] and (1 << child < size or outside >> child & 1):
                made_for[child] = relevant
                _best_within(start, masks, regrets, child, outside, within[child])
        for at in range(outside, outside + size, chunk):
            inside = at - outside
            for child in range(CHUNK_BITS, n_variables):
                if at >> child & 1:
                    _add_sink(total, at, at ^ (1 << child), within[child], inside)
            for subset in range(chunk):
                best = total[at + subset]
                for child in range(CHUNK_BITS):
                    if subset >> child & 1:
                        value = total[at + (subset ^ (1 << child))] + within[child, inside + subset]
                        if value < best:
                            best = value
                total[at + subset] = best


@compiled()
def _best_within(start: Codes, masks: Codes, regrets: Floats, child: int, outside: int, best: Floats) -> None:
    """Compute the least regret of the child's parent sets within each subset of a block."""
    size = len(best)
    chunk = (1 << CHUNK_BITS) - 1
    best[:] = np.inf
    for i in range(start[child], start[child + 1]):
        if masks[i] & ~(outside | (size - 1)) == 0:
            inside = masks[i] & (size - 1)
            # Enumerate the supersets within the chunk.
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
    for i in range(1 << CHUNK_BITS):
        value = total[rest + i] + within[inside + i]
        total[at + i] = value if value < total[at + i] else total[at + i]
