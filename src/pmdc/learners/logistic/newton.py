"""Newton's method for penalised softmax models of the rows of one part, in compiled code.

The models and their objective are those of `softmax`. The covariance of a softmax is a sum over pairs of states,
diag(p) - pp' = sum over a < b of p_a p_b (e_a - e_b)(e_a - e_b)', so the Hessian is made of one weighted Gram matrix
for each pair,

    H = sum over a < b of  d_ab d_ab' (x) sum_i w_i p_ia p_ib a_i a_i'  +  ridge,      d_ab = Q'(e_a - e_b),

and rows that are sure not to be in one of two states add nothing to their Gram matrix.

Gradients are exact; the Hessian only steers, and may be cheap:

- it is in single precision where the penalty allows it;
- inputs come rotated to their principal axes (which the penalty does not notice), the longest first. Along axes on
  which a part hardly varies the penalty outweighs the data, and the Hessian is taken as diagonal there;
- a factor is used again as long as the steps it gives shrink what is left quickly; but the end is told by a new one, as
  along axes on which the curvature has gone an old one promises too little;
- a part with fewer rows than inputs is fitted along an orthonormal basis of its rows, outside of which the coefficients
  are zero;
- where there are too many coefficients or states for a factor, the steps come from conjugate gradients with the Hessian
  in full, which need no more than its products with vectors; a factor for each contrast is their preconditioner.

No step that changes much is taken unless the objective, computed anew, is lower for it. A start worse than the
frequencies is not used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled
from pmdc.learners.logistic.softmax import (
    BLOCK,
    copy,
    energies,
    gradient,
    inner,
    line_search,
    move,
    penalty,
    scores,
    softmax,
    sum_rows,
    variance,
)

MAX_COEFFICIENTS = 600
"""The most coefficients of one factor."""

_REUSE = 0.25
"""A factor is used again if the gain that is left has shrunk to less than this share."""

_SLOW = 0.7
"""If a new factor leaves more than this share, the axes that it neglects are not negligible."""

NEGLIGIBLE = 0.1
"""Axes along which the curvature of the data is below this share of the penalty have a diagonal Hessian."""


class Problem(NamedTuple):
    """The softmax model of the rows of one part, as in `softmax`: what is to be minimised."""

    A: Floats
    """Inputs (1, x), shape (n, k)."""
    y: Codes
    w: Floats
    Q: Floats
    """Contrasts of the states, shape (m, v)."""
    ridge: float


class Factor(NamedTuple):
    """An approximate Hessian: Cholesky factors along the first axes, a diagonal along the others."""

    U: Floats
    """Upper factors, shape (number of factors, size, size): one for all contrasts together, or one for each."""
    diagonal: Floats
    """Shape (v, k)."""
    width: int
    """The number of first axes."""


class Buffers(NamedTuple):
    """Room for the rows of a matrix product in either precision, and the count of floating-point operations."""

    Z: Floats
    Z32: npt.NDArray[np.float32]
    work: Floats


@compiled()
def no_factor() -> Factor:
    """Return what stands for a factor where there is none yet."""
    return Factor(np.empty((0, 0, 0)), np.empty((0, 0)), 0)


@compiled()
def _frequencies(problem: Problem) -> tuple[Floats, float]:
    """The intercepts, as contrasts, of the model that knows the frequencies of the states alone; its objective."""
    m, v = problem.Q.shape
    weight, T = np.zeros(m), np.zeros(v)
    for i in range(len(problem.y)):
        weight[problem.y[i]] += problem.w[i]
    for e in range(v):
        for a in range(m):
            # Q'b; for two states their difference
            T[e] += (problem.Q[a, e] if m > 2 else 2.0 * a - 1.0) * np.log(weight[a])
    return T, -np.sum(weight * np.log(weight / weight.sum()))


@compiled()
def minimise(
    problem: Problem, T: Floats, warm: bool, first: Factor, tol: float, max_iter: int, buffers: Buffers
) -> tuple[int, Factor]:
    """Minimise the objective of one part over the coefficients T, in place.

    With `warm` the search starts at T, unless the frequencies are better, otherwise at the frequencies; `first` is used
    as long as it serves. Returns the number of steps, more than `max_iter` if it did not converge, and the last factor.
    """
    A, y, w, Q, ridge = problem
    n, k = A.shape
    m, v = Q.shape
    S, change, P = np.empty((n, m)), np.zeros((n, m)), np.empty((n, m))
    grad, step = np.empty((v, k)), np.zeros((v, k))
    cold_start, null = _frequencies(problem)
    least = (1e-10 if ridge else 1e-4) * null
    value, cold = np.inf, False
    if warm:
        scores(A, T, Q, S)
        value = softmax(S, change, 0.0, y, w, P)[0] + penalty(T, T, ridge) / 2
    if not value <= null:
        T[:] = 0.0
        T[:, 0] = cold_start
        cold = True  # the same probabilities in all rows
        scores(A, T, Q, S)
        value = softmax(S, change, 0.0, y, w, P)[0]
    gradient(A, y, w, P, Q, T, ridge, grad)
    energy, norms = energies(A, w)
    longest = norms.max()
    conjugate = v * k > MAX_COEFFICIENTS or v == m
    last, old = first, len(first.U) > 0 and not cold
    added, damping = np.empty(k), 0.0
    left, negligible = np.inf, NEGLIGIBLE
    for steps in range(1, max_iter + 1):
        if ridge == 0.0 and value <= 1e-8 * null:  # separable: the optimum is 0, infinitely far away
            return steps, last
        # 1. The gain that the factor at hand promises, or a new one.
        enough = tol * max(value, least)
        for j in range(k):
            added[j] = (ridge if j else 0.0) + damping * energy[j]
        fresh = True
        if old:
            gain = _precondition(last, grad, step)
            fresh = not gain <= max(enough, _REUSE * left)
        if fresh:
            last = _factor(problem, P, added, cold, negligible, energy, norms, buffers)
            cold = False
            gain = _precondition(last, grad, step)
        if conjugate:
            gain = _conjugate_gradients(problem, P, added, last, grad, step)
        if gain <= enough and not fresh:  # only a factor of this place and these rows tells what is left
            old = False
            continue
        # 2. The end: the last step is taken where nothing can go wrong.
        if gain <= enough and damping > 0.0:  # a damped Hessian promises too little
            damping, old = 0.0 if damping < 1e-7 else damping / 100, False
            continue
        if gain <= enough and inner(step, step) * longest <= 0.1:  # no score changes by much
            move(T, step, 1.0)
            return steps, last
        scores(A, step, Q, change)
        buffers.work[0] += 4.0 * n * k * v + 2.0 * v * last.width * last.U.shape[1]
        size, new_value = 0.0, value
        if gain <= enough:
            a, b = penalty(T, step, ridge), penalty(step, step, ridge)
            new_value = softmax(S, change, 1.0, y, w, P)[0] + penalty(T, T, ridge) / 2 - a + b / 2
            if new_value <= value:
                move(T, step, 1.0)
            return steps, last
        # 3. Line search, with damping where the Hessian does not tell the truth.
        if gain < np.inf:
            size, new_value = line_search(S, change, y, w, P, T, step, ridge, value, gain)
        if size < 0.01:  # in the end, rounding hides what is left
            if damping > 1.0:
                return (steps if left <= 1e-6 * max(value, least) else max_iter + 1), last
            damping = max(100 * damping, 1e-8)
            old, negligible = False, 0.0
            if size == 0.0:
                softmax(S, change, 0.0, y, w, P)
                continue
        elif fresh:
            damping = damping / 100 if damping > 1e-7 else 0.0
        # 4. The step.
        move(T, step, size)
        move(S, change, size)
        value = new_value
        gradient(A, y, w, P, Q, T, ridge, grad)
        if fresh and _precondition(last, grad, step) > _SLOW * gain:
            negligible = 0.0
        old = size >= 0.01
        left = gain
    return max_iter + 1, last


@compiled(fastmath=SUMS)
def _factor(
    problem: Problem,
    P: Floats,
    added: Floats,
    same: bool,
    negligible: float,
    energy: Floats,
    norms: Floats,
    buffers: Buffers,
) -> Factor:
    """Factor the Hessian along the first axes; along the others it is taken as diagonal.

    One factor for all contrasts together, or one for each where conjugate gradients do the rest. `added` to the
    diagonal are the penalty and, where needed, a damping; `same` says that all rows have the same probabilities.
    """
    A, _, w, Q, _ = problem
    n, k = A.shape
    m, v = Q.shape
    c, diagonal = np.empty(n), np.empty((v, k))
    curvature, total = np.zeros(v), 0.0  # of each contrast, on average over the rows
    for i in range(n):
        total += w[i]
        for e in range(v):
            curvature[e] += w[i] * variance(P[i], Q, e)
    longest, smallest = 0.0, np.inf
    for e in range(v):
        curvature[e] /= total
        for j in range(k):
            diagonal[e, j] = max(curvature[e] * energy[j] + added[j], 1e-300)
            longest = max(longest, curvature[e] * energy[j])
            smallest = min(smallest, added[j]) if j else smallest
    width = k
    while width > 1 and curvature.mean() * energy[width - 1] < negligible * added[width - 1]:
        width -= 1
    single = smallest > 1e-5 * longest
    # A row is left out where it adds next to nothing to the penalty in any direction.
    least = 1e-2 * smallest if negligible > 0.0 and k > 1 else 0.0
    if v * k > MAX_COEFFICIENTS or v == m:
        width = min(width, MAX_COEFFICIENTS)
        U = np.empty((v, width, width))
        for e in range(v):
            for i in range(n):
                c[i] = w[i] * variance(P[i], Q, e)
            _gram(A, c, norms, least, width, single, buffers, U[e])
            for j in range(width):
                U[e, j, j] += added[j]
            copy(_cholesky(U[e]), U[e])
            buffers.work[0] += width**3 / 3.0
        return Factor(U, diagonal, width)
    H = np.zeros((v * width, v * width))
    G = np.zeros((width, width))
    if same:
        _gram(A, w, norms, 0.0, width, single, buffers, G)
    for a in range(m):
        for b in range(a):
            share = P[0, a] * P[0, b]
            if not same:
                share = 1.0
                for i in range(n):
                    c[i] = w[i] * P[i, a] * P[i, b]
                if not _gram(A, c, norms, least, width, single, buffers, G):
                    continue
            for e in range(v):
                for f in range(e + 1):
                    x = (Q[a, e] - Q[b, e]) * (Q[a, f] - Q[b, f]) * share
                    if x != 0.0:
                        for i in range(width):
                            for j in range(width):
                                H[e * width + i, f * width + j] += x * G[i, j]
    for e in range(v):
        for j in range(width):
            H[e * width + j, e * width + j] += added[j]
    buffers.work[0] += (v * width) ** 3 / 3.0
    whole = np.empty((1, v * width, v * width))
    copy(_cholesky(H), whole[0])
    return Factor(whole, diagonal, width)


@compiled()
def _add(A: npt.NDArray[np.floating], B: Floats) -> None:
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] += A[i, j]


@compiled(fastmath=SUMS)
def _gram(
    A: Floats,
    c: Floats,
    norms: Floats,
    least: float,
    width: int,
    single: bool,
    buffers: Buffers,
    G: Floats,
) -> bool:
    """G = sum_i c_i a_i a_i' along the first axes, less rows that add no more than `least`. Whether any is left."""
    n = len(A)
    few = 0.0  # nor more than a thousandth to the intercepts, which have no penalty
    if least > 0.0:
        for i in range(n):
            few += 1e-3 * c[i] / n
    G[:] = 0.0
    flat, flat32 = buffers.Z.ravel(), buffers.Z32.ravel()
    rows, some = 0, False
    for i in range(n):
        if c[i] > few or c[i] * norms[i] > least:
            root = np.sqrt(c[i])
            place = rows * width
            if single:
                for j in range(width):
                    flat32[place + j] = root * A[i, j]
            else:
                for j in range(width):
                    flat[place + j] = root * A[i, j]
            rows += 1
        if rows and (rows == BLOCK or i == n - 1):  # short sums, so that single precision loses nothing
            some = True
            buffers.work[0] += 2.0 * rows * width * width
            if single:
                Y32 = flat32[: rows * width].reshape(rows, width)
                _add(np.dot(Y32.T, Y32), G)
            else:
                Y = flat[: rows * width].reshape(rows, width)
                _add(np.dot(Y.T, Y), G)
            rows = 0
    return some


@compiled()
def _cholesky(H: Floats) -> Floats:
    """U with H = U'U, of which the lower triangle is read; damped where it is singular to working precision."""
    damping = 1e-13
    for _ in range(20):
        try:
            return np.linalg.cholesky(H).T  # type: ignore[return-value]  # float64, as H is
        except Exception:
            for i in range(len(H)):
                H[i, i] += damping * H[i, i] + 1e-300
            damping *= 10
    return np.eye(len(H))  # no numbers: the step will fail, and the damping take over


@compiled(fastmath=SUMS)
def _precondition(factor: Factor, grad: Floats, out: Floats) -> float:
    """Solve with the factors along the first axes and with the diagonal along the others; half of out'grad."""
    U, diagonal, width = factor
    v, k = grad.shape
    x = np.empty(v * width)
    for e in range(v):
        for j in range(width):
            x[e * width + j] = grad[e, j]
        for j in range(width, k):
            out[e, j] = grad[e, j] / diagonal[e, j]
    size = U.shape[1]
    for b in range(U.shape[0]):
        start = b * size
        for i in range(size):
            x[start + i] /= U[b, i, i]
            for j in range(i + 1, size):
                x[start + j] -= U[b, i, j] * x[start + i]
        for i in range(size - 1, -1, -1):
            total = 0.0
            for j in range(i + 1, size):
                total += U[b, i, j] * x[start + j]
            x[start + i] = (x[start + i] - total) / U[b, i, i]
    gain = 0.0
    for e in range(v):
        for j in range(width):
            out[e, j] = x[e * width + j]
        for j in range(k):
            gain += out[e, j] * grad[e, j]
    return gain / 2


@compiled()
def _times_hessian(problem: Problem, P: Floats, added: Floats, V: Floats, out: Floats) -> None:
    """The Hessian, in full, times V."""
    S = np.empty(P.shape)
    scores(problem.A, V, problem.Q, S)
    for i in range(len(P)):
        mean = 0.0
        for a in range(P.shape[1]):
            mean += P[i, a] * S[i, a]
        for a in range(P.shape[1]):
            S[i, a] = P[i, a] * (S[i, a] - mean)
    sum_rows(problem.A, problem.w, S, problem.Q, out)
    for e in range(V.shape[0]):
        for j in range(V.shape[1]):
            out[e, j] += added[j] * V[e, j]


@compiled()
def _conjugate_gradients(
    problem: Problem, P: Floats, added: Floats, factor: Factor, grad: Floats, step: Floats
) -> float:
    """Improve `step`, the preconditioned gradient, towards H^-1 grad; half of step'grad."""
    residual, direction = grad.copy(), step.copy()
    image, solved = np.empty_like(grad), np.empty_like(grad)
    step[:] = 0.0
    first = power = inner(residual, direction)
    for _ in range(200):
        _times_hessian(problem, P, added, direction, image)
        curvature = inner(direction, image)
        if not power > 0.0 or not curvature > 0.0:
            break
        length = power / curvature
        move(step, direction, -length)
        move(residual, image, length)
        new_power = 2 * _precondition(factor, residual, solved)
        if new_power <= 0.01 * first:
            break
        move(solved, direction, -new_power / power)
        direction, solved = solved, direction
        power = new_power
    return inner(step, grad) / 2
