"""The paper's propositions, by brute force on small tables."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.naive_bayes import GaussianNB

from oracles import all_dags
from pmdc.learners import LocalTask, Logistic, make_learner
from pmdc.learners.options import Options
from pmdc.learners.partition import Partition
from problems import numbers

# Propositions 1-3: the four families of graphs ----------------------------------------------------------------


def log_joint(parents, logits):
    """log P(x, y) of a network over three binary variables, for all values at once; shape (2, 2, 2)."""
    total = np.zeros((2, 2, 2))
    for v, p in enumerate(parents):
        table = log_softmax(logits[v].reshape((2,) * len(p) + (2,)), axis=-1)
        axes = [*p, v]
        shape = [2 if i in axes else 1 for i in range(3)]
        total = total + np.transpose(table, np.argsort(axes)).reshape(shape)
    return total


def conditional_log_likelihood(parents, logits, counts, n_features):
    """C(P | D) with any edges: P(y | x) is P(x, y) over its sum for all y; features are the first variables."""
    joint = log_joint(parents, logits)
    given = logsumexp(joint, axis=tuple(range(n_features, 3)), keepdims=True)
    return np.sum(counts * (joint - given))


def greatest_likelihood(parents, counts, n_features):
    """The maximum over all parameters, by numerical optimisation from two starts."""
    shapes = [(2 ** len(p), 2) for p in parents]
    cuts = np.cumsum([a * b for a, b in shapes])[:-1]

    def negative(flat):
        logits = [part.reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True)]
        return -conditional_log_likelihood(parents, logits, counts, n_features)

    size = sum(a * b for a, b in shapes)
    starts = [np.zeros(size), np.random.default_rng(0).normal(size=size)]
    return max(-minimize(negative, start, method="L-BFGS-B").fun for start in starts)


@pytest.mark.parametrize("n_features", [1, 2])
def test_four_families_of_graphs_have_the_same_greatest_conditional_likelihood(n_features):
    rng = np.random.default_rng(n_features)
    counts = rng.integers(0, 6, size=(2, 2, 2))
    features = range(n_features)
    families = {"G": [], "G1": [], "G2": [], "G3": []}
    for dag in all_dags((0, 1, 2)):
        parents = [tuple(sorted(p)) for p in dag]
        families["G"].append(parents)
        if all(u in features for x in features for u in parents[x]):  # no edge from a class variable to a feature
            families["G1"].append(parents)
            if not any(parents[x] for x in features):  # no edge between features
                families["G2"].append(parents)
                if all(set(features) <= set(parents[y]) for y in range(n_features, 3)):  # features are all parents
                    families["G3"].append(parents)
    # 25 DAGs over three nodes; with one feature the class variables have 3 DAGs and 2 possible feature edges.
    assert [len(f) for f in families.values()] == ([25, 12, 12, 3] if n_features == 1 else [25, 12, 4, 1])
    likelihood = {tuple(p): greatest_likelihood(p, counts, n_features) for p in families["G"]}
    best = {name: max(likelihood[tuple(p)] for p in family) for name, family in families.items()}
    for name in ("G1", "G2", "G3"):
        assert best[name] == pytest.approx(best["G"], abs=1e-3), name


# Proposition 4: monotonicity ----------------------------------------------------------------------------------


def log_likelihood(estimator, X, codes, sizes, parents):
    learner = make_learner(estimator, numbers(X), np.ones(len(X)), options=Options(backoff="none"))
    return learner.log_likelihood(LocalTask(0, codes[:, 0], sizes[0], Partition(codes, parents, sizes)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 2))
def test_adding_a_parent_never_lowers_the_likelihood(seed, n_continuous):
    """Frequency tables (no continuous feature) and unpenalised logistic regression, without back-off."""
    rng = np.random.default_rng(seed)
    sizes = (3, 2, 3, 2)
    codes = rng.integers(0, sizes, size=(40, 4))
    X = rng.normal(size=(40, n_continuous))
    values = [log_likelihood(Logistic(C=np.inf), X, codes, sizes, parents) for parents in ((), (1,), (1, 2), (1, 2, 3))]
    assert all(after >= before - 1e-5 for before, after in itertools.pairwise(values))


def test_adding_a_parent_can_lower_the_likelihood_of_naive_bayes():
    """Naive Bayes maximises the joint, not the conditional likelihood: Proposition 4 does not hold for it."""
    x = np.array([[0.0], [1.0], [1.0], [4.0], [2.0], [0.0], [5.0], [2.0]])
    y = [0, 1, 1, 0, 0, 1, 0, 1]
    parent = [0, 0, 1, 0, 1, 0, 1, 1]
    codes = np.column_stack([y, parent])
    without = log_likelihood(GaussianNB(), x, codes, (2, 2), ())
    with_parent = log_likelihood(GaussianNB(), x, codes, (2, 2), (1,))
    assert without == pytest.approx(-3.461, abs=1e-3)
    assert with_parent == pytest.approx(-3.945, abs=1e-3)
    assert with_parent < without
