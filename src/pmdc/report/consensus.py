"""The consensus of the graphs of several models, such as those of resampled rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pmdc._support.checks import check_count, shorten
from pmdc._support.progress import phases_of

if TYPE_CHECKING:
    import networkx as nx

_SHARE = 1 - math.exp(-1)
"""Share of the rows in a resample: that of different rows in a bootstrap sample."""


def consensus_graph(models: Iterable[Any]) -> nx.DiGraph:
    """Combine the graphs of several models; each edge gets the share of the models that contain it.

    Models of resampled rows (folds of a cross-validation, bootstrap samples) show which edges are stable and which are
    due to chance.

    Parameters
    ----------
    models : iterable of fitted models, or of graphs as accepted by `draw_graph`
        With the same class variables.

    Returns
    -------
    networkx.DiGraph
        All nodes and edges of all graphs, for `draw_graph` and `write_graph`. Edges have the attributes ``confidence``,
        the share of the models with this edge in this direction; ``strength``, the mean arc strength over those models
        that have one; ``conditioning``, which is "mixed" if the models differ; and ``determined``, if the models have
        it: False if no model has the opposite edge and most of them do not determine the direction. The graph has the
        attribute ``n_models``. If models disagree about a direction, both edges are present, so the graph may have
        cycles.

    Examples
    --------
    >>> from sklearn.model_selection import KFold, cross_validate
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import consensus_graph, draw_graph
    >>> data = make_network(300, n_class_variables=3, random_state=0)
    >>> folds = cross_validate(GBNC(experts=None, max_parents=1), data.X, data.Y, cv=KFold(4), return_estimator=True)
    >>> graph = consensus_graph(folds["estimator"])
    >>> all(0.25 <= share <= 1 for _, _, share in graph.edges(data="confidence"))
    True
    >>> ax = draw_graph(graph)
    """
    import networkx as nx

    graphs = [graph_of(model, f"models[{i}]") for i, model in enumerate(models)]
    if not graphs:
        raise ValueError("models is empty: give at least one fitted model.")
    union = nx.DiGraph(n_models=len(graphs))
    if len(notes := {graph.graph.get("note") for graph in graphs}) == 1 and None not in notes:
        union.graph["note"] = notes.pop()
    for i, graph in enumerate(graphs):
        _check_class_variables(graphs[0], graph, i)
        for node, data in graph.nodes(data=True):
            union.add_node(node, kind=data.get("kind", "class"))
    found: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    for graph in graphs:
        for parent, child, data in graph.edges(data=True):
            found.setdefault((parent, child), []).append(data)
    for edge, each in found.items():
        union.add_edge(*edge, confidence=len(each) / len(graphs))
        known = [float(data["strength"]) for data in each if "strength" in data]
        if strengths := list(filter(math.isfinite, known)):
            union.edges[edge]["strength"] = fmean(strengths)
        if kinds := {data["conditioning"] for data in each if "conditioning" in data}:
            union.edges[edge]["conditioning"] = kinds.pop() if len(kinds) == 1 else "mixed"
        if given := [bool(data["determined"]) for data in each if "determined" in data]:
            union.edges[edge]["determined"] = edge[::-1] in found or 2 * sum(given) >= len(given)
    return union


def resample_graph(model: Any, X: Any, y: Any, n_resamples: int = 20, random_state: Any = None) -> nx.DiGraph:
    """Fit a model to resampled rows several times, and return how often each edge appears.

    A resample has 63 % of the rows, drawn at random without replacement: as many different rows as a bootstrap sample
    has. (The copies of a row in a bootstrap sample would be in several folds, and held-out scores would be too good.)
    Fewer rows show fewer edges, so the shares are rather too low than too high.

    Parameters
    ----------
    model : classifier with a graph, such as a `GBNC`
        It is cloned, not changed.
    X, y : tables as for `fit`
    n_resamples : int, default=20
        The number of fits.
    random_state : int, RandomState or None, default=None
        The seed of the resamples.

    Returns
    -------
    networkx.DiGraph
        As returned by `consensus_graph`.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import resample_graph
    >>> data = make_network(300, n_class_variables=3, random_state=0)
    >>> graph = resample_graph(GBNC(experts=None, max_parents=1), data.X, data.Y, n_resamples=3, random_state=0)
    >>> graph.graph["n_models"]
    3
    """
    from sklearn.base import clone
    from sklearn.utils import check_random_state, resample

    check_count("n_resamples", n_resamples, 1)
    random = check_random_state(random_state)
    size = max(1, round(_SHARE * len(X)))
    graphs = []
    for i in range(n_resamples):
        rows = resample(X, y, replace=False, n_samples=size, random_state=random)
        with phases_of(f"resample {i + 1} of {n_resamples}"):
            fitted = clone(model).fit(*rows)
        graphs.append(graph_of(fitted, f"resample {i}"))
    return consensus_graph(graphs)


def graph_of(model: Any, argument: str) -> nx.DiGraph:
    """Return the graph of a fitted model, or the graph itself."""
    import networkx as nx

    from pmdc.estimator import MultiDimensionalClassifier

    if isinstance(model, nx.DiGraph):
        return model
    if not isinstance(model, MultiDimensionalClassifier):
        raise TypeError(
            f"{argument} is of type {type(model).__name__}: give a fitted model of pmdc, such as a GBNC, or a "
            "networkx.DiGraph. For a search use its best_estimator_, for a pipeline its last step."
        )
    return model.to_networkx()


def _check_class_variables(first: nx.DiGraph, other: nx.DiGraph, i: int) -> None:
    ours, theirs = (
        {node for node, kind in graph.nodes(data="kind", default="class") if kind == "class"}
        for graph in (first, other)
    )
    if ours != theirs:
        raise ValueError(
            f"models[{i}] and models[0] differ in the class variables {shorten(sorted(map(str, ours ^ theirs)))}: give "
            "models of the same class variables."
        )
