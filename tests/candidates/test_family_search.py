"""Which families are scored and accepted where parents may be inputs: discrete features, guarantees, false arcs."""

import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC
from pmdc.datasets import make_network
from pmdc.learners import Logistic, NaiveBayes


def random_table(seed, n=70):
    rng = np.random.default_rng(seed)
    return make_network(
        n,
        n_class_variables=int(rng.integers(2, 5)),
        n_states=int(rng.integers(2, 4)),
        n_continuous=int(rng.integers(1, 3)),
        n_discrete=int(rng.integers(0, 4)),
        random_state=seed,
    )


@pytest.mark.parametrize("seed", range(100))
def test_auto_never_scores_below_partition_or_input(seed):
    data = random_table(seed)
    estimator, criterion = [(NaiveBayes(), "loo"), (NaiveBayes(), "bic"), (Logistic(), "cv"), (Logistic(), "aic")][
        seed % 4
    ]
    settings = {"criterion": criterion, "guard": 0, "max_parents": 2, "max_discrete_parents": 2, "experts": None}
    scores = {
        conditioning: GBNC(estimator, conditioning=conditioning, **settings).fit(data.X, data.Y).structure_.score
        for conditioning in ("auto", "partition", "input")
    }
    assert scores["auto"] >= max(scores.values()) - 1e-9 * abs(scores["auto"])


def test_auto_never_scores_below_partition_with_the_chosen_C():
    data = random_table(7, n=150)
    scores = [
        GBNC(experts=None, conditioning=conditioning, guard=0, max_parents=2).fit(data.X, data.Y).structure_.score
        for conditioning in ("auto", "partition", "input")
    ]
    assert scores[0] >= max(scores) - 1e-9 * abs(scores[0])


def exclusive_or(seed=0, n=600):
    rng = np.random.default_rng(seed)
    d, y0 = rng.integers(0, 2, size=(2, n))
    y1 = y0 ^ d ^ (rng.random(n) < 0.05)
    X = pd.DataFrame({"x": rng.normal(size=n), "d": pd.Categorical(np.where(d, "yes", "no"))})
    return X, pd.DataFrame({"y0": y0, "y1": y1})


@pytest.mark.parametrize("experts", ["auto", None])
def test_a_feature_that_matters_only_beside_a_class_variable_is_found(experts):
    X, Y = exclusive_or()
    model = GBNC(experts=experts).fit(X[:400], Y[:400])
    assert model.graph_.has_edge("y0", "y1") or model.graph_.has_edge("y1", "y0")
    assert -model.predict_joint(X[400:]).log_prob(Y[400:]).mean() < 1.05  # 1.386 if it is missed, 0.891 at best


def noisy(n, n_noise, seed=0):
    """One informative discrete feature beside many of noise, and one that is constant."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"good": rng.choice(list("ab"), size=n)})
    for j in range(n_noise):
        X[f"noise{j}"] = pd.Categorical(rng.choice(list("abc"), size=n))
    X["constant"] = "a"
    y = [np.where(rng.random(n) < 0.85, X["good"] == "a", rng.random(n) < 0.5).astype(int) for _ in range(2)]
    return X, pd.DataFrame(np.column_stack(y), columns=["y0", "y1"])


@pytest.mark.parametrize("n", [300, 1500])
def test_noise_and_constant_features_are_no_parents(n):
    X, Y = noisy(n, 30)
    model = GBNC(experts=None).fit(X, Y)
    assert {parent for parent, _ in model.graph_.edges} == {"good"}


def test_every_arc_passes_the_guard_by_its_own_strength():
    """The least gain that is significant is that of one parameter, for the smallest number of tests."""
    from pmdc.scores.guard import least_gain

    for seed in range(6):
        data = make_network(300, n_class_variables=4, n_discrete=4, random_state=seed)
        model = GBNC(NaiveBayes(), max_parents=2).fit(data.X, data.Y)
        for _, _, about in model.graph_.edges(data=True):
            assert about["strength"] > least_gain(2.0, 4 * 7 * 2, 1)


@pytest.mark.parametrize("experts", ["auto", None])
def test_a_random_class_variable_of_many_states_has_no_arcs(experts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = np.column_stack([rng.integers(0, 60, 300), X[:, 0] > rng.normal(size=300), rng.integers(0, 3, 300)])
    assert not GBNC(experts=experts).fit(X, Y).graph_.edges


def test_many_rare_indicators_get_no_arcs():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({f"i{j}": pd.Categorical((rng.random(400) < 0.01).astype(int)) for j in range(40)})
    assert not GBNC(experts=None).fit(X, rng.integers(0, 2, size=(400, 4))).graph_.edges


@pytest.mark.parametrize(("kind", "determined"), [("chain", False), ("collider", True)])
def test_arcs_of_a_collider_have_a_direction_and_those_of_a_chain_have_none(kind, determined):
    found = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, (a, c) = rng.normal(size=(1000, 1)), rng.integers(0, 2, size=(2, 1000))
        noise = rng.random((2, 1000)) < 0.15
        b = (a if kind == "chain" else a | c) ^ noise[0]
        Y = pd.DataFrame({"a": a, "b": b, "c": b ^ noise[1] if kind == "chain" else c}).astype(int)
        graph = GBNC(experts=None).fit(X, Y).graph_
        if {frozenset(arc) for arc in graph.edges} == {frozenset("ab"), frozenset("bc")}:  # not three arcs
            assert {about["determined"] for *_, about in graph.edges(data=True)} == {determined}
            found += 1
    assert found
    required = GBNC(experts=None, required_edges=[("c", "b")]).fit(X, Y).graph_
    assert required.edges["c", "b"]["determined"]


def test_max_parents_limits_the_parents_of_experts_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = rng.integers(0, 2, size=(300, 4))
    Y[:, 3] = (Y[:, 0] ^ Y[:, 1] ^ Y[:, 2]) ^ (rng.random(300) < 0.02)
    model = GBNC(max_parents=1).fit(X, Y)
    assert max(len(parents) for parents in model.structure_.parents.values()) <= 1
