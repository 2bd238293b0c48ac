"""Filling in missing states, and finding those that look wrong."""

import itertools

import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.completion import improbable_cells
from pmdc.datasets import make_network
from pmdc.inference import JointDistribution
from pmdc.learners import Logistic, NaiveBayes
from pmdc.table import ClassTable
from pmdc.table.columns import MISSING

DATA = make_network(300, random_state=2)
MODEL = GBNC(experts=None, max_parents=2).fit(DATA.X, DATA.Y)
GAPS = np.random.RandomState(0).rand(*DATA.Y.shape) < 0.4
GAPPY = DATA.Y.astype(object).mask(GAPS, None)


def completions(row):
    """Return all completions of a row and their probabilities, by enumeration."""
    codes = MODEL.class_table_.encode(GAPPY, missing="mark")[row]
    ways = np.array(list(itertools.product(*(range(3) if c < 0 else [c] for c in codes))))
    joint = MODEL.predict_joint(DATA.X).rows(np.full(len(ways), row))
    p = np.exp(joint.log_prob_codes(ways))
    return ways, p / p.sum()


def test_the_most_probable_completion():
    filled = MODEL.class_table_.encode(MODEL.impute(DATA.X, GAPPY))
    for row in range(40):
        ways, p = completions(row)
        assert p[(ways == filled[row]).all(axis=1)][0] == pytest.approx(p.max())


def test_probabilities_of_the_cells():
    proba = MODEL.impute(DATA.X, GAPPY, "proba")
    for row in range(20):
        ways, p = completions(row)
        for k in range(4):
            assert proba[k][row] == pytest.approx([p[ways[:, k] == s].sum() for s in range(3)])


def test_draws():
    tables = MODEL.impute(DATA.X, GAPPY, "sample", n_draws=300)
    assert len(tables) == 300
    proba = MODEL.impute(DATA.X, GAPPY, "proba")
    codes = np.array([MODEL.class_table_.encode(table) for table in tables])
    for k, row in itertools.product(range(4), range(10)):
        shares = np.bincount(codes[:, row, k], minlength=3) / 300
        assert shares == pytest.approx(proba[k][row], abs=0.13)
    again = MODEL.impute(DATA.X, GAPPY, "sample", n_draws=2)
    assert again[0].equals(MODEL.impute(DATA.X, GAPPY, "sample", n_draws=2)[0])
    assert not again[0].equals(again[1])


def test_a_complete_table_stays_as_it_is():
    assert MODEL.impute(DATA.X, DATA.Y).equals(DATA.Y)
    filled = MODEL.impute(DATA.X, GAPPY)
    assert (filled.to_numpy() == DATA.Y.to_numpy())[~GAPS].all()
    assert filled.index.equals(GAPPY.index)


def test_complaints():
    with pytest.raises(ValueError, match="kind='best'"):
        MODEL.impute(DATA.X, GAPPY, "best")
    with pytest.raises(ValueError, match="X has 300 rows, y has 10"):
        MODEL.impute(DATA.X, GAPPY[:10])
    with pytest.raises(ValueError, match="column 'y0', row 3.*'odd'"):
        MODEL.impute(DATA.X, GAPPY.assign(y0=["odd" if i == 3 else "a" for i in range(300)]))


def test_states_that_are_impossible_together():
    Y = DATA.Y.copy()
    Y["y1"] = Y["y0"]
    model = GBNC(
        Logistic(C=1.0), experts=None, backoff="none", conditioning="partition", criterion="bic", max_parents=1
    )
    model.fit(DATA.X, Y)
    gappy = Y.astype(object)
    gappy.iloc[7] = ["a", "b", None, None]
    with pytest.raises(ValueError, match="y, row 7: .*'y0': 'a', 'y1': 'b'.*backoff='parents'"):
        model.impute(DATA.X, gappy)
    found = model.suspicious_cells(DATA.X, gappy, cv=2)
    assert {(found.rows[i], found.names[i]) for i in range(2)} == {(7, "y0"), (7, "y1")}


def test_flipped_cells_are_suspicious():
    Y = DATA.Y.copy()
    flipped = np.random.RandomState(1).choice(Y.size, 24, replace=False)
    for cell in flipped:
        row, k = divmod(cell, 4)
        Y.iloc[row, k] = next(s for s in "abc" if s != Y.iloc[row, k])
    found = GBNC(experts=None, max_parents=2).suspicious_cells(DATA.X, Y)
    assert len(found.rows) == Y.size
    assert (np.diff(found.prob) >= 0).all()
    first = {(row, name) for row, name in zip(found.rows[:24], found.names[:24], strict=True)}
    hits = sum((cell // 4, f"y{cell % 4}") in first for cell in flipped)
    assert hits > 4 * 24 * 24 / Y.size, "much more than at random"
    state = [Y[name].iloc[row] for row, name in zip(found.rows, found.names, strict=True)]
    assert found.states.tolist() == state


def test_gaps_and_states_that_no_other_fold_has():
    Y = GAPPY.copy()
    row = int(np.flatnonzero(~GAPS[:, 0])[0])
    Y.iloc[row, 0] = "odd"
    found = GBNC(experts=None, max_parents=1).suspicious_cells(DATA.X, Y)
    assert len(found.rows) == (~GAPS).sum()
    assert (found.rows[0], found.names[0], found.states[0], found.prob[0]) == (row, "y0", "odd", 0.0)
    plain = BinaryRelevance().suspicious_cells(DATA.X, pd.DataFrame(DATA.Y))
    assert len(plain.rows) == DATA.Y.size


@pytest.mark.parametrize(("X_rows", "y_rows"), [(150, 300), (300, 150)])
@pytest.mark.parametrize("question", ["impute", "suspicious_cells"])
def test_tables_of_different_lengths(question, X_rows, y_rows):
    for make in (lambda table: table, np.asarray, lambda table: table.to_numpy().tolist()):
        model = GBNC(experts=None, max_parents=1) if question == "suspicious_cells" else MODEL
        X, Y = DATA.X[:X_rows], DATA.Y[:y_rows]
        with pytest.raises(ValueError, match=f"X has {X_rows} rows, y has {y_rows}"):
            getattr(model, question)(X if question == "impute" else make(X), make(Y))


@pytest.mark.parametrize("question", ["impute", "suspicious_cells", "score", "calibrate_sets"])
def test_no_states_at_all(question):
    with pytest.raises(ValueError, match="GBNC requires y"):
        getattr(MODEL, question)(DATA.X, None)


def twins(n_rows=200, n_impossible=60):
    """A table in which y1 is y0, but not in the first rows, and a model by which it always is."""
    Y = DATA.Y[:n_rows].copy()
    Y["y1"] = Y["y0"]
    settings = {"backoff": "none", "conditioning": "partition", "criterion": "bic", "max_parents": 1}
    model = GBNC(Logistic(C=1.0), experts=None, **settings).fit(DATA.X[:n_rows], Y)
    odd = Y.astype(object)
    for row in range(n_impossible):
        odd.at[row, "y1"] = next(s for s in "abc" if s != Y.at[row, "y0"])
    return model, DATA.X[:n_rows], odd


@pytest.mark.parametrize("weak", [False, True])
def test_rows_that_are_impossible_without_a_cell(monkeypatch, weak):
    model, X, Y = twins()
    if weak:
        for row in range(30):
            Y.at[row, "y1"] = {"a", "b", "c"} - {Y.at[row, "y0"]}
    calls = []
    given = JointDistribution.given_codes
    monkeypatch.setattr(JointDistribution, "given_codes", lambda self, codes: calls.append(1) or given(self, codes))
    found = improbable_cells(model, X, Y, np.arange(len(X)))
    assert len(calls) == 4, "once for each class variable"
    alone = model.predict_proba(X)
    every = model.predict_joint(X).enumerate()
    cells = {(row, name): p for row, name, p in zip(found.rows, found.names, found.prob, strict=True)}
    codes, possible = model.class_table_.encode_weak(Y)
    assert len(cells) == 800 - 30 * weak
    for (row, name), prob in cells.items():
        k = int(name[1])
        agree = np.ones(len(every.outcomes), dtype=bool)
        for j in range(4):
            if j != k and codes[row, j] >= 0:
                agree &= every.outcomes[:, j] == codes[row, j]
            elif j != k:
                agree &= possible[j][row, every.outcomes[:, j]]
        p = np.exp(every.log_p[row]) * agree
        wanted = codes[row, k]
        if p.sum() == 0:
            assert row < 60
            assert prob == pytest.approx(alone[k][row, wanted])
        else:
            assert prob == pytest.approx(p[every.outcomes[:, k] == wanted].sum() / p.sum())


@pytest.mark.parametrize("kind", ["powerset", "chain", "network"])
def test_what_may_be(kind):
    Y = DATA.Y[:60]
    classifier = {"powerset": ClassPowerset, "chain": ClassifierChain}.get(kind, lambda: GBNC(experts=None))()
    joint = classifier.fit(DATA.X[:60], Y).predict_joint(DATA.X[:60])
    every, rng = joint.enumerate(), np.random.default_rng(0)
    evidence = np.where(rng.random((60, 4)) < 0.5, -1, rng.integers(3, size=(60, 4)))
    possible = [None, rng.random((60, 3)) < 0.4, None, rng.random((60, 3)) < 0.4]
    expected = []
    for row in range(60):
        agree = ((evidence[row] == -1) | (evidence[row] == every.outcomes)).all(axis=1)
        agree &= possible[1][row, every.outcomes[:, 1]] & possible[3][row, every.outcomes[:, 3]]
        expected.append(np.exp(every.log_p[row][agree]).sum() > 0)
    assert 5 < sum(expected) < 55
    assert joint.may_be(evidence, possible).tolist() == expected
    assert joint.may_be(evidence, [None] * 4).all() == (kind != "powerset" or joint.rest.min() > 0)


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        ([1, 2, 3], 9),
        ([1.0, 2.0, 3.0], 9.0),
        ([True, False, True], None),
        (pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]).tolist(), pd.Timestamp("2030-01-01")),
    ],
)
def test_states_and_expected_states_are_of_one_type(values, odd):
    column = pd.Series([values["abc".index(state)] for state in DATA.Y["y0"]])
    if odd is not None:
        column[5] = odd
    Y = pd.DataFrame({"y0": column, "y1": DATA.Y["y1"]})
    found = BinaryRelevance(NaiveBayes()).suspicious_cells(DATA.X, Y, cv=2)
    mine = found.names == "y0"
    assert {type(state) for state in found.states[mine]} == {type(state) for state in found.expected[mine]}
    for row, state in zip(found.rows[mine], found.states[mine], strict=True):
        assert state == column[row]
    gaps = column.astype(object).mask(np.arange(len(column)) == 7, None)
    table = pd.DataFrame({"y0": gaps, "y1": DATA.Y["y1"]})
    holey = GBNC(NaiveBayes(), experts=None, max_parents=0).suspicious_cells(DATA.X, table, cv=2)
    mine = holey.names == "y0"
    assert {type(state) for state in holey.states[mine]} == {type(state) for state in holey.expected[mine]}


def test_many_sets_of_unknown_states():
    table = ClassTable.fit(pd.DataFrame({"y": ["a", "b"]}))
    codes, possible = table.encode_weak(pd.DataFrame({"y": [{"p", "q"}] * 40_000}), unknown="mark")
    assert (codes == MISSING).all()
    assert possible is None
