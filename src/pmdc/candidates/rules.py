"""The parent sets that a class variable may have: limits, tiers, required and forbidden edges.

Nodes are numbered: class variables first, then discrete features. A parent set is the sorted tuple of its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain, combinations
from typing import Any

from pmdc._support.checks import suggest
from pmdc.candidates.families import Family, ParentSet
from pmdc.search.limits import UNLIMITED, Limits
from pmdc.search.structure import check_tiers

DEFAULT_MAX_PARENTS = 3
"""Maximal number of class variables in a parent set with ``max_parents=None``, before further inputs are added."""


@dataclass(frozen=True)
class ParentRules:
    """The parent sets that one class variable may have: F^Y in the paper.

    Attributes
    ----------
    child : int
    n_classes : int
        Nodes below this number are class variables, the others discrete features.
    optional : tuple of int
        The nodes that may be parents, best first if they are ranked.
    required : frozenset of int
        The nodes that must be parents.
    max_parents, max_discrete_parents : int
        Maximal number of class variables and of discrete features in a set.
    limits : Limits
        Bounds on the clique of the child and its class-variable parents.
    """

    child: int
    n_classes: int
    optional: tuple[int, ...]
    required: frozenset[int]
    max_parents: int
    max_discrete_parents: int
    limits: Limits = UNLIMITED

    def _split(self, nodes: Sequence[int] | frozenset[int]) -> tuple[list[int], list[int]]:
        ordered = sorted(nodes)
        return [v for v in ordered if v < self.n_classes], [v for v in ordered if v >= self.n_classes]

    def _room(self) -> tuple[int, int]:
        """Return how many optional class variables and discrete features fit beside the required ones."""
        classes, features = self._split(self.required)
        return self.max_parents - len(classes), self.max_discrete_parents - len(features)

    def count(self) -> int:
        """Return the number of parent sets, without listing them; some of these may exceed the bounds."""
        return sum(self.count_of(size) for size in range(len(self.required), self.max_size() + 1))

    def count_of(self, size: int) -> int:
        """Return the number of parent sets with this many nodes."""
        (classes, features), free = self._split(self.optional), size - len(self.required)
        return sum(
            math.comb(len(classes), free - n_features) * math.comb(len(features), n_features)
            for n_features in self._numbers_of_features(free)
        )

    def max_size(self) -> int:
        classes, features = self._split(self.optional)
        room, feature_room = self._room()
        return len(self.required) + min(room, len(classes)) + min(feature_room, len(features))

    def sets(self, size: int) -> Iterator[ParentSet]:
        """Yield the parent sets with this many nodes, class variables before features, in lexicographic order.

        Those that exceed the bounds are left out.
        """
        classes, features = self._split(self.optional)
        free = size - len(self.required)
        for n_features in self._numbers_of_features(free):
            for chosen in combinations(classes, free - n_features):
                if not self.fits((*self.required, *chosen)):
                    continue
                for chosen_features in combinations(features, n_features):
                    yield tuple(sorted(chain(self.required, chosen, chosen_features)))

    def _numbers_of_features(self, free: int) -> range:
        """Return how many of so many optional parents may be discrete features."""
        room, feature_room = self._room()
        return range(max(0, free - room), min(free, feature_room) + 1)

    def keep(self, optional: Sequence[int]) -> ParentRules:
        """Return the same rules with fewer optional parents."""
        return replace(self, optional=tuple(optional))

    def fits(self, parents: Iterable[int]) -> bool:
        """Return whether the child and these parents are within the bounds together."""
        if not self.limits:
            return True
        return self.limits.fits(sum(1 << v for v in {self.child, *parents} if v < self.n_classes))

    def within(self, limits: Limits) -> ParentRules:
        """Return the same rules within bounds: without the parents that exceed them beside the required ones."""
        rule = replace(self, limits=limits)
        rule = rule.keep([v for v in self.optional if rule.fits((*self.required, v))])
        if limits.max_treewidth is None:
            return rule
        return replace(rule, max_parents=min(rule.max_parents, limits.max_treewidth))

    @property
    def required_classes(self) -> ParentSet:
        """The required parents that are class variables."""
        return tuple(self._split(self.required)[0])

    @property
    def allowed(self) -> frozenset[int]:
        """The nodes that may or must be parents."""
        return self.required | set(self.optional)

    def classes_alone(self) -> ParentRules:
        """Return the same rules with class variables as the only parents."""
        optional = tuple(self._split(self.optional)[0])
        return replace(self, optional=optional, required=frozenset(self.required_classes))

    def features(self) -> tuple[int, ...]:
        """Return the optional discrete features."""
        return tuple(self._split(self.optional)[1])

    def least(self) -> Family:
        """Return the family with the required parents as inputs."""
        return Family((), tuple(sorted(self.required)))

    def everything(self) -> Family:
        """Return the same with all allowed discrete features as inputs: binary relevance."""
        return self.least().feed(*self.features())

    def without_classes(self) -> list[Family]:
        """Return the families without class variables by which C is chosen: all features as inputs, and none."""
        both = (self.everything(), self.least())
        return list(dict.fromkeys(family.without(*range(self.n_classes)) for family in both))


def predicted_models(rules: Sequence[ParentRules], sizes: Sequence[int], n_rows: int) -> int:
    """Return an upper bound on the local models to fit: a set has no more parts than configurations or rows."""
    total = 0
    for rule in rules:
        for size in range(len(rule.required), rule.max_size() + 1):
            total += sum(min(math.prod(sizes[v] for v in parents), n_rows) for parents in rule.sets(size))
    return total


def parent_rules(
    class_names: Sequence[str],
    discrete_names: Sequence[str],
    continuous_names: Sequence[str],
    max_parents: int | None,
    max_discrete_parents: int,
    required_edges: Iterable[tuple[str, str]] | None,
    forbidden_edges: Iterable[tuple[str, str]] | None,
    inputs: bool = False,
    tiers: Any = None,
) -> list[ParentRules]:
    """Return one `ParentRules` for each class variable; raise an error for edges that no network can have.

    If parents may be `inputs`, more may be required than the limits allow.
    """
    max_parents = DEFAULT_MAX_PARENTS if max_parents is None else max_parents
    nodes = {name: i for i, name in enumerate([*class_names, *discrete_names])}
    required = _parents(required_edges, "required_edges", class_names, nodes, continuous_names)
    forbidden = _parents(forbidden_edges, "forbidden_edges", class_names, nodes, continuous_names)
    names, n_classes = list(nodes), len(class_names)
    for child, name in enumerate(class_names):
        both = required[child] & forbidden[child]
        if both:
            raise ValueError(
                f"the edge ({names[min(both)]!r}, {name!r}) is both in required_edges and in forbidden_edges: remove "
                "it from one of them."
            )
    _refuse_cycle(required, names)
    later = check_tiers(class_names, tiers, {n: {names[p] for p in required[k]} for k, n in enumerate(class_names)})
    rules = []
    for child, name in enumerate(class_names):
        n_required = sum(v < n_classes for v in required[child])
        for argument, limit, number in (
            ("max_parents", max_parents, n_required),
            ("max_discrete_parents", max_discrete_parents, len(required[child]) - n_required),
        ):
            if number > limit and not inputs:
                raise ValueError(
                    f"required_edges give {name!r} {number} parents, more than {argument}={limit}: raise {argument} "
                    "or require fewer edges."
                )
        excluded = {child} | required[child] | forbidden[child] | {nodes[other] for other in later[name]}
        optional = tuple(v for v in range(len(nodes)) if v not in excluded)
        limits = max(max_parents, n_required), max_discrete_parents
        rules.append(ParentRules(child, n_classes, optional, frozenset(required[child]), *limits))
    return rules


def _parents(
    edges: Any, argument: str, class_names: Sequence[str], nodes: dict[str, int], continuous: Sequence[str]
) -> list[set[int]]:
    parents: list[set[int]] = [set() for _ in class_names]
    if edges is None:
        return parents
    if isinstance(edges, str) or not isinstance(edges, Iterable) or iter(edges) is edges:
        raise ValueError(f"{argument}={edges!r} must be a list of (parent, child) pairs of names.")
    for edge in edges:
        if not isinstance(edge, (tuple, list)) or len(edge) != 2 or not all(isinstance(end, str) for end in edge):
            raise ValueError(f"{argument} contains {edge!r}, which is not a (parent, child) pair of names.")
        parent, child = edge
        if child not in class_names:
            is_feature = child in nodes or child in continuous
            reason = "a feature; edges point to class variables only." if is_feature else "not a class variable"
            hint = "" if is_feature else suggest(child, class_names)
            raise ValueError(f"{argument}: ({parent!r}, {child!r}) points to {child!r}, which is {reason}{hint}")
        if parent in continuous and parent not in nodes:
            raise ValueError(
                f"{argument}: {parent!r} is a continuous feature. Every local model has all continuous features, so "
                "they have no edges: name only class variables and discrete features."
            )
        if parent not in nodes:
            raise ValueError(
                f"{argument}: {parent!r} is neither a class variable nor a discrete feature"
                f"{suggest(parent, list(nodes))}"
            )
        if parent == child:
            raise ValueError(f"{argument}: {child!r} cannot be its own parent.")
        parents[class_names.index(child)].add(nodes[parent])
    return parents


def _refuse_cycle(required: Sequence[set[int]], names: Sequence[str]) -> None:
    try:
        TopologicalSorter(dict(enumerate(required))).prepare()
    except CycleError as error:
        cycle = " -> ".join(repr(names[v]) for v in error.args[1])
        raise ValueError(f"required_edges contain the cycle {cycle}: remove one of these edges.") from None
