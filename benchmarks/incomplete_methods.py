"""How `incomplete.py` fits and judges: models of this library, imputers and scikit-learn models that take NaN."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from incomplete_tables import Split
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pmdc.evaluation.forests import discrete_as_indicators
from pmdc.evaluation.held_out import evaluate

FLOOR = 1e-6
"""The least probability of a state in the log-losses."""

MIN_LEAF = 3

IMPUTERS: dict[str, Callable[[], Any]] = {
    "median": lambda: SimpleImputer(strategy="median", keep_empty_features=True),
    "iterative": lambda: make_pipeline(StandardScaler(), IterativeImputer(random_state=0, keep_empty_features=True)),
    "knn": lambda: make_pipeline(StandardScaler(), KNNImputer(keep_empty_features=True)),
}
Values = dict[str, Any]


def fitted(model: Any, X: pd.DataFrame, Y: pd.DataFrame) -> tuple[Any, Values]:
    """Fit a model and return it with the CPU seconds and how EM went."""
    started = time.process_time()
    model.fit(X, Y)
    values: Values = {"cpu": time.process_time() - started, "n_train": len(X)}
    em = getattr(model, "em_", None)
    if em is not None:
        values |= {"em_rounds": em.n_rounds, "em_converged": em.converged}
        values |= {"em_pruned": em.pruned, "n_completions": em.n_completions}
    return model, values


def losses(model: Any, X: pd.DataFrame, Y: pd.DataFrame) -> Values:
    """Return the losses of a model of this library."""
    held_out = evaluate(model, X, Y)
    assert held_out.log_prob is not None
    worst = -np.log(FLOOR)
    joint, limit = -held_out.log_prob, Y.shape[1] * worst
    return {
        "log_loss": np.minimum(joint, limit).mean(),
        "floored": int((joint > limit).sum()),
        "marginal_log_loss": np.minimum(held_out.log_losses(), worst).sum(axis=1).mean(),
        "hamming": held_out.wrong("hamming").mean(),
        "subset": held_out.wrong("subset").any(axis=1).mean(),
        "n_test": len(X),
    }


def losses_of_marginals(proba: list[np.ndarray], Y: pd.DataFrame) -> Values:
    """Return the losses of marginals, with columns for all states."""
    truth = np.column_stack([Y[name].cat.codes for name in Y])
    found = np.column_stack([p[np.arange(len(Y)), codes] for p, codes in zip(proba, truth.T, strict=True)])
    wrong = np.column_stack([p.argmax(axis=1) for p in proba]) != truth
    return {
        "marginal_log_loss": -np.log(np.maximum(found, FLOOR)).sum(axis=1).mean(),
        "hamming": wrong.mean(),
        "subset": wrong.any(axis=1).mean(),
        "n_test": len(Y),
    }


def impute(imputer: Any, X: pd.DataFrame, X_test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fill numbers by an imputer, and discrete features by the most frequent value of the training rows."""
    numbers = list(X.select_dtypes("number"))
    frequent = {name: X[name].mode()[0] for name in X if name not in numbers}
    imputer.fit(X[numbers])
    filled = [table.fillna(frequent) for table in (X, X_test)]
    for table in filled:
        table[numbers] = imputer.transform(table[numbers])
    return filled[0], filled[1]


def forest(split: Split, X_test: pd.DataFrame, min_leaf: int) -> tuple[list[np.ndarray], float]:
    """Return the probabilities of one multi-output forest, and the CPU seconds of its fit."""
    encoder, codes = discrete_as_indicators(), np.column_stack([split.Y[name].cat.codes for name in split.Y])
    started = time.process_time()
    model = RandomForestClassifier(min_samples_leaf=min_leaf, random_state=0)
    model.fit(encoder.fit_transform(split.X), codes)
    spent = time.process_time() - started
    found = zip(model.predict_proba(encoder.transform(X_test)), model.classes_, split.Y, strict=True)
    return [all_states(proba, seen, split.Y[name]) for proba, seen, name in found], spent


def boosting(split: Split, X_test: pd.DataFrame, _: int) -> tuple[list[np.ndarray], float]:
    """Return the probabilities of one boosting model for each class variable, and the CPU seconds of their fits."""
    found, spent = [], 0.0
    for name in split.Y:
        codes, started = split.Y[name].cat.codes, time.process_time()
        model = HistGradientBoostingClassifier(random_state=0) if codes.nunique() > 1 else DummyClassifier()
        model.fit(split.X, codes)
        spent += time.process_time() - started
        found.append(all_states(model.predict_proba(X_test), model.classes_, split.Y[name]))
    return found, spent


def all_states(proba: np.ndarray, seen: np.ndarray, column: pd.Series) -> np.ndarray:
    """Return probabilities of all states; zero for those without training rows."""
    out = np.zeros((len(proba), len(column.cat.categories)))
    out[:, seen.astype(int)] = proba
    return out
