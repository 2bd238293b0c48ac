"""The methods that `quality.py` compares: what is fitted, which predictions are judged, and what is left out for its cost.

A unit is fitted once and gives the records of one or several methods:

- default, experts=None: `GBNC()` and ``GBNC(experts=None)``;
- BR, CP: binary relevance and the class powerset;
- chain, PCC: one chain in the order of the columns, by greedy predictions and by exact ones;
- ECC: 10 chains (5 where K > 8, and 5 with boosting);
- forest-marginal, forest-joint: one multi-output forest, by its marginals and by the votes of its trees;
- sklearn RF, sklearn ET, sklearn boosting, sklearn boosting chain: what five lines of scikit-learn give, all defaults.

Baselines have ``calibrate=True``. Estimators:

- logistic: ``Logistic(C="auto")``.
- extra trees, random forest: 100 trees (30 in each chain of ECC), at least 3 rows in a leaf. Three rows had a better
  total log-loss of calibrated binary relevance than one row on the test rows of fold 0 of enb, voice, flare1, flags and
  wqplants (11.3 instead of 12.1, and 11.3 instead of 11.8), though not on each; this choice, by test rows of the first
  half, favours the baselines there.
- boosting: 100 iterations of at most 15 leaves, 64 bins, about 30 features for each split, no early stopping, and the
  best of four settings of learning rate, rows in a leaf and L2 penalty for each table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from pmdc import GBNC
from pmdc.baselines import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.evaluation.forests import MultiOutputForest, discrete_as_indicators
from pmdc.evaluation.held_out import HeldOut, evaluate
from pmdc.inference.chain import MAX_OUTCOMES
from pmdc.learners import Logistic
from pmdc.table.classes import ClassTable

N_TREES, N_TREES_ENSEMBLE, MIN_LEAF = 100, 30, 3

BOOSTING: dict[str, dict[str, float]] = {
    "rate 0.1, leaf 20": {"learning_rate": 0.1, "min_samples_leaf": 20},
    "rate 0.1, leaf 5, l2 1": {"learning_rate": 0.1, "min_samples_leaf": 5, "l2_regularization": 1.0},
    "rate 0.03, leaf 20": {"learning_rate": 0.03, "min_samples_leaf": 20},
    "rate 0.03, leaf 5, l2 1": {"learning_rate": 0.03, "min_samples_leaf": 5, "l2_regularization": 1.0},
}
"""The settings of boosting, of which each table gets the best."""

MAX_LINKS = {"logistic": 12_000_000}
MAX_LINKS_OTHER = 350_000
"""Predictions of links (rows times configurations of the class variables before) up to which a chain is enumerated."""

MAX_LINKS_ENSEMBLE = {"logistic": 200_000}
MAX_LINKS_ENSEMBLE_OTHER = 80_000
"""The same for each chain of an ensemble."""

MAX_POWERSET = {"logistic": 60, "boosting": 30}
MAX_POWERSET_OTHER = 300
"""Outcomes of the whole table up to which the powerset is run."""

MAX_BOOSTING_ENSEMBLE = 3000
"""Inputs times trees of an iteration, over all class variables, up to which an ensemble of boosted chains is run."""

FLOOR = 1e-15
"""The least probability in the log-loss of plain scikit-learn models, as in its `log_loss` for double precision."""


@dataclass(frozen=True)
class Split:
    """Training and test rows of one fold of a table."""

    X: pd.DataFrame
    Y: pd.DataFrame
    X_test: pd.DataFrame
    Y_test: pd.DataFrame
    n_distinct: int
    """Distinct outcomes of the whole table."""

    @property
    def sizes(self) -> list[int]:
        return [len(self.Y[name].cat.categories) for name in self.Y]

    @property
    def n_links(self) -> int:
        """Predictions of links that the enumeration of a chain in column order takes."""
        return len(self.X_test) * sum(math.prod(self.sizes[:k]) for k in range(len(self.sizes)))


@dataclass(frozen=True)
class Judged:
    """A method with its predictions: the decisions for the Hamming and for the subset loss."""

    method: str
    held_out: HeldOut
    hamming: str | None
    subset: str | None


def make_estimator(name: str, split: Split, setting: str, n_trees: int = N_TREES) -> BaseEstimator:
    """Return an unfitted estimator; `setting` is that of boosting."""
    match name:
        case "logistic":
            return Logistic(C="auto")
        case "extra trees":
            return ExtraTreesClassifier(n_trees, min_samples_leaf=MIN_LEAF)
        case "random forest":
            return RandomForestClassifier(n_trees, min_samples_leaf=MIN_LEAF)
        case "boosting":
            return HistGradientBoostingClassifier(
                max_iter=100,
                max_leaf_nodes=15,
                max_bins=64,
                max_features=min(1.0, 30 / n_inputs(split.X)),
                early_stopping=False,
                **BOOSTING[setting],
            )
    raise ValueError(f"estimator {name!r} is unknown.")


def n_inputs(X: pd.DataFrame) -> int:
    """Return the number of inputs after one-hot encoding."""
    return sum(X[name].nunique() if isinstance(X[name].dtype, pd.CategoricalDtype) else 1 for name in X)


# Units ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unit:
    """What is fitted once.

    Attributes
    ----------
    methods : tuple of str
        The methods that it gives the records of.
    fit : function (split, estimator name, setting, seed) -> model
    judge : function (model, split, estimator name) -> list of Judged
    left_out : function (split, estimator name) -> reason, empty if the unit is run
    estimators : tuple of str
    """

    methods: tuple[str, ...]
    fit: Callable[[Split, str, str, int], Any]
    judge: Callable[[Any, Split, str], list[Judged]]
    estimators: tuple[str, ...] = ("logistic", "extra trees", "random forest", "boosting")
    left_out: Callable[[Split, str], str] = lambda split, estimator: ""


def _exact(method: str) -> Callable[[Any, Split, str], list[Judged]]:
    return lambda model, split, _: [Judged(method, evaluate(model, split.X_test, split.Y_test), "hamming", "subset")]


def _baseline(kind: Any) -> Callable[[Split, str, str, int], Any]:
    def fit(split: Split, estimator: str, setting: str, seed: int) -> Any:
        model = kind(make_estimator(estimator, split, setting), calibrate=True, random_state=seed)
        return model.fit(split.X, split.Y)

    return fit


def _fit_ensemble(split: Split, estimator: str, setting: str, seed: int) -> Any:
    n_chains = 5 if len(split.sizes) > 8 or estimator == "boosting" else 10
    made = make_estimator(estimator, split, setting, N_TREES_ENSEMBLE)
    return ChainEnsemble(made, n_chains=n_chains, calibrate=True, random_state=seed).fit(split.X, split.Y)


def _is_enumerated(split: Split, most: int) -> bool:
    return math.prod(split.sizes) <= MAX_OUTCOMES and split.n_links <= most


def _judge_chain(model: Any, split: Split, estimator: str) -> list[Judged]:
    """Judge greedy predictions as "chain", exact ones as "PCC"; the latter are greedy if there are too many outcomes."""
    if not _is_enumerated(split, MAX_LINKS.get(estimator, MAX_LINKS_OTHER)):
        greedy = evaluate(model, split.X_test, split.Y_test, ["greedy"], marginals=False)
        return [Judged("chain", greedy, "greedy", "greedy"), Judged("PCC", greedy, "greedy", "greedy")]
    found = evaluate(model, split.X_test, split.Y_test, ["hamming", "subset", "greedy"])
    return [Judged("chain", found, "greedy", "greedy"), Judged("PCC", found, "hamming", "subset")]


def _judge_ensemble(model: Any, split: Split, estimator: str) -> list[Judged]:
    if _is_enumerated(split, MAX_LINKS_ENSEMBLE.get(estimator, MAX_LINKS_ENSEMBLE_OTHER)):
        return _exact("ECC")(model, split, estimator)
    vote = evaluate(model, split.X_test, split.Y_test, ["vote"], marginals=False)
    return [Judged("ECC", vote, "vote", "vote")]


def _large_ensemble(split: Split, estimator: str) -> str:
    if estimator != "logistic" and len(split.sizes) > 8:
        return "more than 8 class variables"
    n_trees = sum(size if size > 2 else 1 for size in split.sizes)
    if estimator == "boosting" and n_trees * n_inputs(split.X) > MAX_BOOSTING_ENSEMBLE:
        return f"inputs times trees of an iteration above {MAX_BOOSTING_ENSEMBLE}"
    return ""


def _large_powerset(split: Split, estimator: str) -> str:
    most = MAX_POWERSET.get(estimator, MAX_POWERSET_OTHER)
    return f"more than {most} outcomes" if split.n_distinct > most else ""


def _fit_forest(split: Split, estimator: str, setting: str, seed: int) -> Any:
    return MultiOutputForest(make_estimator(estimator, split, setting).set_params(random_state=seed)).fit(
        split.X, split.Y
    )


def _judge_forest(model: Any, split: Split, estimator: str) -> list[Judged]:
    found = []
    for joint, method in (("marginal", "forest-marginal"), ("votes", "forest-joint")):
        model.set_params(joint=joint)
        found += _exact(method)(model, split, estimator)
    return found


# Five lines of scikit-learn -------------------------------------------------------------------------------------


class PlainForest:
    """One multi-output forest with its defaults; discrete features are indicators."""

    def __init__(self, kind: Any, seed: int):
        self.kind, self.seed = kind, seed

    def fit(self, X: pd.DataFrame, Y: pd.DataFrame) -> PlainForest:
        self.encoder, self.table = discrete_as_indicators(), ClassTable.fit(Y)
        self.forest = self.kind(random_state=self.seed).fit(self.encoder.fit_transform(X), self.table.encode(Y))
        return self

    def held_out(self, X: pd.DataFrame, Y: pd.DataFrame) -> HeldOut:
        proba = self.forest.predict_proba(self.encoder.transform(X))
        marginals = [_all_states(*each) for each in zip(proba, self.forest.classes_, self.table.sizes, strict=True)]
        return _plain_held_out(self.table, self.table.encode(Y), marginals, marginals, marginals)


class PlainBoosting:
    """One `HistGradientBoostingClassifier` for each class variable, in a chain or not, with its defaults."""

    def __init__(self, chain: bool, seed: int):
        self.chain, self.seed = chain, seed

    def fit(self, X: pd.DataFrame, Y: pd.DataFrame) -> PlainBoosting:
        self.table = ClassTable.fit(Y)
        codes, self.models = self.table.encode(Y), []
        for k in range(codes.shape[1]):
            several = len(np.unique(codes[:, k])) > 1
            model = HistGradientBoostingClassifier(random_state=self.seed) if several else DummyClassifier()
            self.models.append(model.fit(self._inputs(X, codes, k), codes[:, k]))
        return self

    def held_out(self, X: pd.DataFrame, Y: pd.DataFrame) -> HeldOut:
        truth, predicted = self.table.encode(Y), np.zeros((len(X), len(self.models)), dtype=np.int64)
        of_truth, of_predicted = [], []
        for k, size in enumerate(self.table.sizes):
            of_predicted.append(self._proba(X, predicted, k, size))
            predicted[:, k] = of_predicted[-1].argmax(axis=1)
            of_truth.append(self._proba(X, truth, k, size) if self.chain else of_predicted[-1])
        marginals = None if self.chain else of_predicted
        return _plain_held_out(self.table, truth, of_truth, of_predicted, marginals)

    def _proba(self, X: pd.DataFrame, codes: np.ndarray, k: int, size: int) -> np.ndarray:
        return _all_states(self.models[k].predict_proba(self._inputs(X, codes, k)), self.models[k].classes_, size)

    def _inputs(self, X: pd.DataFrame, codes: np.ndarray, k: int) -> pd.DataFrame:
        """Return the features and, in a chain, the codes of the class variables before as categories."""
        before = range(k if self.chain else 0)
        sizes = self.table.sizes
        return X.assign(**{f"before {j}": pd.Categorical(codes[:, j], categories=range(sizes[j])) for j in before})


def _all_states(proba: np.ndarray, seen: np.ndarray, size: int) -> np.ndarray:
    """Return probabilities of all states; zero for those without training rows."""
    out = np.zeros((len(proba), size))
    out[:, seen] = proba
    return out


def _plain_held_out(
    table: ClassTable,
    truth: np.ndarray,
    of_truth: Sequence[np.ndarray],
    of_predicted: Sequence[np.ndarray],
    marginals: Sequence[np.ndarray] | None,
) -> HeldOut:
    """Return the predictions of plain models, given the probabilities before true and before predicted states."""
    rows = np.arange(len(truth))
    predicted = np.column_stack([proba.argmax(axis=1) for proba in of_predicted])
    log_prob = sum(np.log(np.maximum(p[rows, y], FLOOR)) for p, y in zip(of_truth, truth.T, strict=True))
    confidence = np.prod([p.max(axis=1) for p in of_predicted], axis=0)
    given = None if marginals is None else list(marginals)
    return HeldOut(table.names, truth, {None: predicted}, {None: confidence}, log_prob, given)


def _plain(method: str, make: Callable[[int], Any]) -> Unit:
    return Unit(
        (method,),
        lambda split, estimator, setting, seed: make(seed).fit(split.X, split.Y),
        lambda model, split, _: [Judged(method, model.held_out(split.X_test, split.Y_test), None, None)],
        ("-",),
    )


def _gbnc(method: str, **options: Any) -> Unit:
    def fit(split: Split, estimator: str, setting: str, seed: int) -> Any:
        return GBNC(**options).fit(split.X, split.Y)

    return Unit((method,), fit, _exact(method), ("-",))


_FORESTS = ("extra trees", "random forest")

UNITS: tuple[Unit, ...] = (
    _gbnc("default"),
    _gbnc("experts=None", experts=None),
    _plain("sklearn ET", lambda seed: PlainForest(ExtraTreesClassifier, seed)),
    _plain("sklearn RF", lambda seed: PlainForest(RandomForestClassifier, seed)),
    Unit(("forest-marginal", "forest-joint"), _fit_forest, _judge_forest, _FORESTS),
    Unit(("BR",), _baseline(BinaryRelevance), _exact("BR")),
    Unit(("chain", "PCC"), _baseline(ClassifierChain), _judge_chain),
    Unit(("CP",), _baseline(ClassPowerset), _exact("CP"), left_out=_large_powerset),
    _plain("sklearn boosting", lambda seed: PlainBoosting(False, seed)),
    _plain("sklearn boosting chain", lambda seed: PlainBoosting(True, seed)),
    Unit(("ECC",), _fit_ensemble, _judge_ensemble, left_out=_large_ensemble),
)
"""All units; within an estimator, cheap ones come first."""
