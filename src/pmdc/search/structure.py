"""The result of a structure search, `Structure`, and the checks of its arguments."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from numbers import Real
from typing import Any

import numpy as np

Edge = tuple[str, str]

# Sums of scores must not overflow.
MAX_SCORE = 1e300


@dataclass(frozen=True)
class Structure:
    """A DAG over the class variables and what is proved about its score.

    Attributes
    ----------
    parents : dict of str to frozenset of str
        The parents of each class variable, in the order of the score table.
    score : float
        Sum of the local scores of the chosen parent sets.
    bound : float
        Upper bound on the score of every DAG within the limits (for the integer program, up to its tolerance). Equal
        to `score` if `status` is "optimal".
    gap : float
        ``(bound - score) / max(1, abs(score))``; 0.0 if `status` is "optimal".
    status : str
        "optimal" if no DAG within the limits has a greater score; otherwise why the search stopped: "gap limit" (the
        requested gap is proved), "time limit", "memory limit", "interrupted", or "unproved" (an inexact method ended).
    seconds : float
        Wall-clock time of the search.
    method : str
        The method that was used, never "auto"; joined by " and " if components were solved by different methods.
    elimination_order : tuple of str or None
        An order in which inference can eliminate the class variables with all cliques within `max_treewidth` and
        `max_clique_cells`. None if there was no such bound, and in a callback.
    """

    parents: dict[str, frozenset[str]]
    score: float
    bound: float
    gap: float
    status: str
    seconds: float
    method: str
    elimination_order: tuple[str, ...] | None = None

    def __str__(self) -> str:
        """Return score, status, method and time in one line."""
        how = f"{self.method} in {self.seconds:.3g} s"
        if self.gap == 0.0:
            return f"score {self.score:.8g}, {self.status}, by {how}"
        return f"score {self.score:.8g}, {self.status}, by {how}; bound {self.bound:.8g} (gap {self.gap:.2g})"


def check_scores(scores: Any) -> dict[str, dict[frozenset[str], float]]:
    """Return the score table with plain floats, without the sets whose score is -inf."""
    if not isinstance(scores, Mapping):
        raise ValueError(
            "scores must map each class variable to a dict {frozenset of parents: score}, "
            f"but its type is {type(scores).__name__}."
        )
    if not scores:
        raise ValueError("scores is empty: give at least one class variable, such as {'a': {frozenset(): 0.0}}.")
    for name in scores:
        if not isinstance(name, str):
            raise ValueError(f"scores has the class variable {name!r}, which is not a string: use its name.")
    return {name: _check_table(name, table, scores) for name, table in scores.items()}


def _check_table(name: str, table: Any, names: Mapping[str, Any]) -> dict[frozenset[str], float]:
    if not isinstance(table, Mapping):
        raise ValueError(
            f"scores[{name!r}] must be a dict {{frozenset of parents: score}}, but its type is {type(table).__name__}."
        )
    checked = {}
    for parents, score in table.items():
        if not isinstance(parents, frozenset):
            raise ValueError(
                f"scores[{name!r}] has the key {parents!r} of type {type(parents).__name__}: "
                "use a frozenset of names, such as frozenset({'a', 'b'})."
            )
        for parent in parents:
            if not isinstance(parent, str):
                raise ValueError(
                    f"scores[{name!r}] has a parent set with {parent!r}, which is not a string: use its name."
                )
        if name in parents:
            raise ValueError(
                f"scores[{name!r}] has the parent set {show_set(parents)}, which makes {name!r} its own "
                "parent: remove that set."
            )
        if unknown := sorted(parents - names.keys()):
            raise ValueError(
                f"scores[{name!r}] has the parent set {show_set(parents)} with the unknown parent "
                f"{unknown[0]!r}: give {unknown[0]!r} its own entry in scores or remove that set."
            )
        value = _as_float(score)
        if value == -math.inf:
            continue
        if value is None or not abs(value) <= MAX_SCORE:
            raise ValueError(
                f"scores[{name!r}] gives the parent set {show_set(parents)} the score {score!r}: use a "
                f"number between -{MAX_SCORE:g} and {MAX_SCORE:g}, or -inf for a set that is not allowed."
            )
        checked[parents] = value
    return checked


def _as_float(value: Any) -> float | None:
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def show_set(parents: Iterable[str]) -> str:
    """Return a parent set as text, with sorted names."""
    return "{" + ", ".join(map(repr, sorted(parents))) + "}"


def check_edges(
    names: Sequence[str], required: Iterable[Edge] | None, forbidden: Iterable[Edge] | None
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the required and the forbidden parents of each class variable."""
    must = _parents_by_child("required_edges", required, names)
    must_not = _parents_by_child("forbidden_edges", forbidden, names)
    for child in names:
        for parent in names:
            if parent in must[child] & must_not[child]:
                raise ValueError(
                    f"the edge ({parent!r}, {child!r}) is in both required_edges and forbidden_edges: "
                    "remove it from one of them."
                )
    try:
        TopologicalSorter(must).prepare()
    except CycleError as error:
        cycle = " -> ".join(map(repr, error.args[1]))
        raise ValueError(
            f"required_edges form the cycle {cycle}, which no DAG can have: remove one of its edges."
        ) from None
    return must, must_not


def _parents_by_child(argument: str, edges: Any, names: Sequence[str]) -> dict[str, set[str]]:
    parents: dict[str, set[str]] = {name: set() for name in names}
    remedy = "give (parent, child) pairs of class variables, such as [('a', 'b')]"
    if edges is None:
        return parents
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ValueError(f"{argument} is {edges!r}: {remedy}.")
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence | np.ndarray) or len(edge) != 2:
            raise ValueError(f"{argument} has {edge!r}, which is not a pair: {remedy}.")
        parent, child = edge
        for end in edge:
            if end not in names:
                raise ValueError(
                    f"{argument} has the edge ({parent!r}, {child!r}), but {end!r} is not a class variable "
                    f"of scores: use one of {', '.join(map(repr, names))}."
                )
        if parent == child:
            raise ValueError(
                f"{argument} has the edge ({parent!r}, {child!r}) from a class variable to itself: remove it."
            )
        parents[child].add(parent)
    return parents


def check_tiers(names: Sequence[str], tiers: Any, required: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return for each class variable those of later tiers, which cannot be its parents."""
    later: dict[str, set[str]] = {name: set() for name in names}
    tier_of = {} if tiers is None else _tier_of_each(names, tiers)
    for child, tier in tier_of.items():
        later[child] = {name for name, other in tier_of.items() if other > tier}
        if wrong := sorted(later[child] & required[child]):
            raise ValueError(
                f"required_edges has the edge ({wrong[0]!r}, {child!r}), but tiers put {child!r} before {wrong[0]!r}: "
                "remove the edge or change tiers."
            )
    return later


def _tier_of_each(names: Sequence[str], tiers: Any) -> dict[str, int]:
    remedy = "give a list of lists of class variables, those that come first in the first list"
    if isinstance(tiers, str | Mapping) or not isinstance(tiers, Iterable):
        raise ValueError(f"tiers is {tiers!r}: {remedy}.")
    known = set(names)
    tier_of: dict[str, int] = {}
    for number, tier in enumerate(tiers):
        if isinstance(tier, str) or not isinstance(tier, Iterable):
            raise ValueError(f"tiers[{number}] is {tier!r}: {remedy}.")
        for name in tier:
            if not isinstance(name, str) or name not in known:
                raise ValueError(f"tiers[{number}] has {name!r}, which is not a class variable of scores: remove it.")
            if tier_of.setdefault(name, number) != number:
                raise ValueError(
                    f"tiers[{number}] has {name!r}, which is in tiers[{tier_of[name]}], too: keep it in one of them."
                )
    return tier_of


def check_start(start: Any, names: Mapping[str, Any], later: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """Return the parents of each class variable in the DAG to start from; none may be of a later tier."""
    parents = start.parents if isinstance(start, Structure) else start
    if not isinstance(parents, Mapping):
        raise ValueError(f"start must be a Structure or a dict of parents, but its type is {type(start).__name__}.")
    for name in parents:
        if name not in names:
            raise ValueError(f"start has {name!r}, which is not a class variable of scores: remove it.")
    checked = {}
    for name in names:
        if name not in parents or isinstance(parents[name], str) or not isinstance(parents[name], Iterable):
            raise ValueError(f"start must give the parents of {name!r} as a set of names; an empty set if it has none.")
        checked[name] = frozenset(parents[name])
        if unknown := sorted(checked[name] - names.keys(), key=str):
            raise ValueError(
                f"start gives {name!r} the parent {unknown[0]!r}, which is not a class variable of scores."
            )
        if wrong := sorted(checked[name] & later[name]):
            raise ValueError(
                f"start gives {name!r} the parent {wrong[0]!r}, but tiers put {name!r} before {wrong[0]!r}: remove "
                "the parent or change tiers."
            )
    return checked


def check_time_limit(time_limit: Any, argument: str = "time_limit") -> float:
    """Return a time limit in seconds, infinity for None."""
    if time_limit is None:
        return math.inf
    seconds = _as_float(time_limit)
    if seconds is None or not seconds > 0:
        raise ValueError(f"{argument}={time_limit!r} must be a positive number of seconds, or None for no limit.")
    return seconds


def check_gap(gap: Any) -> float:
    """Return the gap as a float."""
    value = _as_float(gap)
    if value is None or not 0 <= value < math.inf:
        raise ValueError(f"gap={gap!r} must be a finite number of at least 0, relative to the score, such as 0.01.")
    return value


def check_memory_budget(memory_budget: Any) -> int:
    """Return the memory budget in bytes."""
    value = _as_float(memory_budget)
    if value is None or not 1 <= value < math.inf:
        raise ValueError(f"memory_budget={memory_budget!r} must be a positive number of bytes, such as 2**32.")
    return int(value)


def check_callback(callback: Any) -> Any:
    """Return the callback if it is callable or None."""
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r} must be a function that takes a Structure, or None.")
    return callback
