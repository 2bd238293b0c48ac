"""Metrics against plain loops and scikit-learn's, in all containers; scorers inside scikit-learn's model selection."""

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset, metrics
from pmdc.datasets import make_network
from pmdc.inference import OutcomeDistribution
from pmdc.metrics import (
    accuracy_by_variable,
    brier_score,
    expected_calibration_error,
    hamming_accuracy,
    hamming_loss,
    joint_calibration_error,
    joint_log_loss,
    marginal_log_loss,
    neg_joint_log_loss,
    neg_marginal_log_loss,
    sub_exact_accuracy,
    sub_exact_loss,
    subset_accuracy,
    subset_loss,
)
from pmdc.metrics.scorers import LabelScorer, Scorer
from pmdc.table.classes import ClassTable

DATA = make_network(160, n_class_variables=3, n_states=3, n_continuous=2, n_discrete=0, random_state=1)
X, Y = DATA.X, DATA.Y
LOSSES = [hamming_loss, subset_loss, sub_exact_loss]
SCORERS = [found for name in metrics.__all__ if isinstance(found := getattr(metrics, name), Scorer)]
SCORERS = [scorer for scorer in SCORERS if not isinstance(scorer, LabelScorer)]  # these need binary class variables

STATES = [["low", "high"], [0, 1, 2], [True, False], [1, "one", (1,)]]
"""States of four class variables: strings, integers, booleans, mixed."""


@st.composite
def outcomes(draw, n_tables=2):
    """Tables of equal shape with states of all types, and whole weights."""
    n, K = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rows = st.lists(st.tuples(*(st.sampled_from(states) for states in STATES[:K])), min_size=n, max_size=n)
    weights = st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)
    return *(draw(rows) for _ in range(n_tables)), draw(weights)


@st.composite
def marginals(draw):
    """True codes, probabilities (some of them zero) and weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, sizes = draw(st.integers(1, 15)), draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    proba = [rng.dirichlet(np.full(size, 0.5), size=n) for size in sizes]
    truth = np.column_stack([rng.integers(size, size=n) for size in sizes])
    return truth, proba, [list("abcd")[:size] for size in sizes], rng.integers(0, 4, size=n) + np.eye(n, dtype=int)[0]


def letters(codes):
    return np.array(list("abcd"))[codes]


# Losses of predictions ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(outcomes())
def test_losses_by_loops(tables):
    true, pred, weights = tables
    mistakes = [sum(a != b for a, b in zip(*rows, strict=True)) for rows in zip(true, pred, strict=True)]
    K, total = len(true[0]), sum(weights)
    expected = {
        hamming_loss: sum(w * m / K for w, m in zip(weights, mistakes, strict=True)) / total,
        subset_loss: sum(w * (m > 0) for w, m in zip(weights, mistakes, strict=True)) / total,
        sub_exact_loss: sum(w * (m > 1) for w, m in zip(weights, mistakes, strict=True)) / total,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss, value in expected.items():
            assert loss(true, pred, sample_weight=weights) == pytest.approx(value)
        accuracy = accuracy_by_variable(true, pred, sample_weight=weights)
    assert list(accuracy) == [f"y{k}" for k in range(K)]
    assert np.mean(list(accuracy.values())) == pytest.approx(1 - expected[hamming_loss])


@settings(deadline=None)
@given(outcomes())
def test_weights_are_repetitions(tables):
    true, pred, weights = tables
    repeated = [[row for row, w in zip(rows, weights, strict=True) for _ in range(w)] for rows in (true, pred)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for loss in LOSSES:
            assert loss(true, pred, sample_weight=weights) == pytest.approx(loss(*repeated))


def containers(rows):
    """The same outcomes in every kind of container."""
    names = ["a", "b", "c"]
    frame = pd.DataFrame(rows, columns=names)
    return {
        "list": rows,
        "tuples": [tuple(row) for row in rows],
        "objects": np.array(rows, dtype=object),
        "pandas": frame,
        "categories": frame.astype("category"),
        "integer names": frame.set_axis(range(3), axis=1),
        "polars": pl.DataFrame({name: frame[name].tolist() for name in names}),
        "nullable": frame.convert_dtypes(),
    }


TRUE = [["low", 1, True], ["high", 2, False], ["low", 3, True], ["low", 1, False]]
PRED = [["low", 1, True], ["high", 3, False], ["low", 3, False], ["high", 1, True]]


@pytest.mark.parametrize("kind_true", containers(TRUE))
@pytest.mark.parametrize("kind_pred", containers(PRED))
def test_containers(kind_true, kind_pred):
    if "integer names" in (kind_true, kind_pred) and kind_true != kind_pred:
        frames = {"pandas", "categories", "polars", "nullable"} & {kind_true, kind_pred}
        if frames:
            with pytest.raises(ValueError, match="y_pred lacks the class variable .* by position"):
                hamming_loss(containers(TRUE)[kind_true], containers(PRED)[kind_pred])
            return
    true, pred = containers(TRUE)[kind_true], containers(PRED)[kind_pred]
    assert hamming_loss(true, pred) == pytest.approx(4 / 12)
    assert subset_loss(true, pred) == 3 / 4
    assert sub_exact_loss(true, pred) == 1 / 4
    assert list(accuracy_by_variable(true, pred).values()) == [3 / 4, 3 / 4, 2 / 4]


@pytest.mark.parametrize(
    "convert",
    [list, tuple, np.array, pd.Series, pd.Categorical, pl.Series, pd.Index, lambda y: np.array(y)[:, None]],
)
@pytest.mark.parametrize(
    "y", [(["a", "b", "a"], ["a", "a", "a"]), ([1, 2, 1], [1, 1, 1]), ([1.0, 0.0, 1.0], [1, 1, 1])]
)
def test_one_class_variable(convert, y):
    assert hamming_loss(convert(y[0]), convert(y[1])) == pytest.approx(1 / 3)
    assert subset_loss(convert(y[0]), y[1]) == pytest.approx(1 / 3)
    assert sub_exact_loss(y[0], convert(y[1])) == 0


def test_frames_are_matched_by_name_arrays_by_position():
    true = pd.DataFrame({"a": [0, 1], "b": [1, 1]})
    pred = pd.DataFrame({"b": [1, 1], "a": [0, 1]}, index=[7, 8])
    assert hamming_loss(true, pred) == 0
    assert hamming_loss(true, pl.from_pandas(pred)) == 0
    assert hamming_loss(true, pred.to_numpy()) == 0.5
    assert accuracy_by_variable(true, pred.to_numpy()) == {"a": 0.5, "b": 0.5}
    assert accuracy_by_variable(true.to_numpy(), pred) == {"b": 0.5, "a": 0.5}


def test_categories_compare_by_value():
    true = pd.DataFrame({"a": pd.Categorical(["x", "y"], categories=["x", "y", "z"])})
    pred = pd.DataFrame({"a": pd.Categorical(["x", "y"], categories=["y", "x"], ordered=True)})
    assert subset_loss(true, pred) == 0


def test_columns_of_zeros_and_ones_are_class_variables_like_others():
    true = np.array([[0, 2], [1, 0], [1, 1]])
    assert subset_loss(true, np.array([[0, 1], [1, 0], [1, 1]])) == pytest.approx(1 / 3)
    assert theirs.hamming_loss([[0, 1], [1, 1]], [[0, 0], [1, 1]]) == hamming_loss([[0, 1], [1, 1]], [[0, 0], [1, 1]])
    with pytest.raises(ValueError, match="multiclass-multioutput"):  # why these metrics exist
        theirs.accuracy_score(true, true)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_against_scikit_learn(seed, K):
    rng = np.random.default_rng(seed)
    true, pred, w = rng.integers(2, size=(20, K)), rng.integers(2, size=(20, K)), rng.random(20)
    assert hamming_loss(true, pred, sample_weight=w) == pytest.approx(theirs.hamming_loss(true, pred, sample_weight=w))
    assert subset_loss(true, pred, sample_weight=w) == pytest.approx(theirs.zero_one_loss(true, pred, sample_weight=w))
    y, z = letters(rng.integers(4, size=(2, 20)))
    assert hamming_loss(y, z, sample_weight=w) == pytest.approx(1 - theirs.accuracy_score(y, z, sample_weight=w))


@pytest.mark.parametrize(
    ("true", "pred", "error", "words"),
    [
        ([1, 2, 3], [1, 2], ValueError, "y_true has 3 row.s., y_pred has 2"),
        ([[1, 2]], [[1, 2, 3]], ValueError, "y_true has 2 class variable.s., y_pred has 3"),
        ([1, 2, 3], [[1, 2, 3]], ValueError, "y_true has 3 row.s., y_pred has 1"),
        ([[1, 2], [1]], [[1, 2], [1, 2]], ValueError, "y_true is ragged"),
        ([1, 2], [1, np.nan], ValueError, "y_pred contains NaN"),
        (["x", "x"], pd.DataFrame({"b": ["x", None]}), ValueError, "y_pred contains NaN: column 'b' .* row 1"),
        ([], [], ValueError, "y_true|0 sample"),
        (None, [1], TypeError, "y_true is of type NoneType"),
        ([1], "a", TypeError, "y_pred is of type str"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), ValueError, "y_pred lacks the class variable 'a'.*'b'"),
    ],
)
def test_bad_predictions(true, pred, error, words):
    for function in [*LOSSES, accuracy_by_variable]:
        with pytest.raises(error, match=words):
            function(true, pred)


@pytest.mark.parametrize(
    ("weights", "words"),
    [([1], r"shape \(1,\)"), ([1, -1], "negative"), ([0, 0], "zero for all"), (["a", "b"], "must be numbers")],
)
def test_bad_weights(weights, words):
    with pytest.raises(ValueError, match=f"sample_weight.*{words}"):
        hamming_loss([1, 2], [1, 2], sample_weight=weights)


def test_strings_against_numbers_warn():
    with pytest.warns(UserWarning, match="'y1' holds numbers in y_true .such as 1. and strings in y_pred .such as '1'"):
        assert hamming_loss([["a", 1]], np.array([["a", 1]])) == 0.5


# Losses of marginals ------------------------------------------------------------------------------------------


def marginals_by_loops(truth, proba, weights, loss):
    total = 0.0
    for i in range(len(truth)):
        for k in range(truth.shape[1]):
            if weights[i]:
                total += weights[i] * loss(proba[k][i], truth[i, k])
    return total / (sum(weights) * truth.shape[1])


def calibration_by_loops(confidence, right, weights, n_bins):
    total = 0.0
    for b in range(n_bins):
        low, high = np.linspace(0, 1, n_bins + 1)[[b, b + 1]]
        members = [i for i, c in enumerate(confidence) if (low < c or b == 0) and c <= high and weights[i]]
        if members:
            share = sum(weights[i] for i in members)
            accuracy = sum(weights[i] * right[i] for i in members) / share
            total += share * abs(accuracy - sum(weights[i] * confidence[i] for i in members) / share)
    return total / sum(weights)


@settings(deadline=None)
@given(marginals(), st.integers(1, 12))
def test_marginals_by_loops(problem, n_bins):
    truth, proba, classes, weights = problem
    arguments = letters(truth), proba, classes
    log = marginals_by_loops(truth, proba, weights, lambda p, s: -math.log(p[s]) if p[s] else math.inf)
    brier = marginals_by_loops(truth, proba, weights, lambda p, s: sum((p - np.eye(len(p))[s]) ** 2))
    errors = [
        calibration_by_loops(p.max(axis=1), p.argmax(axis=1) == truth[:, k], weights, n_bins)
        for k, p in enumerate(proba)
    ]
    assert marginal_log_loss(*arguments, sample_weight=weights) == pytest.approx(log)
    assert brier_score(*arguments, sample_weight=weights) == pytest.approx(brier)
    error = expected_calibration_error(*arguments, n_bins=n_bins, sample_weight=weights)
    assert error == pytest.approx(np.mean(errors), abs=1e-12)
    rows = np.repeat(np.arange(len(truth)), weights)
    repeated = letters(truth)[rows], [p[rows] for p in proba], classes
    assert marginal_log_loss(*repeated) == pytest.approx(log)
    assert brier_score(*repeated) == pytest.approx(brier)
    assert expected_calibration_error(*repeated, n_bins=n_bins) == pytest.approx(error, abs=1e-12)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_one_class_variable_against_scikit_learn(seed, size):
    rng = np.random.default_rng(seed)
    proba, w, classes = rng.dirichlet(np.ones(size), 30), rng.random(30), list("abcd")[:size]
    y = letters(rng.integers(size, size=30))
    expected = theirs.log_loss(y, proba, labels=classes, sample_weight=w)
    assert marginal_log_loss(y, proba, classes, sample_weight=w) == pytest.approx(expected)
    assert marginal_log_loss(y[:, None], [proba], [classes], sample_weight=w) == pytest.approx(expected)
    assert marginal_log_loss(y.tolist(), proba.tolist(), np.array(classes), sample_weight=w) == pytest.approx(expected)
    expected = theirs.brier_score_loss(y, proba, labels=classes, sample_weight=w, scale_by_half=False)
    assert brier_score(y, proba, classes, sample_weight=w) == pytest.approx(expected)


def test_calibration_of_constructed_cases():
    def error(right, confidence, **options):
        proba = np.column_stack([confidence, 1 - np.array(confidence)])
        return expected_calibration_error(np.where(right, "x", "y"), proba, ["x", "y"], **options)

    # Sure to 80 %, right in 8 of 10 rows; sure to 90 %, right in half of them.
    assert error([1] * 8 + [0] * 2, [0.8] * 10) == pytest.approx(0)
    assert error([1] * 5 + [0] * 5, [0.9] * 10) == pytest.approx(0.4)
    # Over- and underconfidence cancel within a bin, not between bins.
    mixed = [1] * 5 + [0] * 5 + [1] * 10, [0.9] * 10 + [0.6] * 10
    assert error(*mixed, n_bins=1) == pytest.approx(0)
    assert error(*mixed) == pytest.approx(0.4)
    # Of the confidences 0.55 and 0.6, both in the bin (0.5, 0.6], one is right.
    assert error([1, 0], [0.55, 0.6]) == pytest.approx(0.075)


def test_an_unknown_state_has_probability_zero():
    proba, classes = [[0.25, 0.75], [0.5, 0.5]], ["a", "b"]
    with pytest.warns(UserWarning, match=r"y_true.*1 row.s. hold a state that is not in classes\[0\] \('c'\)"):
        assert marginal_log_loss(["a", "c"], proba, classes) == math.inf
    with pytest.warns(UserWarning, match="not in classes"):  # a row of weight zero is not there
        assert marginal_log_loss(["a", "c"], proba, classes, sample_weight=[1, 0]) == pytest.approx(math.log(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert marginal_log_loss(["a", "b"], [[0.0, 1.0], [0.5, 0.5]], classes) == math.inf
        expected = (2 * 0.75**2 + 0.25 + 0.25 + 1) / 2
        assert brier_score(["a", "c"], proba, classes) == pytest.approx(expected)
        assert expected_calibration_error(["a", "c"], proba, classes) == pytest.approx((0.75 + 0.5) / 2)


@pytest.mark.parametrize(
    ("proba", "classes", "words"),
    [
        (np.full((2, 2), 0.5), [0, 1], "proba is one array, but y_true has 2 class variables.*MultiOutputClassifier"),
        ([np.full((2, 2), 0.5)], [[0, 1]], "proba is a list of 1, but y_true has 2"),
        ([np.full((2, 2), 0.5)] * 2, [[0, 1]], "classes is a list of 1, but y_true has 2"),
        ([np.full((2, 2), 0.5)] * 2, [[0, 1], [0, 1, 2]], r"proba\[1\] has shape \(2, 2\).*must be \(2, 3\)"),
        ([np.full((3, 2), 0.5)] * 2, [[0, 1]] * 2, r"proba\[0\] has shape \(3, 2\)"),
        ([np.full((2, 2), 0.5), np.full((2, 2), 0.4)], [[0, 1]] * 2, r"proba\[1\], row 0 is \[0.4, 0.4\].*add up"),
        ([np.full((2, 2), 0.5), np.full((2, 2), np.nan)], [[0, 1]] * 2, r"proba\[1\], row 0"),
        ([np.full((2, 2), 0.5), np.array([[1.5, -0.5]] * 2)], [[0, 1]] * 2, r"proba\[1\], row 0.*negative"),
        ([np.full((2, 2), 0.5), np.full((2, 2), "a")], [[0, 1]] * 2, r"proba\[1\] must be an array"),
    ],
)
def test_bad_probabilities(proba, classes, words):
    for function in [marginal_log_loss, brier_score, expected_calibration_error]:
        with pytest.raises(ValueError, match=words):
            function([[0, 1], [1, 0]], proba, classes)


@pytest.mark.parametrize("n_bins", [0, 1.5, True, "10"])
def test_bad_bins(n_bins):
    with pytest.raises(ValueError, match="n_bins"):
        expected_calibration_error(["a"], [[1.0]], ["a"], n_bins=n_bins)


# Losses of joint distributions --------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_joint_by_loops(seed, n_bins):
    rng = np.random.default_rng(seed)
    listed = np.array(list(np.ndindex(2, 3)))
    proba, weights = rng.dirichlet(np.full(6, 0.3), 15), rng.integers(1, 4, size=15)
    distribution = OutcomeDistribution(ClassTable.fit(letters(listed)), listed, np.log(proba), np.zeros(15))
    truth, guess = rng.integers(6, size=(2, 15))
    y_true, y_pred = letters(listed[truth]), letters(listed[guess])
    expected = np.average(-np.log(proba[np.arange(15), truth]), weights=weights)
    assert joint_log_loss(y_true, distribution, sample_weight=weights) == pytest.approx(expected)
    for predicted, options in [(proba.argmax(axis=1), {}), (guess, {"y_pred": y_pred})]:
        confidence = proba[np.arange(15), predicted]
        expected = calibration_by_loops(confidence, predicted == truth, weights, n_bins)
        error = joint_calibration_error(y_true, distribution, n_bins=n_bins, sample_weight=weights, **options)
        assert error == pytest.approx(expected, abs=1e-9)


def test_joint_log_loss_of_independent_class_variables_is_the_sum_of_the_marginal_ones():
    model = BinaryRelevance(GaussianNB()).fit(X, Y)
    marginal = marginal_log_loss(Y, model.predict_proba(X), model.classes_)
    assert joint_log_loss(Y, model.predict_joint(X)) == pytest.approx(3 * marginal)


def test_joint_with_unknown_states_and_frames_in_another_order():
    model = GBNC(GaussianNB()).fit(X, Y)
    distribution = model.predict_joint(X)
    assert joint_log_loss(Y[["y2", "y0", "y1"]], distribution) == joint_log_loss(Y, distribution)
    strange = Y.astype(object)
    strange.iloc[0, 1] = "strange"
    with pytest.warns(UserWarning, match="unknown to the model"):
        assert joint_log_loss(strange, distribution) == math.inf
    with pytest.warns(UserWarning, match="unknown to the model"):
        loss = joint_log_loss(strange, distribution, sample_weight=np.r_[0, np.ones(len(Y) - 1)])
    assert loss == pytest.approx(joint_log_loss(Y[1:], model.predict_joint(X[1:])))
    assert 0 <= joint_calibration_error(strange, distribution) <= 1


@pytest.mark.parametrize(("truth", "expected"), [("other", 0.0), ("strange", 1.0)])
def test_an_unknown_prediction_is_right_only_if_it_is_the_truth(truth, expected):
    """Its confidence is 0, so the calibration error is the accuracy."""
    pd = pytest.importorskip("pandas")
    fitted = pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"]})
    distribution = OutcomeDistribution(ClassTable.fit(fitted), [[0, 0]], np.zeros((1, 1)), [0.0])
    y_true = pd.DataFrame({"b": [truth], "a": ["x"]})
    for y_pred in (pd.DataFrame({"a": ["x"], "b": ["strange"]}), [["x", "strange"]]):
        with pytest.warns(UserWarning, match="'b': 1 row"):
            assert joint_calibration_error(y_true, distribution, y_pred=y_pred) == expected


def test_bad_distributions():
    model = GBNC(GaussianNB()).fit(X, Y)
    for function in [joint_log_loss, joint_calibration_error]:
        with pytest.raises(TypeError, match="distribution is of type list: .*predict_joint"):
            function(Y, model.predict_proba(X))
        with pytest.raises(ValueError, match="has 159 row"):
            function(Y[1:], model.predict_joint(X))


# Scorers ------------------------------------------------------------------------------------------------------

MODELS = [
    GBNC(GaussianNB()),
    BinaryRelevance(GaussianNB()),
    ClassifierChain(GaussianNB()),
    ClassPowerset(GaussianNB()),
    make_pipeline(StandardScaler().set_output(transform="pandas"), GBNC(GaussianNB())),
    GridSearchCV(GBNC(GaussianNB()), {"max_parents": [0, 1]}, scoring=neg_joint_log_loss, cv=KFold(2)),
]
PLAIN_MODELS = [MultiOutputClassifier(GaussianNB()), DecisionTreeClassifier(max_depth=2, random_state=0)]


def expected_scores(model, X, Y):
    """All scores of a fitted model, by the functions."""
    model = getattr(model, "best_estimator_", model)
    inner = model[-1] if hasattr(model, "steps") else model
    offered = hasattr(inner, "predict_joint") and inner.loss in ("hamming", "subset")
    decision = model.predict(X, loss="sub-exact") if offered else model.predict(X)
    scores = {"sub_exact_accuracy": 1 - sub_exact_loss(Y, decision)}
    proba = model.predict_proba(X), model.classes_
    for metric in ["marginal_log_loss", "brier_score", "expected_calibration_error"]:
        scores[f"neg_{metric}"] = -getattr(metrics, metric)(Y, *proba)
    return scores


@pytest.mark.parametrize("model", MODELS + PLAIN_MODELS, ids=lambda model: type(model).__name__)
def test_scorers_in_cross_validate(model):
    plain = model in PLAIN_MODELS
    scoring = {repr(scorer): scorer for scorer in SCORERS if not plain or scorer is not neg_joint_log_loss}
    answer = cross_validate(model, X, Y, cv=KFold(2), scoring=scoring, return_estimator=True, error_score="raise")
    for i, (fitted, (_, test)) in enumerate(zip(answer["estimator"], KFold(2).split(X), strict=True)):
        rows = X.iloc[test], Y.iloc[test]
        for name, expected in expected_scores(fitted, *rows).items():
            assert answer[f"test_pmdc.metrics.{name}"][i] == pytest.approx(expected)
        if plain:
            predicted = fitted.predict(rows[0])
            assert answer["test_pmdc.metrics.subset_accuracy"][i] == 1 - subset_loss(rows[1], predicted)
            assert answer["test_pmdc.metrics.hamming_accuracy"][i] == 1 - hamming_loss(rows[1], predicted)


@pytest.mark.parametrize("loss", ["hamming", "subset"])
def test_scorers_ask_for_the_optimal_decision(loss):
    data = make_network(200, n_class_variables=4, n_states=2, n_continuous=1, n_discrete=0, random_state=5)
    model = GBNC(GaussianNB(), loss=loss).fit(data.X, data.Y)
    subset, hamming = model.predict(data.X, loss="subset"), model.predict(data.X, loss="hamming")
    assert not subset.equals(hamming)
    for estimator in [model, make_pipeline(model)]:
        assert subset_accuracy(estimator, data.X, data.Y) == 1 - subset_loss(data.Y, subset)
        assert hamming_accuracy(estimator, data.X, data.Y) == 1 - hamming_loss(data.Y, hamming)
        forgiving = model.predict(data.X, loss="sub-exact")
        assert sub_exact_accuracy(estimator, data.X, data.Y) == 1 - sub_exact_loss(data.Y, forgiving)


def test_a_greedy_chain_is_judged_by_its_greedy_predictions():
    chain = ClassifierChain(GaussianNB()).fit(X, Y)
    greedy = chain.predict(X)
    assert not greedy.equals(chain.predict(X, loss="subset"))
    assert subset_accuracy(chain, X, Y) == 1 - subset_loss(Y, greedy)
    assert hamming_accuracy(chain, X, Y) == 1 - hamming_loss(Y, greedy)
    chain.set_params(loss="hamming")
    assert subset_accuracy(chain, X, Y) == 1 - subset_loss(Y, chain.predict(X, loss="subset"))


def test_plain_make_scorer_judges_predict_as_it_is():
    scorer = theirs.make_scorer(subset_loss, greater_is_better=False)
    model = GBNC(GaussianNB()).fit(X, Y)
    assert scorer(model, X, Y) == -subset_loss(Y, model.predict(X))


@pytest.mark.parametrize("scorer", [subset_accuracy, neg_joint_log_loss, neg_marginal_log_loss], ids=repr)
def test_scorers_in_cross_val_score_with_two_workers(scorer):
    model = GBNC(GaussianNB(), max_parents=1)
    scores = cross_val_score(model, X, Y, cv=KFold(2), scoring=scorer, n_jobs=2, error_score="raise")
    train, test = next(KFold(2).split(X))
    fitted = model.fit(X.iloc[train], Y.iloc[train])
    assert scores[0] == pytest.approx(scorer(fitted, X.iloc[test], Y.iloc[test]))


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_scorers_are_pickled_weighted_and_named(scorer):
    copy = pickle.loads(pickle.dumps(scorer))
    assert repr(copy) == repr(scorer) == f"pmdc.metrics.{scorer.name}"
    assert getattr(metrics, scorer.name) is scorer
    model = GBNC(GaussianNB()).fit(X, Y)
    w = np.arange(len(Y)) % 3
    rows = np.repeat(np.arange(len(Y)), w)
    assert copy(model, X, Y, sample_weight=w) == pytest.approx(scorer(model, X.iloc[rows], Y.iloc[rows]))
    shuffled = Y[["y2", "y0", "y1"]]
    assert scorer(model, X, shuffled) == pytest.approx(scorer(model, X, Y))


def test_grid_search_with_several_scorers_and_weights():
    scoring = {scorer.name: scorer for scorer in SCORERS}
    search = GridSearchCV(
        GBNC(GaussianNB()), {"max_parents": [0, 2]}, scoring=scoring, refit="neg_joint_log_loss", cv=KFold(2)
    )
    w = np.random.default_rng(0).random(len(Y)) + 0.5
    search.fit(X, Y, sample_weight=w)
    train, test = next(KFold(2).split(X))
    model = GBNC(GaussianNB(), max_parents=2).fit(X.iloc[train], Y.iloc[train], sample_weight=w[train])
    expected = neg_joint_log_loss(model, X.iloc[test], Y.iloc[test], sample_weight=w[test])
    assert search.cv_results_["split0_test_neg_joint_log_loss"][1] == pytest.approx(expected)
    assert search.score(X, Y) == pytest.approx(neg_joint_log_loss(search, X, Y))


def test_metadata_routing():
    w = np.random.default_rng(0).random(len(Y)) + 0.5
    model = GBNC(GaussianNB(), max_parents=0)
    train, test = next(KFold(2).split(X))
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
        weighted = subset_accuracy.set_score_request(sample_weight=True)
        scores = cross_val_score(
            model, X, Y, cv=KFold(2), scoring=weighted, params={"sample_weight": w}, error_score="raise"
        )
        model.fit(X.iloc[train], Y.iloc[train], sample_weight=w[train])
    assert scores[0] == pytest.approx(subset_accuracy(model, X.iloc[test], Y.iloc[test], sample_weight=w[test]))
    assert subset_accuracy.get_metadata_routing().score.requests == {"sample_weight": None}


def test_one_class_variable_is_scored_like_scikit_learn():
    features, y = make_classification(120, n_informative=4, n_classes=3, random_state=0)
    for model in [LogisticRegression(), GBNC(GaussianNB()), DecisionTreeClassifier(random_state=0)]:
        for scorer, name in [(subset_accuracy, "accuracy"), (neg_marginal_log_loss, "neg_log_loss")]:
            if isinstance(model, DecisionTreeClassifier) and scorer is neg_marginal_log_loss:
                continue  # its zeros are infinite losses here, and clipped there
            mine, others = (cross_val_score(model, features, y, scoring=s, error_score="raise") for s in (scorer, name))
            np.testing.assert_allclose(mine, others)


def test_classifiers_without_the_answers():
    numbers = Y.apply(lambda column: column.cat.codes)
    with pytest.raises(TypeError, match="neg_joint_log_loss needs .* predict_joint.*MultiOutputClassifier has none"):
        neg_joint_log_loss(MultiOutputClassifier(GaussianNB()).fit(X, Y), X, Y)
    with pytest.raises(TypeError, match="neg_marginal_log_loss needs a classifier with predict_proba"):
        neg_marginal_log_loss(RidgeClassifier().fit(X, numbers["y0"]), X, numbers["y0"])
    with pytest.raises(ValueError, match="y_true has 2 class"):
        hamming_accuracy(GBNC(GaussianNB()).fit(X, Y), X, Y[["y0", "y1"]])
    with pytest.raises(ValueError, match="y_true has 2 class|proba is a list of 3"):
        neg_marginal_log_loss(GBNC(GaussianNB()).fit(X, Y), X, Y[["y0", "y1"]])


def test_reliability_is_the_calibration_error_taken_apart():
    rng = np.random.default_rng(0)
    proba = [rng.dirichlet(np.ones(3), size=80) for _ in range(2)]
    classes = [["a", "b", "c"]] * 2
    truth = np.array(["a", "b", "c"])[rng.integers(0, 3, size=(80, 2))]
    one = metrics.reliability(truth[:, 0], proba[0], classes[0], n_bins=7)
    error = metrics.expected_calibration_error(truth[:, 0], proba[0], classes[0], n_bins=7)
    assert np.sum(one.weight * np.abs(one.accuracy - one.confidence)) == pytest.approx(error)
    both = metrics.reliability(truth, proba, classes, n_bins=7)
    assert both.weight.sum() == pytest.approx(1.0)
    other = metrics.reliability(truth[:, 1], proba[1], classes[1], n_bins=7)
    np.testing.assert_allclose(both.weight, (one.weight + other.weight) / 2)
    weights = rng.integers(0, 3, size=80)
    a = metrics.reliability(truth, proba, classes, sample_weight=weights)
    rows = np.repeat(np.arange(80), weights)
    b = metrics.reliability(truth[rows], [p[rows] for p in proba], classes)
    np.testing.assert_allclose(a.accuracy, b.accuracy)
