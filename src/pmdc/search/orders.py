"""Local search over the orders of the class variables.

Given an order, each class variable takes its best parent set among its predecessors; every DAG comes from some order.

1. Insertion: move one class variable to another position.
2. Window: put a few neighbours into their best order, by dynamic programming over their subsets.
3. Restart: when neither helps, apply some random insertions and repeat; keep the result if it is no worse.

(Teyssier and Koller, "Ordering-based search", UAI 2005, swap neighbours; an insertion is a chain of swaps.)

The method finds good DAGs but proves nothing: the bound comes from elsewhere.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats, Words
from pmdc._support.compiled import compiled

from .bits import random_below
from .problem import Problem, SearchResult, topological_order
from .progress import SearchState

_WINDOW = 6
"""Number of neighbours that are put into their best order together."""
_ROUNDS = 20
"""Number of restarts between two checks of the limits."""
PATIENCE = 500
"""Stop after so many restarts without improvement."""


def solve(problem: Problem, first: SearchResult, state: SearchState, patience: int = PATIENCE) -> SearchResult:
    """Return the best DAG found, starting from the order of `first`.

    The status is "optimal" only if the regret equals the lower bound. The result is deterministic unless a limit ends
    the search.
    """
    count = len(problem.names)
    if count < 2:
        return first._replace(status="optimal")
    table = _Table(problem)
    order = np.array(topological_order([problem.masks[child][rank] for child, rank in enumerate(first.ranks)]))
    ranks = np.array(first.ranks, dtype=np.int64)
    seed = np.array([0x9E3779B97F4A7C15], dtype=np.uint64)
    best = _descend(table.words, table.start, table.regrets, order, ranks)
    found, idle, reason = first.ranks, 0, ""
    while True:
        better = [int(rank) for rank in ranks]
        if problem.total_regret(better) <= problem.total_regret(found):
            found = better
        reason = state.stop(found, first.least_regret)
        if reason or idle >= patience or best <= first.least_regret:
            break
        new = _restart(table.words, table.start, table.regrets, order, ranks, seed, best, _ROUNDS)
        idle = 0 if new < best else idle + _ROUNDS
        best = new
    proved = problem.total_regret(found) <= first.least_regret
    return SearchResult(found, first.least_regret, "optimal" if proved else reason or "unproved")


class Guided:
    """A search for DAGs near solutions of the LP relaxation of the integer program."""

    def __init__(self, problem: Problem):
        self._table = _Table(problem)
        self._seen: set[bytes] = set()

    def near(self, weights: Floats) -> list[int] | None:
        """Return a DAG by local search from an order that agrees with the weights of the edges (parent, child).

        The order is greedy: the next class variable is the one with the least weight of edges from those left. Return
        None if that order was tried before or has no DAG.
        """
        left = weights.sum(axis=0)
        order = np.empty(len(left), dtype=np.int64)
        for place in range(len(order)):
            order[place] = first = np.argmin(left)
            left -= weights[first]
            left[first] = np.inf
        if (known := order.astype(np.int32).tobytes()) in self._seen:
            return None
        self._seen.add(known)
        table, ranks = self._table, np.empty_like(order)
        if _take(table.words, table.start, table.regrets, order, ranks) == np.inf:
            return None
        _descend(table.words, table.start, table.regrets, order, ranks)
        return ranks.tolist()


class _Table:
    """The parent sets of all class variables as arrays: bit masks in words of 64 bits, best sets first."""

    def __init__(self, problem: Problem):
        n_words = -(-len(problem.names) // 64)
        flat = [mask for row in problem.masks for mask in row]
        self.words = np.array(
            [[mask >> (64 * word) & (2**64 - 1) for word in range(n_words)] for mask in flat], dtype=np.uint64
        )
        self.start = np.cumsum([0, *map(len, problem.masks)])
        self.regrets = np.array([regret for row in problem.regrets for regret in row])


@compiled()
def _first_fit(words: Words, start: Codes, child: int, before: Words, least: int, most: int) -> int:
    """Return the rank of the best set within `before`, searching from `least` up to `most`; `most` if there is none."""
    for rank in range(least, most):
        outside = np.uint64(0)
        for w in range(len(before)):
            outside |= words[start[child] + rank, w] & ~before[w]
        if outside == 0:
            return rank
    return most


@compiled()
def _set(before: Words, variable: int, value: bool) -> None:
    bit = np.uint64(1) << np.uint64(variable % 64)
    if value:
        before[variable // 64] |= bit
    else:
        before[variable // 64] &= ~bit


@compiled()
def _predecessors(order: Codes, place: int, before: Words) -> None:
    before[:] = np.uint64(0)
    for i in range(place):
        _set(before, order[i], True)


@compiled()
def _insert(order: Codes, place: int, target: int) -> None:
    """Move the class variable at `place` to `target`."""
    variable = order[place]
    step = 1 if target > place else -1
    for i in range(place, target, step):
        order[i] = order[i + step]
    order[target] = variable


@compiled()
def _regret(start: Codes, regrets: Floats, child: int, rank: int) -> float:
    if rank >= start[child + 1] - start[child]:
        return np.inf
    return regrets[start[child] + rank]


@compiled()
def _take(words: Words, start: Codes, regrets: Floats, order: Codes, ranks: Codes) -> float:
    """Give each class variable its best set in this order; return the total regret."""
    before = np.zeros(words.shape[1], dtype=np.uint64)
    total = 0.0
    for child in order:
        size = start[child + 1] - start[child]
        ranks[child] = _first_fit(words, start, child, before, 0, size)
        total += _regret(start, regrets, child, ranks[child])
        _set(before, child, True)
    return total


@compiled()
def _best_insertion(
    words: Words, start: Codes, regrets: Floats, order: Codes, ranks: Codes, place: int
) -> tuple[int, float]:
    """Return the best position for the class variable at `place`, and the change of the total regret."""
    variable = order[place]
    size = start[variable + 1] - start[variable]
    own = _regret(start, regrets, variable, ranks[variable])
    before = np.zeros(words.shape[1], dtype=np.uint64)
    around = np.zeros(words.shape[1], dtype=np.uint64)
    target, least = place, 0.0
    # To the left: the variable becomes a predecessor of those that it passes, and loses them as predecessors.
    _predecessors(order, place, before)
    passed, rank = 0.0, ranks[variable]
    for i in range(place - 1, -1, -1):
        other = order[i]
        _set(before, other, False)
        around[:] = before
        _set(around, variable, True)
        better = _first_fit(words, start, other, around, 0, ranks[other])
        passed += _regret(start, regrets, other, better) - _regret(start, regrets, other, ranks[other])
        rank = _first_fit(words, start, variable, before, rank, size)
        if rank >= size:
            break
        change = passed + _regret(start, regrets, variable, rank) - own
        if change < least:
            target, least = i, change
    # To the right: those that it passes lose the variable as a predecessor, and become its predecessors.
    _predecessors(order, place, before)
    passed, rank = 0.0, ranks[variable]
    for i in range(place + 1, len(order)):
        other = order[i]
        worse = _first_fit(words, start, other, before, ranks[other], start[other + 1] - start[other])
        passed += _regret(start, regrets, other, worse) - _regret(start, regrets, other, ranks[other])
        if passed == np.inf:
            break
        _set(before, other, True)
        rank = _first_fit(words, start, variable, before, 0, rank)
        change = passed + _regret(start, regrets, variable, rank) - own
        if change < least:
            target, least = i, change
    return target, least


@compiled()
def _best_window(
    words: Words, start: Codes, regrets: Floats, order: Codes, ranks: Codes, place: int, size: int, scratch: Codes
) -> bool:
    """Put `size` class variables from `place` on into their best order; return whether that helps."""
    before = np.zeros(words.shape[1], dtype=np.uint64)
    _predecessors(order, place, before)
    around = np.zeros_like(before)
    total = np.full(1 << size, np.inf)
    last = np.zeros(1 << size, dtype=np.int64)
    total[0] = 0.0
    now = 0.0
    for i in range(size):
        now += _regret(start, regrets, order[place + i], ranks[order[place + i]])
    for subset in range(1 << size):
        if total[subset] >= now:
            continue
        around[:] = before
        for i in range(size):
            if subset >> i & 1:
                _set(around, order[place + i], True)
        for i in range(size):
            if not subset >> i & 1:
                child = order[place + i]
                rank = _first_fit(words, start, child, around, 0, start[child + 1] - start[child])
                value = total[subset] + _regret(start, regrets, child, rank)
                if value < total[subset | 1 << i]:
                    total[subset | 1 << i], last[subset | 1 << i] = value, i
    full = (1 << size) - 1
    if not total[full] < now - 1e-12 * now:
        return False
    subset = full
    for i in range(size - 1, -1, -1):
        scratch[i] = order[place + last[subset]]
        subset ^= 1 << last[subset]
    order[place : place + size] = scratch[:size]
    return True


@compiled()
def _descend(words: Words, start: Codes, regrets: Floats, order: Codes, ranks: Codes) -> float:
    """Apply insertions and windows until none helps; return the total regret."""
    total = _take(words, start, regrets, order, ranks)
    size = min(_WINDOW, len(order))
    scratch = np.empty(size, dtype=np.int64)
    helped = True
    while helped:
        helped = False
        for variable in range(len(order)):
            place = 0
            while order[place] != variable:
                place += 1
            target, change = _best_insertion(words, start, regrets, order, ranks, place)
            if change < -1e-12 * total:
                _insert(order, place, target)
                total = _take(words, start, regrets, order, ranks)
                helped = True
        if not helped:
            for place in range(len(order) - size + 1):
                if _best_window(words, start, regrets, order, ranks, place, size, scratch):
                    total = _take(words, start, regrets, order, ranks)
                    helped = True
    return total


@compiled()
def _restart(
    words: Words, start: Codes, regrets: Floats, order: Codes, ranks: Codes, state: Words, best: float, rounds: int
) -> float:
    """Restart near `order` some times; set `order` and `ranks` to the best found and return its total regret."""
    n = len(order)
    trial, trial_ranks = order.copy(), ranks.copy()
    for _ in range(rounds):
        trial[:] = order
        for _ in range(2 + random_below(state, max(4, n // 4))):
            _insert(trial, random_below(state, n), random_below(state, n))
        if _take(words, start, regrets, trial, trial_ranks) == np.inf:
            continue
        total = _descend(words, start, regrets, trial, trial_ranks)
        if total <= best:
            order[:], ranks[:] = trial, trial_ranks
            best = total
    return best
