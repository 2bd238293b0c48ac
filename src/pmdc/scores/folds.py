"""The folds of cross-validation: from `cv` as users give it to training rows and held-out rows."""

from __future__ import annotations

import reprlib
import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.learners.validation import are_counts, deal
from pmdc.table.rows import TrainingRows


@dataclass(frozen=True)
class Folds:
    """The folds of the training rows.

    Attributes
    ----------
    rows : array of shape (n,)
        Indices of training rows. A row of weight 3 may be in three folds, with a third of its weight in each.
    share : array of shape (n,)
        The share of the row's weight.
    origin : array of shape (n,)
        Rows with the same number are copies of one row of the table: standard errors count them once.
    pairs : list of (training rows, held-out rows)
        Positions in `rows`. Every row is held out once; a fold may have no training rows.
    fold : array of shape (n,) or None
        The fold that holds each row out, if every fold trains on all other rows.
    """

    rows: Codes
    share: Floats
    origin: Codes
    pairs: list[tuple[Codes, Codes]]
    fold: Codes | None

    def of(self, index: Codes | None) -> Folds:
        """Return the folds of some of these rows, all with whole weights; None is all rows."""
        if index is None:
            return self
        pairs = []
        for pair in self.pairs:
            marks = np.zeros((2, len(self.rows)), dtype=bool)
            marks[0, pair[0]], marks[1, pair[1]] = True, True
            pairs.append((np.flatnonzero(marks[0, index]), np.flatnonzero(marks[1, index])))
        fold = None if self.fold is None else self.fold[index]
        return Folds(self.rows[index], self.share[index], self.origin[index], pairs, fold)


def read_folds(cv: Any, rows: TrainingRows, whole_rows: bool = False) -> Folds:
    """Read the folds, which are the same for every family; copies of a row are in the same fold.

    Parameters
    ----------
    cv : int, splitter or iterable of (training rows, test rows)
        A number deals the rows by their contents (`pmdc.learners.validation.deal`). A splitter gets the class variables
        of the rows of positive weight; an iterable has positions in the whole table.
    rows : TrainingRows
    whole_rows : bool
        Whether a number deals each row into one fold, whatever its weight; otherwise a row of weight 3 is dealt as
        three rows, if all weights are whole numbers.
    """
    return _deal(int(cv), rows, whole_rows) if isinstance(cv, Integral) else _read_given(cv, rows)


def _deal(n_folds: int, rows: TrainingRows, whole_rows: bool) -> Folds:
    _, first, owner, n_copies = np.unique(rows.origin, return_index=True, return_inverse=True, return_counts=True)
    inputs = np.hstack([rows.features.continuous, rows.features.discrete])[first]
    weights = np.bincount(owner, rows.weights).astype(float)
    if whole_rows or not are_counts(weights):
        weights = np.ones(len(first))
    dealt = deal(inputs, rows.classes[first], weights, n_folds)
    # Each row of the table brings its copies along.
    copies = n_copies[dealt.rows]
    piece = np.repeat(np.arange(len(copies)), copies)
    place = np.arange(len(piece)) - np.repeat(np.cumsum(copies) - copies, copies)
    begin = np.cumsum(n_copies) - n_copies
    index = np.argsort(owner, kind="stable")[begin[dealt.rows[piece]] + place]
    fold = dealt.fold[piece]
    pairs = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]
    return Folds(index, dealt.share[piece], piece, pairs, fold)


def _read_given(cv: Any, rows: TrainingRows) -> Folds:
    kept, first = np.unique(rows.origin, return_index=True)
    listed = not hasattr(cv, "split")
    name = "cv" if listed else f"cv={cv!r}"  # lists of rows are long
    n_rows = rows.n_table if listed else len(kept)
    pairs = [
        _read_fold(pair, n_rows, f"{name}, fold {i}") for i, pair in enumerate(_split(cv, rows.classes[first], name))
    ]
    if not listed:
        pairs = [(kept[train], kept[test]) for train, test in pairs]
    times = np.bincount(np.concatenate([test for _, test in pairs]), minlength=rows.n_table)[kept]
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        what = f"holds row {kept[row]} out {times[row]} times" if times[row] else f"never holds row {kept[row]} out"
        raise ValueError(f"{name} {what}: every row must be in exactly one test fold.")
    found = [tuple(np.flatnonzero(np.isin(rows.origin, part)) for part in pair) for pair in pairs]
    folds = [(train, test) for train, test in found if len(test)]
    fold: Codes | None = None
    if all(len(train) + len(test) == len(rows) for train, test in folds):
        fold = np.empty(len(rows), dtype=np.int64)
        for number, (_, test) in enumerate(folds):
            fold[test] = number
    return Folds(np.arange(len(rows)), np.ones(len(rows)), rows.origin, folds, fold)


def _split(cv: Any, codes: Codes, name: str) -> list[Any]:
    """Return the folds that a splitter or an iterable gives."""
    try:
        with warnings.catch_warnings():  # states with fewer rows than folds are handled by shrinkage
            warnings.simplefilter("ignore", UserWarning)
            pairs = list(cv.split(codes, codes) if hasattr(cv, "split") else cv)
    except Exception as error:
        raise ValueError(
            f"{name} could not split the {len(codes)} rows ({type(error).__name__}: {error}). Give a number of folds, "
            "a pmdc.model_selection.MultiStratifiedKFold or a list of (train, test) rows."
        ) from error
    if not pairs:
        raise ValueError(f"{name} has no folds. Give a list of (train, test) rows; a generator can be read only once.")
    return pairs


def _read_fold(pair: Any, n_rows: int, name: str) -> tuple[Codes, Codes]:
    """Return the training rows and the test rows of a fold as integers."""
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {reprlib.repr(pair)}: it must be a pair of (train, test) rows.") from None
    train, test = _read_rows(train, n_rows, name), _read_rows(test, n_rows, name)
    both = np.intersect1d(train, test)
    if len(both):
        raise ValueError(f"{name} has row {both[0]} both in train and in test: remove it from train.")
    return train, test


def _read_rows(given: Any, n_rows: int, name: str) -> Codes:
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(
            f"{name} has rows of type {rows.dtype} and shape {rows.shape}: give row numbers from 0 to {n_rows - 1}, or "
            f"{n_rows} booleans."
        )
    outside = (rows < 0) | (rows >= n_rows)
    if outside.any():
        raise ValueError(f"{name} has row {rows[outside][0]}, but rows are numbered from 0 to {n_rows - 1}.")
    return rows.astype(np.int64)
