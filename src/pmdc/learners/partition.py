"""Rows grouped by the configuration of a parent set.

Only observed configurations are stored, never a table over all of them: a configuration is the number that
its codes spell in the mixed radix of the parents' sizes, and the observed ones are kept sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.table.columns import UNKNOWN


@dataclass(frozen=True)
class Configurations:
    """The observed configurations of a parent set: a partition without its rows."""

    parents: tuple[int, ...]
    sizes: tuple[int, ...]
    observed: Codes

    def find(self, codes: Codes, free: Sequence[int] = ()) -> Codes:
        """Return the part of each row of a table; -1 if its configuration was not observed.

        The parents in `free` are not read from the table but take all their configurations, the last one varying
        fastest. The result has shape (n, number of these configurations).
        """
        if set(self.parents) <= set(free):  # all rows have the same parts
            every = np.full(math.prod(self.sizes), UNKNOWN, dtype=np.int64)
            every[self.observed] = np.arange(len(self.observed))
            return np.repeat(every[None], len(codes), axis=0)
        fixed = np.zeros(len(codes), dtype=np.int64)
        running = np.zeros(1, dtype=np.int64)
        unknown = np.zeros(len(codes), dtype=bool)
        for parent, size in zip(self.parents, self.sizes, strict=True):
            fixed, running = fixed * size, running * size
            if parent in free:
                running = (running[:, None] + np.arange(size)).ravel()
            else:
                fixed = fixed + codes[:, parent]
                unknown |= codes[:, parent] == UNKNOWN  # its number could be that of another configuration
        numbers = fixed[:, None] + running
        place = np.minimum(np.searchsorted(self.observed, numbers), len(self.observed) - 1)
        part = np.where(self.observed[place] == numbers, place, UNKNOWN)
        part[unknown] = UNKNOWN
        return part

    def columns(self, fewer: Sequence[int], free: Sequence[int]) -> Codes:
        """Return for each configuration of the free parents its number among those of the free ones in `fewer`."""
        own = [(parent, size) for parent, size in zip(self.parents, self.sizes, strict=True) if parent in free]
        number = np.zeros(1, dtype=np.int64)
        for parent, size in own:
            step = np.arange(size) if parent in fewer else np.zeros(size, dtype=np.int64)
            number = (number[:, None] * (size if parent in fewer else 1) + step).ravel()
        return number

    def within(self, coarser: Configurations) -> Codes:
        """Return the part of each configuration in a partition by some of these parents."""
        codes = np.unravel_index(self.observed, self.sizes) if self.sizes else ()
        number = np.zeros(len(self.observed), dtype=np.int64)
        for parent, size in zip(coarser.parents, coarser.sizes, strict=True):
            number = number * size + codes[self.parents.index(parent)]
        return np.searchsorted(coarser.observed, number)


class Partition:
    """The partition of the rows of a table by the configurations of a parent set.

    Parameters
    ----------
    codes : array of shape (n, n_nodes)
        Codes of all discrete columns (class variables, then discrete features).
    parents : sequence of int
        The columns that partition the rows; without any, all rows are one part.
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
                f"a parent set has {' x '.join(map(str, own))} configurations, which is too many: lower max_parents or "
                "max_discrete_parents, or merge rare states of the discrete features."
            )
        observed, self.part = _unique(_numbers(codes, self.parents, own), math.prod(own))
        self.n_parts = len(observed)
        self.configurations = Configurations(self.parents, own, observed)

    def take(self, rows: Codes) -> Partition:
        """Return the same parts with some rows of the table, possibly repeated; every part must keep one."""
        other = copy(self)
        other.part = self.part[rows]
        return other

    def weights(self, sample_weight: Floats) -> Floats:
        """Return the sum of the weights of the rows of each part."""
        return np.asarray(np.bincount(self.part, weights=sample_weight, minlength=self.n_parts), dtype=float)


def _numbers(codes: Codes, parents: Sequence[int], sizes: Sequence[int]) -> Codes:
    number = np.zeros(len(codes), dtype=np.int64)
    for parent, size in zip(parents, sizes, strict=True):
        number = number * size + codes[:, parent]
    return number


def _unique(numbers: Codes, most: int) -> tuple[Codes, Codes]:
    """Return the distinct numbers, sorted, and the place of each; by counting if they are few."""
    if most > 4 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    present = np.zeros(most, dtype=bool)
    present[numbers] = True
    place = np.cumsum(present) - 1
    return np.flatnonzero(present), place[numbers]
