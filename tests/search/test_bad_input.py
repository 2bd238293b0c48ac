"""Every error names the argument, the class variable and the value."""

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
        ({}, r"scores is empty"),
        ([("a", 1)], r"^scores .* list\.$"),
        ({3: {NONE: 0.0}}, r"^scores .* 3"),
        ({"a": 1.0}, r"scores\['a'\] .* float\.$"),
        ({"a": {}}, r"scores\['a'\] has no parent set left: .*-inf"),
        ({"a": {NONE: -math.inf}}, r"scores\['a'\] has no parent set left: .*-inf"),
        ({"a": {("b",): 0.0}, "b": {NONE: 0.0}}, r"scores\['a'\] .* \('b',\) of type tuple: use a frozenset"),
        ({"a": {"b": 0.0}, "b": {NONE: 0.0}}, r"scores\['a'\] .* 'b' of type str: use a frozenset"),
        ({"a": {frozenset({1}): 0.0}}, r"scores\['a'\] .* 1, "),
        ({"a": {frozenset("az"): 0.0}}, r"scores\['a'\] .* \{'a', 'z'\}.* 'a' its own parent"),
        ({"a": {frozenset("z"): 0.0}}, r"scores\['a'\] .* \{'z'\} .*unknown parent 'z'"),
        ({"a": {NONE: math.nan}}, r"scores\['a'\] .* \{\} the score nan"),
        ({"a": {NONE: math.inf}}, r"scores\['a'\] .* \{\} the score inf: .*-inf"),
        ({"a": {NONE: np.finfo(float).min}}, r"scores\['a'\] .* 1e\+300, or -inf"),
        ({"a": {NONE: "low"}}, r"scores\['a'\] .* \{\} the score 'low'"),
        ({"a": {NONE: None}}, r"scores\['a'\] .* \{\} the score None"),
        (
            {
                "a": {frozenset("b"): 0.0},
                "b": {frozenset("c"): 0.0},
                "c": {frozenset("a"): 0.0},
                "d": {NONE: 0.0},
            },
            r"scores admit no DAG: .*\{'a', 'b', 'c'\} .* frozenset\(\)",
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
        (5, r" is 5: .*\(parent, child\)"),
        ("ab", r" is 'ab': .*\(parent, child\)"),
        (("a", "b"), r" has 'a', .*\(parent, child\)"),
        ([("a", "b", "c")], r" has \('a', 'b', 'c'\)"),
        ([("a", "b"), 7], r" has 7"),
        ([("a", "z")], r" has the edge \('a', 'z'\), .*'z' .* 'a', 'b', 'c'"),
        ([("a", ["b"])], r" has the edge \('a', \['b'\]\), .*\['b'\]"),
        ([("a", "a")], r" has the edge \('a', 'a'\)"),
    ],
)
def test_edges(argument, edges, message):
    with pytest.raises(ValueError, match=argument + message):
        find_structure(GOOD, **{argument: edges})


def test_contradictory_edges():
    with pytest.raises(ValueError, match=r"\('a', 'b'\) is in both required_edges and forbidden_edges"):
        find_structure(GOOD, required_edges=[("a", "b")], forbidden_edges=[("b", "c"), ("a", "b")])


def test_required_cycle_is_named():
    edges = [("a", "b"), ("b", "c"), ("c", "a")]
    with pytest.raises(ValueError, match=r"required_edges form the cycle '(.)' -> '.' -> '.' -> '\1'"):
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
    with pytest.raises(ValueError, match=rf"scores\['{child}'\] has no parent set left: .*required_edges"):
        find_structure(GOOD, **edges)


def test_forbidden_edges_that_leave_nothing():
    scores = {**GOOD, "c": {frozenset("a"): 1.0}}
    with pytest.raises(ValueError, match=r"scores\['c'\] .* forbidden parents \{'a'\}"):
        find_structure(scores, forbidden_edges=[("a", "c")])


def test_method():
    with pytest.raises(ValueError, match=r"method='integer' .*did you mean 'integer-program'"):
        find_structure(GOOD, "integer")
    with pytest.raises(ValueError, match=r"method=None .*'auto', 'dynamic-programming', 'integer-"):
        find_structure(GOOD, None)


@pytest.mark.parametrize("time_limit", [0, -1.0, math.nan, "soon"])
def test_time_limit(time_limit):
    with pytest.raises(ValueError, match=f"time_limit={time_limit!r} .*positive"):
        find_structure(GOOD, time_limit=time_limit)


@pytest.mark.parametrize("gap", [-0.1, math.nan, math.inf, "small", None, "0.1", True])
def test_gap(gap):
    with pytest.raises(ValueError, match=f"^gap={gap!r} .*at least 0"):
        find_structure(GOOD, gap=gap)


@pytest.mark.parametrize("memory_budget", [0, -1, math.nan, "all", None])
def test_memory_budget(memory_budget):
    with pytest.raises(ValueError, match=f"^memory_budget={memory_budget!r} .*positive"):
        find_structure(GOOD, memory_budget=memory_budget)


def test_callback():
    with pytest.raises(ValueError, match="^callback='print'"):
        find_structure(GOOD, callback="print")
