"""What is known of some class variables: from the many ways to say it to codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from pmdc._support.arrays import Array, Codes
from pmdc._support.checks import shorten, suggest
from pmdc.table.columns import MISSING, UNKNOWN, as_objects, encode_values, is_missing, show, unmask

NO_EVIDENCE = -1
"""The code of a class variable about which nothing is known."""


class ImpossibleEvidenceError(ValueError):
    """What is given has probability zero, so nothing follows from it."""

    def __init__(self, row: int, why: str = "has probability zero"):
        super().__init__(f"given: in row {row} the evidence {why}, so nothing follows from it. Change it.")
        self.row, self.why = row, why

    def __reduce__(self) -> tuple[type, tuple[int, str]]:
        return ImpossibleEvidenceError, (self.row, self.why)


def variable_number(class_table: Any, argument: str, name: Any) -> int:
    """The number of a class variable by its name, as it was given or as the library calls it."""
    names = list(class_table.names)
    if name in names:
        return names.index(name)
    given = getattr(class_table, "given_names", None)
    if given is not None and name in list(given):
        return list(given).index(name)
    raise ValueError(f"{argument} names {name!r}, which is no class variable{suggest(name, names)}")


def read_evidence(class_table: Any, given: Any, n_rows: int) -> Codes:
    """Codes of what is given, shape (n_rows, K); -1 where nothing is.

    Parameters
    ----------
    class_table : object with names, states and encode
    given : mapping from names to a state or to one state for each row; DataFrame; or array of shape (n_rows, K)
        Missing values (None, NaN) are unknown, and so are class variables that a mapping or a DataFrame does not name.
    n_rows : int
    """
    names = list(class_table.names)
    frame = nw.from_native(given, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        given = {name: series.to_native() for name, series in zip(frame.columns, frame.iter_columns(), strict=True)}
    if not isinstance(given, Mapping):
        codes = class_table.encode(given, unknown="mark", missing="mark")
        if len(codes) != n_rows:
            raise ValueError(f"given has {len(codes)} rows, but there are {n_rows}: give one for each.")
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
    """One state for all rows, or one for each of them."""
    value = unmask(value)
    if _is_single(value, states):
        values, row = as_objects([value.item() if isinstance(value, np.ndarray) else value]), None
    elif isinstance(value, (Mapping, set, frozenset)) or np.ndim(value) > 1:
        raise ValueError(
            f"given[{name!r}] is a {type(value).__name__} of {max(np.ndim(value), 1)} dimension(s): give one state for "
            "all rows, or a list with one for each row."
        )
    else:
        series = nw.from_native(value, series_only=True, pass_through=True)
        values = as_objects(series.to_list() if isinstance(series, nw.Series) else list(value))
        row = 0
        if len(values) != n_rows:
            raise ValueError(
                f"given[{name!r}] has {len(values)} values, but there are {n_rows} rows: give one state for each row, "
                "or one state for all."
            )
    codes = encode_values(values, states)
    missing = is_missing(values)
    wrong = (codes == UNKNOWN) & ~missing
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _not_a_state(name, values[first], states, None if row is None else first)
    return np.broadcast_to(np.where(missing, NO_EVIDENCE, codes), n_rows)


def _is_single(value: Any, states: Array) -> bool:
    """Whether this is one state, not many: a state may itself be a tuple."""
    if isinstance(value, (str, bytes)) or (np.ndim(value) == 0 and not isinstance(value, (Mapping, set, frozenset))):
        return True
    return isinstance(value, tuple) and value in states.tolist()


def _not_a_state(name: Any, value: Any, states: Array, row: int | None) -> ValueError:
    where = "" if row is None else f", row {row}"
    return ValueError(
        f"given, class variable {name!r}{where}: {show(value)} is not among its states "
        f"{shorten([str(state) for state in states])}."
    )
