"""The graph of a model with the features that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pmdc._support.checks import check_count

if TYPE_CHECKING:
    import networkx as nx

    from pmdc.explain import Importance


def feature_graph(model: Any, X: Any, Y: Any, features: int = 5, **options: Any) -> nx.DiGraph:
    """Return the graph of a model with the features that matter most for each class variable.

    Parameters
    ----------
    model : fitted model
        A `GBNC` or `BinaryRelevance`.
    X, Y : tables as for `fit`
        Rows with known outcomes, best those that were not used in `fit`.
    features : int, default=5
        The largest number of features for each class variable. Only features whose importance is more than chance are
        added, continuous and discrete ones.
    **options
        Those of `pmdc.explain.importance`, but not `loss` and `given_parents`: ``n_repeats``, ``max_rows``, ....

    Returns
    -------
    networkx.DiGraph
        For `draw_graph` and `write_graph`: the graph of the model with further nodes (``kind``: "continuous" or
        "discrete") and edges with the attribute ``importance``, in nats per row. An edge from a discrete feature that
        is already in the graph gets this attribute, too. A ``note`` says how many rows were used.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import draw_graph, feature_graph
    >>> data = make_network(600, n_class_variables=3, random_state=0)
    >>> model = GBNC(experts=None).fit(data.X[:400], data.Y[:400])
    >>> graph = feature_graph(model, data.X[400:], data.Y[400:], features=2)
    >>> ax = draw_graph(graph)
    """
    check_count("features", features, 1)
    for name, table in (("X", X), ("Y", Y)):
        if table is None:
            raise ValueError(
                f"{name}=None: a model contains no rows, and the features that matter are found on rows with known "
                f"outcomes. Give both tables, such as plot(features={features}, X=X, Y=Y)."
            )
    return add_features(model, model.feature_importance(X, Y, **options), features)


def add_features(model: Any, importance: Importance, features: int) -> nx.DiGraph:
    """Return the graph of a model with the most important features; see `feature_graph`."""
    graph = model.to_networkx().copy()
    discrete = model.feature_table_.discrete_names
    top = importance.top(features)
    for child, found in top.items():
        for feature, increase in found.items():
            if feature not in graph:
                graph.add_node(feature, kind="discrete" if feature in discrete else "continuous")
            graph.add_edge(feature, child, importance=increase)
    which = f"at most {features} for each class variable" if any(top.values()) else "none"
    note = f"Features whose importance is more than chance, by {importance.n_rows} rows: {which}."
    graph.graph["note"] = " ".join(filter(None, [graph.graph.get("note"), note]))
    return graph
