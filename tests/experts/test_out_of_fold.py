"""Experts out of fold: no row's features come from a model that saw it, and fits can be repeated."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from pmdc import GBNC
from pmdc._support import parallel
from pmdc._support.parallel import workers
from pmdc.datasets import make_network
from pmdc.experts.features import log_features
from pmdc.experts.jobs import expert_folds
from pmdc.experts.out_of_fold import SMOOTHING, ExpertFits, fit_experts
from pmdc.experts.plan import n_expert_folds, plan_experts
from pmdc.experts.recipes import BoostingRecipe, ForestRecipe, LogisticRecipe, user_recipes
from pmdc.metrics import joint_log_loss
from problems import training_rows

FITS = []
"""What `Recorder` was fitted on."""

FEW_TREES = [
    ForestRecipe("extra trees", "extra trees", 10, 1),
    ForestRecipe("random forest", "random forest", 10, 1),
    LogisticRecipe(),
    BoostingRecipe("boosting", 0.3, 10, 5, 7, 0.0),
]
"""The default experts with few trees."""


class Recorder(ClassifierMixin, BaseEstimator):
    """Predicts frequencies; notes the rows, named by the first feature, that it was fitted on and asked about."""

    def __init__(self, note=""):
        self.note = note

    def fit(self, X, y, sample_weight=None):
        self.classes_, count = np.unique(y, return_counts=True)
        self.share_ = count / count.sum()
        self.asked_ = []
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.seen_ = dict(zip(X[:, 0].tolist(), weights.tolist(), strict=True))
        FITS.append(self)
        return self

    def predict_proba(self, X):
        self.asked_ += X[:, 0].tolist()
        return np.tile(self.share_, (len(X), 1))


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the states of the rows that it has seen, and guesses those of others."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = dict(zip(X[:, 0].tolist(), np.searchsorted(self.classes_, y).tolist(), strict=True))
        return self

    def predict_proba(self, X):
        p = np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
        for row, number in enumerate(X[:, 0].tolist()):
            if number in self.known_:
                p[row] = np.eye(len(self.classes_))[self.known_[number]]
        return p


@pytest.fixture(autouse=True)
def _empty():
    FITS.clear()


def noise(n, seed=0):
    """Features, the first of which names the row, and three class variables that depend on nothing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.permutation(n), rng.normal(size=(n, 2))]).astype(float)
    return X, rng.integers(0, (2, 3, 2), size=(n, 3))


def fit(rows, recipes, n_folds=5, refit=False, seed=0):
    with workers(None) as run:
        return fit_experts(ExpertFits.of(rows, [list(recipes)] * rows.n_classes, n_folds, seed, run), refit)


# Nothing leaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_no_row_is_asked_of_a_model_that_has_seen_it(weighted):
    X, Y = noise(60)
    weights = np.arange(60) % 3 + 1.0 if weighted else None
    GBNC(experts=[Recorder("a"), Recorder("b")], max_parents=0).fit(X, Y, weights)
    assert len(FITS) == 10 * 2 * 3, "10 folds, 2 experts, 3 class variables"
    for model in FITS:
        assert model.seen_.keys().isdisjoint(model.asked_)
        assert len(model.seen_) + len(model.asked_) == 60
    asked = sorted(row for model in FITS for row in model.asked_)
    assert asked == sorted(X[:, 0].tolist() * 6), "each row is asked about once for each expert and class variable"
    assert len({tuple(sorted(model.asked_)) for model in FITS}) == 10, "the same folds for all"


def test_no_row_is_asked_of_a_model_of_features_and_parents_that_has_seen_it():
    X, Y = noise(60)
    Y[:, 1] = Y[:, 0] + (X[:, 1] > 0)  # a parent that matters, so that experts given the parents are tried
    GBNC(experts=[Recorder(), GaussianNB()]).fit(X, Y)
    assert len(FITS) > 10 * 3
    for model in FITS:
        assert model.seen_.keys().isdisjoint(model.asked_)
        assert len(model.seen_) + len(model.asked_) == 60
    assert len({tuple(sorted(model.asked_)) for model in FITS}) == 10, "on the same folds"


def test_what_an_expert_memorises_is_of_no_use():
    X, Y = noise(200)
    experts = fit(training_rows(X, Y, (2, 3, 2), 3), user_recipes([Memory()]), 10)
    for Z in experts.rows:
        np.testing.assert_allclose(Z, 0.0, atol=1e-12)
    for expert, states in zip(experts.scores, (2, 3, 2), strict=True):
        assert expert[0].log_loss > np.log(states) - 0.02, "no better than a guess"
    new = experts.features(training_rows(X, Y, (2, 3, 2), 3).features)[0]
    assert (new.argmax(axis=1) == Y[:, 0]).all(), "though most of its models know them"


def test_features_of_the_default_experts_know_nothing_of_noise():
    X, Y = noise(300)
    experts = fit(training_rows(X, Y, (2, 3, 2), 3), FEW_TREES)
    for k, scores in enumerate(experts.scores):
        share = np.bincount(Y[:, k]) / 300
        entropy = -(share * np.log(share)).sum()
        assert min(score.log_loss for score in scores if score.used) > entropy - 0.02
        own = experts.rows[k].reshape(300, -1, len(share))[np.arange(300), :, Y[:, k]]
        assert (np.abs(own.mean(axis=0)) < 3 * own.std(axis=0) / np.sqrt(300) + 0.02).all()


def test_the_default_finds_nothing_in_noise():
    X, Y = noise(300)
    model = GBNC().fit(X, Y)
    assert model.graph_.number_of_edges() <= 1
    new, states = noise(3000, seed=1)
    new[:, 0] %= 300
    frequencies = -sum(np.log(np.bincount(Y[:, k]) / 300)[states[:, k]].mean() for k in range(3))
    assert joint_log_loss(states, model.predict_joint(new)) < frequencies + 0.05


def test_copies_of_a_row_are_in_one_fold():
    rng = np.random.default_rng(0)
    origin = np.sort(rng.integers(0, 80, 200))
    X = rng.normal(size=(80, 2))[origin]
    rows = training_rows(X, rng.integers(0, (2, 3), size=(200, 2)), (2, 3), 2, origin=origin)
    fold = expert_folds(rows, 7)
    assert set(fold) == set(range(7))
    for row in np.unique(origin):
        assert len(set(fold[origin == row])) == 1
    counts = np.bincount(fold[np.unique(origin, return_index=True)[1]])
    assert np.ptp(counts) <= 4


# Folds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "n_folds"), [(2, 2), (7, 7), (10, 10), (499, 10), (500, 5), (2999, 5), (3000, 3), (100_000, 3)]
)
def test_number_of_folds(n_rows, n_folds):
    assert n_expert_folds(n_rows) == n_folds
    assert plan_experts(n_rows, 4, (2, 3), False).n_folds == n_folds


@pytest.mark.parametrize("n_discrete", [0, 2])
def test_the_order_of_rows_does_not_matter_for_folds(n_discrete):
    rng = np.random.default_rng(1)
    sizes = (2, 3, *[4] * n_discrete)
    codes = rng.integers(0, sizes, size=(150, len(sizes)))
    X, order = rng.normal(size=(150, 3)), rng.permutation(150)
    fold = expert_folds(training_rows(X, codes, sizes, 2), 10)
    moved = expert_folds(training_rows(X[order], codes[order], sizes, 2), 10)
    np.testing.assert_array_equal(fold[order], moved)


def test_folds_have_equal_sizes():
    rng = np.random.default_rng(2)
    Y = np.column_stack([rng.random(300) < 0.1, rng.integers(0, 3, 300)]).astype(int)
    fold = expert_folds(training_rows(rng.normal(size=(300, 2)), Y, (2, 3), 2), 10)
    assert np.bincount(fold).tolist() == [30] * 10


# Features -----------------------------------------------------------------------------------------------------


def test_features_are_smoothed_centred_log_probabilities():
    p = np.array([[1.0, 0.0], [0.5, 0.5]])
    z = log_features(p, 9.0)
    np.testing.assert_allclose(z[0], np.log([9.5 / 10, 0.5 / 10]) - np.log([9.5 / 10, 0.5 / 10]).mean())
    np.testing.assert_allclose(z[1], 0.0, atol=1e-12)


def test_features_of_rows_are_those_of_the_model_without_their_fold():
    data = make_network(120, n_class_variables=2, n_states=3, n_discrete=0, random_state=0)
    X, Y = data.X.to_numpy(), np.column_stack([np.unique(data.Y[name], return_inverse=True)[1] for name in data.Y])
    rows = training_rows(X, Y, (3, 3), 2)
    experts, fold = fit(rows, user_recipes([GaussianNB()])), expert_folds(rows, 5)
    m = experts.features.experts[0].smoothing[0]
    assert m in SMOOTHING
    for f in range(5):
        peer = GaussianNB().fit(X[fold != f], Y[fold != f, 0])
        np.testing.assert_allclose(
            experts.rows[0][fold == f], log_features(peer.predict_proba(X[fold == f]), m), rtol=1e-9
        )


@pytest.mark.parametrize("recipe", FEW_TREES + user_recipes([DecisionTreeClassifier()]), ids=lambda recipe: recipe.name)
def test_a_state_with_one_row_is_unlikely_but_possible(recipe):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    Y[17, 1] = 2
    rows = training_rows(X, Y, (2, 3), 2)
    for refit in (False, True):
        experts = fit(rows, [recipe], refit=refit)
        for Z in (*experts.rows, *experts.features(rows.features)):
            assert np.isfinite(Z).all()
        assert (experts.rows[1].reshape(60, -1, 3)[17, :, 2] < 0).all(), "the model without it cannot know the state"


@pytest.mark.parametrize("recipe", [FEW_TREES[0], *user_recipes([GaussianNB()])], ids=lambda recipe: recipe.name)
def test_new_rows_are_answered_by_the_mean_of_the_models_or_by_one(recipe):
    X, Y = noise(100)
    rows = training_rows(X, Y, (2, 3, 2), 3)
    folds, refit = (fit(rows, [recipe], refit=refit) for refit in (False, True))
    for a, b in zip(folds.rows, refit.rows, strict=True):
        np.testing.assert_array_equal(a, b)
    fits = ExpertFits.of(
        rows, [[recipe]] * 3, 5, 0, lambda work, jobs, data, deadline: [work(job, data) for job in jobs]
    )
    candidate = next(one for one in fits.candidates() if 1 in one.targets)
    assert sorted(candidate.members) == [0, 1, 2, 3, 4]
    mean = np.mean([member.proba(fits.data.inputs(recipe)) for member in candidate.members.values()], axis=0)
    expert = folds.features.experts[folds.features.order[1][0]]
    place = expert.targets.index(1)
    begin, end = expert.columns[place]
    expected = log_features(mean[:, begin:end], expert.smoothing[place])
    np.testing.assert_allclose(folds.features(rows.features)[1], expected, atol=1e-6)
    one = refit.features.experts[refit.features.order[1][0]]
    assert len(one.members) == 1
    assert not np.allclose(refit.features(rows.features)[1], expected, atol=1e-3), "a model of all rows"


@pytest.mark.parametrize(("models", "n_members"), [("folds", 10), ("refit", 1), ("auto", 10)])
def test_expert_models(models, n_members):
    X, Y = noise(60)
    model = GBNC(experts=[Recorder()], expert_models=models, max_parents=0).fit(X, Y)
    experts = model._network.experts.experts
    assert [len(expert.members) for expert in experts] == [n_members] * 3
    on_all = [fitted for fitted in FITS if len(fitted.seen_) == 60]
    assert len(on_all) == (3 if models == "refit" else 0)
    FITS.clear()
    model.predict_proba(X[:4])
    assert not FITS, "nothing is fitted for new rows"


# The same bits ------------------------------------------------------------------------------------------------


def bits(model, X):
    return model.structure_.score, [p.tobytes() for p in model.predict_proba(X)], model.experts_


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_change_nothing(backend, monkeypatch):
    monkeypatch.setattr(parallel, "START_UP", 0.0)
    X, Y = noise(100)
    rows = training_rows(X, Y[:, :2], (2, 3), 2)

    def run(n_jobs):
        with workers(n_jobs) as pool:
            experts = fit_experts(ExpertFits.of(rows, [FEW_TREES] * 2, 5, 0, pool), True)
        new = experts.features(rows.features)
        return [Z.tobytes() for Z in (*experts.rows, *new)], experts.features.order

    alone = run(1)
    with joblib.parallel_config(backend):
        assert run(2) == alone


def test_the_seed_alone_decides():
    X, Y = noise(100)
    first, again, other = (
        bits(GBNC(experts=[ExtraTreesClassifier(5)], max_parents=1, random_state=seed).fit(X, Y), X)
        for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other
    without = [bits(GBNC(experts=[ExtraTreesClassifier(5)], max_parents=1).fit(X, Y), X) for _ in range(2)]
    assert without[0] == without[1], "repeatable without a seed"


def test_a_random_state_of_an_expert_is_kept():
    X, Y = noise(100)
    experts = [ExtraTreesClassifier(5, random_state=7)]
    a, b = (bits(GBNC(experts=experts, max_parents=0, random_state=seed).fit(X, Y), X) for seed in (1, 2))
    assert a == b
    assert experts[0].random_state == 7
    assert not hasattr(experts[0], "classes_"), "a clone was fitted"


def test_a_model_is_the_same_for_any_number_of_workers(monkeypatch):
    monkeypatch.setattr(parallel, "START_UP", 0.0)
    data = make_network(80, n_class_variables=2, random_state=1)
    experts = [ExtraTreesClassifier(5), LogisticRegression()]
    alone, together = (bits(GBNC(experts=experts, n_jobs=n_jobs).fit(data.X, data.Y), data.X) for n_jobs in (1, 2))
    assert together == alone


# Weights ------------------------------------------------------------------------------------------------------


def test_weights_reach_the_experts():
    X, Y = noise(60)
    weights = np.where(np.arange(60) < 50, np.arange(60) % 3 + 1.0, 0.0)
    GBNC(experts=[Recorder()], max_parents=0).fit(X, Y, weights)
    expected = dict(zip(X[:, 0].tolist(), weights.tolist(), strict=True))
    assert len(FITS) == 30
    for model in FITS:
        assert model.seen_ == {row: expected[row] for row in model.seen_}
        assert 0.0 not in model.seen_.values(), "rows of weight zero are left out"


@pytest.mark.parametrize("recipe", FEW_TREES, ids=lambda recipe: recipe.name)
def test_weights_reach_the_default_experts(recipe):
    X, Y = noise(100)
    X = np.round(X[:, 1:])  # rows that no expert can tell apart
    plain, pulled = (
        fit(training_rows(X, Y[:, :1], (2,), 1, weights=weights), [recipe]).features.experts[0].members[0].proba(X)
        for weights in (np.ones(100), np.where(Y[:, 0] == 1, 2.0, 0.5))
    )
    assert pulled[:, 1].mean() > plain[:, 1].mean() + 0.15


# Class variables with experts of their own ---------------------------------------------------------------------


def test_dict_of_experts():
    X, Y = noise(60)
    model = GBNC(experts={"y0": [Recorder(), GaussianNB()], "y1": None, "y2": [LogisticRegression()]}).fit(X, Y)
    names = {name: [score.name for score in scores] for name, scores in model.experts_.items()}
    assert names == {"y0": ["Recorder", "GaussianNB"], "y1": [], "y2": ["LogisticRegression"]}
    assert [model._network.has_experts(k) for k in range(3)] == [True, False, True]
    assert len(FITS) == 10, "for y0 only"
    np.testing.assert_allclose(np.sum(model.predict_proba(X)[1], axis=1), 1.0)


def test_a_class_variable_that_a_dict_leaves_out_has_the_default():
    X, Y = noise(40)
    model = GBNC(experts={"y0": None, "y1": [GaussianNB()]}).fit(X, Y)
    default = [recipe.name for recipe in plan_experts(40, 3, (2, 3, 2), False).recipes]
    assert sorted(score.name for score in model.experts_["y2"]) == sorted(default)
    assert model.experts_["y0"] == []


def test_an_estimator_means_no_default_experts():
    X, Y = noise(60)
    assert GBNC(GaussianNB()).fit(X, Y).experts_ == {"y0": [], "y1": [], "y2": []}
    model = GBNC({"y0": GaussianNB(), "y1": LogisticRegression(), "y2": GaussianNB()}).fit(X, Y)
    assert model.experts_ == {"y0": [], "y1": [], "y2": []}
    assert not hasattr(model, "C_")


def test_dict_of_estimators_is_each_estimator_for_its_class_variable():
    X, Y = noise(60)
    estimators = {"y0": GaussianNB(), "y1": DecisionTreeClassifier(max_depth=2, random_state=0)}
    folds = list(KFold(5).split(X))
    model = GBNC(estimators, experts=None, max_parents=0, cv=folds).fit(X, Y)
    for k, (name, estimator) in enumerate(estimators.items()):
        alone = GBNC(estimator, max_parents=0, cv=folds, criterion="cv").fit(X, Y[:, k])
        np.testing.assert_allclose(model.predict_proba(X)[k], alone.predict_proba(X), rtol=1e-9)
        assert name not in model.C_
    assert list(model.C_) == ["y2"], "the default for those that the dict does not name"
    default = GBNC(experts=None, max_parents=0, cv=folds).fit(X, Y[:, 2])
    np.testing.assert_allclose(model.predict_proba(X)[2], default.predict_proba(X), rtol=1e-9)


def test_an_estimator_on_features_of_given_experts():
    X, Y = noise(80)
    Y[:, 0] = X[:, 1] > 0
    model = GBNC(LogisticRegression(), experts=[GaussianNB()], max_parents=0).fit(X, Y)
    assert [score.used for score in model.experts_["y0"]] == [True]
    assert (model.predict(X)[:, 0] == Y[:, 0]).mean() > 0.9


def test_discrete_features_are_indicators_for_experts_and_parents_only_if_required():
    data = make_network(80, n_class_variables=2, n_discrete=2, random_state=0)
    n_values = [data.X[name].nunique() for name in data.X.select_dtypes("category")]
    n_continuous = data.X.shape[1] - len(n_values)
    model = GBNC(experts=[GaussianNB()]).fit(data.X, data.Y)
    widths = [member.classifier.n_features_in_ for e in model._network.experts.experts for member in e.members]
    assert set(widths) == {n_continuous + sum(n_values)}
    assert set(model.graph_) == {"y0", "y1"}
    required = GBNC(experts=[GaussianNB()], required_edges=[("d0", "y1")]).fit(data.X, data.Y)
    assert ("d0", "y1") in required.graph_.edges


# experts_ -----------------------------------------------------------------------------------------------------


def test_scores_of_experts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.column_stack([(X[:, 0] > 0) ^ (X[:, 1] > 0), X[:, 2] > 0]).astype(int)
    model = GBNC(experts=[LogisticRegression(), ExtraTreesClassifier(30, random_state=0)], max_parents=0).fit(X, Y)
    for scores in model.experts_.values():
        assert [score.name for score in scores] == ["LogisticRegression", "ExtraTreesClassifier"]
        assert all(0 < score.log_loss < 0.8 for score in scores)
        assert any(score.used for score in scores)
    linear, trees = model.experts_["y0"]
    assert linear.log_loss > np.log(2) - 0.03, "xor is no linear function"
    assert trees.log_loss < 0.5
    assert trees.used
    linear, trees = model.experts_["y1"]
    assert linear.log_loss < trees.log_loss
    assert linear.used


def test_an_expert_that_adds_nothing_is_dropped():
    X, Y = noise(200)
    Y[:, 0] = X[:, 1] > 0
    model = GBNC(experts=[Recorder("a"), LogisticRegression(), Recorder("b")], max_parents=0).fit(X, Y)
    first, useful, second = model.experts_["y0"]
    assert useful.used
    assert not first.used
    assert not second.used
    assert first.name != second.name
    assert len(model._network.experts.order[0]) == 1
    for scores in model.experts_.values():
        assert any(score.used for score in scores), "at least one is kept"


def test_no_warnings_from_the_default():
    X, Y = noise(40)
    Y[0, 1] = 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GBNC(max_parents=1).fit(X, Y).predict_proba(X)


def test_folds_of_the_user_are_those_of_the_experts():
    """Copies of a row in two groups: only folds by group keep an expert from looking them up."""
    from sklearn.model_selection import GroupKFold
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(0)
    X, Y = np.repeat(rng.normal(size=(60, 3)), 2, axis=0), np.repeat(rng.integers(2, size=(60, 2)), 2, axis=0)
    groups = np.repeat(np.arange(60), 2)
    folds = list(GroupKFold(5).split(X, Y, groups))
    nearest = [KNeighborsClassifier(1)]
    looked_up = GBNC(experts=nearest, max_parents=0).fit(X, Y).experts_["y0"][0].log_loss
    honest = GBNC(experts=nearest, max_parents=0, cv=folds).fit(X, Y).experts_["y0"][0].log_loss
    assert looked_up < 0.4
    assert honest > 0.6


def test_folds_that_leave_rows_out_of_training_have_no_experts():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.integers(2, size=(40, 2))
    halves = [(np.arange(20, 39), np.arange(20)), (np.arange(19), np.arange(20, 40))]
    with pytest.warns(UserWarning, match="cv .*experts"):
        model = GBNC(cv=halves).fit(X, Y)
    assert not any(model.experts_.values())


def test_forests_beside_classifiers_of_the_user_see_standardised_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    Y = np.column_stack([x[:, 0] > 0, x[:, 0] > 0.5]).astype(int)
    model = GBNC(experts={"y0": [GaussianNB()]}, max_parents=0).fit(1e10 + x, Y)
    assert min(score.log_loss for score in model.experts_["y1"] if "trees" in score.name) < 0.2
