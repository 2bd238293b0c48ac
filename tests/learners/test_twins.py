"""The compiled fit of small parts beside its twin in numpy, which fits large ones."""

import numpy as np
import pytest

from pmdc.learners.logistic import newton, parts


def random_parts(rng, n_parts, n_states, d):
    """Rows of several parts, some of which lack states or have a single row."""
    sizes = rng.integers(1, 60, size=n_parts)
    part = np.repeat(np.arange(n_parts), sizes)
    X = rng.normal(size=(len(part), d)) * rng.uniform(0.1, 3, size=d)
    codes = rng.integers(0, n_states, size=len(part))
    codes[part == 0] = 0
    number = np.full((n_parts, n_states), -1)
    pairs = np.unique(part * n_states + codes)
    number[pairs // n_states, pairs % n_states] = np.arange(len(pairs))
    order = rng.permutation(len(part))  # the rows of the table in any order
    X, codes, part = X[order], codes[order], part[order]
    by_part = np.argsort(part, kind="stable")
    starts = np.searchsorted(part[by_part], np.arange(n_parts + 1))
    return X, codes, by_part, starts, number


def fit(problem, ridge, fold, start=None):
    X, codes, order, starts, number = problem
    rng = np.random.default_rng(5)
    coef = np.zeros((number.max() + 1, X.shape[1] + 1)) if start is None else start.copy()
    held_out = np.zeros(len(X))
    weights = rng.uniform(0.5, 2, size=len(X))
    failed, _ = parts.fit_parts(
        X, codes, weights, order, starts, number, ridge, 1e-12, 500, coef, start is not None, fold, held_out
    )
    assert failed == 0
    return coef, held_out


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("warm", [False, True])
def test_small_parts_beside_numpy(monkeypatch, seed, ridge, warm):
    rng = np.random.default_rng(seed)
    problem = random_parts(rng, 8, int(rng.integers(2, 5)), int(rng.integers(1, 40)))
    fold = rng.integers(0, 4, size=len(problem[0]))
    start = rng.normal(size=(problem[-1].max() + 1, problem[0].shape[1] + 1)) if warm else None
    compiled = fit(problem, ridge, fold, start)
    monkeypatch.setattr(parts, "SMALL_WORK", -1)
    plain = fit(problem, ridge, fold, start)
    np.testing.assert_allclose(compiled[0], plain[0], atol=2e-4 / min(ridge, 1.0))
    np.testing.assert_allclose(compiled[1], plain[1], atol=2e-4 / min(ridge, 1.0))
    monkeypatch.setattr(newton, "MAX_COEFFICIENTS", 3)  # conjugate gradients
    conjugate = fit(problem, ridge, fold, start)
    np.testing.assert_allclose(conjugate[1], plain[1], atol=2e-4 / min(ridge, 1.0))
