"""The search region by region: its kernels against plain Python, and what it returns."""

import math
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmdc.search import bits, bounded_exact, rebuilding, region_kernels, regions
from pmdc.search.bounded_start import chosen, first_dag
from pmdc.search.chordal import cliques, moral_graph
from pmdc.search.limits import UNLIMITED, Limits
from pmdc.search.problem import build_problem, members, topological_order
from problems import random_scores

words = st.integers(0, 2**64 - 1)


def problem_of(n_variables, seed, limits=UNLIMITED, **options):
    scores = random_scores(n_variables, seed, **options)
    none = {name: set() for name in scores}
    return build_problem(scores, none, none, limits)


def random_graph(rng, n, n_cliques):
    graph = [0] * n
    for _ in range(n_cliques):
        clique = rng.choice(n, size=min(n, rng.integers(2, 5)), replace=False).tolist()
        for a in clique:
            graph[a] |= sum(1 << b for b in clique if b != a)
    return graph


def bounds_of(n, max_members, max_cells=math.inf, sizes=None):
    return rebuilding.Bounds(np.ones(n) if sizes is None else np.array(sizes, dtype=float), max_members, max_cells)


def as_words(masks):
    return np.array(masks, dtype=np.uint64)


# Bits ---------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(words)
def test_bits_are_those_of_integers(x):
    assert bits.count_bits(np.uint64(x)) == x.bit_count()
    if x:
        lowest = bits.lowest_bit(np.uint64(x))
        assert int(lowest) == x & -x
        assert bits.position(lowest) == (x & -x).bit_length() - 1
    for member in (0, 1, 63):
        assert int(bits.single(member)) == 1 << member


def test_random_numbers_are_within_their_range_and_uniform():
    seed = np.array([1], dtype=np.uint64)
    drawn = np.array([bits.random_below(seed, 6) for _ in range(6000)])
    assert np.bincount(drawn, minlength=6).min() > 850
    unit = np.array([bits.random_unit(seed) for _ in range(6000)])
    assert unit.min() > 0
    assert unit.max() < 1
    assert abs(unit.mean() - 0.5) < 0.02


# Graphs of one word -------------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.sets(st.integers(0, 9)), st.integers(1, 8), st.sampled_from([math.inf, 30.0, 200.0]))
def test_fits_is_the_definition(clique, most, cells):
    sizes = [2, 3, 2, 4, 2, 3, 2, 5, 2, 2]
    limits = Limits(most - 1 or None, None if cells == math.inf else int(cells), tuple(sizes))
    mask = sum(1 << v for v in clique)
    expected = limits.fits(mask) and len(clique) <= most
    assert rebuilding.fits(bounds_of(10, most, cells, sizes), np.uint64(mask)) == expected


@pytest.mark.parametrize("n", [5, 30, 64])
def test_elimination_orders_are_within_the_bounds_and_found_by_the_min_fill_rule(n):
    rng, outcomes = np.random.default_rng(n), set()
    for trial in range(40):
        masks = random_graph(rng, n, n_cliques=rng.integers(1, n + 5))
        sizes = rng.integers(2, 5, size=n)
        most, cells = int(rng.integers(2, 6)), [math.inf, 80.0][trial % 2]
        graph = rebuilding.Graph(as_words(masks), np.zeros(n, np.uint64), np.arange(n))
        scratch = rebuilding.new_scratch(n)
        found = rebuilding.eliminate(graph, bounds_of(n, most, cells, sizes), scratch)
        limits = Limits(most - 1, None if cells == math.inf else int(cells), tuple(sizes.tolist()))
        assert found == plain_min_fill(masks, limits)
        outcomes.add(found)
        assert [int(m) for m in graph.moral] == masks
        if found:
            own = cliques(masks, graph.order.tolist())
            assert all(limits.fits(clique) for clique in own)
            assert [int(m) for m in graph.filled] == filled_by(own)
            other = rebuilding.Graph(graph.moral, np.zeros(n, np.uint64), graph.order)
            rebuilding.fill(other)
            np.testing.assert_array_equal(other.filled, graph.filled)
    assert n == 5 or outcomes == {True, False}


def plain_min_fill(masks, limits):
    """Eliminate the class variable of least fill that fits; a simplicial one first, and it must fit."""
    rest, left = list(masks), set(range(len(masks)))
    while left:
        fills = {v: sum((rest[v] & ~rest[u]).bit_count() - 1 for u in members(rest[v])) for v in sorted(left)}
        simplicial = [v for v in fills if fills[v] == 0]
        if simplicial:
            v = simplicial[0]
            if not limits.fits(rest[v] | 1 << v):
                return False
        else:
            fitting = [v for v in fills if limits.fits(rest[v] | 1 << v)]
            if not fitting:
                return False
            v = min(fitting, key=fills.__getitem__)
        left.discard(v)
        for u in members(rest[v]):
            rest[u] = (rest[u] | rest[v]) & ~(1 << u | 1 << v)
    return True


def filled_by(own):
    filled = [0] * len(own)
    for clique in own:
        for v in members(clique):
            filled[v] |= clique & ~(1 << v)
    return filled


def test_cliques_are_added_and_recognised():
    graph = as_words([0] * 64)
    clique = 1 << 63 | 1 << 40 | 1 << 2
    assert not rebuilding.holds_clique(graph, np.uint64(clique))
    rebuilding.add_clique(graph, np.uint64(clique))
    assert {v for v in range(64) if graph[v]} == {2, 40, 63}
    assert rebuilding.holds_clique(graph, np.uint64(clique))
    assert not rebuilding.holds_clique(graph, np.uint64(clique | 1))


def test_descendants_are_those_of_networkx():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = 20
        before = [int(rng.integers(0, 1 << v)) & int(rng.integers(0, 1 << n)) for v in range(n)]
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n))
        graph.add_edges_from((p, v) for v in range(n) for p in members(before[v]))
        for v in range(n):
            expected = sum(1 << u for u in nx.descendants(graph, v) | {v})
            assert int(rebuilding._descendants(as_words(before), v)) == expected


# Regions ------------------------------------------------------------------------------------------------------


def in_the_middle(n_variables, seed, limits, n_regions=30):
    """A network after some changes."""
    problem = problem_of(n_variables, seed, limits, sets=12)
    table = regions._table(problem, limits)
    first = first_dag(problem, limits, None)
    network = region_kernels.Network(table.start[:-1] + np.array(first.ranks), np.array(first.order))
    state = np.array([seed + 1], dtype=np.uint64)
    for _ in range(n_regions):
        region_kernels.improve_region(table, network, 30, 60, 1.0, state)
    return problem, table, network, state


def check_network(problem, table, network, limits):
    ranks = (network.chosen - table.start[:-1]).tolist()
    masks = chosen(problem, ranks)
    assert topological_order(masks) is not None
    assert sorted(network.order.tolist()) == list(range(len(masks)))
    assert all(limits.fits(clique) for clique in cliques(moral_graph(masks), network.order.tolist()))
    return problem.total_regret(ranks)


LIMITS = [Limits(1), Limits(2), Limits(4), Limits(None, 16, (2, 3) * 50), Limits(3, 24, (2, 3) * 50)]


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("n_variables", [20, 100])
def test_every_change_of_a_region_leaves_a_dag_within_the_limits(limits, n_variables):
    own = (
        limits
        if limits.sizes is None
        else Limits(limits.max_treewidth, limits.max_clique_cells, limits.sizes[:n_variables])
    )
    problem, table, network, state = in_the_middle(n_variables, 3, own, n_regions=0)
    for step in range(60):
        before = check_network(problem, table, network, own)
        temperature = [0.0, 0.5, 5.0][step % 3]
        gain = region_kernels.improve_region(table, network, 30, 40, temperature, state)
        after = check_network(problem, table, network, own)
        assert gain == pytest.approx(before - after, abs=1e-9)
        assert temperature or after <= before


def test_the_tree_of_cliques_keeps_each_class_variable_together():
    problem, table, network, _ = in_the_middle(100, 1, Limits(3))
    rows, above = region_kernels.clique_tree(table, network)
    bags = [{v for v in range(100) if int(row[v // 64]) >> v % 64 & 1} for row in rows]
    masks = chosen(problem, (network.chosen - table.start[:-1]).tolist())
    expected = cliques(moral_graph(masks), network.order.tolist())
    assert [sum(1 << v for v in bag) for bag in bags] == expected
    assert [v for v in range(100) if above[v] < 0] == [network.order[-1]]
    for v in range(100):
        having = [u for u in range(100) if v in bags[u]]
        assert sum(above[u] not in having for u in having) == 1


def test_topological_orders_have_parents_first():
    _, table, network, _ = in_the_middle(80, 2, Limits(2))
    order = region_kernels._topological_order(table, network.chosen).tolist()
    assert sorted(order) == list(range(80))
    for v in range(80):
        for parent in table.parents[table.first[network.chosen[v]] : table.first[network.chosen[v] + 1]]:
            assert order.index(parent) < order.index(v)


# The search ---------------------------------------------------------------------------------------------------


def run(problem, limits, random_state=0, max_iter=40, least_regret=-1.0, reasons=("",)):
    calls = iter(reasons)
    state = SimpleNamespace(stop=lambda ranks, least: next(calls, reasons[-1]), deadline=math.inf)
    first = first_dag(problem, limits, None)
    return first, regions.search(problem, limits, *first, state, random_state, max_iter, least_regret)


@pytest.mark.parametrize("treewidth", [1, 2, 3])
def test_few_class_variables_get_the_best_dag(treewidth):
    limits = Limits(treewidth)
    for seed in range(6):
        problem = problem_of(9, seed, limits, sets=15)
        exact = bounded_exact.solve(problem, limits, math.inf, lambda least: "")
        _, (ranks, order, reason) = run(problem, limits, max_iter=30)
        assert reason == ""
        assert problem.total_regret(ranks) == pytest.approx(problem.total_regret(exact.best.ranks), abs=1e-9)
        assert all(limits.fits(clique) for clique in cliques(moral_graph(chosen(problem, ranks)), order))


def test_same_seed_same_result_and_nothing_worse_than_the_start():
    limits = Limits(2)
    problem = problem_of(70, 0, limits, sets=20)
    found = [run(problem, limits, random_state=seed) for seed in (0, 0, 1)]
    assert found[0][1] == found[1][1]
    assert found[0][1] != found[2][1]
    first, (ranks, _, _) = found[0]
    assert problem.total_regret(ranks) < problem.total_regret(first.ranks)
    longer = run(problem, limits, max_iter=400)[1]
    assert problem.total_regret(longer[0]) <= problem.total_regret(ranks)
    assert run(problem, limits, max_iter=0)[1] == (first.ranks, first.order, "")


def test_the_search_stops_when_asked_when_proved_and_without_improvement():
    limits = Limits(2)
    problem = problem_of(30, 0, limits, sets=20)
    first, found = run(problem, limits, reasons=("time limit",))
    assert found == (first.ranks, first.order, "time limit")
    first, found = run(problem, limits, least_regret=math.inf)
    assert found == (first.ranks, first.order, "")
    assert run(problem, limits, max_iter=None)[1][2] == ""
