"""Softmax models of all parts of a partition, and what the models without a fold say of its rows.

Small parts are fitted together in compiled code (`small`), large ones one by one in numpy (`newton`).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.learners.logistic import newton
from pmdc.learners.logistic.softmax import Problem, contrasts

MAX_STATES = 12
"""Parts with more states than this are not small."""

SMALL_WORK, SMALL_COEFFICIENTS = 2**19, 64
"""Multiplications of one Hessian, and coefficients, up to which a part is small."""


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
    rows = _Rows(A, y, weights[order], fold[order] if len(fold) else None)
    solver = _Solver(rows, ridge, tol, max_iter)
    T = np.zeros((len(number), max(1, int(n_states.max()) - 1), A.shape[1]))
    if warm:
        for m in np.unique(n_states[n_states > 1]):
            T[n_states == m, : m - 1] = np.einsum("ae,pak->pek", _inverse(m), coef[_groups(number, n_states == m)])
    wide = (n_states > 1) & (4 * n_rows <= 3 * A.shape[1]) & (ridge > 0.0)
    small = ~wide & solver.are_small(n_rows, n_states, A.shape[1])
    solver.fit_small(small, starts, n_states, T, warm)
    for p in np.flatnonzero(~small):
        fit = solver.fit_along_rows if wide[p] else solver.fit_large
        T[p, : n_states[p] - 1] = fit(slice(starts[p], starts[p + 1]), int(n_states[p]), T[p], warm)
    for m in np.unique(n_states):
        Q = contrasts(m)
        coef[_groups(number, n_states == m)] = np.einsum("ae,pek->pak", Q, T[n_states == m, : m - 1])
    if len(fold):
        held_out[order] = rows.held_out
    return solver.failed, min(solver.steps, max_iter)


class _Rows:
    """The rows of all parts, part by part."""

    def __init__(self, A: Floats, y: Codes, w: Floats, fold: Codes | None):
        self.A, self.y, self.w, self.fold = A, y, w, fold
        self.held_out = np.zeros(len(y) if fold is not None else 0)


class _Solver:
    """Fits parts and counts those that did not converge, and the steps."""

    def __init__(self, rows: _Rows, ridge: float, tol: float, max_iter: int):
        self.rows, self.ridge, self.tol, self.max_iter = rows, ridge, tol, max_iter
        self.failed, self.steps = 0, 0

    @staticmethod
    def are_small(n_rows: Codes, n_states: Codes, k: int) -> Marks:
        """Return which parts the compiled code fits faster than numpy."""
        size = (n_states - 1) * k
        work = n_rows * size * (size + k) // 2
        return (n_states <= MAX_STATES) & (size <= SMALL_COEFFICIENTS) & (work <= SMALL_WORK)

    def fit_small(self, small: Marks, starts: Codes, n_states: Codes, T: Floats, warm: bool) -> None:
        """Fit the small parts, all in one call."""
        if not small.any():
            return
        from pmdc.learners.logistic.small import fit_small_parts

        bounds = np.column_stack([starts[:-1], starts[1:]])[small]
        own, rows = T[small], self.rows
        fold = np.zeros(len(rows.y), dtype=np.int64) if rows.fold is None else rows.fold
        n_folds = 0 if rows.fold is None else int(fold.max()) + 1
        failed, steps = fit_small_parts(
            rows.A,
            rows.y,
            rows.w,
            bounds,
            n_states[small],
            _all_contrasts(int(n_states[small].max())),
            fold,
            n_folds,
            self.ridge,
            self.tol,
            self.max_iter,
            own,
            warm,
            rows.held_out,
        )
        T[small] = own
        self.failed, self.steps = self.failed + failed, max(self.steps, steps)

    def fit_along_rows(self, part: slice, m: int, start: Floats, warm: bool) -> Floats:
        """Fit a part with fewer rows than inputs along an orthonormal basis of its rows.

        Under a penalty the coefficients lie in it, and the penalty does not notice the rotation.
        """
        rows = self.rows
        basis = np.linalg.qr(rows.A[part, 1:].T)[0]
        A = np.column_stack([rows.A[part, 0], rows.A[part, 1:] @ basis])
        own = _Rows(A, rows.y[part], rows.w[part], None if rows.fold is None else rows.fold[part])
        solver = _Solver(own, self.ridge, self.tol, self.max_iter)
        T = np.concatenate([start[: m - 1, :1], start[: m - 1, 1:] @ basis], axis=1)
        everything = slice(0, len(A))
        if self.are_small(np.array([len(A)]), np.array([m]), A.shape[1])[0]:
            all_T = T[None].copy()
            solver.fit_small(np.ones(1, dtype=bool), np.array([0, len(A)]), np.array([m]), all_T, warm)
            T = all_T[0]
        else:
            T = solver.fit_large(everything, m, T, warm)
        if rows.fold is not None:
            rows.held_out[part] = own.held_out
        self.failed, self.steps = self.failed + solver.failed, max(self.steps, solver.steps)
        return np.concatenate([T[:, :1], T[:, 1:] @ basis.T], axis=1)

    def fit_large(self, part: slice, m: int, start: Floats, warm: bool) -> Floats:
        """Fit one part in numpy; with folds, also the models without each of them."""
        rows = self.rows
        problem = Problem(rows.A[part], rows.y[part], rows.w[part], contrasts(m), self.ridge)
        T, S, steps = np.zeros((m - 1, problem.A.shape[1])), np.zeros((1, len(problem.y))), 0
        if m > 1:
            fit = newton.minimise(problem, start[: m - 1] if warm else None, None, self.tol, self.max_iter)
            T, S, steps = fit.T, fit.scores, fit.steps
        if rows.fold is not None:
            rows.held_out[part], most = self._hold_out(problem, T, S, rows.fold[part])
            steps = max(steps, most)
        self.failed, self.steps = self.failed + (steps > self.max_iter), max(self.steps, steps)
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
