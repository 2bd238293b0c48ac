"""The table beside a model: rows to look at, the background of explanations, outcomes that calibrate sets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pmdc._support.arrays import Codes, Marks
from pmdc.evaluation.training_rows import is_like_training
from pmdc.explore.values import Json, States, to_json
from pmdc.table.columns import MISSING, Column, read_columns

BINS = 20
"""Bars of the picture of a column of numbers."""
_SHOWN_COLUMNS = 6
"""So many columns are shown of a row in a list."""


@dataclass
class Table:
    """A table of rows like those the model was fitted on.

    Attributes
    ----------
    X : table
    truth : array of shape (n, K) or None
        Codes of the true states; -1 for states that the model does not know, -2 for missing ones. None: none is known.
    name : str
        Where the rows come from.
    first_number : int
        The number of the first row, for people.
    columns : list of Column
    predicted : array of shape (n, K)
        Codes of the predicted states of the first `n_predicted` rows.
    """

    X: Any
    truth: Codes | None
    name: str
    first_number: int
    columns: list[Column]
    like_training: bool
    predicted: Codes
    n_predicted: int = 0
    _texts: list[str] | None = field(default=None, repr=False)
    _reading: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, model: Any, X: Any, Y: Any = None, name: str = "table", first_number: int = 0) -> Table:
        columns = read_columns(X, "X", type(model).__name__, allow_missing=True)
        model._read(_safe_indexing(X, [0]))  # refuses a table that does not fit
        n_rows = len(columns[0].values)
        truth = None if Y is None else model.class_table_.encode(Y, unknown="mark", missing="mark")
        if truth is not None and len(truth) != n_rows:
            raise ValueError(f"X has {n_rows} rows, Y has {len(truth)}: they must have the same number of rows.")
        like = truth is not None and is_like_training(model, columns, truth)
        empty = np.full((n_rows, len(model.class_table_.names)), MISSING)
        return cls(X, truth, name, first_number, columns, like, empty)

    def __len__(self) -> int:
        return len(self.predicted)

    def values(self, index: int) -> dict[str, Json]:
        """Return the values of a row."""
        return {c.name: None if c.missing[index] else to_json(c.values[index]) for c in self.columns}

    def complete(self) -> Codes:
        """Return the rows of which the model knows all true states."""
        return np.empty(0, dtype=int) if self.truth is None else np.flatnonzero((self.truth >= 0).all(axis=1))

    def distribution(self, name: str, kind: str, known: States | None) -> dict[str, Any] | None:
        """Return how the values of a column are distributed, for the editor of a row."""
        column = next(own for own in self.columns if own.name == name)
        present = ~column.missing
        found: dict[str, Any] = {"n": len(self), "missing": int(len(self) - present.sum())}
        values = column.values[present]
        if kind == "ignored":
            return None
        if kind == "category":
            assert known is not None
            codes = np.array([known.code(to_json(value)) for value in values.tolist()], dtype=np.int64)
            return found | {"counts": np.bincount(codes[codes >= 0], minlength=len(known.listed)).tolist()}
        if not len(values):
            return found | {"min": None, "max": None, "whole": False, "counts": [0] * BINS}
        low, high = values.min(), values.max()
        if kind == "number":
            values = values.astype(float)
            whole = bool((values == np.round(values)).all())
        else:
            values, whole = values.astype("i8").astype(float), False
        place = np.zeros(len(values)) if low == high else (values - values.min()) / (values.max() - values.min())
        counts = np.bincount(np.minimum((place * BINS).astype(int), BINS - 1), minlength=BINS)
        return found | {"min": to_json(low), "max": to_json(high), "whole": whole, "counts": counts.tolist()}

    # The list of rows -----------------------------------------------------------------------------------------

    def text(self, index: int) -> str:
        """Return the first values of a row, for a list."""
        shown = [f"{c.name} {_short(c, index)}" for c in self.columns[:_SHOWN_COLUMNS]]
        return " · ".join(shown) + (" · ..." if len(self.columns) > _SHOWN_COLUMNS else "")

    def true_states(self, index: int, states: Sequence[States]) -> dict[str, Json] | None:
        return None if self.truth is None else self.by_name(self.truth[index], states)

    def by_name(self, codes: Codes, states: Sequence[States]) -> dict[str, Json]:
        """Return states by name; null where they are missing or not known to the model."""
        both = zip(states, codes.tolist(), strict=True)
        return {own.name: own.listed[code] if code >= 0 else None for own, code in both}

    def wrong(self) -> Marks:
        """Return which true states are known and not predicted, shape (n_predicted, K)."""
        n = self.n_predicted
        if self.truth is None:
            return np.zeros((n, self.predicted.shape[1]), dtype=bool)
        return (self.truth[:n] != MISSING) & (self.truth[:n] != self.predicted[:n])

    def has_truth(self) -> Marks:
        """Return which rows have true states."""
        return np.zeros(len(self), dtype=bool) if self.truth is None else (self.truth != MISSING).any(axis=1)

    def search(self, text: str, states: Sequence[States]) -> Marks:
        """Return which rows have all words of a text among their values, true states or as their number."""
        with self._reading:
            if self._texts is None:
                self._texts = [self._words(i, states) for i in range(len(self))]
        words = text.lower().split()
        return np.fromiter((all(word in own for word in words) for own in self._texts), dtype=bool, count=len(self))

    def _words(self, index: int, states: Sequence[States]) -> str:
        words = [str(index + self.first_number), *(f"{c.name} {_short(c, index)}" for c in self.columns)]
        words += [f"{name} {state}" for name, state in (self.true_states(index, states) or {}).items()]
        return "\n".join(words).lower()


def _short(column: Column, index: int) -> str:
    if column.missing[index]:
        return "missing"
    value = to_json(column.values[index])
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def predict_all(table: Table, predict: Callable[[slice], Codes], step: int) -> None:
    """Predict the rows of a table, some at a time, so that other questions are answered meanwhile."""
    for start in range(0, len(table), step):
        rows = slice(start, min(start + step, len(table)))
        table.predicted[rows] = predict(rows)
        table.n_predicted = rows.stop
