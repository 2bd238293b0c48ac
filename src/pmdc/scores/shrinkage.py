"""Shrinkage: how much a local model is to be believed, by rows that it has not seen.

A configuration with few rows is not to be believed: the answer p of its model, with the weight W of the rows behind it,
is shrunk towards the answer q of the coarser family (`Family.coarser`),

    (W p + kappa q) / (W + kappa),

which is q where the configuration has no rows, gives absent states the share kappa q / (W + kappa), and is never 0. For
each family kappa is the one on a grid under which the held-out rows have the greatest log-likelihood. q is shrunk
towards its own q in the same way, down to the family whose parents partition nothing, and that towards the uniform
distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Floats
from pmdc.learners.smoothing import TINY

KAPPAS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The values of kappa that are tried: how many rows the coarser family is worth."""


class HeldOutRows(NamedTuple):
    """What models say of rows that they have not seen.

    Attributes
    ----------
    log_proba : array of shape (n,)
        Of the row's own state; -inf where the model knows nothing of it.
    weight : array of shape (n,)
        The weight of the rows behind the model.
    """

    log_proba: Floats
    weight: Floats


def uniform(n_rows: int, n_states: int) -> Floats:
    """Return the log-probabilities of the uniform distribution."""
    return np.full(n_rows, -np.log(n_states))


def shrink(rows: HeldOutRows, coarser: Floats, sample_weight: Floats) -> tuple[Floats, float]:
    """Return the held-out log-probabilities after shrinkage, and the kappa that serves them best.

    Parameters
    ----------
    rows : HeldOutRows
    coarser : array of shape (n,)
        log q of each row.
    sample_weight : array of shape (n,)
    """
    own, q = rows.weight * np.exp(rows.log_proba), np.exp(coarser)
    values = [np.log((own + kappa * q) / (rows.weight + kappa)) for kappa in KAPPAS]
    best = int(np.argmax([np.dot(sample_weight, value) for value in values]))
    return values[best], KAPPAS[best]


def floor(rows: HeldOutRows, coarser: Floats) -> Floats:
    """Return the held-out log-probabilities without shrinkage.

    `coarser` answers where nothing is known, and no probability is less than the machine precision.
    """
    return np.where(rows.weight > 0, np.maximum(rows.log_proba, TINY), coarser)
