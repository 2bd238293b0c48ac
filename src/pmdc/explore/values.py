"""States and feature values as JSON, and back."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pmdc._support.arrays import Array
from pmdc._support.checks import suggest
from pmdc.table.columns import UNKNOWN, as_plain_objects

Json = str | int | float | bool | None

_SHOWN = 60
"""Characters of a value in a message."""

MAX_EXACT = 2**53
"""JavaScript has no whole numbers above; they are written as text."""


def to_json(value: Any) -> Json:
    """Return a state or a feature value as JSON; None if it is missing."""
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else _date_text(value)
    if isinstance(value, np.timedelta64):
        return None if np.isnat(value) else _duration_text(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def _date_text(value: np.datetime64) -> str:
    """Return the date alone at midnight, and no more decimals of a second than are needed."""
    text, _, decimals = str(np.datetime_as_string(value)).partition(".")
    return f"{text}.{decimals.rstrip('0')}" if decimals.strip("0") else text.removesuffix("T00:00:00")


def _duration_text(value: np.timedelta64) -> str:
    """Return a time since midnight as the time of day, and a longer duration as numpy writes it."""
    seconds, microseconds = divmod(int(value / np.timedelta64(1, "us")), 1_000_000)
    if not 0 <= seconds < 86400:
        return str(value)
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60, microseconds).isoformat()


class States:
    """The states of a class variable, or the values of a discrete feature, as JSON.

    Attributes
    ----------
    name : str
    listed : list
        In the order of their codes.
    """

    def __init__(self, name: str, states: Array):
        self.name = name
        self.listed: list[Any] = [to_json(state) for state in as_plain_objects(states)]
        if len(set(map(to_key, self.listed))) < len(self.listed):  # states that look alike, such as tuples of numpy's
            self.listed = [f"{state} ({code})" for code, state in enumerate(self.listed)]
        self._codes = {to_key(state): code for code, state in enumerate(self.listed)}

    def code(self, value: Any) -> int:
        """Return the code of a state; -1 if it is none."""
        return self._codes.get(to_key(value), UNKNOWN)

    def require(self, value: Any) -> int:
        """Return the code of a state; ValueError if it is none."""
        code = self.code(value)
        if code == UNKNOWN:
            raise ValueError(f"{shown(value)} is not a state of {self.name!r}{self.suggest(value)}")
        return code

    def suggest(self, value: Any) -> str:
        return suggest(value, [str(state) for state in self.listed])


def shown(value: Any) -> str:
    """Return a value for a message, cut off if it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def to_key(value: Any) -> tuple[bool, Any]:
    """Return a value that keeps true and 1 apart."""
    return isinstance(value, bool), value


def read_dates(values: Sequence[str | None]) -> list[datetime.datetime | None]:
    """Return dates, with or without a time, from ISO format; a time zone is ignored, as in tables."""
    return [None if text is None else datetime.datetime.fromisoformat(text).replace(tzinfo=None) for text in values]


def read_times(values: Sequence[str | None]) -> list[datetime.time | None]:
    """Return times of day from ISO format; a time zone is ignored, as in tables."""
    return [None if text is None else datetime.time.fromisoformat(text).replace(tzinfo=None) for text in values]
