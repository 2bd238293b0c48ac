"""Conditional tables: all configurations at once are what one configuration after the other gives."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from pmdc.candidates.families import Family
from pmdc.learners import Logistic, NaiveBayes, protocols
from pmdc.network.fit import fit_node
from pmdc.table.columns import UNKNOWN
from problems import fitter_of, numbers, training_rows

SIZES = (3, 2, 3, 2, 3, 2)  # four class variables and two discrete features
ESTIMATORS = [
    Logistic(C=1.0),
    LogisticRegression(C=np.inf),
    LogisticRegression(C=5.0),
    NaiveBayes(),
    DecisionTreeClassifier(max_depth=3),
]


def problem(estimator, backoff, kappa, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, SIZES, size=(150, 6))
    codes[codes[:, 1] == 1, 0] = 2  # parts that lack states
    X = rng.normal(size=(150, 2))
    fitter = fitter_of(estimator, training_rows(X, codes, SIZES, 4), backoff=backoff, random_state=0)
    chains = [
        [Family((1, 4), (2, 3, 5)), Family((1,), (2, 3, 5)), Family((), (2, 3, 5))],
        [Family((1,), (2, 3, 5)), Family((), (2, 3, 5))],
    ]
    kappas = {family: kappa for chain in chains for family in chain}
    node = fit_node((0, chains, kappas), fitter, backoff == "parents")
    asked = rng.integers(0, SIZES, size=(9, 6))
    asked[0, 4] = asked[1, 5] = asked[2, 4] = asked[2, 5] = UNKNOWN
    return node, fitter.learners[0].prepare(numbers(rng.normal(size=(9, 2)))), asked


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize(("backoff", "kappa"), [("parents", 3.0), ("parents", None), ("none", None), ("paper", None)])
@pytest.mark.parametrize("rows", [1, 9])
def test_a_table_is_what_a_loop_over_configurations_gives(estimator, backoff, kappa, rows):
    node, X, codes = problem(estimator, backoff, kappa)
    free = (1, 2, 3)
    table = node.table(X[:rows], codes[:rows], free).reshape(rows, 2, 3, 2, 3)
    for states in itertools.product(range(2), range(3), range(2)):
        codes[:, free] = states
        expected = node.log_proba(X[:rows], codes[:rows])
        np.testing.assert_allclose(np.exp(table[(slice(None), *states)]), np.exp(expected), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("stacked", [1, 50, 2**22])
def test_engines_give_what_the_default_of_local_models_gives(estimator, stacked, monkeypatch):
    monkeypatch.setattr(protocols, "MAX_STACKED", stacked)
    node, X, codes = problem(estimator, "parents", 3.0)
    level = node.levels[node.family]
    part = level.configurations.find(codes, (1,))
    arguments = X, part, codes[:, [2, 3, 5]], {0: 3, 1: 2}
    own, default = level.models.log_table(*arguments), protocols.LocalModels.log_table(level.models, *arguments)
    assert own.shape == default.shape == (9, 6, 2, 3)
    np.testing.assert_allclose(np.exp(own), np.exp(default), atol=1e-12)
    np.testing.assert_array_equal(own == -np.inf, default == -np.inf)


@pytest.mark.parametrize("estimator", [Logistic(C=1.0), NaiveBayes()], ids=repr)
def test_features_are_evaluated_once_per_row(estimator, monkeypatch):
    node, X, codes = problem(estimator, "parents", 3.0)
    models = type(node.levels[node.family].models)
    shapes, original = [], models.scores

    def count(self, X, part, out):
        shapes.append(out.shape)
        original(self, X, part, out)

    monkeypatch.setattr(models, "scores", count)
    node.table(X[3:], codes[3:], (1, 2, 3))
    assert shapes == [(6, 2, 3), (6, 2, 3), (6, 1, 3)]
