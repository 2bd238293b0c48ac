"""From the columns of a file to what a new model takes: features and class variables, their kinds and their states."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc.cli.running import BadInput
from pmdc.table_files import Cells, TableFile

Mask = npt.NDArray[np.bool_]

_FEW_VALUES = 10
"""A column of so few different whole numbers may be meant as categories."""
_NUMBER_WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)+(\.\d+)?")
_NUMBER_WITH_SIGNS = re.compile(r"[+-]?[$€£¥]?\s?(?!0\d)(\d{1,3}([.,'’\s]\d{3})+|\d+)([.,]\d+)?\s?[%‰$€£¥]?")
_MAYBE_MISSING = ("?", "-", "--", ".", "n.a.", "N.A.", "k.A.")
_MANY_STATES = 20
"""A class variable with more different numbers than this is asked whether it is a quantity."""


@dataclass(frozen=True)
class Kind:
    """What a column is taken for."""

    name: str
    role: str
    """ "class variable", "continuous", "discrete" or "ignored"."""
    values: str
    """How many of them, or between what."""
    note: str = ""
    """What the user may want to change."""
    states: Mapping[str, int] | None = None
    """Of a class variable: the rows of each state."""


@dataclass(frozen=True)
class Training:
    """A table ready for a fit."""

    X: Any
    Y: Any
    kinds: list[Kind]
    dropped: int
    left_out: str
    """What to tell of the rows that are dropped, if there are any."""


def chosen(table: TableFile, given: Sequence[str], option: str) -> list[str]:
    """The columns that an option names: separated by commas, ``*`` for any text."""
    names: list[str] = []
    for text in given:
        parts = [text] if text in table.names else [part.strip() for part in text.split(",") if part.strip()]
        for part in parts:
            found = [part]
            if part not in table.names and any(sign in part for sign in "*?["):
                found = [name for name in table.names if fnmatch.fnmatchcase(name, part)]
                if not found:
                    raise BadInput(f"{option} {part!r} fits no column of {table.source}: {shorten(table.names)}.")
            table.require(found, option)
            names += found
    return list(dict.fromkeys(names))


def read_training(
    table: TableFile,
    classes: Sequence[str],
    discrete: Sequence[str],
    ignore: Sequence[str],
    drop_missing: bool,
) -> Training:
    """Features and class variables of a table; every complaint about them."""
    pd = require("pandas")
    ignored = chosen(table, ignore, "--ignore")
    targets = chosen(table, classes, "--classes")
    marked = chosen(table, discrete, "--discrete")
    _refuse_overlap(targets, ignored, marked)
    features = [name for name in table.names if name not in targets and name not in ignored]
    if not features:
        raise BadInput(f"{table.source} has no column left to predict {shorten(targets)} from.")
    _refuse_empty(table, [*targets, *features])
    for name in targets:
        _refuse_quantity(table, table[name])
    _refuse_signs(table, [name for name in features if name not in marked])
    _refuse_mixed(table, [name for name in features if name not in marked])
    n_rows = table.n_rows
    table, left_out = _without_missing(table, targets, features, drop_missing)
    _refuse_single_state(table, targets)
    continuous = [name for name in features if name not in marked and table[name].looks in ("whole", "number")]
    _refuse_identifiers(table, [name for name in features if name not in continuous])
    X = pd.DataFrame(
        {
            name: table[name].numbers() if name in continuous else pd.Categorical(_own_states(table[name]))
            for name in features
        }
    )
    Y = pd.DataFrame({name: pd.Categorical(_own_states(table[name])) for name in targets})
    kinds = [_class_kind(table[name], Y[name]) for name in targets]
    kinds += [_feature_kind(table[name], name in continuous) for name in features]
    kinds += [Kind(name, "ignored", "") for name in ignored]
    return Training(X, Y, kinds, n_rows - table.n_rows, left_out)


def _own_states(cells: Cells) -> list[Any]:
    values = cells.own_type()
    if cells.looks == "whole" and any(abs(value) >= 2**63 for value in values):
        return [str(value) for value in values]  # as numbers, they would need more digits than there are
    return values


def _refuse_overlap(targets: list[str], ignored: list[str], marked: list[str]) -> None:
    if not targets:
        raise BadInput("--classes is empty: name the columns to be predicted.")
    for name in targets:
        for others, option in ((ignored, "--ignore"), (marked, "--discrete")):
            if name in others:
                raise BadInput(f"{name!r} is named by --classes and by {option}: leave it out of one of them.")
    for name in marked:
        if name in ignored:
            raise BadInput(f"{name!r} is named by --discrete and by --ignore: leave it out of one of them.")


def _refuse_empty(table: TableFile, names: Sequence[str]) -> None:
    empty = [name for name in names if table[name].looks == "empty"]
    if empty:
        raise BadInput(
            f"{table.source}: {_columns(empty)} without any value. Leave {_it(empty)} out: "
            f"{_option('--ignore', empty)}."
        )


def _refuse_quantity(table: TableFile, cells: Cells) -> None:
    """A class variable that is a number on a scale, or a name of each row."""
    values, n_rows = cells.present, len(cells)
    few = f"{len(values)} different values in {n_rows} rows, such as {', '.join(map(repr, values[:3]))}"
    if cells.looks == "number" and len(values) > _MANY_STATES:
        raise BadInput(
            f"{table.source}: the class variable {cells.name!r} is continuous ({few}). A class variable has a few "
            "states: cut it into ranges (low, middle, high) in a column of its own and name that one in --classes."
        )
    if len(values) > max(_MANY_STATES, n_rows / 2):
        raise BadInput(
            f"{table.source}: the class variable {cells.name!r} has {few}. That is a quantity or an identifier, not "
            "a choice among a few states: cut it into ranges or groups in a column of its own, or leave it out of "
            "--classes."
        )


def _refuse_signs(table: TableFile, names: Sequence[str]) -> None:
    for name in names:
        cells = table[name]
        advice = signs_advice(cells)
        if advice:
            raise BadInput(
                f"{table.source}, column {name!r} holds numbers with other signs, "
                f"{table.examples(cells, cells.not_numbers())}. {advice}; if these are names: "
                f"--discrete {quoted(name)}."
            )


def signs_advice(cells: Cells) -> str:
    """What to do about text that is numbers to people, such as 3,14 or 1,000 or 12 %; nothing where it is not."""
    odd = [str(value) for value in cells.present if cells.number(value) is None]
    if any(value.lstrip("+-").isdigit() for value in odd):  # codes with leading zeros
        return ""

    def most(pattern: re.Pattern[str]) -> bool:
        return sum(pattern.fullmatch(value) is not None for value in odd) > 0.8 * len(odd)

    if cells.format.decimal == "." and most(_NUMBER_WITH_COMMA):
        return (
            "If the comma is the decimal sign, say --decimal ','; if it stands between thousands, remove it from the "
            "file"
        )
    if most(_NUMBER_WITH_SIGNS):
        return (
            "Remove the signs of units and between thousands from the file: a number has digits and the decimal sign "
            f"{cells.format.decimal!r} (--decimal) alone"
        )
    return ""


def _refuse_mixed(table: TableFile, names: Sequence[str]) -> None:
    mixed = [name for name in names if _is_mixed(table[name])]
    if not mixed:
        return
    cells = table[mixed[0]]
    odd = cells.not_numbers()
    others = f" So is it with {shorten(mixed[1:])}." if len(mixed) > 1 else ""
    raise BadInput(
        f"{table.source}, column {cells.name!r} mixes numbers and text: {int(odd.sum())} of {len(cells)} cells are no "
        f"numbers, {table.examples(cells, odd)}. Correct them, name the words that mean 'missing' (--missing "
        f"{first_odd(cells)!r}), make it categories (--discrete {quoted(cells.name)}) or leave it out (--ignore "
        f"{quoted(cells.name)}).{others}"
    )


def first_odd(cells: Cells) -> str:
    """The first value that is no number."""
    return str(next(value for value in cells.present if cells.number(value) is None))


def _is_mixed(cells: Cells) -> bool:
    """Whether a column seems to be meant as numbers: half of its rows or more are."""
    if cells.looks != "mixed":
        return False
    return bool(2 * cells.not_numbers().sum() <= (~cells.missing()).sum())


def _without_missing(
    table: TableFile, targets: Sequence[str], features: Sequence[str], drop: bool
) -> tuple[TableFile, str]:
    """The rows without missing values, if the user wants that; otherwise there must be no others."""
    gaps = {name: table[name].missing() for name in (*targets, *features)}
    gaps = {name: missing for name, missing in gaps.items() if missing.any()}
    if not gaps:
        return table, ""
    kept = ~reduce(np.logical_or, gaps.values())
    if not drop:
        raise BadInput(missing_words(table, gaps, int((~kept).sum()), targets, "--ignore", "--drop-missing"))
    if not kept.any():
        worst = max(gaps, key=lambda name: gaps[name].sum())
        raise BadInput(
            f"{table.source}: every row has a missing value, most of them in column {worst!r}: leave it out (--ignore "
            f"{quoted(worst)})."
        )
    return table.rows(kept), told_left_out(table, kept)


def missing_words(
    table: TableFile,
    gaps: Mapping[str, Mask],
    n_rows: int,
    targets: Sequence[str] = (),
    ignore: str = "",
    drop: str = "",
) -> str:
    """What to say of missing values, given where they are; `ignore` and `drop` are options that would help."""
    name, missing = next(iter(gaps.items()))
    what = "class variable" if name in targets else "column"
    told = f"{table.source}, {what} {name!r} has {int(missing.sum())} missing value(s), {table.where(missing)}"
    if len(gaps) > 1:
        others = [f"{other!r} ({int(mask.sum())})" for other, mask in list(gaps.items())[1:6]]
        told += f"; so have {', '.join(others)}{', ...' if len(gaps) > 6 else ''}"
    remedies = ["fill them"]
    if drop:
        remedies.append(f"leave out the {n_rows} rows that have any ({drop})")
    if ignore and name not in targets:
        remedies.append(f"leave out the column ({ignore} {quoted(name)})")
    words = sorted({str(table[name].values[c]) for c in np.unique(table[name].codes[missing]) if c >= 0} - {""})
    if words and table[name].looks not in ("whole", "number"):
        remedies.append(f"say that {words[0]!r} is a value like others (--missing '')")
    return f"{told}. Every cell needs a value: {', '.join(remedies[:-1])}{' or ' * (len(remedies) > 1)}{remedies[-1]}."


def told_left_out(table: TableFile, kept: Mask) -> str:
    """What to tell of rows that are left out."""
    return f"{int((~kept).sum())} of {table.n_rows} rows have missing values and are left out ({table.where(~kept)})."


def _refuse_single_state(table: TableFile, targets: Sequence[str]) -> None:
    for name in targets:
        values = table[name].present
        if len(values) == 1:
            raise BadInput(
                f"{table.source}: the class variable {name!r} is {values[0]!r} in all {table.n_rows} rows. There is "
                "nothing to learn: leave it out of --classes."
            )


def _refuse_identifiers(table: TableFile, names: Sequence[str]) -> None:
    unique = [name for name in names if len(table[name].present) == table.n_rows > 2]
    if unique:
        cells = table[unique[0]]
        raise BadInput(
            f"{table.source}: {_columns(unique)} with another text in every row, such as {cells.present[0]!r}; nothing "
            f"can be learned from {_it(unique)}. Leave {_it(unique)} out: {_option('--ignore', unique)}."
        )


def _class_kind(cells: Cells, states: Any) -> Kind:
    counts = {str(state): int(count) for state, count in states.value_counts(sort=False).items()}
    notes = []
    rarest = min(counts, key=lambda state: counts[state])
    if counts[rarest] < 5:
        notes.append(f"{rarest!r} has {counts[rarest]} row(s)")
    if cells.looks == "whole" and len(counts) > _MANY_STATES:
        notes.append("many; if it is a quantity, cut it into ranges first")
    notes += _notes_on_text(cells)
    return Kind(cells.name, "class variable", f"{len(counts)} states", "; ".join(notes), counts)


def _feature_kind(cells: Cells, continuous: bool) -> Kind:
    n_values, notes = len(cells.present), []
    if continuous:
        numbers = cells.numbers()
        shown = f"{numbers.min():.4g} to {numbers.max():.4g}"
        if n_values == 1:
            notes.append("the same in all rows")
        elif cells.looks == "whole" and n_values == len(cells) > _FEW_VALUES:
            notes.append(f"an identifier? --ignore {quoted(cells.name)}")
        elif n_values <= _FEW_VALUES and (numbers == np.floor(numbers)).all():
            notes.append(f"{n_values} values; if they are codes: --discrete {quoted(cells.name)}")
        return Kind(cells.name, "continuous", shown, "; ".join(notes))
    if n_values == 1:
        notes.append("the same in all rows")
    elif n_values > max(_MANY_STATES, len(cells) / 5):
        notes.append(f"many values; if they mean little: --ignore {quoted(cells.name)}")
    if cells.looks == "text" and all(str(value).isdigit() for value in cells.present):
        notes.append("leading zeros: taken as text")
    notes += _notes_on_text(cells)
    return Kind(cells.name, "discrete", f"{n_values} values", "; ".join(notes))


def _notes_on_text(cells: Cells) -> list[str]:
    notes = ["numbers and text: taken as text"] if cells.looks == "mixed" else []
    doubtful = [value for value in cells.present if value in _MAYBE_MISSING]
    if doubtful:
        notes.append(f"{doubtful[0]!r} is a value; if it means 'missing': --missing {doubtful[0]!r}")
    return notes


# Words --------------------------------------------------------------------------------------------------------


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]!r} is" if len(names) == 1 else f"columns {shorten(names)} are"


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def quoted(name: str) -> str:
    """A name as it must be written in a shell."""
    return name if name.replace("_", "").replace("-", "").replace(".", "").isalnum() else f'"{name}"'


def _option(option: str, names: Sequence[str]) -> str:
    """An option that names columns, as it must be written in a shell."""
    if any("," in name for name in names):
        return " ".join(f"{option} {quoted(name)}" for name in names)
    together = ",".join(names)
    return f"{option} {together}" if all(quoted(name) == name for name in names) else f'{option} "{together}"'
