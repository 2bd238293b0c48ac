"""Bounds on treewidth and clique cells: checked independently, against brute force, and in awkward circumstances."""

import itertools
import math
import os
import signal
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import is_dag
from pmdc.search import bounded_exact, find_structure
from pmdc.search.chordal import exact_order, find_order, greedy_order, moral_graph
from pmdc.search.limits import Limits
from problems import bic_scores, random_scores

# Independent checks -------------------------------------------------------------------------------------------


def tree_decomposition(parents, order):
    """The bags and the parent of each bag when the moral graph is eliminated in this order, by sets of names."""
    graph = {name: set() for name in parents}
    for child, members in parents.items():
        for a, b in itertools.combinations({child, *members}, 2):
            graph[a].add(b)
            graph[b].add(a)
    bags, above = {}, {}
    for place, name in enumerate(order):
        around = graph.pop(name)
        bags[name] = {name} | around
        above[name] = min(around, key=lambda other: order.index(other), default=None)
        assert all(other in order[place + 1 :] for other in around)
        for other in around:
            graph[other] |= around - {other}
            graph[other].discard(name)
    return bags, above


def check_bounds(structure, max_treewidth=None, max_clique_cells=None, n_states=None):
    """A tree decomposition must cover the families, keep each class variable together, and be within the bounds."""
    parents, order = structure.parents, structure.elimination_order
    assert sorted(order) == sorted(parents)
    assert is_dag(parents)
    bags, above = tree_decomposition(parents, order)
    # Cover: each family, and so each edge of the moral graph, is within a bag.
    assert all(any({child, *members} <= bag for bag in bags.values()) for child, members in parents.items())
    # Running intersection: of the bags that have a class variable, all but one are joined to another of them.
    for name in parents:
        having = [bag for bag, members in bags.items() if name in members]
        assert sum(above[bag] not in having for bag in having) == 1
    for bag in bags.values():
        assert max_treewidth is None or len(bag) <= max_treewidth + 1
        assert max_clique_cells is None or math.prod(n_states[name] for name in bag) <= max_clique_cells


def check(structure, scores, **bounds):
    check_bounds(structure, **bounds)
    assert structure.score == math.fsum(scores[name][structure.parents[name]] for name in scores)
    assert structure.bound >= structure.score
    assert (structure.status == "optimal") <= (structure.bound == structure.score and structure.gap == 0.0)


def fits(parents, max_treewidth=None, max_clique_cells=None, n_states=None):
    """Whether any order of elimination is within the bounds: all orders, by the sets that are left."""
    graph = {name: set() for name in parents}
    for child, members in parents.items():
        for a, b in itertools.combinations({child, *members}, 2):
            graph[a].add(b)
            graph[b].add(a)

    def small(bag):
        cells = math.prod(n_states[name] for name in bag) if n_states else 0
        return (max_treewidth is None or len(bag) <= max_treewidth + 1) and (
            max_clique_cells is None or cells <= max_clique_cells
        )

    def around(name, left):
        reached, ahead = {name}, [name]
        while ahead:
            for other in graph[ahead.pop()] - reached:
                reached.add(other)
                if other not in left:
                    ahead.append(other)
        return reached & left

    @cache
    def possible(left):
        return not left or any(small(around(name, left)) and possible(left - {name}) for name in left)

    return possible(frozenset(parents))


def best_within(scores, required=(), forbidden=(), tiers=(), **bounds):
    """The greatest score of a DAG within the bounds, -inf if there is none: all choices of parent sets, best first."""
    tier = {name: place for place, names in enumerate(tiers) for name in names}
    tables = []
    for child, table in scores.items():
        allowed = [
            (score, parents)
            for parents, score in table.items()
            if all(u in parents for u, v in required if v == child)
            and not any(u in parents for u, v in forbidden if v == child)
            and not any(tier.get(u, -1) > tier[child] for u in parents if child in tier)
        ]
        tables.append(sorted(allowed, key=lambda pair: -pair[0]))
    if not all(tables):
        return -math.inf
    ceiling = [sum(table[0][0] for table in tables[place:]) for place in range(len(tables) + 1)]
    best = -math.inf

    def extend(place, total, chosen):
        nonlocal best
        parents = dict(itertools.zip_longest(scores, chosen, fillvalue=frozenset()))
        if not is_dag(parents) or not fits(parents, **bounds):  # more parents would not help
            return
        if place == len(tables):
            best = total
            return
        for score, parents in tables[place]:
            if total + score + ceiling[place + 1] <= best:
                break
            extend(place + 1, total + score, [*chosen, parents])

    extend(0, 0.0, [])
    return best


def full_scores(count, seed, most_parents=3):
    """All parent sets up to a size, where more parents tend to score higher: hard under a bound."""
    random = np.random.default_rng(seed)
    names = [f"y{position}" for position in range(count)]
    return {
        name: {
            frozenset(parents): float(random.normal(-9.0 + size, 2.0))
            for size in range(most_parents + 1)
            for parents in itertools.combinations([other for other in names if other != name], size)
        }
        for name in names
    }


def random_bounds(seed, names):
    """A bound on treewidth, on cells, or on both."""
    random = np.random.default_rng(seed)
    n_states = {name: int(random.integers(2, 5)) for name in names}
    cells = int(random.integers(max(n_states.values()), 40))
    treewidth = int(random.integers(1, 4))
    return [
        {"max_treewidth": treewidth},
        {"max_clique_cells": cells, "n_states": n_states},
        {"max_treewidth": treewidth, "max_clique_cells": cells, "n_states": n_states},
    ][seed % 3]


# Brute force --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_the_best_within_bounds_by_brute_force(first):
    for seed in range(first, first + 15):
        scores = random_scores(3 + seed % 5, seed, sets=6)
        bounds = random_bounds(seed, scores)
        found = find_structure(scores, **bounds)
        check(found, scores, **bounds)
        assert found.status == "optimal"
        assert found.score == pytest.approx(best_within(scores, **bounds))


@st.composite
def searches(draw):
    """A score table with some sets missing, edges, tiers and bounds."""
    count = draw(st.integers(2, 6))
    seed = draw(st.integers(0, 10**6))
    scores = random_scores(count, seed, sets=draw(st.integers(1, 8)))
    if draw(st.booleans()):
        scores = {name: {parents: float(round(score)) for parents, score in t.items()} for name, t in scores.items()}
    names = list(scores)
    for name in draw(st.sets(st.sampled_from(names), max_size=2)):
        if len(scores[name]) > 1:
            del scores[name][frozenset()]
    pairs = [(u, v) for u in names for v in names if u != v]
    edges = st.sets(st.sampled_from(pairs), max_size=3)
    tier_of = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    tiers = [[name for name, tier in zip(names, tier_of, strict=True) if tier == i] for i in range(3)]
    return scores, draw(edges), draw(edges), tiers if draw(st.booleans()) else [], random_bounds(seed, names)


@given(searches())
@settings(max_examples=150, deadline=None)
def test_edges_tiers_and_bounds_together_by_brute_force(search):
    scores, required, forbidden, tiers, bounds = search
    expected = best_within(scores, required, forbidden, tiers, **bounds)
    arguments = {"required_edges": required, "forbidden_edges": forbidden, "tiers": tiers, **bounds}
    if expected == -math.inf:
        with pytest.raises(ValueError, match=r"no parent set left|no DAG|cycle|in both|tiers|required_edges"):
            find_structure(scores, **arguments)
        return
    found = find_structure(scores, **arguments)
    check(found, scores, **bounds)
    assert (found.status, found.score) == ("optimal", pytest.approx(expected))
    for child, parents in found.parents.items():
        assert {u for u, v in required if v == child} <= parents
        assert not {u for u, v in forbidden if v == child} & parents


@pytest.mark.parametrize("max_treewidth", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_all_parent_sets_by_brute_force(max_treewidth, seed):
    scores = full_scores(5, seed, most_parents=4)
    found = find_structure(scores, max_treewidth=max_treewidth)
    check(found, scores, max_treewidth=max_treewidth)
    assert (found.status, found.score) == ("optimal", pytest.approx(best_within(scores, max_treewidth=max_treewidth)))


@pytest.mark.parametrize("max_treewidth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_eight_class_variables_are_proved(max_treewidth, seed):
    scores = full_scores(8, seed)
    found = find_structure(scores, max_treewidth=max_treewidth)
    check(found, scores, max_treewidth=max_treewidth)
    assert found.status == "optimal"
    for method in ("hill-climb", "tree"):
        other = find_structure(scores, method, max_treewidth=max_treewidth)
        check(other, scores, max_treewidth=max_treewidth)
        assert other.score <= found.score + 1e-9 <= other.bound + 2e-9


# Orders of elimination ----------------------------------------------------------------------------------------


@given(st.integers(1, 7), st.floats(0, 1), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_orders_of_elimination_by_brute_force(count, density, seed):
    random = np.random.default_rng(seed)
    names = [f"y{i}" for i in range(count)]
    masks = [sum(1 << p for p in range(child) if random.random() < density) for child in range(count)]
    parents = {names[child]: [names[p] for p in range(child) if mask >> p & 1] for child, mask in enumerate(masks)}
    bounds = random_bounds(seed, names)
    sizes = tuple(bounds["n_states"].values()) if "n_states" in bounds else None
    limits = Limits(bounds.get("max_treewidth"), bounds.get("max_clique_cells"), sizes)
    order, certain = find_order(moral_graph(masks), limits)
    assert certain
    assert (order is not None) == fits(parents, **bounds)
    orders = (order, greedy_order(moral_graph(masks), limits), exact_order(moral_graph(masks), limits)[0])
    for order in orders:
        if order is not None:
            bags, _ = tree_decomposition(parents, [names[i] for i in order])
            assert all(limits.fits(sum(1 << names.index(name) for name in bag)) for bag in bags.values())


def test_a_grid_that_greedy_rules_may_miss_is_decided():
    side = 4
    graph = [0] * side**2
    for i, j in itertools.product(range(side), repeat=2):
        for other in ((i + 1, j), (i, j + 1)):
            if max(other) < side:
                a, b = i * side + j, other[0] * side + other[1]
                graph[a] |= 1 << b
                graph[b] |= 1 << a
    assert find_order(graph, Limits(side))[0] is not None
    assert find_order(graph, Limits(side - 1)) == (None, True)


# Without effect -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_that_does_not_bind_changes_nothing(seed):
    scores = random_scores(4 + 3 * seed, seed, sets=10)
    plain = find_structure(scores)
    states = dict.fromkeys(scores, 3)
    for bounds in ({"max_treewidth": len(scores) - 1}, {"max_clique_cells": 3 ** len(scores), "n_states": states}):
        found = find_structure(scores, **bounds)
        check(found, scores, **bounds)
        expected = replace(plain, seconds=found.seconds, elimination_order=found.elimination_order)
        assert found == expected
    assert plain.elimination_order is None
    assert find_structure(scores, n_states=states).elimination_order is None


def test_a_bound_that_does_not_bind_on_many_class_variables():
    scores = bic_scores(40, 0)
    found = find_structure(scores, max_treewidth=39, time_limit=60)
    check(found, scores, max_treewidth=39)
    assert found.score == pytest.approx(find_structure(scores).score)


def test_a_forest_is_the_answer_for_treewidth_one():
    scores = random_scores(60, 0, sets=30)
    found = find_structure(scores, max_treewidth=1)
    check(found, scores, max_treewidth=1)
    assert (found.status, found.method) == ("optimal", "tree")
    assert found.score == pytest.approx(find_structure(scores, "tree").score)


# Many class variables, limits and interruption ----------------------------------------------------------------


@pytest.mark.parametrize("bounds", [{"max_treewidth": 3}, {"max_clique_cells": 40}], ids=str)
@pytest.mark.parametrize("method", ["auto", "hill-climb", "tree"])
def test_many_class_variables(method, bounds):
    scores = random_scores(40, 1, sets=15)
    if "max_clique_cells" in bounds:
        bounds = {**bounds, "n_states": {name: 2 + place % 4 for place, name in enumerate(scores)}}
    found = find_structure(scores, method, max_iter=50, **bounds)
    check(found, scores, **bounds)
    again = find_structure(scores, method, max_iter=50, **bounds)
    assert again == replace(found, seconds=again.seconds)
    if method == "tree":
        assert all(len(parents) <= 1 for parents in found.parents.values())


def test_the_search_is_no_worse_than_the_best_forest_and_its_start():
    scores = random_scores(40, 2, sets=20)
    forest = find_structure(scores, "tree")
    found = find_structure(scores, max_treewidth=2, max_iter=1)
    climbed = find_structure(scores, "hill-climb", max_treewidth=2)
    again = find_structure(scores, max_treewidth=2, max_iter=1, start=climbed)
    assert found.score >= forest.score - 1e-9
    assert again.score >= climbed.score - 1e-9


def test_a_start_beyond_the_bound_is_used_in_part():
    scores = full_scores(9, 0)
    best = find_structure(scores)
    for method in ("auto", "hill-climb", "tree"):
        found = find_structure(scores, method, max_treewidth=2, start=best, time_limit=1e-9)
        check(found, scores, max_treewidth=2)


@pytest.mark.parametrize("method", ["auto", "hill-climb"])
def test_limits_and_callbacks(method):
    scores = full_scores(12, 1)
    told = []
    found = find_structure(scores, method, max_treewidth=3, callback=told.append, time_limit=2)
    check(found, scores, max_treewidth=3)
    assert (told[-1].score, told[-1].bound) == pytest.approx((found.score, found.bound))
    assert [one.score for one in told] == sorted(one.score for one in told)
    assert [one.bound for one in told] == sorted((one.bound for one in told), reverse=True)
    assert all(is_dag(one.parents) and one.status == "searching" for one in told)
    late = find_structure(scores, method, max_treewidth=3, time_limit=1e-9)
    stopped = find_structure(scores, method, max_treewidth=3, callback=lambda one: True)
    loose = find_structure(scores, method, max_treewidth=3, gap=0.99)
    for one, status in ((late, "time limit"), (stopped, "interrupted"), (loose, "gap limit")):
        check(one, scores, max_treewidth=3)
        assert one.status == status
    with pytest.raises(KeyError, match="mine"):
        find_structure(scores, method, max_treewidth=3, callback=lambda one: {}["mine"])


def test_time_limit_of_branch_and_bound():
    scores = full_scores(14, 0)
    found = find_structure(scores, max_treewidth=3, time_limit=1.0)
    check(found, scores, max_treewidth=3)
    assert found.status == "time limit" or found.method == "bounded-search"
    assert found.seconds < 8
    assert found.bound < find_structure(scores, max_treewidth=3, time_limit=1e-9).bound


def test_ctrl_c_ends_branch_and_bound_with_the_best_so_far(monkeypatch):
    scores, calls = full_scores(12, 1), []
    branches = bounded_exact._branches

    def press(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return branches(*arguments)

    monkeypatch.setattr(bounded_exact, "_branches", press)
    found = find_structure(scores, max_treewidth=3)
    check(found, scores, max_treewidth=3)
    assert (found.status, len(calls)) == ("interrupted", 3)


def test_the_bound_of_an_unfinished_search_holds(monkeypatch):
    scores = full_scores(9, 2)
    best = find_structure(scores, max_treewidth=3)
    assert (best.status, best.method) == ("optimal", "branch-and-bound")
    bounds = []
    for nodes in (1, 3, 10):
        monkeypatch.setattr(bounded_exact, "_MAX_NODES", nodes)
        found = find_structure(scores, max_treewidth=3, max_iter=1)
        check(found, scores, max_treewidth=3)
        assert found.score <= best.score + 1e-9
        assert found.bound >= best.score - 1e-9
        bounds.append(found.bound)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]


def test_ties_are_settled_within_the_cliques():
    none, a, b, c = map(frozenset, ["", "a", "b", "c"])
    scores = {"a": {none: 0.0}, "b": {none: 0.0, a: 1.0}, "c": {none: 0.0, b: 1.0, a: 1.0}, "d": {none: 0.0, c: 1.0}}
    found = find_structure(scores, max_treewidth=1)
    assert found.score == 3.0
    assert find_structure(scores, "tree", max_treewidth=1).parents["b"] == a


# Bad input ----------------------------------------------------------------------------------------------------

NONE = frozenset()
STATES = {"a": 2, "b": 3, "c": 4}
GOOD = {
    "a": {NONE: 0.0, frozenset("b"): 1.0},
    "b": {NONE: 0.0, frozenset("a"): 1.0},
    "c": {NONE: 0.0, frozenset("a"): 1.0, frozenset("ab"): 2.0},
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_treewidth": 0}, "max_treewidth=0 .* at least 1"),
        ({"max_treewidth": True}, "max_treewidth=True .* whole number"),
        ({"max_treewidth": 1.5}, "max_treewidth=1.5 .* whole number"),
        ({"max_clique_cells": 0, "n_states": STATES}, "max_clique_cells=0 .* at least 1"),
        ({"max_clique_cells": "many", "n_states": STATES}, "max_clique_cells='many' .* whole number"),
        ({"max_clique_cells": 8}, r"max_clique_cells=8 needs n_states.*\{'a': 2\}.* max_treewidth"),
        ({"max_clique_cells": 3, "n_states": STATES}, "max_clique_cells=3 .* 4 states of 'c' .* at least 4"),
        ({"n_states": [2, 3, 4]}, "n_states must be a dict.* list"),
        ({"n_states": {"a": 2, "b": 2}}, "n_states lacks 'c'"),
        ({"n_states": {**STATES, "z": 2}}, "n_states has 'z'"),
        ({"n_states": {**STATES, "b": 0}}, r"n_states\['b'\]=0 .* at least 1"),
        ({"random_state": -1}, "random_state=-1"),
        ({"max_iter": 0}, "max_iter=0 .* at least 1"),
        ({"max_treewidth": 1, "method": "integer-program"}, "method='integer-program' .*max_treewidth=1.*'auto'"),
        (
            {"max_treewidth": 1, "required_edges": [("a", "c"), ("b", "c")]},
            r"required_edges give 'c' the parents \{'a', 'b'\}: .*treewidth 2, .*max_treewidth=1 .*\('a', 'c'\), ",
        ),
        (
            {"max_clique_cells": 12, "n_states": STATES, "required_edges": [("a", "c"), ("b", "c")]},
            "required_edges give 'c' .* 24 cells, .*max_clique_cells=12",
        ),
    ],
)
def test_bad_bounds(arguments, message):
    with pytest.raises(ValueError, match=message):
        find_structure(GOOD, **arguments)


def test_required_edges_beyond_the_bound_together():
    names = "abcdef"
    cycle = [("a", "b"), ("b", "c"), ("a", "d")]
    scores = {name: {frozenset(some): 0.0 for some in ("", *names) if some != name} for name in names}
    scores["d"][frozenset("ac")] = 0.0
    scores["e"][frozenset("bd")] = 0.0
    assert find_structure(scores, required_edges=cycle, max_treewidth=1).score == 0.0
    edges = [*cycle, ("c", "d"), ("b", "e"), ("d", "e")]
    with pytest.raises(
        ValueError, match="required_edges exceed max_treewidth=2: no order .* exists .*'a', 'b', 'c', 'd'"
    ):
        find_structure(scores, required_edges=edges, max_treewidth=2)
    assert find_structure(scores, required_edges=edges, max_treewidth=3).score == 0.0


def test_a_class_variable_without_a_set_that_fits():
    scores = {**GOOD, "c": {frozenset("ab"): 0.0}}
    with pytest.raises(ValueError, match=r"scores\['c'\] .* within max_treewidth=1: .* treewidth 2; .*raise the bound"):
        find_structure(scores, max_treewidth=1)


def test_no_dag_within_the_bound_is_claimed_only_if_proved(monkeypatch):
    triples = {"d": "abc", "e": "abf", "g": "acf", "h": "bcf"}
    scores = {name: {NONE: 0.0} for name in "abcf"} | {name: {frozenset(p): 0.0} for name, p in triples.items()}
    assert find_structure(scores, max_treewidth=3).score == 0.0
    scores["i"] = {frozenset("dgh"): 0.0}
    with pytest.raises(ValueError, match="scores admit no DAG within max_treewidth=3: 'd', 'e', 'g', 'h', 'i' must"):
        find_structure(scores, max_treewidth=3)
    monkeypatch.setattr(bounded_exact, "_MAX_NODES", 0)
    with pytest.raises(ValueError, match="no DAG within max_treewidth=3 was found: .*there may be no choice"):
        find_structure(scores, max_treewidth=3)


def test_a_feasible_dag_is_found_where_simple_ones_fail():
    found = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        names = list("abcdefgh")
        scores = {name: {NONE: 0.0} for name in names[:3]}
        for place, name in enumerate(names[3:], 3):
            sets = [frozenset(random.choice(names[:place], 2, replace=False).tolist()) for _ in range(2)]
            scores[name] = {parents: float(random.normal()) for parents in sets}
        expected = best_within(scores, max_treewidth=2)
        if expected == -math.inf:
            with pytest.raises(ValueError, match="scores admit no DAG within max_treewidth=2"):
                find_structure(scores, max_treewidth=2)
        else:
            found += 1
            assert find_structure(scores, max_treewidth=2).score == pytest.approx(expected)
    assert 0 < found < 60
