"""The compiled loops of the search against plain Python and numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import subsets
from pmdc.search import clusters, dynamic_programming, orders
from pmdc.search.limits import UNLIMITED
from pmdc.search.problem import build_problem
from problems import random_scores

# Dynamic programming ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_variables", [6, 7, 9])
def test_subset_totals_in_blocks_are_those_of_numpy(monkeypatch, n_variables):
    monkeypatch.setattr(dynamic_programming, "_BLOCK_BITS", 5)
    monkeypatch.setattr(dynamic_programming, "_STRIDE", 32)
    for seed in range(5):
        problem = problem_of(n_variables, seed, sets=12)
        total, reason = dynamic_programming._least_totals_in_blocks(problem, lambda: "")
        assert reason == ""
        np.testing.assert_array_equal(total, dynamic_programming.least_totals(problem))


def test_numpy_totals_are_those_of_the_definition():
    problem = problem_of(5, 0, sets=12)
    total = dynamic_programming.least_totals(problem)
    expected = [0.0]
    for subset in range(1, 32):
        sinks = [(child, subset & ~(1 << child)) for child in range(5) if subset >> child & 1]
        expected.append(min(expected[rest] + regret_within(problem, child, rest)[1] for child, rest in sinks))
    assert total.tolist() == expected


# Local search over orders -------------------------------------------------------------------------------------


def problem_of(n_variables, seed, **options):
    """A random problem with integer scores, so that sums are exact."""
    scores = random_scores(n_variables, seed, **options)
    rounded = {name: {ps: float(round(10 * s)) for ps, s in table.items()} for name, table in scores.items()}
    return build_problem(rounded, {name: set() for name in scores}, {name: set() for name in scores}, UNLIMITED)


def regret_within(problem, child, before):
    """The rank and the regret of the best parent set within a bit mask."""
    for rank, mask in enumerate(problem.masks[child]):
        if not mask & ~before:
            return rank, problem.regrets[child][rank]
    return len(problem.masks[child]), np.inf


def take(problem, order):
    ranks, total, before = [0] * len(order), 0.0, 0
    for child in order:
        ranks[child], regret = regret_within(problem, child, before)
        total += regret
        before |= 1 << child
    return ranks, total


def insert(order, place, target):
    moved = [*order]
    moved.insert(target, moved.pop(place))
    return moved


def best_insertion(problem, order, place):
    """To the left first, from near to far; the first of the best."""
    now = take(problem, order)[1]
    targets = [*range(place - 1, -1, -1), *range(place + 1, len(order))]
    changes = [(take(problem, insert(order, place, target))[1] - now, i) for i, target in enumerate(targets)]
    change, i = min(changes)
    return (targets[i], change) if change < 0 else (place, 0.0)


def best_window(problem, order, place, size):
    """The least total of any order of the window, by recursion over its subsets."""
    before = sum(1 << child for child in order[:place])
    window = order[place : place + size]
    best = {0: (0.0, [])}
    for subset in range(1 << size):
        for i in range(size):
            if not subset >> i & 1 and subset in best:
                inside = before | sum(1 << window[j] for j in range(size) if subset >> j & 1)
                value = best[subset][0] + regret_within(problem, window[i], inside)[1]
                if value < best.get(subset | 1 << i, (np.inf,))[0]:
                    best[subset | 1 << i] = value, [*best[subset][1], window[i]]
    return best[(1 << size) - 1]


def descend(problem, order):
    order, size, helped = [*order], min(6, len(order)), True
    while helped:
        helped = False
        for variable in range(len(order)):
            place = order.index(variable)
            target, change = best_insertion(problem, order, place)
            if change < 0:
                order, helped = insert(order, place, target), True
        if not helped:
            for place in range(len(order) - size + 1):
                ranks = take(problem, order)[0]
                now = sum(problem.regrets[child][ranks[child]] for child in order[place : place + size])
                value, window = best_window(problem, order, place, size)
                if value < now:
                    order[place : place + size], helped = window, True
    return order, *take(problem, order)


class XorShift:
    def __init__(self, state):
        self.state = state

    def __call__(self, below):
        x, word = self.state, 2**64 - 1
        x ^= x << 13 & word
        x ^= x >> 7
        x ^= x << 17 & word
        self.state = x
        return (x >> 33) % below


def restart(problem, order, ranks, random, best, rounds):
    n = len(order)
    for _ in range(rounds):
        trial = [*order]
        for _ in range(2 + random(max(4, n // 4))):
            place = random(n)
            trial = insert(trial, place, random(n))
        if take(problem, trial)[1] == np.inf:
            continue
        trial, trial_ranks, total = descend(problem, trial)
        if total <= best:
            order, ranks, best = trial, trial_ranks, total
    return order, ranks, best


@pytest.mark.parametrize("seed", range(4))
def test_orders_descend_and_restart_as_in_plain_python(seed):
    n_variables = 5 + 2 * seed
    problem = problem_of(n_variables, seed, sets=8)
    table = orders._Table(problem)
    order = np.random.default_rng(seed).permutation(n_variables)
    arrays, ranks = (table.words, table.start, table.regrets), np.zeros(n_variables, dtype=np.int64)

    assert orders._take(*arrays, order, ranks) == take(problem, order.tolist())[1]
    assert ranks.tolist() == take(problem, order.tolist())[0]

    expected_order, expected_ranks, expected = descend(problem, order.tolist())
    total = orders._descend(*arrays, order, ranks)
    assert (order.tolist(), ranks.tolist(), total) == (expected_order, expected_ranks, expected)

    state = np.array([12345 + seed], dtype=np.uint64)
    expected_order, expected_ranks, expected = restart(
        problem, expected_order, expected_ranks, XorShift(12345 + seed), expected, 5
    )
    total = orders._restart(*arrays, order, ranks, state, total, 5)
    assert (order.tolist(), ranks.tolist(), total) == (expected_order, expected_ranks, expected)


# Violated clusters --------------------------------------------------------------------------------------------


def outside(masks, values, inside, k):
    bits = sum(1 << member for member in inside)
    return sum(
        value
        for child in inside
        for mask, value in zip(masks[child], values[child], strict=True)
        if (mask & bits).bit_count() < k
    )


def grow(masks, values, inside, k):
    """The tabu search of `clusters._grow`, with outside(C, k) computed anew in each step."""
    n, step, last, tabu = len(masks), 0, 0, [0] * len(masks)
    now, best = set(inside), set(inside)
    least = outside(masks, values, now, k)
    while step - last < clusters._PATIENCE:
        moves = [now ^ {i} for i in range(n) if tabu[i] <= step and not (i in now and len(now) <= k + 1)]
        if not moves:
            break
        step += 1
        changed = min(moves, key=lambda move: outside(masks, values, move, k))
        (at,) = changed ^ now
        now, tabu[at] = changed, step + max(5, int(n * clusters._TABU))
        if outside(masks, values, now, k) < least - 1e-9:
            least, last, best = outside(masks, values, now, k), step, now
    return least, sorted(best)


@settings(max_examples=60)
@given(st.integers(3, 8), st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_clusters_grow_as_in_plain_python(n_variables, seed, k):
    rng = np.random.default_rng(seed)
    masks, values = [], []
    for child in range(n_variables):
        every = [sum(1 << p for p in parents) for parents in subsets([c for c in range(n_variables) if c != child])]
        masks.append([every[i] for i in rng.choice(len(every), size=3, replace=False)])
        values.append(rng.permutation([0.125, 0.25, 0.625]))  # multiples of 1/8: sums are exact
    support = clusters.Columns(masks).support(np.concatenate(values))
    start = sorted(rng.choice(n_variables, size=k + 1, replace=False).tolist())
    inside = np.zeros(n_variables, dtype=np.bool_)
    inside[start] = True
    found = clusters._grow(
        support.own,
        support.value,
        support.child,
        support.column,
        support.parent,
        support.with_parent,
        support.parent_start,
        k,
        inside,
    )
    assert (found, np.flatnonzero(inside).tolist()) == grow(masks, values, start, k)
