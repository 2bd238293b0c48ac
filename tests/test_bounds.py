"""GBNC within bounds on treewidth and cells of cliques, and with tiers of class variables."""

import math
import warnings
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

import pmdc
from oracles import Enumeration, all_dags
from pmdc import GBNC
from pmdc.inference.junction_tree import NetworkTooWideError
from pmdc.learners import NaiveBayes

NAMES = ("a", "b", "c", "d", "e")
SIZES = (2, 3, 2, 3, 4)


def table(n=500, *, n_classes=5, seed=0):
    """A feature, and class variables each of which depends on all before it."""
    rng = np.random.default_rng(seed)
    X, Y = pd.DataFrame({"x": rng.normal(size=n)}), pd.DataFrame(index=range(n))
    for k in range(n_classes):
        name, size = (NAMES[k], SIZES[k]) if n_classes == len(NAMES) else (f"y{k}", 3)
        expected = (Y.sum(axis=1) + (X["x"] > 0)).to_numpy().astype(int) % size
        Y[name] = np.where(rng.random(n) < 0.75, expected, rng.integers(0, size, n))
    return X, Y


X, Y = table()
FAST = {"experts": None, "criterion": "bic", "conditioning": "partition"}


def moral(parents):
    """The neighbours of each class variable in the moral graph."""
    graph = {name: set() for name in parents}
    for child, own in parents.items():
        for one, other in combinations([child, *own], 2):
            graph[one].add(other)
            graph[other].add(one)
    return graph


def cliques(parents, order):
    rest, found = moral(parents), []
    for name in order:
        around = rest.pop(name)
        found.append({name, *around})
        for other in around:
            rest[other] = (rest[other] | around) - {name, other}
    return found


def within(parents, sizes, max_treewidth=None, max_clique_cells=None, orders=None):
    """Whether all cliques of some order are within the bounds."""
    return any(
        all(
            len(clique) - 1 <= (max_treewidth or math.inf)
            and math.prod(sizes[name] for name in clique) <= (max_clique_cells or math.inf)
            for clique in cliques(parents, order)
        )
        for order in orders or permutations(parents)
    )


def parents_of(model):
    names = set(model.class_names_)
    return {name: names & set(model.graph_.predecessors(name)) for name in model.class_names_}


def check_bounds(model, **bounds):
    """Check the tree of a model, and the graph along its order, by the definition."""
    sizes = dict(zip(model.class_names_, model.class_table_.sizes, strict=True))
    tree, parents = model._junction_tree, parents_of(model)
    assert model.structure_.elimination_order == tuple(model.class_names_[k] for k in tree.order)
    assert within(parents, sizes, orders=[model.structure_.elimination_order], **bounds)
    assert tree.width <= bounds.get("max_treewidth", math.inf)
    assert tree.largest_clique <= bounds.get("max_clique_cells", math.inf)


def same(one, other):
    """Check that two models are the same bit for bit, apart from what the status says about bounds."""
    assert one.structure_.parents == other.structure_.parents
    assert one.structure_.score == other.structure_.score
    assert one.scores_ == other.scores_
    assert set(one.graph_.edges) == set(other.graph_.edges)
    assert all(one.graph_.edges[edge] == other.graph_.edges[edge] for edge in one.graph_.edges)
    assert one._junction_tree.order == other._junction_tree.order
    for a, b in zip(one.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


# Bounds -------------------------------------------------------------------------------------------------------

BOUNDS = [
    {"max_treewidth": 1},
    {"max_treewidth": 2},
    {"max_clique_cells": 4},
    {"max_clique_cells": 12},
    {"max_treewidth": 2, "max_clique_cells": 18},
]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_the_graph_is_the_best_of_all_within_the_bounds(bounds):
    every = GBNC(NaiveBayes(), **FAST, prune=None, max_parents=4).fit(X, Y)
    sizes, best = dict(zip(NAMES, SIZES, strict=True)), -math.inf
    for dag in all_dags(NAMES):
        parents = dict(zip(NAMES, dag, strict=True))
        score = math.fsum(every.scores_[name][parents[name]] for name in NAMES)
        if score > best and within(parents, sizes, **bounds):
            best = score
    model = GBNC(NaiveBayes(), **FAST, max_parents=4, **bounds).fit(X, Y)
    check_bounds(model, **bounds)
    assert model.structure_.score == pytest.approx(best, rel=1e-12)
    assert best < every.structure_.score
    assert model.structure_.status.startswith("optimal within max_")
    assert all(f"{name}={value}" in model.structure_.status for name, value in bounds.items())


@pytest.mark.parametrize("settings", [{}, {"experts": None}, FAST, {"experts": None, "search": "hill-climb"}])
@pytest.mark.parametrize("bounds", BOUNDS[1::2])
def test_predictions_within_bounds_are_those_of_enumeration(settings, bounds):
    model = GBNC(**settings, **bounds).fit(X, Y)
    check_bounds(model, **bounds)
    joint = model.predict_joint(X[:20])
    truth = Enumeration.of_network(model.class_table_.sizes, joint.parents, joint.log_tables)
    for marginal, expected in zip(joint.marginals(), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)
    np.testing.assert_allclose(joint.top(3).log_prob, -np.sort(-truth.log_prob, axis=1)[:, :3], atol=1e-9)
    np.testing.assert_allclose(joint.marginal(["a", "e"]), truth.joint([0, 4]), atol=1e-10)


@pytest.mark.parametrize("settings", [{}, {"experts": None}, FAST])
def test_a_bound_that_does_not_bind_changes_nothing(settings):
    x, y = X[:200], Y[:200]
    free = GBNC(**settings).fit(x, y)
    same(free, GBNC(**settings, max_treewidth=4, max_clique_cells=math.prod(SIZES)).fit(x, y))


def test_parent_sets_that_exceed_the_bounds_are_not_scored():
    for settings in ({"experts": None}, FAST):
        model = GBNC(**settings, max_treewidth=1).fit(X, Y)
        assert max(len(parents) for own in model.scores_.values() for parents in own) == 1
        model = GBNC(**settings, max_clique_cells=8).fit(X, Y)
        sizes = dict(zip(NAMES, SIZES, strict=True))
        for name, own in model.scores_.items():
            assert all(math.prod(sizes[v] for v in {name, *parents}) <= 8 for parents in own)
            assert any(parents for parents in own)


def test_experts_given_the_parents_keep_the_bounds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    y = (rng.random((800, 4)) < 0.5).astype(int)
    y[:, 1] = (x[:, 0] > 0) ^ y[:, 0] ^ (rng.random(800) < 0.05)  # the sign of a feature means the opposite
    y[:, 2] = (x[:, 1] > 0) ^ y[:, 1] ^ (rng.random(800) < 0.05)
    y[:, 3] = (x[:, 0] > 0) ^ y[:, 2] ^ y[:, 0] ^ (rng.random(800) < 0.05)
    free = GBNC().fit(x, y)
    assert "given the parents" in free.structure_.status
    assert not within(parents_of(free), dict.fromkeys(free.class_names_, 2), max_treewidth=1)
    model = GBNC(max_treewidth=1).fit(x, y)
    assert "given the parents" in model.structure_.status
    check_bounds(model, max_treewidth=1)


def test_random_state_and_jobs():
    x, y = table(400, n_classes=30)
    settings = {**FAST, "max_parents": 2, "max_treewidth": 2}
    models = [GBNC(NaiveBayes(), **settings, n_jobs=jobs, random_state=3).fit(x, y) for jobs in (1, 2)]
    check_bounds(models[0], max_treewidth=2)
    assert models[0].structure_.parents == models[1].structure_.parents
    assert models[0].structure_.elimination_order == models[1].structure_.elimination_order
    state = np.random.RandomState(0)
    GBNC(NaiveBayes(), **settings, random_state=state).fit(x, y)
    assert state.randint(2**31) == np.random.RandomState(0).randint(2**31)


def test_a_single_class_variable():
    model = GBNC(**FAST, max_treewidth=1, max_clique_cells=2).fit(X, Y["a"])
    assert model.structure_.elimination_order == ("a",)


def test_missing_states():
    gappy = Y.astype(object).mask(np.random.default_rng(0).random(Y.shape) < 0.1)
    for bounds in ({"max_treewidth": 1}, {"max_clique_cells": 12}):
        model = GBNC(NaiveBayes(), **FAST, **bounds).fit(X, gappy)
        check_bounds(model, **bounds)


# Blocks: each member counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [{"max_treewidth": 2}, {"max_treewidth": 3}, {"max_clique_cells": 24}])
@pytest.mark.parametrize("blocks", [[["a", "b"]], [["a", "b"], ["c", "d"]], "auto"])
def test_members_of_blocks_count(bounds, blocks):
    settings = {"experts": None, "max_parents": 2, "estimator": NaiveBayes()}
    model = GBNC(**settings, blocks=blocks, **bounds).fit(X, Y)
    check_bounds(model, **bounds)
    joint = model.predict_joint(X[:5])
    truth = Enumeration.of_network(model.class_table_.sizes, joint.parents, joint.log_tables)
    for marginal, expected in zip(joint.marginals(), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)


def test_blocks_that_exceed_a_bound():
    with pytest.raises(ValueError, match=r"max_treewidth=1.*'a \+ b \+ c' has 3.*raise the bound to 2"):
        GBNC(**FAST, blocks=[["a", "b", "c"]], max_treewidth=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"max_clique_cells=5 is below the 6 states of 'a \+ b'"):
        GBNC(**FAST, blocks=[["a", "b"]], max_clique_cells=5).fit(X, Y)
    with pytest.raises(ValueError, match=r"max_treewidth=2 and max_clique_cells=9.*blocks"):
        GBNC(**FAST, blocks=[["a", "b"]], max_treewidth=2, max_clique_cells=9).fit(X, Y)
    with pytest.raises(ValueError, match=r"required_edges to 'c'.*max_treewidth=1.*member of a block"):
        GBNC(**FAST, blocks=[["a", "b"]], max_treewidth=1, required_edges=[("a", "c")]).fit(X, Y)
    with pytest.raises(ValueError, match=r"blocks has 'a \+ b'.*tiers\[0\].*tiers\[1\]"):
        GBNC(**FAST, blocks=[["a", "b"]], tiers=[["a"], ["b"]]).fit(X, Y)


# The memory budget --------------------------------------------------------------------------------------------


BUDGET = 2**20
DENSE = {**FAST, "estimator": NaiveBayes(), "criterion": "cll", "max_parents": 3}


def wide_table():
    """Nine class variables of seven states; without a penalty, each has as many parents as it can."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 1)), rng.integers(0, 7, (150, 9))


@pytest.mark.parametrize("search", ["auto", "dynamic-programming", "hill-climb"])
def test_a_graph_that_is_too_wide_is_searched_again_within_the_memory_budget(search):
    x, y = wide_table()
    free = GBNC(**DENSE, search=search).fit(x, y)
    assert free._junction_tree.bytes_per_row > BUDGET
    with pytest.warns(UserWarning, match="too wide") as caught:
        model = GBNC(**DENSE, search=search, memory_budget=BUDGET).fit(x, y)
    (said,) = [str(one.message) for one in caught]
    tree = model._junction_tree
    assert tree.bytes_per_row <= BUDGET
    assert f"{free._junction_tree.bytes_per_row:,} bytes" in said
    assert f"{tree.bytes_per_row:,} bytes" in said
    bound = int(said.split("max_clique_cells=")[1].split(";")[0])
    assert f"within max_clique_cells={bound} (for memory_budget)" in model.structure_.status
    assert f"at most {bound:,} cells" in model.summary()
    check_bounds(model, max_clique_cells=bound)
    assert len(model.graph_.edges) > 8
    assert model.structure_.score <= free.structure_.score
    np.testing.assert_allclose(model.predict_proba(x[:5])[3].sum(axis=1), 1.0)
    assert model.predict(x[:5]).shape == (5, 9)


def test_missing_states_within_the_memory_budget():
    x, y = wide_table()
    gappy = pd.DataFrame(y).astype(object).mask(np.random.default_rng(0).random(y.shape) < 0.02)
    with pytest.warns(UserWarning, match="too wide") as caught:
        model = GBNC(**DENSE, memory_budget=BUDGET).fit(x, gappy)
    assert sum("too wide" in str(one.message) for one in caught) == 1
    assert model._junction_tree.bytes_per_row <= BUDGET
    assert "(for memory_budget)" in model.structure_.status
    assert model.predict(x[:3]).shape == (3, 9)


def test_the_smallest_graph_that_fits_is_used_before_an_error():
    settings = {"estimator": NaiveBayes(), **FAST}
    independent = GBNC(**settings, max_parents=0).fit(X, Y)._junction_tree.bytes_per_row
    with pytest.warns(UserWarning, match=f"memory_budget={independent:,}"):
        model = GBNC(**settings, memory_budget=independent).fit(X, Y)
    assert not model.graph_.edges
    with pytest.raises(NetworkTooWideError, match="Even the graph without edges.*memory_budget"):
        GBNC(**settings, memory_budget=independent - 1).fit(X, Y)
    edges = [("a", "e"), ("b", "e")]
    required = GBNC(**settings, max_parents=2, required_edges=edges).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = GBNC(**settings, required_edges=edges, memory_budget=required._junction_tree.bytes_per_row).fit(X, Y)
    assert {("a", "e"), ("b", "e")} <= set(model.graph_.edges)


# Tiers ----------------------------------------------------------------------------------------------------------

TIERS = [["e", "d"], ["a", "b"]]


@pytest.mark.parametrize(
    "settings", [{}, {"experts": None}, {**FAST, "prune": None}, {"experts": None, "max_treewidth": 2}]
)
def test_no_edge_and_no_score_leads_to_an_earlier_tier(settings):
    model = GBNC(**settings, tiers=TIERS).fit(X, Y)
    for name in TIERS[0]:
        assert not parents_of(model)[name] & set(TIERS[1])
        assert not any(parents & set(TIERS[1]) for parents in model.scores_[name])
    assert model.graph_.edges
    for parent, child, about in model.graph_.edges(data=True):
        if parent in TIERS[0] and child in TIERS[1]:
            assert about["determined"]


def test_tiers_of_everything_are_an_order():
    model = GBNC(**FAST, tiers=[[name] for name in reversed(NAMES)]).fit(X, Y)
    assert all(NAMES.index(parent) > NAMES.index(child) for parent, child in model.graph_.edges)
    same(GBNC(**FAST).fit(X, Y), GBNC(**FAST, tiers=[NAMES]).fit(X, Y))


def test_tiers_of_blocks():
    model = GBNC(**FAST, blocks=[["a", "b"]], tiers=[["c"], ["a", "b"]]).fit(X, Y)
    assert not parents_of(model)["c"] & {"a", "b"}
    model = GBNC(experts=None, blocks="auto", tiers=[["b", "d"], ["a"], ["c", "e"]]).fit(X, Y)
    assert all({"a"} & set(block) != {"a"} for block in model.blocks_)


@pytest.mark.parametrize("bounds", [{"max_treewidth": 1}, {"max_treewidth": 2}, {"max_clique_cells": 12}])
def test_an_arc_that_goes_either_way_can_be_reversed_within_the_bounds(bounds):
    model = GBNC(experts=None, **bounds).fit(np.random.default_rng(1).normal(size=(len(Y), 1)), Y)
    found, sizes = parents_of(model), dict(zip(NAMES, SIZES, strict=True))
    pairs = edges_without_direction(found)
    others = [dict(zip(NAMES, dag, strict=True)) for dag in all_dags(NAMES)]
    others = [other for other in others if edges_without_direction(other) <= pairs and within(other, sizes, **bounds)]
    assert any(not about["determined"] for _, _, about in model.graph_.edges(data=True))
    for parent, child, about in model.graph_.edges(data=True):
        assert about["determined"] or any(child in other[parent] for other in others)


def edges_without_direction(parents):
    return {frozenset((parent, child)) for child, own in parents.items() for parent in own}


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"max_treewidth": 0}, "max_treewidth=0 must be a whole number of at least 1"),
        ({"max_treewidth": 1.5}, "max_treewidth=1.5 must be a whole number"),
        ({"max_treewidth": True}, "max_treewidth=True must be a whole number"),
        ({"max_clique_cells": -3}, "max_clique_cells=-3 must be a whole number"),
        ({"max_clique_cells": 3}, "max_clique_cells=3 is below the 4 states of 'e' alone: use at least 4"),
        ({"max_treewidth": 2, "search": "integer-program"}, "'integer-program' cannot keep max_treewidth=2: .*'auto'"),
        (
            {"max_treewidth": 1, "required_edges": [("a", "c"), ("b", "c")]},
            "required_edges give 'c'.*treewidth 2.*max_treewidth=1",
        ),
        (
            {"max_clique_cells": 11, "required_edges": [("a", "b"), ("c", "b")]},
            "required_edges give 'b'.*12 cells.*max_clique_cells=11",
        ),
        (
            {"max_treewidth": 1, "required_edges": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]},
            "max_treewidth=1",
        ),
        ({"tiers": "ab"}, "tiers='ab'.*list of lists"),
        ({"tiers": [["a"], "b"]}, r"tiers\[1\]='b'.*list"),
        ({"tiers": iter([["a"]])}, "tiers=.*list of lists"),
        ({"tiers": [["a"], ["z"]]}, r"tiers\[1\] has 'z', which is not a class variable"),
        ({"tiers": [["a"], ["b", "a"]]}, r"tiers\[1\] has 'a', which is in tiers\[0\]"),
        ({"tiers": [["a"], ["b"]], "required_edges": [("b", "a")]}, r"\('b', 'a'\).*tiers put 'a' before 'b'"),
    ],
)
def test_bad_input_is_refused(parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        GBNC(**FAST, **parameters).fit(X, Y)


# As a scikit-learn estimator --------------------------------------------------------------------------------------


def test_saved_models_have_the_same_tree(tmp_path):
    pytest.importorskip("skops")
    x, y = table(300, n_classes=14)
    model = GBNC(LogisticRegression(), **FAST, max_parents=2, max_treewidth=2, tiers=[["y0"], ["y5", "y6"]]).fit(x, y)
    pmdc.save(model, tmp_path / "model")
    loaded = pmdc.load(tmp_path / "model")
    assert loaded.get_params()["max_treewidth"] == 2
    assert loaded.tiers == model.tiers
    assert loaded.structure_ == model.structure_
    assert loaded._junction_tree.order == model._junction_tree.order
    assert loaded._junction_tree.cliques == model._junction_tree.cliques
    for a, b in zip(model.predict_proba(x), loaded.predict_proba(x), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        model.predict_joint(x).marginal(["y0", "y13"]), loaded.predict_joint(x).marginal(["y0", "y13"])
    )


def test_a_tree_keeps_an_order_that_no_rule_finds(tmp_path):
    """The tree of a saved model is that of its order, even if the rules would find a wider one."""
    pytest.importorskip("skops")
    model = GBNC(NaiveBayes(), **FAST, max_treewidth=2).fit(X, Y)
    tree = model._junction_tree
    order = tuple(reversed(tree.order))
    model._junction_tree = type(tree)(tree.sizes, tree.scopes, order=order)
    pmdc.save(model, tmp_path / "model")
    assert pmdc.load(tmp_path / "model")._junction_tree.order == model._junction_tree.order


def test_clone_and_grid_search():
    model = GBNC(NaiveBayes(), **FAST, max_treewidth=2, max_clique_cells=40, tiers=TIERS)
    assert clone(model).get_params()["tiers"] == TIERS
    grid = {"max_treewidth": [1, 2, None], "max_clique_cells": [None, 24]}
    found = GridSearchCV(model.set_params(max_clique_cells=None), grid, cv=KFold(2)).fit(X, Y)
    assert len(found.cv_results_["params"]) == 6
    assert not np.isnan(found.cv_results_["mean_test_score"]).any()


def test_the_summary_names_the_bounds():
    said = GBNC(**FAST, max_treewidth=2).fit(X, Y).summary()
    assert "The graph is the best with treewidth at most 2 over" in said
    assert "(proved)" in said
    said = GBNC(**FAST, max_clique_cells=1200, max_treewidth=2, search="hill-climb").fit(X, Y).summary()
    assert "best that was found with treewidth at most 2 and at most 1,200 cells" in said
    assert "(not proved: unproved)" in said
