"""Scorers for the parameter ``scoring`` of scikit-learn's model selection; greater is better.

A scorer is called as ``scorer(estimator, X, y, sample_weight=None)``. It finds the classifier inside pipelines and
searches (such as `GridSearchCV`), because only this has `predict_joint` and ``predict(X, loss=...)``. Scikit-learn's
own multi-output classifiers are evaluated by their `predict` and `predict_proba`.

**Which decision is evaluated.** Each loss has its own optimal decision, and the classifiers of this library can make
all of them after one fit. So `subset_accuracy` calls ``predict(X, loss="subset")``, `hamming_accuracy` uses
``loss="hamming"``, and so do the others, whatever the parameter `loss` of the classifier is. A classifier whose `loss`
is a rule of its own, such as "greedy" of `ClassifierChain` or "vote" of `ChainEnsemble`, is evaluated by this rule. Set
its loss to "subset" or "hamming" to evaluate optimal decisions. To evaluate `predict` with the classifier's own loss,
use scikit-learn's ``make_scorer(subset_loss, greater_is_better=False)``.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from pmdc.decisions.decide import LOSSES
from pmdc.metrics.decisions import balanced_loss, hamming_loss, sub_exact_loss, subset_loss
from pmdc.metrics.labels import f1_macro, f1_micro, f1_samples, jaccard
from pmdc.metrics.probabilities import brier_score, expected_calibration_error, joint_log_loss, marginal_log_loss
from pmdc.metrics.reading import in_order_of_fit
from pmdc.table.columns import as_plain_objects


class Scorer(ABC):
    """Base class of scorers: `name` is the public name in `pmdc.metrics`, `metric` a loss."""

    def __init__(self, name: str, metric: Callable[..., float]):
        self.name = name
        self.metric = metric
        self._weight_request: bool | str | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted classifier on a table; greater is better."""
        while True:  # find the classifier inside pipelines and searches
            if isinstance(estimator, Pipeline):
                X = estimator[:-1].transform(X) if len(estimator) > 1 else X
                estimator = estimator[-1]
            elif hasattr(estimator, "best_estimator_"):
                estimator = estimator.best_estimator_
            else:
                return self._score(estimator, X, y, sample_weight)

    @abstractmethod
    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float: ...

    def __repr__(self) -> str:
        return f"pmdc.metrics.{self.name}"

    # The interface of scikit-learn's own scorers --------------------------------------------------------------

    def _accept_sample_weight(self) -> bool:
        return True

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """Return a copy that requests sample weights, for scikit-learn's metadata routing."""
        other = copy.copy(self)  # the scorer itself is shared by all importers
        other._weight_request = sample_weight
        return other

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the request for scikit-learn's metadata routing."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request


class DecisionScorer(Scorer):
    """One minus the loss of the decision that is optimal for this loss."""

    def __init__(self, name: str, metric: Callable[..., float], loss: str):
        super().__init__(name, metric)
        self.loss = loss

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return 1 - self.metric(y, self._decide(classifier, X), sample_weight=sample_weight)

    def _decide(self, classifier: Any, X: Any) -> Any:
        own = getattr(classifier, "loss", None)
        own_rule = isinstance(own, str) and own not in LOSSES
        has_loss = "loss" in signature(classifier.predict).parameters
        return classifier.predict(X, loss=self.loss) if has_loss and not own_rule else classifier.predict(X)


class LabelScorer(DecisionScorer):
    """A metric of binary class variables, greater is better, of the decision that is optimal for it.

    The positive states are the second ones that the classifier knows.
    """

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        truth = in_order_of_fit(getattr(classifier, "class_table_", None), y, "y")
        positive = _second_states(getattr(classifier, "classes_", None))
        return self.metric(truth, self._decide(classifier, X), sample_weight=sample_weight, positive=positive)


def _second_states(classes: Any) -> list[Any] | None:
    """Return the second state of each class variable, None for those without; None for a classifier without states."""
    if classes is None:
        return None
    each = classes if isinstance(classes, list) else [classes]
    return [as_plain_objects(states)[1] if len(states) == 2 else None for states in each]


class MarginalScorer(Scorer):
    """Minus a loss of the result of `predict_proba`."""

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        if not hasattr(classifier, "predict_proba"):
            raise TypeError(f"{self.name} needs a classifier with predict_proba; {type(classifier).__name__} has none.")
        truth = in_order_of_fit(getattr(classifier, "class_table_", None), y, "y")
        return -self.metric(truth, classifier.predict_proba(X), classifier.classes_, sample_weight=sample_weight)


class JointScorer(Scorer):
    """Minus a loss of the result of `predict_joint`."""

    def _score(self, classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
        if not hasattr(classifier, "predict_joint"):
            raise TypeError(
                f"{self.name} needs a classifier with predict_joint, such as GBNC or BinaryRelevance; "
                f"{type(classifier).__name__} has none. Use neg_marginal_log_loss for its marginals."
            )
        return -self.metric(y, classifier.predict_joint(X), sample_weight=sample_weight)


subset_accuracy = DecisionScorer("subset_accuracy", subset_loss, "subset")
"""Share of rows predicted completely right by the most probable outcome."""

hamming_accuracy = DecisionScorer("hamming_accuracy", hamming_loss, "hamming")
"""Share of class variables predicted right by the most probable state of each."""

sub_exact_accuracy = DecisionScorer("sub_exact_accuracy", sub_exact_loss, "sub-exact")
"""Share of rows with at most one wrong class variable, predicted by the outcome that makes this most probable."""

balanced_accuracy = DecisionScorer("balanced_accuracy", balanced_loss, "balanced")
"""Balanced accuracy, averaged over class variables, of the decision for the balanced loss."""

f1_micro_scorer = LabelScorer("f1_micro_scorer", f1_micro, "f1_micro")
"""F-measure of all cells of binary class variables, of the decision that is optimal for the whole table."""

f1_macro_scorer = LabelScorer("f1_macro_scorer", f1_macro, "f1_macro")
"""Mean F-measure of binary class variables over rows, of the decision that is optimal for the whole table."""

f1_samples_scorer = LabelScorer("f1_samples_scorer", f1_samples, "f1_samples")
"""Mean F-measure of the rows, of the decision that is optimal for each row."""

jaccard_scorer = LabelScorer("jaccard_scorer", jaccard, "jaccard")
"""Mean Jaccard index of the rows, of the decision for this index in each row."""

neg_joint_log_loss = JointScorer("neg_joint_log_loss", joint_log_loss)
"""Mean log probability of the true outcomes."""

neg_marginal_log_loss = MarginalScorer("neg_marginal_log_loss", marginal_log_loss)
"""Mean log probability of the true states."""

neg_brier_score = MarginalScorer("neg_brier_score", brier_score)
"""Minus the Brier score of the marginals."""

neg_expected_calibration_error = MarginalScorer("neg_expected_calibration_error", expected_calibration_error)
"""Minus the expected calibration error of the marginals, with 10 bins."""
