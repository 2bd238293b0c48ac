"""Newton's method for penalised softmax models with few rows and inputs, in compiled code.

The same objective and the same steps as in `newton`, whose numpy calls would cost more than the work itself here. The
Hessian is always that of the place and the rows at hand.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import compiled

EPSILON = float(np.finfo(float).eps)
_HELPER = {"no_cpython_wrapper": True}  # not called from Python, so it needs no wrapper, which takes time to compile


@compiled()
def fit_small_parts(
    A: Floats,
    y: Codes,
    w: Floats,
    bounds: Codes,
    n_states: Codes,
    contrasts: Floats,
    fold: Codes,
    n_folds: int,
    ridge: float,
    tol: float,
    max_iter: int,
    T: Floats,
    warm: bool,
    held_out: Floats,
) -> tuple[int, int]:
    """Fit the models of some parts and, if there are folds, score each row by the model without its fold.

    Parameters
    ----------
    A, y, w : arrays of shape (n, k), (n,) and (n,)
        Inputs (1, x), states and weights.
    bounds : array of shape (n_parts, 2)
        The rows of each part: from, to.
    n_states : array of shape (n_parts,)
    contrasts : array of shape (M + 1, M, M)
        Q for each number of states.
    fold : array of shape (n,)
    n_folds : int
        0 if no row is to be held out.
    T : array of shape (n_parts, M, k)
        The coefficients; with `warm`, first the place to start at.
    held_out : array of shape (n,)
        The log-probability of each row's own state; -inf where the other folds of the part do not have it.

    Returns
    -------
    failed, steps : int
        Parts that did not converge, and the most steps that one took.
    """
    k, most_states = A.shape[1], contrasts.shape[1]
    size = 0
    for p in range(len(bounds)):
        size = max(size, bounds[p, 1] - bounds[p, 0])
    own_A, own_y, own_w = np.empty((size, k)), np.empty(size, dtype=np.int64), np.empty(size)
    own_T, local = np.empty((most_states, k)), np.empty(most_states, dtype=np.int64)
    failed, most_steps = 0, 0
    for p in range(len(bounds)):
        first, end, m, worst = bounds[p, 0], bounds[p, 1], n_states[p], 0
        for f in range(-1, n_folds):  # -1: all rows
            # 1. The rows that are not in the fold, and the states they have.
            n_left = _number_states(y, fold, first, end, f, local)
            n = np.int64(0)  # a literal would be compiled for on its own
            for i in range(first, end):
                if fold[i] != f:
                    own_y[n], own_w[n] = local[y[i]], w[i]
                    for j in range(k):
                        own_A[n, j] = A[i, j]
                    n += 1
            if f >= 0 and n == end - first:
                continue
            # 2. Their model, from that of all rows. Without a penalty, coefficients that separate held-out rows would
            # never be forgotten.
            start = warm if f < 0 else n_left == m and ridge > 0.0
            for e in range(m - 1):
                for j in range(k):
                    own_T[e, j] = T[p, e, j] if start else 0.0
            Q = contrasts[n_left]
            if n_left > 1:
                steps = _minimise(own_A, own_y, own_w, n, n_left, Q, own_T, start, ridge, tol, max_iter)
                worst = max(worst, steps)
            # 3. Its coefficients, or what it says of the rows of the fold.
            if f < 0:
                for e in range(m - 1):
                    for j in range(k):
                        T[p, e, j] = own_T[e, j]
                continue
            for i in range(first, end):
                if fold[i] == f:
                    held_out[i] = _log_proba(A, i, own_T, Q, n_left, local[y[i]])
        failed += worst > max_iter
        most_steps = max(most_steps, worst)
    return failed, most_steps


@compiled(**_HELPER)
def _number_states(y: Codes, fold: Codes, first: int, end: int, f: int, local: Codes) -> int:
    """Number the states of the rows that are not in fold f, -1 for the other states; return how many there are."""
    local[:] = -1
    for i in range(first, end):
        if fold[i] != f:
            local[y[i]] = 0
    n_left = 0
    for s in range(len(local)):
        if local[s] == 0:
            local[s] = n_left
            n_left += 1
    return n_left


@compiled(**_HELPER)
def _log_proba(A: Floats, i: int, T: Floats, Q: Floats, m: int, state: int) -> float:
    """Return the log-probability of a state of row i, -inf for a state without a number."""
    if state < 0:
        return -np.inf
    scores, top = np.zeros(m), -np.inf
    for e in range(m - 1):
        total = 0.0
        for j in range(A.shape[1]):
            total += T[e, j] * A[i, j]
        for a in range(m):
            scores[a] += Q[a, e] * total
    for a in range(m):
        top = max(top, scores[a])
    total = 0.0
    for a in range(m):
        total += np.exp(scores[a] - top)
    return scores[state] - top - np.log(total)


@compiled(**_HELPER)
def _minimise(
    A: Floats,
    y: Codes,
    w: Floats,
    n: int,
    m: int,
    Q: Floats,
    T: Floats,
    warm: bool,
    ridge: float,
    tol: float,
    max_iter: int,
) -> int:
    """Minimise the objective of the first n rows over T, in place; return the steps, over `max_iter` if it failed."""
    k, v = A.shape[1], m - 1
    S, change, P = np.zeros((n, m)), np.zeros((n, m)), np.empty((n, m))
    step, H, solution = np.zeros((v, k)), np.empty((v * k, v * k)), np.empty(v * k)
    # 0. Start at T, unless the frequencies are better.
    weight, value = np.zeros(m), np.inf
    for i in range(n):
        weight[y[i]] += w[i]
    null = -np.sum(weight * np.log(weight / weight.sum()))
    if warm:
        _add_scores(A, T, Q, S)
        value = _evaluate(S, change, 0.0, y, w, P)[0] + _penalty(T, T, v, ridge) / 2
    if not value <= null:
        for e in range(v):
            for j in range(k):
                T[e, j] = 0.0
            for a in range(m):  # Q'b; for two states their difference
                T[e, 0] += (Q[a, e] if m > 2 else 2.0 * a - 1.0) * np.log(weight[a])
        S[:] = 0.0
        _add_scores(A, T, Q, S)
        value = _evaluate(S, change, 0.0, y, w, P)[0]
    least = (1e-10 if ridge else 1e-4) * null
    damping, floor, left = 0.0, 0.0, np.inf
    for steps in range(1, max_iter + 1):
        if ridge == 0.0 and value <= 1e-8 * null:  # separable: the optimum is 0, infinitely far away
            return steps
        # 1. The Newton step and the gain that it promises.
        enough = max(tol * max(value, least), EPSILON * weight.sum())  # rounding hides smaller gains
        gain = _newton_step(A, y, w, P, Q, T, ridge, damping + floor, H, solution, step)
        if gain == np.inf and floor < 0.01:  # singular to working precision
            floor = max(10 * floor, 1e-13)
            continue
        if gain <= enough and damping > 0.0:  # a damped Hessian promises too little
            damping = 0.0 if damping < 1e-7 else damping / 100
            continue
        # 2. Line search, with damping where the Hessian is not reliable.
        change[:] = 0.0
        _add_scores(A, step, Q, change)
        end = gain <= enough
        size, new_value = _line_search(S, change, y, w, P, T, step, ridge, value, gain, end)
        if size < 0.01 and not end:  # in the end, rounding hides what is left
            if damping > 1.0:
                return steps if left <= 1e-6 * max(value, least) else max_iter + 1
            damping = max(100 * damping, 1e-8)
        else:
            damping = damping / 100 if damping > 1e-7 else 0.0
        # 3. The step.
        for e in range(v):
            for j in range(k):
                T[e, j] -= size * step[e, j]
        if end:
            return steps
        for i in range(n):
            for s in range(m):
                S[i, s] -= size * change[i, s]
        if size == 0.0:
            _evaluate(S, change, 0.0, y, w, P)
        else:
            value, left = new_value, gain
    return max_iter + 1


@compiled(**_HELPER)
def _line_search(
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
    end: bool,
) -> tuple[float, float]:
    """Return how far to go along the step, by Newton's method on the line, and the objective there; P is left there.

    At the end, the whole step is taken unless it changes much and raises the objective.
    """
    v = step.shape[0]
    a, b, constant = _penalty(T, step, v, ridge), _penalty(step, step, v, ridge), _penalty(T, T, v, ridge) / 2
    size, low, high = 1.0, 0.0, np.inf
    for attempt in range(40 if gain < np.inf else 0):
        new_value, slope, curvature = _evaluate(S, change, size, y, w, P)
        new_value += constant - size * a + size * size * b / 2
        slope += size * b - a
        if end:
            return (1.0 if new_value <= value or np.abs(change).max() <= 0.1 else 0.0), new_value
        down = new_value <= value - 2e-4 * size * gain
        if down and (abs(slope) <= 0.6 * gain or attempt >= 3):
            return size, new_value
        if down and slope < 0.0:
            low = size
        else:
            high = size
        best = min(size - slope / (curvature + b), 4.0 * size) if curvature + b > 0.0 else 2.0 * size
        if not low < best < high:
            best = 0.5 * (low + high) if high < np.inf else 2.0 * size
        if best < 1e-10:
            break
        size = best
    return 0.0, value


@compiled(**_HELPER)
def _add_scores(A: Floats, T: Floats, Q: Floats, S: Floats) -> None:
    """S += A T'Q'."""
    for i in range(S.shape[0]):
        for e in range(S.shape[1] - 1):
            total = 0.0
            for j in range(A.shape[1]):
                total += T[e, j] * A[i, j]
            for a in range(S.shape[1]):
                S[i, a] += Q[a, e] * total


@compiled(**_HELPER)
def _evaluate(S: Floats, change: Floats, size: float, y: Codes, w: Floats, P: Floats) -> tuple[float, float, float]:
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
            x = np.exp(P[i, a] - top)
            P[i, a] = x
            total += x
            mean += x * change[i, a]
            square += x * change[i, a] * change[i, a]
        for a in range(m):
            P[i, a] /= total
        mean /= total
        value += w[i] * (top + np.log(total) - own)
        slope += w[i] * (change[i, y[i]] - mean)
        curvature += w[i] * (square / total - mean * mean)
    return value, slope, curvature


@compiled(**_HELPER)
def _penalty(T: Floats, V: Floats, v: int, ridge: float) -> float:
    """Return ridge times the inner product of the coefficients, intercepts excepted."""
    total = 0.0
    for e in range(v):
        for j in range(1, T.shape[1]):
            total += T[e, j] * V[e, j]
    return ridge * total


@compiled(**_HELPER)
def _newton_step(
    A: Floats,
    y: Codes,
    w: Floats,
    P: Floats,
    Q: Floats,
    T: Floats,
    ridge: float,
    damping: float,
    H: Floats,
    x: Floats,
    step: Floats,
) -> float:
    """Solve H step = gradient; return the promised gain, half of step'gradient, inf if H is singular."""
    n, m = P.shape
    v, k = step.shape
    d = v * k
    H[:] = 0.0
    x[:] = 0.0
    # 1. Hessian (its lower triangle) and gradient.
    for i in range(n):
        for e in range(v):
            residual = -Q[y[i], e]
            for a in range(m):
                residual += P[i, a] * Q[a, e]
            for j in range(k):
                x[e * k + j] += w[i] * residual * A[i, j]
            for f in range(e + 1):
                c = 0.0  # a covariance as a sum over pairs, where nothing cancels
                for a in range(m):
                    for b in range(a):
                        c += P[i, a] * P[i, b] * (Q[a, e] - Q[b, e]) * (Q[a, f] - Q[b, f])
                for j in range(k):
                    cx = w[i] * c * A[i, j]
                    for other in range(k):
                        H[e * k + j, f * k + other] += cx * A[i, other]
    for e in range(v):
        for j in range(k):
            r = e * k + j
            if j > 0:
                x[r] += ridge * T[e, j]
                H[r, r] += ridge
            H[r, r] += damping * H[r, r] + 1e-300
            step[e, j] = x[r]
    # 2. Cholesky factor and both substitutions.
    for r in range(d):
        for c in range(r + 1):
            total = 0.0
            for j in range(c):
                total += H[r, j] * H[c, j]
            if c < r:
                H[r, c] = (H[r, c] - total) / H[c, c]
            elif H[r, r] - total > 1e-15 * H[r, r]:
                H[r, r] = np.sqrt(H[r, r] - total)
            else:
                return np.inf
        total = 0.0
        for j in range(r):
            total += H[r, j] * x[j]
        x[r] = (x[r] - total) / H[r, r]
    for r in range(d - 1, -1, -1):
        x[r] /= H[r, r]
        for j in range(r):
            x[j] -= H[r, j] * x[r]
    gain = 0.0
    for e in range(v):
        for j in range(k):
            gain += x[e * k + j] * step[e, j]
            step[e, j] = x[e * k + j]
    return gain / 2
