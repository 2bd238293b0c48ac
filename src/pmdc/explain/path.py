"""How the log-odds of a state change from one network to another: contributions of tables and known states.

Both networks have the same graph. On the way from the first to the second, at time t from 0 to 1,

- the conditional table of class variable j is ``softmax((1 - t) log p_j + t log q_j)``, between its tables p_j and q_j;
- a state that becomes known is observed through the likelihood ``(1 - t) + t [y = its code]``, which excludes the
  others only at t = 1.

The log-odds F(t) = log P_t(Y_k = s) - log P_t(Y_k != s) is smooth, and its derivative is a sum over tables and known
states, of which each has the integral of its own part as its contribution: the value of Aumann and Shapley (1974), also
known as integrated gradients. The derivatives with respect to the tables are differences of posterior distributions of
families, so inference computes them exactly. The integrals are computed by Gauss-Legendre quadrature, halving intervals
until the sum over each agrees with the change of F.

The contribution of a table is linear in the change of its logarithms, sum over its cells of ``weights_j (log q_j -
log p_j)``, and the weights of each configuration of the parents sum to zero. Therefore it can be divided further: among
features, the log-probabilities of which it is the weighted sum (`pmdc.explain.shapley`), exactly if these are linear
up to a normaliser, as in logistic regression.

Beyond the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks, log_sum_exp
from pmdc.inference.evidence import NO_EVIDENCE
from pmdc.inference.junction_tree import JunctionTree

POINTS, SHARES = (np.polynomial.legendre.leggauss(16)[0] + 1) / 2, np.polynomial.legendre.leggauss(16)[1] / 2
"""Points and weights of the quadrature of an interval from 0 to 1."""

TOLERANCE = 1e-12
"""Largest difference between the integral over an interval and the change of the log-odds, relative to these."""

MAX_HALVINGS, MAX_PIECES = 200, 10_000
"""Limits of the halving. 200 halvings resolve likelihoods of 1e-60."""


class Endpoint(NamedTuple):
    """A network of one row, and the known states.

    Attributes
    ----------
    log_tables : sequence of arrays of shape (*sizes of the parents, size)
        They need not be normalised.
    known : array of shape (K,)
        Codes of known states; -1 is unknown.
    """

    log_tables: Sequence[Floats]
    known: Codes


class Change(NamedTuple):
    """The change of the log-odds along the path.

    Attributes
    ----------
    start, end : float
        The log-odds at both ends.
    tables : array of shape (K,)
        The contribution of the change of each table.
    known : array of shape (K,)
        The contribution of the change of what is known of each class variable.
    weights : list of arrays of the shapes of the tables
        ``(weights[j] * (change of log_tables[j])).sum() == tables[j]``; they sum to zero over the states.
    """

    start: float
    end: float
    tables: Floats
    known: Floats
    weights: list[Floats]


def change_of_log_odds(tree: JunctionTree, start: Endpoint, end: Endpoint, variable: int, state: int) -> Change:
    """Divide the change of the log-odds of a state among the tables and the known states.

    Parameters
    ----------
    tree : JunctionTree
        Its factors are the families of the class variables, in their order.
    start, end : Endpoint
    variable, state : int
        ``variable`` is known at neither end.
    """
    path = _Path(tree.unnormalised(), start, end, variable, state)
    first, last = path.log_odds(_Times(np.array([0.0, 1.0]), np.array([1.0, 0.0]))).tolist()
    weights = [np.zeros(table.shape) for table in path.differences]
    tables, known = np.zeros(len(weights)), np.zeros(len(weights))
    halves = np.array([0.0, 0.0]), np.array([0.5, 0.5]), np.array([False, True])
    pieces = _Pieces(*halves, *(path.log_odds(_Times.at(ends, halves[2])) for ends in halves[:2]))
    for halving in range(MAX_HALVINGS + 1):
        width = pieces.far - pieces.near
        rates = path.rates(pieces.times())
        inner = [_integrate(own, width) for own in rates.tables]
        outer = _integrate(rates.known, width)
        found = np.column_stack([_total(w, d) for w, d in zip(inner, path.differences, strict=True)])
        error = np.abs(found.sum(axis=1) + outer.sum(axis=1) - pieces.change)
        done = error <= TOLERANCE * pieces.scale
        for own, part in zip(weights, inner, strict=True):
            own += part[done].sum(axis=0)
        tables += found[done].sum(axis=0)
        known += outer[done].sum(axis=0)
        if done.all():
            return Change(first, last, tables, known, weights)
        if halving == MAX_HALVINGS or (~done).sum() > MAX_PIECES:
            break
        pieces = pieces.halved(~done, path)
    raise ValueError(
        f"the log-odds go from {first:.6g} to {last:.6g} by probabilities that are too small to be told apart from "
        "zero, so they cannot be divided: fit with a stronger penalty or with backoff='parents', or give other known "
        "states."
    )


class _Times(NamedTuple):
    """Times between 0 and 1: how far from the start and from the end, each without rounding."""

    passed: Floats
    left: Floats

    @classmethod
    def at(cls, distance: Floats, from_end: Marks) -> _Times:
        """Return the times at these distances from the start, or from the end."""
        return cls(np.where(from_end, 1 - distance, distance), np.where(from_end, distance, 1 - distance))

    def column(self, n_axes: int) -> _Times:
        """Return the same with further axes, to be multiplied with tables."""
        shape = (-1, *(1,) * n_axes)
        return _Times(self.passed.reshape(shape), self.left.reshape(shape))


class _Pieces(NamedTuple):
    """Intervals by the distances of their ends from the start or the end of the path, and the log-odds there."""

    near: Floats
    far: Floats
    from_end: Marks
    at_near: Floats
    at_far: Floats

    @property
    def change(self) -> Floats:
        """The change of the log-odds over each interval."""
        return np.where(self.from_end, -1.0, 1.0) * (self.at_far - self.at_near)

    @property
    def scale(self) -> Floats:
        return 1 + np.abs(self.at_near) + np.abs(self.at_far)

    def times(self) -> _Times:
        """Return the points of the quadrature in all intervals."""
        distance = self.near[:, None] + (self.far - self.near)[:, None] * POINTS
        return _Times.at(distance.ravel(), np.repeat(self.from_end, len(POINTS)))

    def halved(self, chosen: Marks, path: _Path) -> _Pieces:
        """Return both halves of some of the intervals."""
        near, far, from_end = self.near[chosen], self.far[chosen], self.from_end[chosen]
        middle = (near + far) / 2
        at_middle = path.log_odds(_Times.at(middle, from_end))
        return _Pieces(
            np.concatenate([near, middle]),
            np.concatenate([middle, far]),
            np.concatenate([from_end, from_end]),
            np.concatenate([self.at_near[chosen], at_middle]),
            np.concatenate([at_middle, self.at_far[chosen]]),
        )


class _Rates(NamedTuple):
    """Derivatives of the log-odds at several times: per unit of each change of log tables, and by known states."""

    tables: list[Floats]
    known: Floats


@dataclass
class _Path:
    """The networks between two endpoints."""

    tree: JunctionTree
    start: Endpoint
    end: Endpoint
    variable: int
    state: int

    def __post_init__(self) -> None:
        self.differences = [b - a for a, b in zip(self.start.log_tables, self.end.log_tables, strict=True)]

    def log_odds(self, times: _Times) -> Floats:
        """Return the log-odds at some times, also at 0 and 1."""
        n = len(times.passed)
        log_total = self.tree.log_evidence(self._both(self._observed(times, self._tables(times))))
        return log_total[:n] - log_total[n:]

    def rates(self, times: _Times) -> _Rates:
        """Return the derivatives at times strictly between 0 and 1."""
        tables, n = self._tables(times), len(times.passed)
        inner, known = [], np.zeros((n, len(tables)))
        families = self.tree.factor_marginals(self._both(self._observed(times, tables)))
        for j, (table, family) in enumerate(zip(tables, families, strict=True)):
            difference = family[:n] - family[n:]  # P(family | Y_k = s) - P(family | Y_k != s)
            inner.append(difference - difference.sum(axis=-1, keepdims=True) * np.exp(table))
            before, after = self._likelihoods(j)
            if not np.array_equal(before, after):
                states = difference.sum(axis=tuple(range(1, difference.ndim - 1)))
                likelihood = self._likelihood(j, times)
                slope = np.divide(after - before, likelihood, out=np.zeros_like(likelihood), where=likelihood > 0)
                known[:, j] = (states * slope).sum(axis=1)
        return _Rates(inner, known)

    def _tables(self, times: _Times) -> list[Floats]:
        """Return the normalised log tables at some times."""
        tables = []
        for a, b in zip(self.start.log_tables, self.end.log_tables, strict=True):
            column = times.column(a.ndim)
            mixed = column.left * a + column.passed * b
            tables.append(np.minimum(mixed - log_sum_exp(mixed), 0.0))
        return tables

    def _observed(self, times: _Times, tables: Sequence[Floats]) -> list[Floats]:
        """Return the tables times the likelihoods of the states that are or become known."""
        observed = list(tables)
        for j, table in enumerate(tables):
            with np.errstate(divide="ignore"):
                log_likelihood = np.log(self._likelihood(j, times))
            observed[j] = table + log_likelihood.reshape(len(table), *(1,) * (table.ndim - 2), -1)
        return observed

    def _likelihood(self, j: int, times: _Times) -> Floats:
        """Return the likelihood of each state of a class variable at some times."""
        before, after = self._likelihoods(j)
        column = times.column(1)
        return np.minimum(column.left * before + column.passed * after, 1.0)

    def _likelihoods(self, j: int) -> tuple[Floats, Floats]:
        """Return the likelihood of each state of a class variable at both ends."""
        size = self.differences[j].shape[-1]

        def likelihood(code: int) -> Floats:
            return np.ones(size) if code == NO_EVIDENCE else (np.arange(size) == code).astype(float)

        return likelihood(int(self.start.known[j])), likelihood(int(self.end.known[j]))

    def _both(self, tables: Sequence[Floats]) -> list[Floats]:
        """Return the tables of all rows given that the state is there, followed by those given that it is not."""
        both = [np.concatenate([table, table]) for table in tables]
        own, n = both[self.variable], len(tables[0])
        here = np.arange(own.shape[-1]) == self.state
        own[:n][..., ~here] = -np.inf
        own[n:][..., here] = -np.inf
        return both


def _integrate(rates: Floats, width: Floats) -> Floats:
    """Return the integrals over intervals of these widths; a first axis of intervals takes the place of the times."""
    by_interval = rates.reshape(len(width), len(SHARES), *rates.shape[1:])
    return np.einsum("ip...,p,i->i...", by_interval, SHARES, width)


def _total(weights: Floats, difference: Floats) -> Floats:
    return (weights * difference).reshape(len(weights), -1).sum(axis=1)
