"""The learned network by name: scores, conditioning, and the graph with its arc strengths."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmdc.candidates.families import Family, FamilyTable

if TYPE_CHECKING:
    import networkx


def arc_strengths(accepted: FamilyTable, family: Family) -> dict[int, float]:
    """Return the arc strength of each parent of a class variable: the score that is lost without it.

    It is the score of the family minus that of the best accepted family of which all parents are among the others. A
    parent that all accepted families have, such as that of a required edge, has no entry.
    """
    parents, strengths = set(family.parents), {}
    for parent in family.parents:
        others = [score for other, score in accepted.items() if set(other.parents) <= parents - {parent}]
        lost = accepted[family] - max(others, default=-np.inf)
        if np.isfinite(lost):
            strengths[parent] = max(float(lost), 0.0)
    return strengths


def named_scores(
    tables: Sequence[FamilyTable], accepted: Sequence[FamilyTable], names: Sequence[str]
) -> dict[str, dict[frozenset[str], float]]:
    """Return the best score of each parent set over all ways to enter, preferring accepted families."""

    def best(table: FamilyTable) -> dict[frozenset[str], float]:
        own: dict[frozenset[str], float] = {}
        for family, score in table.items():
            parents = frozenset(names[p] for p in family.parents)
            own[parents] = max(score, own.get(parents, -np.inf))
        return own

    return {
        names[child]: best(scored) | best(own) for child, (scored, own) in enumerate(zip(tables, accepted, strict=True))
    }


def conditioning_of(graph: networkx.DiGraph, class_names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return, for each class variable, how each parent enters."""
    return {name: {p: graph.edges[p, name]["conditioning"] for p in graph.predecessors(name)} for name in class_names}


def named_graph(
    chosen: Sequence[Family],
    strengths: Sequence[dict[int, float]],
    either_way: Collection[tuple[int, int]],
    counted: Sequence[Mapping[int, float]],
    names: Sequence[str],
) -> networkx.DiGraph:
    """Return the graph of the class variables and their parents, with the attributes of arcs (see `GBNC`)."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(names[: len(chosen)], kind="class")
    for child, family in enumerate(chosen):
        for parent in sorted(family.parents, key=names.__getitem__):
            if names[parent] not in graph:
                graph.add_node(names[parent], kind="discrete")
            how = "partition" if parent in family.partition else "input"
            determined = (parent, child) not in either_way
            graph.add_edge(names[parent], names[child], conditioning=how, determined=determined)
            if parent in strengths[child]:
                graph.edges[names[parent], names[child]]["strength"] = strengths[child][parent]
            if parent in counted[child]:
                graph.edges[names[parent], names[child]]["n_rows"] = counted[child][parent]
        if child in counted[child]:
            graph.nodes[names[child]]["n_rows"] = counted[child][child]
    return graph
