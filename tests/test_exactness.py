"""GBNC against brute force: no structure scores better, and all answers are those of full enumeration."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from oracles import Enumeration, best_network, local_score
from pmdc import GBNC
from pmdc.datasets import make_network
from pmdc.learners import Logistic

PENALTIES = {
    "bic": lambda s, parents, n: 0.5 * np.log(n) * (s - 1) * np.prod(parents),
    "cll": lambda s, parents, n: 0.0,
}


def codes_of(data):
    frames = [data.Y, data.X.select_dtypes("category")]
    return np.column_stack([f[c].cat.codes.to_numpy() for f in frames for c in f]).astype(np.int64)


def sizes_of(data):
    frames = [data.Y, data.X.select_dtypes("category")]
    return [len(f[c].cat.categories) for f in frames for c in f]


def plain_models(estimator, X):
    """Fits one part with scikit-learn alone."""
    if estimator is None:
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        return lambda rows, states: _own(LogisticRegression(tol=1e-10, max_iter=10_000), Z[rows], states)
    return lambda rows, states: _own(estimator, X[rows], states)


def _own(estimator, X, states):
    fitted = estimator.fit(X, states)
    return fitted.predict_log_proba(X)[np.arange(len(X)), np.searchsorted(fitted.classes_, states)]


@pytest.mark.parametrize("criterion", ["bic", "cll"])
@pytest.mark.parametrize(
    ("estimator", "K", "n_discrete", "max_parents", "max_discrete_parents"),
    [(None, 3, 1, 2, 1), (GaussianNB(), 4, 1, 3, 1), (GaussianNB(), 3, 2, 1, 2), (GaussianNB(), 4, 0, 2, 3)],
)
def test_no_structure_scores_better(estimator, K, n_discrete, max_parents, max_discrete_parents, criterion):
    data = make_network(
        150, n_class_variables=K, n_states=2, n_continuous=2, n_discrete=n_discrete, n_discrete_states=2, random_state=K
    )
    X = data.X.select_dtypes("number").to_numpy()
    codes, sizes = codes_of(data), sizes_of(data)
    fit_part = plain_models(estimator, X)

    def score(child, parents):
        return local_score(fit_part, codes, sizes, child, parents, PENALTIES[criterion])

    expected = best_network(score, K, len(sizes), max_parents, max_discrete_parents)
    for prune in ("lemma", None):
        model = GBNC(
            estimator or Logistic(),
            criterion=criterion,
            conditioning="partition",
            prune=prune,
            max_parents=max_parents,
            max_discrete_parents=max_discrete_parents,
        ).fit(data.X, data.Y)
        assert model.structure_.score == pytest.approx(expected, rel=1e-6)
        assert model.structure_.status == "optimal"
        names = [*data.Y.columns, *data.X.select_dtypes("category").columns]
        chosen = [sorted(names.index(p) for p in model.structure_.parents[y]) for y in data.Y]
        assert sum(score(k, tuple(p)) for k, p in enumerate(chosen)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("search", ["dynamic-programming", "integer-program"])
@pytest.mark.parametrize("way", ["partition", "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_pruning_and_no_pruning_choose_the_same_score(search, way, seed):
    data = make_network(120, n_class_variables=5, n_states=2, n_discrete=1, random_state=seed)
    scores = [
        GBNC(GaussianNB(), criterion="bic", conditioning=way, prune=prune, search=search, max_discrete_parents=1)
        .fit(data.X, data.Y)
        .structure_.score
        for prune in ("lemma", None)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)


@pytest.mark.parametrize("backoff", ["parents", "none", "paper"])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_enumeration(backoff, seed):
    data = make_network(250, n_class_variables=4, n_states=(2, 4), n_discrete=1, random_state=seed)
    train, test = slice(0, 200), slice(200, 250)
    model = GBNC(Logistic(C=10.0), criterion="cll", max_parents=2, max_discrete_parents=1, backoff=backoff)
    model.fit(data.X[train], data.Y[train])
    distribution = model.predict_joint(data.X[test])
    sizes = model.class_table_.sizes
    truth = Enumeration.of_network(sizes, distribution.parents, distribution.log_tables)
    np.testing.assert_allclose(truth.prob.sum(axis=1), 1.0, atol=1e-10)
    for ours, expected in zip(model.predict_proba(data.X[test]), truth.marginals(), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)
        np.testing.assert_allclose(ours.sum(axis=1), 1.0, atol=1e-12)
    mode = distribution.mode()
    np.testing.assert_allclose(mode.log_prob, truth.log_prob.max(axis=1), atol=1e-10)
    pd.testing.assert_frame_equal(
        model.predict(data.X[test], loss="subset").reset_index(drop=True), mode.outcome.reset_index(drop=True)
    )
    codes = model.class_table_.encode(data.Y[test])
    np.testing.assert_allclose(
        distribution.log_prob(data.Y[test]), truth.log_prob[np.arange(50), truth.index_of(codes)], atol=1e-10
    )
    np.testing.assert_allclose(distribution.entropy(), truth.entropy(), atol=1e-9)
    hamming = np.column_stack([m.argmax(axis=1) for m in truth.marginals()])
    assert (model.class_table_.encode(model.predict(data.X[test])) == hamming).mean() > 0.99
    if backoff == "parents":
        assert all((proba > 0).all() for proba in model.predict_proba(data.X[test]))


def test_the_true_network_and_the_learned_one_agree_with_many_rows():
    data = make_network(8000, n_class_variables=3, n_states=2, n_discrete=1, random_state=1)
    train, test = slice(0, 7000), slice(7000, 8000)
    model = GBNC(experts=None).fit(data.X[train], data.Y[train])
    ours = model.predict_joint(data.X[test]).log_prob(data.Y[test])
    truth = data.truth.log_prob(data.X[test], data.Y[test])
    assert np.mean(truth - ours) < 0.02
