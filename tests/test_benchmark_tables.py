"""Real tables whose training folds lack some states: held-out log-loss stays finite."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.datasets import load

ESTIMATORS = {
    "logistic": None,
    "naive-bayes": GaussianNB(),
    "forest": RandomForestClassifier(10, min_samples_leaf=5),
}


def fold_without_a_state(data):
    """A fold whose training rows lack some state that its test rows have."""
    everything = np.arange(len(data.X))
    for test in data.folds:
        train = np.setdiff1d(everything, test)
        if any(set(data.Y[c].iloc[test]) - set(data.Y[c].iloc[train]) for c in data.Y):
            return train, test
    return np.setdiff1d(everything, data.folds[0]), data.folds[0]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", ["thyroid", "waterquality"])
def test_held_out_log_loss_is_finite(name, estimator, data_dir):
    data = load(name, data_dir)
    train, test = fold_without_a_state(data)
    keep = list(data.X.select_dtypes("number")) + list(data.X.select_dtypes("category"))[:4]
    model = GBNC(ESTIMATORS[estimator], max_parents=1, max_discrete_parents=1, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*could not be fitted on.*")
        model.fit(data.X[keep].iloc[train], data.Y.iloc[train])
    log_prob = model.predict_joint(data.X[keep].iloc[test]).log_prob(data.Y.iloc[test])
    assert np.isfinite(log_prob).all()
    assert len(log_prob) == len(test)


def test_some_training_fold_of_thyroid_lacks_a_state(data_dir):
    data = load("thyroid", data_dir)
    train, test = fold_without_a_state(data)
    assert any(set(data.Y[c].iloc[test]) - set(data.Y[c].iloc[train]) for c in data.Y)


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
        model = GBNC(GaussianNB(), max_candidates=400).fit(data.X[rows], data.Y[rows])
    assert model.structure_.status.startswith("optimal over the ")
    assert model.structure_.status.endswith("of 527436 parent sets that max_candidates=400 leaves")
