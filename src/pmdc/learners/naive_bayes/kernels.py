"""Compiled loops of naive Bayes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled
from pmdc.learners.kernels import _normalise_row


@compiled(fastmath=SUMS)
def moments(X: Floats, group: Codes, weights: Floats, totals: Floats, d: int) -> tuple[Floats, Floats]:
    """Weighted means and variances of the first d columns within each group, in two passes."""
    mean = np.zeros((len(totals), d))
    variance = np.zeros((len(totals), d))
    for i in range(len(X)):
        g, w = group[i], weights[i]
        for j in range(d):
            mean[g, j] += w * X[i, j]
    for g in range(len(totals)):
        for j in range(d):
            mean[g, j] /= totals[g]
    for i in range(len(X)):
        g, w = group[i], weights[i]
        for j in range(d):
            deviation = X[i, j] - mean[g, j]
            variance[g, j] += w * deviation * deviation
    for g in range(len(totals)):
        for j in range(d):
            variance[g, j] /= totals[g]
    return mean, variance


@compiled()
def value_weights(
    X: Floats, group: Codes, weights: Floats, n_groups: int, d: int, sizes: Codes, starts: Codes
) -> Floats:
    """The weight of each value of each discrete input within each group."""
    out = np.zeros((n_groups, sizes.sum()))
    for i in range(len(X)):
        for c in range(len(sizes)):
            value = int(X[i, d + c])
            if value >= 0:
                out[group[i], starts[c] + value] += weights[i]
    return out


@compiled(fastmath=SUMS)
def naive_bayes_scores(
    out: Floats,
    X: Floats,
    part: Codes,
    number: Codes,
    offset: Floats,
    mean: Floats,
    precision: Floats,
    log_theta: Floats,
    starts: Codes,
) -> None:
    """log f_y + sum of the log-densities and log-probabilities of the inputs, for the groups of a row's part."""
    d = mean.shape[1]
    for i in range(len(X)):
        for a in range(part.shape[1]):
            p = part[i, a]
            if p < 0:
                continue
            for s in range(out.shape[2]):
                g = number[p, s]
                if g < 0:
                    continue
                distance = 0.0
                for j in range(d):
                    deviation = X[i, j] - mean[g, j]
                    distance += deviation * deviation * precision[g, j]
                total = offset[g] - 0.5 * distance
                for c in range(len(starts)):
                    value = int(X[i, d + c])
                    if value >= 0:
                        total += log_theta[g, starts[c] + value]
                out[i, a, s] = total


CANCELLED = 0.1
"""A sum that falls below this share when one term leaves has lost digits, and is summed anew from what stays.

Few rows pay for that: two terms of a sum cannot both be 90 percent of it.
"""


@compiled()
def totals_without(weights: Floats, group: Codes, totals: Floats, rows: Codes, bounds: Codes) -> Floats:
    """The weight of the group of each row without this row.

    Parameters
    ----------
    weights, group : arrays of shape (n,)
    totals : array of shape (n_groups,)
    rows : array of shape (n,)
        The rows of the first group, then those of the second, and so on.
    bounds : array of shape (n_groups + 1,)
        Where the rows of each group begin and end.
    """
    out = np.empty(len(weights))
    for i in range(len(weights)):
        g = group[i]
        out[i] = totals[g] - weights[i]
        if out[i] < CANCELLED * totals[g]:
            out[i] = 0.0
            for k in rows[bounds[g] : bounds[g + 1]]:
                if k != i:
                    out[i] += weights[k]
    return out


@compiled(fastmath=SUMS)
def greatest_variance_without(
    X: Floats, part: Codes, mean: Floats, variance: Floats, rows: Codes, bounds: Codes
) -> Floats:
    """The greatest variance of a column over the rows of the part of each row without this row, weights aside.

    Means and variances are those of the first columns over all rows of each part; rows and bounds as in
    `totals_without`.
    """
    ones = np.ones(len(X))
    out = np.zeros(len(X))
    for i in range(len(X)):
        p = part[i]
        members = rows[bounds[p] : bounds[p + 1]]
        n = len(members)
        if n == 1:
            continue
        before, after, share = 0.0, 0.0, 1.0 / (n - 1)
        for j in range(mean.shape[1]):
            deviation = X[i, j] - mean[p, j]
            before = max(before, variance[p, j])
            after = max(after, variance[p, j] - share * deviation * deviation)
        out[i] = after * n / (n - 1)
        if after < CANCELLED * before:
            out[i] = 0.0
            for j in range(mean.shape[1]):
                out[i] = max(out[i], _moments_without(X, j, ones, members, i)[1] / (n - 1))
    return out


@compiled()
def _moments_without(X: Floats, j: int, weights: Floats, rows: Codes, i: int) -> tuple[float, float]:
    """The mean and the weighted sum of squares around it of column j over some rows without row i, in two passes."""
    total, mean, squares = 0.0, 0.0, 0.0
    for k in rows:
        if k != i:
            total += weights[k]
            mean += weights[k] * X[k, j]
    mean /= total
    for k in rows:
        if k != i:
            squares += weights[k] * (X[k, j] - mean) ** 2
    return mean, squares


@compiled(fastmath=SUMS)
def _log_gaussians(x: Floats, mean: Floats, variance: Floats, added: float, precision: Floats) -> float:
    """sum_j log N(x_j; mean_j, v_j + added), less the log normalisers of Gaussians of the given precisions."""
    total = 0.0
    for j in range(len(mean)):
        v, deviation = variance[j] + added, x[j] - mean[j]
        total += deviation * deviation / v + np.log(v * precision[j])
    return -0.5 * total


@compiled(fastmath=SUMS)
def naive_bayes_without(
    X: Floats,
    part: Codes,
    group: Codes,
    sample_weight: Floats,
    number: Codes,
    rows: Codes,
    bounds: Codes,
    weights: Floats,
    weights_without: Floats,
    part_weights_without: Floats,
    normaliser: Floats,
    mean: Floats,
    variance: Floats,
    precision: Floats,
    added: Floats,
    constant: npt.NDArray[np.bool_],
    counts: Floats,
    log_theta: Floats,
    starts: Codes,
    sizes: Codes,
    alpha: float,
    smooth: bool,
    tiny: float,
) -> Floats:
    """The log-probability of the state of each row by the models of its part without this row.

    Parameters
    ----------
    rows, bounds : as in `totals_without`, of the groups
    weights : array of shape (n_groups,)
    weights_without, part_weights_without : arrays of shape (n,)
        The weights of the group and of the part of each row without this row.
    normaliser : array of shape (n_groups,)
        Log normalisers of the Gaussians of the given precisions.
    mean, variance, precision : arrays of shape (n_groups, d)
        Variances without what is added to them, precisions with it.
    added : array of shape (n,)
        What is added to the variances without this row.
    constant : array of shape (n,)
        Whether no continuous input varies over the rows of the part without this row.
    counts, log_theta : arrays of shape (n_groups, sum of the sizes)
        Weights and log-probabilities of the values of the discrete inputs.
    """
    m, d = number.shape[1], mean.shape[1]
    out = np.empty(len(X))
    score, log_frequency, state = np.empty((1, m)), np.empty(m), np.empty((1, m), dtype=np.int64)
    own_mean, own_variance = np.empty(d), np.empty(d)
    log_weights = np.log(weights)
    for i in range(len(X)):
        own, w = group[i], sample_weight[i]
        members = rows[bounds[own] : bounds[own + 1]]
        if len(members) == 1:
            out[i] = -np.inf
            continue
        before, after = weights[own], weights_without[i]
        if not constant[i]:
            for j in range(d):
                deviation = X[i, j] - mean[own, j]
                own_mean[j] = mean[own, j] - w / after * deviation
                own_variance[j] = (variance[own, j] - w / after * deviation * deviation) * (before / after)
            for j in range(d):
                left = after * (own_variance[j] + added[i])
                if left < CANCELLED * before * variance[own, j] or after < CANCELLED * before:
                    own_mean[j], squares = _moments_without(X, j, sample_weight, members, i)
                    own_variance[j] = squares / after
        log_part_weight = np.log(part_weights_without[i])
        place = 0
        for s in range(m):
            g = number[part[i], s]
            state[0, s] = s if g >= 0 else -1
            if g < 0:
                continue
            if g == own:
                place = s
            log_frequency[s] = (np.log(after) if g == own else log_weights[g]) - log_part_weight
            score[0, s] = log_frequency[s]
            if not constant[i]:
                if g == own:
                    gaussians = _log_gaussians(X[i], own_mean, own_variance, added[i], precision[g])
                else:
                    gaussians = _log_gaussians(X[i], mean[g], variance[g], added[i], precision[g])
                score[0, s] += normaliser[g] + gaussians
            for c in range(len(starts)):
                value = int(X[i, d + c])
                if value < 0:
                    continue
                if g == own:
                    count = counts[g, starts[c] + value] - w
                    if 0 < count < CANCELLED * w:
                        count = 0.0
                        for k in members:
                            if k != i and X[k, d + c] == value:
                                count += sample_weight[k]
                    score[0, s] += np.log((max(count, 0.0) + alpha) / (after + alpha * sizes[c]))
                else:
                    score[0, s] += log_theta[g, starts[c] + value]
        _normalise_row(score, 0, state, 0, log_frequency, part_weights_without[i], smooth, tiny)
        out[i] = score[0, place]
    return out
