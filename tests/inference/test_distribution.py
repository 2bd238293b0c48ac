import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chisquare

from oracles import Enumeration
from pmdc.inference import JointDistribution, JunctionTree
from pmdc.inference.junction_tree import NetworkTooWideError
from pmdc.table.classes import ClassTable
from problems import States, networks, random_parents, random_tables

pytestmark = pytest.mark.filterwarnings("error")


@settings(max_examples=100, deadline=None)
@given(networks(max_variables=5))
def test_answers_are_those_of_enumeration(network):
    sizes, parents, tables = network
    table = States(sizes)
    distribution, truth = JointDistribution(table, parents, tables), Enumeration.of_network(*network)
    n_rows = len(distribution)
    for marginal, expected in zip(distribution.marginals(), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)
    np.testing.assert_allclose(distribution.entropy(), truth.entropy(), atol=1e-10)
    total = np.zeros(n_rows)
    for outcome, expected in zip(truth.outcomes, truth.log_prob.T, strict=True):
        log_prob = distribution.log_prob(table.decode(np.tile(outcome, (n_rows, 1))))
        np.testing.assert_allclose(log_prob, expected, rtol=1e-12)
        total += np.exp(log_prob)
    np.testing.assert_allclose(total, 1.0, atol=1e-10)
    mode = distribution.mode()
    np.testing.assert_array_equal(mode.log_prob, distribution.log_prob(mode.outcome))
    np.testing.assert_allclose(mode.log_prob, truth.log_prob.max(axis=1), rtol=1e-12, atol=1e-12)


def test_samples_follow_the_distribution():
    rng = np.random.default_rng(1)
    sizes, parents = [2, 3, 2, 2], [(2,), (0, 3), (), (2,)]
    tables = random_tables(rng, sizes, parents, 3, zeros=0.15)
    table = States(sizes)
    truth = Enumeration.of_network(sizes, parents, tables)
    draws = JointDistribution(table, parents, tables).sample(20_000, random_state=0)
    assert draws.shape == (3, 20_000, 4)
    for row, prob in enumerate(truth.prob):
        drawn = np.bincount(truth.index_of(table.encode(draws[row])), minlength=len(prob))
        assert not drawn[prob == 0].any()
        assert chisquare(drawn[prob > 0], 20_000 * prob[prob > 0]).pvalue > 1e-3


def test_samples_are_reproducible_and_typed():
    tables = [np.log([[0.4, 0.6]]), np.log([[0.1, 0.9]])]
    same_kind = JointDistribution(States([2, 2], [np.array(["a", "b"]), np.array(["long", "x"])]), [(), ()], tables)
    np.testing.assert_array_equal(same_kind.sample(9, random_state=5), same_kind.sample(9, random_state=5))
    assert (same_kind.sample(9, random_state=5) != same_kind.sample(9, random_state=6)).any()
    assert same_kind.sample(2).dtype == np.dtype("<U4")
    mixed = JointDistribution(States([2, 2], [np.array([0, 1]), np.array(["x", "y"])]), [(), ()], tables)
    assert mixed.sample(2).dtype == object
    assert isinstance(mixed.sample(1, random_state=0)[0, 0, 0], int)
    assert mixed.sample(0).shape == (1, 0, 2)
    with pytest.raises(ValueError, match="n=-1"):
        mixed.sample(-1)


def test_single_class_variable():
    probabilities = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]])
    with np.errstate(divide="ignore"):
        distribution = JointDistribution(ClassTable.fit(np.array(["x", "y", "z"])), [()], [np.log(probabilities)])
    np.testing.assert_allclose(distribution.marginals()[0], probabilities, atol=1e-15)
    assert distribution.mode().outcome.tolist() == ["y", "z"]
    np.testing.assert_allclose(np.exp(distribution.log_prob(np.array(["z", "z"]))), [0.3, 1.0])
    np.testing.assert_allclose(distribution.entropy()[1], 0.0, atol=1e-15)


def test_no_rows():
    distribution = JointDistribution(States([2, 3]), [(), (0,)], [np.empty((0, 2)), np.empty((0, 2, 3))])
    assert len(distribution) == 0
    assert distribution.entropy().shape == (0,)
    assert distribution.sample(4).shape == (0, 4, 2)
    assert distribution.mode().outcome.shape == (0, 2)


def test_unknown_states_have_probability_zero_and_a_warning():
    pd = pytest.importorskip("pandas")
    Y = pd.DataFrame({"mood": ["bad", "good"], "size": [1, 2]})
    distribution = JointDistribution(ClassTable.fit(Y), [(), ()], [np.log([[0.5, 0.5]] * 2)] * 2)
    swapped = pd.DataFrame({"size": [1, 2], "mood": ["awful", "good"]})
    with pytest.warns(UserWarning, match=r"'mood': 1 row.*'awful'.*categorical dtype"):
        log_prob = distribution.log_prob(swapped)
    np.testing.assert_allclose(log_prob, [-np.inf, np.log(0.25)])
    with pytest.warns(UserWarning, match=r"'size': 2 row.*\(7, 8\)"):
        assert np.isneginf(distribution.log_prob(Y.assign(size=[7, 8]))).all()


def test_outcomes_keep_their_container():
    pd = pytest.importorskip("pandas")
    Y = pd.DataFrame({"mood": pd.Categorical(["bad", "good"]), "size": [1, 2]})
    distribution = JointDistribution(ClassTable.fit(Y), [(), ()], [np.log([[0.3, 0.7]] * 2)] * 2)
    outcome = distribution.mode().outcome
    assert outcome.to_dict("list") == {"mood": ["good", "good"], "size": [2, 2]}
    assert outcome["mood"].dtype == Y["mood"].dtype


def test_rows_must_match():
    distribution = JointDistribution(States([2]), [()], [np.log([[0.3, 0.7]] * 2)])
    with pytest.raises(ValueError, match="Y has 1 rows, but the distribution has 2"):
        distribution.log_prob(np.array([["s0"]]))


def test_the_tree_is_compiled_once_and_only_when_needed():
    rng = np.random.default_rng(0)
    sizes, parents = [4] * 60, [tuple(rng.permutation(k)[:3].tolist()) for k in range(60)]
    distribution = JointDistribution(States(sizes), parents, random_tables(rng, sizes, parents, 2))
    draws = distribution.sample(1, random_state=0)[:, 0]
    assert np.isfinite(distribution.log_prob(draws)).all()
    with pytest.raises(NetworkTooWideError, match="max_parents"):
        distribution.marginals()

    tables = random_tables(rng, [2, 2], [(), (0,)], 1)
    distribution = JointDistribution(States([2, 2]), [(), (0,)], tables)
    assert distribution.junction_tree is distribution.junction_tree
    tree = JunctionTree([2, 2], [(0,), (0, 1)])
    assert JointDistribution(States([2, 2]), [(), (0,)], tables, tree).junction_tree is tree
    with pytest.raises(ValueError, match="junction_tree"):
        JointDistribution(States([2, 2]), [(), (0,)], tables, JunctionTree([2, 2], [(0,), (1,)]))


def test_wrong_tables_are_refused_at_once():
    with pytest.raises(ValueError, match=r"log_tables\[0\] has shape \(1, 3\)"):
        JointDistribution(States([2]), [()], [np.zeros((1, 3))])


@pytest.mark.parametrize(
    ("parents", "complaint"),
    [
        ([()], "parents has 1 entries"),
        ([(), (1,)], r"parents\[1\]"),
        ([(), (0, 0)], r"parents\[1\]"),
        ([(), (2,)], r"parents\[1\]"),
        ([(1,), (0,)], "cycle"),
    ],
)
def test_wrong_parents_are_refused_at_once(parents, complaint):
    tables = [np.full((1, *[2] * (len(members) + 1)), np.log(0.5)) for members in parents]
    with pytest.raises(ValueError, match=complaint):
        JointDistribution(States([2, 2]), parents, tables)


def test_pickle_and_repr():
    rng = np.random.default_rng(0)
    sizes, parents = [2] * 9, random_parents(rng, 9, 0.3)
    distribution = JointDistribution(States(sizes), parents, random_tables(rng, sizes, parents, 2))
    distribution.marginals()
    copy = pickle.loads(pickle.dumps(distribution))
    np.testing.assert_array_equal(copy.marginals()[8], distribution.marginals()[8])
    assert repr(copy) == "JointDistribution(P(A, B, C, D, E, F, G, H, ... | x), 2 rows)"
