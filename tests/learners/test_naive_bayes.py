"""`NaiveBayes`: scikit-learn's numbers from sufficient statistics, numbers and categories together."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator

from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import load, make_network
from pmdc.learners import LocalTask, NaiveBayes, make_learner
from pmdc.learners.clones import EstimatorLearner
from pmdc.learners.naive_bayes.naive_bayes import NaiveBayesLearner
from pmdc.learners.options import Options
from pmdc.learners.partition import Partition
from pmdc.learners.registry import ENGINES
from pmdc.learners.tasks import root_task
from pmdc.table.features import Features
from problems import numbers


@pytest.mark.parametrize(
    "check", [pytest.param(check, id=check.func.__name__) for _, check in estimator_checks_generator(NaiveBayes())]
)
def test_scikit_learns_own_checks(check):
    check(NaiveBayes())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
@pytest.mark.parametrize("var_smoothing", [1e-9, 0.1])
def test_the_numbers_of_scikit_learn(weighted, offset, scale, var_smoothing):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, size=300)
    X = scale * (rng.normal(size=(300, 5)) * rng.uniform(0.3, 2.0, size=(4, 5))[y] + 0.5 * y[:, None] + offset)
    weights = rng.uniform(0.1, 3.0, size=300) if weighted else np.ones(300)
    theirs = GaussianNB(var_smoothing=var_smoothing).fit(X, y, weights).predict_log_proba(X)
    learner = make_learner(
        GaussianNB(var_smoothing=var_smoothing), numbers(X), weights, options=Options(backoff="none")
    )
    assert isinstance(learner, NaiveBayesLearner)
    ours = learner.fit(root_task(0, y, 4)).log_proba(learner.X, np.zeros(300, dtype=np.int64))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    if var_smoothing < 1e-6:
        np.testing.assert_allclose(NaiveBayes().fit(X, y, weights).predict_log_proba(X), theirs, rtol=1e-6, atol=1e-6)


def test_smoothing_is_relative_to_each_feature():
    """scikit-learn's rule would add 1e-9 of the large variance to the small one, which hides the feature."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=400)
    small, large = 1e-6 * (rng.normal(size=400) + 2 * y), 1e6 * rng.normal(size=400)
    X = np.column_stack([small, large])
    assert GaussianNB().fit(X, y).score(X, y) < 0.6
    assert NaiveBayes().fit(X, y).score(X, y) > 0.8
    log_proba = NaiveBayes(var_smoothing=0.01).fit(X, y).predict_log_proba(X)
    for scale in (1.0, 1e-9, 1e9):
        other = NaiveBayes(var_smoothing=0.01).fit(X * [scale, 1.0], y).predict_log_proba(X * [scale, 1.0])
        np.testing.assert_allclose(other, log_proba, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", [NaiveBayes(0.01), NaiveBayes()])
def test_weights_are_repetitions(estimator):
    rng = np.random.default_rng(0)
    y, times = rng.integers(0, 3, size=60), rng.integers(1, 5, 60)
    X = rng.normal(size=(60, 3)) + y[:, None]
    one = estimator.fit(X, y, times).predict_log_proba(X)
    other = estimator.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict_log_proba(X)
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_feature_that_is_constant_in_a_part_says_nothing_there():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, size=(80, 2))
    X = rng.normal(size=(80, 2)) + codes[:, :1]
    X[codes[:, 1] == 1, 0] = 0.3
    learner = make_learner(NaiveBayes(), numbers(X), np.ones(80))
    models = learner.fit(LocalTask(0, codes[:, 0], 2, Partition(codes, (1,), (2, 2))))
    part = codes[:, 1] == 1
    alone = GaussianNB().fit(X[part, 1:], codes[part, 0]).predict_log_proba(X[part, 1:])
    for value in (0.3, 7.0):
        asked = X[part].copy()
        asked[:, 0] = value
        answer = models.log_proba(learner.prepare(numbers(asked)), np.ones(part.sum(), dtype=np.int64))
        np.testing.assert_allclose(answer, alone, atol=1e-7)


def test_an_offset_changes_nothing():
    X, y = load_iris(return_X_y=True)
    X = np.round(X * 1024) / 1024  # so that the sum with the offset is exact
    shifted = NaiveBayes().fit(X + 2.0**30, y).predict_log_proba(X + 2.0**30)
    np.testing.assert_allclose(shifted, NaiveBayes().fit(X, y).predict_log_proba(X), atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("backoff", ["parents", "none", "paper"])
def test_the_engine_is_the_loop(weighted, backoff):
    rng = np.random.default_rng(1)
    n = 400
    codes = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 4, n), rng.integers(0, 3, n)])
    X = rng.normal(size=(n, 3)) + codes[:, [0]] * rng.normal(size=3)
    X[codes[:, 1] == 3] = 0.5  # a part in which no feature varies
    weights = rng.uniform(0.5, 2.0, size=n) if weighted else np.ones(n)
    options = Options(weighted=weighted, backoff=backoff)
    engine = make_learner(GaussianNB(), numbers(X), weights, options=options)
    loop = EstimatorLearner(GaussianNB(), numbers(X), weights, options=options)
    assert isinstance(engine, NaiveBayesLearner)
    new = numbers(rng.normal(size=(50, 3)))
    for parents in [(), (1,), (2,), (1, 2)]:
        if backoff != "paper" and 1 in parents:
            with pytest.warns(UserWarning, match="GaussianNB could not be fitted"):
                expected = loop.fit(LocalTask(0, codes[:, 0], 3, Partition(codes, parents, (3, 4, 3))))
        else:
            expected = loop.fit(LocalTask(0, codes[:, 0], 3, Partition(codes, parents, (3, 4, 3))))
        task = LocalTask(0, codes[:, 0], 3, Partition(codes, parents, (3, 4, 3)))
        models = engine.fit(task)
        for part in range(-1, task.partition.n_parts):
            where = np.full(50, part)
            np.testing.assert_allclose(
                models.log_proba(engine.prepare(new), where), expected.log_proba(loop.prepare(new), where), atol=1e-8
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert engine.log_likelihood(task) == pytest.approx(loop.log_likelihood(task), rel=1e-10)


def test_discrete_inputs_are_categorical():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, size=200)
    codes = (rng.random(size=(200, 4)) * [2, 3, 4, 5]).astype(int)
    codes[:, 0] = np.where(rng.random(200) < 0.7, y % 2, codes[:, 0])
    codes[:5] = [1, 2, 3, 4]
    X = pd.DataFrame(codes).astype("category").rename(columns="c{}".format)
    for alpha in (0.5, 1.0, 3.0):
        theirs = CategoricalNB(alpha=alpha).fit(codes, y)
        ours = NaiveBayes(alpha=alpha).fit(X, y)
        np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(codes), atol=1e-10)


def test_numbers_and_categories_multiply():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, size=300)
    number = rng.normal(size=300) + y
    letter = np.where(rng.random(300) < 0.8, np.array(["a", "b"])[y], "c")
    both = NaiveBayes().fit(pd.DataFrame({"number": number, "letter": letter}), y)
    gaussian = GaussianNB().fit(number[:, None], y)
    codes = np.searchsorted(["a", "b", "c"], letter)[:, None]
    categorical = CategoricalNB().fit(codes, y)
    joint = gaussian.predict_log_proba(number[:, None]) + categorical.predict_log_proba(codes)
    joint -= np.log(np.bincount(y) / 300)
    joint -= np.log(np.exp(joint).sum(axis=1, keepdims=True))
    table = pd.DataFrame({"number": number, "letter": letter})
    np.testing.assert_allclose(both.predict_log_proba(table), joint, atol=1e-8)


def test_a_value_never_seen_says_nothing():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"number": rng.normal(size=50), "letter": ["a", "b"] * 25})
    y = rng.integers(0, 2, size=50)
    model = NaiveBayes().fit(X, y)
    with pytest.warns(UserWarning, match="column 'letter'.*not seen"):
        answer = model.predict_proba(X.assign(letter="z"))
    np.testing.assert_allclose(answer, GaussianNB().fit(X[["number"]], y).predict_proba(X[["number"]]), atol=1e-9)


def test_both_paths_choose_the_same_network(monkeypatch):
    data = make_network(400, n_class_variables=4, random_state=3)
    settings = {"criterion": "bic", "conditioning": "partition"}
    engine = GBNC(GaussianNB(), **settings).fit(data.X, data.Y)
    monkeypatch.setattr("pmdc.learners.registry.ENGINES", ENGINES[-1:])
    loop = GBNC(GaussianNB(), **settings).fit(data.X, data.Y)
    assert engine.structure_.parents == loop.structure_.parents
    for a, b in zip(engine.predict_proba(data.X), loop.predict_proba(data.X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.benchmark_data
def test_mixed_inputs_help_the_baselines(data_dir):
    """flare1 has discrete features alone; Gaussians on indicators lose on it, see docs/benchmark.md."""
    data = load("flare1", data_dir)
    test = data.folds[0]
    train = np.setdiff1d(np.arange(len(data.X)), test)
    score = {}
    for estimator in (NaiveBayes(), GaussianNB()):
        model = BinaryRelevance(estimator).fit(data.X.iloc[train], data.Y.iloc[train])
        score[type(estimator)] = model.score(data.X.iloc[test], data.Y.iloc[test])
    assert score[NaiveBayes] > score[GaussianNB] + 0.3


SIZES = (3, 4, 50)


def table(kind, rng, n=60):
    """Inputs, and codes of three discrete columns, of which the first is the class variable."""
    codes = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 4, n), rng.integers(0, 3, n)])
    X = rng.normal(size=(n, 4)) * rng.uniform(0.3, 3.0, 4) + codes[:, [0]] * rng.normal(size=4)
    if kind == "offset":
        X += [0.0, 1e4, -3e5, 10.0]
    if kind == "constant columns":
        X = np.hstack([X, np.full((n, 60), 0.1)])
        X[7, 1] = 1e5  # without this row the greatest variance, and all that is added to the others, is far smaller
    if kind == "many columns":
        X = np.hstack([X, rng.normal(size=(n, 300)) * np.geomspace(1e-3, 1e3, 300)])
    if kind == "few rows":
        codes[:, 2] += 3 * rng.integers(0, 12, n)
        codes[:2, 2] = 40, 41  # two parts of one row
    if kind == "equal rows":
        X[codes[:, 1] == 0] = 0.3  # a part in which no input varies,
        for part in (1, 2, 3):  # and parts in which none does without one row: the first, a later and the last
            rows = np.flatnonzero(codes[:, 1] == part)
            X[rows] = 0.7 * part
            X[rows[[0, 4, -1][part - 1]], part] += 1.3
    return X, codes


def learner_and_task(rows, X, discrete, sizes, codes, parents, inputs, weights, backoff="parents", estimator=None):
    """Of some rows of a table."""
    task = LocalTask(0, codes[rows, 0], 3, Partition(codes[rows], parents, SIZES))
    if inputs:
        input_sizes = tuple(SIZES[p] for p in inputs)
        task = replace(task, inputs=inputs, input_codes=codes[rows][:, inputs], input_sizes=input_sizes)
    features = Features(X[rows], discrete[rows])
    estimator = estimator or NaiveBayes(0.01, alpha=0.7)
    return NaiveBayesLearner(estimator, features, weights[rows], sizes, Options(backoff=backoff)), task


def refits(X, discrete, sizes, codes, parents, inputs, weights, backoff, estimator=None):
    """log P(own state) of each row by the models of a learner that never saw it."""
    rows, own = np.arange(len(X)), np.empty(len(X))
    for i in rows:
        others = np.delete(rows, i)
        problem = X, discrete, sizes, codes, parents, inputs, weights, backoff, estimator
        learner, task = learner_and_task(others, *problem)
        row, part = learner.prepare(Features(X[[i]], discrete[[i]])), task.partition.configurations.find(codes[[i]])
        own[i] = learner.fit(task).log_proba(row, part[:, 0], codes[[i]][:, inputs] if inputs else None)[0, codes[i, 0]]
    return own


@pytest.mark.parametrize("backoff", ["none", "parents"])
@pytest.mark.parametrize("weighted", ["no", "yes", "very unequal"])
@pytest.mark.parametrize("discrete", ["none", "own", "parents", "both"])
@pytest.mark.parametrize("kind", ["plain", "offset", "constant columns", "many columns", "few rows", "equal rows"])
def test_leave_one_out_is_what_refits_answer(kind, discrete, weighted, backoff):
    rng = np.random.default_rng(5)
    X, codes = table(kind, rng)
    weights = {"no": np.ones(60), "yes": rng.uniform(0.1, 1.0, 60), "very unequal": 10 ** rng.uniform(-12, 0, 60)}
    sizes = (2, 5) if discrete in ("own", "both") else ()
    values = (rng.random((60, len(sizes))) * sizes).astype(int)
    values[::11] = -1  # missing
    for parents in [(), (1,)] if discrete in ("parents", "both") else [(1,), (1, 2)]:
        inputs = (2,) if discrete in ("parents", "both") else ()
        problem = X, values, sizes, codes, parents, inputs, weights[weighted]
        learner, task = learner_and_task(np.arange(60), *problem, backoff)
        answer = learner.leave_one_out(task)
        np.testing.assert_allclose(answer, refits(*problem, backoff), rtol=1e-10, atol=1e-10)
        _, group, rows = np.unique(codes[:, [0, *parents]], axis=0, return_inverse=True, return_counts=True)
        np.testing.assert_array_equal(answer == -np.inf, rows[group] == 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["plain", "constant columns", "few rows", "equal rows"])
def test_leave_one_out_of_scikit_learns_naive_bayes(kind, weighted):
    rng = np.random.default_rng(5)
    X, codes = table(kind, rng)
    weights = rng.uniform(0.1, 1.0, 60) if weighted else np.ones(60)
    for parents in [(), (1,), (1, 2)]:
        problem = (
            X,
            np.empty((60, 0), dtype=int),
            (),
            codes,
            parents,
            (),
            weights,
            "parents",
            GaussianNB(var_smoothing=0.01),
        )
        learner, task = learner_and_task(np.arange(60), *problem)
        np.testing.assert_allclose(learner.leave_one_out(task), refits(*problem), rtol=1e-10, atol=1e-10)


def test_a_row_of_weight_three_is_three_rows_of_which_one_leaves():
    rng = np.random.default_rng(7)
    X, codes = table("plain", rng)
    times = rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), times)
    nothing = np.empty((60, 0), dtype=int)
    for parents in [(), (1,), (1, 2)]:
        problem = X, nothing, (), codes, parents, ()
        learner, task = learner_and_task(np.arange(60), *problem, times.astype(float))
        longer, longer_task = learner_and_task(rows, *problem, np.ones(60))
        first = np.cumsum(times) - times
        expected = longer.leave_one_out(longer_task)[first]
        np.testing.assert_allclose(learner.leave_one_out(task), expected, rtol=1e-9, atol=1e-9)


def test_uniform_parts_stay_uniform_when_one_row_is_left_out():
    X, codes = table("equal rows", np.random.default_rng(6))
    problem = X, np.empty((60, 0), dtype=int), (), codes, (1,), (), np.ones(60)
    learner, task = learner_and_task(np.arange(60), *problem, backoff="paper")
    answer = learner.leave_one_out(task)
    np.testing.assert_array_equal(answer[codes[:, 1] == 0], -np.log(3))
    assert not (answer[codes[:, 1] != 0] == -np.log(3)).any()


@pytest.mark.parametrize(("parameter", "value"), [("var_smoothing", 0.0), ("alpha", -1.0), ("alpha", "a")])
def test_bad_parameters(parameter, value):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=f"{parameter}={value!r}"):
        NaiveBayes(**{parameter: value}).fit(X, y)
    with pytest.raises(ValueError, match=f"{parameter}={value!r}"):
        make_learner(NaiveBayes(**{parameter: value}), Features(X, np.empty((150, 0), int)), np.ones(150))
