"""Reading of outcomes in any container, and means over rows."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Floats
from pmdc._support.checks import shorten
from pmdc.table.columns import Column, as_objects, is_missing, read_columns
from pmdc.table.rows import read_weights
from pmdc.table.weak_labels import refuse_sets, take_sets


def read_outcomes(data: Any, argument: str, allow_missing: bool = False) -> list[Column]:
    """Return the class variables of a table, a series, or a one-dimensional array or list.

    With `allow_missing`, a set of possible states is missing.
    """
    data, cells = take_sets(data)
    if cells and not allow_missing:
        refuse_sets(cells, frame_names(data) or [f"y{k}" for k in range(1 + cells[0].column)], argument)
    series = nw.from_native(data, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        data = series.to_frame().to_native()
    elif not hasattr(data, "columns") and _is_one_dimensional(data):
        data = (np.asanyarray(data) if hasattr(data, "__array__") else as_objects(list(data)))[:, None]
    return read_columns(data, argument, "pmdc.metrics", allow_missing)


def _is_one_dimensional(data: Any) -> bool:
    if isinstance(data, (list, tuple, range)):
        return not any(isinstance(row, (list, tuple, np.ndarray)) for row in data)
    return hasattr(data, "__array__") and np.ndim(data) == 1


def frame_names(data: Any) -> list[Any] | None:
    """Return the column names of a DataFrame; None for other containers."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None


def in_order_of_fit(class_table: Any, data: Any, argument: str) -> Any:
    """Return a DataFrame with its columns in the order of the class variables, if the model was fitted to one."""
    columns, names = frame_names(data), getattr(class_table, "given_names", None)
    fitted_to_frame = getattr(class_table, "frame_states", None) is not None
    if columns is None or names is None or not fitted_to_frame or len(columns) != len(names):
        return data
    missing = [name for name in names if name not in columns]
    if missing:
        raise ValueError(f"{argument} lacks the class variable {missing[0]!r}; its columns are {shorten(columns)}.")
    return nw.from_native(data, eager_only=True)[:, [columns.index(name) for name in names]].to_native()


def mean_of_rows(values: Array, sample_weight: Any) -> Floats:
    """Return the weighted mean over rows."""
    weights = read_weights(sample_weight, len(values))
    kept = weights > 0  # an infinite value times a weight of zero would be NaN
    return np.average(values[kept], axis=0, weights=weights[kept])


def known_rows(column: Column) -> npt.NDArray[np.bool_]:
    """Return in which rows a class variable is not missing."""
    return ~is_missing(column.values, column.factors if column.values.dtype.kind == "O" else None)


def mean_of_cells(values: Array, known: npt.NDArray[np.bool_], sample_weight: Any) -> float:
    """Return the weighted mean over all known cells, arrays of shape (n, K)."""
    if known.all():
        return float(mean_of_rows(values.mean(axis=1), sample_weight))
    weights = np.where(known, read_weights(sample_weight, len(values))[:, None], 0.0)
    kept = weights > 0
    if not kept.any():
        raise ValueError("y_true has no known cell in rows of positive weight: give at least one true state.")
    return float(np.average(values[kept], weights=weights[kept]))


def mean_of_some_rows(values: Array, kept: npt.NDArray[np.bool_], sample_weight: Any, what: str) -> float:
    """Return the weighted mean over the kept rows; `what` says in an error which rows these are."""
    if kept.all():
        return float(mean_of_rows(values, sample_weight))
    weights = weights_of_some(kept, sample_weight, what)
    return float(mean_of_rows(values[kept], weights[kept]))


def weights_of_some(kept: npt.NDArray[np.bool_], sample_weight: Any, what: str) -> Floats:
    """Return the weights of all rows; ValueError if no kept row has a positive one."""
    weights = read_weights(sample_weight, len(kept))
    if not weights[kept].any():
        raise ValueError(
            f"y_true has no row {what} (and of positive weight): give at least one, or use a metric of single class "
            "variables, such as hamming_loss or marginal_log_loss."
        )
    return weights
