"""Probabilities that a model gives as zero or nearly so."""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Floats

TINY = float(np.log(np.finfo(float).eps))
"""Logarithm of the machine precision: a smaller probability is zero but for the way it was computed."""


def fill_zeros(log_proba: Floats, frequencies: Floats, weight: float) -> Floats:
    """Let no state that was seen in a part have probability zero there.

    Trees, forests, neighbours and others answer 0 for states that they have seen. Where a model does so, no state of
    that row gets less than its share of what one row more could have brought: its frequency in the part times
    1 / (1 + weight of the part). Elsewhere, probabilities below the machine precision, such as naive Bayes is fond
    of, are raised to it. The other states give way in proportion.
    """
    low = (log_proba < TINY).any(axis=1)
    if not low.any():
        return log_proba
    from pmdc.learners import kernels

    rows = log_proba[low]
    one_part = np.zeros(len(rows), dtype=np.int64), np.arange(rows.shape[1])[None]
    kernels.normalise(rows, *one_part, np.log(frequencies), np.array([weight]), True, TINY)
    filled = log_proba.copy()
    filled[low] = rows
    return filled
