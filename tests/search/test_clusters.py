"""Violated cluster constraints against all clusters, on solutions that take sets in part."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import all_dags, subsets
from pmdc.search.clusters import VIOLATION, Columns, Cut, by_cycles, by_growth, by_program


def outside(masks, values, cluster, k=1):
    """What the members of a cluster take with fewer than k members of it, by the definition."""
    total = 0.0
    for child in cluster:
        for mask, value in zip(masks[child], values[child], strict=True):
            if sum(mask >> member & 1 for member in cluster) < k:
                total += value
    return total


@st.composite
def solutions(draw):
    """Parent sets of a few class variables, and how much each takes of its own; the sum is 1."""
    count = draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    masks, values = [], []
    for child in range(count):
        every = [sum(1 << p for p in parents) for parents in subsets([c for c in range(count) if c != child])]
        chosen = rng.choice(len(every), size=min(len(every), 1 + rng.integers(0, 4)), replace=False)
        masks.append([every[i] for i in chosen])
        parts = rng.integers(0, 4, size=len(chosen)).astype(float)
        parts[0] += parts.sum() == 0
        values.append(parts / parts.sum())
    return masks, values


@settings(max_examples=300, deadline=None)
@given(solutions())
def test_clusters_are_those_that_the_definition_finds(solution):
    masks, values = solution
    count = len(masks)
    every = [c for size in range(2, count + 1) for c in itertools.combinations(range(count), size)]
    least = min(outside(masks, values, cluster) for cluster in every)
    columns = Columns(masks)
    support = columns.support(np.concatenate(values))
    for found in (by_cycles(support), by_growth(support)):
        assert len(set(found)) == len(found)
        for cut in found:
            assert outside(masks, values, *cut) < cut.k - VIOLATION / 2
    best, proved = by_program(support)
    assert proved == (best is None)
    if best is None:
        assert least > 1.0 - 2 * VIOLATION
    else:
        assert outside(masks, values, *best) == pytest.approx(least, abs=1e-6)
        assert least < 1.0
    # In so few class variables growth finds one wherever there is one.
    if least < 1.0 - 2 * VIOLATION:
        assert by_growth(support)


@settings(max_examples=100, deadline=None)
@given(solutions())
def test_columns_of_a_constraint(solution):
    masks, _ = solution
    columns = Columns(masks)
    flat = [(child, mask) for child, row in enumerate(masks) for mask in row]
    for size in range(2, len(masks) + 1):
        for cluster in itertools.combinations(range(len(masks)), size):
            bits = sum(1 << member for member in cluster)
            for k in (1, 2, 3):
                expected = [i for i, (child, mask) in enumerate(flat) if child in cluster]
                expected = [i for i in expected if (flat[i][1] & bits).bit_count() < k]
                assert columns.outside(Cut(cluster, k)).tolist() == expected


def test_every_dag_keeps_the_constraints():
    names = tuple(range(4))
    for dag in all_dags(names):
        masks = [[sum(1 << p for p in parents)] for parents in dag]
        for size in range(2, 5):
            for cluster in itertools.combinations(names, size):
                for k in range(1, size + 1):
                    assert outside(masks, [[1.0]] * 4, cluster, k) >= k


def test_weights_of_edges():
    masks = [[0b110, 0b010], [0b000], [0b001]]
    support = Columns(masks).support(np.array([0.25, 0.75, 1.0, 1.0]))
    assert support.weights().tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.25, 0.0, 0.0]]


def test_every_cycle_of_a_whole_solution_is_found():
    masks = [[0b010], [0b100], [0b001], [0b0]]  # 0 <- 1 <- 2 <- 0
    assert by_cycles(Columns(masks).support(np.ones(4))) == [Cut((0, 1, 2))]
    masks = [[0b010], [0b100], [0b000], [0b1]]
    assert by_cycles(Columns(masks).support(np.ones(4))) == []
    assert by_cycles(Columns([[0], [0]]).support(np.ones(2))) == []
