"""Naive Bayes from sufficient statistics, for all parts of a partition together.

Within a part, given the state y, the inputs are independent: a continuous one Gaussian, a discrete one categorical,

    P(y | x)  proportional to  f_y  prod_j N(x_j; mu_yj, v_yj + e_j)  prod_c (n_yc(x_c) + alpha) / (n_y + alpha q_c),

with f_y the share of the state in the part, mu and v the (weighted) mean and variance of its rows, n_y their weight,
n_yc(x_c) the weight of those with the value x_c, and q_c the number of values. e_j is `var_smoothing` times the
variance of input j over the part; for scikit-learn's `GaussianNB`, times the greatest of these, without weights. An
input that is constant over a part is left out there.
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
from pmdc.learners.groups import GroupedLearner, GroupedModels, Groups, LogProbaClassifier, refuse_nan
from pmdc.learners.inputs import Affine, CodesBehind, Joining, codes_behind
from pmdc.learners.options import Options
from pmdc.learners.protocols import LeaveOneOut, Preparation
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import LocalTask, root_task
from pmdc.table.columns import UNKNOWN, read_columns
from pmdc.table.features import Features, FeatureTable
from pmdc.table.rows import read_weights

_CHUNK_CELLS = 2**22
"""Rows times inputs that are left out at once."""


class NaiveBayes(LogProbaClassifier):
    """Naive Bayes for numbers and categories together: Gaussian for numbers, categorical for categories.

    On numbers it differs from scikit-learn's `GaussianNB` only in the smoothing of variances: here it is relative to
    the variance of each feature, so a feature of small scale is not lost beside one of large scale. Inside `GBNC`
    discrete features are parents, which partition the rows or are inputs; in the baselines they are inputs, and so are
    the predecessors in a chain.

    Parameters
    ----------
    var_smoothing : float, default=1e-9
        This share of the variance of each continuous feature over all rows is added to its variance within each state.
    alpha : float, default=1.0
        Added to the counts of the values of discrete inputs.
    discrete_features : "from_dtype", None or list, default="from_dtype"
        As in `GBNC`; ignored inside a classifier of several class variables, which has its own parameter.

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
        """Raise an error for invalid parameters; `GBNC` calls this before any work."""
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
        self._features = FeatureTable.fit(columns, self.discrete_features, weights)
        self.classes_, codes = np.unique(y[kept], return_inverse=True)
        inputs = self._features.encode(columns).rows(kept)
        sizes = [len(states) for states in self._features.states]
        learner = NaiveBayesLearner(self, inputs, weights[kept], sizes, options=Options(backoff="none"))
        self._models = learner.fit(root_task(0, codes, len(self.classes_)))
        self._prepare = learner.prepare
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities, shape (n, n_classes)."""
        check_is_fitted(self)
        columns = read_columns(X, "X", type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        inputs = self._features.encode(columns)
        every = list(range(len(self._features.discrete)))
        self._features.warn_unseen(inputs, every, columns, "It is treated as missing.")
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
        What does not depend on the inputs: log share of the state and log normalisers of the Gaussians.
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
        # The last columns must be the codes of the discrete inputs.
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
        self.per_feature = isinstance(estimator, NaiveBayes)
        if self.per_feature:
            estimator.check_parameters()
        self.var_smoothing = float(estimator.var_smoothing)
        self.alpha = float(getattr(estimator, "alpha", 1.0))
        self.sizes = np.array(sizes, dtype=np.int64)
        # Without the indicators of missing numbers: the Gaussian of one that is 0 in all rows of a state would exclude
        # the state wherever it is 1.
        X = inputs.continuous if inputs.missing is None else inputs.continuous[:, : inputs.missing.shape[1]]
        # Shifting the features changes no probability, and numbers near 0 lose no digits to a large offset.
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
        mean, variance = kernels.moments(X, groups.of_row, self.sample_weight, groups.weights, d)
        added = self._added(self._part_moments(X, task.partition.part, groups, mean, variance)[-1])[groups.part]
        scale = np.where(added > 0, 2 * np.pi * (variance + added), 1.0)  # a constant input is left out
        offset = groups.log_frequency - 0.5 * np.log(scale).sum(axis=1)
        precision = np.where(added > 0, 2 * np.pi / scale, 0.0)
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
            return self._leave_one_out(task, X)
        # A row of weight w > 1 becomes one of weight 1, which is left out, and one of weight w - 1.
        rows = np.concatenate([np.arange(len(X)), heavy])
        weights = np.append(np.minimum(self.sample_weight, 1.0), self.sample_weight[heavy] - 1.0)
        return self.on(rows, weights)._leave_one_out(task.take(rows), X[rows])[: len(task.codes)]

    def _leave_one_out(self, task: LocalTask, X: Floats) -> Floats:
        """Return in closed form what n fits, each without one row, would answer; X has all inputs.

        When a row x of weight w leaves a group of weight W, mean mu and variance v, there remain

            W' = W - w,   mu' = mu - w / W' (x - mu),   v' = (W v - w W / W' (x - mu)^2) / W',

        and likewise of its part, from which the smoothing is computed; its values leave the counts of the discrete
        inputs. Where these formulas lose digits, the sums are computed again from the rows that stay. The preparation
        of the inputs and, with ``backoff="paper"``, the uniform parts are those of all rows.
        """
        from pmdc.learners import kernels as shared
        from pmdc.learners.naive_bayes import kernels

        groups, uniform = self._groups(task)
        part, group, number, weights = task.partition.part, groups.of_row, groups.number, self.sample_weight
        models = self._fit_groups(task, X, groups, uniform)
        d, m = models.mean.shape[1], task.n_states
        mean, variance = kernels.moments(X, group, weights, groups.weights, d)
        part_moments = self._part_moments(X, part, groups, mean, variance)
        rows = np.argsort(group, kind="stable")  # sorted by part as well
        by_group, by_part = (rows, _bounds(group)), (rows, _bounds(part))
        sizes = self._all_sizes(task)
        counts = kernels.value_weights(X, group, weights, len(groups.part), d, sizes, models.starts)
        no_columns = np.empty((len(number), 0))
        out = np.full(len(X), -np.inf)
        several = np.flatnonzero(np.bincount(group)[group] > 1)
        for which in np.array_split(several, 1 + len(several) * X.shape[1] // _CHUNK_CELLS):
            own = kernels.moments_without(which, X, group, weights, groups.weights, mean, variance, *by_group)
            spread = kernels.moments_without(which, X, part, *part_moments, *by_part)[-1]
            part_weight = kernels.moments_without(
                which, X, part, weights, groups.part_weights, no_columns, no_columns, *by_part
            )[0]
            states = number[part[which]]
            of_states = np.where(states == group[which, None], own[0][:, None], groups.weights[states])
            log_frequency = np.log(of_states) - np.log(part_weight)[:, None]
            scores = log_frequency.copy()
            kernels.scores_without(
                scores,
                which,
                X,
                part,
                group,
                weights,
                number,
                *by_group,
                mean,
                variance,
                *own,
                self._added(spread),
                counts,
                models.log_theta,
                models.starts,
                sizes,
                self.alpha,
            )
            row = np.arange(len(which))
            places = np.where(states >= 0, m * row[:, None] + np.arange(m), -1)
            shared.normalise(scores, row, places, log_frequency.ravel(), part_weight, self.smooth, TINY)
            out[which] = scores[row, task.codes[which]]
        refuse_nan(out)
        out[uniform[part]] = -np.log(m)
        return out

    def _added(self, spread: Floats) -> Floats:
        """Return what is added to variances, given those over the parts."""
        if not self.per_feature:
            spread = np.repeat(spread.max(axis=1, initial=0.0)[:, None], spread.shape[1], axis=1)
        return self.var_smoothing * spread

    def _all_sizes(self, task: LocalTask) -> Codes:
        """Return the numbers of values of all discrete inputs: features, then parents that are inputs."""
        return np.append(self.sizes, np.array(task.input_sizes, dtype=np.int64))

    def _part_moments(
        self, X: Floats, part_of: Codes, groups: Groups, mean: Floats, variance: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return weights of the rows and of the parts, and means and variances of the inputs over the parts by these.

        The weights are those of the rows; for `GaussianNB` they are 1, as in scikit-learn.
        """
        if not self.per_feature and (self.sample_weight != 1.0).any():
            from pmdc.learners.naive_bayes import kernels

            ones, sizes = np.ones(len(part_of)), np.bincount(part_of).astype(float)
            return ones, sizes, *kernels.moments(X, part_of, ones, sizes, mean.shape[1])
        part, weights, totals = groups.part, groups.weights[:, None], groups.part_weights[:, None]
        first = mean[np.searchsorted(part, np.arange(len(totals)))]  # so that equal values have variance 0
        centre = first + _sums((mean - first[part]) * weights, part, len(totals)) / totals
        spread = _sums((variance + (mean - centre[part]) ** 2) * weights, part, len(totals)) / totals
        return self.sample_weight, groups.part_weights, centre, spread


def accepts(estimator: Any, sizes: Sequence[int]) -> bool:
    """Return whether this engine fits the estimator: `GaussianNB` only without priors and discrete inputs."""
    return type(estimator) is NaiveBayes or (
        type(estimator) is GaussianNB
        and estimator.priors is None
        and isinstance(estimator.var_smoothing, Real)
        and float(estimator.var_smoothing) > 0
        and not sizes
    )


def _bounds(group: Codes) -> Codes:
    """Return where the rows of each group begin and end when they are sorted by group."""
    return np.append(0, np.cumsum(np.bincount(group)))


def _sums(values: Floats, part: Codes, n_parts: int) -> Floats:
    """Sum the rows of each part; groups are numbered part by part, and every part has one."""
    if not values.shape[1]:
        return np.zeros((n_parts, 0))
    return np.add.reduceat(values, np.searchsorted(part, np.arange(n_parts)), axis=0)
