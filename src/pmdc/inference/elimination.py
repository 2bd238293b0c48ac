"""In which order class variables are eliminated: it decides what exact inference costs.

The best order is hard to find; two greedy rules are tried and the cheaper result is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod

Graph = dict[int, set[int]]


def moral_graph(parents: Sequence[tuple[int, ...]]) -> Graph:
    """Neighbours of each class variable, where those that meet in a table are neighbours."""
    graph: Graph = {k: set() for k in range(len(parents))}
    for k, members in enumerate(parents):
        for a, b in combinations((*members, k), 2):
            graph[a].add(b)
            graph[b].add(a)
    return graph


def greedy_elimination(sizes: Sequence[int], graph: Graph) -> dict[int, tuple[int, ...]]:
    """The cliques of the cheaper of min-fill and min-weight, in the order in which variables are eliminated.

    The scope of a clique is its variable and then the separator, in elimination order. The cost is the number
    of cells of all cliques. Ties are broken by the other rule and then by the index of the variable.
    """

    def fill(rest: Graph, variable: int) -> int:
        return sum(b not in rest[a] for a, b in combinations(rest[variable], 2))

    def weight(rest: Graph, variable: int) -> int:
        return prod(sizes[v] for v in (variable, *rest[variable]))

    def total(separators: dict[int, set[int]]) -> int:
        return sum(prod(sizes[v] for v in (variable, *members)) for variable, members in separators.items())

    rules: list[Callable[[Graph, int], tuple[int, ...]]] = [
        lambda rest, v: (fill(rest, v), weight(rest, v), v),  # min-fill
        lambda rest, v: (weight(rest, v), fill(rest, v), v),  # min-weight
    ]
    separators = min((_eliminate(graph, rule) for rule in rules), key=total)
    position = {variable: i for i, variable in enumerate(separators)}
    return {v: (v, *sorted(members, key=position.__getitem__)) for v, members in separators.items()}


def _eliminate(graph: Graph, rule: Callable[[Graph, int], tuple[int, ...]]) -> dict[int, set[int]]:
    """Eliminate greedily; gives the separator of each variable, in the order of elimination."""
    rest = {variable: set(neighbours) for variable, neighbours in graph.items()}
    score = {variable: rule(rest, variable) for variable in rest}
    separators: dict[int, set[int]] = {}
    while rest:
        variable = min(score, key=score.__getitem__)
        separator = separators[variable] = rest.pop(variable)
        del score[variable]
        for neighbour in separator:
            rest[neighbour] |= separator - {neighbour}
            rest[neighbour].discard(variable)
        # Only the neighbours, and theirs, can have got another score.
        for changed in separator.union(*(rest[neighbour] for neighbour in separator)):
            score[changed] = rule(rest, changed)
    return separators
