"""Local search for DAGs within bounds over at most 64 class variables: take families away and choose them again.

The class variables are a region of a larger problem (see `regions`); what is outside is fixed. All sets of class
variables are bit masks in one word.

1. Take away the parents of a few class variables that are near each other.
2. Choose their parents again, one class variable after the other: the best set that makes no cycle and leaves an
   elimination order within the bounds.
3. Keep the result if it is better, or not much worse, where "much" decreases (simulated annealing).

(As "ruin and recreate" by Schrimpf et al., Journal of Computational Physics 159, 2000.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Words
from pmdc._support.compiled import compiled

from .bits import count_bits, lowest_bit, position, random_below, random_unit, single

_MAX_REMOVED = 7
"""Most class variables whose parents are taken away together."""
_SKIP = 0.03
"""Probability with which a parent set that could be chosen is passed over."""


class Bounds(NamedTuple):
    """What a clique may hold."""

    sizes: Floats
    """Number of states of each class variable; 1.0 if cells are not bounded."""
    max_members: int
    max_cells: float


class Region(NamedTuple):
    """The choices of the class variables of a region, ranked for each of them."""

    start: Codes
    """Where the choices of each class variable begin."""
    before: Words
    """Of each choice, the class variables that must not be descendants."""
    cliques: Words
    """Of each choice, those that form a clique with the class variable; empty if the parents are outside."""
    regrets: Floats
    fixed: Words
    """Of each class variable, those that it is connected with from outside."""
    bounds: Bounds


class Scratch(NamedTuple):
    """Arrays of `eliminate`."""

    rest: Words
    fills: Codes


class Graph(NamedTuple):
    """A moral graph, and an elimination order within the bounds with the graph that it fills."""

    moral: Words
    filled: Words
    order: Codes


@compiled()
def new_graph(n: int) -> Graph:
    return Graph(np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.arange(n))


@compiled()
def copy_graph(target: Graph, source: Graph) -> None:
    target.moral[:] = source.moral
    target.filled[:] = source.filled
    target.order[:] = source.order


@compiled()
def fits(bounds: Bounds, clique: np.uint64) -> bool:
    """Return whether a clique is within the bounds."""
    if count_bits(clique) > bounds.max_members:
        return False
    if bounds.max_cells == np.inf:
        return True
    cells = 1.0
    while clique:
        bit = lowest_bit(clique)
        cells *= bounds.sizes[position(bit)]
        clique ^= bit
    return cells <= bounds.max_cells


@compiled()
def add_clique(graph: Words, clique: np.uint64) -> None:
    """Connect all members of a set."""
    left = clique
    while left:
        bit = lowest_bit(left)
        graph[position(bit)] |= clique ^ bit
        left ^= bit


@compiled()
def holds_clique(graph: Words, clique: np.uint64) -> bool:
    """Return whether all members of a set are connected."""
    left = clique
    while left:
        bit = lowest_bit(left)
        if (clique ^ bit) & ~graph[position(bit)]:
            return False
        left ^= bit
    return True


@compiled()
def _fill_of(graph: Words, neighbours: np.uint64) -> int:
    """Return twice the number of edges that are missing between the neighbours of a class variable."""
    fill, left = 0, neighbours
    while left:
        bit = lowest_bit(left)
        fill += count_bits(neighbours & ~graph[position(bit)]) - 1
        left ^= bit
    return fill


@compiled()
def eliminate(graph: Graph, bounds: Bounds, scratch: Scratch) -> bool:
    """Look for an elimination order within the bounds; return whether there is one by the min-fill rule.

    The order and the filled graph are valid only then.
    """
    n = len(graph.moral)
    rest, fills = scratch
    rest[:] = graph.moral
    filled, order = graph.filled, graph.order
    left, stale, fitting = np.uint64(0), np.uint64(0), np.uint64(0)
    for v in range(n):
        left |= single(v)
        filled[v] = np.uint64(0)
    stale = left
    for step in range(n):
        best, least = -1, np.int64(1 << 30)
        scan = left
        while scan:
            bit = lowest_bit(scan)
            scan ^= bit
            v = position(bit)
            if stale & bit:
                stale ^= bit
                fills[v] = _fill_of(rest, rest[v])
                if fits(bounds, rest[v] | bit):
                    fitting |= bit
                else:
                    fitting &= ~bit
            if fills[v] == 0:  # no order can avoid this clique
                if not fitting & bit:
                    return False
                best = v
                break
            if fills[v] < least and fitting & bit:
                best, least = v, fills[v]
        if best < 0:
            return False
        own, around = single(best), rest[best]
        order[step] = best
        left ^= own
        filled[best] |= around
        stale |= around
        scan = around
        while scan:
            bit = lowest_bit(scan)
            scan ^= bit
            u = position(bit)
            filled[u] |= own
            if around & ~rest[u] & ~bit:
                stale |= rest[u]
            rest[u] = (rest[u] | around) & ~bit & ~own
        stale &= left
    return True


@compiled()
def fill(graph: Graph) -> None:
    """Fill the graph by its order."""
    rest = graph.moral.copy()
    graph.filled[:] = graph.moral
    for v in graph.order:
        around = rest[v]
        add_clique(graph.filled, around | single(v))
        add_clique(rest, around)
        while around:
            bit = lowest_bit(around)
            around ^= bit
            rest[position(bit)] &= ~single(v)


@compiled()
def _descendants(before: Words, v: int) -> np.uint64:
    """Return a class variable and its descendants."""
    found = single(v)
    grown = True
    while grown:
        grown = False
        for u in range(len(before)):
            bit = single(u)
            if not found & bit and before[u] & found:
                found |= bit
                grown = True
    return found


@compiled()
def _near(region: Region, graph: Graph, v: int, wanted: int, seed: Words) -> np.uint64:
    """Return some class variables near `v` and near the parents it would like; `wanted` is its choice or -1."""
    found = single(v)
    around = graph.filled[v] | graph.moral[v]
    if wanted >= 0:
        around |= region.before[wanted]
        scan = region.before[wanted]
        while scan:
            bit = lowest_bit(scan)
            scan ^= bit
            around |= graph.moral[position(bit)]
    for _ in range(1 + random_below(seed, _MAX_REMOVED - 1)):
        around &= ~found
        size = count_bits(around)
        if size == 0:
            break
        for _ in range(random_below(seed, size)):
            around ^= lowest_bit(around)
        bit = lowest_bit(around)
        found |= bit
        around = graph.moral[position(bit)] | graph.moral[v]
        if wanted >= 0:
            around |= region.before[wanted]
    return found


@compiled()
def _wanted(region: Region, choice: Codes, v: int, seed: Words) -> int:
    """Return a random choice of a class variable that would be better than its own; -1 if there is none."""
    n_better = choice[v] - region.start[v]
    return region.start[v] + random_below(seed, n_better) if n_better > 0 else -1


@compiled()
def _place(region: Region, v: int, choice: int, before: Words, graph: Graph, trial: Graph, scratch: Scratch) -> bool:
    """Give a class variable this choice if there is an elimination order within the bounds."""
    clique = region.cliques[choice] | single(v)
    if not holds_clique(graph.moral, clique):
        if holds_clique(graph.filled, clique):
            add_clique(graph.moral, clique)
        else:
            trial.moral[:] = graph.moral
            add_clique(trial.moral, clique)
            if not eliminate(trial, region.bounds, scratch):
                return False
            copy_graph(graph, trial)
    before[v] = region.before[choice]
    return True


@compiled()
def _rebuild(
    region: Region,
    choice: Codes,
    removed: np.uint64,
    first: int,
    wanted: int,
    limit: float,
    before: Words,
    graph: Graph,
    trial: Graph,
    scratch: Scratch,
    seed: Words,
) -> float:
    """Choose the parents of the removed class variables again; return the total regret, infinity if above the limit."""
    n = len(choice)
    graph.moral[:] = region.fixed
    total = 0.0
    for v in range(n):
        if removed & single(v):
            before[v] = np.uint64(0)
        else:
            add_clique(graph.moral, region.cliques[choice[v]] | single(v))
            before[v] = region.before[choice[v]]
            total += region.regrets[choice[v]]
    v = first
    left = removed
    while True:
        below = _descendants(before, v)
        found = -1
        begin, end = region.start[v], region.start[v + 1]
        if v == first and wanted >= 0:
            begin, end = wanted, wanted + 1
        for c in range(begin, end):
            if total + region.regrets[c] > limit:
                return np.inf
            if region.before[c] & below or (c != wanted and random_unit(seed) < _SKIP):
                continue
            if _place(region, v, c, before, graph, trial, scratch):
                found = c
                break
        if found < 0:
            return np.inf
        choice[v] = found
        total += region.regrets[found]
        left ^= single(v)
        if not left:
            return total
        rest = left
        for _ in range(random_below(seed, count_bits(left))):
            rest ^= lowest_bit(rest)
        v = position(lowest_bit(rest))


@compiled()
def anneal(region: Region, choice: Codes, order: Codes, seed: Words, n_steps: int, temperature: float) -> float:
    """Change the choices and the order in place; return the total regret."""
    n = len(choice)
    now, trial, spare = new_graph(n), new_graph(n), new_graph(n)
    scratch = Scratch(np.zeros(n, np.uint64), np.zeros(n, np.int64))
    before, tried = np.zeros(n, np.uint64), choice.copy()
    now.moral[:] = region.fixed
    total = 0.0
    for v in range(n):
        add_clique(now.moral, region.cliques[choice[v]] | single(v))
        total += region.regrets[choice[v]]
    now.order[:] = order
    fill(now)
    for _ in range(n_steps):
        v = random_below(seed, n)
        wanted = _wanted(region, choice, v, seed)
        if wanted < 0 and random_below(seed, 4):
            continue
        if random_below(seed, 3) == 0:
            wanted = -1
        removed = _near(region, now, v, wanted, seed)
        if wanted >= 0:  # those that would be on a cycle
            for u in range(n):
                before[u] = region.before[choice[u]]
            removed |= region.before[wanted] & _descendants(before, v)
        limit = total - temperature * np.log(random_unit(seed))
        tried[:] = choice
        copy_graph(trial, now)
        value = _rebuild(region, tried, removed, v, wanted, limit, before, trial, spare, scratch, seed)
        if value <= limit:
            choice[:] = tried
            copy_graph(now, trial)
            total = value
    order[:] = now.order
    return total
