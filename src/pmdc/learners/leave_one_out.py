"""What the softmax models of `newton` would answer to each row had they been fitted without it.

One Newton step from the optimum with the row towards that without it needs no more than the Hessian H with the row. In
the notation of `newton`, with J_i = I (x) a_i, so that the contrasts of row i have the scores J_i'T, with its residual
r_i = Q'(p_i - y_i) and its curvature W_i = Q'(diag p_i - p_i p_i')Q,

    gradient without the row:  - w_i J_i r_i,       Hessian without the row:  H - w_i J_i W_i J_i',

and by Woodbury's identity the step changes the scores of the row itself by

    d_i = (I - w_i A_i W_i)^-1 w_i A_i r_i,         A_i = J_i' H^-1 J_i.

A_i is made of matrix products: with H = U'U, blocks V_eg of V = U^-1 (zero where e > g) and b_eg = V_eg'a_i,

    A_i[e, f] = sum over g >= e, f of  b_eg'b_fg,

and in turn A_i = L L' makes the small system symmetric: with z = (I - w_i L'W_i L)^-1 w_i L'r_i, d_i = L z.

The eigenvalues of w_i L'W_i L, the leverages of the row, are below 1. Where one is nearly 1 the model follows the row
wherever it goes and the step has no bounds: no pivot of the small system is taken as less than `_LEAST`. As r_i'd_i is
not negative, no row gains probability by leaving, as none does by the models fitted without it.

As in `newton`, the Hessian is diagonal along the last axes, on which the penalty outweighs the data. There it is taken
to be the same without the row, so these axes add to d_i by themselves. Where there are too many coefficients or states
for one factor, H, and with it A_i and W_i, are taken as diagonal in the contrasts.

The step falls short where the row changes the curvature of others by leaving: with few rows for the coefficients and
a weak penalty. So rows that it makes less probable by more than `_FAR` go on from there to the optimum without them, by
conjugate gradients. Where these are more than `_WORK` allows, the farthest do, or none if the part has `_ENOUGH` rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc.compiled import SUMS, compiled
from pmdc.learners.newton import (
    _contrasts,
    _copy,
    _energy,
    _factor,
    _gradient,
    _inner,
    _local_states,
    _move,
    _penalty,
    _room,
    _scores,
    _search,
    _softmax,
    _take_rows,
    _variance,
)
from pmdc.table import Codes, Floats

_MOST = 1000
"""The most coefficients of one factor for all contrasts: more than in `newton`, as it is made but once, and as without
what lies between the contrasts too little is thought to change where there are many coefficients for few rows."""

_LEAST = 1e-6
"""The least pivot of I - w L'W L."""

_NEGLIGIBLE = 0.02
"""As in `newton`, but here the Hessian does more than steer."""

_SURE = 1e-2
"""A row stays as it is where its probability of all other states cannot change by more than this share."""

_FAR = 0.02
"""A change of the log-probability of its own state after which a row goes on to the optimum without it."""

_WORK = 1e7
"""The most that this may cost in a part: the rows that do so times all rows times coefficients. Others stay there."""

_ENOUGH = 5
"""With so many rows for each coefficient the one step will do, where rows that go on would be too many."""

_STEPS = 500
"""The most steps of a row."""

_CLOSE = 1e-6
"""The optimum is near enough when the next step promises less than this share of the objective."""

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
) -> None:
    """The scores of each row by the models of its part without it.

    Parameters
    ----------
    X, codes, weights, order, starts, number, ridge : as in `newton.fit_parts`
    coef : array of shape (n_groups, d + 1)
        What `newton.fit_parts` has found.
    out : array of shape (n, n_states)
        Where the scores are written to, of states that the part of the row has.
    """
    n_parts, n_states = number.shape
    k = X.shape[1] + 1
    A, y, w, Z, Z32 = _room(starts, k)
    local = np.empty(n_states, dtype=np.int64)
    for p in range(n_parts):
        rows = order[starts[p] : starts[p + 1]]
        n, m = len(rows), _local_states(number[p], local)
        S = np.zeros((n, m))
        if m > 1:
            _take_rows(X, codes, weights, rows, local, A, y, w)
            B = np.empty((m, k))
            for s in range(n_states):
                if number[p, s] >= 0:
                    for j in range(k):
                        B[local[s], j] = coef[number[p, s], j]
            _scores(A[:n], B, np.eye(m), S)
            _leave(A[:n], y[:n], w[:n], ridge, B, S, Z, Z32)
        for r in range(n):
            for s in range(n_states):
                if number[p, s] >= 0:
                    out[rows[r], s] = S[r, local[s]]


@compiled(inline="always")
def _leave(
    A: Floats, y: Codes, w: Floats, ridge: float, B: Floats, S: Floats, Z: Floats, Z32: npt.NDArray[np.float32]
) -> None:
    """Change the scores S of the rows of a part, by the coefficients B, to those without the row."""
    n, k = A.shape
    m = S.shape[1]
    Q = _contrasts(m)
    v = Q.shape[1]
    P, zero = np.empty((n, m)), np.zeros((n, m))
    _softmax(S, zero, 0.0, y, w, P)
    energy, norms = _energy(A, w)
    added = np.full(k, ridge)
    added[0] = 0.0
    diagonal, work = np.empty((v, k)), np.zeros(1)
    apart, same = v * k > _MOST or v == m, np.bool_(False)  # its type is that of `newton`, not of a literal
    U, width = _factor(A, w, P, Q, added, apart, same, _NEGLIGIBLE, energy, norms, diagonal, Z, Z32, work)
    for b in range(len(U)):
        _copy(_inverse(U[b]), U[b])
    some = _unsure(y, w, P, norms, ridge, U, width)
    # Entries of U^-1 A' lose digits by the root of the condition of H only.
    if ridge > 1e-8 * diagonal.max():
        Y32 = np.empty((len(some), width), dtype=np.float32)
        inner = _inner_products(_first_axes(A, some, Y32), U)
    else:
        Y = np.empty((len(some), width))
        inner = _inner_products(_first_axes(A, some, Y), U)
    last = _last_axes(A, some, diagonal, width)
    before = S.copy()
    _change(S, y, w, P, Q, some, inner, last, apart)
    T = B[1:] - B[:1] if m == 2 else np.dot(Q.T, B)
    _follow(A, y, w, ridge, Q, T, P, before, U, diagonal, width, some, S)


@compiled()
def _inverse(U: Floats) -> Floats:
    """The inverse of an upper triangular matrix, some columns at a time."""
    n = len(U)
    V = np.zeros((n, n))
    for first in range(0, n, 32):
        last = min(first + 32, n)
        for j in range(first, last):
            V[j, j] = 1.0 / U[j, j]
            for i in range(j - 1, first - 1, -1):
                total = 0.0
                for h in range(i + 1, j + 1):
                    total += U[i, h] * V[h, j]
                V[i, j] = -total / U[i, i]
        if first:
            corner = np.ascontiguousarray(V[first:last, first:last])
            above = np.dot(np.ascontiguousarray(U[:first, first:last]), corner)
            _move(V[:first, first:last], np.dot(np.ascontiguousarray(V[:first, :first]), above), 1.0)
    return V


@compiled()
def _unsure(y: Codes, w: Floats, P: Floats, norms: Floats, ridge: float, V: Floats, width: int) -> Codes:
    """The rows that may change: A_i is at most 2 (the intercepts' part of H^-1 + |x_i|^2 / ridge)."""
    intercepts = 0.0
    for b in range(V.shape[0]):
        for e in range(0, V.shape[1], width):
            for j in range(V.shape[2]):
                intercepts += V[b, e, j] * V[b, e, j]
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
    apart = V.shape[1] == width
    v = V.shape[0] if apart else V.shape[1] // width
    out = np.zeros((n, v, v))
    for g in range(v):
        first = g if apart else 0
        size = g + 1 - first
        columns = np.empty((width, size * width), dtype=Y.dtype)
        for e in range(size):
            for i in range(width):
                for j in range(width):
                    columns[i, e * width + j] = V[g, i, j] if apart else V[0, e * width + i, g * width + j]
        for start in range(0, n, _SOME):
            B = np.dot(Y[start : start + _SOME], columns)
            for r in range(len(B)):
                for e in range(size):
                    for f in range(e + 1):
                        total = Y.dtype.type(0.0)
                        for j in range(width):
                            total += B[r, e * width + j] * B[r, f * width + j]
                        out[start + r, first + e, first + f] += total
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
def _change(
    S: Floats, y: Codes, w: Floats, P: Floats, Q: Floats, rows: Codes, inner: Floats, last: Floats, apart: bool
) -> None:
    """S_i + Q d_i for some rows, given their A_i along the first and the last axes."""
    m, v = Q.shape
    R, N = np.empty((m, v)), np.empty((v, v))
    z, mean = np.empty(v), np.empty(v)
    for r in range(len(rows)):
        i = rows[r]
        L = inner[r]
        for e in range(v):
            residual = -Q[y[i], e]
            for a in range(m) if v < m else range(e, e + 1):
                residual += Q[a, e] * P[i, a]
            step = last[r, e]
            if apart:
                step += L[e, e] / max(1.0 - w[i] * L[e, e] * _variance(P[i], Q, e), _LEAST)
            for a in range(m) if v < m else range(e, e + 1):
                S[i, a] += Q[a, e] * w[i] * step * residual
        if apart:
            continue
        _cholesky_in_place(L, 1e-12 * np.trace(L))
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
        _cholesky_in_place(N, _LEAST)
        for e in range(v):
            for f in range(e):
                z[e] -= N[e, f] * z[f]
            z[e] /= N[e, e]
        for e in range(v - 1, -1, -1):
            for f in range(e + 1, v):
                z[e] -= N[f, e] * z[f]
            z[e] /= N[e, e]
        for a in range(m):
            for e in range(v):
                S[i, a] += R[a, e] * z[e]


@compiled()
def _cholesky_in_place(N: Floats, least: float) -> None:
    """The lower Cholesky factor of a small matrix, of which the lower triangle is read; no pivot is below `least`."""
    for e in range(len(N)):
        for f in range(e + 1):
            total = N[e, f]
            for h in range(f):
                total -= N[e, h] * N[f, h]
            N[e, f] = np.sqrt(max(total, least)) if e == f else total / N[f, f]


@compiled()
def _follow(
    A: Floats,
    y: Codes,
    w: Floats,
    ridge: float,
    Q: Floats,
    T: Floats,
    P: Floats,
    before: Floats,
    V: Floats,
    diagonal: Floats,
    width: int,
    rows: Codes,
    S: Floats,
) -> None:
    """Go on to the optimum without the row from those rows for which the step S - before is long.

    Conjugate gradients (Polak and Ribiere's), preconditioned by H. T, P and `before` are the coefficients,
    probabilities and scores with the row, V the inverses of the factors of H.
    """
    n, k = A.shape
    m, v = Q.shape
    far = _far(y, P, rows, S)
    most = int(_WORK / (n * k * v))
    if len(far) > most:
        far = far[: most if n < _ENOUGH * k * v else 0]
    if not len(far):
        return
    there, at, p, change = np.empty((n, m)), np.empty((v, k)), np.empty((n, m)), np.zeros((n, m))
    grad, last, solved, step = np.empty((v, k)), np.empty((v, k)), np.empty((v, k)), np.empty((v, k))
    for i in far:
        weight, w[i] = w[i], 0.0
        _copy(before, there)
        _copy(T, at)
        value = _softmax(there, change, 0.0, y, w, p)[0] + _penalty(T, T, ridge) / 2
        # The first step is known by what it does to the row, d: H step = w J (r + W d).
        d = before[i] - S[i]
        mean = np.dot(P[i], d)
        for e in range(v):
            residual, bend = Q[y[i], e], 0.0
            for a in range(m) if v < m else range(e, e + 1):
                residual -= Q[a, e] * P[i, a]
                bend += Q[a, e] * P[i, a] * (d[a] - mean)
            for j in range(k):
                grad[e, j] = weight * residual * A[i, j]
                last[e, j] = weight * (residual + bend) * A[i, j]
        _solve(V, diagonal, width, last, step)
        power = _inner(step, grad)
        for _ in range(_STEPS):
            gain = _inner(step, grad) / 2
            if not gain > _CLOSE * value:
                break
            _scores(A, step, Q, change)
            size, value = _search(there, change, y, w, p, at, step, ridge, value, gain)
            if size == 0.0:
                break
            _move(at, step, size)
            _move(there, change, size)
            _copy(grad, last)
            _gradient(A, y, w, p, Q, at, ridge, grad)
            _solve(V, diagonal, width, grad, solved)
            new_power = _inner(solved, grad)
            share = (new_power - _inner(solved, last)) / power
            if share > 0.0 and share * _inner(step, grad) > -0.5 * new_power:  # otherwise it starts anew
                _move(solved, step, -share)
            step, solved = solved, step
            power = new_power
        for a in range(m):
            S[i, a] = there[i, a]
        w[i] = weight


@compiled()
def _far(y: Codes, P: Floats, rows: Codes, S: Floats) -> Codes:
    """The rows that lose more than `_FAR` of the log-probability of their own state, the farthest first."""
    m = P.shape[1]
    counts = np.zeros(m)
    for i in range(len(y)):
        counts[y[i]] += 1
    far = np.zeros(len(rows))
    for r in range(len(rows)):
        i = rows[r]
        if counts[y[i]] > 1:  # otherwise the others know nothing of its state: there is no optimum without it
            top, total = S[i, y[i]], 0.0
            for a in range(m):
                top = max(top, S[i, a])
            for a in range(m):
                total += np.exp(S[i, a] - top)
            far[r] = np.log(max(P[i, y[i]], 1e-300)) - (S[i, y[i]] - top - np.log(total))
    return rows[np.argsort(-far)[: (far > _FAR).sum()]]


@compiled()
def _solve(V: Floats, diagonal: Floats, width: int, grad: Floats, out: Floats) -> None:
    """H^-1 grad, by the inverses V of its factors and the diagonal along the last axes."""
    v, k = grad.shape
    each = v // V.shape[0]
    for b in range(V.shape[0]):
        first, last = b * each, (b + 1) * each
        x = np.ascontiguousarray(grad[first:last, :width]).ravel()
        _copy(np.dot(V[b], np.dot(x, V[b])).reshape(each, width), out[first:last, :width])
    for e in range(v):
        for j in range(width, k):
            out[e, j] = grad[e, j] / diagonal[e, j]
