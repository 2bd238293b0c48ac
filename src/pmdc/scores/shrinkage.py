"""Shrinkage of local models towards the coarser family, chosen by held-out rows.

The probability p of a model fitted on rows of total weight W is shrunk towards the probability q of the coarser family
(`Family.coarser`),

    (W p + kappa q) / (W + kappa).

This is q for a configuration without rows, gives absent states the share kappa q / (W + kappa), and is never 0. For
each family, kappa is the value on a grid that maximises the log-likelihood of the held-out rows. q is shrunk in the
same way, down to the family without a partition, which is shrunk towards the uniform distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Floats
from pmdc.learners.smoothing import TINY

KAPPAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The values of kappa that are tried: the weight of the coarser family, in rows."""


class HeldOutRows(NamedTuple):
    """Held-out log-probabilities of the rows.

    Attributes
    ----------
    log_proba : array of shape (n,)
        Of the row's own state; -inf where the model has not seen this state.
    weight : array of shape (n,)
        The weight of the rows that the model was fitted on.
    """

    log_proba: Floats
    weight: Floats


def uniform(n_rows: int, n_states: int) -> Floats:
    """Return the log-probabilities of the uniform distribution."""
    return np.full(n_rows, -np.log(n_states))


def shrink(
    rows: HeldOutRows, coarser: Floats, sample_weight: Floats, kappa: float | None = None
) -> tuple[Floats, float]:
    """Return the held-out log-probabilities after shrinkage, and kappa: the given one, or the best.

    Parameters
    ----------
    rows : HeldOutRows
    coarser : array of shape (n,)
        log q of each row.
    sample_weight : array of shape (n,)
    """
    own, q = rows.weight * np.exp(rows.log_proba), np.exp(coarser)
    tried = KAPPAS if kappa is None else (kappa,)
    values = [np.log((own + one * q) / (rows.weight + one)) for one in tried]
    best = int(np.argmax([np.dot(sample_weight, value) for value in values]))
    return values[best], tried[best]


def floor(rows: HeldOutRows, coarser: Floats) -> Floats:
    """Return the held-out log-probabilities without shrinkage.

    Rows without a model get `coarser`; probabilities are at least the machine precision.
    """
    return np.where(rows.weight > 0, np.maximum(rows.log_proba, TINY), coarser)
