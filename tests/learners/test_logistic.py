"""`Logistic` reaches the optimum of scikit-learn's objective."""

import copy
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from pmdc import GBNC
from pmdc.candidates.families import Family
from pmdc.datasets import load, make_network
from pmdc.learners import LocalTask, Logistic, make_learner
from pmdc.learners.clones import EstimatorLearner
from pmdc.learners.inputs import Affine
from pmdc.learners.logistic.logistic import LogisticLearner
from pmdc.learners.partition import Partition
from pmdc.learners.protocols import TINY
from pmdc.learners.starts import WarmStarts
from problems import numbers


def objective(X, y, weights, C, coef, intercept):
    scores = X @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    penalty = 0.0 if np.isinf(C) else 0.5 / C * np.sum(coef**2)
    return -np.dot(weights, log_softmax(scores, axis=1)[np.arange(len(y)), y]) + penalty


def problem(kind, n, d, m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X[:, [0]] * np.arange(m) + rng.gumbel(size=(n, m)), axis=1)
    y[:m] = np.arange(m)
    if kind == "separable":
        X[:, 0] += 20 * y
    if kind == "collinear":
        X = np.column_stack([X, X[:, 0], X.sum(axis=1)])
    if kind == "badly scaled":
        X = X * 10.0 ** rng.integers(-3, 4, size=X.shape[1])
    return X, y


def fit(X, y, weights, C, tol=1e-9):
    """Coefficients and intercepts of the inputs as they are, in scikit-learn's form."""
    learner = LogisticLearner(LogisticRegression(C=C), numbers(X), weights)
    learner.tol = tol
    rows = Partition(np.empty((len(y), 0), dtype=int), (), ())
    models = learner.fit(LocalTask(0, y, int(y.max()) + 1, rows))
    coef, intercept = learner.unrotate(models.coef[:, 1:]), models.coef[:, 0]
    intercept = intercept - coef @ learner.affine.shift
    return (coef[1:], intercept[1:]) if len(coef) == 2 else (coef, intercept)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(
    ("kind", "n", "d", "m"),
    [
        ("plain", 200, 4, 2),
        ("plain", 200, 4, 3),
        ("plain", 60, 1, 10),
        ("plain", 40, 60, 3),
        ("plain", 60, 250, 4),
        ("plain", 400, 100, 10),
        ("plain", 1200, 300, 3),
        ("separable", 80, 3, 3),
        ("separable", 300, 30, 2),
        ("separable", 500, 80, 10),
        ("collinear", 100, 4, 2),
        ("collinear", 100, 4, 3),
        ("collinear", 300, 150, 7),
        ("badly scaled", 150, 5, 3),
        ("badly scaled", 400, 40, 4),
    ],
)
def test_same_optimum_as_scikit_learn(kind, n, d, m, C):
    X, y = problem(kind, n, d, m)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=n)
    ours = objective(X, y, weights, C, *fit(X, y, weights, C))
    theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X, y, weights)
    assert ours <= objective(X, y, weights, C, theirs.coef_, theirs.intercept_) * (1 + 1e-6)


@pytest.mark.parametrize("m", [2, 3])
def test_without_a_penalty_it_is_maximum_likelihood(m):
    X, y = problem("plain", 300, 3, m)
    coef, intercept = fit(X, y, np.ones(300), np.inf, 1e-12)
    scores = X @ coef.T + intercept
    if m == 2:
        scores = np.column_stack([np.zeros(300), scores])
    proba = np.exp(log_softmax(scores, axis=1))
    inputs = np.column_stack([X, np.ones(300)])
    # At the maximum the expected sufficient statistics are the observed ones.
    np.testing.assert_allclose((np.eye(m)[y] - proba).T @ inputs, 0.0, atol=1e-4)


def parts(n=600, d=6, seed=0, sizes=(3, 3, 4, 2)):
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size, n) for size in sizes])
    X = rng.normal(size=(n, d)) + codes[:, [0]] * rng.normal(size=d) * (1 + codes[:, [1]])
    return X, codes, sizes


def task(codes, sizes, parents):
    return LocalTask(0, codes[:, 0], sizes[0], Partition(codes, parents, sizes))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # scikit-learn's, at such a tolerance
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_engine_is_the_loop(C, weighted):
    X, codes, sizes = parts()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X)) if weighted else np.ones(len(X))
    plain = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    engine = make_learner(plain, numbers(X), weights, weighted=weighted)
    loop = EstimatorLearner(plain, numbers(X), weights, weighted=weighted)
    assert isinstance(engine, LogisticLearner)
    for parents in [(), (1,), (1, 2), (1, 2, 3)]:
        t = task(codes, sizes, parents)
        assert engine.log_likelihood(t) == pytest.approx(loop.log_likelihood(t), rel=1e-4)
        a = engine.fit(t).log_proba(engine.prepare(numbers(X)), t.partition.part)
        b = loop.fit(t).log_proba(loop.prepare(numbers(X)), t.partition.part)
        np.testing.assert_allclose(np.exp(a), np.exp(b), atol=2e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # scikit-learn's, at such a tolerance
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_parts_with_fewer_rows_than_inputs(C):
    """Small parts are fitted along their rows, some of which are equal, beside a part with more rows than inputs."""
    rng = np.random.default_rng(0)
    sizes = (3, 8)
    codes = np.column_stack([rng.integers(0, 3, 260), np.minimum(rng.integers(0, 16, 260), 7)])
    X = rng.normal(size=(260, 60)) + codes[:, [0]] * rng.normal(size=60)
    X[codes[:, 1] == 1] = X[codes[:, 1] == 1][:4].repeat(10, axis=0)[: (codes[:, 1] == 1).sum()]
    weights = rng.uniform(0.5, 2.0, size=260)
    plain = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    engine = make_learner(plain, numbers(X), weights, weighted=True)
    loop = EstimatorLearner(plain, numbers(X), weights, weighted=True)
    t = task(codes, sizes, (1,))
    assert {size < 45 for size in np.bincount(codes[:, 1])} == {True, False}
    a = engine.fit(t).log_proba(engine.prepare(numbers(X)), t.partition.part)
    b = loop.fit(t).log_proba(loop.prepare(numbers(X)), t.partition.part)
    np.testing.assert_allclose(np.exp(a), np.exp(b), atol=2e-4)


def test_families_start_from_those_that_differ_by_one_parent():
    family = Family((1,), (2, 3))
    near = [Family((), (2, 3)), Family((1,), (2,)), Family((1,), (2, 3, 4))]
    far = [Family((1, 2), (3,)), Family((1, 4), (2, 3)), Family((1,), (2, 4)), Family((), (2, 3, 4)), Family((1,))]
    start = SimpleNamespace(nbytes=8)
    for kept in [*near, *far]:
        starts = WarmStarts()
        starts.keep([(0, kept)], [-1.0], [start])
        assert starts.find(0, family) is (start if kept in near else None)
        assert starts.find(1, family) is None


@pytest.mark.parametrize("parents", [(), (1,)])
def test_a_start_with_an_input_more_changes_nothing_but_the_way(parents):
    X, codes, sizes = parts()
    learner = make_learner(Logistic(C=10.0), numbers(X), np.ones(len(X)), weighted=False)
    _, start = learner.log_likelihood_from(local_task(codes, sizes, parents, (2, 3)), None)
    for inputs in [(3,), (2,), ()]:
        t = local_task(codes, sizes, parents, inputs)
        warm, _ = learner.log_likelihood_from(t, start)
        assert warm == pytest.approx(learner.log_likelihood(t), rel=1e-5)
        held, _ = learner.leave_one_out(t, start)
        np.testing.assert_allclose(held, learner.leave_one_out(t)[0], atol=1e-3)


def test_the_start_changes_nothing_but_the_way():
    X, codes, sizes = parts()
    learner = make_learner(Logistic(C=10.0), numbers(X), np.ones(len(X)), weighted=False)
    for coarse, fine in [((), (1,)), ((1,), (1, 2)), ((2,), (1, 2)), ((1, 3), (1, 2, 3)), ((), (1, 2, 3))]:
        _, start = learner.log_likelihood_from(task(codes, sizes, coarse), None)
        warm, _ = learner.log_likelihood_from(task(codes, sizes, fine), start)
        assert warm == pytest.approx(learner.log_likelihood(task(codes, sizes, fine)), rel=1e-5)


def test_a_path_of_strengths():
    X, codes, sizes = parts()
    t = task(codes, sizes, (1,))
    learner = make_learner(Logistic(C="auto"), numbers(X), np.ones(len(X)), weighted=False)
    part = t.partition.part
    seen = []

    def score(own, start):
        models, start = own.fit_from(t, start)
        C = 1 / own.ridge
        alone = make_learner(Logistic(C=C), numbers(X), np.ones(len(X)), weighted=False).fit(t)
        np.testing.assert_allclose(
            np.exp(models.log_proba(learner.X, part)), np.exp(alone.log_proba(learner.X, part)), atol=1e-3
        )
        seen.append(C)
        return -abs(np.log(C / 0.1)), start

    assert learner.choose_strength(score)[1] == 0.1
    np.testing.assert_allclose(seen, [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1])  # two that are worse are enough


def test_both_paths_choose_the_same_network(monkeypatch):
    data = make_network(400, n_class_variables=4, random_state=3)
    estimator = LogisticRegression(tol=1e-8, max_iter=1000)
    settings = {"criterion": "bic", "conditioning": "partition"}
    engine = GBNC(estimator, **settings).fit(data.X, data.Y)
    monkeypatch.setattr("pmdc.learners._is_plain_logistic", lambda estimator: False)
    loop = GBNC(estimator, **settings).fit(data.X, data.Y)
    assert engine.structure_.parents == loop.structure_.parents
    assert engine.structure_.score == pytest.approx(loop.structure_.score, rel=1e-6)
    for a, b in zip(engine.predict_proba(data.X), loop.predict_proba(data.X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(solver="liblinear"),
        LogisticRegression(class_weight="balanced"),
        LogisticRegression(fit_intercept=False),
        LogisticRegression(l1_ratio=0.5, solver="saga"),
    ],
)
def test_other_settings_take_the_generic_path(estimator):
    learner = make_learner(estimator, numbers(np.eye(4)), np.ones(4), weighted=False)
    assert isinstance(learner, EstimatorLearner)


def test_standardises_over_all_rows_and_leaves_constants_alone():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X * [1e-3, 1.0, 1e3, 1.0] + 5.0, np.full(len(X), 7.0)])
    model = Logistic(C=2.0).fit(X, y)
    Z = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 1e-12, X.std(axis=0), 1.0)
    reference = LogisticRegression(C=2.0, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(Z), atol=1e-6)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    assert (model.predict(X) == reference.predict(Z)).all()


def test_weights_are_repetitions():
    X, y = problem("plain", 80, 3, 3)
    weights = np.random.default_rng(0).integers(0, 4, size=80)
    a = Logistic().fit(X, y, sample_weight=weights).predict_proba(X)
    b = Logistic().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).predict_proba(X)
    np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e-13, 1e13, 1e150])
def test_the_unit_of_the_features_does_not_matter(scale):
    X, y = problem("plain", 200, 3, 3)
    np.testing.assert_allclose(
        Logistic().fit(X * scale, y).predict_proba(X * scale), Logistic().fit(X, y).predict_proba(X), atol=1e-6
    )


def test_a_constant_column_is_constant_whatever_the_weights():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.full(50_000, 0.1), rng.normal(size=50_000)])
        affine = Affine.standard(X, rng.random(50_000))
        assert (affine.shift[0], affine.width[0]) == (0.1, 1.0)


def test_many_states_take_little_memory():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 2)), np.arange(5000) % 100
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        Logistic(max_iter=1).fit(X, y)
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()


@pytest.mark.parametrize(("parameter", "value"), [("C", 0.0), ("C", "a"), ("tol", 0.0), ("max_iter", 0)])
def test_bad_parameters(parameter, value):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=f"{parameter}={value!r}"):
        Logistic(**{parameter: value}).fit(X, y)


def test_separable_parts_without_a_penalty_have_a_score_of_zero():
    """From a saturated start the Hessian is nearly singular: no step may be taken unseen."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 4))
        Y = np.column_stack([X[:, 0] + X[:, 1] > 0, rng.integers(0, 3, (60, 2))]).astype(int)
        model = GBNC(Logistic(C=np.inf), criterion="cll", prune=None, max_parents=2).fit(X, Y)
        assert min(model.scores_["y0"].values()) > -1e-3


@pytest.mark.parametrize("amplitude", [1.0, 1e3, 1e6, 1e20])
@pytest.mark.parametrize(("C", "m", "d"), [(1.0, 3, 5), (100.0, 10, 80), (1e-3, 15, 4), (np.inf, 3, 2)])
def test_a_bad_start_does_no_harm(amplitude, C, m, d):
    X, y = problem("plain", 300, d, m)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(300), weighted=False)
    t = LocalTask(0, y, m, Partition(np.empty((300, 0), dtype=int), (), ()))
    expected, start = learner.log_likelihood_from(t, None)
    bad = np.random.default_rng(0).normal(size=start.coef.shape) * amplitude
    value, _ = learner.log_likelihood_from(t, replace(start, coef=bad.astype(np.float32)))
    assert value == pytest.approx(expected, rel=1e-4)


def test_rare_values_and_weights_of_all_sizes():
    rng = np.random.default_rng(181)
    X = (rng.random((300, 40)) < 0.02) * 1.0
    y = rng.integers(0, 8, size=300)
    weights = 10.0 ** rng.uniform(-6, 6, size=300)
    for C in (1.0, 1e3):
        ours = objective(X, y, weights, C, *fit(X, y, weights, C))
        theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X, y, weights)
        assert ours <= objective(X, y, weights, C, theirs.coef_, theirs.intercept_) * (1 + 1e-6)


def test_many_features_and_states_by_the_gradient():
    """With ridge r the objective is no further from its minimum than |gradient|^2 / (2 r), at optimal intercepts."""
    X, y = problem("plain", 600, 300, 10)
    coef, intercept = fit(X, y, np.ones(600), 1.0)
    residual = np.exp(log_softmax(X @ coef.T + intercept, axis=1)) - np.eye(10)[y]
    gap = np.sum((residual.T @ X + coef) ** 2) / 2
    assert gap <= 1e-6 * objective(X, y, np.ones(600), 1.0, coef, intercept)
    np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-3)


@pytest.mark.parametrize(("m", "d"), [(13, 3), (40, 6), (20, 60)])
def test_many_states(m, d):
    X, y = problem("plain", 800, d, m)
    for C in (0.1, 10.0):
        ours = objective(X, y, np.ones(800), C, *fit(X, y, np.ones(800), C))
        theirs = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X, y)
        assert ours <= objective(X, y, np.ones(800), C, theirs.coef_, theirs.intercept_) * (1 + 1e-6)


def test_a_constant_column_among_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 90))
    X[:, -1] = 3.0
    y = rng.integers(0, 8, size=300)
    model = Logistic(C=np.inf).fit(X, y)
    assert model.predict_log_proba(X)[np.arange(300), y].sum() > -1e-3


def test_equal_rows_stay_equal_for_the_paper():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(20, 40)), int(rng.integers(5, 30))
        codes = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 2, n)])
        codes[:2] = [[0, 0], [1, 0]]
        X = rng.normal(size=(n, d))
        X[codes[:, 1] == 0] = X[0]
        learner = make_learner(LogisticRegression(), numbers(X), np.ones(n), weighted=False, backoff="paper")
        assert learner.fit(task(codes, (2, 2), (1,))).uniform.tolist() == [True, False]


def local_task(codes, sizes, parents, inputs=()):
    """The first column given others that divide the rows and others that are inputs."""
    own = {"inputs": inputs, "input_codes": codes[:, inputs], "input_sizes": tuple(sizes[p] for p in inputs)}
    return LocalTask(0, codes[:, 0], sizes[0], Partition(codes, parents, sizes), **(own if inputs else {}))


def own_state(models, learner, t, codes, rows):
    part = t.partition.configurations.find(codes[rows])[:, 0]
    inputs = None if t.input_codes is None else codes[rows][:, t.inputs]
    return models.log_proba(learner.X[rows], part, inputs)[np.arange(len(rows)), codes[rows, 0]]


def refitted(learner, codes, sizes, parents, inputs=(), rows=None):
    """log P(own state) of rows by models that are fitted without them, one at a time; the preparation stays."""
    joining = learner.joining(local_task(codes, sizes, parents, inputs))
    rows = np.arange(len(codes)) if rows is None else rows
    answers = []
    for i in rows:
        others = np.arange(len(codes)) != i
        fewer = copy.copy(learner)
        fewer.X, fewer.sample_weight = learner.X[others], learner.sample_weight[others]
        fewer.joining = lambda task: joining
        t = local_task(codes[others], sizes, parents, inputs)
        answers.append(own_state(fewer.fit(t), learner, t, codes, np.array([i]))[0])
    return np.array(answers)


def compare(learner, codes, sizes, parents, inputs=(), rows=None, error=0.02, correlation=0.99):
    rows = np.arange(len(codes)) if rows is None else rows
    t = local_task(codes, sizes, parents, inputs)
    with_row = own_state(learner.fit(t), learner, t, codes, rows)
    approximate = learner.leave_one_out(t)[0][rows]
    exact = refitted(learner, codes, sizes, parents, inputs, rows)
    np.testing.assert_array_equal(np.isinf(approximate), np.isinf(exact))
    some = np.isfinite(exact)
    assert (approximate <= with_row + 1e-9).all()
    assert approximate[some].sum() == pytest.approx(exact[some].sum(), rel=error)
    assert np.corrcoef(approximate[some], exact[some])[0, 1] > correlation


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    ("m", "parents", "inputs", "weighted", "kind"),
    [
        (2, (), (), False, "plain"),
        (3, (), (), True, "plain"),
        (5, (), (), False, "plain"),
        (2, (1,), (), True, "plain"),
        (3, (1,), (), False, "plain"),
        (3, (), (1,), True, "plain"),
        (3, (2,), (1,), False, "plain"),
        (2, (), (), False, "separable"),
        (3, (), (), False, "separable"),
    ],
)
def test_leave_one_out_is_a_refit_without_the_row(m, parents, inputs, weighted, kind, C):
    n = 120
    X, y = problem(kind, n, 2, m)
    rng = np.random.default_rng(1)
    codes, sizes = np.column_stack([y, rng.integers(0, 3, n), rng.integers(0, 2, n)]), (m, 3, 2)
    weights = rng.uniform(0.25, 1.0, size=n) if weighted else np.ones(n)
    learner = make_learner(Logistic(C=C), numbers(X), weights, weighted=weighted)
    compare(learner, codes, sizes, parents, inputs, error=0.01)


@pytest.mark.parametrize(
    ("n", "d", "m", "C", "error"),
    [
        (300, 3, 15, 1.0, 0.02),
        (300, 3, 15, 100.0, 0.02),
        (400, 80, 10, 0.1, 0.02),
        (600, 510, 3, 0.01, 0.02),
        (900, 340, 4, 1.0, 0.02),
        (1050, 1010, 2, 0.01, 0.02),
        (400, 180, 2, 100.0, 0.02),
        (500, 200, 2, 1000.0, 0.02),
        (350, 100, 3, 1e4, 0.02),
    ],
)
def test_leave_one_out_with_many_coefficients_or_states(n, d, m, C, error):
    """Many states; 200 to 1020 coefficients.

    Then parts with two or three rows for each coefficient, most of which change by much, under weak penalties.
    """
    X, y = problem("plain", n, d, m)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n), weighted=False)
    compare(learner, y[:, None], (m,), (), rows=np.arange(0, n, n // 8), error=error)


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_leave_one_out_of_rows_with_rare_values(C):
    """Values of one row, and of two that agree or contradict each other: without one, the other decides alone."""
    n = 600
    X, y = problem("plain", n, 3, 3)
    rare = np.zeros(n, dtype=int)
    rare[:8] = [1, 2, 3, 3, 4, 4, 5, 5]
    codes, sizes = np.column_stack([y, rare]), (3, 6)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n), weighted=False)
    compare(learner, codes, sizes, (), (1,), rows=np.r_[:8, 8:n:40], error=0.01)


@pytest.mark.parametrize(("C", "error"), [(1.0, 0.02), (100.0, 0.02), (1e4, 0.1)])
def test_leave_one_out_of_many_rows_with_rare_values(C, error):
    n = 1500
    X, y = problem("plain", n, 3, 3)
    rare = np.zeros(n, dtype=int)
    rare[:24] = 1 + np.arange(24) // 2
    codes, sizes = np.column_stack([y, rare]), (3, 13)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n), weighted=False)
    compare(learner, codes, sizes, (), (1,), rows=np.r_[:24, 24:n:70], error=error)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_leave_one_out_where_all_values_are_rare(C):
    """Too many rows would have to go on: folds are left out instead, which promise no more."""
    rng = np.random.default_rng(0)
    n, values = 2000, 400
    X, y = problem("plain", n, 3, 3)
    codes, sizes = np.column_stack([y, np.r_[np.arange(values), rng.integers(0, values, n - values)]]), (3, values)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n), weighted=False)
    rows = np.arange(0, n, 40)
    answer = learner.leave_one_out(local_task(codes, sizes, (), (1,)))[0][rows]
    assert 0.9 < answer.sum() / refitted(learner, codes, sizes, (), (1,), rows).sum() < 1.2


@pytest.mark.parametrize(("C", "parents"), [(1.0, (1,)), (100.0, ())])
def test_where_there_are_too_many_coefficients_folds_are_left_out(C, parents, monkeypatch):
    monkeypatch.setattr("pmdc.learners.logistic.logistic._MOST", 2)
    X, y = problem("plain", 120, 2, 3)
    codes, sizes = np.column_stack([y, np.r_[2, np.arange(119) % 2]]), (3, 3)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(120), weighted=False)
    t = local_task(codes, sizes, parents)
    own = learner.leave_one_out(t)[0]
    group = codes[:, 0] + 3 * codes[:, 1] * bool(parents)
    order = np.argsort(group, kind="stable")
    fold = np.empty(120, dtype=int)
    fold[order] = np.arange(120) % 5
    for number in range(5):
        seen, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        some = local_task(codes[seen], sizes, parents)
        part = some.partition.configurations.find(codes[held])[:, 0]
        expected = learner.on(seen).fit(some).log_proba(learner.X[held], part)[np.arange(len(held)), codes[held, 0]]
        known = part >= 0  # the only row of its part
        np.testing.assert_allclose(np.exp(own[held][known]), np.exp(expected[known]), atol=1e-4)
        assert np.isneginf(own[held][~known]).all()


def test_perfect_parts_without_a_penalty_are_not_believed():
    rng = np.random.default_rng(0)
    codes, sizes = np.column_stack([rng.integers(0, 2, 150), rng.integers(0, 5, 150)]), (2, 5)
    learner = make_learner(Logistic(C=np.inf), numbers(rng.normal(size=(150, 20))), np.ones(150), weighted=False)
    t = local_task(codes, sizes, (1,))
    assert learner.log_likelihood(t) > -0.1
    assert learner.leave_one_out(t)[0].sum() < 150 * np.log(0.5)


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_the_start_of_rows_with_rare_values_changes_nothing_but_the_way(C, data_dir):
    data = load("flare1", data_dir)
    codes = np.column_stack([data.Y[column].cat.codes for column in data.Y]).astype(np.int64)
    sizes = tuple(len(data.Y[column].cat.categories) for column in data.Y)
    learner = make_learner(Logistic(C=C), numbers(np.zeros((len(codes), 0))), np.ones(len(codes)), weighted=False)
    for parents in [(), (2,)]:
        t = local_task(codes, sizes, parents, (1, 2))
        expected = learner.leave_one_out(t)[0]
        for coarse, inputs in [((), (1,)), ((), (2,)), ((), (1, 2)), (parents, (1,))]:
            start = learner.leave_one_out(local_task(codes, sizes, coarse, inputs))[1]
            np.testing.assert_allclose(learner.leave_one_out(t, start)[0], expected, atol=0.05)


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_leave_one_out_of_parts_with_fewer_rows_than_inputs(C):
    rng = np.random.default_rng(0)
    codes, sizes = np.column_stack([rng.integers(0, 3, 160), rng.integers(0, 8, 160)]), (3, 8)
    X = rng.normal(size=(160, 40)) + codes[:, [0]] * rng.normal(size=40)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(160), weighted=False)
    compare(learner, codes, sizes, (1,), rows=np.arange(0, 160, 2), error=0.02)


def test_a_row_of_weight_three_is_three_rows_of_which_one_leaves():
    rng = np.random.default_rng(1)
    X, y = problem("plain", 120, 2, 3)
    codes, sizes = np.column_stack([y, rng.integers(0, 3, 120)]), (3, 3)
    times = rng.integers(1, 4, 120)
    rows, first = np.repeat(np.arange(120), times), np.cumsum(times) - times
    for parents, inputs in [((), ()), ((1,), ()), ((), (1,))]:
        learner = make_learner(Logistic(), numbers(X), times.astype(float), weighted=True)
        longer = make_learner(Logistic(), numbers(X[rows]), np.ones(len(rows)), weighted=False)
        answer = learner.leave_one_out(local_task(codes, sizes, parents, inputs))[0]
        expected = longer.leave_one_out(local_task(codes[rows], sizes, parents, inputs))[0][first]
        np.testing.assert_allclose(answer, expected, atol=2e-3)


@pytest.mark.parametrize(("name", "every"), [("emotions", 15), ("edm", 1)])
@pytest.mark.parametrize(("C", "error"), [(1e4, 0.01), (100.0, 0.01), (1.0, 0.01), (0.01, 0.003)])
def test_leave_one_out_of_real_tables(name, every, C, error, data_dir):
    data = load(name, data_dir)
    codes = np.column_stack([data.Y[column].cat.codes for column in data.Y]).astype(np.int64)
    sizes = tuple(len(data.Y[column].cat.categories) for column in data.Y)
    learner = make_learner(Logistic(C=C), numbers(data.X.to_numpy(float)), np.ones(len(codes)), weighted=False)
    for parents in [(), (1,)]:
        compare(learner, codes, sizes, parents, rows=np.arange(0, len(codes), every), error=error)


def test_leave_one_out_where_a_state_or_a_part_has_one_row():
    rng = np.random.default_rng(0)
    y = np.array([0] * 10 + [1] * 9 + [2] + [1] * 5 + [0])
    part = np.array([0] * 20 + [1] * 5 + [2])
    codes = np.column_stack([y, part])
    learner = make_learner(Logistic(), numbers(rng.normal(size=(26, 2))), np.ones(26), weighted=False)
    own = learner.leave_one_out(task(codes, (3, 3), (1,)))[0]
    assert np.isfinite(own[:19]).all()
    assert (own[:19] < 0).all()
    assert own[[19, 25]].tolist() == [-np.inf, -np.inf]
    assert own[20:25].tolist() == [0.0] * 5


def test_leave_one_out_of_uniform_parts():
    codes = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0, 1], [1, 1]])
    X = np.array([[1.0], [1.0], [1.0], [2.0], [3.0], [4.0]])
    learner = make_learner(LogisticRegression(), numbers(X), np.ones(6), weighted=False, backoff="paper")
    own = learner.leave_one_out(task(codes, (2, 2), (1,)))[0]
    np.testing.assert_allclose(own[:2], -np.log(2))
    assert np.isfinite(own[2:]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6, np.inf])
@pytest.mark.parametrize(
    ("kind", "m", "d"), [("separable", 2, 3), ("collinear", 3, 5), ("plain", 3, 60), ("plain", 2, 0)]
)
def test_leave_one_out_is_finite_whatever_the_leverage(kind, m, d, C):
    X, y = problem(kind, 40, max(d, 1), m)
    y[: 2 * m] = np.tile(np.arange(m), 2)
    learner = make_learner(Logistic(C=C), numbers(X[:, : d or 0]), np.ones(40), weighted=False)
    t = LocalTask(0, y, m, Partition(np.empty((40, 0), dtype=int), (), ()))
    own = learner.leave_one_out(t)[0]
    assert (own >= TINY).all()
    assert (own <= 0).all()
    np.testing.assert_array_equal(own, learner.leave_one_out(t)[0])
