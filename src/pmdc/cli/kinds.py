"""Turn the columns of a table file into the features and class variables of a new model."""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc.cli.running import BadInput
from pmdc.table_files import Cells, TableFile

Mask = npt.NDArray[np.bool_]

MAX_CODES = 10
"""A column of at most this many different whole numbers may hold categories."""
MAX_STATES = 20
"""A class variable with more different numbers than this may be a quantity."""

_NUMBER_WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)+(\.\d+)?")
_NUMBER_WITH_UNIT = re.compile(r"[+-]?[$€£¥]?\s?(?!0\d)(\d{1,3}([.,'’\s]\d{3})+|\d+)([.,]\d+)?\s?[%‰$€£¥]?")
_MAYBE_MISSING = ("?", "-", "--", ".", "n.a.", "N.A.", "k.A.")


@dataclass(frozen=True)
class Kind:
    """What a column is used for."""

    name: str
    role: str
    """ "class variable", "continuous", "discrete" or "ignored"."""
    values: str
    """The number of values, or their range."""
    note: str = ""
    """A hint for the user."""
    states: Mapping[str, int] | None = None
    """The number of rows of each state of a class variable."""


@dataclass(frozen=True)
class Training:
    """A table ready for fitting."""

    X: Any
    Y: Any
    kinds: list[Kind]
    dropped: int
    note: str
    """A message about rows that are left out, if any."""


def select_columns(table: TableFile, texts: Sequence[str], option: str) -> list[str]:
    """Return the columns that an option names: separated by commas, ``*`` matches any text."""
    names: list[str] = []
    for text in texts:
        for part in [text] if text in table.names else filter(None, map(str.strip, text.split(","))):
            found = [part]
            if part not in table.names and any(sign in part for sign in "*?["):
                found = [name for name in table.names if fnmatch.fnmatchcase(name, part)]
                if not found:
                    raise BadInput(f"{option} {part!r} matches no column of {table.source}: {shorten(table.names)}.")
            table.require(found, option)
            names += found
    return list(dict.fromkeys(names))


def read_training(
    table: TableFile, classes: Sequence[str], discrete: Sequence[str], ignore: Sequence[str], drop_missing: bool
) -> Training:
    """Return the features and class variables of a table, after all checks of its columns."""
    pd = require("pandas")
    ignored = select_columns(table, ignore, "--ignore")
    targets = select_columns(table, classes, "--classes")
    marked = select_columns(table, discrete, "--discrete")
    if not targets:
        raise BadInput("--classes is empty: name the columns to predict.")
    _refuse_overlap({"--classes": targets, "--discrete": marked, "--ignore": ignored})
    features = [name for name in table.names if name not in targets and name not in ignored]
    if not features:
        raise BadInput(f"{table.source} has no column left from which to predict {shorten(targets)}.")
    _refuse_columns(table, [name for name in (*targets, *features) if table[name].looks == "empty"], "no values")
    for name in targets:
        _refuse_quantity(table, table[name])
    _refuse_text_in_numbers(table, [name for name in features if name not in marked])
    missing = {name: table[name].missing() for name in (*targets, *features)}
    kept, note = rows_without_missing(table, missing, drop_missing, targets, ignorable=True)
    n_rows, table = table.n_rows, table.rows(kept)
    for name in targets:
        if len(table[name].present) == 1:
            raise BadInput(
                f"{table.source}: the class variable {name!r} is {table[name].present[0]!r} in all {table.n_rows} "
                "rows, so there is nothing to learn: remove it from --classes."
            )
    continuous = [name for name in features if name not in marked and table[name].looks in ("whole", "number")]
    unique = [n for n in features if n not in continuous and len(table[n].present) == table.n_rows > 2]
    _refuse_columns(table, unique, "a different text in every row, so nothing can be learned from it")
    X = {name: table[name].numbers() if name in continuous else _categories(table[name]) for name in features}
    Y = {name: _categories(table[name]) for name in targets}
    kinds = [_class_kind(table[name], Y[name]) for name in targets]
    kinds += [_feature_kind(table[name], name in continuous) for name in features]
    kinds += [Kind(name, "ignored", "") for name in ignored]
    return Training(pd.DataFrame(X), pd.DataFrame(Y), kinds, n_rows - table.n_rows, note)


def _categories(cells: Cells) -> Any:
    values = cells.own_type()
    if cells.looks == "whole" and any(abs(value) >= 2**63 for value in values):
        values = list(map(str, values))  # too large for 64-bit integers, and floats would lose digits
    return require("pandas").Categorical(values)


# Checks -------------------------------------------------------------------------------------------------------


def _refuse_overlap(options: Mapping[str, Sequence[str]]) -> None:
    owner: dict[str, str] = {}
    for option, names in options.items():
        for name in names:
            if name in owner:
                raise BadInput(f"{name!r} is named by {owner[name]} and by {option}: remove it from one of them.")
            owner[name] = option


def _refuse_columns(table: TableFile, names: Sequence[str], problem: str) -> None:
    if names:
        one = len(names) == 1
        raise BadInput(
            f"{table.source}: column{'' if one else 's'} {shorten(names)} {'has' if one else 'have'} {problem}. Ignore "
            f"{'it' if one else 'them'}: {_ignore_option(names)}."
        )


def _refuse_quantity(table: TableFile, cells: Cells) -> None:
    """Refuse a class variable that is a quantity or an identifier."""
    values, n_rows = cells.present, len(cells)
    counts = f"{len(values)} different values in {n_rows} rows, such as {', '.join(map(repr, values[:3]))}"
    if cells.looks == "number" and len(values) > MAX_STATES:
        raise BadInput(
            f"{table.source}: the class variable {cells.name!r} is continuous ({counts}). A class variable has a few "
            "states: divide it into ranges (low, medium, high) in a new column and name that one in --classes."
        )
    if len(values) > max(MAX_STATES, n_rows / 2):
        raise BadInput(
            f"{table.source}: the class variable {cells.name!r} has {counts}. That is a quantity or an identifier; a "
            "class variable has a few states. Divide it into ranges or groups in a new column, or remove it from "
            "--classes."
        )


def _refuse_text_in_numbers(table: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that are meant as numbers but hold units, thousands separators or some text."""
    mixed = []
    for name in names:
        cells = table[name]
        advice = number_advice(cells)
        if advice:
            raise BadInput(
                f"{table.source}, column {name!r} holds numbers with other characters, "
                f"{table.examples(cells, cells.not_numbers())}. {advice}; if they are categories, use --discrete "
                f"{shlex.quote(name)}."
            )
        if cells.looks == "mixed" and 2 * cells.not_numbers().sum() <= (~cells.missing()).sum():
            mixed.append(name)
    if mixed:
        cells, column = table[mixed[0]], shlex.quote(mixed[0])
        odd = cells.not_numbers()
        others = f" The same holds for {shorten(mixed[1:])}." if len(mixed) > 1 else ""
        raise BadInput(
            f"{table.source}, column {mixed[0]!r} mixes numbers and text: {int(odd.sum())} of {len(cells)} cells are "
            f"not numbers, {table.examples(cells, odd)}. Correct them, declare them missing (--missing "
            f"{shlex.quote(str(cells.not_number_values[0]))}), use the column as categories (--discrete {column}) or "
            f"ignore it (--ignore {column}).{others}"
        )


def number_advice(cells: Cells) -> str:
    """Return what to do about text that people read as numbers, such as 3,14 or 1,000 or 12 %; else nothing."""
    odd = [str(value) for value in cells.not_number_values]
    if any(value.lstrip("+-").isdigit() for value in odd):  # codes with leading zeros
        return ""

    def most_match(pattern: re.Pattern[str]) -> bool:
        return sum(pattern.fullmatch(value) is not None for value in odd) > 0.8 * len(odd)

    if cells.format.decimal == "." and most_match(_NUMBER_WITH_COMMA):
        return "If the comma is the decimal separator, use --decimal ','; if it separates thousands, remove it"
    if most_match(_NUMBER_WITH_UNIT):
        return (
            "Remove units and thousands separators: a number consists of digits and the decimal separator "
            f"{cells.format.decimal!r} (--decimal)"
        )
    return ""


def rows_without_missing(
    table: TableFile,
    missing: Mapping[str, Mask],
    drop: bool | None,
    targets: Sequence[str] = (),
    *,
    ignorable: bool = False,
) -> tuple[Mask, str]:
    """Return the rows without missing values and a message about the others; refuse them unless they may be dropped.

    Parameters
    ----------
    missing : dict from column name to mask
    drop : bool or None
        Whether to drop rows with missing values; None if the command has no option for it.
    targets : list of str
        Class variables among the columns.
    ignorable : bool
        Whether the command has the option ``--ignore``.
    """
    missing = {name: mask for name, mask in missing.items() if mask.any()}
    kept = ~np.any([np.zeros(table.n_rows, dtype=bool), *missing.values()], axis=0)
    if not missing:
        return kept, ""
    if drop and kept.any():
        count = int((~kept).sum())
        return kept, f"{count} of {table.n_rows} rows have missing values and are left out ({table.where(~kept)})."
    name = max(missing, key=lambda column: missing[column].sum()) if drop else next(iter(missing))
    cells, mask = table[name], missing[name]
    what = "class variable" if name in targets else "column"
    text = f"{table.source}, {what} {name!r} has {int(mask.sum())} missing value(s), {table.where(mask)}"
    others = [f"{other!r} ({int(m.sum())})" for other, m in missing.items() if other != name]
    if others:
        text += f"; also {', '.join(others[:5])}{', ...' * (len(others) > 5)}"
    remedies = ["fill them in"]
    if drop is False:
        remedies.append(f"drop the {int((~kept).sum())} rows that have any (--drop-missing)")
    if ignorable and name not in targets:
        remedies.append(f"ignore the column (--ignore {shlex.quote(name)})")
    words = sorted({str(cells.values[code]) for code in np.unique(cells.codes[mask]) if code >= 0} - {""})
    if words and cells.looks not in ("whole", "number"):
        remedies.append(f"use {words[0]!r} as an ordinary value (--missing '')")
    every = "No row is complete" if drop else "Missing values are not supported"
    raise BadInput(f"{text}. {every}: {' or '.join(filter(None, [', '.join(remedies[:-1]), remedies[-1]]))}.")


# Descriptions -------------------------------------------------------------------------------------------------


def _class_kind(cells: Cells, states: Any) -> Kind:
    counts = {str(state): int(count) for state, count in states.value_counts().items()}
    notes = []
    rarest = min(counts, key=lambda state: counts[state])
    if counts[rarest] < 5:
        notes.append(f"{rarest!r} has {counts[rarest]} row(s)")
    if cells.looks == "whole" and len(counts) > MAX_STATES:
        notes.append("many states; if it is a quantity, divide it into ranges")
    notes += _notes_on_text(cells)
    return Kind(cells.name, "class variable", f"{len(counts)} states", "; ".join(notes), counts)


def _feature_kind(cells: Cells, continuous: bool) -> Kind:
    n_values, notes, column = len(cells.present), [], shlex.quote(cells.name)
    values = f"{n_values} values"
    if n_values == 1:
        notes.append("constant")
    if continuous:
        numbers = cells.numbers()
        values = f"{numbers.min():.4g} to {numbers.max():.4g}"
        if cells.looks == "whole" and n_values == len(cells) > MAX_CODES:
            notes.append(f"an identifier? --ignore {column}")
        elif 1 < n_values <= MAX_CODES and (numbers == np.floor(numbers)).all():
            notes.append(f"{n_values} values; if they are categories: --discrete {column}")
        return Kind(cells.name, "continuous", values, "; ".join(notes))
    if n_values > max(MAX_STATES, len(cells) / 5):
        notes.append(f"many values; if they are not useful: --ignore {column}")
    if cells.looks == "text" and all(str(value).isdigit() for value in cells.present):
        notes.append("leading zeros: used as text")
    return Kind(cells.name, "discrete", values, "; ".join([*notes, *_notes_on_text(cells)]))


def _notes_on_text(cells: Cells) -> list[str]:
    notes = ["numbers and text: used as text"] if cells.looks == "mixed" else []
    doubtful = [value for value in cells.present if value in _MAYBE_MISSING]
    if doubtful:
        notes.append(f"{doubtful[0]!r} is a value; if it means missing: --missing {shlex.quote(doubtful[0])}")
    return notes


def _ignore_option(names: Sequence[str]) -> str:
    """Return the option that ignores columns, as it must be typed in a shell."""
    if any("," in name for name in names):
        return " ".join(f"--ignore {shlex.quote(name)}" for name in names)
    return f"--ignore {shlex.quote(','.join(names))}"
