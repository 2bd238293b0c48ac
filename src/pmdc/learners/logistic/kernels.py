"""Compiled loops of logistic regression, the optimisation aside."""

from __future__ import annotations

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled


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
