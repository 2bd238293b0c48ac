"""Compiled loops over rows, parts and states that the engines share.

Import this module where it is used: importing numba takes longer than importing everything else.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled


@compiled(fastmath=SUMS)
def linear_scores(out: Floats, X: Floats, part: Codes, number: Codes, coef: Floats) -> None:
    """Write the intercept plus linear score of each row to `out`, for the groups of its part."""
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


@compiled()
def normalise(
    out: Floats, part: Codes, number: Codes, log_frequency: Floats, part_weights: Floats, smooth: bool, tiny: float
) -> None:
    """Turn scores into log-probabilities, row by row and in place; with `smooth`, as `smoothing.fill_zeros`."""
    m = out.shape[1]
    for i in range(len(out)):
        p = part[i]
        if p < 0:
            for s in range(m):
                out[i, s] = -np.inf
            continue
        # 1. Softmax over the states that the part has.
        top = -np.inf
        for s in range(m):
            if number[p, s] < 0:
                out[i, s] = -np.inf
            elif not out[i, s] <= top:  # keeps NaN
                top = out[i, s]
        total = 0.0
        for s in range(m):
            below = out[i, s] - top
            if not below < -40.0:  # smaller terms are lost in the rounding of the sum
                total += np.exp(below)
        shift, n_low, zero = top + np.log(total), 0, False
        for s in range(m):
            if number[p, s] >= 0:
                out[i, s] -= shift
                n_low += out[i, s] < tiny
                zero |= out[i, s] == -np.inf
        if not smooth or not n_low:
            continue
        # 2. A floor for each state: the machine precision or, if there is a zero, a share of its frequency.
        taken, kept, share = 0.0, 0.0, np.log1p(part_weights[p])
        for s in range(m):
            if number[p, s] >= 0:
                floor = log_frequency[number[p, s]] - share if zero else tiny
                if out[i, s] < floor:
                    taken += np.exp(floor)
                else:
                    kept += np.exp(out[i, s])
        scale = np.log1p(-taken) - (np.log(kept) if zero else 0.0)  # without a zero, what is lost is rounding
        for s in range(m):
            if number[p, s] >= 0:
                floor = log_frequency[number[p, s]] - share if zero else tiny
                out[i, s] = floor if out[i, s] < floor else out[i, s] + scale
