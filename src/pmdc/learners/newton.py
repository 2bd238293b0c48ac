"""Newton's method for penalised softmax models, for all parts of a partition in compiled code.

For one part with m states, inputs a_i = (1, x_i), weights w_i and coefficients B = Q T the objective is

    f(T) = - sum_i w_i log softmax(Q T a_i)[y_i]  +  ridge / 2 |T|^2   (intercepts excepted).

Q is an orthonormal basis of the vectors over the states that sum to zero, where the penalty puts the coefficients
anyway, so that |T| = |B| and nothing is superfluous; for two states it is (0, 1)', one coefficient vector as in
scikit-learn; for very many states it is the identity. The covariance of a softmax is a sum over pairs of states,
diag(p) - pp' = sum over a < b of p_a p_b (e_a - e_b)(e_a - e_b)', so the Hessian is made of one weighted Gram matrix
for each pair,

    H = sum over a < b of  d_ab d_ab' (x) sum_i w_i p_ia p_ib a_i a_i'  +  ridge,      d_ab = Q'(e_a - e_b),

and rows that are sure not to be in one of two states add nothing to their Gram matrix.

Gradients are exact; the Hessian only steers, and may be cheap:

- it is in single precision where the penalty allows it;
- inputs come rotated to their principal axes (which the penalty does not notice), the longest first. Along axes on
  which a part hardly varies the penalty outweighs the data, and the Hessian is taken as diagonal there;
- a factor is used again as long as the steps it gives shrink what is left quickly;
- where there are too many coefficients or states for a factor, the steps come from conjugate gradients with the Hessian
  in full, which need no more than its products with vectors; a factor for each contrast is their preconditioner.

No step that changes much is taken unless the objective, computed anew, is lower for it. A start worse than the
frequencies is not used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc.compiled import SUMS, compiled
from pmdc.table import Codes, Floats

_BLOCK = 1024
"""Rows of a matrix product."""

_MOST = 600
"""The most coefficients of one factor."""

_MANY = 12
"""With more states than this the blocks of the Hessian off its diagonal are too many to be made, and so are the entries
of Q: each state has its own coefficients, as for scikit-learn, which conjugate gradients do not mind."""

_SHRINK = 0.25
"""A factor is used again if the gain that is left has shrunk to less than this share."""

_SLOW = 0.7
"""If a new factor leaves more than this share, the axes that it neglects are not negligible."""

_NEGLIGIBLE = 0.1
"""Axes along which the curvature of the data is below this share of the penalty have a diagonal Hessian."""


@compiled()
def fit_parts(
    X: Floats,
    codes: Codes,
    weights: Floats,
    order: Codes,
    starts: Codes,
    number: Codes,
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
        Inputs. It is quickest with the axes of greatest variance first.
    codes, weights : arrays of shape (n,)
    order, starts : the rows part by part, and where each part begins
    number : array of shape (n_parts, n_states)
        The group of each part and state, -1 where there is none.
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
    A, y, w, Z, Z32 = _room(starts, k)
    local = np.empty(n_states, dtype=np.int64)
    failed, most = 0, 0
    work = np.zeros(1)
    for p in range(n_parts):
        n = starts[p + 1] - starts[p]
        m = _local_states(number[p], local)
        if m < 2:
            coef[number[p].max()] = 0.0
            continue
        _take_rows(X, codes, weights, order[starts[p] : starts[p + 1]], local, A, y, w)
        frequency = np.zeros(m)
        for r in range(n):
            frequency[y[r]] += w[r]
        Q = _contrasts(m)
        v = Q.shape[1]
        T, cold = np.zeros((v, k)), np.zeros(v)
        for s in range(n_states):
            g = number[p, s]
            if g >= 0:
                for e in range(v):
                    # Q'B; for two states their difference
                    q = Q[local[s], e] if m > 2 else 2.0 * local[s] - 1.0
                    cold[e] += q * np.log(frequency[local[s]])
                    if warm:
                        for j in range(k):
                            T[e, j] += q * coef[g, j]
        if not warm:
            for e in range(v):
                T[e, 0] = cold[e]
        steps = _fit_part(A[:n], y[:n], w[:n], Q, ridge, T, cold, tol, max_iter, not warm, Z, Z32, work)
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


@compiled()
def _room(starts: Codes, k: int) -> tuple[Floats, Codes, Floats, Floats, npt.NDArray[np.float32]]:
    """Room for the rows of the largest part (`_take_rows`), and for those of a matrix product in either precision."""
    n = 0
    for p in range(len(starts) - 1):
        n = max(n, starts[p + 1] - starts[p])
    some = min(n, _BLOCK)
    return (
        np.empty((n, k)),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty((some, k)),
        np.empty((some, k), dtype=np.float32),
    )


@compiled()
def _local_states(number: Codes, local: Codes) -> int:
    """Number the states that a part has; how many these are."""
    m = 0
    for s in range(len(number)):
        if number[s] >= 0:
            local[s] = m
            m += 1
    return m


@compiled()
def _take_rows(
    X: Floats, codes: Codes, weights: Floats, rows: Codes, local: Codes, A: Floats, y: Codes, w: Floats
) -> None:
    """Write the inputs (1, x), the states and the weights of the rows of a part to A, y and w."""
    for r in range(len(rows)):
        i = rows[r]
        y[r] = local[codes[i]]
        w[r] = weights[i]
        A[r, 0] = 1.0
        for j in range(X.shape[1]):
            A[r, j + 1] = X[i, j]


@compiled()
def _contrasts(m: int) -> Floats:
    """Q for m states: Helmert's contrasts, shape (m, m - 1); for two states (0, 1)', for many the identity."""
    if m > _MANY:
        return np.eye(m)
    Q = np.zeros((m, m - 1))
    if m == 2:
        Q[1, 0] = 1.0
        return Q
    for e in range(1, m):
        for a in range(e):
            Q[a, e - 1] = 1.0 / np.sqrt(e * (e + 1))
        Q[e, e - 1] = -e / np.sqrt(e * (e + 1))
    return Q


@compiled(inline="always")
def _fit_part(
    A: Floats,
    y: Codes,
    w: Floats,
    Q: Floats,
    ridge: float,
    T: Floats,
    cold: Floats,
    tol: float,
    max_iter: int,
    same: bool,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    work: Floats,
) -> int:
    """Fit one part in place and return the number of steps; more than `max_iter` if it did not converge.

    `cold` are the intercepts of the frequencies, where the search starts if T is no better; `same` says that T is that
    start already, which has the same probabilities in all rows.
    """
    n, k = A.shape
    m, v = Q.shape
    S, change, P = np.empty((n, m)), np.zeros((n, m)), np.empty((n, m))
    grad, step = np.empty((v, k)), np.zeros((v, k))
    null = _null_value(y, w, m)
    least = (1e-10 if ridge else 1e-4) * null
    _scores(A, T, Q, S)
    value = _softmax(S, change, 0.0, y, w, P)[0] + _penalty(T, T, ridge) / 2
    if not same and not value <= null:
        T[:] = 0.0
        for e in range(v):
            T[e, 0] = cold[e]
        same = True
        _scores(A, T, Q, S)
        value = _softmax(S, change, 0.0, y, w, P)[0]
    _gradient(A, y, w, P, Q, T, ridge, grad)
    energy, norms = _energy(A, w)
    longest = norms.max()
    conjugate = v * k > _MOST or v == m
    U, diagonal, width = np.empty((0, 0, 0)), np.empty((v, k)), k
    added, damping = np.empty(k), 0.0
    old, left, negligible = False, np.inf, _NEGLIGIBLE
    for steps in range(1, max_iter + 1):
        if ridge == 0.0 and value <= 1e-8 * null:  # separable: the optimum is 0, infinitely far away
            return steps
        enough = tol * max(value, least)
        fresh = True
        if old:
            gain = _precondition(U, diagonal, width, grad, step)
            fresh = not gain <= max(enough, _SHRINK * left)
        if fresh:
            for j in range(k):
                added[j] = (ridge if j else 0.0) + damping * energy[j]
            U, width = _factor(A, w, P, Q, added, conjugate, same, negligible, energy, norms, diagonal, Z, Z32, work)
            same = False
            gain = _precondition(U, diagonal, width, grad, step)
        if conjugate:
            gain = _conjugate_gradients(A, w, P, Q, added, U, diagonal, width, grad, step)
        if gain <= enough and damping > 0.0:  # a damped Hessian promises too little
            damping, old = 0.0 if damping < 1e-7 else damping / 100, False
            continue
        if gain <= enough and _inner(step, step) * longest <= 0.1:  # no score changes by much: nothing can go wrong
            _move(T, step, 1.0)
            return steps
        _scores(A, step, Q, change)
        work[0] += 4.0 * n * k * v + 2.0 * v * width * U.shape[1]
        size, new_value = 0.0, value
        if gain <= enough:
            a, b = _penalty(T, step, ridge), _penalty(step, step, ridge)
            new_value = _softmax(S, change, 1.0, y, w, P)[0] + _penalty(T, T, ridge) / 2 - a + b / 2
            if new_value <= value:
                _move(T, step, 1.0)
            return steps
        if gain < np.inf:
            size, new_value = _search(S, change, y, w, P, T, step, ridge, value, gain)
        if size < 0.01:  # far from where the Hessian tells the truth; in the end, rounding hides what is left
            if damping > 1.0:
                return steps if left <= 1e-6 * max(value, least) else max_iter + 1
            damping = max(100 * damping, 1e-8)
            old, negligible = False, 0.0
            if size == 0.0:
                _softmax(S, change, 0.0, y, w, P)
                continue
        elif fresh:
            damping = damping / 100 if damping > 1e-7 else 0.0
        _move(T, step, size)
        _move(S, change, size)
        value = new_value
        _gradient(A, y, w, P, Q, T, ridge, grad)
        if fresh and _precondition(U, diagonal, width, grad, step) > _SLOW * gain:
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
            for a in range(m) if v < m else range(e, e + 1):
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
                for a in range(m) if v < m else range(e, e + 1):
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
def _energy(A: Floats, w: Floats) -> tuple[Floats, Floats]:
    """The weighted sum of squares along each axis, and the squared length of each row."""
    n, k = A.shape
    out, norms = np.zeros(k), np.zeros(n)
    for i in range(n):
        for j in range(k):
            square = A[i, j] * A[i, j]
            out[j] += w[i] * square
            norms[i] += square
    return out, norms


@compiled(fastmath=SUMS)
def _factor(
    A: Floats,
    w: Floats,
    P: Floats,
    Q: Floats,
    added: Floats,
    conjugate: bool,
    same: bool,
    negligible: float,
    energy: Floats,
    norms: Floats,
    diagonal: Floats,
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    work: Floats,
) -> tuple[Floats, int]:
    """Upper Cholesky factors of the Hessian along the first axes, how many these are, and a diagonal for the rest.

    One factor for all contrasts together, or one for each of them where conjugate gradients do the rest; the shape is
    (number of factors, size, size). `added` to the diagonal are the penalty and, where needed, a damping.
    """
    n, k = A.shape
    m, v = Q.shape
    c = np.empty(n)
    curvature, total = np.zeros(v), 0.0  # of each contrast, on average over the rows
    for i in range(n):
        total += w[i]
        for e in range(v):
            curvature[e] += w[i] * _variance(P[i], Q, e)
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
    if conjugate:
        width = min(width, _MOST)
        U = np.empty((v, width, width))
        for e in range(v):
            for i in range(n):
                c[i] = w[i] * _variance(P[i], Q, e)
            _gram(A, c, norms, least, width, single, Z, Z32, U[e], work)
            for j in range(width):
                U[e, j, j] += added[j]
            _copy(_cholesky(U[e]), U[e])
            work[0] += width**3 / 3.0
        return U, width
    H = np.zeros((v * width, v * width))
    G = np.zeros((width, width))
    if same:
        _gram(A, w, norms, 0.0, width, single, Z, Z32, G, work)
    for a in range(m):
        for b in range(a):
            share = P[0, a] * P[0, b]
            if not same:
                share = 1.0
                for i in range(n):
                    c[i] = w[i] * P[i, a] * P[i, b]
                if not _gram(A, c, norms, least, width, single, Z, Z32, G, work):
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
    whole = np.empty((1, v * width, v * width))
    _copy(_cholesky(H), whole[0])
    return whole, width


@compiled(fastmath=SUMS)
def _variance(p: Floats, Q: Floats, e: int) -> float:
    """The variance of contrast e under the probabilities p."""
    m, v = Q.shape
    mean, square = 0.0, 0.0
    for a in range(m) if v < m else range(e, e + 1):
        mean += p[a] * Q[a, e]
        square += p[a] * Q[a, e] * Q[a, e]
    return square - mean * mean


@compiled()
def _copy(A: Floats, B: Floats) -> None:
    """B = A in place. Assigned to a slice, an error of its shape is compiled too, which takes seconds."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] = A[i, j]


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
    Z: Floats,
    Z32: npt.NDArray[np.float32],
    G: Floats,
    work: Floats,
) -> bool:
    """G = sum_i c_i a_i a_i' along the first axes, less rows that add no more than `least`. Whether any is left."""
    n = len(A)
    few = 0.0  # nor more than a thousandth to the intercepts, which have no penalty
    if least > 0.0:
        for i in range(n):
            few += 1e-3 * c[i] / n
    G[:] = 0.0
    flat, flat32 = Z.ravel(), Z32.ravel()
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
def _precondition(U: Floats, diagonal: Floats, width: int, grad: Floats, out: Floats) -> float:
    """Solve with the factors along the first axes and with the diagonal along the others; half of out'grad."""
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
            for e in range(v) if v < m else range(a, a + 1):
                s[a] += Q[a, e] * t[e]
            mean += P[i, a] * s[a]
        for e in range(v):
            u = 0.0
            for a in range(m) if v < m else range(e, e + 1):
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
        curvature = _inner(direction, image)
        if not power > 0.0 or not curvature > 0.0:
            break
        length = power / curvature
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
