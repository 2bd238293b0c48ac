"""What was chosen, by name: scores, ways, and the graph with what each edge is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmdc.candidates.families import Family
from pmdc.candidates.family_search import FamilyTable
from pmdc.scores.scoring import Scores

if TYPE_CHECKING:
    import networkx


def losses_without(scores: Scores, chosen: Sequence[Family]) -> list[list[float]]:
    """What the score of each class variable's family loses without each of its parents.

    It is compared with all families of fewer parents that were scored. Where the others alone were not, in whichever
    way, they are scored now; nothing else depends on these scores.
    """
    tables = scores.known
    without = [(child, family.without(p)) for child, family in enumerate(chosen) for p in family.parents]
    scores([(child, few) for child, few in without if few.parents not in {f.parents for f in tables[child]}], True)

    def loss(child: int, few: Family) -> float:
        left = max(score for f, score in tables[child].items() if set(f.parents) <= set(few.parents))
        return max(float(tables[child][chosen[child]] - left), 0.0)

    return [[loss(child, family.without(p)) for p in family.parents] for child, family in enumerate(chosen)]


def named_scores(
    tables: Sequence[FamilyTable], offered: Sequence[FamilyTable], names: Sequence[str]
) -> dict[str, dict[frozenset[str], float]]:
    """The best score of each set of parents, whichever way they enter: of those offered, if there are any."""

    def best(table: FamilyTable) -> dict[frozenset[str], float]:
        own: dict[frozenset[str], float] = {}
        for family, score in table.items():
            parents = frozenset(names[p] for p in family.parents)
            own[parents] = max(score, own.get(parents, -np.inf))
        return own

    return {
        names[child]: best(table) | best(few) for child, (table, few) in enumerate(zip(tables, offered, strict=True))
    }


def named_ways(chosen: Sequence[Family], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Class variable -> {parent: how it enters}."""
    return {
        names[child]: {names[p]: "partition" if p in family.partition else "input" for p in family.parents}
        for child, family in enumerate(chosen)
    }


def named_graph(
    ways: dict[str, dict[str, str]], class_names: Sequence[str], losses: Sequence[Sequence[float]]
) -> networkx.DiGraph:
    """The class variables and their parents, with how each of them enters and what is lost without it."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(class_names, kind="class")
    for (child, parents), lost in zip(ways.items(), losses, strict=True):
        lost_without = dict(zip(parents, lost, strict=True))
        for parent in sorted(parents):
            if parent not in graph:
                graph.add_node(parent, kind="discrete")
            graph.add_edge(parent, child, conditioning=parents[parent])
            if np.isfinite(lost_without[parent]):  # nothing is known where a penalty forbids all that is left
                graph.edges[parent, child]["strength"] = lost_without[parent]
    return graph
