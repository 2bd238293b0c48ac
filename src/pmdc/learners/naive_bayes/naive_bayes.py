"""Naive Bayes from sufficient statistics, for all parts of a partition together.

Within a part, given the state y, the inputs are independent: a continuous one Gaussian, a discrete one categorical,

    P(y | x)  proportional to  f_y  prod_j N(x_j; mu_yj, v_yj + e)  prod_c (n_yc(x_c) + alpha) / (n_y + alpha q_c),

with f_y the share of the state in the part, mu and v the (weighted) mean and variance of its rows, n_y their weight,
n_yc(x_c) the weight of those with the value x_c, and q_c the number of values. As in scikit-learn, e is `var_smoothing`
times the greatest variance of an input over the rows of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.learners.fitted import Fitted, are_places
from pmdc.learners.groups import (
    GroupedLearner,
    GroupedModels,
    Groups,
    LogProbaClassifier,
    constant_parts,
    refuse_nan,
)
from pmdc.learners.inputs import Affine, CodesBehind, Joining, codes_behind
from pmdc.learners.options import Options
from pmdc.learners.protocols import LeaveOneOut, Preparation
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import LocalTask, root_task
from pmdc.table.columns import UNKNOWN, read_columns
from pmdc.table.features import Features, FeatureTable
from pmdc.table.rows import read_weights


class NaiveBayes(LogProbaClassifier):
    """Naive Bayes for numbers and categories together: Gaussian for the ones, categorical for the others.

    On numbers alone it is scikit-learn's `GaussianNB`. Inside `GBNC` discrete features are parents, not inputs; in the
    baselines they, and the class variables before a link of a chain, are inputs.

    Parameters
    ----------
    var_smoothing : float, default=1e-9
        This share of the greatest variance of a continuous input is added to all variances.
    alpha : float, default=1.0
        Added to the counts of the values of discrete inputs.
    discrete_features : "from_dtype", None or list, default="from_dtype"
        As in `GBNC`; without effect inside a classifier of several class variables, which has its own.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where all columns of X have string names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from pmdc.learners import NaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NaiveBayes().fit(X, y).score(X, y), 2)
    0.96
    """

    def __init__(self, var_smoothing: float = 1e-9, *, alpha: float = 1.0, discrete_features: Any = "from_dtype"):
        self.var_smoothing = var_smoothing
        self.alpha = alpha
        self.discrete_features = discrete_features

    def check_parameters(self) -> None:
        """Refuse parameters that make no sense; `GBNC` calls this before any work."""
        for name, value in (("var_smoothing", self.var_smoothing), ("alpha", self.alpha)):
            if not isinstance(value, Real) or not 0 < value < np.inf:
                raise ValueError(f"{name}={value!r} must be a positive number.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayes:
        """Fit the model.

        Parameters
        ----------
        X : DataFrame, array or list of rows, shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self : NaiveBayes
        """
        self.check_parameters()
        columns = read_columns(X, "X", type(self).__name__)
        _, y = validate_data(self, X, y, skip_check_array=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        weights = read_weights(sample_weight, len(columns[0].values))
        if len(y) != len(weights):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {len(weights)} rows, y has {len(y)}."
            )
        kept = weights > 0
        self._features = FeatureTable.fit(columns, self.discrete_features, kept)
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        inputs = self._features.encode(columns).rows(kept)
        sizes = [len(states) for states in self._features.states]
        learner = NaiveBayesLearner(self, inputs, weights[kept], sizes, options=Options(backoff="none"))
        self._models = learner.fit(root_task(0, codes, len(self.classes_)))
        self._prepare = learner.prepare
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities, shape (n, n_classes)."""
        check_is_fitted(self)
        columns = read_columns(X, "X", type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        inputs = self._features.encode(columns)
        every = list(range(len(self._features.discrete)))
        self._features.warn_unseen(inputs, every, columns, "It counts as a value that is missing.")
        return self._models.log_proba(self._prepare(inputs), np.zeros(len(inputs), dtype=np.int64))

    def fitted_parts(self) -> tuple[GroupedModels, Preparation, FeatureTable | None]:
        return self._models, self._prepare, self._features

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


@dataclass(frozen=True)
class NaiveBayesModels(GroupedModels):
    """Gaussians and tables of all groups.

    Attributes
    ----------
    offset : array of shape (n_groups,)
        All that does not depend on the inputs: log share of the state and log normalisers of the Gaussians.
    mean, precision : arrays of shape (n_groups, d)
        Of the continuous inputs.
    log_theta : array of shape (n_groups, sum of the sizes)
        Log-probabilities of the values of the discrete inputs, one after the other.
    starts : array of shape (n_discrete,)
        Where each discrete input begins in `log_theta`.
    """

    offset: Floats
    mean: Floats
    precision: Floats
    log_theta: Floats
    starts: Codes

    def scores(self, X: Floats, part: Codes, out: Floats) -> None:
        from pmdc.learners.naive_bayes import kernels

        kernels.naive_bayes_scores(
            out, X, part, self.number, self.offset, self.mean, self.precision, self.log_theta, self.starts
        )

    def split_inputs(self, X: Floats, input_codes: Codes, free: Mapping[int, int]) -> tuple[Floats, list[Floats]]:
        codes = input_codes.copy()
        codes[:, list(free)] = UNKNOWN
        starts = self.starts[len(self.starts) - codes.shape[1] :]
        added = [self.log_theta[:, starts[place] : starts[place] + size].T for place, size in free.items()]
        return self.join(X, codes), added

    def fits(self, fitted: Fitted) -> bool:
        # The values of discrete inputs are read off the last columns: these must be codes.
        n_groups, n_discrete = len(self.log_frequency), len(fitted.values) + len(fitted.inputs)
        if type(fitted.prepare) is not CodesBehind or self.join is not codes_behind:
            return False
        if self.starts.shape != (n_discrete,):
            return False
        ends = self.starts + np.array([*fitted.values, *fitted.inputs], dtype=np.int64)
        return (
            super().fits(fitted)
            and are_places(self.starts, ends)
            and self.offset.shape == (n_groups,)
            and self.mean.shape == self.precision.shape == (n_groups, fitted.width - len(fitted.values))
            and len(self.log_theta) == n_groups
            and bool(ends.max(initial=0) <= self.log_theta.shape[1])
        )


class NaiveBayesLearner(GroupedLearner[NaiveBayesModels], LeaveOneOut):
    """`LocalLearner` of `NaiveBayes`, and of scikit-learn's `GaussianNB` where there are no discrete inputs.

    Parameters
    ----------
    estimator : object with `var_smoothing` and `alpha`
    inputs : Features
        Continuous and discrete inputs of the training rows.
    sample_weight : array of shape (n,)
    sizes : sequence of int
        The number of values of each discrete input.
    options : Options, optional
    """

    releases_gil = True

    def __init__(
        self,
        estimator: Any,
        inputs: Features,
        sample_weight: Floats,
        sizes: Sequence[int] = (),
        options: Options | None = None,
    ):
        options = options or Options()
        if isinstance(estimator, NaiveBayes):
            estimator.check_parameters()
        self.var_smoothing = float(estimator.var_smoothing)
        self.alpha = float(getattr(estimator, "alpha", 1.0))
        self.sizes = np.array(sizes, dtype=np.int64)
        X = inputs.continuous
        # A shift changes no Gaussian; near their means numbers lose no digits to a large offset.
        width = Affine.min_max(X).width if options.min_max else np.ones(X.shape[1])
        prepare = CodesBehind(Affine(X.mean(axis=0), width))
        super().__init__(estimator, prepare(inputs), sample_weight, prepare, options)

    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int:
        d = self.X.shape[1] - len(self.sizes)
        return n_states - 1 + n_states * (2 * d + sum(q - 1 for q in (*self.sizes.tolist(), *input_sizes)))

    def joining(self, task: LocalTask) -> Joining:
        return codes_behind

    def _fit_groups(self, task: LocalTask, X: Floats, groups: Groups, uniform: Marks) -> NaiveBayesModels:
        from pmdc.learners.naive_bayes import kernels

        sizes = self._all_sizes(task)
        starts = np.cumsum(sizes) - sizes
        d = X.shape[1] - len(sizes)
        part, n_parts = task.partition.part, task.partition.n_parts
        mean, variance = kernels.moments(X, groups.of_row, self.sample_weight, groups.weights, d)
        _, spread = self._part_moments(X, part, groups, mean, variance)
        variance += self.var_smoothing * spread.max(axis=1, initial=0.0)[groups.part, None]
        offset = groups.log_frequency.copy()
        # Where no input varies over the rows of a part, all its Gaussians are one point, and their ratio is 1.
        varied = ~constant_parts(X[:, :d], part, n_parts)[groups.part]
        offset[varied] -= 0.5 * np.log(2 * np.pi * variance[varied]).sum(axis=1)
        precision = np.divide(1.0, variance, out=np.zeros_like(variance), where=varied[:, None])
        counts = kernels.value_weights(X, groups.of_row, self.sample_weight, len(groups.part), d, sizes, starts)
        totals = groups.weights[:, None] + self.alpha * np.repeat(sizes, sizes)
        return NaiveBayesModels(
            groups.number,
            groups.part_weights,
            groups.log_frequency,
            uniform,
            self.smooth,
            codes_behind,
            offset,
            mean,
            precision,
            np.log((counts + self.alpha) / totals),
            starts,
        )

    def leave_one_out(self, task: LocalTask) -> Floats:
        X = self.design(task)
        heavy = np.flatnonzero(self.sample_weight > 1.0)
        if not len(heavy):
            return self._leave_one_out(task, X, self._fit_to(task, X))
        # What stays of a heavy row becomes a row of its own.
        rows = np.concatenate([np.arange(len(X)), heavy])
        split = self.on(rows)
        split.sample_weight = np.append(np.minimum(self.sample_weight, 1.0), self.sample_weight[heavy] - 1.0)
        longer, X = task.take(rows), X[rows]
        return split._leave_one_out(longer, X, split._fit_to(longer, X))[: len(task.codes)]

    def _leave_one_out(self, task: LocalTask, X: Floats, models: NaiveBayesModels) -> Floats:
        """Return what n fits, each without one row, would answer, in closed form; X has all inputs.

        When a row x of weight w leaves a group of weight W, mean mu and variance v, there remain

            W' = W - w,   mu' = mu - w / W' (x - mu),   v' = (W v - w W / W' (x - mu)^2) / W',

        and its values leave the counts of the discrete inputs. So does it leave the variances over its part; their
        maximum, and with it what is added to the variances of all states of the part, is that of the other rows. What
        these formulas cancel is computed again from the rows that stay. The preparation of the inputs, and in the
        paper's preset which parts are uniform, stay as they are with the row.
        """
        from pmdc.learners.naive_bayes import kernels

        part, n_parts = task.partition.part, task.partition.n_parts
        groups, sizes = Groups.of(task, self.sample_weight), self._all_sizes(task)
        d = X.shape[1] - len(sizes)
        weights, by_group, by_part = self.sample_weight, _bounds(groups.of_row), _bounds(part)
        rows = np.argsort(groups.of_row, kind="stable")  # part by part, too
        mean, variance = kernels.moments(X, groups.of_row, weights, groups.weights, d)
        centre, spread = self._part_moments(X, part, groups, mean, variance)
        greatest = kernels.greatest_variance_without(X, part, centre, spread, rows, by_part)
        out: Floats = kernels.naive_bayes_without(
            X,
            part,
            groups.of_row,
            weights,
            groups.number,
            rows,
            by_group,
            groups.weights,
            kernels.totals_without(weights, groups.of_row, groups.weights, rows, by_group),
            kernels.totals_without(weights, part, groups.part_weights, rows, by_part),
            models.offset - models.log_frequency,
            mean,
            variance,
            models.precision,
            self.var_smoothing * greatest,
            _constant_without(X[:, :d], part, n_parts),
            kernels.value_weights(X, groups.of_row, weights, len(groups.part), d, sizes, models.starts),
            models.log_theta,
            models.starts,
            sizes,
            self.alpha,
            self.smooth,
            TINY,
        )
        refuse_nan(out)
        out[models.uniform[part]] = -np.log(task.n_states)
        return out

    def _all_sizes(self, task: LocalTask) -> Codes:
        """The numbers of values of all discrete inputs: those of the learner, and the parents that are inputs."""
        return np.append(self.sizes, np.array(task.input_sizes, dtype=np.int64))

    def _part_moments(
        self, X: Floats, part_of: Codes, groups: Groups, mean: Floats, variance: Floats
    ) -> tuple[Floats, Floats]:
        """Means and variances of the continuous inputs over the rows of each part, weights aside as in scikit-learn."""
        d, part = mean.shape[1], groups.part
        if (self.sample_weight != 1.0).any():
            from pmdc.learners.naive_bayes import kernels

            ones = np.ones(len(part_of))
            centre, spread = kernels.moments(X, part_of, ones, np.bincount(part_of).astype(float), d)
            return centre, spread
        # Variance over a part: that within its groups and that of their means.
        counts = np.bincount(groups.of_row).astype(float)
        rows = np.bincount(part, weights=counts)[:, None]
        centre = _sums(mean * counts[:, None], part, len(rows)) / rows
        squares = (variance + (mean - centre[part]) ** 2) * counts[:, None]
        return centre, _sums(squares, part, len(rows)) / rows


def accepts(estimator: Any, sizes: Sequence[int]) -> bool:
    """Whether the engine gives the same models: no priors of its own, and numbers alone as inputs of `GaussianNB`."""
    return type(estimator) is NaiveBayes or (
        type(estimator) is GaussianNB
        and estimator.priors is None
        and isinstance(estimator.var_smoothing, Real)
        and float(estimator.var_smoothing) > 0
        and not sizes
    )


def _constant_without(X: Floats, part: Codes, n_parts: int) -> Marks:
    """Whether all rows of the part of a row but this one have the same inputs."""
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], np.arange(n_parts))
    size = np.bincount(part, minlength=n_parts)
    constant = np.zeros(len(part), dtype=bool)
    # Without a row, all others have to agree with one of the first two that is not the row itself.
    for place in (0, 1):
        reference = order[first + np.minimum(place, size - 1)]
        differs = (X[reference[part]] != X).any(axis=1)
        others = np.bincount(part, differs, n_parts)[part] - differs
        constant |= (others == 0) & ((np.arange(len(part)) != reference[part]) | (size[part] == 1))
    return constant


def _bounds(group: Codes) -> Codes:
    """Where the rows of each group begin and end, once they are sorted by group."""
    return np.append(0, np.cumsum(np.bincount(group)))


def _sums(values: Floats, part: Codes, n_parts: int) -> Floats:
    """Sums of the rows of each part; groups are numbered part by part, and every part has one."""
    if not values.shape[1]:
        return np.zeros((n_parts, 0))
    return np.add.reduceat(values, np.searchsorted(part, np.arange(n_parts)), axis=0)
