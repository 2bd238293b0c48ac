"""What `fit` saw of the features, and how later tables are translated into numbers and codes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Floats
from pmdc._support.checks import shorten
from pmdc.table.columns import (
    UNKNOWN,
    Column,
    column_states,
    encode_values,
    show,
)


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
        """The continuous features alone."""
        return Features(self.continuous, self.discrete[:, :0])

    def with_discrete(self, codes: Codes) -> Features:
        """More discrete columns behind these."""
        return Features(self.continuous, np.hstack([self.discrete, codes]))


class FeatureTable:
    """What `fit` saw of the features: which are continuous, which discrete, and the states of the latter."""

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
        self.observed = observed  # which states have rows: a declared one without rows is as good as unseen

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
        """Tell discrete from continuous columns and collect the states of the discrete ones.

        ``kept`` marks the rows that count.
        """
        if kept is not None:
            columns = [replace(column, values=column.values[kept]) for column in columns]
        names = [column.name for column in columns]
        chosen = _chosen_discrete(columns, discrete_features)
        for i, column in enumerate(columns):
            if column.kind == "discrete" and i not in chosen:
                raise ValueError(
                    f"X, column {column.name!r} holds {show(column.values[0])}, which is not a number, but "
                    f"discrete_features={discrete_features!r} leaves it out. Add it there, or drop the column."
                )
        discrete = sorted(chosen)
        states = [column_states(columns[i]) for i in discrete]
        observed = []
        for i, known in zip(discrete, states, strict=True):
            _refuse_identifier(columns[i], known)
            observed.append(np.bincount(encode_values(columns[i].values, known), minlength=len(known)) > 0)
        return cls(names, [i for i in range(len(columns)) if i not in chosen], discrete, states, observed)

    def encode(self, columns: Sequence[Column]) -> Features:
        """Numbers and codes of a table with the columns of `fit`; a value without rows in `fit` has code -1."""
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
            codes = encode_values(columns[i].values, self.states[j])
            discrete[:, j] = np.where(self.observed[j][codes], codes, UNKNOWN)
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
                    f"row {unseen[0]}: {show(value)}). {answer}",
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
    if not isinstance(discrete_features, (Sequence, np.ndarray, set, frozenset)):
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
                f"discrete_features names {item!r}, which is no column of X; its columns are {shorten(list(index))}."
            )
    return chosen


def _refuse_identifier(column: Column, states: Array) -> None:
    observed = len(set(column.values.tolist()))
    if observed == len(column.values) and observed > 2:
        raise ValueError(
            f"X, column {column.name!r} is discrete and has as many values as rows ({observed}; for example "
            f"{show(states[0])}): it looks like an identifier, and nothing can be learned from it. Drop it, or "
            "declare it continuous if it is a number."
        )
