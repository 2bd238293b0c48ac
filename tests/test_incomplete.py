"""Learning from rows with missing states: structural EM against enumeration, and what users see."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

import pmdc
from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.e_step import MIN_PROBABILITY, N_DRAWS, N_IMPUTATIONS, complete
from pmdc.inference import JointDistribution
from pmdc.metrics import joint_log_loss
from pmdc.table import ClassTable

SIZES = (2, 3, 2, 2)
TABLE = ClassTable.fit(np.array([[i % size for size in SIZES] for i in range(3)]))


def random_joint(n_rows, seed=0):
    random = np.random.RandomState(seed)
    parents = [(), (0,), (0, 1), (1,)]
    tables = []
    for size, own in zip(SIZES, parents, strict=True):
        shape = (n_rows, *(SIZES[p] for p in own), size)
        table = random.dirichlet(np.ones(size), shape[:-1])
        tables.append(np.log(table))
    return JointDistribution(TABLE, parents, tables)


def with_gaps(Y, share, seed=0):
    Y = np.array(Y, dtype=object)
    Y[np.random.RandomState(seed).rand(*Y.shape) < share] = None
    return Y


DATA = make_network(400, random_state=3)
GAPPY = with_gaps(DATA.Y, 0.3)


# The E-step ---------------------------------------------------------------------------------------------------


def test_completions_are_the_posterior_by_enumeration():
    random = np.random.RandomState(1)
    joint = random_joint(40)
    codes = np.column_stack([random.randint(size, size=40) for size in SIZES])
    codes[random.rand(40, 4) < 0.4] = -2
    found = complete(joint, codes)
    outcomes = np.array(list(itertools.product(*map(range, SIZES))))
    for row in range(40):
        known = codes[row] >= 0
        possible = outcomes[(outcomes[:, known] == codes[row, known]).all(axis=1)]
        p = np.exp(joint.log_prob_at(np.full(len(possible), row), possible))
        assert found.log_prob[row] == pytest.approx(math.log(p.sum()))
        kept = p / p.sum() >= MIN_PROBABILITY
        own = found.rows == row
        assert {tuple(one) for one in found.codes[own]} == {tuple(one) for one in possible[kept]}
        weight = dict(zip(map(tuple, found.codes[own]), found.weights[own], strict=True))
        for outcome, q in zip(possible[kept], p[kept] / p[kept].sum(), strict=True):
            assert weight[tuple(outcome)] == pytest.approx(q)
        assert 1 - p[kept].sum() / p.sum() <= found.pruned + 1e-12


def test_a_row_with_many_completions_is_drawn(monkeypatch):
    joint = random_joint(2000)
    joint = joint.rows(np.zeros(2000, dtype=np.int64))
    codes = np.tile([-2, 1, -2, -2], (2000, 1))
    exact = complete(joint.rows(slice(0, 1)), codes[:1])
    monkeypatch.setattr("pmdc.e_step.MAX_COMPLETIONS", 4)
    drawn = complete(joint, codes)
    assert len(drawn.rows) == 2000 * N_DRAWS
    assert drawn.log_prob == pytest.approx(exact.log_prob[0])
    for outcome, p in zip(exact.codes, exact.weights, strict=True):
        share = drawn.weights[(drawn.codes == outcome).all(axis=1)].sum() / 2000
        assert share == pytest.approx(p, abs=0.02)


# Structural EM ------------------------------------------------------------------------------------------------


def log_likelihood(model, X, Y):
    """Return the log-likelihood of the known states, by enumeration of all outcomes."""
    joint = model.predict_joint(X)
    codes = model.class_table_.encode(Y, missing="mark")
    outcomes = np.array(list(itertools.product(*map(range, model.class_table_.sizes))))
    log_p = np.column_stack([joint.log_prob_codes(np.tile(one, (len(codes), 1))) for one in outcomes])
    fits = ((outcomes[None] == codes[:, None]) | (codes[:, None] < 0)).all(axis=2)
    return float(np.log(np.where(fits, np.exp(log_p), 0.0).sum(axis=1)).sum())


SMALL = make_network(60, n_class_variables=3, random_state=5)


def test_the_likelihood_of_the_known_states_never_falls():
    Y = with_gaps(SMALL.Y, 0.3)
    frequencies = DummyClassifier(strategy="prior")
    model = GBNC(frequencies, experts=None, criterion="cll", backoff="none", conditioning="partition", max_parents=2)
    model.fit(SMALL.X, Y)
    path = model.em_.log_likelihood
    assert model.em_.n_rounds == len(path) > 1
    assert (np.diff(path) > -1e-2).all()  # improbable completions are left out
    assert log_likelihood(model, SMALL.X, Y) >= path[-1] - 1e-2, "the last M-step follows the last E-step"


def test_a_complete_table_gives_the_same_bits_in_all_ways():
    plain = GBNC(experts=None, max_parents=1)
    models = [clone(plain).set_params(missing_labels=how).fit(DATA.X, DATA.Y) for how in ("em", "drop", "error")]
    for model in models[1:]:
        for one, other in zip(models[0].predict_proba(DATA.X), model.predict_proba(DATA.X), strict=True):
            assert (one == other).all()
    assert not hasattr(models[0], "em_")


def test_em_beats_leaving_rows_out():
    data = make_network(900, random_state=1)
    X, Y, X_new, Y_new = data.X[:300], with_gaps(data.Y[:300], 0.4), data.X[300:], data.Y[300:]
    loss = {
        how: joint_log_loss(Y_new, GBNC(experts=None, missing_labels=how).fit(X, Y).predict_joint(X_new))
        for how in ("em", "drop")
    }
    assert loss["em"] < loss["drop"]


def test_experts_learn_from_the_known_states():
    data = make_network(300, random_state=1)
    Y = with_gaps(data.Y, 0.3)
    model = GBNC().fit(data.X, Y)
    assert model.em_.converged
    assert model.em_.n_completions > 300
    assert all(any(score.used for score in own) for own in model.experts_.values())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_result_does_not_depend_on_workers_or_repetition(n_jobs):
    one = GBNC(max_parents=1).fit(DATA.X[:120], GAPPY[:120]).predict_proba(DATA.X)
    other = GBNC(max_parents=1, n_jobs=n_jobs).fit(DATA.X[:120], GAPPY[:120]).predict_proba(DATA.X)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


class Unweighted(ClassifierMixin, BaseEstimator):
    """A classifier whose fit accepts no weights."""

    def fit(self, X, y):
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_an_estimator_without_weights_gets_imputations():
    model = GBNC(Unweighted(), conditioning="partition", max_parents=1).fit(DATA.X, GAPPY)
    assert model.em_.n_completions == N_IMPUTATIONS * pd.notna(GAPPY).any(axis=1).sum()
    assert np.isfinite(model.predict_joint(DATA.X).log_prob(DATA.Y)).all()


# Tables and their cases ---------------------------------------------------------------------------------------


def test_any_kind_of_table():
    names = [f"v{k}" for k in range(DATA.Y.shape[1])]
    plain = GBNC(experts=None, max_parents=1)
    expected = clone(plain).fit(DATA.X, GAPPY).predict(DATA.X)
    frame = pd.DataFrame(GAPPY, columns=names)
    for Y in (frame, frame.astype("category"), pl.DataFrame(GAPPY.tolist(), schema=names, orient="row")):
        predicted = clone(plain).fit(DATA.X, Y).predict(DATA.X)
        assert type(predicted) is type(Y)
        assert (np.asarray(predicted) == expected).all()


def test_numbers_with_gaps():
    codes = np.array([[ord(state) for state in row] for row in np.asarray(DATA.Y)], dtype=float)
    codes[pd.isna(GAPPY)] = np.nan
    model = GBNC(experts=None, max_parents=1).fit(DATA.X, codes)
    assert not np.isnan(model.predict(DATA.X)).any()
    assert [len(states) for states in model.classes_] == [3, 3, 3, 3]


def test_a_class_variable_without_any_state():
    Y = GAPPY.copy()
    Y[:, 2] = None
    with pytest.raises(ValueError, match="Y, column 'y2' has no known state.*drop the column"):
        GBNC().fit(DATA.X, Y)


def test_rows_with_nothing_known():
    Y = GAPPY.copy()
    Y[50:200] = None
    plain = GBNC(experts=None, max_parents=1)
    some = np.r_[0:50, 200:400]
    ignored, without = clone(plain).fit(DATA.X, Y), clone(plain).fit(DATA.X.iloc[some], Y[some])
    assert (ignored.predict_proba(DATA.X)[0] == without.predict_proba(DATA.X)[0]).all()
    used = clone(plain).set_params(use_unlabelled=True).fit(DATA.X, Y)
    assert used.em_.n_completions > ignored.em_.n_completions
    Y[:] = None
    Y[:, 0] = "a"
    Y[0] = ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match="no known state|no row"):
        clone(plain).set_params(missing_labels="drop").fit(DATA.X[1:], np.where(Y[1:] == "b", None, Y[1:]))


def test_a_state_that_only_incomplete_rows_have():
    Y = GAPPY.copy()
    Y[7] = ["rare", None, "a", "b"]
    model = GBNC(experts=None, max_parents=1).fit(DATA.X, Y)
    assert "rare" in model.classes_[0]
    assert (model.predict_proba(DATA.X)[0] > 0).all()


def test_missing_labels_as_an_error():
    with pytest.raises(ValueError, match="Y contains NaN: column 'y0'"):
        GBNC(missing_labels="error").fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="Y contains NaN: column 'y0'"):
        BinaryRelevance().fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="missing_labels='fill'"):
        GBNC(missing_labels="fill").fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="blocks=.*cannot be combined with missing states"):
        GBNC(blocks=[["y0", "y1"]]).fit(DATA.X, GAPPY)


def test_a_saved_model(tmp_path):
    model = GBNC(max_parents=1).fit(DATA.X[:150], GAPPY[:150])
    pmdc.save(model, tmp_path / "model.pmdc")
    loaded = pmdc.load(tmp_path / "model.pmdc")
    assert loaded.em_ == model.em_
    assert (loaded.predict_proba(DATA.X)[0] == model.predict_proba(DATA.X)[0]).all()
