"""What the softmax models of `newton` would answer to each row had they been fitted without it.

One Newton step from the optimum with the row towards that without it needs no more than the Hessian H with the row. In
the notation of `softmax`, with J_i = I (x) a_i, so that the contrasts of row i have the scores J_i'T, with its residual
r_i = Q'(p_i - y_i) and its curvature W_i = Q'(diag p_i - p_i p_i')Q,

    gradient without the row:  - w_i J_i r_i,       Hessian without the row:  H - w_i J_i W_i J_i',

and by Woodbury's identity the step changes the scores of the row itself by

    d_i = (I - w_i A_i W_i)^-1 w_i A_i r_i,         A_i = J_i' H^-1 J_i.

A_i is made of matrix products: with H = U'U, blocks V_eg of V = U^-1 (zero where e > g) and b_eg = V_eg'a_i,

    A_i[e, f] = sum over g >= e, f of  b_eg'b_fg,

and in turn A_i = L L' makes the small system symmetric: with z = (I - w_i L'W_i L)^-1 w_i L'r_i, d_i = L z.

The eigenvalues of w_i L'W_i L, the leverages of the row, are below 1. Where one is nearly 1 the model follows the row
wherever it goes and the step has no bounds: no pivot of the small system is taken as less than `LEAST`. As r_i'd_i is
not negative, no row gains probability by leaving, as none does by the models fitted without it.

As in `newton`, the Hessian is diagonal along the last axes, on which the penalty outweighs the data. There it is taken
to be the same without the row, so these axes add to d_i by themselves. Between the contrasts of the states nothing may
be neglected: with many coefficients for the rows too little would seem to change.

The step falls short where the row changes the curvature of others by leaving: with few rows for the coefficients and
a weak penalty, or where values are rare. The rows that it moves far, and those of great leverage, go on to the optimum
without them (`following`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled
from pmdc.learners.logistic.following import (
    LEAST,
    cholesky_in_place,
    follow,
    solve_in_place,
    triangular_inverse,
)
from pmdc.learners.logistic.newton import factor
from pmdc.learners.logistic.softmax import (
    along,
    energies,
    helmert,
    local_states,
    room,
    row_space,
    scores,
    softmax,
    take_rows,
)

_NEGLIGIBLE = 0.02
"""As in `newton`, but here the Hessian does more than steer."""

_SURE = 1e-2
"""A row stays as it is where its probability of all other states cannot change by more than this share."""

_SOME = 256
"""Rows of a matrix product of which the answer should stay near the processor."""


@compiled()
def scores_without(
    X: Floats,
    codes: Codes,
    weights: Floats,
    order: Codes,
    starts: Codes,
    number: Codes,
    ridge: float,
    coef: Floats,
    out: Floats,
) -> float:
    """The scores of each row by the models of its part without it.

    Parameters
    ----------
    X, codes, weights, order, starts, number, ridge : as in `newton.fit_parts`
    coef : array of shape (n_groups, d + 1)
        What `newton.fit_parts` has found.
    out : array of shape (n, n_states)
        Where the scores are written to, of states that the part of the row has.

    Returns
    -------
    missing : float
        By how much more the log-probabilities would fall if all rows went on that should, as far as that can be told.
    """
    n_parts, n_states = number.shape
    k = X.shape[1] + 1
    A, y, w, Z, Z32 = room(starts, k)
    local = np.empty(n_states, dtype=np.int64)
    missing = 0.0
    for p in range(n_parts):
        rows = order[starts[p] : starts[p + 1]]
        n, m = len(rows), local_states(number[p], local)
        S = np.zeros((n, m))
        if m > 1:
            take_rows(X, codes, weights, rows, local, A, y, w)
            B = np.empty((m, k))
            for s in range(n_states):
                if number[p, s] >= 0:
                    for j in range(k):
                        B[local[s], j] = coef[number[p, s], j]
            part, negligible = A[:n], _NEGLIGIBLE
            R = row_space(part, w[:n], ridge, _NEGLIGIBLE)
            if R.shape[1]:  # few axes, and not the principal ones: none is left to the diagonal
                part, B, negligible = along(part, R), along(B, R), 0.0
            scores(part, B, np.eye(m), S)
            missing += _leave(part, y[:n], w[:n], ridge, negligible, n / len(order), B, S, Z, Z32)
        for r in range(n):
            for s in range(n_states):
                if number[p, s] >= 0:
                    out[rows[r], s] = S[r, local[s]]
    return missing


@compiled(inline="always")
def _leave(
    A: Floats,
    y: Codes,
    w: Floats,
    ridge: float,
    negligible: float,
    share: float,
    B: Floats,
    S: Floats,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
) -> float:
    """Change the scores S of the rows of a part, by the coefficients B, to those without the row.

    Returns what is missing, as `follow` does.
    """
    n, k = A.shape
    m = S.shape[1]
    Q = helmert(m)
    v = Q.shape[1]
    P, zero = np.empty((n, m)), np.zeros((n, m))
    softmax(S, zero, 0.0, y, w, P)
    energy, norms = energies(A, w)
    added = np.full(k, ridge)
    added[0] = 0.0
    diagonal, work = np.empty((v, k)), np.zeros(1)
    no = np.bool_(False)  # its type is that of `newton`, not of a literal
    U, width = factor(A, w, P, Q, added, no, no, negligible, energy, norms, diagonal, Z, Z32, work)
    V = triangular_inverse(U[0])
    some = _unsure(y, w, P, norms, ridge, V, width)
    # Entries of U^-1 A' lose digits by the root of the condition of H only.
    if ridge > 1e-8 * diagonal.max():
        Y32 = np.empty((len(some), width), dtype=np.float32)
        inner = _inner_products(_first_axes(A, some, Y32), V)
    else:
        Y = np.empty((len(some), width))
        inner = _inner_products(_first_axes(A, some, Y), V)
    last = _last_axes(A, some, diagonal, width)
    before = S.copy()
    leverage = _change(S, y, w, P, Q, some, inner, last)
    T = B[1:] - B[:1] if m == 2 else np.dot(Q.T, B)
    return follow(A, y, w, ridge, negligible, Q, T, P, before, V, diagonal, width, some, leverage, share, Z, Z32, S)


@compiled()
def _unsure(y: Codes, w: Floats, P: Floats, norms: Floats, ridge: float, V: Floats, width: int) -> Codes:
    """The rows that may change: A_i is at most 2 (the intercepts' part of H^-1 + |x_i|^2 / ridge)."""
    intercepts = 0.0
    for e in range(0, V.shape[0], width):
        for j in range(V.shape[1]):
            intercepts += V[e, j] * V[e, j]
    some = np.empty(len(y), dtype=np.int64)
    count = 0
    for i in range(len(y)):
        if not 2.0 * w[i] * (1.0 - P[i, y[i]]) * (intercepts + (norms[i] - 1.0) / ridge) < _SURE:
            some[count] = i
            count += 1
    return some[:count]


@compiled()
def _first_axes(A: Floats, rows: Codes, Y: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The rows of A along the first axes, in the precision of Y."""
    for r in range(len(rows)):
        for j in range(Y.shape[1]):
            Y[r, j] = A[rows[r], j]
    return Y


@compiled(fastmath=SUMS)
def _inner_products(Y: npt.NDArray[np.floating], V: Floats) -> Floats:
    """A_i of each row of Y, of which the lower triangle is written."""
    n, width = Y.shape
    v = len(V) // width
    out = np.zeros((n, v, v))
    for g in range(v):
        columns = np.empty((width, (g + 1) * width), dtype=Y.dtype)
        for e in range(g + 1):
            for i in range(width):
                for j in range(width):
                    columns[i, e * width + j] = V[e * width + i, g * width + j]
        for start in range(0, n, _SOME):
            B = np.dot(Y[start : start + _SOME], columns)
            for r in range(len(B)):
                for e in range(g + 1):
                    for f in range(e + 1):
                        total = Y.dtype.type(0.0)
                        for j in range(width):
                            total += B[r, e * width + j] * B[r, f * width + j]
                        out[start + r, e, f] += total
    return out


@compiled(fastmath=SUMS)
def _last_axes(A: Floats, rows: Codes, diagonal: Floats, width: int) -> Floats:
    """The diagonal of J_i' H^-1 J_i along the last axes, where H is diagonal."""
    v, k = diagonal.shape
    out = np.empty((len(rows), v))
    inverse = 1.0 / diagonal
    for r in range(len(rows)):
        for e in range(v):
            total = 0.0
            for j in range(width, k):
                total += inverse[e, j] * A[rows[r], j] * A[rows[r], j]
            out[r, e] = total
    return out


@compiled()
def _change(S: Floats, y: Codes, w: Floats, P: Floats, Q: Floats, rows: Codes, inner: Floats, last: Floats) -> Floats:
    """S_i + Q d_i for some rows, given their A_i along the first and the last axes; and their leverages.

    Of these a lower bound of the greatest is told: 1 less the least pivot of I - w L'W L.
    """
    leverage = np.zeros(len(rows))
    m, v = Q.shape
    R, N = np.empty((m, v)), np.empty((v, v))
    z, mean = np.empty(v), np.empty(v)
    for r in range(len(rows)):
        i = rows[r]
        L = inner[r]
        for e in range(v):
            residual = -Q[y[i], e]
            for a in range(m):
                residual += Q[a, e] * P[i, a]
            for a in range(m):
                S[i, a] += Q[a, e] * w[i] * last[r, e] * residual
        cholesky_in_place(L, 1e-12 * np.trace(L))
        # With R = Q L, L'W L is the covariance of the rows of R under p, and L'r their mean less the own row.
        for e in range(v):
            mean[e] = 0.0
            for a in range(m):
                R[a, e] = 0.0
                for f in range(e, v):
                    R[a, e] += Q[a, f] * L[f, e]
                mean[e] += P[i, a] * R[a, e]
        for e in range(v):
            z[e] = w[i] * (mean[e] - R[y[i], e])
            for f in range(e + 1):
                total = 0.0
                for a in range(m):
                    total += P[i, a] * (R[a, e] - mean[e]) * (R[a, f] - mean[f])
                N[e, f] = (e == f) - w[i] * total
        cholesky_in_place(N, LEAST)
        for e in range(v):
            leverage[r] = max(leverage[r], 1.0 - N[e, e] * N[e, e])
        solve_in_place(N, z)
        for a in range(m):
            for e in range(v):
                S[i, a] += R[a, e] * z[e]
    return leverage
