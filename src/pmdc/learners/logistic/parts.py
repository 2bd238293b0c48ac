"""Softmax models of all parts of a partition, and what the models without a fold say of its rows.

Small parts are fitted together in compiled code (`small`), large ones one by one in numpy (`newton`).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.learners.logistic import newton
from pmdc.learners.logistic.softmax import Problem, contrasts

SMALL_WORK, SMALL_COEFFICIENTS = 2**19, 64
"""Multiplications of one Hessian, and coefficients, up to which a part is small.

From 2**17 and 64 to 2**21 and 100, the time of a fit hardly changes (emotions 1.6 s; wqanimals 2.5, 2.2 and 2.3 s).
"""


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
    fold: Codes,
    held_out: Floats,
) -> tuple[int, int]:
    """Fit the parts of a partition and, if there are folds, score each row by the models without its fold.

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
    fold : array of shape (n,)
        The fold that holds each row out; empty where none is wanted.
    held_out : array of shape (n,)
        With folds, where the log-probability of each row's own state is written to; -inf where the rest of its part
        does not have it.

    Returns
    -------
    failed, steps : int
        Parts that did not converge, and the most steps that one took.
    """
    present = number >= 0
    n_states, n_rows = present.sum(axis=1), np.diff(starts)
    local = np.cumsum(present, axis=1) - 1
    A = np.empty((len(order), X.shape[1] + 1))
    A[:, 0] = 1.0
    A[:, 1:] = X[order]
    y = local[np.repeat(np.arange(len(number)), n_rows), codes[order]]
    solver = _Solver(A, y, weights[order], fold[order] if len(fold) else None, ridge, tol, max_iter)
    T = np.zeros((len(number), max(1, int(n_states.max()) - 1), A.shape[1]))
    if warm:
        for m in np.unique(n_states[n_states > 1]):
            T[n_states == m, : m - 1] = np.einsum("ae,pak->pek", _inverse(m), coef[_groups(number, n_states == m)])
    wide = (n_states > 1) & (4 * n_rows <= 3 * A.shape[1]) & (ridge > 0.0)
    small = ~wide & _are_small(n_rows, n_states, A.shape[1])
    if small.any():
        bounds = np.column_stack([starts[:-1], starts[1:]])
        T[small] = solver.fit_small(bounds[small], n_states[small], T[small], warm)
    for p in np.flatnonzero(~small):
        fit = solver.fit_along_rows if wide[p] else solver.fit_large
        T[p, : n_states[p] - 1] = fit(slice(starts[p], starts[p + 1]), int(n_states[p]), T[p], warm)
    for m in np.unique(n_states):
        coef[_groups(number, n_states == m)] = np.einsum("ae,pek->pak", contrasts(m), T[n_states == m, : m - 1])
    if len(fold):
        held_out[order] = solver.held_out
    return solver.failed, min(solver.steps, max_iter)


def _are_small(n_rows: Codes, n_states: Codes, k: int) -> Marks:
    """Return which parts the compiled code fits faster than numpy."""
    size = (n_states - 1) * k
    work = n_rows * size * (size + k) // 2
    return (n_states <= newton.MAX_STATES) & (size <= SMALL_COEFFICIENTS) & (work <= SMALL_WORK)


class _Solver:
    """Fits parts; has the rows of all parts, and counts the parts that did not converge, and the steps."""

    def __init__(self, A: Floats, y: Codes, w: Floats, fold: Codes | None, ridge: float, tol: float, max_iter: int):
        self.A, self.y, self.w, self.fold = A, y, w, fold
        self.ridge, self.tol, self.max_iter = ridge, tol, max_iter
        self.held_out = np.zeros(0 if fold is None else len(y))
        self.failed, self.steps = 0, 0

    def count(self, failed: int, steps: int) -> None:
        self.failed, self.steps = self.failed + failed, max(self.steps, steps)

    def fit_small(self, bounds: Codes, n_states: Codes, start: Floats, warm: bool) -> Floats:
        """Fit small parts, all in one call."""
        from pmdc.learners.logistic.small import fit_small_parts

        fold = np.zeros(len(self.y), dtype=np.int64) if self.fold is None else self.fold
        n_folds = 0 if self.fold is None else int(fold.max()) + 1
        T, Q = start.copy(), _all_contrasts(int(n_states.max()))
        rows, stop = (self.A, self.y, self.w, bounds, n_states), (self.ridge, self.tol, self.max_iter)
        self.count(*fit_small_parts(*rows, Q, fold, n_folds, *stop, T, warm, self.held_out))
        return T

    def fit_along_rows(self, part: slice, m: int, start: Floats, warm: bool) -> Floats:
        """Fit a part with fewer rows than inputs along an orthonormal basis of its rows.

        Under a penalty the coefficients lie in it, and the penalty does not notice the rotation.
        """
        basis = np.linalg.qr(self.A[part, 1:].T)[0]
        A = np.column_stack([self.A[part, 0], self.A[part, 1:] @ basis])
        fold = None if self.fold is None else self.fold[part]
        solver = _Solver(A, self.y[part], self.w[part], fold, self.ridge, self.tol, self.max_iter)
        T = np.concatenate([start[: m - 1, :1], start[: m - 1, 1:] @ basis], axis=1)
        if _are_small(np.array([len(A)]), np.array([m]), A.shape[1])[0]:
            T = solver.fit_small(np.array([[0, len(A)]]), np.array([m]), T[None], warm)[0]
        else:
            T = solver.fit_large(slice(None), m, T, warm)
        if fold is not None:
            self.held_out[part] = solver.held_out
        self.count(solver.failed, solver.steps)
        return np.concatenate([T[:, :1], T[:, 1:] @ basis.T], axis=1)

    def fit_large(self, part: slice, m: int, start: Floats, warm: bool) -> Floats:
        """Fit one part in numpy; with folds, also the models without each of them."""
        problem = Problem(self.A[part], self.y[part], self.w[part], contrasts(m), self.ridge)
        T, S, steps = np.zeros((m - 1, problem.A.shape[1])), np.zeros((1, len(problem.y))), 0
        if m > 1:
            fit = newton.minimise(problem, start[: m - 1] if warm else None, None, self.tol, self.max_iter)
            T, S, steps = fit.T, fit.scores, fit.steps
        if self.fold is not None:
            self.held_out[part], most = self._hold_out(problem, T, S, self.fold[part])
            steps = max(steps, most)
        self.count(steps > self.max_iter, steps)
        return T

    def _hold_out(self, problem: Problem, T: Floats, S: Floats, fold: Codes) -> tuple[Floats, int]:
        """Return the log-probability of each row's state without its fold, and the most steps that a fold took.

        T is the optimum of all rows, S its scores.
        """
        folds = [np.flatnonzero(fold == f) for f in np.unique(fold)]
        hessians = []
        if problem.ridge and len(T):
            hessians = newton.hessians(problem, problem.softmax(S)[0], folds)
        out, most = np.full(len(fold), -np.inf), 0
        for f, held in enumerate(folds):
            kept = np.concatenate([*folds[:f], *folds[f + 1 :]]) if len(folds) > 1 else held[:0]
            if not len(kept):
                continue
            without, local = problem.take(kept)
            m = len(without.Q)
            own = np.zeros((m - 1, T.shape[1]))
            if m > 1:
                # Without a penalty, coefficients that separate the held-out rows would never be forgotten.
                start, factor = None, None
                if len(without.Q) == len(problem.Q) and problem.ridge:
                    others = [*hessians[:f], *hessians[f + 1 :]]
                    start, factor = T, newton.make_factor(without, others, S[:, kept], 0.0)
                fit = newton.minimise(without, start, factor, self.tol, self.max_iter)
                own, most = fit.T, max(most, fit.steps)
            state = local[problem.y[held]]
            scores = without.Q @ (own @ problem.A[held].T)
            scores -= scores.max(axis=0)
            own_score = scores[state, np.arange(len(held))]
            out[held] = np.where(state >= 0, own_score - np.log(np.exp(scores).sum(axis=0)), -np.inf)
        return out, most


def _groups(number: Codes, parts: Marks) -> Codes:
    """Return the groups of parts with the same number of states, shape (parts, states)."""
    own = number[parts]
    return own[own >= 0].reshape(len(own), -1)


def _inverse(m: int) -> Floats:
    """Return Q', which turns coefficients of states into those of contrasts; for two states, their difference."""
    return np.array([[-1.0], [1.0]]) if m == 2 else contrasts(m)


@cache
def _all_contrasts(m: int) -> Floats:
    """Return the contrasts of up to m states, padded, shape (m + 1, m, m)."""
    out = np.zeros((m + 1, m, m))
    for size in range(1, m + 1):
        out[size, :size, : size - 1] = contrasts(size)
    return out
