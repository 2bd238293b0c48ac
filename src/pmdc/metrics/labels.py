"""F-measures and the Jaccard index of predictions of binary class variables (labels)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Floats, Marks
from pmdc._support.checks import shorten
from pmdc.metrics.decisions import COMPLETE, aligned, differ, warn_nothing_known
from pmdc.metrics.reading import known_rows, mean_of_rows, weights_of_some
from pmdc.table.columns import Column, as_objects, as_plain_objects, column_states, encode_values, sort_states
from pmdc.table.rows import read_weights


def f1_micro(y_true: Any, y_pred: Any, *, sample_weight: Any = None, positive: Any = None) -> float:
    """Return the F-measure of all cells together: F = 2 TP / (2 TP + FP + FN).

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        Binary class variables. All cells are used whose true state is known.
    sample_weight : array-like of shape (n,), optional
    positive : state, or list with one state for each class variable (in the order of `y_true`), optional
        The positive state, by default the second one, as in `pmdc.decisions.FMeasure`: the second that a categorical
        type declares, otherwise the greater of the two that occur in `y_true` or `y_pred`. Of 0 and 1 (False and True)
        it is 1, even if only one of them occurs.

    Returns
    -------
    float
        Between 0 and 1, greater is better; 1 if no state is positive and none is predicted as positive. It is equal to
        scikit-learn's ``f1_score(..., average="micro", zero_division=1.0)`` of indicators.

    Examples
    --------
    >>> from pmdc.metrics import f1_micro
    >>> round(f1_micro([[1, 0], [1, 1]], [[1, 0], [0, 1]]), 3)
    0.8
    """
    labels = _Labels.of(y_true, y_pred, sample_weight, positive)
    if not labels.known.any():
        raise ValueError("y_true has no known cell in rows of positive weight: give at least one true state.")
    return float(_f_measure(*(counts.sum() for counts in labels.counts())))


def f1_macro(y_true: Any, y_pred: Any, *, sample_weight: Any = None, positive: Any = None) -> float:
    """Return the mean over class variables of their F-measures over all rows.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        Binary class variables. For each, the rows are used in which its true state is known; one without a known state
        is left out, with a warning; an error if all are.
    sample_weight, positive : as in `f1_micro`

    Returns
    -------
    float
        Between 0 and 1, greater is better. The F-measure of a class variable that is never positive and never predicted
        as positive is 1. It is equal to scikit-learn's ``f1_score(..., average="macro", zero_division=1.0)``.

    Examples
    --------
    >>> from pmdc.metrics import f1_macro
    >>> round(f1_macro([[1, 0], [1, 1]], [[1, 0], [0, 1]]), 3)
    0.833
    """
    labels = _Labels.of(y_true, y_pred, sample_weight, positive)
    some = np.asarray(labels.known.any(axis=0))
    if not some.any():
        raise ValueError("y_true has no known cell in rows of positive weight: give at least one true state.")
    for k in np.flatnonzero(~some):
        warn_nothing_known(labels.names[k], "it is left out")
    return float(_f_measure(*labels.counts())[some].mean())


def f1_samples(y_true: Any, y_pred: Any, *, sample_weight: Any = None, positive: Any = None) -> float:
    """Return the mean over rows of the F-measure of the class variables of a row.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        Binary class variables. Only rows whose true outcome is completely known are used; an error if there is none.
    sample_weight, positive : as in `f1_micro`

    Returns
    -------
    float
        Between 0 and 1, greater is better. The F-measure of a row without positive states, true or predicted, is 1. It
        is equal to scikit-learn's ``f1_score(..., average="samples", zero_division=1.0)``.

    Examples
    --------
    >>> from pmdc.metrics import f1_samples
    >>> round(f1_samples([[1, 0], [1, 1]], [[1, 0], [0, 1]]), 3)
    0.833
    """
    labels = _Labels.of(y_true, y_pred, sample_weight, positive)
    hits = (labels.true & labels.predicted).sum(axis=1)
    errors = (labels.true ^ labels.predicted).sum(axis=1)
    return labels.mean_of_complete(_f_measure(hits, errors))


def jaccard(y_true: Any, y_pred: Any, *, sample_weight: Any = None, positive: Any = None) -> float:
    """Return the mean over rows of the Jaccard index: the size of the intersection of positives over their union.

    Parameters
    ----------
    y_true, y_pred : as in `hamming_loss`
        Binary class variables. Only rows whose true outcome is completely known are used; an error if there is none.
    sample_weight, positive : as in `f1_micro`

    Returns
    -------
    float
        Between 0 and 1, greater is better. The index of a row without positive states, true or predicted, is 1. It is
        equal to scikit-learn's ``jaccard_score(..., average="samples", zero_division=1.0)``.

    Examples
    --------
    >>> from pmdc.metrics import jaccard
    >>> jaccard([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    0.75
    """
    labels = _Labels.of(y_true, y_pred, sample_weight, positive)
    return labels.mean_of_complete(
        _ratio((labels.true & labels.predicted).sum(axis=1), (labels.true | labels.predicted).sum(axis=1))
    )


def _f_measure(hits: Any, errors: Any) -> Floats:
    return _ratio(2 * hits, 2 * hits + errors)


def _ratio(part: Any, whole: Any) -> Floats:
    """Return part / whole, and 1 where the whole is zero."""
    return np.divide(part, whole, out=np.ones(np.shape(whole)), where=np.asarray(whole > 0))


class _Labels(NamedTuple):
    """Which states are positive in the rows of positive weight; arrays of shape (n, K)."""

    names: list[Any]
    true: Marks
    predicted: Marks
    known: Marks
    weights: Floats

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, sample_weight: Any, positive: Any) -> _Labels:
        names, true, pred = aligned(y_true, y_pred)
        weights = read_weights(sample_weight, len(true[0].values))
        kept = weights > 0
        several = isinstance(positive, (list, np.ndarray))
        if several and len(positive) != len(names):
            raise ValueError(
                f"positive={positive!r} must be one state, or one for each of the {len(names)} class variables."
            )
        each = list(positive) if several else [positive] * len(names)
        for columns in zip(true, pred, names, strict=True):
            differ(*columns)  # for its warning about strings against numbers
        known = np.column_stack([known_rows(column) & kept for column in true])
        pairs = zip(true, pred, known.T, names, each, strict=True)
        marks = [_positive_cells(*pair[:3], kept, *pair[3:]) for pair in pairs]
        marked, predicted = (np.column_stack(columns) for columns in zip(*marks, strict=True))
        return cls(names, marked[kept], predicted[kept], known[kept], weights[kept])

    def counts(self) -> tuple[Floats, Floats]:
        """Return the weights of true positives, and of errors, of each class variable."""
        weights = self.weights[:, None] * self.known
        hits, errors = self.true & self.predicted, self.true ^ self.predicted
        return (weights * hits).sum(axis=0), (weights * errors).sum(axis=0)

    def mean_of_complete(self, values: Floats) -> float:
        complete = np.asarray(self.known.all(axis=1))
        weights = weights_of_some(complete, self.weights, COMPLETE)
        return float(mean_of_rows(values[complete], weights[complete]))


def _positive_cells(
    true: Column, pred: Column, known: Marks, kept: Marks, name: Any, positive: Any
) -> tuple[Marks, Marks]:
    """Return in which rows the true and the predicted state is positive; a missing one is not."""
    marked = np.zeros(len(known), dtype=bool)
    if not known.any():
        return marked, marked
    state = _positive_state(_two_states(true, pred, known, kept, name, positive), name, positive)
    marked[known] = encode_values(true.values[known], as_objects([state])) == 0
    return marked, encode_values(pred.values, as_objects([state])) == 0


def _two_states(true: Column, pred: Column, known: Marks, kept: Marks, name: Any, positive: Any) -> list[Any]:
    """Return the states of a binary class variable, one or two."""
    observed = {*as_plain_objects(true.values[known]).tolist(), *as_plain_objects(pred.values[kept]).tolist()}
    declared = [column_states(column).tolist() for column in (true, pred) if column.declared is not None]
    states = next((own for own in declared if observed <= set(own)), sort_states(list(observed)))
    if set(states) <= {0, 1}:
        states = [0, 1]
    if len(states) == 1 and positive is not None and positive not in states:
        states = [*states, positive]
    if len(states) > 2:
        raise ValueError(
            f"y_true and y_pred, class variable {name!r}: an F-measure or a Jaccard index needs two states, and there "
            f"are {len(states)} ({shorten(states)}). Use another metric, such as balanced_loss."
        )
    return states


def _positive_state(states: list[Any], name: Any, positive: Any) -> Any:
    if positive is not None:
        if states and positive not in states:
            raise ValueError(f"positive={positive!r} is not a state of {name!r}; its states are {states}.")
        return positive
    if len(states) < 2:
        raise ValueError(
            f"y_true and y_pred, class variable {name!r}: only the state {states[0]!r} occurs, so it is not known "
            "which state is positive. Give positive=, or declare both states by a categorical type."
        )
    return states[1]
