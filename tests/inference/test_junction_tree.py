import tracemalloc
from itertools import permutations
from math import prod
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import Enumeration, elimination_cells
from pmdc.inference import JunctionTree, family_scopes, kernels
from pmdc.inference.batches import _SPARE
from pmdc.inference.elimination import interaction_graph
from pmdc.inference.evidence import ImpossibleEvidenceError
from pmdc.inference.junction_tree import MEMORY_BUDGET, NetworkTooWideError
from problems import factor_products, networks, possible_evidence, random_parents, random_tables, split_factor

pytestmark = pytest.mark.filterwarnings("error")


@settings(max_examples=150, deadline=None)
@given(networks())
def test_answers_are_those_of_enumeration(network):
    sizes, parents, tables = network
    tree, truth = JunctionTree(sizes, family_scopes(parents)), Enumeration.of_network(*network)
    for marginal, expected in zip(tree.marginals(tables), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)
        np.testing.assert_allclose(marginal.sum(axis=1), 1.0, atol=1e-12)
    for k, joint in enumerate(tree.factor_marginals(tables)):
        np.testing.assert_allclose(joint, truth.joint([*parents[k], k]), atol=1e-10)
    codes, log_prob = tree.mode(tables)
    np.testing.assert_allclose(log_prob, truth.log_prob.max(axis=1), rtol=1e-12, atol=1e-12)
    chosen = truth.log_prob[np.arange(len(codes)), truth.index_of(codes)]
    np.testing.assert_allclose(log_prob, chosen, rtol=1e-12, atol=1e-12)


# Factors that are not one conditional table for each class variable ---------------------------------------------


def assert_answers_are_those_of_enumeration(sizes, scopes, tables, evidence=None):
    """Marginals, factor marginals, log evidence, mode, most probable outcomes, pairs and their mode."""
    tree, truth = JunctionTree(sizes, scopes), Enumeration.of_factors(sizes, scopes, tables)
    log_evidence = np.zeros(len(tables[0]))
    if evidence is not None:
        log_evidence = truth.log_marginal(evidence)
        truth = truth.given(evidence)
    for marginal, expected in zip(tree.marginals(tables, evidence), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)
    for joint, scope in zip(tree.factor_marginals(tables, evidence), scopes, strict=True):
        np.testing.assert_allclose(joint, truth.joint(scope), atol=1e-10)
    np.testing.assert_allclose(tree.log_evidence(tables, evidence), log_evidence, rtol=1e-10, atol=1e-10)

    k = min(5, prod(sizes))
    best = -np.sort(-truth.log_prob, axis=1)[:, :k] + log_evidence[:, None]
    codes, log_prob = tree.mode(tables, evidence)
    np.testing.assert_allclose(log_prob, best[:, 0], rtol=1e-10, atol=1e-10)
    chosen = truth.log_prob[np.arange(len(codes)), truth.index_of(codes)] + log_evidence
    np.testing.assert_allclose(log_prob, chosen, rtol=1e-10, atol=1e-10)
    outcomes, log_prob = tree.top(tables, k, evidence)
    np.testing.assert_allclose(log_prob, best, rtol=1e-10, atol=1e-10)
    for row, found in enumerate(outcomes):
        numbers = truth.index_of(found)
        assert len(set(numbers.tolist())) == k
        np.testing.assert_allclose(
            truth.log_prob[row, numbers] + log_evidence[row], log_prob[row], rtol=1e-10, atol=1e-10
        )

    pair = [0, len(sizes) - 1] if len(sizes) > 1 else [0]
    joint = tree.variant(together=pair).joint(tables, [pair], evidence)[0]
    np.testing.assert_allclose(joint, truth.joint(pair), atol=1e-10)
    with np.errstate(divide="ignore"):
        best_pair = np.log(truth.joint(pair).reshape(len(joint), -1).max(axis=1)) + log_evidence
    _, log_prob = tree.variant(last=pair).marginal_mode(tables, evidence)
    np.testing.assert_allclose(log_prob, best_pair, rtol=1e-10, atol=1e-10)


@settings(max_examples=150, deadline=None)
@given(factor_products(), st.integers(0, 2**32 - 1))
def test_answers_for_any_factors_are_those_of_enumeration(problem, seed):
    assert_answers_are_those_of_enumeration(*problem)
    truth = Enumeration.of_factors(*problem)
    evidence = possible_evidence(np.random.default_rng(seed), truth.outcomes, truth.log_prob)
    assert_answers_are_those_of_enumeration(*problem, evidence)


def block_problem(n_rows=3):
    """P(Y0) P(Y1) P(Y2, Y3 | Y0, Y1) P(Y4 | Y3), in which the block (Y2, Y3) has one table."""
    rng = np.random.default_rng(0)
    sizes, scopes = [2, 3, 2, 3, 2], [(0,), (1,), (0, 1, 2, 3), (3, 4)]
    weights = [rng.random((n_rows, *(sizes[v] for v in scope))) for scope in scopes]
    weights[2] /= weights[2].sum(axis=(3, 4), keepdims=True)
    for i in (0, 1, 3):
        weights[i] /= weights[i].sum(axis=-1, keepdims=True)
    return sizes, scopes, [np.log(table) for table in weights]


@pytest.mark.parametrize("evidence", [None, [-1, -1, 1, -1, -1], [-1, 2, 1, 0, -1], [-1, -1, -1, 2, 0]])
def test_a_block_of_class_variables_in_one_factor(evidence):
    sizes, scopes, tables = block_problem()
    known = None if evidence is None else np.array([evidence, [-1] * 5, evidence])
    assert_answers_are_those_of_enumeration(sizes, scopes, tables, known)


@pytest.mark.parametrize("evidence", [None, [-1, -1, 1, -1, -1], [1, -1, -1, 0, -1]])
def test_a_factor_that_is_split_in_two(evidence):
    sizes, scopes, tables = block_problem()
    whole = JunctionTree(sizes, scopes)
    rest, part = split_factor(tables[2], scopes[2], (1, 3))
    split_scopes, split_tables = [*scopes, (1, 3)], [*tables[:2], rest, tables[3], part]
    known = None if evidence is None else np.array([evidence] * 3)
    assert_answers_are_those_of_enumeration(sizes, split_scopes, split_tables, known)
    split = JunctionTree(sizes, split_scopes)
    assert split.order == whole.order
    for one, other in zip(whole.marginals(tables, known), split.marginals(split_tables, known), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


@pytest.mark.parametrize("length", [30, 1_100])
def test_totals_beyond_the_largest_float(length):
    """A chain of factors that are one everywhere: there are 2 ** 1100 outcomes, all of the same weight."""
    tree = JunctionTree([2] * length, [(k, k + 1) for k in range(length - 1)])
    log_total, marginals = tree.weighted_marginals([np.zeros((3, 2, 2))] * (length - 1))
    np.testing.assert_allclose(log_total, length * np.log(2), rtol=1e-12)
    np.testing.assert_allclose(marginals, 0.5)


def test_samples_of_a_block_have_its_frequencies():
    sizes, scopes, tables = block_problem(n_rows=1)
    evidence = np.array([[-1, -1, 1, -1, 0]])
    draws = JunctionTree(sizes, scopes).sample(tables, 40_000, np.random.RandomState(0), evidence)[0]
    truth = Enumeration.of_factors(sizes, scopes, tables).given(evidence)
    assert (draws[:, [2, 4]] == [1, 0]).all()
    frequencies = np.bincount(truth.index_of(draws), minlength=prod(sizes)) / len(draws)
    np.testing.assert_allclose(frequencies, truth.prob[0], atol=0.01)


# The tree -------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(networks().map(lambda network: (network[0], family_scopes(network[1]))) | factor_products())
def test_cliques_form_a_junction_tree(problem):
    sizes, scopes = problem[:2]
    tree = JunctionTree(sizes, scopes)
    for i, scope in enumerate(scopes):
        (home,) = [clique for clique in tree.cliques if i in clique.factors]
        assert set(scope) <= set(home.scope)
    for clique in tree.cliques:
        assert clique.parent is None or set(clique.separator) <= set(tree.cliques[clique.parent].scope)
    assert tree.width == max(len(clique.scope) for clique in tree.cliques) - 1


@settings(max_examples=30, deadline=None)
@given(networks())
def test_neither_chunks_nor_threads_matter(network):
    sizes, parents, _ = network
    n_rows = 41
    tables = random_tables(np.random.default_rng(0), sizes, parents, n_rows, zeros=0.2, tiny=0.2)
    whole = JunctionTree(sizes, family_scopes(parents))

    def answers(tree):
        random = np.random.RandomState(0)
        return [*tree.marginals(tables), *tree.mode(tables), *tree.top(tables, 1), tree.sample(tables, 3, random)]

    assert whole._schedule(n_rows, whole._n_lines)[1] == 1
    expected = answers(whole)
    with patch("pmdc.inference.junction_tree._WORK_FOR_THREADS", 0):
        for rows in (1, 4, 16, None):
            budget = MEMORY_BUDGET if rows is None else rows * whole.bytes_per_row
            tree = JunctionTree(sizes, family_scopes(parents), memory_budget=budget)
            block, n_threads = tree._schedule(n_rows, tree._n_lines)
            assert rows is None or block * n_threads <= rows
            for one, other in zip(expected, answers(tree), strict=True):
                np.testing.assert_array_equal(one, other)


def test_products_below_the_smallest_float_are_told_apart():
    """Each outcome has a probability of about 2 ** -1200."""
    tables = [np.log([[0.5, 0.5]])] * 1_199 + [np.log([[0.49, 0.51]])]
    codes, log_prob = JunctionTree([2] * 1_200, [(k,) for k in range(1_200)]).mode(tables)
    assert codes.sum() == 1
    assert codes[0, -1] == 1
    assert log_prob == pytest.approx(1_199 * np.log(0.5) + np.log(0.51))


def test_ties_go_to_the_first_state():
    sizes = [3, 2, 4]
    even = [np.full((5, size), -np.log(size)) for size in sizes]
    tree = JunctionTree(sizes, [(0,), (1,), (2,)])
    assert not tree.mode(even)[0].any()
    tied = np.log(np.tile([0.2, 0.4, 0.4], (5, 1)))
    assert tree.mode([tied, *even[1:]])[0].tolist() == [[1, 0, 0]] * 5


def test_a_tie_in_a_chain_is_broken_from_the_end_of_the_elimination_order():
    tree = JunctionTree([2, 2], [(0,), (0, 1)])
    opposite = [np.log([[0.5, 0.5]]), np.array([[[-np.inf, 0.0], [0.0, -np.inf]]])]
    codes, _ = tree.mode(opposite)
    assert codes[0, tree.order[-1]] == 0
    assert codes[0, tree.order[0]] == 1


def test_what_differs_by_rounding_is_a_tie():
    """0.1 + 0.2 is not 0.3, but the first of two equal products is taken all the same."""
    tables = [np.log([[0.3, 0.1, 0.6]] * 2), np.log([[[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]] * 2)]
    tables[1][1, 2] += 1e-14
    codes, _ = JunctionTree([3, 2], [(0,), (0, 1)]).mode(tables)
    assert codes[0].tolist() == codes[1].tolist()


def test_chain_of_sixty():
    rng = np.random.default_rng(3)
    length, n_rows = 60, 20
    parents = [(), *((k - 1,) for k in range(1, length))]
    tables = random_tables(rng, [2] * length, parents, n_rows, zeros=0.1, tiny=0.1)
    tree = JunctionTree([2] * length, family_scopes(parents))
    assert tree.width == 1
    forward = np.exp(tables[0])
    best = tables[0]
    marginals = tree.marginals(tables)
    np.testing.assert_allclose(marginals[0], forward, atol=1e-12)
    for k in range(1, length):
        forward = np.einsum("ni,nij->nj", forward, np.exp(tables[k]))
        best = (best[:, :, None] + tables[k]).max(axis=1)
        np.testing.assert_allclose(marginals[k], forward, atol=1e-12)
    np.testing.assert_allclose(tree.mode(tables)[1], best.max(axis=1), rtol=1e-12)


def test_star_of_many_children():
    rng = np.random.default_rng(4)
    parents = [(), *[(0,)] * 50]
    tables = random_tables(rng, [3] * 51, parents, 7)
    root = np.exp(tables[0])
    for k, marginal in enumerate(JunctionTree([3] * 51, family_scopes(parents)).marginals(tables)[1:], start=1):
        np.testing.assert_allclose(marginal, np.einsum("ni,nij->nj", root, np.exp(tables[k])), atol=1e-12)


def test_parts_without_a_connection_do_not_matter_to_each_other():
    rng = np.random.default_rng(5)
    sizes, parents = [2, 3, 4, 2], [(), (0,), (), (2,)]
    tables = random_tables(rng, sizes, parents, 6)
    marginals = JunctionTree(sizes, family_scopes(parents)).marginals(tables)
    alone = JunctionTree(sizes[2:], [(0,), (0, 1)]).marginals(tables[2:])
    for one, other in zip(marginals[2:], alone, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


def test_each_kernel_is_compiled_for_one_signature():
    """Whatever the memory layout and type of the tables; compiling is most of the cost of a first prediction."""
    rng = np.random.default_rng(7)
    sizes, parents = [2, 3, 2], [(), (0,), (0, 1)]
    tree = JunctionTree(sizes, family_scopes(parents))
    tables = random_tables(rng, sizes, parents, 9, tiny=0.3)
    read_only = [table.copy() for table in tables]
    for table in read_only:
        table.flags.writeable = False
    evidence = np.full((9, 3), -1)
    evidence[:4, 1] = 2
    for some in (tables, read_only, [np.asfortranarray(t) for t in tables], [t.astype(np.float32) for t in tables]):
        for known in (None, evidence, np.asfortranarray(evidence)):
            tree.marginals(some, known)
            tree.top(some, 2, known)
            tree.sample(some, 2, np.random.RandomState(0), known)
    for name in ("collect", "collect_log", "distribute", "draw", "search"):
        assert len(getattr(getattr(kernels, name), "signatures", [1])) == 1  # no attribute without compilation


def test_the_best_outcomes_take_one_sweep():
    sizes, scopes, tables = block_problem(n_rows=7)
    tree = JunctionTree(sizes, scopes)
    expected = tree.mode(tables)[0]
    with patch("pmdc.inference.kernels.collect_log", side_effect=kernels.collect_log) as sweep:
        assert (tree.top(tables, 4)[0][:, 0] == expected).all()
    assert sweep.call_count == 1


def test_no_rows():
    tree = JunctionTree([2, 3], [(0,), (0, 1)])
    tables = [np.empty((0, 2)), np.empty((0, 2, 3))]
    assert [m.shape for m in tree.marginals(tables)] == [(0, 2), (0, 3)]
    assert [m.shape for m in tree.factor_marginals(tables)] == [(0, 2), (0, 2, 3)]
    codes, log_prob = tree.mode(tables)
    assert codes.shape == (0, 2)
    assert log_prob.shape == (0,)


def test_memory_stays_within_the_estimate():
    rng = np.random.default_rng(6)
    sizes, parents = [2, 3, 4, 2, 3, 4, 2, 3], random_parents(rng, 8, 0.5)
    tree = JunctionTree(sizes, family_scopes(parents))
    n_rows = 64
    tables = random_tables(rng, sizes, parents, n_rows)
    for question in (tree.marginals, tree.factor_marginals, tree.mode):
        question(tables)  # imports and compiles
        _SPARE.clear()
        tracemalloc.start()
        answer = question(tables)
        peak = tracemalloc.get_traced_memory()[1] - sum(array.nbytes for array in answer)
        tracemalloc.stop()
        assert peak <= n_rows * tree.bytes_per_row + 100_000  # the latter for Python's own objects and threads


def test_too_wide_is_refused_with_the_numbers():
    parents = [()] * 39 + [tuple(range(39))]
    with pytest.raises(NetworkTooWideError) as refusal:
        JunctionTree([2] * 40, family_scopes(parents))
    message = str(refusal.value)
    assert "width 39" in message
    assert f"{8 * (11 * 2**40 + 231):,} bytes for each row" in message
    assert "1,073,741,824 bytes" in message
    assert "max_parents" in message


def test_the_budget_decides_what_is_too_wide():
    tree = JunctionTree([4, 4, 4], [(0,), (0, 1), (0, 1, 2)])
    JunctionTree(tree.sizes, tree.scopes, memory_budget=tree.bytes_per_row)
    with pytest.raises(NetworkTooWideError, match=f"needs {tree.bytes_per_row:,} bytes"):
        JunctionTree(tree.sizes, tree.scopes, memory_budget=tree.bytes_per_row - 1)


@pytest.mark.parametrize(
    ("sizes", "parents"),
    [
        ([3, 2, 5, 2, 2, 5], [(), (0,), (), (1,), (0, 2), (3, 4)]),  # min-fill finds the optimum, 76 cells
        ([2, 3, 2, 2, 3, 2], [(), (0,), (0,), (2,), (), (1, 3)]),  # min-weight finds the optimum, 41 cells
    ],
)
def test_the_cheaper_order_is_taken(sizes, parents):
    def cells(order):
        return elimination_cells(sizes, interaction_graph(6, family_scopes(parents)), order)

    with patch("pmdc.inference.elimination.OPTIMAL_UP_TO", 0):  # by the greedy rules alone
        tree = JunctionTree(sizes, family_scopes(parents))
    assert cells(tree.order) == min(cells(order) for order in permutations(range(6)))
    assert cells(tree.order) == sum(prod(sizes[v] for v in clique.scope) for clique in tree.cliques)


def largest(tree):
    """The most class variables and the most cells of a clique."""
    return max(len(c.scope) for c in tree.cliques), max(prod(tree.sizes[v] for v in c.scope) for c in tree.cliques)


@settings(max_examples=100, deadline=None)
@given(networks(), st.randoms(use_true_random=False))
def test_a_given_order_is_used_unless_another_is_cheaper_and_no_larger(network, random):
    sizes, parents, tables = network
    scopes = family_scopes(parents)
    order = random.sample(range(len(sizes)), len(sizes))
    free, tree = JunctionTree(sizes, scopes), JunctionTree(sizes, scopes, order=order)
    graph = interaction_graph(len(sizes), scopes)
    assert tree.cells <= elimination_cells(sizes, graph, order)
    given = scopes_along(graph, order)
    assert largest(tree)[0] <= max(map(len, given))
    assert largest(tree)[1] == tree.largest_clique <= max(prod(sizes[v] for v in scope) for scope in given)
    if all(own <= limit for own, limit in zip(largest(free), largest(tree), strict=True)):
        assert tree.order == free.order
    assert JunctionTree(sizes, scopes, order=tree.order).order == tree.order
    truth = Enumeration.of_network(*network)
    for marginal, expected in zip(tree.marginals(tables), truth.marginals(), strict=True):
        np.testing.assert_allclose(marginal, expected, atol=1e-10)
    pair = sorted(random.sample(range(len(sizes)), min(2, len(sizes))))
    joint = tree.variant(together=pair).joint(tables, [pair])[0]
    np.testing.assert_allclose(joint, truth.joint(pair), atol=1e-10)
    last = tree.variant(last=pair)
    assert set(last.order[len(sizes) - len(pair) :]) == set(pair)


def scopes_along(graph, order):
    rest, found = {variable: set(others) for variable, others in graph.items()}, []
    for variable in order:
        separator = rest.pop(variable)
        found.append({variable, *separator})
        for v in separator:
            rest[v] = (rest[v] | separator) - {v, variable}
    return found


@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2], [0, 1, 2]])
def test_a_wrong_order_is_refused(order):
    with pytest.raises(ValueError, match=r"order=.*each of the 2 class variables once"):
        JunctionTree([2, 2], [(0,), (0, 1)], order=order)


@pytest.mark.parametrize(
    ("sizes", "scopes", "complaint"),
    [
        ([], [], "at least one class variable"),
        ([2, 0], [(0,), (1,)], "at least one state"),
        ([2, 2], [(0,), ()], r"scopes\[1\]"),
        ([2, 2], [(0,), (1, 1)], r"scopes\[1\]"),
        ([2, 2], [(0,), (1, 2)], r"scopes\[1\]"),
        ([2, 2], [(0,), (-1,)], r"scopes\[1\]"),
        ([2, 2, 2], [(0,), (0,)], r"\[1, 2\] are in none"),
        ([2], [], r"\[0\] are in none"),
    ],
)
def test_impossible_scopes(sizes, scopes, complaint):
    with pytest.raises(ValueError, match=complaint):
        JunctionTree(sizes, scopes)


def test_impossible_evidence_is_refused():
    tree = JunctionTree([2, 2], [(0,), (0, 1)])
    with np.errstate(divide="ignore"):
        tables = [np.log([[1.0, 0.0]] * 2), np.log([[[1.0, 0.0], [0.5, 0.5]]] * 2)]
    evidence = np.array([[-1, -1], [-1, 1]])
    assert tree.log_evidence(tables, evidence).tolist() == [0.0, -np.inf]
    for question in (tree.marginals, tree.mode, tree.marginal_mode, lambda *given: tree.top(given[0], 2, given[1])):
        with pytest.raises(ImpossibleEvidenceError, match="row 1"):
            question(tables, evidence)


def test_wrong_tables():
    tree = JunctionTree([2, 2], [(0,), (0, 1)])
    good = [np.log([[0.4, 0.6]] * 3), np.log([[[0.5, 0.5], [0.2, 0.8]]] * 3)]
    with pytest.raises(ValueError, match="tables has 1 entries"):
        tree.marginals(good[:1])
    with pytest.raises(ValueError, match=r"tables\[1\] has shape \(3, 2\).*must be \(3, 2, 2\)"):
        tree.mode([good[0], good[0]])
    for wrong in (np.nan, np.inf, 0.5):
        bad = [good[0], good[1].copy()]
        bad[1][2, 1, 1] = wrong
        for question in (tree.marginals, tree.mode):
            with pytest.raises(ValueError, match=r"tables\[1\]"):
                question(bad)
    unnormalised = [good[0].copy(), good[1]]
    unnormalised[0][1] = np.log([0.4, 0.5])
    with pytest.raises(ValueError, match=r"row 1 add up to 0\.9"):
        tree.marginals(unnormalised)
    with pytest.raises(ValueError, match="row 0 every outcome has probability zero"):
        tree.mode([np.full((3, 2), -np.inf), good[1]])
