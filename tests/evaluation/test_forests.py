"""Multi-output forests: their joint distributions against plain loops over the trees of scikit-learn."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from oracles import all_outcomes
from pmdc import metrics
from pmdc.datasets import make_network
from pmdc.evaluation.forests import MultiOutputForest
from pmdc.evaluation.held_out import evaluate

DATA = make_network(260, n_class_variables=3, n_states=3, n_continuous=3, n_discrete=1, random_state=3)
X, Y = DATA.X[:200], DATA.Y[:200]
X_TEST, Y_TEST = DATA.X[200:], DATA.Y[200:]
N_TREES = 12

FORESTS = {
    "random forest": RandomForestClassifier(N_TREES, min_samples_leaf=4, random_state=0),
    "extra trees": ExtraTreesClassifier(N_TREES, random_state=0),
}


def by_hand(forest):
    """The probability of each outcome, shape (n, 27), by votes and by marginals."""
    model = MultiOutputForest(forest).fit(X, Y)
    inputs, plain = model._encoder.transform(X_TEST), model._forest
    codes = np.column_stack([Y[name].cat.codes for name in Y])
    frequencies = [(np.bincount(column, minlength=3) + 1 / 3) / 201 for column in codes.T]
    marginals = [
        (N_TREES * p + q) / (N_TREES + 1) for p, q in zip(plain.predict_proba(inputs), frequencies, strict=True)
    ]
    each = [tree.predict_proba(inputs) for tree in plain.estimators_]
    outcomes = all_outcomes((3, 3, 3))
    independent = np.column_stack([np.prod([marginals[k][:, y[k]] for k in range(3)], axis=0) for y in outcomes])
    trees = [np.column_stack([np.prod([p[k][:, y[k]] for k in range(3)], axis=0) for y in outcomes]) for p in each]
    return outcomes, (np.sum(trees, axis=0) + independent) / (N_TREES + 1), independent


@pytest.mark.parametrize("forest", FORESTS.values(), ids=FORESTS)
@pytest.mark.parametrize("joint", ["votes", "marginal"])
def test_the_joint_distribution(forest, joint):
    outcomes, votes, independent = by_hand(forest)
    expected = votes if joint == "votes" else independent
    found = MultiOutputForest(forest, joint).fit(X, Y).predict_joint(X_TEST)
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    for number, outcome in enumerate(outcomes):
        log_prob = found.log_prob_codes(np.tile(outcome, (len(X_TEST), 1)))
        np.testing.assert_allclose(np.exp(log_prob), expected[:, number], rtol=1e-5)
    for k, marginal in enumerate(found.marginals()):
        for state in range(3):
            np.testing.assert_allclose(marginal[:, state], expected[:, outcomes[:, k] == state].sum(axis=1), rtol=1e-5)
    mode, log_prob = found.mode_codes()
    np.testing.assert_allclose(np.exp(log_prob), expected.max(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found.log_prob_codes(mode), log_prob)
    np.testing.assert_allclose(found.enumerate().marginals(), found.marginals(), rtol=1e-5)
    draws = found.sample_codes(2000, np.random.RandomState(0))
    assert np.abs((draws[:, :, 0] == 0).mean(axis=1) - found.marginals()[0][:, 0]).max() < 0.06


@pytest.mark.parametrize("joint", ["votes", "marginal"])
def test_the_evaluator_has_all_losses(joint):
    model = MultiOutputForest(FORESTS["random forest"], joint).fit(X, Y)
    found = evaluate(model, X_TEST, Y_TEST)
    for loss in ("hamming", "subset"):
        expected = metrics.hamming_loss(Y_TEST, model.predict(X_TEST, loss=loss))
        assert found.wrong(loss).mean() == pytest.approx(expected)
    assert -found.log_prob.mean() == pytest.approx(metrics.joint_log_loss(Y_TEST, model.predict_joint(X_TEST)))
    assert 0 < found.joint_calibration_error("subset") < 1


def test_states_without_rows_are_not_impossible():
    kept = (Y["y0"] != "a").to_numpy()
    model = MultiOutputForest(FORESTS["extra trees"]).fit(X[kept], Y[kept])
    assert np.isfinite(model.predict_joint(X_TEST).log_prob(Y_TEST)).all()
    for marginal in model.predict_proba(X_TEST):
        np.testing.assert_allclose(marginal.sum(axis=1), 1, rtol=1e-6)


def test_one_class_variable():
    model = MultiOutputForest(FORESTS["extra trees"]).fit(X, Y[["y1"]])
    found = evaluate(model, X_TEST, Y_TEST[["y1"]])
    np.testing.assert_allclose(found.log_losses()[:, 0], -found.log_prob, rtol=1e-5)
