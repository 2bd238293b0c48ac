"""Read table files: text with any delimiter and encoding, Parquet, Excel."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from pmdc._support.checks import suggest
from pmdc._support.extras import require
from pmdc.table_files.columns import Cells, Codes, Format, TableFile, TableFileError
from pmdc.table_files.header import MAX_TITLES, Row, count_titles, filled, find_header, read_names, title_notes

STANDARD_STREAM = "-"

EXCEL = (".xlsx", ".xlsm")
SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", *EXCEL)
"""The file name extensions of table files."""

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""A line before the header that some programs write for Excel."""
_BLOCK_ROWS = 4096
_OPEN_QUOTE = "a quotation mark is opened but never closed. Close it, or double it if it is part of the text."
_MAX_CELL = 2**31 - 1
"""The longest cell of a text file, in characters; the default of the csv module is 131,072."""


def read_table(path: str | Path, format: Format | None = None) -> TableFile:
    """Read a table file; ``-`` is the standard input, a text file.

    Parameters
    ----------
    path : str or Path
        CSV, TSV (also compressed: .gz), Parquet or Excel, recognised by the file name extension.
    format : Format, optional

    Returns
    -------
    TableFile

    Raises
    ------
    TableFileError
        If it is not a table: no header, no rows, lines of different lengths, duplicate column names, not text.

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
    content = sys.stdin.buffer.read() if name == STANDARD_STREAM else _content(Path(path))
    lower = name.lower()
    if lower.endswith(".parquet") or content[:4] == b"PAR1":
        return _read_parquet(content, source, format)
    if content[:4] == b"PK\x03\x04" and b"pmdc.json" in content:  # a member that pmdc.save adds
        raise TableFileError(f"{source} is a model file written by pmdc fit; give a table.")
    if lower.endswith(EXCEL) or content[:4] == b"PK\x03\x04":
        return _read_excel(content, source, format)
    if lower.endswith(".xls") or content[:4] == b"\xd0\xcf\x11\xe0":
        raise TableFileError(f"{source} is a file of an old Excel version: save it as .xlsx or .csv.")
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise TableFileError(f"{source} is compressed but damaged ({error}): copy or compress it again.") from None
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
        others = [p.name for p in path.parent.iterdir() if p.name.lower().endswith(SUFFIXES)]
        return suggest(path.name, sorted(others)) if others else ", nor any other table in its folder."
    except OSError:
        return f": there is no folder {path.parent} either."


def _decode(content: bytes, source: str, format: Format) -> str:
    encoding = format.encoding
    if encoding is None:
        encoding = _guess_encoding(content)
    try:
        text = content.decode(encoding)
    except LookupError:
        raise TableFileError(f"--encoding {encoding} is unknown: use utf-8, utf-16, cp1252 or latin-1.") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TableFileError(
            f"{source}, line {line}: the byte 0x{content[error.start]:02x} is not {format.encoding or 'UTF-8'} text. "
            "Files from Excel and old programs often need --encoding cp1252; or save the file as UTF-8."
        ) from None
    if "\0" in text:
        raise TableFileError(f"{source} is not a text file: give a CSV file.")
    return text.removeprefix("\ufeff")


def _guess_encoding(content: bytes) -> str:
    """Return UTF-8, or UTF-16 if there is its byte-order mark or a zero beside each ASCII character."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    even, odd = content[:4096:2].count(0), content[1:4096:2].count(0)
    if len(content) % 2 == 0 and max(even, odd) > 0 == min(even, odd):
        return "utf-16-le" if odd else "utf-16-be"
    return "utf-8-sig"


def _read_text(text: str, source: str, format: Format, tabs: bool) -> TableFile:
    if not text.strip():
        raise TableFileError(f"{source} is empty: it needs a header line with the column names, and rows.")
    separator_line = _SEPARATOR_LINE.match(text)
    delimiter = format.delimiter or (separator_line[1] if separator_line else _detect(text, tabs))
    lines = _Lines()
    with _long_cells():
        reader = csv.reader(lines.read(text), delimiter=delimiter, skipinitialspace=delimiter != "\t")
        try:
            if separator_line:
                next(reader)
            rows = _numbered(reader, lines, source)
            header, following, titles = find_header(rows)
            if not header:
                raise TableFileError(f"{source} has no header line with the column names.")
            names, unnamed = read_names(header, source)
            _refuse_one_column(header, delimiter, source)
            codes, values, places = _read_rows(chain(following, rows), reader, names, source, delimiter)
        except csv.Error as error:
            raise TableFileError(f"{source}, line {reader.line_num}: {error}.") from None
    columns = {
        name: _trimmed(name, np.frombuffer(codes[i], dtype=np.int64).copy(), values[i], format)
        for i, name in enumerate(names)
    }
    return _checked(TableFile(source, columns, places, "line", title_notes(titles, source)), unnamed)


def _numbered(reader: Any, lines: _Lines, source: str) -> Iterator[Row]:
    line = reader.line_num + 1
    for row in reader:
        if lines.ended:
            raise TableFileError(f"{source}, line {line}: {_OPEN_QUOTE}")
        yield line, row
        line = reader.line_num + 1


class _Lines:
    """The lines of a text; `ended` is set when a reader asks for more, within a row only if a quote is not closed."""

    ended = False

    def read(self, text: str) -> Iterator[str]:
        yield from io.StringIO(text, newline="")
        self.ended = True


@contextmanager
def _long_cells() -> Iterator[None]:
    """Allow cells of any length."""
    limit = csv.field_size_limit(_MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _trimmed(name: str, codes: Codes, values: Sequence[Any], format: Format) -> Cells:
    """Return a column with blanks around its texts removed: 'yes' and 'yes ' are the same."""
    trimmed = [value.strip() if isinstance(value, str) else value for value in values]
    if trimmed == list(values):
        return Cells(name, codes, values, format)
    places: dict[Any, int] = {}
    merged = [places.setdefault(value, len(places)) for value in trimmed]
    return Cells(name, np.array([*merged, -1])[codes], list(places), format)


def _read_rows(
    rows: Iterable[Row], reader: Any, names: Sequence[str], source: str, delimiter: str
) -> tuple[list[array[int]], list[list[str]], array[int]]:
    """Return codes and distinct values of each column, and the line on which each row begins."""
    width = len(names)
    codes = [array("q") for _ in names]
    indices: list[defaultdict[str, int]] = [defaultdict() for _ in names]
    for index in indices:
        index.default_factory = index.__len__
    places = array("q")
    block: list[list[str]] = []

    def add_block() -> None:
        for own, index, cells in zip(codes, indices, zip(*block, strict=True), strict=True):
            own.extend(map(index.__getitem__, cells))
        block.clear()

    for line, row in rows:
        if len(row) == width:
            block.append(row)
            places.append(line)
        elif row and (width == 1 or row != [""]):  # otherwise it is an empty line
            raise TableFileError(_ragged(row, line, reader.line_num, names, source, delimiter))
        if len(block) == _BLOCK_ROWS:
            add_block()
    if block:
        add_block()
    return codes, [list(index) for index in indices], places


def _ragged(row: Sequence[str], first: int, last: int, names: Sequence[str], source: str, delimiter: str) -> str:
    if last > first + 5 and any("\n" in cell for cell in row):
        return f"{source}, line {first}: a cell extends to line {last}. Is a quotation mark not closed?"
    word = _DELIMITERS.get(delimiter, repr(delimiter))
    if len(names) == 1:
        return (
            f"{source}: the first line is only {names[0]!r}, but line {first} has {len(row)} cells, separated by "
            f"{word}s. The file must begin with the column names: remove what is before them."
        )
    title = ""
    if len(names) < len(row) - 1:
        title = f" If {', '.join(names)!r} is a title and not the names of the columns, remove it."
    return (
        f"{source}, line {first} has {len(row)} cell(s), but the header has {len(names)}, separated by {word}s. "
        "Correct the line; a cell that contains the delimiter must be in quotation marks. If the columns are separated "
        f"by something else, use --delimiter.{title}"
    )


def _detect(text: str, tabs: bool) -> str:
    """Return the delimiter that divides the header and gives the most lines the same number of cells.

    Titles above the header are not divided.
    """
    lines = text[:100_000].splitlines()[:50]
    if len(text) > 100_000:
        lines = lines[:-1] or lines
    best_score, best = (0.0, -MAX_TITLES, 0, False), "\t" if tabs else ","
    for sign in _DELIMITERS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=sign, skipinitialspace=sign != "\t") if row]
        except csv.Error:
            continue
        title = next((i for i, width in enumerate(widths[:MAX_TITLES]) if width > 1), 0)
        widths = widths[title:] if len(widths) > title + 1 else widths
        if widths and widths[0] > 1:
            equal = sum(width == widths[0] for width in widths) / len(widths)
            score = (equal, -title, widths[0], tabs and sign == "\t")
            if score > best_score:
                best_score, best = score, sign
    return best


def _refuse_one_column(header: Sequence[str], delimiter: str, source: str) -> None:
    if len(header) > 1:
        return
    for sign, word in _DELIMITERS.items():
        if sign != delimiter and sign in header[0]:
            shown = {"\t": "tab"}.get(sign, sign)
            raise TableFileError(
                f"{source} has one column, {header[0]!r}, if the delimiter is {delimiter!r}, but its header contains "
                f"{word}s: use --delimiter {shown!r}."
            )


def _checked(table: TableFile, unnamed: Sequence[str]) -> TableFile:
    """Remove columns that have neither a name nor a value, and add notes on columns without a name."""
    if not table.n_rows:
        n_columns = len(table.names)
        raise TableFileError(f"{table.source} has a header ({n_columns} column{'s' * (n_columns > 1)}) but no rows.")
    empty = [name for name in unnamed if table[name].looks == "empty"]
    for name in unnamed:
        if name not in empty:
            table.notes.append(f"a column of {table.source} has no name; it is called {name!r}.")
    if empty:
        table.notes.append(f"{len(empty)} column(s) of {table.source} without a name and without values are ignored.")
        table.columns = {name: cells for name, cells in table.columns.items() if name not in empty}
    return table


def _read_parquet(content: bytes, source: str, format: Format) -> TableFile:
    pd = require("pandas")
    require("pyarrow")
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # the library raises many types
        raise TableFileError(f"{source} cannot be read as a Parquet file ({_first_line(error)}).") from None
    if frame.index.name is not None or frame.index.nlevels > 1:
        frame = frame.reset_index()
    return _from_frame(frame, source, format, np.arange(1, len(frame) + 1), [])


def _read_excel(content: bytes, source: str, format: Format) -> TableFile:
    pd = require("pandas")
    require("openpyxl")
    try:
        book = pd.ExcelFile(io.BytesIO(content), engine="openpyxl")
    except Exception as error:  # as above
        raise TableFileError(f"{source} cannot be read as an Excel file ({_first_line(error)}).") from None
    sheets = [str(sheet) for sheet in book.sheet_names]
    if format.sheet is not None and format.sheet not in sheets:
        raise TableFileError(
            f"--sheet names {format.sheet!r}, which is not a sheet of {source}" + suggest(format.sheet, sheets)
        )
    sheet = format.sheet or sheets[0]
    several = format.sheet is None and len(sheets) > 1
    notes = [f"{source} has {len(sheets)} sheets; only {sheet!r} is read."] if several else []
    frame = pd.read_excel(book, sheet, header=None, dtype=object, keep_default_na=False, na_values=[])
    frame = frame[~frame.map(lambda cell: cell is None or cell == "").all(axis=1)]
    if frame.empty:
        raise TableFileError(
            f"{source}, sheet {sheet!r} is empty: it needs a header row with the column names, and rows."
        )
    first = frame.iloc[: MAX_TITLES + 2].to_numpy().tolist()
    n_titles = count_titles(first)
    notes += title_notes([filled(row)[0] for row in first[:n_titles]], source)
    frame = frame.iloc[n_titles:]
    body = frame.iloc[1:].set_axis(frame.iloc[0].tolist(), axis=1)
    return _from_frame(body, source, format, body.index.to_numpy() + 1, notes)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _from_frame(frame: Any, source: str, format: Format, places: Any, notes: Sequence[str]) -> TableFile:
    pd = require("pandas")
    names, unnamed = read_names(list(frame.columns), source)
    columns = {}
    for name, (_, series) in zip(names, frame.items(), strict=True):
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype if len(series.cat.categories) else object)
        try:
            codes, values = pd.factorize(series)
        except TypeError:  # values that cannot be hashed, such as lists
            codes, values = pd.factorize(series.map(str))
        listed = [_plain_value(value, name, source) for value in values.tolist()]
        columns[name] = _trimmed(name, codes.astype(np.int64), listed, format)
    return _checked(TableFile(source, columns, places, "row", notes), unnamed)


def _plain_value(value: Any, name: str, source: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if np.isinf(value):
            raise TableFileError(f"{source}, column {name!r} holds {value}: replace infinite values by finite ones.")
        return value
    return str(value)  # dates are recognised by their text, other types are treated as text
