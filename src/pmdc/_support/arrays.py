"""Type aliases of arrays for the whole library, and a sum that many modules need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


def log_sum_exp(x: Floats, axis: int | tuple[int, ...] = -1) -> Floats:
    """Return log(sum(exp(x))) over some axes, which are kept; scipy's takes ten times as long for few numbers."""
    top = x.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top)
