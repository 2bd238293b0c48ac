"""Compiled loops of exact inference, for blocks of rows.

A junction tree comes as a `Plan` of integer arrays. What is known of a block of rows are lines of a matrix,
one for each cell of a table and one column for each row, so that the innermost loops run over rows. The matrix has the
tables of some blocks, one after the other, and then what one of them at a time needs for its messages and beliefs. The
lines of a message or of a clique follow the separator's configurations, the eliminated variable running fastest.

`collect` eliminates one class variable after the other. It leaves, for each of them, a message to the next clique and
the distribution P(variable | separator, evidence): the network turned round, from the class variable eliminated last to
the first. Marginals (`distribute`) and samples (`samples`) are read off it from top to bottom, and the only division is
that of a distribution by its own total. It runs on probabilities, which is fast, and marks the rows in which a product
was too small for a number; `collect_log` does the same for logarithms of any size, and for each variable it either sums
or maximises. Of the maximising sweep only messages are kept: the best states (`mode`) and the best outcomes after
them (`top`) are found from above by looking into the tables again.

Imported by those who call them, when they do: importing numba takes longer than importing all the rest.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import compiled

Marks = npt.NDArray[np.bool_]

TINY = 1e-290
"""A product below this may have lost digits, or all."""
ROWS_AT_ONCE = 8
"""Rows that are read together, as many as have their numbers in one line of the cache."""
FEEBLE, STRONG = 1e-60, 2.0
"""A message is rescaled if its largest number is below or above these. That of conditional tables is at most one."""


class Plan(NamedTuple):
    """A junction tree in arrays. Cliques are numbered by elimination; axes of a clique are its scope, padded.

    Lines are counted from the first one after the tables of all blocks; those of tables, from the first of the block.
    """

    scope: Codes
    """The eliminated class variable, then its separator, in elimination order; shape (K, W)."""
    sizes: Codes
    """Numbers of states of the scope; shape (K, W)."""
    width: Codes
    """How many class variables the separator has."""
    cells: Codes
    """How many configurations the separator has."""
    n_table_lines: int
    factor_start: Codes
    """Factors of clique c: from factor_start[c] to factor_start[c + 1]."""
    factor_place: Codes
    """The first line of a factor, a message or a table."""
    factor_is_table: Marks
    factor_strides: Codes
    """How many lines further the next state of each axis is; shape (F, W)."""
    message: Codes
    """The first line of the message of each clique."""
    conditional: Codes
    """The first line of the distribution of each class variable given its separator."""


class Projection(NamedTuple):
    """Sums of clique beliefs: to the separators of the children, and to whatever is asked for."""

    start: Codes
    place: Codes
    strides: Codes
    belief: Codes
    """The first line of the belief of each separator."""
    target: int
    """The first line of what is asked for, up to the end."""


# Numbers ------------------------------------------------------------------------------------------------------

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0
"""1.5 * 2**52: adding it rounds to an integer, which then stands in the last bits."""


@compiled(fastmath={"contract"}, nogil=True)
def exponential(x: Floats, out: Floats) -> None:
    """exp(x) for x up to about 700, to the last bit but one; 0 below -708.

    Cody and Waite: x = k ln 2 + r with k an integer and |r| < 0.35, so exp(x) = 2^k times the Taylor series of exp(r).
    Unlike the C library's, this one runs in vector registers, and exponentials are most of the cost of inference.
    """
    for i in range(len(x)):
        clipped = max(x[i], -708.0)
        shifted = np.float64(clipped * _LOG2_E + _ROUND)
        k = shifted - _ROUND
        r = clipped - k * _LN2_HIGH - k * _LN2_LOW
        p = 1.0 / 479001600
        p = p * r + 1.0 / 39916800
        p = p * r + 1.0 / 3628800
        p = p * r + 1.0 / 362880
        p = p * r + 1.0 / 40320
        p = p * r + 1.0 / 5040
        p = p * r + 1.0 / 720
        p = p * r + 1.0 / 120
        p = p * r + 1.0 / 24
        p = p * r + 1.0 / 6
        p = p * r + 0.5
        p = p * r + 1.0
        p = np.float64(p * r + 1.0)
        scaled = np.int64(p.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64)
        out[i] = scaled if x[i] >= -708.0 else 0.0


# Reading tables -----------------------------------------------------------------------------------------------


@compiled(nogil=True)
def load(table: Floats, place: int, step: int, most: float, logs: bool, lines: Floats, lost: Marks) -> int:
    """Read a log table, shape (n, cells), into the lines from `place` on, for each block `step` lines further.

    The last row is repeated to fill the last block. Gives the number of log probabilities above `most`, and NaN, which
    must not be there.
    """
    n, cells = table.shape
    width = lines.shape[1]
    some = np.empty((ROWS_AT_ONCE, cells))
    wrong = 0
    for position in range(0, len(lost), ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, len(lost) - position)
        for r in range(count):
            i = min(position + r, n - 1)
            least = np.inf
            for j in range(cells):
                wrong += not table[i, j] <= most
            if logs:
                for j in range(cells):
                    some[r, j] = table[i, j]
            else:
                exponential(table[i], some[r])
                for j in range(cells):
                    least = min(least, some[r, j])
                if least < TINY:
                    for j in range(cells):
                        if some[r, j] < TINY and table[i, j] > -np.inf:
                            lost[position + r] = True
        block, b = divmod(position, width)
        if b + ROWS_AT_ONCE <= width and count == ROWS_AT_ONCE:  # a whole piece of a line at a time
            first = place + block * step
            for j in range(cells):
                for r in range(ROWS_AT_ONCE):
                    lines[first + j, b + r] = some[r, j]
        else:
            for r in range(count):
                block, b = divmod(position + r, width)
                for j in range(cells):
                    lines[place + block * step + j, b] = some[r, j]
    return wrong


@compiled(nogil=True)
def observe(evidence: Codes, states: Codes, place: int, step: int, zero: float, lines: Floats) -> None:
    """Set the cells of a table that `load` has read to zero where they contradict what is known of a class variable.

    `evidence` has its state in each row, -1 where it is unknown, and `states` its state in each cell of the table.
    """
    n_rows, width = len(evidence), lines.shape[1]
    for block in range(-(-n_rows // width)):
        for j in range(len(states)):
            for b in range(width):
                known = evidence[min(block * width + b, n_rows - 1)]
                if known >= 0 and known != states[j]:
                    lines[place + block * step + j, b] = zero


@compiled(nogil=True)
def _start(plan: Plan, c: int, block: int, n_blocks: int, places: Codes, digits: Codes) -> int:
    """Put every factor of a clique at the first configuration of the separator; gives the number of factors."""
    first, end = plan.factor_start[c], plan.factor_start[c + 1]
    for f in range(first, end):
        places[f - first] = _factor(plan, f, block, n_blocks)
    digits[:] = 0
    return end - first


@compiled(nogil=True)
def _factor(plan: Plan, f: int, block: int, n_blocks: int) -> int:
    blocks_before = block if plan.factor_is_table[f] else n_blocks
    return plan.factor_place[f] + blocks_before * plan.n_table_lines


@compiled(nogil=True)
def _advance(
    sizes: Codes, c: int, width: int, strides: Codes, first: int, count: int, places: Codes, digits: Codes
) -> None:
    """Go to the next configuration of the separator, the last class variable running fastest."""
    for axis in range(width, 0, -1):
        digits[axis] += 1
        if digits[axis] < sizes[c, axis]:
            for f in range(count):
                places[f] += strides[first + f, axis]
            return
        digits[axis] = 0
        for f in range(count):
            places[f] -= strides[first + f, axis] * (sizes[c, axis] - 1)


@compiled(nogil=True)
def _point(plan: Plan, lines: Floats, block: int, n_blocks: int, c: int, state: int, codes: Codes, b: int) -> float:
    """The log potential of one cell of a clique in one row: the eliminated variable's state, the codes of the rest."""
    total = 0.0
    for f in range(plan.factor_start[c], plan.factor_start[c + 1]):
        place = _factor(plan, f, block, n_blocks) + state * plan.factor_strides[f, 0]
        for axis in range(1, plan.width[c] + 1):
            place += codes[plan.scope[c, axis]] * plan.factor_strides[f, axis]
        total += lines[place, b]
    return total


# Towards the root ---------------------------------------------------------------------------------------------


@compiled(nogil=True)
def collect(plan: Plan, lines: Floats, block: int, n_blocks: int, log_total: Floats, lost: Marks) -> None:
    """Sum out all class variables, on probabilities; marks the rows in which a product got lost."""
    n_rows, base = lines.shape[1], n_blocks * plan.n_table_lines
    places, digits = np.empty(plan.factor_start[-1], dtype=np.int64), np.empty(plan.scope.shape[1], dtype=np.int64)
    at = np.empty_like(places)
    inverse = np.empty(n_rows)
    log_total[:] = 0.0
    for c in range(len(plan.scope)):
        size, first = plan.sizes[c, 0], plan.factor_start[c]
        n_factors = _start(plan, c, block, n_blocks, places, digits)
        for s in range(plan.cells[c]):
            message = base + plan.message[c] + s
            cells = base + plan.conditional[c] + s * size
            for b in range(n_rows):
                lines[message, b] = 0.0
            for state in range(size):
                cell = cells + state
                for f in range(n_factors):
                    at[f] = places[f] + state * plan.factor_strides[first + f, 0]
                _multiply(lines, at, n_factors, cell)
                small = 0
                for b in range(n_rows):
                    lines[message, b] += lines[cell, b]
                    small += lines[cell, b] < TINY
                if small:
                    for b in range(n_rows):
                        if lines[cell, b] < TINY and not lost[b]:
                            possible = True
                            for f in range(n_factors):
                                possible = possible and lines[at[f], b] > 0
                            lost[b] = possible
            for b in range(n_rows):
                inverse[b] = 1.0 / lines[message, b] if lines[message, b] > 0 else 0.0
            for cell in range(cells, cells + size):
                for b in range(n_rows):
                    lines[cell, b] *= inverse[b]
            _advance(plan.sizes, c, plan.width[c], plan.factor_strides, first, n_factors, places, digits)
        _rescale(lines, base + plan.message[c], plan.cells[c], plan.width[c] == 0, log_total, lost)


@compiled(nogil=True)
def _multiply(lines: Floats, at: Codes, n_factors: int, cell: int) -> None:
    """The product of some lines; two and three at once, to read and write less."""
    n_rows = lines.shape[1]
    one = at[0]
    if n_factors == 1:
        for b in range(n_rows):
            lines[cell, b] = lines[one, b]
        return
    two = at[1]
    if n_factors == 2:
        for b in range(n_rows):
            lines[cell, b] = lines[one, b] * lines[two, b]
        return
    three = at[2]
    for b in range(n_rows):
        lines[cell, b] = lines[one, b] * lines[two, b] * lines[three, b]
    for f in range(3, n_factors):
        one = at[f]
        for b in range(n_rows):
            lines[cell, b] *= lines[one, b]


@compiled(nogil=True)
def _rescale(lines: Floats, first: int, cells: int, root: bool, log_total: Floats, lost: Marks) -> None:
    """Rescale a message in rows where it could underflow or overflow; at a root, take the total."""
    n_rows = len(log_total)
    if root:
        for b in range(n_rows):
            log_total[b] += np.log(lines[first, b])
        return
    largest = np.zeros(n_rows)
    for line in range(first, first + cells):
        for b in range(n_rows):
            largest[b] = max(largest[b], lines[line, b])
    for b in range(n_rows):
        if 0 < largest[b] < FEEBLE or largest[b] > STRONG:
            log_total[b] += np.log(largest[b])
            for line in range(first, first + cells):
                was = lines[line, b]
                lines[line, b] = was / largest[b]
                if was > 0 and lines[line, b] < TINY:
                    lost[b] = True


@compiled(nogil=True)
def collect_log(
    plan: Plan, lines: Floats, block: int, n_blocks: int, maximise: Marks, keep: bool, log_total: Floats
) -> None:
    """Sum out or maximise all class variables, on log probabilities of any size; nothing gets lost.

    `keep` asks for the distributions given the separators, as probabilities.
    """
    n_rows, base = lines.shape[1], n_blocks * plan.n_table_lines
    places, digits = np.empty(plan.factor_start[-1], dtype=np.int64), np.empty(plan.scope.shape[1], dtype=np.int64)
    at = np.empty_like(places)
    potential, terms = np.empty((plan.sizes[:, 0].max(), n_rows)), np.empty(n_rows)
    total, largest = np.empty(n_rows), np.empty(n_rows)
    log_total[:] = 0.0
    for c in range(len(plan.scope)):
        size, first = plan.sizes[c, 0], plan.factor_start[c]
        n_factors = _start(plan, c, block, n_blocks, places, digits)
        for s in range(plan.cells[c]):
            message = base + plan.message[c] + s
            largest[:] = -np.inf
            for state in range(size):
                for f in range(n_factors):
                    at[f] = places[f] + state * plan.factor_strides[first + f, 0]
                if maximise[c] and n_factors <= 3:
                    _raise(lines, at, n_factors, largest)
                    continue
                _add(lines, at, n_factors, potential, state)
                for b in range(n_rows):
                    largest[b] = max(largest[b], potential[state, b])
            if not maximise[c]:
                total[:] = 0.0
                for state in range(size):
                    _difference(potential[state], largest, terms)
                    for b in range(n_rows):
                        total[b] += terms[b]
                for b in range(n_rows):
                    largest[b] += np.log(total[b]) if total[b] > 0 else 0.0
                for state in range(size if keep else 0):
                    _difference(potential[state], largest, lines[base + plan.conditional[c] + s * size + state])
            for b in range(n_rows):
                lines[message, b] = largest[b]
            _advance(plan.sizes, c, plan.width[c], plan.factor_strides, first, n_factors, places, digits)
        if plan.width[c] == 0:
            log_total += lines[base + plan.message[c]]


@compiled(nogil=True)
def _add(lines: Floats, at: Codes, n_factors: int, potential: Floats, state: int) -> None:
    """The sum of some lines; two and three at once, to read and write less."""
    n_rows = lines.shape[1]
    one = at[0]
    if n_factors == 1:
        for b in range(n_rows):
            potential[state, b] = lines[one, b]
        return
    two = at[1]
    if n_factors == 2:
        for b in range(n_rows):
            potential[state, b] = lines[one, b] + lines[two, b]
        return
    three = at[2]
    for b in range(n_rows):
        potential[state, b] = lines[one, b] + lines[two, b] + lines[three, b]
    for f in range(3, n_factors):
        one = at[f]
        for b in range(n_rows):
            potential[state, b] += lines[one, b]


@compiled(nogil=True)
def _raise(lines: Floats, at: Codes, n_factors: int, largest: Floats) -> None:
    """Raise the maximum to the sum of up to three lines, where that is larger."""
    one = at[0]
    if n_factors == 1:
        for b in range(len(largest)):
            largest[b] = max(largest[b], lines[one, b])
        return
    two = at[1]
    if n_factors == 2:
        for b in range(len(largest)):
            largest[b] = max(largest[b], lines[one, b] + lines[two, b])
        return
    three = at[2]
    for b in range(len(largest)):
        largest[b] = max(largest[b], lines[one, b] + lines[two, b] + lines[three, b])


@compiled(nogil=True)
def _difference(log_part: Floats, log_whole: Floats, out: Floats) -> None:
    """exp(log_part - log_whole), and 0 where both are impossible."""
    for b in range(len(out)):
        out[b] = log_part[b] - log_whole[b] if log_part[b] > -np.inf else -np.inf
    exponential(out, out)


# From the root ------------------------------------------------------------------------------------------------


@compiled(nogil=True)
def distribute(plan: Plan, projection: Projection, lines: Floats, base: int) -> None:
    """Turn the distributions given separators into beliefs, and sum those to what is asked for."""
    n_rows = lines.shape[1]
    n_axes = plan.scope.shape[1]
    places, digits = np.empty(projection.start[-1], dtype=np.int64), np.empty(n_axes, dtype=np.int64)
    lines[base + projection.belief.min() :] = 0.0
    for c in range(len(plan.scope) - 1, -1, -1):
        size, first = plan.sizes[c, 0], projection.start[c]
        count = projection.start[c + 1] - first
        for p in range(count):
            places[p] = base + projection.place[first + p]
        digits[:] = 0
        for s in range(plan.cells[c]):
            separator = base + projection.belief[c] + s
            cells = base + plan.conditional[c] + s * size
            if plan.width[c] > 0:
                for cell in range(cells, cells + size):
                    for b in range(n_rows):
                        lines[cell, b] *= lines[separator, b]
            for p in range(count):
                out, stride = places[p], projection.strides[first + p, 0]
                for cell in range(cells, cells + size):
                    for b in range(n_rows):
                        lines[out, b] += lines[cell, b]
                    out += stride
            _advance(plan.sizes, c, plan.width[c], projection.strides, first, count, places, digits)


@compiled(nogil=True)
def beliefs(
    plan: Plan,
    projection: Projection,
    lines: Floats,
    logs: bool,
    out: Floats,
    log_total: Floats,
    lost: Marks,
) -> None:
    """Sum-product: what is asked for, shape (n, cells), and the log probability of the evidence."""
    n_rows = lines.shape[1]
    n_blocks = len(lost) // n_rows
    base = n_blocks * plan.n_table_lines
    for block in range(n_blocks):
        first = block * n_rows
        _sum_out(plan, lines, block, n_blocks, logs, log_total[first : first + n_rows], lost[first : first + n_rows])
        if out.shape[1] == 0:
            continue
        distribute(plan, projection, lines, base)
        for b in range(min(n_rows, len(out) - first)):
            for j in range(out.shape[1]):
                out[first + b, j] = lines[base + projection.target + j, b]


@compiled(nogil=True)
def _sum_out(plan: Plan, lines: Floats, block: int, n_blocks: int, logs: bool, log_total: Floats, lost: Marks) -> None:
    if logs:
        collect_log(plan, lines, block, n_blocks, np.zeros(len(plan.scope), dtype=np.bool_), True, log_total)
    else:
        collect(plan, lines, block, n_blocks, log_total, lost)


@compiled(nogil=True)
def samples(
    plan: Plan, lines: Floats, logs: bool, uniform: Floats, codes: Codes, log_total: Floats, lost: Marks
) -> None:
    """Outcomes drawn from the distribution given the evidence; uniform and codes have shape (n, m, K)."""
    n_rows = lines.shape[1]
    n_blocks = len(lost) // n_rows
    for block in range(n_blocks):
        first = block * n_rows
        end = first + n_rows
        _sum_out(plan, lines, block, n_blocks, logs, log_total[first:end], lost[first:end])
        _draw(plan, lines, n_blocks * plan.n_table_lines, uniform[first:end], codes[first:end])


@compiled(nogil=True)
def _draw(plan: Plan, lines: Floats, base: int, uniform: Floats, codes: Codes) -> None:
    """Draw from the distributions given separators, by inversion."""
    for b in range(len(codes)):
        for m in range(codes.shape[1]):
            outcome = codes[b, m]
            for c in range(len(plan.scope) - 1, -1, -1):
                place, size = base + _place(plan, c, outcome), plan.sizes[c, 0]
                total = 0.0
                for state in range(size):
                    total += lines[place + state, b]
                height, so_far, chosen = uniform[b, m, c] * total, 0.0, 0
                for state in range(size):
                    so_far += lines[place + state, b]
                    if so_far > height:  # never at a state of probability zero, where the sum does not grow
                        chosen = state
                        break
                outcome[plan.scope[c, 0]] = chosen


@compiled(nogil=True)
def _place(plan: Plan, c: int, codes: Codes) -> int:
    """The first line of the distribution of a variable given this configuration of its separator."""
    s = 0
    for axis in range(1, plan.width[c] + 1):
        s = s * plan.sizes[c, axis] + codes[plan.scope[c, axis]]
    return plan.conditional[c] + s * plan.sizes[c, 0]


# The most probable outcomes -----------------------------------------------------------------------------------


@compiled(nogil=True)
def mode(plan: Plan, lines: Floats, maximise: Marks, tolerance: float, codes: Codes, log_total: Floats) -> None:
    """Max-product: the best states of the maximised class variables, with the log of what they are worth."""
    n_rows = lines.shape[1]
    n_blocks = len(log_total) // n_rows
    for block in range(n_blocks):
        first = block * n_rows
        end = first + n_rows
        collect_log(plan, lines, block, n_blocks, maximise, False, log_total[first:end])
        _descend(plan, lines, block, n_blocks, maximise, tolerance, codes[first:end])


@compiled(nogil=True)
def _descend(
    plan: Plan, lines: Floats, block: int, n_blocks: int, maximise: Marks, tolerance: float, codes: Codes
) -> None:
    """The best state of each maximised class variable, from the root on; of equals, the first."""
    for b in range(len(codes)):
        outcome = codes[b]
        for c in range(len(plan.scope) - 1, -1, -1):
            if not maximise[c]:
                continue
            best, chosen = -np.inf, 0
            for state in range(plan.sizes[c, 0]):
                value = _point(plan, lines, block, n_blocks, c, state, outcome, b)
                if value > best + tolerance * max(1.0, abs(value)):
                    best, chosen = value, state
            outcome[plan.scope[c, 0]] = chosen


@compiled(nogil=True)
def top(plan: Plan, lines: Floats, codes: Codes, log_total: Floats) -> None:
    """The most probable outcomes, in descending order; codes have shape (n, k, K)."""
    n_rows = lines.shape[1]
    n_blocks = len(log_total) // n_rows
    maximise = np.ones(len(plan.scope), dtype=np.bool_)
    for block in range(n_blocks):
        first = block * n_rows
        end = first + n_rows
        collect_log(plan, lines, block, n_blocks, maximise, False, log_total[first:end])
        _search(plan, lines, block, n_blocks, log_total[first:end], codes[first:end])


@compiled(nogil=True)
def _search(plan: Plan, lines: Floats, block: int, n_blocks: int, log_best: Floats, codes: Codes) -> None:
    """The most probable outcomes of each row of a block.

    Best-first search down the tree. A choice of states for the class variables eliminated last stands for all outcomes
    that have these states, and the messages say what the best of them is worth, exactly. So the best open choice is
    taken, completed by the best state at each step, and every other state on the way opens a new choice. These sets of
    outcomes are disjoint: an outcome comes once, each round gives the best one that is left, and a choice that is worse
    than as many others as are wanted needs not be kept.
    """
    n_cliques, k = len(plan.scope), codes.shape[1]
    values = np.empty(plan.sizes[:, 0].max())
    for b in range(len(codes)):
        chosen = np.zeros((64, n_cliques), dtype=np.int64)
        depth = np.zeros(64, dtype=np.int64)
        free = list(range(63, 0, -1))
        open_choices = [(-log_best[b], 0)]
        depth[0] = n_cliques
        worth = [log_best[b]]  # of the k best choices so far, the least first
        for found in range(k):
            negative, slot = heapq.heappop(open_choices)
            value = -negative
            outcome = codes[b, found]
            for c in range(n_cliques):  # errors of shapes, which slices are checked for, take seconds to compile
                outcome[c] = chosen[slot, c]
            start = depth[slot]
            free.append(slot)
            for c in range(start - 1, -1, -1):
                size, variable = plan.sizes[c, 0], plan.scope[c, 0]
                best = 0
                for state in range(size):
                    values[state] = _point(plan, lines, block, n_blocks, c, state, outcome, b)
                    if values[state] > values[best]:
                        best = state
                for state in range(size):
                    if state == best:
                        continue
                    other = -np.inf
                    if values[state] > -np.inf:
                        other = value - (values[best] - values[state])
                    if len(worth) >= k and other < worth[0]:
                        continue
                    if len(worth) >= k:
                        heapq.heapreplace(worth, other)
                    else:
                        heapq.heappush(worth, other)
                    if len(free) == 0:
                        free = list(range(2 * len(chosen) - 1, len(chosen) - 1, -1))
                        chosen = np.concatenate((chosen, np.zeros_like(chosen)))
                        depth = np.concatenate((depth, np.zeros_like(depth)))
                    slot = free.pop()
                    for v in range(n_cliques):
                        chosen[slot, v] = outcome[v]
                    chosen[slot, variable] = state
                    depth[slot] = c
                    heapq.heappush(open_choices, (-other, slot))
                outcome[variable] = best
