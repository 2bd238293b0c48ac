"""Value of information: how much the expected loss decreases if the state of a class variable becomes known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.warn import warn_user
from pmdc.decisions.decide import LossLike, choose, resolve
from pmdc.inference.base import BaseDistribution
from pmdc.inference.evidence import NO_EVIDENCE

_ROUNDING = 1e-9
"""Largest negative value, relative to the expected loss, that is taken for a rounding error."""


def value_of_information(distribution: BaseDistribution, loss: LossLike = "hamming", random_state: Any = 0) -> Floats:
    """Return the expected decrease of the expected loss by learning the state of each class variable, (n_rows, K).

    For users this is `JointDistribution.value_of_information`, which describes it.
    """
    resolved = resolve(loss)
    resolved.check(distribution.class_table)
    if resolved.whole_batch:
        raise ValueError(
            f"loss={loss!r} is a loss of the whole batch, so a single row has no value of information. Give a loss of "
            "single rows, such as 'f1_samples' or 'hamming', or compare decide(loss).expected_loss of the batch "
            "without and with evidence."
        )
    now = choose(distribution, resolved, random_state)
    values, proved = np.zeros((len(distribution), len(distribution.class_table.sizes))), bool(now.proved.all())
    for k, marginal in enumerate(distribution.marginals()):
        later = np.zeros(len(distribution))
        for state in range(marginal.shape[1]):
            rows = _possible_rows(distribution, k, state, marginal[:, state])
            if not len(rows):
                continue
            choice = choose(_given_state(distribution, rows, k, state), resolved, random_state)
            later[rows] += marginal[rows, state] * choice.expected_loss
            proved &= bool(choice.proved.all())
        values[:, k] = now.expected_loss - later
    if distribution.evidence is not None:
        values[distribution.evidence != NO_EVIDENCE] = 0.0
    if not proved:
        warn_user(
            f"loss={loss!r}: some predictions are not proved to be optimal, or their expected losses are estimated "
            "from draws, so the value of information is approximate and may be negative."
        )
        return values
    rounding = _ROUNDING * (1 + np.abs(now.expected_loss))[:, None]
    return np.where((values < 0) & (values > -rounding), 0.0, values)


def _possible_rows(distribution: BaseDistribution, k: int, state: int, prob: Floats) -> npt.NDArray[np.int64]:
    """Return the rows in which a class variable is not known and may have this state."""
    possible = prob > 0
    if distribution.evidence is not None:
        possible &= distribution.evidence[:, k] == NO_EVIDENCE
    rare = np.flatnonzero(possible & (prob < _ROUNDING))
    if len(rare):  # the probability may be the rounding error of zero
        codes = _one_known(len(rare), distribution, k, state)
        possible[rare] = np.isfinite(distribution.rows(rare).log_prob_codes(codes))
    return np.flatnonzero(possible)


def _given_state(distribution: BaseDistribution, rows: Codes, k: int, state: int) -> BaseDistribution:
    part = distribution if len(rows) == len(distribution) else distribution.rows(rows)
    return part.given_codes(_one_known(len(rows), distribution, k, state))


def _one_known(n_rows: int, distribution: BaseDistribution, k: int, state: int) -> Codes:
    codes = np.full((n_rows, len(distribution.class_table.sizes)), NO_EVIDENCE)
    codes[:, k] = state
    return codes
