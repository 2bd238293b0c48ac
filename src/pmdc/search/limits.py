"""Bounds on the cliques of a structure: treewidth and number of cells.

Exact inference eliminates the class variables one by one. Each elimination needs a table over a *clique*: the class
variable and its neighbours in what is left of the moral graph. A structure is within the limits if some order of
elimination has only cliques that fit (`chordal`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from pmdc._support.checks import check_count, shorten

from .chordal import core, find_order, moral_graph
from .problem import members
from .structure import show_set


@dataclass(frozen=True)
class Limits:
    """The greatest clique that inference may need; class variables are positions, cliques are bit masks."""

    max_treewidth: int | None = None
    max_clique_cells: int | None = None
    sizes: tuple[int, ...] | None = None
    """The number of states of each class variable, needed for `max_clique_cells`."""

    def __bool__(self) -> bool:
        """Return whether there is any bound."""
        return self.max_treewidth is not None or self.max_clique_cells is not None

    def __str__(self) -> str:
        """Return the bounds as the arguments that set them."""
        bounds = {"max_treewidth": self.max_treewidth, "max_clique_cells": self.max_clique_cells}
        return " and ".join(f"{name}={value}" for name, value in bounds.items() if value is not None)

    def fits(self, mask: int) -> bool:
        """Return whether a clique with these members is allowed; then so is each of its subsets."""
        if self.max_treewidth is not None and mask.bit_count() > self.max_treewidth + 1:
            return False
        return self.max_clique_cells is None or self.cells(mask) <= self.max_clique_cells

    def cells(self, mask: int) -> int:
        """Return the number of cells of a clique; without numbers of states, as if all were binary."""
        if self.sizes is None:
            return 1 << mask.bit_count()
        return prod(self.sizes[member] for member in members(mask))

    def describe(self, mask: int) -> str:
        """Return the size of a clique in the words of the bounds, such as "treewidth 3" or "500 cells"."""
        sizes = {
            "treewidth": self.max_treewidth is not None and f"treewidth {mask.bit_count() - 1}",
            "cells": self.max_clique_cells is not None and f"{self.cells(mask):,} cells",
        }
        return " and ".join(size for size in sizes.values() if size)


UNLIMITED = Limits()


def check_limits(names: Sequence[str], max_treewidth: Any, max_clique_cells: Any, n_states: Any) -> Limits:
    """Return the bounds over the positions of the class variables."""
    if max_treewidth is not None:
        check_count("max_treewidth", max_treewidth, 1)
    sizes = None if n_states is None else _check_sizes(names, n_states)
    if max_clique_cells is None:
        return Limits(max_treewidth, None, sizes)
    check_count("max_clique_cells", max_clique_cells, 1)
    if sizes is None:
        raise ValueError(
            f"max_clique_cells={max_clique_cells} needs n_states, the number of states of each class variable, such as "
            f"{{{names[0]!r}: 2}}: give it, or use max_treewidth."
        )
    largest = max(range(len(names)), key=sizes.__getitem__)
    if sizes[largest] > max_clique_cells:
        raise ValueError(
            f"max_clique_cells={max_clique_cells} is below the {sizes[largest]} states of {names[largest]!r} alone: "
            f"use at least {sizes[largest]}."
        )
    return Limits(max_treewidth, max_clique_cells, sizes)


def _check_sizes(names: Sequence[str], n_states: Any) -> tuple[int, ...]:
    remedy = "give the number of states of each class variable, such as {'a': 2, 'b': 3}"
    if not isinstance(n_states, Mapping):
        raise ValueError(f"n_states must be a dict, but its type is {type(n_states).__name__}: {remedy}.")
    if unknown := [name for name in n_states if name not in names]:
        raise ValueError(f"n_states has {unknown[0]!r}, which is not a class variable of scores: remove it.")
    if missing := [name for name in names if name not in n_states]:
        raise ValueError(f"n_states lacks {shorten(missing)}: {remedy}.")
    for name in names:
        check_count(f"n_states[{name!r}]", n_states[name], 1)
    return tuple(int(n_states[name]) for name in names)


def check_required(names: Sequence[str], required: Mapping[str, set[str]], limits: Limits) -> None:
    """Raise a ValueError if the required edges alone exceed the bounds."""
    bit = {name: 1 << position for position, name in enumerate(names)}
    masks = [sum(bit[parent] for parent in required[child]) for child in names]
    for child, mask in zip(names, masks, strict=True):
        if not limits.fits(mask | bit[child]):
            edges = ", ".join(f"({parent!r}, {child!r})" for parent in sorted(required[child]))
            raise ValueError(
                f"required_edges give {child!r} the parents {show_set(required[child])}: with them it forms a clique "
                f"of {limits.describe(mask | bit[child])}, which {limits} does not allow; remove some of the edges "
                f"{edges} or raise the bound."
            )
    graph = moral_graph(masks)
    order, decided = find_order(graph, limits)
    if order is None:
        involved = [names[position] for position in members(core(graph, limits))]
        found = "no order of elimination exists" if decided else "no order of elimination was found"
        raise ValueError(
            f"required_edges exceed {limits}: {found} that keeps the cliques of {shorten(involved)} within the bound; "
            "remove some of the edges between them or raise the bound."
        )
