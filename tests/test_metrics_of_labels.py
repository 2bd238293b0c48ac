"""Balanced accuracy, F-measures and the Jaccard index against scikit-learn's, in all containers; their scorers."""

import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from pmdc import GBNC, BinaryRelevance, ClassifierChain, metrics
from pmdc.datasets import make_network

LABEL_METRICS = [metrics.f1_micro, metrics.f1_macro, metrics.f1_samples, metrics.jaccard]
LABEL_SCORERS = [
    metrics.f1_micro_scorer,
    metrics.f1_macro_scorer,
    metrics.f1_samples_scorer,
    metrics.jaccard_scorer,
]

CONTAINERS = {
    "array": lambda rows: rows,
    "list": lambda rows: rows.tolist(),
    "pandas": lambda rows: pd.DataFrame(rows, columns=["u", "v", "w"]),
    "categories": lambda rows: pd.DataFrame(rows, columns=["u", "v", "w"]).astype("category"),
    "polars": lambda rows: pl.DataFrame(rows.tolist(), schema=["u", "v", "w"], orient="row"),
}


def sklearn_labels(true, pred, weights=None):
    """The four metrics of indicators, with the choice of 1 where nothing is positive."""
    true, pred = np.atleast_2d(np.asarray(true, dtype=int)), np.atleast_2d(np.asarray(pred, dtype=int))
    options = {"sample_weight": weights, "zero_division": 1.0}
    found = [theirs.f1_score(true, pred, average=average, **options) for average in ("micro", "macro", "samples")]
    return [*found, theirs.jaccard_score(true, pred, average="samples", **options)]


# Balanced accuracy --------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_balanced_accuracy_of_each_class_variable(seed, weighted):
    rng = np.random.default_rng(seed)
    n, n_variables = rng.integers(2, 30), rng.integers(1, 5)
    true, pred = np.array(list("abcd"))[rng.integers(0, rng.integers(1, 5), (2, n, n_variables))]
    weights = rng.integers(0, 3, n) + (np.arange(n) == 0) if weighted else None
    kept = np.ones(n, dtype=bool) if weights is None else weights > 0
    each = []
    for t, p in zip(true[kept].T, pred[kept].T, strict=True):
        matrix = theirs.confusion_matrix(t, p, sample_weight=None if weights is None else weights[kept])
        occurs = matrix.sum(axis=1) > 0
        each.append((np.diag(matrix)[occurs] / matrix[occurs].sum(axis=1)).mean())
    found = metrics.balanced_accuracy_by_variable(true, pred, sample_weight=weights)
    assert list(found.values()) == pytest.approx(each)
    assert metrics.balanced_loss(true, pred, sample_weight=weights) == pytest.approx(1 - np.mean(each))


@pytest.mark.parametrize("container", CONTAINERS)
def test_balanced_accuracy_against_scikit_learn_with_missing_cells(container):
    rng = np.random.default_rng(0)
    true, pred = np.array(list("abc"))[rng.integers(0, 3, (2, 60, 3))]
    weights = rng.integers(1, 4, 60).astype(float)
    holey = np.where(rng.random(true.shape) < 0.3, None, true)
    make = CONTAINERS[container]
    each = []
    for k in range(3):
        rows = holey[:, k] != None  # noqa: E711
        each.append(theirs.balanced_accuracy_score(true[rows, k], pred[rows, k], sample_weight=weights[rows]))
    found = metrics.balanced_accuracy_by_variable(make(holey), make(pred), sample_weight=weights)
    assert list(found.values()) == pytest.approx(each)
    assert metrics.balanced_loss(make(holey), make(pred), sample_weight=weights) == pytest.approx(1 - np.mean(each))


def test_balanced_accuracy_of_states_that_are_only_predicted():
    assert metrics.balanced_accuracy_by_variable(["a", "a", "b"], ["a", "c", "b"]) == {"y0": 0.75}
    assert metrics.balanced_loss(["a", "a"], ["a", "a"]) == 0.0
    assert metrics.balanced_loss([1, 1.0, 1, 0], [True, True, True, True]) == 0.5  # one state, by value


def test_balanced_accuracy_where_nothing_is_known():
    true, pred = [["a", None], ["b", None]], [["a", "x"], ["a", "y"]]
    with pytest.warns(UserWarning, match="'y1' has no known state.*balanced accuracy is NaN"):
        found = metrics.balanced_accuracy_by_variable(true, pred)
    assert found["y0"] == 0.5
    assert math.isnan(found["y1"])
    with pytest.warns(UserWarning, match="'y1' has no known state.*left out"):
        assert metrics.balanced_loss(true, pred) == 0.5
    with (
        pytest.warns(UserWarning, match="no known state"),
        pytest.raises(ValueError, match="y_true has no known cell"),
    ):
        metrics.balanced_loss([[None], [None]], [["a"], ["b"]])


# F-measures and the Jaccard index -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_metrics_of_labels_against_scikit_learn(seed, weighted):
    rng = np.random.default_rng(seed)
    n, n_variables = rng.integers(1, 12), rng.integers(2, 6)
    true, pred = (rng.random((2, n, n_variables)) < rng.choice([0.0, 0.2, 0.6])).astype(int)
    weights = rng.integers(0, 3, n) + (np.arange(n) == 0) if weighted else None
    kept = np.arange(n) if weights is None else np.flatnonzero(weights)
    expected = sklearn_labels(true[kept], pred[kept], None if weights is None else weights[kept])
    for metric, value in zip(LABEL_METRICS, expected, strict=True):
        assert metric(true, pred, sample_weight=weights) == pytest.approx(value)
        assert metric(true.astype(bool), pred.astype(float), sample_weight=weights) == pytest.approx(value)
        words = np.array(["no", "yes"])
        named = metric(words[true], words[pred], sample_weight=weights, positive="yes")
        assert named == pytest.approx(value)


@pytest.mark.parametrize("container", CONTAINERS)
def test_metrics_of_labels_with_missing_cells(container):
    rng = np.random.default_rng(1)
    true, pred = rng.integers(0, 2, (2, 50, 3))
    weights = rng.integers(1, 4, 50).astype(float)
    gaps = rng.random(true.shape) < 0.2
    words = np.array(["high", "low"])  # the positive state is "low", the second
    holey = np.where(gaps, None, words[true])
    make = CONTAINERS[container]
    complete = ~gaps.any(axis=1)
    cells = [
        theirs.f1_score(true[~gaps[:, k], k], pred[~gaps[:, k], k], sample_weight=weights[~gaps[:, k]])
        for k in range(3)
    ]
    flat = ~gaps.ravel()
    micro = theirs.f1_score(true.ravel()[flat], pred.ravel()[flat], sample_weight=np.repeat(weights, 3)[flat])
    _, _, samples, jaccard = sklearn_labels(true[complete], pred[complete], weights[complete])
    for metric, value in zip(LABEL_METRICS, (micro, np.mean(cells), samples, jaccard), strict=True):
        assert metric(make(holey), make(words[pred]), sample_weight=weights) == pytest.approx(value)


def test_nothing_positive_is_right():
    nothing = [[0, 0], [0, 0]]
    for metric in LABEL_METRICS:
        assert metric(nothing, nothing) == 1.0
        assert metric(nothing, [[1, 1], [1, 1]]) == 0.0
    assert metrics.jaccard([[0, 0], [1, 1]], [[0, 0], [1, 0]]) == 0.75


def test_which_state_is_positive():
    true, pred = [["b", "x"], ["a", "y"]], [["b", "y"], ["b", "y"]]
    assert metrics.f1_micro(true, pred) == pytest.approx(2 * 2 / (2 * 2 + 2))
    assert metrics.f1_micro(true, pred, positive=["a", "x"]) == 0.0
    declared = pd.DataFrame(true, columns=["u", "v"])
    declared["u"] = pd.Categorical(declared["u"], ["b", "a"])  # now "a" is the second
    predicted = pd.DataFrame(pred, columns=["u", "v"])
    assert metrics.f1_micro(declared, predicted) == pytest.approx(2 * 1 / (2 * 1 + 2))
    only = pd.DataFrame({"u": pd.Categorical(["no", "no"], ["no", "yes"])})
    assert metrics.f1_macro(only, only) == 1.0
    assert metrics.jaccard([["no"], ["no"]], [["no"], ["no"]], positive="yes") == 1.0
    pairs = [[(1,)], [(2,)]]
    assert metrics.f1_micro(pairs, pairs) == 1.0


@pytest.mark.parametrize("metric", LABEL_METRICS)
@pytest.mark.parametrize(
    ("true", "pred", "positive", "words"),
    [
        ([["a"], ["b"]], [["a"], ["c"]], None, "class variable 'y0'.* 3 .*balanced_loss"),
        ([["a"], ["a"]], [["a"], ["a"]], None, "'y0': only the state 'a' occurs.*positive="),
        ([["a"], ["b"]], [["a"], ["b"]], "z", r"positive='z' is not a state of 'y0'.*\['a', 'b'\]"),
        ([[0, 1]], [[0, 1]], [1], r"positive=\[1\].* 2 class variables"),
    ],
)
def test_states_that_do_not_fit(metric, true, pred, positive, words):
    with pytest.raises(ValueError, match=words):
        metric(true, pred, positive=positive)


def test_strings_against_numbers_warn():
    with pytest.warns(UserWarning, match="'y0' holds numbers in y_true .such as 0. and strings in y_pred .such as '0'"):
        assert metrics.f1_micro([0, 0], ["0", "0"]) == 0.0


def test_labels_of_which_nothing_is_known():
    true, pred = [["a", None], ["b", None]], [["a", "x"], ["a", "x"]]
    with pytest.warns(UserWarning, match="'y1' has no known state.*left out"):
        assert metrics.f1_macro(true, pred) == 0.0
    assert metrics.f1_micro(true, pred) == 0.0
    for metric in (metrics.f1_samples, metrics.jaccard):
        with pytest.raises(ValueError, match="y_true has no row whose true outcome is completely known"):
            metric(true, pred)
    for metric in (metrics.f1_macro, metrics.f1_micro):
        with pytest.raises(ValueError, match="y_true has no known cell"):
            metric([[None], [None]], [[0], [1]])


# Scorers ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem():
    data = make_network(200, n_class_variables=3, n_states=2, n_continuous=2, n_discrete=0, random_state=3)
    return data.X, data.Y


@pytest.mark.parametrize("scorer", LABEL_SCORERS, ids=repr)
def test_scorers_evaluate_the_decision_of_their_loss(problem, scorer):
    X, Y = problem
    model = BinaryRelevance().fit(X[:100], Y[:100])
    positive = [states.tolist()[1] for states in model.classes_]
    predicted = model.predict(X[100:], loss=scorer.loss)
    expected = scorer.metric(Y[100:], predicted, positive=positive)
    assert scorer(model, X[100:], Y[100:]) == expected
    assert scorer(make_pipeline(model), X[100:], Y[100:]) == expected
    shuffled = Y[100:][[*Y.columns[1:], Y.columns[0]]]
    assert scorer(model, X[100:], shuffled) == pytest.approx(expected)
    copy = pickle.loads(pickle.dumps(scorer))
    assert repr(copy) == f"pmdc.metrics.{scorer.name}"
    assert getattr(metrics, scorer.name) is scorer
    weights = np.arange(100) % 3
    rows = 100 + np.repeat(np.arange(100), weights)
    if scorer.loss in ("f1_samples", "jaccard"):  # the others decide the rows of a table together
        repeated = scorer(model, X.iloc[rows], Y.iloc[rows])
        assert copy(model, X[100:], Y[100:], sample_weight=weights) == pytest.approx(repeated)


def test_scorers_of_other_classifiers(problem):
    X, Y = problem
    second = [states.tolist()[1] for states in BinaryRelevance().fit(X, Y).classes_]
    indicators = Y.eq(second).astype(int).to_numpy()
    plain = MultiOutputClassifier(LogisticRegression())
    scores = cross_val_score(plain, X, indicators, cv=KFold(2), scoring=metrics.jaccard_scorer, error_score="raise")
    for score, (train, test) in zip(scores, KFold(2).split(X), strict=True):
        predicted = plain.fit(X.iloc[train], indicators[train]).predict(X.iloc[test])
        assert score == theirs.jaccard_score(indicators[test], predicted, average="samples", zero_division=1.0)
    chain = ClassifierChain(loss="greedy").fit(X, Y)
    expected = metrics.f1_micro(Y, chain.predict(X), positive=[states.tolist()[1] for states in chain.classes_])
    assert metrics.f1_micro_scorer(chain, X, Y) == expected


def test_the_balanced_scorer(problem):
    X, Y = problem
    model = GBNC(experts=None, max_parents=1).fit(X[:100], Y[:100])
    predicted = model.predict(X[100:], loss="balanced")
    assert metrics.balanced_accuracy(model, X[100:], Y[100:]) == 1 - metrics.balanced_loss(Y[100:], predicted)
