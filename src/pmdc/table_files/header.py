"""The header of a table file: its column names, and the titles above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from pmdc.table_files.columns import TableFileError

MAX_TITLES = 5
"""The lines above the header that may be titles."""

Row = tuple[int, list[str]]
"""The line on which a row begins, and its cells."""


def find_header(rows: Iterator[Row]) -> tuple[list[str], list[Row], list[str]]:
    """Return the header, the rows after it that were read, and the titles before it."""
    read: list[Row] = []
    filled_rows = (one for one in rows if filled(one[1]))
    for line, row in filled_rows:
        read.append((line, row))
        if len(filled(row)) > 1 or len(read) > MAX_TITLES:
            read += islice(filled_rows, 1)
            break
    cells = [row for _, row in read]
    n_titles = count_titles(cells)
    return (cells[n_titles] if cells else []), read[n_titles + 1 :], [filled(row)[0] for row in cells[:n_titles]]


def count_titles(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many of the first rows are titles: one cell each, above the names and the values of a table."""
    n = next((i for i, row in enumerate(rows) if len(filled(row)) > 1), 0)
    if not 0 < n <= MAX_TITLES or len(rows) < n + 2:
        return 0
    header, first = rows[n], rows[n + 1]
    padded = all(len(row) == len(header) for row in rows[:n])  # as spreadsheets write them
    if padded and len(header) < 3:  # rather a column without a name
        return 0
    named = len(header) == len(first) and not any(map(_is_number, filled(header)))
    return n if named and (padded or all(len(row) == 1 for row in rows[:n])) else 0


def title_notes(titles: Sequence[str], source: str) -> list[str]:
    """Return a message about the titles, if there are any."""
    if not titles:
        return []
    shown, what = ", ".join(map(repr, titles)), "is a title" if len(titles) == 1 else "are titles"
    return [f"{shown} at the beginning of {source} {what}; the column names are read from the line after."]


def filled(row: Sequence[Any]) -> list[str]:
    """Return the cells of a row that are not empty."""
    return [str(cell).strip() for cell in row if cell is not None and str(cell).strip()]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_names(header: Sequence[Any], source: str) -> tuple[list[str], list[str]]:
    """Return the column names, and those that were made up for columns without a name."""
    names = ["" if cell is None else str(cell).strip() for cell in header]
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = [str(i) for i, name in enumerate(names, 1) if name == twice[0]]
        others = f" (and also {', '.join(map(repr, twice[1:4]))})" if len(twice) > 1 else ""
        raise TableFileError(
            f"{source}: columns {' and '.join(places)} have the same name {twice[0]!r}{others}. Rename them in the "
            "file: column names must be unique."
        )
    unnamed = []
    for i, name in enumerate(names):
        if not name:
            names[i] = f"column {i + 1}"
            while names.count(names[i]) > 1:
                names[i] += "_"
            unnamed.append(names[i])
    return names, unnamed
