"""Held-out rows: dealing rows into folds, standard errors of differences, and the choice of C."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.deadline import NEVER, Deadline
from pmdc.learners.protocols import Start

C_PATH = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
"""The values that ``C="auto"`` chooses from; about those of scikit-learn's `LogisticRegressionCV`."""

MAX_COPIES = 2**24
"""The most rows that rows of large weight are dealt as, all together."""

C_TOLERANCE = 0.5
"""Standard errors by which a stronger penalty may score below the best one and still be preferred."""


class Dealt(NamedTuple):
    """Rows dealt into folds.

    Attributes
    ----------
    rows : array of shape (m,)
        Row numbers, ascending; a row that is in several folds is listed once for each.
    fold : array of shape (m,)
    share : array of shape (m,)
        The share of the row's weight that is in this fold.
    """

    rows: Codes
    fold: Codes
    share: Floats


def deal(inputs: Floats, outcomes: Codes, sample_weight: Floats, n_folds: int, stratify: Codes | None = None) -> Dealt:
    """Deal rows at random into folds, by their contents: neither their order nor repetition changes the folds.

    A row of weight w is dealt as round(w) equal rows, at least one. The folds have equal sizes. Several class variables
    should not be balanced together: if each fold has the outcomes in the same proportions, held-out rows confirm
    whatever dependence the training rows have, noise included.

    Parameters
    ----------
    inputs : array of shape (n, d)
    outcomes : array of shape (n, K)
    sample_weight : array of shape (n,)
    n_folds : int
        At most as many folds as there are rows, counted by weight.
    stratify : array of shape (n,) or None
        The states of one class variable, which are dealt evenly.
    """
    order = np.lexsort((_random_direction(inputs), *outcomes.T))
    count = np.clip(np.round(sample_weight[order]), 1, max(1, MAX_COPIES // len(order))).astype(np.int64)
    total = int(count.sum())
    n_folds = min(n_folds, total)
    copies, place = np.repeat(np.arange(len(order)), count), np.random.RandomState(0).permutation(total)
    if stratify is not None:
        place[np.lexsort((place, stratify[order][copies]))] = np.arange(total)
    dealt = np.zeros((len(order), n_folds), dtype=np.int64)
    np.add.at(dealt, (copies, place % n_folds), 1)
    rows, fold = np.nonzero(dealt)
    share = dealt[rows, fold] / count[rows]
    ascending = np.lexsort((fold, order[rows]))
    return Dealt(order[rows][ascending], fold[ascending], share[ascending])


def _random_direction(X: Floats) -> Floats:
    """Return the rows along a random direction; equal rows get the same bits, and units do not matter."""
    Z = X / np.maximum(np.abs(X).max(axis=0, initial=0.0), np.finfo(float).tiny)
    Z = Z - Z.min(axis=0, initial=1.0)
    width = Z.max(axis=0, initial=0.0)
    direction = np.random.RandomState(0).normal(size=X.shape[1]) / np.where(width > 0, width, 1.0)
    return np.asarray((Z * direction).sum(axis=1), dtype=float)


def are_counts(weights: Floats) -> bool:
    """Return whether weights may be numbers of repetitions."""
    return bool((np.abs(weights - np.round(weights)) <= 1e-9 * weights).all())


def standard_error(differences: Floats, weights: Floats, origin: Codes) -> float:
    """Return the standard error of the weighted sum of differences that are independent between rows of the table.

    With d_i the difference in row i, the standard error of its sum over n rows is sqrt(n) times the standard deviation
    of d_i. A row of weight 3 counts as three rows; rows of the same origin count as one. Weights that are not whole
    numbers are not counts: then it is the square root of the sum of (w_i (d_i - mean))^2.
    """
    rows, which = np.unique(origin, return_inverse=True)
    if len(rows) < len(origin):
        total: Floats = np.bincount(which, weights).astype(float)
        differences, weights = np.bincount(which, weights * differences) / total, total
    n = weights.sum()
    if n <= 1.0:
        return np.inf
    mean = np.dot(weights, differences) / n
    if not are_counts(weights):
        return math.sqrt(np.dot(weights**2, (differences - mean) ** 2) * n / (n - 1.0))
    return math.sqrt(n * np.dot(weights, (differences - mean) ** 2) / (n - 1.0))


def best_C(
    held_out: Callable[[float, Start | None], tuple[Floats, Start | None]],
    weights: Floats,
    origin: Codes,
    deadline: Deadline = NEVER,
) -> tuple[float, float]:
    """Choose C by the log-likelihood of held-out rows; return this score and C.

    As in the one-standard-error rule, the strongest penalty is chosen that scores at most z = `C_TOLERANCE` standard
    errors below the best (those of the difference between the two, row by row), or at most z^2 / 2 nats. Each model
    starts from the one before; the path ends when two in a row score below the best.

    Parameters
    ----------
    held_out : function (C, start) -> log-probability of each held-out row, start for the next C
    weights, origin : arrays of shape (n,)
        As in `standard_error`.
    deadline : Deadline
        The path ends after it, too; it has at least one C.
    """
    path: list[tuple[float, float, Floats]] = []
    best, start = 0, None
    for C in C_PATH:
        rows, start = held_out(C, start)
        path.append((float(np.dot(weights, rows)), C, rows))
        if path[-1][0] > path[best][0]:
            best = len(path) - 1
        if len(path) > best + 2 or deadline.passed():
            break
    top, _, best_rows = path[best]

    def close(score: float, rows: Floats) -> bool:
        error = C_TOLERANCE * standard_error(best_rows - rows, weights, origin)
        return top - score <= max(error, C_TOLERANCE**2 / 2)

    return next((score, C) for score, C, rows in path if close(score, rows))
