"""The features that matter, as numbers and in the graph."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.explain import importance
from pmdc.report import draw_graph, feature_graph, write_graph


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def table(n=600, seed=0):
    """`colour` depends on width alone, `size` on town alone, `copy` on colour alone; two features are noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["width", "noise", "more noise"])
    X["town"] = rng.choice(["north", "south"], n)
    flipped = rng.random((n, 3)) < 0.1
    colour = (X["width"] > 0) ^ flipped[:, 0]
    size = (X["town"] == "north") ^ flipped[:, 1]
    return X, pd.DataFrame({"colour": colour, "size": size, "copy": colour ^ flipped[:, 2]}).replace(
        {True: "yes", False: "no"}
    )


@pytest.fixture(scope="module")
def fitted():
    X, Y = table()
    return GBNC(experts=None, required_edges=[("colour", "copy")]).fit(X, Y)


def test_direct_effects_are_found_and_nothing_else(fitted):
    importance = fitted.feature_importance(*table(seed=1))
    assert importance.feature_names == ["width", "noise", "more noise", "town"]
    top = importance.top(5)
    assert {name: list(found) for name, found in top.items()} == {"colour": ["width"], "size": ["town"], "copy": []}
    assert top["colour"]["width"] > 0.5
    # Without an arc from colour, the copy depends on the width itself.
    alone = BinaryRelevance().fit(*table())
    assert list(alone.feature_importance(*table(seed=1)).top(1)["copy"]) == ["width"]


def test_it_is_the_importance_given_the_parents(fitted):
    X, Y = table(300, seed=1)
    options = {"n_repeats": 2, "max_rows": 100, "random_state": 4}
    one, other = fitted.feature_importance(X, Y, **options), importance(fitted, X, Y, given_parents=True, **options)
    np.testing.assert_array_equal(one.by_variable.importances, other.by_variable.importances)
    assert (one.loss, one.given_parents, one.n_rows) == ("log", True, 100)
    data = make_network(60, n_class_variables=2, random_state=0)
    with pytest.raises(TypeError, match="ClassPowerset"):
        feature_graph(ClassPowerset().fit(data.X, data.Y), data.X, data.Y)


def test_noise_is_not_drawn():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(400, 20)), rng.integers(0, 3, (400, 3)).astype(str)
    model = BinaryRelevance().fit(X[:200], Y[:200])
    importance = model.feature_importance(X[200:], Y[200:])
    assert not any(importance.top(5).values())
    graph = feature_graph(model, X[200:], Y[200:])
    assert list(graph) == list(model.to_networkx())
    assert graph.graph["note"].endswith("by 200 rows: none.")


def test_they_are_drawn_and_the_graph_of_the_model_stays(fitted):
    before = set(fitted.graph_), set(fitted.graph_.edges)
    X, Y = table(seed=1)
    ax = fitted.plot(features=2, X=X, Y=Y)
    ids = {patch.get_gid() for patch in ax.patches}
    assert {"node:width", "edge:width:colour", "head:width:colour", "label:width:colour"} <= ids
    assert not {"node:noise", "edge:width:copy"} & ids
    assert "legend:continuous feature" in ids
    lines = {patch.get_gid(): patch for patch in ax.patches}
    assert lines["edge:width:colour"].get_linestyle() not in ("-", "solid")
    assert lines["edge:width:colour"].get_linewidth() < lines["edge:colour:copy"].get_linewidth()
    assert (set(fitted.graph_), set(fitted.graph_.edges)) == before


def test_discrete_features_in_the_graph_keep_their_arcs(fitted):
    graph = feature_graph(fitted, *table(seed=1), features=1)
    learned = fitted.graph_.edges["town", "size"]
    assert graph.edges["town", "size"] == {**learned, "importance": pytest.approx(0.4 * np.log(9), abs=0.15)}
    assert graph.nodes["width"] == {"kind": "continuous"}
    graph.remove_node("width")  # the number at the other arc is still explained
    explained = [patch.get_gid() for patch in draw_graph(graph).patches if "shuffled" in patch.get_gid()]
    assert len(explained) == 1


def test_they_are_in_files(fitted, tmp_path):
    graph = feature_graph(fitted, *table(seed=1))
    write_graph(graph, tmp_path / "graph.graphml")
    back = nx.read_graphml(tmp_path / "graph.graphml")
    assert back.edges["width", "colour"]["importance"] == pytest.approx(graph.edges["width", "colour"]["importance"])
    assert back.nodes["width"]["kind"] == "continuous"
    write_graph(graph, tmp_path / "graph.dot")
    (line,) = (line for line in (tmp_path / "graph.dot").read_text().splitlines() if '"width" -> "colour"' in line)
    assert '"style"="dotted"' in line
    assert f'"label"="+{graph.edges["width", "colour"]["importance"]:.2g}"' in line


def test_many_of_them_are_limited_and_counted():
    graph = nx.DiGraph([("a", "b")])
    for i in range(9):
        graph.add_node(f"x{i}", kind="continuous")
        graph.add_edge(f"x{i}", "ab"[i % 2], importance=0.1 * (i + 1))
    graph.add_edge("b", "c", strength=9.0)
    graph.edges["x8", "a"]["strength"] = 0.1  # also an arc of the model, and a weak one
    ax = draw_graph(graph, max_arcs=4)
    ids = {patch.get_gid() for patch in ax.patches}
    assert {f"x{i}" for i in range(9) if f"node:x{i}" in ids} == {"x5", "x6", "x7", "x8"}
    assert {"edge:a:b", "edge:b:c"} <= ids
    assert "edge:x8:a" in {patch.get_gid() for patch in draw_graph(graph, max_arcs=1).patches}
    caption = " ".join(gid for gid in ids if gid.startswith("legend:"))
    assert "5 arcs from features" in caption
    assert "5 continuous features" in caption


def test_what_is_wrong_is_said(fitted):
    X, Y = table(60, seed=1)
    with pytest.raises(ValueError, match="Y=None"):
        fitted.plot(features=3, X=X)
    with pytest.raises(ValueError, match="X=None"):
        fitted.plot(features=3)
    with pytest.raises(ValueError, match="features=0"):
        fitted.plot(X=X, Y=Y)
    with pytest.raises(ValueError, match="features=-1"):
        feature_graph(fitted, X, Y, features=-1)
    data = make_network(60, n_class_variables=2, random_state=0)
    for other in (ClassifierChain(), ClassPowerset()):
        with pytest.raises(TypeError, match=type(other).__name__):
            other.fit(data.X, data.Y).feature_importance(data.X, data.Y)
