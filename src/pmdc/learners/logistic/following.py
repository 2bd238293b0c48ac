"""The optimum without a row, for the rows that the step of `leave_one_out` moves farthest.

Rows that the step makes less probable by more than `_FAR` go on to the optimum without them; in parts that have
`_ENOUGH` rows for each coefficient, those that it makes less probable by more than `_FARTHER`. So do rows of a leverage
above `_LEVERAGE`, as those with rare values: there the step may say little where the row changes all. The farthest come
first, as far as `_WORK` allows; a few of all come before them, to tell what those for which there is no work would have
lost.

They go by conjugate gradients (Polak and Ribiere's). What changes first when row i leaves is what it says itself:
in the notation of `leave_one_out`, the step lies in the span of C = H^-1 J_i, one direction for each contrast. So the
optimum in this span comes first, by Newton's method with its Hessian M = C'(Hessian without the row)C, which needs
the scores of the directions alone. The other steps are preconditioned by H, put right in the span,

    H^-1 + C (M^-1 - (C'HC)^-1) C',       C'HC = A_i,

which where the search begins is Woodbury's identity for the Hessian without the row. H is made anew where the search is
when the steps with the old one have cost as much, and where they were many before they became short: with a Hessian
that fits badly steps are short long before the optimum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled
from pmdc.learners.logistic.newton import factor
from pmdc.learners.logistic.softmax import (
    copy,
    energies,
    gradient,
    inner,
    line_search,
    move,
    penalty,
    scores,
    softmax,
)

LEAST = 1e-6
"""The least pivot of I - w L'W L."""

_FAR, _FARTHER, _LEVERAGE, _SLIGHT = 0.05, 0.5, 0.3, 0.02
"""A change of the log-probability of its own state after which a row goes on to the optimum without it: in parts with
few rows for each coefficient, and in others; and a leverage above which it does in any, unless the change is slight."""

_WORK, _LESS_WORK = 6e8, 6e7
"""The most that this may cost, steps times rows of the part times coefficients, for all parts of a partition together:
in parts with few rows for each coefficient, and in others. Rows for which no work is left stay where the step has
brought them."""

_ENOUGH = 5
"""With so many rows for each coefficient the one step errs little."""

_SAMPLE = 8
"""Rows of a part, evenly from the farthest to the nearest, that go on first, to tell of those that may not."""

_NEWTON, _STEPS, _QUICK = 20, 500, 10
"""The most steps of a row in the span, and of all; and how many with one Hessian show that it fits."""

_CLOSE, _STILL, _NOTHING = 1e-6, 0.01, 1e-12
"""The optimum is near enough when the next step promises less than the first of these shares of the objective, and no
more than moving the scores of the row by the second would cost: where the others say little of the row, that is far
less. Below the third share there are no digits left."""


@compiled()
def follow(
    A: Floats,
    y: Codes,
    w: Floats,
    ridge: float,
    negligible: float,
    Q: Floats,
    T: Floats,
    P: Floats,
    before: Floats,
    inverse: Floats,
    diagonal: Floats,
    width: int,
    rows: Codes,
    leverage: Floats,
    share: float,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    S: Floats,
) -> float:
    """Go on to the optimum without the row from those rows for which the step S - before is long.

    T, P and `before` are the coefficients, probabilities and scores with the row, `inverse` that of the factor of H,
    and `share` is that of the part in all rows.

    Returns
    -------
    missing : float
        By how much the rows for which no work was left would lose more, or less, than by the step, if they are as some
        among them that went on.
    """
    n, k = A.shape
    m, v = Q.shape
    enough = n >= _ENOUGH * k * v
    far, lost = _far(y, P, rows, S, leverage, enough)
    if not len(far):
        return 0.0
    there, at, p, change = np.empty((n, m)), np.empty((v, k)), np.empty((n, m)), np.zeros((n, m))
    grad, last, solved, step = np.empty((v, k)), np.empty((v, k)), np.empty((v, k)), np.empty((v, k))
    added, flops, no, gone = np.full(k, ridge), np.zeros(1), np.bool_(False), np.full(len(far), -np.inf)
    added[0] = 0.0
    D, M, slope = np.empty((v, n, m)), np.empty((v, v)), np.empty(v)
    work, each = 0.0, float(n * k * v + inverse.size)
    anew = 0.03 * n * width * width * m * (m - 1) + 0.15 * float(v * width) ** 3  # products of matrices are quick
    some = min(_SAMPLE, len(far))
    for turn in range(some + len(far)):
        r = (2 * turn + 1) * len(far) // (2 * some) if turn < some else turn - some
        if gone[r] > -np.inf or work > share * (_LESS_WORK if enough else _WORK):
            continue
        work += v * each
        i = far[r]
        weight, w[i] = w[i], 0.0
        copy(before, there)
        copy(T, at)
        value = softmax(before, change, 0.0, y, w, p)[0] + penalty(T, T, ridge) / 2
        V, scale, first = inverse, diagonal, width
        C, G = _directions(A[i], V, scale, first, v)
        for e in range(v):
            scores(A, C[e], Q, D[e])
        for _ in range(_NEWTON):
            work += n * m * v * v
            _bend(D, C, y, w, p, at, ridge, slope, M)
            gain = _combine(C, D, slope, M, step, change) / 2
            if not gain > _NOTHING * value or np.abs(change[i]).max() < _STILL / 10:
                break
            size, value = line_search(there, change, y, w, p, at, step, ridge, value, gain)
            if size == 0.0:
                softmax(there, change, 0.0, y, w, p)
                break
            move(at, step, size)
            move(there, change, size)
        K, freedom = _put_right(M, G)
        least = max(_NOTHING * value, min(_CLOSE * value, _STILL**2 / (2 * freedom)))
        size, tried = 1.0, 0
        gradient(A, y, w, p, Q, at, ridge, grad)
        _solve_right(C, K, V, scale, first, grad, step)
        power = inner(step, grad)
        for _ in range(_STEPS):
            work += each
            gain = inner(step, grad) / 2
            there_now = size == 0.0 or not gain > least
            if there_now and tried <= _QUICK:
                break
            if there_now or tried * each > anew:
                work += anew
                tried, size = 0, 1.0
                softmax(there, change, 0.0, y, w, p)
                energy, norms = energies(A, w)
                scale = np.empty((v, k))
                U, first = factor(A, w, p, Q, added, no, no, negligible, energy, norms, scale, Z, Z32, flops)
                V, C, K = triangular_inverse(U[0]), C[:0], K[:0]
                solve(V, scale, first, grad, step)
                power = inner(step, grad)
                continue
            tried += 1
            scores(A, step, Q, change)
            size, value = line_search(there, change, y, w, p, at, step, ridge, value, gain)
            if size == 0.0:
                continue
            move(at, step, size)
            move(there, change, size)
            copy(grad, last)
            gradient(A, y, w, p, Q, at, ridge, grad)
            _solve_right(C, K, V, scale, first, grad, solved)
            new_power = inner(solved, grad)
            conjugate = (new_power - inner(solved, last)) / power
            if conjugate > 0.0 and conjugate * inner(step, grad) > -0.5 * new_power:  # otherwise it starts anew
                move(solved, step, -conjugate)
            step, solved = solved, step
            power = new_power
        for a in range(m):
            S[i, a] = there[i, a]
        gone[r] = _loss(P[i, y[i]], S[i], y[i])
        w[i] = weight
    return _missing(lost, gone)


@compiled()
def _missing(lost: Floats, gone: Floats) -> float:
    """What the rows that have not gone would lose beside `lost`, by what those have lost that are nearer and have."""
    left, by_step, in_the_end = 0.0, 0.0, 0.0
    for r in range(len(lost)):
        if gone[r] == -np.inf:
            left += lost[r]
        elif left:
            by_step += lost[r]
            in_the_end += gone[r]
    return left * abs(in_the_end / by_step - 1.0) if by_step else left


@compiled()
def _loss(before: float, scores: Floats, state: int) -> float:
    """By how much the log-probability of a state falls."""
    top, total = scores.max(), 0.0
    for a in range(len(scores)):
        total += np.exp(scores[a] - top)
    return np.log(max(before, 1e-300)) - (scores[state] - top - np.log(total))


@compiled()
def _directions(a: Floats, V: Floats, diagonal: Floats, width: int, v: int) -> tuple[Floats, Floats]:
    """C = H^-1 J of the row (1, x) = a, shape (v, v, k), its columns first; and C'HC = J'C."""
    k = len(a)
    C, G, column = np.empty((v, v, k)), np.zeros((v, v)), np.empty((v, k))
    for f in range(v):
        for e in range(v):
            for j in range(k):
                column[e, j] = a[j] if e == f else 0.0
        solve(V, diagonal, width, column, C[f])
        for e in range(v):
            for j in range(k):
                G[e, f] += C[f, e, j] * a[j]
    return C, G


@compiled(fastmath=SUMS)
def _bend(
    D: Floats, C: Floats, y: Codes, w: Floats, p: Floats, at: Floats, ridge: float, slope: Floats, M: Floats
) -> None:
    """The gradient and the Hessian along the directions C, of which D are the scores."""
    v, n, m = D.shape
    mean = np.empty(v)
    for e in range(v):
        slope[e] = penalty(C[e], at, ridge)
        for f in range(e + 1):
            M[e, f] = penalty(C[e], C[f], ridge)
    for i in range(n):
        for e in range(v):
            mean[e] = 0.0
            for a in range(m):
                mean[e] += p[i, a] * D[e, i, a]
            slope[e] += w[i] * (mean[e] - D[e, i, y[i]])
        for e in range(v):
            for f in range(e + 1):
                total = 0.0
                for a in range(m):
                    total += p[i, a] * D[e, i, a] * D[f, i, a]
                M[e, f] += w[i] * (total - mean[e] * mean[f])


@compiled()
def _combine(C: Floats, D: Floats, slope: Floats, M: Floats, step: Floats, change: Floats) -> float:
    """Newton's step in the span of C, with its scores, and how steep it is; M becomes its lower Cholesky factor."""
    v = len(slope)
    cholesky_in_place(M, 1e-12 * np.trace(M))
    u = slope.copy()
    solve_in_place(M, u)
    step[:] = 0.0
    change[:] = 0.0
    steep = 0.0
    for e in range(v):
        move(step, C[e], -u[e])
        move(change, D[e], -u[e])
        steep += u[e] * slope[e]
    return steep


@compiled()
def _put_right(M: Floats, G: Floats) -> tuple[Floats, float]:
    """M^-1 - G^-1, and the trace of G M^-1 G: how far the scores of the row, G u for a step C u, move for little.

    M is given by its lower Cholesky factor; G becomes its own.
    """
    v = len(M)
    K, freedom = np.zeros((v, v)), 0.0
    R = triangular_inverse(np.ascontiguousarray(M.T))  # of which the upper triangle is read
    for g in range(v):
        for e in range(v):
            own = 0.0
            for f in range(g + 1):
                own += G[e, f] * R[f, g]
                if e <= g:
                    K[e, f] += R[e, g] * R[f, g]
            freedom += own * own
    cholesky_in_place(G, 1e-12 * np.trace(G))
    R = triangular_inverse(np.ascontiguousarray(G.T))
    for g in range(v):
        for e in range(g + 1):
            for f in range(g + 1):
                K[e, f] -= R[e, g] * R[f, g]
    return K, freedom


@compiled()
def _solve_right(C: Floats, K: Floats, V: Floats, diagonal: Floats, width: int, grad: Floats, out: Floats) -> None:
    """The inverse of H, put right in the span of C if there is any, times grad."""
    solve(V, diagonal, width, grad, out)
    for e in range(len(C)):
        u = 0.0
        for f in range(len(C)):
            u += K[e, f] * inner(C[f], grad)
        move(out, C[e], -u)


@compiled()
def solve(V: Floats, diagonal: Floats, width: int, grad: Floats, out: Floats) -> None:
    """H^-1 grad, by the inverse V of its factor and the diagonal along the last axes."""
    v, k = grad.shape
    x = np.ascontiguousarray(grad[:, :width]).ravel()
    copy(np.dot(V, np.dot(x, V)).reshape(v, width), out[:, :width])
    for e in range(v):
        for j in range(width, k):
            out[e, j] = grad[e, j] / diagonal[e, j]


@compiled()
def _far(y: Codes, P: Floats, rows: Codes, S: Floats, leverage: Floats, enough: bool) -> tuple[Codes, Floats]:
    """The rows that have to go on, and by how much the step has made them less probable; farthest first."""
    m = P.shape[1]
    counts = np.zeros(m)
    for i in range(len(y)):
        counts[y[i]] += 1
    lost, far = np.zeros(len(rows)), np.zeros(len(rows))
    for r in range(len(rows)):
        i = rows[r]
        if counts[y[i]] > 1:  # otherwise the others know nothing of its state: there is no optimum without it
            lost[r] = max(_loss(P[i, y[i]], S[i], y[i]), 0.0)
            far[r] = lost[r] / (_FARTHER if enough else _FAR)
            if lost[r] > _SLIGHT:
                far[r] = max(far[r], leverage[r] / _LEVERAGE)
    order = np.argsort(-far)[: (far > 1.0).sum()]
    return rows[order], lost[order]


@compiled()
def cholesky_in_place(N: Floats, least: float) -> None:
    """The lower Cholesky factor of a small matrix, of which the lower triangle is read; no pivot is below `least`."""
    for e in range(len(N)):
        for f in range(e + 1):
            total = N[e, f]
            for h in range(f):
                total -= N[e, h] * N[f, h]
            N[e, f] = np.sqrt(max(total, least)) if e == f else total / N[f, f]


@compiled()
def solve_in_place(L: Floats, u: Floats) -> None:
    """(L L')^-1 u, for a lower triangle L."""
    v = len(u)
    for e in range(v):
        for f in range(e):
            u[e] -= L[e, f] * u[f]
        u[e] /= L[e, e]
    for e in range(v - 1, -1, -1):
        for f in range(e + 1, v):
            u[e] -= L[f, e] * u[f]
        u[e] /= L[e, e]


@compiled()
def triangular_inverse(U: Floats) -> Floats:
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
            move(V[:first, first:last], np.dot(np.ascontiguousarray(V[:first, :first]), above), 1.0)
    return V
