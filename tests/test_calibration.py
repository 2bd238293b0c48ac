"""Calibrated baselines: temperatures by out-of-fold probabilities."""

import warnings

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import pmdc
from pmdc import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.baselines.calibration import MAX_TEMPERATURE, MIN_TEMPERATURE, best_temperature
from pmdc.datasets import make_network
from pmdc.learners import NaiveBayes

DATA = make_network(500, n_class_variables=3, n_states=3, n_continuous=3, n_discrete=1, random_state=3)
X, Y, X_TEST, Y_TEST = DATA.X[:300], DATA.Y[:300], DATA.X[300:], DATA.Y[300:]
TREE = DecisionTreeClassifier(random_state=0)

KINDS = {
    "relevance": BinaryRelevance,
    "chain": ClassifierChain,
    "ensemble": lambda estimator=None, **options: ChainEnsemble(estimator, n_chains=3, random_state=0, **options),
    "powerset": ClassPowerset,
}


def log_loss(model):
    return -model.predict_joint(X_TEST).log_prob(Y_TEST).mean()


def temperatures(model):
    return [model.temperature_] if isinstance(model, ClassPowerset) else list(model.temperatures_.values())


def copied_features(table):
    """Features that naive Bayes takes to be independent, though they are copies."""
    return table.assign(**{f"copy{i}{name}": table[name] for i in range(4) for name in ("x0", "x1", "x2")})


@pytest.mark.parametrize("kind", KINDS)
def test_an_overconfident_model_gets_a_temperature_above_one_and_a_better_log_loss(kind):
    plain = KINDS[kind](TREE).fit(X, Y)
    calibrated = KINDS[kind](TREE, calibrate=True).fit(X, Y)
    assert min(temperatures(calibrated)) > 1.2
    assert log_loss(calibrated) < log_loss(plain) - 0.1
    assert calibrated.predict(X_TEST).equals(plain.predict(X_TEST)), "their own decisions depend on the order of states"


def test_naive_bayes_with_copies_of_features_is_overconfident():
    plain = BinaryRelevance(GaussianNB()).fit(copied_features(X), Y)
    calibrated = BinaryRelevance(GaussianNB(), calibrate=True).fit(copied_features(X), Y)
    assert min(calibrated.temperatures_.values()) > 1.2
    test = copied_features(X_TEST)
    assert calibrated.predict_joint(test).log_prob(Y_TEST).mean() > plain.predict_joint(test).log_prob(Y_TEST).mean()


@pytest.mark.parametrize("estimator", [None, NaiveBayes(), TREE], ids=["logistic", "bayes", "tree"])
@pytest.mark.parametrize("kind", ["relevance", "chain"])
def test_the_model_itself_is_that_without_calibration(kind, estimator):
    plain = KINDS[kind](estimator).fit(X, Y)
    calibrated = KINDS[kind](estimator, calibrate=True).fit(X, Y)
    names = list(Y)
    if kind == "chain":  # its joint distribution is the product of the links
        log_p = [plain._chain.log_proba(k, *asked(plain)) for k in range(3)]
        found = [calibrated._chain.log_proba(k, *asked(plain)) for k in range(3)]
    else:
        log_p = [np.log(p) for p in plain.predict_proba(X_TEST)]
        found = [np.log(p) for p in calibrated.predict_proba(X_TEST)]
    for name, before, after in zip(names, log_p, found, strict=True):
        expected = log_softmax(before / calibrated.temperatures_[name], axis=1)
        np.testing.assert_allclose(after, expected, rtol=1e-9, atol=1e-12)
    assert plain.temperatures_ == {}


def asked(model):
    codes = model.class_table_.encode(Y_TEST)
    return model._read(X_TEST), codes


def test_temperatures_are_found_by_rows_that_the_models_have_not_seen():
    """A tree predicts its own rows without error: only held-out rows tell that it is too sure."""
    own = np.log(BinaryRelevance(TREE).fit(X, Y).predict_proba(X)[0])
    codes = Y.iloc[:, 0].cat.codes.to_numpy()
    assert best_temperature(own, codes, np.ones(len(X))) < 1
    assert BinaryRelevance(TREE, calibrate=True).fit(X, Y).temperatures_["y0"] > 1


def test_the_best_temperature():
    rng = np.random.default_rng(0)
    true = log_softmax(rng.normal(size=(20_000, 3)), axis=1)
    codes = (np.exp(true).cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    for temperature in (0.3, 1.0, 4.0):
        found = best_temperature(log_softmax(true * temperature, axis=1), codes, np.ones(20_000))
        assert found == pytest.approx(temperature, rel=0.05)
    sure = np.log([[0.8, 0.2]] * 10)
    right = best_temperature(sure, np.zeros(10, dtype=int), np.ones(10))
    assert MIN_TEMPERATURE < right < 1, "one more row keeps probabilities away from zero"
    wrong = best_temperature(sure, np.ones(10, dtype=int), np.ones(10))
    assert wrong == pytest.approx(MAX_TEMPERATURE, rel=1e-3)
    counted = best_temperature(true[:50], codes[:50], np.repeat([1.0, 3.0], 25))
    repeated = np.repeat(np.arange(50), np.repeat([1, 3], 25))
    assert counted == pytest.approx(best_temperature(true[repeated], codes[repeated], np.ones(100)), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_fewer_rows_than_folds(kind, n):
    model = KINDS[kind](TREE, calibrate=True).fit(X[:n], Y[:n])
    assert all(MIN_TEMPERATURE <= one <= MAX_TEMPERATURE for one in temperatures(model))
    assert np.isfinite(model.predict_joint(X_TEST).log_prob(Y_TEST)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", [None, TREE], ids=["logistic", "tree"])
def test_one_state_and_a_state_of_one_row(kind, estimator):
    odd = Y[:60].copy()
    odd["y0"] = odd["y0"].cat.categories[0]
    odd["y0"] = odd["y0"].astype(Y["y0"].dtype)
    odd["y1"] = np.where(np.arange(60) == 7, "b", "a")
    odd["y1"] = odd["y1"].astype(Y["y1"].dtype)
    model = KINDS[kind](estimator, calibrate=True).fit(X[:60], odd)
    assert all(np.isfinite(temperatures(model)))
    assert np.isfinite(model.predict_joint(X_TEST).log_prob(Y_TEST)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_of_two_is_two_rows(kind):
    estimator = NaiveBayes()
    weights = np.repeat([1, 2], 150)
    weighted = KINDS[kind](estimator, calibrate=True).fit(X, Y, sample_weight=weights)
    rows = np.repeat(np.arange(300), weights)
    repeated = KINDS[kind](estimator, calibrate=True).fit(X.iloc[rows], Y.iloc[rows])
    np.testing.assert_allclose(temperatures(weighted), temperatures(repeated), rtol=1e-5)
    np.testing.assert_allclose(
        weighted.predict_joint(X_TEST).log_prob(Y_TEST), repeated.predict_joint(X_TEST).log_prob(Y_TEST), rtol=1e-4
    )


def test_chains_of_an_ensemble_share_the_temperatures_of_the_first():
    ensemble = ChainEnsemble(TREE, n_chains=3, random_state=0, calibrate=True).fit(X, Y)
    first = ClassifierChain(TREE, order=ensemble.orders_[0], random_state=0, calibrate=True).fit(X, Y)
    assert ensemble.temperatures_ == first.temperatures_
    assert all(chain.temperatures == ensemble._chains[0].temperatures for chain in ensemble._chains)
    drawn = ChainEnsemble(TREE, n_chains=3, bootstrap=True, random_state=0, calibrate=True).fit(X, Y)
    assert min(drawn.temperatures_.values()) > 1.2, "copies of a row are not taken for new rows"


def test_the_best_order_of_a_chain_is_calibrated_in_the_end():
    options = {"order": "best", "n_orders": 2, "random_state": 1}
    plain = ClassifierChain(TREE, **options).fit(X, Y)
    calibrated = ClassifierChain(TREE, **options, calibrate=True).fit(X, Y)
    assert calibrated.order_ == plain.order_
    assert min(calibrated.temperatures_.values()) > 1.2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", [None, GaussianNB()], ids=["logistic", "bayes"])
def test_calibrated_models_are_saved(kind, estimator, tmp_path):
    model = KINDS[kind](estimator, calibrate=True).fit(X, Y)
    pmdc.save(model, tmp_path / "model")
    again = pmdc.load(tmp_path / "model")
    assert temperatures(again) == temperatures(model)
    np.testing.assert_array_equal(
        again.predict_joint(X_TEST).log_prob(Y_TEST), model.predict_joint(X_TEST).log_prob(Y_TEST)
    )


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf, 1, "hot", None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_an_impossible_temperature_is_refused(kind, temperature, tmp_path):
    model = KINDS[kind](GaussianNB(), calibrate=True).fit(X, Y)
    chain = {"chain": "_chain", "ensemble": "_chains"}.get(kind)
    if kind == "powerset":
        target = model._model[0]
    elif chain:
        target = np.ravel(getattr(model, chain))[0].links[0][0]
    else:
        target = model._models[0][0]
    object.__setattr__(target, "temperature", temperature)
    pmdc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="damaged"):
        pmdc.load(tmp_path / "model")


def test_the_parameter_is_checked():
    with pytest.raises(ValueError, match="calibrate='yes'"):
        BinaryRelevance(calibrate="yes").fit(X, Y)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ClassPowerset(calibrate=True).fit(X, Y)
