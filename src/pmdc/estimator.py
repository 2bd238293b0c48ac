"""What all classifiers of the library share: reading tables in, handing predictions out.

A subclass learns from numbers and codes (`_learn`) and answers with a distribution over the outcomes of a batch
(`_distribution`); everything public follows from these two.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_choice, check_count
from pmdc._support.warn import warn_user
from pmdc.decisions import prediction_sets
from pmdc.decisions.decide import LossLike, choose, resolve
from pmdc.decisions.losses import Choice
from pmdc.inference.base import BaseDistribution
from pmdc.inference.evidence import ImpossibleEvidenceError, read_evidence
from pmdc.learners import default_estimator
from pmdc.table.classes import ClassTable, keep_names_apart
from pmdc.table.columns import read_columns, read_matrix
from pmdc.table.features import Features, FeatureTable
from pmdc.table.rows import TrainingRows, read_weights

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

_CHUNK_CELLS = 2**24
"""Numbers in the conditional tables that are held at once while predicting (128 MiB)."""


class MultiDimensionalClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of the classifiers that predict several class variables together."""

    estimator: Any
    loss: LossLike
    discrete_features: Any

    _own_decisions: tuple[str, ...] = ()
    """What `loss` may be called besides the losses that there are for all."""

    # What a subclass does ------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, rows: TrainingRows) -> None:
        """Learn from the rows of positive weight and set the fitted attributes."""

    @abstractmethod
    def _distribution(self, features: Features) -> BaseDistribution:
        """The conditional joint distribution of a batch."""

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before any work."""
        self._check_loss(self.loss)

    def _used_discrete(self) -> list[int]:
        """The discrete features that matter for predictions."""
        return list(range(len(self.feature_table_.discrete)))

    def _cells_per_row(self) -> int:
        """How many numbers a row costs in `_distribution`."""
        return sum(self.class_table_.sizes)

    def _unseen_answer(self) -> str:
        """What is answered for a discrete value without rows, for a warning."""
        return "It counts as none of the known values."

    def _own_graph(self) -> networkx.DiGraph:
        """What depends on what, as `pmdc.report.draw_graph` takes it; a ValueError where no graph says it."""
        raise ValueError(
            f"{type(self).__name__} has no graph. Draw the distribution of a row instead: predict_joint(X).plot(row)."
        )

    @property
    def class_names_(self) -> list[str]:
        """The names of the class variables, in the order of Y's columns."""
        check_is_fitted(self)
        return list(self.class_table_.names)

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
            How many rows each row stands for: one of weight 3 counts as three, one of weight zero as none. Scores and
            their errors are those of so many rows, so divide weights that are no counts, as those of a survey, by
            their mean.

        Returns
        -------
        self
        """
        before = dict(self.__dict__)
        try:
            self._learn(self._read_training(X, y, sample_weight))
            return self
        except BaseException:  # a fit that failed leaves the classifier as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read_training(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """Check the parameters and read the tables: the rows of positive weight."""
        self._check_parameters()
        owner = type(self).__name__
        columns = read_columns(X, "X", owner)
        validate_data(self, X, skip_check_array=True, reset=True)
        weights = read_weights(sample_weight, len(columns[0].values))
        kept = weights > 0
        if sample_weight is not None and _are_no_counts(weights[kept]):
            warn_user(
                f"sample_weight sums to {weights.sum():g} over {kept.sum()} rows. It should sum to the number of rows "
                "that it stands for: scores, their errors, and the probability left to what was never seen, depend on "
                "this number. Weights that are not counts should be rescaled to mean 1."
            )
        self.class_table_, codes = ClassTable.fit_encode(y, owner, kept)
        if not (isinstance(self.loss, str) and self.loss in self._own_decisions):
            resolve(self.loss).check(self.class_table_)
        self.feature_table_ = FeatureTable.fit(columns, self.discrete_features, kept)
        keep_names_apart(self.feature_table_, hasattr(self, "feature_names_in_"), self.class_table_)
        self.classes_ = (
            self.class_table_.states[0] if self.class_table_.one_dimensional else list(self.class_table_.states)
        )
        return TrainingRows(
            self.feature_table_.encode(columns).rows(kept),
            codes[kept],
            self.class_table_.sizes,
            tuple(len(states) for states in self.feature_table_.states),
            weights[kept],
            weighted=sample_weight is not None,
            origin=np.flatnonzero(kept),
            n_table=len(kept),
        )

    def predict(self, X: Any, loss: LossLike | None = None, given: Any = None) -> Any:
        """The prediction of least expected loss for each row.

        Parameters
        ----------
        X : table like the one given to `fit`
        loss : str, loss object or callable, optional
            "hamming" takes the most probable state of each class variable, "subset" the most probable outcome; others
            are listed in `pmdc.decisions.decide`. The default is the classifier's own `loss`.
        given : mapping, DataFrame or array, optional
            What is known of the class variables, as in `JointDistribution.given`; it comes back as it is.

        Returns
        -------
        Y : the same kind of container that `fit` was given
            States as they were in `fit`; lists of rows come back as arrays.
        """
        features = self._read(X)
        evidence = self._read_given(given, len(features))
        codes = self._decide(features, self.loss if loss is None else loss, evidence)
        return self.class_table_.decode(codes, like=X)

    def expected_loss(self, X: Any, loss: LossLike | None = None, given: Any = None) -> Floats:
        """The expected loss of each prediction, by the model's own probabilities: its risk.

        Parameters
        ----------
        X, loss, given : as in `predict`

        Returns
        -------
        array of shape (n,)
            For a loss of the whole batch, such as a macro-averaged F-measure, the same number for all rows. How precise
            it is, and whether the prediction is proved to be the best, tells ``predict_joint(X).decide(loss)``.
        """
        features = self._read(X)
        wanted = self.loss if loss is None else loss
        if isinstance(wanted, str) and wanted in self._own_decisions:
            raise ValueError(f"loss={wanted!r} is a way to decide, not a loss: name the loss, such as 'hamming'.")
        return self._choose(features, wanted, self._read_given(given, len(features))).expected_loss

    def predict_proba(self, X: Any, given: Any = None) -> Any:
        """The marginal distribution of each class variable.

        Parameters
        ----------
        X : table like the one given to `fit`
        given : mapping, DataFrame or array, optional
            What is known of the class variables, as in `JointDistribution.given`.

        Returns
        -------
        list of K arrays of shape (n, n_states), columns as in ``classes_[k]``; one array for 1-D y
        """
        features = self._read(X)
        evidence = self._read_given(given, len(features))
        marginals = [part.marginals() for part in self._parts(features, evidence)]
        proba = [np.concatenate(parts) for parts in zip(*marginals, strict=True)]
        return proba[0] if self.class_table_.one_dimensional else proba

    def predict_joint(self, X: Any, given: Any = None) -> BaseDistribution:
        """The conditional joint distribution of the class variables for a batch of rows.

        Parameters
        ----------
        X : table like the one given to `fit`
        given : mapping, DataFrame or array, optional
            What is known of the class variables, as in `JointDistribution.given`.

        Returns
        -------
        JointDistribution
            Ask it for `marginals()`, `marginal(names)`, `mode()`, `top(k)`, `log_prob(Y)`, `sample(n)`,
            `given(evidence)`, `entropy()`, `mutual_information(one, other)`, `decide(loss)`, `plot(row)`.
        """
        joint = self._distribution(self._read(X))
        return joint if given is None else joint.given(given)

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        kind: str = "outcomes",
        calibration: prediction_sets.Calibration | None = None,
        max_outcomes: int = 1000,
        given: Any = None,
    ) -> Any:
        """The smallest sets that hold the truth with a given probability.

        Parameters
        ----------
        X : table like the one given to `fit`
        coverage : float
            The probability, between 0 and 1.
        kind : {"outcomes", "variables"}
            Sets of whole outcomes, or a set of states for each class variable (which holds the true state with this
            probability; that all of them do is less probable).
        calibration : Calibration, optional
            From `calibrate_sets`: then the coverage is guaranteed for rows like the held-out ones, whether the model is
            right or not, and the kind is the calibration's. Without it, the coverage is by the model's probabilities.
        max_outcomes : int
            A row that needs more outcomes than this gets the set of all outcomes, with a warning. A calibration has its
            own, which counts instead.
        given : mapping, DataFrame or array, optional
            What is known of the class variables, as in `JointDistribution.given`.

        Returns
        -------
        OutcomeSets, or for ``kind="variables"`` a list of K boolean arrays of shape (n, n_states)
            `OutcomeSets` is a named tuple: `outcomes`, for each row an array of states of shape (size, K), and `prob`.
            Boolean arrays have columns as in ``classes_[k]``; for 1-D y there is one.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(400, random_state=0)
        >>> model = GBNC(max_parents=1).fit(data.X[:200], data.Y[:200])
        >>> calibration = model.calibrate_sets(data.X[200:399], data.Y[200:399])
        >>> found = model.predict_set(data.X[399:], coverage=0.8, calibration=calibration)
        >>> found.outcomes[0].shape[1]
        4
        """
        prediction_sets.check_coverage(coverage)
        check_choice("kind", kind, ("outcomes", "variables"))
        check_count("max_outcomes", max_outcomes, 1)
        features = self._read(X)
        evidence = self._read_given(given, len(features))
        levels, calibrated = np.array([coverage]), calibration is not None
        if calibration is not None:
            n_variables = len(self.class_table_.sizes)
            if calibration.kind == "variables" and calibration.ranks.shape[1] != n_variables:
                raise ValueError(
                    f"calibration is of {calibration.ranks.shape[1]} class variables, but the model has {n_variables}: "
                    "calibrate with this model."
                )
            kind, levels, max_outcomes = calibration.kind, calibration.levels(coverage), calibration.max_outcomes
        parts = self._parts(features, evidence)
        if kind == "variables":
            levels = np.broadcast_to(levels, len(self.class_table_.sizes))
            masks = [
                [
                    prediction_sets.state_sets(m, level, calibrated)
                    for m, level in zip(part.marginals(), levels, strict=True)
                ]
                for part in parts
            ]
            joined = [np.concatenate(mask) for mask in zip(*masks, strict=True)]
            return joined[0] if self.class_table_.one_dimensional else joined
        outcomes, prob = [], []
        for part in parts:
            codes, reached = prediction_sets.outcome_sets(part, float(levels[0]), max_outcomes, calibrated)
            outcomes += [None if one is None else part.states_of(one) for one in codes]
            prob.append(reached)
        everything = sum(one is None for one in outcomes)
        if everything:
            warnings.warn(
                f"{everything} row(s) get the set of all outcomes, given as None: "
                + (
                    f"their sets would need more than max_outcomes={max_outcomes} outcomes. Raise max_outcomes, or ask "
                    "for kind='variables'."
                    if np.isfinite(levels[0])
                    else f"held-out rows are too few for coverage={coverage}, or their true outcomes too improbable."
                ),
                UserWarning,
                stacklevel=2,
            )
        return prediction_sets.OutcomeSets(outcomes, np.concatenate(prob))

    def calibrate_sets(
        self, X: Any, y: Any, *, kind: str = "outcomes", max_outcomes: int = 1000, given: Any = None
    ) -> prediction_sets.Calibration:
        """Let held-out rows calibrate prediction sets (split conformal prediction).

        Parameters
        ----------
        X, y : tables like those given to `fit`, of other rows
        kind : {"outcomes", "variables"}
            As in `predict_set`.
        max_outcomes : int
            As in `predict_set`, for which it is kept.
        given : mapping, DataFrame or array, optional
            What is known of the class variables; it should be what will be known in `predict_set`.

        Returns
        -------
        Calibration
            For `predict_set`, with any coverage.
        """
        check_choice("kind", kind, ("outcomes", "variables"))
        check_count("max_outcomes", max_outcomes, 1)
        features = self._read(X)
        codes = self.class_table_.encode(y, unknown="mark")
        if len(codes) != len(features):
            raise ValueError(f"X has {len(features)} rows, Y has {len(codes)}: they must agree.")
        evidence = self._read_given(given, len(features))
        ranks, start = [], 0
        for part in self._parts(features, evidence):
            truth = codes[start : start + len(part)]
            start += len(part)
            if kind == "outcomes":
                ranks.append(prediction_sets.outcome_ranks(part, truth, max_outcomes))
            else:
                ranks.append(prediction_sets.true_state_ranks(part, truth))
        return prediction_sets.Calibration(kind, np.concatenate(ranks), max_outcomes)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """1 - Hamming loss: the share of class variables predicted rightly, over all rows.

        (The score that scikit-learn's classifiers inherit is the share of rows predicted wholly right, and it
        raises on several class variables with more than two states.)
        """
        features = self._read(X)
        truth = self.class_table_.encode(y, unknown="mark")
        if len(truth) != len(features):
            raise ValueError(f"X has {len(features)} rows, Y has {len(truth)}: they must agree.")
        right = (self._decide(features, self.loss, None) == truth).mean(axis=1)
        return float(np.average(right, weights=read_weights(sample_weight, len(truth))))

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Axes:
        """Draw what depends on what: the graph of the model, the same for all rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default in a new figure that is just large enough.
        title : str, optional

        Returns
        -------
        matplotlib Axes
            As `pmdc.report.draw_graph`, which says what is drawn how. ``predict_joint(X).plot(row)`` draws the network
            of one row, with its probabilities.

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> ax = GBNC(max_parents=1).fit(data.X, data.Y).plot(title="What depends on what")
        >>> ax.figure.savefig("graph.svg")  # doctest: +SKIP
        """
        from pmdc.report import draw_graph

        check_is_fitted(self)
        return draw_graph(self._own_graph(), ax, title=title)

    def _html_repr(self) -> str:
        """What notebooks show: scikit-learn's diagram, and the graph once there is one."""
        from pmdc.report.html import model_html

        return str(estimator_html_repr(self)) + model_html(self)

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the estimator as ``estimator__<parameter>``, also of the default one."""
        nested = any(name.startswith("estimator__") for name in params)
        if not nested or params.get("estimator", self.estimator) is not None:
            return super().set_params(**params)
        before = self.estimator
        try:
            return super().set_params(**{**params, "estimator": default_estimator()})
        except ValueError:
            self.estimator = before
            raise

    # Within --------------------------------------------------------------------------------------------------

    def _read(self, X: Any) -> Features:
        """Convert X to numbers and codes; warn about unseen values."""
        check_is_fitted(self)
        if not self.feature_table_.discrete and self._has_columns_of_fit(X):
            matrix = read_matrix(X)
            if matrix is not None:
                return Features(matrix, np.empty((len(matrix), 0), dtype=np.int64))
        columns = read_columns(X, "X", type(self).__name__)
        validate_data(self, X, skip_check_array=True, reset=False)
        features = self.feature_table_.encode(columns)
        self.feature_table_.warn_unseen(features, self._used_discrete(), columns, self._unseen_answer())
        return features

    def _has_columns_of_fit(self, X: Any) -> bool:
        """Return whether `validate_data` would find nothing to complain about, without its cost."""
        if hasattr(self, "feature_names_in_"):
            return list(getattr(X, "columns", ())) == self.feature_names_in_.tolist()
        return type(X) is np.ndarray and X.shape[1:] == (self.n_features_in_,)

    def _read_given(self, given: Any, n_rows: int) -> Codes | None:
        return None if given is None else read_evidence(self.class_table_, given, n_rows)

    def _check_loss(self, loss: LossLike) -> None:
        if not (isinstance(loss, str) and loss in self._own_decisions):
            resolve(loss, self._own_decisions)

    def _decide(self, features: Features, loss: LossLike, evidence: Codes | None) -> Codes:
        """Codes of the predictions."""
        return self._choose(features, loss, evidence).codes

    def _choose(self, features: Features, loss: LossLike, evidence: Codes | None) -> Choice:
        self._check_loss(loss)
        resolved = resolve(loss)
        choices = [choose(part, resolved) for part in self._parts(features, evidence, resolved.whole_batch)]
        return Choice(*(np.concatenate(parts) for parts in zip(*choices, strict=True)))

    def _parts(self, features: Features, evidence: Codes | None, whole: bool = False) -> Iterator[BaseDistribution]:
        """The distributions of pieces of the batch that fit into memory, or of all of it."""
        start = 0
        for chunk in [features] if whole else self._chunks(features):
            part = self._distribution(chunk)
            if evidence is not None:
                try:
                    part = part.given_codes(evidence[start : start + len(chunk)])
                except ImpossibleEvidenceError as error:
                    raise ImpossibleEvidenceError(start + error.row, error.why) from None
            start += len(chunk)
            yield part

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


def _are_no_counts(weights: Floats) -> bool:
    """Whether weights can hardly be numbers of rows: a small part of one, several but not whole, or thousands."""
    mean = weights.mean()
    small = mean < 0.1 or weights.sum() < 1 + 1e-9
    broken = mean > 2 and not np.array_equal(weights, np.round(weights))
    return len(weights) > 1 and bool(small or broken or mean > 1000)
