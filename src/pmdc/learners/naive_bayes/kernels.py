"""Compiled loops of naive Bayes."""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled

CANCELLED = 0.1
"""A sum that falls below this share when one term leaves has lost digits and is computed again from the other terms.

This is rare: two terms of a sum cannot both be 90 percent of it.
"""


@compiled(fastmath=SUMS)
def moments(X: Floats, group: Codes, weights: Floats, totals: Floats, d: int) -> tuple[Floats, Floats]:
    """Return the weighted means and variances of the first d columns within each group, in two passes.

    Sums are relative to the first row of the group, so that the variance of equal values is exactly 0.
    """
    mean = np.zeros((len(totals), d))
    variance = np.zeros((len(totals), d))
    first = np.full(len(totals), -1)
    for i in range(len(X)):
        g, w = group[i], weights[i]
        if first[g] < 0:
            first[g] = i
        for j in range(d):
            mean[g, j] += w * (X[i, j] - X[first[g], j])
    for g in range(len(totals)):
        for j in range(d):
            mean[g, j] = X[first[g], j] + mean[g, j] / totals[g]
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
    """Return the weight of each value of each discrete input within each group."""
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
    """Write log f_y + the log-densities and log-probabilities of the inputs, for the groups of each row's part."""
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


@compiled(fastmath=SUMS)
def moments_without(
    which: Codes,
    X: Floats,
    group: Codes,
    weights: Floats,
    totals: Floats,
    mean: Floats,
    variance: Floats,
    rows: Codes,
    bounds: Codes,
) -> tuple[Floats, Floats, Floats]:
    """Return for some rows the weight, the means and the variances of their groups without the row itself.

    Parameters
    ----------
    which : array of int
        The rows.
    X : array of shape (n, d + number of discrete inputs)
    group, weights : arrays of shape (n,)
    totals : array of shape (n_groups,)
    mean, variance : arrays of shape (n_groups, d)
    rows : array of shape (n,)
        The rows sorted by group.
    bounds : array of shape (n_groups + 1,)
        Where the rows of each group begin and end.
    """
    n, d = len(which), mean.shape[1]
    total_without, mean_without, variance_without = np.zeros(n), np.zeros((n, d)), np.zeros((n, d))
    for r in range(n):
        i = which[r]
        g, w = group[i], weights[i]
        members = rows[bounds[g] : bounds[g + 1]]
        if len(members) == 1:
            continue
        left = totals[g] - w
        if left < CANCELLED * totals[g]:
            left = 0.0
            for k in members:
                if k != i:
                    left += weights[k]
        total_without[r] = left
        first = members[1] if members[0] == i else members[0]
        for j in range(d):
            deviation = X[i, j] - mean[g, j]
            squares = variance[g, j] - w / left * deviation * deviation
            mean_without[r, j] = mean[g, j] - w / left * deviation
            if left < CANCELLED * totals[g] or squares < CANCELLED * variance[g, j]:
                shift, squares = 0.0, 0.0
                for k in members:
                    if k != i:
                        shift += weights[k] * (X[k, j] - X[first, j])
                mean_without[r, j] = X[first, j] + shift / left
                for k in members:
                    if k != i:
                        squares += weights[k] * (X[k, j] - mean_without[r, j]) ** 2
                variance_without[r, j] = squares / left
            else:
                variance_without[r, j] = squares * (totals[g] / left)
    return total_without, mean_without, variance_without


@compiled(fastmath=SUMS)
def scores_without(
    out: Floats,
    which: Codes,
    X: Floats,
    part: Codes,
    group: Codes,
    sample_weight: Floats,
    number: Codes,
    rows: Codes,
    bounds: Codes,
    mean: Floats,
    variance: Floats,
    total_without: Floats,
    mean_without: Floats,
    variance_without: Floats,
    added: Floats,
    counts: Floats,
    log_theta: Floats,
    starts: Codes,
    sizes: Codes,
    alpha: float,
) -> None:
    """Add to `out` the log-densities and log-probabilities of the inputs of some rows by models without the row itself.

    Parameters
    ----------
    out : array of shape (len(which), n_states)
    which, rows, bounds : as in `moments_without`, of the groups
    total_without, mean_without, variance_without : as returned by `moments_without`
    added : array of shape (len(which), d)
        What is added to the variances; an input with 0 is constant and is left out.
    counts, log_theta : arrays of shape (n_groups, sum of the sizes)
        Weights and log-probabilities of the values of the discrete inputs.
    """
    d = mean.shape[1]
    for r in range(len(which)):
        i = which[r]
        own, w = group[i], sample_weight[i]
        for s in range(out.shape[1]):
            g = number[part[i], s]
            if g < 0:
                continue
            total = 0.0
            for j in range(d):
                if added[r, j] > 0.0:
                    m = mean_without[r, j] if g == own else mean[g, j]
                    v = (variance_without[r, j] if g == own else variance[g, j]) + added[r, j]
                    total += (X[i, j] - m) ** 2 / v + np.log(v)
            out[r, s] -= 0.5 * total
            for c in range(len(starts)):
                value = int(X[i, d + c])
                if value < 0:
                    continue
                if g != own:
                    out[r, s] += log_theta[g, starts[c] + value]
                    continue
                count = counts[g, starts[c] + value] - w
                if 0 < count < CANCELLED * w:
                    count = 0.0
                    for k in rows[bounds[g] : bounds[g + 1]]:
                        if k != i and X[k, d + c] == value:
                            count += sample_weight[k]
                out[r, s] += np.log((max(count, 0.0) + alpha) / (total_without[r] + alpha * sizes[c]))
