"""Families: the parents of a class variable, and how each of them enters its local models.

Nodes are numbered: class variables first, then discrete features. A parent either partitions the rows, so that each of
its states has its own models (as in the paper), or is an input of the models (as in a classifier chain).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

ParentSet = tuple[int, ...]


class Family(NamedTuple):
    """The parents of a class variable: those that partition the rows and those that are inputs, each ascending."""

    partition: ParentSet
    inputs: ParentSet = ()

    @property
    def parents(self) -> ParentSet:
        return tuple(sorted((*self.partition, *self.inputs)))

    def classes(self, n_classes: int) -> ParentSet:
        """Return the class variables among the parents."""
        return tuple(v for v in self.parents if v < n_classes)

    def divide_by(self, *nodes: int) -> Family:
        """Return the family in which these parents partition the rows, added or moved from the inputs."""
        return Family(_sorted({*self.partition, *nodes}), _sorted(set(self.inputs) - {*nodes}))

    def feed(self, *nodes: int) -> Family:
        """Return the family in which these parents are inputs, added or moved from the partition."""
        return Family(_sorted(set(self.partition) - {*nodes}), _sorted({*self.inputs, *nodes}))

    def without(self, *nodes: int) -> Family:
        return Family(
            tuple(v for v in self.partition if v not in nodes), tuple(v for v in self.inputs if v not in nodes)
        )

    def coarser(self, ranking: Sequence[int]) -> Family | None:
        """Return the family without the least informative parent of the partition; None if there is no partition.

        Local models are shrunk towards those of the coarser family, fall back on them, and start from them.

        Parameters
        ----------
        ranking : sequence of int
            The possible parents, the most informative first (`pmdc.candidates.ranking`).
        """
        if not self.partition:
            return None
        return self.without(max(self.partition, key=ranking.index))


MAX_INPUT_COEFFICIENTS = 2_000
"""Families whose inputs would have more coefficients than this in a local model are not scored.

A Newton step of logistic regression takes time cubic in their number. They arise only if both a class variable and its
parent have dozens of states; such parents may still partition the rows.
"""


def is_small(child: int, family: Family, sizes: Sequence[int], required: Collection[int]) -> bool:
    """Return whether the inputs of a family, required ones aside, have few enough coefficients."""
    width = sum(sizes[p] - 1 for p in family.inputs if p not in required)
    return (sizes[child] - 1) * width <= MAX_INPUT_COEFFICIENTS


Task = tuple[int, Family]
"""A class variable and one of its families."""

FamilyTable = dict[Family, float]
"""The scores of the families of one class variable."""


def in_order(table: Mapping[Family, float]) -> FamilyTable:
    """Return the table sorted by family size, independent of the order in which families were scored."""
    return {family: table[family] for family in sorted(table, key=lambda f: (len(f.parents), len(f.inputs), f))}


def best_per_class_set(table: Mapping[Family, float], n_classes: int) -> dict[ParentSet, Family]:
    """Return the best family for each set of class variables; of equal scores, the first in the table.

    Discrete features are never children, and how a parent enters a family does not affect others: neither can close a
    cycle. So both can be chosen before the search of the structure, which stays exact.
    """
    best: dict[ParentSet, Family] = {}
    for family, score in table.items():
        classes = family.classes(n_classes)
        if classes not in best or score > table[best[classes]]:
            best[classes] = family
    return best


def _sorted(nodes: Iterable[int]) -> ParentSet:
    return tuple(sorted(nodes))
