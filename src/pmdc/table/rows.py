"""The rows that learning starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.table.columns import unmask
from pmdc.table.features import Features


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a table as learning sees them: numbers, codes and weights.

    A row of the table may occur several times, for example with its missing states completed in several ways. All its
    copies are held out together, are in the same fold, and count as one row in standard errors.

    Attributes
    ----------
    features : Features
    classes : array of shape (n, K)
        The codes of the class variables.
    class_sizes, feature_sizes : tuples of int
        The numbers of states of the class variables and of the discrete features.
    weights : array of shape (n,)
        Positive.
    weighted : bool
        Whether weights were given at all.
    origin : array of shape (n,)
        The row of the table that each row is a copy of.
    n_table : int
        The number of rows of the table, those of weight zero included.
    known : array of shape (n, K) or None
        Which states were in the table; the others are missing (code -2) or a completion. None: all of them.
    possible : for each class variable an array of shape (n, n_states) or None, or None
        The states that a cell may have, where sets of states were given; None: all are possible.
    cell_weights : array of shape (n, K) or None
        The weight of each known state in learning its class variable, beside that of the row. None: all 1.
    """

    features: Features
    classes: Codes
    class_sizes: tuple[int, ...]
    feature_sizes: tuple[int, ...]
    weights: Floats
    weighted: bool
    origin: Codes
    n_table: int
    known: Marks | None = None
    possible: Sequence[Marks | None] | None = None
    cell_weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.classes)

    def take(self, index: Codes) -> TrainingRows:
        """Return some of the rows."""
        return replace(
            self,
            features=self.features.rows(index),
            classes=self.classes[index],
            weights=self.weights[index],
            origin=self.origin[index],
            known=None if self.known is None else self.known[index],
            possible=take_possible(self.possible, index),
            cell_weights=None if self.cell_weights is None else self.cell_weights[index],
        )

    def weights_of(self, k: int) -> Floats:
        """Return the weights of the states of a class variable; the same array for all without `cell_weights`."""
        return self.weights if self.cell_weights is None else self.weights * self.cell_weights[:, k]

    @property
    def informative(self) -> Marks:
        """Which rows say something about their states."""
        assert self.known is not None
        told = [self.known.any(axis=1), *(~own.all(axis=1) for own in self.possible or () if own is not None)]
        return np.logical_or.reduce(told)

    @property
    def n_classes(self) -> int:
        return len(self.class_sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of states of each node: class variables first, then discrete features."""
        return (*self.class_sizes, *self.feature_sizes)

    @cached_property
    def codes(self) -> Codes:
        """The codes of all nodes, shape (n, n_nodes), in column-major order."""
        return np.asfortranarray(np.hstack([self.classes, self.features.discrete]))

    @cached_property
    def has_gaps(self) -> bool:
        """Whether states are missing."""
        return bool((self.classes < 0).any())

    @cached_property
    def has_copies(self) -> bool:
        """Whether some row of the table occurs more than once."""
        return len(np.unique(self.origin)) < len(self)


def take_possible(possible: Sequence[Marks | None] | None, index: Any) -> list[Marks | None] | None:
    """Return the possible states of some rows."""
    return None if possible is None else [None if own is None else own[index] for own in possible]


def read_cell_weights(cell_weight: Any, shape: tuple[int, int]) -> Floats:
    """Read one weight for each cell of y; a state of weight zero counts as missing."""
    try:
        weights = np.asarray(unmask(cell_weight), dtype=float)
    except (TypeError, ValueError):
        raise ValueError("cell_weight must be numbers, one for each cell of y.") from None
    if weights.ndim == 1:
        weights = weights[:, None]
    if weights.shape != shape:
        raise ValueError(f"cell_weight has shape {weights.shape}; it must be {shape}: one weight for each cell of y.")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row, k = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"cell_weight[{row}, {k}] is {weights[row, k]}: weights must be finite and not negative; give 0 for a "
            "state that is to be treated as missing."
        )
    return weights


def read_weights(sample_weight: Any, n_rows: int) -> Floats:
    """Read one weight for each row; a row of weight zero is ignored."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(unmask(sample_weight), dtype=float)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one for each row.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}; it must be ({n_rows},): one weight for each row.")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"sample_weight[{row}] is {weights[row]}: weights must be finite and not negative.")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: no class can be learned. Give some row a weight.")
    return weights
