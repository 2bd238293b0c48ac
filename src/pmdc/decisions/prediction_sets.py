"""Prediction sets: small sets of outcomes, or of states of each class variable, that contain the truth often enough.

Without calibration, a set takes outcomes in descending order of probability until their probabilities add up to the
coverage. If the model's probabilities are right, it contains the true outcome with at least this probability.

With calibration (split conformal prediction; Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World",
2005), the coverage does not depend on these probabilities. The rank of an outcome is the total probability of all more
probable outcomes. If n held-out rows and a new row are exchangeable, the rank of the new row's true outcome is at most
the ceil((n + 1) coverage)-th smallest of the held-out ranks, the level, with probability `coverage` or more. The set
contains all outcomes up to this level; all outcomes if n is too small for such a level.

The coverage is marginal: it holds on average over rows, not for each x. A state never seen in training has an infinite
rank and is in no set. If such rows are few, the level is finite, and it is high enough to make up for them. If they
exceed a share of about 1 - coverage, the level is infinite: the sets contain all outcomes that the model knows, and the
coverage is only the share of rows whose states were all seen in training.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Array, Codes, Floats
from pmdc.inference.base import BaseDistribution
from pmdc.inference.junction_tree import TIE_TOLERANCE

_ROUNDING = 1e-12
"""Rounding error allowed in a sum of probabilities."""
_LISTING_LIMIT = 1024
"""Up to this many outcomes, all are listed at once."""
_MAX_CELLS = 2**22
"""Largest number of codes in the lists of outcomes held at once."""


class OutcomeSets(NamedTuple):
    """A set of outcomes for each row."""

    outcomes: list[Array | None]
    """The outcomes of each row, most probable first, as states of shape (size, K). None is the set of all outcomes,
    where more than `max_outcomes` would be needed."""
    prob: Floats
    """The probability of each set according to the model, shape (n_rows,)."""


class Calibration(NamedTuple):
    """Ranks of the true outcomes or states of held-out rows: returned by `calibrate_sets`, used by `predict_set`."""

    kind: str
    """"outcomes" or "variables"."""
    ranks: Floats
    """Shape (n_rows,) or, for each class variable, (n_rows, K). Infinite for a state that the model does not know, and
    for an outcome that is not among the `max_outcomes` most probable ones."""
    max_outcomes: int

    def levels(self, coverage: float) -> Floats:
        """Return the largest rank in a set: one for outcomes, K for class variables; infinite for all outcomes."""
        ranks = np.sort(np.atleast_2d(self.ranks.T), axis=1)
        place = ceil((ranks.shape[1] + 1) * coverage * (1 - _ROUNDING))
        if place > ranks.shape[1]:
            return np.full(len(ranks), np.inf)
        return ranks[:, place - 1]


def outcome_ranks(distribution: BaseDistribution, codes: Codes, most: int) -> Floats:
    """Return the rank of one outcome of each row; infinite if it is unknown or not among the `most` first."""
    ranks = np.full(len(distribution), np.inf)
    known = np.flatnonzero((codes >= 0).all(axis=1))
    own = np.full(len(distribution), -np.inf)
    own[known] = distribution.log_prob_at(known, codes[known])

    def close(rows: Codes, _: Codes, log_prob: Floats, complete: bool) -> npt.NDArray[np.bool_]:
        above = log_prob > _upper_tie_bound(own[rows])[:, None]
        found = ~above[:, -1] | complete
        ranks[rows[found]] = (np.exp(log_prob) * above).sum(axis=1)[found]
        return found

    _extend_lists(distribution, known, most, close)
    return ranks


def outcome_sets(
    distribution: BaseDistribution, level: float, most: int, inclusive: bool
) -> tuple[list[Codes | None], Floats]:
    """Return sets of outcomes and their probabilities; None is the set of all outcomes.

    Each set is the smallest whose probability is at least `level` or, if `inclusive`, all outcomes of at most that
    rank.
    """
    sets: list[Codes | None] = [None] * len(distribution)
    prob = np.ones(len(distribution))

    def close(rows: Codes, tops: Codes, log_prob: Floats, complete: bool) -> npt.NDArray[np.bool_]:
        each = np.exp(log_prob)
        total = np.cumsum(each, axis=1)
        if inclusive:
            ranks = np.stack([_ranks_of_list(*row) for row in zip(log_prob, each, strict=True)])
            inside = ranks <= level + _ROUNDING
            closed = ~inside[:, -1] | complete
        else:
            inside = total - each < level - _ROUNDING
            inside[:, 0] = True
            closed = (total[:, -1] >= level - _ROUNDING) | complete
        for place in np.flatnonzero(closed):
            size = int(inside[place].sum())
            sets[rows[place]], prob[rows[place]] = tops[place, :size], total[place, size - 1]
        return closed

    if np.isfinite(level):
        _extend_lists(distribution, np.arange(len(distribution)), most, close)
    return sets, prob


def _extend_lists(
    distribution: BaseDistribution,
    rows: Codes,
    most: int,
    close: Callable[[Codes, Codes, Floats, bool], npt.NDArray[np.bool_]],
) -> None:
    """List the most probable outcomes of each row, up to `most`, until they are enough.

    `close(rows, codes, log_prob, complete)` returns which rows need no longer list; `complete` says that all outcomes
    are listed. Rows are processed in batches that fit into memory.
    """
    n_outcomes = distribution.n_outcomes
    most = min(most, n_outcomes)
    small = n_outcomes <= _LISTING_LIMIT
    step = max(1, _MAX_CELLS // ((n_outcomes if small else most) * len(distribution.class_table.sizes)))
    for start in range(0, len(rows), step):
        left, k = rows[start : start + step], 0
        while len(left) and k < most:
            k = most if small else min(max(16, 4 * k), most)
            batch = distribution.rows(left)
            tops, log_prob = (batch.enumerate() if small else batch).top_codes(k)
            left = left[~close(left, tops, log_prob, k == n_outcomes)]


def _ranks_of_list(log_prob: Floats, prob: Floats) -> Floats:
    """Return the rank of each outcome in a list of the most probable ones."""
    order = np.argsort(-log_prob, kind="stable")
    before = np.concatenate([[0.0], np.cumsum(prob[order])])
    return before[np.searchsorted(-log_prob[order], -_upper_tie_bound(log_prob), side="left")]


def _upper_tie_bound(log_prob: Floats) -> Floats:
    """Return the log probability above which an outcome is more probable, not only by rounding error."""
    finite = np.where(np.isneginf(log_prob), 0.0, log_prob)
    return np.where(np.isneginf(log_prob), -np.inf, finite + TIE_TOLERANCE * np.maximum(1.0, np.abs(finite)))


def state_ranks(marginal: Floats) -> Floats:
    """Return the total probability of the states before each one, in descending order; ties keep their order."""
    order = np.argsort(-marginal, axis=1, kind="stable")
    ordered = np.take_along_axis(marginal, order, axis=1)
    ranks = np.empty_like(marginal)
    np.put_along_axis(ranks, order, np.cumsum(ordered, axis=1) - ordered, axis=1)
    return ranks


def state_sets(marginal: Floats, level: float, inclusive: bool) -> npt.NDArray[np.bool_]:
    """Return which states are in the set of each row, shape (n_rows, n_states); `inclusive` as in `outcome_sets`."""
    ranks = state_ranks(marginal)
    return ranks <= level if inclusive else (ranks < level - _ROUNDING) | (ranks == 0)


def true_state_ranks(distribution: BaseDistribution, codes: Codes) -> Floats:
    """Return the rank of the true state of each class variable, shape (n_rows, K); infinite if it is unknown."""
    ranks = np.full(codes.shape, np.inf)
    for k, marginal in enumerate(distribution.marginals()):
        known = np.flatnonzero(codes[:, k] >= 0)
        ranks[known, k] = state_ranks(marginal)[known, codes[known, k]]
    return ranks


def check_coverage(coverage: Any) -> None:
    """Raise ValueError unless the coverage is a number between 0 and 1."""
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.number)) or not 0 < coverage < 1:
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9.")
