"""Every question about a distribution, against a list of all outcomes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from oracles import Enumeration, elimination_cells
from pmdc.baselines import BinaryRelevance
from pmdc.inference import JointDistribution, JunctionTree, OutcomeDistribution, family_scopes
from pmdc.inference.evidence import ImpossibleEvidenceError
from pmdc.inference.junction_tree import NetworkTooWideError
from pmdc.table.classes import ClassTable
from problems import States, long_networks, networks, possible_evidence, random_parents, random_tables

pytestmark = pytest.mark.filterwarnings("error")


def both(network):
    """The same distribution as a network and as a list of outcomes, and the truth."""
    sizes, parents, tables = network
    truth = Enumeration.of_network(*network)
    table = States(sizes)
    listed = OutcomeDistribution(table, truth.outcomes, truth.log_prob, np.zeros(len(truth.prob)))
    return [JointDistribution(table, parents, tables), listed], truth


def partly_listed(sizes, n_rows, rng):
    """A list of some outcomes, and the rest spread evenly over the others; with the truth."""
    truth = Enumeration(sizes, np.zeros((n_rows, int(np.prod(sizes)))))
    n_listed = int(rng.integers(1, len(truth.outcomes)))
    index = rng.permutation(len(truth.outcomes))[:n_listed]
    listed = rng.dirichlet(np.ones(n_listed + 1), size=n_rows)
    prob = np.repeat(listed[:, -1:] / (len(truth.outcomes) - n_listed), len(truth.outcomes), axis=1)
    prob[:, index] = listed[:, :-1]
    truth = Enumeration(sizes, np.log(prob))
    return OutcomeDistribution(States(sizes), truth.outcomes[index], np.log(listed[:, :-1]), listed[:, -1]), truth


def check_all(distribution, truth, rng, tolerance=1e-9):
    n_rows, n_variables = len(distribution), len(truth.sizes)
    for marginal, expected in zip(distribution.marginals(), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=tolerance)
    some = rng.permutation(n_variables)[: rng.integers(1, n_variables + 1)].tolist()
    names = [distribution.class_table.names[v] for v in some]
    np.testing.assert_allclose(distribution.marginal(names), truth.joint(some), atol=tolerance)
    np.testing.assert_allclose(distribution.entropy(), truth.entropy(), atol=1e-8)
    if n_variables > 1:
        one, other = rng.permutation(n_variables)[:2]
        names = distribution.class_table.names[one], distribution.class_table.names[other]
        expected = truth.mutual_information(one, other)
        np.testing.assert_allclose(distribution.mutual_information(*names), expected, atol=1e-8)
    check_top(distribution, truth)
    group, log_prob = distribution.group_mode_codes(some)
    table = truth.joint(some).reshape(n_rows, -1)
    place = np.ravel_multi_index(group.T, [truth.sizes[v] for v in some])
    np.testing.assert_allclose(np.exp(log_prob), table.max(axis=1), atol=tolerance)
    np.testing.assert_allclose(table[np.arange(n_rows), place], table.max(axis=1), atol=tolerance)
    codes = truth.outcomes[rng.integers(len(truth.outcomes), size=n_rows)]
    codes[rng.random(codes.shape) < 0.4] = -1
    expected = truth.log_marginal(codes)
    np.testing.assert_allclose(distribution.log_prob_codes(codes), expected, rtol=1e-8, atol=1e-8)
    weights = [rng.random(size) + 0.1 for size in truth.sizes]
    products = np.prod([w[truth.outcomes[:, k]] for k, w in enumerate(weights)], axis=0)
    total, marginals = distribution.tilted(weights)
    np.testing.assert_allclose(np.exp(total), truth.prob @ products, rtol=1e-8)
    for k, marginal in enumerate(marginals):
        expected = np.column_stack(
            [truth.prob @ (products * (truth.outcomes[:, k] == s)) for s in range(len(weights[k]))]
        )
        np.testing.assert_allclose(marginal, expected / (truth.prob @ products)[:, None], atol=1e-8)


def check_top(distribution, truth):
    n_rows = len(distribution)
    for k in {1, min(5, len(truth.outcomes)), min(60, len(truth.outcomes))}:
        codes, log_prob = distribution.top_codes(k)
        place = truth.index_of(codes.reshape(-1, codes.shape[2]).T.reshape(codes.shape[2], -1).T).reshape(n_rows, k)
        assert all(len(set(row)) == k for row in place.tolist())  # no outcome twice
        expected = -np.sort(-truth.log_prob, axis=1)[:, :k]
        np.testing.assert_allclose(log_prob, expected, rtol=1e-9, atol=1e-9)
        found = np.take_along_axis(truth.log_prob, place, axis=1)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        mode, best = distribution.mode_codes()
        np.testing.assert_array_equal(codes[:, 0], mode)
        np.testing.assert_allclose(log_prob[:, 0], best, rtol=1e-12)


@settings(max_examples=80, deadline=None)
@given(long_networks(), st.integers(0, 2**32 - 1))
def test_answers_are_those_of_enumeration(network, seed):
    distributions, truth = both(network)
    for distribution in distributions:
        check_all(distribution, truth, np.random.default_rng(seed))


@settings(max_examples=80, deadline=None)
@given(long_networks(most_outcomes=800), st.integers(0, 2**32 - 1))
def test_answers_given_evidence_are_those_of_enumeration(network, seed):
    distributions, truth = both(network)
    rng = np.random.default_rng(seed)
    evidence = possible_evidence(rng, truth.outcomes, truth.log_prob)
    for distribution in distributions:
        check_all(distribution.given_codes(evidence), truth.given(evidence), np.random.default_rng(seed))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 4), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_answers_of_a_list_with_a_rest(sizes, seed):
    rng = np.random.default_rng(seed)
    distribution, truth = partly_listed(sizes, 3, rng)
    check_all(distribution, truth, rng)
    evidence = possible_evidence(rng, truth.outcomes, truth.log_prob)
    check_all(distribution.given_codes(evidence), truth.given(evidence), rng)


def test_draws_of_a_list_with_a_rest_and_evidence():
    rng = np.random.default_rng(0)
    distribution, truth = partly_listed([3, 2, 4], 2, rng)
    evidence = np.array([[-1, 1, -1], [2, -1, -1]])
    posterior = truth.given(evidence)
    draws = distribution.given_codes(evidence).sample_codes(20_000, np.random.RandomState(0))
    check_draws(draws, posterior)


@pytest.mark.parametrize("tiny", [0.0, 0.4])
def test_draws_given_evidence(tiny):
    rng = np.random.default_rng(2)
    sizes, parents = [2, 3, 2, 2, 3], [(2,), (0, 3), (), (2,), (0, 1)]
    tables = random_tables(rng, sizes, parents, 3, zeros=0.1, tiny=tiny)
    truth = Enumeration.of_network(sizes, parents, tables)
    evidence = possible_evidence(rng, truth.outcomes, np.where(truth.log_prob > -100, truth.log_prob, -np.inf))
    draws = JointDistribution(States(sizes), parents, tables, evidence=evidence).sample_codes(
        20_000, np.random.RandomState(0)
    )
    check_draws(draws, truth.given(evidence))


def check_draws(draws, truth):
    for row, prob in enumerate(truth.prob):
        drawn = np.bincount(truth.index_of(draws[row]), minlength=len(prob))
        assert not drawn[prob == 0].any()
        likely = len(draws[row]) * prob >= 5
        counted = [*drawn[likely], drawn[~likely].sum()]
        expected = [*prob[likely], prob[~likely].sum()]
        if expected[-1] * len(draws[row]) < 5:
            counted, expected = counted[:-1], expected[:-1]
        assert chisquare(counted, np.array(expected) / np.sum(expected) * np.sum(counted)).pvalue > 1e-3


def test_evidence_of_probability_1e_minus_300_squared():
    """The product is far below the smallest float; the posterior is not."""
    tables = [np.log([[1 - 1e-300, 1e-300]]), np.log([[[1 - 1e-300, 1e-300], [0.5, 0.5]]])]
    tables.append(np.log([[[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]]]))
    distribution = JointDistribution(States([2, 2, 2]), [(), (0,), (0, 1)], tables)
    tables_2 = [tables[0], np.log([[[1 - 1e-300, 1e-300], [1e-300, 1 - 1e-300]]]), tables[2]]
    for tables in (distribution.log_tables, tables_2):
        truth = Enumeration.of_network([2, 2, 2], distribution.parents, tables)
        for evidence in ([[1, 0, -1]], [[0, 1, -1]], [[1, 1, -1]], [[1, -1, 0]], [[-1, 1, 1]]):
            posterior = JointDistribution(States([2, 2, 2]), distribution.parents, tables, evidence=np.array(evidence))
            expected = truth.given(np.array(evidence))
            for marginal, wanted in zip(posterior.marginals(), expected.marginals(), strict=True):
                np.testing.assert_allclose(marginal, wanted, rtol=1e-12)
            np.testing.assert_allclose(posterior.log_evidence, truth.log_marginal(np.array(evidence)), rtol=1e-12)


def test_small_marginals_keep_their_digits():
    tables = [np.log([[1 - 1e-200, 1e-200]]), np.log([[[1.0, 1e-80], [0.25, 0.75]]])]
    marginals = JointDistribution(States([2, 2]), [(), (0,)], tables).marginals()
    np.testing.assert_allclose(marginals[0][0, 1], 1e-200, rtol=1e-12)
    np.testing.assert_allclose(marginals[1][0, 1], 1e-80, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(networks(max_variables=6), st.integers(0, 2**32 - 1))
def test_the_best_order_is_the_best_of_all(network, seed):
    """Also where some class variables must come last."""
    from itertools import permutations

    from pmdc.inference.elimination import interaction_graph

    sizes, parents, _ = network
    scopes = family_scopes(parents)
    last = [k for k in range(len(sizes)) if np.random.default_rng(seed).random(len(sizes))[k] < 0.3]

    def cells(order):
        return elimination_cells(sizes, interaction_graph(len(sizes), scopes), order)

    tree = JunctionTree(sizes, scopes, last=last)
    assert set(tree.order[len(sizes) - len(last) :]) == set(last)
    first = [k for k in range(len(sizes)) if k not in last]
    least = min(cells((*a, *b)) for a in permutations(first) for b in permutations(last))
    assert tree.cells == cells(tree.order) == least


# What users ask -----------------------------------------------------------------------------------------------


@pytest.fixture
def distribution():
    tables = [np.log([[0.4, 0.6]] * 2), np.log([[[0.5, 0.5], [0.25, 0.75]]] * 2)]
    return JointDistribution(States([2, 2]), [(), (0,)], tables)


@pytest.mark.parametrize(
    "evidence",
    [
        {"B": "s0"},
        {"B": ["s0", "s0"]},
        {"B": np.array(["s0", "s0"])},
        {"B": ("s0", "s0")},
        {"B": "s0", "A": None},
        {"B": np.array("s0")},
        np.array([[None, "s0"], [None, "s0"]]),
    ],
)
def test_ways_to_give_evidence(distribution, evidence):
    posterior = distribution.given(evidence)
    np.testing.assert_allclose(posterior.marginal("A"), [[0.2 / 0.35, 0.15 / 0.35]] * 2)
    np.testing.assert_array_equal(posterior.marginal("B"), [[1.0, 0.0]] * 2)
    np.testing.assert_allclose(posterior.log_prob([["s0", "s0"]] * 2), np.log(0.2 / 0.35))
    assert np.isneginf(posterior.log_prob([["s0", "s1"]] * 2)).all()


def test_evidence_in_data_frames(distribution):
    for library in ("pandas", "polars"):
        frames = pytest.importorskip(library)
        posterior = distribution.given(frames.DataFrame({"B": ["s0", None]}))
        np.testing.assert_allclose(posterior.marginal("A"), [[0.2 / 0.35, 0.15 / 0.35], [0.4, 0.6]])
        series = frames.Series(["s0", "s1"])
        np.testing.assert_allclose(distribution.given({"A": series}).marginal("A"), [[1, 0], [0, 1]])


def test_evidence_adds_up(distribution):
    posterior = distribution.given({"B": ["s0", "s1"]}).given({"A": "s1"})
    np.testing.assert_array_equal(posterior.mode_codes()[0], [[1, 0], [1, 1]])
    np.testing.assert_allclose(posterior.entropy(), 0.0, atol=1e-12)
    with pytest.raises(ImpossibleEvidenceError, match="in row 1 the evidence contradicts earlier evidence"):
        distribution.given({"B": ["s0", "s1"]}).given({"B": "s0"})


@pytest.mark.parametrize(
    ("evidence", "complaint"),
    [
        ({"C": "s0"}, "given names 'C'.*'A', 'B'"),
        ({"B": "s7"}, "class variable 'B': 's7' is not among its states 's0', 's1'"),
        ({"B": ["s0", "s7"]}, "class variable 'B', row 1: 's7' is not among"),
        ({"B": np.array([["s0"], ["s0"]])}, r"given\['B'\] is of type ndarray with 2 dimension"),
        ({"B": {0: "s0", 1: "s0"}}, r"given\['B'\] is of type dict"),
        ({"B": ["s0"]}, r"given\['B'\] has 1 values, but there are 2 rows"),
        ([[None, "s0"]], "given has 1 rows.* 2"),
        ([[None, "s0"], ["s9", "s0"]], "class variable 'A', row 1: 's9' is not among"),
    ],
)
def test_wrong_evidence(distribution, evidence, complaint):
    with pytest.raises(ValueError, match=complaint):
        distribution.given(evidence)


def test_impossible_evidence():
    tables = [np.array([[0.0, -np.inf], [np.log(0.5), np.log(0.5)]])]
    for distribution in (
        JointDistribution(States([2]), [()], tables),
        OutcomeDistribution(States([2]), [[0], [1]], tables[0], np.zeros(2)),
    ):
        with pytest.raises(ImpossibleEvidenceError, match="in row 0 the evidence has probability zero"):
            distribution.given({"A": "s1"})
        assert np.isneginf(distribution.log_prob([["s1"], ["s1"]])[0])


def test_unknown_values_in_log_prob(distribution):
    np.testing.assert_allclose(distribution.log_prob([[None, "s0"], ["s1", None]]), np.log([0.35, 0.6]))
    np.testing.assert_allclose(distribution.log_prob([[None, None]] * 2), 0.0, atol=1e-15)


def test_more_outcomes_than_there_are(distribution):
    with pytest.raises(ValueError, match="k=5, but there are 4 outcomes"):
        distribution.top(5)
    with pytest.raises(ValueError, match="k=0"):
        distribution.top(0)
    top = distribution.given({"A": "s0"}).top(4)  # two of them are impossible
    np.testing.assert_allclose(np.exp(top.log_prob), [[0.5, 0.5, 0, 0]] * 2, atol=1e-15)
    assert top.outcomes[0, 0].tolist() == ["s0", "s0"]


def test_names_that_are_wrong(distribution):
    with pytest.raises(ValueError, match="variables names 'Q'"):
        distribution.marginal("Q")
    with pytest.raises(ValueError, match=r"variables=\["):
        distribution.marginal(["A", "A"])
    with pytest.raises(ValueError, match="no class variable in common"):
        distribution.mutual_information("A", ["A", "B"])


def test_groups_share_information():
    rng = np.random.default_rng(0)
    sizes, parents = [2, 3, 2, 2], [(), (0,), (0, 1), (1,)]
    distribution = JointDistribution(States(sizes), parents, random_tables(rng, sizes, parents, 2))
    both = distribution.mutual_information(["A", "D"], ["B", "C"])
    joint = distribution.marginal(["A", "D", "B", "C"])
    entropy = lambda p: -(p * np.log(p)).reshape(len(p), -1).sum(axis=1)  # noqa: E731
    expected = entropy(joint.sum(axis=(3, 4))) + entropy(joint.sum(axis=(1, 2))) - entropy(joint)
    np.testing.assert_allclose(both, expected, atol=1e-12)


def test_a_joint_table_too_wide_is_refused():
    length = 60
    parents = [(), *((k - 1,) for k in range(1, length))]
    tables = random_tables(np.random.default_rng(0), [2] * length, parents, 1)
    distribution = JointDistribution(States([2] * length), parents, tables)
    assert distribution.marginal(distribution.class_table.names[::20]).shape == (1, 2, 2, 2)
    with pytest.raises(NetworkTooWideError, match="60 class variables.*bytes for each row"):
        distribution.marginal(distribution.class_table.names)
    with pytest.raises(ValueError, match="too long"):
        distribution.enumerate()


def test_many_best_outcomes_of_a_long_chain():
    """In a chain of 300 the best outcomes are found without listing any others."""
    length = 300
    rng = np.random.default_rng(1)
    parents = [(), *((k - 1,) for k in range(1, length))]
    tables = random_tables(rng, [2] * length, parents, 2)
    distribution = JointDistribution(States([2] * length), parents, tables)
    codes, log_prob = distribution.top_codes(500)
    assert (np.diff(log_prob, axis=1) <= 0).all()
    assert all(len({tuple(c) for c in row}) == 500 for row in codes.tolist())
    # The second best must differ from the best by a change that costs least: no outcome one change away beats it.
    for row in range(2):
        flips = np.repeat(codes[row, :1], length, axis=0)
        flips[np.arange(length), np.arange(length)] ^= 1
        best = distribution.log_prob_at(np.full(length, row), flips).max()
        assert log_prob[row, 1] >= best - 1e-9
        listed = {tuple(c) for c in codes[row].tolist()}
        better = flips[distribution.log_prob_at(np.full(length, row), flips) > log_prob[row, -1] + 1e-9]
        assert all(tuple(flip) in listed for flip in better.tolist())


def test_rows_of_a_distribution():
    rng = np.random.default_rng(0)
    sizes, parents = [2, 3, 2], random_parents(rng, 3, 0.5)
    network = sizes, parents, random_tables(rng, sizes, parents, 5)
    distributions, _ = both(network)
    for distribution in distributions:
        some = distribution.rows(np.array([3, 1]))
        np.testing.assert_array_equal(some.marginals()[1], distribution.marginals()[1][[3, 1]])
        codes = np.array([[0, 1, 1], [1, 2, 0], [0, 1, 1]])
        at = distribution.log_prob_at(np.array([4, 4, 0]), codes)
        full = [distribution.log_prob_codes(np.tile(c, (5, 1))) for c in codes]
        np.testing.assert_allclose(at, [full[0][4], full[1][4], full[2][0]])


def test_evidence_of_one_row_in_an_array():
    distribution = JointDistribution(States([2]), [()], [np.log([[0.4, 0.6]])])
    np.testing.assert_array_equal(distribution.given({"A": np.array(["s1"])}).marginal("A"), [[0.0, 1.0]])


def test_evidence_of_nullable_integers_and_numbered_columns():
    pd = pytest.importorskip("pandas")
    table = ClassTable.fit(pd.DataFrame(np.array([[0, 1], [1, 0], [1, 1]])))
    distribution = JointDistribution(table, [(), ()], [np.log([[0.4, 0.6]] * 3)] * 2)
    for evidence in ({"y0": pd.array([1, None, 1], dtype="Int64")}, pd.DataFrame({0: [1, None, 1]}), {0: [1, None, 1]}):
        np.testing.assert_allclose(distribution.given(evidence).marginal("y0"), [[0, 1], [0.4, 0.6], [0, 1]])
    assert distribution.marginal([0, 1]).shape == (3, 2, 2)


def test_no_rows():
    distribution = JointDistribution(States([2, 2]), [(), (0,)], [np.empty((0, 2)), np.empty((0, 2, 2))])
    assert distribution.top(2).outcomes.shape == (0, 2, 2)
    assert distribution.mutual_information("A", "B").shape == (0,)
    assert distribution.marginal(["B", "A"]).shape == (0, 2, 2)
    for loss in ("hamming", "subset", "sub-exact", "f1_samples", "f1_macro", "f1_micro", lambda t, p: 0.0):
        assert len(distribution.decide(loss).expected_loss) == 0


def test_draws_must_be_counted_in_whole_numbers(distribution):
    for n in (2.5, "3", -1):
        with pytest.raises(ValueError, match="n=.* must be a whole number of at least 0"):
            distribution.sample(n)


def test_few_trees_are_kept():
    length = 30
    parents = [(), *((k - 1,) for k in range(1, length))]
    tables = random_tables(np.random.default_rng(0), [2] * length, parents, 1)
    distribution = JointDistribution(States([2] * length), parents, tables)
    for one in range(0, length, 2):
        for other in range(one + 3, length, 2):
            distribution.joint([one, other])
    assert len(distribution.junction_tree._variants) <= 101


def test_evidence_about_dates_of_any_library():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    dates = pd.to_datetime(["2020-01-01 00:00:00.000000001", "2021-05-05"], format="ISO8601")
    Y = pd.DataFrame({"day": dates[rng.integers(0, 2, 40)], "other": rng.integers(0, 2, 40)})
    joint = BinaryRelevance().fit(rng.normal(size=(40, 2)), Y).predict_joint(rng.normal(size=(3, 2)))
    for known in (dates[1], dates[1].to_pydatetime(), dates[1].date(), np.datetime64("2021-05-05")):
        np.testing.assert_allclose(joint.given({"day": known}).marginal("day"), [[0, 1]] * 3)
    np.testing.assert_allclose(joint.given({"day": dates[0]}).marginal("day"), [[1, 0]] * 3)
    with pytest.raises(ValueError, match="'day'.*2021-05-06"):
        joint.given({"day": dates[1].date() + pd.Timedelta(days=1)})
