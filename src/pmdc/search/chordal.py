"""Orders of elimination whose cliques are within limits.

Graphs are lists of neighbours as bit masks. Eliminating a class variable joins its neighbours; it and they are its
clique. An order of elimination thus makes the graph chordal, and each clique of the chordal graph is within one of
these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .problem import members

if TYPE_CHECKING:
    from .limits import Limits

_MAX_SETS = 20_000
"""The exact search gives up after so many sets of class variables that are left: a few seconds."""
_MAX_LEFT = 60
"""The exact search is not tried on more class variables than this."""

Rule = Callable[["Limits", list[int], int], tuple[int, int]]


def moral_graph(parents: Sequence[int]) -> list[int]:
    """Return the moral graph of a DAG: children are joined with their parents, and parents with each other."""
    graph = [0] * len(parents)
    for child, mask in enumerate(parents):
        family = mask | 1 << child
        for member in members(family):
            graph[member] |= family
    return [neighbours & ~(1 << position) for position, neighbours in enumerate(graph)]


def eliminate(rest: list[int], variable: int) -> int:
    """Eliminate a class variable from the graph `rest`, which is changed; return its clique."""
    clique = rest[variable] | 1 << variable
    for neighbour in members(rest[variable]):
        rest[neighbour] = (rest[neighbour] | clique) & ~(1 << neighbour | 1 << variable)
    rest[variable] = 0
    return clique


def cliques(graph: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return the clique of each class variable when they are eliminated in this order."""
    rest, found = list(graph), [0] * len(graph)
    for variable in order:
        found[variable] = eliminate(rest, variable)
    return found


def find_order(graph: Sequence[int], limits: Limits) -> tuple[list[int] | None, bool]:
    """Return an order of elimination within the limits, or None; and whether that is certain.

    Two greedy rules are tried first. If they fail, all orders are searched, unless there are too many.
    """
    order = greedy_order(graph, limits)
    return (order, True) if order is not None else exact_order(graph, limits)


def greedy_order(graph: Sequence[int], limits: Limits) -> list[int] | None:
    """Return an order of elimination within the limits if a greedy rule finds one."""
    for rule in (_fill_first, _weight_first):
        order = _greedy(graph, limits, rule)
        if order is not None:
            return order
    return None


def core(graph: Sequence[int], limits: Limits) -> int:
    """Return class variables that make the graph exceed the limits: a clique that does not fit, or a part with cycles.

    The part is what is left when class variables whose neighbours are all joined are eliminated again and again.
    """
    rest, left = list(graph), (1 << len(graph)) - 1
    order, too_large = _peel(rest, left, limits)
    return too_large or left ^ sum(1 << variable for variable in order)


def _fill(rest: list[int], variable: int) -> int:
    """Return twice the number of pairs of neighbours that are not joined."""
    around = rest[variable]
    return sum((around & ~rest[neighbour]).bit_count() - 1 for neighbour in members(around))


def _fill_first(limits: Limits, rest: list[int], variable: int) -> tuple[int, int]:
    return _fill(rest, variable), limits.cells(rest[variable] | 1 << variable)


def _weight_first(limits: Limits, rest: list[int], variable: int) -> tuple[int, int]:
    return limits.cells(rest[variable] | 1 << variable), _fill(rest, variable)


def _greedy(graph: Sequence[int], limits: Limits, rule: Rule) -> list[int] | None:
    """Eliminate the class variable of lowest rank among those whose clique fits, until none is left."""

    def rank(variable: int) -> tuple[bool, int, int, int]:
        return not limits.fits(rest[variable] | 1 << variable), *rule(limits, rest, variable), variable

    rest, order = list(graph), []
    ranks = [rank(variable) for variable in range(len(rest))]
    left = set(range(len(rest)))
    while left:
        too_large, *_, variable = min(ranks[other] for other in left)
        if too_large:
            return None
        left.discard(variable)
        order.append(variable)
        # Only the ranks of the neighbours and of their neighbours can have changed.
        changed = around = rest[variable]
        eliminate(rest, variable)
        for neighbour in members(around):
            changed |= rest[neighbour]
        for other in members(changed):
            ranks[other] = rank(other)
    return order


def _peel(rest: list[int], left: int, limits: Limits) -> tuple[list[int], int]:
    """Eliminate class variables whose neighbours are all joined, as long as there are any.

    Each such clique is in the graph already, so every order has to fit it. Return the class variables, and the first
    of their cliques that does not fit, or 0.
    """
    order: list[int] = []
    waiting = left
    while waiting:
        variable = (waiting & -waiting).bit_length() - 1
        waiting &= waiting - 1
        if _fill(rest, variable) == 0:
            around = rest[variable]
            clique = eliminate(rest, variable)
            if not limits.fits(clique):
                return order, clique
            order.append(variable)
            left ^= 1 << variable
            waiting |= around & left
    return order, 0


def exact_order(graph: Sequence[int], limits: Limits) -> tuple[list[int] | None, bool]:
    """Search all orders of elimination, depth first; return an order or None, and whether that is certain.

    What can be eliminated next depends only on the set that is left, so each set is searched once.
    """
    failed: set[int] = set()

    def search(rest: list[int], left: int) -> list[int] | None:
        order, too_large = _peel(rest, left, limits)
        left ^= sum(1 << variable for variable in order)
        if too_large or left in failed or len(failed) >= _MAX_SETS:
            return None
        if not left:
            return order
        for variable in members(left):
            if limits.fits(rest[variable] | 1 << variable):
                after = list(rest)
                eliminate(after, variable)
                found = search(after, left ^ 1 << variable)
                if found is not None:
                    return [*order, variable, *found]
        failed.add(left)
        return None

    rest, everyone = list(graph), (1 << len(graph)) - 1
    order, too_large = _peel(rest, everyone, limits)
    left = everyone ^ sum(1 << variable for variable in order)
    if too_large or left.bit_count() > _MAX_LEFT:
        return None, too_large > 0
    found = search(rest, left)
    if found is None:
        return None, len(failed) < _MAX_SETS
    return order + found, True
