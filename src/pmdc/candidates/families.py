"""Families: a class variable's parents, and how each of them enters its local models.

Nodes are numbered: class variables first, then discrete features. A parent divides the rows, so that each of its
states has models of its own (the paper's way), or it is an input of the models, as the links of a chain use their
predecessors.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

ParentSet = tuple[int, ...]


class Family(NamedTuple):
    """The parents of a class variable.

    Attributes
    ----------
    partition : tuple of int
        The parents that divide the rows, in increasing order.
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
        return class_part(self.parents, n_classes)

    def divide_by(self, *nodes: int) -> Family:
        """The family with more parents that divide the rows; inputs among them change their way."""
        return Family(_sorted({*self.partition, *nodes}), _sorted(set(self.inputs) - {*nodes}))

    def feed(self, *nodes: int) -> Family:
        """The family with more inputs; parents among them that divide the rows change their way."""
        return Family(_sorted(set(self.partition) - {*nodes}), _sorted({*self.inputs, *nodes}))

    def without(self, *nodes: int) -> Family:
        return Family(
            tuple(v for v in self.partition if v not in nodes), tuple(v for v in self.inputs if v not in nodes)
        )

    def coarser(self) -> list[Family]:
        """The families that divide the rows by one parent less, without the last one first."""
        return [self.without(v) for v in reversed(self.partition)]


def _sorted(nodes: set[int]) -> ParentSet:
    return tuple(sorted(nodes))


def class_part(parents: ParentSet, n_classes: int) -> ParentSet:
    """The class variables of a parent set."""
    return tuple(v for v in parents if v < n_classes)


def best_coarser(table: Mapping[Family, float], family: Family) -> Family:
    """The family without the dividing parent whose removal scores best.

    A family that was not scored comes last, and among equals the later parent goes.
    """
    return max(family.coarser(), key=lambda fewer: table.get(fewer, -inf))
