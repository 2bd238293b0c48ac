"""Newton's method for penalised softmax models, for all parts of a partition in compiled code.

For one part with m states, inputs a_i = (1, x_i), weights w_i and coefficients B = Q T the objective is

    f(T) = - sum_i w_i log softmax(Q T a_i)[y_i]  +  ridge / 2 |T|^2   (intercepts excepted).

Q is an orthonormal basis of the vectors over the states that sum to zero, where the penalty puts the coefficients
anyway, so that |T| = |B| and nothing is superfluous; for two states it is (0, 1)', one coefficient vector as in
scikit-learn. The covariance of a softmax is a sum over pairs of states, diag(p) - pp' = sum over a < b of
p_a p_b (e_a - e_b)(e_a - e_b)', so the Hessian is made of one weighted Gram matrix for each pair,

    H = sum over a < b of  d_ab d_ab' (x) sum_i w_i p_ia p_ib a_i a_i'  +  ridge,      d_ab = Q'(e_a - e_b),

and rows that are sure not to be in one of two states add nothing to their Gram matrix.

Gradients are exact; the Hessian only steers, and may be cheap:

- it is in single precision where the penalty allows it;
- inputs come rotated to their principal axes (which the penalty does not notice), the longest first. Along axes on
  which a part hardly varies the penalty outweighs the data, and the Hessian is taken as diagonal there;
- a factor is used again as long as the steps it gives shrink what is left quickly;
- where there are too many coefficients for a factor, the steps come from conjugate gradients with the Hessian in full,
  which need no more than its products with vectors; the factor along the first axes is their preconditioner.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from pmdc.learners.kernels import SUMS, compiled
from pmdc.table import Codes, Floats

_BLOCK = 1024
"""Rows of a matrix product."""

_MOST = 600
"""The most rows of a factor."""

_SHRINK = 0.25
"""A factor is used again if the gain that is left has shrunk to less than this share."""

_SLOW = 0.7
"""If a new factor leaves more than this share, the axes that it neglects are not negligible."""

_NEGLIGIBLE = 0.05
"""Axes along which the curvature of the data is below this share of the penalty have a diagonal Hessian."""


@lru_cache(maxsize=64)
def bases(n_states: int) -> Floats:
    """Q for every number of states m up to `n_states`: ``bases(n)[m, :m, :max(1, m - 1)]``."""
    out = np.zeros((n_states + 1, n_states, max(1, n_states - 1)))
    if n_states >= 2:
        out[2, 1, 0] = 1.0
    for m in range(3, n_states + 1):
        for e in range(1, m):  # Helmert's contrasts
            out[m, :e, e - 1] = 1.0 / np.sqrt(e * (e + 1))
            out[m, e, e - 1] = -e / np.sqrt(e * (e + 1))
    return out


@compiled()
def fit_parts(
    X: Floats,
    codes: Codes,
    weights: Floats,
    order: Codes,
    starts: Codes,
    number: Codes,
    Q_of: Floats,
    ridge: float,
    tol: float,
    max_iter: int,
    coef: Floats,
    warm: bool,
) -> tuple[int, int, float]:
    """Fit the parts of a partition.

    Parameters
    ----------
    X : array of shape (n, d)
        Inputs, the axes of greatest variance first.
    codes, weights : arrays of shape (n,)
    order, starts : the rows part by part, and where each part begins
    number : array of shape (n_parts, n_states)
        The group of each part and state, -1 where there is none.
    Q_of : `bases` of the number of states
    ridge : float
        The penalty, 1 / C.
    tol, max_iter : float, int
        Stop when the next step would gain no more than this share of the objective; the most steps.
    coef : array of shape (n_groups, d + 1)
        Where the coefficients are written to, intercepts first. With `warm` they are where the search starts.

    Returns
    -------
    failed, steps : int
        Parts that did not converge, and the most steps that one took.
    work : float
        Floating-point operations in products of matrices and vectors and in factors, for benchmarks.
    """
    n_parts, n_states = number.shape
    k = X.shape[1] + 1
    biggest = 0
    for p in range(n_parts):
        biggest = max(biggest, starts[p + 1] - starts[p])
    A = np.empty((biggest, k))
    y = np.empty(biggest, dtype=np.int64)
    w = np.empty(biggest)
    Z = np.empty((min(biggest, _BLOCK), k))
    Z32 = np.empty((min(biggest, _BLOCK), k), dtype=np.float32)
    local = np.empty(n_states, dtype=np.int64)
    failed, most = 0, 0
    work = np.zeros(1)
    for p in range(n_parts):
        first, n = starts[p], starts[p + 1] - starts[p]
        m = 0
        for s in range(n_states):
            if number[p, s] >= 0:
                local[s] = m
                m += 1
        if m < 2:
            coef[number[p].max()] = 0.0
            continue
        frequency = np.zeros(m)
        for r in range(n):
            i = order[first + r]
            y[r] = local[codes[i]]
            w[r] = weights[i]
            frequency[y[r]] += w[r]
            A[r, 0] = 1.0
            for j in range(k - 1):
                A[r, j + 1] = X[i, j]
        v = max(1, m - 1)
        Q = Q_of[m, :m, :v].copy()
        T = np.zeros((v, k))
        for s in range(n_states):
            g = number[p, s]
            if g >= 0:
                for e in range(v):
                    # Q'B; for two states their difference
                    q = Q[local[s], e] if m > 2 else 2.0 * local[s] - 1.0
                    if warm:
                        for j in range(k):
                            T[e, j] += q * coef[g, j]
                    else:
                        T[e, 0] += q * np.log(frequency[local[s]])
        steps = _fit_part(A[:n], y[:n], w[:n], Q, ridge, T, tol, max_iter, not warm, Z, Z32, work)
        failed += steps > max_iter
        most = max(most, steps)
        for s in range(n_states):
            g = number[p, s]
            if g >= 0:
                for j in range(k):
                    coef[g, j] = 0.0
                    for e in range(v):
                        coef[g, j] += Q[local[s], e] * T[e, j]
    return failed, min(most, max_iter), work[0]


@compiled(inline="always")
def _fit_part(
    A: Floats,
    y: Codes,
    w: Floats,
    Q: Floats,
    ridge: float,
    T: Floats,
    tol: float,
    max_iter: int,
    same: bool,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    work: Floats,
) -> int:
    """Fit one part in place and return the number of steps; more than `max_iter` if it did not converge.

    `same` says that the start has the same probabilities in all rows.
    """
    n, k = A.shape
    m, v = Q.shape
    S, change, P = np.empty((n, m)), np.zeros((n, m)), np.empty((n, m))
    grad, step = np.empty((v, k)), np.zeros((v, k))
    _scores(A, T, Q, S)
    value, _, _ = _softmax(S, change, 0.0, y, w, P)
    value += _penalty(T, T, ridge) / 2
    _gradient(A, y, w, P, Q, T, ridge, grad)
    energy = _energy(A, w)
    least = 1e-4 * _null_value(y, w, m)  # where states are separable and nothing is penalised, the optimum is 0
    U, diagonal, width = np.empty((0, 0)), np.empty(k), 0
    added, damping = np.empty(k), 0.0
    old, conjugate = False, v * k > _MOST
    left, negligible = np.inf, _NEGLIGIBLE
    for steps in range(1, max_iter + 1):
        enough = tol * max(value, least)
        fresh = True
        if old:
            gain = _precondition(U, diagonal, width, grad, step)
            fresh = gain > max(enough, _SHRINK * left)
        if fresh:
            for j in range(k):
                added[j] = (ridge if j else 0.0) + damping * energy[j]
            U, width = _factor(A, w, P, Q, added, same, negligible, energy, diagonal, Z, Z32, work)
            same = False
            gain = _precondition(U, diagonal, width, grad, step)
        if conjugate:
            gain = _conjugate_gradients(A, w, P, Q, added, U, diagonal, width, grad, step)
        if gain <= enough:
            _move(T, step, 1.0)
            return steps
        _scores(A, step, Q, change)
        work[0] += 4.0 * n * k * v + 2.0 * (v * width) ** 2
        size, new_value = _search(S, change, y, w, P, T, step, ridge, value, gain)
        if size < 0.01:  # far from where the Hessian tells the truth; in the end, rounding hides what is left
            damping = max(100 * damping, 1e-8)
            old = False
            if size == 0.0:
                if damping > 1.0:
                    return steps
                _softmax(S, change, 0.0, y, w, P)
                continue
        elif fresh:
            damping = damping / 100 if damping > 1e-8 else 0.0
        _move(T, step, size)
        _move(S, change, size)
        value = new_value
        _gradient(A, y, w, P, Q, T, ridge, grad)
        if fresh and width < k and _precondition(U, diagonal, width, grad, step) > _SLOW * gain:
            negligible = 0.0
        old = size >= 0.01
        left = gain
    return max_iter + 1


@compiled(inline="always")
def _search(
    S: Floats,
    change: Floats,
    y: Codes,
    w: Floats,
    P: Floats,
    T: Floats,
    step: Floats,
    ridge: float,
    value: float,
    gain: float,
) -> tuple[float, float]:
    """How far to go along the step, by Newton's method on the line; P is left at the place found.

    Scores are linear in the coefficients, so no inputs are needed here. Steps of a softmax are too short while its
    probabilities grow sure, and the line search makes up for it. Returns 0 if nothing can be gained.
    """
    a, b = _penalty(T, step, ridge), _penalty(step, step, ridge)
    constant = _penalty(T, T, ridge) / 2
    size, low, high = 1.0, 0.0, np.inf
    for attempt in range(40):
        new_value, slope, curvature = _softmax(S, change, size, y, w, P)
        new_value += constant - size * a + size * size * b / 2
        slope += size * b - a
        curvature += b
        down = new_value <= value - 2e-4 * size * gain
        if down and (abs(slope) <= 0.6 * gain or attempt >= 3):
            return size, new_value
        if down and slope < 0.0:
            low = size
        else:
            high = size
        best = size - slope / curvature if curvature > 0.0 else 2.0 * size
        if best > 4.0 * size:
            best = 4.0 * size
        if not low < best < high:
            best = 0.5 * (low + high) if high < np.inf else 2.0 * size
        if best < 1e-10:
            break
        size = best
    return 0.0, value


@compiled()
def _move(T: Floats, step: Floats, size: float) -> None:
    """T - size * step, in place."""
    for e in range(T.shape[0]):
        for j in range(T.shape[1]):
            T[e, j] -= size * step[e, j]


@compiled(fastmath=SUMS)
def _penalty(T: Floats, V: Floats, ridge: float) -> float:
    """ridge times the inner product of the coefficients, intercepts excepted."""
    total = 0.0
    for e in range(T.shape[0]):
        for j in range(1, T.shape[1]):
            total += T[e, j] * V[e, j]
    return ridge * total


@compiled(fastmath=SUMS)
def _scores(A: Floats, T: Floats, Q: Floats, S: Floats) -> None:
    """S = A T'Q', four rows at a time."""
    n, k = A.shape
    m, v = Q.shape
    S[:] = 0.0
    for i0 in range(0, n, 4):
        i1, i2, i3 = min(i0 + 1, n - 1), min(i0 + 2, n - 1), min(i0 + 3, n - 1)
        rows = min(4, n - i0)
        for e in range(v):
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for j in range(k):
                c = T[e, j]
                t0 += A[i0, j] * c
                t1 += A[i1, j] * c
                t2 += A[i2, j] * c
                t3 += A[i3, j] * c
            for a in range(m):
                q = Q[a, e]
                S[i0, a] += q * t0
                if rows > 1:
                    S[i1, a] += q * t1
                if rows > 2:
                    S[i2, a] += q * t2
                if rows > 3:
                    S[i3, a] += q * t3


@compiled(fastmath=SUMS)
def _softmax(S: Floats, change: Floats, size: float, y: Codes, w: Floats, P: Floats) -> tuple[float, float, float]:
    """P = softmax(S - size change); minus log-likelihood and its first two derivatives by size."""
    n, m = S.shape
    value, slope, curvature = 0.0, 0.0, 0.0
    for i in range(n):
        top = -np.inf
        for a in range(m):
            P[i, a] = S[i, a] - size * change[i, a]
            top = max(top, P[i, a])
        own = P[i, y[i]]
        total, mean, square = 0.0, 0.0, 0.0
        for a in range(m):
            x = 1.0 if P[i, a] == top else np.exp(P[i, a] - top)
            P[i, a] = x
            total += x
            mean += x * change[i, a]
            square += x * change[i, a] * change[i, a]
        scale = 1.0 / total
        for a in range(m):
            P[i, a] *= scale
        mean *= scale
        value += w[i] * (top + np.log(total) - own)
        slope -= w[i] * (mean - change[i, y[i]])
        curvature += w[i] * (square * scale - mean * mean)
    return value, slope, curvature


@compiled(fastmath=SUMS)
def _gradient(A: Floats, y: Codes, w: Floats, P: Floats, Q: Floats, T: Floats, ridge: float, grad: Floats) -> None:
    """The gradient of the objective, four rows at a time."""
    n, k = A.shape
    m, v = Q.shape
    u = np.empty((4, v))
    for e in range(v):
        grad[e, 0] = 0.0
        for j in range(1, k):
            grad[e, j] = ridge * T[e, j]
    for i0 in range(0, n, 4):
        i1, i2, i3 = min(i0 + 1, n - 1), min(i0 + 2, n - 1), min(i0 + 3, n - 1)
        u[:] = 0.0
        for r in range(min(4, n - i0)):
            i = i0 + r
            for e in range(v):
                total = -Q[y[i], e]
                for a in range(m):
                    total += Q[a, e] * P[i, a]
                u[r, e] = w[i] * total
        for e in range(v):
            u0, u1, u2, u3 = u[0, e], u[1, e], u[2, e], u[3, e]
            for j in range(k):
                grad[e, j] += u0 * A[i0, j] + u1 * A[i1, j] + u2 * A[i2, j] + u3 * A[i3, j]


@compiled(inline="always")
def _null_value(y: Codes, w: Floats, m: int) -> float:
    """The objective of the frequencies alone."""
    counts = np.zeros(m)
    for i in range(len(y)):
        counts[y[i]] += w[i]
    total, value = counts.sum(), 0.0
    for a in range(m):
        value -= counts[a] * np.log(counts[a] / total)
    return value


@compiled(fastmath=SUMS)
def _energy(A: Floats, w: Floats) -> Floats:
    """The weighted sum of squares along each axis."""
    n, k = A.shape
    out = np.zeros(k)
    for i in range(n):
        for j in range(k):
            out[j] += w[i] * A[i, j] * A[i, j]
    return out


@compiled(fastmath=SUMS)
def _factor(
    A: Floats,
    w: Floats,
    P: Floats,
    Q: Floats,
    added: Floats,
    same: bool,
    negligible: float,
    energy: Floats,
    diagonal: Floats,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    work: Floats,
) -> tuple[Floats, int]:
    """The upper Cholesky factor of the Hessian along the first axes, how many these are, and a diagonal for the rest.

    `added` to the diagonal are the penalty and, where needed, a damping.
    """
    n, k = A.shape
    m, v = Q.shape
    curvature, total = 0.0, 0.0
    for i in range(n):
        c = 1.0
        for a in range(m):
            c -= P[i, a] * P[i, a]
        curvature += w[i] * c
        total += w[i]
    curvature /= 2.0 * v * total
    longest = 0.0
    for j in range(k):
        diagonal[j] = curvature * energy[j] + added[j]
        longest = max(longest, curvature * energy[j])
    width = k
    while width > 1 and curvature * energy[width - 1] < negligible * added[width - 1]:
        width -= 1
    width = min(width, max(1, _MOST // v))
    single = added[k - 1] > 1e-5 * longest
    H = np.zeros((v * width, v * width))
    G = np.empty((width, width))
    if same:
        _gram(A, w, P, -1, -1, width, single, Z, Z32, G, work)
    for a in range(m):
        for b in range(a):
            share = P[0, a] * P[0, b] if same else 1.0
            if not same and not _gram(A, w, P, a, b, width, single, Z, Z32, G, work):
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
    work[0] += (v * width) ** 3 / 3.0
    return _cholesky(H), width


@compiled()
def _add(A: npt.NDArray[np.floating], B: Floats) -> None:
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] += A[i, j]


@compiled(fastmath=SUMS)
def _gram(
    A: Floats,
    w: Floats,
    P: Floats,
    a: int,
    b: int,
    width: int,
    single: bool,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    G: Floats,
    work: Floats,
) -> bool:
    """G = sum_i w_i p_ia p_ib a_i a_i' along the first axes; a = -1 means by weight alone. Whether there was a row.

    Rows that together have no more than a thousandth of the weight are left out.
    """
    n = len(A)
    least = 0.0
    if a >= 0:
        for i in range(n):
            least += w[i] * P[i, a] * P[i, b]
        least *= 1e-3 / n
    G[:] = 0.0
    flat, flat32 = Z.ravel(), Z32.ravel()
    rows, some = 0, False
    for i in range(n):
        c = w[i] * P[i, a] * P[i, b] if a >= 0 else w[i]
        if c > least:
            root = np.sqrt(c)
            place = rows * width
            if single:
                for j in range(width):
                    flat32[place + j] = root * A[i, j]
            else:
                for j in range(width):
                    flat[place + j] = root * A[i, j]
            rows += 1
        if rows and (rows == _BLOCK or i == n - 1):  # short sums, so that single precision loses nothing
            some = True
            work[0] += 2.0 * rows * width * width
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
    scale = 0.0
    for i in range(len(H)):
        scale = max(scale, H[i, i])
    damping = 1e-12 * max(scale, 1e-300)
    while True:
        try:
            return np.linalg.cholesky(H).T  # type: ignore[return-value]  # float64, as H is
        except Exception:
            for i in range(len(H)):
                H[i, i] += damping
            damping *= 10


@compiled(fastmath=SUMS)
def _precondition(U: Floats, diagonal: Floats, width: int, grad: Floats, out: Floats) -> float:
    """Solve with the factor along the first axes and with the diagonal along the others; half of out'grad."""
    v, k = grad.shape
    n = v * width
    x = np.empty(n)
    for e in range(v):
        for j in range(width):
            x[e * width + j] = grad[e, j]
        for j in range(width, k):
            out[e, j] = grad[e, j] / diagonal[j]
    for i in range(n):
        x[i] /= U[i, i]
        for j in range(i + 1, n):
            x[j] -= U[i, j] * x[i]
    for i in range(n - 1, -1, -1):
        total = 0.0
        for j in range(i + 1, n):
            total += U[i, j] * x[j]
        x[i] = (x[i] - total) / U[i, i]
    gain = 0.0
    for e in range(v):
        for j in range(width):
            out[e, j] = x[e * width + j]
        for j in range(k):
            gain += out[e, j] * grad[e, j]
    return gain / 2


@compiled(fastmath=SUMS)
def _times_hessian(A: Floats, w: Floats, P: Floats, Q: Floats, added: Floats, V: Floats, out: Floats) -> None:
    """The Hessian, in full, times V."""
    n, k = A.shape
    m, v = Q.shape
    out[:] = 0.0
    t, s = np.empty(v), np.empty(m)
    for i in range(n):
        for e in range(v):
            t[e] = 0.0
            for j in range(k):
                t[e] += A[i, j] * V[e, j]
        mean = 0.0
        for a in range(m):
            s[a] = 0.0
            for e in range(v):
                s[a] += Q[a, e] * t[e]
            mean += P[i, a] * s[a]
        for e in range(v):
            u = 0.0
            for a in range(m):
                u += Q[a, e] * P[i, a] * (s[a] - mean)
            u *= w[i]
            for j in range(k):
                out[e, j] += u * A[i, j]
    for e in range(v):
        for j in range(k):
            out[e, j] += added[j] * V[e, j]


@compiled(inline="always")
def _conjugate_gradients(
    A: Floats,
    w: Floats,
    P: Floats,
    Q: Floats,
    added: Floats,
    U: Floats,
    diagonal: Floats,
    width: int,
    grad: Floats,
    step: Floats,
) -> float:
    """Improve `step`, the preconditioned gradient, towards H^-1 grad; half of step'grad."""
    residual, direction = grad.copy(), step.copy()
    image, solved = np.empty_like(grad), np.empty_like(grad)
    step[:] = 0.0
    first = power = _inner(residual, direction)
    for _ in range(200):
        _times_hessian(A, w, P, Q, added, direction, image)
        length = power / _inner(direction, image)
        _move(step, direction, -length)
        _move(residual, image, length)
        new_power = 2 * _precondition(U, diagonal, width, residual, solved)
        if new_power <= 0.01 * first:
            break
        _move(solved, direction, -new_power / power)
        direction, solved = solved, direction
        power = new_power
    return _inner(step, grad) / 2


@compiled(fastmath=SUMS)
def _inner(T: Floats, V: Floats) -> float:
    total = 0.0
    for e in range(T.shape[0]):
        for j in range(T.shape[1]):
            total += T[e, j] * V[e, j]
    return total
