"""Smoothing of probabilities that are zero or nearly zero."""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Floats

TINY = float(np.log(np.finfo(float).eps))
"""Logarithm of the machine precision, the smallest probability of a smoothed model."""


def fill_zeros(log_proba: Floats, frequencies: Floats, weight: float) -> Floats:
    """Raise probabilities of zero, or below the machine precision, of states that were seen in a part.

    Trees, forests, neighbours and others return 0 for states that they have seen. In such rows, each state gets at
    least its frequency in the part times 1 / (1 + weight of the part). In other rows, probabilities below the machine
    precision, which naive Bayes often returns, are raised to it. The other states are scaled down.
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
