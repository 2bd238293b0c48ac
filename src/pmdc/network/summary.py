"""What was learned, by name: scores, conditioning, and the graph with the strength of each arc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmdc.candidates.families import Family, FamilyTable

if TYPE_CHECKING:
    import networkx


def arc_strengths(table: FamilyTable, family: Family) -> dict[int, float]:
    """Return what the score of a class variable loses without each of its parents.

    That is the score of all its parents minus the score of all but one. Where the latter was not scored, both are taken
    from the largest subset of the parents that was scored with and without the one; 0 if nothing is lost. Where there
    is no such subset, as for edges that are required, nothing is said.
    """
    best: dict[frozenset[int], float] = {}
    for other, score in table.items():
        parents = frozenset(other.parents)
        if parents <= set(family.parents):
            best[parents] = max(score, best.get(parents, -np.inf))
    strengths = {}
    for parent in family.parents:
        pairs = [(with_it, with_it - {parent}) for with_it in best if parent in with_it and with_it - {parent} in best]
        if pairs:
            with_it, without = max(pairs, key=lambda pair: (len(pair[0]), best[pair[0]]))
            lost = (table[family] if len(with_it) == len(family.parents) else best[with_it]) - best[without]
            if np.isfinite(lost):
                strengths[parent] = max(float(lost), 0.0)
    return strengths


def named_scores(
    tables: Sequence[FamilyTable], accepted: Sequence[FamilyTable], names: Sequence[str]
) -> dict[str, dict[frozenset[str], float]]:
    """Return the best score of each set of parents, however they enter: of those accepted, if there are any."""

    def best(table: FamilyTable) -> dict[frozenset[str], float]:
        own: dict[frozenset[str], float] = {}
        for family, score in table.items():
            parents = frozenset(names[p] for p in family.parents)
            own[parents] = max(score, own.get(parents, -np.inf))
        return own

    return {
        names[child]: best(table) | best(few) for child, (table, few) in enumerate(zip(tables, accepted, strict=True))
    }


def named_conditioning(chosen: Sequence[Family], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Class variable -> {parent: how it enters}."""
    return {
        names[child]: {names[p]: "partition" if p in family.partition else "input" for p in family.parents}
        for child, family in enumerate(chosen)
    }


def named_graph(
    chosen: Sequence[Family], strengths: Sequence[dict[int, float]], names: Sequence[str]
) -> networkx.DiGraph:
    """Return the class variables and their parents, with how each of them enters and the strength of its arc."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(names[: len(chosen)], kind="class")
    conditioning = named_conditioning(chosen, names)
    for child, family in enumerate(chosen):
        for parent in sorted(family.parents, key=names.__getitem__):
            if names[parent] not in graph:
                graph.add_node(names[parent], kind="discrete")
            graph.add_edge(names[parent], names[child], conditioning=conditioning[names[child]][names[parent]])
            if parent in strengths[child]:
                graph.edges[names[parent], names[child]]["strength"] = strengths[child][parent]
    return graph
