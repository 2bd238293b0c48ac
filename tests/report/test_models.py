"""Models draw their graphs, and edges know what is lost without them."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.candidates.families import Family
from pmdc.datasets import make_network
from pmdc.learners import NaiveBayes
from pmdc.network.summary import losses_without


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
    model = GBNC(max_parents=1).fit(data.X, data.Y)
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
    for model in (GBNC(), BinaryRelevance(), ClassPowerset()):
        with pytest.raises(NotFittedError):
            model.plot()


# Strength --------------------------------------------------------------------------------------------------------


def test_strength_is_what_is_lost_without_the_edge(data):
    model = GBNC(NaiveBayes(), criterion="bic", conditioning="partition", max_parents=2).fit(data.X, data.Y)
    assert model.graph_.number_of_edges() > 2
    for parent, child, strength in model.graph_.edges(data="strength"):
        table, parents = model.scores_[child], model.structure_.parents[child]
        left = max(score for few, score in table.items() if few <= parents - {parent})
        assert strength == pytest.approx(table[parents] - left)
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


class Scored:
    """Scores that are known, and those that are told when asked."""

    def __init__(self, known, told):
        self.known, self.told, self.asked = known, told, []

    def __call__(self, tasks, last):
        self.asked += tasks
        for child, family in tasks:
            self.known[child][family] = self.told[child, family]


def test_the_others_are_scored_where_they_were_not():
    chosen = [Family((), (1, 2)), Family((0,), (3,)), Family(())]
    known = [
        {chosen[0]: -5.0, Family(()): -20.0, Family((1,)): -8.0},
        {chosen[1]: -5.0, Family(()): -6.0, Family((), (0,)): -7.0},
        {chosen[2]: -1.0},
    ]
    scores = Scored(known, {(0, Family((), (2,))): -6.0, (1, Family((), (3,))): -4.0})
    # 1 goes: {2}, now scored; 2 goes: {1}, which was scored in another way; 0 goes: nothing is lost; 3 goes: {}.
    assert losses_without(scores, chosen) == [[1.0, 3.0], [0.0, 1.0], []]
    assert scores.asked == [(0, Family((), (2,))), (1, Family((), (3,)))]


def test_discrete_features_are_not_credited_with_what_others_tell(data):
    """They are chosen before class variables, so the set without them has no score of its own at first."""
    model = GBNC(NaiveBayes(), conditioning="input", guard=0, max_parents=2).fit(data.X, data.Y)
    unscored = [
        (parent, child)
        for parent, child in model.graph_.edges
        if model.structure_.parents[child] - {parent} not in model.scores_[child]
    ]
    assert unscored
    for parent, child in unscored:
        own = model.scores_[child]
        without_all = own[model.structure_.parents[child]] - own[frozenset()]
        assert 0 <= model.graph_.edges[parent, child]["strength"] <= without_all


def test_required_edges_have_a_strength_too(data):
    model = GBNC(
        NaiveBayes(),
        criterion="bic",
        conditioning="partition",
        max_parents=1,
        required_edges=[("y0", "y3"), ("d0", "y3")],
    ).fit(data.X, data.Y)
    strengths = {(a, b): s for a, b, s in model.graph_.edges(data="strength")}
    assert {("y0", "y3"), ("d0", "y3")} <= set(strengths)
    assert all(np.isfinite(s) and s >= 0 for s in strengths.values())


def test_a_penalty_that_forbids_leaves_the_strength_unknown(data):
    def some_parent(size):
        return 0.0 if size.parent_states else np.inf

    Y = data.Y[["y0", "y1"]]
    model = GBNC(
        NaiveBayes(), criterion=some_parent, conditioning="partition", max_parents=1, max_discrete_parents=1
    ).fit(data.X, Y)
    assert any("strength" not in attributes for *_, attributes in model.graph_.edges(data=True))
    model.plot()
