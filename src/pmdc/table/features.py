"""The features seen in `fit`, and the conversion of later tables into numbers and codes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Floats
from pmdc._support.checks import shorten
from pmdc.table.columns import UNKNOWN, Column, column_states, encode_values, observed_levels, show
from pmdc.table.dates import part, parts_of
from pmdc.table.grouping import limit_values


@dataclass(frozen=True)
class Features:
    """The features of a batch of rows, as numbers and codes."""

    continuous: Floats
    discrete: Codes

    def __len__(self) -> int:
        return len(self.continuous)

    def rows(self, index: slice | Array) -> Features:
        return Features(self.continuous[index], self.discrete[index])

    def numbers(self) -> Features:
        """Return the continuous features alone."""
        return Features(self.continuous, self.discrete[:, :0])

    def with_discrete(self, codes: Codes) -> Features:
        """Return the features with more discrete columns appended."""
        return Features(self.continuous, np.hstack([self.discrete, codes]))


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
    """

    parts: Mapping[int, str] = MappingProxyType({})  # of tables in files of earlier versions
    grouped: Sequence[int] = ()
    date_orders: Mapping[str, str] = MappingProxyType({})

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
    ):
        self.names = names
        self.continuous = continuous
        self.discrete = discrete
        self.states = states
        self.observed = observed
        self.parts = dict(parts or {})
        self.grouped = list(grouped)
        self.date_orders = dict(date_orders or {})

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
        """Return the values of a discrete feature by which it is encoded, without the state of all others."""
        return self.states[j][:-1] if j in self.grouped else self.states[j]

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
        kept = None if weights is None else weights > 0
        names = [column.name for column in columns]
        chosen = _chosen_discrete(columns, discrete_features)
        for i, column in enumerate(columns):
            if column.kind == "discrete" and i not in chosen:
                raise ValueError(
                    f"X, column {column.name!r} holds {show(column.values[0])}, which is not a number, but "
                    f"discrete_features={discrete_features!r} leaves it out. Add it there, or drop the column."
                )
        continuous: list[int] = []
        parts: dict[int, str] = {}
        for i, column in enumerate(columns):
            if i not in chosen:
                values = column.values if kept is None else column.values[kept]
                found = parts_of(values) if column.kind == "date" else [None]
                parts |= {len(continuous) + k: name for k, name in enumerate(found) if name is not None}
                continuous += [i] * len(found)
        discrete, states, observed, grouped = sorted(chosen), [], [], []
        for j, i in enumerate(discrete):
            known = column_states(columns[i], kept)
            _refuse_identifier(columns[i], known, kept)
            known, has_others = limit_values(names[i], known, _counts(columns[i], known, weights))
            grouped += [j] if has_others else []
            states.append(known)
            rows = _counts(columns[i], known[:-1] if has_others else known, weights)
            observed.append(np.append(rows > 0, [True] * has_others))
        return cls(names, continuous, discrete, states, observed, parts, grouped)

    def encode(self, columns: Sequence[Column]) -> Features:
        """Convert a table with the columns of `fit` to numbers and codes.

        A value without rows in `fit` has code -1, or that of the state for all other values if there is one.
        """
        n = len(columns[0].values)
        continuous = np.empty((n, len(self.continuous)))
        for j, i in enumerate(self.continuous):
            continuous[:, j] = self._numbers(j, columns[i])
        discrete = np.empty((n, len(self.discrete)), dtype=np.int64)
        for j, i in enumerate(self.discrete):
            codes = encode_values(columns[i].values, self.values(j), columns[i].factors)
            if j in self.grouped:
                discrete[:, j] = np.where(codes == UNKNOWN, len(self.states[j]) - 1, codes)
            else:
                discrete[:, j] = np.where(self.observed[j][codes], codes, UNKNOWN)
        return Features(continuous, discrete)

    def _numbers(self, j: int, column: Column) -> Array:
        """Return a continuous feature."""
        name, kind = self.parts.get(j), column.values.dtype.kind
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
            unseen = np.flatnonzero(features.discrete[:, j] == UNKNOWN)
            if unseen.size:
                name = self.names[self.discrete[j]]
                value = columns[self.discrete[j]].values[unseen[0]]
                warnings.warn(
                    f"X, column {name!r}: {unseen.size} row(s) hold a value that was not seen in fit (the first, "
                    f"row {unseen[0]}: {show(value)}). {answer}",
                    UserWarning,
                    stacklevel=4,
                )


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
