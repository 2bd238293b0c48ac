"""Which arcs of a large graph are drawn: the strongest; the rest is counted in a caption."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pmdc._support.checks import check_count
from pmdc.report.layout import Edge, Node
from pmdc.report.strokes import number

if TYPE_CHECKING:
    import networkx as nx

MAX_ARCS = 40
"""Default of `max_arcs`: so many can be told apart in a picture that fits on a screen."""

KINDS = {"class": "class variable", "discrete": "discrete feature", "continuous": "continuous feature"}


class Selection(NamedTuple):
    """What is drawn of a graph."""

    graph: nx.DiGraph
    caption: str
    """What is not drawn, in words; empty if everything is."""


def strongest_arcs(graph: nx.DiGraph, max_arcs: int | None) -> Selection:
    """Select the strongest arcs, and count the others.

    Arcs from features that show importance are counted separately from the other arcs of the model. A node is left out
    if it has arcs and none of them is drawn; so a node without arcs in the picture has none in the graph either.
    """
    if max_arcs is None:
        return Selection(graph, "")
    check_count("max_arcs", max_arcs, 1)
    data: dict[Edge, Mapping[str, Any]] = {(a, b): given for a, b, given in graph.edges(data=True)}
    features = {edge: d for edge, d in data.items() if "importance" in d}
    learned = {edge: d for edge, d in data.items() if edge not in features}
    left_out, counts = _weakest(learned, max_arcs)
    if len(features) > max_arcs:
        ranked = sorted(features, key=lambda edge: -float(features[edge]["importance"]))
        largest = number(float(features[ranked[max_arcs]]["importance"]))
        rest = _plural(len(ranked) - max_arcs, "arc from a feature", "arcs from features")
        counts.append(f"{rest} (importance at most {largest})")
        left_out += ranked[max_arcs:]
    if not left_out:
        return Selection(graph, "")
    drawn = graph.edge_subgraph([edge for edge in graph.edges if edge not in set(left_out)]).copy()
    lonely = [node for node in graph if node not in drawn and graph.degree(node)]
    chosen = graph.subgraph([node for node in graph if node not in set(lonely)]).copy()
    chosen.remove_edges_from(left_out)
    return Selection(chosen, f"Not drawn: {', '.join(counts + _left_out_nodes(graph, lonely))}.")


def _weakest(arcs: Mapping[Edge, Mapping[str, Any]], max_arcs: int) -> tuple[list[Edge], list[str]]:
    """Return the arcs of the model that are left out, and how many in words; none if no arc has a strength."""
    if len(arcs) <= max_arcs or not any("confidence" in d or _is_known(d) for d in arcs.values()):
        return [], []

    def rank(edge: Edge) -> tuple[float, float]:
        given = arcs[edge]
        return -float(given.get("confidence", 0.0)), -float(given["strength"]) if _is_known(given) else math.inf

    left_out = sorted(arcs, key=rank)[max_arcs:]
    if any("confidence" in arcs[edge] for edge in left_out):
        share = max(float(arcs[edge].get("confidence", 0.0)) for edge in left_out)
        what = _plural(len(left_out), "less frequent or weaker arc")
        return left_out, [f"{what} (in at most {100 * share:.0f} % of the models)"]
    known = [float(arcs[edge]["strength"]) for edge in left_out if _is_known(arcs[edge])]
    counts = []
    if known:
        counts.append(f"{_plural(len(known), 'weaker arc')} (arc strength at most {number(max(known))})")
    if len(known) < len(left_out):
        counts.append(f"{_plural(len(left_out) - len(known), 'arc')} of unknown strength")
    return left_out, counts


def _is_known(data: Mapping[str, Any]) -> bool:
    return math.isfinite(float(data.get("strength", math.nan)))


def _left_out_nodes(graph: nx.DiGraph, nodes: Sequence[Node]) -> list[str]:
    counts = Counter(graph.nodes[node].get("kind", "class") for node in nodes)
    return [f"{_plural(counts[kind], name)} with such arcs only" for kind, name in KINDS.items() if counts[kind]]


def _plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
