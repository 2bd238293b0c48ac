"""Penalised softmax models of the rows of one part: objective, gradient, and the axes along which they are fitted.

For one part with m states, inputs a_i = (1, x_i), weights w_i and coefficients B = Q T the objective is

    f(T) = - sum_i w_i log softmax(Q T a_i)[y_i]  +  ridge / 2 |T|^2   (intercepts excepted).

Q is an orthonormal basis of the vectors over the states that sum to zero, where the penalty puts the coefficients
anyway, so that |T| = |B| and nothing is superfluous; for two states it is (0, 1)', one coefficient vector as in
scikit-learn; for very many states it is the identity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import SUMS, compiled

BLOCK = 1024
"""Rows of a matrix product."""

_MANY = 12
"""With more states than this the blocks of the Hessian off its diagonal are too many to be made, and so are the entries
of Q: each state has its own coefficients, as for scikit-learn, which conjugate gradients do not mind."""


@compiled()
def room(starts: Codes, k: int) -> tuple[Floats, Codes, Floats, Floats, npt.NDArray[np.float32]]:
    """Room for the rows of the largest part (`take_rows`), and for those of a matrix product in either precision."""
    n = 0
    for p in range(len(starts) - 1):
        n = max(n, starts[p + 1] - starts[p])
    some = min(n, BLOCK)
    return (
        np.empty((n, k)),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty((some, k)),
        np.empty((some, k), dtype=np.float32),
    )


@compiled()
def local_states(number: Codes, local: Codes) -> int:
    """Number the states that a part has; how many these are."""
    m = 0
    for s in range(len(number)):
        if number[s] >= 0:
            local[s] = m
            m += 1
    return m


@compiled()
def take_rows(
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
def row_space(A: Floats, w: Floats, ridge: float, negligible: float) -> Floats:
    """An orthonormal basis of the rows of a part, intercepts aside: shape (k - 1, n).

    Under a penalty the coefficients lie in it, and the penalty does not notice the rotation: a part with fewer rows
    than axes that are not negligible needs no more coefficients than rows. Where it saves little there is no column.
    """
    n, k = A.shape
    none = np.empty((k - 1, 0))
    if ridge == 0.0 or 4 * n > 3 * k:
        return none
    energy = energies(A, w)[0]
    width = k  # the axes that may count; no curvature is above 1/3 on average over the contrasts
    while width > 1 and energy[width - 1] < 3.0 * negligible * ridge:
        width -= 1
    if 4 * n > 3 * width:
        return none
    return np.ascontiguousarray(np.linalg.qr(np.ascontiguousarray(A[:, 1:].T))[0])


@compiled()
def along(A: Floats, R: Floats) -> Floats:
    """The rows (1, x) of A as (1, x R)."""
    out = np.empty((A.shape[0], R.shape[1] + 1))
    rotated = np.dot(np.ascontiguousarray(A[:, 1:]), R)
    for i in range(out.shape[0]):
        out[i, 0] = A[i, 0]
        for j in range(R.shape[1]):
            out[i, j + 1] = rotated[i, j]
    return out


@compiled()
def contrasts(m: int) -> Floats:
    """Q for m states: Helmert's contrasts, for many states the identity."""
    return np.eye(m) if m > _MANY else helmert(m)


@compiled()
def helmert(m: int) -> Floats:
    """Helmert's contrasts of m states, shape (m, m - 1); for two states (0, 1)'."""
    Q = np.zeros((m, m - 1))
    if m == 2:
        Q[1, 0] = 1.0
        return Q
    for e in range(1, m):
        for a in range(e):
            Q[a, e - 1] = 1.0 / np.sqrt(e * (e + 1))
        Q[e, e - 1] = -e / np.sqrt(e * (e + 1))
    return Q


@compiled()
def scores(A: Floats, T: Floats, Q: Floats, S: Floats) -> None:
    """S = A T'Q'."""
    B = np.dot(A, np.ascontiguousarray(T.T))
    copy(B if Q.shape[0] == Q.shape[1] else np.dot(B, np.ascontiguousarray(Q.T)), S)


@compiled(fastmath=SUMS)
def softmax(S: Floats, change: Floats, size: float, y: Codes, w: Floats, P: Floats) -> tuple[float, float, float]:
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
def penalty(T: Floats, V: Floats, ridge: float) -> float:
    """ridge times the inner product of the coefficients, intercepts excepted."""
    total = 0.0
    for e in range(T.shape[0]):
        for j in range(1, T.shape[1]):
            total += T[e, j] * V[e, j]
    return ridge * total


@compiled()
def sum_rows(A: Floats, w: Floats, R: Floats, Q: Floats, out: Floats) -> None:
    """sum_i w_i (Q'r_i) a_i', for a row r_i of R over the states: a gradient, where R is that by the scores."""
    U = R * w.reshape(-1, 1)
    if Q.shape[0] > Q.shape[1]:
        U = np.dot(U, Q)
    copy(np.dot(np.ascontiguousarray(U.T), A), out)


@compiled()
def gradient(A: Floats, y: Codes, w: Floats, P: Floats, Q: Floats, T: Floats, ridge: float, grad: Floats) -> None:
    """The gradient of the objective."""
    R = P.copy()
    for i in range(len(y)):
        R[i, y[i]] -= 1.0
    sum_rows(A, w, R, Q, grad)
    for e in range(T.shape[0]):
        for j in range(1, T.shape[1]):
            grad[e, j] += ridge * T[e, j]


@compiled(inline="always")
def line_search(
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
    a, b = penalty(T, step, ridge), penalty(step, step, ridge)
    constant = penalty(T, T, ridge) / 2
    size, low, high = 1.0, 0.0, np.inf
    for attempt in range(40):
        new_value, slope, curvature = softmax(S, change, size, y, w, P)
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


@compiled(fastmath=SUMS)
def energies(A: Floats, w: Floats) -> tuple[Floats, Floats]:
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
def variance(p: Floats, Q: Floats, e: int) -> float:
    """The variance of contrast e under the probabilities p."""
    m, v = Q.shape
    mean, square = 0.0, 0.0
    for a in range(m) if v < m else range(e, e + 1):
        mean += p[a] * Q[a, e]
        square += p[a] * Q[a, e] * Q[a, e]
    return square - mean * mean


@compiled()
def move(T: Floats, step: Floats, size: float) -> None:
    """T - size * step, in place."""
    for e in range(T.shape[0]):
        for j in range(T.shape[1]):
            T[e, j] -= size * step[e, j]


@compiled()
def copy(A: Floats, B: Floats) -> None:
    """B = A in place. Assigned to a slice, an error of its shape is compiled too, which takes seconds."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            B[i, j] = A[i, j]


@compiled(fastmath=SUMS)
def inner(T: Floats, V: Floats) -> float:
    total = 0.0
    for e in range(T.shape[0]):
        for j in range(T.shape[1]):
            total += T[e, j] * V[e, j]
    return total
