"""Binary relevance, chains and the powerset against independent implementations."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multioutput import ClassifierChain as BinaryChain
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from oracles import Enumeration, all_outcomes
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.learners import Logistic

DATA = make_network(300, n_class_variables=3, n_states=3, n_continuous=2, n_discrete=1, random_state=3)
X, Y = DATA.X, DATA.Y
INPUTS = np.hstack([X[["x0", "x1"]], OneHotEncoder(sparse_output=False).fit_transform(X[["d0"]])])
CODES = np.column_stack([Y[c].cat.codes for c in Y])
SIZES = (3, 3, 3)
PLAIN = LogisticRegression(tol=1e-8, max_iter=2000, fit_intercept=False)  # the loop, not our own engine


def one_hot(codes):
    return np.hstack([np.eye(3)[codes[:, j]] for j in range(codes.shape[1])] or [np.empty((len(codes), 0))])


def test_binary_relevance_is_one_classifier_for_each():
    model = BinaryRelevance(PLAIN).fit(X, Y)
    for k, proba in enumerate(model.predict_proba(X)):
        np.testing.assert_allclose(proba, PLAIN.fit(INPUTS, CODES[:, k]).predict_proba(INPUTS), atol=1e-9)
    pd.testing.assert_frame_equal(model.predict(X, loss="hamming"), model.predict(X, loss="subset"))
    expected = sum(np.log(p[np.arange(300), CODES[:, k]]) for k, p in enumerate(model.predict_proba(X)))
    np.testing.assert_allclose(model.predict_joint(X).log_prob(Y), expected)


def test_binary_relevance_is_gbnc_without_parents_on_continuous_features():
    numbers = X[["x0", "x1"]]
    for a, b in zip(
        BinaryRelevance(Logistic()).fit(numbers, Y).predict_proba(numbers),
        GBNC(Logistic(), criterion="bic", max_parents=0).fit(numbers, Y).predict_proba(numbers),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("order", [None, [2, 0, 1], ["y1", "y2", "y0"]])
def test_a_chain_by_hand(order):
    model = ClassifierChain(PLAIN, order=order).fit(X, Y)
    places = [0, 1, 2] if order is None else [list(Y).index(k) if isinstance(k, str) else k for k in order]
    assert model.order_ == [list(Y)[k] for k in places]
    greedy = np.zeros_like(CODES)
    log_prob = np.zeros(300)
    for i, k in enumerate(places):
        before = places[:i]
        link = PLAIN.fit(np.hstack([INPUTS, one_hot(CODES[:, before])]), CODES[:, k])
        log_prob += link.predict_log_proba(np.hstack([INPUTS, one_hot(CODES[:, before])]))[np.arange(300), CODES[:, k]]
        greedy[:, k] = link.predict(np.hstack([INPUTS, one_hot(greedy[:, before])]))
    predicted = model.predict(X)
    assert list(predicted) == list(Y), "columns in the order of Y, whatever the order of the chain"
    np.testing.assert_array_equal(np.column_stack([predicted[c].cat.codes for c in Y]), greedy)
    np.testing.assert_allclose(model.predict_joint(X).log_prob(Y), log_prob, atol=1e-7)


def test_a_chain_of_binary_class_variables_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(200, 3))
    states = (numbers + rng.normal(size=(200, 3)) > 0).astype(int)
    states[:, 2] |= states[:, 0]
    order = [2, 0, 1]
    # scikit-learn passes 0/1 on, we pass both indicators: unpenalised, they say the same
    ours = ClassifierChain(LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000), order=order).fit(numbers, states)
    theirs = BinaryChain(LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000), order=order).fit(numbers, states)
    np.testing.assert_array_equal(ours.predict(numbers), theirs.predict(numbers).astype(int))


def chain_by_enumeration(model):
    outcomes = all_outcomes(SIZES)
    log_prob = [
        model.predict_joint(X).log_prob_codes(np.broadcast_to(outcome, CODES.shape).copy()) for outcome in outcomes
    ]
    return Enumeration(SIZES, np.column_stack(log_prob))


def test_marginals_mode_and_entropy_of_a_chain_are_exact():
    model = ClassifierChain(GaussianNB(), order=[1, 2, 0]).fit(X, Y)
    truth = chain_by_enumeration(model)
    distribution = model.predict_joint(X)
    for ours, expected in zip(distribution.marginals(), truth.marginals(), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)
    np.testing.assert_allclose(distribution.mode().log_prob, truth.log_prob.max(axis=1), atol=1e-10)
    np.testing.assert_allclose(distribution.entropy(), truth.entropy(), atol=1e-9)
    draws = distribution.sample(400, random_state=0)
    assert draws.shape == (300, 400, 3)
    frequencies = (draws == np.array(["a", "b", "c"], dtype=object)[:, None, None, None]).mean(axis=2)
    for k, marginal in enumerate(truth.marginals()):
        assert np.abs(frequencies[:, :, k].T - marginal).max() < 0.15


def test_a_chain_with_too_many_outcomes_still_predicts_and_scores_but_does_not_pretend():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 3, size=(60, 14))
    numbers = rng.normal(size=(60, 1))
    model = ClassifierChain(GaussianNB()).fit(numbers, states)
    assert model.predict(numbers).shape == (60, 14)
    assert np.isfinite(model.predict_joint(numbers).log_prob(states)).all()
    with pytest.raises(ValueError, match="4.78e.06 outcomes.*greedy"):
        model.predict_proba(numbers)


def test_the_best_order_is_chosen_on_held_out_rows():
    """The second class variable depends on the first one only by exclusive or with the third: order matters."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(400, 2))
    first, third = (numbers + 0.3 * rng.normal(size=(400, 2)) > 0).astype(int).T
    states = np.column_stack([first ^ third, first, third])
    settings = {"order": "best", "n_orders": 6, "random_state": 5, "order_loss": "subset"}
    model = ClassifierChain(DecisionTreeClassifier(max_depth=4, random_state=0), **settings).fit(numbers, states)
    random = np.random.RandomState(5)
    orders = [(0, 1, 2), *(tuple(random.permutation(3).tolist()) for _ in range(6))]
    train, test = train_test_split(np.arange(400), test_size=0.2, random_state=random)
    losses = {}
    for order in orders:
        chain = ClassifierChain(DecisionTreeClassifier(max_depth=4, random_state=0), order=list(order))
        predicted = chain.set_params(random_state=5).fit(numbers[train], states[train]).predict(numbers[test])
        losses[order] = (predicted != states[test]).any(axis=1).mean()
    best = tuple(int(name[1:]) for name in model.order_)
    assert losses[best] == min(losses.values())
    assert losses[best] < losses[0, 1, 2], "the given order was not the best, so something was chosen"
    refitted = ClassifierChain(DecisionTreeClassifier(max_depth=4, random_state=0), order=list(best), random_state=5)
    np.testing.assert_array_equal(refitted.fit(numbers, states).predict(numbers), model.predict(numbers))
    orders = {tuple(ClassifierChain(GaussianNB(), order="random", random_state=s).fit(X, Y).order_) for s in range(8)}
    assert len(orders) > 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": "sorted"}, "order='sorted' is not known"),
        ({"order": ["y0", "y1"]}, r"order=\['y0', 'y1'\] must name each class variable once"),
        ({"order": [0, 0, 1]}, "must name each class variable once"),
        ({"order": "best", "order_loss": "f1"}, "order_loss='f1'"),
        ({"order": 1}, "order=1 is not known"),
        ({"n_orders": -1}, "n_orders=-1"),
        ({"validation_size": 3.0}, "validation_size=3.0"),
        ({"loss": "hammin"}, "loss='hammin' is not known; did you mean 'hamming'"),
    ],
)
def test_bad_orders(parameters, message):
    with pytest.raises(ValueError, match=message):
        ClassifierChain(GaussianNB(), **parameters).fit(X, Y)


def test_the_powerset_is_one_classifier_over_observed_outcomes():
    model = ClassPowerset(PLAIN).fit(X, Y)
    outcome = CODES @ [9, 3, 1]
    seen, codes = np.unique(outcome, return_inverse=True)
    proba = np.zeros((300, 27))
    proba[:, seen] = PLAIN.fit(INPUTS, codes).predict_proba(INPUTS) * (1 - 1 / 301)
    unseen = np.setdiff1d(np.arange(27), seen)
    assert len(unseen), "the interesting case: some outcome has no row"
    proba[:, unseen] = 1 / 301 / len(unseen)
    with np.errstate(divide="ignore"):
        truth = Enumeration(SIZES, np.log(proba))
    for ours, expected in zip(model.predict_proba(X), truth.marginals(), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-9)
    predicted = model.predict(X)
    np.testing.assert_array_equal(
        np.column_stack([predicted[c].cat.codes for c in Y]), all_outcomes(SIZES)[proba.argmax(axis=1)]
    )
    every = pd.DataFrame(np.array(["a", "b", "c"])[all_outcomes(SIZES)], columns=list(Y))
    first = model.predict_joint(pd.concat([X[:1]] * 27, ignore_index=True))
    np.testing.assert_allclose(np.exp(first.log_prob(every)), proba[0], atol=1e-9)


def test_multi_class_columns_do_not_collapse_to_zero_and_nonzero():
    """States 1 and 2 differ only in the features; a powerset that sees zero/non-zero could not tell them apart."""
    numbers = np.repeat([[0.0], [5.0], [10.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(60, 1)) / 10
    states = np.repeat([[0, 2], [1, 0], [2, 1]], 20, axis=0)
    for model in (ClassPowerset(), ClassifierChain(order=[1, 0]), BinaryRelevance()):
        np.testing.assert_array_equal(model.fit(numbers, states).predict(numbers), states)


@pytest.mark.parametrize("model", [BinaryRelevance(), ClassifierChain(), ClassPowerset()], ids=repr)
def test_unseen_categories_and_zero_probabilities(model):
    model.set_params(estimator=DecisionTreeClassifier(random_state=0)).fit(X[:200], Y[:200])
    assert np.isfinite(model.predict_joint(X[200:]).log_prob(Y[200:])).all()
    new = X[:3].assign(d0="new")
    with pytest.warns(UserWarning, match="column 'd0'.*none of the known values"):
        model.predict(new)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X[:3])


# Ensembles of chains ------------------------------------------------------------------------------------------


def test_the_ensemble_is_the_mean_of_its_chains():
    ensemble = ChainEnsemble(GaussianNB(), n_chains=4, random_state=0).fit(X, Y)
    chains = [ClassifierChain(GaussianNB(), order=order).fit(X, Y) for order in ensemble.orders_]
    assert len({tuple(order) for order in ensemble.orders_}) > 1
    each = [chain_by_enumeration(chain).prob for chain in chains]
    with np.errstate(divide="ignore"):
        truth = Enumeration(SIZES, np.log(np.mean(each, axis=0)))
    distribution = ensemble.predict_joint(X)
    np.testing.assert_allclose(
        distribution.log_prob(Y), truth.log_prob[np.arange(300), truth.index_of(CODES)], atol=1e-10
    )
    for ours, expected in zip(ensemble.predict_proba(X), truth.marginals(), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)
    np.testing.assert_allclose(distribution.mode().log_prob, truth.log_prob.max(axis=1), atol=1e-10)
    np.testing.assert_allclose(distribution.entropy(), truth.entropy(), atol=1e-9)
    votes = np.stack([np.column_stack([c.predict(X)[y].cat.codes for y in Y]) for c in chains])
    majority = np.column_stack([[np.bincount(v, minlength=3).argmax() for v in votes[:, :, k].T] for k in range(3)])
    predicted = ensemble.predict(X)
    np.testing.assert_array_equal(np.column_stack([predicted[c].cat.codes for c in Y]), majority)


def test_samples_of_an_ensemble_follow_the_mean():
    ensemble = ChainEnsemble(GaussianNB(), n_chains=3, random_state=1).fit(X, Y)
    row = pd.concat([X[:1]] * 2, ignore_index=True)
    draws = ensemble.predict_joint(row).sample(20_000, random_state=0)[0]
    codes = np.searchsorted(["a", "b", "c"], draws.astype(str)) @ [9, 3, 1]
    outcomes = pd.DataFrame(np.array(["a", "b", "c"])[all_outcomes(SIZES)], columns=list(Y))
    expected = np.exp(ensemble.predict_joint(pd.concat([X[:1]] * 27, ignore_index=True)).log_prob(outcomes))
    kept = expected * 20_000 >= 5
    observed = np.bincount(codes, minlength=27)
    observed, expected = [np.append(v[kept], v[~kept].sum()) for v in (observed, expected * 20_000)]
    assert chisquare(observed, expected / expected.sum() * observed.sum()).pvalue > 1e-4


def test_an_ensemble_with_too_many_outcomes_estimates_only_when_asked():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(40, 1))
    states = rng.integers(0, 3, size=(40, 14))
    model = ChainEnsemble(GaussianNB(), n_chains=2, random_state=0).fit(numbers, states)
    assert np.isfinite(model.predict_joint(numbers).log_prob(states)).all()
    assert model.predict(numbers).shape == (40, 14)
    with pytest.raises(ValueError, match="set n_samples for an estimate"):
        model.predict_proba(numbers)
    asked = model.set_params(n_samples=200).fit(numbers, states)
    first, second = asked.predict_proba(numbers), asked.predict_proba(numbers)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a.sum(axis=1), 1.0)
    codes, log_prob = asked.predict_joint(numbers).mode_codes()
    np.testing.assert_allclose(asked.predict_joint(numbers).log_prob(codes), log_prob)


def test_bootstrap_and_seeds_of_an_ensemble():
    settings = {"n_chains": 2, "bootstrap": True, "random_state": 3}
    a, b = (ChainEnsemble(GaussianNB(), **settings).fit(X, Y).predict_proba(X) for _ in range(2))
    for p, q in zip(a, b, strict=True):
        np.testing.assert_array_equal(p, q)
    with pytest.raises(ValueError, match="n_chains=0"):
        ChainEnsemble(GaussianNB(), n_chains=0).fit(X, Y)
    with pytest.raises(ValueError, match="n_samples=-1"):
        ChainEnsemble(GaussianNB(), n_samples=-1).fit(X, Y)
