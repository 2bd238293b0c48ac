"""Families: a class variable's parents, and how each of them enters its local models.

Nodes are numbered: class variables first, then discrete features. A parent partitions the rows, so that each of its
states has models of its own (the paper's way), or it is an input of the models, as the links of a chain use their
predecessors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

ParentSet = tuple[int, ...]


class Family(NamedTuple):
    """The parents of a class variable.

    Attributes
    ----------
    partition : tuple of int
        The parents that partition the rows, in increasing order.
    inputs : tuple of int
        The parents that are inputs of the models, in increasing order.
    """

    partition: ParentSet
    inputs: ParentSet = ()

    @property
    def parents(self) -> ParentSet:
        return tuple(sorted((*self.partition, *self.inputs)))

    def classes(self, n_classes: int) -> ParentSet:
        """The class variables among the parents."""
        return tuple(v for v in self.parents if v < n_classes)

    def divide_by(self, *nodes: int) -> Family:
        """The family with more parents that partition the rows; inputs among them change sides."""
        return Family(_sorted({*self.partition, *nodes}), _sorted(set(self.inputs) - {*nodes}))

    def feed(self, *nodes: int) -> Family:
        """The family with more inputs; parents among them that partition the rows change sides."""
        return Family(_sorted(set(self.partition) - {*nodes}), _sorted({*self.inputs, *nodes}))

    def without(self, *nodes: int) -> Family:
        return Family(
            tuple(v for v in self.partition if v not in nodes), tuple(v for v in self.inputs if v not in nodes)
        )

    def coarser(self, ranking: Sequence[int]) -> Family | None:
        """The family without the least informative parent that partitions the rows; None where none does.

        Local models are shrunk towards those of this family, fall back on them, and start from them.

        Parameters
        ----------
        ranking : sequence of int
            The possible parents, the most informative first (`pmdc.candidates.ranking`).
        """
        if not self.partition:
            return None
        return self.without(max(self.partition, key=ranking.index))


Task = tuple[int, Family]
"""A class variable and its family."""

FamilyTable = dict[Family, float]
"""The scores of the families of one class variable."""


def in_order(table: Mapping[Family, float]) -> FamilyTable:
    """Return the same table, smaller families first, whatever the order in which they were scored."""
    return {family: table[family] for family in sorted(table, key=lambda f: (len(f.parents), len(f.inputs), f))}


def best_per_class_set(table: Mapping[Family, float], n_classes: int) -> dict[ParentSet, Family]:
    """For each set of class variables the best family: the choice of discrete features and of the conditioning.

    Discrete features are never children, and how a parent enters concerns no other family: neither closes a cycle. So
    whichever serves a set of class variables best can be chosen before the search, and the search stays exact. Of
    equals the first of the table is taken.
    """
    best: dict[ParentSet, Family] = {}
    for family, score in table.items():
        classes = family.classes(n_classes)
        if classes not in best or score > table[best[classes]]:
            best[classes] = family
    return best


def _sorted(nodes: Iterable[int]) -> ParentSet:
    return tuple(sorted(nodes))
