"""Tables and columns that cannot be used as they are: the errors, and what to do about them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import shorten
from pmdc.cli.hints import MAX_STATES, option
from pmdc.cli.running import BadInput
from pmdc.table_files import Cells, TableFile

Mask = npt.NDArray[np.bool_]

MIN_ROWS = 3
"""From fewer rows nothing can be learned."""

_NUMBER_WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)+(\.\d+)?")
_NUMBER_WITH_UNIT = re.compile(r"[+-]?[$€£¥]?\s?(?!0\d)(\d{1,3}([.,'’\s]\d{3})+|\d+)([.,]\d+)?\s?[%‰$€£¥]?")


def refuse_few_rows(table: TableFile, n_before: int) -> None:
    if table.n_rows >= MIN_ROWS:
        return
    count = f"{table.n_rows} row{'s' * (table.n_rows > 1)}"
    has = f"{table.source} has {count} ({table.where(range(table.n_rows))})"
    if table.n_rows < n_before:
        has = f"{table.source}: only {count} of {n_before} have no missing value ({table.where(range(table.n_rows))})"
    raise BadInput(
        f"{has}: a model is learned from many rows, one for each case of which the class variables are known. Give a "
        "longer table; if it has a column for each case, exchange rows and columns."
    )


def refuse_overlap(options: Mapping[str, Sequence[str]]) -> None:
    owner: dict[str, str] = {}
    for flag, names in options.items():
        for name in names:
            if name in owner:
                raise BadInput(f"{name!r} is named by {owner[name]} and by {flag}: remove it from one of them.")
            owner[name] = flag


def refuse_columns(table: TableFile, names: Sequence[str], problem: str) -> None:
    if names:
        one = len(names) == 1
        raise BadInput(
            f"{table.source}: column{'' if one else 's'} {shorten(names)} {'has' if one else 'have'} {problem}. Ignore "
            f"{'it' if one else 'them'}: {option('--ignore', names)}."
        )


def refuse_quantity(table: TableFile, cells: Cells) -> None:
    """Refuse a class variable that is a quantity or an identifier."""
    values, n_rows = cells.present, cells.n_known
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


def refuse_text_in_numbers(table: TableFile, names: Sequence[str]) -> None:
    """Refuse columns that are meant as numbers or dates but hold units, thousands separators or some text."""
    mixed = []
    for name in names:
        cells = table[name]
        if cells.looks == "text" and cells.date_kind:
            _refuse_text_in_dates(table, cells)
        advice = number_advice(cells)
        if advice:
            raise BadInput(
                f"{table.source}, column {name!r} holds numbers with other characters, "
                f"{table.examples(cells, cells.not_numbers())}. {advice}; if they are categories, use --discrete "
                f"{shlex.quote(name)}."
            )
        if _is_mostly_numbers(cells):
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


def _refuse_text_in_dates(table: TableFile, cells: Cells) -> None:
    odd, column = cells.not_dates(), shlex.quote(cells.name)
    raise BadInput(
        f"{table.source}, column {cells.name!r} holds {cells.date_kind}s, but {int(odd.sum())} of {len(cells)} cells "
        f"are not, or not written in the same way: {table.examples(cells, odd)}. Correct them (2024-01-31 is always "
        f"understood), declare them missing (--missing {shlex.quote(str(cells.not_date_values[0]))}), use the column "
        f"as categories (--discrete {column}) or ignore it (--ignore {column})."
    )


def is_meant_otherwise(cells: Cells) -> bool:
    """Return whether a column of text seems to be meant as numbers or dates."""
    return bool(cells.date_kind or number_advice(cells)) or _is_mostly_numbers(cells)


def _is_mostly_numbers(cells: Cells) -> bool:
    return cells.looks == "mixed" and bool(2 * cells.not_numbers().sum() <= (~cells.missing()).sum())


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
    learnable: bool = False,
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
    learnable : bool
        Whether the command has the option ``--missing-labels``.
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
    if learnable:
        remedies.insert(0, "learn from these rows, too (--missing-labels em)")
    if drop is False:
        how = "--missing-labels drop" if learnable else "--drop-missing"
        remedies.append(f"drop the {int((~kept).sum())} rows that have any ({how})")
    if ignorable and name not in targets:
        remedies.append(f"ignore the column (--ignore {shlex.quote(name)})")
    words = sorted({str(cells.values[code]) for code in np.unique(cells.codes[mask]) if code >= 0} - {""})
    if words and cells.looks not in ("whole", "number"):
        remedies.append(f"use {words[0]!r} as an ordinary value (--missing '')")
    every = "No row is complete" if drop else "--missing-labels error refuses them"
    every = every if drop or learnable else "Missing values are not supported"
    raise BadInput(f"{text}. {every}: {' or '.join(filter(None, [', '.join(remedies[:-1]), remedies[-1]]))}.")
