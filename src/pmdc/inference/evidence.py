"""Evidence: reading of what is known about class variables into codes and sets of possible states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from pmdc._support.arrays import Array, Codes, Marks
from pmdc._support.checks import shorten, suggest
from pmdc.table.columns import MISSING, UNKNOWN, as_objects, encode_values, is_missing, show, unmask
from pmdc.table.rows import take_possible
from pmdc.table.weak_labels import WeakCell, check_sets, column_sets, show_set, take_sets

NO_EVIDENCE = -1
"""The code of a class variable without evidence."""


class ImpossibleEvidenceError(ValueError):
    """Evidence of probability zero, on which nothing can be conditioned."""

    def __init__(self, row: int, why: str = "has probability zero"):
        super().__init__(f"given: in row {row} the evidence {why}, so there is no distribution given it: change it.")
        self.row, self.why = row, why

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        return ImpossibleEvidenceError, (self.row, self.why)


def variable_number(class_table: Any, argument: str, name: Any) -> int:
    """Return the index of a class variable by its name, as in `names` or as given to `fit`."""
    names = list(class_table.names)
    if name in names:
        return names.index(name)
    given = getattr(class_table, "given_names", None)
    if given is not None and name in list(given):
        return list(given).index(name)
    raise ValueError(f"{argument} names {name!r}, which is not a class variable{suggest(name, names)}")


@dataclass(frozen=True)
class Evidence:
    """What is known about the class variables in each row of a batch.

    Attributes
    ----------
    codes : array of shape (n, K)
        Known states; -1 is unknown.
    possible : for each class variable an array of shape (n, n_states) or None, or None
        The states that are possible, where sets of states were given; None: all are.
    """

    codes: Codes
    possible: Sequence[Marks | None] | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Evidence:
        """Return the evidence of some rows."""
        return Evidence(self.codes[rows], take_possible(self.possible, rows))


def read_evidence(class_table: Any, given: Any, n_rows: int) -> Codes:
    """Return the codes of known states, shape (n_rows, K), as `read_given`; refuse sets of states."""
    evidence = read_given(class_table, given, n_rows)
    for name, own in zip(class_table.names, evidence.possible or (), strict=False):
        if own is not None:
            row = int(np.argmin(own.all(axis=1)))
            raise ValueError(
                f"given, class variable {name!r}, row {row} is a set of possible states, but single states are needed "
                "here: give one state, or leave it out."
            )
    return evidence.codes


def read_given(class_table: Any, given: Any, n_rows: int) -> Evidence:
    """Read evidence: known states, and sets of possible states.

    `given` is a mapping from names to a state or to one state for each row, a DataFrame, or an array of shape
    (n_rows, K). A set or frozenset of states stands for one of them. Missing values (None, NaN) and class variables
    that are not named are unknown.
    """
    names, cells = list(class_table.names), []
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        given = {name: series.to_native() for name, series in zip(frame.columns, frame.iter_columns(), strict=True)}
    if isinstance(given, Mapping):
        codes = np.full((n_rows, len(names)), NO_EVIDENCE)
        for name, value in given.items():
            k = variable_number(class_table, "given", name)
            codes[:, k], own = _read_states(name, value, k, class_table.states[k], n_rows)
            cells += own
    else:
        given, cells = take_sets(given)
        codes = class_table.encode(given, unknown="mark", missing="mark")
        if len(codes) != n_rows:
            raise ValueError(f"given has {len(codes)} rows, but there must be {n_rows}, one for each row of the batch.")
        if (codes == UNKNOWN).any():
            row, k = np.argwhere(codes == UNKNOWN)[0]
            value = np.asarray(given, dtype=object).reshape(n_rows, -1)[row, k]
            raise _not_a_state(names[k], value, class_table.states[k], row)
        codes = np.where(codes == MISSING, NO_EVIDENCE, codes)
    return Evidence(codes, _read_sets(class_table, cells, n_rows))


def _read_sets(class_table: Any, cells: Sequence[WeakCell], n_rows: int) -> list[Marks | None] | None:
    """Return the states that are possible in each row; None without sets."""
    check_sets(cells, class_table.names, "given")
    possible: list[Marks | None] = [None] * len(class_table.names)
    for row, k, members in cells:
        states = class_table.states[k]
        codes = encode_values(_typed(as_objects(list(members)), states), states)
        if (codes == UNKNOWN).all():
            raise ValueError(
                f"given, class variable {class_table.names[k]!r}, row {row}: none of {show_set(members)} is among its "
                f"states {shorten([str(state) for state in states])}."
            )
        own = possible[k]
        if own is None:
            own = possible[k] = np.ones((n_rows, len(states)), dtype=bool)
        own[row] = np.isin(np.arange(len(states)), codes)
    return possible if cells else None


def _read_states(name: Any, value: Any, k: int, states: Array, n_rows: int) -> tuple[Codes, list[WeakCell]]:
    """Read one state or set of states for all rows, or one for each row: codes, and the sets."""
    value = [value] * n_rows if isinstance(value, (set, frozenset)) else unmask(value)
    if _is_single(value, states):
        values, row = as_objects([value.item() if isinstance(value, np.ndarray) else value]), None
    elif isinstance(value, Mapping) or np.ndim(value) > 1:
        raise ValueError(
            f"given[{name!r}] is of type {type(value).__name__} with {max(np.ndim(value), 1)} dimension(s): give one "
            "state for all rows, or a list with one state for each row."
        )
    else:
        series = nw.from_native(value, series_only=True, pass_through=True)
        values = as_objects(series.to_list() if isinstance(series, nw.Series) else list(value))
        row = 0
        if len(values) != n_rows:
            raise ValueError(
                f"given[{name!r}] has {len(values)} values, but there are {n_rows} rows: give one state for each, or "
                "one state for all rows."
            )
    listed, cells = column_sets(values.tolist(), k)
    values = as_objects(listed)
    missing = is_missing(values)
    values = _typed(values, states)
    codes = encode_values(values, states)
    wrong = (codes == UNKNOWN) & ~missing
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _not_a_state(name, values[first], states, None if row is None else first)
    return np.broadcast_to(np.where(missing, NO_EVIDENCE, codes), n_rows), cells


def _typed(values: Array, states: Array) -> Array:
    """Return dates and durations in the type of the states; other values as they are."""
    return as_objects([_as_date(value, states.dtype) for value in values]) if states.dtype.kind in "mM" else values


def _as_date(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a date or a duration of any library as a scalar of this dtype; anything else as it is."""
    try:
        exact = dtype.type(value.to_numpy() if hasattr(value, "to_numpy") else value)
        same = exact.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return value
    return same if same == exact else value


def _is_single(value: Any, states: Array) -> bool:
    """Tell a single state from a sequence of states; a state may be a tuple."""
    if isinstance(value, (str, bytes)) or (np.ndim(value) == 0 and not isinstance(value, (Mapping, set, frozenset))):
        return True
    return isinstance(value, tuple) and value in states.tolist()


def _not_a_state(name: Any, value: Any, states: Array, row: int | None) -> ValueError:
    where = "" if row is None else f", row {row}"
    return ValueError(
        f"given, class variable {name!r}{where}: {show(value)} is not among its states "
        f"{shorten([str(state) for state in states])}."
    )
