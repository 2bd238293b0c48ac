"""Newton's method for penalised softmax models with many rows or inputs, in numpy.

(`small.py` is the same for small problems, compiled.) The covariance of a softmax is a sum over pairs of states,
diag(p) - pp' = sum over a < b of p_a p_b (e_a - e_b)(e_a - e_b)', so the Hessian is made of one weighted Gram matrix
for each pair,

    H = sum over a < b of  d_ab d_ab' (x) sum_i w_i p_ia p_ib a_i a_i'  +  ridge,      d_ab = Q'(e_a - e_b).

Gradients are exact; the Hessian only steers, and may be cheap:

- it is in single precision where the penalty allows it;
- a factor is used again while the steps it gives shrink what is left quickly, and it may confirm convergence only if no
  score has moved far since it was made;
- the Hessians of the rows of each fold add up to that of all rows, and without one of them to that of the rows that
  train this fold: cross-validation costs one Hessian more than the fit;
- where there are too many coefficients for one factor, steps come from conjugate gradients with the exact Hessian,
  preconditioned by a factor for each contrast along the first inputs (the principal axes with the greatest variance)
  and by a diagonal along the others.

No step that changes much is taken unless it lowers the objective. A start worse than the frequencies is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from pmdc._support.arrays import Array, Codes, Floats
from pmdc.learners.logistic.softmax import Problem

MAX_COEFFICIENTS, MAX_STATES = 600, 12
"""The most coefficients and states of one factor."""

BLOCK = 1024
"""Rows of a Gram matrix that are summed at once: short sums, so that single precision loses nothing."""

REUSE = 0.25
"""A factor is used again if the gain that is left has shrunk to less than this share (0.1 to 0.5 are as fast)."""

NEAR = 0.5
"""A factor may confirm convergence if no score has moved further than this since it was made."""


class Factor(NamedTuple):
    """An approximate Hessian: Cholesky factors along the first inputs, a diagonal along the others."""

    U: list[Floats]
    """One factor for all contrasts together, or one for each."""
    diagonal: Floats
    """Shape (v, k)."""
    width: int
    """The number of first inputs."""
    scores: Floats
    """Where it was made."""

    def solve(self, grad: Floats) -> tuple[Floats, float]:
        """Return the step H^-1 grad and the gain that it promises, half of its product with the gradient."""
        step = grad / self.diagonal
        front = grad[:, : self.width]
        if len(self.U) == 1:
            step[:, : self.width] = dpotrs(self.U[0], front.ravel())[0].reshape(front.shape)
        else:
            for e, U in enumerate(self.U):
                step[e, : self.width] = dpotrs(U, front[e])[0]
        return step, float(np.vdot(step, grad)) / 2

    def is_near(self, S: Floats) -> bool:
        """Return whether no score has moved far since the factor was made."""
        return bool(np.abs(S - self.scores).max() <= NEAR)


class Fit(NamedTuple):
    """The result of `minimise`."""

    T: Floats
    steps: int
    """More than `max_iter` if it did not converge."""
    scores: Floats


def minimise(problem: Problem, start: Floats | None, factor: Factor | None, tol: float, max_iter: int) -> Fit:
    """Minimise the objective of one part.

    It starts at `start` unless the frequencies are better. `factor` is used while it serves.
    """
    T, null = problem.frequencies()
    value, least = np.inf, (1e-10 if problem.ridge else 1e-4) * null
    if start is not None:
        S = problem.scores(start)
        P, value = problem.softmax(S)
        value += problem.penalty(start, start) / 2
    if start is not None and value <= null:
        T = start
    else:
        S = problem.scores(T)
        P, value = problem.softmax(S)
        factor = None
    grad = problem.gradient(P, T)
    damping, left, rounding = 0.0, np.inf, np.finfo(float).eps * problem.w.sum()
    for steps in range(1, max_iter + 1):
        if problem.ridge == 0.0 and value <= 1e-8 * null:  # separable: the optimum is 0, infinitely far away
            return Fit(T, steps, S)
        # 1. The step of the factor at hand if it serves, otherwise of a new one.
        enough = max(tol * max(value, least), rounding)
        gain = np.inf
        if factor is not None:
            step, gain = factor.solve(grad)
        fresh = False
        if factor is None or not gain <= max(enough, REUSE * left) or (gain <= enough and not factor.is_near(S)):
            factor, fresh = make_factor(problem, hessians(problem, P), S, damping), True
            step, gain = factor.solve(grad)
        if is_large(problem):
            step, gain = _conjugate_gradients(problem, P, damping, factor, grad)
        change = problem.scores(step)
        # 2. The end; a damped Hessian promises too little.
        if gain <= enough and damping > 0.0:
            damping, factor = (0.0 if damping < 1e-7 else damping / 100), None
            continue
        if gain <= enough:
            if np.abs(change).max() > 0.1:
                new_value = problem.softmax(S - change)[1] + problem.penalty(T - step, T - step) / 2
                if not new_value <= value:
                    return Fit(T, steps, S)
            return Fit(T - step, steps, S - change)
        # 3. Line search, with damping where the Hessian is not reliable.
        size = 0.0
        if gain < np.inf:
            size, value_there, P_there = _line_search(problem, S, change, T, step, value, gain)
        if size < 0.01:  # in the end, rounding hides what is left
            if damping > 1.0:
                return Fit(T, steps if left <= 1e-6 * max(value, least) else max_iter + 1, S)
            damping, factor = max(100 * damping, 1e-8), None
            if size == 0.0:
                continue
        elif fresh:
            damping = damping / 100 if damping > 1e-7 else 0.0
        # 4. The step.
        T, S, P, value = T - size * step, S - size * change, P_there, value_there
        grad = problem.gradient(P, T)
        left = gain
    return Fit(T, max_iter + 1, S)


def is_large(problem: Problem) -> bool:
    """Return whether there are too many coefficients or states for one factor."""
    m, v = problem.Q.shape
    return v * problem.A.shape[1] > MAX_COEFFICIENTS or m > MAX_STATES


# Hessians -----------------------------------------------------------------------------------------------------


class Hessian(NamedTuple):
    """The Hessian of the log-likelihood of some rows along the first inputs, and its diagonal along all of them.

    One matrix for all contrasts together, or one for each: shape (1, v width, v width) or (v, width, width).
    """

    H: Floats
    diagonal: Floats
    width: int


def hessians(problem: Problem, P: Floats, folds: Sequence[Codes] | None = None) -> list[Hessian]:
    """Return the Hessian of the rows of each fold, or that of all rows where there are no folds."""
    A, w, Q = problem.A, problem.w, problem.Q
    variances = ((Q**2).T @ P - (Q.T @ P) ** 2) * w
    energy = w @ A**2
    width = min(A.shape[1], MAX_COEFFICIENTS) if is_large(problem) else A.shape[1]
    # Single precision loses nothing where the penalty outweighs its rounding errors.
    single = problem.ridge * w.sum() > 1e-5 * variances.sum(axis=1).max() * energy.max()
    front = np.ascontiguousarray(A[:, :width], dtype=np.float32 if single else np.float64)
    found = []
    for rows in [slice(None)] if folds is None else folds:
        if is_large(problem):
            H = np.stack([_gram(variance, front[rows]) for variance in variances[:, rows]])
        else:
            H = _pairs(P[:, rows], w[rows], Q, front[rows])[None]
        found.append(Hessian(H, variances[:, rows].sum(axis=1)[:, None] * (energy / w.sum()), width))
    return found


def make_factor(problem: Problem, parts: Sequence[Hessian], S: Floats, damping: float) -> Factor:
    """Factor the sum of Hessians with the penalty, and with a damping where needed."""
    added = _added(problem, damping)
    width, v = parts[0].width, problem.Q.shape[1]
    H = np.sum([part.H for part in parts], axis=0)
    diagonal = np.maximum(np.sum([part.diagonal for part in parts], axis=0) + added, 1e-300)
    front = np.tile(added[:width], v // len(H))
    for block in H:
        block[np.diag_indices(len(block))] += front
    return Factor([_cholesky(block) for block in H], diagonal, width, S)


def _added(problem: Problem, damping: float) -> Floats:
    """Return what is added to the diagonal of the Hessian: the penalty and, where needed, a damping."""
    added = np.full(problem.A.shape[1], problem.ridge)
    added[0] = 0.0
    return added + damping * (problem.w @ problem.A**2) if damping else added


def _pairs(P: Floats, w: Floats, Q: Floats, A: Array) -> Floats:
    """Return the Hessian of all contrasts together."""
    m, v = Q.shape
    width = A.shape[1]
    if (P[:, :1] == P).all():  # at the start: one Gram matrix serves all pairs
        p = P[:, 0]
        weights, grams = Q.T @ (np.diag(p) - np.outer(p, p)) @ Q, _gram(w, A)
    else:
        pairs = [(a, b) for a in range(m) for b in range(a)]
        d = np.array([Q[a] - Q[b] for a, b in pairs])
        weights, grams = np.einsum("pe,pf->efp", d, d), np.stack([_gram(w * P[a] * P[b], A) for a, b in pairs])
    H = weights.reshape(v * v, -1) @ grams.reshape(-1, width * width)
    return H.reshape(v, v, width, width).transpose(0, 2, 1, 3).reshape(v * width, v * width)


def _gram(c: Floats, A: Array) -> Floats:
    """Return sum_i c_i a_i a_i'."""
    G = np.zeros((A.shape[1], A.shape[1]))
    root = np.sqrt(np.maximum(c, 0.0)).astype(A.dtype)
    for start in range(0, len(A), BLOCK):
        Z = A[start : start + BLOCK] * root[start : start + BLOCK, None]
        G += Z.T @ Z
    return G


def _cholesky(H: Floats) -> Floats:
    """Return U with H = U'U; damped where it is singular to working precision."""
    damping = 1e-13
    for _ in range(20):
        U, failed = dpotrf(H)
        if not failed:
            return U
        H[np.diag_indices(len(H))] *= 1 + damping
        H[np.diag_indices(len(H))] += 1e-300
        damping *= 10
    return np.eye(len(H))  # not finite: the step will fail, and damping takes over


# Steps --------------------------------------------------------------------------------------------------------


def _line_search(
    problem: Problem, S: Floats, change: Floats, T: Floats, step: Floats, value: float, gain: float
) -> tuple[float, float, Floats]:
    """Return how far to go along the step, by Newton's method on the line, with the objective and P at that place.

    Scores are linear in the coefficients, so no inputs are needed here. Steps of a softmax are too short while its
    probabilities approach certainty, and the line search makes up for it. The size is 0 if nothing can be gained.
    """
    a, b = problem.penalty(T, step), problem.penalty(step, step)
    constant = problem.penalty(T, T) / 2
    own = problem.own(change)
    size, low, high = 1.0, 0.0, np.inf
    for attempt in range(40):
        P, new_value = problem.softmax(S - size * change)
        moved = P * change
        mean = moved.sum(axis=0)
        slope = float(problem.w @ (own - mean)) + size * b - a
        new_value += constant - size * a + size * size * b / 2
        down = new_value <= value - 2e-4 * size * gain
        if down and (abs(slope) <= 0.6 * gain or attempt >= 3):
            return size, new_value, P
        if down and slope < 0.0:
            low = size
        else:
            high = size
        curvature = float(problem.w @ ((moved * change).sum(axis=0) - mean**2)) + b
        best = min(size - slope / curvature, 4.0 * size) if curvature > 0.0 else 2.0 * size
        if not low < best < high:
            best = 0.5 * (low + high) if high < np.inf else 2.0 * size
        if best < 1e-10:
            break
        size = best
    return 0.0, value, P


def _conjugate_gradients(
    problem: Problem, P: Floats, damping: float, factor: Factor, grad: Floats
) -> tuple[Floats, float]:
    """Solve with the exact Hessian, the factor as preconditioner; return the step and the gain that it promises."""
    added = _added(problem, damping)
    step, residual = np.zeros_like(grad), grad
    direction, gain = factor.solve(grad)
    first = power = 2 * gain
    for _ in range(200):
        S = problem.scores(direction)
        S = P * (S - (P * S).sum(axis=0)) * problem.w
        image = (problem.Q.T @ S) @ problem.A + added * direction
        curvature = float(np.vdot(direction, image))
        if not power > 0.0 or not curvature > 0.0:
            break
        step = step + power / curvature * direction
        residual = residual - power / curvature * image
        solved, gain = factor.solve(residual)
        if 2 * gain <= 0.01 * first:
            break
        direction = solved + 2 * gain / power * direction
        power = 2 * gain
    return step, float(np.vdot(step, grad)) / 2
