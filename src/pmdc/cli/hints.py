"""What deserves a word before the work: doubtful columns and rows of a table, one hint for all columns of a kind."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc._support.spelling import misspellings
from pmdc.table_files import Cells, TableFile

MAX_CODES = 10
"""A column of at most this many different whole numbers may hold categories."""
MAX_STATES = 20
"""A column with more different values than this may be a quantity or a text."""
FEW_ROWS = 20
_VERY_MANY = 255
"""`pmdc.table.grouping.MAX_VALUES`, which is imported only where it is exceeded."""

CONSTANT = "the same value in all rows"
IDENTIFIER = "a different value in every row, like the names or numbers of records"
FREE_TEXT = "another text in most rows"
EMPTY = "no values"
"""Reasons to leave a column out."""

_MANY = 8
"""No option is suggested for more columns than this: dozens of discrete features are slow and of no use."""
_MAYBE_MISSING = ("?", "-", "--", ".", "n.a.", "N.A.", "k.A.")
_SENTINELS = {-1.0, -9.0, *(sign * float("9" * digits) for digits in range(2, 8) for sign in (-1, 1))}
_MIN_OTHERS = 5
"""A column with fewer other values has no far ones."""
_MAX_SHOWN = 5

Found = dict[str, list[str]]
"""Columns by what was found in them."""


def column_hints(table: TableFile, numbers: Sequence[str], categories: Sequence[str]) -> list[str]:
    """Return hints on the features of a table.

    Parameters
    ----------
    numbers, categories : lists of str
        The columns that are used as continuous and as discrete features; dates are neither.
    """
    return [
        *_code_hints([name for name in numbers if _few_whole_numbers(table[name])]),
        *_identifier_hints([name for name in numbers if is_distinct(table[name]) and table[name].looks == "whole"]),
        *_sentinel_hints(table, numbers),
        *_text_hints(table, categories),
        *_many_values_hints(table, categories),
        *spelling_hints(table, categories),
    ]


def option(flag: str, names: Sequence[str]) -> str:
    """Return an option that names columns, as it must be typed in a shell."""
    if any("," in name for name in names):
        return " ".join(f"{flag} {shlex.quote(name)}" for name in names)
    return f"{flag} {shlex.quote(','.join(names))}"


def _few(flag: str, names: Sequence[str]) -> str:
    """Return an option for few columns; of many, the user should choose."""
    return option(flag, names) if len(names) <= _MANY else f"name them in {flag}"


def is_distinct(cells: Cells, share: float = 1.0) -> bool:
    """Return whether each row has a value of its own, or at least a share of the rows."""
    return len(cells.present) >= max(share * cells.n_known, MAX_CODES + 1)


def _few_whole_numbers(cells: Cells) -> bool:
    """Return whether a column of numbers may hold codes; with two values it does not matter."""
    return 2 < len(cells.present) <= min(MAX_CODES, len(cells) / 2) and all(
        number % 1 == 0 for number in cells.value_numbers.values()
    )


def _code_hints(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    if len(names) > _MANY:
        return [
            f"{len(names)} columns hold at most {MAX_CODES} different whole numbers each: {shorten(names)}. They are "
            "used as numbers, which suits ratings, counts and levels. If the numbers of some are codes without an "
            "order, name these few in --discrete."
        ]
    hold = "holds" if len(names) == 1 else "hold"
    return [
        f"{shorten(names)} {hold} at most {MAX_CODES} different whole numbers, used as numbers. If they are codes "
        f"without an order: {option('--discrete', names)}."
    ]


def _identifier_hints(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    has = "has" if len(names) == 1 else "have"
    return [
        f"{shorten(names)} {has} a different whole number in every row. If these are identifiers: "
        f"{_few('--ignore', names)}."
    ]


def _sentinel_hints(table: TableFile, names: Sequence[str]) -> list[str]:
    columns: Found = {}
    rows: dict[str, int] = {}
    for name in names:
        cells = table[name]
        for i in far_codes(cells):
            word = str(cells.values[i])
            columns.setdefault(word, []).append(name)
            rows[word] = rows.get(word, 0) + int((cells.codes == i).sum())
    return [
        f"{word} lies far from the other values of {shorten(found)} ({_count(rows[word], 'cell')}). If it means "
        f"missing: --missing={shlex.quote(word)}."
        for word, found in columns.items()
    ]


def far_codes(cells: Cells) -> list[int]:
    """Return the indices of values that look like codes for missing: -1 or only nines, and far from all others."""
    values = [(i, float(number)) for i, number in cells.value_numbers.items()]
    others = np.sort([number for _, number in values if number not in _SENTINELS])
    if len(others) < _MIN_OTHERS:
        return []
    largest_gap = np.diff(others).max()
    return [
        i
        for i, number in values
        if number in _SENTINELS
        and (max(others[0] - number, number - others[-1]) > 3 * largest_gap or (number < -1 and others[0] >= 0))
    ]


def text_notes(cells: Cells) -> list[str]:
    """Return notes on the texts of one column."""
    notes = ["numbers and text: used as text"] if cells.looks == "mixed" else []
    doubtful = [value for value in cells.present if value in _MAYBE_MISSING]
    if doubtful:
        notes.append(f"{doubtful[0]!r} is a value; if it means missing: --missing {shlex.quote(doubtful[0])}")
    return notes


def _text_hints(table: TableFile, names: Sequence[str]) -> list[str]:
    def where(test: Callable[[Cells], bool]) -> list[str]:
        return [name for name in names if test(table[name])]

    hints = []
    zeros = where(lambda cells: cells.looks == "text" and all(str(value).isdigit() for value in cells.present))
    if zeros:
        hints.append(f"the numbers of {shorten(zeros)} have leading zeros: they are used as text.")
    mixed = where(lambda cells: cells.looks == "mixed")
    if mixed:
        hints.append(f"numbers and text in {shorten(mixed)}: all are used as text.")
    for word in _MAYBE_MISSING:
        found = [name for name in names if word in table[name].present]
        if found:
            hints.append(
                f"{word!r} is used as a value of {shorten(found)}. If it means missing: --missing {shlex.quote(word)}."
            )
    return hints


def _many_values_hints(table: TableFile, names: Sequence[str]) -> list[str]:
    many = [name for name in names if len(table[name].present) > max(MAX_STATES, table.n_rows / 5)]
    grouped = [name for name in names if len(table[name].present) > _VERY_MANY]
    hints = [_grouping_hint(table[name]) for name in grouped]
    many = [name for name in many if name not in grouped]
    if many:
        hints.append(
            f"{shorten(many)} {'has' if len(many) == 1 else 'have'} many values for {table.n_rows} rows. If they are "
            f"not useful: {_few('--ignore', many)}."
        )
    return hints


def _grouping_hint(cells: Cells) -> str:
    from pmdc.table.grouping import describe_groups, kept_values  # takes a second, in which nothing is shown

    counts = np.unique(cells.codes[~cells.missing()], return_counts=True)[1].astype(float)
    return f"{cells.name!r} has {describe_groups(counts, kept_values(counts))}"


def spelling_hints(table: TableFile, names: Sequence[str]) -> list[str]:
    """Return hints on values that are rare and spelt nearly like a frequent one."""
    found = []
    for name in names:
        cells = table[name]
        if cells.looks != "text":
            continue
        number = np.bincount(cells.codes[~cells.missing()], minlength=1)
        counts = {str(cells.values[i]): int(n) for i, n in enumerate(number) if n}
        for odd in misspellings(counts):
            row = int(np.flatnonzero(cells.codes == cells.values.index(odd.state))[0])
            found.append(
                f"{odd.state!r} in {name!r} ({_count(counts[odd.state], 'row')}, first in {table.where([row])}): did "
                f"you mean {odd.meant!r} ({counts[odd.meant]})?"
            )
    more = f" {len(found) - _MAX_SHOWN} more such values are not shown." if len(found) > _MAX_SHOWN else ""
    return [" ".join(found[:_MAX_SHOWN]) + f"{more} Correct the file if so."] if found else []


def row_hints(table: TableFile) -> list[str]:
    """Return hints on the rows of a table: too few, or some of them twice."""
    hints = []
    if table.n_rows < FEW_ROWS:
        hints.append(
            f"{table.source} has only {table.n_rows} rows: expect little of a model that is learned from them."
        )
    copies = (
        require("pandas").DataFrame({i: cells.codes for i, cells in enumerate(table.columns.values())}).duplicated()
    )
    if copies.sum() > max(1, 10 * _expected_copies(table)):  # a single pair happens
        hints.append(
            f"{copies.sum()} of {table.n_rows} rows repeat an earlier one in all columns "
            f"({table.where(copies.to_numpy())}). If they were entered twice, remove them: losses on held-out rows "
            "would be too low."
        )
    return hints


def _expected_copies(table: TableFile) -> float:
    """Return how many pairs of rows would be equal if the columns were independent."""
    log_equal = 0.0
    for cells in table.columns.values():
        shares = np.bincount(cells.codes + 1) / table.n_rows
        log_equal += float(np.log((shares**2).sum()))
    return float(table.n_rows * (table.n_rows - 1) / 2 * np.exp(log_equal))


def left_out_hints(reasons: Mapping[str, str], table: TableFile) -> list[str]:
    """Return hints on columns that are left out although nobody asked for it."""
    hints = []
    by_reason: Found = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        text = f"{shorten(names)} {'is' if len(names) == 1 else 'are'} left out: {reason}."
        numbers = [name for name in names if table[name].looks in ("whole", "number")]
        if reason == IDENTIFIER and numbers:
            text += f" To use quantities among them: {_few('--continuous', numbers)}."
        if reason == FREE_TEXT:
            text += f" To use some as categories: {_few('--discrete', names)}."
        hints.append(text)
    return hints


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
