"""The change of the log-odds is divided without a remainder, and by posterior distributions of families."""

import itertools

import numpy as np
import pytest

from pmdc.explain.path import Endpoint, change_of_log_odds
from pmdc.inference.factors import family_scopes
from pmdc.inference.junction_tree import JunctionTree
from problems import random_parents, random_tables


def random_problem(seed):
    """Two networks with the same graph, sharp ones in every second problem, and known states at both ends."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=rng.integers(1, 7)).tolist()
    parents = random_parents(rng, len(sizes), 0.5)
    tables = random_tables(rng, sizes, parents, 2)
    if seed % 2:
        powers = [np.exp(table) ** rng.choice([1, 5, 20]) for table in tables]
        tables = [np.log(power / power.sum(axis=-1, keepdims=True)) for power in powers]
    k = int(rng.integers(len(sizes)))
    known = [[rng.integers(-1, size) if rng.random() < 0.5 else -1 for size in sizes] for _ in range(2)]
    for own in known:
        own[k] = -1
    ends = [Endpoint([table[i] for table in tables], np.array(known[i])) for i in range(2)]
    return JunctionTree(sizes, family_scopes(parents)), parents, *ends, k, int(rng.integers(sizes[k]))


def log_odds(sizes, parents, end, k, state):
    """By enumeration of all outcomes."""
    terms = [[-np.inf], [-np.inf]]
    for outcome in itertools.product(*map(range, sizes)):
        if all(code in (-1, value) for code, value in zip(end.known, outcome, strict=True)):
            log_p = sum(end.log_tables[j][(*(outcome[p] for p in parents[j]), outcome[j])] for j in range(len(sizes)))
            terms[outcome[k] == state].append(log_p)
    return np.logaddexp.reduce(terms[1]) - np.logaddexp.reduce(terms[0])


@pytest.mark.parametrize("seed", range(40))
def test_contributions_add_up(seed):
    tree, parents, start, end, k, state = random_problem(seed)
    found = change_of_log_odds(tree, start, end, k, state)
    assert found.start == pytest.approx(log_odds(tree.sizes, parents, start, k, state), abs=1e-9)
    assert found.end == pytest.approx(log_odds(tree.sizes, parents, end, k, state), abs=1e-9)
    assert found.start + found.tables.sum() + found.known.sum() == pytest.approx(found.end, abs=1e-9)
    for weights, before, after, total in zip(
        found.weights, start.log_tables, end.log_tables, found.tables, strict=True
    ):
        assert (weights * (after - before)).sum() == pytest.approx(total, abs=1e-9)
        assert np.abs(weights.sum(axis=-1)).max() < 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_the_way_back_has_the_opposite_contributions(seed):
    tree, _, start, end, k, state = random_problem(seed)
    there = change_of_log_odds(tree, start, end, k, state)
    back = change_of_log_odds(tree, end, start, k, state)
    assert back.tables == pytest.approx(-there.tables, abs=1e-9)
    assert back.known == pytest.approx(-there.known, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_contributions_are_integrals_of_finite_differences(seed):
    """Each is the integral of what the log-odds change by if only this table, or this known state, moves on."""
    tree, parents, start, end, k, state = random_problem(2 * seed)
    found = change_of_log_odds(tree, start, end, k, state)
    points, weights = np.polynomial.legendre.leggauss(60)
    tables, known = np.zeros(len(tree.sizes)), np.zeros(len(tree.sizes))

    def at(times):
        """The log-odds with a time of its own for each table and each known state."""
        mixed = []
        for j, (a, b) in enumerate(zip(start.log_tables, end.log_tables, strict=True)):
            table = np.exp((1 - times[0][j]) * a + times[0][j] * b)
            table /= table.sum(axis=-1, keepdims=True)
            likelihood = [
                np.ones(size) if code < 0 else (np.arange(size) == code) * 1.0
                for code, size in ((end_.known[j], tree.sizes[j]) for end_ in (start, end))
            ]
            table *= (1 - times[1][j]) * likelihood[0] + times[1][j] * likelihood[1]
            with np.errstate(divide="ignore"):
                mixed.append(np.log(table))
        return log_odds(tree.sizes, parents, Endpoint(mixed, np.full(len(mixed), -1)), k, state)

    if len(tree.sizes) > 4:
        return
    step = 1e-6
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        for kind, total in enumerate((tables, known)):
            for j in range(len(tree.sizes)):
                times = np.full((2, 2, len(tree.sizes)), point)
                times[0, kind, j] += step
                times[1, kind, j] -= step
                total[j] += weight * (at(times[0]) - at(times[1])) / (2 * step)
    assert found.tables == pytest.approx(tables, abs=1e-5)
    assert found.known == pytest.approx(known, abs=1e-5)


def test_what_does_not_matter_contributes_nothing():
    """y0 -> y1 -> y2, and y3 apart: y2 and y3 say nothing about y0 if they are not known."""
    rng = np.random.default_rng(0)
    parents = [(), (0,), (1,), ()]
    tables = random_tables(rng, [2, 3, 2, 3], parents, 2)
    tree = JunctionTree([2, 3, 2, 3], family_scopes(parents))
    nothing = np.full(4, -1)
    ends = [Endpoint([table[i] for table in tables], nothing) for i in range(2)]
    found = change_of_log_odds(tree, *ends, 0, 1)
    assert found.tables[1:] == pytest.approx(0.0, abs=1e-15)
    assert found.tables[0] == pytest.approx(found.end - found.start)
    known = Endpoint(ends[1].log_tables, np.array([-1, -1, 1, 0]))
    found = change_of_log_odds(tree, ends[0], known, 0, 1)
    assert found.known[2] != 0
    assert found.known[[1, 3]] == pytest.approx(0.0, abs=1e-15)


def test_a_known_parent_explains_its_own_effect():
    """With the same tables at both ends, a state that becomes known has the whole difference."""
    rng = np.random.default_rng(1)
    parents = [(), (0,)]
    tables = [table[0] for table in random_tables(rng, [3, 2], parents, 1)]
    tree = JunctionTree([3, 2], family_scopes(parents))
    ends = [Endpoint(tables, np.array(known)) for known in ([-1, -1], [2, -1])]
    found = change_of_log_odds(tree, *ends, 1, 0)
    p = np.exp(tables[0]) @ np.exp(tables[1])[:, 0]
    with_parent = np.exp(tables[1])[2, 0]
    assert found.known[0] == pytest.approx(np.log(with_parent / (1 - with_parent)) - np.log(p / (1 - p)))
    assert found.tables == pytest.approx(0.0, abs=1e-15)


def test_probabilities_that_are_next_to_zero():
    tables = [np.log([1e-300, 1 - 1e-300]), np.log([[1.0 - 1e-300, 1e-300], [0.5, 0.5]])]
    tree = JunctionTree([2, 2], family_scopes([(), (0,)]))
    ends = [Endpoint(tables, np.array(known)) for known in ([-1, -1], [-1, 0])]
    with pytest.raises(ValueError, match="backoff='parents'"):
        change_of_log_odds(
            tree, ends[0], Endpoint([tables[0], np.log([[1.0, 1e-300], [1e-300, 1.0]])], ends[1].known), 0, 0
        )
