"""Compiled loops of logistic regression, the optimisation aside."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled


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
