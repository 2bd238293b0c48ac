"""Multinomial logistic regression, solved to its optimum: the default local model.

The objective is scikit-learn's, for states coded 0 .. m - 1 and w the weights of the rows,

    min over B, b of   - sum_i w_i log softmax(B x_i + b)[y_i]  +  1 / (2 C) |B|^2,

with one coefficient vector for two states and one for each state for more.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pmdc.checks import check_count
from pmdc.learners.estimator import EstimatorLearner
from pmdc.learners.inputs import Affine, Indicators
from pmdc.table import Array, Codes, Features, Floats, read_weights

_LARGE = 600
"""Above this many coefficients a Hessian costs more than it saves, and L-BFGS takes over."""

_SMALL = 2**21
"""Up to this many products of inputs are kept (16 MiB), which makes all blocks of the Hessian one matrix product."""


@dataclass(frozen=True)
class Softmax:
    """A fitted softmax over m states: log-odds of all states are ``X @ coef.T + intercept``."""

    coef: Floats
    intercept: Floats
    n_iter: int = 1

    def predict_log_proba(self, X: Floats) -> Floats:
        return _log_softmax(X @ self.coef.T + self.intercept)


def _log_softmax(scores: Floats) -> Floats:
    """scipy's is the same, but spends most of its time on its arguments when parts are small."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def fit_softmax(X: Floats, codes: Codes, weights: Floats, C: float, tol: float, max_iter: int) -> Softmax:
    """The optimum of the objective for states coded 0 .. m - 1, all of which occur."""
    n, d = X.shape
    m = int(codes.max()) + 1
    vectors = 1 if m == 2 else m  # of two states the first has log-odds 0
    inputs = np.column_stack([X, np.ones(n)])
    ridge = np.full((vectors, d + 1), 0.0 if np.isinf(C) else 1.0 / C)
    ridge[:, -1] = 0.0
    if m == 1:
        return Softmax(np.zeros((1, d)), np.zeros(1))
    objective = _Objective(inputs, codes, weights, m, ridge)
    start = np.zeros(vectors * (d + 1))
    solve = _newton if start.size <= _LARGE else _lbfgs
    flat, n_iter, converged = solve(objective, start, tol, max_iter)
    if not converged:
        warnings.warn(
            f"logistic regression did not converge in max_iter={max_iter} iterations: raise max_iter or lower C.",
            ConvergenceWarning,
            stacklevel=2,
        )
    B = flat.reshape(vectors, d + 1)
    if m == 2:
        B = np.vstack([np.zeros(d + 1), B])
    return Softmax(B[:, :-1], B[:, -1], n_iter)


class _Objective:
    """The objective with its gradient and Hessian in the flattened coefficients."""

    def __init__(self, inputs: Floats, codes: Codes, weights: Floats, m: int, ridge: Floats):
        self.inputs, self.codes, self.weights, self.m, self.ridge = inputs, codes, weights, m, ridge
        self.two = m == 2
        self.rows = np.arange(len(codes))
        target = np.zeros((len(codes), m))
        target[self.rows, codes] = 1.0
        self.target = target[:, 1:] if self.two else target
        n, width = inputs.shape
        self.products: Floats | None = None
        if n * max(width, m) ** 2 <= _SMALL:
            self.products = (inputs[:, :, None] * inputs[:, None, :]).reshape(n, width * width)

    def log_proba(self, flat: Floats) -> Floats:
        scores = self.inputs @ flat.reshape(self.ridge.shape).T
        if self.two:
            scores = np.column_stack([np.zeros(len(scores)), scores])
        return _log_softmax(scores)

    def value(self, flat: Floats, log_proba: Floats) -> float:
        fit = -np.dot(self.weights, log_proba[self.rows, self.codes])
        return float(fit + 0.5 * np.dot(self.ridge.ravel(), flat**2))

    def gradient(self, flat: Floats, log_proba: Floats) -> Floats:
        residual = (self._proba(log_proba) - self.target) * self.weights[:, None]
        return (residual.T @ self.inputs).ravel() + self.ridge.ravel() * flat

    def hessian(self, log_proba: Floats) -> Floats:
        proba = self._proba(log_proba)
        vectors, width = self.ridge.shape
        if self.products is not None:  # one product of two thin matrices for all blocks
            curvatures = proba[:, :, None] * (np.eye(vectors) - proba[:, None, :]) * self.weights[:, None, None]
            blocks = curvatures.reshape(len(proba), -1).T @ self.products
            H = blocks.reshape(vectors, vectors, width, width).transpose(0, 2, 1, 3).copy()
        else:
            H = np.empty((vectors, width, vectors, width))
            for a in range(vectors):
                for b in range(a + 1):
                    curvature = self.weights * proba[:, a] * (float(a == b) - proba[:, b])
                    H[a, :, b, :] = (self.inputs * curvature[:, None]).T @ self.inputs
                    H[b, :, a, :] = H[a, :, b, :]
        if not self.two:
            # One more vector than needed: a shift common to all states changes no probability. This term fixes
            # their sum at zero, where the penalty puts it anyway.
            common = np.arange(width)
            for a in range(vectors):
                for b in range(vectors):
                    H[a, common, b, common] += 1.0
        flat = H.reshape(vectors * width, vectors * width)
        flat[np.diag_indices_from(flat)] += self.ridge.ravel()
        return flat

    def _proba(self, log_proba: Floats) -> Floats:
        return np.exp(log_proba[:, 1:] if self.two else log_proba)


def _newton(objective: _Objective, flat: Floats, tol: float, max_iter: int) -> tuple[Floats, int, bool]:
    """Newton's method with a Cholesky factor and step halving."""
    log_proba = objective.log_proba(flat)
    value = objective.value(flat, log_proba)
    for n_iter in range(1, max_iter + 1):
        gradient = objective.gradient(flat, log_proba)
        step = -_solve(objective.hessian(log_proba), gradient)
        slope = float(np.dot(gradient, step))
        size = 1.0
        while True:
            new = flat + size * step
            new_log_proba = objective.log_proba(new)
            new_value = objective.value(new, new_log_proba)
            if new_value <= value + 1e-4 * size * slope or size < 1e-10:
                break
            size /= 2
        if new_value <= value:
            flat, log_proba, value = new, new_log_proba, new_value
        # Half the decrement is what is still to be gained; the step just taken has squared that.
        if -0.5 * slope <= tol * max(1.0, abs(value)) or size < 1e-10:
            return flat, n_iter, True
    return flat, max_iter, False


def _solve(H: Floats, gradient: Floats) -> Floats:
    """H^-1 gradient; a Hessian that is singular to working precision is damped until it is not."""
    damping = 0.0
    scale = float(np.trace(H)) / len(H)
    while True:
        try:
            factor = cho_factor(H + damping * np.eye(len(H)) if damping else H, lower=True, check_finite=False)
            return cho_solve(factor, gradient, check_finite=False)
        except LinAlgError:
            damping = max(10 * damping, 1e-12 * max(scale, 1e-300))


def _lbfgs(objective: _Objective, flat: Floats, tol: float, max_iter: int) -> tuple[Floats, int, bool]:
    def value_and_gradient(point: Floats) -> tuple[float, Floats]:
        log_proba = objective.log_proba(point)
        return objective.value(point, log_proba), objective.gradient(point, log_proba)

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-3 * tol, "gtol": 0.0, "maxcor": 30}
    result = minimize(value_and_gradient, flat, jac=True, method="L-BFGS-B", options=options)
    return result.x, max(1, int(result.nit)), result.status != 1


class Logistic(ClassifierMixin, BaseEstimator):
    """Multinomial logistic regression on standardised features.

    The features are brought to mean 0 and variance 1 over all rows of `fit`; the coefficients have an L2
    penalty, the intercept has none. Inside `GBNC` the standardisation is over the whole table, so that all
    parts of the rows are penalised alike.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty, as in scikit-learn; ``np.inf`` means none.
    tol : float, default=1e-9
        The optimisation stops when the objective can gain no more than this, relative to its value.
    max_iter : int, default=1000
        The most iterations of the optimisation.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1 or n_classes, n_features)
        Coefficients of the standardised features.
    intercept_ : array of shape (1 or n_classes,)
    mean_, scale_ : arrays of shape (n_features,)
        The standardisation.
    n_iter_ : int
        Iterations of the optimisation.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pmdc.learners import Logistic
    >>> X, y = load_iris(return_X_y=True)
    >>> round(Logistic(C=10.0).fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(self, C: float = 1.0, *, tol: float = 1e-9, max_iter: int = 1000):
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def check_parameters(self) -> None:
        """Refuse parameters that make no sense; `GBNC` calls this before any work."""
        for name, value in (("C", self.C), ("tol", self.tol)):
            if not isinstance(value, Real) or not value > 0:
                raise ValueError(f"{name}={value!r} must be a positive number.")
        check_count("max_iter", self.max_iter, 1)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Logistic:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self : Logistic
        """
        self.check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = read_weights(sample_weight, len(X))
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._affine = Affine.standard(X, weights)
        self.mean_, self.scale_ = self._affine.shift, self._affine.width
        standardised = self._affine(X)
        self._softmax = fit_softmax(standardised, codes, weights, self.C, self.tol, self.max_iter)
        shown = slice(1, None) if len(self.classes_) == 2 else slice(None)
        self.coef_, self.intercept_ = self._softmax.coef[shown], self._softmax.intercept[shown]
        self.n_iter_ = self._softmax.n_iter
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities, shape (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._softmax.predict_log_proba(self._affine(X))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, shape (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]


class LogisticLearner(EstimatorLearner):
    """`LocalLearner` of `Logistic`: standardises once over all rows, then fits each part without overhead."""

    def __init__(
        self,
        estimator: Logistic,
        inputs: Features,
        sample_weight: Floats,
        sizes: Sequence[int] = (),
        **options: Any,
    ):
        estimator.check_parameters()
        self.C, self.tol, self.max_iter = estimator.C, estimator.tol, estimator.max_iter
        super().__init__(estimator, inputs, sample_weight, sizes, **options)
        affine = Affine.standard(self.X, sample_weight)
        self.prepare, self.X = Indicators(sizes, affine), affine(self.X)

    def _fit_clone(self, X: Floats, codes: Codes, weights: Floats, key: tuple[int, ...]) -> Softmax:
        return fit_softmax(X, codes, weights, self.C, self.tol, self.max_iter)
