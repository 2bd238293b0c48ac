"""The class variables seen in `fit`: their states, the codes of these, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Marks
from pmdc._support.checks import shorten
from pmdc._support.spelling import misspellings
from pmdc._support.warn import warn_user
from pmdc.table.columns import (
    MISSING,
    UNKNOWN,
    Column,
    as_objects,
    column_states,
    encode_values,
    is_missing,
    object_column,
    read_columns,
    refuse_missing,
    series_column,
    show,
    sort_states,
    unmask,
)
from pmdc.table.features import FeatureTable
from pmdc.table.frequencies import Frequencies
from pmdc.table.weak_labels import WeakCell, check_sets, possible_states, refuse_sets, show_set, take_sets

_REMEDY = "drop those rows or make 'missing' a state of its own. (GBNC learns from them with missing_labels='em'.)"
"""What to do about missing states in `fit`."""


class ClassTable:
    """The class variables seen in `fit`: their names and states, and the container they came in.

    Attributes
    ----------
    names : list of str
    given_names : list or None
        The column names as they were given; None where there were none.
    states : list of arrays
        The states of each class variable: what a categorical type declares (a declared state needs no row),
        otherwise the observed states, sorted.
    sizes : tuple of int
        The number of states of each class variable.
    one_dimensional : bool
        Whether a single class variable was given as a one-dimensional y.
    frequencies : Frequencies or None
        How often the states occur in the training rows, which the balanced loss needs; None if no classifier was
        fitted. It is an attribute of fitted classifiers, too (`frequencies_`).
    """

    frequencies: Frequencies | None = None

    def __init__(
        self,
        names: list[str],
        given_names: list[Any] | None,
        states: list[Array],
        one_dimensional: bool,
        dtype: np.dtype[Any] | None,
        frame_states: list[Any] | None,
    ):
        self.names = names
        self.given_names = given_names
        self.states = states
        self.one_dimensional = one_dimensional
        self.dtype = dtype
        # One native column of states for each class variable: indexing it by codes gives predictions of the
        # very type that came in (categories, strings, nullable integers, ...), in any DataFrame library.
        self.frame_states = frame_states

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(states) for states in self.states)

    @classmethod
    def fit(cls, Y: Any, owner: str = "ClassTable") -> ClassTable:
        """Read names and states from a table of class variables (or a one-dimensional y)."""
        return cls.fit_encode(Y, owner)[0]

    @classmethod
    def fit_encode(
        cls,
        Y: Any,
        owner: str = "ClassTable",
        kept: npt.NDArray[np.bool_] | None = None,
        missing: Literal["raise", "mark"] = "raise",
    ) -> tuple[ClassTable, Codes]:
        """Read names, states and codes from a table of class variables (or a one-dimensional y).

        ``kept`` marks the rows to learn from (by default all); a state that occurs only in other rows has code -1. A
        missing value is an error, or gets code -2 with ``missing="mark"``.
        """
        table, codes, _ = cls.fit_weak(Y, owner, kept, missing)
        return table, codes

    @classmethod
    def fit_weak(
        cls,
        Y: Any,
        owner: str = "ClassTable",
        kept: npt.NDArray[np.bool_] | None = None,
        missing: Literal["raise", "mark"] = "raise",
    ) -> tuple[ClassTable, Codes, list[Marks | None] | None]:
        """Do the same for a table whose cells may be sets of possible states (weak labels).

        Such a cell gets code -2. The third result has for each class variable the states that each row may have, None
        if there are no sets; it is None if no class variable has any. Without ``missing="mark"`` sets are an error.
        """
        Y, cells = take_sets(Y)
        columns, one_dimensional = _read_classes(Y, owner, allow_missing=True)
        if kept is not None and len(kept) != len(columns[0].values):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {len(kept)} rows, Y has {len(columns[0].values)}."
            )
        names = [column.name for column in columns]
        check_sets(cells, names)
        if missing == "raise":
            refuse_sets(cells, names, "Y", " GBNC learns from sets (missing_labels='em').")
        for column in columns:
            refuse_missing(column, "Y", missing == "mark", _REMEDY)
            _refuse_continuous(column)
        cells = [cell for cell in cells if kept is None or kept[cell.row]]
        states = [
            _with_others(column_states(column, kept), [cell.states for cell in cells if cell.column == k])
            for k, column in enumerate(columns)
        ]
        codes = _encode_columns(columns, states, missing)
        refuse_unknown(names, codes if kept is None else codes[kept])
        possible = possible_states(cells, states, codes)
        frame = nw.from_native(Y, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            frame_states = _frame_states(frame, columns, states, codes)
            return cls(names, list(frame.columns), states, False, None, frame_states), codes, possible
        given = [Y.name] if isinstance(getattr(Y, "name", None), str) and Y.name else None
        dtype = Y.dtype if isinstance(Y, np.ndarray) else _common_dtype(states)
        return cls(names, given, states, one_dimensional, dtype, None), codes, possible

    def encode(
        self, Y: Any, unknown: Literal["raise", "mark"] = "raise", missing: Literal["raise", "mark"] = "raise"
    ) -> Codes:
        """Return the codes of a table of class variables, shape (n, K).

        A state that was not seen in `fit` is an error, or gets code -1 with ``unknown="mark"``. A missing value or a
        set of possible states is an error, or gets code -2 with ``missing="mark"``.
        """
        Y, cells = self._take_sets(Y)
        if missing == "raise":
            refuse_sets(cells, self.names, "Y")
        columns = self.columns(Y, allow_missing=missing == "mark")
        codes = _encode_columns(columns, self.states, missing)
        if unknown == "raise" and (codes == UNKNOWN).any():
            row, k = np.argwhere(codes == UNKNOWN)[0]
            raise ValueError(
                f"Y, column {self.names[k]!r}, row {row}: {show(columns[k].values[row])} is not among the states "
                f"{shorten([str(s) for s in self.states[k]])}."
            )
        return codes

    def encode_weak(
        self, Y: Any, unknown: Literal["raise", "mark"] = "raise"
    ) -> tuple[Codes, list[Marks | None] | None]:
        """Do the same for a table with missing values (code -2), whose cells may be sets of possible states.

        The second result is as the third of `fit_weak`. A set without any known state is an error, or treated as
        missing with ``unknown="mark"``.
        """
        Y, cells = self._take_sets(Y)
        codes = self.encode(Y, unknown, "mark")
        check_sets(cells, self.names)
        listed = [set(states.tolist()) for states in self.states]
        known = [cell for cell in cells if cell.states & listed[cell.column]]
        if unknown == "raise" and len(known) < len(cells):
            row, k, states = next(cell for cell in cells if not cell.states & listed[cell.column])
            raise ValueError(
                f"Y, column {self.names[k]!r}, row {row}: none of {show_set(states)} is among the states "
                f"{shorten([str(s) for s in self.states[k]])}."
            )
        return codes, possible_states(known, self.states, codes)

    def unknown_states(self, Y: Any) -> dict[str, list[Any]]:
        """Return, by class variable, the states in a table that were not seen in `fit`."""
        columns = self.columns(Y)
        rows = _encode_columns(columns, self.states) == UNKNOWN
        found = {column.name: column_states(column, rows[:, k]) for k, column in enumerate(columns) if rows[:, k].any()}
        return {name: states.tolist() for name, states in found.items()}

    def columns(self, Y: Any, allow_missing: bool = False) -> list[Column]:
        """Read the columns of the class variables, in the order of `fit`."""
        columns, _ = _read_classes(Y, "ClassTable", allow_missing)
        if len(columns) != len(self.names):
            raise ValueError(
                f"Y has {len(columns)} column(s), but the model has {len(self.names)} class variable(s): "
                f"{shorten(self.names)}."
            )
        return [columns[i] for i in self._order(Y)]

    def _take_sets(self, Y: Any) -> tuple[Any, list[WeakCell]]:
        """Return a table without its sets of states, and these, whose columns are the class variables."""
        Y, cells = take_sets(Y)
        place = {column: k for k, column in enumerate(self._order(Y))} if cells else {}
        return Y, [WeakCell(row, place[column], states) for row, column, states in cells if column in place]

    def _order(self, Y: Any) -> list[int]:
        """Return the positions of the class variables: matched by name in a DataFrame, by position in an array."""
        frame = nw.from_native(Y, eager_only=True, pass_through=True)
        if self.frame_states is None or self.given_names is None or not isinstance(frame, nw.DataFrame):
            return list(range(len(self.names)))
        place = {name: i for i, name in enumerate(frame.columns)}
        missing = [name for name in self.given_names if name not in place]
        if missing:
            raise ValueError(
                f"Y lacks the class variable {missing[0]!r}; its columns are {shorten([str(name) for name in place])}."
            )
        return [place[name] for name in self.given_names]

    def in_order(self, table: Any, argument: str) -> Any:
        """Return a table with the columns of Y in the order of the class variables, if both have names."""
        frame = nw.from_native(table, eager_only=True, pass_through=True)
        if self.frame_states is None or self.given_names is None or not isinstance(frame, nw.DataFrame):
            return table
        missing = [name for name in self.given_names if name not in frame.columns]
        if missing:
            raise ValueError(f"{argument} lacks the class variable {missing[0]!r}: give the columns of y.")
        return frame.select(*self.given_names).to_native()

    def decode(self, codes: Codes, like: Any = None) -> Any:
        """Return the states behind codes of shape (n, K), in the kind of container that `fit` was given.

        The result has the index of ``like`` if both are DataFrames of a library with an index.
        """
        if self.frame_states is not None and self.given_names is not None:
            return self._decode_frame(codes, like)
        matrix = np.empty(codes.shape, dtype=self.dtype)
        for k, states in enumerate(self.states):
            matrix[:, k] = states[codes[:, k]]
        return matrix[:, 0] if self.one_dimensional else matrix

    def _decode_frame(self, codes: Codes, like: Any) -> Any:
        columns = list(zip(self.given_names or [], self.frame_states or [], codes.T, strict=True))
        if nw.dependencies.is_pandas_series(columns[0][1]):  # narwhals would take several times as long
            pandas = nw.dependencies.get_pandas()
            index = like.index if isinstance(like, pandas.DataFrame) else pandas.RangeIndex(len(codes))
            taken = {
                name: pandas.Series(states.array.take(chosen), index=index, dtype=states.dtype, copy=False)
                for name, states, chosen in columns
            }
            return pandas.DataFrame(taken, index=index, copy=False)
        series = [nw.from_native(states, series_only=True)[chosen].alias(name) for name, states, chosen in columns]
        frame = nw.concat([nw.maybe_reset_index(one).to_frame() for one in series], how="horizontal")
        native = frame.to_native()
        if frame.implementation.is_pandas_like() and type(like) is type(native):
            native.index = like.index
        return native


def _read_classes(Y: Any, owner: str, allow_missing: bool = False) -> tuple[list[Column], bool]:
    if Y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    if hasattr(Y, "__array__") and not hasattr(Y, "dtype") and not hasattr(Y, "columns"):
        Y = np.asarray(Y)
    Y = unmask(Y)
    series = nw.from_native(Y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        name = series.name if isinstance(series.name, str) and series.name else "y0"
        columns = [series_column(series, name, "Y")]
    elif _is_one_dimensional(Y):
        values = np.asarray(Y) if hasattr(Y, "dtype") else as_objects(list(Y))
        if values.dtype.kind == "O":
            columns = [object_column("y0", values, "Y")]
        elif values.dtype.kind in "fiubUSmM":
            columns = [Column("y0", values, "discrete")]
        else:
            raise TypeError(f"Y is of type {values.dtype}, which has no states. Convert it to integers or strings.")
    else:
        if isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.shape[1] == 0:
            raise ValueError(f"Y: found 0 class variable(s) (shape={Y.shape}) while a minimum of 1 is required.")
        return read_columns(Y, "Y", owner, allow_missing), False
    if not len(columns[0].values):
        raise ValueError("Y: found 0 sample(s) while a minimum of 1 is required.")
    refuse_missing(columns[0], "Y", allow_missing)
    return columns, True


def _is_one_dimensional(Y: Any) -> bool:
    if hasattr(Y, "ndim"):
        return bool(Y.ndim == 1)
    return isinstance(Y, (list, tuple, range)) and not any(isinstance(row, (list, tuple, np.ndarray)) for row in Y)


def _refuse_continuous(column: Column) -> None:
    """Raise an error for a class variable with fractional values, which is a regression target."""
    if column.declared is None and column.values.dtype.kind == "f":
        fractional = (column.values != np.floor(column.values)) & ~np.isnan(column.values)
        if fractional.any():
            raise ValueError(
                f"Unknown label type: class variable {column.name!r} is continuous (it holds "
                f"{show(column.values[fractional][0])}). Class variables need a finite set of states: cut it into "
                "intervals first, for example with sklearn.preprocessing.KBinsDiscretizer."
            )


def _with_others(states: Array, sets: Sequence[frozenset[Any]]) -> Array:
    """Return the states with those that only sets contain."""
    more = set().union(*sets) - set(states.tolist())
    if not more:
        return states
    every = sort_states([*states.tolist(), *more])
    return as_objects(every) if states.dtype.kind == "O" else np.array(every)


def refuse_unknown(names: Sequence[str], codes: Codes) -> None:
    """Raise an error for a class variable without any known state."""
    for name, gone in zip(names, (codes == MISSING).all(axis=0), strict=True):
        if gone:
            raise ValueError(
                f"Y, column {name!r} has no known state in the rows to learn from (neither a missing cell nor a set of "
                "states is one), so nothing can be learned about it: drop the column, or give some states."
            )


def _common_dtype(states: Sequence[Array]) -> np.dtype[Any]:
    kinds = {known.dtype.kind for known in states}
    if len(kinds) == 1 or kinds <= set("iuf"):
        return np.result_type(*states)
    return np.dtype(object)


def _encode_columns(
    columns: Sequence[Column], states: Sequence[Array], missing: Literal["raise", "mark"] = "raise"
) -> Codes:
    """Return the codes of the states; -1 for what is none of them, -2 for a missing value if these are marked."""
    codes = []
    for column, known in zip(columns, states, strict=True):
        own = encode_values(column.values, known, column.factors)
        if missing == "mark" and column.values.dtype.kind in "fmMO":
            own[is_missing(column.values, column.factors)] = MISSING
        codes.append(own)
    return np.column_stack(codes)


def _frame_states(
    frame: nw.DataFrame[Any], columns: Sequence[Column], states: Sequence[Array], codes: Codes
) -> list[Any]:
    """Return a native column of the states of each class variable."""
    native = []
    for series, column, known, coded in zip(frame.iter_columns(), columns, states, codes.T, strict=True):
        if column.declared is not None:
            own = series.to_native()
            if series.implementation.is_pandas_like():  # keeps categories and their order as they were
                values = nw.from_native(type(own)(known.tolist(), dtype=own.dtype, name=own.name), series_only=True)
            else:
                values = nw.new_series(series.name, known.tolist(), series.dtype, backend=frame.implementation)
        else:
            found, first = np.unique(coded, return_index=True)
            values = series[first[found >= 0].tolist()]
            if len(values) < len(known):  # some states occur in sets only
                values = nw.new_series(series.name, known.tolist(), backend=frame.implementation)
        native.append(nw.maybe_reset_index(values).to_native())
    return native


def warn_misspelt(classes: ClassTable, codes: Codes) -> None:
    """Warn about states with rows that differ from others only in capitals and blanks."""
    for k, (name, states) in enumerate(zip(classes.names, classes.states, strict=True)):
        if not all(isinstance(state, str) for state in states):
            continue
        rows = np.bincount(codes[codes[:, k] >= 0, k], minlength=len(states)).tolist()
        counts = {str(state): n for state, n in zip(states, rows, strict=True) if n}
        odd = misspellings(counts, near=False)
        if odd:
            pairs = [f"{one.state!r} ({counts[one.state]} row(s)) and {one.meant!r}" for one in odd]
            warn_user(
                f"Y, column {name!r} has states that differ only in capitals and blanks: {'; '.join(pairs[:5])}. They "
                "are learned as different states: make them equal if they are the same."
            )


def keep_names_apart(features: FeatureTable, named: bool, classes: ClassTable) -> None:
    """Make the names of features and class variables differ: rename numbered columns, refuse equal given names."""
    given = [name for name in classes.names if classes.given_names is not None and name in classes.given_names]
    for name in given if named else []:
        if name in features.names:
            raise ValueError(
                f"{name!r} is the name of a column of X and of a class variable in Y. Drop it from X if it is what is "
                "to be predicted, or rename one of them."
            )
    ours, theirs = (classes.names, features.names) if named else (features.names, classes.names)
    for i in range(len(ours)):
        while ours[i] in theirs:
            ours[i] += "_"
