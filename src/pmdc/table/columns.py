"""A table as it was given: columns of values, their kinds, missing values, states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from pmdc._support.arrays import Array, Codes

UNKNOWN = -1
"""Code of a value that was not there in `fit`."""

MISSING = -2
"""Code of a missing value, where missing values are allowed."""


@dataclass(frozen=True)
class Column:
    """One column as it was given: its values and what its type says about them."""

    name: str
    values: Array
    kind: Literal["continuous", "discrete"]
    declared: tuple[Hashable, ...] | None = None
    """The states that a categorical type declares, with or without rows."""


def read_columns(data: Any, argument: str, owner: str, allow_missing: bool = False) -> list[Column]:
    """Read a table (DataFrame, array or list of rows) into columns; refuse what is missing or has no shape.

    Parameters
    ----------
    data : DataFrame of any library that narwhals reads, 2-D array, or list of rows
    argument : str
        What the caller called it ("X" or "Y"), for messages and for the names of nameless columns.
    owner : str
        The class that reads, for messages.
    allow_missing : bool
        Whether missing values may stay.
    """
    if data is None or type(data) in (str, bytes, dict) or nw.dependencies.is_polars_lazyframe(data):
        remedy = (
            "call .collect() on it first"
            if hasattr(data, "collect")
            else "give a DataFrame, a 2-D array or a list of rows"
        )
        raise TypeError(f"{argument} is of type {type(data).__name__}: {remedy}.")
    names = getattr(data, "column_names", getattr(data, "columns", ()))  # pyarrow's and everyone else's
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{argument} has several columns named {twice[0]!r}: column names must be unique.")
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = _frame_columns(frame, argument)
    else:
        columns = _array_columns(data, argument, owner)
    for column in columns:
        refuse_missing(column, argument, allow_missing)
    return columns


def _frame_columns(frame: nw.DataFrame[Any], argument: str) -> list[Column]:
    if 0 in frame.shape:
        what = "sample(s)" if frame.shape[1] else ("feature(s)" if argument == "X" else "class variable(s)")
        raise ValueError(f"{argument}: found 0 {what} (shape={frame.shape}) while a minimum of 1 is required.")
    columns = []
    for name, series in zip(_node_names(frame.columns, argument), frame.iter_columns(), strict=True):
        columns.append(series_column(series, name, argument))
    return columns


def _node_names(names: Sequence[Any], argument: str) -> list[str]:
    """Columns keep their names if all are strings; otherwise they are numbered, as scikit-learn does."""
    if all(isinstance(name, str) for name in names):
        return list(names)
    return [f"{argument.lower()}{i}" for i in range(len(names))]


def series_column(series: nw.Series[Any], name: str, argument: str) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        return Column(name, _numbers(series), "continuous")
    if dtype == nw.Boolean:
        values = series.to_numpy() if not series.is_null().any() else as_objects(series.to_list())
        return Column(name, values, "discrete")
    if dtype in (nw.Categorical, nw.Enum):
        return Column(name, as_objects(series.to_list()), "discrete", _declared_states(series))
    if dtype in (nw.String, nw.Object, nw.Unknown):
        return object_column(name, as_objects(series.to_list()), argument)
    raise TypeError(
        f"{argument}, column {name!r} is of type {dtype}, which is neither a number nor a category. "
        "Convert it to one of these first."
    )


def _declared_states(series: nw.Series[Any]) -> tuple[Hashable, ...] | None:
    """The states that a categorical type declares; polars' Categorical declares none, its Enum does."""
    if series.implementation.is_pandas_like():  # read natively: narwhals would make strings of all of them
        return tuple(series.to_native().cat.categories.tolist())
    return tuple(series.dtype.categories) if isinstance(series.dtype, nw.Enum) else None


def _numbers(series: nw.Series[Any]) -> Array:
    """Values of a numeric column; nulls of nullable types become NaN, so that one check finds them all."""
    if series.is_null().any():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
    return series.to_numpy()


def _array_columns(data: Any, argument: str, owner: str) -> list[Column]:
    if not hasattr(data, "dtype") and not hasattr(data, "__array__") and isinstance(data, (list, tuple)):
        data = _object_matrix(data, argument)
    matrix = check_array(
        data, dtype=None, ensure_all_finite=False, ensure_min_features=1, input_name=argument, estimator=owner
    )
    names = [f"{argument.lower()}{i}" for i in range(matrix.shape[1])]
    if matrix.dtype.kind == "O":
        return [object_column(name, matrix[:, i], argument) for i, name in enumerate(names)]
    if matrix.dtype.kind not in "fiubUS":
        raise TypeError(
            f"{argument} is of type {matrix.dtype}, which is neither numbers nor categories. Convert it first."
        )
    kind: Literal["continuous", "discrete"] = "continuous" if matrix.dtype.kind in "fiu" else "discrete"
    return [Column(name, matrix[:, i], kind) for i, name in enumerate(names)]


def _object_matrix(rows: Sequence[Any], argument: str) -> Array:
    """A list of rows as it stands: numpy would turn ``[1, "a"]`` into two strings and open up tuples."""
    if not rows:
        return np.empty((0, 0))
    if not all(isinstance(row, (list, tuple)) for row in rows):
        return np.asarray(rows)  # one-dimensional, or rows that are arrays
    widths = [len(row) for row in rows]
    if len(set(widths)) > 1:
        odd = next(i for i, width in enumerate(widths) if width != widths[0])
        raise ValueError(
            f"{argument} is ragged: row 0 has {widths[0]} value(s), row {odd} has {widths[odd]}. Make them equal."
        )
    matrix = np.empty((len(rows), widths[0]), dtype=object)
    for i, row in enumerate(rows):
        matrix[i] = as_objects(row)
    return matrix


def as_objects(values: Sequence[Any]) -> Array:
    """An object array of just these values, whatever they are (numpy would open up tuples)."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def show(value: Any) -> str:
    """A value for a message, without numpy's wrapping."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def object_column(name: str, values: Array, argument: str) -> Column:
    """Tell the kind of a column without a type by its values."""
    present = [v for v in values.tolist() if not _is_missing(v)]
    if argument == "X":
        for value in present:
            if not isinstance(value, (str, Real, np.bool_)):
                raise TypeError(
                    f"X, column {name!r}: argument must be a string or a real number, not {value!r} "
                    f"({type(value).__name__})."
                )
    types = {_value_type(value) for value in present}
    if types <= {"number"}:
        return _number_column(name, values, argument)
    if (argument == "X" and len(types) > 1) or {"bool", "number"} <= types:
        odd = {_value_type(value): value for value in present}
        raise TypeError(
            f"{argument}, column {name!r} mixes types: {', '.join(show(v) for v in odd.values())}. "
            "Give it values of one type."
        )
    for value in present:
        try:
            hash(value)
        except TypeError:
            raise TypeError(
                f"{argument}, column {name!r} holds {value!r} ({type(value).__name__}), which cannot be a state: "
                "states must be hashable, such as strings, integers or tuples."
            ) from None
    if types == {"bool"} and len(present) == len(values):
        return Column(name, values.astype(bool), "discrete")
    return Column(name, values, "discrete")


def _number_column(name: str, values: Array, argument: str) -> Column:
    listed = values.tolist()
    if all(isinstance(v, (int, np.integer)) for v in listed):
        try:
            return Column(name, np.array(listed, dtype=np.int64), "continuous")
        except OverflowError:
            if argument == "Y":  # as floats, neighbouring states would fall together
                return Column(name, values, "discrete")
    try:
        return Column(name, np.array([np.nan if _is_missing(v) else float(v) for v in listed]), "continuous")
    except OverflowError:
        raise ValueError(f"{argument}, column {name!r} holds a number too large for a float: rescale it.") from None


def _value_type(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    return "number" if isinstance(value, Real) else type(value).__name__


def _is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT: the values that stand for no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value


def is_missing(values: Array) -> npt.NDArray[np.bool_]:
    """Which values are missing: None, NaN and what DataFrame libraries call null."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def refuse_missing(column: Column, argument: str, allow_missing: bool = False) -> None:
    values = column.values
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(
            f"Input {argument} contains infinity: column {column.name!r}, row {row}. "
            "Replace infinite values by finite ones or drop those rows."
        )
    missing = is_missing(values)
    if missing.any() and not allow_missing:
        raise ValueError(
            f"Input {argument} contains NaN: column {column.name!r} has {int(missing.sum())} missing value(s), "
            f"the first in row {int(np.flatnonzero(missing)[0])}. Missing values are not supported: "
            + (
                "fill them (for example with sklearn.impute.SimpleImputer) or drop those rows."
                if argument == "X"
                else "drop those rows or make 'missing' a state of its own."
            )
        )


def column_states(column: Column) -> Array:
    """The states of a discrete column: those its type declares, otherwise those observed, sorted."""
    if column.declared is not None:
        values = list(column.declared)
        if values and all(_value_type(v) == "number" for v in values):
            return np.array(values)
        return as_objects(values)
    if column.values.dtype.kind != "O":
        return np.unique(column.values)
    observed = list(dict.fromkeys(column.values.tolist()))
    try:
        observed.sort()
    except TypeError:  # states of several types have no natural order
        observed.sort(key=lambda state: (type(state).__name__, str(state)))
    return as_objects(observed)


def encode_values(values: Array, states: Array) -> Codes:
    code = {state: i for i, state in enumerate(states.tolist())}
    return np.fromiter((code.get(v, UNKNOWN) for v in values.tolist()), dtype=np.int64, count=len(values))
