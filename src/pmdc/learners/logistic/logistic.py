"""Multinomial logistic regression, solved to its optimum: the default local model.

The objective is scikit-learn's, for states coded 0 .. m - 1 and w the weights of the rows,

    min over B, b of   - sum_i w_i log softmax(B x_i + b)[y_i]  +  1 / (2 C) |B|^2,

with one coefficient vector for two states and one for each state for more.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.checks import check_count
from pmdc._support.parallel import one_thread
from pmdc.learners.fitted import Fitted, is_affine, is_numbers
from pmdc.learners.groups import GroupedLearner, GroupedModels, Groups, LogProbaClassifier, refuse_nan
from pmdc.learners.inputs import Affine, Indicators, IndicatorsBefore, Rotated, one_hot, principal_axes, state_shares
from pmdc.learners.options import Options
from pmdc.learners.partition import Partition
from pmdc.learners.protocols import CrossValidated, Regularised, Start
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import LocalTask, root_task
from pmdc.learners.validation import best_C, deal
from pmdc.table.features import Features
from pmdc.table.rows import read_weights

_NO_FOLDS: Codes = np.empty(0, dtype=np.int64)


class Logistic(LogProbaClassifier):
    """Multinomial logistic regression on standardised features.

    The features are scaled to mean 0 and variance 1 over all rows of `fit`; the coefficients have an L2 penalty, the
    intercept has none. Inside `GBNC` the scaling is over the whole table, so that all parts are penalised alike.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Inverse weight of the penalty, as in scikit-learn; ``np.inf`` means no penalty. "auto" chooses one of nine
        values from 1e-4 to 1e4 by held-out rows, the strongest penalty within half a standard error of the best: here
        and in the baselines by five folds, in `GBNC` by the folds of `cv`, two values for each class variable.
    tol : float, default=1e-9
        The optimisation stops after the step that gains no more than this, relative to the objective. Log-likelihoods,
        which do not include the penalty, are accurate to about its square root. (Without a penalty, separable states
        have no finite optimum: the optimisation stops when the objective is 1e-8 of that of the frequencies.)
    max_iter : int, default=1000
        Maximal number of iterations.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1 or n_classes, n_features)
        Coefficients of the standardised features.
    intercept_ : array of shape (1 or n_classes,)
    mean_, scale_ : arrays of shape (n_features,)
        The standardisation.
    C_ : float
        The C that was used.
    n_iter_ : int
        Number of iterations.
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
        """Raise an error for invalid parameters; `GBNC` calls this before any work."""
        for name, value in (("C", self.C), ("tol", self.tol)):
            if name == "C" and isinstance(value, str) and value == "auto":
                continue
            if isinstance(value, bool) or not isinstance(value, Real) or not value > 1e-300:
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
        learner = LogisticLearner(
            self, Features(X, np.empty((len(X), 0), dtype=np.int64)), weights, options=Options(backoff="none")
        )
        task = root_task(0, codes, len(self.classes_))
        with one_thread():
            learner = learner.with_chosen_C(task)
            self._models = learner.fit(task)
        self._prepare = learner.prepare
        self.C_ = 1.0 / learner.ridge if learner.ridge else np.inf
        self.mean_, self.scale_ = learner.affine.shift, learner.affine.width
        shown = slice(1, None) if len(self.classes_) == 2 else slice(None)
        self.intercept_ = self._models.coef[shown, 0]
        self.coef_ = learner.unrotate(self._models.coef[shown, 1:])
        self.n_iter_ = learner.n_iter
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities, shape (n, n_classes)."""
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
        from pmdc.learners import kernels

        kernels.linear_scores(out, X, part, self.number, self.coef)

    def split_inputs(self, X: Floats, input_codes: Codes, free: Mapping[int, int]) -> tuple[Floats, list[Floats]]:
        assert isinstance(self.join, IndicatorsBefore)
        X, affine, added = self.join(X, input_codes), self.join.affine, []
        for place, size in free.items():
            start = sum(self.join.sizes[:place])
            columns = slice(start, start + size)
            X[:, columns] = 0.0
            states = (np.eye(size) - affine.shift[columns]) / affine.width[columns]
            added.append(states @ self.coef[:, start + 1 : start + 1 + size].T)
        return X, added

    def fits(self, fitted: Fitted) -> bool:
        width, join = fitted.width, self.join
        if fitted.inputs:
            if type(join) is not IndicatorsBefore or list(join.sizes) != list(fitted.inputs):
                return False
            if not (is_affine(join.affine) and is_numbers(join.shares, 1)):
                return False
            width = join(np.zeros((1, width)), np.zeros((1, len(fitted.inputs)), dtype=np.int64)).shape[1]
        return super().fits(fitted) and self.coef.shape == (len(self.log_frequency), width + 1)

    def start(self, task: LocalTask) -> Start:
        coef = np.clip(self.coef, -1e30, 1e30).astype(np.float32)
        number = self.number.astype(np.int32)
        return Start(task.partition.configurations, number, coef)


class LogisticLearner(GroupedLearner[LogisticModels], CrossValidated, Regularised):
    """`LocalLearner` of `Logistic`, and of scikit-learn's `LogisticRegression` with an L2 penalty.

    Parameters
    ----------
    estimator : Logistic or LogisticRegression
        `Logistic` standardises the inputs over all rows, `LogisticRegression` does not.
    inputs : Features
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input; they become indicators.
    options : Options, optional
    """

    def __init__(
        self,
        estimator: Any,
        inputs: Features,
        sample_weight: Floats,
        sizes: Sequence[int] = (),
        options: Options | None = None,
    ):
        options = options or Options()
        if isinstance(estimator, Logistic):
            estimator.check_parameters()
            self.tol, self.max_iter = estimator.tol, estimator.max_iter
        else:
            defaults = Logistic()
            self.tol, self.max_iter = defaults.tol, defaults.max_iter
        self.standard = isinstance(estimator, Logistic)
        self.auto = isinstance(estimator.C, str)
        self.ridge = 1.0 if self.auto else 0.0 if np.isinf(estimator.C) else 1.0 / float(estimator.C)
        self.n_iter = 0
        X = Indicators(sizes)(inputs)
        # The intercept has no penalty, so shifting the inputs changes no model.
        self.affine = Affine.standard(X, sample_weight)
        if not self.standard:
            width = Affine.min_max(X).width if options.min_max else np.ones(X.shape[1])
            self.affine = Affine(self.affine.shift, width)
        prepare = Rotated(Indicators(sizes, self.affine), None)
        # Without a penalty, a rotation is not needed, and its rounding would matter.
        if self.ridge:
            prepare = Rotated(prepare.prepare, principal_axes(self.affine(X)))
        super().__init__(estimator, prepare(inputs), sample_weight, prepare, options)
        self.plain = self.affine(X)
        self.axes = prepare.axes

    def unrotate(self, coef: Floats) -> Floats:
        """Return the coefficients of the inputs before the rotation."""
        return coef if self.axes is None else coef @ self.axes.T

    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int:
        return (n_states - 1) * (1 + self.plain.shape[1] + sum(q - 1 for q in input_sizes))

    def with_C(self, C: float) -> LogisticLearner:
        other = copy(self)
        other.ridge, other.auto = 1.0 / C, False
        return other

    def start(self, task: LocalTask, start: Start | None) -> Start:
        return self._fit_groups(task, self.design(task), *self._groups(task), start).start(task)

    def log_likelihood_from(self, task: LocalTask, start: Start | None) -> tuple[float, Start]:
        X = self.design(task)
        models = self._fit_groups(task, X, *self._groups(task), start)
        return self._log_likelihood_of(task, X, models), models.start(task)

    def cross_validate(self, task: LocalTask, fold: Codes, start: Start | None) -> tuple[Floats, Start]:
        held_out = np.empty(len(task.codes))
        models = self._fit_groups(task, self.design(task), *self._groups(task), start, fold, held_out)
        refuse_nan(held_out)
        if self.smooth:
            held_out = np.where(np.isneginf(held_out), -np.inf, np.maximum(held_out, TINY))
        held_out[models.uniform[task.partition.part]] = -np.log(task.n_states)
        return held_out, models.start(task)

    def _fit_to(self, task: LocalTask, X: Floats) -> LogisticModels:
        return self.with_chosen_C(task)._fit_to(task, X) if self.auto else super()._fit_to(task, X)

    def with_chosen_C(self, task: LocalTask) -> LogisticLearner:
        """Return the same learner with C chosen for a task by five folds if C is "auto".

        A state that a model has not seen gets an equal share of the probability 1 / (1 + weight of the part).
        """
        if not self.auto:
            return self
        rows, fold, share = deal(self.plain, task.codes[:, None], self.sample_weight, 5, stratify=task.codes)
        dealt, some = self.on(rows, share * self.sample_weight[rows]), task.take(rows)
        weights = some.partition.weights(dealt.sample_weight)
        floor = -np.log(task.n_states) - np.log1p(weights[some.partition.part])

        def held_out(C: float, start: Start | None) -> tuple[Floats, Start | None]:
            log_proba, start = dealt.with_C(C).cross_validate(some, fold, start)
            return np.where(np.isneginf(log_proba), floor, log_proba), start

        return self.with_C(best_C(held_out, dealt.sample_weight, np.arange(len(rows)))[1])

    def joining(self, task: LocalTask) -> IndicatorsBefore:
        # Before the rotated inputs, whose variances decrease: this order is fitted fastest.
        width = sum(task.input_sizes)
        shares, scale = np.zeros(width), Affine.identity(width)
        if task.input_codes is not None:
            shares = state_shares(task.input_codes, task.input_sizes, self.sample_weight)
            if self.standard:
                scale = Affine.standard(one_hot(task.input_codes, task.input_sizes), self.sample_weight)
        return IndicatorsBefore(task.input_sizes, shares, scale)

    def _fit_groups(
        self,
        task: LocalTask,
        X: Floats,
        groups: Groups,
        uniform: Marks,
        start: Start | None = None,
        fold: Codes = _NO_FOLDS,
        held_out: Floats | None = None,
    ) -> LogisticModels:
        from pmdc.learners.logistic import parts

        partition = task.partition
        coef = np.zeros((len(groups.part), X.shape[1] + 1))
        if start is not None:  # each state starts from its coefficients in the coarser part
            part, state = np.nonzero(groups.number >= 0)
            coarse = partition.configurations.within(start.configurations)[part]
            coef[groups.number[part, state]] = start.coef[start.number[coarse, state]]
        failed, self.n_iter = parts.fit_parts(
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
            fold,
            np.empty(0) if held_out is None else held_out,
        )
        if failed:
            warnings.warn(
                f"logistic regression did not converge in max_iter={self.max_iter} iterations on {failed} of "
                f"{partition.n_parts} parts of the rows: lower C or raise max_iter (of pmdc.learners.Logistic).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return LogisticModels(
            groups.number, groups.part_weights, groups.log_frequency, uniform, self.smooth, self.joining(task), coef
        )


def accepts(estimator: Any, sizes: Sequence[int]) -> bool:
    """Return whether the engine has the same objective: an L2 penalty, no class weights, intercept not penalised.

    It is then solved to its optimum, whatever the solver, `tol` and `max_iter` of the estimator.
    """
    return type(estimator) is Logistic or (
        type(estimator) is LogisticRegression
        and getattr(estimator, "penalty", "l2") in ("deprecated", "l2")
        and estimator.l1_ratio in (0, None)  # None up to scikit-learn 1.7
        and getattr(estimator, "multi_class", "deprecated") == "deprecated"  # a parameter up to scikit-learn 1.7
        and isinstance(estimator.C, Real)
        and float(estimator.C) > 0
        and estimator.solver != "liblinear"  # it penalises the intercept
        and estimator.fit_intercept
        and estimator.class_weight is None
        and not estimator.dual
        and not estimator.warm_start
    )


def _part_by_part(partition: Partition) -> tuple[Codes, Codes]:
    """Return the rows sorted by part, and where each part begins."""
    order = np.argsort(partition.part, kind="stable")
    return order, np.searchsorted(partition.part[order], np.arange(partition.n_parts + 1))
