"""Experts on the features and the parents together."""

import networkx as nx
import numpy as np
import pytest

import pmdc
from pmdc import GBNC
from pmdc.experts.given_parents import MAX_CONFIGURATIONS, widen


def interaction(n, seed=0):
    """y1 follows y0 where x0 > 0 and its opposite elsewhere: no sum of effects can say that."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y0 = (X[:, 1] + rng.normal(size=n) > 0).astype(int)
    y1 = np.where(X[:, 0] > 0, y0, 1 - y0) ^ (rng.random(n) < 0.05)
    y2 = rng.integers(3, size=n)
    return X, np.column_stack([y0, y1, y2])


@pytest.fixture(scope="module")
def model():
    return GBNC().fit(*interaction(500))


def given(model):
    return model._network.experts.given_parents


def test_an_interaction_of_parent_and_feature_is_found(model):
    X, Y = interaction(500, seed=1)
    additive = GBNC(max_parents=0).fit(*interaction(500))
    losses = [-m.predict_joint(X).log_prob(Y).mean() for m in (model, additive)]
    assert losses[0] < losses[1] - 0.2
    assert model.graph_.has_edge("y0", "y1") or model.graph_.has_edge("y1", "y0")
    assert "y2" not in {name for edge in model.graph_.edges for name in edge}, "noise has no arcs"
    assert "given the parents for 1 class variable" in model.structure_.status
    assert nx.is_directed_acyclic_graph(model.graph_)


def test_tables_are_those_of_each_configuration(model):
    """The batched table against one call for each row and configuration."""
    features = model._read(interaction(6, seed=2)[0])
    network = model._network
    tables, inputs = network.tables(features), network.experts.inputs(features)
    [k] = [k for k, own in enumerate(given(model)) if own is not None]
    node, parents, Z = network.nodes[k], network.class_parents[k], network.inputs(features)[k]
    for configuration in np.ndindex(*(network.sizes[p] for p in parents)):
        codes = np.zeros((len(features), len(network.nodes)), dtype=np.int64)
        codes[:, list(parents)] = configuration
        extra = given(model)[k](inputs, codes[:, list(given(model)[k].parents)])
        expected = node.log_proba(np.hstack([Z, extra]), codes)
        np.testing.assert_allclose(tables[k][(slice(None), *configuration)], expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(tables[k]).sum(axis=-1), 1.0)


def test_blocks_of_rows_give_the_same_tables(model, monkeypatch):
    features = model._read(interaction(9, seed=2)[0])
    whole = model._network.tables(features)
    monkeypatch.setattr("pmdc.network.network.MAX_REPEATED", 1)
    for a, b in zip(whole, model._network.tables(features), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_they_are_saved(model, tmp_path):
    X, _ = interaction(20, seed=3)
    pmdc.save(model, tmp_path / "model.skops")
    again = pmdc.load(tmp_path / "model.skops")
    for a, b in zip(model.predict_proba(X), again.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_forbidden_edges_are_not_given():
    both = [("y0", "y1"), ("y1", "y0")]
    model = GBNC(forbidden_edges=both).fit(*interaction(300))
    assert not set(model.graph_.edges) & set(both)


@pytest.mark.parametrize("settings", [{"max_parents": 0}, {"criterion": "bic"}, {"conditioning": "partition"}])
def test_not_without_parents_or_held_out_scores(settings):
    assert not given(GBNC(**settings).fit(*interaction(150)))


def test_an_estimator_on_experts_keeps_to_them():
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression

    model = GBNC(LogisticRegression(), experts=[ExtraTreesClassifier(20)]).fit(*interaction(150))
    assert not any(given(model))


def test_wider_sets_are_limited():
    assert widen((1,), [3, 2], (2, 2, 2, 2), None) == (1, 2, 3)
    assert widen((), [0, 1, 2], (MAX_CONFIGURATIONS, 2, 2), None) == (0,)
    assert widen((), [0, 1, 2], (8, 9, 8), None) == (0, 2)
    assert widen((1,), [3, 2], (2, 2, 2, 2), 2) == (1, 3)


def test_a_file_with_experts_given_parents_for_a_class_variable_without_experts(tmp_path):
    """Its local models are on the features: more columns would be read beyond the coefficients."""
    from dataclasses import replace

    from pmdc.experts.features import ConditionalExperts, Expert
    from pmdc.experts.members import ClassifierMember
    from pmdc.learners import Logistic

    X, Y = interaction(100)
    model = GBNC(experts={"y0": [Logistic()], "y1": None, "y2": None}, required_edges=[("y0", "y1")]).fit(X, Y)
    member = ClassifierMember(None, np.array([0]), 2)
    own = Expert("crafted", (1,), ((0, 2),), (1.0,), (member,))
    crafted = (None, ConditionalExperts((0,), (2,), (own,) * 50), None)
    network = model._network
    model._network = replace(network, experts=replace(network.experts, given_parents=crafted))
    pmdc.save(model, tmp_path / "model.skops")
    with pytest.raises(ValueError, match="inconsistent|damaged"):
        pmdc.load(tmp_path / "model.skops")
