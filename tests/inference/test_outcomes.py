from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from oracles import Enumeration, all_outcomes
from pmdc.inference import OutcomeDistribution
from problems import States

pytestmark = pytest.mark.filterwarnings("error")


def log_of(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def random_outcomes(rng, sizes, share, n_rows):
    """Some outcomes of the product space with probabilities, and the same as a full enumeration."""
    space = all_outcomes(sizes)
    listed = rng.permutation(len(space))[: round(share * len(space))]
    weights = rng.random((n_rows, len(listed) + 1))
    weights[rng.random(weights.shape) < 0.3] = 0.0
    if len(listed) == len(space):
        weights[:, -1] = 0.0
    weights[:, 0] += 1e-3  # some probability must be there: of a listed outcome, or of the rest if none is
    weights /= weights.sum(axis=1, keepdims=True)
    prob = np.repeat(weights[:, -1:], len(space), axis=1) / max(len(space) - len(listed), 1)
    prob[:, listed] = weights[:, :-1]
    return space[listed], log_of(weights[:, :-1]), weights[:, -1], Enumeration(sizes, log_of(prob))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_answers_are_those_of_enumeration(sizes, share, seed):
    outcomes, log_p, rest, truth = random_outcomes(np.random.default_rng(seed), sizes, share, 3)
    table = States(sizes)
    distribution = OutcomeDistribution(table, outcomes, log_p, rest)
    for marginal, expected in zip(distribution.marginals(), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)
        np.testing.assert_allclose(marginal.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(distribution.entropy(), truth.entropy(), atol=1e-10)
    for outcome, expected in zip(truth.outcomes, truth.log_prob.T, strict=True):
        log_prob = distribution.log_prob(table.decode(np.tile(outcome, (3, 1))))
        np.testing.assert_allclose(log_prob, expected, rtol=1e-10, atol=1e-12)
    mode = distribution.mode()
    np.testing.assert_allclose(mode.log_prob, truth.log_prob.max(axis=1), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(mode.log_prob, distribution.log_prob(mode.outcome))


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_samples_follow_the_distribution(share):
    sizes = [2, 3, 3]
    outcomes, log_p, rest, truth = random_outcomes(np.random.default_rng(2), sizes, share, 2)
    rest[:] = 0.4
    log_p = log_of(0.6 * np.exp(log_p) / np.exp(log_p).sum(axis=1, keepdims=True))
    table = States(sizes)
    distribution = OutcomeDistribution(table, outcomes, log_p, rest)
    draws = distribution.sample(20_000, random_state=0)
    assert draws.shape == (2, 20_000, 3)
    np.testing.assert_array_equal(draws, distribution.sample(20_000, random_state=0))
    for row in range(2):
        drawn = np.bincount(truth.index_of(table.encode(draws[row])), minlength=len(truth.outcomes))
        each = table.decode(truth.outcomes)
        prob = np.exp([distribution.log_prob(np.tile(outcome, (2, 1)))[row] for outcome in each])
        assert not drawn[prob == 0].any()
        assert chisquare(drawn[prob > 0], 20_000 * prob[prob > 0]).pvalue > 1e-3


def test_an_unlisted_outcome_can_be_the_most_probable():
    distribution = OutcomeDistribution(
        States([2, 2]), [[0, 0], [1, 1]], np.log([[0.1, 0.1], [0.5, 0.1], [0.25, 0.25]]), [0.8, 0.4, 0.5]
    )
    assert distribution.mode().outcome.tolist() == [["s0", "s1"], ["s0", "s0"], ["s0", "s0"]]
    np.testing.assert_allclose(np.exp(distribution.mode().log_prob), [0.4, 0.5, 0.25])


def test_an_astronomically_large_space():
    sizes = [10] * 400
    outcomes = np.array([[0] * 400, [1] * 400])
    distribution = OutcomeDistribution(States(sizes), outcomes, np.log([[0.2, 0.3]]), [0.5])
    marginals = distribution.marginals()
    np.testing.assert_allclose(marginals[7][0], [0.25, 0.35] + [0.05] * 8, rtol=1e-12)
    log_each = log(0.5) - 400 * log(10)
    np.testing.assert_allclose(distribution.log_prob([["s2"] * 400]), log_each, rtol=1e-12)
    np.testing.assert_allclose(distribution.entropy(), -0.2 * log(0.2) - 0.3 * log(0.3) - 0.5 * log_each, rtol=1e-12)
    assert distribution.mode().outcome.tolist() == [["s1"] * 400]
    draws = distribution.sample(100, random_state=0)
    unlisted = (draws != draws[:, :, :1]).any(axis=2)
    assert 30 < unlisted.sum() < 70


def test_no_rows():
    distribution = OutcomeDistribution(States([2, 2]), [[0, 0]], np.empty((0, 1)), np.empty(0))
    assert [m.shape for m in distribution.marginals()] == [(0, 2), (0, 2)]
    assert distribution.mode().outcome.shape == (0, 2)
    assert distribution.entropy().shape == (0,)
    assert distribution.sample(3).shape == (0, 3, 2)


def test_unknown_states_have_probability_zero_and_a_warning():
    distribution = OutcomeDistribution(States([2, 2]), [[0, 0]], [[log(0.4)]], [0.6])
    with pytest.warns(UserWarning, match="'B': 1 row.*'new'.*categorical dtype"):
        assert np.isneginf(distribution.log_prob([["s0", "new"]])).all()
    with pytest.raises(ValueError, match="Y has 2 rows"):
        distribution.log_prob([["s0", "s0"]] * 2)


@pytest.mark.parametrize(
    ("outcomes", "log_p", "rest", "complaint"),
    [
        ([[0]], [[0.0]], [0.0], r"outcomes has shape \(1, 1\)"),
        ([[0, 0]], [[0.0, 0.0]], [0.0], r"log_p has shape \(1, 2\)"),
        ([[0, 0]], [[0.0]], [[0.0]], r"rest \(1, 1\)"),
        ([[0, 2]], [[0.0]], [0.0], "outside the numbers of states"),
        ([[0, 0], [0, 0]], [[log(0.5)] * 2], [0.0], "twice"),
        ([[0, 0]], [[log(0.5)]], [0.4], r"row 0 .* add up to 0\.9"),
        ([[0, 0]], [[np.nan]], [0.4], "row 0 .* add up to nan"),
        ([[0, 0]], [[log(1.5)]], [-0.5], "must not be negative"),
        (all_outcomes([2, 2]), np.log([[0.2] * 4]), [0.2], "all outcomes are listed"),
    ],
)
def test_wrong_arguments(outcomes, log_p, rest, complaint):
    with pytest.raises(ValueError, match=complaint):
        OutcomeDistribution(States([2, 2]), outcomes, log_p, rest)


def test_tilted_sums_of_many_class_variables_do_not_underflow():
    sizes = [2] * 2000
    outcomes = np.array([[1] * 2000, [0] * 1000 + [1] * 1000])
    distribution = OutcomeDistribution(States(sizes), outcomes, np.log([[0.9, 0.1], [0.2, 0.1]]), [0.0, 0.7])
    log_total, marginals = distribution.tilted([np.array([1.0, 0.1])] * 2000)
    np.testing.assert_allclose(log_total, [log(0.1) - 1000 * log(10), log(0.7) + 2000 * log(0.55)], rtol=1e-12)
    np.testing.assert_allclose(marginals[0], [[1.0, 0.0], [1 / 1.1, 0.1 / 1.1]], atol=1e-12)
