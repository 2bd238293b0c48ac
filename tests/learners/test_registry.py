"""Which engine fits which estimator, and what each engine can do beyond a fit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from pmdc import GBNC, BinaryRelevance, ClassifierChain
from pmdc.candidates.families import Family
from pmdc.learners import Logistic, NaiveBayes, default_estimator, make_learner
from pmdc.learners.clones import EstimatorLearner, ForestLearner
from pmdc.learners.logistic import LogisticLearner
from pmdc.learners.naive_bayes import NaiveBayesLearner
from pmdc.learners.options import Options
from pmdc.learners.protocols import CrossValidated, LeaveOneOut, OutOfBag, Regularised, WarmStart
from pmdc.learners.registry import ENGINES
from pmdc.learners.tasks import local_task
from pmdc.table.features import Features

EXPECTED = {
    LogisticLearner: {WarmStart, CrossValidated, Regularised},
    NaiveBayesLearner: {LeaveOneOut},
    ForestLearner: {OutOfBag},
    EstimatorLearner: set(),
}


def inputs(n=40, discrete=False):
    rng = np.random.default_rng(0)
    return Features(rng.normal(size=(n, 2)), rng.integers(0, 3, size=(n, int(discrete))))


def learner_of(estimator, discrete=False, **options):
    return make_learner(estimator, inputs(discrete=discrete), np.ones(40), (3,) * discrete, Options(**options))


def test_what_each_engine_can_do():
    capabilities = (WarmStart, CrossValidated, LeaveOneOut, OutOfBag, Regularised)
    engines = [engine for engine in ENGINES if isinstance(engine.learner, type)]
    assert {engine.learner for engine in engines} == set(EXPECTED)
    for engine in engines:
        assert {one for one in capabilities if issubclass(engine.learner, one)} == EXPECTED[engine.learner]
        assert bool(engine.settings) == issubclass(engine.learner, LeaveOneOut), (
            "named in the message of criterion='loo'"
        )


@pytest.mark.parametrize(
    ("estimator", "learner"),
    [
        (None, LogisticLearner),
        (Logistic(), LogisticLearner),
        (Logistic(C="auto"), LogisticLearner),
        (LogisticRegression(), LogisticLearner),
        (LogisticRegression(C=np.inf, solver="newton-cholesky", max_iter=7), LogisticLearner),
        (LogisticRegression(solver="liblinear"), EstimatorLearner),
        (LogisticRegression(class_weight="balanced"), EstimatorLearner),
        (LogisticRegression(fit_intercept=False), EstimatorLearner),
        (LogisticRegression(l1_ratio=0.5, solver="saga"), EstimatorLearner),
        (LogisticRegression(warm_start=True), EstimatorLearner),
        (type("Mine", (LogisticRegression,), {})(), EstimatorLearner),
        (make_pipeline(StandardScaler(), LogisticRegression()), EstimatorLearner),
        (SGDClassifier(loss="log_loss"), EstimatorLearner),
        (NaiveBayes(), NaiveBayesLearner),
        (GaussianNB(), NaiveBayesLearner),
        (GaussianNB(var_smoothing=0), EstimatorLearner),
        (GaussianNB(priors=[0.5, 0.5]), EstimatorLearner),
        (type("Mine", (GaussianNB,), {})(), EstimatorLearner),
        (BernoulliNB(), EstimatorLearner),
        (RandomForestClassifier(), ForestLearner),
        (RandomForestClassifier(bootstrap=False), EstimatorLearner),
        (ExtraTreesClassifier(), EstimatorLearner),
        (ExtraTreesClassifier(bootstrap=True), ForestLearner),
        (GradientBoostingClassifier(), EstimatorLearner),
        (DecisionTreeClassifier(), EstimatorLearner),
        (KNeighborsClassifier(), EstimatorLearner),
        (DummyClassifier(), EstimatorLearner),
    ],
    ids=repr,
)
def test_which_engine_fits_an_estimator(estimator, learner):
    assert type(learner_of(estimator)) is learner


def test_gaussians_of_discrete_inputs_are_not_those_of_scikit_learn():
    assert type(learner_of(NaiveBayes(), discrete=True)) is NaiveBayesLearner
    assert type(learner_of(GaussianNB(), discrete=True)) is EstimatorLearner
    assert type(learner_of(LogisticRegression(), discrete=True)) is LogisticLearner


@pytest.mark.parametrize("backoff", ["parents", "none", "paper"])
@pytest.mark.parametrize("estimator", [Logistic(), NaiveBayes(), RandomForestClassifier(3), DecisionTreeClassifier()])
def test_every_capability_answers(estimator, backoff):
    """Whatever a learner says it can do, it does: one finite log-probability for each row that others resemble."""
    learner = learner_of(estimator, backoff=backoff, random_state=0)
    rng = np.random.default_rng(1)
    codes = np.column_stack([np.arange(40) % 2, rng.integers(0, 2, 40)])
    coarse, fine = (local_task(0, family, codes, (2, 2)) for family in (Family(()), Family((1,))))
    assert np.isfinite(learner.log_likelihood(fine))
    assert learner.fit(fine).log_proba(learner.X, fine.partition.part).shape == (40, 2)
    if isinstance(learner, WarmStart):
        value, _ = learner.log_likelihood_from(fine, learner.start(coarse, None))
        assert value == pytest.approx(learner.log_likelihood(fine), rel=1e-5)
    if isinstance(learner, CrossValidated):
        rows, _ = learner.cross_validate(fine, np.arange(40) // 20, None)
        assert np.isfinite(rows).all()
    if isinstance(learner, LeaveOneOut):
        assert np.isfinite(learner.leave_one_out(fine)).all()
    if isinstance(learner, OutOfBag):
        rows, answered = learner.out_of_bag(fine)
        assert np.isfinite(rows[answered]).all()
        assert answered.any()
    if isinstance(learner, Regularised):
        assert not learner.auto
        assert learner.with_C(1e-3).log_likelihood(fine) < learner.log_likelihood(fine)


def test_the_default_estimator_chooses_C():
    made = default_estimator()
    assert isinstance(made, Logistic)
    assert made.C == "auto"
    assert made is not default_estimator()
    assert learner_of(None).auto
    assert not learner_of(Logistic()).auto


@pytest.mark.parametrize("classifier", [GBNC, BinaryRelevance, ClassifierChain])
def test_parameters_of_the_default_estimator(classifier):
    """None stands for the default in parameters too; what is not named keeps its value."""
    changed = classifier().set_params(estimator__max_iter=50)
    assert changed.estimator.C == "auto"
    assert changed.estimator.max_iter == 50
    assert classifier().estimator is None
    assert clone(changed).estimator.max_iter == 50


def test_options_follow_from_backoff():
    assert [Options(backoff=name).smooth for name in ("parents", "none", "paper")] == [True, False, False]
    assert [Options(backoff=name).min_max for name in ("parents", "none", "paper")] == [False, False, True]
    assert Options(backoff="paper").paper
    assert not Options(backoff="paper", has_discrete=False).paper


def test_models_are_of_the_type_that_the_engine_says():
    codes = np.arange(40)[:, None] % 2
    engines = [engine for engine in ENGINES if isinstance(engine.learner, type)]
    for engine, estimator in zip(
        engines, (Logistic(), NaiveBayes(), RandomForestClassifier(2), DecisionTreeClassifier()), strict=True
    ):
        learner = learner_of(estimator)
        assert type(learner) is engine.learner
        assert type(learner.fit(local_task(0, Family(()), codes, (2,)))) is engine.models
        assert all(engine.accepts(made(), ()) for made in engine.estimators)
