"""Filling in missing states, and finding those that look wrong."""

import itertools

import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.learners import Logistic

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
