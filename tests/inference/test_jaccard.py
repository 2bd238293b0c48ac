"""Decisions for the Jaccard index of each row."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pmdc
from oracles import Enumeration
from pmdc import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.decisions import FMeasure, JaccardLoss
from pmdc.decisions.decide import choose, resolve
from pmdc.inference import JointDistribution, OutcomeDistribution
from problems import States, random_parents, random_tables


def jaccard_loss(true, predicted):
    union = (true | predicted).sum()
    return 1.0 - ((true & predicted).sum() / union if union else 1.0)


def random_network(seed, n_variables, n_rows=3, edges=0.5, zeros=0.2):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, n_variables, edges)
    return [2] * n_variables, parents, random_tables(rng, [2] * n_variables, parents, n_rows, zeros=zeros, tiny=0.1)


def compare_all_only_up_to(monkeypatch, n_outcomes):
    monkeypatch.setattr("pmdc.decisions.jaccard._MAX_OUTCOMES", n_outcomes)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_no_outcome_has_a_lower_expected_loss(n_variables, seed, known):
    sizes, parents, tables = random_network(seed, n_variables)
    truth = Enumeration.of_network(sizes, parents, tables)
    rows, rng = np.arange(3), np.random.default_rng(seed)
    evidence = np.full((3, n_variables), -1)
    if known:
        possible = truth.outcomes[truth.prob.argmax(axis=1)]
        evidence = np.where(rng.random(possible.shape) < 0.4, possible, -1)
    oracle = truth.given(evidence)
    expected = oracle.expected_losses(jaccard_loss)
    joint = JointDistribution(States(sizes), parents, tables)
    listed = OutcomeDistribution(States(sizes), truth.outcomes, truth.log_prob, np.zeros(3))
    for distribution in (joint.given_codes(evidence), listed.given_codes(evidence)):
        choice = choose(distribution, "jaccard")
        assert choice.proved.all()
        assert ((evidence == -1) | (choice.codes == evidence)).all()
        np.testing.assert_allclose(choice.expected_loss, expected.min(axis=1), atol=1e-9)
        np.testing.assert_allclose(expected[rows, oracle.index_of(choice.codes)], expected.min(axis=1), atol=1e-9)
        predicted = truth.outcomes[rng.integers(0, len(truth.outcomes), 3)]
        risk = resolve("jaccard").expected(distribution, predicted)
        np.testing.assert_allclose(risk, expected[rows, oracle.index_of(predicted)], atol=1e-9)
        values = resolve("jaccard").values(distribution, truth.outcomes[:3][rows % 2], predicted)
        each = [jaccard_loss(*pair) for pair in zip(truth.outcomes[:3][rows % 2], predicted, strict=True)]
        np.testing.assert_allclose(values, each)


@pytest.mark.parametrize("seed", range(8))
def test_independent_class_variables_without_comparing_all(seed, monkeypatch):
    sizes, parents, tables = random_network(seed, 6, n_rows=20, edges=0.0)
    expected = Enumeration.of_network(sizes, parents, tables).expected_losses(jaccard_loss)
    distribution = JointDistribution(States(sizes), parents, tables)
    compare_all_only_up_to(monkeypatch, 1)
    choice = choose(distribution, "jaccard")
    assert choice.proved.all()
    assert not choice.standard_error.any()
    np.testing.assert_allclose(choice.expected_loss, expected.min(axis=1), atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_dependent_class_variables_without_comparing_all(seed, monkeypatch):
    """Never worse than the prediction for F1, close to the best one, and never called optimal."""
    sizes, parents, tables = random_network(seed, 6, n_rows=20)
    truth = Enumeration.of_network(sizes, parents, tables)
    expected = truth.expected_losses(jaccard_loss)
    distribution = JointDistribution(States(sizes), parents, tables)
    compare_all_only_up_to(monkeypatch, 1)
    choice = choose(distribution, "jaccard")
    assert not choice.proved.any()
    own = expected[np.arange(20), truth.index_of(choice.codes)]
    np.testing.assert_allclose(choice.expected_loss, own, atol=1e-9)
    f_codes = choose(distribution, "f1_samples").codes
    assert (own <= expected[np.arange(20), truth.index_of(f_codes)] + 1e-9).all()
    assert (1 - own >= (1 - expected.min(axis=1)) / 2 - 1e-9).all()
    assert (own - expected.min(axis=1)).mean() < 0.002
    alone = choose(distribution.rows(np.array([7])), "jaccard")
    np.testing.assert_array_equal(alone.codes[0], choice.codes[7])


def test_the_best_prediction_is_not_a_set_of_the_most_probable_labels(monkeypatch):
    """Three labels that go together beat a more probable one on its own."""
    outcomes = [[1, 0, 0, 0], [0, 1, 1, 1]]
    listed = OutcomeDistribution(States([2] * 4), outcomes, np.log([[0.55, 0.45]]), [0.0])
    truth = {codes: 0.55 * (1 - jaccard_loss(np.array(outcomes[0]), np.array(codes))) for codes in all_codes(4)}
    for codes in truth:
        truth[codes] += 0.45 * (1 - jaccard_loss(np.array(outcomes[1]), np.array(codes)))
    best = max(truth, key=truth.__getitem__)
    assert choose(listed, "jaccard").codes[0].tolist() == list(best)
    compare_all_only_up_to(monkeypatch, 1)
    assert choose(listed, "jaccard").codes[0].tolist() == list(best)


def all_codes(n_variables):
    return list(itertools.product((0, 1), repeat=n_variables))


def test_many_class_variables():
    """The expected loss is exact: against draws, for 30 dependent class variables."""
    rng = np.random.default_rng(0)
    parents = [(k - 1,) if k else () for k in range(30)]
    tables = random_tables(rng, [2] * 30, parents, 2)
    distribution = JointDistribution(States([2] * 30), parents, tables)
    choice = choose(distribution, "jaccard")
    drawn = distribution.sample_codes(40_000, np.random.RandomState(1)).astype(bool)
    predicted = choice.codes[:, None].astype(bool)
    index = (drawn & predicted).sum(axis=2) / (drawn | predicted).sum(axis=2)
    np.testing.assert_allclose(choice.expected_loss, 1 - index.mean(axis=1), atol=0.005)


def test_unlisted_outcomes_count():
    """The expected loss of given predictions where part of the probability is spread over unlisted outcomes."""
    rng = np.random.default_rng(2)
    outcomes = [[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    prob = rng.dirichlet(np.ones(4), size=5)
    some = OutcomeDistribution(States([2] * 4), outcomes, np.log(prob[:, :3]), prob[:, 3])
    truth = Enumeration([2] * 4, some.enumerate().log_p)
    predicted = rng.integers(0, 2, (5, 4))
    expected = truth.expected_losses(jaccard_loss)[np.arange(5), truth.index_of(predicted)]
    np.testing.assert_allclose(resolve("jaccard").expected(some, predicted), expected, atol=1e-12)


def test_a_saved_model_keeps_its_loss(tmp_path):
    data = make_network(100, n_states=2, random_state=1)
    model = BinaryRelevance(loss=JaccardLoss(positive="a", n_samples=50)).fit(data.X, data.Y)
    pmdc.save(model, tmp_path / "model.pmdc")
    copy = pmdc.load(tmp_path / "model.pmdc")
    assert repr(copy.loss) == "JaccardLoss(positive='a', n_samples=50)"
    np.testing.assert_array_equal(copy.predict(data.X), model.predict(data.X))


def test_other_positive_states(monkeypatch):
    sizes, parents, tables = random_network(1, 3, n_rows=4)
    positive = np.array([0, 1, 0])
    truth = Enumeration.of_network(sizes, parents, tables)
    expected = truth.expected_losses(lambda t, p: jaccard_loss(t == positive, p == positive))
    loss = JaccardLoss(positive=["s0", "s1", "s0"])
    distribution = JointDistribution(States(sizes), parents, tables)
    np.testing.assert_allclose(choose(distribution, loss).expected_loss, expected.min(axis=1), atol=1e-12)
    compare_all_only_up_to(monkeypatch, 1)
    choice = choose(distribution, loss)
    np.testing.assert_allclose(choice.expected_loss, expected[np.arange(4), truth.index_of(choice.codes)], atol=1e-9)


def test_known_states_are_predicted(monkeypatch):
    sizes, parents, tables = random_network(3, 5, n_rows=6, zeros=0.0)
    joint = JointDistribution(States(sizes), parents, tables).given({"A": "s0", "C": "s1"})
    compare_all_only_up_to(monkeypatch, 1)
    choice = choose(joint, "jaccard")
    assert not choice.codes[:, 0].any()
    assert choice.codes[:, 2].all()


def test_ties_and_empty_truth():
    nothing = JointDistribution(States([2, 2]), [(), ()], [np.array([[0.0, -np.inf]])] * 2)
    choice = choose(nothing, "jaccard")
    assert choice.codes.tolist() == [[0, 0]]
    assert choice.expected_loss.tolist() == [0.0]
    assert choose(nothing.rows(slice(0, 0)), "jaccard").codes.shape == (0, 2)


@pytest.mark.parametrize(
    ("loss", "complaint"),
    [
        (JaccardLoss(positive="s7"), "positive='s7'.*'A'"),
        (JaccardLoss(positive=["s1"]), r"positive=\['s1'\].* 2 class variables"),
        (JaccardLoss(n_samples=0), "n_samples=0"),
    ],
)
def test_losses_that_do_not_fit(loss, complaint):
    distribution = JointDistribution(States([2, 2]), [(), ()], [np.log([[0.2, 0.8]])] * 2)
    with pytest.raises(ValueError, match=complaint):
        distribution.decide(loss)


def test_three_states_are_refused():
    distribution = JointDistribution(States([2, 3]), [(), ()], [np.log([[0.5, 0.5]]), np.log([[0.2, 0.3, 0.5]])])
    with pytest.raises(ValueError, match=r"Jaccard.*'B' has 3 states \(s0, s1, s2\).*'hamming'"):
        distribution.decide("jaccard")


@pytest.mark.parametrize(
    "model", [BinaryRelevance(), ClassifierChain(loss="hamming"), ClassPowerset(), ChainEnsemble(n_chains=2)]
)
def test_classifiers(model):
    data = make_network(200, n_states=2, random_state=1)
    model = model.fit(data.X, data.Y)
    X = data.X[:10]
    joint = model.predict_joint(X)
    np.testing.assert_array_equal(model.predict(X, loss="jaccard"), joint.decide("jaccard").outcome)
    risk = model.expected_loss(X, "jaccard")
    assert (risk >= model.expected_loss(X, "f1_samples") - 1e-12).all()  # J <= F
    assert (risk <= resolve("jaccard").expected(joint, choose(joint, FMeasure()).codes) + 1e-12).all()
