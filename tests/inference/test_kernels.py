"""Each compiled kernel beside a plain twin that uses the cliques of the tree, dictionaries and `itertools.product`."""

from itertools import product

import numpy as np
import pytest

from pmdc.inference import JunctionTree, family_scopes, kernels
from problems import random_parents, random_tables

pytestmark = pytest.mark.filterwarnings("ignore:(invalid|divide):RuntimeWarning")  # infinities, with NUMBA_DISABLE_JIT
EXACT = {"rtol": 1e-12, "atol": 1e-12}
N_ROWS = 5


def configurations(tree, variables):
    return product(*(range(tree.sizes[v]) for v in variables))


def twin_collect(tree, tables, n_summed):
    """Log totals, log messages and conditionals by class variable and configuration; sums, then maxima."""
    log_total, messages, conditionals = np.zeros(N_ROWS), {}, {}
    for c, variable in enumerate(tree.order):
        clique = tree.cliques[variable]
        for separator in configurations(tree, clique.separator):
            terms = np.zeros((tree.sizes[variable], N_ROWS))
            for state in range(tree.sizes[variable]):
                code = dict(zip(clique.scope, (state, *separator), strict=True))
                for i in clique.factors:
                    terms[state] += tables[i][(slice(None), *(code[v] for v in tree.scopes[i]))]
                for child in clique.children:
                    terms[state] += messages[child, tuple(code[v] for v in tree.cliques[child].separator)]
            message = np.logaddexp.reduce(terms) if c < n_summed else terms.max(axis=0)
            messages[variable, separator] = message
            shift = np.where(np.isneginf(message), 0.0, message)
            conditionals[variable, separator] = np.exp(terms - shift)
            if not clique.separator:
                log_total += message
    return log_total, messages, conditionals


def twin_beliefs(tree, conditionals):
    """The distribution of each clique, by class variable and configuration of the clique's scope."""
    beliefs = {}
    for variable in reversed(tree.order):
        clique = tree.cliques[variable]
        for separator in configurations(tree, clique.separator):
            above = np.ones(N_ROWS)
            if clique.parent is not None:
                scope = tree.cliques[clique.parent].scope
                axes = [scope.index(v) for v in clique.separator]
                above = sum(
                    beliefs[clique.parent, cell]
                    for cell in configurations(tree, scope)
                    if tuple(cell[axis] for axis in axes) == separator
                )
            for state in range(tree.sizes[variable]):
                beliefs[variable, (state, *separator)] = conditionals[variable, separator][state] * above
    return beliefs


def lines_of(tree, conditionals):
    """The layout of the kernels."""
    cells = [
        conditionals[variable, separator]
        for variable in tree.order
        for separator in configurations(tree, tree.cliques[variable].separator)
    ]
    return np.concatenate(cells)


def problem(seed, zeros=0.0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 6).tolist()
    parents = random_parents(rng, 6, rng.choice([0.2, 0.5]))
    return JunctionTree(sizes, family_scopes(parents)), random_tables(rng, sizes, parents, N_ROWS, zeros)


def loaded(tree, tables, logs):
    lines = np.full((tree._n_lines, N_ROWS), np.nan)
    lost = tree._load(tables, None, slice(0, N_ROWS), lines, logs)
    return lines, lost, np.full((tree.cells, N_ROWS), np.nan), np.zeros(N_ROWS)


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(15))
def test_collect(seed, zeros):
    tree, tables = problem(seed, zeros)
    lines, lost, conditional, log_total = loaded(tree, tables, logs=False)
    kernels.collect(*tree._index, lines, conditional, log_total, lost)
    expected_total, _, expected = twin_collect(tree, tables, len(tree.order))
    np.testing.assert_allclose(log_total, expected_total, **EXACT)
    np.testing.assert_allclose(conditional, lines_of(tree, expected), **EXACT)
    assert not lost.any()


def test_collect_marks_only_rows_with_an_underflow():
    tree = JunctionTree([2, 2], [(0,), (0,), (0, 1)])
    with np.errstate(divide="ignore"):
        tables = [np.log([[0.5, 0.5]] * N_ROWS), np.zeros((N_ROWS, 2)), np.log([[[0.5, 0.5]] * 2] * N_ROWS)]
        tables[0][1] = np.log([1e-200, 1.0])
        tables[1][1] = np.log([1e-200, 1.0])
        tables[0][2] = np.log([0.0, 1.0])
    lines, lost, conditional, log_total = loaded(tree, tables, logs=False)
    kernels.collect(*tree._index, lines, conditional, log_total, lost)
    assert lost.tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("shift", [0.0, -2000.0])
@pytest.mark.parametrize("n_summed", [6, 3, 0])
@pytest.mark.parametrize("seed", range(10))
def test_collect_log(seed, n_summed, shift):
    tree, tables = problem(seed, zeros=0.3)
    tables[0] += shift
    lines, _, conditional, log_total = loaded(tree, tables, logs=True)
    kernels.collect_log(*tree._index, n_summed, lines, conditional, log_total)
    expected_total, messages, expected = twin_collect(tree, tables, n_summed)
    np.testing.assert_allclose(log_total, expected_total, **EXACT)
    if n_summed == len(tree.order):
        np.testing.assert_allclose(conditional, lines_of(tree, expected), rtol=1e-12, atol=1e-11)
    else:
        assert np.isnan(conditional).all()
    place = 0
    for variable in tree.order:
        expected = np.array([messages[variable, s] for s in configurations(tree, tree.cliques[variable].separator)])
        found = lines[place : place + len(expected)]
        if len(expected) > 1:  # up to a constant, which may be in the total already
            np.testing.assert_allclose(found - found.max(axis=0), expected - expected.max(axis=0), rtol=1e-9, atol=1e-9)
        place += len(expected)


@pytest.mark.parametrize("seed", range(15))
def test_distribute(seed):
    tree, tables = problem(seed, zeros=0.2)
    targets = [*((v,) for v in range(len(tree.sizes))), *tree.scopes]
    _, _, conditionals = twin_collect(tree, tables, len(tree.order))
    index, n_beliefs = tree._targets(targets)
    belief = np.zeros((n_beliefs, N_ROWS))
    kernels.distribute(*index, lines_of(tree, conditionals), belief)
    expected = twin_beliefs(tree, conditionals)
    place = tree._n_messages
    for target in targets:
        scope = next(tree.cliques[v].scope for v in tree.order if set(target) <= set(tree.cliques[v].scope))
        sums = {states: np.zeros(N_ROWS) for states in configurations(tree, target)}
        for cell in configurations(tree, scope):
            sums[tuple(cell[scope.index(v)] for v in target)] += expected[scope[0], cell]
        np.testing.assert_allclose(belief[place : place + len(sums)], list(sums.values()), **EXACT)
        place += len(sums)
    assert place == n_beliefs


@pytest.mark.parametrize("seed", range(10))
def test_draw(seed):
    tree, tables = problem(seed, zeros=0.3)
    _, _, conditionals = twin_collect(tree, tables, len(tree.order))
    uniform = np.random.default_rng(seed).random((N_ROWS, 4, len(tree.order)))
    codes = np.zeros(uniform.shape, dtype=np.int64)
    kernels.draw(tree._index.cliques, *tree._strides, lines_of(tree, conditionals), uniform, codes)
    for b, m in np.ndindex(N_ROWS, 4):
        outcome = {}
        for c in reversed(range(len(tree.order))):
            clique = tree.cliques[tree.order[c]]
            prob = conditionals[tree.order[c], tuple(outcome[v] for v in clique.separator)][:, b]
            cumulative = np.cumsum(prob)
            outcome[tree.order[c]] = np.searchsorted(cumulative, uniform[b, m, c] * cumulative[-1], side="right")
        assert codes[b, m].tolist() == [outcome[v] for v in range(len(tree.sizes))]


@pytest.mark.parametrize("k", [1, 2, 7, 1000])
@pytest.mark.parametrize("seed", range(10))
def test_search(seed, k):
    tree, tables = problem(seed, zeros=0.2)
    outcomes = np.array(list(configurations(tree, range(len(tree.sizes)))))
    log_prob = sum(
        table[(slice(None), *(outcomes[:, v] for v in scope))] for scope, table in zip(tree.scopes, tables, strict=True)
    )
    k = min(k, len(outcomes))
    lines, _, conditional, log_best = loaded(tree, tables, logs=True)
    kernels.collect_log(*tree._index, 0, lines, conditional, log_best)
    codes = np.zeros((N_ROWS, k, len(tree.sizes)), dtype=np.int64)
    kernels.search(*tree._index, *tree._strides, 0, lines, 1e-12, log_best, codes)
    np.testing.assert_allclose(log_best, log_prob.max(axis=1), **EXACT)
    for b in range(N_ROWS):
        numbers = np.ravel_multi_index(codes[b].T, tree.sizes)
        assert len(set(numbers.tolist())) == k
        np.testing.assert_allclose(log_prob[b, numbers], -np.sort(-log_prob[b])[:k], **EXACT)


def test_search_takes_the_first_of_equal_states():
    tree = JunctionTree([3, 2, 4], [(0,), (0, 1), (2,)])
    tables = [np.full((N_ROWS, *shape), -np.log(shape[-1])) for shape in [(3,), (3, 2), (4,)]]
    lines, _, conditional, log_best = loaded(tree, tables, logs=True)
    lines[tree._n_messages : -1] += np.random.default_rng(0).normal(scale=1e-15, size=(13, N_ROWS))
    kernels.collect_log(*tree._index, 0, lines, conditional, log_best)
    codes = np.zeros((N_ROWS, 24, 3), dtype=np.int64)
    kernels.search(*tree._index, *tree._strides, 0, lines, 1e-12, log_best, codes)
    assert not codes[:, 0].any()
    assert all(len(set(map(tuple, row))) == 24 for row in codes.tolist())
