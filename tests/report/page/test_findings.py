"""What a report tells is what a plain computation gives."""

import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC, BinaryRelevance, ClassifierChain
from pmdc.datasets import make_network
from pmdc.metrics import hamming_loss, joint_log_loss
from pmdc.report.page import findings
from pmdc.report.page.findings import Rows, measure
from pmdc.table.frequencies import Frequencies


@pytest.fixture(scope="module")
def data():
    return make_network(400, n_class_variables=3, random_state=2)


@pytest.fixture(scope="module")
def model(data):
    return GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])


def found_in(model, X, Y, n_rows=3):
    return measure(model, Rows(X, Y, "here", "row", range(len(X))), n_rows, 0)


@pytest.fixture(scope="module")
def found(model, data):
    return found_in(model, data.X[200:], data.Y[200:])


def given_others(model, X, Y):
    """P(state | features, other states of the row) of each cell, by the probabilities of all its states."""
    joint, table = model.predict_joint(X), model.class_table_
    codes = table.encode(Y, unknown="mark", missing="mark")
    found = np.full(codes.shape, np.nan)
    for k, size in enumerate(table.sizes):
        each = np.empty((len(codes), size))
        for state in range(size):
            changed = np.maximum(codes, -1)
            changed[:, k] = state
            each[:, state] = np.exp(joint.log_prob_codes(changed))
        known = codes[:, k] >= 0
        found[known, k] = (each / each.sum(axis=1, keepdims=True))[known, codes[known, k]]
    return found


def test_losses_are_those_of_the_metrics(model, data, found):
    X, Y = data.X[200:], data.Y[200:]
    assert found.losses.model.hamming_loss.value == pytest.approx(hamming_loss(Y, model.predict(X)))
    assert found.losses.model.joint_log_loss.value == pytest.approx(joint_log_loss(Y, model.predict_joint(X)))


def test_the_hardest_rows_have_the_highest_log_loss(model, data, found):
    log_prob = model.predict_joint(data.X[200:]).log_prob(data.Y[200:])
    assert found.hardest.tolist() == np.argsort(log_prob)[:3].tolist()


def check_cells(model, X, Y, found):
    cells = found.doubtful.cells
    prob = given_others(model, X, Y)
    least = np.sort(prob[~np.isnan(prob)])[: len(cells.prob)]
    np.testing.assert_allclose(cells.prob, least, rtol=1e-9)
    column = [model.class_names_.index(name) for name in cells.names]
    np.testing.assert_allclose(cells.prob, prob[cells.rows, column], rtol=1e-9)


def test_doubtful_cells_are_the_least_probable_given_the_others(model, data, found):
    check_cells(model, data.X[200:], data.Y[200:], found)
    assert found.doubtful.complete


def test_a_part_of_the_rows_is_enough_to_prove_it(model, data, monkeypatch):
    """The joint log-loss says when no later row can have a less probable cell."""
    monkeypatch.setattr(findings, "_CELL_STEP", 20)
    found = found_in(model, data.X[200:], data.Y[200:])
    assert found.doubtful.complete
    assert found.doubtful.n_rows < 200
    check_cells(model, data.X[200:], data.Y[200:], found)
    monkeypatch.setattr(findings, "_CELL_ROWS", 20)
    assert not found_in(model, data.X[200:], data.Y[200:]).doubtful.complete


def test_gaps(model, data):
    X, Y = data.X[200:], data.Y[200:].astype(object)
    Y = Y.mask(np.random.default_rng(0).random(Y.shape) < 0.3)
    found = found_in(model, X, Y)
    check_cells(model, X, Y, found)
    complete = int(Y.notna().all(axis=1).sum())
    assert found.importance.n_rows == int(Y.notna().any(axis=1).sum())
    assert found.sets.n_calibrated + found.sets.n_tested == complete
    log_prob = model.predict_joint(X).log_prob(Y)
    assert found.hardest.tolist() == np.argsort(log_prob)[:3].tolist()


def test_states_that_the_model_does_not_know(model, data):
    Y = data.Y[200:].astype(object)
    Y.iloc[7, 1] = "never seen"
    found = found_in(model, data.X[200:], Y)
    assert found.n_impossible == 1
    assert 7 not in found.hardest
    assert "never seen" not in found.doubtful.cells.states
    assert found.importance.by_variable.n_rows[0].tolist() == [200, 199, 200]


def test_prediction_sets_contain_the_truth_as_often_as_a_loop_finds(model, data, found):
    X, Y = data.X[200:], data.Y[200:]
    rows = Rows(X, Y, "here", "row", range(200))
    sets = findings._prediction_sets(model, rows, found.held_out, np.random.RandomState(1))
    order = np.random.RandomState(1).permutation(200)
    own, other = order[:100], order[100:]
    lines = iter(sets.lines)
    for kind in ("outcomes", "variables"):
        calibration = model.calibrate_sets(X.iloc[own], Y.iloc[own], kind=kind)
        for coverage in findings.COVERAGES:
            line = next(lines)
            assert (line.kind, line.coverage) == (kind, coverage)
            hits = []
            for i in other:
                one = model.predict_set(X.iloc[[i]], coverage, calibration=calibration)
                true = Y.iloc[i].tolist()
                if kind == "outcomes":
                    hits.append(true in one.outcomes[0].tolist())
                else:
                    hits += [mask[0, s.tolist().index(t)] for mask, s, t in zip(one, model.classes_, true, strict=True)]
            assert line.found == pytest.approx(np.mean(hits))


def test_whole_sets_and_sets_of_states(model, data):
    X, Y = data.X[200:260], data.Y[200:260]
    truth = model.class_table_.encode(Y)
    whole = model.predict_set(X, 0.7)
    inside, sizes = findings._whole_sets(model, whole, truth)
    rows = Y.to_numpy().tolist()
    assert inside.tolist() == [float(row in some.tolist()) for row, some in zip(rows, whole.outcomes, strict=True)]
    assert sizes.tolist() == [len(some) for some in whole.outcomes]
    masks = model.predict_set(X, 0.7, kind="variables")
    inside, sizes = findings._state_sets(model, masks, truth)
    for i in (0, 17, 59):
        assert inside[i] == np.mean([mask[i, code] for mask, code in zip(masks, truth[i], strict=True)])
        assert sizes[i] == np.mean([mask[i].sum() for mask in masks])


def test_the_rows_of_importance_are_limited_and_counted(model, data, monkeypatch):
    monkeypatch.setattr(findings, "_MAX_ROWS", 120)
    assert found_in(model, data.X[200:], data.Y[200:]).importance.n_rows == 120


def test_few_rows(model, data):
    found = found_in(model, data.X[200:201], data.Y[200:201])
    assert "at least 2" in found.importance
    assert "at least 40" in found.sets
    assert found.hardest.tolist() == [0]


def test_training_rows_are_recognised(model, data):
    assert found_in(model, data.X[:200], data.Y[:200]).like_training
    assert not found_in(model, data.X[200:], data.Y[200:]).like_training
    assert Frequencies.of(model.class_table_.encode(data.Y[:200]), model.class_table_.sizes).n_rows == 200


def test_halves_of_a_stratified_split_are_not_training_rows():
    random = np.random.RandomState(0)
    X, y = random.normal(size=(100, 2)), np.repeat(["no", "yes"], 50)
    train, test = np.arange(0, 100, 2), np.arange(1, 100, 2)
    model = GBNC(experts=None).fit(X[train], y[train])
    assert np.unique(y[train], return_counts=True)[1].tolist() == np.unique(y[test], return_counts=True)[1].tolist()
    assert not found_in(model, X[test], y[test]).like_training
    assert found_in(model, X[train], y[train]).like_training


def test_training_rows_with_gaps_dates_and_categories_are_recognised(data):
    X = data.X[:100].assign(
        day=pd.date_range("2024-01-01", periods=100), kind=np.resize(["a", "b", None], 100), all=np.arange(100) % 2 == 0
    )
    X.iloc[::9, 0] = np.nan
    model = GBNC(experts=None, max_parents=1).fit(X, data.Y[:100])
    assert found_in(model, X, data.Y[:100], 0).like_training
    changed = X.copy()
    changed.iloc[1, 0] = np.nan
    assert not found_in(model, changed, data.Y[:100], 0).like_training


def test_other_models(data):
    assert not isinstance(found_in(BinaryRelevance().fit(data.X[:200], data.Y[:200]), data.X, data.Y).importance, str)
    chain = found_in(ClassifierChain().fit(data.X[:200], data.Y[:200]), data.X[200:], data.Y[200:])
    assert chain.importance.arc_names == []


def test_one_class_variable_and_lists():
    random = np.random.RandomState(0)
    X = random.normal(size=(160, 2))
    y = np.where(X[:, 0] + random.normal(size=160) > 0, "yes", "no")
    model = GBNC(experts=None).fit(X[:80], y[:80])
    array = found_in(model, X[80:], y[80:])
    lists = found_in(model, X[80:].tolist(), y[80:].tolist())
    assert array.losses == lists.losses
    assert array.sets.lines[0].found == lists.sets.lines[0].found
    assert len(pd.unique(array.doubtful.cells.rows)) == findings.N_CELLS
