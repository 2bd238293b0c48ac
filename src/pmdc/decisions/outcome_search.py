"""Losses that need a search over outcomes: the sub-exact loss, and any function of two outcomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_count
from pmdc.decisions.losses import Choice, HammingLoss, Loss
from pmdc.inference.base import BaseDistribution, all_outcomes, contradicts
from pmdc.inference.evidence import NO_EVIDENCE

_MAX_CELLS = 2**22
"""Largest number of values in a table over outcomes held at once."""
_MAX_OUTCOMES = 2**18
"""Up to this many outcomes, all are compared for the sub-exact loss."""
_MAX_CALLS = 2**20
"""Largest number of pairs of outcomes for which a function that takes one pair is called."""


# Sub-exact loss -----------------------------------------------------------------------------------------------


class SubExactLoss(Loss):
    """Whether more than one class variable is wrong.

    The expected loss of an outcome is one minus the probability of its ball: the outcome itself and all outcomes that
    differ from it in one class variable. Up to 2**18 outcomes, all are compared. Above, only balls around the most
    probable outcomes are compared (32, then more). The probability of all unlisted outcomes bounds the other balls: if
    this does not prove the best ball found, `proved` is False. The expected loss is exact in all cases.
    """

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        if distribution.n_outcomes <= _MAX_OUTCOMES:
            return _keep_evidence(distribution, self._among_all(distribution))
        sizes = distribution.class_table.sizes
        n_rows = len(distribution)
        codes = np.empty((n_rows, len(sizes)), dtype=np.int64)
        ball, proved = np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
        for listed in (32, 256, 2048):
            rows = np.flatnonzero(~proved)
            if not len(rows) or (listed > 32 and listed * (1 + sum(sizes) - len(sizes)) * len(sizes) > _MAX_CELLS):
                break
            tops, log_prob = distribution.rows(rows).top_codes(min(listed, distribution.n_outcomes))
            for row, top, logs in zip(rows, tops, log_prob, strict=True):
                codes[row], ball[row], proved[row] = self._among_listed(distribution, int(row), top, np.exp(logs))
        return _keep_evidence(distribution, Choice(codes, np.maximum(1 - ball, 0.0), np.zeros(n_rows), proved))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return ((true != predicted).sum(axis=1) > 1).astype(float)

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        balls = _balls(predicted, distribution.class_table.sizes)
        rows = np.repeat(np.arange(len(balls)), balls.shape[1])
        prob = np.exp(distribution.log_prob_at(rows, balls.reshape(len(rows), -1)))
        return 1 - prob.reshape(balls.shape[:2]).sum(axis=1)

    def _among_all(self, distribution: BaseDistribution) -> Choice:
        sizes = distribution.class_table.sizes
        outcomes = all_outcomes(sizes)
        best, ball = np.empty(len(distribution), dtype=np.int64), np.empty(len(distribution))
        step = max(1, _MAX_CELLS // len(outcomes))
        for start in range(0, len(distribution), step):
            rows = slice(start, start + step)
            prob = np.exp(distribution.rows(rows).enumerate().log_p).reshape(-1, *sizes)
            balls = -(len(sizes) - 1) * prob
            for axis in range(1, len(sizes) + 1):
                balls = balls + prob.sum(axis=axis, keepdims=True)
            flat = balls.reshape(len(prob), -1)
            best[rows], ball[rows] = flat.argmax(axis=1), flat.max(axis=1)
        return Choice.exact(outcomes[best], 1 - ball)

    def _among_listed(
        self, distribution: BaseDistribution, row: int, listed: Codes, prob: Floats
    ) -> tuple[Codes, float, bool]:
        """Return the best ball around listed outcomes and their neighbours, and whether it is proved to be optimal."""
        sizes = distribution.class_table.sizes
        centres = _balls(listed, sizes)
        candidates, place = np.unique(centres.reshape(-1, len(sizes)), axis=0, return_inverse=True)
        inside = np.bincount(place.ravel(), np.repeat(prob, centres.shape[1]))  # probability of listed outcomes
        unlisted = max(0.0, 1 - prob.sum())
        order = np.argsort(-inside, kind="stable")
        best, chosen, done = -1.0, candidates[order[0]], 0
        while done < min(len(order), 256) and best < inside[order[done]] + unlisted:
            some = candidates[order[done : done + 16]]
            done += len(some)
            around = _balls(some, sizes).reshape(-1, len(sizes))
            each = (
                np.exp(distribution.log_prob_at(np.full(len(around), row), around)).reshape(len(some), -1).sum(axis=1)
            )
            if each.max() > best:
                best, chosen = float(each.max()), some[each.argmax()]
        left = inside[order[done]] if done < len(order) else 0.0
        return chosen, best, bool(best >= left + unlisted)


def _balls(codes: Codes, sizes: tuple[int, ...]) -> Codes:
    """Return each outcome and its neighbours, which differ in one class variable; shape (n, 1 + n_neighbours, K)."""
    balls = [codes]
    for k, size in enumerate(sizes):
        for shift in range(1, size):
            other = codes.copy()
            other[:, k] = (other[:, k] + shift) % size
            balls.append(other)
    return np.stack(balls, axis=1)


def _keep_evidence(distribution: BaseDistribution, choice: Choice) -> Choice:
    """Set known states in the choice, which cannot increase a loss that counts mistakes."""
    if distribution.evidence is None:
        return choice
    return choice._replace(codes=np.where(distribution.evidence == NO_EVIDENCE, choice.codes, distribution.evidence))


# Custom loss --------------------------------------------------------------------------------------------------


class CustomLoss(Loss):
    """Any function of the true and the predicted outcome.

    Parameters
    ----------
    function : callable
        ``function(y_true, y_pred)`` gets two outcomes, arrays of K states, and returns a finite number. It is much
        faster if it also accepts two arrays of shape (m, K) and returns m numbers, which is detected.
    enumerate_up_to : int
        Up to this many outcomes, the exact expected losses of all are computed (1,024 for a function of one pair).
    n_samples : int
        The number of draws to estimate expected losses if there are more outcomes; five times as many for the best
        candidates and for the reported expected loss.
    n_candidates : int
        The number of outcomes that are compared before the best ones are improved, one class variable at a time.

    Notes
    -----
    If not all outcomes are compared, the candidates are the most probable outcomes, the Hamming decision and draws.
    Their expected losses are estimated from the most probable outcomes, with exact weights, and draws from the rest.
    The reported expected loss is estimated from new draws, so it has no selection bias. A loss that is huge for
    outcomes too rare to be drawn is underestimated, and so is its standard error. Known states (`given`) are always
    predicted. All rows use the same random numbers: the prediction for a row does not depend on the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pmdc.decisions import CustomLoss
    >>> loss = CustomLoss(lambda y_true, y_pred: (y_true != y_pred).any(axis=-1))
    """

    def __init__(
        self, function: Callable[..., Any], enumerate_up_to: int = 4096, n_samples: int = 1000, n_candidates: int = 64
    ):
        self.function = function
        self.enumerate_up_to = enumerate_up_to
        self.n_samples = n_samples
        self.n_candidates = n_candidates

    def check(self, class_table: Any) -> None:
        check_count("enumerate_up_to", self.enumerate_up_to, 0)
        check_count("n_samples", self.n_samples, 2)
        check_count("n_candidates", self.n_candidates, 1)

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        if not len(distribution):
            return Choice.exact(np.empty((0, len(distribution.class_table.sizes)), dtype=np.int64), np.empty(0))
        losses = _PairLosses(self.function, distribution)
        limit = self.enumerate_up_to if losses.vectorised else min(self.enumerate_up_to, int(np.sqrt(_MAX_CALLS)))
        if distribution.n_outcomes <= limit:
            return self._among_all(distribution, losses)
        seed = int(random.randint(2**31 - 1))
        rows = [
            self._in_row(distribution.rows(np.array([row])), losses, np.random.RandomState(seed))
            for row in range(len(distribution))
        ]
        codes, expected, error = zip(*rows, strict=True)
        return Choice(np.stack(codes), np.array(expected), np.array(error), np.zeros(len(rows), dtype=bool))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return _PairLosses(self.function, distribution)(true, predicted)

    def _among_all(self, distribution: BaseDistribution, losses: _PairLosses) -> Choice:
        outcomes = all_outcomes(distribution.class_table.sizes)
        matrix = np.empty((len(outcomes), len(outcomes)))
        step = max(1, _MAX_CELLS // 16 // len(outcomes))
        for start in range(0, len(outcomes), step):
            some = outcomes[start : start + step]
            pairs = np.repeat(some, len(outcomes), axis=0)
            matrix[:, start : start + step] = losses(np.tile(outcomes, (len(some), 1)), pairs).reshape(len(some), -1).T
        best, expected = np.empty(len(distribution), dtype=np.int64), np.empty(len(distribution))
        step = max(1, _MAX_CELLS // len(outcomes))
        for start in range(0, len(distribution), step):
            rows = slice(start, start + step)
            risk = np.exp(distribution.rows(rows).enumerate().log_p) @ matrix
            if distribution.evidence is not None:
                risk[contradicts(distribution.evidence[rows], outcomes)] = np.inf
            best[rows], expected[rows] = risk.argmin(axis=1), risk.min(axis=1)
        n_rows = len(distribution)
        return Choice(outcomes[best], expected, np.zeros(n_rows), np.ones(n_rows, dtype=bool))

    def _in_row(
        self, row: BaseDistribution, losses: _PairLosses, random: np.random.RandomState
    ) -> tuple[Codes, float, float]:
        """Return the best outcome found for one row, its estimated expected loss and the standard error of this."""
        tops, log_prob = row.top_codes(min(self.n_candidates, row.n_outcomes))
        top, prob = tops[0], np.exp(log_prob[0])
        truths, weights, _ = self._truths(row, top, prob, random, self.n_samples)
        drawn = np.unique(truths[len(top) :], axis=0)
        drawn = drawn[random.permutation(len(drawn))[: self.n_candidates]]
        hamming = HammingLoss().choose(row, random).codes
        candidates = np.unique(np.vstack([top[prob > 0], hamming, drawn]), axis=0)
        risk = self._risk(losses, truths, weights, candidates)
        # Compare the best few again, and improve them, with more draws: the best of many is partly chosen by chance.
        # Use fewer draws if an outcome has many neighbours.
        n_neighbours = sum(row.class_table.sizes)
        affordable = max(self.n_samples // 4, _MAX_CELLS // (n_neighbours * len(row.class_table.sizes)))
        truths, weights, _ = self._truths(row, top, prob, random, min(5 * self.n_samples, affordable))
        few = candidates[np.argsort(risk, kind="stable")[:4]]
        fixed = None if row.evidence is None else row.evidence[0] != NO_EVIDENCE
        improved = [self._improve(losses, truths, weights, start, row.class_table.sizes, fixed) for start in few]
        best, _ = min(improved, key=lambda pair: pair[1])
        # Estimate the expected loss from new draws.
        truths, weights, rest = self._truths(row, top, prob, random, 5 * self.n_samples)
        each = losses(truths, np.broadcast_to(best, truths.shape))
        others = each[len(top) :]
        spread = others.std(ddof=1) / np.sqrt(len(others)) if len(others) > 1 else np.ptp(each)
        return best, float(each @ weights), float(rest * spread)

    def _truths(
        self, row: BaseDistribution, top: Codes, prob: Floats, random: np.random.RandomState, n_samples: int
    ) -> tuple[Codes, Floats, float]:
        """Return the most probable outcomes and draws of all others, their weights, and the weight of the others."""
        rest = max(0.0, 1 - prob.sum())
        if rest < 1e-12:
            return top, prob / prob.sum(), 0.0
        listed = set(map(tuple, top.tolist()))
        others: list[list[int]] = []
        for _ in range(20):  # draws of listed outcomes are discarded; give up if hardly any others are drawn
            drawn = row.sample_codes(n_samples, random)[0].tolist()
            others += [outcome for outcome in drawn if tuple(outcome) not in listed]
            if len(others) >= n_samples:
                break
        others = others[:n_samples]
        if not others:
            return top, prob / prob.sum(), rest
        weights = np.concatenate([prob, np.full(len(others), rest / len(others))])
        return np.vstack([top, others]), weights, rest

    def _risk(self, losses: _PairLosses, truths: Codes, weights: Floats, candidates: Codes) -> Floats:
        """Return the expected loss of each candidate."""
        risk = np.empty(len(candidates))
        step = max(1, _MAX_CELLS // truths.size)
        for start in range(0, len(candidates), step):
            some = candidates[start : start + step]
            each = losses(np.tile(truths, (len(some), 1)), np.repeat(some, len(truths), axis=0))
            risk[start : start + step] = each.reshape(len(some), -1) @ weights
        return risk

    def _improve(
        self,
        losses: _PairLosses,
        truths: Codes,
        weights: Floats,
        start: Codes,
        sizes: tuple[int, ...],
        fixed: npt.NDArray[np.bool_] | None,
    ) -> tuple[Codes, float]:
        """Move to the best outcome that differs in one class variable (not a fixed one) while the loss decreases."""
        current = start
        lowest = float(self._risk(losses, truths, weights, current[None])[0])
        while True:
            ball = _balls(current[None], sizes)[0]
            if fixed is not None:
                ball = ball[(ball[:, fixed] == current[fixed]).all(axis=1)]
            risk = self._risk(losses, truths, weights, ball)
            if not risk.min() < lowest - 1e-12 * abs(lowest):
                return current, lowest
            current, lowest = ball[risk.argmin()], float(risk.min())


class _PairLosses:
    """A loss function of two outcomes, applied to many pairs of codes; called once if it is vectorised."""

    def __init__(self, function: Callable[..., Any], distribution: BaseDistribution):
        self._function = function
        self._states_of = distribution.states_of
        sizes = distribution.class_table.sizes
        trial = np.random.RandomState(0).randint(0, sizes, size=(2, len(sizes) + 2, len(sizes)))
        true, pred = self._states_of(trial[0]), self._states_of(trial[1])
        each = self._one_by_one(true, pred)
        try:
            together = np.asarray(function(true, pred), dtype=float)
            self.vectorised = together.shape == each.shape and bool(np.allclose(together, each))
        except Exception:
            self.vectorised = False

    def __call__(self, true: Codes, pred: Codes) -> Floats:
        states = self._states_of(true), self._states_of(pred)
        if not self.vectorised:
            return self._one_by_one(*states)
        losses = np.asarray(self._function(*states), dtype=float)
        return self._checked(losses, *states)

    def _one_by_one(self, true: Any, pred: Any) -> Floats:
        losses = np.empty(len(true))
        for i, (one, other) in enumerate(zip(true, pred, strict=True)):
            loss = self._function(one, other)
            try:
                losses[i] = float(loss)
            except (TypeError, ValueError):
                raise ValueError(
                    f"loss returned {loss!r} for y_true={one.tolist()}, y_pred={other.tolist()}: it gets two outcomes "
                    "and must return a number."
                ) from None
        return self._checked(losses, true, pred)

    @staticmethod
    def _checked(losses: Floats, true: Any, pred: Any) -> Floats:
        if not np.isfinite(losses).all():
            wrong = int(np.argmax(~np.isfinite(losses)))
            raise ValueError(
                f"loss returned {losses[wrong]} for y_true={true[wrong].tolist()}, y_pred={pred[wrong].tolist()}: it "
                "must return a finite number."
            )
        return losses
