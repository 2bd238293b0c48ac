"""Models draw their graphs, and edges have an arc strength."""

import ast
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import pmdc
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.candidates.families import Family
from pmdc.datasets import make_network
from pmdc.learners import NaiveBayes
from pmdc.network.summary import arc_strengths


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_network(240, n_class_variables=4, n_discrete=2, random_state=3)


def drawn(ax, kind):
    return {p.get_gid().removeprefix(f"{kind}:") for p in ax.patches if p.get_gid().startswith(f"{kind}:")}


def test_a_gbnc_draws_its_graph(data):
    model = GBNC(experts=None, max_parents=1).fit(data.X, data.Y)
    ax = model.plot(title="Graph")
    assert ax.get_title() == "Graph"
    assert drawn(ax, "node") == set(model.graph_)
    assert drawn(ax, "edge") == {f"{a}:{b}" for a, b in model.graph_.edges}
    _, own = plt.subplots()
    assert model.plot(own) is own


def test_baselines_draw_what_they_have(data):
    names = {"y0", "y1", "y2", "y3"}
    ax = BinaryRelevance().fit(data.X, data.Y).plot()
    assert drawn(ax, "node") == names
    assert not drawn(ax, "edge")
    assert " ".join(sorted(drawn(ax, "legend"))) == "all features are inputs of every class variable"
    ax = ClassifierChain(order=["y2", "y0", "y3", "y1"]).fit(data.X, data.Y).plot()
    assert drawn(ax, "edge") == {"y2:y0", "y0:y3", "y3:y1"}
    assert any("a chain" in line for line in drawn(ax, "legend"))
    with pytest.raises(ValueError, match=r"ClassPowerset has no graph: it is one .* predict_joint\(X\).plot\(row\)"):
        ClassPowerset().fit(data.X, data.Y).plot()
    with pytest.raises(ValueError, match=r"ChainEnsemble has no graph: its chains have random orders \(orders_\)"):
        ChainEnsemble(n_chains=2).fit(data.X, data.Y).plot()


def test_a_model_must_be_fitted():
    for model in (GBNC(experts=None), BinaryRelevance(), ClassPowerset()):
        with pytest.raises(NotFittedError):
            model.plot()


# Strength --------------------------------------------------------------------------------------------------------


def test_strength_is_what_is_lost_without_the_edge(data):
    model = GBNC(NaiveBayes(), criterion="bic", conditioning="partition", max_parents=2).fit(data.X, data.Y)
    assert model.graph_.number_of_edges() > 2
    for parent, child, strength in model.graph_.edges(data="strength"):
        table, parents = model.scores_[child], model.structure_.parents[child]
        assert strength == pytest.approx(table[parents] - table[parents - {parent}])
        assert strength >= 0


def test_strength_does_not_depend_on_pruning(data):
    graphs = [
        GBNC(NaiveBayes(), criterion="bic", conditioning="partition", prune=prune, max_parents=2)
        .fit(data.X, data.Y)
        .graph_
        for prune in ("lemma", None)
    ]
    assert set(graphs[0].edges) == set(graphs[1].edges)
    for edge in graphs[0].edges:
        assert graphs[0].edges[edge]["strength"] == pytest.approx(graphs[1].edges[edge]["strength"])


@pytest.mark.parametrize(
    ("family", "others", "strengths"),
    [
        (Family(()), {}, {}),
        # {2} and {1} were scored, the latter in two ways.
        (
            Family((), (1, 2)),
            {Family(()): -20.0, Family((1,)): -8.0, Family((), (1,)): -9.0, Family((), (2,)): -6.0},
            {1: 1.0, 2: 3.0},
        ),
        # The same parents in another way are no rival, nor are other parents.
        (Family((1,)), {Family(()): -7.0, Family((), (1,)): -4.0, Family((2,)): -1.0}, {1: 2.0}),
        # {1} is better than both: nothing is lost without 2.
        (Family((1, 2)), {Family((1,)): -4.0, Family((2,)): -6.0}, {1: 1.0, 2: 0.0}),
        # Without 1 there is only the empty set.
        (Family((1,), (3,)), {Family(()): -9.0, Family((), (1,)): -7.0}, {1: 4.0, 3: 2.0}),
        # A required parent is in all families.
        (Family((1, 2)), {Family((1,)): -6.0}, {2: 1.0}),
        (Family((1,)), {Family(()): -np.inf}, {}),
    ],
)
def test_strengths_from_the_scores_of_the_search(family, others, strengths):
    assert arc_strengths({family: -5.0, **others}, family) == strengths


def test_required_edges_have_no_strength(data):
    """Nothing without them was scored."""
    required = {("y0", "y3"), ("d0", "y3")}
    model = GBNC(
        NaiveBayes(), criterion="bic", conditioning="partition", max_parents=2, required_edges=sorted(required)
    ).fit(data.X, data.Y)
    assert required < set(model.graph_.edges)
    for *edge, strength in model.graph_.edges(data="strength"):
        assert strength is None if tuple(edge) in required else strength > 0
    model.plot()


def test_a_penalty_that_forbids_leaves_the_strength_unknown(data):
    def some_parent(size):
        return 0.0 if size.parent_states else np.inf

    Y = data.Y[["y0", "y1"]]
    model = GBNC(
        NaiveBayes(), criterion=some_parent, conditioning="partition", max_parents=1, max_discrete_parents=1
    ).fit(data.X, Y)
    assert any("strength" not in attributes for *_, attributes in model.graph_.edges(data=True))
    model.plot()


def test_the_graph_of_a_model_is_public(data):
    model = GBNC(experts=None, max_parents=1)
    with pytest.raises(NotFittedError):
        model.to_networkx()
    assert model.fit(data.X, data.Y).to_networkx() is model.graph_
    assert set(BinaryRelevance().fit(data.X, data.Y).to_networkx()) == {"y0", "y1", "y2", "y3"}


@pytest.mark.parametrize("folder", ["report", "metrics", "decisions"])
def test_private_attributes_are_read_only_inside_their_class(folder):
    for path in (Path(pmdc.__file__).parent / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = getattr(node.value, "id", None)
                assert owner in ("self", "cls", "other") or node.attr == "_replace", f"{path.name}:{node.lineno}"
