"""Table files: CSV, TSV, Parquet and Excel, read and written.

The cells of a text file have no types. `read_table` keeps every column as its distinct values and a code for each row;
`Cells` says what they look like (numbers, truth values, text) and what is missing, so that whoever reads can decide:
a new column by its own looks, a column that a model knows by what the model has seen.

Complaints are `TableFileError`s that name the file, the column, the value and its line.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import tempfile
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc.checks import suggest
from pmdc.extras import require

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MISSING_WORDS = ("NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "<NA>")
"""Cells that stand for no value, besides empty ones."""

STANDARD_STREAM = "-"

_TEXT = (".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz")
_EXCEL = (".xlsx", ".xlsm")
SUFFIXES = (*_TEXT, ".parquet", *_EXCEL)
"""The names that table files may end in."""

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_BLOCK = 4096
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)")
_NOT_PLAIN = re.compile(r"_|^\s*[+-]?0\d", re.MULTILINE)
_NOT_WHOLE = re.compile(r"[.eE]")
_LEADING_ZERO = re.compile(r"[+-]?0\d+")


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
        if all(value in ("True", "False") or isinstance(value, bool) for value in values):
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
        if _WHOLE.fullmatch(text):
            return "whole"
        if _NUMBER.fullmatch(text):
            return "number"
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
        return self.convert(lambda value: value if isinstance(value, str) else _text(value))

    def own_type(self) -> list[Any]:
        """All rows in the type that the values look like: whole numbers, numbers, truth values or text."""
        if self.looks == "whole" or self.looks == "number":
            return self.convert(self.number)
        if self.looks == "truth":
            return self.convert(lambda value: value in (True, "True"))
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


# Reading ------------------------------------------------------------------------------------------------------


def read_table(path: str | Path, format: Format | None = None) -> TableFile:
    """Read a table file; ``-`` is the standard input, a text file.

    Parameters
    ----------
    path : str or Path
        CSV, TSV (also compressed: .gz), Parquet or Excel, told by the end of its name.
    format : Format, optional

    Returns
    -------
    TableFile

    Raises
    ------
    TableFileError
        If it is no table: no header, no rows, lines of different lengths, columns of the same name, no text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from pmdc.table_files import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "survey.csv"
    ...     _ = path.write_text("age;code;vote\\n44;007;yes\\n25;012;no\\n")
    ...     table = read_table(path)
    >>> {name: table[name].looks for name in table.names}
    {'age': 'whole', 'code': 'text', 'vote': 'text'}
    """
    format = format or Format()
    name = str(path)
    source = "the standard input" if name == STANDARD_STREAM else name
    if name == STANDARD_STREAM:
        content = sys.stdin.buffer.read()
    else:
        content = _content(Path(path))
    lower = name.lower()
    if lower.endswith(".parquet") or content[:4] == b"PAR1":
        return _read_parquet(content, source, format)
    if lower.endswith(_EXCEL) or content[:4] == b"PK\x03\x04":
        return _read_excel(content, source, format)
    if lower.endswith(".xls") or content[:4] == b"\xd0\xcf\x11\xe0":
        raise TableFileError(f"{source} is an old Excel file: save it as .xlsx or .csv.")
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise TableFileError(f"{source} is compressed, but damaged ({error}): copy or compress it again.") from None
    return _read_text(_decode(content, source, format), source, format, tabs=".tsv" in lower or ".tab" in lower)


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise TableFileError(f"{path} is a folder: name a file.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise TableFileError(f"there is no file {path}{_near(path)}") from None
    except OSError as error:
        raise TableFileError(f"{path} cannot be read: {error.strerror}.") from None


def _near(path: Path) -> str:
    try:
        there = [p.name for p in path.parent.iterdir() if p.name.lower().endswith(SUFFIXES)]
        return suggest(path.name, sorted(there)) if there else ", and no other table beside it."
    except OSError:
        return f": there is no folder {path.parent} either."


def _decode(content: bytes, source: str, format: Format) -> str:
    encoding = format.encoding
    if encoding is None:
        encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except LookupError:
        raise TableFileError(f"--encoding {encoding} is not known: give utf-8, utf-16, cp1252 or latin-1.") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableFileError(
            f"{source}, line {line}: the byte 0x{content[error.start]:02x} is not {format.encoding or 'UTF-8'} text. "
            "Files of Excel and of old programs are often in --encoding cp1252; or save it as UTF-8."
        ) from None
    if "\0" in text:
        hint = "it may be UTF-16: try --encoding utf-16-le" if content[1:2] == b"\0" else "name a CSV file"
        raise TableFileError(f"{source} is not a text file: {hint}.")
    return text.removeprefix("\ufeff")


def _read_text(text: str, source: str, format: Format, tabs: bool) -> TableFile:
    if not text.strip():
        raise TableFileError(f"{source} is empty: it needs a line with the names of the columns, and rows.")
    delimiter = format.delimiter or _detect(text, tabs)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t")
    try:
        header = next(row for row in reader if any(cell.strip() for cell in row))
        names, notes = _names(header, source)
        _refuse_one_column(header, delimiter, source, text)
        codes, values, lines = _read_rows(reader, names, source, delimiter)
    except csv.Error as error:
        raise TableFileError(
            f"{source}, line {reader.line_num}: {error}. Is a quotation mark opened and never closed?"
        ) from None
    columns = {
        name: Cells(name, np.frombuffer(codes[i], dtype=np.int64).copy(), values[i], format)
        for i, name in enumerate(names)
    }
    return _checked(TableFile(source, columns, lines, "line", notes))


def _read_rows(
    reader: Any, names: Sequence[str], source: str, delimiter: str
) -> tuple[list[array[int]], list[list[str]], array[int]]:
    """Codes and distinct values of each column, and the line on which each row begins."""
    width = len(names)
    codes = [array("q") for _ in names]
    known: list[defaultdict[str, int]] = [defaultdict() for _ in names]
    for index in known:
        index.default_factory = index.__len__
    lines = array("q")
    block: list[list[str]] = []

    def keep() -> None:
        for own, index, cells in zip(codes, known, zip(*block, strict=True), strict=True):
            own.extend(map(index.__getitem__, cells))
        block.clear()

    line = reader.line_num + 1
    for row in reader:
        if len(row) != width:
            if not row or (width > 1 and row == [""]):  # an empty line
                line = reader.line_num + 1
                continue
            raise TableFileError(_ragged(row, line, reader.line_num, width, source, delimiter))
        block.append(row)
        lines.append(line)
        line = reader.line_num + 1
        if len(block) == _BLOCK:
            keep()
    if block:
        keep()
    return codes, [list(index) for index in known], lines


def _ragged(row: Sequence[str], first: int, last: int, width: int, source: str, delimiter: str) -> str:
    if last > first + 5 and any("\n" in cell for cell in row):
        return f"{source}, line {first}: a cell goes on until line {last}. Is a quotation mark opened and never closed?"
    return (
        f"{source}, line {first} has {len(row)} cell(s), but the header has {width}, separated by "
        f"{_DELIMITERS.get(delimiter, repr(delimiter))}s. Correct the line; a cell that contains the separator needs "
        "quotation marks. If another sign separates the columns, name it with --delimiter."
    )


def _detect(text: str, tabs: bool) -> str:
    """What separates the columns: the sign that divides the header and, most evenly, the next lines."""
    lines = text[:100_000].splitlines()[:50]
    if len(text) > 100_000:
        lines = lines[:-1] or lines
    best, chosen = (0.0, 0, False), "\t" if tabs else ","
    for sign in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=sign, skipinitialspace=sign != "\t") if row]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            even = sum(width == widths[0] for width in widths) / len(widths)
            merit = (even, widths[0], tabs and sign == "\t")
            if merit > best:
                best, chosen = merit, sign
    return chosen


def _refuse_one_column(header: Sequence[str], delimiter: str, source: str, text: str) -> None:
    if len(header) > 1:
        return
    first = text.splitlines()[0]
    for sign, word in _DELIMITERS.items():
        if sign != delimiter and sign in first:
            shown = {"\t": "tab"}.get(sign, sign)
            raise TableFileError(
                f"{source} has one column, {header[0]!r}, when it is divided by {_DELIMITERS.get(delimiter, delimiter)}"
                f"s, but its header contains {word}s: use --delimiter {shown!r}."
            )


def _names(header: Sequence[Any], source: str) -> tuple[list[str], list[str]]:
    """Names of the columns, and a note on those that have none."""
    names = ["" if cell is None else str(cell).strip() for cell in header]
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = [str(i) for i, name in enumerate(names, 1) if name == twice[0]]
        others = f" (and so are {', '.join(map(repr, twice[1:4]))})" if len(twice) > 1 else ""
        raise TableFileError(
            f"{source}: columns {', '.join(places)} are all called {twice[0]!r}{others}. Rename them in the file: "
            "every column needs a name of its own."
        )
    notes = []
    for i, name in enumerate(names):
        if not name:
            names[i] = f"column {i + 1}"
            while names.count(names[i]) > 1:
                names[i] += "_"
            notes.append(f"column {i + 1} of {source} has no name and is called {names[i]!r}.")
    return names, notes


def _checked(table: TableFile) -> TableFile:
    if not table.n_rows:
        raise TableFileError(f"{table.source} has a header ({len(table.names)} columns) but no rows.")
    return table


def _read_parquet(content: bytes, source: str, format: Format) -> TableFile:
    pd = require("pandas")
    require("pyarrow")
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # of the many that the library has, none is of use to a reader
        raise TableFileError(f"{source} is no Parquet file that can be read ({_first_line(error)}).") from None
    if frame.index.name is not None or frame.index.nlevels > 1:
        frame = frame.reset_index()
    return _from_frame(frame, source, format, "row", 1, [])


def _read_excel(content: bytes, source: str, format: Format) -> TableFile:
    pd = require("pandas")
    require("openpyxl")
    try:
        book = pd.ExcelFile(io.BytesIO(content), engine="openpyxl")
    except Exception as error:  # as above
        raise TableFileError(f"{source} is no Excel file that can be read ({_first_line(error)}).") from None
    sheets = [str(sheet) for sheet in book.sheet_names]
    if format.sheet is not None and format.sheet not in sheets:
        raise TableFileError(
            f"--sheet names {format.sheet!r}, which is no sheet of {source}" + suggest(format.sheet, sheets)
        )
    sheet = format.sheet or sheets[0]
    notes = (
        [f"{source} has {len(sheets)} sheets; {sheet!r} is read."] if format.sheet is None and len(sheets) > 1 else []
    )
    frame = book.parse(sheet, header=None, dtype=object, keep_default_na=False, na_values=[])
    if frame.empty:
        raise TableFileError(
            f"{source}, sheet {sheet!r} is empty: it needs a row with the names of the columns, and rows."
        )
    names, more = _names([cell if cell != "" else None for cell in frame.iloc[0]], source)
    body = frame.iloc[1:].set_axis(names, axis=1)
    filled = ~body.map(lambda cell: cell is None or cell == "").all(axis=1).to_numpy()
    table = _from_frame(body[filled], source, format, "row", 2, notes + more)
    table._places = np.flatnonzero(filled) + 2
    return table


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _from_frame(frame: Any, source: str, format: Format, word: str, first: int, notes: Sequence[str]) -> TableFile:
    pd = require("pandas")
    names, more = _names(list(frame.columns), source)
    columns = {}
    for name, (_, series) in zip(names, frame.items(), strict=True):
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype if len(series.cat.categories) else object)
        try:
            codes, values = pd.factorize(series)
        except TypeError:  # lists and the like
            codes, values = pd.factorize(series.map(str))
        listed = [_plain_value(value, name, source) for value in values.tolist()]
        columns[name] = Cells(name, codes.astype(np.int64), listed, format)
    return _checked(TableFile(source, columns, np.arange(first, first + len(frame)), word, [*notes, *more]))


def _plain_value(value: Any, name: str, source: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if np.isinf(value):
            raise TableFileError(f"{source}, column {name!r} holds {value}: replace infinite values by finite ones.")
        return value
    return str(value)  # dates and the like are categories at best


# Writing ------------------------------------------------------------------------------------------------------


def check_output(path: str | Path, *, overwrite: bool, suffixes: Sequence[str] = SUFFIXES, option: str = "-o") -> None:
    """Refuse, before any work, an output path that cannot be written or is not to be.

    `option` is what the user calls it.

    Raises
    ------
    TableFileError
    """
    path = Path(path)
    if suffixes and not str(path).lower().endswith(tuple(suffixes)) and not _is_special(path):
        raise TableFileError(f"{option} {path}: the name must end in one of {', '.join(suffixes)}.")
    if str(path).lower().endswith(".parquet"):
        require("pyarrow")
    if str(path).lower().endswith(_EXCEL):
        require("openpyxl")
    if path.is_dir():
        raise TableFileError(f"{option} {path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise TableFileError(f"{option} {path}: there is no folder {path.parent}. Create it first.")
    if _is_special(path):
        return
    if path.exists() and not overwrite:
        raise TableFileError(
            f"{option} {path}: this file exists already. Take another name, or overwrite it with --force."
        )
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise TableFileError(f"{option} {path} cannot be written: {error.strerror}.") from None


def _is_special(path: Path) -> bool:
    """A device or a pipe, which cannot be replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A new file beside `path` that takes its place at the end; if anything goes wrong, `path` stays as it was."""
    path = Path(os.path.realpath(path))
    if _is_special(path):
        yield path
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix="".join(path.suffixes[-2:]))
    os.close(handle)
    new = Path(name)
    try:
        yield new
        mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
        new.chmod(mode & 0o777)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_table(frame: Any, path: str | Path) -> None:
    """Write a pandas DataFrame as a table file, told by the end of its name; ``-`` is CSV on the standard output."""
    name = str(path).lower()
    if name == STANDARD_STREAM:
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")
        return
    with replacing(path) as new:
        if name.endswith(".parquet"):
            frame.to_parquet(new, index=False)
        elif name.endswith(_EXCEL):
            frame.to_excel(new, index=False)
        else:
            compression = "gzip" if name.endswith(".gz") else None
            sign = "\t" if ".tsv" in name or ".tab" in name else ","
            frame.to_csv(new, index=False, sep=sign, compression=compression, lineterminator="\n", encoding="utf-8")
