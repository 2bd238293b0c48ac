"""Regions of a large DAG within bounds, as problems of at most 64 class variables.

A filled graph has a tree of cliques: the clique of each class variable is itself and its neighbours that are eliminated
later, and hangs on the clique of the first of these. The union of the cliques of a subtree is a *region*. All others
can be eliminated before it, within the bounds, whatever is chosen inside; what they leave behind are the edges between
class variables of the region that are connected through the outside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Words
from pmdc._support.compiled import compiled

from .bits import count_bits, lowest_bit, position, random_below, single
from .rebuilding import Bounds, Region, anneal

_TRIALS = 8
"""Parent sets that are tried as the centre of a region; often the path to their members is too long."""


class Table(NamedTuple):
    """The parent sets of all class variables, ranked, as arrays."""

    start: Codes
    """Where the sets of each class variable begin."""
    first: Codes
    """Where the parents of each set begin in `parents`."""
    parents: Codes
    regrets: Floats
    bounds: Bounds


class Network(NamedTuple):
    """A DAG within the bounds."""

    chosen: Codes
    """The set of each class variable."""
    order: Codes
    """An elimination order."""


@compiled()
def _has(row: Words, member: int) -> bool:
    return (row[member >> 6] & single(member & 63)) != 0


@compiled()
def _add(row: Words, member: int) -> None:
    row[member >> 6] |= single(member & 63)


@compiled()
def _drop(row: Words, member: int) -> None:
    row[member >> 6] &= ~single(member & 63)


@compiled()
def _members(row: Words, found: Codes) -> int:
    """Write the members of a set into `found`; return their number."""
    count = 0
    for w in range(len(row)):
        left = row[w]
        while left:
            bit = lowest_bit(left)
            left ^= bit
            found[count] = 64 * w + position(bit)
            count += 1
    return count


@compiled()
def _connect_family(table: Table, graph: Words, child: int, choice: int) -> None:
    begin, end = table.first[choice], table.first[choice + 1]
    for i in range(begin, end):
        a = table.parents[i]
        _add(graph[a], child)
        _add(graph[child], a)
        for j in range(i + 1, end):
            _add(graph[a], table.parents[j])
            _add(graph[table.parents[j]], a)


@compiled()
def _eliminate_one(graph: Words, v: int, found: Codes) -> int:
    """Connect the neighbours of a class variable and remove it; they are left in `found`, and counted."""
    count = _members(graph[v], found)
    for i in range(count):
        u = found[i]
        graph[u] |= graph[v]
        _drop(graph[u], u)
        _drop(graph[u], v)
    return count


@compiled()
def clique_tree(table: Table, network: Network) -> tuple[Words, Codes]:
    """Return the clique of each class variable and the one that its clique hangs on; only the last has none (-1)."""
    n = len(network.order)
    graph = np.zeros((n, (n + 63) >> 6), np.uint64)
    for v in range(n):
        _connect_family(table, graph, v, network.chosen[v])
    place = np.empty(n, np.int64)
    for i in range(n):
        place[network.order[i]] = i
    cliques, above, found = np.zeros_like(graph), np.full(n, -1), np.empty(n, np.int64)
    for v in network.order:
        cliques[v] = graph[v]
        _add(cliques[v], v)
        count = _eliminate_one(graph, v, found)
        lowest = n
        for i in range(count):
            lowest = min(lowest, place[found[i]])
        if lowest < n:
            above[v] = network.order[lowest]
        elif v != network.order[n - 1]:
            above[v] = network.order[n - 1]  # without a separator: another component
    return cliques, above


@compiled()
def _neighbours_in_tree(above: Codes) -> tuple[Codes, Codes]:
    """Return the neighbours of each clique, as places and one list."""
    n = len(above)
    start = np.zeros(n + 1, np.int64)
    for v in range(n):
        if above[v] >= 0:
            start[v + 1] += 1
            start[above[v] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    listed, at = np.empty(start[n], np.int64), start[:-1].copy()
    for v in range(n):
        if above[v] >= 0:
            listed[at[v]] = above[v]
            listed[at[above[v]]] = v
            at[v] += 1
            at[above[v]] += 1
    return start, listed


@compiled()
def _size_with(inside: Words, clique: Words) -> int:
    count = 0
    for w in range(len(inside)):
        count += count_bits(inside[w] | clique[w])
    return count


@compiled()
def _path_region(
    cliques: Words, tree: tuple[Codes, Codes], root: int, targets: Codes, size: int, inside: Words, taken: Words
) -> bool:
    """Take the cliques on the paths from the clique `root` to the nearest cliques of the targets."""
    start, listed = tree
    n = len(cliques)
    queue, back = np.empty(n, np.int64), np.full(n, -1)
    queue[0], back[root], head, tail = root, root, 0, 1
    reached = np.zeros(len(targets), np.bool_)
    n_left = len(targets)
    inside |= cliques[root]
    _add(taken, root)
    while head < tail and n_left:
        v = queue[head]
        head += 1
        for i in range(len(targets)):
            if not reached[i] and _has(cliques[v], targets[i]):
                reached[i] = True
                n_left -= 1
                u = v
                while True:
                    inside |= cliques[u]
                    _add(taken, u)
                    if u == root:
                        break
                    u = back[u]
        for i in range(start[v], start[v + 1]):
            if back[listed[i]] < 0:
                back[listed[i]] = v
                queue[tail] = listed[i]
                tail += 1
    return _size_with(inside, inside) <= size


@compiled()
def _grow(cliques: Words, tree: tuple[Codes, Codes], size: int, inside: Words, taken: Words, seed: Words) -> None:
    """Take random neighbouring cliques while the region has at most `size` class variables."""
    start, listed = tree
    n = len(cliques)
    edge, seen, count = np.empty(n, np.int64), taken.copy(), 0
    for v in range(n):
        if _has(taken, v):
            for i in range(start[v], start[v + 1]):
                u = listed[i]
                if not _has(seen, u):
                    _add(seen, u)
                    edge[count] = u
                    count += 1
    while count:
        i = random_below(seed, count)
        v = edge[i]
        count -= 1
        edge[i] = edge[count]
        if _size_with(inside, cliques[v]) > size:
            continue
        inside |= cliques[v]
        _add(taken, v)
        for i in range(start[v], start[v + 1]):
            u = listed[i]
            if not _has(seen, u):
                _add(seen, u)
                edge[count] = u
                count += 1


@compiled()
def _outside_first(cliques: Words, tree: tuple[Codes, Codes], inside: Words, taken: Words, order: Codes) -> int:
    """Write an elimination order of the class variables outside of the region; return their number.

    Those whose cliques are farther from the region come first, so each is eliminated within its clique that is nearest
    to the region.
    """
    start, listed = tree
    n = len(cliques)
    queue, seen, tail, head, count = np.empty(n, np.int64), taken.copy(), 0, 0, 0
    appeared, found = inside.copy(), np.empty(n, np.int64)
    for v in range(n):
        if _has(taken, v):
            queue[tail] = v
            tail += 1
    while head < tail:
        v = queue[head]
        head += 1
        new = _members(cliques[v] & ~appeared, found)
        for i in range(new):
            order[count] = found[i]
            count += 1
        appeared |= cliques[v]
        for i in range(start[v], start[v + 1]):
            u = listed[i]
            if not _has(seen, u):
                _add(seen, u)
                queue[tail] = u
                tail += 1
    order[:count] = order[:count][::-1].copy()
    return count


@compiled()
def _is_within(table: Table, choice: int, inside: Words) -> bool:
    count = 0
    for i in range(table.first[choice], table.first[choice + 1]):
        count += _has(inside, table.parents[i])
    return count == table.first[choice + 1] - table.first[choice]


@compiled()
def _topological_order(table: Table, chosen: Codes) -> Codes:
    n = len(chosen)
    missing, first_child, order = np.zeros(n, np.int64), np.full(n, -1), np.empty(n, np.int64)
    total = 0
    for v in range(n):
        missing[v] = table.first[chosen[v] + 1] - table.first[chosen[v]]
        total += missing[v]
    child, after, count = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for v in range(n):
        for i in range(table.first[chosen[v]], table.first[chosen[v] + 1]):
            parent = table.parents[i]
            child[count], after[count], first_child[parent] = v, first_child[parent], count
            count += 1
    head, tail = 0, 0
    for v in range(n):
        if missing[v] == 0:
            order[tail] = v
            tail += 1
    while head < tail:
        i = first_child[order[head]]
        head += 1
        while i >= 0:
            missing[child[i]] -= 1
            if missing[child[i]] == 0:
                order[tail] = child[i]
                tail += 1
            i = after[i]
    return order


@compiled()
def _reaching(table: Table, network: Network, inside: Words, local: Codes) -> Words:
    """Return, for each class variable, those of the region from which a path leads to it through the outside."""
    n = len(local)
    above = np.zeros(n, np.uint64)
    for v in _topological_order(table, network.chosen):
        choice = network.chosen[v]
        for i in range(table.first[choice], table.first[choice + 1]):
            parent = table.parents[i]
            if not _has(inside, parent):
                above[v] |= above[parent]
            elif not _has(inside, v):
                above[v] |= single(local[parent])
    return above


@compiled()
def _region(
    table: Table, network: Network, inside: Words, members: Codes, order: Codes, n_outside: int
) -> tuple[Region, Codes, Codes]:
    """Return the region, the present choices in it, and which set of the table each choice is."""
    n, m = len(network.chosen), len(members)
    local = np.full(n, -1)
    n_sets = 0
    for i in range(m):
        local[members[i]] = i
        n_sets += table.start[members[i] + 1] - table.start[members[i]]
    graph, found = np.zeros((n, (n + 63) >> 6), np.uint64), np.empty(n, np.int64)
    for v in range(n):
        if local[v] < 0 or not _is_within(table, network.chosen[v], inside):
            _connect_family(table, graph, v, network.chosen[v])
    for i in range(n_outside):
        _eliminate_one(graph, order[i], found)
    fixed = np.zeros(m, np.uint64)
    for i in range(m):
        count = _members(graph[members[i]], found)
        for j in range(count):
            fixed[i] |= single(local[found[j]])
    above = _reaching(table, network, inside, local)
    start, choice, which = np.zeros(m + 1, np.int64), np.empty(m, np.int64), np.empty(n_sets, np.int64)
    before, cliques = np.zeros(n_sets, np.uint64), np.zeros(n_sets, np.uint64)
    regrets, sizes, count = np.empty(n_sets), np.empty(m), 0
    for i in range(m):
        v = members[i]
        sizes[i] = table.bounds.sizes[v]
        for c in range(table.start[v], table.start[v + 1]):
            own = c == network.chosen[v]
            complete = _is_within(table, c, inside)
            if not own and not complete:
                continue
            parents = np.uint64(0)
            for j in range(table.first[c], table.first[c + 1]):
                if local[table.parents[j]] >= 0:
                    parents |= single(local[table.parents[j]])
            before[count] = parents
            if complete:
                cliques[count] = parents
            else:
                before[count] |= above[v]
            regrets[count], which[count] = table.regrets[c], c
            if own:
                choice[i] = count
            count += 1
        start[i + 1] = count
    bounds = Bounds(sizes, table.bounds.max_members, table.bounds.max_cells)
    return Region(start, before[:count], cliques[:count], regrets[:count], fixed, bounds), choice, which


@compiled()
def _take_region(
    table: Table, network: Network, cliques: Words, tree: tuple[Codes, Codes], size: int, seed: Words
) -> tuple[Words, Words]:
    """Return a region and its cliques: around a parent set that a class variable would like, if that is possible."""
    n = len(network.chosen)
    inside, taken = np.zeros_like(cliques[0]), np.zeros_like(cliques[0])
    if n <= size:
        for v in range(n):
            _add(inside, v)
            _add(taken, v)
        return inside, taken
    for _ in range(_TRIALS):
        v = random_below(seed, n)
        n_better = network.chosen[v] - table.start[v]
        if n_better == 0:
            continue
        c = table.start[v] + random_below(seed, n_better)
        inside[:] = np.uint64(0)
        taken[:] = np.uint64(0)
        targets = table.parents[table.first[c] : table.first[c + 1]]
        if _path_region(cliques, tree, v, targets, size, inside, taken):
            _grow(cliques, tree, size, inside, taken, seed)
            return inside, taken
    v = random_below(seed, n)
    inside[:] = cliques[v]
    taken[:] = np.uint64(0)
    _add(taken, v)
    _grow(cliques, tree, size, inside, taken, seed)
    return inside, taken


@compiled()
def improve_region(table: Table, network: Network, size: int, n_steps: int, temperature: float, seed: Words) -> float:
    """Change a region of at most `size` class variables in place; return by how much the total regret decreases."""
    n = len(network.chosen)
    cliques, above = clique_tree(table, network)
    tree = _neighbours_in_tree(above)
    inside, taken = _take_region(table, network, cliques, tree, size, seed)
    order, members = np.empty(n, np.int64), np.empty(n, np.int64)
    n_outside = _outside_first(cliques, tree, inside, taken, order)
    members = members[: _members(inside, members)]
    region, choice, which = _region(table, network, inside, members, order, n_outside)
    local, local_order, count = np.full(n, -1), np.empty(len(members), np.int64), 0
    for i in range(len(members)):
        local[members[i]] = i
    for v in network.order:
        if local[v] >= 0:
            local_order[count] = local[v]
            count += 1
    old = 0.0
    for c in choice:
        old += region.regrets[c]
    new = anneal(region, choice, local_order, seed, n_steps, temperature)
    for i in range(len(members)):
        network.chosen[members[i]] = which[choice[i]]
        order[n_outside + i] = members[local_order[i]]
    network.order[:] = order
    return old - new
