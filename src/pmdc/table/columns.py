"""Columns of a table as it was given: values, kinds, missing values, distinct values.

What is decided per value (its type, whether it is missing, its code) is decided once for each distinct value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import time
from functools import cached_property
from itertools import chain, compress
from numbers import Real
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from pmdc._support.arrays import Array, Codes, Floats
from pmdc.table import dates

UNKNOWN = -1
"""Code of a value that was not there in `fit`."""

MISSING = -2
"""Code of a missing value, where missing values are allowed."""


class Factors(NamedTuple):
    """A column as codes into a list of distinct values, some of which may have no row."""

    levels: list[Any]
    codes: Codes


@dataclass(frozen=True)
class Column:
    """One column as it was given: its values and what its type says about them.

    The values of kind "date" are numpy's dates, or times of day as the time since midnight.
    """

    name: str
    values: Array
    kind: Literal["continuous", "discrete", "date"]
    declared: tuple[Hashable, ...] | None = None
    """The states that a categorical type declares, with or without rows."""
    known_factors: Factors | None = None

    @cached_property
    def factors(self) -> Factors:
        return self.known_factors or factorise(self.values)

    @cached_property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Which values are missing."""
        return is_missing(self.values, self.factors if self.values.dtype.kind == "O" else None)

    def rows(self, kept: npt.NDArray[np.bool_]) -> Column:
        """Return the column with fewer rows."""
        return Column(self.name, self.values[kept], self.kind, self.declared)


def factorise(values: Array) -> Factors:
    """Return the distinct values and the index of each row's value among them."""
    if values.dtype.kind in "mM":
        levels, codes = np.unique(values, return_inverse=True)
        return Factors(list(levels), codes)
    listed = values.tolist()
    index = {value: i for i, value in enumerate(dict.fromkeys(listed))}
    return Factors(list(index), np.fromiter(map(index.__getitem__, listed), np.int64, len(listed)))


def read_columns(data: Any, argument: str, owner: str, allow_missing: bool = False) -> list[Column]:
    """Read a table into columns; raise an error if it has no columns, no rows or missing values.

    Parameters
    ----------
    data : DataFrame of any library that narwhals reads, 2-D array, or list of rows
    argument : str
        The name of the argument ("X" or "Y"), for messages and for the names of nameless columns.
    owner : str
        The class that reads, for messages.
    allow_missing : bool
        Whether missing values are allowed.
    """
    lazy = nw.dependencies.is_polars_lazyframe(data)
    if data is None or type(data) in (str, bytes, dict) or lazy:
        remedy = "call .collect() on it first" if lazy else "give a DataFrame, a 2-D array or a list of rows"
        raise TypeError(f"{argument} is of type {type(data).__name__}: {remedy}.")
    names = getattr(data, "column_names", getattr(data, "columns", ()))  # pyarrow's and everyone else's
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise ValueError(f"{argument} has several columns named {duplicates[0]!r}: column names must be unique.")
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = _frame_columns(frame, argument)
    else:
        columns = _array_columns(data, argument, owner)
    for column in columns:
        refuse_missing(column, argument, allow_missing)
    return columns


def read_matrix(data: Any) -> Floats | None:
    """Read a table of finite numbers as one matrix, which is fast; return None if it needs `read_columns`."""
    if nw.dependencies.is_pandas_dataframe(data):
        plain = all(isinstance(dtype, np.dtype) and dtype.kind in "fiu" for dtype in set(data.dtypes))
    elif nw.dependencies.is_polars_dataframe(data):
        plain = all(dtype.is_numeric() for dtype in data.dtypes)
    else:
        plain = type(data) is np.ndarray
    matrix = np.asarray(data) if plain else np.empty(0)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or not matrix.size or not np.isfinite(matrix).all():
        return None
    return np.array(matrix, dtype=float, order="C")


def _frame_columns(frame: nw.DataFrame[Any], argument: str) -> list[Column]:
    if 0 in frame.shape:
        what = "sample(s)" if frame.shape[1] else ("feature(s)" if argument == "X" else "class variable(s)")
        raise ValueError(f"{argument}: found 0 {what} (shape={frame.shape}) while a minimum of 1 is required.")
    names = frame.columns
    if not all(isinstance(name, str) for name in names):  # numbered, as scikit-learn does
        names = [f"{argument.lower()}{i}" for i in range(len(names))]
    return [series_column(series, name, argument) for name, series in zip(names, frame.iter_columns(), strict=True)]


def series_column(series: nw.Series[Any], name: str, argument: str) -> Column:
    native = series.to_native()
    if nw.dependencies.is_pandas_series(native) and isinstance(native.dtype, np.dtype):  # fast, and keeps the dtype
        kind = native.dtype.kind
        if kind in ("fiub" if argument == "X" else "fiubmM"):
            return Column(name, native.to_numpy(), "continuous" if kind in "fiu" else "discrete")
    dtype = series.dtype
    if argument != "X" and dtype.is_integer() and series.null_count():  # as floats, states above 2**53 would merge
        return object_column(name, as_objects(series.to_list()), argument)
    if dtype.is_numeric() and (argument == "X" or dtype != nw.Decimal):
        exact = dtype != nw.Decimal and not series.null_count()  # as floats, nulls are NaN
        return Column(name, (series if exact else series.cast(nw.Float64)).to_numpy(), "continuous")
    if dtype == nw.Boolean and not series.null_count():
        return Column(name, series.to_numpy(), "discrete")
    if dtype in (nw.Categorical, nw.Enum):
        return _categorical_column(series, name)
    if argument == "X" and dtype not in (nw.Boolean, nw.String, nw.Object, nw.Unknown):
        if dtype in (nw.Date, nw.Datetime, nw.Time):
            return _date_column(series, name)
        raise TypeError(
            f"X, column {name!r} is of type {dtype}, which is neither a number nor a category nor a date. Convert it "
            "(a duration, for example, to its number of seconds) or drop the column."
        )
    return object_column(name, as_objects(series.to_list()), argument)


def _date_column(series: nw.Series[Any], name: str) -> Column:
    if series.dtype == nw.Time:
        return Column(name, dates.times(series.to_list()), "date")
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    values = series.to_numpy()
    return Column(name, values.astype("M8[us]") if values.dtype.kind == "M" else dates.dates(series.to_list()), "date")


def _categorical_column(series: nw.Series[Any], name: str) -> Column:
    if not series.implementation.is_pandas_like():  # polars' Categorical declares no states, its Enum does
        declared = tuple(series.dtype.categories) if isinstance(series.dtype, nw.Enum) else None
        return Column(name, as_objects(series.to_list()), "discrete", declared)
    native = series.to_native().cat  # narwhals would convert all categories to strings
    levels, codes = native.categories.tolist(), native.codes.to_numpy().astype(np.int64)
    declared = tuple(levels)
    levels.append(None)  # the missing value, whose code is -1
    factors = Factors(levels, np.where(codes < 0, len(declared), codes))
    return Column(name, as_objects(levels)[codes], "discrete", declared, factors)


def _array_columns(data: Any, argument: str, owner: str) -> list[Column]:
    if not hasattr(data, "dtype") and not hasattr(data, "__array__") and isinstance(data, (list, tuple)):
        data = _object_matrix(data, argument)
    matrix = check_array(
        unmask(data), dtype=None, ensure_all_finite=False, ensure_min_features=1, input_name=argument, estimator=owner
    )
    names = [f"{argument.lower()}{i}" for i in range(matrix.shape[1])]
    if matrix.dtype.kind == "O":
        return [object_column(name, matrix[:, i], argument) for i, name in enumerate(names)]
    if argument == "X" and matrix.dtype.kind == "M":
        return [Column(name, matrix[:, i].astype("M8[us]"), "date") for i, name in enumerate(names)]
    if matrix.dtype.kind not in ("fiubUS" if argument == "X" else "fiubUSmM"):
        raise TypeError(
            f"{argument} is of type {matrix.dtype}, which is neither a number nor a category nor a date. Convert it to "
            "one of these; durations, for example, to their number of seconds."
        )
    kind: Literal["continuous", "discrete"] = "continuous" if matrix.dtype.kind in "fiu" else "discrete"
    return [Column(name, matrix[:, i], kind) for i, name in enumerate(names)]


def _object_matrix(rows: Sequence[Any], argument: str) -> Array:
    """Return a list of rows as an array of objects: numpy would convert ``[1, "a"]`` to strings and unpack tuples."""
    if not rows:
        return np.empty((0, 0))
    if not all(isinstance(row, (list, tuple)) for row in rows):  # one-dimensional, or rows that are arrays
        masked = any(isinstance(row, np.ma.MaskedArray) for row in rows)
        return np.ma.stack(rows) if masked else np.asarray(rows)
    widths = list(map(len, rows))
    if len(set(widths)) > 1:
        odd = next(i for i, width in enumerate(widths) if width != widths[0])
        raise ValueError(
            f"{argument} is ragged: row 0 has {widths[0]} value(s), row {odd} has {widths[odd]}. Make them equal."
        )
    return as_objects(list(chain.from_iterable(rows))).reshape(len(rows), widths[0])


def unmask(data: Any) -> Any:
    """Return a masked array as an ordinary one, with a missing value in each masked cell; anything else as it is."""
    if not isinstance(data, np.ma.MaskedArray):
        return data
    plain, mask = np.ma.getdata(data), np.ma.getmaskarray(data)
    if not mask.any():
        return plain
    missing = {"f": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT")}.get(plain.dtype.kind)
    plain = plain.astype(object if missing is None else plain.dtype)
    plain[mask] = missing
    return plain


def as_objects(values: Sequence[Any]) -> Array:
    """Return an object array of exactly these values (numpy would unpack tuples)."""
    return np.fromiter(values, dtype=object, count=len(values))


def as_plain_objects(values: Array) -> Array:
    """Return values as objects of Python's own types; dates and durations stay numpy's, which keep nanoseconds."""
    return as_objects(list(values) if values.dtype.kind in "mM" else values.tolist())


def show(value: Any) -> str:
    """Return a value as text for a message, without numpy's wrapping."""
    return repr(value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else value)


def object_column(name: str, values: Array, argument: str) -> Column:
    """Determine the kind of a column without a type from its values."""
    listed = values.tolist()
    try:
        factors = factorise(values)
    except TypeError:
        raise TypeError(_refusal(name, next(v for v in listed if not _is_hashable(v)), argument)) from None
    missing = is_missing(values, factors)
    present = list(compress(listed, (~missing).tolist())) if missing.any() else listed
    types = set(map(type, present))  # of all values, because 1 and True are one level
    if argument == "X" and types and (all(map(dates.is_date_type, types)) or types == {time}):
        listed = [None if gone else value for value, gone in zip(listed, missing.tolist(), strict=True)]
        return Column(name, (dates.times if types == {time} else dates.dates)(listed), "date")
    if argument == "X" and not all(issubclass(kind, (str, Real, np.bool_)) for kind in types):
        odd = next(value for value in present if not isinstance(value, (str, Real, np.bool_)))
        raise TypeError(_refusal(name, odd, argument))
    kinds = {_kind_of_type(kind) for kind in types}
    if kinds <= {"number"}:
        return _number_column(name, values, missing, present, argument)
    if (argument == "X" and len(kinds) > 1) or {"bool", "number"} <= kinds:
        examples = {_kind_of_type(type(value)): value for value in present}
        raise TypeError(
            f"{argument}, column {name!r} mixes types: {', '.join(show(v) for v in examples.values())}. "
            "Give it values of one type."
        )
    if kinds == {"bool"} and not missing.any():
        return Column(name, values.astype(bool), "discrete")
    return Column(name, values, "discrete", known_factors=factors)


def _refusal(name: str, value: Any, argument: str) -> str:
    kind = type(value).__name__
    if argument == "X":
        return f"X, column {name!r}: argument must be a string, a real number or a date, not {value!r} ({kind})."
    return (
        f"{argument}, column {name!r} holds {value!r} ({kind}), which cannot be a state: states must be hashable, such "
        "as strings, integers or tuples."
    )


def _number_column(
    name: str, values: Array, missing: npt.NDArray[np.bool_], present: list[Any], argument: str
) -> Column:
    whole = all(issubclass(kind, (int, np.integer)) for kind in set(map(type, present)))
    if whole and missing.any() and argument != "X":  # states stay whole numbers
        return Column(name, values, "discrete")
    if whole and not missing.any():
        try:
            return Column(name, np.array(present, dtype=np.int64), "continuous")
        except OverflowError:
            if argument != "X":  # as floats, neighbouring states would become equal
                return Column(name, values, "discrete")
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~missing] = present
    except OverflowError:
        raise ValueError(f"{argument}, column {name!r} holds a number too large for a float: rescale it.") from None
    return Column(name, numbers, "continuous")


def _kind_of_type(kind: type) -> str:
    if issubclass(kind, (bool, np.bool_)):
        return "bool"
    return "number" if issubclass(kind, Real) else kind.__name__


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_missing(value: object) -> bool:
    """Return whether a value stands for no value: None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Real, np.datetime64, np.timedelta64)) and bool(value != value)


def is_missing(values: Array, factors: Factors | None = None) -> npt.NDArray[np.bool_]:
    """Return which values are missing: None, NaN, NaT and what DataFrame libraries call null."""
    if values.dtype.kind in "fmM":
        return np.isnan(values)
    if values.dtype.kind == "O":
        levels, codes = factors or factorise(values)
        return np.array([_is_missing(level) for level in levels], dtype=bool)[codes]
    return np.zeros(len(values), dtype=bool)


def refuse_missing(column: Column, argument: str, allow_missing: bool = False, remedy: str = "") -> None:
    """Raise an error for infinite values and, unless they are allowed, for missing ones; `remedy` is for the latter."""
    values = column.values
    if values.dtype.kind not in "fmMO" or (values.dtype.kind == "f" and np.isfinite(values).all()):
        return
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(
            f"Input {argument} contains infinity: column {column.name!r}, row {row}. "
            "Replace infinite values by finite ones or drop those rows."
        )
    if allow_missing:
        return
    missing = column.missing
    if missing.any():
        fill = "fill them (for example with sklearn.impute.SimpleImputer) or drop those rows."
        raise ValueError(
            f"Input {argument} contains NaN: column {column.name!r} has {int(missing.sum())} missing value(s), "
            f"the first in row {int(np.flatnonzero(missing)[0])}. They are not supported here: "
            + (remedy or (fill if argument == "X" else "use complete rows."))
        )


def column_states(column: Column, kept: npt.NDArray[np.bool_] | None = None) -> Array:
    """Return the states of a discrete column: those its type declares, otherwise those of the kept rows, sorted."""
    if column.declared is not None:
        kinds = {_kind_of_type(type(state)) for state in column.declared}
        return np.array(column.declared) if kinds == {"number"} else as_objects(column.declared)
    observed = list(compress(column.factors.levels, observed_levels(column, kept)))
    observed = [level for level in observed if not _is_missing(level)]
    observed = sort_states(observed)
    dtype = column.values.dtype
    if dtype.kind != "O":
        return np.array(observed, dtype=dtype)
    if observed and all(type(state) is int and abs(state) < 2**63 for state in observed):
        return np.array(observed, dtype=np.int64)
    return as_objects(observed)


def sort_states(states: Sequence[Any]) -> list[Any]:
    """Return states in their natural order; those of several types by type."""
    try:
        return sorted(states)
    except TypeError:
        return sorted(states, key=lambda state: (type(state).__name__, str(state)))


def observed_levels(column: Column, kept: npt.NDArray[np.bool_] | None = None) -> list[bool]:
    """Return which levels of a column occur in the kept rows."""
    levels, codes = column.factors
    counts = np.bincount(codes if kept is None else codes[kept], minlength=len(levels))
    return (counts > 0).tolist()


def encode_values(values: Array, states: Array, factors: Factors | None = None) -> Codes:
    """Return the index of each value among the states; -1 where it is none of them."""
    levels, codes = factors or factorise(values)
    index = {state: i for i, state in enumerate(as_plain_objects(states))}
    return np.array([index.get(level, UNKNOWN) for level in levels], dtype=np.int64)[codes]
