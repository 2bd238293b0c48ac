"""Is a model better than another, and is the difference more than chance?"""

import numpy as np
import pytest

from pmdc.evaluation.held_out import HeldOut
from pmdc.evaluation.verdict import Difference, RowLosses, from_marginals, most_frequent, with_balanced
from pmdc.table.frequencies import Frequencies


def test_a_clear_difference_is_told_with_its_size():
    random = np.random.default_rng(0)
    other = random.normal(3.0, 1.0, 400)
    model = other - 0.3 + random.normal(0.0, 0.5, 400)
    found = Difference.of(model, other)
    assert found.answer == "better"
    assert found.gain == pytest.approx(np.mean(other - model))
    assert found.error == pytest.approx(np.std(other - model, ddof=1) / 20)
    assert found.words(" nats a row") == f"better by {found.gain:.3f} ± {found.error:.3f} nats a row"
    opposite = Difference.of(other, model)
    assert opposite.answer == "worse"
    assert opposite.words().startswith("WORSE by 0.")


def test_equal_models_seldom_differ_clearly():
    random = np.random.default_rng(1)
    answers = [Difference.of(*random.exponential(size=(2, 60))).answer for _ in range(1000)]
    assert 0.02 < np.mean([answer != "no clear difference" for answer in answers]) < 0.08
    answers = [Difference.of(*(random.random((2, 40)) < 0.3).astype(float)).answer for _ in range(1000)]
    assert np.mean([answer in ("better", "worse") for answer in answers]) < 0.08


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_few_rows_show_nothing(n_rows):
    found = Difference.of(np.zeros(n_rows), np.ones(n_rows))
    assert (found.gain, found.answer) == (1.0, "no clear difference")
    assert Difference.of(np.zeros(6), np.ones(6)).answer == "better"


def test_the_same_and_infinite_losses():
    assert Difference.of(np.array([1.0, np.inf]), np.array([1.0, np.inf])).answer == "the same"
    model, other = np.array([1.0, np.inf, 2.0]), np.array([1.5, np.inf, 3.0])
    found = Difference.of(model, other)
    assert (found.gain, found.n_impossible) == (pytest.approx(0.75), 1)
    assert "without 1 row(s) that are impossible for both" in found.words()
    impossible = Difference.of(np.array([1.0, np.inf]), np.array([np.inf, 2.0]))
    assert (impossible.gain, impossible.answer) == (-np.inf, "worse")
    assert "the model gives some outcome the probability 0" in impossible.words()
    assert Difference.of(np.array([1.0, 1.0]), np.array([1.0, np.inf])).answer == "better"


def test_a_constant_prediction_is_never_a_state_that_the_model_does_not_know():
    truth = np.array([[-1, 0], [-1, 0], [0, 1]])
    held_out = HeldOut(["a", "b"], truth, {}, {}, None, None)
    constant = most_frequent(held_out, Frequencies.of(truth, (2, 2)), smoothing=0.0)
    assert constant.wrong("hamming").tolist() == [[True, False], [True, False], [False, True]]
    losses = RowLosses.of(constant).means()
    assert losses.subset_loss.value == pytest.approx(2 / 3)
    assert losses.joint_log_loss.value == np.inf


def test_a_constant_prediction_has_a_balanced_accuracy_of_one_divided_by_the_number_of_states():
    truth = np.array([[0, 0]] * 8 + [[1, 1], [0, 2]])
    held_out = HeldOut(["a", "b"], truth, {}, {}, None, None)
    constant = most_frequent(held_out, Frequencies.of(truth, (2, 3)), smoothing=1.0)
    assert constant.wrong("hamming").mean() == pytest.approx(0.15)
    assert RowLosses.of(constant).balanced_loss.mean() == pytest.approx(1 - (1 / 2 + 1 / 3) / 2)


def test_predictions_for_the_balanced_loss_are_relative_to_the_frequencies():
    truth = np.array([[0], [0], [0], [1]])
    held_out = HeldOut(["a"], truth, {"hamming": np.zeros_like(truth)}, {}, np.zeros(4), [np.array([[0.7, 0.3]] * 4)])
    found = with_balanced(held_out, Frequencies.of(truth, (2,)))
    assert found.predicted["balanced"].ravel().tolist() == [1, 1, 1, 1]
    assert from_marginals(found).predicted["balanced"].ravel().tolist() == [1, 1, 1, 1]
    assert RowLosses.of(found, ("hamming", "hamming")).balanced_loss.tolist() == pytest.approx([2 / 3] * 3 + [0.0])


def test_frequencies_count_weights():
    codes = np.array([[0, 1], [0, 1], [1, 0], [2, 0]])
    found = Frequencies.of(codes, (3, 2), np.array([1.0, 1.0, 2.5, 0.5]))
    assert [count.tolist() for count in found.counts] == [[2.0, 2.5, 0.5], [3.0, 2.0]]
    assert found.outcome == (1, 0)
    assert found.n_rows == 5.0


def test_independence_multiplies_the_marginals():
    marginals = [np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([[0.5, 0.5], [0.1, 0.9]])]
    truth = np.array([[0, 1], [1, 1]])
    states = np.array([[0, 0], [1, 1]])
    held_out = HeldOut(["a", "b"], truth, {"hamming": states, "subset": 1 - states}, {}, np.zeros(2), marginals)
    rows = RowLosses.of(from_marginals(held_out))
    np.testing.assert_allclose(rows.joint_log_loss, -np.log([0.8 * 0.5, 0.6 * 0.9]))
    assert rows.subset_loss.tolist() == [1.0, 0.0], "the most probable outcome of independent class variables"
