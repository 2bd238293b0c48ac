"""Multinomial logistic regression, solved to its optimum: the default local model.

The objective is scikit-learn's, for states coded 0 .. m - 1 and w the weights of the rows,

    min over B, b of   - sum_i w_i log softmax(B x_i + b)[y_i]  +  1 / (2 C) |B|^2,

with one coefficient vector for two states and one for each state for more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_count
from pmdc.learners.groups import GroupedLearner, GroupedModels, Groups, LogProbaClassifier, one_thread
from pmdc.learners.inputs import Affine, Indicators, IndicatorsBefore, Rotated, one_hot, principal_axes, state_shares
from pmdc.learners.partition import Partition
from pmdc.learners.protocols import LocalTask, Start
from pmdc.table.features import Features
from pmdc.table.rows import read_weights

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
"""What ``C="auto"`` chooses from."""

_MOST, _LARGEST = 3000, 2**24
"""The most coefficients of a part of which rows are left out one by one, and the most rows times squared states; with
more, folds are left out."""

_MISSING = 0.25
"""So are they where more than this share of the log-likelihood may be missing."""

_FOLDS = 5


class Logistic(LogProbaClassifier):
    """Multinomial logistic regression on standardised features.

    The features are brought to mean 0 and variance 1 over all rows of `fit`; the coefficients have an L2
    penalty, the intercept has none. Inside `GBNC` the standardisation is over the whole table, so that all
    parts of the rows are penalised alike.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Inverse strength of the penalty, as in scikit-learn; ``np.inf`` means none. "auto" takes the one, of nine from
        1e-4 to 1e4, under which rows that the model has not seen are most probable: here and in the baselines by
        approximate leave-one-out, in `GBNC` by its criterion, for each class variable.
    tol : float, default=1e-9
        The optimisation stops when the next step will gain no more than this, relative to the objective; that step is
        still taken. Log-likelihoods, which leave the penalty out, are exact to about its square root. (Without a
        penalty, where states are separable, the optimum is 0 and infinitely far away: then it stops when the objective
        is 1e-8 of that of the frequencies.)
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
    C_ : float
        The strength that was used.
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

    def __init__(self, C: float | str = 1.0, *, tol: float = 1e-9, max_iter: int = 1000):
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def check_parameters(self) -> None:
        """Refuse parameters that make no sense; `GBNC` calls this before any work."""
        for name, value in (("C", self.C), ("tol", self.tol)):
            if name == "C" and isinstance(value, str) and value == "auto":
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not value > 0:
                raise ValueError(
                    f"{name}={value!r} must be a positive number; C=np.inf means no penalty, C='auto' chooses one."
                )
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
        learner = LogisticLearner(self, Features(X, np.empty((len(X), 0), dtype=np.int64)), weights, smooth=False)
        rows = Partition(np.empty((len(codes), 0), dtype=np.int64), (), ())
        with one_thread():
            self._models = learner.fit(LocalTask(0, codes, len(self.classes_), rows))
        self._prepare = learner.prepare
        self.C_ = 1.0 / learner.ridge if learner.ridge else np.inf
        self.mean_, self.scale_ = learner.affine.shift, learner.affine.width
        shown = slice(1, None) if len(self.classes_) == 2 else slice(None)
        self.intercept_ = self._models.coef[shown, 0]
        self.coef_ = learner.unrotate(self._models.coef[shown, 1:])
        self.n_iter_ = learner.n_iter
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities, shape (n, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        inputs = Features(X, np.empty((len(X), 0), dtype=np.int64))
        return self._models.log_proba(self._prepare(inputs), np.zeros(len(X), dtype=np.int64))


@dataclass(frozen=True)
class LogisticModels(GroupedModels):
    """Coefficients of all groups.

    Attributes
    ----------
    coef : array of shape (n_groups, d + 1)
        Intercepts first.
    """

    coef: Floats

    def scores(self, X: Floats, part: Codes, out: Floats) -> None:
        from pmdc.learners.logistic import kernels

        kernels.linear_scores(out, X, part, self.number, self.coef)

    def start(self, task: LocalTask) -> Start:
        coef = np.clip(self.coef, -1e30, 1e30).astype(np.float32)
        number = self.number.astype(np.int32)
        return Start(task.partition.configurations, number, coef, task.inputs, task.input_sizes)


class LogisticLearner(GroupedLearner[LogisticModels]):
    """`LocalLearner` of `Logistic`, and of scikit-learn's `LogisticRegression` with an L2 penalty.

    Parameters
    ----------
    estimator : Logistic or LogisticRegression
        The one standardises the inputs over all rows, the other takes them as they are.
    inputs : Features
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input; they are seen as indicators.
    smooth, paper : bool
        As in `EstimatorLearner`.
    min_max : bool
        Whether inputs are scaled to [0, 1] over the training rows.
    """

    def __init__(
        self,
        estimator: Any,
        inputs: Features,
        sample_weight: Floats,
        sizes: Sequence[int] = (),
        *,
        smooth: bool = True,
        paper: bool = False,
        min_max: bool = False,
    ):
        if isinstance(estimator, Logistic):
            estimator.check_parameters()
            self.tol, self.max_iter = estimator.tol, estimator.max_iter
        else:
            defaults = Logistic()
            self.tol, self.max_iter = defaults.tol, defaults.max_iter
        self.standard = isinstance(estimator, Logistic)
        self.auto = isinstance(estimator.C, str)
        self.ridge = 1.0 if self.auto else 0.0 if np.isinf(estimator.C) else 1.0 / float(estimator.C)
        self.n_iter, self.work = 0, 0.0
        X = Indicators(sizes)(inputs)
        # The intercept is free, so a shift changes no model.
        self.affine = Affine.standard(X, sample_weight)
        if not self.standard:
            width = Affine.min_max(X).width if min_max else np.ones(X.shape[1])
            self.affine = Affine(self.affine.shift, width)
        prepare = Rotated(Indicators(sizes, self.affine), None)
        # Without a penalty no rotation is free of rounding that matters, and none is needed.
        if self.ridge:
            prepare = Rotated(prepare.prepare, principal_axes(self.affine(X)))
        super().__init__(prepare(inputs), sample_weight, prepare, smooth=smooth, paper=paper)
        self.plain = self.affine(X)
        self.axes = prepare.axes

    def unrotate(self, coef: Floats) -> Floats:
        """Coefficients of the inputs as they were before the rotation."""
        return coef if self.axes is None else coef @ self.axes.T

    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int:
        return (n_states - 1) * (1 + self.plain.shape[1] + sum(q - 1 for q in input_sizes))

    def with_strength(self, C: float) -> LogisticLearner:
        """The same learner with another strength of the penalty."""
        other = copy(self)
        other.ridge, other.auto = 1.0 / C, False
        return other

    def choose_strength(
        self, score: Callable[[LogisticLearner, Start | None], tuple[float, Start | None]]
    ) -> tuple[float, float]:
        """The greatest score and its strength C, from the strongest penalty to the weakest.

        Each model is found from the one before. The path ends when two in a row are worse than the best.

        Parameters
        ----------
        score : function (learner with a strength, start) -> score, start for the next
        """
        best, chosen, worse, start = -np.inf, STRENGTHS[0], 0, None
        for C in STRENGTHS:
            value, start = score(self.with_strength(C), start)
            if value > best:
                best, chosen, worse = value, C, 0
            else:
                worse += 1
            if worse == 2:
                break
        return best, chosen

    def _fit_to(self, task: LocalTask, X: Floats, start: Start | None) -> LogisticModels:
        if self.auto:
            self.ridge = 1.0 / self.choose_strength(lambda learner, start: learner._held_out(task, start))[1]
        return super()._fit_to(task, X, start)

    def _held_out(self, task: LocalTask, start: Start | None) -> tuple[float, Start | None]:
        """The leave-one-out log-likelihood; states that a model knows nothing of share what one row is worth."""
        rows, start = self.leave_one_out(task, start)
        weights = task.partition.weights(self.sample_weight)
        least = -np.log(task.n_states) - np.log1p(weights[task.partition.part])
        return float(np.dot(self.sample_weight, np.where(np.isneginf(rows), least, rows))), start

    def _leave_one_out(self, task: LocalTask, X: Floats, models: LogisticModels) -> Floats:
        part = task.partition.part
        group = models.number[part, task.codes]
        alone = (np.bincount(group) == 1)[group] & ~models.uniform[part]
        own, missing = np.zeros(len(X)), np.inf
        if _is_small(task.partition, models.number, X.shape[1] + 1) and not self._separated(task, X, models):
            own, missing = self._one_by_one(task, X, models)
        if missing > _MISSING * -own[~alone].sum():
            own = self._without_folds(task, X, models)
        return np.where(alone, -np.inf, own)

    def _separated(self, task: LocalTask, X: Floats, models: LogisticModels) -> bool:
        """Whether a part is fitted perfectly for lack of a penalty: the optimum, and what a row does to it, is far."""
        if self.ridge:
            return False
        part = task.partition.part
        own = models.log_proba_of(X, part)[np.arange(len(X)), task.codes]
        weights = task.partition.weights(self.sample_weight)
        likelihood = np.bincount(part, self.sample_weight * own, minlength=len(weights))
        return bool((((models.number >= 0).sum(axis=1) > 1) & (likelihood > -1e-4 * weights)).any())

    def _one_by_one(self, task: LocalTask, X: Floats, models: LogisticModels) -> tuple[Floats, float]:
        """Each row without itself, approximately, and how much of the loss may be missing."""
        from pmdc.learners.logistic import leave_one_out

        out = np.empty((len(X), task.n_states))
        missing = leave_one_out.scores_without(
            X,
            np.ascontiguousarray(task.codes),
            self.sample_weight,
            *_part_by_part(task.partition),
            models.number,
            self.ridge,
            models.coef,
            out,
        )
        models.normalise(out, task.partition.part)
        return out[np.arange(len(X)), task.codes], missing

    def _without_folds(self, task: LocalTask, X: Floats, models: LogisticModels) -> Floats:
        """Each row without its fold; two rows of a part with the same state are in different folds.

        The only row of a part stays, as every part must keep one.
        """
        parts = task.partition.part
        fold, out = np.empty(len(X), dtype=np.int64), np.full(len(X), -np.inf)
        fold[np.lexsort((task.codes, parts))] = np.arange(len(X)) % _FOLDS
        fold[(np.bincount(parts) == 1)[parts]] = -1
        start = models.start(task) if self.ridge else None  # it has seen all rows, which a penalty makes it forget
        for number in range(_FOLDS):
            seen, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            found = self.on(seen)._fit_to(task.take(seen), X[seen], start)
            out[held] = found.log_proba_of(X[held], parts[held])[np.arange(len(held)), task.codes[held]]
        return out

    def joining(self, task: LocalTask) -> IndicatorsBefore:
        # Before the rotated inputs, of which the last are the least: so they are fitted fastest.
        width = sum(task.input_sizes)
        shares, scale = np.zeros(width), Affine.identity(width)
        if task.input_codes is not None:
            shares = state_shares(task.input_codes, task.input_sizes, self.sample_weight)
            if self.standard:
                scale = Affine.standard(one_hot(task.input_codes, task.input_sizes), self.sample_weight)
        return IndicatorsBefore(task.input_sizes, shares, scale)

    def _fit_groups(
        self, task: LocalTask, X: Floats, groups: Groups, uniform: npt.NDArray[np.bool_], start: Start | None
    ) -> LogisticModels:
        from pmdc.learners.logistic import kernels, newton

        partition = task.partition
        coef = np.zeros((len(groups.part), X.shape[1] + 1))
        if start is not None:
            kernels.take_over(
                coef,
                groups.number,
                _columns_for(task, start),
                start.number,
                partition.configurations.within(start.configurations),
            )
        failed, self.n_iter, self.work = newton.fit_parts(
            X,
            np.ascontiguousarray(task.codes),
            self.sample_weight,
            *_part_by_part(partition),
            groups.number,
            self.ridge,
            self.tol,
            self.max_iter,
            coef,
            start is not None,
        )
        if failed:
            warnings.warn(
                f"logistic regression did not converge in max_iter={self.max_iter} iterations on {failed} of "
                f"{partition.n_parts} parts of the rows: lower C or raise max_iter (of pmdc.learners.Logistic).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return LogisticModels(
            groups.number,
            groups.part_weights,
            groups.log_frequency,
            uniform,
            self.smooth,
            self.joining(task),
            coef,
        )


def _part_by_part(partition: Partition) -> tuple[Codes, Codes]:
    """The rows part by part, and where each part begins."""
    order = np.argsort(partition.part, kind="stable")
    return order, np.searchsorted(partition.part[order], np.arange(partition.n_parts + 1))


def _is_small(partition: Partition, number: Codes, inputs: int) -> bool:
    """Whether no part has too many coefficients: for each contrast of its states one for each input, or each row."""
    rows = np.bincount(partition.part, minlength=partition.n_parts)
    states = (number >= 0).sum(axis=1)
    coefficients = (states - 1) * np.minimum(rows + 1, inputs)
    return bool((coefficients <= _MOST).all() and (rows * states**2 <= _LARGEST).all())


def _columns_for(task: LocalTask, start: Start) -> npt.NDArray[np.float32]:
    """The coefficients of a start in the order of a task's inputs; zero for inputs that the start does not have."""
    if start.inputs == task.inputs:
        return start.coef
    ends = np.cumsum([1, *start.input_sizes])
    blocks = {node: start.coef[:, ends[i] : ends[i + 1]] for i, node in enumerate(start.inputs)}
    none = {
        node: np.zeros((len(start.coef), size), dtype=np.float32)
        for node, size in zip(task.inputs, task.input_sizes, strict=True)
    }
    own = [blocks.get(node, none[node]) for node in task.inputs]
    return np.hstack([start.coef[:, :1], *own, start.coef[:, ends[-1] :]])
