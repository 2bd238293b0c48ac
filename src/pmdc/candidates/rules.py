"""Which parent sets a class variable may have: F^Y in the paper."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from pmdc.candidates.families import ParentSet


@dataclass(frozen=True)
class ParentRules:
    """Which parent sets one class variable may have: F^Y in the paper.

    Attributes
    ----------
    child : int
    n_classes : int
        Nodes below this number are class variables, the others discrete features.
    optional : tuple of int
        The nodes that may be parents, best first where they were ranked.
    required : frozenset of int
        The nodes that must be.
    max_parents, max_discrete_parents : int
        Most class variables and most discrete features in a set.
    """

    child: int
    n_classes: int
    optional: tuple[int, ...]
    required: frozenset[int]
    max_parents: int
    max_discrete_parents: int

    def _split(self, nodes: Sequence[int] | frozenset[int]) -> tuple[list[int], list[int]]:
        ordered = sorted(nodes)
        return [v for v in ordered if v < self.n_classes], [v for v in ordered if v >= self.n_classes]

    def _room(self) -> tuple[int, int]:
        """How many optional class variables and discrete features fit beside the required ones."""
        classes, features = self._split(self.required)
        return self.max_parents - len(classes), self.max_discrete_parents - len(features)

    def count(self) -> int:
        """The number of parent sets, without listing them."""
        counts = []
        for nodes, room in zip(self._split(self.optional), self._room(), strict=True):
            counts.append(sum(math.comb(len(nodes), size) for size in range(room + 1)))
        return math.prod(counts)

    def max_size(self) -> int:
        classes, features = self._split(self.optional)
        room, feature_room = self._room()
        return len(self.required) + min(room, len(classes)) + min(feature_room, len(features))

    def sets(self, size: int) -> Iterator[ParentSet]:
        """The parent sets with this many nodes, class variables before features, in lexicographic order."""
        classes, features = self._split(self.optional)
        room, feature_room = self._room()
        free = size - len(self.required)
        for n_features in range(max(0, free - room), min(free, feature_room) + 1):
            for chosen in combinations(classes, free - n_features):
                for chosen_features in combinations(features, n_features):
                    yield tuple(sorted(chain(self.required, chosen, chosen_features)))

    def keep(self, optional: Sequence[int]) -> ParentRules:
        """The same rules with fewer optional parents."""
        return replace(self, optional=tuple(optional))


def predicted_models(rules: Sequence[ParentRules], sizes: Sequence[int], n_rows: int) -> int:
    """An upper bound on the local models to be fitted: no set has more parts than configurations or rows."""
    total = 0
    for rule in rules:
        for size in range(len(rule.required), rule.max_size() + 1):
            total += sum(min(math.prod(sizes[v] for v in parents), n_rows) for parents in rule.sets(size))
    return total
