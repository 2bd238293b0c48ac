"""Which arcs of the best graph could as well point the other way.

Reversing one arc may ask for the reversal of others: a -> b -> c describes the same dependence as a <- b <- c and as
a <- b -> c, but not as a -> b <- c. So for each arc the best graph is searched for that has it reversed and connects
no other pairs of class variables, and is compared with the best graph of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, FamilyTable, ParentSet, best_per_class_set
from pmdc.scores.scorer import Gain
from pmdc.search import Structure, find_structure
from pmdc.settings import Settings

MAX_EXACT = 18
"""Up to this number of class variables the search for the best reversed graph is exact; above it is local search."""

Compare = Callable[[Sequence[tuple[int, Family, Family]]], Gain]
"""Returns by how much the first families of some class variables are better than the second ones, all together."""


def undetermined_arcs(
    tables: Sequence[FamilyTable], families: Sequence[Family], compare: Compare, settings: Settings
) -> set[tuple[int, int]]:
    """Return the arcs (parent, child) between class variables whose direction the scores do not determine.

    An arc is determined if it is required, if no scored family has it reversed, or if every graph that has it reversed
    and connects no other pairs scores lower by more than z standard errors and by more than z^2 / 2 nats. z is `guard`,
    or 2 without a guard. Above `MAX_EXACT` class variables, a better reversed graph may be missed; so may one within
    bounds, if the best one exceeds them. Arcs for which there is no time are not determined.

    Parameters
    ----------
    tables : for each class variable, family -> score, of all families that were scored
    families : the family of each class variable in the best graph
    compare : Compare
    settings : Settings
    """
    n_classes = len(families)
    parents = [family.classes(n_classes) for family in families]
    connected = [{*own, *(child for child in range(n_classes) if k in parents[child])} for k, own in enumerate(parents)]
    best = [best_per_class_set(table, n_classes) for table in tables]
    scores = {
        str(k): {frozenset(map(str, s)): table[family] for s, family in best[k].items() if connected[k].issuperset(s)}
        for k, table in enumerate(tables)
    }
    found: set[tuple[int, int]] = set()
    z = settings.guard or 2.0
    tell_phase("reversing arcs")
    for child in range(n_classes):
        for parent in parents[child]:
            if parent in settings.rules[child].required:
                continue
            if settings.deadline.passed():
                settings.deadline.cut("the directions of arcs")
                found.add((parent, child))
                continue
            other = _best_with(scores, child, parent, settings)
            if other is None:
                continue
            changed = [k for k in range(n_classes) if other[k] != parents[k]]
            lost = compare([(k, families[k], best[k][other[k]]) for k in changed])
            if lost.value <= max(z * lost.standard_error, z**2 / 2):
                found.add((parent, child))
    return found


def _best_with(
    scores: Mapping[str, Mapping[frozenset[str], float]], parent: int, child: int, settings: Settings
) -> list[ParentSet] | None:
    """Return the parents of each class variable in the best graph with an arc; None if there is no such graph."""
    own = {classes: score for classes, score in scores[str(child)].items() if str(parent) in classes}
    if not own:
        return None
    table, budget = {**scores, str(child): own}, settings.memory_budget
    exact = len(scores) <= MAX_EXACT
    try:
        best = find_structure(table, "dynamic-programming" if exact else "local-search", memory_budget=budget)
        if settings.bounds and settings.bounds.order(_parents(best)) is None:
            bounds = settings.bounds.arguments(list(scores))
            best = find_structure(table, "hill-climb", memory_budget=budget, **bounds)
    except ValueError:  # the arc closes a cycle with required ones, or exceeds the bounds with them
        return None
    return _parents(best) if np.isfinite(best.score) else None


def _parents(structure: Structure) -> list[ParentSet]:
    return [tuple(sorted(map(int, structure.parents[str(k)]))) for k in range(len(structure.parents))]
