"""The E-step of EM: the ways to complete rows whose states are partly missing, and their probabilities.

A row is completed in all ways that its missing class variables allow; the weight of a completion is its probability
given the features and the known states. Ways that are improbable are left out, and rows with too many ways get draws.
The local models of a family see those completions only as far as they differ in the family (`Fitter.local`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks, log_sum_exp
from pmdc.inference.distribution import JointDistribution
from pmdc.inference.evidence import NO_EVIDENCE

MIN_PROBABILITY = 1e-3
"""Completions that are less probable given their row are left out; the others then share their probability."""

MAX_COMPLETIONS = 64
"""A row with more ways to complete it gets `N_DRAWS` draws from their distribution instead of all of them."""

N_DRAWS = 20
"""Draws for a row with many ways."""


class Completions(NamedTuple):
    """Rows completed in several ways.

    Attributes
    ----------
    rows : array of shape (m,)
        The row that each is a completion of, ascending.
    codes : array of shape (m, K)
    weights : array of shape (m,)
        Posterior probabilities: those of a row sum to 1.
    log_prob : array of shape (n,)
        log P(known states | x) of each row.
    pruned : float
        The largest share of a row's probability that was left out.
    n_drawn : int
        The number of rows that got draws.
    """

    rows: Codes
    codes: Codes
    weights: Floats
    log_prob: Floats
    pruned: float
    n_drawn: int

    @classmethod
    def join(cls, pieces: Sequence[Completions]) -> Completions:
        """Return the completions of several parts of a table as one."""
        start = np.cumsum([0, *(len(piece.log_prob) for piece in pieces)])
        return cls(
            np.concatenate([first + piece.rows for first, piece in zip(start, pieces, strict=False)]),
            np.concatenate([piece.codes for piece in pieces]),
            np.concatenate([piece.weights for piece in pieces]),
            np.concatenate([piece.log_prob for piece in pieces]),
            max(piece.pruned for piece in pieces),
            sum(piece.n_drawn for piece in pieces),
        )


class _Ways(NamedTuple):
    """Some rows in several ways: row numbers, codes, weights; log P(known states | x) and what was left out."""

    rows: Codes
    codes: Codes
    weights: Floats
    log_prob: Floats
    pruned: float = 0.0


def complete(joint: JointDistribution, codes: Codes, n_draws: int | None = None) -> Completions:
    """Complete rows: exactly, or by draws where there are more than `MAX_COMPLETIONS` ways.

    Parameters
    ----------
    joint : JointDistribution
        Of the same rows; restricted to the possible states where these are known.
    codes : array of shape (n, K)
        Negative where a state is missing.
    n_draws : int or None
        The number of draws that every row gets; None for the rule above.
    """
    log_prob, pruned = np.zeros(len(codes)), 0.0
    drawn = np.ones(len(codes), dtype=bool)
    if n_draws is None:
        drawn = (codes < 0) @ np.log2(joint.class_table.sizes) > math.log2(MAX_COMPLETIONS) + 1e-9
    patterns, pattern = np.unique(codes < 0, axis=0, return_inverse=True)
    pieces: list[_Ways] = []
    if drawn.any():
        rows = np.flatnonzero(drawn)
        pieces.append(_draw(joint, codes, rows, N_DRAWS if n_draws is None else n_draws))
        log_prob[rows] = pieces[0].log_prob
    for number, missing in enumerate(patterns):
        rows = np.flatnonzero((pattern.ravel() == number) & ~drawn)
        if len(rows):
            pieces.append(_enumerate(joint, codes, rows, np.flatnonzero(missing)))
            log_prob[rows], pruned = pieces[-1].log_prob, max(pruned, pieces[-1].pruned)
    index, completed, weights = (np.concatenate(part) for part in list(zip(*pieces, strict=True))[:3])
    order = np.argsort(index, kind="stable")
    return Completions(index[order], completed[order], weights[order], log_prob, pruned, int(drawn.sum()))


def _enumerate(joint: JointDistribution, codes: Codes, rows: Codes, free: Codes) -> _Ways:
    """Complete rows with the same missing class variables in all ways."""
    ways = np.array(list(np.ndindex(*(joint.class_table.sizes[k] for k in free))), dtype=np.int64)
    index = np.repeat(rows, len(ways))
    completed = codes[index]
    completed[:, free] = np.tile(ways, (len(rows), 1))
    log_p = joint.table_log_prob_at(index, completed).reshape(len(rows), len(ways))
    total = log_sum_exp(log_p)
    posterior = np.exp(log_p - np.where(np.isneginf(total), 0.0, total))
    impossible = np.isneginf(total[:, 0])
    if impossible.any():  # without back-off, known states may have probability zero: any possible way is as good
        open_ways = np.ones(posterior[impossible].shape)
        for j, k in enumerate(free.tolist()):
            open_ways *= _possible(joint, k, rows[impossible])[:, ways[:, j]]
        posterior[impossible] = open_ways / open_ways.sum(axis=1, keepdims=True)
    kept = (posterior >= MIN_PROBABILITY) | (posterior == posterior.max(axis=1, keepdims=True))
    mass = np.where(kept, posterior, 0.0).sum(axis=1, keepdims=True)
    chosen = kept.ravel()
    weights = (posterior / mass).ravel()[chosen]
    return _Ways(index[chosen], completed[chosen], weights, total[:, 0], float(max(0.0, 1.0 - mass.min())))


def _draw(joint: JointDistribution, codes: Codes, rows: Codes, n_draws: int) -> _Ways:
    """Complete rows by draws."""
    random = np.random.RandomState(0)
    evidence = np.maximum(codes[rows], NO_EVIDENCE)
    log_prob = joint.rows(rows).table_log_evidence(evidence)
    drawn = np.repeat(evidence[:, None], n_draws, axis=1)
    likely = np.flatnonzero(~np.isneginf(log_prob))
    if len(likely):
        drawn[likely] = joint.rows(rows[likely]).given_codes(evidence[likely]).sample_codes(n_draws, random)
    for row in np.flatnonzero(np.isneginf(log_prob)).tolist():  # as in `_enumerate`
        for k in np.flatnonzero(evidence[row] == NO_EVIDENCE).tolist():
            states = np.flatnonzero(_possible(joint, k, rows[[row]])[0])
            drawn[row, :, k] = random.choice(states, n_draws)
    index = np.repeat(rows, n_draws)
    return _Ways(index, drawn.reshape(len(index), -1), np.full(len(index), 1.0 / n_draws), log_prob)


def _possible(joint: JointDistribution, k: int, rows: Codes) -> Marks:
    """Return which states of a class variable the rows may have."""
    own = None if joint.possible is None else joint.possible[k]
    return np.ones((len(rows), joint.class_table.sizes[k]), dtype=bool) if own is None else own[rows]
