"""The Jaccard index of binary class variables, and predictions that maximise its expectation.

Let s be the set of class variables of a row that are predicted positive, m their number, and F the number of truly
positive ones outside s. The union of prediction and truth has m + F members, so J = TP / (m + F), and

    E[J] = sum over c in s of E[Y_c / (m + F)] = sum over c in s of the integral of t^(m - 1) E[Y_c t^F] dt from 0 to 1.

E[Y_c t^F] is a sum-product with weight t on the positive states outside s, and a polynomial in t, so the expected loss
of a given prediction is exact by Gauss-Legendre quadrature, as in `f_measure.py`.

Unlike for the F-measure, the terms depend on the whole of s, and finding the best s is NP-hard even for a list of
equally probable outcomes (Chierichetti, Kumar, Pandey and Vassilvitskii, "Finding the Jaccard median", 2010). If class
variables are independent, the best s has the most probable ones: of two labels, one in s and one outside, exchanging
them can help only if the one outside is more probable.

The Jaccard index is 1 if no class variable is positive and none is predicted as positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.checks import check_count
from pmdc.decisions.f_measure import FMeasure, log_prob_none, positive_codes, quadrature
from pmdc.decisions.losses import Choice, Loss
from pmdc.inference.base import BaseDistribution, ClassTable, all_outcomes, contradicts
from pmdc.inference.evidence import NO_EVIDENCE

_MAX_OUTCOMES = 2**12
"""Up to this many outcomes, all are compared."""
_MAX_CELLS = 2**22
"""Largest number of values in a table over outcomes held at once."""


class JaccardLoss(Loss):
    """One minus the Jaccard index of each row: the size of the intersection of prediction and truth over their union.

    Parameters
    ----------
    positive : state, or list with one state for each class variable, optional
        The positive state; by default the second, ``classes_[k][1]``.
    n_samples : int, default=1000
        Draws for each row where the best prediction is not found exactly.

    Notes
    -----
    The prediction is proved to be optimal for up to 4,096 outcomes (12 class variables), which are all compared, and
    for any number of class variables that are independent given x, as in a network without arcs. Otherwise `proved` is
    False: two predictions are compared, and the better one is returned. One is optimal for "f1_samples". As F / 2 <= J
    <= F, its expected Jaccard index is at least half of the best possible one. The other is the best set of most
    probable labels, by the mean over draws, changed one class variable at a time while that improves the mean. The
    expected loss that is returned is exact in all cases.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.decisions import JaccardLoss
    >>> data = make_network(300, n_states=2, random_state=0)
    >>> model = GBNC(experts=None, max_parents=1).fit(data.X, data.Y)
    >>> decision = model.predict_joint(data.X[:2]).decide(JaccardLoss())
    >>> decision.proved
    array([ True,  True])
    """

    def __init__(self, positive: Any = None, n_samples: int = 1000):
        self.positive = positive
        self.n_samples = n_samples

    def check(self, class_table: ClassTable) -> None:
        check_count("n_samples", self.n_samples, 1)
        self._positives(class_table)

    def _positives(self, class_table: ClassTable) -> Codes:
        return positive_codes(class_table, self.positive, "The Jaccard index")

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        positive = self._positives(distribution.class_table)
        if not len(distribution):
            return Choice.exact(np.empty((0, len(positive)), dtype=np.int64), np.empty(0))
        if distribution.n_outcomes <= _MAX_OUTCOMES:
            return _among_all(distribution, positive)
        independent = bool(distribution.parents) and not any(distribution.parents)
        chosen = _most_probable(distribution, positive) if independent else self._search(distribution, positive, random)
        codes = _with_evidence(distribution, np.where(chosen, positive, 1 - positive))
        loss = self.expected(distribution, codes)
        if not independent:
            other = FMeasure("samples", self.positive).choose(distribution, random).codes
            other = _with_evidence(distribution, other)
            loss_of_other = self.expected(distribution, other)
            codes = np.where((loss_of_other < loss)[:, None], other, codes)
            loss = np.minimum(loss, loss_of_other)
        return Choice.exact(codes, loss)._replace(proved=np.full(len(codes), independent))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        positive = self._positives(distribution.class_table)
        true, predicted = true == positive, predicted == positive
        return 1 - _index((true & predicted).sum(axis=1), (true | predicted).sum(axis=1))

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        """Return one minus the expected Jaccard index, by the formula at the top of this module."""
        positive = self._positives(distribution.class_table)
        chosen = predicted == positive
        size, value = chosen.sum(axis=1), np.zeros(len(distribution))
        for t, weight in zip(*quadrature((len(positive) + 1) // 2), strict=True):
            tilts = [
                np.where(np.arange(2) == code, np.where(inside, 1.0, t)[:, None], 1.0)
                for code, inside in zip(positive, chosen.T, strict=True)
            ]
            log_total, marginals = distribution.tilted(tilts)
            shares = np.column_stack([own[:, code] for own, code in zip(marginals, positive, strict=True)])
            value += weight * np.exp(log_total + (size - 1) * np.log(t)) * (shares * chosen).sum(axis=1)
        return 1 - np.where(size > 0, value, np.exp(log_prob_none(distribution, positive)))

    def _search(self, distribution: BaseDistribution, positive: Codes, random: np.random.RandomState) -> Marks:
        """Return the best prediction found for each row by draws, which do not depend on the other rows."""
        seed = int(random.randint(2**31 - 1))
        prob = _prob_positive(distribution, positive)
        chosen = np.empty(prob.shape, dtype=bool)
        for row, own in enumerate(prob):
            one = distribution.rows(np.array([row]))
            drawn = one.sample_codes(self.n_samples, np.random.RandomState(seed))[0] == positive
            chosen[row] = _improve(drawn, _best_of_nested(drawn, np.argsort(-own, kind="stable")))
        return chosen


def _index(both: Floats, union: Floats) -> Floats:
    """Return the Jaccard index for the sizes of intersections and unions; 1 for an empty union."""
    return np.divide(both, union, out=np.ones(both.shape), where=union > 0)


def _prob_positive(distribution: BaseDistribution, positive: Codes) -> Floats:
    marginals = distribution.marginals()
    return np.column_stack([own[:, code] for own, code in zip(marginals, positive, strict=True)])


def _with_evidence(distribution: BaseDistribution, codes: Codes) -> Codes:
    """Return predictions in which known states are predicted as they are."""
    known = distribution.evidence
    return codes if known is None else np.where(known != NO_EVIDENCE, known, codes)


def _among_all(distribution: BaseDistribution, positive: Codes) -> Choice:
    """Compare all outcomes as predictions."""
    outcomes = all_outcomes(distribution.class_table.sizes)
    marked = (outcomes == positive).astype(float)
    size = marked.sum(axis=1)
    step = max(1, _MAX_CELLS // len(outcomes))
    best, lowest = np.empty(len(distribution), dtype=np.int64), np.empty(len(distribution))
    for start in range(0, len(distribution), step):
        rows = slice(start, start + step)
        part = distribution.rows(rows)
        prob, risk = np.exp(part.enumerate().log_p), np.empty((len(part), len(outcomes)))
        for first in range(0, len(outcomes), step):  # predictions
            some = slice(first, first + step)
            both = marked @ marked[some].T
            risk[:, some] = 1 - prob @ _index(both, size[:, None] + size[some] - both)
        if part.evidence is not None:
            risk[contradicts(part.evidence, outcomes)] = np.inf
        best[rows], lowest[rows] = risk.argmin(axis=1), risk.min(axis=1)
    return Choice.exact(outcomes[best], lowest)


def _most_probable(distribution: BaseDistribution, positive: Codes) -> Marks:
    """Return the best prediction for independent class variables: the most probable ones, as many as is best."""
    prob = _prob_positive(distribution, positive)
    order = np.argsort(-prob, axis=1, kind="stable")
    prob = np.take_along_axis(prob, order, axis=1)
    sizes = np.arange(1, prob.shape[1] + 1)
    values = np.zeros(prob.shape)
    for t, weight in zip(*quadrature((prob.shape[1] + 1) // 2), strict=True):
        log_each = np.log(1 - prob * (1 - t))  # E[t^Y] of each class variable
        log_outside = log_each.sum(axis=1, keepdims=True) - np.cumsum(log_each, axis=1)
        values += weight * np.exp(log_outside + (sizes - 1) * np.log(t)) * np.cumsum(prob, axis=1)
    none = np.prod(1 - prob, axis=1, keepdims=True)
    size = np.hstack([none, values]).argmax(axis=1)
    chosen = np.zeros(prob.shape, dtype=bool)
    np.put_along_axis(chosen, order, np.arange(prob.shape[1]) < size[:, None], axis=1)
    return chosen


def _best_of_nested(drawn: Marks, order: Codes) -> Marks:
    """Return the first class variables of an order, as many as have the greatest mean Jaccard index with the draws."""
    n_variables = len(order)
    both = np.hstack([np.zeros((len(drawn), 1)), np.cumsum(drawn[:, order], axis=1)])
    size = int(_mean_index(both, np.arange(n_variables + 1), drawn).argmax())
    chosen = np.zeros(n_variables, dtype=bool)
    chosen[order[:size]] = True
    return chosen


def _improve(drawn: Marks, chosen: Marks) -> Marks:
    """Add or remove the best class variable while the mean Jaccard index with the draws increases."""
    best = float(_index((drawn & chosen).sum(axis=1), (drawn | chosen).sum(axis=1)).mean())
    while True:
        both = (drawn & chosen).sum(axis=1)[:, None] + np.where(chosen, -1, 1) * drawn
        values = _mean_index(both, chosen.sum() + np.where(chosen, -1, 1), drawn)
        place = int(values.argmax())
        if not values[place] > best + 1e-12:
            return chosen
        best = float(values[place])
        chosen = chosen ^ (np.arange(len(chosen)) == place)


def _mean_index(both: Floats, sizes: Codes, drawn: Marks) -> Floats:
    """Return the mean Jaccard index of predictions with these sizes and intersections, shape (n_draws, n_sets)."""
    return _index(both, sizes + drawn.sum(axis=1)[:, None] - both).mean(axis=0)
