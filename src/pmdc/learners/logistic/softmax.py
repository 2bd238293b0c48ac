"""Penalised softmax models: the problem of one part, its objective, and how states are coded.

For one part with m states, inputs a_i = (1, x_i), weights w_i and coefficients B = Q T the objective is

    f(T) = - sum_i w_i log softmax(Q T a_i)[y_i]  +  ridge / 2 |T|^2   (intercepts excepted).

Q is an orthonormal basis of the vectors over the states that sum to zero, where the penalty puts the coefficients
anyway, so that |T| = |B| and no coefficient is redundant; for two states it is (0, 1)', one coefficient vector as in
scikit-learn.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pmdc._support.arrays import Codes, Floats


@cache
def contrasts(m: int) -> Floats:
    """Return Q, Helmert's contrasts of m states, shape (m, m - 1); for two states (0, 1)'."""
    Q = np.zeros((m, m - 1))
    if m == 2:
        Q[1, 0] = 1.0
        return Q
    for e in range(1, m):
        Q[:e, e - 1] = 1.0 / np.sqrt(e * (e + 1))
        Q[e, e - 1] = -e / np.sqrt(e * (e + 1))
    return Q


class Problem:
    """The softmax model of the rows of one part: what is to be minimised.

    Parameters
    ----------
    A : array of shape (n, k)
        Inputs (1, x).
    y : array of shape (n,)
        States, numbered among those that the part has.
    w : array of shape (n,)
    Q : array of shape (m, v)
    ridge : float
    """

    def __init__(self, A: Floats, y: Codes, w: Floats, Q: Floats, ridge: float):
        self.A, self.y, self.w, self.Q, self.ridge = A, y, w, Q, ridge
        self._rows = np.arange(len(y))

    def take(self, rows: Codes) -> tuple[Problem, Codes]:
        """Return the problem of some of the rows, and the number of each state among those that are left, or -1."""
        present = np.bincount(self.y[rows], minlength=len(self.Q)) > 0
        local = np.where(present, np.cumsum(present) - 1, -1)
        Q = self.Q if present.all() else contrasts(int(present.sum()))
        return Problem(self.A[rows], local[self.y[rows]], self.w[rows], Q, self.ridge), local

    def scores(self, T: Floats) -> Floats:
        """Return Q T A', shape (m, n): states first, which numpy sums over faster."""
        return self.Q @ (T @ self.A.T)

    def penalty(self, T: Floats, V: Floats) -> float:
        """Return ridge times the inner product of two sets of coefficients, intercepts excepted."""
        return self.ridge * float(np.vdot(T[:, 1:], V[:, 1:]))

    def softmax(self, S: Floats) -> tuple[Floats, float]:
        """Return the probabilities of scores and minus the log-likelihood."""
        top = S.max(axis=0)
        P = np.exp(S - top)
        total = P.sum(axis=0)
        P /= total
        return P, float(self.w @ (top - self.own(S) + np.log(total)))  # row by row, so that large scores cancel

    def own(self, S: Floats) -> Floats:
        """Return the score of each row's own state."""
        return S[self.y, self._rows]

    def gradient(self, P: Floats, T: Floats) -> Floats:
        """Return the gradient of the objective, shape (v, k)."""
        R = P * self.w
        R[self.y, self._rows] -= self.w
        grad = (self.Q.T @ R) @ self.A
        grad[:, 1:] += self.ridge * T[:, 1:]
        return grad

    def frequencies(self) -> tuple[Floats, float]:
        """Return the coefficients of the model that knows the frequencies of the states alone, and its objective."""
        weight = np.bincount(self.y, weights=self.w, minlength=len(self.Q))
        T = np.zeros((self.Q.shape[1], self.A.shape[1]))
        log_weight = np.log(weight)
        T[:, 0] = log_weight[1] - log_weight[0] if len(weight) == 2 else self.Q.T @ log_weight
        return T, float(-weight @ (log_weight - np.log(weight.sum())))
