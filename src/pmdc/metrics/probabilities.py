"""Losses of probabilities: of the marginals of the class variables, and of their joint distribution.

Logarithms are natural. A state in `y_true` that the model does not know has probability zero. Missing cells of `y_true`
are ignored, by the rule that each function states.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_count
from pmdc.inference.base import BaseDistribution
from pmdc.metrics.decisions import COMPLETE, differ, warn_nothing_known
from pmdc.metrics.reading import (
    in_order_of_fit,
    known_rows,
    mean_of_cells,
    mean_of_some_rows,
    read_outcomes,
    weights_of_some,
)
from pmdc.table.columns import MISSING, UNKNOWN, Column, as_objects, encode_values, show

ANY_KNOWN = "with a known cell"
"""The rows that metrics of single cells use, for messages."""

_TOLERANCE = 1e-4
"""Largest allowed error of the sum of probabilities: classifiers may compute in single precision."""


# Marginals ----------------------------------------------------------------------------------------------------


def marginal_log_loss(y_true: Any, proba: Any, classes: Any, *, sample_weight: Any = None) -> float:
    """Return the mean of -log P(y_k | x) over rows and class variables.

    With n rows (of weight one) and K class variables, ``-1/(nK) Σ_i Σ_k log P(y_ik | x_i)``. For class variables that
    are independent given x, K times this is the joint log-loss.

    Parameters
    ----------
    y_true : DataFrame, 2-D array, list of rows, or 1-D for a single class variable
        The true states, with columns in the order of `proba`. Missing cells (None, NaN) are ignored: the result is the
        weighted mean over all known cells.
    proba : list of K arrays of shape (n, n_states), or one array for a single class variable
        As returned by `predict_proba`.
    classes : list of K sequences of states, or one for a single class variable
        The states of the columns of `proba`, as in ``classes_``.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Infinite if a true state has probability zero, with a warning if the model does not know the state.

    Examples
    --------
    >>> from pmdc.metrics import marginal_log_loss
    >>> round(marginal_log_loss(["no", "yes"], [[0.5, 0.5], [0.75, 0.25]], ["no", "yes"]), 4)  # 1.5 log 2
    1.0397
    """
    marginals = _read_marginals(y_true, proba, classes)
    for k, marginal in enumerate(marginals):
        _warn_unknown(marginal, k)
    with np.errstate(divide="ignore"):
        losses = np.column_stack([-np.log(marginal.of_truth()) for marginal in marginals])
    return mean_of_cells(losses, _known(marginals), sample_weight)


def brier_score(y_true: Any, proba: Any, classes: Any, *, sample_weight: Any = None) -> float:
    """Return the squared error of the probabilities, summed over states (Brier, 1950).

    With n rows (of weight one) and K class variables, ``1/(nK) Σ_i Σ_k Σ_s (P(Y_k = s | x_i) - [y_ik = s])²``, the sum
    over all states of the class variable, including a state in `y_true` that the model does not know.

    Parameters
    ----------
    y_true, proba, classes : as in `marginal_log_loss`
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 2, smaller is better. (For two states some authors halve it; this function does not.)

    Examples
    --------
    >>> from pmdc.metrics import brier_score
    >>> brier_score(["no", "yes"], [[0.5, 0.5], [0.75, 0.25]], ["no", "yes"])
    0.8125
    """
    marginals = _read_marginals(y_true, proba, classes)
    losses = [
        ((proba - (codes[:, None] == np.arange(proba.shape[1]))) ** 2).sum(axis=1) + (codes == UNKNOWN)
        for _, proba, codes in marginals
    ]
    return mean_of_cells(np.column_stack(losses), _known(marginals), sample_weight)


def expected_calibration_error(
    y_true: Any, proba: Any, classes: Any, *, n_bins: int = 10, sample_weight: Any = None
) -> float:
    """Return the mean difference between confidence and accuracy (Naeini, Cooper and Hauskrecht, 2015).

    For each class variable the prediction is its most probable state, and the confidence is the probability of this
    state. Rows are binned by confidence into ``((b-1)/B, b/B]``, and the error is ``Σ_b w_b |acc_b - conf_b|``: w_b is
    the share of the rows in the bin, acc_b the share of right predictions among them, conf_b their mean confidence (as
    in Guo, Pleiss, Sun and Weinberger, 2017). The result is the mean over class variables. The rows of a class variable
    are those in which its true state is known; a class variable without such rows is left out, with a warning.

    Parameters
    ----------
    y_true, proba, classes : as in `marginal_log_loss`
    n_bins : int, default=10
        The number of bins, B.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1. It depends on the number of bins and is biased upwards if bins contain few rows.

    See Also
    --------
    joint_calibration_error : The same for whole outcomes.

    Examples
    --------


    >>> from pmdc.metrics import expected_calibration_error
    >>> expected_calibration_error(["no", "yes"], [[1.0, 0.0], [1.0, 0.0]], ["no", "yes"])
    0.5
    """
    check_count("n_bins", n_bins, 1)
    marginals = _read_marginals(y_true, proba, classes)
    weights = weights_of_some(_any_known(marginals), sample_weight, ANY_KNOWN)
    errors = []
    for column, proba, codes in marginals:
        known = codes != MISSING
        if not weights[known].any():
            warn_nothing_known(column.name, "the calibration error is the mean of the others")
            continue
        proba, codes = proba[known], codes[known]
        right = proba.argmax(axis=1) == codes
        errors.append(binned_calibration_error(proba.max(axis=1), right, n_bins, weights[known]))
    return float(np.mean(errors))


class Reliability(NamedTuple):
    """Confidence and accuracy of predicted states in bins of confidence, returned by `reliability`."""

    weight: Floats
    """The share of predictions in each bin."""
    confidence: Floats
    """Their mean confidence; 0 in an empty bin."""
    accuracy: Floats
    """Their share of right predictions; 0 in an empty bin."""


def reliability(y_true: Any, proba: Any, classes: Any, *, n_bins: int = 10, sample_weight: Any = None) -> Reliability:
    """Return the bins of a calibration plot: predicted states of all class variables, binned by confidence.

    Predictions whose true state is missing are left out.

    Parameters
    ----------
    y_true, proba, classes : as in `marginal_log_loss`
    n_bins : int, default=10
        The number of bins, as in `expected_calibration_error`.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    Reliability

    Examples
    --------
    >>> from pmdc.metrics import reliability
    >>> reliability(["no", "yes"], [[1.0, 0.0], [0.8, 0.2]], ["no", "yes"], n_bins=2).accuracy
    array([0. , 0.5])
    """
    check_count("n_bins", n_bins, 1)
    marginals = _read_marginals(y_true, proba, classes)
    weights = np.tile(weights_of_some(_any_known(marginals), sample_weight, ANY_KNOWN), len(marginals))
    confidence = np.concatenate([proba.max(axis=1) for _, proba, _ in marginals])
    right = np.concatenate([proba.argmax(axis=1) == codes for _, proba, codes in marginals])
    known = _known(marginals).ravel(order="F")
    weights, confidence, right = weights[known], confidence[known], right[known]
    places = _bins(confidence, n_bins)
    total, confident, accurate = (
        np.bincount(places, weights * values, minlength=n_bins)
        for values in (np.ones_like(confidence), confidence, right)
    )
    filled = np.where(total > 0, total, 1.0)
    return Reliability(total / total.sum(), confident / filled, accurate / filled)


def effective_rows(
    proba: Sequence[Floats], n_bins: int, weights: Floats, known: npt.NDArray[np.bool_] | None = None
) -> Floats:
    """Return how many equally weighted rows the predictions in each bin of `reliability` are worth, for intervals.

    The predictions of one row count as one, because they may be right or wrong together. So it is (Σ w)² / Σ w²
    (Kish), where w is the weight of all predictions of a row in the bin whose true state is known, shape (n, K).
    """
    of_rows = np.zeros((len(weights), n_bins))
    for k, each in enumerate(proba):
        counted = weights if known is None else weights * known[:, k]
        of_rows[np.arange(len(weights)), _bins(each.max(axis=1), n_bins)] += counted
    squares = (of_rows**2).sum(axis=0)
    return of_rows.sum(axis=0) ** 2 / np.where(squares > 0, squares, 1.0)


# Joint distribution -------------------------------------------------------------------------------------------


def joint_log_loss(y_true: Any, distribution: BaseDistribution, *, sample_weight: Any = None) -> float:
    """Return the mean of -log P(y | x) over rows, of whole outcomes y.

    With n rows (of weight one), ``-1/n Σ_i log P(y_i | x_i)``. It grows with the number of class variables: it is a
    sum over them, not a mean.

    Parameters
    ----------
    y_true : DataFrame, 2-D array, list of rows, or 1-D for a single class variable
        The true outcomes. The columns of a DataFrame are matched by name if the model was fitted to one. In a row with
        missing cells, P is the probability of its known cells, the others summed out; a row without a known cell is
        ignored.
    distribution : distribution of the outcomes in each row
        As returned by `predict_joint`.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Infinite if a true outcome has probability zero, with a warning if the model does not know a state.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.metrics import joint_log_loss
    >>> data = make_network(300, random_state=0)
    >>> model = GBNC(experts=None).fit(data.X[:200], data.Y[:200])
    >>> round(joint_log_loss(data.Y[200:], model.predict_joint(data.X[200:])), 3)
    2.826
    """
    _check_distribution(distribution)
    log_prob = distribution.log_prob(y_true)
    known = (distribution.class_table.encode(y_true, unknown="mark", missing="mark") != MISSING).any(axis=1)
    return mean_of_some_rows(-log_prob, known, sample_weight, ANY_KNOWN)


def joint_calibration_error(
    y_true: Any,
    distribution: BaseDistribution,
    *,
    y_pred: Any = None,
    n_bins: int = 10,
    sample_weight: Any = None,
) -> float:
    """Return the expected calibration error of predicted outcomes.

    Like `expected_calibration_error`, but for whole outcomes: the confidence is the joint probability of the predicted
    outcome, which is right if all its class variables are right.

    Parameters
    ----------
    y_true, distribution : as in `joint_log_loss`
        Only rows whose true outcome is completely known are used; an error if there is none.
    y_pred : as y_true, optional
        The predicted outcomes; the most probable ones by default.
    n_bins : int, default=10
        The number of bins.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.metrics import joint_calibration_error
    >>> data = make_network(300, random_state=0)
    >>> model = GBNC(experts=None).fit(data.X[:200], data.Y[:200])
    >>> round(joint_calibration_error(data.Y[200:], model.predict_joint(data.X[200:])), 3)
    0.074
    """
    _check_distribution(distribution)
    check_count("n_bins", n_bins, 1)
    table = distribution.class_table
    truth = table.encode(y_true, unknown="mark", missing="mark")
    if len(truth) != len(distribution):
        raise ValueError(f"y_true has {len(truth)} row(s), but the distribution has {len(distribution)}.")
    if y_pred is None:
        predicted, log_prob = distribution.mode_codes()
        wrong = predicted != truth
    else:  # compared by value: two states that the model does not know have the same code
        log_prob = distribution.log_prob(y_pred)
        columns = [
            read_outcomes(in_order_of_fit(table, y, argument), argument, allow_missing=argument == "y_true")
            for y, argument in ((y_true, "y_true"), (y_pred, "y_pred"))
        ]
        wrong = np.column_stack([differ(*pair) for pair in zip(*columns, table.names, strict=True)])
    complete = (truth != MISSING).all(axis=1)
    weights = weights_of_some(complete, sample_weight, COMPLETE)
    right = ~wrong.any(axis=1)
    return binned_calibration_error(np.exp(log_prob[complete]), right[complete], n_bins, weights[complete])


# Helpers ------------------------------------------------------------------------------------------------------


class _Marginal(NamedTuple):
    """Probabilities of the states of a class variable, and its true states."""

    column: Column
    proba: Floats
    codes: Codes

    def of_truth(self) -> Floats:
        """Return the probability of the true state in each row; one where it is missing."""
        found = self.proba[np.arange(len(self.codes)), np.maximum(self.codes, 0)]
        return np.where(self.codes == UNKNOWN, 0.0, np.where(self.codes == MISSING, 1.0, found))


def _known(marginals: Sequence[_Marginal]) -> npt.NDArray[np.bool_]:
    """Return which true states are known, shape (n, K)."""
    return np.column_stack([marginal.codes != MISSING for marginal in marginals])


def _any_known(marginals: Sequence[_Marginal]) -> npt.NDArray[np.bool_]:
    """Return in which rows some true state is known."""
    return np.asarray(_known(marginals).any(axis=1))


def _read_marginals(y_true: Any, proba: Any, classes: Any) -> list[_Marginal]:
    columns = read_outcomes(y_true, "y_true", allow_missing=True)
    if not _is_list_of_arrays(proba):
        if len(columns) > 1:
            raise ValueError(
                f"proba is one array, but y_true has {len(columns)} class variables: give a list with one array of "
                "shape (n_rows, n_states) for each, as returned by predict_proba of GBNC or MultiOutputClassifier."
            )
        proba, classes = [proba], [classes]
    for name, given in (("proba", proba), ("classes", classes)):
        if len(given) != len(columns):
            raise ValueError(
                f"{name} is a list of {len(given)}, but y_true has {len(columns)} class variable(s): give one for each."
            )
    marginals = []
    for k, (column, given, known) in enumerate(zip(columns, proba, classes, strict=True)):
        states = as_objects(list(known))
        checked = _check_proba(given, (len(column.values), len(states)), f"proba[{k}]")
        codes = np.where(known_rows(column), encode_values(column.values, states), MISSING)
        marginals.append(_Marginal(column, checked, codes))
    return marginals


def _is_list_of_arrays(proba: Any) -> bool:
    """Tell a list with one table per class variable from a single table (which may be a list of rows)."""
    if isinstance(proba, (list, tuple)):
        return all(np.ndim(item) == 2 for item in proba)
    return np.ndim(proba) == 3


def _check_proba(proba: Any, shape: tuple[int, int], argument: str) -> Floats:
    try:
        array = np.asarray(proba, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{argument} must be an array of probabilities, as returned by predict_proba.") from None
    if array.shape != shape:
        raise ValueError(
            f"{argument} has shape {array.shape}; it must be {shape}, because y_true has {shape[0]} row(s) and classes "
            f"has {shape[1]} state(s)."
        )
    total = array.sum(axis=1)
    bad = ~((np.abs(total - 1) <= _TOLERANCE) & (array >= -_TOLERANCE).all(axis=1))  # NaN is bad too
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{argument}, row {row} is {array[row].tolist()}: probabilities must be non-negative and add up to one."
        )
    return np.clip(array, 0.0, 1.0)


def _warn_unknown(marginal: _Marginal, k: int) -> None:
    unknown = marginal.codes == UNKNOWN
    if unknown.any():
        states = list(dict.fromkeys(marginal.column.values[unknown].tolist()))
        shown = ", ".join(show(state) for state in states[:5]) + (", ..." if len(states) > 5 else "")
        warnings.warn(
            f"y_true, class variable {marginal.column.name!r}: {unknown.sum()} row(s) hold a state that is not in "
            f"classes[{k}] ({shown}); their probability is zero. Declare all states by a categorical dtype in fit.",
            UserWarning,
            stacklevel=3,
        )


def _bins(confidence: Floats, n_bins: int) -> Codes:
    """Return the bin of each confidence: ``((b-1)/B, b/B]``; 0 is in the first."""
    return np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], confidence)


def binned_calibration_error(confidence: Floats, right: npt.NDArray[np.bool_], n_bins: int, weights: Floats) -> float:
    excess = np.bincount(_bins(confidence, n_bins), weights * (right - confidence))
    return float(np.abs(excess).sum() / weights.sum())  # the mean excess of a bin is w_b (acc_b - conf_b)


def _check_distribution(distribution: Any) -> None:
    if not isinstance(distribution, BaseDistribution):
        raise TypeError(
            f"distribution is of type {type(distribution).__name__}: give the result of predict_joint. For the "
            "marginals of predict_proba use marginal_log_loss or expected_calibration_error."
        )
