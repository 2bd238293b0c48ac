"""Turn the columns of a table file into the features and class variables of a new model."""

from __future__ import annotations

import csv
import fnmatch
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc.cli import hints
from pmdc.cli.hints import MAX_STATES, option
from pmdc.cli.refusals import (
    Mask,
    is_meant_otherwise,
    refuse_columns,
    refuse_few_rows,
    refuse_overlap,
    refuse_text_in_numbers,
    rows_without_missing,
)
from pmdc.cli.running import BadInput
from pmdc.cli.targets import ClassColumn, categories, class_hints, read_class_columns, refuse_one_state
from pmdc.table_files import Cells, Order, TableFile

_IDENTIFIER_NAME = re.compile(r"(?:.*[\W_])?(?:id|ids|key|uuid|guid|nr|index)|.*[a-z]ID", re.DOTALL)
_YEARS = range(1800, 2101)
_NEARLY_ALL = 0.98
"""Identifiers of some rows may occur twice, by rows that do."""


@dataclass(frozen=True)
class Kind:
    """What a column is used for."""

    name: str
    role: str
    """ "class variable", "continuous", "discrete", "date" or "ignored"."""
    values: str
    """The number of values, or their range."""
    note: str = ""
    """A hint for the user."""
    states: Mapping[str, int] | None = None
    """The number of rows of each state of a class variable."""
    missing: int = 0
    """The number of missing values."""
    alternatives: int = 0
    """The number of cells of a class variable that name alternative states."""


@dataclass(frozen=True)
class Training:
    """A table ready for fitting."""

    X: Any
    Y: Any
    kinds: list[Kind]
    dropped: int
    note: str
    """A message about rows that are left out, if any."""
    hints: list[str]
    """What deserves a word before the work."""
    date_orders: dict[str, str]
    """The order of day and month of each column of dates, in which later tables are read."""


@dataclass(frozen=True)
class Choices:
    """The columns that the options of ``pmdc fit`` name, and how it reads them."""

    classes: Sequence[str]
    discrete: Sequence[str] = ()
    continuous: Sequence[str] = ()
    ignore: Sequence[str] = ()
    drop_missing: bool = False
    date_order: Order | None = None
    missing_labels: str = "em"
    use_unlabelled: bool = False
    alternatives: str | None = None
    """The character that separates alternative states in a cell of a class variable."""

    def select(self, table: TableFile) -> Choices:
        """Return the same with the names of columns of a table, after checks."""
        named: dict[str, Any] = {name: select_columns(table, getattr(self, name), f"--{name}") for name in _LISTS}
        if not named["classes"]:
            raise BadInput("--classes is empty: name the columns to predict.")
        refuse_overlap({f"--{name}": columns for name, columns in named.items()})
        for name in named["continuous"]:
            if table[name].looks not in ("whole", "number", "mixed", "empty"):
                shown = table[name].present[0]
                raise BadInput(f"--continuous names {name!r}, which holds {shown!r} in {table.source}: not a number.")
        return replace(self, **named)


_LISTS = ("classes", "discrete", "continuous", "ignore")


def select_columns(table: TableFile, texts: Sequence[str], option: str) -> list[str]:
    """Return the columns that an option names.

    They are separated by commas, ``*`` matches any text, and a name that contains a comma is in double quotes or given
    by an option of its own.
    """
    names: list[str] = []
    for text in texts:
        parts = [text] if text in table.names else next(csv.reader([text], skipinitialspace=True), [])
        for part in filter(None, map(str.strip, parts)):
            found = [part]
            if part not in table.names and any(sign in part for sign in "*?["):
                found = [name for name in table.names if fnmatch.fnmatchcase(name, part)]
                if not found:
                    raise BadInput(f"{option} {part!r} matches no column of {table.source}: {shorten(table.names)}.")
            elif part not in table.names:
                _refuse_half_names(table, part, option)
            table.require(found, option)
            names += found
    return list(dict.fromkeys(names))


def _refuse_half_names(table: TableFile, part: str, flag: str) -> None:
    """Refuse a part of the name of a column that contains commas."""
    whole = [name for name in table.names if "," in name and part in map(str.strip, name.split(","))]
    if whole:
        raise BadInput(
            f"{flag} names {part!r}, which is not a column of {table.source}. If you mean {whole[0]!r}, give the name "
            f"with its comma an option of its own: {flag} {shlex.quote(whole[0])} {flag} ...; or put it in double "
            "quotes within the list: " + shlex.quote(f'"{whole[0]}",...') + "."
        )


def read_training(table: TableFile, choices: Choices) -> Training:
    """Return the features and class variables of a table, after all checks of its columns."""
    pd = require("pandas")
    choices = choices.select(table)
    targets = list(choices.classes)
    refuse_few_rows(table, table.n_rows)
    optional = _features(table, [n for n in table.names if n not in targets and n not in choices.ignore], {}, targets)
    read_class_columns(table, targets, choices.alternatives)  # refuses bad ones before rows are left out
    left_out = _left_out(table, optional, choices)
    features = _features(table, optional, left_out, targets)
    refuse_text_in_numbers(table, [name for name in features if name not in choices.discrete])
    kept, note = _complete_rows(table, targets, features, choices)
    n_rows, table = table.n_rows, table.rows(kept)
    refuse_few_rows(table, n_rows)
    classes = read_class_columns(table, targets, choices.alternatives)
    refuse_one_state(table, classes)
    left_out |= _left_out(table, features, choices)  # rows with missing values may have made the difference
    features = _features(table, features, left_out, targets)
    unique = [n for n in choices.discrete if n in features and len(table[n].present) == table[n].n_known > 2]
    refuse_columns(table, unique, "a different value in every row, so nothing can be learned from categories")
    columns = {name: _read_feature(table, name, choices) for name in features}
    kinds = [_class_kind(column) for column in classes.values()]
    kinds += [_feature_kind(table[name], role, values) for name, (role, values) in columns.items()]
    kinds += [Kind(name, "ignored", left_out.get(name, "")) for name in (*left_out, *choices.ignore)]
    return Training(
        pd.DataFrame({name: values for name, (_, values) in columns.items()}),
        pd.DataFrame({name: column.values for name, column in classes.items()}),
        kinds,
        n_rows - table.n_rows,
        note,
        [
            *_hints(table.replace({name: column.cells for name, column in classes.items()}), kinds, left_out),
            *class_hints(table, classes, choices.missing_labels, choices.use_unlabelled, choices.alternatives),
        ],
        {name: _order(table, name, choices) for name, (role, _) in columns.items() if role == "date"},
    )


def _complete_rows(
    table: TableFile, targets: Sequence[str], features: Sequence[str], choices: Choices
) -> tuple[Mask, str]:
    """Return the rows that are used, and a message about the others; refuse missing states if they are errors."""
    if choices.drop_missing:
        missing = {name: table[name].missing() for name in (*targets, *features)}
        return rows_without_missing(table, missing, drop=True, targets=targets, ignorable=True)
    if choices.missing_labels not in ("drop", "error"):
        return np.ones(table.n_rows, dtype=bool), ""
    missing = {name: table[name].missing() for name in targets}
    return rows_without_missing(table, missing, choices.missing_labels == "drop", targets, learnable=True)


def _hints(table: TableFile, kinds: Sequence[Kind], left_out: Mapping[str, str]) -> list[str]:
    roles = {role: [kind.name for kind in kinds if kind.role == role] for role in ("continuous", "discrete")}
    targets = [kind.name for kind in kinds if kind.role == "class variable"]
    return [
        *hints.left_out_hints(left_out, table),
        *hints.column_hints(table, roles["continuous"], roles["discrete"]),
        *hints.spelling_hints(table, targets),
        *hints.row_hints(table),
    ]


def _features(table: TableFile, names: Sequence[str], left_out: Mapping[str, str], targets: Sequence[str]) -> list[str]:
    features = [name for name in names if name not in left_out]
    if not features:
        why = "".join(f"; {name!r} is left out: {reason}" for name, reason in list(left_out.items())[:3])
        raise BadInput(f"{table.source} has no column left from which to predict {shorten(targets)}{why}.")
    return features


def _left_out(table: TableFile, names: Sequence[str], choices: Choices) -> dict[str, str]:
    """Return the columns that are of no use, with the reasons."""
    reasons = {}
    for name in names:
        cells = table[name]
        if cells.looks == "empty":
            reasons[name] = hints.EMPTY
        if cells.looks == "empty" or name in choices.discrete or name in choices.continuous:
            continue
        if len(cells.present) == 1 and not cells.missing().any():
            reasons[name] = hints.CONSTANT
        elif cells.looks in ("text", "mixed"):
            n_rows = cells.n_known
            distinct = len(cells.present) == n_rows > 2
            if (distinct or len(cells.present) > max(MAX_STATES, n_rows / 2)) and not is_meant_otherwise(cells):
                reasons[name] = hints.IDENTIFIER if distinct else hints.FREE_TEXT
        elif cells.looks == "whole" and hints.is_distinct(cells, _NEARLY_ALL) and _is_counter(cells):
            reasons[name] = hints.IDENTIFIER
    return reasons


def _is_counter(cells: Cells) -> bool:
    """Return whether whole numbers that differ count the rows, or have the name of an identifier."""
    numbers = np.array(list(cells.value_numbers.values()))  # in the order of the file
    if _IDENTIFIER_NAME.fullmatch(cells.name) or _IDENTIFIER_NAME.fullmatch(cells.name.lower()):
        return True
    years = numbers.min() in _YEARS and numbers.max() in _YEARS
    return not years and bool((np.diff(numbers) > 0).all()) and numbers[-1] - numbers[0] < 2 * len(numbers)


def _read_feature(table: TableFile, name: str, choices: Choices) -> tuple[str, Any]:
    """Return the role and the values of a feature."""
    cells = table[name]
    if name not in choices.discrete:
        if cells.looks in ("whole", "number"):
            return "continuous", cells.numbers()
        if cells.looks == "date":
            return "date", np.array(cells.dates(_order(table, name, choices)), dtype="M8[us]")
        if cells.looks == "time":
            return "date", cells.dates()
    return "discrete", categories(cells)


def _order(table: TableFile, name: str, choices: Choices) -> Order:
    """Return the order of day and month in a column of dates."""
    cells = table[name]
    order = cells.date_order or choices.date_order
    if order is None:
        one = cells.present[0]
        raise BadInput(
            f"{table.source}, column {name!r} holds dates such as {one!r}, in none of which day and month can be told "
            f"apart: say which comes first with --date-order dmy or --date-order mdy, or ignore the column "
            f"({option('--ignore', [name])})."
        )
    return order


def _class_kind(column: ClassColumn) -> Kind:
    cells, counts, several = column.cells, column.counts, int(column.alternatives.sum())
    notes = []
    rarest = min(counts, key=lambda state: counts[state])
    if counts[rarest] < 5:
        notes.append(f"{rarest!r} has {counts[rarest]} row(s)")
    if cells.looks == "whole" and len(counts) > MAX_STATES:
        notes.append("many states; if it is a quantity, divide it into ranges")
    notes += hints.text_notes(cells)
    states = f"{len(counts)} states"
    return Kind(cells.name, "class variable", states, "; ".join(notes), counts, column.n_missing, several)


def _feature_kind(cells: Cells, role: str, values: Any) -> Kind:
    missing = len(cells) - cells.n_known
    if role == "continuous":
        return Kind(cells.name, role, f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g}", missing=missing)
    if role == "date":
        known = [value for value, gone in zip(values, cells.missing(), strict=True) if not gone]
        first, last = min(known), max(known)
        if cells.looks == "date":
            first, last = (
                str(value.astype("M8[m]")).replace("T", " ").removesuffix(" 00:00") for value in (first, last)
            )
        return Kind(cells.name, role, f"{first} to {last}", missing=missing)
    return Kind(cells.name, role, f"{len(cells.present)} values", missing=missing)
