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


class Graph(NamedTuple):
    """A moral graph, and an elimination order within the bounds with the graph that it fills."""

    moral: Words
    filled: Words
    order: Codes


class Scratch(NamedTuple):
    """Arrays that are used again and again."""

    rest: Words
    fills: Codes
    spare: Graph


class State(NamedTuple):
    """A DAG of the region with its moral graph."""

    choice: Codes
    before: Words
    """Of each class variable, those that must not be its descendants."""
    graph: Graph


@compiled()
def new_graph(n: int) -> Graph:
    return Graph(np.zeros(n, np.uint64), np.zeros(n, np.uint64), np.arange(n))


@compiled()
def new_scratch(n: int) -> Scratch:
    return Scratch(np.zeros(n, np.uint64), np.zeros(n, np.int64), new_graph(n))


@compiled()
def _copy_graph(target: Graph, source: Graph) -> None:
    target.moral[:] = source.moral
    target.filled[:] = source.filled
    target.order[:] = source.order


@compiled()
def _copy_state(target: State, source: State) -> None:
    target.choice[:] = source.choice
    target.before[:] = source.before
    _copy_graph(target.graph, source.graph)


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
    rest, fills = scratch.rest, scratch.fills
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
def _random_member(members: np.uint64, seed: Words) -> np.uint64:
    """Return a set with one of the members alone; there must be one."""
    for _ in range(random_below(seed, count_bits(members))):
        members ^= lowest_bit(members)
    return lowest_bit(members)


@compiled()
def _near(moral: Words, v: int, parents: np.uint64, seed: Words) -> np.uint64:
    """Return `v` and some class variables near it or near the parents that it would like."""
    found = single(v)
    near = moral[v] | parents
    around, scan = near, parents
    while scan:
        bit = lowest_bit(scan)
        scan ^= bit
        around |= moral[position(bit)]
    for _ in range(1 + random_below(seed, _MAX_REMOVED - 1)):
        around &= ~found
        if not around:
            break
        bit = _random_member(around, seed)
        found |= bit
        around = moral[position(bit)] | near
    return found


@compiled()
def _place(region: Region, v: int, choice: int, state: State, scratch: Scratch) -> bool:
    """Give a class variable this choice if there is an elimination order within the bounds."""
    clique, graph, spare = region.cliques[choice] | single(v), state.graph, scratch.spare
    if not holds_clique(graph.moral, clique):
        if holds_clique(graph.filled, clique):
            add_clique(graph.moral, clique)
        else:
            spare.moral[:] = graph.moral
            add_clique(spare.moral, clique)
            if not eliminate(spare, region.bounds, scratch):
                return False
            _copy_graph(graph, spare)
    state.choice[v], state.before[v] = choice, region.before[choice]
    return True


@compiled()
def _take_away(region: Region, removed: np.uint64, state: State) -> float:
    """Leave the removed class variables without parents; return the regret of the others."""
    state.graph.moral[:] = region.fixed
    regret = 0.0
    for v in range(len(state.choice)):
        if removed & single(v):
            state.before[v] = np.uint64(0)
        else:
            choice = state.choice[v]
            add_clique(state.graph.moral, region.cliques[choice] | single(v))
            state.before[v] = region.before[choice]
            regret += region.regrets[choice]
    return regret


@compiled()
def _choose(
    region: Region, v: int, choices: tuple[int, int], limit: float, state: State, scratch: Scratch, seed: Words
) -> bool:
    """Give a class variable the first of its choices that is possible, with a regret within the limit."""
    below = _descendants(state.before, v)
    first, last = choices
    for choice in range(first, last):
        if region.regrets[choice] > limit:
            return False
        if region.before[choice] & below or (last > first + 1 and random_unit(seed) < _SKIP):
            continue
        if _place(region, v, choice, state, scratch):
            return True
    return False


@compiled()
def _rebuild(
    region: Region, move: tuple[int, int, np.uint64], limit: float, state: State, scratch: Scratch, seed: Words
) -> float:
    """Choose the parents of some class variables again; return the total regret, infinity if above the limit.

    A move is a class variable, the choice that it shall have (or -1), and all that choose again.
    """
    v, wanted, left = move
    total = _take_away(region, left, state)
    choices = (wanted, wanted + 1) if wanted >= 0 else (region.start[v], region.start[v + 1])
    while True:
        if not _choose(region, v, choices, limit - total, state, scratch, seed):
            return np.inf
        total += region.regrets[state.choice[v]]
        left &= ~single(v)
        if not left:
            return total
        v = position(_random_member(left, seed))
        choices = region.start[v], region.start[v + 1]


@compiled()
def _move(region: Region, state: State, seed: Words) -> tuple[int, int, np.uint64]:
    """Return a random move; one without class variables if there is nothing to improve."""
    v = random_below(seed, len(state.choice))
    n_better = state.choice[v] - region.start[v]
    if n_better == 0 and random_below(seed, 4):
        return v, -1, np.uint64(0)
    if n_better == 0 or random_below(seed, 3) == 0:
        return v, -1, _near(state.graph.moral, v, np.uint64(0), seed)
    wanted = region.start[v] + random_below(seed, n_better)
    parents = region.before[wanted]
    on_cycles = parents & _descendants(state.before, v)
    return v, wanted, _near(state.graph.moral, v, parents, seed) | on_cycles


@compiled()
def anneal(region: Region, choice: Codes, order: Codes, seed: Words, n_steps: int, temperature: float) -> float:
    """Change the choices and the order in place; return the total regret."""
    n = len(choice)
    now, trial = (
        State(choice, np.zeros(n, np.uint64), new_graph(n)),
        State(choice.copy(), np.zeros(n, np.uint64), new_graph(n)),
    )
    scratch = new_scratch(n)
    total = _take_away(region, np.uint64(0), now)
    now.graph.order[:] = order
    fill(now.graph)
    for _ in range(n_steps):
        move = _move(region, now, seed)
        if not move[2]:
            continue
        limit = total - temperature * np.log(random_unit(seed))
        _copy_state(trial, now)
        value = _rebuild(region, move, limit, trial, scratch, seed)
        if value <= limit:
            _copy_state(now, trial)
            total = value
    order[:] = now.graph.order
    return total
