"""The base class of all classifiers: reading tables and returning predictions.

A subclass learns from numbers and codes (`_learn`) and returns the distribution over the outcomes of a batch
(`_distribution`); all public methods follow from these two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_choice, check_count, shorten
from pmdc._support.deadline import now
from pmdc._support.warn import warn_user
from pmdc.completion import CompletionMixin
from pmdc.decisions import prediction_sets
from pmdc.decisions.decide import LossLike, choose, resolve
from pmdc.decisions.losses import Choice
from pmdc.inference.base import BaseDistribution
from pmdc.inference.evidence import Evidence, ImpossibleEvidenceError, read_given
from pmdc.learners import default_estimator
from pmdc.presentation import PresentationMixin
from pmdc.table.classes import ClassTable, keep_names_apart, refuse_unknown, warn_misspelt
from pmdc.table.columns import MISSING, UNKNOWN, read_columns, read_matrix
from pmdc.table.features import Features, FeatureTable
from pmdc.table.frequencies import Frequencies
from pmdc.table.rows import TrainingRows, read_cell_weights, read_weights, take_possible
from pmdc.table.weak_labels import are_sets, without_sets

if TYPE_CHECKING:
    import networkx
_CHUNK_CELLS = 2**24
"""Cells of conditional tables held in memory at once while predicting (128 MiB)."""


class MultiDimensionalClassifier(PresentationMixin, CompletionMixin, ClassifierMixin, BaseEstimator, ABC):
    """Base class of the classifiers that predict several class variables together."""

    estimator: Any
    loss: LossLike
    discrete_features: Any

    _own_decisions: tuple[str, ...] = ()
    """Values of `loss` that only this classifier accepts."""

    # For subclasses to define --------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, rows: TrainingRows, started: float) -> None:
        """Learn from the rows of positive weight and set the fitted attributes; `fit` has started at this moment."""

    @abstractmethod
    def _distribution(self, features: Features) -> BaseDistribution:
        """Return the conditional joint distribution of a batch."""

    def _check_parameters(self) -> None:
        """Raise an error for invalid parameters, before any work."""
        self._check_loss(self.loss)

    def _learns_from_gaps(self) -> bool:
        """Return whether y may have missing states."""
        return False

    def _usable(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows to learn from."""
        return rows

    def _used_discrete(self) -> list[int]:
        """Return the discrete features that predictions depend on."""
        return list(range(len(self.feature_table_.discrete)))

    def _cells_per_row(self) -> int:
        """Return how many cells a row takes in `_distribution`."""
        return sum(self.class_table_.sizes)

    def _unseen_answer(self) -> str:
        """Return how a discrete value not seen in `fit` is treated, for a warning."""
        return "It is treated as none of the known values."

    def _own_graph(self) -> networkx.DiGraph:
        """Return the graph of the model for `pmdc.report.draw_graph`; raise ValueError if it has none."""
        raise ValueError(
            f"{type(self).__name__} has no graph. Draw the distribution of a row instead: predict_joint(X).plot(row)."
        )

    @property
    def class_names_(self) -> list[str]:
        """The names of the class variables, in the order of Y's columns."""
        check_is_fitted(self)
        return list(self.class_table_.names)

    # Public methods ------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn the conditional joint distribution of the class variables.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...), array or list of rows, shape (n, n_features)
            Numbers are continuous features; categories, strings and booleans are discrete ones. A column of dates or
            times becomes continuous features: the days since 2000 and, where they vary, month, weekday and hour. Of a
            discrete feature with more than 255 values, those with at least 10 rows (255 at most) are kept; the others,
            and those of later tables, are one value. Values may be missing (NaN, None, NA): an estimator or expert that
            takes NaN gets NaN; otherwise numbers and dates are filled with the median of the training rows, and each
            column with gaps in training has an indicator of them (not for naive Bayes). In a discrete feature with gaps
            in training, missing is a value of its own. A column without any value is ignored, with a warning.
        y : DataFrame, 2-D array, list of rows, or 1-D array for a single class variable
            The states of the class variables: strings, integers, booleans, dates, any hashable values. A categorical
            column declares its states, with or without rows. (scikit-learn's own splitting, ``cv=5``, sorts all
            states together and fails if columns of Y differ in type; use ``cv=KFold(5)`` then.)
        sample_weight : array-like of shape (n,), optional
            How many rows each row stands for: a row of weight 3 counts as three, one of weight zero is ignored. Scores
            and their errors depend on the sum; rescale weights that are not counts, such as survey weights, to mean 1.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, cell_weight: Any = None) -> Any:
        before = dict(self.__dict__)
        try:
            started = now()
            rows = self._usable(self._read_training(X, y, sample_weight, cell_weight))
            refuse_unknown(self.class_table_.names, rows.classes)
            self.n_rows_used_ = len(rows)
            self.frequencies_ = Frequencies.of(rows.classes, rows.class_sizes, rows.weights)
            self.class_table_.frequencies = self.frequencies_
            if not (isinstance(self.loss, str) and self.loss in self._own_decisions):
                resolve(self.loss).check(self.class_table_)
            self._learn(rows, started)
            return self
        except BaseException:  # a failed fit leaves the classifier unchanged
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read_training(self, X: Any, y: Any, sample_weight: Any, cell_weight: Any = None) -> TrainingRows:
        """Check the parameters and read the rows of positive weight."""
        self._check_parameters()
        owner = type(self).__name__
        columns = read_columns(X, "X", owner, allow_missing=True)
        validate_data(self, X, skip_check_array=True, reset=True)
        weights = read_weights(sample_weight, len(columns[0].values))
        kept = weights > 0
        if sample_weight is not None and _not_counts(weights[kept]):
            warn_user(
                f"sample_weight sums to {weights.sum():g} over {kept.sum()} rows. It should sum to the number of rows "
                "that it stands for, on which scores, their errors and the probabilities of unseen states depend. "
                "Weights that are not counts should be rescaled to mean 1."
            )
        missing: Literal["raise", "mark"] = "mark" if self._learns_from_gaps() else "raise"
        self.class_table_, codes, possible = ClassTable.fit_weak(y, owner, kept, missing)
        warn_misspelt(self.class_table_, codes[kept])
        self.feature_table_ = FeatureTable.fit(columns, self.discrete_features, weights)
        keep_names_apart(self.feature_table_, hasattr(self, "feature_names_in_"), self.class_table_)
        self.classes_ = (
            self.class_table_.states[0] if self.class_table_.one_dimensional else list(self.class_table_.states)
        )
        cells = None
        if cell_weight is not None:
            cells = read_cell_weights(self.class_table_.in_order(cell_weight, "cell_weight"), codes.shape)
            _check_counts_of_cells(self.class_table_.names, cells[kept])
            if missing == "raise" and not cells[kept].all():
                raise ValueError("cell_weight is 0 for some cells, which missing_labels='error' does not allow.")
            codes, possible = np.where(cells > 0, codes, MISSING), without_sets(possible, cells > 0)
            cells = np.where((codes >= 0) | are_sets(possible, codes.shape), cells, 1.0)[kept]
        return TrainingRows(
            self.feature_table_.encode(columns).rows(kept),
            codes[kept],
            self.class_table_.sizes,
            tuple(len(states) for states in self.feature_table_.states),
            weights[kept],
            weighted=sample_weight is not None or cells is not None,
            origin=np.flatnonzero(kept),
            n_table=len(kept),
            known=None if (codes[kept] >= 0).all() else codes[kept] >= 0,
            possible=take_possible(possible, kept),
            cell_weights=None if cells is None or (cells == 1).all() else cells,
        )

    def predict(self, X: Any, loss: LossLike | None = None, given: Any = None) -> Any:
        """Return the prediction of least expected loss for each row.

        Parameters
        ----------
        X : table like the one given to `fit`
        loss : str, loss object or callable, optional
            "hamming" predicts the most probable state of each class variable, "subset" the most probable outcome;
            `pmdc.decisions.decide` lists the others. The default is the parameter `loss` of the classifier.
        given : mapping, DataFrame or array, optional
            Known states (evidence), as in `JointDistribution.given`; they are predicted as given. A set of states
            stands for one of them.

        Returns
        -------
        Y : the same kind of container that `fit` was given
            With the types of `fit`; for lists of rows, an array.
        """
        features = self._read(X)
        evidence = self._read_given(given, len(features))
        codes = self._decide(features, self.loss if loss is None else loss, evidence)
        return self.class_table_.decode(codes, like=X)

    def expected_loss(self, X: Any, loss: LossLike | None = None, given: Any = None) -> Floats:
        """Return the expected loss of each prediction under the model (its risk).

        Parameters
        ----------
        X, loss, given : as in `predict`

        Returns
        -------
        array of shape (n,)
            For a loss of the whole batch, such as a macro-averaged F-measure, the same number for all rows.
            ``predict_joint(X).decide(loss)`` also returns its precision and whether the prediction is proved optimal.
        """
        features = self._read(X)
        loss = self.loss if loss is None else loss
        if isinstance(loss, str) and loss in self._own_decisions:
            raise ValueError(f"loss={loss!r} is a rule without an expected loss: give a loss, such as 'hamming'.")
        return self._choose(features, loss, self._read_given(given, len(features))).expected_loss

    def predict_proba(self, X: Any, given: Any = None) -> Any:
        """Return the marginal distribution of each class variable.

        Parameters
        ----------
        X, given : as in `predict`

        Returns
        -------
        list of K arrays of shape (n, n_states), columns as in ``classes_[k]``; one array for 1-D y
        """
        features = self._read(X)
        evidence = self._read_given(given, len(features))
        marginals = [part.marginals() for part in self._chunk_distributions(features, evidence)]
        proba = [np.concatenate(parts) for parts in zip(*marginals, strict=True)]
        return proba[0] if self.class_table_.one_dimensional else proba

    def predict_joint(self, X: Any, given: Any = None) -> BaseDistribution:
        """Return the conditional joint distribution of the class variables for a batch of rows.

        Parameters
        ----------
        X, given : as in `predict`

        Returns
        -------
        JointDistribution
            With the methods `marginals()`, `marginal(names)`, `mode()`, `top(k)`, `log_prob(Y)`, `sample(n)`,
            `given(evidence)`, `entropy()`, `mutual_information(one, other)`, `decide(loss)`,
            `value_of_information(loss)`, `plot(row)`.
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
        """Return the smallest sets that contain the true outcome with a given probability.

        Parameters
        ----------
        X, given : as in `predict`
        coverage : float
            The probability, between 0 and 1.
        kind : {"outcomes", "variables"}
            Sets of whole outcomes, or a set of states for each class variable (each contains the true state with this
            probability; all of them together with a smaller one).
        calibration : Calibration, optional
            From `calibrate_sets`, which then determines the kind. The coverage holds even if the model is wrong, for
            rows that are exchangeable with those of the calibration. States never seen in training are in no set: if
            they occur, the coverage may fail. Without a calibration, the coverage relies on the model.
        max_outcomes : int
            A row that needs more outcomes than this gets the set of all outcomes, with a warning. Ignored with a
            calibration, which has its own.

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
        >>> model = GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])
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
            n_variables, n_calibrated = len(self.class_table_.sizes), calibration.ranks.shape[-1]
            if calibration.kind == "variables" and n_calibrated != n_variables:
                raise ValueError(
                    f"calibration has {n_calibrated} class variables, but the model has {n_variables}: call "
                    "calibrate_sets of this model."
                )
            kind, levels, max_outcomes = calibration.kind, calibration.levels(coverage), calibration.max_outcomes
        parts = self._chunk_distributions(features, evidence)
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
            why = f"held-out rows are too few for coverage={coverage}, or their outcomes too improbable."
            if np.isfinite(levels[0]):
                why = f"they need more than max_outcomes={max_outcomes}. Raise max_outcomes, or use kind='variables'."
            warn_user(f"{everything} row(s) get the set of all outcomes, given as None: {why}")
        return prediction_sets.OutcomeSets(outcomes, np.concatenate(prob))

    def calibrate_sets(
        self, X: Any, y: Any, *, kind: str = "outcomes", max_outcomes: int = 1000, given: Any = None
    ) -> prediction_sets.Calibration:
        """Calibrate prediction sets on held-out rows (split conformal prediction).

        Rows with states that the model has not seen count as not covered, with a warning: such states are in no set, so
        the sets of other rows become larger, and a high coverage may be out of reach.

        Parameters
        ----------
        X, y : tables like those given to `fit`, of other rows
            All states must be known.
        kind, max_outcomes : as in `predict_set`, which takes them from the calibration
        given : mapping, DataFrame or array, optional
            Known states (evidence), of the same class variables as later in `predict_set`.

        Returns
        -------
        Calibration
            For `predict_set`, with any coverage.
        """
        check_choice("kind", kind, ("outcomes", "variables"))
        check_count("max_outcomes", max_outcomes, 1)
        features = self._read(X)
        codes = self._read_truth(y, len(features))
        unseen = (codes == UNKNOWN).any(axis=1)
        if unseen.any():
            states = self.class_table_.unknown_states(y)
            warn_user(
                f"y has {unseen.sum()} of {len(codes)} rows with states that the model has not seen: "
                + "; ".join(f"{name!r}: {shorten(known)}" for name, known in states.items())
                + ". Prediction sets never contain these states, so the coverage fails for rows that have them. Fit on "
                "rows with these states, or declare them as categories of the column."
            )
        evidence = self._read_given(given, len(features))
        ranks, start = [], 0
        for part in self._chunk_distributions(features, evidence):
            truth = codes[start : start + len(part)]
            start += len(part)
            if kind == "outcomes":
                ranks.append(prediction_sets.outcome_ranks(part, truth, max_outcomes))
            else:
                ranks.append(prediction_sets.true_state_ranks(part, truth))
        return prediction_sets.Calibration(kind, np.concatenate(ranks), max_outcomes)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return 1 - Hamming loss: the share of class variables predicted correctly, over all rows.

        (scikit-learn's default score is the share of rows with all class variables correct, and it raises an error for
        several class variables with more than two states.) Missing cells of y are ignored, as in
        `pmdc.metrics.hamming_loss`.
        """
        from pmdc.metrics.reading import mean_of_cells

        features = self._read(X)
        truth = self._read_truth(y, len(features), "mark")
        right = self._decide(features, self.loss, None) == truth
        return mean_of_cells(right, truth != MISSING, sample_weight)

    def set_params(self, **params: Any) -> Any:
        """Set parameters; ``estimator__<parameter>`` also works for the default estimator."""
        nested = any(name.startswith("estimator__") for name in params)
        if not nested or params.get("estimator", self.estimator) is not None:
            return super().set_params(**params)
        before = self.estimator
        try:
            return super().set_params(**{**params, "estimator": default_estimator()})
        except ValueError:
            self.estimator = before
            raise

    # Private methods -----------------------------------------------------------------------------------------

    def _read(self, X: Any) -> Features:
        """Convert X to numbers and codes; warn about unseen values."""
        check_is_fitted(self)
        table = self.feature_table_
        if len(table.number_names) == len(table.names) and self._has_columns_of_fit(X):
            matrix = read_matrix(X)
            if matrix is not None:
                return self.feature_table_.complete(matrix, np.empty((len(matrix), 0), dtype=np.int64))
        columns = read_columns(X, "X", type(self).__name__, allow_missing=True)
        validate_data(self, X, skip_check_array=True, reset=False)
        features = table.encode(columns)
        table.warn_unseen(features, self._used_discrete(), columns, self._unseen_answer())
        table.warn_gaps(features, self._used_discrete(), columns, self._unseen_answer())
        return features

    def _has_columns_of_fit(self, X: Any) -> bool:
        """Return whether `validate_data` would find nothing to complain about, without its cost."""
        if hasattr(self, "feature_names_in_"):
            return list(getattr(X, "columns", ())) == self.feature_names_in_.tolist()
        return type(X) is np.ndarray and X.shape[1:] == (self.n_features_in_,)

    def _require_states(self, y: Any) -> None:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")

    def _read_truth(self, y: Any, n_rows: int, missing: Literal["raise", "mark"] = "raise") -> Codes:
        self._require_states(y)
        codes = self.class_table_.encode(y, unknown="mark", missing=missing)
        if len(codes) != n_rows:
            raise ValueError(f"X has {n_rows} rows, Y has {len(codes)}: they must have the same number of rows.")
        return codes

    def _read_given(self, given: Any, n_rows: int) -> Evidence | None:
        return None if given is None else read_given(self.class_table_, given, n_rows)

    def _check_loss(self, loss: LossLike) -> None:
        if not (isinstance(loss, str) and loss in self._own_decisions):
            resolve(loss, self._own_decisions)

    def _decide(self, features: Features, loss: LossLike, evidence: Evidence | None) -> Codes:
        """Return the codes of the predictions."""
        return self._choose(features, loss, evidence).codes

    def _choose(self, features: Features, loss: LossLike, evidence: Evidence | None) -> Choice:
        self._check_loss(loss)
        resolved = resolve(loss)
        chunks = self._chunk_distributions(features, evidence, resolved.whole_batch)
        choices = [choose(chunk, resolved) for chunk in chunks]
        return Choice(*(np.concatenate(parts) for parts in zip(*choices, strict=True)))

    def _chunk_distributions(
        self, features: Features, evidence: Evidence | None, whole: bool = False
    ) -> Iterator[BaseDistribution]:
        """Yield the distributions, given the evidence, of chunks of the batch that fit into memory, or of the whole."""
        start = 0
        for chunk in [features] if whole else self._chunks(features):
            part = self._distribution(chunk)
            if evidence is not None:
                try:
                    part = part.given_evidence(evidence[start : start + len(chunk)])
                except ImpossibleEvidenceError as error:
                    raise ImpossibleEvidenceError(start + error.row, error.why) from None
            start += len(chunk)
            yield part

    def _chunks(self, features: Features) -> Iterator[Features]:
        """Yield the rows in chunks whose conditional tables fit into memory."""
        step = max(1, _CHUNK_CELLS // max(1, self._cells_per_row()))
        for start in range(0, len(features), step):
            yield features.rows(slice(start, start + step))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def _check_counts_of_cells(names: Sequence[str], weights: Floats) -> None:
    """Warn about class variables with weights of cells that are unlikely to be counts."""
    positive = [own[own > 0] for own in weights.T]
    odd = [(name, own) for name, own in zip(names, positive, strict=True) if len(own) and _not_counts(own)]
    if odd:
        name, own = odd[0]
        others = f" (so do those of {len(odd) - 1} other class variable(s))" if len(odd) > 1 else ""
        warn_user(
            f"cell_weight of {name!r} sums to {own.sum():g} over {len(own)} cells{others}. It should sum to the number "
            "of cells that it stands for, on which scores, their errors and the probabilities of unseen states depend. "
            "Weights that are not counts should be rescaled to mean 1."
        )


def _not_counts(weights: Floats) -> bool:
    """Return whether weights are unlikely to be counts: mostly far below one, not whole, or in the thousands."""
    mean = weights.mean()
    small = mean < 0.1 or weights.sum() < 1 + 1e-9
    broken = mean > 2 and not np.array_equal(weights, np.round(weights))
    return len(weights) > 1 and bool(small or broken or mean > 1000)
