"""Rows grouped by the configuration of a parent set.

Only observed configurations are stored, never a table over all of them: a configuration is the number that
its codes spell in the mixed radix of the parents' sizes, and the observed ones are kept sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pmdc.table import UNKNOWN, Codes, Floats


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
    """

    def __init__(self, codes: Codes, parents: Sequence[int], sizes: Sequence[int]):
        self.parents = tuple(parents)
        self._sizes = tuple(int(sizes[p]) for p in parents)
        if math.prod(self._sizes) > np.iinfo(np.int64).max:
            raise ValueError(
                f"a parent set with {' x '.join(map(str, self._sizes))} configurations cannot be numbered; "
                "lower max_parents or max_discrete_parents, or merge rare states of the discrete features."
            )
        self._observed, self.part = np.unique(self._numbers(codes), return_inverse=True)
        self.n_parts = len(self._observed)

    def _numbers(self, codes: Codes) -> Codes:
        number = np.zeros(len(codes), dtype=np.int64)
        for parent, size in zip(self.parents, self._sizes, strict=True):
            number = number * size + codes[:, parent]
        return number

    def find(self, codes: Codes) -> Codes:
        """The part of each row of another table; -1 where its configuration was not observed."""
        numbers = self._numbers(codes)
        place = np.minimum(np.searchsorted(self._observed, numbers), self.n_parts - 1)
        unknown = self._observed[place] != numbers
        for parent in self.parents:  # a value never seen could spell the number of another configuration
            unknown |= codes[:, parent] == UNKNOWN
        return np.where(unknown, UNKNOWN, place)

    def weights(self, sample_weight: Floats) -> Floats:
        """The sum of the weights of the rows of each part."""
        return np.asarray(np.bincount(self.part, weights=sample_weight, minlength=self.n_parts), dtype=float)
