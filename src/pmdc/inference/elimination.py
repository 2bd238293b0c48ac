"""Elimination orders of class variables, which determine the cost of exact inference.

Two greedy rules are tried and, for few class variables, all orders (dynamic programming over subsets); the cheapest
result is used. The cost is the number of cells in all cliques. An order that is given is replaced only by one that is
as cheap and whose largest clique is no larger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from math import prod

Graph = dict[int, set[int]]
Scopes = dict[int, tuple[int, ...]]
"""The clique of each class variable, in the order of elimination: the variable, then its separator in that order."""

OPTIMAL_UP_TO = 10
"""Number of class variables up to which all orders are tried: this takes some hundredths of a second."""


def interaction_graph(n_variables: int, scopes: Iterable[Sequence[int]]) -> Graph:
    """Return the neighbours of each class variable: those that share a scope with it.

    For the scopes of a Bayesian network this is its moral graph.
    """
    graph: Graph = {variable: set() for variable in range(n_variables)}
    for scope in scopes:
        for a, b in combinations(scope, 2):
            graph[a].add(b)
            graph[b].add(a)
    return graph


def eliminate(
    sizes: Sequence[int],
    graph: Graph,
    last: Collection[int] = (),
    order: Sequence[int] | None = None,
    no_larger: bool = True,
) -> Scopes:
    """Return the cheapest cliques found; the class variables in `last` are eliminated after all others.

    With an `order`, they are its cliques, or those of an order that is as cheap. With `no_larger`, the largest clique
    of that must be no larger, neither in class variables nor in cells.
    """
    found = [_greedy(sizes, graph, rule, last) for rule in (_min_fill, _min_weight)]
    if len(graph) <= OPTIMAL_UP_TO:
        found.append(_optimal(sizes, graph, last))
    if order is not None:
        given = _along(graph, sorted(order, key=lambda variable: variable in last))
        found = [*(other for other in found if not no_larger or _no_larger(sizes, other, given)), given]
    separators = min(found, key=lambda separators: _cost(sizes, separators))
    position = {variable: i for i, variable in enumerate(separators)}
    return {v: (v, *sorted(members, key=position.__getitem__)) for v, members in separators.items()}


def _cost(sizes: Sequence[int], separators: dict[int, set[int]]) -> int:
    return sum(prod(sizes[v] for v in (variable, *members)) for variable, members in separators.items())


def _no_larger(sizes: Sequence[int], separators: dict[int, set[int]], given: dict[int, set[int]]) -> bool:
    """Return whether the largest clique is no larger than that of a given order."""
    return all(own <= limit for own, limit in zip(_largest(sizes, separators), _largest(sizes, given), strict=True))


def _largest(sizes: Sequence[int], separators: dict[int, set[int]]) -> tuple[int, int]:
    """Return the greatest number of class variables in a clique, and the greatest number of cells."""
    members = max(len(separator) + 1 for separator in separators.values())
    return members, max(prod(sizes[v] for v in (variable, *own)) for variable, own in separators.items())


def _along(graph: Graph, order: Sequence[int]) -> dict[int, set[int]]:
    """Return the separators of an order."""
    rest = {variable: set(neighbours) for variable, neighbours in graph.items()}
    return {variable: _remove(rest, variable) for variable in order}


def _remove(rest: Graph, variable: int) -> set[int]:
    """Eliminate a class variable from the graph `rest`, which is changed; return its separator."""
    separator = rest.pop(variable)
    for neighbour in separator:
        rest[neighbour] |= separator - {neighbour}
        rest[neighbour].discard(variable)
    return separator


# Greedy rules -------------------------------------------------------------------------------------------------


def _fill(rest: Graph, variable: int) -> int:
    return sum(b not in rest[a] for a, b in combinations(rest[variable], 2))


def _weight(sizes: Sequence[int], rest: Graph, variable: int) -> int:
    return prod(sizes[v] for v in (variable, *rest[variable]))


def _min_fill(sizes: Sequence[int], rest: Graph, variable: int) -> tuple[int, ...]:
    return _fill(rest, variable), _weight(sizes, rest, variable), variable


def _min_weight(sizes: Sequence[int], rest: Graph, variable: int) -> tuple[int, ...]:
    return _weight(sizes, rest, variable), _fill(rest, variable), variable


def _greedy(
    sizes: Sequence[int],
    graph: Graph,
    rule: Callable[[Sequence[int], Graph, int], tuple[int, ...]],
    last: Collection[int],
) -> dict[int, set[int]]:
    """Eliminate the variable of lowest rank until none is left; return the separators in this order."""

    def rank(variable: int) -> tuple[int, ...]:
        return variable in last, *rule(sizes, rest, variable)

    rest = {variable: set(neighbours) for variable, neighbours in graph.items()}
    ranks = {variable: rank(variable) for variable in rest}
    separators: dict[int, set[int]] = {}
    while rest:
        variable = min(ranks, key=ranks.__getitem__)
        separator = separators[variable] = _remove(rest, variable)
        del ranks[variable]
        # Only the ranks of the neighbours and of their neighbours can have changed.
        for changed in separator.union(*(rest[neighbour] for neighbour in separator)):
            ranks[changed] = rank(changed)
    return separators


# All orders ---------------------------------------------------------------------------------------------------


def _optimal(sizes: Sequence[int], graph: Graph, last: Collection[int]) -> dict[int, set[int]]:
    """Return the separators of the best order; the cost of a variable depends on the set eliminated before it."""
    n = len(graph)
    neighbours = [sum(1 << u for u in graph[v]) for v in range(n)]
    late = sum(1 << v for v in last)
    early = (1 << n) - 1 - late

    def separator(variable: int, done: int) -> int:
        """Return the variables connected with `variable`, directly or through eliminated ones, as bits."""
        reached, ahead = neighbours[variable], neighbours[variable] & done
        while ahead:
            lowest = ahead & -ahead
            new = neighbours[lowest.bit_length() - 1] & ~reached
            reached |= new
            ahead = (ahead ^ lowest) | (new & done)
        return reached & ~done & ~(1 << variable)

    best: dict[int, tuple[int, int]] = {0: (0, -1)}  # set of eliminated variables -> cost, last of them
    for done in range((1 << n) - 1):
        if done not in best:
            continue
        for variable in _members((early if done & early != early else late) & ~done):
            cost = best[done][0] + sizes[variable] * prod(sizes[u] for u in _members(separator(variable, done)))
            after = done | 1 << variable
            if after not in best or cost < best[after][0]:
                best[after] = cost, variable
    order, done = [], (1 << n) - 1
    while done:
        variable = best[done][1]
        order.append(variable)
        done ^= 1 << variable
    separators: dict[int, set[int]] = {}
    for variable in reversed(order):
        separators[variable] = set(_members(separator(variable, done)))
        done |= 1 << variable
    return separators


def _members(bits: int) -> list[int]:
    return [v for v in range(bits.bit_length()) if bits >> v & 1]
