"""Real tables whose training folds lack some states: held-out log-loss stays finite."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.datasets import load
from pmdc.learners import Logistic

PAPER = {"criterion": "bic", "conditioning": "partition"}
ESTIMATORS = {
    "logistic": Logistic(),
    "naive-bayes": GaussianNB(),
    "forest": RandomForestClassifier(10, min_samples_leaf=5),
}


def fold_without_a_state(data):
    """Training and test rows such that some state of the test rows has no training row.

    A fold that is so by itself if there is one, otherwise one made so by leaving out rows of the rarest state.
    """
    everything = np.arange(len(data.X))
    for test in data.folds:
        train = np.setdiff1d(everything, test)
        if any(set(data.Y[c].iloc[test]) - set(data.Y[c].iloc[train]) for c in data.Y):
            return train, test
    counts = {(c, state): n for c in data.Y for state, n in data.Y[c].value_counts().items() if n > 0}
    column, state = min(counts, key=counts.get)
    rare = np.flatnonzero(data.Y[column] == state)
    test = next(test for test in data.folds if np.isin(rare, test).any())
    return np.setdiff1d(np.setdiff1d(everything, test), rare), test


@pytest.mark.parametrize("name", ["thyroid", "waterquality"])
def test_the_training_rows_lack_a_state(name, data_dir):
    data = load(name, data_dir)
    train, test = fold_without_a_state(data)
    assert not np.isin(train, test).any()
    assert any(set(data.Y[c].iloc[test]) - set(data.Y[c].iloc[train]) for c in data.Y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", ["thyroid", "waterquality"])
def test_held_out_log_loss_is_finite(name, estimator, data_dir):
    """With all features; of thyroid's half a million parent sets the best single parents are combined."""
    data = load(name, data_dir)
    train, test = fold_without_a_state(data)
    model = GBNC(ESTIMATORS[estimator], max_parents=2, max_candidates=210, random_state=0, **PAPER)
    check_finite(model, data, train, test)


@pytest.mark.parametrize(("name", "estimator"), [("thyroid", "naive-bayes"), ("waterquality", "logistic")])
def test_held_out_log_loss_is_finite_with_held_out_scores(name, estimator, data_dir):
    data = load(name, data_dir)
    train, test = fold_without_a_state(data)
    model = GBNC(ESTIMATORS[estimator], max_parents=1)
    check_finite(model, data, train[:: 1 + len(train) // 500], test)


def check_finite(model, data, train, test):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*could not be fitted on.*|.*more than max_candidates.*")
        warnings.filterwarnings("ignore", message=".*not seen in fit.*")
        model.fit(data.X.iloc[train], data.Y.iloc[train])
        log_prob = model.predict_joint(data.X.iloc[test]).log_prob(data.Y.iloc[test])
    assert len(log_prob) == len(test)
    assert np.isfinite(log_prob).all()
    # Finite in earnest: no class variable costs more than the machine precision.
    assert log_prob.min() > 40 * len(data.Y.columns) * -1


@pytest.mark.parametrize("model", [BinaryRelevance(), ClassifierChain(), ClassPowerset(GaussianNB())], ids=repr)
def test_baselines_are_finite_too(model, data_dir):
    data = load("thyroid", data_dir)
    train, test = fold_without_a_state(data)
    rows = np.union1d(train[::10], train[:50])
    model.fit(data.X.iloc[rows], data.Y.iloc[rows])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was not seen in fit.*|.*hold a value.*")
        assert np.isfinite(model.predict_joint(data.X.iloc[test]).log_prob(data.Y.iloc[test])).all()


def test_restricted_candidates_on_thyroid_say_over_what_they_are_exact(data_dir):
    data = load("thyroid", data_dir)
    rows = slice(0, 1500)
    with pytest.warns(UserWarning, match="527436 parent sets .* more than max_candidates=400"):
        model = GBNC(GaussianNB(), max_candidates=400, **PAPER).fit(data.X[rows], data.Y[rows])
    assert model.structure_.status.startswith("optimal over the ")
    assert model.structure_.status.endswith("of 527436 parent sets kept by max_candidates=400")
