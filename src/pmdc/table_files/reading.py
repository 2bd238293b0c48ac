"""Reading table files: text with any separator and encoding, Parquet, Excel."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pmdc._support.checks import suggest
from pmdc._support.extras import require
from pmdc.table_files.columns import Cells, Codes, Format, TableFile, TableFileError

STANDARD_STREAM = "-"

EXCEL = (".xlsx", ".xlsm")
SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet", *EXCEL)
"""The names that table files may end in."""

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
"""What Excel understands, and some programs write for it, before the header."""
_BLOCK = 4096


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
    if lower.endswith(EXCEL) or content[:4] == b"PK\x03\x04":
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
    told = _SEPARATOR_LINE.match(text)
    delimiter = format.delimiter or (told[1] if told else _detect(text, tabs))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=delimiter != "\t")
    try:
        if told:
            next(reader)
        header = next((row for row in reader if any(cell.strip() for cell in row)), [])
        names, unnamed = _names(header, source)
        _refuse_one_column(header, delimiter, source)
        codes, values, lines = _read_rows(reader, names, source, delimiter)
    except csv.Error as error:
        raise TableFileError(
            f"{source}, line {reader.line_num}: {error}. Is a quotation mark opened and never closed?"
        ) from None
    columns = {
        name: _trimmed(name, np.frombuffer(codes[i], dtype=np.int64).copy(), values[i], format)
        for i, name in enumerate(names)
    }
    return _checked(TableFile(source, columns, lines, "line"), unnamed)


def _trimmed(name: str, codes: Codes, values: Sequence[Any], format: Format) -> Cells:
    """A column without the blanks around its texts: 'yes' and 'yes ' are the same."""
    trimmed = [value.strip() if isinstance(value, str) else value for value in values]
    if trimmed == list(values):
        return Cells(name, codes, values, format)
    places: dict[Any, int] = {}
    merged = [places.setdefault(value, len(places)) for value in trimmed]
    return Cells(name, np.array([*merged, -1])[codes], list(places), format)


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
            raise TableFileError(_ragged(row, line, reader.line_num, names, source, delimiter))
        block.append(row)
        lines.append(line)
        line = reader.line_num + 1
        if len(block) == _BLOCK:
            keep()
    if block:
        keep()
    return codes, [list(index) for index in known], lines


def _ragged(row: Sequence[str], first: int, last: int, names: Sequence[str], source: str, delimiter: str) -> str:
    if last > first + 5 and any("\n" in cell for cell in row):
        return f"{source}, line {first}: a cell goes on until line {last}. Is a quotation mark opened and never closed?"
    sign = _DELIMITERS.get(delimiter, repr(delimiter))
    if len(names) == 1:
        return (
            f"{source}: the first line is {names[0]!r} alone, but line {first} has {len(row)} cells, separated by "
            f"{sign}s. The file must begin with the names of the columns: remove what stands before them."
        )
    return (
        f"{source}, line {first} has {len(row)} cell(s), but the header has {len(names)}, separated by "
        f"{sign}s. Correct the line; a cell that contains the separator needs "
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


def _refuse_one_column(header: Sequence[str], delimiter: str, source: str) -> None:
    if len(header) > 1:
        return
    for sign, word in _DELIMITERS.items():
        if sign != delimiter and sign in header[0]:
            shown = {"\t": "tab"}.get(sign, sign)
            raise TableFileError(
                f"{source} has one column, {header[0]!r}, when it is divided by {_DELIMITERS.get(delimiter, delimiter)}"
                f"s, but its header contains {word}s: use --delimiter {shown!r}."
            )


def _names(header: Sequence[Any], source: str) -> tuple[list[str], list[str]]:
    """Names of the columns, and those of them that are ours."""
    names = ["" if cell is None else str(cell).strip() for cell in header]
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = [str(i) for i, name in enumerate(names, 1) if name == twice[0]]
        others = f" (and so are {', '.join(map(repr, twice[1:4]))})" if len(twice) > 1 else ""
        raise TableFileError(
            f"{source}: columns {', '.join(places)} are all called {twice[0]!r}{others}. Rename them in the file: "
            "every column needs a name of its own."
        )
    unnamed = []
    for i, name in enumerate(names):
        if not name:
            names[i] = f"column {i + 1}"
            while names.count(names[i]) > 1:
                names[i] += "_"
            unnamed.append(names[i])
    return names, unnamed


def _checked(table: TableFile, unnamed: Sequence[str]) -> TableFile:
    """The table without columns that have neither a name nor a value, and a note on all that have no name."""
    if not table.n_rows:
        raise TableFileError(f"{table.source} has a header ({len(table.names)} columns) but no rows.")
    empty = [name for name in unnamed if table[name].looks == "empty"]
    for name in unnamed:
        if name not in empty:
            table.notes.append(f"a column of {table.source} has no name and is called {name!r}.")
    if empty:
        table.notes.append(f"{len(empty)} column(s) of {table.source} with neither a name nor a value are left out.")
        table.columns = {name: cells for name, cells in table.columns.items() if name not in empty}
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
    return _from_frame(frame, source, format, np.arange(1, len(frame) + 1), [])


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
    frame = pd.read_excel(book, sheet, header=None, dtype=object, keep_default_na=False, na_values=[])
    frame = frame[~frame.map(lambda cell: cell is None or cell == "").all(axis=1)]
    if frame.empty:
        raise TableFileError(
            f"{source}, sheet {sheet!r} is empty: it needs a row with the names of the columns, and rows."
        )
    body = frame.iloc[1:].set_axis(frame.iloc[0].tolist(), axis=1)
    return _from_frame(body, source, format, body.index.to_numpy() + 1, notes)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _from_frame(frame: Any, source: str, format: Format, places: Any, notes: Sequence[str]) -> TableFile:
    pd = require("pandas")
    names, unnamed = _names(list(frame.columns), source)
    columns = {}
    for name, (_, series) in zip(names, frame.items(), strict=True):
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype if len(series.cat.categories) else object)
        try:
            codes, values = pd.factorize(series)
        except TypeError:  # lists and the like
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
    return str(value)  # dates and the like are categories at best
