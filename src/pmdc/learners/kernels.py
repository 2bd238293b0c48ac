"""Loops over rows, parts and states in compiled code.

Imported by those who call them, when they do: importing numba takes longer than importing all the rest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc.compiled import SUMS, compiled
from pmdc.table import Codes, Floats

# Groups ---------------------------------------------------------------------------------------------------------


@compiled()
def constant_parts(X: Floats, part: Codes, n_parts: int) -> npt.NDArray[np.bool_]:
    """Whether all rows of a part have the same inputs."""
    first = np.full(n_parts, -1)
    constant = np.ones(n_parts, dtype=np.bool_)
    for i in range(len(part)):
        p = part[i]
        if first[p] < 0:
            first[p] = i
        elif constant[p]:
            for j in range(X.shape[1]):
                if X[i, j] != X[first[p], j]:
                    constant[p] = False
                    break
    return constant


@compiled()
def normalise(
    out: Floats, part: Codes, number: Codes, log_frequency: Floats, part_weights: Floats, smooth: bool, tiny: float
) -> None:
    """Scores to log-probabilities, row by row and in place; `fill_zeros` where they are to be smooth."""
    n, m = out.shape
    for i in range(n):
        p = part[i]
        if p < 0:
            out[i, :] = -np.inf
            continue
        top = -np.inf
        for s in range(m):
            if number[p, s] < 0:
                out[i, s] = -np.inf
            elif not out[i, s] <= top:  # what is no number stays
                top = out[i, s]
        total = 0.0
        for s in range(m):
            below = out[i, s] - top
            if not below < -40.0:  # smaller terms are lost in the rounding of the sum
                total += np.exp(below)
        shift = top + np.log(total)
        n_low, zero = 0, False
        for s in range(m):
            if number[p, s] >= 0:
                out[i, s] -= shift
                n_low += out[i, s] < tiny
                zero |= out[i, s] == -np.inf
        if not smooth or not n_low:
            continue
        if zero:
            _fill_zeros(out[i], number[p], log_frequency, part_weights[p])
        else:  # what the low states had is lost in the rounding of 1 minus it
            scale = np.log1p(-n_low * np.exp(tiny))
            for s in range(m):
                if number[p, s] >= 0:
                    out[i, s] = tiny if out[i, s] < tiny else out[i, s] + scale


@compiled()
def _fill_zeros(row: Floats, number: Codes, log_frequency: Floats, weight: float) -> None:
    """`fill_zeros` of one row that has a zero."""
    taken, kept = 0.0, 0.0
    for s in range(len(row)):
        if number[s] >= 0:
            floor = log_frequency[number[s]] - np.log1p(weight)
            if row[s] < floor:
                taken += np.exp(floor)
            else:
                kept += np.exp(row[s])
    scale = np.log1p(-taken) - np.log(kept)
    for s in range(len(row)):
        if number[s] >= 0:
            floor = log_frequency[number[s]] - np.log1p(weight)
            row[s] = floor if row[s] < floor else row[s] + scale


@compiled()
def back_off(out: Floats, fewer: Floats, column: Codes, part: Codes, weights: Floats) -> None:
    """Give absent states (-inf) their share of what the models with fewer parents answer, as `pmdc.network` says.

    Parameters
    ----------
    out : array of shape (n, n_configurations, n_states), changed in place
    fewer : array of shape (n, n_fewer, n_states)
        Answers of the models with fewer parents.
    column : array of shape (n_configurations,)
        Where in `fewer` the answer for a configuration is.
    part : array of shape (n, n_configurations)
    weights : array of shape (n_parts,)
        The weight of the rows of each part.
    """
    n, n_configurations, m = out.shape
    for i in range(n):
        for c in range(n_configurations):
            weight = weights[part[i, c]] if part[i, c] >= 0 else 0.0
            taken = 0.0
            for s in range(m):
                if out[i, c, s] == -np.inf:
                    share = fewer[i, column[c], s] - np.log1p(weight)
                    taken += np.exp(share)
            if taken == 0.0:
                continue
            rest = np.log1p(-min(taken, 1.0))
            for s in range(m):
                if out[i, c, s] == -np.inf:
                    out[i, c, s] = fewer[i, column[c], s] - np.log1p(weight)
                else:
                    out[i, c, s] += rest


@compiled()
def shrink(out: Floats, fewer: Floats, column: Codes, part: Codes, weights: Floats, strength: float) -> None:
    """Shrink answers towards those of the models with fewer parents: (W p + strength q) / (W + strength), in place.

    The arguments are those of `back_off`.
    """
    n, n_configurations, m = out.shape
    for i in range(n):
        for c in range(n_configurations):
            weight = weights[part[i, c]] if part[i, c] >= 0 else 0.0
            own, other = np.log(weight / (weight + strength)), np.log(strength / (weight + strength))
            for s in range(m):
                p, q = own + out[i, c, s], other + fewer[i, column[c], s]
                high, low = max(p, q), min(p, q)
                out[i, c, s] = high + np.log1p(np.exp(low - high)) if low > -np.inf else high


# Naive Bayes ----------------------------------------------------------------------------------------------------


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


# Logistic regression --------------------------------------------------------------------------------------------


@compiled()
def take_over(
    coef: Floats, number: Codes, coarse: npt.NDArray[np.float32], coarse_number: npt.NDArray[np.int32], within: Codes
) -> None:
    """Each group starts with the coefficients of its state in the coarser part."""
    for p in range(number.shape[0]):
        for s in range(number.shape[1]):
            if number[p, s] >= 0:
                for j in range(coef.shape[1]):
                    coef[number[p, s], j] = coarse[coarse_number[within[p], s], j]


@compiled(fastmath=SUMS)
def linear_scores(out: Floats, X: Floats, part: Codes, number: Codes, coef: Floats) -> None:
    """Intercept and linear score of each row, for the groups of its part."""
    for i in range(len(X)):
        for a in range(part.shape[1]):
            p = part[i, a]
            if p < 0:
                continue
            for s in range(out.shape[2]):
                g = number[p, s]
                if g >= 0:
                    total = coef[g, 0]
                    for j in range(X.shape[1]):
                        total += coef[g, j + 1] * X[i, j]
                    out[i, a, s] = total
