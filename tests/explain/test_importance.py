"""Importance by permutation, against scikit-learn's and against plain loops over the list of all outcomes."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from oracles import Enumeration
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset, estimator
from pmdc._support import parallel
from pmdc.decisions import CostLoss, FMeasure
from pmdc.explain import importance
from pmdc.learners import Logistic
from pmdc.metrics import hamming_accuracy, hamming_loss, joint_log_loss, neg_joint_log_loss, subset_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, SEEN = 240, slice(0, 150)


def table(seed=0, n=N):
    """Numbers, a category, a date, gaps, a column without values, and three class variables that depend on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"width": rng.normal(size=n), "noise": rng.normal(size=n)})
    X["town"] = rng.choice(["north", "south", "west"], n)
    X["when"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    flips = rng.random((n, 3)) < 0.15
    colour = (X["width"] > 0).to_numpy() ^ flips[:, 0]
    size = np.where(flips[:, 1], rng.integers(0, 3, n), X["town"].map({"north": 0, "south": 1, "west": 2}))
    late = (X["when"] > "2022-06-01").to_numpy() ^ colour ^ flips[:, 2]
    gaps = rng.random((n, 2)) < 0.1
    X["width"] = X["width"].mask(gaps[:, 0])
    X["town"] = X["town"].mask(gaps[:, 1])
    X["empty"] = np.nan
    Y = pd.DataFrame({"colour": np.where(colour, "red", "blue"), "size": size, "late": np.where(late, "yes", "no")})
    return X, Y


X, Y = table()
X_NEW, Y_NEW = X.iloc[150:].reset_index(drop=True), Y.iloc[150:].reset_index(drop=True)
WEIGHTS = np.random.default_rng(5).integers(1, 4, 150)

MODELS = {
    "mixed": GBNC(experts=None, required_edges=[("colour", "late"), ("town", "size"), ("size", "late")]),
    "naive Bayes": GBNC(GaussianNB(), criterion="bic", conditioning="partition", max_parents=2, guard=0),
    "an expert": GBNC(experts=[LogisticRegression()], required_edges=[("colour", "late"), ("late", "size")]),
    "a block": GBNC(experts=None, blocks=[["colour", "late"]], required_edges=[("colour", "size")]),
    "independent": BinaryRelevance(),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    with pytest.warns(UserWarning, match="'empty'"):
        return MODELS[request.param].fit(X[SEEN], Y[SEEN], sample_weight=WEIGHTS)


@pytest.fixture(scope="module")
def mixed():
    with pytest.warns(UserWarning, match="'empty'"):
        return MODELS["mixed"].fit(X[SEEN], Y[SEEN], sample_weight=WEIGHTS)


# The oracle ---------------------------------------------------------------------------------------------------


def outcomes_of(model, table):
    joint = model.predict_joint(table)
    sizes = model.class_table_.sizes
    outcomes = Enumeration(sizes, np.zeros((1, int(np.prod(sizes))))).outcomes
    log_prob = np.column_stack([joint.log_prob_codes(np.tile(outcome, (len(table), 1))) for outcome in outcomes])
    return Enumeration(sizes, log_prob)


def parents_of(model):
    """The class variables that are parents of each, as in the graph."""
    names = model.class_names_
    graph = model.to_networkx()
    return [[names.index(p) for p in names if p in graph.predecessors(child)] for child in names]


def conditional(truth, row, k, parents, states):
    """P(y_k | these states of the parents, x) of one row, from the list of all outcomes."""
    agree = (truth.outcomes[:, parents] == states).all(axis=1)
    prob = np.array([truth.prob[row, agree & (truth.outcomes[:, k] == s)].sum() for s in range(truth.sizes[k])])
    return prob / prob.sum()


def loss_of_state(name, prob, state, costs=None):
    if name == "log":
        return -np.log(max(prob[state], 1e-12))
    cost = 1.0 - np.eye(len(prob)) if costs is None else costs
    return cost[state, np.argmin(prob @ cost)]


def local_losses(model, table, codes, loss, seen, costs=(None, None, None)):
    """The loss of each class variable in each row, given what it sees as the states of its parents."""
    truth, parents = outcomes_of(model, table), parents_of(model)
    losses = np.full(codes.shape, np.nan)
    for row in range(len(codes)):
        for k, own in enumerate(parents):
            if (codes[row, [k, *own]] >= 0).all():
                prob = conditional(truth, row, k, own, seen[k][row])
                losses[row, k] = loss_of_state(loss, prob, codes[row, k], costs[k])
    return losses


def marginal_losses(model, table, codes, loss, costs=(None, None, None)):
    marginals = outcomes_of(model, table).marginals()
    losses = np.full(codes.shape, np.nan)
    for row, k in np.argwhere(codes >= 0):
        losses[row, k] = loss_of_state(loss, marginals[k][row], codes[row, k], costs[k])
    return losses


def shuffled_orders(n_rows, n_repeats, random_state=0):
    """As in scikit-learn: each repeat shuffles the shuffled column again."""
    seed = np.random.RandomState(random_state).randint(np.iinfo(np.int32).max + 1)
    random, index, column = np.random.RandomState(seed), np.arange(n_rows), np.arange(n_rows)
    for _ in range(n_repeats):
        random.shuffle(index)
        column = column[index]
        yield column


def with_column(table, name, order):
    return table.assign(**{name: table[name].array[order]})


def check(increases, rows, place):
    """Compare with increases of the rows, shape (n_repeats, n), NaN where a row does not count."""
    kept = ~np.isnan(rows[0])
    found = increases.importances[place]
    np.testing.assert_allclose(found, rows[:, kept].mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(increases.importances_mean[place], rows[:, kept].mean(), atol=1e-9)
    np.testing.assert_allclose(increases.importances_std[place], rows[:, kept].mean(axis=1).std(), atol=1e-9)
    of_rows = rows[:, kept].mean(axis=0)
    expected = of_rows.std(ddof=1) / np.sqrt(kept.sum())
    np.testing.assert_allclose(increases.standard_error[place], expected, atol=1e-9)
    assert increases.n_rows[place] == kept.sum()


# Overall ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "scorer"),
    [("log", neg_joint_log_loss), ("hamming", hamming_accuracy), ("subset", subset_accuracy)],
)
def test_overall_is_what_scikit_learn_measures(fitted, loss, scorer):
    weights = np.random.default_rng(0).random(len(X_NEW))
    for sample_weight in (None, weights):
        mine = importance(fitted, X_NEW, Y_NEW, loss, n_repeats=2, random_state=3, sample_weight=sample_weight)
        theirs = permutation_importance(
            fitted, X_NEW, Y_NEW, scoring=scorer, n_repeats=2, random_state=3, sample_weight=sample_weight
        )
        assert mine.feature_names == list(X_NEW)
        for name in ("importances", "importances_mean", "importances_std"):
            np.testing.assert_allclose(getattr(mine.overall, name), theirs[name], atol=1e-12)
    assert mine.overall.importances_mean.max() > 0.01


@pytest.mark.parametrize("model", [ClassifierChain(), ClassPowerset(), ChainEnsemble(n_chains=2, random_state=0)])
@pytest.mark.filterwarnings("ignore:X, column 'empty'")
def test_models_without_a_network_have_no_arcs(model):
    model.fit(X[SEEN], Y[SEEN])
    mine = importance(model, X_NEW, Y_NEW, n_repeats=1)
    theirs = permutation_importance(model, X_NEW, Y_NEW, scoring=neg_joint_log_loss, n_repeats=1, random_state=0)
    np.testing.assert_allclose(mine.overall.importances, theirs.importances, atol=1e-12)
    assert mine.by_variable.importances.shape == (5, 3, 1)
    assert mine.arc_names == []
    assert mine.arcs.importances.shape == (0, 1)
    assert mine.sentences() == []
    with pytest.raises(TypeError, match=f"given_parents=True.*{type(model).__name__}"):
        importance(model, X_NEW, Y_NEW, given_parents=True)


def test_experts_of_all_kinds():
    X, Y = table(1, 120)
    X = X[["width", "town"]]
    model = GBNC(max_parents=1, random_state=0).fit(X[:80], Y[:80])
    mine = importance(model, X[80:], Y[80:], n_repeats=1, given_parents=True)
    theirs = permutation_importance(model, X[80:], Y[80:], scoring=neg_joint_log_loss, n_repeats=1, random_state=0)
    np.testing.assert_allclose(mine.overall.importances, theirs.importances, atol=1e-12)
    np.testing.assert_allclose(mine.by_variable.importances.sum(axis=1), theirs.importances, atol=1e-9)


def test_other_losses_are_those_of_their_own_decisions(mixed):
    def badly(true, predicted):
        return (true != predicted).sum(axis=-1) ** 2.0

    mine = importance(mixed, X_NEW, Y_NEW, badly, n_repeats=1)

    def mean_loss(table):
        predicted = mixed.predict(table, loss=badly)
        return ((predicted.to_numpy(dtype=object) != Y_NEW.to_numpy(dtype=object)).sum(axis=1) ** 2.0).mean()

    (order,) = shuffled_orders(len(X_NEW), 1)
    for j, name in enumerate(X_NEW):
        expected = mean_loss(with_column(X_NEW, name, order)) - mean_loss(X_NEW)
        assert mine.overall.importances[j, 0] == pytest.approx(expected, abs=1e-12)
    assert mine.by_variable.importances.shape == (5, 0, 1)
    assert mine.arc_names == []
    with pytest.raises(ValueError, match="loss=<function.*CostLoss"):
        mine.top(1)


# By class variable and by arc ---------------------------------------------------------------------------------


def gappy_truth(seed=0):
    return Y_NEW.astype(object).mask(np.random.default_rng(seed).random(Y_NEW.shape) < 0.15)


def costs_of(model, loss):
    if loss != "costs":
        return loss, (None, None, None)
    costs = tuple(np.random.default_rng(k).random((size, size)) for k, size in enumerate(model.class_table_.sizes))
    return CostLoss(dict(zip(model.class_names_, costs, strict=True))), costs


@pytest.mark.parametrize("loss", ["log", "hamming", "costs"])
@pytest.mark.parametrize("given_parents", [False, True])
def test_class_variables_by_a_plain_loop(fitted, loss, given_parents):
    truth = gappy_truth()
    codes = fitted.class_table_.encode(truth, missing="mark")
    seen = [codes[:, own] for own in parents_of(fitted)]
    given, costs = costs_of(fitted, loss)

    def losses(table):
        if given_parents:
            return local_losses(fitted, table, codes, loss, seen, costs)
        return marginal_losses(fitted, table, codes, loss, costs)

    rows = (codes >= 0).any(axis=1)
    table, codes = X_NEW[rows], codes[rows]
    seen = [own[rows] for own in seen]
    mine = importance(fitted, X_NEW, truth, given, n_repeats=2, given_parents=given_parents, random_state=1)
    before, orders = losses(table), list(shuffled_orders(len(codes), 2, 1))
    for j, name in enumerate(X_NEW):
        after = np.stack([losses(with_column(table, name, order)) for order in orders])
        for k in range(3):
            check(mine.by_variable, after[:, :, k] - before[:, k], (j, k))


@pytest.mark.parametrize("loss", ["log", "hamming", "costs"])
def test_arcs_by_a_plain_loop(fitted, loss):
    truth = gappy_truth()
    codes = fitted.class_table_.encode(truth, missing="mark")
    rows = (codes >= 0).any(axis=1)
    table, codes = X_NEW[rows], codes[rows]
    parents, names = parents_of(fitted), fitted.class_names_
    seen = [codes[:, own] for own in parents]
    given, costs = costs_of(fitted, loss)
    mine = importance(fitted, X_NEW, truth, given, n_repeats=2)
    assert sorted(mine.arc_names) == sorted(fitted.to_networkx().edges)
    before = local_losses(fitted, table, codes, loss, seen, costs)
    for arc, (parent, child) in enumerate(mine.arc_names):
        k, after = names.index(child), []
        used = np.flatnonzero((codes[:, [k, *parents[k]]] >= 0).all(axis=1))
        for order in shuffled_orders(len(codes) if parent in X_NEW else len(used), 2):
            shuffled, shown = table, [own.copy() for own in seen]
            if parent in X_NEW:
                shuffled = with_column(table, parent, order)
            else:
                place = parents[k].index(names.index(parent))
                shown[k][used, place] = shown[k][used[order], place]
            after.append(local_losses(fitted, shuffled, codes, loss, shown, costs)[:, k])
        check(mine.arcs, np.stack(after) - before[:, k], arc)


def test_class_variables_given_their_parents_add_up_to_all_together(fitted):
    if isinstance(fitted.estimator, GaussianNB):
        pytest.skip("some of its probabilities are below 1e-12")
    mine = importance(fitted, X_NEW, Y_NEW, n_repeats=2, given_parents=True)
    np.testing.assert_allclose(mine.by_variable.importances.sum(axis=1), mine.overall.importances, atol=1e-9)


def test_weights_of_rows(mixed):
    """A row of weight zero is none, weights have no unit, and the error is that of a weighted mean."""
    weights = np.random.default_rng(0).integers(0, 3, len(X_NEW)).astype(float)
    mine = importance(mixed, X_NEW, Y_NEW, sample_weight=weights)
    kept = weights > 0
    some = importance(mixed, X_NEW[kept], Y_NEW[kept], sample_weight=7 * weights[kept])
    for name in ("overall", "by_variable", "arcs"):
        for attribute in ("importances", "standard_error", "n_rows"):
            values = getattr(getattr(mine, name), attribute)
            np.testing.assert_allclose(values, getattr(getattr(some, name), attribute), atol=1e-12)
    equal = importance(mixed, X_NEW, Y_NEW, sample_weight=np.full(len(X_NEW), 0.25))
    np.testing.assert_allclose(equal.overall.standard_error, importance(mixed, X_NEW, Y_NEW).overall.standard_error)
    names, w = mixed.class_names_, weights[kept]
    codes = mixed.class_table_.encode(Y_NEW[kept])
    before = marginal_losses(mixed, X_NEW[kept], codes, "log")
    after = [
        marginal_losses(mixed, with_column(X_NEW[kept], "width", order), codes, "log")
        for order in shuffled_orders(kept.sum(), 5)
    ]
    of_rows = (np.mean(after, axis=0) - before)[:, 0]
    error = np.sqrt((w**2 * (of_rows - np.average(of_rows, weights=w)) ** 2).sum() * len(w) / (len(w) - 1)) / w.sum()
    assert names[0] == "colour"
    assert mine.by_variable.standard_error[0, 0] == pytest.approx(error)


def test_missing_states_as_in_the_metrics(mixed):
    truth = gappy_truth(2)
    rows = truth.notna().any(axis=1)
    (order,) = shuffled_orders(rows.sum(), 1)
    table, known = X_NEW[rows], truth[rows]
    shuffled = with_column(table, "width", order)
    log, hamming, subset = (importance(mixed, X_NEW, truth, loss, n_repeats=1) for loss in ("log", "hamming", "subset"))
    assert log.n_rows == hamming.n_rows == rows.sum()
    assert (subset.overall.n_rows == truth.notna().all(axis=1).sum()).all()
    after, before = (joint_log_loss(known, mixed.predict_joint(some)) for some in (shuffled, table))
    assert log.overall.importances[0, 0] == pytest.approx(after - before)
    after, before = (hamming_loss(known, mixed.predict(some)) for some in (shuffled, table))
    assert hamming.overall.importances[0, 0] == pytest.approx(after - before)


def test_states_that_the_model_does_not_know_count_as_missing(mixed):
    strange = Y_NEW.assign(colour=Y_NEW["colour"].mask(np.arange(len(Y_NEW)) < 10, "green"))
    gone = Y_NEW.assign(colour=Y_NEW["colour"].mask(np.arange(len(Y_NEW)) < 10))
    with pytest.warns(UserWarning, match=r"Y has states.*'colour' \(10 rows\)"):
        mine = importance(mixed, X_NEW, strange)
    same = importance(mixed, X_NEW, gone)
    np.testing.assert_array_equal(mine.overall.importances, same.overall.importances)
    assert mine.by_variable.n_rows[0].tolist() == [len(X_NEW) - 10, len(X_NEW), len(X_NEW)]


# What must not matter -----------------------------------------------------------------------------------------


def test_what_no_model_uses_has_no_importance_at_all():
    X = table()[0].drop(columns="empty").assign(spare=np.random.default_rng(9).choice(["a", "b"], N))
    model = GBNC(experts=None, max_discrete_parents=0, conditioning="partition").fit(X[SEEN], Y[SEEN])
    for loss in ("log", "hamming", "subset", "sub-exact"):
        mine = importance(model, X[150:], Y[150:], loss)
        for j in (mine.feature_names.index("town"), mine.feature_names.index("spare")):
            assert not mine.overall.importances[j].any()
            assert not mine.overall.standard_error[j].any()
            assert not mine.by_variable.importances[j].any()


def test_containers_and_chunks(mixed, monkeypatch):
    expected = importance(mixed, X_NEW, Y_NEW, n_repeats=2)
    monkeypatch.setattr(estimator, "_CHUNK_CELLS", 7 * mixed._cells_per_row())
    chunked = importance(mixed, X_NEW, Y_NEW, n_repeats=2)
    frames = importance(mixed, pl.from_pandas(X_NEW), pl.from_pandas(Y_NEW), n_repeats=2)
    for other in (chunked, frames):
        for name in ("overall", "by_variable", "arcs"):
            for attribute in ("importances", "standard_error", "n_rows"):
                values = getattr(getattr(other, name), attribute)
                np.testing.assert_allclose(values, getattr(getattr(expected, name), attribute), atol=1e-12)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_change_nothing(mixed, monkeypatch, backend):
    monkeypatch.setattr(parallel, "START_UP", 0.0)
    alone = importance(mixed, X_NEW, Y_NEW, n_repeats=2)
    with joblib.parallel_config(backend, n_jobs=2):
        together = importance(mixed, X_NEW, Y_NEW, n_repeats=2)
    for name in ("overall", "by_variable", "arcs"):
        np.testing.assert_array_equal(getattr(together, name).importances, getattr(alone, name).importances)
        np.testing.assert_array_equal(getattr(together, name).standard_error, getattr(alone, name).standard_error)


def test_the_same_seed_gives_the_same_and_nothing_is_changed(mixed):
    before = mixed.predict_proba(X_NEW)
    table, truth = X_NEW.copy(), Y_NEW.copy()
    first, same, other = (importance(mixed, X_NEW, Y_NEW, max_rows=50, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.overall.importances, same.overall.importances)
    np.testing.assert_array_equal(first.arcs.importances, same.arcs.importances)
    assert not np.array_equal(first.overall.importances, other.overall.importances)
    assert (first.n_rows, first.n_known) == (50, 90)
    assert "50 of 90 rows" in str(first)
    pd.testing.assert_frame_equal(X_NEW, table)
    pd.testing.assert_frame_equal(Y_NEW, truth)
    for one, again in zip(before, mixed.predict_proba(X_NEW), strict=True):
        np.testing.assert_array_equal(one, again)


# In words -----------------------------------------------------------------------------------------------------


def test_sentences_are_honest():
    X, Y = table(3, 900)
    X = X[["width", "when"]]  # on which the size does not depend
    model = GBNC(Logistic(C=1.0), experts=None, required_edges=[("colour", "late"), ("size", "late")])
    mine = importance(model.fit(X[:400], Y[:400]), X[400:], Y[400:])
    said = {arc: line for line in mine.sentences() for arc in mine.arc_names if all(name in line for name in arc)}
    assert len(said) == len(mine.sentences()) == len(mine.arc_names)
    arc = mine.arc_names.index(("colour", "late"))
    mean, error = mine.arcs.importances_mean[arc], mine.arcs.standard_error[arc]
    assert mine.arcs.clear()[arc]
    line = said["colour", "late"]
    assert f"{mean:.3f} ± {error:.3f} nats" in line
    assert f"{np.exp(mean):.2f} times as likely" in line
    strength = mine.arc_strengths[arc]
    assert strength == pytest.approx(model.graph_.edges["colour", "late"].get("strength", np.nan) / 400, nan_ok=True)
    assert ("arc strength" in line) == np.isfinite(strength)
    chance = said["size", "late"]
    assert "chance" in chance
    assert "500 rows" in chance
    assert "times as likely" not in chance
    assert mine.sentences().index(line) < mine.sentences().index(chance)
    assert str(mine).endswith(chance)


def test_chance_is_not_taken_for_importance():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(400, 20)), rng.integers(0, 3, (400, 3)).astype(str)
    mine = importance(BinaryRelevance(Logistic(C=1.0)).fit(X[:200], Y[:200]), X[200:], Y[200:])
    assert not mine.overall.clear().any()
    assert not mine.by_variable.clear().any()
    assert "20 features: no more than chance" in str(mine)


def test_a_class_variable_without_known_states(mixed):
    truth = Y_NEW.assign(late=np.nan).astype(object)
    truth.loc[0, "late"] = "yes"
    mine = importance(mixed, X_NEW, truth)
    assert mine.by_variable.n_rows[0].tolist() == [90, 90, 1]
    assert np.isnan(mine.by_variable.standard_error[:, 2]).all()
    assert not mine.by_variable.clear()[:, 2].any()
    assert any("late" in line and "1 row(s)" in line for line in mine.sentences())
    with np.errstate(all="raise"):
        nothing = importance(mixed, X_NEW, Y_NEW.assign(late=np.nan).astype(object))
    assert np.isnan(nothing.by_variable.importances[:, 2]).all()
    assert mine.top(2)["late"] == nothing.top(2)["late"] == {}


# Bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"loss": "hammin"}, ValueError, "loss='hammin'.*'hamming'"),
        ({"loss": "f1_macro"}, ValueError, "loss='f1_macro'.*'f1_samples'"),
        ({"loss": FMeasure("micro")}, ValueError, "loss=FMeasure.*micro"),
        ({"loss": CostLoss({"colours": 2})}, ValueError, "'colours'.*'colour'"),
        ({"n_repeats": 0}, ValueError, "n_repeats=0"),
        ({"max_rows": 1}, ValueError, "max_rows=1"),
        ({"given_parents": "yes"}, ValueError, "given_parents='yes'"),
        ({"sample_weight": [1.0, 2.0]}, ValueError, r"sample_weight has shape \(2,\)"),
        ({"Y": Y_NEW[:10]}, ValueError, "X has 90 rows, Y has 10"),
        ({"Y": Y_NEW.mask(Y_NEW.notna())}, ValueError, r"Y has 0 row\(s\).*loss='log'"),
        ({"Y": Y_NEW.assign(late=None), "loss": "subset"}, ValueError, r"Y has 0 row\(s\).*loss='subset'"),
        ({"X": X_NEW[["width"]]}, ValueError, "noise"),
    ],
)
def test_what_is_wrong_is_said(mixed, options, error, complaint):
    with pytest.raises(error, match=complaint):
        importance(mixed, **{"X": X_NEW, "Y": Y_NEW, **options})


def test_models_that_cannot_be_measured():
    with pytest.raises(TypeError, match=r"LogisticRegression.*sklearn\.inspection"):
        importance(LogisticRegression(), X_NEW, Y_NEW)
    with pytest.raises(ValueError, match="not fitted"):
        importance(GBNC(), X_NEW, Y_NEW)
