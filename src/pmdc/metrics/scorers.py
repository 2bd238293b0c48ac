"""Scorers: judge a fitted classifier on a table, as ``scoring=`` of scikit-learn's model selection. Greater is better.

A scorer is called as ``scorer(estimator, X, y, sample_weight=None)``. It looks through pipelines and searches
(`GridSearchCV` and the like) at the classifier within, so that `predict_joint` and ``predict(X, loss=...)`` are found
there. Scikit-learn's own multi-output classifiers are judged by their `predict` and `predict_proba`.

**Which decision is judged.** Each loss has its own optimal decision, and the classifiers of this library take any of
them from one fit. So `subset_accuracy` asks for ``predict(X, loss="subset")``, `hamming_accuracy` for
``loss="hamming"`` and `sub_exact_accuracy` for ``loss="sub-exact"``, whichever the classifier is set to. A classifier
that is set to a rule of its own, as a `ClassifierChain` to ``loss="greedy"`` or an ensemble of chains to a vote, is
judged by that rule: it is what makes it a classifier chain. Set its loss to "subset" or "hamming" to have it judged by
optimal decisions. To judge `predict` as it is set, use ``make_scorer(subset_loss, greater_is_better=False)`` of
scikit-learn.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any

import narwhals as nw
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from pmdc.decisions.decide import LOSSES
from pmdc.metrics.decisions import hamming_loss, sub_exact_loss, subset_loss
from pmdc.metrics.probabilities import brier_score, expected_calibration_error, joint_log_loss, marginal_log_loss
from pmdc.table.classes import ClassTable


class Scorer(ABC):
    """What all scorers share.

    Parameters
    ----------
    name : str
        The public name in `pmdc.metrics`.
    metric : callable
        The loss that it is about.
    """

    def __init__(self, name: str, metric: Callable[..., float]):
        self.name = name
        self.metric = metric
        self._weight_request: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted classifier on a table; greater is better."""
        classifier, inputs = _look_within(estimator, X)
        return self._score(classifier, inputs, y, sample_weight)

    @abstractmethod
    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float: ...

    def __repr__(self) -> str:
        return f"pmdc.metrics.{self.name}"

    # What scikit-learn asks its own scorers for ---------------------------------------------------------------

    def _accept_sample_weight(self) -> bool:
        return True

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """A scorer like this one that requests sample weights, when scikit-learn's metadata routing is enabled."""
        other = copy.copy(self)  # this one is shared by all who import it
        other._weight_request = sample_weight
        return other

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn's metadata routing hands to this scorer."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request


class DecisionScorer(Scorer):
    """One minus the loss of the decision that is optimal for it."""

    def __init__(self, name: str, metric: Callable[..., float], loss: str):
        super().__init__(name, metric)
        self.loss = loss

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        own = getattr(classifier, "loss", None)
        known = not isinstance(own, str) or own in LOSSES  # chains that are to decide in their own way do so
        offered = "loss" in signature(classifier.predict).parameters and known
        decision = classifier.predict(X, loss=self.loss) if offered else classifier.predict(X)
        return 1 - self.metric(y, decision, sample_weight=sample_weight)


class MarginalScorer(Scorer):
    """Minus the loss of what `predict_proba` gives."""

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        if not hasattr(classifier, "predict_proba"):
            raise TypeError(f"{self.name} needs a classifier with predict_proba; {_type(classifier)} has none.")
        truth = _in_order_of_fit(classifier, y)
        return -self.metric(truth, classifier.predict_proba(X), classifier.classes_, sample_weight=sample_weight)


class JointScorer(Scorer):
    """Minus the loss of what `predict_joint` gives."""

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        if not hasattr(classifier, "predict_joint"):
            raise TypeError(
                f"{self.name} needs a classifier with predict_joint, such as GBNC or BinaryRelevance; "
                f"{_type(classifier)} has none. Its marginals can be judged by neg_marginal_log_loss."
            )
        return -self.metric(y, classifier.predict_joint(X), sample_weight=sample_weight)


def _look_within(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The classifier within pipelines and searches, and the table as it sees it."""
    while True:
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator, X


def _in_order_of_fit(classifier: Any, y: Any) -> Any:
    """The columns of y in the order of `predict_proba`, where the classifier knows them by name."""
    table = getattr(classifier, "class_table_", None)
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(table, ClassTable) and isinstance(frame, nw.DataFrame) and len(frame.columns) == len(table.names):
        return frame[:, table._order(y)].to_native()
    return y


def _type(classifier: Any) -> str:
    return type(classifier).__name__


subset_accuracy = DecisionScorer("subset_accuracy", subset_loss, "subset")
"""Share of rows predicted wholly right, by the most probable outcome."""

hamming_accuracy = DecisionScorer("hamming_accuracy", hamming_loss, "hamming")
"""Share of class variables predicted right, by the most probable state of each."""

sub_exact_accuracy = DecisionScorer("sub_exact_accuracy", sub_exact_loss, "sub-exact")
"""Share of rows with at most one class variable wrong, by the outcome for which this is most probable."""

neg_joint_log_loss = JointScorer("neg_joint_log_loss", joint_log_loss)
"""Mean log probability of the true outcomes."""

neg_marginal_log_loss = MarginalScorer("neg_marginal_log_loss", marginal_log_loss)
"""Mean log probability of the true states."""

neg_brier_score = MarginalScorer("neg_brier_score", brier_score)
"""Minus the Brier score of the marginals."""

neg_expected_calibration_error = MarginalScorer("neg_expected_calibration_error", expected_calibration_error)
"""Minus the expected calibration error of the marginals, with 10 bins."""
