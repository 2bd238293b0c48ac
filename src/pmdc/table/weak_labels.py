"""Weak labels: cells of a table of class variables that are a set of possible states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from pmdc._support.arrays import Array, Codes, Marks
from pmdc.table.columns import as_objects, is_missing, show

MAX_SHOWN = 6
"""States of a set that a message shows."""


class WeakCell(NamedTuple):
    """A cell that is a set of states: its row, its column, and the set."""

    row: int
    column: int
    states: frozenset[Any]


def take_sets(Y: Any) -> tuple[Any, list[WeakCell]]:
    """Return a table in which cells that are sets of states are missing, and these cells.

    A set of one state is that state.
    """
    frame = nw.from_native(Y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_frame(Y, frame)
    series = nw.from_native(Y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        old = series.to_list() if series.dtype == nw.Object else []
        values, cells = column_sets(old, 0)
        return (Y, []) if values is old else (_new_series(Y, series, values), cells)
    if isinstance(Y, np.ndarray) and Y.dtype == object and Y.ndim in (1, 2):
        matrix, cells = Y.reshape(len(Y), -1).copy(), []
        for k, column in enumerate(Y.reshape(len(Y), -1).T):
            values, own = column_sets(column.tolist(), k)
            matrix[:, k] = as_objects(values)
            cells += own
        return matrix.reshape(Y.shape), cells
    if isinstance(Y, (list, tuple)):
        return _from_list(Y)
    return Y, []


def _from_frame(Y: Any, frame: nw.DataFrame[Any]) -> tuple[Any, list[WeakCell]]:
    cells, changed = [], {}
    for k, series in enumerate(frame.iter_columns()):
        if series.dtype == nw.Object or (series.implementation.is_pandas_like() and series.to_native().dtype == object):
            old = series.to_list()
            values, own = column_sets(old, k)
            if values is not old:
                changed[series.name] = _new_series(series.to_native(), series, values)
                cells += own
    if not changed:
        return Y, []
    if frame.implementation.is_pandas_like():
        other = Y.copy(deep=False)
        for name, own in changed.items():  # not by `assign`: names may be "self", or no strings
            other[name] = own
        return other, cells
    return frame.with_columns(*(nw.from_native(own, series_only=True) for own in changed.values())).to_native(), cells


def _new_series(native: Any, series: nw.Series[Any], values: list[Any]) -> Any:
    if series.implementation.is_pandas_like():
        return type(native)(as_objects(values), index=native.index, name=native.name, dtype=object)
    return nw.new_series(series.name, values, backend=series.implementation).to_native()


def _from_list(Y: Sequence[Any]) -> tuple[Any, list[WeakCell]]:
    if not any(isinstance(row, (list, tuple)) for row in Y):
        return column_sets(list(Y), 0)
    rows, cells = [], []
    for number, row in enumerate(Y):
        values, own = column_sets(list(row), 0) if isinstance(row, (list, tuple)) else (row, [])
        cells += [WeakCell(number, cell.row, cell.states) for cell in own]
        rows.append(values)
    return rows, cells


def column_sets(values: list[Any], k: int) -> tuple[list[Any], list[WeakCell]]:
    """Return the values of a column with sets taken out, the same list if there are none, and the sets."""
    kinds = set(map(type, values))
    if not any(issubclass(kind, (set, frozenset)) for kind in kinds):
        return values, []
    out, cells = list(values), []
    for row, value in enumerate(values):
        if isinstance(value, (set, frozenset)):
            out[row] = next(iter(value)) if len(value) == 1 else None
            if len(value) != 1:
                cells.append(WeakCell(row, k, frozenset(value)))
    return out, cells


def check_sets(cells: Iterable[WeakCell], names: Sequence[str], argument: str = "Y") -> None:
    """Raise an error for sets that are empty or contain a missing value."""
    for row, column, states in cells:
        where = f"{argument}, column {names[column]!r}, row {row}"
        if not states:
            raise ValueError(
                f"{where} is an empty set: no state is possible there. Give the possible states, or None if nothing "
                "is known."
            )
        if is_missing(as_objects(list(states))).any():
            raise ValueError(f"{where} is {show_set(states)}, which contains a missing value: leave it out.")


def refuse_sets(cells: Sequence[WeakCell], names: Sequence[str], argument: str, remedy: str = "") -> None:
    """Raise an error for sets of states where single states are needed; `remedy` says what else can be done."""
    if cells:
        row, column, states = cells[0]
        raise ValueError(
            f"{argument}, column {names[column]!r}, row {row} is a set of possible states, {show_set(states)}, but "
            f"single states are needed here: give one state, or leave the row out.{remedy}"
        )


def possible_states(cells: Sequence[WeakCell], states: Sequence[Array], codes: Codes) -> list[Marks | None] | None:
    """Return which states the cells may have, (n, n_states) for each class variable with sets; None without any."""
    if not cells:
        return None
    index = [{state: i for i, state in enumerate(known.tolist())} for known in states]
    out: list[Marks | None] = [None] * len(states)
    for row, k, allowed in cells:
        marks = out[k]
        if marks is None:
            marks = out[k] = np.ones((len(codes), len(states[k])), dtype=bool)
        marks[row] = False
        marks[row, [index[k][state] for state in allowed if state in index[k]]] = True
    return out


def without_sets(possible: list[Marks | None] | None, kept: Marks) -> list[Marks | None] | None:
    """Return the possible states without the sets of cells that are not kept."""
    if possible is None:
        return None
    return [None if own is None else own | ~kept[:, [k]] for k, own in enumerate(possible)]


def are_sets(possible: list[Marks | None] | None, shape: tuple[int, int]) -> Marks:
    """Return which cells are sets of states, shape (n, K)."""
    marks = np.zeros(shape, dtype=bool)
    for k, own in enumerate(possible or ()):
        if own is not None:
            marks[:, k] = ~own.all(axis=1)
    return marks


def show_set(states: Iterable[Any]) -> str:
    """Return a set of states for a message."""
    shown = sorted(map(show, states))
    return "{" + ", ".join(shown[:MAX_SHOWN]) + (", ..." if len(shown) > MAX_SHOWN else "") + "}"
