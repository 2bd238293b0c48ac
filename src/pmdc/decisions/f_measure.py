"""F-measures of binary class variables, and the predictions that maximise their expectation.

A label is a class variable in a row. With S truly positive labels and m predicted ones, F = 2 TP / (m + S). For a given
m the expectation is a sum over the predicted labels (Dembczyński, Waegeman, Cheng and Hüllermeier, "An exact algorithm
for F-measure maximization", 2011):

    E[F] = 2 sum over predicted labels c of E[Y_c / (m + S)].

So for each m the best prediction has the m labels with the greatest terms, and the best m is found by trying all. The
terms follow from the generating function of S, because 1 / (m + s) is the integral of t^(m + s - 1) from 0 to 1:

    E[Y_c / (m + S)] = integral of t^(m - 1) E[Y_c t^S] dt.

E[Y_c t^S] is a sum-product with weight t on each positive state, and a polynomial in t, so Gauss-Legendre quadrature
with N nodes is exact for N labels. If N is large, fewer nodes are exact up to rounding, because t^S is smooth.

The F-measure is 1 if no label is positive and none is predicted as positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import roots_legendre

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_choice
from pmdc.decisions.losses import Choice, Loss
from pmdc.inference.base import BaseDistribution, ClassTable

_EXHAUSTIVE_LIMIT = 4096
"""Up to this many labels, all sizes m of a micro-averaged prediction are tried."""
_MAX_TERMS = 2**27
"""Largest number of terms of a micro-averaged decision (1 GiB)."""
_BATCH_TERMS = 2**20
"""Largest number of terms held at once for other averages."""


def positive_codes(class_table: ClassTable, positive: Any, what: str) -> Codes:
    """Return the code of the positive state of each class variable: `positive`, by default the second state."""
    names, states = class_table.names, class_table.states
    for name, known in zip(names, states, strict=True):
        if len(known) != 2:
            listed = ", ".join(map(str, known[:5])) + (", ..." if len(known) > 5 else "")
            raise ValueError(
                f"{what} needs binary class variables; {name!r} has {len(known)} states ({listed}): choose another "
                "loss, such as 'hamming'."
            )
    if positive is None:
        return np.ones(len(names), dtype=np.int64)
    each = list(positive) if isinstance(positive, (list, np.ndarray)) else [positive] * len(names)
    if len(each) != len(names):
        raise ValueError(
            f"positive={positive!r} must be one state, or one for each of the {len(names)} class variables."
        )
    codes = []
    for name, known, state in zip(names, states, each, strict=True):
        if state not in known.tolist():
            raise ValueError(f"positive={state!r} is not a state of {name!r}; its states are {known.tolist()}.")
        codes.append(known.tolist().index(state))
    return np.array(codes)


class FMeasure(Loss):
    """One minus an F-measure of binary class variables.

    Parameters
    ----------
    average : {"samples", "macro", "micro"}
        "samples" is the F-measure of each row over its class variables. "macro" is the mean over class variables of the
        F-measure over all rows of the batch, "micro" the F-measure over all labels (a label is a class variable in a
        row): for these two, the rows are decided together, and the expected loss is that of the batch.
    positive : state, or list with one state for each class variable, optional
        The positive state; by default the second, ``classes_[k][1]``.

    Notes
    -----
    "samples" and "macro" are exact. "micro" is exact up to 4,096 labels (rows times class variables). Above, the number
    of positive predictions is searched from a coarse grid to a fine one, and `proved` is False. Above about 50,000
    labels it raises ValueError: decide in smaller batches.

    Examples
    --------
    >>> from pmdc.decisions import FMeasure
    >>> FMeasure("macro")
    FMeasure(average='macro', positive=None)
    """

    def __init__(self, average: str = "samples", positive: Any = None):
        self.average = average
        self.positive = positive

    @property
    def whole_batch(self) -> bool:
        return self.average != "samples"

    def check(self, class_table: ClassTable) -> None:
        check_choice("average", self.average, ("samples", "macro", "micro"))
        positive_codes(class_table, self.positive, "An F-measure")

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        positive = positive_codes(distribution.class_table, self.positive, "An F-measure")
        if not len(distribution):
            return Choice.exact(np.empty((0, len(positive)), dtype=np.int64), np.empty(0))
        decide = {"samples": _by_row, "macro": _by_variable, "micro": _by_label}[self.average]
        predicted, expected, proved = decide(distribution, positive)
        codes = np.where(predicted, positive, 1 - positive)
        n_rows = len(distribution)
        return Choice(codes, np.clip(1 - expected, 0.0, 1.0), np.zeros(n_rows), np.full(n_rows, proved))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        """Return one minus the F-measure of each row."""
        positive = positive_codes(distribution.class_table, self.positive, "An F-measure")
        hits = ((true == positive) & (predicted == positive)).sum(axis=1)
        labels = (true == positive).sum(axis=1) + (predicted == positive).sum(axis=1)
        return 1 - np.divide(2.0 * hits, labels, out=np.ones(len(labels)), where=labels > 0)

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        """Return one minus the expected F-measure of each row, by the formula at the top of this module."""
        positive = positive_codes(distribution.class_table, self.positive, "An F-measure")
        chosen = predicted == positive
        size, value = chosen.sum(axis=1), np.zeros(len(distribution))
        for t, weight in zip(*quadrature(len(positive)), strict=True):
            log_total, shares = _generating(distribution, positive, t)
            value += 2 * weight * np.exp(log_total + (size - 1) * np.log(t)) * (shares * chosen).sum(axis=1)
        return 1 - np.where(size > 0, value, np.exp(log_prob_none(distribution, positive)))


def quadrature(n_labels: int) -> tuple[Floats, Floats]:
    """Return nodes and weights on (0, 1), enough for the quadrature to be exact up to rounding."""
    count = min(n_labels, 64 + 8 * int(np.sqrt(2 * n_labels)))
    nodes, weights = roots_legendre(max(count, 1))
    return (nodes + 1) / 2, weights / 2


def _generating(distribution: BaseDistribution, positive: Codes, t: float) -> tuple[Floats, Floats]:
    """Return log E[t^S] of each row, S its number of positive states, and E[Y_k t^S] / E[t^S] of class variables."""
    weights = [np.where(np.arange(2) == code, t, 1.0) for code in positive]
    log_total, marginals = distribution.tilted(weights)
    shares = np.column_stack([marginal[:, code] for marginal, code in zip(marginals, positive, strict=True)])
    return log_total, shares


def log_prob_none(distribution: BaseDistribution, positive: Codes) -> Floats:
    """Return the log probability that no state of a row is positive."""
    return distribution.log_prob_codes(np.tile(1 - positive, (len(distribution), 1)))


def _by_row(distribution: BaseDistribution, positive: Codes) -> tuple[Any, Floats, bool]:
    """Decide row by row, in batches that fit into memory."""
    step = max(1, _BATCH_TERMS // len(positive) ** 2)
    batches = [
        _rows_of_batch(distribution.rows(slice(start, start + step)), positive)
        for start in range(0, len(distribution), step)
    ]
    return np.concatenate([batch[0] for batch in batches]), np.concatenate([batch[1] for batch in batches]), True


def _rows_of_batch(distribution: BaseDistribution, positive: Codes) -> tuple[Any, Floats]:
    n_rows, n_variables = len(distribution), len(positive)
    sizes = np.arange(1, n_variables + 1)
    terms = np.zeros((n_variables, n_rows, n_variables))  # size of the prediction, row, class variable
    for t, weight in zip(*quadrature(n_variables), strict=True):
        log_total, shares = _generating(distribution, positive, t)
        terms += weight * np.exp(log_total + (sizes[:, None] - 1) * np.log(t))[:, :, None] * shares
    order = np.argsort(-terms, axis=2, kind="stable")
    best_first = np.take_along_axis(terms, order, axis=2)
    values = 2 * np.cumsum(best_first, axis=2)[sizes - 1, :, sizes - 1]
    values = np.vstack([np.exp(log_prob_none(distribution, positive)), values])
    size = values.argmax(axis=0)
    predicted = np.zeros((n_rows, n_variables), dtype=bool)
    for row in np.flatnonzero(size):
        predicted[row, order[size[row] - 1, row, : size[row]]] = True
    return predicted, values.max(axis=0)


def _by_variable(distribution: BaseDistribution, positive: Codes) -> tuple[Any, Floats, bool]:
    """Decide for each class variable: rows are independent, so more probable labels have greater terms."""
    n_rows = len(distribution)
    predicted = np.zeros((n_rows, len(positive)), dtype=bool)
    total = 0.0
    nodes, weights = quadrature(n_rows)
    for k, marginal in enumerate(distribution.marginals()):
        p = marginal[:, positive[k]]
        order = np.argsort(-p, kind="stable")
        values = np.zeros(n_rows + 1)
        with np.errstate(divide="ignore"):
            values[0] = np.exp(np.log1p(-p).sum())
        sizes = np.arange(1, n_rows + 1)
        for t, weight in zip(nodes, weights, strict=True):
            each = 1 - p[order] * (1 - t)  # E[t^Y] of each row
            log_common = np.log(each).sum() + sizes * np.log(t)
            values[1:] += 2 * weight * np.exp(log_common) * np.cumsum(p[order] / each)
        size = int(values.argmax())
        predicted[order[:size], k] = True
        total += values[size]
    return predicted, np.full(n_rows, total / len(positive)), True


def _by_label(distribution: BaseDistribution, positive: Codes) -> tuple[Any, Floats, bool]:
    """Decide for all labels of the batch together."""
    n_rows, n_variables = len(distribution), len(positive)
    n_labels = n_rows * n_variables
    nodes, weights = quadrature(n_labels)
    if n_labels * len(nodes) > _MAX_TERMS:
        raise ValueError(
            f"The micro-averaged F-measure decides all {n_rows} rows together, which needs "
            f"{8 * n_labels * len(nodes):,} bytes: decide in smaller batches."
        )
    shares = np.empty((n_labels, len(nodes)))  # E[Y_c t^S] / E[t^S]
    log_total = np.empty(len(nodes))  # log E[t^S], S over all rows
    for q, t in enumerate(nodes):
        log_each, terms = _generating(distribution, positive, t)
        shares[:, q] = terms.ravel()
        log_total[q] = log_each.sum()

    def values(sizes: Codes) -> Floats:
        result = np.empty(len(sizes))
        for start in range(0, len(sizes), 64):
            some = sizes[start : start + 64]
            terms = shares @ (weights * np.exp(log_total + (some[:, None] - 1) * np.log(nodes))).T
            for i, size in enumerate(some):
                result[start + i] = 2 * np.sort(terms[:, i])[n_labels - size :].sum()
        return result

    lowest, highest = 1, n_labels
    step = 1 if n_labels <= _EXHAUSTIVE_LIMIT else n_labels // 256
    while True:
        sizes = np.arange(lowest, highest + 1, step)
        found = values(sizes)
        best = int(sizes[found.argmax()])
        if step == 1:
            break
        lowest, highest, step = max(1, best - 2 * step), min(n_labels, best + 2 * step), max(1, step // 16)
    none = float(np.exp(log_prob_none(distribution, positive).sum()))
    predicted = np.zeros(n_labels, dtype=bool)
    if found.max() > none:
        terms = shares @ (weights * np.exp(log_total + (best - 1) * np.log(nodes)))
        predicted[np.argsort(-terms, kind="stable")[:best]] = True
    expected = max(float(found.max()), none)
    return predicted.reshape(n_rows, n_variables), np.full(n_rows, expected), n_labels <= _EXHAUSTIVE_LIMIT
