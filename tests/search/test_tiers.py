"""Tiers: no edge from a later tier to an earlier one, in every method."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import best_score
from pmdc.search import METHODS, find_structure
from problems import random_scores


def later_to_earlier(tiers):
    return [(u, v) for i, tier in enumerate(tiers) for v in tier for later in tiers[i + 1 :] for u in later]


@given(st.integers(2, 5), st.integers(0, 10**6), st.lists(st.integers(0, 3), min_size=5, max_size=5))
@settings(max_examples=50, deadline=None)
def test_tiers_are_forbidden_edges(count, seed, tier_of):
    scores = random_scores(count, seed)
    # Those in tier 3 are free.
    tiers = [[name for name, tier in zip(scores, tier_of, strict=False) if tier == i] for i in range(3)]
    forbidden = later_to_earlier(tiers)
    expected = best_score(scores, (), forbidden)
    for method in METHODS:
        found = find_structure(scores, method, tiers=tiers)
        assert not any(u in found.parents[v] for u, v in forbidden)
        assert found.score <= expected + 1e-9 <= found.bound + 2e-9
        assert found.score == find_structure(scores, method, forbidden_edges=forbidden).score
    assert find_structure(scores, tiers=tiers).score == pytest.approx(expected)


def test_any_iterables_and_empty_tiers():
    scores = random_scores(5, 0)
    plain = find_structure(scores)
    for tiers in (None, [], [[]], ({"y0", "y1", "y2", "y3", "y4"},), iter([[], scores.keys(), ()])):
        assert find_structure(scores, tiers=tiers).parents == plain.parents
    order = find_structure(scores, tiers=[(name,) for name in scores])
    assert order.score == math.fsum(
        max(score for parents, score in table.items() if all(p < child for p in parents))
        for child, table in scores.items()
    )


NONE = frozenset()
GOOD = {"a": {NONE: 0.0, frozenset("b"): 1.0}, "b": {NONE: 0.0, frozenset("a"): 1.0}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tiers": 5}, "tiers is 5: give a list of lists"),
        ({"tiers": "ab"}, "tiers is 'ab': give a list of lists"),
        ({"tiers": ["a", "b"]}, r"tiers\[0\] is 'a': give a list of lists"),
        ({"tiers": [["a"], ["z"]]}, r"tiers\[1\] has 'z'"),
        ({"tiers": [["a", ""]]}, r"tiers\[0\] has ''"),
        ({"tiers": [["a"], [["b"]]]}, r"tiers\[1\] has \['b'\]"),
        ({"tiers": [["a"], ["b", "a"]]}, r"tiers\[1\] has 'a', .*tiers\[0\]"),
        (
            {"tiers": [["a"], ["b"]], "required_edges": [("b", "a")]},
            r"required_edges has the edge \('b', 'a'\), but tiers put 'a' before 'b'",
        ),
        (
            {"tiers": [["a"], ["b"]], "start": {"a": {"b"}, "b": NONE}},
            "start gives 'a' the parent 'b', but tiers put 'a' before 'b'",
        ),
    ],
)
def test_contradictory_tiers(arguments, message):
    with pytest.raises(ValueError, match=message):
        find_structure(GOOD, **arguments)


def test_tiers_that_leave_nothing():
    with pytest.raises(ValueError, match=r"scores\['a'\] has no parent set left: .*tiers"):
        find_structure({**GOOD, "a": {frozenset("b"): 0.0}}, tiers=[["a"], ["b"]])
