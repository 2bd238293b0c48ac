"""Rows grouped by the configuration of a parent set.

Only observed configurations are stored, never a table over all of them: a configuration is the number that
its codes spell in the mixed radix of the parents' sizes, and the observed ones are kept sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmdc.table import UNKNOWN, Codes, Floats


@dataclass(frozen=True)
class Configurations:
    """The observed configurations of a parent set: what remains of a partition when its rows are gone."""

    parents: tuple[int, ...]
    sizes: tuple[int, ...]
    observed: Codes

    def find(self, codes: Codes) -> Codes:
        """The part of each row of a table; -1 where its configuration was not observed."""
        numbers = _numbers(codes, self.parents, self.sizes)
        place = np.minimum(np.searchsorted(self.observed, numbers), len(self.observed) - 1)
        unknown = self.observed[place] != numbers
        for parent in self.parents:  # a value never seen could spell the number of another configuration
            unknown |= codes[:, parent] == UNKNOWN
        return np.where(unknown, UNKNOWN, place)

    def within(self, coarser: Configurations) -> Codes:
        """The part of a partition by some of these parents that each configuration lies in."""
        codes = np.unravel_index(self.observed, self.sizes) if self.sizes else ()
        number = np.zeros(len(self.observed), dtype=np.int64)
        for parent, size in zip(coarser.parents, coarser.sizes, strict=True):
            number = number * size + codes[self.parents.index(parent)]
        return np.searchsorted(coarser.observed, number)


class Partition:
    """The parts into which a parent set divides the rows of a table.

    Parameters
    ----------
    codes : array of shape (n, n_nodes)
        Codes of all discrete columns (class variables, then discrete features).
    parents : sequence of int
        The columns that divide the rows; none means one part with all rows.
    sizes : sequence of int
        Number of states of each column.

    Attributes
    ----------
    part : array of shape (n,)
        The part of each row, 0 .. n_parts - 1.
    n_parts : int
        The number of observed configurations.
    configurations : Configurations
        Finds the part of other rows.
    """

    def __init__(self, codes: Codes, parents: Sequence[int], sizes: Sequence[int]):
        self.parents = tuple(parents)
        own = tuple(int(sizes[p]) for p in parents)
        if math.prod(own) > np.iinfo(np.int64).max:
            raise ValueError(
                f"a parent set with {' x '.join(map(str, own))} configurations cannot be numbered; "
                "lower max_parents or max_discrete_parents, or merge rare states of the discrete features."
            )
        observed, self.part = _unique(_numbers(codes, self.parents, own), math.prod(own))
        self.n_parts = len(observed)
        self.configurations = Configurations(self.parents, own, observed)

    def weights(self, sample_weight: Floats) -> Floats:
        """The sum of the weights of the rows of each part."""
        return np.asarray(np.bincount(self.part, weights=sample_weight, minlength=self.n_parts), dtype=float)


def _numbers(codes: Codes, parents: Sequence[int], sizes: Sequence[int]) -> Codes:
    number = np.zeros(len(codes), dtype=np.int64)
    for parent, size in zip(parents, sizes, strict=True):
        number = number * size + codes[:, parent]
    return number


def _unique(numbers: Codes, most: int) -> tuple[Codes, Codes]:
    """The different numbers, sorted, and the place of each among them; counted where they are few, otherwise sorted."""
    if most > 4 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(most, dtype=bool)
    present[numbers] = True
    place = np.cumsum(present) - 1
    return np.flatnonzero(present), place[numbers]
