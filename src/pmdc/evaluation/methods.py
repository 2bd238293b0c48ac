"""The methods of a comparison, and the estimators they are built on.

A family groups methods that share their fits: one fit of GBNC serves two decisions, and a chain that chooses its order
for each loss is fitted twice. Each family builds classifiers from an estimator and a seed, and gives these records:

- GBNC-H, GBNC-S: `GBNC`, decisions for the Hamming and for the subset 0/1 loss;
- GBNC-paper-H, GBNC-paper-S: the same with the paper's settings (`GBNC.as_in_paper`);
- BR: binary relevance; CP: the class powerset, by its most probable outcome;
- CC-H, CC-S: a chain by the paper's protocol: the given order and 10 random ones, tried on 20 % of the training rows,
  the best for each loss fitted again on all of them;
- ECC: an ensemble of 10 chains, by vote;
- MultiOutput: scikit-learn's `MultiOutputClassifier`, with indicators for discrete features (none for `NaiveBayes`,
  which handles discrete features itself);
- RF-marginal, RF-joint, ET-marginal, ET-joint: one multi-output random forest, or extra trees, of scikit-learn on all
  class variables, with indicators for discrete features, whatever the estimator is. The joint distribution is the
  product of the marginals, with decisions for the Hamming loss, or the votes of the trees for whole outcomes, with
  decisions for the subset 0/1 loss (`pmdc.evaluation.forests`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pmdc.baselines import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.classifier import GBNC
from pmdc.evaluation.forests import MultiOutputForest, discrete_as_indicators
from pmdc.learners import Logistic, NaiveBayes, default_estimator
from pmdc.table.classes import ClassTable

ESTIMATORS: dict[str, Callable[[], BaseEstimator]] = {
    "logistic": default_estimator,
    "naive-bayes": NaiveBayes,
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=3),
    "boosting": HistGradientBoostingClassifier,
}
"""The local models, the same for every method; "logistic" is what ``estimator=None`` stands for everywhere."""


@dataclass(frozen=True)
class Family:
    """Methods that share their fits: names of records -> (classifier, decision)."""

    records: Mapping[str, tuple[str, str | None]]
    build: Callable[[BaseEstimator, int, int], Mapping[str, Any]]
    """(estimator, seed, max_candidates) -> classifiers by name."""


def _gbnc(estimator: BaseEstimator, seed: int, max_candidates: int) -> Mapping[str, Any]:
    return {"gbnc": GBNC(estimator, max_candidates=max_candidates, random_state=seed)}


def _gbnc_paper(estimator: BaseEstimator, seed: int, max_candidates: int) -> Mapping[str, Any]:
    given = None if isinstance(estimator, Logistic) else estimator  # the paper has its own logistic regression
    return {"gbnc": GBNC.as_in_paper(given, max_candidates=max_candidates, random_state=seed)}


def _chains(estimator: BaseEstimator, seed: int, max_candidates: int) -> Mapping[str, Any]:
    return {
        loss: ClassifierChain(estimator, order="best", n_orders=10, order_loss=loss, random_state=seed)
        for loss in ("hamming", "subset")
    }


class PlainMultiOutput(BaseEstimator):
    """scikit-learn's `MultiOutputClassifier` on codes of the states, since it does not accept every type of state."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> PlainMultiOutput:
        self.class_table_ = ClassTable.fit(y)
        steps: list[Any] = [MultiOutputClassifier(self.estimator)]
        if not isinstance(self.estimator, NaiveBayes):
            steps.insert(0, discrete_as_indicators())
        self._pipeline = make_pipeline(*steps)
        self._pipeline.fit(X, self.class_table_.encode(y))
        self.classes_ = self.class_table_.states
        return self

    def predict(self, X: Any) -> Any:
        return self.class_table_.decode(self._pipeline.predict(X), like=X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of all states; zero for states without training rows."""
        answers = []
        seen = self._pipeline[-1].classes_
        for found, codes, size in zip(self._pipeline.predict_proba(X), seen, self.class_table_.sizes, strict=True):
            proba = np.zeros((len(found), size))
            proba[:, codes] = found
            answers.append(proba)
        return answers


def _multi_output(estimator: BaseEstimator, seed: int, max_candidates: int) -> Mapping[str, Any]:
    if isinstance(estimator, Logistic):  # scikit-learn's, with its defaults
        estimator = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    else:
        names = [name for name in estimator.get_params() if name == "random_state"]
        estimator = estimator.set_params(**dict.fromkeys(names, seed))
    return {"sklearn": PlainMultiOutput(estimator)}


def _forest(name: str, kind: type[BaseEstimator]) -> Family:
    def build(estimator: BaseEstimator, seed: int, max_candidates: int) -> Mapping[str, Any]:
        return {joint: MultiOutputForest(kind(random_state=seed), joint) for joint in ("marginal", "votes")}

    return Family({f"{name}-marginal": ("marginal", "hamming"), f"{name}-joint": ("votes", "subset")}, build)


FAMILIES: dict[str, Family] = {
    "GBNC": Family({"GBNC-H": ("gbnc", "hamming"), "GBNC-S": ("gbnc", "subset")}, _gbnc),
    "GBNC-paper": Family({"GBNC-paper-H": ("gbnc", "hamming"), "GBNC-paper-S": ("gbnc", "subset")}, _gbnc_paper),
    "BR": Family({"BR": ("br", "hamming")}, lambda e, seed, _: {"br": BinaryRelevance(e, random_state=seed)}),
    "CC": Family({"CC-H": ("hamming", "greedy"), "CC-S": ("subset", "greedy")}, _chains),
    "ECC": Family({"ECC": ("ecc", "vote")}, lambda e, seed, _: {"ecc": ChainEnsemble(e, random_state=seed)}),
    "CP": Family({"CP": ("cp", "subset")}, lambda e, seed, _: {"cp": ClassPowerset(e, random_state=seed)}),
    "MultiOutput": Family({"MultiOutput": ("sklearn", None)}, _multi_output),
    "RF": _forest("RF", RandomForestClassifier),
    "ET": _forest("ET", ExtraTreesClassifier),
}
