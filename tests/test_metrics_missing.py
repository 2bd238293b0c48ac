"""Metrics with missing cells in the true outcomes, against their definitions."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import KFold, cross_val_score

from pmdc import GBNC, BinaryRelevance, ClassifierChain, metrics
from pmdc.datasets import make_network
from pmdc.evaluation.held_out import evaluate
from pmdc.evaluation.verdict import RowLosses, with_balanced
from pmdc.learners import NaiveBayes

STATES = np.array(["a", "b", "c"], dtype=object)
CONTAINERS = {
    "array": lambda rows: rows,
    "list": lambda rows: rows.tolist(),
    "pandas": lambda rows: pd.DataFrame(rows, columns=["u", "v", "w"]),
    "pandas strings": lambda rows: pd.DataFrame(rows, columns=["u", "v", "w"]).astype("string"),
    "categories": lambda rows: pd.DataFrame(rows, columns=["u", "v", "w"]).astype("category"),
    "polars": lambda rows: pl.DataFrame(rows.tolist(), schema=["u", "v", "w"], orient="row"),
}


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    true = STATES[rng.integers(3, size=(40, 3))]
    pred = STATES[rng.integers(3, size=(40, 3))]
    pred = np.where(rng.random(true.shape) < 0.5, true, pred)
    gaps = rng.random(true.shape) < 0.3
    gaps[:2] = [[True] * 3, [False] * 3]
    holey = np.where(gaps, None, true)
    proba = [rng.dirichlet(np.ones(3), size=40) for _ in range(3)]
    return true, holey, pred, proba, rng.integers(0, 4, size=40).astype(float)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_predictions(problem, container, weighted):
    _, holey, pred, _, weights = problem
    weights = weights if weighted else np.ones(len(pred))
    make = CONTAINERS[container]
    options = {"sample_weight": weights if weighted else None}
    rows = list(zip(holey.tolist(), pred.tolist(), weights, strict=True))
    cells = [(w, t != p) for true, guess, w in rows for t, p in zip(true, guess, strict=True) if t is not None]
    expected = sum(w * bad for w, bad in cells) / sum(w for w, _ in cells)
    assert metrics.hamming_loss(make(holey), make(pred), **options) == pytest.approx(expected)
    complete = [
        (w, sum(t != p for t, p in zip(true, guess, strict=True))) for true, guess, w in rows if None not in true
    ]
    total = sum(w for w, _ in complete)
    expected = sum(w * (bad > 0) for w, bad in complete) / total
    assert metrics.subset_loss(make(holey), make(pred), **options) == pytest.approx(expected)
    expected = sum(w * (bad > 1) for w, bad in complete) / total
    assert metrics.sub_exact_loss(make(holey), make(pred), **options) == pytest.approx(expected)
    accuracy = list(metrics.accuracy_by_variable(make(holey), make(pred), **options).values())
    for k in range(3):
        known = [i for i in range(len(holey)) if holey[i, k] is not None]
        assert accuracy[k] == pytest.approx(np.average((holey == pred)[known, k], weights=weights[known]))


@pytest.mark.parametrize("container", CONTAINERS)
def test_losses_of_marginals(problem, container):
    _, holey, _, proba, weights = problem
    truth, classes = CONTAINERS[container](holey), [STATES] * 3
    logs, squares, total = 0.0, 0.0, 0.0
    for i, k in [(i, k) for i in range(40) for k in range(3) if holey[i, k] is not None]:
        hit = holey[i, k] == STATES
        logs -= weights[i] * math.log(proba[k][i][hit].item())
        squares += weights[i] * ((proba[k][i] - hit) ** 2).sum()
        total += weights[i]
    options = {"sample_weight": weights}
    assert metrics.marginal_log_loss(truth, proba, classes, **options) == pytest.approx(logs / total)
    assert metrics.brier_score(truth, proba, classes, **options) == pytest.approx(squares / total)
    each = []
    for k in range(3):
        rows = [i for i in range(40) if holey[i, k] is not None]
        alone = holey[rows, k].tolist(), proba[k][rows], STATES
        each.append(metrics.expected_calibration_error(*alone, sample_weight=weights[rows]))
    found = metrics.expected_calibration_error(truth, proba, classes, **options)
    assert found == pytest.approx(np.mean(each))
    bins = metrics.reliability(truth, proba, classes, **options)
    cells = [(i, k) for i in range(40) for k in range(3) if holey[i, k] is not None]
    pooled = [holey[c] for c in cells], np.array([proba[k][i] for i, k in cells]), STATES
    expected = metrics.reliability(*pooled, sample_weight=[weights[i] for i, _ in cells])
    for own, other in zip(bins, expected, strict=True):
        np.testing.assert_allclose(own, other)


def test_numbers_with_nan():
    assert metrics.hamming_loss([[0.0, 1.0], [np.nan, 1.0]], [[0, 0], [1, 1]]) == pytest.approx(1 / 3)
    assert metrics.hamming_loss(pd.DataFrame({"u": [1, pd.NA]}, dtype="Int64"), [[1], [2]]) == 0.0
    assert metrics.hamming_loss(np.array([0.5, np.nan, 1.5]), [0.5, 0.5, 0.5]) == 0.5  # fractions are states here


def test_nothing_known():
    pred = [["a", "b"], ["a", "b"]]
    with pytest.raises(ValueError, match="y_true has no known cell"):
        metrics.hamming_loss([[None, None]] * 2, pred)
    for metric in (metrics.subset_loss, metrics.sub_exact_loss):
        with pytest.raises(ValueError, match="y_true has no row whose true outcome is completely known"):
            metric([["a", None], [None, "b"]], pred)
    with pytest.raises(ValueError, match="completely known"):  # the only complete row has no weight
        metrics.subset_loss([["a", "b"], [None, "b"]], pred, sample_weight=[0, 1])
    with pytest.warns(UserWarning, match="class variable 'y1' has no known state"):
        accuracy = metrics.accuracy_by_variable([["a", None], ["b", None]], pred)
    assert accuracy["y0"] == 0.5
    assert math.isnan(accuracy["y1"])
    proba, classes = [[[1.0, 0.0]] * 2] * 2, [["a", "b"]] * 2
    with pytest.warns(UserWarning, match="'y_true1' has no known state.*mean of the others"):
        assert metrics.expected_calibration_error([["a", None], ["b", None]], proba, classes) == 0.5
    with pytest.raises(ValueError, match="NaN: column"):  # a prediction is never missing
        metrics.hamming_loss(pred, [["a", None], ["a", "b"]])


@pytest.fixture(scope="module")
def fitted():
    data = make_network(300, random_state=0)
    Y = pd.DataFrame(np.asarray(data.Y), columns=[f"c{k}" for k in range(4)])
    model = GBNC(experts=None, max_parents=1).fit(data.X[:200], Y[:200])
    rng = np.random.default_rng(1)
    true = Y[200:].reset_index(drop=True).astype(object)
    gaps = rng.random(true.shape) < 0.3
    gaps[:2] = [[True] * 4, [False] * 4]
    return model, data.X[200:], true, true.mask(gaps, None)


def test_joint_losses(fitted):
    model, X, true, holey = fitted
    joint = model.predict_joint(X)
    every = joint.enumerate()
    codes = model.class_table_.encode(holey, missing="mark")
    rows = []
    for i, row in enumerate(codes):
        if (row >= 0).any():
            agree = ((row == -2) | (row == every.outcomes)).all(axis=1)
            rows.append(-math.log(np.exp(every.log_p[i][agree]).sum()))
    assert metrics.joint_log_loss(holey, joint) == pytest.approx(np.mean(rows))
    complete = np.flatnonzero(holey.notna().all(axis=1))
    expected = metrics.joint_calibration_error(true.iloc[complete], joint.rows(complete))
    assert metrics.joint_calibration_error(holey, joint) == pytest.approx(expected)
    pred = model.predict(X)
    expected = metrics.joint_calibration_error(true.iloc[complete], joint.rows(complete), y_pred=pred.iloc[complete])
    assert metrics.joint_calibration_error(holey, joint, y_pred=pred) == pytest.approx(expected)
    nothing = holey.mask(np.ones(holey.shape, dtype=bool), None)
    with pytest.raises(ValueError, match="y_true has no row with a known cell"):
        metrics.joint_log_loss(nothing, joint)


def test_scores_follow(fitted):
    model, X, _, holey = fitted
    assert model.score(X, holey) == 1 - metrics.hamming_loss(holey, model.predict(X))
    assert metrics.hamming_accuracy(model, X, holey) == 1 - metrics.hamming_loss(holey, model.predict(X))
    pred = model.predict(X, loss="subset")
    assert metrics.subset_accuracy(model, X, holey) == 1 - metrics.subset_loss(holey, pred)
    assert metrics.neg_joint_log_loss(model, X, holey) == -metrics.joint_log_loss(holey, model.predict_joint(X))
    for name in ("neg_marginal_log_loss", "neg_brier_score", "neg_expected_calibration_error", "sub_exact_accuracy"):
        assert math.isfinite(getattr(metrics, name)(model, X, holey))


def test_evaluation_agrees_with_the_metrics(fitted):
    model, X, _, holey = fitted
    held_out = with_balanced(evaluate(model, X, holey), model.frequencies_)
    losses = RowLosses.of(held_out).means()
    balanced = model.predict(X, loss="balanced")
    assert losses.balanced_loss.value == pytest.approx(metrics.balanced_loss(holey, balanced))
    assert losses.hamming_loss.value == pytest.approx(metrics.hamming_loss(holey, model.predict(X)))
    pred = model.predict(X, loss="subset")
    assert losses.subset_loss.value == pytest.approx(metrics.subset_loss(holey, pred))
    assert losses.joint_log_loss.value == pytest.approx(metrics.joint_log_loss(holey, model.predict_joint(X)))
    proba = model.predict_proba(X)
    expected = metrics.expected_calibration_error(holey, proba, model.classes_)
    assert held_out.calibration_error() == pytest.approx(expected)
    expected = metrics.joint_calibration_error(holey, model.predict_joint(X))
    assert held_out.joint_calibration_error("subset") == pytest.approx(expected)


@pytest.mark.parametrize("baseline", [BinaryRelevance(), ClassifierChain()])
def test_log_prob_of_known_cells(fitted, baseline):
    _, X, true, holey = fitted
    joint = baseline.fit(X, true).predict_joint(X)
    every, codes = joint.enumerate(), baseline.class_table_.encode(holey, missing="mark")
    agree = ((codes[:, None] == -2) | (codes[:, None] == every.outcomes)).all(axis=2)
    np.testing.assert_allclose(joint.log_prob(holey), np.log((np.exp(every.log_p) * agree).sum(axis=1)), atol=1e-9)
    assert Counter(joint.log_prob(holey) > -1e-12)[True] >= 1  # nothing known: probability one


@pytest.mark.parametrize("container", ["array", "list", "pandas", "polars"])
def test_sets_of_states_are_missing(problem, container):
    _, holey, pred, proba, weights = problem
    weak = holey.copy()
    for i, cell in enumerate(np.argwhere(holey == None)):  # noqa: E711
        weak[tuple(cell)] = [None, {"a", "b"}, frozenset("bc")][i % 3]
    known = tuple(np.argwhere(holey != None)[5])  # noqa: E711
    weak[known] = {holey[known]}  # one state is that state
    schema = dict.fromkeys("uvw", pl.Object)
    make = (
        CONTAINERS[container]
        if container != "polars"
        else lambda rows: pl.DataFrame(rows.tolist(), schema, orient="row")
    )
    options = {"sample_weight": weights}
    for metric in (metrics.hamming_loss, metrics.subset_loss, metrics.sub_exact_loss):
        assert metric(make(weak), pred, **options) == metric(holey, pred, **options)
    for metric in (metrics.marginal_log_loss, metrics.brier_score, metrics.expected_calibration_error):
        assert metric(make(weak), proba, [STATES] * 3, **options) == metric(holey, proba, [STATES] * 3, **options)
    with pytest.raises(ValueError, match="y_pred, column .*is a set of possible states"):
        metrics.hamming_loss(holey, make(weak))


def test_sets_of_states_after_a_fit(fitted):
    model, X, _, holey = fitted
    weak = holey.copy()
    for i, (row, k) in enumerate(np.argwhere(holey.isna())):
        weak.iat[row, k] = [None, {"a", "b"}, frozenset("bc")][i % 3]
    joint = model.predict_joint(X)
    assert metrics.joint_log_loss(weak, joint) == metrics.joint_log_loss(holey, joint)
    assert metrics.joint_calibration_error(weak, joint) == metrics.joint_calibration_error(holey, joint)
    assert (joint.log_prob(weak) == joint.log_prob(holey)).all()
    assert model.score(X, weak) == model.score(X, holey)
    for name in ("neg_marginal_log_loss", "neg_joint_log_loss", "hamming_accuracy", "subset_accuracy"):
        assert getattr(metrics, name)(model, X, weak) == getattr(metrics, name)(model, X, holey)
    assert evaluate(model, X, weak).calibration_error() == evaluate(model, X, holey).calibration_error()
    with pytest.raises(ValueError, match="column 'c.', row .*is a set of possible states.*leave the row out"):
        model.calibrate_sets(X, weak.where(weak.notna(), "a"))


def test_cross_validation_with_weak_labels():
    data = make_network(90, n_class_variables=2, random_state=0)
    Y = data.Y.astype(object)
    for row in range(0, 90, 3):
        Y.iat[row, row % 2] = {"a", "b"}
    scores = cross_val_score(GBNC(NaiveBayes(), experts=None, max_parents=0), data.X, Y, cv=KFold(3))
    assert np.isfinite(scores).all()
