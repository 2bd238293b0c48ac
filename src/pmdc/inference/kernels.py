"""Compiled loops of exact inference for one block of rows.

A block of rows is a matrix with one line for each cell and one column for each row, so the inner loops run over rows.
`lines` holds the messages of all cliques, then the tables of all factors, then one neutral line (1 for probabilities,
0 for logarithms). `conditional` holds P(eliminated variable | separator, evidence) of each clique and `belief` the
distribution of each separator, followed by the marginals that are computed. In all of them the cliques come in
elimination order, the configurations of a separator with its last variable fastest, and then the eliminated variable.

`collect` eliminates the class variables from the first clique to the last (the root). It runs on probabilities and
marks the rows in which a product underflowed; `collect_log` does the same on logarithms, and sums or maximises.
`distribute` (marginals) and `draw` (samples) go back from the root using `conditional`; `search` (the most probable
outcomes) uses the messages of the maximising sweep.

Each kernel is compiled on its first call. It calls no other compiled function, because numba would compile such a
function twice: on its own and within the caller. Numba is imported with this module, so import it only where needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.compiled import compiled

TINY = 1e-290
"""Products below this may have lost digits."""
LOWEST, HIGHEST = 1e-60, 2.0
"""A message is rescaled if its maximum is outside these; conditional tables give messages of at most 1."""

SIZE, CELLS, COUNT, FIRST_STEP, FIRST_AT, FIRST_CELL = range(6)
"""Columns of `Index.cliques`."""


class Index(NamedTuple):
    """The position of each operand (factor or target) of each clique in a matrix of lines."""

    cliques: Codes
    """Shape (K, 6): states of the eliminated variable; configurations of the separator; number of operands; and where
    the clique starts in `step`, in `at` and in `conditional`."""
    at: Codes
    """The line of each operand for the first state, by clique, configuration of the separator and operand."""
    step: Codes
    """The number of lines to the next state of the eliminated variable, by clique and operand."""


@compiled()
def collect(
    cliques: Codes, at: Codes, step: Codes, lines: Floats, conditional: Floats, log_total: Floats, lost: Marks
) -> None:
    """Sum out all class variables on probabilities, add the log of the total and mark the rows with an underflow."""
    n_rows, neutral = lines.shape[1], len(lines) - 1
    inverse, largest = np.empty(n_rows), np.empty(n_rows)
    message = 0
    for c in range(len(cliques)):
        size, cells, count, g = cliques[c, SIZE], cliques[c, CELLS], cliques[c, COUNT], cliques[c, FIRST_STEP]
        for b in range(n_rows):
            largest[b] = 0.0
        for s in range(cells):
            first = cliques[c, FIRST_CELL] + s * size
            a = cliques[c, FIRST_AT] + s * count
            for b in range(n_rows):
                lines[message, b] = 0.0
            for state in range(size):
                cell = first + state
                one = at[a] + state * step[g]
                two = at[a + 1] + state * step[g + 1] if count > 1 else neutral
                three = at[a + 2] + state * step[g + 2] if count > 2 else neutral
                for b in range(n_rows):
                    conditional[cell, b] = lines[one, b] * lines[two, b] * lines[three, b]
                for f in range(3, count):
                    one = at[a + f] + state * step[g + f]
                    for b in range(n_rows):
                        conditional[cell, b] *= lines[one, b]
                small = 0
                for b in range(n_rows):
                    lines[message, b] += conditional[cell, b]
                    small += conditional[cell, b] < TINY
                if small > 0:
                    for b in range(n_rows):
                        if conditional[cell, b] < TINY and not lost[b]:
                            positive = 0
                            for f in range(count):
                                positive += lines[at[a + f] + state * step[g + f], b] > 0
                            lost[b] = positive == count
            for b in range(n_rows):
                total = lines[message, b]
                inverse[b] = 1.0 / total if total > 0 else 0.0
                largest[b] = max(largest[b], total)
            for cell in range(first, first + size):
                for b in range(n_rows):
                    conditional[cell, b] *= inverse[b]
            message += 1
        for b in range(n_rows):  # a message of one cell, such as that of a root, is a factor of the total
            if cells == 1 or largest[b] < LOWEST or largest[b] > HIGHEST:
                log_total[b] += np.log(largest[b])
                for line in range(message - cells if largest[b] > 0 else message, message):
                    before = lines[line, b]
                    lines[line, b] = before / largest[b]
                    if before > 0 and lines[line, b] < TINY:
                        lost[b] = True


@compiled()
def collect_log(
    cliques: Codes, at: Codes, step: Codes, n_summed: int, lines: Floats, conditional: Floats, log_total: Floats
) -> None:
    """Sum out the first `n_summed` class variables on logarithms and maximise over the others; add the log total.

    `conditional` (probabilities) is filled only if all class variables are summed out.
    """
    n_rows, neutral = lines.shape[1], len(lines) - 1
    n_states = 0
    for c in range(len(cliques)):
        n_states = max(n_states, cliques[c, SIZE])
    potential, largest, total = np.empty((n_states, n_rows)), np.empty(n_rows), np.empty(n_rows)
    message = 0
    for c in range(len(cliques)):
        size, cells, count, g = cliques[c, SIZE], cliques[c, CELLS], cliques[c, COUNT], cliques[c, FIRST_STEP]
        for s in range(cells):
            a = cliques[c, FIRST_AT] + s * count
            for b in range(n_rows):
                largest[b], total[b] = -np.inf, 0.0
            for state in range(size):
                one = at[a] + state * step[g]
                two = at[a + 1] + state * step[g + 1] if count > 1 else neutral
                three = at[a + 2] + state * step[g + 2] if count > 2 else neutral
                for b in range(n_rows):
                    potential[state, b] = lines[one, b] + lines[two, b] + lines[three, b]
                for f in range(3, count):
                    one = at[a + f] + state * step[g + f]
                    for b in range(n_rows):
                        potential[state, b] += lines[one, b]
                for b in range(n_rows):
                    largest[b] = max(largest[b], potential[state, b])
            if c < n_summed:
                for state in range(size):
                    for b in range(n_rows):
                        below = largest[b] - potential[state, b]
                        potential[state, b] = 1.0 if below == 0 else np.exp(-below) if below < np.inf else 0.0
                        total[b] += potential[state, b]
                for b in range(n_rows):
                    if total[b] > 0:
                        largest[b] += np.log(total[b])
                for state in range(size if n_summed == len(cliques) else 0):
                    cell = cliques[c, FIRST_CELL] + s * size + state
                    for b in range(n_rows):
                        conditional[cell, b] = potential[state, b] / total[b] if total[b] > 0 else 0.0
            for b in range(n_rows):
                lines[message, b] = largest[b]
            message += 1
        if cells == 1:  # a factor of the total, as in `collect`
            for b in range(n_rows):
                log_total[b] += lines[message - 1, b]
                lines[message - 1, b] = 0.0


@compiled()
def distribute(cliques: Codes, at: Codes, step: Codes, conditional: Floats, belief: Floats) -> None:
    """Add the marginals of `conditional` to the targets in `belief`, which must be zero; `conditional` is overwritten.

    The targets of a clique are the separators of its children and the marginals that are computed from it.
    """
    n_rows = belief.shape[1]
    separator = 0
    for c in range(len(cliques)):
        separator += cliques[c, CELLS]
    for c in range(len(cliques) - 1, -1, -1):
        size, cells, count, g = cliques[c, SIZE], cliques[c, CELLS], cliques[c, COUNT], cliques[c, FIRST_STEP]
        separator -= cells
        for s in range(cells):
            first = cliques[c, FIRST_CELL] + s * size
            a = cliques[c, FIRST_AT] + s * count
            if cells > 1:
                for cell in range(first, first + size):
                    for b in range(n_rows):
                        conditional[cell, b] *= belief[separator + s, b]
            for t in range(count):
                for state in range(size):
                    target = at[a + t] + state * step[g + t]
                    for b in range(n_rows):
                        belief[target, b] += conditional[first + state, b]


@compiled()
def draw(cliques: Codes, scope: Codes, stride: Codes, conditional: Floats, uniform: Floats, codes: Codes) -> None:
    """Draw outcomes by inversion of `conditional`; `uniform` and `codes` have shape (n_rows, n_draws, K)."""
    for b in range(len(codes)):
        for m in range(codes.shape[1]):
            for c in range(len(cliques) - 1, -1, -1):
                s = 0
                for axis in range(1, scope.shape[1]):
                    s += codes[b, m, scope[c, axis]] * stride[c, axis]
                size = cliques[c, SIZE]
                first = cliques[c, FIRST_CELL] + s * size
                total = 0.0
                for cell in range(first, first + size):
                    total += conditional[cell, b]
                height, cumulative, state = uniform[b, m, c] * total, 0.0, 0
                for cell in range(first, first + size):
                    cumulative += conditional[cell, b]
                    if cumulative > height:  # never at a state of probability zero: the sum does not grow
                        state = cell - first
                        break
                codes[b, m, scope[c, 0]] = state


@compiled()
def search(
    cliques: Codes,
    at: Codes,
    step: Codes,
    scope: Codes,
    stride: Codes,
    n_summed: int,
    lines: Floats,
    tolerance: float,
    log_best: Floats,
    codes: Codes,
) -> None:
    """Find the most probable outcomes after `collect_log`; `codes` (zeros) has shape (n_rows, k, K).

    Best-first search from the root. A partial outcome has states for the class variables that were eliminated last; the
    messages give the exact value of its best completion. Each round takes the best partial outcome, completes it with
    the best state of each remaining variable, and adds a partial outcome for each other state on the way. These are
    disjoint sets of outcomes, so each round finds the next best outcome. Partial outcomes are kept sorted, at most k.

    In the first round the first state within the relative `tolerance` of the best is taken, in later rounds the best.
    """
    n_cliques, k = len(cliques), codes.shape[1]
    value, slot, depth = np.empty(k), np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    partial = np.zeros((k, n_cliques), dtype=np.int64)
    n_states = 0
    for c in range(n_cliques):
        n_states = max(n_states, cliques[c, SIZE])
    potential = np.empty(n_states)
    for b in range(len(codes)):
        value[0], slot[0], depth[0], n_kept = log_best[b], 0, n_cliques, 1
        for v in range(n_cliques):
            partial[0, v] = 0
        for found in range(k):
            for v in range(n_cliques):
                codes[b, found, v] = partial[slot[found], v]
            slack = tolerance if found == 0 else 0.0
            for c in range(depth[slot[found]] - 1, n_summed - 1, -1):
                s = 0
                for axis in range(1, scope.shape[1]):
                    s += codes[b, found, scope[c, axis]] * stride[c, axis]
                count, g = cliques[c, COUNT], cliques[c, FIRST_STEP]
                a = cliques[c, FIRST_AT] + s * count
                best, highest = 0, -np.inf
                for state in range(cliques[c, SIZE]):
                    potential[state] = 0.0
                    for f in range(count):
                        potential[state] += lines[at[a + f] + state * step[g + f], b]
                    if potential[state] > highest + slack * max(1.0, abs(potential[state])):
                        best, highest = state, potential[state]
                for state in range(cliques[c, SIZE] if found + 1 < k else 0):
                    other = -np.inf
                    if potential[state] > -np.inf:
                        other = value[found] - (potential[best] - potential[state])
                    if state == best or (n_kept == k and other <= value[k - 1]):
                        continue
                    if n_kept < k:
                        new = n_kept
                        n_kept += 1
                    else:
                        new = slot[k - 1]
                    position = n_kept - 1
                    while position > found + 1 and value[position - 1] < other:
                        value[position], slot[position] = value[position - 1], slot[position - 1]
                        position -= 1
                    value[position], slot[position], depth[new] = other, new, c
                    for v in range(n_cliques):
                        partial[new, v] = codes[b, found, v]
                    partial[new, scope[c, 0]] = state
                codes[b, found, scope[c, 0]] = best
