"""Missing values in the features: what fills them, and which are marked.

Missing numbers are filled with the median of the known values of the training rows, and a column that has gaps in
training gets an indicator of them, so that a model can learn from the fact that a value is missing. Estimators that
take NaN get NaN instead. In a discrete feature with gaps in training, missing is a state of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pmdc._support.arrays import Array, Floats, Marks
from pmdc.table.columns import as_objects

MISSING_STATE = "missing"
"""The state of a discrete feature that stands for missing values."""


@dataclass(frozen=True)
class Filling:
    """What is done about missing values.

    Attributes
    ----------
    values : tuple of float
        What fills the gaps of each continuous feature; empty in files of earlier versions.
    indicated : tuple of int
        The continuous features whose gaps have an indicator; of the parts of a date only the first.
    states : tuple of int
        The discrete features whose last state stands for missing values.
    counts : dict of str to int
        The columns with gaps and the number of these, in the training rows.
    """

    values: tuple[float, ...] = ()
    indicated: tuple[int, ...] = ()
    states: tuple[int, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def complete(self, numbers: Floats, missing: Marks) -> Floats:
        """Return numbers with their gaps filled, then the indicators."""
        return np.hstack([np.where(missing, self.values, numbers), missing[:, list(self.indicated)]])

    def consistent(self, n_continuous: int, n_discrete: int) -> bool:
        """Return whether this, read from a file, fits the numbers of features."""
        return (
            type(self) is Filling
            and len(self.values) in (0, n_continuous)
            and all(type(value) is float and np.isfinite(value) for value in self.values)
            and all(type(j) is int and 0 <= j < len(self.values) for j in self.indicated)
            and all(type(j) is int and 0 <= j < n_discrete for j in self.states)
        )


def weighted_median(values: Floats, weights: Floats | None = None) -> float:
    """Return the median of rows with weights, in which a row of weight 3 counts as three rows.

    Half of the weight is at most the median and half of it at least; of two such values it is the mean.
    """
    if weights is None:
        weights = np.ones(len(values))
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    middle = below[-1] / 2.0
    low, high = (min(int(np.searchsorted(below, middle, side)), len(order) - 1) for side in ("left", "right"))
    return float(0.5 * values[order[low]] + 0.5 * values[order[high]])


def with_missing(states: Array) -> Array:
    """Return the states and, behind them, one for missing values."""
    listed = states.tolist()
    name = MISSING_STATE
    while name in listed:
        name += "_"
    return as_objects([*listed, name])
