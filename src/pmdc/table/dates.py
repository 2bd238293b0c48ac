"""Dates and times as continuous features.

A column of dates becomes the days since `DAY_ZERO` and, only where they say more, the month, the weekday and the hour.
A column of times of day becomes its hours. Each is an ordinary number, so a date that was never seen has features, too.
A time with a time zone counts as what the clock on the wall shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np

from pmdc._support.arrays import Array, Floats

DAY_ZERO = np.datetime64("2000-01-01", "us")

PARTS = ("days", "month", "weekday", "hour", "time")
"""Numbers made of a date (the first four; weekday 0 is Monday, hour and days have fractions) or of a time of day."""

_DAY, _HOUR = np.timedelta64(1, "D"), np.timedelta64(1, "h")
_LONG = 366.0
"""Days that dates must span for the month to say more than the days do."""


def is_date_type(kind: type) -> bool:
    return issubclass(kind, (date, np.datetime64))


def dates(values: Sequence[Any]) -> Array:
    """Return dates, with or without times, as numpy's; None is a missing one."""
    return np.array([_clock(value) for value in values], dtype="M8[us]")


def times(values: Sequence[Any]) -> Array:
    """Return times of day as the time since midnight; None is a missing one."""
    return np.array([None if value is None else _since_midnight(value) for value in values], dtype="m8[us]")


def _clock(value: Any) -> Any:
    if isinstance(value, datetime):  # pandas' Timestamp is one, and so is its missing value
        return None if value != value else value.replace(tzinfo=None)
    return value


def _since_midnight(value: time) -> np.timedelta64:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return np.timedelta64(seconds * 1_000_000 + value.microsecond, "us")


def parts_of(values: Array) -> list[str]:
    """Return the parts that vary over the dates or times of day of a column."""
    if values.dtype.kind == "m":
        return ["time"]
    days = part(values, "days")
    found = ["days"]
    if days.max() - days.min() > _LONG:
        found.append("month")
    return found + [name for name in ("weekday", "hour") if np.ptp(part(values, name)) > 0]


def part(values: Array, name: str) -> Floats:
    """Return one number for each date or time of day; NaN for a missing one."""
    missing = np.isnat(values)
    if missing.any():
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = part(values[~missing], name)
        return numbers
    if name == "time":
        return values / _HOUR
    if name == "days":
        return (values - DAY_ZERO) / _DAY
    day = values.astype("M8[D]")
    if name == "month":
        return (day.astype("M8[M]").astype(np.int64) % 12 + 1).astype(float)
    if name == "weekday":
        return ((day.astype(np.int64) + 3) % 7).astype(float)  # day 0, 1 January 1970, was a Thursday
    return (values - day) / _HOUR
