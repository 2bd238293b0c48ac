"""The folds of cross-validation: from `cv` as users give it to training rows and held-out rows."""

from __future__ import annotations

import reprlib
import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from pmdc._support.arrays import Codes
from pmdc.model_selection import MultiStratifiedKFold
from pmdc.table.rows import TrainingRows


@dataclass(frozen=True)
class Folds:
    """The folds of the training rows.

    Attributes
    ----------
    pairs : list of (training rows, held-out rows)
        Every row is held out once; a fold may have no training rows, which says nothing of those it holds out.
    fold : array of shape (n,) or None
        The fold that holds each row out, where each fold trains on all rows that it does not hold out.
    """

    pairs: list[tuple[Codes, Codes]]
    fold: Codes | None


def read_folds(cv: Any, rows: TrainingRows) -> Folds:
    """Read folds, the same for every family; copies of a row are in the same fold.

    Parameters
    ----------
    cv : int, splitter or iterable of (training rows, test rows)
        A number takes folds in which all class variables have about the same shares of states. A splitter is shown the
        class variables of the rows of positive weight. An iterable has rows of the whole table.
    rows : TrainingRows
    """
    kept, first = np.unique(rows.origin, return_index=True)
    listed = not isinstance(cv, Integral) and not hasattr(cv, "split")
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
        raise ValueError(f"{name} {what}: every row must be in one test fold.")
    found = [tuple(np.flatnonzero(np.isin(rows.origin, part)) for part in pair) for pair in pairs]
    folds = [(train, test) for train, test in found if len(test)]
    if any(len(train) + len(test) < len(rows) for train, test in folds):
        return Folds(folds, None)
    fold = np.empty(len(rows), dtype=np.int64)
    for number, (_, test) in enumerate(folds):
        fold[test] = number
    return Folds(folds, fold)


def _split(cv: Any, codes: Codes, name: str) -> list[Any]:
    """The folds as they are given."""
    if isinstance(cv, Integral):
        if len(codes) == 1:
            return [([], [0])]
        cv = MultiStratifiedKFold(min(int(cv), len(codes)), shuffle=True, random_state=0)
    try:
        with warnings.catch_warnings():  # states with fewer rows than folds are what back-off is for
            warnings.simplefilter("ignore", UserWarning)
            pairs = list(cv.split(codes, codes) if hasattr(cv, "split") else cv)
    except Exception as error:
        raise ValueError(
            f"{name} gave no folds of the {len(codes)} rows ({type(error).__name__}: {error}). Give a number of "
            "folds, a pmdc.model_selection.MultiStratifiedKFold or a list of (train, test) rows."
        ) from error
    if not pairs:
        raise ValueError(f"{name} has no folds: give a list of (train, test) rows; a generator is read only once.")
    return pairs


def _read_fold(pair: Any, n_rows: int, name: str) -> tuple[Codes, Codes]:
    """The training rows and the test rows of a fold, as numbers."""
    try:
        train, test = pair
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {reprlib.repr(pair)}: it must be a pair of (train, test) rows.") from None
    train, test = _read_rows(train, n_rows, name), _read_rows(test, n_rows, name)
    both = np.intersect1d(train, test)
    if len(both):
        raise ValueError(f"{name} trains on row {both[0]}, which it holds out: take it out of the training rows.")
    return train, test


def _read_rows(given: Any, n_rows: int, name: str) -> Codes:
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer):
        raise ValueError(
            f"{name} has rows of type {rows.dtype} and shape {rows.shape}: give the numbers of rows, from 0 to "
            f"{n_rows - 1}, or {n_rows} booleans."
        )
    outside = (rows < 0) | (rows >= n_rows)
    if outside.any():
        raise ValueError(
            f"{name} has row {rows[outside][0]}, but there are {n_rows} rows: give numbers from 0 to {n_rows - 1}."
        )
    return rows.astype(np.int64)
