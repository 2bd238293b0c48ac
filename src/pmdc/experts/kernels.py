"""The compiled descent of tree ensembles.

Import this module where it is used: importing numba takes longer than importing everything else.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Array, Floats
from pmdc._support.compiled import compiled


@compiled()
def add_leaves(
    out: Floats, X: Array, roots: Array, column: Array, feature: Array, threshold: Array, child: Array, values: Array
) -> None:
    """Add to `out` the values of the leaf that each row reaches in each tree; see `trees.TreeEnsemble`.

    Indices are not checked: the arrays must be those of a consistent ensemble, and `X` must have its inputs.
    """
    for t in range(len(roots)):
        for i in range(len(X)):
            node = np.uint64(roots[t])  # numba tests signed indices for negative values
            while feature[node] >= 0:
                above = not X[i, np.uint64(feature[node])] <= threshold[node]  # True for NaN
                node = np.uint64(child[node]) + np.uint64(above)
            row = np.uint64(child[node])
            for k in range(values.shape[1]):
                out[i, column[t] + k] += values[row, k]
