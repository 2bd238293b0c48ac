"""Learning from rows with missing states: structural EM against enumeration, and what users see."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import pmdc
from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.e_step import MIN_PROBABILITY, N_DRAWS, complete
from pmdc.incomplete import _StructuralEM
from pmdc.inference import JointDistribution
from pmdc.learners import Logistic, NaiveBayes
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


QUICK = GBNC(Logistic(C=1.0), experts=None, conditioning="partition", max_parents=1)
DATA = make_network(240, random_state=3)
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


def followed(monkeypatch):
    """Record the network and the log-likelihood of each step; leave out no completion."""
    steps = []
    monkeypatch.setattr("pmdc.e_step.MIN_PROBABILITY", 1e-12)
    own = _StructuralEM.complete

    def complete(em, learned):
        done = own(em, learned)
        steps.append((learned, float(em.rows.weights @ done.log_prob)))
        return done

    monkeypatch.setattr(_StructuralEM, "complete", complete)
    return steps


def test_the_likelihood_of_frequency_tables_never_falls(monkeypatch):
    steps = followed(monkeypatch)
    Y = with_gaps(SMALL.Y, 0.3)
    frequencies = DummyClassifier(strategy="prior")
    model = GBNC(frequencies, experts=None, criterion="cll", backoff="none", conditioning="partition", max_parents=2)
    model.fit(SMALL.X, Y)
    path = model.em_.log_likelihood
    assert path == [value for _, value in steps]
    assert len(path) > model.em_.n_rounds >= 1
    assert model.em_.pruned < 1e-10
    assert (np.diff(path) > -1e-9).all()
    assert log_likelihood(model, SMALL.X, Y) == pytest.approx(path[-1]), "the observed-data likelihood, by enumeration"


@pytest.mark.parametrize("seed", range(3))
def test_the_penalised_likelihood_of_logistic_regression_never_falls(monkeypatch, seed):
    steps = followed(monkeypatch)
    data = make_network(80, n_class_variables=3, random_state=seed)
    Y = with_gaps(data.Y, 0.3, seed)
    C = 0.5
    settings = {"criterion": "cll", "backoff": "none", "required_edges": [("y0", "y1"), ("y1", "y2")], "max_parents": 1}
    GBNC(LogisticRegression(C=C), experts=None, conditioning="input", **settings).fit(data.X, Y)
    path = []
    for learned, value in steps:
        levels = [node.levels[node.family] for node in learned.network.nodes]
        penalty = sum(float((level.models.coef[:, 1:] ** 2).sum()) for level in levels)
        path.append(value - penalty / (2 * C))
    assert len(path) > 4
    assert (np.diff(path) > -1e-6).all()


# Available rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [5, 9, 11])
def test_a_step_that_lowers_the_likelihood_is_taken_back(seed):
    data = make_network(150, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GBNC(experts=None, max_parents=1, criterion="bic").fit(data.X, with_gaps(data.Y, 0.2, seed))
    joint = model.predict_joint(data.X)
    codes = model.class_table_.encode(with_gaps(data.Y, 0.2, seed), missing="mark")
    reached = float(joint.log_prob_codes(np.maximum(codes, -1)).sum())
    assert model.em_.converged
    assert model.em_.log_likelihood[-1] == pytest.approx(reached)
    assert model.em_.log_likelihood[-1] == max(model.em_.log_likelihood)


def test_available_rows_by_counting():
    Y = with_gaps(SMALL.Y, 0.3)
    frequencies = DummyClassifier(strategy="prior")
    edges = {"required_edges": [("y0", "y1")], "forbidden_edges": [("y0", "y2"), ("y1", "y2"), ("y2", "y0")]}
    model = GBNC(
        frequencies,
        experts=None,
        criterion="bic",
        backoff="none",
        conditioning="partition",
        missing_labels="available",
        max_parents=1,
        **edges,
    ).fit(SMALL.X, Y)
    both = pd.DataFrame(Y, columns=["y0", "y1", "y2"]).dropna(subset=["y0", "y1"])
    counts = pd.crosstab(both["y0"], both["y1"])
    shares = counts.div(counts.sum(axis=1), axis=0)
    joint = model.predict_joint(SMALL.X)
    for state in model.classes_[0]:
        assert joint.given({"y0": state}).marginal("y1")[0] == pytest.approx(shares.loc[state].to_numpy())
    n_known = pd.notna(Y[:, 1]).sum()
    mean = (counts * np.log(shares.where(shares > 0, 1.0))).to_numpy().sum() / len(both)
    penalty = 0.5 * math.log(n_known) * 2 * 3
    assert model.scores_["y1"][frozenset({"y0"})] == pytest.approx(n_known * mean - penalty)


def test_a_row_with_a_missing_parent_is_scored_without_it():
    data = make_network(150, n_class_variables=2, random_state=4)
    Y, numbers = with_gaps(data.Y, 0.3), data.X.select_dtypes("number")
    rows = np.arange(150)
    cv = [(np.flatnonzero(rows % 3 != f), np.flatnonzero(rows % 3 == f)) for f in range(3)]
    settings = {"backoff": "none", "conditioning": "partition", "guard": 0, "missing_labels": "available", "cv": cv}
    model = GBNC(LogisticRegression(C=1.0), experts=None, criterion="cv", **settings).fit(numbers, Y)
    X, missing = numbers.to_numpy(), pd.isna(Y)

    def held_out(train, row):
        own = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(X[train], Y[train, 1].astype(str))
        found = dict(zip(own.classes_, own.predict_proba(X[[row]])[0], strict=True))
        return math.log(max(found.get(Y[row, 1], 0.0), np.finfo(float).eps))

    alone = given = 0.0
    for train, test in cv:
        seen = train[~missing[train, 1]]
        for row in test[~missing[test, 1]]:
            same = seen[~missing[seen, 0] & (Y[seen, 0] == Y[row, 0])]
            alone += held_out(seen, row)
            given += held_out(seen if missing[row, 0] else same, row)
    assert model.scores_["y1"][frozenset()] == pytest.approx(alone, abs=1e-3)
    assert model.scores_["y1"][frozenset({"y0"})] == pytest.approx(given, abs=1e-3)


def test_available_rows_with_experts_and_weights():
    data = make_network(200, random_state=1)
    Y = with_gaps(data.Y, 0.3)
    model = GBNC(missing_labels="available", max_parents=2).fit(data.X[:120], Y[:120])
    assert not hasattr(model, "em_")
    assert np.isfinite(model.predict_joint(data.X).log_prob(data.Y)).all()
    plain = clone(QUICK).set_params(missing_labels="available")
    twice = clone(plain).fit(pd.concat([data.X, data.X]), np.vstack([Y, Y]))
    weighted = clone(plain).fit(data.X, Y, sample_weight=np.full(200, 2.0))
    for one, other in zip(twice.predict_proba(data.X), weighted.predict_proba(data.X), strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_class_variables_that_are_never_known_together():
    Y = np.array(DATA.Y, dtype=object)
    Y[:120, 0], Y[120:, 1] = None, None
    for how in ("em", "available"):
        plain = clone(QUICK).set_params(missing_labels=how, guard=0)
        assert np.isfinite(clone(plain).fit(DATA.X, Y).predict_joint(DATA.X).log_prob(DATA.Y)).all()
        with pytest.raises(ValueError, match="required_edges.*'y0'.*'y1'.*no row"):
            plain.set_params(required_edges=[("y0", "y1")]).fit(DATA.X, Y)


# Weak labels ----------------------------------------------------------------------------------------------------


def test_completions_of_weak_labels_by_enumeration():
    random = np.random.RandomState(1)
    joint = random_joint(30)
    codes = np.column_stack([random.randint(size, size=30) for size in SIZES])
    codes[:, 1] = -2
    codes[random.rand(30, 4) < 0.3] = -2
    allowed = random.rand(30, 3) < 0.6
    allowed[np.arange(30), random.randint(3, size=30)] = True
    restricted = joint.restricted([None, allowed, None, None])
    found = complete(restricted, codes)
    drawn = complete(restricted, codes, n_draws=400)
    outcomes = np.array(list(itertools.product(*map(range, SIZES))))
    for row in range(30):
        known = codes[row] >= 0
        fits = (outcomes[:, known] == codes[row, known]).all(axis=1)
        fits &= (codes[row, 1] >= 0) | allowed[row, outcomes[:, 1]]
        p = np.exp(joint.log_prob_at(np.full(fits.sum(), row), outcomes[fits]))
        assert found.log_prob[row] == pytest.approx(math.log(p.sum()))
        assert drawn.log_prob[row] == pytest.approx(math.log(p.sum()))
        own = found.rows == row
        weight = dict(zip(map(tuple, found.codes[own]), found.weights[own], strict=True))
        for outcome, q in zip(outcomes[fits], p / p.sum(), strict=True):
            assert weight.get(tuple(outcome), 0.0) == pytest.approx(q, abs=4e-3)
            share = drawn.weights[(drawn.rows == row) & (drawn.codes == outcome).all(axis=1)].sum()
            assert share == pytest.approx(q, abs=0.12)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "list"])
def test_sets_of_states_in_any_table(kind):
    Y = np.array(DATA.Y, dtype=object)
    weak = Y.copy()
    for row in range(0, 240, 4):
        weak[row, 1] = frozenset({Y[row, 1], "a"}) if row % 8 else {Y[row, 1], "b"}
    names = [f"v{k}" for k in range(4)]
    tables = {
        "array": weak,
        "pandas": pd.DataFrame(weak, columns=names),
        "polars": pl.DataFrame([pl.Series(n, weak[:, k].tolist(), dtype=pl.Object) for k, n in enumerate(names)]),
        "list": weak.tolist(),
    }
    plain = QUICK
    model = clone(plain).fit(DATA.X, tables[kind])
    assert model.em_.n_completions > 240
    expected = clone(plain).fit(DATA.X, weak).predict_proba(DATA.X)
    for one, other in zip(model.predict_proba(DATA.X), expected, strict=True):
        assert (one == other).all()
    filled = np.asarray(model.impute(DATA.X, tables[kind]))
    for row in range(240):
        assert filled[row, 1] in (weak[row, 1] if isinstance(weak[row, 1], (set, frozenset)) else {weak[row, 1]})


@pytest.mark.parametrize("names", [["self", "y1"], [0, 1]])
def test_sets_in_columns_of_any_name(names):
    Y = DATA.Y.iloc[:, :2].astype(object).set_axis(names, axis=1)
    Y.iat[0, 0] = set(Y.iloc[:, 0].unique()[:2])
    model = clone(QUICK).fit(DATA.X, Y)
    assert model.em_.n_completions == len(Y) + 1
    assert Y.iat[0, 0] == set(Y.iloc[1:, 0].unique()[:2]) or isinstance(Y.iat[0, 0], set)


def test_weak_labels_help():
    data, random = make_network(900, random_state=0), np.random.RandomState(0)
    Y = np.array(data.Y[:200], dtype=object)
    gone = random.rand(*Y.shape) < 0.5
    missing, weak = Y.copy(), Y.copy()
    missing[gone] = None
    for row, k in np.argwhere(gone):
        weak[row, k] = frozenset({Y[row, k], random.choice([s for s in "abc" if s != Y[row, k]])})
    loss = [
        joint_log_loss(data.Y[200:], clone(QUICK).fit(data.X[:200], one).predict_joint(data.X[200:]))
        for one in (weak, missing)
    ]
    assert loss[0] < loss[1]


def test_states_that_only_sets_have():
    Y = np.array(DATA.Y, dtype=object)
    for row in range(30):
        Y[row, 0] = frozenset({"a", "rare"})
    for table in (Y, pd.DataFrame(Y, columns=list("pqrs"))):
        model = clone(QUICK).fit(DATA.X, table)
        assert model.classes_[0].tolist() == ["a", "b", "c", "rare"]
        assert set(np.asarray(model.predict(DATA.X))[:, 0]) <= {"a", "b", "c", "rare"}


def test_complaints_about_sets():
    Y = np.array(DATA.Y, dtype=object)
    for cell, words in ((frozenset(), "'y1', row 3 is an empty set"), ({"a", None}, "'y1', row 3.*missing value")):
        Y[3, 1] = cell
        with pytest.raises(ValueError, match=words):
            GBNC().fit(DATA.X, Y)
    Y[3, 1] = {"a", "b"}
    for model in (GBNC(missing_labels="error"), BinaryRelevance()):
        with pytest.raises(ValueError, match="'y1', row 3 is a set of possible states.*single states"):
            model.fit(DATA.X, Y)
    model = GBNC(experts=None, max_parents=0).fit(DATA.X, DATA.Y)
    Y[3, 1] = {"x", "z"}
    with pytest.raises(ValueError, match=r"'y1', row 3: none of \{'x', 'z'\}"):
        model.impute(DATA.X, Y)
    Y[3, 1] = {"a"}  # one state is that state
    GBNC(experts=None, max_parents=0, missing_labels="error").fit(DATA.X, Y)


# Weights of cells -----------------------------------------------------------------------------------------------


def test_weights_of_cells_are_those_of_local_models():
    weights = np.random.RandomState(0).choice([0.5, 1.0, 2.0], DATA.Y.shape)
    settings = {"experts": None, "max_parents": 0, "criterion": "cll", "backoff": "none"}
    model = GBNC(LogisticRegression(C=1.0), **settings).fit(DATA.X, DATA.Y, cell_weight=weights)
    for k in range(4):
        alone = GBNC(LogisticRegression(C=1.0), **settings)
        alone.fit(DATA.X, DATA.Y.iloc[:, [k]], sample_weight=weights[:, k])
        assert model.predict_proba(DATA.X)[k] == pytest.approx(alone.predict_proba(DATA.X)[0], abs=1e-8)


def test_weights_of_one_change_nothing_and_zero_is_missing():
    plain = QUICK
    one = clone(plain).fit(DATA.X, DATA.Y, cell_weight=np.ones(DATA.Y.shape)).predict_proba(DATA.X)
    other = clone(plain).fit(DATA.X, DATA.Y).predict_proba(DATA.X)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))
    zeros = np.where(pd.isna(GAPPY), 0.0, 1.0)
    one = clone(plain).fit(DATA.X, DATA.Y, cell_weight=zeros).predict_proba(DATA.X)
    other = clone(plain).fit(DATA.X, GAPPY).predict_proba(DATA.X)
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


def test_weights_of_sets_and_of_named_columns():
    Y, gappy = np.array(DATA.Y, dtype=object), np.array(DATA.Y, dtype=object)
    gappy[:30, 1] = None
    Y[:30, 1] = [frozenset({"a", "b"})] * 30
    Y, missing = (pd.DataFrame(one, columns=list("pqrs")) for one in (Y, gappy))
    weights = pd.DataFrame(np.where(pd.isna(gappy), 0.0, 1.0), columns=list("pqrs"))
    expected = clone(QUICK).fit(DATA.X, missing).predict_proba(DATA.X)
    for table in (weights, weights[list("srqp")]):
        found = clone(QUICK).fit(DATA.X, Y, cell_weight=table).predict_proba(DATA.X)
        assert found[1] == pytest.approx(expected[1])
    with pytest.raises(ValueError, match="cell_weight lacks the class variable 'q'"):
        clone(QUICK).fit(DATA.X, Y, cell_weight=weights.rename(columns={"q": "z"}))


def test_wrong_cells_of_low_weight_do_little_harm():
    data = make_network(900, random_state=2)
    train = np.array(data.Y[:300], dtype=object)
    wrong = np.random.RandomState(0).rand(*train.shape) < 0.3
    for row, k in np.argwhere(wrong):
        train[row, k] = next(s for s in "abc" if s != train[row, k])
    for settings in (
        QUICK.get_params(deep=False),
        {"max_parents": 1, "experts": [ExtraTreesClassifier(30, random_state=0)]},
    ):
        loss = [
            joint_log_loss(
                data.Y[300:],
                GBNC(**settings).fit(data.X[:300], train, cell_weight=weight).predict_joint(data.X[300:]),
            )
            for weight in (np.where(wrong, 0.05, 1.0), None)
        ]
        assert loss[0] < loss[1]


def test_complaints_about_weights_of_cells():
    good = np.ones(DATA.Y.shape)
    for weights, words in (
        (good[:, :3], r"cell_weight has shape \(240, 3\); it must be \(240, 4\)"),
        (np.where(np.arange(960).reshape(240, 4) == 9, -1.0, good), r"cell_weight\[2, 1\] is -1.0"),
        ([["a"] * 4] * 240, "cell_weight must be numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            GBNC().fit(DATA.X, DATA.Y, cell_weight=weights)
    with pytest.raises(TypeError, match="does not accept it"):
        GBNC(Unweighted()).fit(DATA.X, DATA.Y, cell_weight=2 * good)
    for blocks in ([["y0", "y1"]], "auto"):
        with pytest.raises(ValueError, match="blocks=.*cell_weight"):
            GBNC(experts=None, blocks=blocks).fit(DATA.X, DATA.Y, cell_weight=2 * good)


def test_weights_of_cells_that_are_not_counts():
    plain = GBNC(NaiveBayes(), experts=None, max_parents=0)
    small, one = np.full(DATA.Y.shape, 0.01), np.ones(DATA.Y.shape)
    with pytest.warns(UserWarning, match=r"cell_weight of 'y0' sums to 2\.4 over 240 cells.* 3 other.*mean 1"):
        clone(plain).fit(DATA.X, DATA.Y, cell_weight=small)
    one[:, 2] = np.where(np.arange(240) < 100, 0.0, 2.5)
    with pytest.warns(UserWarning, match=r"cell_weight of 'y2' sums to 350 over 140 cells\. .*mean 1"):
        clone(plain).fit(DATA.X, DATA.Y, cell_weight=one)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(plain).fit(DATA.X, DATA.Y, cell_weight=np.where(np.arange(240)[:, None] % 5, 1.0, 0.01) * np.ones((1, 4)))
        clone(plain).fit(DATA.X, DATA.Y, cell_weight=np.where(np.arange(240)[:, None] % 2, 1.0, 0.5) * np.ones((1, 4)))


def test_penalties_count_the_weights_of_the_class_variable():
    """With equal weights, all scores of a class variable are those of rows of this weight."""
    settings = {"experts": None, "criterion": "bic", "backoff": "none", "conditioning": "partition", "max_parents": 1}
    frequencies, n_rows = GBNC(DummyClassifier(strategy="prior"), **settings), len(DATA.Y)
    weights = np.ones(DATA.Y.shape)
    weights[:, 1] = 3.0
    model = clone(frequencies).fit(DATA.X, DATA.Y, cell_weight=weights)
    tripled = clone(frequencies).fit(DATA.X, DATA.Y, sample_weight=np.full(n_rows, 3.0))
    for parents, score in tripled.scores_["y1"].items():
        assert model.scores_["y1"][parents] == pytest.approx(score)
    weights = np.ones(DATA.Y.shape)
    weights[:40, 0] = 0.0
    model = clone(frequencies).set_params(missing_labels="available").fit(DATA.X, DATA.Y, cell_weight=weights)
    alone = clone(frequencies).fit(DATA.X[40:], DATA.Y[40:])
    for parents, score in alone.scores_["y0"].items():
        assert model.scores_["y0"][parents] == pytest.approx(score)


def test_how_many_rows_were_used(tmp_path):
    Y = np.array(DATA.Y, dtype=object)
    Y[:10], Y[10:30, 2] = None, None
    weights = np.where(np.arange(240) % 40 == 39, 0.0, 1.0)  # six rows
    used = {
        "em": ({"missing_labels": "em"}, 224),
        "em and unlabelled": ({"missing_labels": "em", "use_unlabelled": True}, 234),
        "available": ({"missing_labels": "available"}, 224),
        "drop": ({"missing_labels": "drop"}, 204),
    }
    for settings, expected in used.values():
        model = GBNC(NaiveBayes(), experts=None, max_parents=0, **settings).fit(DATA.X, Y, sample_weight=weights)
        assert model.n_rows_used_ == expected
    pmdc.save(model, tmp_path / "m.skops")
    assert pmdc.load(tmp_path / "m.skops").n_rows_used_ == 204
    assert BinaryRelevance(NaiveBayes()).fit(DATA.X, DATA.Y, sample_weight=weights).n_rows_used_ == 234


@pytest.mark.parametrize("how", ["available", "drop", "error"])
def test_unlabelled_rows_are_for_em(how):
    with pytest.raises(ValueError, match=f"use_unlabelled=True has no effect with missing_labels={how!r}"):
        GBNC(missing_labels=how, use_unlabelled=True).fit(DATA.X, DATA.Y)


# Structural EM as a whole -----------------------------------------------------------------------------------------


def test_a_complete_table_gives_the_same_bits_in_all_ways():
    plain = QUICK
    ways = ("em", "available", "drop", "error")
    models = [clone(plain).set_params(missing_labels=how).fit(DATA.X, DATA.Y) for how in ways]
    for model in models[1:]:
        for one, other in zip(models[0].predict_proba(DATA.X), model.predict_proba(DATA.X), strict=True):
            assert (one == other).all()
    assert not hasattr(models[0], "em_")


def test_em_beats_leaving_rows_out():
    data = make_network(900, random_state=1)
    X, Y, X_new, Y_new = data.X[:300], with_gaps(data.Y[:300], 0.4), data.X[300:], data.Y[300:]
    loss = {
        how: joint_log_loss(Y_new, clone(QUICK).set_params(missing_labels=how).fit(X, Y).predict_joint(X_new))
        for how in ("em", "drop")
    }
    assert loss["em"] < loss["drop"]


def test_experts_learn_from_the_known_states():
    data = make_network(120, n_class_variables=3, random_state=1)
    Y = with_gaps(data.Y, 0.3)
    model = GBNC(max_parents=1).fit(data.X, Y)
    assert model.em_.converged
    assert model.em_.n_completions > 120
    assert all(any(score.used for score in own) for own in model.experts_.values())


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_result_does_not_depend_on_workers_or_repetition(n_jobs):
    one = (
        GBNC(max_parents=1, experts=[ExtraTreesClassifier(20, random_state=0)]).fit(DATA.X, GAPPY).predict_proba(DATA.X)
    )
    other = (
        GBNC(max_parents=1, experts=[ExtraTreesClassifier(20, random_state=0)], n_jobs=n_jobs)
        .fit(DATA.X, GAPPY)
        .predict_proba(DATA.X)
    )
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
    Y = GAPPY[:100, :2]
    model = GBNC(Unweighted(), conditioning="partition", max_parents=1).fit(DATA.X[:100], Y)
    assert model.em_.n_completions == model.em_.n_drawn == pd.notna(Y).any(axis=1).sum()
    assert np.isfinite(model.predict_joint(DATA.X).log_prob(DATA.Y.iloc[:, :2])).all()


# Tables and their cases ---------------------------------------------------------------------------------------


def test_any_kind_of_table():
    names = [f"v{k}" for k in range(DATA.Y.shape[1])]
    plain = QUICK
    expected = clone(plain).fit(DATA.X, GAPPY).predict(DATA.X)
    frame = pd.DataFrame(GAPPY, columns=names)
    for Y in (frame, frame.astype("category"), pl.DataFrame(GAPPY.tolist(), schema=names, orient="row")):
        predicted = clone(plain).fit(DATA.X, Y).predict(DATA.X)
        assert type(predicted) is type(Y)
        assert (np.asarray(predicted) == expected).all()


def test_numbers_with_gaps():
    codes = np.array([[ord(state) for state in row] for row in np.asarray(DATA.Y)], dtype=float)
    codes[pd.isna(GAPPY)] = np.nan
    model = clone(QUICK).fit(DATA.X, codes)
    assert not np.isnan(model.predict(DATA.X)).any()
    assert [len(states) for states in model.classes_] == [3, 3, 3, 3]


def test_a_class_variable_without_any_state():
    Y = GAPPY.copy()
    Y[:, 2] = None
    with pytest.raises(ValueError, match="Y, column 'y2' has no known state.*drop the column"):
        GBNC().fit(DATA.X, Y)


def test_rows_with_nothing_known():
    Y = GAPPY.copy()
    Y[50:150] = None
    plain = QUICK
    some = np.r_[0:50, 150:240]
    ignored, without = clone(plain).fit(DATA.X, Y), clone(plain).fit(DATA.X.iloc[some], Y[some])
    assert (ignored.predict_proba(DATA.X)[0] == without.predict_proba(DATA.X)[0]).all()
    used = clone(plain).set_params(use_unlabelled=True).fit(DATA.X, Y)
    assert used.em_.n_completions > ignored.em_.n_completions
    Y[:] = None
    Y[:, 0] = "a"
    Y[0] = ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match="no known state|no row"):
        clone(plain).set_params(missing_labels="drop").fit(DATA.X[1:], np.where(Y[1:] == "b", None, Y[1:]))


def test_a_class_variable_without_a_known_state():
    Y = np.array(DATA.Y, dtype=object)
    Y[:, 1] = [frozenset("ab")] * len(Y)
    zeros = np.ones(DATA.Y.shape)
    zeros[:, 1] = 0
    for how in ("em", "available"):
        for table, weights in ((Y, None), (DATA.Y, zeros)):
            with pytest.raises(ValueError, match="'y1' has no known state"):
                clone(QUICK).set_params(missing_labels=how).fit(DATA.X, table, cell_weight=weights)


def test_the_plan_of_a_table_with_gaps():
    assert QUICK.plan(DATA.X, GAPPY).parent_sets == QUICK.plan(DATA.X, DATA.Y).parent_sets


def test_one_gap_does_not_change_the_guard():
    """Posterior probabilities are no weights that rows were given: three rows remain three rows."""
    Y, rows = np.array(DATA.Y, dtype=object), np.arange(len(DATA.Y))
    cv = [(rows[rows % 4 != f], rows[rows % 4 == f]) for f in range(4)]
    model = GBNC(Logistic(C=1.0), experts=None, conditioning="partition", max_parents=1, criterion="cv", cv=cv)
    weights = np.full(len(Y), 3.0)
    before = clone(model).fit(DATA.X, Y, sample_weight=weights)
    Y[5, 2] = None
    after = clone(model).fit(DATA.X, Y, sample_weight=weights)
    assert abs(sum(map(len, before.scores_.values())) - sum(map(len, after.scores_.values()))) <= 1
    assert set(after.graph_.edges) == set(before.graph_.edges)


def test_shrinkage_is_that_of_available_rows():
    """Completed states look like the models that completed them, so no shrinkage would seem best."""
    data = make_network(600, random_state=10)
    Y = with_gaps(data.Y[:150], 0.5)
    model = GBNC(Logistic(C=1.0), experts=None, max_parents=2, conditioning="partition")
    loss = {}
    for how in ("em", "available"):
        fitted = clone(model).set_params(missing_labels=how).fit(data.X[:150], Y)
        loss[how] = joint_log_loss(data.Y[150:], fitted.predict_joint(data.X[150:]))
    assert loss["em"] < loss["available"]


def test_whole_numbers_with_gaps_stay_whole():
    Y = [[None, "p"] if i == 0 else [i % 2, "pq"[i % 3 > 0]] for i in range(60)]
    model = clone(QUICK).fit(DATA.X[:60], Y)
    assert model.classes_[0].tolist() == [0, 1]
    assert model.classes_[0].dtype == np.int64
    assert {type(value) for value in model.impute(DATA.X[:60], Y)[:, 0].tolist()} == {int}
    found = QUICK.suspicious_cells(DATA.X[:60], Y, cv=2)
    own = found.names == "y0"
    assert {type(value) for value in (*found.states[own], *found.expected[own])} == {int}


def test_no_blocks_are_tried():
    with pytest.warns(UserWarning, match="blocks='auto' is not tried"):
        assert clone(QUICK).set_params(blocks="auto").fit(DATA.X, GAPPY).blocks_ == []


def test_a_state_that_only_incomplete_rows_have():
    Y = GAPPY.copy()
    Y[7] = ["rare", None, "a", "b"]
    model = clone(QUICK).fit(DATA.X, Y)
    assert "rare" in model.classes_[0]
    assert (model.predict_proba(DATA.X)[0] > 0).all()


def test_missing_labels_as_an_error():
    with pytest.raises(ValueError, match="Y contains NaN: column 'y0'"):
        GBNC(missing_labels="error").fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="Y contains NaN: column 'y0'"):
        BinaryRelevance().fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="missing_labels='fill'"):
        GBNC(missing_labels="fill").fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="criterion='loo' cannot be combined with missing states"):
        GBNC(criterion="loo").fit(DATA.X, GAPPY)
    with pytest.raises(ValueError, match="blocks=.*cannot be combined with missing states"):
        GBNC(blocks=[["y0", "y1"]]).fit(DATA.X, GAPPY)


def test_a_saved_model(tmp_path):
    model = clone(QUICK).fit(DATA.X, GAPPY)
    pmdc.save(model, tmp_path / "model.pmdc")
    loaded = pmdc.load(tmp_path / "model.pmdc")
    assert loaded.em_ == model.em_
    assert (loaded.predict_proba(DATA.X)[0] == model.predict_proba(DATA.X)[0]).all()
