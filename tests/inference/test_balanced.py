"""The balanced loss: weighted by the inverse frequencies of the training rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

import pmdc
from oracles import Enumeration
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.decisions import CostLoss
from pmdc.decisions.decide import choose, resolve
from pmdc.explain import importance
from pmdc.explore.losses import known_losses
from pmdc.inference import JointDistribution, OutcomeDistribution
from pmdc.table.frequencies import Frequencies
from problems import States, networks


def table_with(counts):
    table = States([len(own) for own in counts])
    table.frequencies = Frequencies(tuple(np.array(own, dtype=float) for own in counts), (0,) * len(counts))
    return table


def plain_loss(counts):
    """The definition, one class variable after the other."""

    def loss(true, predicted):
        total = 0.0
        for own, state, answer in zip(counts, true, predicted, strict=True):
            if state != answer and sum(own) == 0:
                total += 1.0
            elif state != answer and own[state] > 0:
                total += sum(own) / (sum(n > 0 for n in own) * own[state])
        return total / len(counts)

    return loss


@settings(max_examples=40, deadline=None)
@given(networks(max_variables=4), st.integers(0, 2**32 - 1))
def test_no_outcome_has_a_lower_expected_cost(network, seed):
    """Against a list of all outcomes, also with evidence and with states that have no training row."""
    sizes, parents, tables = network
    rng = np.random.default_rng(seed)
    counts = [rng.integers(0, 30, size).tolist() for size in sizes]
    table, truth = table_with(counts), Enumeration.of_network(*network)
    every = np.arange(len(truth.prob))
    evidence = truth.outcomes[truth.prob.argmax(axis=1)].copy()
    evidence[rng.random(evidence.shape) < 0.7] = -1
    joint = JointDistribution(table, parents, tables)
    listed = OutcomeDistribution(table, truth.outcomes, truth.log_prob, np.zeros(len(every)))
    for distribution, oracle, known in (
        (joint, truth, np.full_like(evidence, -1)),
        (listed, truth, np.full_like(evidence, -1)),
        (joint.given_codes(evidence), truth.given(evidence), evidence),
    ):
        expected = oracle.expected_losses(plain_loss(counts))
        agree = ((known[:, None] == -1) | (known[:, None] == oracle.outcomes)).all(axis=2)
        lowest = np.where(agree, expected, np.inf).min(axis=1)
        choice = choose(distribution, "balanced")
        assert choice.proved.all()
        assert ((known == -1) | (choice.codes == known)).all()
        np.testing.assert_allclose(choice.expected_loss, lowest, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(expected[every, oracle.index_of(choice.codes)], lowest, rtol=1e-9, atol=1e-9)


def test_the_prediction_is_the_greatest_ratio_of_probability_to_frequency():
    counts = [[90, 10], [50, 30, 20]]
    tables = [np.log([[0.8, 0.2], [0.95, 0.05]]), np.log([[0.5, 0.3, 0.2], [0.2, 0.1, 0.7]])]
    tables[1] += [[0, 0, 1e-6], [0, 0, 0]]
    joint = JointDistribution(table_with(counts), [(), ()], tables)
    assert choose(joint, "balanced").codes.tolist() == [[1, 2], [0, 2]]
    assert choose(joint, "hamming").codes.tolist() == [[0, 0], [0, 2]]


def test_its_mean_over_the_training_rows_is_one_minus_the_balanced_accuracy():
    data = make_network(300, n_states=3, random_state=4)
    model = BinaryRelevance().fit(data.X, data.Y)
    loss = resolve("balanced")
    truth = model.class_table_.encode(data.Y)
    predicted = model.class_table_.encode(model.predict(data.X, loss="balanced"))
    values = loss.values(model.predict_joint(data.X), truth, predicted)
    scores = [balanced_accuracy_score(*pair) for pair in zip(truth.T, predicted.T, strict=True)]
    assert values.mean() == pytest.approx(1 - np.mean(scores))
    by_variable = loss.by_variable(model.predict_joint(data.X), truth, predicted)
    np.testing.assert_allclose(by_variable.mean(axis=0), 1 - np.array(scores))


def imbalanced():
    """A rare state that is never the most probable one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    rare = rng.random(600) < 0.02 + 0.3 * (x[:, 0] > 1)
    other = rng.integers(0, 3, 600)
    return x, pd.DataFrame({"rare": np.where(rare, "yes", "no"), "other": np.array(["a", "b", "c"])[other]})


@pytest.mark.parametrize(
    "model",
    [
        GBNC(experts=None, max_parents=1),
        BinaryRelevance(),
        ClassifierChain(loss="hamming"),
        ClassPowerset(),
        ChainEnsemble(n_chains=2),
    ],
)
def test_all_classifiers_know_their_frequencies(model, tmp_path):
    X, Y = imbalanced()
    model = model.fit(X[:400], Y[:400])
    new, true = X[400:], Y[400:]
    predicted = model.predict(new, loss="balanced")
    p = model.predict_proba(new)
    for k, name in enumerate(Y):
        share = Y[name][:400].value_counts(normalize=True).sort_index().to_numpy()
        np.testing.assert_array_equal(predicted[name], model.classes_[k][(p[k] / share).argmax(axis=1)])
    assert balanced_accuracy_score(true["rare"], predicted["rare"]) > 0.6
    joint = model.predict_joint(new)
    np.testing.assert_allclose(model.expected_loss(new, "balanced"), joint.decide("balanced").expected_loss)
    known = model.predict(new, loss="balanced", given={"rare": "yes"})
    assert (known["rare"] == "yes").all()
    assert joint.rows(slice(0, 3)).value_of_information("balanced").shape == (3, 2)
    path = tmp_path / "model.pmdc"
    pmdc.save(model, path)
    copy = pmdc.load(path)
    np.testing.assert_array_equal(copy.predict(new, loss="balanced"), predicted)
    assert "balanced" in known_losses(copy)


def test_as_a_parameter_and_in_importance():
    X, Y = imbalanced()
    model = GBNC(experts=None, max_parents=1, loss="balanced").fit(X[:400], Y[:400])
    np.testing.assert_array_equal(model.predict(X[400:]), model.predict(X[400:], loss="balanced"))
    found = importance(model, X[400:], Y[400:], loss="balanced", n_repeats=2, random_state=0)
    assert np.argmax(found.overall) == 0


def test_weights_of_rows_are_frequencies():
    X, Y = imbalanced()
    weights = np.where(Y["rare"] == "yes", 3.0, 1.0)
    twice = np.repeat(np.arange(600), weights.astype(int))
    loss = resolve("balanced")
    weighted = BinaryRelevance().fit(X, Y, sample_weight=weights).class_table_
    repeated = BinaryRelevance().fit(X[twice], Y.iloc[twice]).class_table_
    for one, other in zip(loss.matrices(weighted), loss.matrices(repeated), strict=True):
        np.testing.assert_allclose(one, other)


def test_a_declared_state_without_rows_costs_nothing():
    X, Y = imbalanced()
    Y = Y.assign(other=pd.Categorical(Y["other"], ["a", "b", "c", "never"]))
    model = BinaryRelevance().fit(X, Y)
    assert "never" not in set(model.predict(X, loss="balanced")["other"])
    assert np.isfinite(model.expected_loss(X, "balanced")).all()
    assert (model.predict(X, loss="balanced", given={"other": "never"})["other"] == "never").all()


def test_distributions_without_frequencies():
    joint = JointDistribution(States([2]), [()], [np.log([[0.3, 0.7]])])
    with pytest.raises(ValueError, match=r"loss='balanced'.*frequencies.*CostLoss"):
        joint.decide("balanced")
    costs = CostLoss({"A": [[0, 1 / 0.1], [1 / 0.9, 0]]})
    assert joint.decide(costs).outcome.tolist() == [["s0"]]
