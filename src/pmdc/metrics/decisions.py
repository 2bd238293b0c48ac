"""Losses of predictions, from which class variables of a row are wrong."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array
from pmdc._support.checks import shorten
from pmdc._support.warn import warn_user
from pmdc.metrics.reading import frame_names, known_rows, mean_of_cells, mean_of_rows, mean_of_some_rows, read_outcomes
from pmdc.table.columns import Column, show
from pmdc.table.rows import read_weights

COMPLETE = "whose true outcome is completely known"
"""The rows that losses of whole outcomes use, for messages."""


def hamming_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of wrong class variables, over all rows.

    With n rows (of weight one) and K class variables, ``1/(nK) Σ_i Σ_k [y_ik ≠ ŷ_ik]``.

    Parameters
    ----------
    y_true, y_pred : DataFrame, 2-D array, list of rows, or 1-D for a single class variable
        The true and the predicted states. If both are DataFrames, columns are matched by name, otherwise by
        position. States are compared by value: 1, 1.0 and True are equal, "1" is not. Missing cells of `y_true`
        (None, NaN) are ignored: the loss is the weighted mean over all known cells.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pmdc.metrics import hamming_loss
    >>> hamming_loss([["low", 1], ["high", 2]], [["low", 1], ["high", 3]])
    0.25
    """
    _, wrong, known = compare(y_true, y_pred)
    return mean_of_cells(wrong, known, sample_weight)


def subset_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows with at least one wrong class variable: the subset 0/1 loss.

    With n rows (of weight one), ``1/n Σ_i [y_i ≠ ŷ_i]``, where y_i is a whole outcome. One minus this loss is known as
    exact match or subset accuracy.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        Only rows whose true outcome is completely known are used; an error if there is none.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1, and, without missing cells, not less than the Hamming loss.

    Examples
    --------
    >>> from pmdc.metrics import subset_loss
    >>> subset_loss([["low", 1], ["high", 2]], [["low", 1], ["high", 3]])
    0.5
    """
    _, wrong, known = compare(y_true, y_pred)
    return mean_of_some_rows(wrong.sum(axis=1) > 0, np.asarray(known.all(axis=1)), sample_weight, COMPLETE)


def sub_exact_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the share of rows with more than one wrong class variable.

    With n rows (of weight one), ``1/n Σ_i [Σ_k [y_ik ≠ ŷ_ik] > 1]``. One minus this loss is the sub-exact match (Jia
    and Zhang, "Multi-dimensional classification via kNN feature augmentation", 2020): it allows one mistake, and is
    always 1 for a single class variable.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        Only rows whose true outcome is completely known are used; an error if there is none.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1, and not more than the subset loss.

    Examples
    --------
    >>> from pmdc.metrics import sub_exact_loss
    >>> sub_exact_loss([["low", 1], ["high", 2]], [["high", 2], ["high", 3]])
    0.5
    """
    _, wrong, known = compare(y_true, y_pred)
    return mean_of_some_rows(wrong.sum(axis=1) > 1, np.asarray(known.all(axis=1)), sample_weight, COMPLETE)


def accuracy_by_variable(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> dict[Any, float]:
    """Return the share of rows in which each class variable is right.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    dict
        The accuracy of each class variable by name, in the order of `y_true`. Columns without names are called "y0",
        "y1", ... Each is over the rows in which the true state is known; NaN, with a warning, if there is none. Without
        missing cells, the mean of the accuracies is one minus the Hamming loss.

    Examples
    --------
    >>> from pmdc.metrics import accuracy_by_variable
    >>> accuracy_by_variable([["low", 1], ["high", 2]], [["low", 1], ["high", 3]])
    {'y0': 1.0, 'y1': 0.5}
    """
    names, wrong, known = compare(y_true, y_pred)
    if known.all():
        return dict(zip(names, mean_of_rows(~wrong, sample_weight).tolist(), strict=True))
    weights = read_weights(sample_weight, len(wrong))
    accuracy = {}
    for name, right, rows in zip(names, (~wrong).T, known.T, strict=True):
        if weights[rows].any():
            accuracy[name] = float(mean_of_rows(right[rows], weights[rows]))
        else:
            warn_nothing_known(name, "its accuracy is NaN")
            accuracy[name] = math.nan
    return accuracy


def balanced_loss(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return one minus the balanced accuracy, averaged over class variables.

    With K class variables, ``1 - 1/K Σ_k mean over states s of P(ŷ_k = s | y_k = s)``. In the Hamming loss a rare state
    hardly counts; here all states of a class variable count the same. ``predict(X, loss="balanced")`` minimises it.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        A class variable without a known state is left out, with a warning; an error if all are.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1. A constant prediction has at least 1/2, if each class variable has two states or more.

    Examples
    --------
    >>> from pmdc.metrics import balanced_loss, hamming_loss
    >>> sick, healthy = [["yes"]] * 2, [["no"]] * 8
    >>> hamming_loss(sick + healthy, [["no"]] * 10), balanced_loss(sick + healthy, [["no"]] * 10)
    (0.2, 0.5)
    """
    accuracy = _balanced_accuracy(y_true, y_pred, sample_weight, "it is left out")
    known = [value for value in accuracy.values() if not math.isnan(value)]
    if not known:
        raise ValueError("y_true has no known cell in rows of positive weight: give at least one true state.")
    return 1 - math.fsum(known) / len(known)


def balanced_accuracy_by_variable(y_true: Any, y_pred: Any, *, sample_weight: Any = None) -> dict[Any, float]:
    """Return the balanced accuracy of each class variable: the mean recall of its states.

    The recall of a state is the share of its rows in which it is predicted. The mean is over the states that occur in
    `y_true`, as in scikit-learn's `balanced_accuracy_score`.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    dict
        By name, as in `accuracy_by_variable`. NaN, with a warning, for a class variable without a known state.

    Examples
    --------
    >>> from pmdc.metrics import balanced_accuracy_by_variable
    >>> balanced_accuracy_by_variable([["a", 1], ["a", 1], ["b", 2]], [["a", 1], ["b", 1], ["b", 1]])
    {'y0': 0.75, 'y1': 0.5}
    """
    return _balanced_accuracy(y_true, y_pred, sample_weight, "its balanced accuracy is NaN")


def _balanced_accuracy(y_true: Any, y_pred: Any, sample_weight: Any, if_unknown: str) -> dict[Any, float]:
    names, true, pred = aligned(y_true, y_pred)
    weights = read_weights(sample_weight, len(true[0].values))
    accuracy = {}
    for name, column, own in zip(names, true, pred, strict=True):
        right, known = ~differ(column, own, name), known_rows(column)
        levels, codes = column.factors
        rows = np.bincount(codes[known], weights[known], len(levels))
        hits = np.bincount(codes[known], (weights * right)[known], len(levels))
        occurs = rows > 0
        if not occurs.any():
            warn_nothing_known(name, if_unknown)
        accuracy[name] = float(np.mean(hits[occurs] / rows[occurs])) if occurs.any() else math.nan
    return accuracy


def warn_nothing_known(name: Any, consequence: str) -> None:
    warn_user(
        f"y_true, class variable {name!r} has no known state in rows of positive weight: {consequence}. Give at least "
        "one state, or leave the class variable out."
    )


def compare(y_true: Any, y_pred: Any) -> tuple[list[Any], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the names of the class variables, which are wrong in each row and which are known, shape (n, K)."""
    names, true, pred = aligned(y_true, y_pred)
    wrong = np.column_stack([differ(*columns) for columns in zip(true, pred, names, strict=True)])
    return names, wrong, np.column_stack([known_rows(column) for column in true])


def aligned(y_true: Any, y_pred: Any) -> tuple[list[Any], list[Column], list[Column]]:
    """Return the names of the class variables, and their true and predicted columns in the order of `y_true`."""
    true, pred = read_outcomes(y_true, "y_true", allow_missing=True), read_outcomes(y_pred, "y_pred")
    if len(true[0].values) != len(pred[0].values):
        raise ValueError(
            f"y_true has {len(true[0].values)} row(s), y_pred has {len(pred[0].values)}: give one prediction per row."
        )
    if len(true) != len(pred):
        raise ValueError(
            f"y_true has {len(true)} class variable(s), y_pred has {len(pred)}: give a prediction for each of them."
        )
    true_names, pred_names = frame_names(y_true), frame_names(y_pred)
    if true_names is not None and pred_names is not None:
        missing = [name for name in true_names if name not in pred_names]
        if missing:
            raise ValueError(
                f"y_pred lacks the class variable {missing[0]!r} of y_true; its columns are "
                f"{shorten(pred_names)}. Rename them, or give an array to compare columns by position."
            )
        pred = [pred[pred_names.index(name)] for name in true_names]
    return true_names or pred_names or [f"y{k}" for k in range(len(true))], true, pred


def differ(true: Column, pred: Column, name: Any) -> npt.NDArray[np.bool_]:
    """Return in which rows two columns differ by value, whatever their types; a missing true state does not."""
    known = known_rows(true)
    ours, theirs = true.values[known], pred.values[known]
    wrong = np.zeros(len(known), dtype=bool)
    wrong[known] = ours.astype(object) != theirs.astype(object)
    if len(ours) and wrong[known].all() and {_kind(ours), _kind(theirs)} == {"numbers", "strings"}:
        warnings.warn(
            f"Class variable {name!r} holds {_kind(ours)} in y_true (such as {show(ours[0])}) and {_kind(theirs)} "
            f"in y_pred (such as {show(theirs[0])}), so all predictions are wrong. Convert one of them.",
            UserWarning,
            stacklevel=4,
        )
    return wrong


def _kind(values: Array) -> str:
    if values.dtype.kind in "fiub":
        return "numbers"
    return "strings" if all(isinstance(value, str) for value in values) else "others"
