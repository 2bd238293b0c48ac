"""The consensus of the graphs of several models."""

import matplotlib

matplotlib.use("Agg")

import networkx as nx
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, cross_validate

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.report import consensus_graph, draw_graph


def graph(*edges, nodes="abc", **attributes):
    made = nx.DiGraph(**attributes)
    made.add_nodes_from(nodes, kind="class")
    made.add_edges_from(edges)
    return made


def test_shares_and_means():
    union = consensus_graph(
        [
            graph(
                ("a", "b", {"strength": 4.0, "conditioning": "input"}),
                ("b", "c", {"strength": 1.0, "conditioning": "input"}),
            ),
            graph(("a", "b", {"strength": 8.0, "conditioning": "partition"})),
            graph(("b", "a", {"strength": 2.0, "conditioning": "partition"}), ("b", "c", {"conditioning": "input"})),
            graph(),
        ]
    )
    assert union.graph == {"n_models": 4}
    assert dict(union.nodes(data="kind")) == dict.fromkeys("abc", "class")
    assert {edge: data for *edge, data in union.edges(data=True) for edge in [tuple(edge)]} == {
        ("a", "b"): {"confidence": 0.5, "strength": 6.0, "conditioning": "mixed"},
        ("b", "c"): {"confidence": 0.5, "strength": 1.0, "conditioning": "input"},
        ("b", "a"): {"confidence": 0.25, "strength": 2.0, "conditioning": "partition"},
    }


def test_unknown_strengths_do_not_count():
    unknown = float("nan")
    union = consensus_graph(
        [
            graph(("a", "b", {"strength": 4.0}), ("b", "c", {"strength": unknown})),
            graph(("a", "b", {"strength": unknown})),
        ]
    )
    assert union.edges["a", "b"] == {"confidence": 1.0, "strength": 4.0}
    assert union.edges["b", "c"] == {"confidence": 0.5}


def test_directions_that_most_models_leave_open_are_open():
    known, left_open = {"determined": True}, {"determined": False}
    union = consensus_graph(
        [
            graph(("a", "b", left_open), ("b", "c", left_open), ("a", "c", known)),
            graph(("a", "b", left_open), ("c", "b", left_open), ("a", "c", known)),
            graph(("a", "b", known), ("b", "c", left_open), ("a", "c", left_open)),
        ]
    )
    determined = {(a, b): value for a, b, value in union.edges(data="determined")}
    # Both directions between b and c are there: arrow heads tell which is which.
    assert determined == {("a", "b"): False, ("a", "c"): True, ("b", "c"): True, ("c", "b"): True}


def test_models_of_a_cross_validation():
    data = make_network(240, n_class_variables=3, n_discrete=1, random_state=1)
    folds = cross_validate(GBNC(experts=None, max_parents=1), data.X, data.Y, cv=KFold(3), return_estimator=True)[
        "estimator"
    ]
    union = consensus_graph(folds)
    for parent, child, attributes in union.edges(data=True):
        having = [model for model in folds if model.graph_.has_edge(parent, child)]
        assert attributes["confidence"] == len(having) / 3
        mean = np.mean([model.graph_.edges[parent, child]["strength"] for model in having])
        assert attributes["strength"] == pytest.approx(mean)
    assert {node for node, kind in union.nodes(data="kind") if kind == "class"} == {"y0", "y1", "y2"}
    draw_graph(union)


def test_baselines_too():
    data = make_network(100, n_class_variables=3, random_state=1)
    chains = [ClassifierChain(order=order).fit(data.X, data.Y) for order in ([0, 1, 2], [0, 2, 1])]
    union = consensus_graph([*chains, BinaryRelevance().fit(data.X, data.Y)])
    assert {(a, b): share for a, b, share in union.edges(data="confidence")} == {
        ("y0", "y1"): pytest.approx(1 / 3),
        ("y1", "y2"): pytest.approx(1 / 3),
        ("y0", "y2"): pytest.approx(1 / 3),
        ("y2", "y1"): pytest.approx(1 / 3),
    }
    assert "note" not in union.graph
    assert consensus_graph(chains).graph["note"].startswith("a chain")


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="models is empty: give at least one fitted model"):
        consensus_graph([])
    with pytest.raises(TypeError, match=r"models\[1\] is of type str: give a fitted model of pmdc"):
        consensus_graph([graph(), "model"])
    with pytest.raises(NotFittedError):
        consensus_graph([GBNC(experts=None)])
    with pytest.raises(ValueError, match=r"models\[1\] and models\[0\] differ in the class variables 'd'"):
        consensus_graph([graph(), graph(nodes="abcd")])
    data = make_network(50, n_class_variables=2, random_state=1)
    with pytest.raises(ValueError, match="ClassPowerset has no graph"):
        consensus_graph([ClassPowerset().fit(data.X, data.Y)])


def test_resamples_are_seeded_and_leave_the_model_alone():
    from pmdc.report import resample_graph

    data = make_network(200, n_class_variables=3, random_state=0)
    model = GBNC(experts=None, max_parents=1)
    first, second = (resample_graph(model, data.X, data.Y, 3, random_state=4) for _ in range(2))
    assert dict(first.edges) == dict(second.edges)
    assert first.graph["n_models"] == 3
    assert not hasattr(model, "graph_")
    with pytest.raises(ValueError, match="n_resamples=0"):
        resample_graph(model, data.X, data.Y, 0)
