"""Phase P2: the best graph whose network is not too wide for exact inference, and its junction tree."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.deadline import now
from pmdc._support.progress import tell_phase
from pmdc._support.warn import warn_user
from pmdc.blocks import Blocks
from pmdc.bounds import Bounds
from pmdc.candidates.families import Family, FamilyTable, ParentSet, best_per_class_set
from pmdc.inference import JunctionTree, family_scopes
from pmdc.inference.junction_tree import NetworkTooWideError
from pmdc.search import BOUNDED_METHODS, Structure, find_structure
from pmdc.settings import Settings

MIN_SEARCH_SECONDS = 0.5
"""The structure search gets as much even if no time is left: enough for up to 18 class variables."""

_REMEDIES = {
    "time limit": "Raise time_limit",
    "memory limit": "Raise memory_budget",
    "interrupted": "Let it finish",
}
"""Advice for a structure search that stopped early."""


def class_parents(families: Sequence[Family]) -> list[ParentSet]:
    """Return the class variables among the parents of each class variable."""
    return [family.classes(len(families)) for family in families]


class Found(NamedTuple):
    """The result of phase P2: the DAG, the family of each class variable, and the junction tree.

    `order` is an order of elimination within `bounds`, None without bounds. `narrowed` says why these are not those of
    the settings.
    """

    structure: Structure
    families: list[Family]
    tree: JunctionTree
    order: list[int] | None
    bounds: Bounds
    narrowed: str = ""


def find_network(accepted: Sequence[FamilyTable], blocks: Blocks, settings: Settings) -> Found:
    """Run phase P2: return the best DAG over the class variables whose network is not too wide for exact inference."""
    try:
        return _search(accepted, blocks, settings)
    except NetworkTooWideError as error:
        if settings.bounds.merged and settings.bounds.max_treewidth is not None:
            raise
        return _search_narrower(accepted, blocks, settings, error)


def _search_narrower(
    accepted: Sequence[FamilyTable], blocks: Blocks, settings: Settings, wide: NetworkTooWideError
) -> Found:
    """Search under a bound on the cells of a clique for which the network fits into the memory budget.

    The bound is first what would fit if the memory were proportional to the largest clique. It is halved until the
    junction tree fits; then the graph has the required edges only. If even this is too wide, raise a
    NetworkTooWideError.
    """
    required = [rule.required_classes for rule in settings.rules]
    try:
        compile_tree(required, blocks, settings)
    except NetworkTooWideError as error:
        edges = " with the required edges only" if any(required) else " without edges"
        raise NetworkTooWideError(f"Even the graph{edges} is too wide. {error}") from None
    sizes = settings.bounds.cells
    least = JunctionTree(sizes, family_scopes(required), memory_budget=settings.memory_budget).largest_clique
    search = settings.search if settings.search in BOUNDED_METHODS else "auto"
    first = min(wide.largest_clique * settings.memory_budget // wide.bytes_per_row, wide.largest_clique - 1)
    alone = [
        {family: score for family, score in table.items() if family.classes(len(accepted)) == own}
        for table, own in zip(accepted, required, strict=True)
    ]
    attempts = [*((cells, accepted) for cells in _halved(first, least)), (least, alone)]
    for cells, tables in attempts:
        bounds = replace(settings.bounds, max_clique_cells=cells, by_memory=True)
        try:
            found = _search(tables, blocks, replace(settings, bounds=bounds, search=search))
        except NetworkTooWideError:
            continue
        return found._replace(narrowed=_explain_narrowing(wide, cells, found.tree, settings))
    raise wide


def _halved(cells: int, least: int) -> Iterator[int]:
    while cells > least:
        yield cells
        cells //= 2
    yield least


def _explain_narrowing(wide: NetworkTooWideError, cells: int, tree: JunctionTree, settings: Settings) -> str:
    return (
        f"The best graph is too wide for exact inference: its largest table has {wide.largest_clique:,} cells, and a "
        f"row needs {wide.bytes_per_row:,} bytes, more than memory_budget={settings.memory_budget:,}. So the graph was "
        f"searched again with max_clique_cells={cells}; it needs {tree.bytes_per_row:,} bytes for each row. For more "
        "arcs, raise memory_budget; for faster predictions, lower max_clique_cells."
    )


def _search(accepted: Sequence[FamilyTable], blocks: Blocks, settings: Settings) -> Found:
    """Return the best DAG within the bounds; raise a NetworkTooWideError before its models are fitted."""
    structure, families = _best_structure(accepted, settings)
    order = None
    if structure.elimination_order is not None:
        place = {name: k for k, name in enumerate(settings.names[: len(accepted)])}
        order = [place[name] for name in structure.elimination_order]
    tree = compile_tree(class_parents(families), blocks, settings, order)
    return Found(structure, families, tree, order, settings.bounds)


def compile_tree(
    parents: Sequence[ParentSet], blocks: Blocks, settings: Settings, order: Sequence[int] | None = None
) -> JunctionTree:
    """Return the junction tree over the class variables, given the parents of each block.

    It uses an order of the blocks unless the tree without it is as cheap and within the bounds, too. So a bound that
    makes no difference to the graph makes none to the tree.
    """
    scopes = family_scopes(blocks.class_parents(parents))
    make = partial(JunctionTree, blocks.sizes, scopes, memory_budget=settings.memory_budget)
    if order is None:
        return make()
    tree = make(order=[k for block in order for k in blocks.members[block]])
    try:
        free = make()
    except NetworkTooWideError:
        return tree
    return free if free.cells <= tree.cells and settings.bounds.admit(free) else tree


def _best_structure(accepted: Sequence[FamilyTable], settings: Settings) -> tuple[Structure, list[Family]]:
    """Search the best DAG within the time; return it and the family of each class variable."""
    tell_phase("searching for the best graph")
    n_classes = len(accepted)
    names = list(settings.names[:n_classes])
    best = [best_per_class_set(table, n_classes) for table in accepted]
    clock = _Clock.of(settings)
    structure = find_structure(
        {
            names[child]: {frozenset(names[p] for p in classes): table[f] for classes, f in best[child].items()}
            for child, table in enumerate(accepted)
        },
        settings.search,
        gap=settings.gap,
        memory_budget=settings.memory_budget,
        verbose=settings.verbose,
        **clock.arguments(),
        **_bounds(settings, names),
    )
    if clock.has_stopped(structure):
        structure = replace(structure, status="time limit")
        settings.deadline.cut(f"the structure search ({_distance(structure)})")
    elif structure.status in _REMEDIES:
        warn_user(
            f"The structure search stopped ({structure.status}) before it was proved optimal: {_distance(structure)}. "
            f"{_REMEDIES[structure.status]}, or lower max_parents or max_candidates."
        )
    chosen = [tuple(sorted(names.index(p) for p in structure.parents[name])) for name in names]
    return structure, [own[classes] for own, classes in zip(best, chosen, strict=True)]


def _distance(structure: Structure) -> str:
    lost = structure.bound - structure.score
    return f"its score {structure.score:.6g} may be up to {lost:.3g} below the optimum"


@dataclass(frozen=True)
class _Clock:
    """Ends the search in time.

    Within bounds, a search with a time limit goes on until then. So there the time budget ends the search by the
    callback, and as long as the budget has no effect, the result is that without one.
    """

    settings: Settings
    left: float
    until: float

    @classmethod
    def of(cls, settings: Settings) -> _Clock:
        left = max(settings.deadline.left(), MIN_SEARCH_SECONDS)
        return cls(settings, left, now() + left)

    @property
    def limit(self) -> float:
        return math.inf if self.settings.time_limit is None else self.settings.time_limit

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `find_structure`."""
        if self.settings.bounds:
            return {"time_limit": self.settings.time_limit, "callback": self.stop}
        return {"time_limit": min(self.limit, self.left), "callback": self.settings.callback}

    def stop(self, structure: Structure) -> bool:
        callback = self.settings.callback
        return now() >= self.until or (callback is not None and bool(callback(structure)))

    def has_stopped(self, structure: Structure) -> bool:
        """Return whether the search has ended because of the time budget."""
        if self.settings.bounds:
            return structure.status == "interrupted" and now() >= self.until
        return structure.status == "time limit" and self.left < self.limit


def _bounds(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a search within bounds."""
    if not settings.bounds:
        return {}
    seed = 0
    if settings.random_state is not None:  # a copy, because a bound must not change what others draw
        seed = int(check_random_state(deepcopy(settings.random_state)).randint(np.iinfo(np.int32).max))
    return {"random_state": seed, **settings.bounds.arguments(names)}
