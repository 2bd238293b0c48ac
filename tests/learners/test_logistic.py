"""`Logistic` reaches the optimum of scikit-learn's objective."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from pmdc.learners import Logistic
from pmdc.learners.inputs import Affine
from pmdc.learners.logistic import fit_softmax


def objective(X, y, weights, C, coef, intercept):
    scores = X @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    penalty = 0.0 if np.isinf(C) else 0.5 / C * np.sum(coef**2)
    return -np.dot(weights, log_softmax(scores, axis=1)[np.arange(len(y)), y]) + penalty


def problem(kind, n, d, m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X[:, [0]] * np.arange(m) + rng.gumbel(size=(n, m)), axis=1)
    y[:m] = np.arange(m)
    if kind == "separable":
        X[:, 0] += 20 * y
    if kind == "collinear":
        X = np.column_stack([X, X[:, 0], X.sum(axis=1)])
    if kind == "badly scaled":
        X = X * 10.0 ** rng.integers(-3, 4, size=X.shape[1])
    return X, y


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(
    ("kind", "n", "d", "m"),
    [
        ("plain", 200, 4, 2),
        ("plain", 200, 4, 3),
        ("plain", 60, 1, 10),
        ("plain", 40, 60, 3),
        ("plain", 60, 250, 4),
        ("separable", 80, 3, 3),
        ("collinear", 100, 4, 2),
        ("collinear", 100, 4, 3),
        ("badly scaled", 150, 5, 3),
    ],
)
def test_same_optimum_as_scikit_learn(kind, n, d, m, C):
    X, y = problem(kind, n, d, m)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=n)
    ours = fit_softmax(X, y, weights, C, 1e-9, 1000)
    coef, intercept = (ours.coef[1:], ours.intercept[1:]) if m == 2 else (ours.coef, ours.intercept)
    theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X, y, weights)
    a = objective(X, y, weights, C, coef, intercept)
    b = objective(X, y, weights, C, theirs.coef_, theirs.intercept_)
    assert a <= b * (1 + 1e-6)


@pytest.mark.parametrize("m", [2, 3])
def test_without_a_penalty_it_is_maximum_likelihood(m):
    X, y = problem("plain", 300, 3, m)
    ours = fit_softmax(X, y, np.ones(300), np.inf, 1e-12, 1000)
    proba = np.exp(ours.predict_log_proba(X))
    inputs = np.column_stack([X, np.ones(300)])
    # At the maximum the expected sufficient statistics are the observed ones.
    np.testing.assert_allclose((np.eye(m)[y] - proba).T @ inputs, 0.0, atol=1e-4)


def test_standardises_over_all_rows_and_leaves_constants_alone():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X * [1e-3, 1.0, 1e3, 1.0] + 5.0, np.full(len(X), 7.0)])
    model = Logistic(C=2.0).fit(X, y)
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-12, X.std(axis=0), 1.0)
    reference = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(Z), atol=1e-6)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    assert (model.predict(X) == reference.predict(Z)).all()


def test_weights_are_repetitions():
    X, y = problem("plain", 80, 3, 3)
    weights = np.random.default_rng(0).integers(0, 4, size=80)
    a = Logistic().fit(X, y, sample_weight=weights).predict_proba(X)
    b = Logistic().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e-13, 1e13, 1e150])
def test_the_unit_of_the_features_does_not_matter(scale):
    X, y = problem("plain", 200, 3, 3)
    np.testing.assert_allclose(
        Logistic().fit(X * scale, y).predict_proba(X * scale), Logistic().fit(X, y).predict_proba(X), atol=1e-6
    )


def test_a_constant_column_is_constant_whatever_the_weights():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.full(50_000, 0.1), rng.normal(size=50_000)])
        affine = Affine.standard(X, rng.random(50_000))
        assert (affine.shift[0], affine.width[0]) == (0.1, 1.0)


def test_many_states_take_little_memory():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 2)), np.arange(5000) % 100
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        Logistic(max_iter=1).fit(X, y)
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()


@pytest.mark.parametrize(("parameter", "value"), [("C", 0.0), ("C", "a"), ("tol", 0.0), ("max_iter", 0)])
def test_bad_parameters(parameter, value):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=f"{parameter}={value!r}"):
        Logistic(**{parameter: value}).fit(X, y)
