"""Evidence: reading of known states of class variables into codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from pmdc._support.arrays import Array, Codes
from pmdc._support.checks import shorten, suggest
from pmdc.table.columns import MISSING, UNKNOWN, as_objects, encode_values, is_missing, show, unmask

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


def read_evidence(class_table: Any, given: Any, n_rows: int) -> Codes:
    """Return the codes of evidence, shape (n_rows, K); -1 is unknown.

    `given` is a mapping from names to a state or to one state for each row, a DataFrame, or an array of shape
    (n_rows, K). Missing values (None, NaN) and class variables that are not named are unknown.
    """
    names = list(class_table.names)
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        given = {name: series.to_native() for name, series in zip(frame.columns, frame.iter_columns(), strict=True)}
    if not isinstance(given, Mapping):
        codes = class_table.encode(given, unknown="mark", missing="mark")
        if len(codes) != n_rows:
            raise ValueError(f"given has {len(codes)} rows, but there must be {n_rows}, one for each row of the batch.")
        if (codes == UNKNOWN).any():
            row, k = np.argwhere(codes == UNKNOWN)[0]
            value = np.asarray(given, dtype=object).reshape(n_rows, -1)[row, k]
            raise _not_a_state(names[k], value, class_table.states[k], row)
        return np.where(codes == MISSING, NO_EVIDENCE, codes)
    codes = np.full((n_rows, len(names)), NO_EVIDENCE)
    for name, value in given.items():
        k = variable_number(class_table, "given", name)
        codes[:, k] = _read_states(name, value, class_table.states[k], n_rows)
    return codes


def _read_states(name: Any, value: Any, states: Array, n_rows: int) -> Codes:
    """Read one state for all rows, or one for each row."""
    value = unmask(value)
    if _is_single(value, states):
        values, row = as_objects([value.item() if isinstance(value, np.ndarray) else value]), None
    elif isinstance(value, (Mapping, set, frozenset)) or np.ndim(value) > 1:
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
    missing = is_missing(values)
    if states.dtype.kind in "mM":
        values = as_objects([_as_date(value, states.dtype) for value in values])
    codes = encode_values(values, states)
    wrong = (codes == UNKNOWN) & ~missing
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _not_a_state(name, values[first], states, None if row is None else first)
    return np.broadcast_to(np.where(missing, NO_EVIDENCE, codes), n_rows)


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
