"""The conditional logit on expert features: its optimum, its leave-one-out, and what it says of unusual rows."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from pmdc.candidates.families import Family
from pmdc.learners.conditional_logit import PRIOR, ConditionalLogitLearner, continuous
from pmdc.learners.fitted import Fitted
from pmdc.learners.protocols import LocalModels
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import local_task
from problems import numbers

FAMILIES = [Family(()), Family((), (1,)), Family((2,)), Family((2,), (1,)), Family((), (1, 2)), Family((1, 3), (2,))]
SIZES = (3, 3, 2, 2)


def features(rng, codes, n_states, n_experts, scale=1.0):
    """Centred log-probabilities that know something of the states."""
    Z = rng.normal(size=(len(codes), n_experts, n_states))
    Z[np.arange(len(codes)), :, codes] += 1.0
    Z -= Z.mean(axis=2, keepdims=True)
    return scale * Z.reshape(len(codes), -1)


def problem(family, n_states=3, n_experts=2, weighted=False, n=120, seed=0, C=2.0):
    """A learner and a task; node 0 is the class variable, and it depends on nodes 1 and 2."""
    rng = np.random.default_rng(seed)
    sizes = (n_states, *SIZES[1:])
    codes = rng.integers(0, sizes, size=(n, len(sizes)))
    copied = rng.random(n) < 0.5
    codes[copied, 0] = (codes[copied, 1] + codes[copied, 2]) % n_states
    weights = rng.integers(1, 4, n) * 1.0 if weighted else np.ones(n)
    learner = ConditionalLogitLearner(features(rng, codes[:, 0], n_states, n_experts), weights, C)
    return learner, local_task(0, family, codes, sizes)


def indicators(task):
    """A constant, and the indicators of the inputs."""
    columns = [np.ones(len(task.codes))]
    for place, size in enumerate(task.input_sizes):
        columns += [(task.input_codes[:, place] == state) * 1.0 for state in range(size)]
    return np.column_stack(columns)


def objective(theta, Z, A, y, weights, C):
    """The documented objective of one part and its gradient, term by term."""
    n, n_experts, n_states = Z.shape
    w, effects = theta[:n_experts], theta[n_experts:].reshape(-1, n_states)
    log_p = log_softmax(np.einsum("l,nls->ns", w, Z) + A @ effects, axis=1)
    value = -weights @ log_p[np.arange(n), y]
    value += PRIOR / 2 * ((w - 1 / n_experts) ** 2).sum() + (effects**2).sum() / (2 * C)
    residual = weights[:, None] * (np.exp(log_p) - np.eye(n_states)[y])
    own = np.einsum("nls,ns->l", Z, residual) + PRIOR * (w - 1 / n_experts)
    return value, np.concatenate([own, (A.T @ residual + effects / C).ravel()])


def peer(learner, task, C):
    """The coefficients of each part by `scipy.optimize.minimize`."""
    Z, A = learner.X.reshape(len(task.codes), -1, task.n_states), indicators(task)
    found = []
    for part in range(task.partition.n_parts):
        rows = task.partition.part == part
        arguments = Z[rows], A[rows], task.codes[rows], learner.sample_weight[rows], C
        start = np.zeros(Z.shape[1] + A.shape[1] * task.n_states)
        found.append(minimize(objective, start, arguments, jac=True, method="BFGS", options={"gtol": 1e-7}))
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("n_states", "n_experts", "weighted"), [(2, 1, False), (3, 2, True), (4, 3, False), (2, 3, True)]
)
def test_the_optimum_is_that_of_the_documented_objective(family, n_states, n_experts, weighted):
    learner, task = problem(family, n_states, n_experts, weighted)
    models = learner.fit(task)
    for part, expected in enumerate(peer(learner, task, 2.0)):
        found = np.concatenate([models.weights[part], models.effects[part].ravel()])
        np.testing.assert_allclose(found, expected.x, atol=1e-5)


def test_probabilities_and_likelihood_are_those_of_the_coefficients():
    learner, task = problem(Family((2,), (1,)), weighted=True)
    answer = learner.fit(task).log_proba(learner.X, task.partition.part, task.input_codes)
    Z, A = learner.X.reshape(120, 2, 3), indicators(task)
    expected = np.empty((120, 3))
    for part, found in enumerate(peer(learner, task, 2.0)):
        rows = task.partition.part == part
        w, effects = found.x[:2], found.x[2:].reshape(-1, 3)
        expected[rows] = log_softmax(np.einsum("l,nls->ns", w, Z[rows]) + A[rows] @ effects, axis=1)
    np.testing.assert_allclose(answer, expected, atol=1e-5)
    own = answer[np.arange(120), task.codes]
    assert learner.log_likelihood(task) == pytest.approx(learner.sample_weight @ own, rel=1e-9)


@pytest.mark.parametrize("C", [1e-9, 0.1, 10.0])
def test_C_is_the_inverse_penalty_of_effects_only(C):
    learner, task = problem(Family((), (1,)), C=1.0)
    models = learner.with_C(C).fit(task)
    (expected,) = peer(learner, task, C)
    np.testing.assert_allclose(models.weights[0], expected.x[:2], atol=1e-4)
    np.testing.assert_allclose(models.effects[0].ravel(), expected.x[2:], atol=1e-4)
    assert learner.ridge == 1.0, "a copy"
    assert ConditionalLogitLearner(learner.X, learner.sample_weight).auto
    assert not learner.with_C(C).auto


def test_without_evidence_the_model_is_the_geometric_mean_of_the_experts():
    learner, task = problem(Family(()), n=1)
    few = learner.on(np.zeros(1, dtype=int), np.array([1e-12]))
    Z = learner.X.reshape(1, 2, 3)
    np.testing.assert_allclose(
        few.fit(task).log_proba(learner.X, np.zeros(1, dtype=int)), log_softmax(Z.mean(axis=1), axis=1), atol=1e-9
    )


# Leave-one-out ------------------------------------------------------------------------------------------------


def refits(learner, task, rows):
    """log P(own state) of some rows by the model fitted without each, or with its weight less one."""
    out = []
    for row in rows:
        weights = learner.sample_weight.copy()
        weights[row] -= min(1.0, weights[row])
        models = learner.on(np.arange(len(weights)), weights).fit(task)
        codes = None if task.input_codes is None else task.input_codes[[row]]
        out.append(models.log_proba(learner.X[[row]], task.partition.part[[row]], codes)[0, task.codes[row]])
    return np.array(out)


@pytest.mark.parametrize("family", FAMILIES[:5])
@pytest.mark.parametrize(("n_states", "n_experts", "weighted"), [(2, 1, True), (3, 2, False), (4, 3, True)])
def test_leave_one_out_is_near_to_refits(family, n_states, n_experts, weighted):
    learner, task = problem(family, n_states, n_experts, weighted, n=400, seed=1, C=1.0)
    rows = np.arange(0, 400, 5)
    error = learner.leave_one_out(task)[rows] - refits(learner, task, rows)
    assert np.abs(error).max() < 0.03
    assert abs(error.mean()) < 1e-3


@pytest.mark.parametrize(("n_states", "n_experts", "weighted"), [(2, 1, True), (3, 2, False), (4, 3, True)])
def test_leave_one_out_of_small_parts_corrects_nearly_all_optimism(n_states, n_experts, weighted):
    """About 20 rows for up to 15 coefficients: one Newton step is less exact, but far better than training rows."""
    learner, task = problem(FAMILIES[5], n_states, n_experts, weighted, seed=1, C=1.0)
    expected = refits(learner, task, range(120))
    optimism = learner.fit(task).log_proba(learner.X, task.partition.part, task.input_codes)
    optimism = (optimism[np.arange(120), task.codes] - expected).mean()
    assert optimism > 0.03
    assert abs((learner.leave_one_out(task) - expected).mean()) < 0.1 * optimism


def test_leave_one_out_of_a_part_with_one_row_is_the_mean_of_the_experts():
    learner, task = problem(Family(()), n=40)
    codes = np.column_stack([task.codes, (np.arange(40) == 7) * 1])
    alone = local_task(0, Family((1,)), codes, (3, 2))
    expected = log_softmax(learner.X[7].reshape(2, 3).mean(axis=0))[task.codes[7]]
    assert learner.leave_one_out(alone)[7] == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("family", [Family(()), Family((2,), (1,))])
def test_a_row_of_weight_three_is_three_rows_of_which_one_is_left_out(family):
    learner, task = problem(family, weighted=True)
    assert {1.0, 2.0, 3.0} == set(learner.sample_weight)
    times = np.repeat(np.arange(120), learner.sample_weight.astype(int))
    repeated = learner.on(times, np.ones(len(times))).leave_one_out(task.take(times))
    np.testing.assert_allclose(learner.leave_one_out(task)[times], repeated, rtol=1e-6)


def test_a_weight_below_one_is_left_out_as_a_whole():
    learner, task = problem(Family((), (1,)))
    light = learner.on(np.arange(120), np.where(np.arange(120) % 2, 0.25, 2.0))
    error = light.leave_one_out(task) - refits(light, task, range(120))
    assert np.abs(error).max() < 0.03


def test_leave_one_out_does_not_depend_on_the_order_of_rows():
    learner, task = problem(Family((2,), (1,)))
    order = np.random.default_rng(3).permutation(120)
    moved = learner.on(order).leave_one_out(task.take(order))
    np.testing.assert_allclose(moved, learner.leave_one_out(task)[order], rtol=1e-9)


# Tables of configurations -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "free"),
    [
        (Family((2,), (1,)), {0: 3}),
        (Family((2,), (1, 3)), {0: 3, 1: 2}),
        (Family((2,), (1, 3)), {1: 2}),
        (Family((), (1, 2)), {0: 3}),
        (Family((), (1, 2)), {0: 3, 1: 2}),
    ],
)
def test_a_table_is_stacked_answers(family, free):
    learner, task = problem(family)
    models = learner.fit(task)
    rng = np.random.default_rng(1)
    part = rng.integers(-1, task.partition.n_parts, size=(9, 4))
    codes = np.column_stack([rng.integers(-1, size, 9) for size in task.input_sizes])
    own = models.log_table(learner.X[:9], part, codes, free)
    default = LocalModels.log_table(models, learner.X[:9], part, codes, free)
    assert own.shape == default.shape == (9, np.prod(list(free.values())), 4, 3)
    np.testing.assert_allclose(np.exp(own), np.exp(default), atol=1e-12)
    np.testing.assert_array_equal(own == -np.inf, default == -np.inf)
    assert (own == -np.inf).any()
    np.testing.assert_allclose(np.exp(own).sum(axis=-1), np.broadcast_to(part[:, None] >= 0, own.shape[:-1]))


def test_several_parts_of_a_row_are_answered_together():
    learner, task = problem(Family((2,), (1,)))
    models = learner.fit(task)
    part = np.tile([0, 1, -1], (5, 1))
    together = models.log_proba(learner.X[:5], part, task.input_codes[:5])
    assert together.shape == (5, 3, 3)
    for column in range(3):
        np.testing.assert_allclose(
            together[:, column], models.log_proba(learner.X[:5], part[:, column], task.input_codes[:5])
        )
    assert (together[:, 2] == -np.inf).all(), "a configuration without rows"
    assert np.isfinite(together[:, :2]).all()


def test_an_unknown_state_of_an_input_has_the_average_effect():
    learner, task = problem(Family((), (1, 2)), weighted=True)
    models = learner.fit(task)
    codes = task.input_codes[:6].copy()
    codes[:, 0] = -1
    share = np.bincount(task.input_codes[:, 0], learner.sample_weight) / learner.sample_weight.sum()
    bias, first, second = models.effects[0, 0], models.effects[0, 1:4], models.effects[0, 4:]
    scores = np.einsum("l,nls->ns", models.weights[0], learner.X[:6].reshape(6, 2, 3))
    scores += bias + share @ first + second[codes[:, 1]]
    answer = models.log_proba(learner.X[:6], np.zeros(6, dtype=int), codes)
    np.testing.assert_allclose(answer, log_softmax(scores, axis=1), atol=1e-12)


# Unusual rows -------------------------------------------------------------------------------------------------


def test_a_state_without_rows_is_possible():
    learner, task = problem(Family((2,), (1,)), n_states=3)
    task = replace(task, codes=np.minimum(task.codes, 1))
    answer = learner.fit(task).log_proba(learner.X, task.partition.part, task.input_codes)
    assert (answer >= TINY - 1e-9).all()
    np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1.0)
    assert np.exp(answer[:, 2]).mean() < 0.2


@pytest.mark.parametrize("family", [Family(()), Family((2,), (1,))])
def test_one_state_is_certain(family):
    learner, task = problem(family, n_states=1)
    answer = learner.fit(task).log_proba(learner.X, task.partition.part, task.input_codes)
    np.testing.assert_allclose(answer, np.zeros((120, 1)), atol=1e-12)
    np.testing.assert_allclose(learner.leave_one_out(task), 0.0, atol=1e-12)
    assert learner.log_likelihood(task) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1e3])
@pytest.mark.parametrize("family", [Family(()), Family((2,), (1,))])
def test_extreme_features_converge(family, scale, C):
    learner, task = problem(family, C=C)
    learner.X = scale * learner.X
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = learner.fit(task).log_proba(learner.X, task.partition.part, task.input_codes)
        held_out = learner.leave_one_out(task)
    assert np.isfinite(answer).all()
    np.testing.assert_allclose(np.exp(answer).sum(axis=1), 1.0)
    assert np.isfinite(held_out).all()
    assert (held_out <= 1e-12).all()


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_experts_that_are_always_right_converge(scale):
    _, task = problem(Family((2,), (1,)))
    right = scale * 30.0 * (np.eye(3)[task.codes] - 1 / 3)
    learner = ConditionalLogitLearner(right, np.ones(120), C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = learner.fit(task)
        assert (np.exp(learner.leave_one_out(task)) > 0.9).all()
    answer = models.log_proba(right, task.partition.part, task.input_codes)
    assert (answer.argmax(axis=1) == task.codes).all()


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_experts_that_are_always_wrong_are_turned_round(scale):
    _, task = problem(Family(()), n_states=2)
    wrong = scale * 5.0 * (0.5 - np.eye(2)[task.codes])
    learner = ConditionalLogitLearner(wrong, np.ones(120), C=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = learner.fit(task)
    assert models.weights[0, 0] < 0


# Consistency --------------------------------------------------------------------------------------------------


def test_models_fit_only_their_own_shapes():
    learner, task = problem(Family((2,), (1,)))
    models = learner.fit(task)
    fitted = Fitted(2, 3, continuous, 6, [], [3])
    assert models.fits(fitted)
    for wrong in (
        fitted._replace(n_parts=3),
        fitted._replace(n_states=2),
        fitted._replace(width=9),
        fitted._replace(width=7),
        fitted._replace(inputs=[2]),
        fitted._replace(inputs=[3, 3]),
        fitted._replace(inputs=[]),
    ):
        assert not models.fits(wrong)
    for wrong in (
        {"weights": models.weights[:1]},
        {"weights": models.weights[:, :1]},
        {"weights": models.weights.astype(int)},
        {"weights": models.weights.tolist()},
        {"effects": models.effects[:1]},
        {"effects": models.effects[:, 1:]},
        {"effects": models.effects[:, :, 1:]},
        {"effects": models.effects.reshape(2, -1)},
        {"effects": models.effects.astype(object)},
        {"input_sizes": (2,)},
        {"input_sizes": ()},
        {"shares": models.shares[1:]},
        {"shares": models.shares[None]},
    ):
        assert not replace(models, **wrong).fits(fitted), wrong


def test_the_number_of_parameters_counts_weights_and_contrasts():
    learner, _ = problem(Family(()), n_states=4, n_experts=3)
    assert learner.n_parameters(4, []) == 3 + 3
    assert learner.n_parameters(4, [3, 2]) == 3 + 3 * (1 + 2 + 1)
    np.testing.assert_array_equal(learner.prepare(numbers(learner.X)), learner.X)
