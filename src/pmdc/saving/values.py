"""Convert values and columns that may be states to simpler ones, and back.

A column is stored as its values and a description of its type, from which its library builds the same type.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np

from pmdc._support.extras import require
from pmdc.table.columns import as_objects


class CannotSaveError(ValueError):
    """Raised for a value in a model that cannot be saved."""


# Values ---------------------------------------------------------------------------------------------------------


class Value(NamedTuple):
    """A type of values: how to get the fields of one, and how to build it from them."""

    apart: Callable[[Any], list[Any]]
    together: Callable[..., Any]


def _pandas(name: str) -> Callable[..., Any]:
    return lambda *fields, **named: getattr(require("pandas"), name)(*fields, **named)


def _zone_fields(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if type(zone) is timezone:
        return zone.utcoffset(None)
    key = getattr(zone, "key", None)
    if type(zone) is not ZoneInfo or key is None:
        raise CannotSaveError(f"times with the time zone {zone!r} cannot be saved: use one of zoneinfo, or UTC")
    return key


def _zone(fields: Any) -> tzinfo | None:
    if fields is None:
        return None
    return ZoneInfo(fields) if isinstance(fields, str) else timezone(fields)


def _stamp(instant: np.datetime64, zone: Any) -> Any:
    stamp = require("pandas").Timestamp(instant)
    return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(_zone(zone))


VALUES: dict[str, Value] = {
    "builtins.bytes": Value(lambda b: [b.hex()], bytes.fromhex),
    "builtins.complex": Value(lambda z: [z.real, z.imag], complex),
    "builtins.range": Value(lambda r: [r.start, r.stop, r.step], range),
    "datetime.date": Value(lambda d: [d.isoformat()], date.fromisoformat),
    "datetime.time": Value(
        lambda t: [t.replace(tzinfo=None, fold=0).isoformat(), t.fold, _zone_fields(t.tzinfo)],
        lambda iso, fold, zone: time.fromisoformat(iso).replace(fold=fold, tzinfo=_zone(zone)),
    ),
    "datetime.datetime": Value(
        lambda t: [t.replace(tzinfo=None, fold=0).isoformat(), t.fold, _zone_fields(t.tzinfo)],
        lambda iso, fold, zone: datetime.fromisoformat(iso).replace(fold=fold, tzinfo=_zone(zone)),
    ),
    "datetime.timedelta": Value(lambda t: [t.days, t.seconds, t.microseconds], timedelta),
    "decimal.Decimal": Value(lambda d: [str(d)], Decimal),
    "fractions.Fraction": Value(lambda f: [f.numerator, f.denominator], lambda above, below: Fraction(above, below)),
    "uuid.UUID": Value(lambda u: [str(u)], UUID),
    "numpy.dtype": Value(lambda d: [d.str], np.dtype),
    "pandas.Timestamp": Value(lambda t: [t.asm8, _zone_fields(t.tzinfo)], _stamp),
    "pandas.Timedelta": Value(lambda t: [t.asm8], _pandas("Timedelta")),
    "pandas.Interval": Value(lambda i: [i.left, i.right, i.closed], _pandas("Interval")),
    "pandas.Period": Value(
        lambda p: [p.ordinal, p.freqstr], lambda ordinal, freq: _pandas("Period")(ordinal=ordinal, freq=freq)
    ),
}


def value_name(value: Any) -> str:
    """Return the name of a value's type in `VALUES`, if it has one."""
    kind = np.dtype if isinstance(value, np.dtype) else type(value)
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


# Columns --------------------------------------------------------------------------------------------------------


def column_fields(native: Any) -> list[Any]:
    """Return library, name, type and values of a column of a DataFrame."""
    column = nw.from_native(native, series_only=True)
    library = str(column.implementation.value)
    if library not in ("pandas", "polars"):
        raise CannotSaveError(f"Y is a DataFrame of {library}: fit with one of pandas or polars, or with an array")
    if library == "pandas":
        name, described, values = native.name, _describe_pandas(native.dtype), native.tolist()
    else:
        name, described, values = column.name, _describe(column.dtype), column.to_list()
    try:
        same = make_column(library, name, described, values).dtype == native.dtype
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        same = False
    if not same:
        raise CannotSaveError(
            f"Y, column {name!r} is of type {native.dtype} ({library}), which cannot be saved. Convert it to "
            "another type, such as a category or strings, and fit again"
        )
    return [library, name, described, values]


def make_column(library: str, name: Any, described: dict[str, Any], values: list[Any]) -> Any:
    """Build a column from the fields that `column_fields` returns."""
    if library == "pandas":
        dtype = _pandas_dtype(described)
        return require("pandas").Series(
            as_objects(values) if isinstance(dtype, np.dtypes.ObjectDType) else values, dtype=dtype, name=name
        )
    if library != "polars":
        raise ValueError(f"columns of {library!r} are not known")
    return nw.new_series(name, values, _dtype(described), backend="polars").to_native()


def _describe_pandas(dtype: Any) -> dict[str, Any]:
    pandas = require("pandas")
    if isinstance(dtype, pandas.CategoricalDtype):
        categories = dtype.categories
        return {
            "kind": "category",
            "categories": categories.tolist(),
            "of": _describe_pandas(categories.dtype),
            "ordered": dtype.ordered,
        }
    if isinstance(dtype, pandas.StringDtype):
        return {"kind": "string", "storage": dtype.storage, "nan": dtype.na_value is not pandas.NA}
    if isinstance(dtype, pandas.ArrowDtype):
        return {"kind": "arrow", "name": str(dtype.pyarrow_dtype)}
    return {"kind": "plain", "name": str(dtype)}


def _pandas_dtype(described: dict[str, Any]) -> Any:
    pandas = require("pandas")
    kind = described["kind"]
    if kind == "category":
        of, values = _pandas_dtype(described["of"]), described["categories"]
        categories = pandas.Index(
            as_objects(values) if isinstance(of, np.dtypes.ObjectDType) else values, dtype=of, tupleize_cols=False
        )
        return pandas.CategoricalDtype(categories, described["ordered"])
    if kind == "string":
        missing = float("nan") if described["nan"] else pandas.NA
        try:
            return pandas.StringDtype(described["storage"], missing)
        except ImportError:  # written where pyarrow was installed; the values are the same without
            return pandas.StringDtype("python", missing)
    if kind == "arrow":
        if described["name"].startswith("timestamp["):  # pyarrow does not read its own name of a time zone
            return pandas.ArrowDtype.construct_from_string(f"{described['name']}[pyarrow]")
        return pandas.ArrowDtype(require("pyarrow").type_for_alias(described["name"]))
    return pandas.api.types.pandas_dtype(described["name"])


def _describe(dtype: Any) -> dict[str, Any]:
    parameters = {name: getattr(dtype, name, None) for name in ("time_unit", "time_zone", "precision", "scale")}
    if isinstance(dtype, nw.Enum):
        parameters["categories"] = list(dtype.categories)
    return {"kind": type(dtype).__name__, **{name: value for name, value in parameters.items() if value is not None}}


def _dtype(described: dict[str, Any]) -> Any:
    kind, parameters = described["kind"], {name: value for name, value in described.items() if name != "kind"}
    dtype = getattr(nw, kind)
    if not (isinstance(dtype, type) and issubclass(dtype, nw.dtypes.DType)):
        raise TypeError(f"{kind!r} is not a type of columns")
    return dtype(**parameters)
