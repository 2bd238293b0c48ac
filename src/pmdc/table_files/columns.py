"""Tables as they are in a file: columns of cells, what type they look like, and their line numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import suggest
from pmdc._support.extras import require
from pmdc.table_files.dates import Order, Written, order_of, read_date

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MISSING_WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "<NA>")
"""Cells that mean a missing value, besides empty ones."""

_LEADING_ZERO = re.compile(r"[+-]?0\d")
_BOOLEANS = {"True": True, "False": False}
_SAMPLE = 20
"""If most of the first values of a column are dates, all of them are read as dates."""


class TableFileError(ValueError):
    """An error in a table file, or in the options for reading or writing it."""


@dataclass(frozen=True)
class Format:
    """How to read a table file.

    Attributes
    ----------
    delimiter : str or None
        Separates the columns of a text file; None detects it.
    decimal : str
        The decimal separator.
    encoding : str or None
        None is UTF-8, or UTF-16 if the file starts with its byte-order mark or has its pattern of zero bytes.
    missing : tuple of str
        Cells that mean a missing value, besides empty ones.
    sheet : str or None
        The sheet of an Excel file; None is the first.
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str | None = None
    missing: tuple[str, ...] = MISSING_WORDS
    sheet: str | None = None


# Columns ------------------------------------------------------------------------------------------------------


class Cells:
    """One column: its distinct values, and for each row the index of its value (-1: missing).

    Values of text files are strings; those of other files may be numbers and booleans.
    """

    def __init__(self, name: str, codes: Codes, values: Sequence[Any], format: Format):
        self.name = name
        self.codes = codes
        self.values = list(values)
        self.format = format

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, kept: Mask) -> Cells:
        """Return the column with fewer rows, and only the values that occur in them."""
        codes = self.codes[kept]
        used = np.unique(codes[codes >= 0])
        new_codes = np.full(len(self.values) + 1, -1)
        new_codes[used] = np.arange(len(used))
        return Cells(self.name, new_codes[codes], [self.values[i] for i in used], self.format)

    def missing(self, known: Sequence[Any] = ()) -> Mask:
        """Return which rows are missing; the words in `known` are values even if they usually mean missing."""
        words = {"", *self.format.missing} - {value for value in known if isinstance(value, str)}
        return np.array([*(_is_word(value, words) for value in self.values), True], dtype=bool)[self.codes]

    @property
    def n_known(self) -> int:
        """The number of rows that are not missing."""
        return int((~self.missing()).sum())

    @cached_property
    def _present(self) -> list[int]:
        """The indices of the values that do not mean missing."""
        words = {"", *self.format.missing}
        return [i for i, value in enumerate(self.values) if not _is_word(value, words)]

    @property
    def present(self) -> list[Any]:
        """The distinct values that do not mean missing."""
        return [self.values[i] for i in self._present]

    @cached_property
    def _numbers(self) -> list[int | float | None]:
        """Each distinct value as a number; None if it is not one."""
        return [self._number(value) for value in self.values]

    def _number(self, value: Any) -> int | float | None:
        if not isinstance(value, str):
            return None if isinstance(value, bool) or not isinstance(value, (int, float)) else value
        text = self._plain(value)
        if "_" in text or _LEADING_ZERO.match(text):
            return None
        try:
            number = float(text)
            if not math.isfinite(number):
                return None
            return number if "." in text or "e" in text or "E" in text else int(text)
        except ValueError:
            return None

    def _plain(self, value: str) -> str:
        """Return a number with a decimal point."""
        text = value.strip()
        return text if self.format.decimal == "." else text.replace(".", "?").replace(self.format.decimal, ".")

    @cached_property
    def looks(self) -> str:
        """The type of the values.

        "whole", "number", "truth", "date", "time", "text", "mixed" (numbers and text) or "empty".
        """
        values = self.present
        if not values:
            return "empty"
        if all(isinstance(value, bool) or value in _BOOLEANS for value in values):
            return "truth"
        numbers = [self._numbers[i] for i in self._present]
        text = [value for value, number in zip(values, numbers, strict=True) if number is None]
        if not text:
            return "whole" if all(isinstance(number, int) for number in numbers) else "number"
        if len(text) == len(values) or all(_is_code(value) for value in text):
            # Numbers beside codes with leading zeros are codes too.
            return "text" if self.not_date_values or not self.date_kind else self.date_kind
        return "mixed"

    # Dates ----------------------------------------------------------------------------------------------------

    @cached_property
    def date_kind(self) -> str:
        """What the column is meant to hold, even if some cells are something else: "date", "time", or neither."""
        sample = [read_date(str(value)) for value in self.present[:_SAMPLE]]
        for kind, name in ((Written, "date"), (time, "time")):
            if 2 * sum(isinstance(one, kind) for one in sample) > len(sample):
                return name
        return ""

    @cached_property
    def _dates(self) -> list[Written | time | None]:
        """Each distinct value as a date or time, whichever the column holds; None if it is not one."""
        kind = Written if self.date_kind == "date" else time
        found = [read_date(str(value)) for value in self.values]
        return [one if isinstance(one, kind) else None for one in found]

    @cached_property
    def date_order(self) -> Order | None:
        """The order of day and month in the dates of the column; None if they do not tell."""
        return order_of([one for one in self._dates if isinstance(one, Written)])

    def _moments(self, order: Order | None) -> list[Any]:
        """Each distinct value as a datetime or a time of day; None if it is not one."""
        order = order or self.date_order or "dmy"
        return [one.value(order) if isinstance(one, Written) else one for one in self._dates]

    @property
    def not_date_values(self) -> list[Any]:
        """The distinct values that are neither missing nor dates or times, whichever the column holds."""
        moments = self._moments(None)
        return [self.values[i] for i in self._present if moments[i] is None]

    def not_dates(self, order: Order | None = None) -> Mask:
        """Return which rows hold a value that is neither missing nor a date or time, whichever the column holds."""
        moments = self._moments(order)
        odd = np.zeros(len(self.values) + 1, dtype=bool)  # the last one is for code -1
        odd[[i for i in self._present if moments[i] is None]] = True
        return odd[self.codes]

    def dates(self, order: Order | None = None) -> list[Any]:
        """Return all rows as datetimes or times of day; None where missing."""
        moments = [*self._moments(order), None]
        return [moments[code] for code in self.codes.tolist()]

    # Numbers --------------------------------------------------------------------------------------------------

    @property
    def value_numbers(self) -> dict[int, int | float]:
        """The distinct values that are numbers, by their index among the values."""
        return {i: number for i in self._present if (number := self._numbers[i]) is not None}

    @property
    def not_number_values(self) -> list[Any]:
        """The distinct values that are neither missing nor numbers."""
        return [self.values[i] for i in self._present if self._numbers[i] is None]

    def not_numbers(self) -> Mask:
        """Return which rows hold a value that is neither missing nor a number."""
        odd = np.zeros(len(self.values) + 1, dtype=bool)  # the last one is for code -1
        odd[[i for i in self._present if self._numbers[i] is None]] = True
        return odd[self.codes]

    def numbers(self) -> npt.NDArray[Any]:
        """Return all rows as numbers: integers if all of them are, otherwise floats with NaN where missing."""
        numbers = [self._numbers[i] for i in self._present]
        whole = self.looks == "whole" and not self.missing().any() and max(map(abs, numbers)) < 2**63  # type: ignore[arg-type]
        table = np.full(len(self.values) + 1, 0 if whole else np.nan, dtype=np.int64 if whole else np.float64)
        table[self._present] = [np.nan if number is None else number for number in numbers]
        return table[self.codes]

    def convert(self, change: Callable[[Any], Any]) -> list[Any]:
        """Apply a function to the values and return all rows; None where missing."""
        changed = [*map(change, self.values), None]
        return [changed[code] for code in self.codes.tolist()]

    def as_known(self, states: Sequence[Any]) -> list[Any]:
        """Return all rows in the type of the states that a model knows; values of another type stay as they are."""
        if states and all(isinstance(state, (bool, np.bool_)) for state in states):
            words = {"true": True, "false": False}
            return self.convert(lambda value: words.get(str(value).strip().lower(), value))
        if states and all(isinstance(state, (int, float, np.integer, np.floating)) for state in states):
            return self.convert(lambda value: value if (number := self._number(value)) is None else number)
        by_text = {state.strip(): state for state in states if isinstance(state, str)}  # cells are stripped too
        by_text |= {state: state for state in states}

        def to_state(value: Any) -> Any:
            text = _text(value)
            if isinstance(value, bool):  # Excel turns the text TRUE into a boolean
                text = next((str(state) for state in states if str(state).lower() == text.lower()), text)
            return by_text.get(text, text)

        return self.convert(to_state)

    def as_written(self) -> list[Any]:
        """Return all rows as they are written in a text file, with decimal points; for other files in their types."""
        if not all(isinstance(value, str) for value in self.values):
            return self.own_type()
        return self.convert(lambda value: value if self._number(value) is None else self._plain(value))

    def own_type(self) -> list[Any]:
        """Return all rows in the type that the values look like; None where a number or boolean is missing."""
        if self.looks in ("whole", "number"):
            return self.convert(self._number)
        if self.looks == "truth":
            return self.convert(lambda value: value if isinstance(value, bool) else _BOOLEANS.get(value))
        return self.convert(_text)


def _is_word(value: Any, words: set[str]) -> bool:
    """Return whether a value is one of some words; a number may be written as one."""
    return value in words or (not isinstance(value, (str, bool)) and _text(value) in words)


def _is_code(value: Any) -> bool:
    """Return whether a text is a number with leading zeros, such as 007."""
    text = str(value)
    return bool(_LEADING_ZERO.match(text)) and text.lstrip("+-").isdigit()


def _text(value: Any) -> str:
    """Return a value as a spreadsheet shows it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# Tables -------------------------------------------------------------------------------------------------------


class TableFile:
    """A table as it is in a file.

    Attributes
    ----------
    source : str
        Its name in messages.
    columns : dict from name to Cells
    names : list of str
    n_rows : int
    notes : list of str
        Messages for the user, such as columns without a name or sheets that were not read.
    """

    def __init__(self, source: str, columns: dict[str, Cells], places: Any, word: str, notes: Sequence[str] = ()):
        self.source = source
        self.columns = columns
        self.notes = list(notes)
        self._places, self._word = np.asarray(places, dtype=np.int64), word

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    @property
    def n_rows(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> Cells:
        return self.columns[name]

    def rows(self, kept: Mask) -> TableFile:
        """Return the table with fewer rows."""
        columns = {name: cells.rows(kept) for name, cells in self.columns.items()}
        return TableFile(self.source, columns, self._places[kept], self._word, self.notes)

    def replace(self, columns: Mapping[str, Cells]) -> TableFile:
        """Return the table with other cells in some columns."""
        return TableFile(self.source, {**self.columns, **columns}, self._places, self._word, self.notes)

    @property
    def places(self) -> Codes:
        """The line number of each row, or the number of the row in files without lines."""
        return self._places

    @property
    def word(self) -> str:
        """What `places` counts: "line" or "row"."""
        return self._word

    def where(self, rows: Mask | Sequence[int], limit: int = 3) -> str:
        """Return the line numbers of rows: "line 3", "lines 3, 7, 9 and 4 more"."""
        index = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        shown = ", ".join(str(place) for place in self._places[index[:limit]])
        more = f" and {len(index) - limit} more" if len(index) > limit else ""
        return f"{self._word}{'s' * (len(index) > 1)} {shown}{more}"

    def examples(self, cells: Cells, rows: Mask, limit: int = 3) -> str:
        """Return the first distinct values in some rows: "'?' (line 3), 'unknown' (line 7), ..."."""
        index = np.flatnonzero(rows)
        _, first = np.unique(cells.codes[index], return_index=True)
        first = index[np.sort(first)]
        shown = [f"{cells.values[cells.codes[row]]!r} ({self.where([row])})" for row in first[:limit]]
        return ", ".join(shown) + (", ..." if len(first) > limit else "")

    def require(self, names: Sequence[str], option: str) -> None:
        """Raise an error if there is no column of one of the names."""
        for name in names:
            if name not in self.columns:
                raise TableFileError(
                    f"{option} names {name!r}, which is not a column of {self.source}" + suggest(name, self.names)
                )

    def frame(self) -> Any:
        """Return a pandas DataFrame with the types that the columns look like.

        Text and booleans are categories, and so are dates in which day and month cannot be told apart.
        """
        pd = require("pandas")

        def values(cells: Cells) -> Any:
            if cells.looks in ("whole", "number"):
                return cells.numbers()
            if cells.looks == "date" and cells.date_order is not None:
                return np.array(cells.dates(), dtype="M8[us]")
            if cells.looks == "time":
                return cells.dates()
            return pd.Categorical(pd.Series(cells.own_type(), dtype=object).mask(cells.missing()))

        return pd.DataFrame({name: values(cells) for name, cells in self.columns.items()})
