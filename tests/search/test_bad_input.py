"""Every complaint names the argument, the class variable, the value and the remedy."""

import math

import numpy as np
import pytest

from pmdc.search import find_structure

NONE = frozenset()
GOOD = {
    "a": {NONE: 0.0, frozenset("b"): 1.0},
    "b": {NONE: 0.0, frozenset("a"): 1.0},
    "c": {NONE: 0.0, frozenset("a"): 1.0, frozenset("b"): 1.0},
}


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, r"scores is empty: give at least one class variable"),
        ([("a", 1)], r"scores must map each class variable .* type list"),
        ({3: {NONE: 0.0}}, r"scores has the class variable 3, which is not a string"),
        ({"a": 1.0}, r"scores\['a'\] must be a dict .* type float"),
        ({"a": {}}, r"scores\['a'\] has no parent set left: give at least one set a score above -inf"),
        ({"a": {NONE: -math.inf}}, r"scores\['a'\] has no parent set left: give at least one set a score"),
        (
            {"a": {("b",): 0.0}, "b": {NONE: 0.0}},
            r"scores\['a'\] has the key \('b',\) of type tuple: use a froz",
        ),
        ({"a": {"b": 0.0}, "b": {NONE: 0.0}}, r"scores\['a'\] has the key 'b' of type str: use a frozenset"),
        ({"a": {frozenset({1}): 0.0}}, r"scores\['a'\] has a parent set with 1, which is not a string"),
        (
            {"a": {frozenset("az"): 0.0}},
            r"scores\['a'\] .* \{'a', 'z'\}, which makes 'a' its own parent: leave",
        ),
        (
            {"a": {frozenset("z"): 0.0}},
            r"scores\['a'\] .* \{'z'\} with the unknown parent 'z': give 'z' its own",
        ),
        ({"a": {NONE: math.nan}}, r"scores\['a'\] gives the parent set \{\} the score nan: use a number"),
        ({"a": {NONE: math.inf}}, r"scores\['a'\] .* the score inf: .*or -inf for a set that is not allowed"),
        ({"a": {NONE: np.finfo(float).min}}, r"scores\['a'\] .* at most 1e\+300 in size, or -inf"),
        ({"a": {NONE: "low"}}, r"scores\['a'\] gives the parent set \{\} the score 'low'"),
        ({"a": {NONE: None}}, r"scores\['a'\] gives the parent set \{\} the score None"),
        (
            {
                "a": {frozenset("b"): 0.0},
                "b": {frozenset("c"): 0.0},
                "c": {frozenset("a"): 0.0},
                "d": {NONE: 0.0},
            },
            r"scores admit no DAG: .* each of \{'a', 'b', 'c'\} contains .* such as frozenset\(\)",
        ),
    ],
)
def test_scores(scores, message):
    with pytest.raises(ValueError, match=message):
        find_structure(scores)


@pytest.mark.parametrize("argument", ["required_edges", "forbidden_edges"])
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (5, r" is 5: give \(parent, child\) pairs"),
        ("ab", r" is 'ab': give \(parent, child\) pairs"),
        (("a", "b"), r" has 'a', which is not a pair: give \(parent, child\) pairs"),
        ([("a", "b", "c")], r" has \('a', 'b', 'c'\), which is not a pair"),
        ([("a", "b"), 7], r" has 7, which is not a pair"),
        (
            [("a", "z")],
            r" has the edge \('a', 'z'\), but 'z' is not a class variable .*: use one of 'a', 'b', 'c'",
        ),
        ([("a", ["b"])], r" has the edge \('a', \['b'\]\), but \['b'\] is not a class variable"),
        ([("a", "a")], r" has the edge \('a', 'a'\) from a class variable to itself: take it out"),
    ],
)
def test_edges(argument, edges, message):
    with pytest.raises(ValueError, match=argument + message):
        find_structure(GOOD, **{argument: edges})


def test_contradictory_edges():
    with pytest.raises(ValueError, match=r"\('a', 'b'\) is in both required_edges and forbidden_edges: take it"):
        find_structure(GOOD, required_edges=[("a", "b")], forbidden_edges=[("b", "c"), ("a", "b")])


def test_required_cycle_is_named():
    edges = [("a", "b"), ("b", "c"), ("c", "a")]
    with pytest.raises(ValueError, match=r"required_edges form the cycle '(.)' -> '.' -> '.' -> '\1', .*take one"):
        find_structure(GOOD, required_edges=edges)


@pytest.mark.parametrize(
    "edges",
    [
        {"required_edges": [("c", "a")]},
        {"required_edges": [("a", "c"), ("b", "c")]},
    ],
)
def test_edges_that_leave_nothing(edges):
    child = edges["required_edges"][0][1]
    with pytest.raises(ValueError, match=rf"scores\['{child}'\] has no parent set left: .*relax required_edges"):
        find_structure(GOOD, **edges)


def test_forbidden_edges_that_leave_nothing():
    scores = {**GOOD, "c": {frozenset("a"): 1.0}}
    with pytest.raises(ValueError, match=r"scores\['c'\] .* none of its forbidden parents \{'a'\}; add such a set"):
        find_structure(scores, forbidden_edges=[("a", "c")])


def test_method():
    with pytest.raises(ValueError, match=r"method='integer' is not known: did you mean 'integer-program'\?"):
        find_structure(GOOD, "integer")
    with pytest.raises(
        ValueError, match=r"method=None is not known: The methods are 'auto', 'dynamic-programming', 'integer-"
    ):
        find_structure(GOOD, None)


@pytest.mark.parametrize("time_limit", [0, -1.0, math.nan, "soon"])
def test_time_limit(time_limit):
    with pytest.raises(ValueError, match=rf"time_limit={time_limit!r} is not a positive number: give seconds"):
        find_structure(GOOD, time_limit=time_limit)


@pytest.mark.parametrize("gap", [-0.1, math.nan, math.inf, "small", None, "0.1", True])
def test_gap(gap):
    with pytest.raises(ValueError, match=r"^gap=.* is not a number of at least 0"):
        find_structure(GOOD, gap=gap)


@pytest.mark.parametrize("memory_budget", [0, -1, math.nan, "all", None])
def test_memory_budget(memory_budget):
    with pytest.raises(ValueError, match=r"^memory_budget=.* is not a positive number: give bytes"):
        find_structure(GOOD, memory_budget=memory_budget)


def test_callback():
    with pytest.raises(ValueError, match="^callback='print' cannot be called"):
        find_structure(GOOD, callback="print")
