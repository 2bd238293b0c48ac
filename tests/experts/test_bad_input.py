"""Experts that cannot be used are refused with their name and value; few rows and rare states are not."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from pmdc import GBNC
from pmdc._support.parallel import workers
from pmdc.experts.out_of_fold import ExpertFits, fit_experts
from pmdc.experts.recipes import ForestRecipe
from pmdc.metrics import joint_log_loss
from problems import training_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 0] > 0]).astype(int)


class Answers(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are changed by a function."""

    def __init__(self, change=None):
        self.change = change

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
        return p if self.change is None else self.change(p)


class Refuses(GaussianNB):
    """A classifier that cannot be fitted on one state."""

    def fit(self, X, y, sample_weight=None):
        if len(np.unique(y)) == 1:
            raise ValueError("only one class")
        return super().fit(X, y, sample_weight)


class Raises(Answers):
    def fit(self, X, y):
        raise ArithmeticError("no inverse")


@dataclass
class Unhashable(Answers):
    change: object = None


def fail(p):
    raise RuntimeError("out of order")


# Parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "experts",
    ["foo", [], (), 3, True, GaussianNB(), GaussianNB, {"a"}, {"y0": "foo"}, {"y0": []}, {"y1": GaussianNB()}],
    ids=str,
)
def test_no_list_of_experts(experts):
    value = next(iter(experts.values())) if isinstance(experts, dict) else experts
    with pytest.raises(ValueError, match=re.escape(f"experts={value!r} ")):
        GBNC(experts=experts).fit(X, Y)


@pytest.mark.parametrize(
    ("expert", "error"),
    [
        (GaussianNB, TypeError),
        (None, TypeError),
        ("auto", TypeError),
        ([GaussianNB()], TypeError),
        (LinearSVC(), TypeError),
        (LinearRegression(), TypeError),
        (StandardScaler(), TypeError),
    ],
    ids=str,
)
@pytest.mark.parametrize("dictionary", [False, True])
def test_no_classifier_with_probabilities(expert, error, dictionary):
    experts = [GaussianNB(), expert]
    with pytest.raises(error, match=f"experts: {re.escape(repr(expert))}"):
        GBNC(experts={"y0": experts, "y1": None} if dictionary else experts).fit(X, Y)


@pytest.mark.parametrize("value", ["x", None, True, 1])
def test_unknown_expert_models(value):
    with pytest.raises(ValueError, match=re.escape(f"expert_models={value!r}")):
        GBNC(expert_models=value).fit(X, Y)


@pytest.mark.parametrize(("parameter", "value"), [("experts", None), ("experts", "auto"), ("estimator", GaussianNB())])
def test_a_name_that_is_no_class_variable(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter} names 'vote'.*'y0', 'y1'"):
        GBNC(**{parameter: {"y0": None, "vote": value}}).fit(X, Y)


def test_a_class_in_a_dict_of_estimators():
    with pytest.raises(TypeError, match="estimator=<class .*GaussianNB"):
        GBNC({"y0": GaussianNB}, experts=None).fit(X, Y)


@pytest.mark.parametrize(
    "expert", [make_pipeline(StandardScaler(), LogisticRegression()), KNeighborsClassifier()], ids=["Pipeline", "KNN"]
)
def test_an_expert_that_does_not_accept_weights(expert):
    with pytest.raises(TypeError, match=f"experts: sample_weight .*{type(expert).__name__}"):
        GBNC(experts=[expert]).fit(X, Y, np.ones(40))
    assert GBNC(experts=[expert], max_parents=0).fit(X, Y).experts_["y0"][0].used, "without weights it is fine"


def test_a_failed_fit_changes_nothing():
    model = GBNC(experts=[GaussianNB()]).fit(X, Y)
    before = model.predict_proba(X)
    model.set_params(experts=[Raises()])
    with pytest.raises(ValueError, match="experts: Raises"):
        model.fit(X, Y)
    np.testing.assert_array_equal(before, model.predict_proba(X))


# Answers ------------------------------------------------------------------------------------------------------


def with_nan(p):
    p[-1, 0] = np.nan
    return p


@pytest.mark.parametrize(
    ("change", "error", "what"),
    [
        (with_nan, FloatingPointError, "NaN"),
        (lambda p: p + np.inf, FloatingPointError, "infinite"),
        (lambda p: p[:, :1], TypeError, r"shape \(4, 1\) instead of \(4, 2\)"),
        (lambda p: p[1:], TypeError, r"shape \(3, 2\) instead of \(4, 2\)"),
        (lambda p: p[:, 0], TypeError, r"shape \(4,\) instead of \(4, 2\)"),
        (lambda p: [p, p], TypeError, r"shape \(2, 4, 2\) instead of \(4, 2\)"),
        (lambda p: None, TypeError, r"shape \(\) instead of \(4, 2\)"),
        (lambda p: 2 * p, TypeError, "sums to 2"),
        (lambda p: 0 * p, TypeError, "sums to 0"),
        (lambda p: p + np.array([0.6, -0.6]), TypeError, "not probabilities"),
        (lambda p: np.full(p.shape, "much"), ValueError, "much"),
        (csr_array, ValueError, "4 rows"),
        (fail, ValueError, "RuntimeError: out of order"),
    ],
)
def test_answers_that_are_no_probabilities(change, error, what):
    with pytest.raises(error, match=f"experts: Answers.predict_proba .*{what}"):
        GBNC(experts=[Answers(change)]).fit(X, Y)


def test_answers_may_be_lists_or_integers():
    model = GBNC(experts=[Answers(lambda p: np.eye(p.shape[1], dtype=int)[[0] * len(p)].tolist())]).fit(X, Y)
    np.testing.assert_allclose(np.sum(model.predict_proba(X), axis=2), 1.0)


def test_an_expert_that_raises_in_fit():
    with pytest.raises(ValueError, match="experts: Raises .*36 rows with 2 states .ArithmeticError: no inverse"):
        GBNC(experts=[Raises()]).fit(X, Y)


def test_more_neighbours_than_rows():
    with pytest.raises(ValueError, match="experts: KNeighborsClassifier.*n_neighbors = 100"):
        GBNC(experts=[KNeighborsClassifier(100)]).fit(X, Y)


def test_other_classes_than_those_of_the_rows():
    class Flipped(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            super().fit(X, y, sample_weight).classes_ = np.array([1, 0])
            return self

    with pytest.raises(TypeError, match=r"experts: Flipped has classes_=\[1 0\]"):
        GBNC(experts=[Flipped()]).fit(X, Y)


def test_experts_need_neither_random_state_nor_hash():
    model = GBNC(experts=[Unhashable(), GaussianNB()], random_state=0).fit(X, Y)
    assert [score.name for score in model.experts_["y0"]] == ["Unhashable", "GaussianNB"]
    assert model.experts_["y0"][1].used


# Few rows and states ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 9, 10])
@pytest.mark.parametrize("experts", [[GaussianNB()], "auto"], ids=["one", "auto"])
def test_few_rows(n_rows, experts):
    for models in ("folds", "refit"):
        if experts == "auto" and (models == "refit" or n_rows in (5, 10)):
            continue  # slow
        model = GBNC(experts=experts, expert_models=models).fit(X[:n_rows], Y[:n_rows])
        proba = model.predict_proba(X)
        assert [p.shape[1] for p in proba] == [len(np.unique(y)) for y in Y[:n_rows].T]
        for p in proba:
            assert np.isfinite(p).all()
            assert (p > 0).all()
            np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert all(bool(scores) == (n_rows > 1) for scores in model.experts_.values()), "none for a single row"


@pytest.mark.parametrize("experts", ["auto", [GaussianNB()], [Refuses()]], ids=["auto", "GaussianNB", "Refuses"])
def test_a_class_variable_with_one_state(experts):
    one = np.column_stack([np.zeros(40, dtype=int), Y[:, 1]])
    model = GBNC(experts=experts).fit(X, one)
    np.testing.assert_allclose(model.predict_proba(X)[0], 1.0)
    assert np.isfinite(model.predict_joint(X).log_prob(one)).all()


def test_a_fold_with_one_state_needs_no_expert():
    rare = Y.copy()
    rare[:, 0] = 0
    rare[7, 0] = 1
    model = GBNC(experts=[Refuses()]).fit(X, rare)
    proba = model.predict_proba(X)[0]
    assert (proba > 0).all()
    assert proba[:, 1].mean() < 0.2


def test_a_state_with_one_row_is_possible_by_default():
    rare = Y.copy()
    rare[7, 1] = 2
    model = GBNC().fit(X, rare)
    assert all((p > 0).all() for p in model.predict_proba(X))
    assert np.isfinite(joint_log_loss(rare, model.predict_joint(X)))


def test_constant_features_give_frequencies():
    model = GBNC(max_parents=0).fit(np.ones((40, 2)), Y)
    for k, p in enumerate(model.predict_proba(np.ones((1, 2)))):
        np.testing.assert_allclose(p[0], np.bincount(Y[:, k]) / 40, atol=0.1)


def test_discrete_features_alone():
    letters = np.array(list("abc"))[RNG.integers(0, 3, 40)]
    model = GBNC(experts=[GaussianNB(var_smoothing=1e-2)]).fit(letters[:, None], Y)
    with pytest.warns(UserWarning, match="'d'"):
        unseen = model.predict_proba([["d"]])
    np.testing.assert_allclose(np.sum(unseen, axis=2), 1.0)


def test_huge_features():
    GBNC(max_parents=0).fit(1e300 * X[:10], Y[:10])


def test_times_in_seconds():
    seconds = np.floor(RNG.uniform(0, 100, size=(200, 1)))
    y = (seconds[:, 0] % 50 < 25).astype(int)
    rows = [training_rows(shift + seconds, y[:, None], (2,), 1) for shift in (0.0, 1.7e9)]
    recipe = ForestRecipe("extra trees", "extra trees", 10, 1)
    with workers(None) as run:
        near, far = (
            fit_experts(ExpertFits.of(some, [[recipe]], 5, 0, run), False).scores[0][0].log_loss for some in rows
        )
    assert far < near + 0.1
