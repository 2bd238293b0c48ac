"""Compiled loops of back-off and shrinkage."""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import compiled


@compiled()
def back_off(out: Floats, fewer: Floats, column: Codes, part: Codes, weights: Floats) -> None:
    """Give absent states (-inf) their share of what the models with fewer parents answer, as `network` says.

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
