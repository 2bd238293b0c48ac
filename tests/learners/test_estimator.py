"""Local models from any classifier: parts, states, zeros, seeds and failures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from pmdc.learners import LocalTask, make_learner
from pmdc.learners.clones import random_states
from pmdc.learners.options import Options
from pmdc.learners.partition import Partition
from pmdc.learners.smoothing import fill_zeros
from pmdc.learners.tasks import rows_by_part
from problems import numbers

N = 200


def table(seed=0, n=N, n_states=3, parents=2):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, n_states, size=n), *(rng.integers(0, 2, size=n) for _ in range(parents))])
    X = rng.normal(size=(n, 3)) + codes[:, [0]]
    return X, codes, (n_states, *[2] * parents)


def task(codes, sizes, parents):
    return LocalTask(0, codes[:, 0], sizes[0], Partition(codes, parents, sizes))


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(fit_intercept=False), GaussianNB(), DecisionTreeClassifier(max_depth=1, random_state=0)],
)
def test_each_part_has_its_own_model(estimator):
    X, codes, sizes = table()
    learner = make_learner(estimator, numbers(X), np.ones(N), options=Options(random_state=0))
    models = learner.fit(task(codes, sizes, (1, 2)))
    prepared = learner.prepare(numbers(X))
    total = 0.0
    partition = Partition(codes, (1, 2), sizes)
    for number in range(partition.n_parts):
        rows = partition.part == number
        reference = estimator.fit(X[rows], codes[rows, 0])
        expected = reference.predict_proba(X)
        answer = np.exp(models.log_proba(prepared, np.full(N, number)))
        whole = (expected > 1e-15).all(axis=1)  # elsewhere zeros are filled
        assert whole.mean() > 0.3
        np.testing.assert_allclose(answer[whole], expected[whole], rtol=1e-9)
        own = models.log_proba(prepared[rows], np.full(rows.sum(), number))
        total += own[np.arange(rows.sum()), codes[rows, 0]].sum()
    assert learner.log_likelihood(task(codes, sizes, (1, 2))) == pytest.approx(total)


def test_without_features_the_frequencies_are_learned():
    _, codes, sizes = table()
    learner = make_learner(RandomForestClassifier(), numbers(np.empty((N, 0))), np.ones(N))
    models = learner.fit(task(codes, sizes, (1,)))
    for number in (0, 1):
        frequencies = np.bincount(codes[codes[:, 1] == number, 0], minlength=3) / (codes[:, 1] == number).sum()
        answer = np.exp(models.log_proba(np.empty((1, 0)), np.array([number])))
        np.testing.assert_allclose(answer[0], frequencies)


def test_absent_states_and_absent_parts_are_marked():
    X, codes, sizes = table()
    codes[codes[:, 1] == 0, 0] = 2
    models = make_learner(None, numbers(X), np.ones(N)).fit(task(codes, sizes, (1,)))
    answer = models.log_proba(X[:2], np.array([0, -1]))
    assert answer[0].tolist() == [-np.inf, -np.inf, 0.0]
    assert np.isneginf(answer[1]).all()


@given(
    p=arrays(float, (4, 3), elements=st.sampled_from([0.0, 0.1, 1.0, 5.0])),
    counts=arrays(float, 3, elements=st.floats(0.5, 20)),
)
def test_fill_zeros_gives_a_distribution_without_zeros(p, counts):
    p[p.sum(axis=1) == 0] = 1.0
    p = p / p.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        filled = np.exp(fill_zeros(np.log(p), counts / counts.sum(), counts.sum()))
    assert (filled > 0).all()
    np.testing.assert_allclose(filled.sum(axis=1), 1.0)
    order = np.argsort(p[0])
    floor = counts / counts.sum() / (1 + counts.sum())
    if (p[0] == 0).any():
        np.testing.assert_allclose(filled[0][p[0] < floor], floor[p[0] < floor])
    assert (np.diff(filled[0][order][p[0][order] >= floor[order]]) >= -1e-12).all()
    zero_free = (p > 0).all(axis=1)
    np.testing.assert_allclose(filled[zero_free], p[zero_free])


def test_a_tree_that_answers_zero_keeps_the_score_finite():
    X, codes, sizes = table()
    learner = make_learner(RandomForestClassifier(3), numbers(X), np.ones(N), options=Options(random_state=0))
    assert np.isfinite(learner.log_likelihood(task(codes, sizes, (1,))))
    assert (learner.fit(task(codes, sizes, ())).log_proba(X, np.zeros(N, dtype=int)) > -np.inf).all()


def test_random_states_depend_on_the_task_alone():
    X, codes, sizes = table()

    def answer(parents, seed):
        learner = make_learner(RandomForestClassifier(5), numbers(X), np.ones(N), options=Options(random_state=seed))
        return learner.log_likelihood(task(codes, sizes, parents))

    first = answer((1,), 0)
    answer((1, 2), 0)
    assert answer((1,), 0) == first
    assert answer((1,), 1) != first


def test_an_estimators_own_random_state_is_respected():
    nested = make_pipeline(PCA(), DecisionTreeClassifier(random_state=3))
    assert random_states(nested) == {"decisiontreeclassifier__random_state": 3, "pca__random_state": None}
    X, codes, sizes = table()
    given = make_learner(DecisionTreeClassifier(random_state=3), numbers(X), np.ones(N))
    assert given.fit(task(codes, sizes, ())).models[0].classifier.random_state == 3
    partly = make_learner(nested, numbers(X), np.ones(N))
    fitted = partly.fit(task(codes, sizes, ())).models[0].classifier
    assert fitted[-1].random_state == 3
    assert fitted[0].random_state is not None
    derived = make_learner(
        DecisionTreeClassifier(random_state=3), numbers(X), np.ones(N), options=Options(random_state=0)
    )
    assert derived.fit(task(codes, sizes, ())).models[0].classifier.random_state != 3


def test_a_part_too_small_for_the_estimator_keeps_its_frequencies():
    X, codes, sizes = table()
    codes[:, 1] = 0
    codes[:3, 1] = 1
    codes[:3, 0] = [0, 1, 1]
    learner = make_learner(KNeighborsClassifier(5), numbers(X), np.ones(N))
    with pytest.warns(UserWarning, match="KNeighborsClassifier could not be fitted on 1 of 2 parts.*n_neighbors"):
        models = learner.fit(task(codes, sizes, (1,)))
    np.testing.assert_allclose(np.exp(models.log_proba(X[:1], np.array([1]))[0, :2]), [1 / 3, 2 / 3])


def test_with_all_rows_in_one_part_the_estimators_error_comes_through():
    X, codes, sizes = table(n=4)
    learner = make_learner(KNeighborsClassifier(5), numbers(X), np.ones(4))
    with pytest.raises(ValueError, match="n_neighbors"):
        learner.fit(task(codes, sizes, ()))


def test_estimators_that_cannot_serve():
    X, _, _ = table()
    with pytest.raises(TypeError, match="LinearSVC.* has no predict_proba.*CalibratedClassifierCV"):
        make_learner(LinearSVC(), numbers(X), np.ones(N))
    with pytest.raises(TypeError, match=r"LinearRegression\(\) is a regressor; give a classifier"):
        make_learner(LinearRegression(), numbers(X), np.ones(N))
    with pytest.raises(TypeError, match="sample_weight was given, but fit of estimator=KNeighborsClassifier"):
        make_learner(KNeighborsClassifier(), numbers(X), np.ones(N), options=Options(weighted=True))


@pytest.mark.parametrize("wrong", [LogisticRegression, "logistic", 3])
def test_what_is_no_classifier(wrong):
    X, _, _ = table()
    with pytest.raises(TypeError, match="estimator=.* must be an instance"):
        make_learner(wrong, numbers(X), np.ones(N))


class Odd(LogisticRegression):
    """Answers in a way that no classifier should."""

    def __init__(self, factor=1.0, columns=None):
        super().__init__()
        self.factor, self.columns = factor, columns

    def predict_log_proba(self, X):
        return np.log(self.factor * self.predict_proba(X))[:, : self.columns]


@pytest.mark.parametrize(
    ("estimator", "message"),
    [(Odd(factor=1.1), "Odd .*sum to 1.1"), (Odd(columns=1), r"Odd .*shape \(200, 1\)")],
)
def test_answers_that_are_no_probabilities(estimator, message):
    X, codes, sizes = table()
    with pytest.raises(TypeError, match=message):
        make_learner(estimator, numbers(X), np.ones(N)).fit(task(codes, sizes, ()))


def test_tiny_probabilities_are_raised_to_the_machine_precision():
    log_proba = np.array([[0.0, -1e9], [np.log(0.3), np.log(0.7)]])
    filled = fill_zeros(log_proba, np.array([0.9, 0.1]), 100.0)
    np.testing.assert_allclose(np.exp(filled[0]), [1.0, np.finfo(float).eps])
    np.testing.assert_array_equal(filled[1], log_proba[1])


def test_rows_by_part():
    part = np.array([2, -1, 0, 2, 0])
    assert {number: rows.tolist() for number, rows in rows_by_part(part)} == {0: [2, 4], 2: [0, 3]}
