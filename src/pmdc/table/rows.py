"""Weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmdc._support.arrays import Floats


def read_weights(sample_weight: Any, n_rows: int) -> Floats:
    """One weight for each row; a row of weight zero counts as a row that is not there."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one for each row.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}; it must be ({n_rows},): one weight for each row.")
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"sample_weight[{row}] is {weights[row]}: weights must be finite and not negative.")
    if not weights.any():
        raise ValueError("sample_weight is zero for all rows: no class can be learned. Give some row a weight.")
    return weights
