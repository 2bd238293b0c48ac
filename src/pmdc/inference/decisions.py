"""Bayes-optimal decisions: the prediction with the least expected loss (Section 4 of the paper).

The model is not trained for a loss: each decision is taken from the same joint distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmdc.checks import check_choice
from pmdc.inference.base import BaseDistribution, Codes


def _hamming(distribution: BaseDistribution) -> Codes:
    """Algorithm 5, Eq. 27: the most probable state of each class variable; of equals, the first."""
    return np.column_stack([marginal.argmax(axis=1) for marginal in distribution.marginals()])


def _subset(distribution: BaseDistribution) -> Codes:
    """Algorithm 4, Eq. 28: the most probable outcome."""
    return distribution.mode_codes()[0]


LOSSES: dict[str, Callable[[BaseDistribution], Codes]] = {"hamming": _hamming, "subset": _subset}
"""The decision for each loss, by name."""


def decide(distribution: BaseDistribution, loss: str) -> Codes:
    """The Bayes-optimal prediction for each row.

    Parameters
    ----------
    distribution : JointDistribution or OutcomeDistribution
        The distribution of the class variables in each row.
    loss : {"hamming", "subset"}
        The loss whose expectation is minimised: the share of class variables that are wrong, or whether any
        of them is.

    Returns
    -------
    array of shape (n_rows, K)
        Codes of the predicted states.
    """
    check_choice("loss", loss, LOSSES)
    return LOSSES[loss](distribution)
