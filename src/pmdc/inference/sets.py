"""Prediction sets: outcomes, or states of each class variable, that together are probable enough.

Outcomes are taken in descending order of probability. The rank of an outcome is the probability of those before it; a
set of some level has the outcomes whose rank is below the level, and no smaller set is as probable. If the model is
right, the set has the true outcome with at least this probability.

Whether the model is right or not, held-out rows can calibrate the level (split conformal prediction; Vovk, Gammerman
and Shafer, "Algorithmic Learning in a Random World", 2005). If n held-out rows and a new one are exchangeable, the rank
of the new row's true outcome is equally likely to be at any place among the n + 1 ranks. So it is at most the
ceil((n + 1) coverage)-th smallest of the held-out ranks with probability `coverage` or more. If there is no such rank,
because the rows are too few, the set has everything.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc.inference.base import Array, BaseDistribution, Codes, Floats

_SLACK = 1e-12
"""Rounding that a sum of probabilities may have lost."""


class OutcomeSets(NamedTuple):
    """A set of outcomes for each row."""

    outcomes: list[Array | None]
    """For each row its outcomes, the most probable first, as states of shape (size, K). None is the set of all
    outcomes, where more than `max_outcomes` would be needed."""
    prob: Floats
    """The probability of each set by the model, shape (n_rows,)."""


class Calibration(NamedTuple):
    """What held-out rows say about prediction sets: the ranks of their true outcomes or states.

    Made by `calibrate_sets`, for `predict_set`.
    """

    kind: str
    """"outcomes" or "variables"."""
    ranks: Floats
    """Shape (n_rows,) or, for each class variable, (n_rows, K); infinite where the true one was not found."""
    max_outcomes: int

    def levels(self, coverage: float) -> Floats:
        """The ranks up to which a set goes, one for outcomes or K for class variables; infinite for everything."""
        ranks = np.sort(np.atleast_2d(self.ranks.T), axis=1)
        place = ceil((ranks.shape[1] + 1) * coverage - _SLACK)
        if place > ranks.shape[1]:
            return np.full(len(ranks), np.inf)
        return ranks[:, place - 1]


def outcome_ranks(distribution: BaseDistribution, codes: Codes, most: int) -> Floats:
    """The probability of the outcomes before the given one; infinite if it is not among the `most` most probable."""
    ranks = np.full(len(distribution), np.inf)
    left = np.flatnonzero((codes >= 0).all(axis=1))
    k = 0
    while len(left) and k < min(most, distribution.n_outcomes):
        k = min(max(16, 4 * k), most, distribution.n_outcomes)
        tops, log_prob = distribution.rows(left).top_codes(k)
        here = (tops == codes[left, None]).all(axis=2)
        before = np.cumsum(np.exp(log_prob), axis=1) - np.exp(log_prob)
        found = here.any(axis=1)
        ranks[left[found]] = before[found, here[found].argmax(axis=1)]
        left = left[~found]
    return ranks


def outcome_sets(
    distribution: BaseDistribution, level: float, most: int, inclusive: bool
) -> tuple[list[Codes | None], Floats]:
    """The outcomes whose rank is below the level (or at it, if inclusive), with their probability; None for all."""
    sets: list[Codes | None] = [None] * len(distribution)
    prob = np.ones(len(distribution))
    left = np.arange(len(distribution)) if np.isfinite(level) else np.arange(0)
    k = 0
    while len(left) and k < min(most, distribution.n_outcomes):
        k = min(max(16, 4 * k), most, distribution.n_outcomes)
        tops, log_prob = distribution.rows(left).top_codes(k)
        total = np.cumsum(np.exp(log_prob), axis=1)
        before = total - np.exp(log_prob)
        inside = before <= level if inclusive else before < level - _SLACK
        closed = ~inside[:, -1] | (k == distribution.n_outcomes)
        for row, top, size, sums in zip(left, tops, inside.sum(axis=1), total, strict=True):
            sets[row], prob[row] = top[:size], sums[size - 1]
        for row in left[~closed]:
            sets[row], prob[row] = None, 1.0
        left = left[~closed]
    return sets, prob


def state_ranks(marginal: Floats) -> Floats:
    """The probability of the states before each one, in descending order; of equals, the first comes first."""
    order = np.argsort(-marginal, axis=1, kind="stable")
    ordered = np.take_along_axis(marginal, order, axis=1)
    ranks = np.empty_like(marginal)
    np.put_along_axis(ranks, order, np.cumsum(ordered, axis=1) - ordered, axis=1)
    return ranks


def state_sets(marginal: Floats, level: float, inclusive: bool) -> npt.NDArray[np.bool_]:
    """Which states are in the set of each row, shape (n_rows, n_states)."""
    ranks = state_ranks(marginal)
    return ranks <= level if inclusive else ranks < level - _SLACK


def true_state_ranks(distribution: BaseDistribution, codes: Codes) -> Floats:
    """The rank of the true state of each class variable, shape (n_rows, K); infinite for one unknown to the model."""
    ranks = np.full(codes.shape, np.inf)
    for k, marginal in enumerate(distribution.marginals()):
        known = np.flatnonzero(codes[:, k] >= 0)
        ranks[known, k] = state_ranks(marginal)[known, codes[known, k]]
    return ranks


def check_coverage(coverage: Any) -> None:
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.number)) or not 0 < coverage < 1:
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")
