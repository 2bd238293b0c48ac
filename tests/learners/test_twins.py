"""Compiled kernels beside plain twins in numpy; that of the fit of small parts is the fit of large ones."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax

from pmdc.learners import Logistic, kernels
from pmdc.learners.logistic import newton, parts
from pmdc.learners.smoothing import TINY


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


@pytest.mark.parametrize("seed", range(5))
def test_linear_scores_beside_numpy(seed):
    rng = np.random.default_rng(seed)
    X, coef = rng.normal(size=(20, 3)), rng.normal(size=(5, 4))
    number = np.array([[0, 1, -1], [2, 3, 4]])
    part = rng.integers(-1, 2, size=(20, 4))
    out = np.zeros((20, 4, 3))
    kernels.linear_scores(out, X, part, number, coef)
    every = np.column_stack([np.ones(20), X]) @ coef.T
    for i, a, s in np.ndindex(out.shape):
        group = number[part[i, a], s] if part[i, a] >= 0 else -1
        assert out[i, a, s] == pytest.approx(every[i, group] if group >= 0 else 0.0)


def plain_normalise(scores, states, frequency, weight, smooth):
    """One row of `normalise`, as `smoothing.fill_zeros` describes it."""
    p = np.zeros(len(scores))
    p[states] = softmax(scores[states])
    if smooth and (p[states] < np.exp(TINY)).any():
        floor = frequency / (1 + weight) if np.isneginf(scores[states]).any() else np.full(len(p), np.exp(TINY))
        low = states & (p < floor)
        kept = states & ~low
        p[kept] *= (1 - floor[low].sum()) / p[kept].sum()
        p[low] = floor[low]
    return p


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_normalise_beside_numpy(seed, smooth):
    rng = np.random.default_rng(seed)
    number = np.array([[0, 1, -1, 2], [3, 4, 5, 6]])
    frequency = np.array([0.5, 0.3, 0.2, 0.4, 0.3, 0.2, 0.1])
    weights = np.array([10.0, 100.0])
    scores = rng.normal(size=(60, 4)) * rng.choice([1.0, 30.0, 300.0], size=(60, 1))
    scores[rng.random(scores.shape) < 0.1] = -np.inf
    scores[:, 1] = np.maximum(scores[:, 1], -500.0)
    part = rng.integers(-1, 2, size=60)
    out = scores.copy()
    kernels.normalise(out, part, number, np.log(frequency), weights, smooth, TINY)
    for i, p in enumerate(part):
        expected = np.zeros(4)
        if p >= 0:
            states = number[p] >= 0
            own = np.where(states, frequency[number[p]], 0.0)
            expected = plain_normalise(scores[i], states, own, weights[p], smooth)
        np.testing.assert_allclose(np.exp(out[i]), expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("C", [1e6, 1e8])
@pytest.mark.parametrize("seed", range(8))
def test_weak_penalties_converge_on_separable_rows(C, seed):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(30, 70)), rng.randint(7, size=30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Logistic(C=C).fit(X, y).n_iter_ < 100
