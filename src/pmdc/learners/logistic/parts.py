"""Softmax models of all parts of a partition, and what those fitted without a fold say of its rows.

Leaving a fold out changes the objective of a part little, and its Hessian hardly: the optimum without the fold is found
from that of all rows, with the same factor of the Hessian as long as it serves, and one of its own to tell the end.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc._support.compiled import compiled
from pmdc.learners.logistic.newton import NEGLIGIBLE, Buffers, Factor, Problem, minimise, no_factor
from pmdc.learners.logistic.softmax import along, contrasts, local_states, room, row_space, scores, take_rows


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
    fold: Codes,
    held_out: Floats,
) -> tuple[int, int, float]:
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
    work : float
        Floating-point operations in products of matrices and vectors and in factors, for benchmarks.
    """
    n_parts, n_states = number.shape
    k = X.shape[1] + 1
    A, y, w, Z, Z32 = room(starts, k)
    buffers = Buffers(Z, Z32, np.zeros(1))
    local = np.empty(n_states, dtype=np.int64)
    failed, most = 0, 0
    for p in range(n_parts):
        rows = order[starts[p] : starts[p + 1]]
        n, m = len(rows), local_states(number[p], local)
        take_rows(X, codes, weights, rows, local, A, y, w)
        Q = contrasts(m)
        T, R, last, steps = np.zeros((Q.shape[1], k)), np.empty((k - 1, 0)), no_factor(), 0
        if m > 1:
            if warm:
                _read(coef, number[p], local, Q, T)
            R = row_space(A[:n], w[:n], ridge, NEGLIGIBLE)
        problem = Problem(A[:n], y[:n], w[:n], Q, ridge)
        if R.shape[1]:
            problem, T = Problem(along(A[:n], R), y[:n], w[:n], Q, ridge), along(T, R)
        if m > 1:
            steps, last = minimise(problem, T, warm, last, tol, max_iter, buffers)
        if len(fold):
            steps = max(steps, _hold_out(problem, T, last, rows, fold, tol, max_iter, buffers, held_out))
        failed += steps > max_iter
        most = max(most, steps)
        if R.shape[1]:
            T = along(T, np.ascontiguousarray(R.T))
        _write(T, number[p], local, Q, coef)
    return failed, min(most, max_iter), buffers.work[0]


@compiled()
def _read(coef: Floats, number: Codes, local: Codes, Q: Floats, T: Floats) -> None:
    """T = Q'B for the coefficients B of a part; for two states their difference."""
    m, v = Q.shape
    for s in range(len(number)):
        if number[s] >= 0:
            for e in range(v):
                q = Q[local[s], e] if m > 2 else 2.0 * local[s] - 1.0
                for j in range(T.shape[1]):
                    T[e, j] += q * coef[number[s], j]


@compiled()
def _write(T: Floats, number: Codes, local: Codes, Q: Floats, coef: Floats) -> None:
    """B = Q T, the coefficients of a part."""
    for s in range(len(number)):
        if number[s] >= 0:
            for j in range(T.shape[1]):
                coef[number[s], j] = 0.0
                for e in range(T.shape[0]):
                    coef[number[s], j] += Q[local[s], e] * T[e, j]


@compiled()
def _hold_out(
    problem: Problem,
    T: Floats,
    last: Factor,
    rows: Codes,
    fold: Codes,
    tol: float,
    max_iter: int,
    buffers: Buffers,
    held_out: Floats,
) -> int:
    """Score the rows of a part by the models without their fold; T is the optimum with them, `last` its factor.

    Returns the most steps that a fold took.
    """
    m, most = len(problem.Q), 0
    local = np.empty(m, dtype=np.int64)
    for f in np.unique(fold[rows]):
        without, held = _split(problem, fold[rows], f, local)
        n_left = len(without.Q)
        # Without a penalty, coefficients that separate the held-out rows would never be forgotten.
        warm = n_left == m and problem.ridge > 0.0
        own = T.copy() if warm else np.zeros((without.Q.shape[1], T.shape[1]))
        if n_left > 1:
            steps, _ = minimise(without, own, warm, last if warm else no_factor(), tol, max_iter, buffers)
            most = max(most, steps)
        S = np.empty((len(held), n_left))
        scores(problem.A[held], own, without.Q, S)
        for r in range(len(held)):
            state = local[problem.y[held[r]]]
            held_out[rows[held[r]]] = _log_softmax(S[r], state) if state >= 0 else -np.inf
    return most


@compiled()
def _split(problem: Problem, fold: Codes, f: int, local: Codes) -> tuple[Problem, Codes]:
    """The problem without the rows of a fold, with the states that are left (`local`, -1 for none); and the fold."""
    held, seen = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
    local[:] = -1
    for i in seen:
        local[problem.y[i]] = 0
    n_left = 0
    for s in range(len(local)):
        if local[s] == 0:
            local[s] = n_left
            n_left += 1
    y = local[problem.y[seen]]
    return Problem(problem.A[seen], y, problem.w[seen], contrasts(max(n_left, 1)), problem.ridge), held


@compiled()
def _log_softmax(scores: Floats, state: int) -> float:
    top = scores.max()
    return scores[state] - top - np.log(np.exp(scores - top).sum())
