"""The features of a batch of rows, of which single columns can be replaced.

A column is what the user gave: a date that became several numbers is one column, and a missing value is a value like
any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pmdc._support.arrays import Array, Codes, Marks
from pmdc._support.checks import suggest
from pmdc.table.columns import read_columns
from pmdc.table.features import Features, FeatureTable


@dataclass(frozen=True)
class FeatureColumns:
    """The features of a batch of rows, column by column.

    Attributes
    ----------
    table : FeatureTable
        The features seen in `fit`.
    raw : Features
        With NaN for missing numbers, without indicators.
    """

    table: FeatureTable
    raw: Features

    @classmethod
    def of(cls, table: FeatureTable, features: Features) -> FeatureColumns:
        return cls(table, features.with_nan())

    def __len__(self) -> int:
        return len(self.raw)

    def rows(self, index: Array) -> FeatureColumns:
        return FeatureColumns(self.table, self.raw.rows(index))

    def complete(self) -> Features:
        """Return the features as a model takes them: gaps filled, with indicators."""
        return self.table.complete(self.raw.continuous, self.raw.discrete)

    def places(self, column: int) -> tuple[list[int], list[int]]:
        """Return the continuous and the discrete features that a column became; none if the model ignores it."""
        return _equal(self.table.continuous, column), _equal(self.table.discrete, column)

    def replace(self, column: int, source: FeatureColumns) -> FeatureColumns:
        """Return the batch with one column of another batch of as many rows."""
        numbers, categories = self.places(column)
        continuous, discrete = self.raw.continuous.copy(), self.raw.discrete.copy()
        continuous[:, numbers] = source.raw.continuous[:, numbers]
        discrete[:, categories] = source.raw.discrete[:, categories]
        return FeatureColumns(self.table, Features(continuous, discrete))

    def mix(self, other: FeatureColumns, chosen: Marks) -> FeatureColumns:
        """Return the batch with the values of another batch in the chosen cells, shape (n, number of columns)."""
        continuous = np.where(chosen[:, self.table.continuous], other.raw.continuous, self.raw.continuous)
        discrete = np.where(chosen[:, self.table.discrete], other.raw.discrete, self.raw.discrete)
        return FeatureColumns(self.table, Features(continuous, discrete))

    def distinct(self) -> tuple[FeatureColumns, Codes]:
        """Return the rows that differ, and for each row which of them it is."""
        numbers = np.ascontiguousarray(self.raw.continuous, dtype=np.float64).view(np.int64)
        cells = np.ascontiguousarray(np.hstack([numbers, self.raw.discrete]))
        keys = cells.view([("", np.int64)] * cells.shape[1])[:, 0] if cells.shape[1] else np.zeros(len(self))
        _, first, where = np.unique(keys, return_index=True, return_inverse=True)
        return self.rows(first), where.ravel()

    def shuffle(self, column: int, order: Codes) -> FeatureColumns:
        """Return the batch with the values of one column in another order."""
        return self.replace(column, self.rows(order))

    def mask(self, column: int) -> FeatureColumns:
        """Return the batch with one column missing in all rows."""
        numbers, categories = self.places(column)
        continuous, discrete = self.raw.continuous.copy(), self.raw.discrete.copy()
        continuous[:, numbers] = np.nan
        discrete[:, categories] = [self.table.missing_code(j) for j in categories]
        return FeatureColumns(self.table, Features(continuous, discrete))


def _equal(columns: Sequence[int], column: int) -> list[int]:
    return [j for j, i in enumerate(columns) if i == column]


def read_table(model: Any, X: Any) -> tuple[FeatureColumns, Marks]:
    """Read a table of features and return which of its cells are missing, shape (n, number of columns)."""
    columns = FeatureColumns.of(model.feature_table_, model._read(X))
    given = read_columns(X, "X", type(model).__name__, allow_missing=True)
    return columns, np.column_stack([column.missing for column in given])


def check_model(model: Any) -> None:
    """Raise an error unless the model is a fitted classifier of this library."""
    from pmdc.estimator import MultiDimensionalClassifier

    if not isinstance(model, MultiDimensionalClassifier):
        raise TypeError(
            f"model is of type {type(model).__name__}: give a fitted classifier of pmdc, such as a GBNC. For others, "
            "sklearn.inspection.permutation_importance measures the importance of features."
        )
    check_is_fitted(model)


def check_tables(model: Any) -> None:
    """Raise an error unless the class variables of a fitted model have conditional tables."""
    from pmdc.baselines import BinaryRelevance
    from pmdc.classifier import GBNC

    check_model(model)
    if not isinstance(model, (GBNC, BinaryRelevance)):
        raise TypeError(
            f"model is a {type(model).__name__}, whose class variables have no conditional tables: give a GBNC or a "
            "BinaryRelevance."
        )


def feature_numbers(table: FeatureTable, features: Any) -> list[int]:
    """Return the positions of columns given by name; all of them for None."""
    if features is None:
        return list(range(len(table.names)))
    if not isinstance(features, (str, list, tuple, np.ndarray)):
        raise TypeError(f"features={features!r} must be a name or a list of names of columns of X.")
    listed = [features] if isinstance(features, str) else list(features)
    for name in listed:
        if name not in table.names:
            raise ValueError(f"features has {name!r}, which is no column of X{suggest(name, table.names)}")
    if not listed or len(set(listed)) < len(listed):
        raise ValueError(f"features={features!r} must name at least one column of X, and none twice.")
    return [table.names.index(name) for name in listed]
