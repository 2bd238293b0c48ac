"""Prediction sets: outcomes, or states of each class variable, that together are probable enough.

Outcomes are taken in descending order of probability until a level is reached: no smaller set is as probable. If the
model is right, the set has the true outcome with at least this probability.

Whether the model is right or not, held-out rows can calibrate the level (split conformal prediction; Vovk, Gammerman
and Shafer, "Algorithmic Learning in a Random World", 2005). The rank of an outcome is the probability of those that are
more probable; it depends on nothing else. If n held-out rows and a new one are exchangeable, the rank of the new row's
true outcome is equally likely to be at any place among the n + 1 ranks. So it is at most the ceil((n + 1) coverage)-th
smallest of the held-out ranks with probability `coverage` or more, and the set has all outcomes up to this rank. If
there is no such rank, because the rows are too few, the set has everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Floats
from pmdc.inference.base import BaseDistribution
from pmdc.inference.junction_tree import TIE_TOLERANCE

_SLACK = 1e-12
"""Rounding that a sum of probabilities may have lost."""
_FEW_OUTCOMES = 1024
"""Up to so many outcomes all are listed at once."""
_CELLS = 2**22
"""Numbers that lists of outcomes may have at once."""


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
    """The rank of one outcome of each row; infinite if more than `most` outcomes are more probable."""
    ranks = np.full(len(distribution), np.inf)
    known = np.flatnonzero((codes >= 0).all(axis=1))
    own = np.full(len(distribution), -np.inf)
    own[known] = distribution.log_prob_at(known, codes[known])
    for rows, _, log_prob, complete in _lists(distribution, known, most):
        prob = np.exp(log_prob)
        above = log_prob > _tied_with(own[rows])[:, None]
        found = ~above[:, -1] | complete
        ranks[rows[found]] = (prob * above).sum(axis=1)[found]
        rows[:] = np.where(found, -1, rows)
    return ranks


def outcome_sets(
    distribution: BaseDistribution, level: float, most: int, inclusive: bool
) -> tuple[list[Codes | None], Floats]:
    """Sets of outcomes and their probabilities; None is the set of all outcomes.

    Of the level at least, and as small as possible; or, if inclusive, all outcomes whose rank is at most the level.
    """
    sets: list[Codes | None] = [None] * len(distribution)
    prob = np.ones(len(distribution))
    everyone = np.arange(len(distribution)) if np.isfinite(level) else np.arange(0)
    for rows, tops, log_prob, complete in _lists(distribution, everyone, most):
        each = np.exp(log_prob)
        total = np.cumsum(each, axis=1)
        if inclusive:
            ranks = np.stack([_ranks_of_list(*row) for row in zip(log_prob, each, strict=True)])
            inside = ranks <= level + _SLACK
            closed = ~inside[:, -1] | complete
        else:
            inside = total - each < level - _SLACK
            inside[:, 0] = True
            closed = (total[:, -1] >= level - _SLACK) | complete
        for place, row in enumerate(rows):
            if closed[place]:
                size = int(inside[place].sum())
                sets[row], prob[row] = tops[place, :size], total[place, size - 1]
        rows[:] = np.where(closed, -1, rows)
    return sets, prob


def _lists(distribution: BaseDistribution, rows: Codes, most: int) -> Iterator[tuple[Codes, Codes, Floats, bool]]:
    """Longer and longer lists of the most probable outcomes of rows, which the caller sets to -1 when they are done.

    Gives rows, codes, log probabilities, and whether all outcomes are listed. Rows come in pieces that fit into memory.
    """
    most = min(most, distribution.n_outcomes)
    n_variables = len(distribution.class_table.sizes)
    few = distribution.n_outcomes <= _FEW_OUTCOMES
    width = distribution.n_outcomes if few else most
    step = max(1, _CELLS // (width * n_variables))
    for start in range(0, len(rows), step):
        left = rows[start : start + step].copy()
        k = 0
        while len(left) and k < most:
            k = most if few else min(max(16, 4 * k), most)
            part = distribution.rows(left)
            tops, log_prob = (part.enumerate() if few else part).top_codes(k)
            yield left, tops, log_prob, k == distribution.n_outcomes
            left = left[left >= 0]


def _ranks_of_list(log_prob: Floats, prob: Floats) -> Floats:
    """The rank of each outcome of a list of the most probable ones."""
    order = np.argsort(-log_prob, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(prob[order])])
    return before[np.searchsorted(-log_prob[order], -_tied_with(log_prob), side="left")]


def _tied_with(log_prob: Floats) -> Floats:
    """What is above this is more probable, and not only by rounding."""
    finite = np.where(np.isneginf(log_prob), 0.0, log_prob)
    return np.where(np.isneginf(log_prob), -np.inf, finite + TIE_TOLERANCE * np.maximum(1.0, np.abs(finite)))


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
