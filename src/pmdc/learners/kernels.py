"""Compiled loops over rows, parts and states that all engines share.

Imported by those who call them, when they do: importing numba takes longer than importing all the rest.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import compiled


@compiled()
def normalise(
    out: Floats, part: Codes, number: Codes, log_frequency: Floats, part_weights: Floats, smooth: bool, tiny: float
) -> None:
    """Scores to log-probabilities, row by row and in place; `fill_zeros` where they are to be smooth."""
    for i in range(len(out)):
        p = part[i]
        if p < 0:
            out[i, :] = -np.inf
        else:
            _normalise_row(out, i, number, p, log_frequency, part_weights[p], smooth, tiny)


@compiled(inline="always")
def _normalise_row(
    out: Floats, i: int, number: Codes, p: int, log_frequency: Floats, weight: float, smooth: bool, tiny: float
) -> None:
    """`normalise` of row i, whose part is p. A call, or a view of a row, would cost as much as these loops."""
    m = out.shape[1]
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
        return
    if zero:
        _fill_zeros(out[i], number[p], log_frequency, weight)
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
