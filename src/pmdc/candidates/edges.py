"""Required and forbidden edges: from names to rules for the parent sets of each class variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pmdc._support.checks import suggest
from pmdc.candidates.rules import ParentRules


def parent_rules(
    class_names: Sequence[str],
    discrete_names: Sequence[str],
    continuous_names: Sequence[str],
    max_parents: int,
    max_discrete_parents: int,
    required_edges: Iterable[tuple[str, str]] | None,
    forbidden_edges: Iterable[tuple[str, str]] | None,
    inputs: bool = False,
) -> list[ParentRules]:
    """One `ParentRules` for each class variable; complains of edges that no network can obey.

    Where parents may be `inputs`, required ones may be more than the limits.
    """
    nodes = {name: i for i, name in enumerate([*class_names, *discrete_names])}
    required = _parents(required_edges, "required_edges", class_names, nodes, continuous_names)
    forbidden = _parents(forbidden_edges, "forbidden_edges", class_names, nodes, continuous_names)
    names = list(nodes)
    for child, name in enumerate(class_names):
        both = required[child] & forbidden[child]
        if both:
            raise ValueError(
                f"the edge ({names[min(both)]!r}, {name!r}) is in required_edges and in forbidden_edges: "
                "take it out of one of them."
            )
    _refuse_cycle(required, names)
    rules = []
    for child, name in enumerate(class_names):
        for limit, argument, members in (
            (max_parents, "max_parents", {v for v in required[child] if v < len(class_names)}),
            (
                max_discrete_parents,
                "max_discrete_parents",
                {v for v in required[child] if v >= len(class_names)},
            ),
        ):
            if len(members) > limit and not inputs:
                raise ValueError(
                    f"required_edges give {name!r} {len(members)} parents of one kind, more than {argument}={limit}: "
                    f"raise {argument} or require fewer."
                )
        optional = tuple(v for v in range(len(nodes)) if v != child and v not in required[child] | forbidden[child])
        rules.append(
            ParentRules(
                child,
                len(class_names),
                optional,
                frozenset(required[child]),
                max(max_parents, sum(v < len(class_names) for v in required[child])),
                max_discrete_parents,
            )
        )
    return rules


def _parents(
    edges: Any, argument: str, class_names: Sequence[str], nodes: dict[str, int], continuous: Sequence[str]
) -> list[set[int]]:
    parents: list[set[int]] = [set() for _ in class_names]
    if edges is None:
        return parents
    if isinstance(edges, str) or not isinstance(edges, Iterable) or iter(edges) is edges:
        raise ValueError(f"{argument}={edges!r}: give a list of pairs (parent, child) of names.")
    for edge in edges:
        if not isinstance(edge, (tuple, list)) or len(edge) != 2 or not all(isinstance(end, str) for end in edge):
            raise ValueError(f"{argument} holds {edge!r}: give pairs (parent, child) of names.")
        parent, child = edge
        if child not in class_names:
            where = "a feature, and features are never children" if child in nodes or child in continuous else None
            raise ValueError(
                f"{argument}: ({parent!r}, {child!r}) points to {child!r}, which is "
                + (f"{where}." if where else f"no class variable{suggest(child, class_names)}")
            )
        if parent in continuous and parent not in nodes:
            raise ValueError(
                f"{argument}: {parent!r} is a continuous feature; these go into every local model and are not edges. "
                "Name class variables and discrete features only."
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
        raise ValueError(f"required_edges form the cycle {cycle}, which no DAG has: take one edge out.") from None
