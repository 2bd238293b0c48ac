"""Tables with missing values in the features, from the file to the prediction."""

import json

import pandas as pd
import pytest

import pmdc as library
from small_survey import survey

FIT = ["--classes", "mood,works", "--estimator", "logistic", "--max-parents", "1"]


@pytest.fixture
def table(tmp_path):
    """A table with gaps in numbers, categories and dates, and a column without values."""
    frame = pd.read_csv(pd.io.common.StringIO(survey()), dtype=str)
    frame["when"] = pd.date_range("2024-01-01", periods=len(frame)).strftime("%Y-%m-%d")
    frame["nothing"] = ""
    frame.loc[[3, 7], "age"] = ["", "NA"]
    frame.loc[5, "income"] = ""
    frame.loc[[1, 2, 9], "colour"] = ["", "NA", "null"]
    frame.loc[8, "when"] = ""
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    return frame


def test_what_is_done_is_said_for_each_column(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    median = pd.to_numeric(table["age"], errors="coerce").median()
    assert f"'age' has 2 missing values: filled with the median {median:.4g}, with an indicator." in said
    assert "'income' has 1 missing value: filled with the median" in said
    assert "'colour' has 3 missing values: a state of its own." in said
    assert "'when' has 1 missing value: filled with the median, with an indicator." in said
    assert "'nothing' is left out: no values." in said
    model = library.load("m.skops")
    assert model.feature_table_.gaps == {"age": 2, "income": 1, "colour": 3, "when": 1}
    assert "blue, red, missing" in " ".join(pmdc("show", "m.skops").out.split())


@pytest.mark.parametrize(
    ("estimator", "words"), [("naive-bayes", "filled with the median 36"), ("boosting", "given to the estimator")]
)
def test_what_is_said_is_true_for_the_estimator(pmdc, table, estimator, words):
    done = pmdc("fit", "gaps.csv", *FIT, "--estimator", estimator, "-o", "m.skops", "--json")
    hints = json.loads(done.out)["hints"]
    said = next(hint for hint in hints if "'age'" in hint and "missing" in hint)
    assert words.split()[0] in said
    assert "indicator" not in said
    assert {column["name"]: column.get("missing", 0) for column in json.loads(done.out)["columns"]}["colour"] == 3


def test_rows_with_gaps_are_predicted(pmdc, table):
    assert pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--test-size", "0.3").code == 0
    done = pmdc("predict", "m.skops", "gaps.csv", "-o", "out.csv")
    assert done.code == 0, done.err
    assert "missing" not in done.err
    found = pd.read_csv("out.csv", dtype=str)
    model = library.load("m.skops")
    X = table.drop(columns=["mood", "works", "nothing"])
    X = X.assign(**{name: pd.to_numeric(X[name], errors="coerce") for name in ("age", "income")})
    X = X.assign(when=pd.to_datetime(X["when"], errors="coerce"), colour=X["colour"].replace(["", "NA", "null"], None))
    expected = model.predict(X[list(model.feature_names_in_)])
    assert found["mood"].tolist() == expected["mood"].astype(str).tolist()
    assert pmdc("evaluate", "m.skops", "gaps.csv").code == 0
    done = pmdc("predict", "m.skops", "gaps.csv", "--drop-missing", "-o", "fewer.csv")
    assert "7 of 120 rows have missing values" in done.err


def test_gaps_that_are_new_are_warned_of(pmdc, folder, tmp_path):
    (tmp_path / "new.csv").write_text("age,income,site,colour\n,1,007,red\n30,1,007,NA\n30,1,007,red\n")
    done = pmdc("predict", folder / "model.skops", "new.csv", "-o", "out.csv")
    said = " ".join(done.err.split())
    assert done.code == 0
    assert "column 'age' has 1 missing value(s), line 2, but had none in the rows that the model was fitted on." in said
    assert "column 'colour' has 1 missing value(s), line 3" in said
    assert len(pd.read_csv("out.csv")) == 3


def test_many_columns_with_gaps_are_told_together(pmdc, tmp_path):
    frame = pd.read_csv(pd.io.common.StringIO(survey()), dtype=str)
    more = {f"n{i}": [*(str((7 * r + i) % 13 / 2) for r in range(len(frame) - 1)), ""] for i in range(25)}
    pd.concat([frame, pd.DataFrame(more)], axis=1).to_csv(tmp_path / "many.csv", index=False)
    done = pmdc("fit", "many.csv", *FIT, "-o", "m.skops")
    assert "25 columns have missing values, 25 in all" in " ".join(done.out.split())
