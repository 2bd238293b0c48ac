"""The value of information, against a list of all outcomes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import Enumeration
from pmdc import ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.decisions import BlockLoss, CostLoss, CustomLoss, FMeasure
from pmdc.inference import JointDistribution, OutcomeDistribution
from problems import States, networks, possible_evidence, random_parents, random_tables


def weighted_mistakes(true, predicted):
    return float(((true != predicted) * (1 + np.arange(len(true)))).sum())


def sum_of_distances(true, predicted):
    return float(np.abs(true - predicted).sum())


LOSSES = {
    "hamming": ("hamming", lambda true, predicted: np.mean(true != predicted)),
    "subset": ("subset", lambda true, predicted: float(np.any(true != predicted))),
    "sub-exact": ("sub-exact", lambda true, predicted: float(np.sum(true != predicted) > 1)),
    "block of all": (
        lambda names: BlockLoss([names]),
        lambda true, predicted: float(np.any(true != predicted)),
    ),
    "distances": (lambda names: CostLoss(dict.fromkeys(names, "absolute")), sum_of_distances),
    "function": (
        lambda names: CustomLoss(lambda true, predicted: weighted_mistakes(true, predicted)),
        weighted_mistakes,
    ),
}


def brute_force(truth, function, evidence):
    """R - sum over states of P(s) R_s, from the definition."""
    now = truth.given(evidence)
    risk = now.expected_losses(function).min(axis=1)
    values = np.zeros(evidence.shape)
    for k, marginal in enumerate(now.marginals()):
        for row in np.flatnonzero(evidence[:, k] == -1):
            later = 0.0
            for state in np.flatnonzero(marginal[row] > 0):
                known = evidence[[row]].copy()
                known[0, k] = state
                posterior = Enumeration(truth.sizes, truth.log_prob[[row]]).given(known)
                later += marginal[row, state] * posterior.expected_losses(function).min()
            values[row, k] = risk[row] - later
    return values


@pytest.mark.parametrize("name", LOSSES)
@settings(max_examples=20, deadline=None)
@given(network=networks(max_variables=4), seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.0, 0.4]))
def test_value_of_information_by_its_definition(name, network, seed, share):
    sizes, parents, tables = network
    truth, table = Enumeration.of_network(*network), States(sizes)
    loss, function = LOSSES[name]
    loss = loss(table.names) if callable(loss) else loss
    evidence = possible_evidence(np.random.default_rng(seed), truth.outcomes, truth.log_prob, share)
    expected = brute_force(truth, function, evidence)
    for distribution in (
        JointDistribution(table, parents, tables),
        OutcomeDistribution(table, truth.outcomes, truth.log_prob, np.zeros(len(truth.prob))),
    ):
        values = (distribution.given_codes(evidence) if share else distribution).value_of_information(loss)
        assert values.shape == evidence.shape
        assert (values >= 0).all()
        assert not values[evidence != -1].any()
        np.testing.assert_allclose(values, expected, atol=1e-7)


def test_f_measure_of_rows():
    rng = np.random.default_rng(3)
    sizes = [2, 2, 2]
    parents = random_parents(rng, 3, 0.7)
    tables = random_tables(rng, sizes, parents, 4)

    def f_loss(true, predicted):
        positive = true.sum() + predicted.sum()
        return 1.0 - (2 * (true & predicted).sum() / positive if positive else 1.0)

    truth = Enumeration.of_network(sizes, parents, tables)
    expected = brute_force(truth, f_loss, np.full((4, 3), -1))
    values = JointDistribution(States(sizes), parents, tables).value_of_information("f1_samples")
    np.testing.assert_allclose(values, expected, atol=1e-9)


def small():
    rng = np.random.default_rng(0)
    return JointDistribution(States([2, 2]), [(), (0,)], random_tables(rng, [2, 2], [(), (0,)], 3))


@pytest.mark.parametrize("loss", ["f1_macro", "f1_micro", FMeasure("macro")])
def test_losses_of_the_whole_batch_are_refused(loss):
    with pytest.raises(ValueError, match=r"loss=.*f1_m|loss=FMeasure.*macro") as error:
        small().value_of_information(loss)
    assert "'f1_samples'" in str(error.value)


def test_estimated_losses_are_approximate_with_a_warning():
    loss = CustomLoss(lambda true, predicted: (true != predicted).mean(axis=-1), enumerate_up_to=0)
    with pytest.warns(UserWarning, match="loss=CustomLoss.*approximate"):
        values = small().value_of_information(loss)
    np.testing.assert_allclose(values, small().value_of_information("hamming"), atol=0.05)


def test_rounding_errors_of_probability_zero_are_not_evidence():
    """Listed outcomes may leave 1e-17 for a state that is impossible."""
    rng = np.random.default_rng(1)
    outcomes = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]
    for _ in range(50):
        prob = rng.dirichlet(np.ones(4))
        with np.errstate(divide="ignore"):
            log_p = np.log(np.append(prob, 0.0))[None]
        joint = OutcomeDistribution(States([3, 2]), outcomes, log_p, [max(0.0, 1 - prob.sum())])
        assert (joint.value_of_information("subset") >= 0).all()


@pytest.mark.parametrize("model", [ClassifierChain(), ClassPowerset()])
def test_other_distributions(model):
    data = make_network(150, random_state=0)
    joint = model.fit(data.X, data.Y).predict_joint(data.X[:5])
    marginals = joint.marginals()
    values = joint.value_of_information()
    own = np.column_stack([1 - marginal.max(axis=1) for marginal in marginals]) / len(marginals)
    assert (values >= own - 1e-12).all()  # the known class variable alone is worth this much
