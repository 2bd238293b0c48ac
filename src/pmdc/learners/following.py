"""The optimum without a row, for the rows that the step of `leave_one_out` moves farthest.

Rows that the step makes less probable by more than `_FAR` go on to the optimum without them; in parts that have
`_ENOUGH` rows for each coefficient, those that it makes less probable by more than `_FARTHER`. The farthest come first,
as far as `_WORK` allows; a few of all come before them, to tell what those for which there is no work would have lost.

They go by conjugate gradients (Polak and Ribiere's), preconditioned by the Hessian without the row. In the notation of
`leave_one_out`, by Woodbury's identity

    (H - w_i J_i W_i J_i')^-1 = H^-1 + C K C',       C = H^-1 J_i,   K = w_i (I - w_i W_i A_i)^-1 W_i,

so the first direction is the step itself. This is the Hessian where the search begins. It is made anew where it is when
the steps with the old one have cost as much, and where they were many before they became short: rows with rare values
go far, and with a Hessian that fits them badly steps are short long before the optimum.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc.compiled import compiled
from pmdc.learners.newton import factor
from pmdc.learners.softmax import copy, energies, gradient, inner, line_search, move, penalty, scores, softmax
from pmdc.table import Codes, Floats

LEAST = 1e-6
"""The least pivot of I - w L'W L."""

_FAR, _FARTHER, _MUCH = 0.05, 0.2, 1.0
"""A change of the log-probability of its own state after which a row goes on to the optimum without it: in parts with
few rows for each coefficient, and in others; and what is much there."""

_WORK, _LESS_WORK, _LEAST_WORK = 1e9, 1e8, 1e7
"""The most that this may cost, steps times rows of the part times coefficients, for all parts of a partition together:
in parts with few rows for each coefficient, and in others, where the least is for rows that do not lose much. Rows for
which no work is left stay where the step has brought them."""

_ENOUGH = 5
"""With so many rows for each coefficient the one step errs little."""

_SAMPLE = 12
"""Rows of a part, evenly from the farthest to the nearest, that go on first, to tell of those that may not."""

_STEPS, _QUICK = 500, 10
"""The most steps of a row; and how many with one Hessian show that it fits."""

_CLOSE, _STILL = 1e-6, 3e-3
"""The optimum is near enough when the next step promises less than this share of the objective and the last one changed
no score of the row by more than this; where the others say little of the row, the objective alone does not tell."""


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
        among them that went on; 0 in parts with enough rows.
    """
    n, k = A.shape
    m, v = Q.shape
    enough = n >= _ENOUGH * k * v
    far, lost = _far(y, P, rows, S, _FARTHER if enough else _FAR)
    if not len(far):
        return 0.0
    there, at, p, change = np.empty((n, m)), np.empty((v, k)), np.empty((n, m)), np.zeros((n, m))
    grad, last, solved, step = np.empty((v, k)), np.empty((v, k)), np.empty((v, k)), np.empty((v, k))
    added, flops, no, gone = np.full(k, ridge), np.zeros(1), np.bool_(False), np.full(len(far), -np.inf)
    added[0] = 0.0
    work, each = 0.0, float(n * k * v + inverse.size)
    anew = 0.03 * n * width * width * m * (m - 1) + 0.15 * float(v * width) ** 3  # products of matrices are quick
    some = 0 if enough else min(_SAMPLE, len(far))
    for turn in range(some + len(far)):
        r = (2 * turn + 1) * len(far) // (2 * some) if turn < some else turn - some
        if gone[r] > -np.inf:
            continue
        if work > share * (_WORK if not enough else _LESS_WORK if lost[r] > _MUCH else _LEAST_WORK):
            return 0.0 if enough else _missing(lost, gone, r)
        work += v * each
        i = far[r]
        weight, w[i] = w[i], 0.0
        copy(before, there)
        copy(T, at)
        value = softmax(before, change, 0.0, y, w, p)[0] + penalty(T, T, ridge) / 2
        gradient(A, y, w, p, Q, at, ridge, grad)
        V, scale, first = inverse, diagonal, width
        C, K = _update(A[i], weight, P[i], Q, V, scale, first)
        _solve_without(A[i], C, K, V, scale, first, grad, step)
        power = inner(step, grad)
        moved, size, tried = np.inf, 1.0, 0
        for _ in range(_STEPS):
            work += each
            gain = inner(step, grad) / 2
            there_now = size == 0.0 or not gain > (1e-12 if moved > _STILL else _CLOSE) * value
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
            moved = size * np.abs(change[i]).max()
            copy(grad, last)
            gradient(A, y, w, p, Q, at, ridge, grad)
            _solve_without(A[i], C, K, V, scale, first, grad, solved)
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
    return 0.0


@compiled()
def _missing(lost: Floats, gone: Floats, r: int) -> float:
    """What the rows from r on that have not gone would lose beside `lost`, by what the others among them have lost."""
    left, by_step, in_the_end = 0.0, 0.0, 0.0
    for q in range(r, len(lost)):
        if gone[q] > -np.inf:
            by_step += lost[q]
            in_the_end += gone[q]
        else:
            left += lost[q]
    return left * abs(in_the_end / by_step - 1.0) if by_step else left


@compiled()
def _loss(before: float, scores: Floats, state: int) -> float:
    """By how much the log-probability of a state falls."""
    top, total = scores.max(), 0.0
    for a in range(len(scores)):
        total += np.exp(scores[a] - top)
    return np.log(max(before, 1e-300)) - (scores[state] - top - np.log(total))


@compiled()
def _update(
    a: Floats, weight: float, p: Floats, Q: Floats, V: Floats, diagonal: Floats, width: int
) -> tuple[Floats, Floats]:
    """What makes H^-1 the inverse without the row, H^-1 + C K C': C = H^-1 J and K = w (I - w W A)^-1 W, with A = J'C.

    With A = L L', K = w W + w W L (I - w L'W L)^-1 w L'W. Shapes (v, v, k), the columns of C first, and (v, v).
    """
    m, v = Q.shape
    k = len(a)
    C, column = np.empty((v, v, k)), np.empty((v, k))
    for f in range(v):
        for e in range(v):
            for j in range(k):
                column[e, j] = a[j] if e == f else 0.0
        solve(V, diagonal, width, column, C[f])
    L, W, N, R = np.zeros((v, v)), np.zeros((v, v)), np.eye(v), np.zeros((v, v))
    mean = np.dot(p, Q)
    for e in range(v):
        for f in range(v):
            for j in range(k):
                L[e, f] += C[f, e, j] * a[j]
            for s in range(m):
                W[e, f] += weight * p[s] * (Q[s, e] - mean[e]) * (Q[s, f] - mean[f])
    cholesky_in_place(L, 1e-12 * np.trace(L))
    for e in range(v):
        for f in range(v):
            for g in range(e, v):
                R[e, f] += L[g, e] * W[g, f]
    for e in range(v):
        for f in range(e + 1):
            for g in range(f, v):
                N[e, f] -= R[e, g] * L[g, f]
    cholesky_in_place(N, LEAST)
    for e in range(v):  # N^-1 R in place of R = L'W
        for f in range(v):
            for g in range(e):
                R[e, f] -= N[e, g] * R[g, f]
            R[e, f] /= N[e, e]
    for e in range(v):
        for f in range(v):
            for g in range(v):
                W[e, f] += R[g, e] * R[g, f]
    return C, W


@compiled()
def _solve_without(
    a: Floats, C: Floats, K: Floats, V: Floats, diagonal: Floats, width: int, grad: Floats, out: Floats
) -> None:
    """The inverse of the Hessian without the row (1, x) = a, times grad; without C and K, that of H."""
    solve(V, diagonal, width, grad, out)
    u = np.dot(K, np.dot(out, a))
    for f in range(len(u)):
        move(out, C[f], -u[f])


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
def _far(y: Codes, P: Floats, rows: Codes, S: Floats, least: float) -> tuple[Codes, Floats]:
    """The rows that lose more than `least` of the log-probability of their own state, and how much; farthest first."""
    m = P.shape[1]
    counts = np.zeros(m)
    for i in range(len(y)):
        counts[y[i]] += 1
    far = np.zeros(len(rows))
    for r in range(len(rows)):
        i = rows[r]
        if counts[y[i]] > 1:  # otherwise the others know nothing of its state: there is no optimum without it
            far[r] = _loss(P[i, y[i]], S[i], y[i])
    order = np.argsort(-far)[: (far > least).sum()]
    return rows[order], far[order]


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
