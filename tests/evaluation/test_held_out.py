"""The one evaluator of held-out rows agrees with the metrics, for every kind of classifier."""

import numpy as np
import pytest

from pmdc import GBNC, ClassifierChain, metrics
from pmdc.datasets import make_network
from pmdc.evaluation import held_out
from pmdc.evaluation.held_out import evaluate
from pmdc.evaluation.methods import PlainMultiOutput
from pmdc.learners import NaiveBayes

DATA = make_network(260, n_class_variables=3, random_state=3)
X, Y = DATA.X[:200], DATA.Y[:200]
X_TEST, Y_TEST = DATA.X[200:], DATA.Y[200:]


@pytest.mark.parametrize("batch", [7, 2048])
def test_it_agrees_with_the_metrics(monkeypatch, batch):
    monkeypatch.setattr(held_out, "BATCH_ROWS", batch)
    model = GBNC(NaiveBayes(), max_parents=1).fit(X, Y)
    found = evaluate(model, X_TEST, Y_TEST)
    proba, joint = model.predict_proba(X_TEST), model.predict_joint(X_TEST)
    for loss in ("hamming", "subset"):
        predicted = model.predict(X_TEST, loss=loss)
        assert found.wrong(loss).mean() == pytest.approx(metrics.hamming_loss(Y_TEST, predicted))
        assert found.wrong(loss).any(axis=1).mean() == pytest.approx(metrics.subset_loss(Y_TEST, predicted))
        error = metrics.joint_calibration_error(Y_TEST, joint, y_pred=predicted)
        assert found.joint_calibration_error(loss) == pytest.approx(error)
    assert -found.log_prob.mean() == pytest.approx(metrics.joint_log_loss(Y_TEST, joint))
    assert found.log_losses().mean() == pytest.approx(metrics.marginal_log_loss(Y_TEST, proba, model.classes_))
    error = metrics.expected_calibration_error(Y_TEST, proba, model.classes_)
    assert found.calibration_error() == pytest.approx(error)


def test_a_state_that_the_model_does_not_know_is_wrong_and_impossible():
    model = GBNC(NaiveBayes(), max_parents=1).fit(X, Y)
    odd = Y_TEST.astype(object)
    odd.iloc[0, 1] = "never seen"
    found = evaluate(model, X_TEST, odd)
    assert found.wrong("hamming")[0].tolist()[1]
    assert found.log_prob[0] == -np.inf
    assert found.log_losses()[0, 1] == np.inf
    assert np.isfinite(found.log_prob[1:]).all()


def test_other_decisions_come_from_predict():
    chain = ClassifierChain(NaiveBayes()).fit(X, Y)
    found = evaluate(chain, X_TEST, Y_TEST, ["greedy"])
    fast = evaluate(chain, X_TEST, Y_TEST, ["greedy"], marginals=False)
    assert fast.marginals is None
    assert fast.log_prob.tolist() == found.log_prob.tolist()
    assert found.predicted["greedy"].tolist() == chain.class_table_.encode(chain.predict(X_TEST)).tolist()


def test_a_classifier_without_a_joint_distribution_and_without_rows_of_a_state():
    kept = (Y.iloc[:, 0] != Y.iloc[0, 0]).to_numpy()
    model = PlainMultiOutput(NaiveBayes()).fit(X[kept], Y[kept])
    found = evaluate(model, X_TEST, Y_TEST, [None])
    assert found.log_prob is None
    for marginal, states in zip(found.marginals, model.classes_, strict=True):
        assert marginal.shape[1] == len(states)
        np.testing.assert_allclose(marginal.sum(axis=1), 1)
