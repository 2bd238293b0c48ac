"""The features seen in `fit`, and the conversion of later tables into numbers and codes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Floats, Marks
from pmdc._support.checks import shorten
from pmdc._support.warn import warn_user
from pmdc.table.columns import UNKNOWN, Column, column_states, encode_values, observed_levels, show
from pmdc.table.dates import part, parts_of
from pmdc.table.gaps import Filling, weighted_median, with_missing
from pmdc.table.grouping import limit_values


@dataclass(frozen=True)
class Features:
    """The features of a batch of rows, as numbers and codes.

    Attributes
    ----------
    continuous : array of shape (n, n_continuous + n_indicators)
        Without gaps: they are filled, and indicators of them follow.
    discrete : array of shape (n, n_discrete)
    missing : array of shape (n, n_continuous), or None if there are no gaps and no indicators
        Which numbers were missing.
    """

    continuous: Floats
    discrete: Codes
    missing: Marks | None = None

    def __len__(self) -> int:
        return len(self.continuous)

    def rows(self, index: slice | Array) -> Features:
        return Features(
            self.continuous[index], self.discrete[index], None if self.missing is None else self.missing[index]
        )

    def numbers(self) -> Features:
        """Return the continuous features alone."""
        return Features(self.continuous, self.discrete[:, :0], self.missing)

    def with_discrete(self, codes: Codes) -> Features:
        """Return the features with more discrete columns appended."""
        return Features(self.continuous, np.hstack([self.discrete, codes]), self.missing)

    def with_nan(self) -> Features:
        """Return the features with NaN for missing numbers, without indicators."""
        if self.missing is None:
            return self
        numbers = self.continuous[:, : self.missing.shape[1]]
        return Features(np.where(self.missing, np.nan, numbers), self.discrete)


class FeatureTable:
    """The features seen in `fit`: which are continuous, which discrete, and the states of the latter.

    Attributes
    ----------
    names : list of str
        Of the columns of the table.
    continuous : list of int
        The column that each continuous feature comes from. A column of dates gives several.
    discrete : list of int
        The columns of the discrete features.
    states : list of arrays
        Of the discrete features.
    observed : list of boolean arrays
        Which states have rows; a declared state without rows is treated as unseen.
    parts : dict of int to str
        For continuous features that are made of dates, by their position in `continuous`, what of the date they are.
    grouped : list of int
        The positions in `discrete` of features whose last state stands for all values that are not listed.
    date_orders : dict of str to str
        How the dates of a column were written in the text file, if they came from one: "dmy" or "mdy".
    filling : Filling
        What is done about missing values. A column without any value in training is in neither list: it is ignored.
    """

    parts: Mapping[int, str] = MappingProxyType({})  # of tables in files of earlier versions
    grouped: Sequence[int] = ()
    date_orders: Mapping[str, str] = MappingProxyType({})
    filling: Filling = Filling()

    def __init__(
        self,
        names: list[str],
        continuous: list[int],
        discrete: list[int],
        states: list[Array],
        observed: list[npt.NDArray[np.bool_]],
        parts: Mapping[int, str] | None = None,
        grouped: Sequence[int] = (),
        date_orders: Mapping[str, str] | None = None,
        filling: Filling | None = None,
    ):
        self.names = names
        self.continuous = continuous
        self.discrete = discrete
        self.states = states
        self.observed = observed
        self.parts = dict(parts or {})
        self.grouped = list(grouped)
        self.date_orders = dict(date_orders or {})
        self.filling = filling or Filling()

    @property
    def discrete_names(self) -> list[str]:
        return [self.names[i] for i in self.discrete]

    @property
    def number_names(self) -> list[str]:
        """The columns of numbers."""
        return [self.names[i] for j, i in enumerate(self.continuous) if j not in self.parts]

    @property
    def date_names(self) -> dict[str, list[str]]:
        """The columns of dates or times, and the features that are made of each."""
        found: dict[str, list[str]] = {}
        for j, name in sorted(self.parts.items()):
            found.setdefault(self.names[self.continuous[j]], []).append(name)
        return found

    def values(self, j: int) -> Array:
        """Return the values of a discrete feature by which it is encoded: not those for all others and for gaps."""
        further = (j in self.grouped) + (j in self.filling.states)
        return self.states[j][: len(self.states[j]) - further]

    def missing_code(self, j: int) -> int:
        """Return the code of a missing value of a discrete feature."""
        return len(self.states[j]) - 1 if j in self.filling.states else UNKNOWN

    @property
    def gaps(self) -> dict[str, int]:
        """The columns that had missing values in the training rows, and how many."""
        return dict(self.filling.counts)

    @property
    def ignored_names(self) -> list[str]:
        """The columns without any value in the training rows."""
        used = {*self.continuous, *self.discrete}
        return [name for i, name in enumerate(self.names) if i not in used]

    @classmethod
    def fit(
        cls,
        columns: Sequence[Column],
        discrete_features: Any = "from_dtype",
        weights: Floats | None = None,
    ) -> FeatureTable:
        """Separate discrete from continuous columns and collect the states of the discrete ones.

        ``weights`` are those of the rows (by default all 1); rows of weight zero do not count.
        """
        kept = np.ones(len(columns[0].values), dtype=bool) if weights is None else weights > 0
        names = [column.name for column in columns]
        chosen = _chosen_discrete(columns, discrete_features)
        used = _used(columns, kept)
        _refuse_left_out([columns[i] for i in used if i not in chosen], discrete_features)
        known = {i: kept & ~columns[i].missing if columns[i].missing.any() else kept for i in used}
        continuous: list[int] = []
        parts: dict[int, str] = {}
        fill: list[float] = []
        for i in used:
            if i not in chosen:
                values = columns[i].values[known[i]]
                found = parts_of(values) if columns[i].kind == "date" else [None]
                parts |= {len(continuous) + k: name for k, name in enumerate(found) if name is not None}
                continuous += [i] * len(found)
                own = None if weights is None else weights[known[i]]
                fill += [weighted_median(values if name is None else part(values, name), own) for name in found]
        discrete, states, observed, grouped = sorted(chosen & known.keys()), [], [], []
        for j, i in enumerate(discrete):
            own_states, rows, has_others = _discrete_states(columns[i], known[i], weights)
            grouped += [j] if has_others else []
            has_gaps = bool((known[i] != kept).any())
            states.append(with_missing(own_states) if has_gaps else own_states)
            observed.append(np.append(rows, [True] * has_gaps))
        counts = {names[i]: int((kept & ~rows).sum()) for i, rows in known.items() if (known[i] != kept).any()}
        filling = Filling(
            tuple(fill),
            tuple(j for j, i in enumerate(continuous) if names[i] in counts and i not in continuous[:j]),
            tuple(j for j, i in enumerate(discrete) if names[i] in counts),
            counts,
        )
        return cls(names, continuous, discrete, states, observed, parts, grouped, filling=filling)

    def encode(self, columns: Sequence[Column]) -> Features:
        """Convert a table with the columns of `fit` to numbers and codes.

        A value without rows in `fit` has code -1, or that of the state for all other values if there is one. A missing
        value has that of the state for missing values; -1 if there is none.
        """
        n = len(columns[0].values)
        continuous = np.empty((n, len(self.continuous)))
        for j, i in enumerate(self.continuous):
            continuous[:, j] = self._numbers(j, columns[i])
        discrete = np.empty((n, len(self.discrete)), dtype=np.int64)
        for j, i in enumerate(self.discrete):
            codes = encode_values(columns[i].values, self.values(j), columns[i].factors)
            if j in self.grouped:
                discrete[:, j] = np.where(codes == UNKNOWN, len(self.values(j)), codes)
            else:
                discrete[:, j] = np.where(self.observed[j][codes], codes, UNKNOWN)
            if columns[i].missing.any():
                discrete[columns[i].missing, j] = self.missing_code(j)
        return self.complete(continuous, discrete)

    def complete(self, numbers: Floats, discrete: Codes) -> Features:
        """Return features whose missing numbers (NaN) are filled, with indicators of the columns with gaps in `fit`."""
        missing = np.isnan(numbers)
        if not self.filling.indicated and not missing.any():
            return Features(numbers, discrete)
        if not self.filling.values:
            column = self.names[self.continuous[int(missing.any(axis=0).argmax())]]
            raise ValueError(
                f"Input X contains NaN: column {column!r}. The model is from an earlier version, which took no missing "
                "values: fill them, or fit it again."
            )
        return Features(self.filling.complete(numbers, missing), discrete, missing)

    def _numbers(self, j: int, column: Column) -> Array:
        """Return a continuous feature."""
        name, kind = self.parts.get(j), column.values.dtype.kind
        if column.missing.all():  # whatever its type is
            return np.full(len(column.values), np.nan)
        if name is None:
            if column.kind != "continuous":
                raise ValueError(
                    f"X, column {column.name!r} was continuous in fit and now holds {show(column.values[0])}: "
                    "convert it to numbers."
                )
            return column.values
        if column.kind != "date" or (kind == "m") != (name == "time"):
            was, remedy = ("time of day", "datetime.time") if name == "time" else ("date", "pandas.to_datetime")
            raise ValueError(
                f"X, column {column.name!r} was a {was} in fit and now holds {show(column.values[0])}: convert it, for "
                f"example with {remedy}."
            )
        return part(column.values, name)

    def warn_unseen(self, features: Features, used: Sequence[int], columns: Sequence[Column], answer: str) -> None:
        """Warn about discrete values that were not seen in `fit`, in the columns that the model uses."""
        for j in used:
            unseen = np.flatnonzero((features.discrete[:, j] == UNKNOWN) & ~columns[self.discrete[j]].missing)
            if unseen.size:
                name = self.names[self.discrete[j]]
                value = columns[self.discrete[j]].values[unseen[0]]
                warnings.warn(
                    f"X, column {name!r}: {unseen.size} row(s) hold a value that was not seen in fit (the first, "
                    f"row {unseen[0]}: {show(value)}). {answer}",
                    UserWarning,
                    stacklevel=4,
                )

    def warn_gaps(self, features: Features, used: Sequence[int], columns: Sequence[Column], answer: str) -> None:
        """Warn about missing values in columns without any in `fit`; `used` are the discrete features that matter."""
        new = {} if features.missing is None else self._new_gaps(features.missing)
        for name, (count, first, what) in new.items():
            warn_user(
                f"X, column {name!r}: {count} row(s) have a missing value, the first is row {first}, but no training "
                f"row had one. {what}"
            )
        for j in used:
            gone = columns[self.discrete[j]].missing
            if j not in self.filling.states and gone.any():
                warn_user(
                    f"X, column {self.names[self.discrete[j]]!r}: {gone.sum()} row(s) have a missing value, the first "
                    f"is row {gone.argmax()}, but no training row had one. {answer}"
                )

    def _new_gaps(self, missing: Marks) -> dict[str, tuple[int, int, str]]:
        """Return columns of numbers or dates with gaps only now: their number, the first row and what is done."""
        found = {}
        for j in np.flatnonzero(missing.any(axis=0)).tolist():
            name = self.names[self.continuous[j]]
            if name not in self.filling.counts and name not in found:
                what = (
                    f"the training median, {self.filling.values[j]:.6g}" if j not in self.parts else "training medians"
                )
                found[name] = (
                    int(missing[:, j].sum()),
                    int(missing[:, j].argmax()),
                    f"It is filled with {what} (NaN for estimators that take NaN).",
                )
        return found


def _used(columns: Sequence[Column], kept: Marks) -> list[int]:
    """Return the columns with values in the kept rows; warn about the others."""
    used = [i for i, column in enumerate(columns) if not column.missing[kept].all()]
    if not used:
        raise ValueError(
            f"Input X contains NaN only: none of its {len(columns)} column(s), such as {columns[0].name!r}, has a "
            "value in the training rows. Give a column with values."
        )
    for i in sorted(set(range(len(columns))) - set(used)):
        warn_user(
            f"X, column {columns[i].name!r} has no value in the training rows, only missing ones: it is ignored. Drop "
            "the column, or fill it."
        )
    return used


def _refuse_left_out(columns: Sequence[Column], discrete_features: Any) -> None:
    """Raise an error for columns of categories that are to be continuous."""
    for column in columns:
        if column.kind == "discrete":
            raise ValueError(
                f"X, column {column.name!r} holds {show(column.values[~column.missing][0])}, which is not a number, "
                f"but discrete_features={discrete_features!r} leaves it out. Add it there, or drop the column."
            )


def _discrete_states(column: Column, known: Marks, weights: Floats | None) -> tuple[Array, Marks, bool]:
    """Return the states of a discrete column, which of them have rows, and whether the last is for all others."""
    kept: Marks | None = known
    if column.missing.any():
        column, weights, kept = column.rows(known), None if weights is None else weights[known], None
    elif weights is None:
        kept = None
    states = column_states(column, kept)
    _refuse_identifier(column, states, kept)
    states, has_others = limit_values(column.name, states, _counts(column, states, weights))
    rows = _counts(column, states[:-1] if has_others else states, weights)
    return states, np.append(rows > 0, [True] * has_others), has_others


def _chosen_discrete(columns: Sequence[Column], discrete_features: Any) -> set[int]:
    if isinstance(discrete_features, str) and discrete_features == "from_dtype":
        return {i for i, column in enumerate(columns) if column.kind == "discrete"}
    if discrete_features is None:
        return set()
    if isinstance(discrete_features, str) or not isinstance(discrete_features, (Sequence, np.ndarray, set, frozenset)):
        raise ValueError(
            f"discrete_features={discrete_features!r}: give 'from_dtype', None, or a list of column names, indices "
            "or booleans."
        )
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
                f"discrete_features names {item!r}, which is not a column of X; its columns are {shorten(list(index))}."
            )
    return chosen


def _counts(column: Column, states: Array, weights: Floats | None) -> Floats:
    """Return the sum of the weights of the rows of each state."""
    codes = encode_values(column.values, states, column.factors)
    known = codes != UNKNOWN
    counts = np.bincount(codes[known], None if weights is None else weights[known], minlength=len(states))
    return counts.astype(float)


def _refuse_identifier(column: Column, states: Array, kept: npt.NDArray[np.bool_] | None) -> None:
    observed = sum(observed_levels(column, kept))
    if observed == (len(column.values) if kept is None else kept.sum()) and observed > 2:
        raise ValueError(
            f"X, column {column.name!r} is discrete and has as many values as rows ({observed}; for example "
            f"{show(states[0])}): it looks like an identifier, from which nothing can be learned. Drop it, or "
            "declare it continuous if it is a number."
        )
