"""`Logistic` reaches the optimum of scikit-learn's objective."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from pmdc import GBNC
from pmdc.candidates.families import Family
from pmdc.datasets import load, make_network
from pmdc.learners import Logistic, make_learner
from pmdc.learners.clones import EstimatorLearner
from pmdc.learners.inputs import Affine
from pmdc.learners.logistic import LogisticLearner
from pmdc.learners.options import Options
from pmdc.learners.registry import ENGINES
from pmdc.learners.smoothing import TINY
from pmdc.learners.tasks import local_task, root_task
from pmdc.learners.validation import best_C
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
    models = learner.fit(root_task(0, y, int(y.max()) + 1))
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
    return local_task(0, Family(parents), codes, sizes)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # scikit-learn's, at such a tolerance
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_engine_is_the_loop(C, weighted):
    X, codes, sizes = parts()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X)) if weighted else np.ones(len(X))
    plain = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
    engine = make_learner(plain, numbers(X), weights, options=Options(weighted=weighted))
    loop = EstimatorLearner(plain, numbers(X), weights, options=Options(weighted=weighted))
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
    engine = make_learner(plain, numbers(X), weights, options=Options(weighted=True))
    loop = EstimatorLearner(plain, numbers(X), weights, options=Options(weighted=True))
    t = task(codes, sizes, (1,))
    assert {size < 45 for size in np.bincount(codes[:, 1])} == {True, False}
    a = engine.fit(t).log_proba(engine.prepare(numbers(X)), t.partition.part)
    b = loop.fit(t).log_proba(loop.prepare(numbers(X)), t.partition.part)
    np.testing.assert_allclose(np.exp(a), np.exp(b), atol=2e-4)


@pytest.mark.parametrize("inputs", [(), (3,)])
def test_the_start_changes_nothing_but_the_way(inputs):
    X, codes, sizes = parts()
    learner = make_learner(Logistic(C=10.0), numbers(X), np.ones(len(X)))
    for coarse, fine in [((), (1,)), ((1,), (1, 2)), ((2,), (1, 2)), ((), (1, 2))]:
        t, coarser = (local_task(0, Family(partition, inputs), codes, sizes) for partition in (fine, coarse))
        start = learner.start(coarser, None)
        value, same = learner.log_likelihood_from(coarser, None)
        assert value == learner.log_likelihood(coarser)
        np.testing.assert_array_equal(same.coef, start.coef)
        warm, _ = learner.log_likelihood_from(t, start)
        assert warm == pytest.approx(learner.log_likelihood(t), rel=1e-5)


def test_a_path_of_C():
    X, codes, sizes = parts()
    t = task(codes, sizes, (1,))
    learner = make_learner(Logistic(C="auto"), numbers(X), np.ones(len(X)))
    seen = []

    def held_out(C, start):
        value, start = learner.with_C(C).log_likelihood_from(t, start)
        alone = make_learner(Logistic(C=C), numbers(X), np.ones(len(X)))
        assert value == pytest.approx(alone.log_likelihood(t), rel=1e-5)
        seen.append(C)
        return np.full(10, -abs(np.log(C / 0.1))), start

    assert best_C(held_out, np.ones(10), np.arange(10)) == (pytest.approx(0.0), 0.1)
    assert seen == [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1]  # two that are worse are enough


def test_the_strongest_penalty_within_the_standard_error_is_chosen():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)
    noise -= noise.mean()  # the standard error of its sum is about 10
    gains = {1e-4: -30.0, 1e-3: -4.0, 1e-2: -2.0, 1e-1: -1.0, 1.0: 0.0}

    def held_out(C, start):
        return gains.get(C, -1.0) / 100 + (C != 1.0) * noise, start

    score, C = best_C(held_out, np.ones(100), np.arange(100))
    assert (score, C) == (pytest.approx(-4.0), 1e-3)
    assert best_C(held_out, np.full(100, 1e4), np.arange(100))[1] == 1.0, "more rows tell them apart"

    def plateau(C, start):
        return np.full(60, np.log10(C) if C < 1 else 0.001 * np.log10(C) / 60), start

    assert best_C(plateau, np.ones(60), np.arange(60))[1] == 1.0, "0.001 nats in every row are no reason"


def test_both_paths_choose_the_same_network(monkeypatch):
    data = make_network(400, n_class_variables=4, random_state=3)
    estimator = LogisticRegression(tol=1e-8, max_iter=1000)
    settings = {"criterion": "bic", "conditioning": "partition"}
    engine = GBNC(estimator, **settings).fit(data.X, data.Y)
    monkeypatch.setattr("pmdc.learners.registry.ENGINES", ENGINES[-1:])
    loop = GBNC(estimator, **settings).fit(data.X, data.Y)
    assert engine.structure_.parents == loop.structure_.parents
    assert engine.structure_.score == pytest.approx(loop.structure_.score, rel=1e-6)
    for a, b in zip(engine.predict_proba(data.X), loop.predict_proba(data.X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


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
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(300))
    t = root_task(0, y, m)
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
        learner = make_learner(LogisticRegression(), numbers(X), np.ones(n), options=Options(backoff="paper"))
        assert learner.fit(task(codes, (2, 2), (1,))).uniform.tolist() == [True, False]


# Cross-validation -----------------------------------------------------------------------------------------------


def dealt(n, n_folds=5, seed=1):
    return np.random.default_rng(seed).permutation(n) % n_folds


def standardised(X, weights):
    mean = np.average(X, axis=0, weights=weights)
    width = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    return (X - mean) / np.where(width > 1e-12, width, 1.0)


def by_scikit_learn(X, codes, sizes, family, fold, weights, C):
    """log P(own state) of each row, by a refit of its part without its fold; inputs are scaled over all rows."""
    indicators = [codes[:, [p]] == np.arange(sizes[p]) for p in family.inputs]
    Z, y = standardised(np.hstack([*indicators, X, np.zeros((len(X), 1))]), weights), codes[:, 0]
    out = np.full(len(X), -np.inf)
    cells = np.column_stack([fold, codes[:, list(family.partition)]])
    for cell in np.unique(cells, axis=0):
        held = np.flatnonzero((cells == cell).all(axis=1))
        rest = np.flatnonzero((cells[:, 1:] == cell[1:]).all(axis=1) & (fold != cell[0]))
        states = np.unique(y[rest])
        held = held[np.isin(y[held], states)]
        if len(held) and len(states) == 1:
            out[held] = 0.0
        elif len(held):
            plain = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
            scores = plain.fit(Z[rest], y[rest], weights[rest]).decision_function(Z[held]).reshape(len(held), -1)
            if len(states) == 2:
                scores = np.hstack([np.zeros_like(scores), scores])
            own = log_softmax(scores, axis=1)[np.arange(len(held)), np.searchsorted(states, y[held])]
            out[held] = np.maximum(own, TINY)
    return out


def by_the_learner(learner, codes, sizes, family, fold):
    """The same by the learner itself on the rows that are left; inputs would be scaled over these alone."""
    assert not family.inputs
    out = np.empty(len(codes))
    for number in np.unique(fold):
        seen, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        t = local_task(0, family, codes[seen], sizes)
        part = t.partition.configurations.find(codes[held])[:, 0]
        out[held] = learner.on(seen).fit(t).log_proba(learner.X[held], part)[np.arange(len(held)), codes[held, 0]]
    return out


def held_out(learner, codes, sizes, family, fold, start=None):
    return learner.cross_validate(local_task(0, family, codes, sizes), fold, start)[0]


def assert_same(own, expected, rtol=1e-3, atol=1e-3):
    np.testing.assert_array_equal(np.isneginf(own), np.isneginf(expected))
    known = np.isfinite(expected)
    np.testing.assert_allclose(own[known], expected[known], rtol=rtol, atol=atol)


def small_table(m, n=240, d=3, kind="plain"):
    X, y = problem(kind, n, d, m)
    rng = np.random.default_rng(1)
    return X, np.column_stack([y, rng.integers(0, 3, n), rng.integers(0, 2, n)]), (m, 3, 2)


FAMILIES = [Family(()), Family((1,)), Family((1, 2)), Family((), (1,)), Family((2,), (1,))]


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize(("m", "weighted"), [(2, True), (3, False), (15, True)])
def test_cross_validation_is_a_refit_without_each_fold(m, weighted, family, C):
    X, codes, sizes = small_table(m)
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(X)) if weighted else np.ones(len(X))
    learner = make_learner(Logistic(C=C), numbers(X), weights)
    expected = by_scikit_learn(X, codes, sizes, family, dealt(240), weights, C)
    if m == 15 and family.partition:
        assert np.isneginf(expected).any()  # states that the rest of a part does not have
    own = held_out(learner, codes, sizes, family, dealt(240))
    assert_same(own, expected, rtol=1e-3 if C < 1e4 else 1e-2)  # an optimum that is nearly infinitely far away


@pytest.mark.filterwarnings("ignore:The inner solver of NewtonCholeskySolver")  # indicators add up to 1
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("family", [Family(()), Family((1,)), Family((), (1,))], ids=str)
def test_cross_validation_without_a_penalty(m, family):
    X, codes, sizes = small_table(m)
    learner = make_learner(Logistic(C=np.inf), numbers(X), np.ones(len(X)))
    expected = by_scikit_learn(X, codes, sizes, family, dealt(240), np.ones(240), np.inf)
    assert_same(held_out(learner, codes, sizes, family, dealt(240)), expected)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, np.inf])
@pytest.mark.parametrize("backoff", ["parents", "none"])
@pytest.mark.parametrize("estimator", [Logistic, LogisticRegression])
def test_cross_validation_is_what_the_learner_answers_without_each_fold(estimator, backoff, C):
    X, codes, sizes = small_table(3)
    learner = make_learner(estimator(C=C), numbers(X), np.ones(len(X)), options=Options(backoff=backoff))
    for family in [Family(()), Family((1,)), Family((1, 2))]:
        expected = by_the_learner(learner, codes, sizes, family, dealt(240))
        assert_same(held_out(learner, codes, sizes, family, dealt(240)), expected)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(
    ("n", "d", "m", "family"),
    [
        (160, 40, 3, Family((1, 2))),  # parts with fewer rows than inputs
        (160, 40, 2, Family((1,), (2,))),
        (60, 6, 3, Family((1, 2))),  # parts with about ten rows
        (500, 120, 6, Family(())),  # more coefficients than one factor may have
        (700, 310, 3, Family((), (1,))),
        (400, 60, 14, Family(())),  # more states than one factor may have
    ],
)
def test_cross_validation_with_few_rows_or_many_coefficients(n, d, m, family, C):
    X, codes, sizes = small_table(m, n, d)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n))
    expected = by_scikit_learn(X, codes, sizes, family, dealt(n), np.ones(n), C)
    assert_same(held_out(learner, codes, sizes, family, dealt(n)), expected)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("m", [2, 3])
def test_cross_validation_of_separable_parts(m, C):
    X, codes, sizes = small_table(m, 120, kind="separable")
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(120))
    for family in [Family(()), Family((1,))]:
        expected = by_scikit_learn(X, codes, sizes, family, dealt(120), np.ones(120), C)
        assert_same(held_out(learner, codes, sizes, family, dealt(120)), expected)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, np.inf])
@pytest.mark.parametrize(("n", "d", "m"), [(60, 20, 2), (60, 3, 3), (200, 20, 4), (300, 2, 14)])
def test_a_row_is_scored_by_models_that_have_not_seen_it(n, d, m, C):
    """Whatever states the rows of a fold have, the models without it are the same: their answers add up to 1."""
    rng = np.random.default_rng(0)
    X, y, fold = rng.normal(size=(n, d)), np.arange(n) % m, dealt(n, 3)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n), options=Options(backoff="none"))
    for number in range(3):
        held, total = fold == number, np.zeros(n)
        for shift in range(m):
            states = np.where(held, (y + shift) % m, y)
            total += np.exp(held_out(learner, states[:, None], (m,), Family(()), fold))
        np.testing.assert_allclose(total[held], 1.0, atol=1e-3)


@pytest.mark.parametrize("family", [Family((1,)), Family((), (1,))], ids=str)
def test_perfect_fits_without_a_penalty_are_not_believed(family):
    rng = np.random.default_rng(0)
    codes, sizes = np.column_stack([rng.integers(0, 2, 150), rng.integers(0, 5, 150)]), (2, 5)
    learner = make_learner(Logistic(C=np.inf), numbers(rng.normal(size=(150, 150))), np.ones(150))
    assert learner.log_likelihood(local_task(0, family, codes, sizes)) > -0.1
    assert held_out(learner, codes, sizes, family, dealt(150)).sum() < 150 * np.log(0.5)


def rare_table(n):
    """Thirty values that one row has, fifteen that two rows in different folds have, and one that all others have."""
    X, y = problem("plain", n, 3, 3)
    rare, fold = np.zeros(n, dtype=int), dealt(n)
    rare[:30], rare[30:60] = 1 + np.arange(30), 31 + np.arange(30) // 2
    fold[30:60] = np.arange(30) % 2
    return X, np.column_stack([y, rare]), (3, 46), fold


@pytest.mark.parametrize(
    ("n", "C"),
    [
        (600, 1.0),
        (600, 100.0),
        (600, 1e4),
        (5000, 1.0),
        (5000, 100.0),
        (5000, 1e4),
    ],
)
def test_cross_validation_of_rare_values(n, C):
    """A value that no other row has says nothing of its row, however well all rows together fit it."""
    X, codes, sizes, fold = rare_table(n)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n))
    own = held_out(learner, codes, sizes, Family((), (1,)), fold)
    expected = by_scikit_learn(X, codes, sizes, Family((), (1,)), fold, np.ones(n), C)
    for rows in (slice(0, 30), slice(30, 60), slice(60, None)):
        assert own[rows].sum() == pytest.approx(expected[rows].sum(), rel=0.01)


def test_cross_validation_where_a_state_or_a_part_is_in_one_fold():
    y = np.array([0] * 10 + [1] * 9 + [2] + [1] * 5 + [0] * 3 + [0, 1, 0, 1])
    part = np.array([0] * 20 + [1] * 5 + [2] * 3 + [3] * 4)
    fold = np.array([0, 1] * 10 + [0, 1, 0, 1, 0] + [1] * 3 + [0, 0, 1, 1])
    X = np.random.default_rng(0).normal(size=(32, 2))
    for C in (1.0, np.inf):
        own = held_out(
            make_learner(Logistic(C=C), numbers(X), np.ones(32)), np.column_stack([y, part]), (3, 4), Family((1,)), fold
        )
        assert (own[:19] < 0).all()
        assert np.isfinite(own[:19]).all()
        assert own[19] == -np.inf  # the only row with its state
        assert own[20:25].tolist() == [0.0] * 5  # a part with one state
        assert np.isneginf(own[25:28]).all()  # a part without rows in other folds
        assert np.isfinite(own[28:]).all()


def test_each_state_in_a_fold_of_its_own():
    """Without its fold a part has one state, and never the row's own."""
    y = np.array([0, 1] * 10)
    learner = make_learner(Logistic(), numbers(np.random.default_rng(0).normal(size=(20, 2))), np.ones(20))
    assert np.isneginf(held_out(learner, y[:, None], (2,), Family(()), y)).all()


def test_cross_validation_of_uniform_parts():
    """Rows without which a part would be uniform do not make it so."""
    codes = np.array([[0, 0], [1, 0], [0, 0], [1, 0], [0, 1], [1, 1], [0, 1], [1, 1]])
    X = np.array([[1.0], [1.0], [1.0], [1.0], [1.0], [2.0], [3.0], [4.0]])
    learner = make_learner(LogisticRegression(), numbers(X), np.ones(8), options=Options(backoff="paper"))
    own = held_out(learner, codes, (2, 2), Family((1,)), np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    np.testing.assert_array_equal(own[:4], -np.log(2))
    assert np.isfinite(own[4:]).all()
    assert not np.isclose(own[4:], -np.log(2)).any()


def test_weights_are_repetitions_in_the_same_fold():
    X, codes, sizes = small_table(3, 120)
    times, fold = np.random.default_rng(1).integers(1, 4, 120), dealt(120)
    rows, first = np.repeat(np.arange(120), times), np.cumsum(times) - times
    learner = make_learner(Logistic(), numbers(X), times.astype(float))
    longer = make_learner(Logistic(), numbers(X[rows]), np.ones(len(rows)))
    for family in FAMILIES:
        expected = held_out(longer, codes[rows], sizes, family, fold[rows])[first]
        assert_same(held_out(learner, codes, sizes, family, fold), expected)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, np.inf])
@pytest.mark.parametrize("m", [2, 3, 15])
def test_cross_validation_does_not_depend_on_the_start(m, C):
    X, codes, sizes = small_table(m)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(len(X)))
    for partition, inputs in [((1,), ()), ((1, 2), ()), ((2,), (1,))]:
        family = Family(partition, inputs)
        expected, own = learner.cross_validate(local_task(0, family, codes, sizes), dealt(240), None)
        _, coarser = learner.cross_validate(local_task(0, Family((), inputs), codes, sizes), dealt(240), None)
        bad = np.random.default_rng(0).normal(size=own.coef.shape).astype(np.float32)
        starts = [own, coarser, replace(own, coef=bad), replace(own, coef=1e6 * bad)]
        if np.isfinite(C):
            starts.append(learner.with_C(C / 10).start(local_task(0, family, codes, sizes), None))
        for start in starts:
            assert_same(held_out(learner, codes, sizes, family, dealt(240), start), expected)
            if np.isinf(C):  # without a penalty a start could leave something behind for ever
                np.testing.assert_array_equal(held_out(learner, codes, sizes, family, dealt(240), start), expected)


@pytest.mark.parametrize("inputs", [(), (1,)])
def test_cross_validation_returns_the_start_of_a_fit(inputs):
    X, codes, sizes = small_table(3)
    learner = make_learner(Logistic(), numbers(X), np.ones(len(X)))
    t = local_task(0, Family((2,), inputs), codes, sizes)
    start = learner.cross_validate(t, dealt(240), None)[1]
    np.testing.assert_array_equal(start.coef, learner.start(t, None).coef)
    np.testing.assert_array_equal(start.coef, learner.fit(t).coef.astype(np.float32))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4, np.inf])
def test_cross_validation_repeats_to_the_bit(C):
    X, codes, sizes = small_table(3)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(len(X)))
    first = [held_out(learner, codes, sizes, family, dealt(240)) for family in FAMILIES]
    again = [held_out(learner, codes, sizes, family, dealt(240)) for family in reversed(FAMILIES)]
    for a, b in zip(first, reversed(again), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_names_of_the_folds_do_not_matter():
    X, codes, sizes = small_table(3)
    learner = make_learner(Logistic(), numbers(X), np.ones(len(X)))
    own = held_out(learner, codes, sizes, Family((1,)), dealt(240))
    np.testing.assert_array_equal(held_out(learner, codes, sizes, Family((1,)), 40 - 7 * dealt(240)), own)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6, np.inf])
@pytest.mark.parametrize(
    ("kind", "m", "d"), [("separable", 2, 3), ("collinear", 3, 5), ("plain", 3, 60), ("plain", 2, 0)]
)
def test_cross_validation_is_finite_whatever_the_leverage(kind, m, d, C):
    X, y = problem(kind, 40, max(d, 1), m)
    y[: 4 * m] = np.tile(np.arange(m), 4)
    learner = make_learner(Logistic(C=C), numbers(X[:, : d or 0]), np.ones(40))
    fold = np.r_[np.arange(4 * m) // m % 2, np.arange(40 - 4 * m) % 2]
    own = held_out(learner, y[:, None], (m,), Family(()), fold)
    assert (own >= TINY).all()
    assert (own <= 0).all()


def test_folds_that_do_not_converge_are_told_of():
    X, codes, sizes = small_table(3)
    learner = make_learner(Logistic(max_iter=1), numbers(X), np.ones(len(X)))
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations on 3 of 3 parts"):
        held_out(learner, codes, sizes, Family((1,)), dealt(240))


@pytest.mark.parametrize("name", ["emotions", "edm", "flare1"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
def test_cross_validation_of_real_tables(name, C, data_dir):
    data = load(name, data_dir)
    codes = np.column_stack([data.Y[column].cat.codes for column in data.Y]).astype(np.int64)
    sizes = tuple(len(data.Y[column].cat.categories) for column in data.Y)
    X, n = data.X.select_dtypes("number").to_numpy(float), len(codes)
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(n))
    for family in [Family(()), Family((1,)), Family((), (1,))]:
        expected = by_scikit_learn(X, codes, sizes, family, dealt(n), np.ones(n), C)
        assert_same(held_out(learner, codes, sizes, family, dealt(n)), expected, rtol=3e-3)


def test_C_is_chosen_by_rows_that_the_models_have_not_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    noise = rng.integers(0, 2, 300)
    signal = (X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=300) > 0).astype(int)
    assert Logistic(C="auto").fit(X, noise).C_ <= 0.01
    assert Logistic(C="auto").fit(X, signal).C_ >= 1.0
    y = np.argmax(X[:, :3] + rng.gumbel(size=(300, 3)), axis=1)
    chosen = Logistic(C="auto").fit(X, y)
    assert 1e-3 <= chosen.C_ <= 1.0
    np.testing.assert_allclose(chosen.predict_proba(X), Logistic(C=chosen.C_).fit(X, y).predict_proba(X), atol=1e-6)


def test_few_rows_of_noise_get_a_strong_penalty():
    """The best C of the held-out rows is often a weak one by luck: with heavy tails that costs new rows dearly."""
    losses = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X, y = np.exp(1.5 * rng.normal(size=(1060, 10))), rng.integers(0, 3, 1060)
        own = Logistic(C="auto").fit(X[:60], y[:60]).predict_log_proba(X[60:])[np.arange(1000), y[60:]]
        losses.append(np.log(np.bincount(y[:60]) / 60)[y[60:]].mean() - own.mean())
    assert np.mean(losses) < 0.012, "nats above the frequencies; 0.024 with the C of the best score"


def test_C_is_the_same_for_weights_and_repetitions():
    X, y = problem("plain", 120, 8, 3)
    times = np.random.default_rng(0).integers(1, 5, 120)
    weighted = Logistic(C="auto").fit(X, y, sample_weight=times)
    repeated = Logistic(C="auto").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.C_ == repeated.C_
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("n_states", [2, 3])
def test_rows_that_alone_have_a_value_are_forgotten_with_their_fold(C, n_states):
    """Without them nothing but the penalty says what the coefficient is; with them it explains them well."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 4)), rng.integers(0, n_states, size=1000)
    rare = [0, 5, 10, 15]  # all in the first fold
    X[:, 3], y[rare] = 0.0, 1
    X[rare, 3] = 1.0
    learner = make_learner(Logistic(C=C), numbers(X), np.ones(1000))
    fold = np.arange(1000) % 5
    own, _ = learner.cross_validate(root_task(0, y, n_states), fold, None)
    seen = np.flatnonzero(fold)
    refit = learner.on(seen).fit(root_task(0, y[seen], n_states))
    expected = refit.log_proba(learner.X[rare], np.zeros(4, dtype=np.int64))[:, 1]
    np.testing.assert_allclose(own[rare], expected, atol=1e-3)
