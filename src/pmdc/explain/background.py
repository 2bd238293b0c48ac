"""The row to be explained beside the background rows: mixtures of their features, and the tables of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.explain.columns import FeatureColumns
from pmdc.table.columns import read_columns


class Background:
    """The row to be explained and the background rows, whose features can be mixed.

    Attributes
    ----------
    names : list of str
        The columns of X.
    values : list
        Their values in the row, or pairs of their values in two rows; None where they are missing.
    first : array or None
        The codes of the states that are known in the first of two rows; None for the average row.
    one, others : FeatureColumns
        The row, and the background rows.
    """

    def __init__(self, model: Any, X: Any, row: int, background: Codes, first: Codes | None = None):
        self.model, self.background, self.first = model, background, first
        features = model._read(_safe_indexing(X, [row, *background.tolist()]))
        columns = FeatureColumns.of(model.feature_table_, features)
        self.one, self.others = columns.rows(np.zeros(1, dtype=np.int64)), columns.rows(np.arange(1, len(columns)))
        self.names = model.feature_table_.names
        self.values = shown_values(model, X, row)
        if first is not None:
            self.values = list(zip(shown_values(model, X, int(background[0])), self.values, strict=True))

    def mixed(self, switched: Marks, rows: Codes) -> FeatureColumns:
        """Return background rows in which some columns have the values of the row, as `shapley.Game` asks for."""
        return self.others.rows(rows).mix(self.one, switched)

    def weighted(self, weights: Sequence[Floats], switched: Marks, rows: Codes) -> Floats:
        """Return the weighted sum over the cells of each conditional table in such rows, shape (n, K)."""
        columns, where = self.mixed(switched, rows).distinct()
        sums = [
            np.column_stack([weigh(own, w) for own, w in zip(part.log_tables, weights, strict=True)])
            for part in self.model._chunk_distributions(columns.complete(), None)
        ]
        return np.concatenate(sums)[where]

    def mean_log_tables(self) -> list[Floats]:
        """Return the mean of the logarithms of the conditional tables of the background rows."""
        parts = [
            [own.sum(axis=0) / len(self.background) for own in part.log_tables]
            for part in self.model._chunk_distributions(self.others.complete(), None)
        ]
        return [sum(own[1:], start=own[0]) for own in zip(*parts, strict=True)]


def shown_values(model: Any, X: Any, row: int) -> list[Any]:
    """Return the values of a row as given; None where they are missing."""
    columns = read_columns(_safe_indexing(X, [row]), "X", type(model).__name__, allow_missing=True)
    values = [None if column.missing[0] else column.values[0] for column in columns]
    return [v.item() if isinstance(v, np.generic) and v.dtype.kind not in "mM" else v for v in values]


def weigh(tables: Floats, weights: Floats) -> Floats:
    """Return the weighted sum over the cells of each row's table."""
    return (tables * weights).reshape(len(tables), -1).sum(axis=1)  # the same bits wherever a row stands
