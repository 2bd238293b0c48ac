"""Local tasks: the data of one class variable and one family for fitting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pmdc._support.arrays import Codes
from pmdc.candidates.families import Family
from pmdc.learners.partition import Partition


@dataclass(frozen=True)
class LocalTask:
    """The data of one class variable and one family; phase P1 fits one model for each part.

    Attributes
    ----------
    child : int
        The class variable.
    codes : array of shape (n,)
        The states of the class variable.
    n_states : int
    partition : Partition
        The rows grouped by the configuration of the parents that partition them.
    inputs : tuple of int
        The parents that are inputs of the models.
    input_codes : array of shape (n, n_inputs)
        Their states.
    input_sizes : tuple of int
        Their numbers of states.
    """

    child: int
    codes: Codes
    n_states: int
    partition: Partition
    inputs: tuple[int, ...] = ()
    input_codes: Codes | None = None
    input_sizes: tuple[int, ...] = ()

    def take(self, rows: Codes) -> LocalTask:
        """Return the same task on some rows of the table, as `Partition.take`."""
        inputs = None if self.input_codes is None else self.input_codes[rows]
        return replace(self, codes=self.codes[rows], partition=self.partition.take(rows), input_codes=inputs)


def local_task(child: int, family: Family, codes: Codes, sizes: Sequence[int]) -> LocalTask:
    """Make the task of one class variable and one family."""
    return LocalTask(
        child,
        codes[:, child],
        sizes[child],
        Partition(codes, family.partition, sizes),
        family.inputs,
        codes[:, list(family.inputs)] if family.inputs else None,
        tuple(sizes[v] for v in family.inputs),
    )


def root_task(child: int, codes: Codes, n_states: int) -> LocalTask:
    """Make the task of a class variable without parents."""
    return LocalTask(child, codes, n_states, Partition(np.empty((len(codes), 0), dtype=np.int64), (), ()))


def rows_by_part(part: Codes) -> Iterator[tuple[int, Codes]]:
    """Yield the parts that occur and their rows; rows without a part are left out."""
    order = np.argsort(part, kind="stable")
    present, starts = np.unique(part[order], return_index=True)
    for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if number >= 0:
            yield number, rows
