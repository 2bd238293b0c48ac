"""Back-off: probabilities under configurations without rows, with one state, or lacking some."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from pmdc.candidates.families import Family
from pmdc.learners import Logistic
from pmdc.network.backoff import backoff_chains, inherited_kappas
from pmdc.network.fit import fit_node
from pmdc.network.network import Network
from pmdc.table.features import Features
from problems import fitter_of, numbers, training_rows

SIZES = (3, 2, 3)


def node_of(fitter, child, chains, backoff=True, kappa=None):
    chains = [[Family(parents) for parents in chain] for chain in chains]
    return fit_node((child, chains, {family: kappa for chain in chains for family in chain}), fitter, backoff)


def by_the_formula(levels, n_states, codes, states, weights, row_codes):
    """The distribution over the states of one configuration for frequency tables, straight from the definition."""
    if not levels:
        return np.full(n_states, 1 / n_states)
    parents, rest = levels[0], levels[1:]
    rows = np.all(codes[:, parents] == row_codes[list(parents)], axis=1)
    W = weights[rows].sum()
    counts = np.bincount(states[rows], weights=weights[rows], minlength=n_states)
    q = by_the_formula(rest, n_states, codes, states, weights, row_codes)
    absent = counts == 0
    p = np.where(absent, q / (1 + W), 0.0)
    if rows.any():
        p += (~absent) * counts / W * (1 - (q / (1 + W))[absent].sum())
    return p


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_frequency_tables_follow_the_formula(seed, weighted):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    codes = rng.integers(0, SIZES, size=(n, 3))
    weights = rng.uniform(0.1, 3.0, size=n) if weighted else np.ones(n)
    rows = training_rows(np.empty((n, 0)), codes, SIZES, 3, weights=weights if weighted else None)
    levels = [(1, 2), (2,), ()]
    node = node_of(fitter_of(Logistic(), rows), 0, [levels])
    every = np.array(list(np.ndindex(1, *SIZES[1:])))
    answer = np.exp(node.log_proba(np.empty((len(every), 0)), every))
    expected = [by_the_formula(levels, 3, codes, codes[:, 0], weights, row) for row in every]
    np.testing.assert_allclose(answer, expected, atol=1e-12)
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    assert (answer > 0).all()


@pytest.mark.parametrize(
    "estimator", [None, GaussianNB(), DecisionTreeClassifier(max_depth=3), KNeighborsClassifier(1)], ids=repr
)
def test_nothing_is_zero_and_all_sums_to_one_for_every_learner(estimator):
    rng = np.random.default_rng(0)
    n = 60
    codes = rng.integers(0, SIZES, size=(n, 3))
    codes[codes[:, 1] == 1, 0] = 2  # one state only
    codes[(codes[:, 1] == 0) & (codes[:, 2] == 0), 2] = 1  # a configuration without rows
    X = rng.normal(size=(n, 2))
    fitter = fitter_of(estimator, training_rows(X, codes, SIZES, 3), random_state=0)
    node = node_of(fitter, 0, [[(1, 2), (1,), ()]])
    every = np.repeat(np.array(list(np.ndindex(1, *SIZES[1:]))), 20, axis=0)
    far = fitter.learners[0].prepare(numbers(10 * rng.normal(size=(len(every), 2))))
    answer = np.exp(node.log_proba(far, every))
    np.testing.assert_allclose(answer.sum(axis=1), 1.0)
    assert np.isfinite(node.log_proba(far, every)).all()


def test_a_part_with_all_states_keeps_its_own_answer():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, SIZES, size=(300, 3))
    X = rng.normal(size=(300, 2))
    fitter = fitter_of(GaussianNB(), training_rows(X, codes, SIZES, 3))
    fit = partial(node_of, fitter, 0, [[(1, 2), (1,), ()]])
    np.testing.assert_array_equal(fit(backoff=True).log_proba(X, codes), fit(backoff=False).log_proba(X, codes))


def test_without_backoff_absent_states_are_zero_and_absent_configurations_uniform():
    codes = np.array([[0, 0, 0], [0, 0, 0], [1, 0, 1], [2, 0, 1]])
    fitter = fitter_of(Logistic(), training_rows(np.empty((4, 0)), codes, SIZES, 3), backoff="none")
    node = node_of(fitter, 0, [[(1, 2), (2,), ()]], backoff=False)
    asked = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 0, -1]])
    answer = np.exp(node.log_proba(np.empty((4, 0)), asked))
    np.testing.assert_allclose(answer, [[1, 0, 0], [0, 0.5, 0.5], [1 / 3] * 3, [1 / 3] * 3])


def test_an_unseen_value_is_answered_without_that_parent_whatever_the_chain_says():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, SIZES, size=(200, 3))
    fitter = fitter_of(Logistic(), training_rows(np.empty((200, 0)), codes, SIZES, 2), [[2, 1], [2, 0]])
    chains = [
        [family.partition for family in chain]
        for chain in backoff_chains(partial(fitter.coarser, 0), Family((1, 2)), 2)
    ]
    assert chains == [[(1, 2), (2,), ()], [(1,), ()]]
    node = node_of(fitter, 0, chains)
    asked = np.array([[0, 0, -1], [0, 1, -1]])
    expected = [np.bincount(codes[codes[:, 1] == a, 0], minlength=3) / (codes[:, 1] == a).sum() for a in (0, 1)]
    np.testing.assert_allclose(np.exp(node.log_proba(np.empty((2, 0)), asked)), expected)


def test_tables_run_through_the_configurations_of_class_parents_only():
    rng = np.random.default_rng(1)
    n = 100
    codes = rng.integers(0, (2, 3, 2), size=(n, 3))  # two class variables and one discrete feature
    X = rng.normal(size=(n, 2))
    sizes = (2, 3, 2)
    fitter = fitter_of(Logistic(), training_rows(X, codes, sizes, 2))
    prepare = fitter.learners[0].prepare
    nodes = [node_of(fitter, 0, [[()]]), node_of(fitter, 1, [[(0, 2), (0,), ()]])]
    network = Network(nodes, [prepare] * 2, sizes)
    assert network.class_parents == [(), (0,)]
    assert network.cells_per_row == 2 + 2 * 3
    features = Features(X[:7], codes[:7, 2:])
    tables = network.tables(features)
    assert [table.shape for table in tables] == [(7, 2), (7, 2, 3)]
    for state in range(2):
        asked = np.column_stack([np.full(7, state), np.zeros(7, dtype=int), codes[:7, 2]])
        np.testing.assert_array_equal(tables[1][:, state], nodes[1].log_proba(prepare(numbers(X[:7])), asked))


def test_a_family_that_was_not_scored_has_the_kappa_of_the_one_before_it():
    chains = [[Family((1, 2)), Family((1,)), Family(())], [Family((2,)), Family(())]]
    known = {Family((1, 2)): 3.0, Family(()): 10.0}
    assert inherited_kappas(chains, known.get) == {
        Family((1, 2)): 3.0,
        Family((1,)): 3.0,
        Family(()): 10.0,
        Family((2,)): 3.0,
    }
