"""The columns of X and Y: kinds, names, states, codes and back.

Everything that enters the library passes here, and every complaint about it is made here: the other modules
see only numbers and codes. A table is read into columns (`read_columns`); `FeatureTable` and `ClassTable`
remember what was seen in `fit` and translate later tables the same way.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

UNKNOWN = -1
"""Code of a value that was not there in `fit`."""


@dataclass(frozen=True)
class Column:
    """One column as it was given: its values and what its type says about them."""

    name: str
    values: Array
    kind: Literal["continuous", "discrete"]
    declared: tuple[Hashable, ...] | None = None
    """The states that a categorical type declares, with or without rows."""


@dataclass(frozen=True)
class Features:
    """The features of a batch of rows, as numbers and codes."""

    continuous: Floats
    discrete: Codes

    def __len__(self) -> int:
        return len(self.continuous)

    def rows(self, index: slice | Array) -> Features:
        return Features(self.continuous[index], self.discrete[index])


# Reading ------------------------------------------------------------------------------------------------------


def read_columns(data: Any, argument: str, owner: str) -> list[Column]:
    """Read a table (DataFrame, array or list of rows) into columns; refuse what is missing or has no shape.

    Parameters
    ----------
    data : DataFrame of any library that narwhals reads, 2-D array, or list of rows
    argument : str
        What the caller called it ("X" or "Y"), for messages and for the names of nameless columns.
    owner : str
        The class that reads, for messages.
    """
    twice = [name for name, count in Counter(getattr(data, "columns", ())).items() if count > 1]
    if twice:
        raise ValueError(f"{argument} has several columns named {twice[0]!r}: column names must be unique.")
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = _frame_columns(frame, argument)
    else:
        columns = _array_columns(data, argument, owner)
    for column in columns:
        _refuse_missing(column, argument)
    return columns


def _frame_columns(frame: nw.DataFrame[Any], argument: str) -> list[Column]:
    if len(frame) == 0:
        raise ValueError(f"{argument}: found 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required.")
    columns = []
    for name, series in zip(_node_names(frame.columns, argument), frame.iter_columns(), strict=True):
        columns.append(_series_column(series, name, argument))
    return columns


def _node_names(names: Sequence[Any], argument: str) -> list[str]:
    """Columns keep their names if all are strings; otherwise they are numbered, as scikit-learn does."""
    if all(isinstance(name, str) for name in names):
        return list(names)
    return [f"{argument.lower()}{i}" for i in range(len(names))]


def _series_column(series: nw.Series[Any], name: str, argument: str) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        return Column(name, _numbers(series), "continuous")
    if dtype == nw.Boolean:
        values = series.to_numpy() if not series.is_null().any() else _objects(series.to_list())
        return Column(name, values, "discrete")
    if dtype in (nw.Categorical, nw.Enum):
        return Column(name, _objects(series.to_list()), "discrete", _declared_states(series))
    if dtype in (nw.String, nw.Object, nw.Unknown):
        return _object_column(name, _objects(series.to_list()), argument)
    raise TypeError(
        f"{argument}, column {name!r} is of type {dtype}, which is neither a number nor a category. "
        "Convert it to one of these first."
    )


def _declared_states(series: nw.Series[Any]) -> tuple[Hashable, ...] | None:
    """The states that a categorical type declares; polars' Categorical declares none, its Enum does."""
    if series.implementation.is_pandas_like():  # read natively: narwhals would make strings of all of them
        return tuple(series.to_native().cat.categories.tolist())
    return tuple(series.dtype.categories) if isinstance(series.dtype, nw.Enum) else None


def _numbers(series: nw.Series[Any]) -> Array:
    """Values of a numeric column; nulls of nullable types become NaN, so that one check finds them all."""
    if series.is_null().any():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
    return series.to_numpy()


def _array_columns(data: Any, argument: str, owner: str) -> list[Column]:
    if not hasattr(data, "dtype") and not hasattr(data, "__array__") and isinstance(data, (list, tuple)):
        data = _object_matrix(data)
    matrix = check_array(
        data, dtype=None, ensure_all_finite=False, ensure_min_features=1, input_name=argument, estimator=owner
    )
    names = [f"{argument.lower()}{i}" for i in range(matrix.shape[1])]
    if matrix.dtype.kind == "O":
        return [_object_column(name, matrix[:, i], argument) for i, name in enumerate(names)]
    if matrix.dtype.kind not in "fiubUS":
        raise TypeError(
            f"{argument} is of type {matrix.dtype}, which is neither numbers nor categories. Convert it first."
        )
    kind: Literal["continuous", "discrete"] = "continuous" if matrix.dtype.kind in "fiu" else "discrete"
    return [Column(name, matrix[:, i], kind) for i, name in enumerate(names)]


def _object_matrix(rows: Sequence[Any]) -> Array:
    """A list of rows as it stands: numpy would turn ``[1, "a"]`` into two strings and open up tuples."""
    listed = [row if isinstance(row, (list, tuple)) else None for row in rows]
    widths = {len(row) for row in listed if row is not None}
    if not rows or None in listed or len(widths) != 1:
        return np.asarray(rows) if rows else np.empty((0, 0))  # one-dimensional, ragged, rows of arrays
    matrix = np.empty((len(rows), widths.pop()), dtype=object)
    for i, row in enumerate(rows):
        matrix[i] = _objects(row)
    return matrix


def _objects(values: Sequence[Any]) -> Array:
    """An object array of just these values, whatever they are (numpy would open up tuples)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values if not any(isinstance(v, (tuple, list)) for v in values) else [*values]
    return array


def _object_column(name: str, values: Array, argument: str) -> Column:
    """Tell the kind of a column without a type by its values."""
    present = [v for v in values.tolist() if not _is_missing(v)]
    if argument == "X":
        for value in present:
            if not isinstance(value, (str, Real, np.bool_)):
                raise TypeError(
                    f"X, column {name!r}: argument must be a string or a real number, not {value!r} "
                    f"({type(value).__name__})."
                )
    types = {_value_type(value) for value in present}
    if types <= {"number"}:
        numeric = np.array([np.nan if _is_missing(v) else v for v in values.tolist()])
        return Column(name, numeric if numeric.dtype.kind in "fiu" else numeric.astype(float), "continuous")
    if argument == "X" and len(types) > 1:
        odd = {_value_type(value): value for value in present}
        raise TypeError(
            f"X, column {name!r} mixes types: {', '.join(repr(v) for v in odd.values())}. "
            "Make it all numbers or all strings."
        )
    if types == {"bool"} and len(present) == len(values):
        return Column(name, values.astype(bool), "discrete")
    return Column(name, values, "discrete")


def _value_type(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    return "number" if isinstance(value, Real) else type(value).__name__


def _is_missing(value: object) -> bool:
    """None, NaN, pandas' NA and NaT: the values that stand for no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value


def _refuse_missing(column: Column, argument: str) -> None:
    values = column.values
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            row = int(np.flatnonzero(np.isinf(values))[0])
            raise ValueError(
                f"Input {argument} contains infinity: column {column.name!r}, row {row}. "
                "Replace infinite values by finite ones or drop those rows."
            )
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.fromiter((_is_missing(v) for v in values), dtype=bool, count=len(values))
    else:
        return
    if missing.any():
        raise ValueError(
            f"Input {argument} contains NaN: column {column.name!r} has {int(missing.sum())} missing value(s), "
            f"the first in row {int(np.flatnonzero(missing)[0])}. Missing values are not supported: "
            + (
                "fill them (for example with sklearn.impute.SimpleImputer) or drop those rows."
                if argument == "X"
                else "drop those rows or make 'missing' a state of its own."
            )
        )


# States and codes ---------------------------------------------------------------------------------------------


def _states(column: Column) -> Array:
    """The states of a discrete column: those its type declares, otherwise those observed, sorted."""
    if column.declared is not None:
        values = list(column.declared)
        if values and all(_value_type(v) == "number" for v in values):
            return np.array(values)
        return _objects(values)
    if column.values.dtype.kind != "O":
        return np.unique(column.values)
    observed = list(dict.fromkeys(column.values.tolist()))
    try:
        observed.sort()
    except TypeError:  # states of several types have no natural order
        observed.sort(key=lambda state: (type(state).__name__, str(state)))
    return _objects(observed)


def _encode(values: Array, states: Array) -> Codes:
    code = {state: i for i, state in enumerate(states.tolist())}
    return np.fromiter((code.get(v, UNKNOWN) for v in values.tolist()), dtype=np.int64, count=len(values))


# Features -----------------------------------------------------------------------------------------------------


class FeatureTable:
    """What `fit` saw of the features: which are continuous, which discrete, and the states of the latter."""

    def __init__(self, names: list[str], continuous: list[int], discrete: list[int], states: list[Array]):
        self.names = names
        self.continuous = continuous
        self.discrete = discrete
        self.states = states

    @property
    def discrete_names(self) -> list[str]:
        return [self.names[i] for i in self.discrete]

    @classmethod
    def fit(cls, columns: Sequence[Column], discrete_features: Any = "from_dtype") -> FeatureTable:
        """Tell discrete from continuous columns and collect the states of the discrete ones."""
        names = [column.name for column in columns]
        chosen = _chosen_discrete(columns, discrete_features)
        for i, column in enumerate(columns):
            if column.kind == "discrete" and i not in chosen:
                raise ValueError(
                    f"X, column {column.name!r} holds {column.values[0]!r}, which is not a number, but "
                    f"discrete_features={discrete_features!r} leaves it out. Add it there, or drop the column."
                )
        discrete = sorted(chosen)
        states = [_states(columns[i]) for i in discrete]
        for i, known in zip(discrete, states, strict=True):
            _refuse_identifier(columns[i], known)
        return cls(names, [i for i in range(len(columns)) if i not in chosen], discrete, states)

    def encode(self, columns: Sequence[Column]) -> Features:
        """Numbers and codes of a table with the columns of `fit`; a value not seen in `fit` has code -1."""
        n = len(columns[0].values)
        continuous = np.empty((n, len(self.continuous)))
        for j, i in enumerate(self.continuous):
            if columns[i].kind != "continuous":
                raise ValueError(
                    f"X, column {self.names[i]!r} was continuous in fit and now holds {columns[i].values[0]!r}."
                )
            continuous[:, j] = columns[i].values
        discrete = np.empty((n, len(self.discrete)), dtype=np.int64)
        for j, i in enumerate(self.discrete):
            discrete[:, j] = _encode(columns[i].values, self.states[j])
        return Features(continuous, discrete)

    def warn_unseen(self, features: Features, used: Sequence[int], columns: Sequence[Column], answer: str) -> None:
        """Warn of discrete values that were not there in `fit`, in those columns that the model uses."""
        for j in used:
            unseen = np.flatnonzero(features.discrete[:, j] == UNKNOWN)
            if unseen.size:
                name = self.names[self.discrete[j]]
                value = columns[self.discrete[j]].values[unseen[0]]
                warnings.warn(
                    f"X, column {name!r}: {unseen.size} row(s) hold a value that was not seen in fit (the first, "
                    f"row {unseen[0]}: {value!r}). {answer}",
                    UserWarning,
                    stacklevel=4,
                )


def _chosen_discrete(columns: Sequence[Column], discrete_features: Any) -> set[int]:
    if isinstance(discrete_features, str):
        if discrete_features != "from_dtype":
            raise ValueError(
                f"discrete_features={discrete_features!r}: give 'from_dtype', None, or a list of column names, "
                "indices or booleans."
            )
        return {i for i, column in enumerate(columns) if column.kind == "discrete"}
    if discrete_features is None:
        return set()
    listed = list(discrete_features)
    if listed and all(isinstance(item, (bool, np.bool_)) for item in listed):
        if len(listed) != len(columns):
            raise ValueError(
                f"discrete_features has {len(listed)} booleans, but X has {len(columns)} columns: give one for each."
            )
        return {i for i, flag in enumerate(listed) if flag}
    index = {column.name: i for i, column in enumerate(columns)}
    chosen = set()
    for item in listed:
        if isinstance(item, str) and item in index:
            chosen.add(index[item])
        elif isinstance(item, (int, np.integer)) and -len(columns) <= item < len(columns):
            chosen.add(int(item) % len(columns))
        else:
            raise ValueError(
                f"discrete_features names {item!r}, which is no column of X; its columns are {_shorten(list(index))}."
            )
    return chosen


def _refuse_identifier(column: Column, states: Array) -> None:
    observed = len(set(column.values.tolist()))
    if observed == len(column.values) and observed > 2:
        raise ValueError(
            f"X, column {column.name!r} is discrete and has as many values as rows ({observed}; for example "
            f"{states[0]!r}): it looks like an identifier, and nothing can be learned from it. Drop it, or "
            "declare it continuous if it is a number."
        )


def _shorten(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")


# Class variables ----------------------------------------------------------------------------------------------


class ClassTable:
    """What `fit` saw of the class variables: their names and states, and the container they came in.

    Attributes
    ----------
    names : list of str
    states : list of arrays
        The states of each class variable: what a categorical type declares (a declared state needs no row),
        otherwise the observed states, sorted.
    sizes : tuple of int
        The number of states of each class variable.
    one_dimensional : bool
        Whether a single class variable was given as a one-dimensional y.
    """

    def __init__(
        self,
        names: list[str],
        states: list[Array],
        one_dimensional: bool,
        dtype: np.dtype[Any] | None,
        frame_states: list[Any] | None,
    ):
        self.names = names
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
    def fit(cls, Y: Any, owner: str = "ClassTable", kept: npt.NDArray[np.bool_] | None = None) -> ClassTable:
        """Read names and states off a table of class variables (or a one-dimensional y).

        ``kept`` marks the rows that count; a state that only the others hold is not a state.
        """
        columns, one_dimensional = _read_classes(Y, owner)
        if kept is not None and len(kept) != len(columns[0].values):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {len(kept)} rows, Y has {len(columns[0].values)}."
            )
        for column in columns:
            _refuse_continuous(column)
        counted = columns if kept is None else [replace(c, values=c.values[kept]) for c in columns]
        states = [_states(column) for column in counted]
        frame = nw.from_native(Y, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return cls([c.name for c in columns], states, False, None, _frame_states(frame, columns, states))
        dtype = Y.dtype if isinstance(Y, np.ndarray) else _common_dtype(states)
        return cls([c.name for c in columns], states, one_dimensional, dtype, None)

    def encode(self, Y: Any, unknown: Literal["raise", "mark"] = "raise") -> Codes:
        """Codes of a table of class variables, shape (n, K).

        A state that was not there in `fit` is an error, or gets code -1 with ``unknown="mark"``.
        """
        columns, _ = _read_classes(Y, "ClassTable")
        if len(columns) != len(self.names):
            raise ValueError(
                f"Y has {len(columns)} column(s), but the model has {len(self.names)} class variable(s): "
                f"{_shorten(self.names)}."
            )
        columns = self._in_order(Y, columns)
        codes = np.column_stack(
            [_encode(column.values, states) for column, states in zip(columns, self.states, strict=True)]
        )
        if unknown == "raise" and (codes == UNKNOWN).any():
            row, k = np.argwhere(codes == UNKNOWN)[0]
            raise ValueError(
                f"Y, column {self.names[k]!r}, row {row}: {columns[k].values[row]!r} is not among the states "
                f"{_shorten([str(s) for s in self.states[k]])}."
            )
        return codes

    def _in_order(self, Y: Any, columns: list[Column]) -> list[Column]:
        """Columns of a DataFrame are matched by name; of an array by position."""
        if self.frame_states is None or not hasattr(Y, "columns"):
            return columns
        by_name = {column.name: column for column in columns}
        missing = [name for name in self.names if name not in by_name]
        if missing:
            raise ValueError(f"Y lacks the class variable {missing[0]!r}; its columns are {_shorten(list(by_name))}.")
        return [by_name[name] for name in self.names]

    def decode(self, codes: Codes, like: Any = None) -> Any:
        """The states behind codes of shape (n, K), in the kind of container that `fit` was given.

        ``like``, a DataFrame of the same library, lends its index, where that library has one.
        """
        if self.frame_states is not None:
            chosen = [nw.from_native(s, series_only=True)[codes[:, k]] for k, s in enumerate(self.frame_states)]
            frame = nw.concat([nw.maybe_reset_index(series).to_frame() for series in chosen], how="horizontal")
            native = frame.to_native()
            if frame.implementation.is_pandas_like() and type(like) is type(native):
                native.index = like.index
            return native
        matrix = np.empty(codes.shape, dtype=self.dtype)
        for k, states in enumerate(self.states):
            matrix[:, k] = states[codes[:, k]]
        return matrix[:, 0] if self.one_dimensional else matrix


def _read_classes(Y: Any, owner: str) -> tuple[list[Column], bool]:
    if Y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    if hasattr(Y, "__array__") and not hasattr(Y, "dtype") and not hasattr(Y, "columns"):
        Y = np.asarray(Y)
    series = nw.from_native(Y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        name = series.name if isinstance(series.name, str) and series.name else "y0"
        columns = [_series_column(series, name, "Y")]
    elif _is_one_dimensional(Y):
        values = Y if hasattr(Y, "dtype") else _objects(list(Y))
        if np.asarray(values).dtype.kind == "O":
            columns = [_object_column("y0", np.asarray(values), "Y")]
        else:
            columns = [Column("y0", np.asarray(values), "discrete")]
    else:
        if isinstance(Y, np.ndarray) and Y.ndim == 2 and Y.shape[1] == 0:
            raise ValueError(f"Y has no column (shape={Y.shape}): give at least one class variable.")
        columns = read_columns(Y, "Y", owner)
        if not columns:
            raise ValueError("Y has no column: give at least one class variable.")
        return columns, False
    if not len(columns[0].values):
        raise ValueError("Y: found 0 sample(s) while a minimum of 1 is required.")
    _refuse_missing(columns[0], "Y")
    return columns, True


def _is_one_dimensional(Y: Any) -> bool:
    if hasattr(Y, "ndim"):
        return bool(Y.ndim == 1)
    return isinstance(Y, (list, tuple)) and not any(isinstance(row, (list, tuple, np.ndarray)) for row in Y)


def _refuse_continuous(column: Column) -> None:
    """A class variable with fractional values is a regression target: say so instead of making states of it."""
    if column.declared is None and column.values.dtype.kind == "f":
        fractional = column.values != np.floor(column.values)
        if fractional.any():
            raise ValueError(
                f"Unknown label type: class variable {column.name!r} is continuous (it holds "
                f"{column.values[fractional][0]!r}). Class variables need a finite set of states: cut it into "
                "intervals first, for example with sklearn.preprocessing.KBinsDiscretizer."
            )


def _common_dtype(states: Sequence[Array]) -> np.dtype[Any]:
    kinds = {known.dtype.kind for known in states}
    if len(kinds) == 1 or kinds <= set("iuf"):
        return np.result_type(*states)
    return np.dtype(object)


def _frame_states(frame: nw.DataFrame[Any], columns: Sequence[Column], states: Sequence[Array]) -> list[Any]:
    native = []
    for series, column, known in zip(frame.iter_columns(), columns, states, strict=True):
        if column.declared is not None:
            own = series.to_native()
            if series.implementation.is_pandas_like():  # keeps categories and their order as they were
                values = nw.from_native(type(own)(known.tolist(), dtype=own.dtype, name=own.name), series_only=True)
            else:
                values = nw.new_series(series.name, known.tolist(), series.dtype, backend=frame.implementation)
        else:
            first = {code: row for row, code in reversed(list(enumerate(_encode(column.values, known).tolist())))}
            values = series[[first[code] for code in range(len(known))]]
        native.append(nw.maybe_reset_index(values).to_native())
    return native


# Weights ------------------------------------------------------------------------------------------------------


def read_weights(sample_weight: Any, n_rows: int) -> Floats:
    """One weight for each row; a row of weight zero counts as a row that is not there."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}; it must be ({n_rows},): one weight for each row.")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"sample_weight[{row}] is {weights[row]}: weights must be finite and not negative.")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: no class can be learned. Give some row a weight.")
    return weights
