"""Class columns of a new model: their states, their gaps, and cells that name alternative states."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc.cli.alternatives import find_alternatives, indices_with
from pmdc.cli.refusals import refuse_quantity
from pmdc.cli.running import BadInput
from pmdc.table_files import Cells, TableFile

_MAX_NAMED = 20
"""Of more class variables with missing states, the numbers are not listed."""

_TREATMENTS = {
    "em": "rows are completed by their probabilities (structural EM)",
    "available": "each class variable is learned from the rows in which it and its parents are known",
}
"""What is done about missing states."""


class ClassColumn(NamedTuple):
    """A class column in the types of its states.

    Attributes
    ----------
    cells : Cells
        The cells of one state, and all states among the values; missing where a cell is empty or has alternatives.
    values : pandas Categorical, or Series of objects if some cells have alternatives, which are frozensets
    counts : dict from state to int
        The number of cells of each state; 0 for a state that only alternatives name.
    n_missing : int
    alternatives : array of bool
        Which cells name alternatives.
    """

    cells: Cells
    values: Any
    counts: dict[str, int]
    n_missing: int
    alternatives: npt.NDArray[np.bool_]

    @property
    def known(self) -> list[str]:
        """The states of the cells of one state."""
        return [state for state, number in self.counts.items() if number]


def categories(cells: Cells) -> Any:
    """Return a column as a pandas Categorical, NaN where it is missing."""
    pd, values, missing = require("pandas"), _own_type(cells), cells.missing()
    if not missing.any():
        return pd.Categorical(values)
    known = pd.Categorical([value for value, gone in zip(values, missing, strict=True) if not gone]).categories
    return pd.Categorical(pd.Series(values, dtype=object).mask(missing), categories=known)


def _own_type(cells: Cells) -> list[Any]:
    values = cells.own_type()
    if cells.looks == "whole" and any(value is not None and abs(value) >= 2**63 for value in values):
        return list(map(str, values))  # too large for 64-bit integers, and floats would lose digits
    return values


def read_class_columns(table: TableFile, names: Sequence[str], sign: str | None) -> dict[str, ClassColumn]:
    """Return the class columns of a table, after checks.

    Parameters
    ----------
    sign : str or None
        The character that separates alternative states in a cell.
    """
    columns = {name: _read_class(table, name, sign) for name in names}
    empty = [name for name, column in columns.items() if not column.known]
    if empty:
        several = int(columns[empty[0]].alternatives.sum())
        but = f" ({several} name alternatives)" if several else ""
        raise BadInput(
            f"{table.source}: the class variable {empty[0]!r} has no known state in its {table.n_rows} rows{but}, so "
            "there is nothing to learn: fill some in, or remove it from --classes."
        )
    return columns


def refuse_one_state(table: TableFile, columns: dict[str, ClassColumn]) -> None:
    """Refuse class variables of which all known cells are the same."""
    for name, column in columns.items():
        if len(column.known) == 1:
            (state,), several = column.known, int(column.alternatives.sum())
            others = [f"{column.n_missing} are missing"] * (column.n_missing > 0)
            others += [f"{several} name alternatives"] * (several > 0)
            gaps = f" in which it is known ({', '.join(others)})" if others else ""
            raise BadInput(
                f"{table.source}: the class variable {name!r} is {state!r} in all {column.counts[state]} rows{gaps}, "
                "so there is nothing to learn: fill in rows of other states, or remove it from --classes."
            )


def _read_class(table: TableFile, name: str, sign: str | None) -> ClassColumn:
    sets = {} if sign is None else find_alternatives(table, name, sign)
    cells = table[name]
    if not sets:
        refuse_quantity(table, cells)
        values = categories(cells)
        counts = {str(state): int(count) for state, count in values.value_counts().items()}
        return ClassColumn(cells, values, counts, int(cells.missing().sum()), np.zeros(len(cells), dtype=bool))
    raw = cells.codes
    plain = [i for i in range(len(cells.values)) if i not in sets]
    members = dict.fromkeys(state for states in sets.values() for state in states)
    own = [*(cells.values[i] for i in plain), *members]
    new_code = np.full(len(cells.values) + 1, -1)
    new_code[plain] = np.arange(len(plain))
    sure = Cells(name, new_code[raw], own, cells.format)
    refuse_quantity(table, sure)
    typed = dict(zip(own, _own_type(Cells(name, np.arange(len(own)), own, cells.format)), strict=True))
    gone = cells.missing()
    found = {i: frozenset(typed[state] for state in states) for i, states in sets.items()}
    by_code = [
        (next(iter(found[i])) if len(found[i]) == 1 else found[i]) if i in sets else typed[value]
        for i, value in enumerate(cells.values)
    ]
    values = [None if out else by_code[code] for code, out in zip(raw.tolist(), gone, strict=True)]
    several = np.array([isinstance(value, frozenset) for value in values], dtype=bool)
    number = Counter(value for value in values if value is not None and not isinstance(value, frozenset))
    states = {*number, *(state for value in values if isinstance(value, frozenset) for state in value)}
    counts = {str(state): number[state] for state in sorted(states, key=lambda state: (type(state).__name__, state))}
    return ClassColumn(sure, require("pandas").Series(values, dtype=object), counts, int(gone.sum()), several)


# Hints --------------------------------------------------------------------------------------------------------


def class_hints(
    table: TableFile, columns: dict[str, ClassColumn], missing_labels: str, use_unlabelled: bool, sign: str | None
) -> list[str]:
    """Return how many states are missing or uncertain, and what is done about it."""
    found = _gap_hint(columns, missing_labels, table.n_rows)
    found += _unlabelled_hint(table, columns, missing_labels, use_unlabelled)
    for name, column in columns.items():
        rows = column.alternatives
        if rows.any():
            number = int(rows.sum())
            found.append(
                f"{name!r} has {number} cell{'s' * (number > 1)} with alternatives, such as "
                f"{table.examples(table[name], rows, 1).removesuffix(', ...')}: the state is one of those."
            )
    if sign is not None and not any(column.alternatives.any() for column in columns.values()):
        found.append(f"no cell of the class variables has alternatives separated by {sign!r} (--alternatives).")
    if sign is None:
        found += _meant_as_alternatives(table, columns)
    return found


def _gap_hint(columns: dict[str, ClassColumn], missing_labels: str, n_rows: int) -> list[str]:
    gaps = {name: column.n_missing for name, column in columns.items() if column.n_missing}
    if not gaps:
        return []
    if len(gaps) > _MAX_NAMED:
        shown = f"{len(gaps)} class variables have {sum(gaps.values())} missing states: {shorten(list(gaps))}"
    else:
        first, *others = gaps
        shown = f"{first!r} has {gaps[first]} missing state{'s' * (gaps[first] > 1)} ({_share(gaps[first], n_rows)})"
        shown += "".join(f", {name!r} {gaps[name]} ({_share(gaps[name], n_rows)})" for name in others)
    return [f"{shown}: {_TREATMENTS[missing_labels]}."]


def _share(number: int, n_rows: int) -> str:
    share = number / n_rows
    return f"{share:.0%}" if 0.01 <= share <= 0.99 or share == 1 else "less than 1%" if share < 0.01 else "over 99%"


def unlabelled_rows(Y: Any) -> npt.NDArray[np.bool_]:
    """Return the rows in which no class variable is known, not even alternatives."""
    return np.asarray(Y.isna().all(axis=1))


def _is_set(states: Any) -> Any:
    return states.map(lambda state: isinstance(state, frozenset))


def certain_states(Y: Any) -> Any:
    """Return class variables with alternatives as missing."""
    Y = Y.copy()
    for name, states in Y.items():
        if states.dtype == object:
            Y[name] = states.mask(_is_set(states), None)
    return Y


def has_alternatives(Y: Any) -> bool:
    """Return whether a cell of the class variables holds alternatives."""
    return any(_is_set(states).any() for _, states in Y.items() if states.dtype == object)


def _unlabelled_hint(
    table: TableFile, columns: dict[str, ClassColumn], missing_labels: str, use_unlabelled: bool
) -> list[str]:
    frame = require("pandas").DataFrame({name: column.values for name, column in columns.items()})
    rows = unlabelled_rows(frame)
    if not rows.any():
        return []
    count = f"{int(rows.sum())} row{'s have' if rows.sum() > 1 else ' has'} no known state ({table.where(rows)})"
    if use_unlabelled:
        return [f"{count}: learned from, too (--use-unlabelled)."]
    remedy = "; --use-unlabelled learns from such rows, too" if missing_labels == "em" else ""
    return [f"{count} and {'are' if rows.sum() > 1 else 'is'} ignored{remedy}."]


def _meant_as_alternatives(table: TableFile, columns: dict[str, ClassColumn]) -> list[str]:
    """Return a hint on states that consist of other states, such as red|blue."""
    for name, column in columns.items():
        cells = column.cells
        for sign in "|/;":
            for i in indices_with(cells, sign):
                parts = {part.strip() for part in cells.values[i].split(sign)}
                if len(parts) > 1 and parts <= column.counts.keys():
                    return [
                        f"{table.examples(cells, cells.codes == i)} is a state of its own of {name!r}. If it means one "
                        f"of these states: --alternatives {shlex.quote(sign)}."
                    ]
    return []
