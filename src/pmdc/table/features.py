"""The features seen in `fit`, and the conversion of later tables into numbers and codes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Floats
from pmdc._support.checks import shorten
from pmdc.table.columns import UNKNOWN, Column, column_states, encode_values, observed_levels, show


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
    """The features seen in `fit`: which are continuous, which discrete, and the states of the latter."""

    def __init__(
        self,
        names: list[str],
        continuous: list[int],
        discrete: list[int],
        states: list[Array],
        observed: list[npt.NDArray[np.bool_]],
    ):
        self.names = names
        self.continuous = continuous
        self.discrete = discrete
        self.states = states
        self.observed = observed  # which states have rows; a declared state without rows is treated as unseen

    @property
    def discrete_names(self) -> list[str]:
        return [self.names[i] for i in self.discrete]

    @classmethod
    def fit(
        cls,
        columns: Sequence[Column],
        discrete_features: Any = "from_dtype",
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> FeatureTable:
        """Separate discrete from continuous columns and collect the states of the discrete ones.

        ``kept`` marks the rows to learn from (by default all).
        """
        names = [column.name for column in columns]
        chosen = _chosen_discrete(columns, discrete_features)
        for i, column in enumerate(columns):
            if column.kind == "discrete" and i not in chosen:
                raise ValueError(
                    f"X, column {column.name!r} holds {show(column.values[0])}, which is not a number, but "
                    f"discrete_features={discrete_features!r} leaves it out. Add it there, or drop the column."
                )
        discrete = sorted(chosen)
        states = [column_states(columns[i], kept) for i in discrete]
        observed = []
        for i, known in zip(discrete, states, strict=True):
            _refuse_identifier(columns[i], known, kept)
            codes = encode_values(columns[i].values, known, columns[i].factors)
            observed.append(np.bincount(codes if kept is None else codes[kept], minlength=len(known)) > 0)
        return cls(names, [i for i in range(len(columns)) if i not in chosen], discrete, states, observed)

    def encode(self, columns: Sequence[Column]) -> Features:
        """Convert a table with the columns of `fit` to numbers and codes; a value without rows in `fit` has code -1."""
        n = len(columns[0].values)
        continuous = np.empty((n, len(self.continuous)))
        for j, i in enumerate(self.continuous):
            if columns[i].kind != "continuous":
                raise ValueError(
                    f"X, column {self.names[i]!r} was continuous in fit and now holds {show(columns[i].values[0])}: "
                    "convert it to numbers."
                )
            continuous[:, j] = columns[i].values
        discrete = np.empty((n, len(self.discrete)), dtype=np.int64)
        for j, i in enumerate(self.discrete):
            codes = encode_values(columns[i].values, self.states[j], columns[i].factors)
            discrete[:, j] = np.where(self.observed[j][codes], codes, UNKNOWN)
        return Features(continuous, discrete)

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


def _refuse_identifier(column: Column, states: Array, kept: npt.NDArray[np.bool_] | None) -> None:
    observed = sum(observed_levels(column, kept))
    if observed == (len(column.values) if kept is None else kept.sum()) and observed > 2:
        raise ValueError(
            f"X, column {column.name!r} is discrete and has as many values as rows ({observed}; for example "
            f"{show(states[0])}): it looks like an identifier, from which nothing can be learned. Drop it, or "
            "declare it continuous if it is a number."
        )
