"""A table as it stands in a file: columns of cells, what they look like and where they stand."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import suggest
from pmdc._support.extras import require

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MISSING_WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "<NA>")
"""Cells that stand for no value, besides empty ones."""

_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)")
_NOT_PLAIN = re.compile(r"_|^\s*[+-]?0\d", re.MULTILINE)
_NOT_WHOLE = re.compile(r"[.eE]")
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_TRUTH = {"True": True, "False": False}


class TableFileError(ValueError):
    """Something is wrong with a table file, or with what was asked of it."""


@dataclass(frozen=True)
class Format:
    """How a table file is to be read; None is whatever it looks like.

    Attributes
    ----------
    delimiter : str or None
        What separates the columns of a text file.
    decimal : str
        The decimal sign of its numbers.
    encoding : str or None
        None is UTF-8, or UTF-16 where the file says so.
    missing : tuple of str
        Cells that stand for no value, besides empty ones.
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
    """One column: its distinct values, and for each row which of them it holds (-1: none).

    The values of text files are strings; others may be numbers and truth values already.
    """

    def __init__(self, name: str, codes: Codes, values: Sequence[Any], format: Format):
        self.name = name
        self.codes = codes
        self.values = list(values)
        self.format = format

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, kept: Mask) -> Cells:
        """The same column with fewer rows, and only the values that they hold."""
        codes = self.codes[kept]
        used = np.unique(codes[codes >= 0])
        place = np.full(len(self.values) + 1, -1)
        place[used] = np.arange(len(used))
        return Cells(self.name, place[codes], [self.values[i] for i in used], self.format)

    def spread(self, of_values: Sequence[bool] | Mask, of_none: bool) -> Mask:
        """For each row what is true of its value."""
        return np.append(np.asarray(of_values, dtype=bool), of_none)[self.codes]

    def missing(self, known: Sequence[Any] = ()) -> Mask:
        """The rows without a value; words in `known` are values, whatever they usually stand for."""
        words = {"", *self.format.missing} - {value for value in known if isinstance(value, str)}
        return self.spread([isinstance(value, str) and value in words for value in self.values], True)

    @cached_property
    def _held(self) -> list[int]:
        """The places of the values that are not missing."""
        words = {"", *self.format.missing}
        return [i for i, value in enumerate(self.values) if value not in words]

    @property
    def present(self) -> list[Any]:
        """The distinct values that are not missing."""
        return [self.values[i] for i in self._held]

    @cached_property
    def looks(self) -> str:
        """What the values are: "whole", "number", "truth", "text", "mixed" (numbers and text) or "empty"."""
        values = self.present
        if not values:
            return "empty"
        if all(isinstance(value, bool) or value in _TRUTH for value in values):
            return "truth"
        if self._all_numbers is not None:
            return "whole" if self._all_numbers.dtype.kind == "i" else "number"
        kinds = Counter(self._look(value) for value in values)
        if not kinds["text"] and not kinds["code"]:
            return "number" if kinds["number"] else "whole"
        if not kinds["text"] or not kinds["whole"] + kinds["number"]:
            return "text"  # numbers with leading zeros are codes, and so are those beside them
        return "mixed"

    @cached_property
    def _all_numbers(self) -> npt.NDArray[Any] | None:
        """The values that are not missing, if all are numbers: read together, which is quick."""
        values = self.present
        types = set(map(type, values))
        if types <= {int, float}:
            try:
                return np.array(values, dtype=np.int64 if types == {int} else np.float64)
            except OverflowError:
                return np.array(values, dtype=np.float64)
        if types != {str} or self.format.decimal != ".":
            return None
        together = "\n".join(values)
        if _NOT_PLAIN.search(together):
            return None
        try:
            if not _NOT_WHOLE.search(together):
                return np.array(list(map(int, values)), dtype=np.int64)
            numbers = np.array(list(map(float, values)))
        except (ValueError, OverflowError):
            return None
        return numbers if np.isfinite(numbers).all() else None

    def _look(self, value: Any) -> str:
        if isinstance(value, bool):
            return "text"
        if isinstance(value, int):
            return "whole"
        if isinstance(value, float):
            return "number"
        text = self._plain(value)
        if _NUMBER.fullmatch(text):
            if not math.isfinite(float(text)):
                return "text"
            return "whole" if _WHOLE.fullmatch(text) else "number"
        return "code" if _LEADING_ZERO.fullmatch(text) else "text"

    def _plain(self, value: Any) -> str:
        """A number as programs write it."""
        text = str(value).strip()
        return text if self.format.decimal == "." else text.replace(".", "?").replace(self.format.decimal, ".")

    def not_numbers(self) -> Mask:
        """The rows that hold something else than a number."""
        words = {"", *self.format.missing}
        odd = [not (isinstance(v, str) and v in words) and self.number(v) is None for v in self.values]
        return self.spread(odd, False)

    def number(self, value: Any) -> int | float | None:
        """A value as a number, if it is one."""
        look = self._look(value)
        if look in ("text", "code"):
            return None
        if not isinstance(value, str):
            return value if isinstance(value, int) else float(value)
        return int(self._plain(value)) if look == "whole" else float(self._plain(value))

    def numbers(self) -> npt.NDArray[Any]:
        """All rows as numbers (integers where all of them are, otherwise floats); NaN where there is none."""
        found = self._all_numbers
        if found is None:
            found = np.array([np.nan if n is None else float(n) for n in map(self.number, self.present)])
        if len(self._held) == len(self.values) and self.codes.min(initial=0) >= 0:
            return found[self.codes]
        table = np.full(len(self.values) + 1, np.nan)  # the last for code -1
        table[self._held] = found
        return table[self.codes]

    def convert(self, change: Callable[[Any], Any]) -> list[Any]:
        """All rows after a change of their values; None where there is none."""
        changed = [change(value) for value in self.values]
        return [None if code < 0 else changed[code] for code in self.codes.tolist()]

    def as_known(self, states: Sequence[Any]) -> list[Any]:
        """All rows in the type of the states that a model knows; values of another type stay as they are."""
        if states and all(isinstance(state, (bool, np.bool_)) for state in states):
            words = {"true": True, "false": False}
            return self.convert(lambda value: words.get(str(value).strip().lower(), value))
        if states and all(isinstance(state, (int, float, np.integer, np.floating)) for state in states):

            def to_number(value: Any) -> Any:
                number = self.number(value)
                return value if number is None else number

            return self.convert(to_number)
        trimmed = {state.strip(): state for state in states if isinstance(state, str)}  # as the cells are
        trimmed |= {state: state for state in states}

        def to_state(value: Any) -> Any:
            text = value if isinstance(value, str) else _text(value)
            if isinstance(value, bool):  # TRUE in text that Excel has written, and the like
                text = next((str(state) for state in states if str(state).lower() == text.lower()), text)
            return trimmed.get(text, text)

        return self.convert(to_state)

    def as_written(self) -> list[Any]:
        """All rows of a text file as they stand there, numbers with a decimal point; of another file in their types."""
        if not all(isinstance(value, str) for value in self.values):
            return self.own_type()
        return self.convert(lambda value: value if self.number(value) is None else self._plain(value))

    def own_type(self) -> list[Any]:
        """All rows in the type that the values look like: whole numbers, numbers, truth values or text."""
        if self.looks == "whole" or self.looks == "number":
            return self.convert(self.number)
        if self.looks == "truth":
            return self.convert(lambda value: value if isinstance(value, bool) else _TRUTH.get(value))
        return self.convert(lambda value: value if isinstance(value, str) else _text(value))


def _text(value: Any) -> str:
    """A value as a spreadsheet shows it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# Tables -------------------------------------------------------------------------------------------------------


class TableFile:
    """A table as it stands in a file.

    Attributes
    ----------
    source : str
        What to call it in messages.
    names : list of str
    n_rows : int
    notes : list of str
        What a reader should know: columns without a name, sheets that were not read.
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
        """The same table with fewer rows."""
        columns = {name: cells.rows(kept) for name, cells in self.columns.items()}
        return TableFile(self.source, columns, self._places[kept], self._word, self.notes)

    def where(self, rows: Mask | Sequence[int], most: int = 3) -> str:
        """Where rows stand in the file: "line 3", "lines 3, 7, 9 and 4 more"."""
        index = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        shown = [str(place) for place in self._places[index[:most]]]
        if len(index) > most:
            return f"{self._word}s {', '.join(shown)} and {len(index) - most} more"
        return f"{self._word}{'s' * (len(index) > 1)} {', '.join(shown)}"

    def examples(self, cells: Cells, rows: Mask, most: int = 3) -> str:
        """The first of some cells with their places: "'?' (line 3), 'unknown' (line 7), ..."."""
        index = np.flatnonzero(rows)
        first: dict[Any, int] = {}
        for row in index:
            first.setdefault(cells.values[cells.codes[row]], int(row))
            if len(first) > most:
                break
        shown = [f"{value!r} ({self.where([row])})" for value, row in list(first.items())[:most]]
        return ", ".join(shown) + (", ..." if len(first) > most else "")

    def require(self, names: Sequence[str], option: str) -> None:
        """Refuse names that are no columns."""
        for name in names:
            if name not in self.columns:
                raise TableFileError(
                    f"{option} names {name!r}, which is no column of {self.source}" + suggest(name, self.names)
                )

    def frame(self) -> Any:
        """All columns in the types that they look like, as a pandas DataFrame; text is categories."""
        pd = require("pandas")
        return pd.DataFrame({name: _series(cells) for name, cells in self.columns.items()})


def _series(cells: Cells) -> Any:
    pd = require("pandas")
    if cells.looks in ("whole", "number"):
        return pd.Series(cells.numbers())
    values = cells.own_type()
    blank = cells.missing()
    return pd.Series(pd.Categorical([None if gone else v for v, gone in zip(values, blank, strict=True)]))
