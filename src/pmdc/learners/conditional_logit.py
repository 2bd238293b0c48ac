"""The conditional logit: local models on expert features.

An expert says of each row and each state s of a class variable the centred log-probability z_ls (`pmdc.experts`). The
model of a part has one weight for each of the L experts, a bias for each state, and an effect u_j of each parent that
is an input,

    score_s = sum_l w_l z_ls + b_s + sum_j u_j[state of parent j, s],      P(s | pi, x) = softmax(score)_s,

and minimises the negative log-likelihood plus the penalty

    PRIOR / 2 sum_l (w_l - 1 / L)^2 + 1 / (2 C) (|b|^2 + |u|^2):

without evidence to the contrary, the model is the geometric mean of the experts. This is McFadden's conditional logit
with alternative-specific constants. The objective is strictly convex, and Newton's method solves it for all parts
together. What the model without a row says of it follows approximately from one Newton step (the leave-one-out of Rad
and Maleki 2020). That is accurate for models of all rows; in small parts with many states and a weak penalty it is far
too optimistic.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pmdc._support.arrays import Codes, Floats, log_sum_exp
from pmdc.learners.fitted import Fitted, is_numbers
from pmdc.learners.inputs import shares_or_one_hot, state_shares
from pmdc.learners.protocols import LeaveOneOut, LocalModels, Preparation, Regularised
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import LocalTask
from pmdc.table.features import Features

PRIOR = 4.0
"""The inverse variance of an expert's weight around 1 / L."""

MAX_ITER, TOL = 100, 1e-10
"""Newton steps, and the relative decrease of the objective at which they end."""


@dataclass(frozen=True)
class ConditionalLogitModels(LocalModels):
    """Coefficients of all parts.

    Attributes
    ----------
    weights : array of shape (n_parts, n_experts)
    effects : array of shape (n_parts, 1 + sum of input_sizes, n_states)
        Biases first, then the effects of the states of each input.
    input_sizes : tuple of int
    shares : array of shape (sum of input_sizes,)
        The share of each state; an unknown state of an input has the mean effect.
    """

    weights: Floats
    effects: Floats
    input_sizes: tuple[int, ...]
    shares: Floats

    def fits(self, fitted: Fitted) -> bool:
        n_experts = fitted.width // fitted.n_states
        n_effects = 1 + sum(fitted.inputs)
        return (
            is_numbers(self.weights, 2)
            and is_numbers(self.effects, 3)
            and is_numbers(self.shares, 1)
            and n_experts * fitted.n_states == fitted.width
            and list(self.input_sizes) == list(fitted.inputs)
            and self.weights.shape == (fitted.n_parts, n_experts)
            and self.effects.shape == (fitted.n_parts, n_effects, fitted.n_states)
            and self.shares.shape == (n_effects - 1,)
        )

    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        columns = part.reshape(len(X), -1)
        codes = np.empty((len(X), 0), dtype=np.int64) if input_codes is None else input_codes
        scores = self._scores(X, columns, codes, {})
        return _log_softmax(scores, columns).reshape(*part.shape, -1)

    def log_table(self, X: Floats, part: Codes, input_codes: Codes, free: Mapping[int, int]) -> Floats:
        """As `LocalModels.log_table`: inputs add to the scores, so the experts' part is computed once per row."""
        scores = self._scores(X, part, input_codes, free)[:, None]
        for place in free:
            start = 1 + sum(self.input_sizes[:place])
            own = self.effects[:, start : start + self.input_sizes[place]]
            added = np.moveaxis(own[part], 2, 1)  # (n, states of the input, n_columns, n_states)
            scores = (scores[:, :, None] + added[:, None]).reshape(len(X), -1, *scores.shape[2:])
        return _log_softmax(scores, np.broadcast_to(part[:, None], scores.shape[:-1]))

    def _scores(self, X: Floats, part: Codes, input_codes: Codes, free: Mapping[int, int]) -> Floats:
        """Return the scores without the effects of free inputs, shape (n, n_columns, n_states)."""
        experts = X.reshape(len(X), self.weights.shape[1], -1)
        A = np.hstack([np.ones((len(X), 1)), shares_or_one_hot(input_codes, self.input_sizes, self.shares)])
        for place in free:
            start = 1 + sum(self.input_sizes[:place])
            A[:, start : start + self.input_sizes[place]] = 0.0
        if len(self.weights) == 1:  # no partition
            own = np.tensordot(experts, self.weights[0], axes=(1, 0)) + A @ self.effects[0]
            return np.repeat(own[:, None], part.shape[1], axis=1)
        by_part = np.einsum("nls,pl->nps", experts, self.weights) + np.einsum("nd,pds->nps", A, self.effects)
        return np.take_along_axis(by_part, np.maximum(part, 0)[:, :, None], axis=1)


def _log_softmax(scores: Floats, part: Codes) -> Floats:
    """Turn scores into log-probabilities; rows without a part get -inf."""
    out = np.maximum(scores - log_sum_exp(scores), TINY)
    out -= log_sum_exp(out)
    out[part < 0] = -np.inf
    return out


class _Cells(NamedTuple):
    """Rows sorted by part, then by the configuration of the inputs; a cell has one of each.

    Attributes
    ----------
    order : array of shape (n,)
        The rows, cell by cell.
    first, row_part : arrays
        Where each cell begins in `order`, and where each part does.
    first_cell : array of shape (n_parts,)
        The first cell of each part.
    cell, part : arrays of shape (n,)
        The cell and the part of each row, in this order.
    A : array of shape (n_cells, 1 + sum of input sizes)
        1 and the indicators of the inputs.
    """

    order: Codes
    first: Codes
    row_part: Codes
    first_cell: Codes
    cell: Codes
    part: Codes
    A: Floats


class _Fit(NamedTuple):
    """Coefficients (n_parts, q) at the optimum, the probabilities of the rows, and the inverse Hessians."""

    theta: Floats
    P: Floats
    hessian: Floats
    converged: bool


class ConditionalLogitLearner(LeaveOneOut, Regularised):
    """`LocalLearner` on expert features.

    Parameters
    ----------
    X : array of shape (n, n_experts * n_states)
        The expert features: for each expert the log-probabilities of all states.
    sample_weight : array of shape (n,)
    C : float or "auto", default="auto"
        Inverse penalty of biases and of the effects of parents; "auto" is chosen by held-out rows.
    """

    exact_leave_one_out = False

    def __init__(self, X: Floats, sample_weight: Floats, C: float | str = "auto"):
        self.estimator = "conditional logit"
        self.X = X
        self.prepare: Preparation = continuous
        self.sample_weight = sample_weight
        self.auto = isinstance(C, str)
        self.ridge = 1.0 if isinstance(C, str) else 1.0 / C

    def with_C(self, C: float) -> Self:
        other = copy(self)
        other.ridge, other.auto = 1.0 / C, False
        return other

    def on(self, rows: Codes, sample_weight: Floats | None = None) -> Self:
        other = copy(self)
        other.X = self.X[rows]
        other.sample_weight = self.sample_weight[rows] if sample_weight is None else sample_weight
        return other

    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int:
        return self.X.shape[1] // n_states + (n_states - 1) * (1 + sum(q - 1 for q in input_sizes))

    def fit(self, task: LocalTask) -> ConditionalLogitModels:
        problem = _Problem(self, task)
        return problem.models(problem.minimise())

    def log_likelihood(self, task: LocalTask) -> float:
        problem = _Problem(self, task)
        own = problem.own(problem.minimise().P)
        return float(problem.w @ np.log(np.maximum(own, np.finfo(float).eps)))

    def leave_one_out(self, task: LocalTask) -> Floats:
        problem = _Problem(self, task)
        return problem.leave_one_out(problem.minimise())


class _Problem:
    """The objective of all parts of a task; theta is w, then the effects of each column of A."""

    def __init__(self, learner: ConditionalLogitLearner, task: LocalTask):
        self.task = task
        self.cells = _cells(task)
        order = self.cells.order
        self.m = task.n_states
        self.Z = learner.X[order].reshape(len(order), -1, self.m)
        self.y, self.w = task.codes[order], learner.sample_weight[order]
        self.L, self.D = self.Z.shape[1], self.cells.A.shape[1]
        self.penalty = np.concatenate([np.full(self.L, PRIOR), np.full(self.D * self.m, learner.ridge)])
        self.center = np.concatenate([np.full(self.L, 1.0 / self.L), np.zeros(self.D * self.m)])
        self.shares = np.zeros(self.D - 1)
        if task.input_codes is not None:
            self.shares = state_shares(task.input_codes, task.input_sizes, learner.sample_weight)
        self.rows = np.arange(len(order))

    def models(self, fit: _Fit) -> ConditionalLogitModels:
        if not fit.converged:
            warnings.warn(
                f"the conditional logit on expert features did not converge in {MAX_ITER} iterations: lower C.",
                ConvergenceWarning,
                stacklevel=2,
            )
        effects = fit.theta[:, self.L :].reshape(-1, self.D, self.m)
        return ConditionalLogitModels(fit.theta[:, : self.L].copy(), effects, self.task.input_sizes, self.shares)

    def own(self, P: Floats) -> Floats:
        return P[self.rows, self.y]

    def scores(self, theta: Floats) -> Floats:
        """Return the scores of all rows, shape (n, m)."""
        cells = self.cells
        by_part = theta[:, self.L :].reshape(-1, self.D, self.m)
        cell_part = cells.part[cells.first]
        bias = np.einsum("cd,cds->cs", cells.A, by_part[cell_part])
        out = bias[cells.cell]
        for expert in range(self.L):
            out += theta[cells.part, expert][:, None] * self.Z[:, expert]
        return out

    def objective(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the objective of each part, and the probabilities of the rows."""
        S = self.scores(theta)
        S -= S.max(axis=1, keepdims=True)
        P = np.exp(S)
        total = P.sum(axis=1)
        loss = self.w * (np.log(total) - S[self.rows, self.y])
        P /= total[:, None]
        penalty = 0.5 * ((theta - self.center) ** 2 @ self.penalty)
        return np.add.reduceat(loss, self.cells.row_part) + penalty, P

    def gradient(self, theta: Floats, P: Floats) -> Floats:
        cells = self.cells
        R = P * self.w[:, None]
        R[self.rows, self.y] -= self.w
        grad = (theta - self.center) * self.penalty
        by_row = np.einsum("nls,ns->nl", self.Z, R)
        grad[:, : self.L] += np.add.reduceat(by_row, cells.row_part)
        by_cell = np.add.reduceat(R, cells.first)
        effects = np.einsum("cd,cs->cds", cells.A, by_cell).reshape(len(by_cell), -1)
        grad[:, self.L :] += np.add.reduceat(effects, cells.first_cell)
        return grad

    def hessian(self, P: Floats) -> Floats:
        """Return the Hessian of each part, shape (n_parts, q, q)."""
        cells, L, m = self.cells, self.L, self.m
        wP = P * self.w[:, None]
        mean = np.einsum("nls,ns->nl", self.Z, P)
        V = self.Z - mean[:, :, None]
        VP = V * wP[:, None]
        H = np.zeros((len(cells.row_part), len(self.penalty), len(self.penalty)))
        H[:, np.arange(len(self.penalty)), np.arange(len(self.penalty))] = self.penalty
        ww = np.einsum("nas,nbs->nab", VP, V)
        H[:, :L, :L] += np.add.reduceat(ww, cells.row_part)
        A = cells.A
        across = np.add.reduceat(VP, cells.first)  # (cells, L, m)
        across = np.einsum("cls,cd->clds", across, A).reshape(len(A), L, -1)
        across = np.add.reduceat(across, cells.first_cell)
        H[:, :L, L:] += across
        H[:, L:, :L] += across.transpose(0, 2, 1)
        F = -np.add.reduceat(wP[:, :, None] * P[:, None], cells.first)
        F[:, np.arange(m), np.arange(m)] += np.add.reduceat(wP, cells.first)
        ends = np.append(cells.first_cell[1:], len(A))
        for part, (begin, end) in enumerate(zip(cells.first_cell, ends, strict=True)):
            own = A[begin:end]
            weighted = (own[:, :, None, None] * F[begin:end, None]).reshape(end - begin, -1)
            block = (weighted.T @ own).reshape(self.D, m, m, self.D)  # d, s, t, e
            H[part, L:, L:] += block.transpose(0, 1, 3, 2).reshape(self.D * m, -1)
        return H

    def minimise(self) -> _Fit:
        """Minimise by Newton's method with step halving, all parts together."""
        theta = np.repeat(self.center[None], len(self.cells.row_part), axis=0)
        value, P = self.objective(theta)
        converged = False
        for _ in range(MAX_ITER):
            # 1. Gradient and Hessian.  2. Newton step.  3. Halve it where the objective does not fall enough.
            grad, hessian = self.gradient(theta, P), self.hessian(P)
            step = -np.linalg.solve(hessian, grad[:, :, None])[:, :, 0]
            slope = np.einsum("pq,pq->p", grad, step)
            if (-slope <= TOL * (1.0 + np.abs(value))).all():
                converged = True
                break
            size = np.ones(len(theta))
            for _ in range(30):
                trial = theta + size[:, None] * step
                new_value, new_P = self.objective(trial)
                poor = new_value > value + 1e-4 * size * slope + 1e-12 * (1.0 + np.abs(value))
                if not poor.any():
                    break
                size[poor] /= 2.0
            if poor.any():  # no step helps there: stay
                trial = np.where(poor[:, None], theta, trial)
                new_value, new_P = self.objective(trial)
            theta, value, P = trial, new_value, new_P
        return _Fit(theta, P, hessian, converged)

    def leave_one_out(self, fit: _Fit) -> Floats:
        """Return log P(own state) of each row by the model without it, in the order of the table."""
        cells, L, m, P = self.cells, self.L, self.m, fit.P
        inverse = np.linalg.inv(fit.hessian)
        cell_part = cells.part[cells.first]
        A = cells.A
        # G = J H^-1 J' with J = (z', a (x) I): first what is the same for all rows of a cell.
        effects = inverse[:, L:, L:].reshape(-1, self.D, m, self.D, m)
        half = np.einsum("cd,cdset->cset", A, effects[cell_part])
        B = np.einsum("cset,ce->cst", half, A)
        across = np.einsum("clds,cd->cls", inverse[:, :L, L:].reshape(-1, L, self.D, m)[cell_part], A)
        G = B[cells.cell]
        ZV = np.einsum("nls,nlk->nsk", self.Z, inverse[cells.part, :L, :L])
        G += np.einsum("nsk,nkt->nst", ZV, self.Z)
        cross = np.einsum("nls,nlt->nst", self.Z, across[cells.cell])
        G += cross + cross.transpose(0, 2, 1)
        left_out = np.minimum(self.w, 1.0)
        residual = P.copy()
        residual[self.rows, self.y] -= 1.0
        W = -P[:, :, None] * P[:, None]
        W[:, np.arange(m), np.arange(m)] += P
        M = np.eye(m) - left_out[:, None, None] * np.einsum("nst,ntu->nsu", W, G)
        moved = np.linalg.solve(M, (left_out[:, None] * residual)[:, :, None])
        S = np.log(np.maximum(P, np.finfo(float).tiny)) + np.einsum("nst,nt->ns", G, moved[:, :, 0])
        own = S[self.rows, self.y] - log_sum_exp(S)[:, 0]
        out = np.empty(len(own))
        out[cells.order] = np.maximum(own, TINY)
        return out


def _cells(task: LocalTask) -> _Cells:
    """Sort the rows of a task by part and by the configuration of the inputs."""
    part = task.partition.part
    number = np.zeros(len(part), dtype=np.int64)
    for j, size in enumerate(task.input_sizes):
        assert task.input_codes is not None
        number = number * size + task.input_codes[:, j]
    order = np.lexsort((number, part))
    sorted_part, sorted_number = part[order], number[order]
    begins = np.append(True, (np.diff(sorted_part) != 0) | (np.diff(sorted_number) != 0))
    first = np.flatnonzero(begins)
    cell_part = sorted_part[first]
    codes = np.empty((len(part), 0), dtype=np.int64) if task.input_codes is None else task.input_codes
    A = np.hstack([np.ones((len(first), 1)), shares_or_one_hot(codes[order[first]], task.input_sizes, np.zeros(0))])
    return _Cells(
        order,
        first,
        np.searchsorted(sorted_part, np.arange(task.partition.n_parts)),
        np.searchsorted(cell_part, np.arange(task.partition.n_parts)),
        np.cumsum(begins) - 1,
        sorted_part,
        A,
    )


def continuous(inputs: Features) -> Floats:
    """Return the expert features as they are."""
    return inputs.continuous
