"""Bounds on the network that keep exact inference cheap: treewidth and cells of the largest clique.

The nodes are blocks of class variables. A block counts as its members: all of them are in a clique together, so each
counts in the treewidth, and the cells are those of all combinations of their states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pmdc._support.checks import check_count, shorten
from pmdc.blocks import Blocks
from pmdc.candidates.rules import ParentRules
from pmdc.inference import JunctionTree
from pmdc.search import BOUNDED_METHODS
from pmdc.search.chordal import cliques, greedy_order, moral_graph
from pmdc.search.limits import Limits, check_limits, check_required


@dataclass(frozen=True)
class Bounds:
    """The greatest clique that inference may need.

    Attributes
    ----------
    max_treewidth, max_clique_cells : int or None
        None for no bound.
    members : tuple of int
        The number of class variables in each block.
    cells : tuple of int
        The number of combinations of their states.
    by_memory : bool
        Whether `max_clique_cells` follows from the memory budget.
    """

    max_treewidth: int | None
    max_clique_cells: int | None
    members: tuple[int, ...]
    cells: tuple[int, ...]
    by_memory: bool = False

    def __bool__(self) -> bool:
        """Return whether there is any bound."""
        return bool(self.limits)

    def __str__(self) -> str:
        """Return the bounds as the parameters that set them."""
        text = str(Limits(self.max_treewidth, self.max_clique_cells))
        return f"{text} (for memory_budget)" if self.by_memory else text

    @property
    def limits(self) -> Limits:
        """The bounds as those of the structure search, which does not know blocks.

        With blocks of several members, a treewidth is written in cells, as if all class variables had two states.
        """
        if self.max_treewidth is None or not self.merged:
            return Limits(self.max_treewidth, self.max_clique_cells, self.cells)
        most = min(self.max_treewidth + 1, sum(self.members))
        return Limits(None, 2**most, tuple(2**number for number in self.members))

    @property
    def merged(self) -> bool:
        """Whether a block has several members."""
        return any(number > 1 for number in self.members)

    def arguments(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of `find_structure`; none without a bound."""
        limits = self.limits
        if not limits or limits.sizes is None:
            return {}
        return {
            "max_treewidth": limits.max_treewidth,
            "max_clique_cells": limits.max_clique_cells,
            "n_states": dict(zip(names, limits.sizes, strict=True)),
        }

    def order(self, parents: Sequence[Iterable[int]], known: Sequence[int] = ()) -> list[int] | None:
        """Return an order of elimination of this graph within the bounds, None if none is found.

        Parameters
        ----------
        parents : for each block, its parents
        known : sequence of int
            An order to try first.
        """
        limits, masks = self.limits, [_mask(own) for own in parents]
        if not all(limits.fits(mask | 1 << child) for child, mask in enumerate(masks)):
            return None
        graph = moral_graph(masks)
        if known and all(map(limits.fits, cliques(graph, known))):
            return list(known)
        return greedy_order(graph, limits)

    def admit(self, tree: JunctionTree) -> bool:
        """Return whether the cliques of a junction tree over class variables are within the bounds."""
        return (self.max_treewidth is None or tree.width <= self.max_treewidth) and (
            self.max_clique_cells is None or tree.largest_clique <= self.max_clique_cells
        )

    def restrict(self, rules: Sequence[ParentRules]) -> list[ParentRules]:
        """Return the rules without parents and parent sets that exceed the bounds with their child alone."""
        if not self:
            return list(rules)
        limits = self.limits
        return [rule.within(limits) for rule in rules]


def check_bounds(max_treewidth: Any, max_clique_cells: Any, search: str, blocks: Any) -> None:
    """Check the parameters of `GBNC` that can be checked without a table."""
    given = {"max_treewidth": max_treewidth, "max_clique_cells": max_clique_cells}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        check_count(name, value, 1)
        if search not in BOUNDED_METHODS:
            methods = ", ".join(map(repr, BOUNDED_METHODS))
            raise ValueError(f"search={search!r} cannot keep {name}={value}: choose one of {methods}, or omit {name}.")
    if len(given) == 2 and blocks is not None:
        raise ValueError(
            f"max_treewidth={max_treewidth} and max_clique_cells={max_clique_cells} cannot both be kept with "
            f"blocks={blocks!r}: remove one of the bounds, or set blocks=None."
        )


def make_bounds(
    max_treewidth: int | None,
    max_clique_cells: int | None,
    blocks: Blocks,
    names: Sequence[str],
    rules: Sequence[ParentRules],
) -> Bounds:
    """Return the bounds; raise an error if a block or the required edges alone exceed them."""
    bounds = Bounds(max_treewidth, max_clique_cells, tuple(map(len, blocks.members)), blocks.n_cells)
    if not bounds:
        return bounds
    check_limits(names, max_treewidth, max_clique_cells, dict(zip(names, bounds.cells, strict=True)))
    for name, number in zip(names, bounds.members, strict=True):
        if max_treewidth is not None and number > max_treewidth + 1:
            raise ValueError(
                f"max_treewidth={max_treewidth} allows {max_treewidth + 1} class variables together, but the block "
                f"{name!r} has {number}: make it smaller, or raise the bound to {number - 1}."
            )
    required = {name: {names[p] for p in rule.required_classes} for name, rule in zip(names, rules, strict=True)}
    try:
        check_required(names, required, bounds.limits)
    except ValueError:
        if not (bounds.merged and max_treewidth is not None):
            raise
        involved = [name for name in names if required[name]]
        raise ValueError(
            f"required_edges to {shorten(involved)} exceed max_treewidth={max_treewidth}, in which each member of a "
            "block counts: remove some of the edges, make smaller blocks, or raise the bound."
        ) from None
    return bounds


def _mask(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in nodes)
