"""Discrete features of very many values: the rare ones become one, everywhere and for good."""

import numpy as np
import pandas as pd
import pytest

import pmdc
from pmdc import GBNC
from pmdc.learners import NaiveBayes
from pmdc.table.columns import read_columns
from pmdc.table.features import FeatureTable
from pmdc.table.grouping import MAX_VALUES, MIN_ROWS, OTHER


def fit(column, weights=None):
    columns = read_columns(pd.DataFrame({"town": column}), "X", "test")
    table = FeatureTable.fit(columns, ["town"], weights)
    return table, table.encode(columns)


TOWNS = np.array([f"t{i:03}" for i in range(300)] * 3 + ["big"] * 50 + ["small"] * 20, dtype=object)


def test_rare_values_become_one():
    with pytest.warns(UserWarning, match="'town' has 302 values.*2 most frequent.*other 300, in 900 of 970 rows"):
        table, features = fit(TOWNS)
    assert table.states[0].tolist() == ["big", "small", OTHER]
    assert np.bincount(features.discrete[:, 0]).tolist() == [50, 20, 900]
    shuffled = np.random.default_rng(0).permutation(TOWNS)
    with pytest.warns(UserWarning, match="'town'"):
        assert fit(shuffled)[0].states[0].tolist() == table.states[0].tolist()


def test_a_row_of_weight_three_counts_as_three():
    weights = np.where(TOWNS == "t007", MIN_ROWS / 3, 1.0)
    with pytest.warns(UserWarning, match="3 most frequent"):
        assert fit(TOWNS, weights)[0].states[0].tolist() == ["big", "small", "t007", OTHER]


def test_at_most_so_many_values_stay_and_the_first_of_equals():
    with pytest.warns(UserWarning, match="255 most frequent"):
        table, _ = fit(np.repeat([f"t{i:03}" for i in range(300)], MIN_ROWS))
    assert table.states[0].tolist() == [*(f"t{i:03}" for i in range(MAX_VALUES)), OTHER]


def test_numbers_and_values_of_the_name_of_the_group():
    with pytest.warns(UserWarning, match="'town'"):
        table, _ = fit(np.repeat(np.arange(300), np.where(np.arange(300) < 5, 20, 2)))
    assert table.states[0].tolist() == [0, 1, 2, 3, 4, OTHER]
    with pytest.warns(UserWarning, match="'town'"):
        table, _ = fit(np.append(TOWNS, [OTHER] * 20))
    assert table.states[0].tolist() == ["big", OTHER, "small", f"{OTHER}_"]


@pytest.mark.filterwarnings("error")
def test_declared_values_without_rows_are_not_too_many():
    values = pd.Categorical(["a", "b"] * 10, categories=["a", "b", *(f"c{i}" for i in range(1000))])
    table, _ = fit(values)
    assert table.states[0].tolist() == ["a", "b"]
    later = read_columns(pd.DataFrame({"town": ["b", "c5"]}), "X", "test")
    assert table.encode(later).discrete[:, 0].tolist() == [1, -1]


def test_a_model_of_many_values_is_small_and_knows_what_was_grouped(tmp_path, recwarn):
    random = np.random.default_rng(0)
    town = pd.Series(random.integers(0, 5000, 6000)).map("t{}".format).where(random.random(6000) < 0.7, "big")
    X = pd.DataFrame({"x": random.normal(size=6000), "town": town})
    Y = pd.DataFrame({"y": (town == "big").to_numpy().astype(int), "z": random.integers(0, 2, 6000)})
    model = GBNC(experts=None, required_edges=[("town", "y")]).fit(X, Y)
    assert sum("column 'town'" in str(warning.message) for warning in recwarn) == 1
    assert len(model.feature_table_.states[0]) <= MAX_VALUES + 1
    assert ("town", "y") in model.graph_.edges
    recwarn.clear()
    new = pd.DataFrame({"x": [0.0, 0.0], "town": ["big", "never seen"]})
    assert model.predict(new)["y"].tolist() == [1, 0]
    assert not [warning for warning in recwarn if "town" in str(warning.message)]
    pmdc.save(model, tmp_path / "model.skops")
    again = pmdc.load(tmp_path / "model.skops")
    for one, other in zip(model.predict_proba(new), again.predict_proba(new), strict=True):
        assert (one == other).all()


def test_class_variables_are_not_grouped():
    y = np.repeat([f"s{i}" for i in range(300)], 2)
    model = NaiveBayes().fit(np.arange(600.0)[:, None], y)
    assert len(model.classes_) == 300
