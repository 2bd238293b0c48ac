import numpy as np
import pytest
from hypothesis import given, settings

from oracles import Enumeration
from pmdc.inference import JointDistribution, OutcomeDistribution, decide
from problems import States, networks

LOSSES = {
    "hamming": lambda true, predicted: np.mean(true != predicted),
    "subset": lambda true, predicted: float(np.any(true != predicted)),
}


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=40, deadline=None)
@given(network=networks(max_variables=3))
def test_no_outcome_has_a_lower_expected_loss(loss, network):
    sizes, parents, tables = network
    truth = Enumeration.of_network(*network)
    expected = truth.expected_losses(LOSSES[loss])
    every = np.arange(len(expected))
    for distribution in (
        JointDistribution(States(sizes), parents, tables),
        OutcomeDistribution(States(sizes), truth.outcomes, truth.log_prob, np.zeros(len(expected))),
    ):
        codes = decide(distribution, loss)
        assert codes.dtype == np.int64
        np.testing.assert_allclose(expected[every, truth.index_of(codes)], expected.min(axis=1), atol=1e-12)


def test_the_losses_differ():
    distribution = OutcomeDistribution(States([2, 2]), [[0, 0], [1, 0], [1, 1]], np.log([[0.4, 0.3, 0.3]]), [0.0])
    assert decide(distribution, "subset").tolist() == [[0, 0]]
    assert decide(distribution, "hamming").tolist() == [[1, 0]]


def test_ties_go_to_the_first_state():
    distribution = JointDistribution(States([3, 2]), [(), ()], [np.log([[0.2, 0.4, 0.4]]), np.log([[0.5, 0.5]])])
    for loss in LOSSES:
        assert decide(distribution, loss).tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("loss", "suggestion"),
    [("haming", "did you mean 'hamming'"), ("Subset", "did you mean 'subset'"), ("xyz", ""), (3, "")],
)
def test_unknown_loss(loss, suggestion):
    distribution = JointDistribution(States([2]), [()], [np.log([[0.2, 0.8]])])
    with pytest.raises(ValueError, match=f"loss={loss!r} is not known.*{suggestion}.*Choose from 'hamming', 'subset'"):
        decide(distribution, loss)
