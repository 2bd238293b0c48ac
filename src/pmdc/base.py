"""What all classifiers of the library share: reading tables in, handing predictions out.

A subclass learns from numbers and codes (`_learn`) and answers with a distribution over the outcomes of a batch
(`_distribution`); everything public follows from these two.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from pmdc.checks import check_choice
from pmdc.inference import decide
from pmdc.inference.base import BaseDistribution
from pmdc.inference.decisions import LOSSES
from pmdc.learners import Logistic
from pmdc.table import ClassTable, Codes, Features, FeatureTable, Floats, keep_names_apart, read_columns, read_weights

_CHUNK_CELLS = 2**24
"""Numbers in the conditional tables that are held at once while predicting (128 MiB)."""


class MultiDimensionalClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of the classifiers that predict several class variables together."""

    estimator: Any
    loss: str
    discrete_features: Any

    _losses: tuple[str, ...] = tuple(LOSSES)

    # What a subclass does ------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, features: Features, codes: Codes, sample_weight: Floats, weighted: bool) -> None:
        """Learn from the rows of positive weight; `weighted` says whether weights were given at all."""

    @abstractmethod
    def _distribution(self, features: Features) -> BaseDistribution:
        """The conditional joint distribution of a batch."""

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before any work."""
        check_choice("loss", self.loss, self._losses)

    def _used_discrete(self) -> list[int]:
        """The discrete features that matter for predictions."""
        return list(range(len(self._features.discrete)))

    def _cells_per_row(self) -> int:
        """How many numbers a row costs in `_distribution`."""
        return sum(self._classes.sizes)

    def _unseen_answer(self) -> str:
        """What is answered for a discrete value without rows, for a warning."""
        return "It counts as none of the known values."

    # What users call -----------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the conditional joint distribution of the class variables.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...), array or list of rows, shape (n, n_features)
            Numbers are continuous features; categories, strings and booleans are discrete ones.
        y : DataFrame, 2-D array, list of rows, or 1-D array for a single class variable
            The states of the class variables: strings, integers, booleans, any hashable values. A categorical
            column declares its states, with or without rows. (scikit-learn's own splitting, ``cv=5``, sorts all
            states together and fails where columns of Y differ in type; give ``cv=KFold(5)`` there.)
        sample_weight : array-like of shape (n,), optional
            A row of weight zero counts as a row that is not there.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, y, sample_weight)
        except BaseException:  # a fit that failed leaves the classifier as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        features, codes, weights = self._read_training(X, y, sample_weight)
        self._learn(features, codes, weights, sample_weight is not None)
        return self

    def _read_training(self, X: Any, y: Any, sample_weight: Any) -> tuple[Features, Codes, Floats]:
        """Check the parameters and read the tables: the rows of positive weight, as numbers and codes."""
        self._check_parameters()
        owner = type(self).__name__
        columns = read_columns(X, "X", owner)
        validate_data(self, X, skip_check_array=True, reset=True)
        weights = read_weights(sample_weight, len(columns[0].values))
        kept = weights > 0
        if sample_weight is not None and weights.sum() < 1 + 1e-9 < kept.sum():
            warnings.warn(
                f"sample_weight sums to {weights.sum():g}. It should sum to the number of rows that it stands for: "
                "penalties, and the probability left to what was never seen, depend on this number.",
                UserWarning,
                stacklevel=4,
            )
        self._classes = ClassTable.fit(y, owner, kept)
        self._features = FeatureTable.fit(columns, self.discrete_features, kept)
        keep_names_apart(self._features, hasattr(self, "feature_names_in_"), self._classes)
        self.classes_ = self._classes.states[0] if self._classes.one_dimensional else list(self._classes.states)
        features = self._features.encode(columns).rows(kept)
        return features, self._classes.encode(y, unknown="mark")[kept], weights[kept]

    def predict(self, X: Any, loss: str | None = None) -> Any:
        """The prediction of least expected loss for each row.

        Parameters
        ----------
        X : table like the one given to `fit`
        loss : {"hamming", "subset"}, optional
            "hamming" takes the most probable state of each class variable, "subset" the most probable outcome.
            The default is the classifier's own `loss`.

        Returns
        -------
        Y : the same kind of container that `fit` was given
            States as they were in `fit`; lists of rows come back as arrays.
        """
        features = self._read(X)
        return self._classes.decode(self._decide(features, self.loss if loss is None else loss), like=X)

    def predict_proba(self, X: Any) -> Any:
        """The marginal distribution of each class variable.

        Returns
        -------
        list of K arrays of shape (n, n_states), columns as in ``classes_[k]``; one array for 1-D y
        """
        marginals = [self._distribution(chunk).marginals() for chunk in self._chunks(self._read(X))]
        proba = [np.concatenate(parts) for parts in zip(*marginals, strict=True)]
        return proba[0] if self._classes.one_dimensional else proba

    def predict_joint(self, X: Any) -> BaseDistribution:
        """The conditional joint distribution of the class variables for a batch of rows.

        Returns
        -------
        JointDistribution
            Ask it for `marginals()`, `mode()`, `log_prob(Y)`, `sample(n)`, `entropy()`.
        """
        return self._distribution(self._read(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 - Hamming loss: the share of class variables predicted rightly, over all rows.

        (The score that scikit-learn's classifiers inherit is the share of rows predicted wholly right, and it
        raises on several class variables with more than two states.)
        """
        features = self._read(X)
        truth = self._classes.encode(y, unknown="mark")
        if len(truth) != len(features):
            raise ValueError(f"X has {len(features)} rows, Y has {len(truth)}: they must agree.")
        right = (self._decide(features, self.loss) == truth).mean(axis=1)
        return float(np.average(right, weights=read_weights(sample_weight, len(truth))))

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the estimator as ``estimator__<parameter>``, also of the default one."""
        nested = any(name.startswith("estimator__") for name in params)
        if not nested or params.get("estimator", self.estimator) is not None:
            return super().set_params(**params)
        before = self.estimator
        try:
            return super().set_params(**{**params, "estimator": Logistic()})
        except ValueError:
            self.estimator = before
            raise

    # Within --------------------------------------------------------------------------------------------------

    def _read(self, X: Any) -> Features:
        check_is_fitted(self)
        columns = read_columns(X, "X", type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        features = self._features.encode(columns)
        self._features.warn_unseen(features, self._used_discrete(), columns, self._unseen_answer())
        return features

    def _decide(self, features: Features, loss: str) -> Codes:
        return np.concatenate([decide(self._distribution(chunk), loss) for chunk in self._chunks(features)])

    def _chunks(self, features: Features) -> Iterator[Features]:
        """The rows in pieces whose conditional tables fit into memory."""
        step = max(1, _CHUNK_CELLS // max(1, self._cells_per_row()))
        for start in range(0, len(features), step):
            yield features.rows(slice(start, start + step))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.input_tags.categorical = True
        return tags
