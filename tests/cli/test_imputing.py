"""``pmdc impute`` and ``pmdc check``."""

import json

import numpy as np
import pandas as pd
import pytest

import pmdc as library
from small_survey import survey

COLUMNS = ["age", "income", "site", "colour"]


@pytest.fixture
def table(tmp_path):
    """A table with gaps: all cells as they are written."""
    frame = pd.read_csv(pd.io.common.StringIO(survey(30, seed=1)), dtype=str, keep_default_na=False)
    frame.loc[[0, 3, 5], "mood"] = ["", "NA", ""]
    frame.loc[[3, 4], "works"] = ""
    frame.loc[7, "mood"] = "angry"
    frame.loc[0, "colour"] = "NA"
    frame["note"] = "1.10"
    frame = frame[["works", "note", *COLUMNS, "mood"]]
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    return frame


def read(name):
    return pd.read_csv(name, dtype=str, keep_default_na=False)


def expected(folder, table, kind, **options):
    model = library.load(folder / "model.skops")
    X = table[COLUMNS].assign(age=table["age"].astype(float), income=table["income"].astype(float))
    X["colour"] = X["colour"].replace("NA", None)
    Y = pd.DataFrame({"mood": table["mood"].replace(["", "NA", "angry"], None)})
    Y["works"] = pd.Series([int(cell) if cell else None for cell in table["works"]], dtype=object)
    return model.impute(X, Y, kind, **options)


def test_gaps_are_filled(pmdc, folder, table):
    done = pmdc("impute", folder / "model.skops", "gaps.csv", "-o", "out.csv")
    assert done.code == 0, done.err
    assert done.out == ""
    assert "5 missing cell(s) were filled: 'mood' 3, 'works' 2." in done.err
    assert "warning: class variable 'mood' has states that the model does not know, in 1 row(s): 'angry' (line 9)" in (
        done.err
    )
    found, filled = read("out.csv"), expected(folder, table, "mode")
    assert list(found) == list(table)
    gaps = {"mood": [0, 3, 5], "works": [3, 4]}
    for name, rows in gaps.items():
        assert found[name].drop(rows).tolist() == table[name].drop(rows).tolist(), "as they were written"
        assert found[name][rows].tolist() == filled[name][rows].astype(str).tolist()
    pd.testing.assert_frame_equal(found[["note", *COLUMNS]], table[["note", *COLUMNS]])
    done = pmdc("impute", folder / "model.skops", "out.csv", "-q", "--keep", "note")
    assert done.out.splitlines()[0] == "works,note,mood"


def test_probabilities_beside_the_table(pmdc, folder, table):
    done = pmdc("impute", folder / "model.skops", "gaps.csv", "--kind", "proba", "-o", "out.csv")
    assert "Their probabilities are those of a missing state" in done.err
    found = read("out.csv")
    names = ["P(mood=bad)", "P(mood=good)", "P(mood=so so)", "P(works=0)", "P(works=1)"]
    assert list(found) == [*table, *names]
    pd.testing.assert_frame_equal(found[list(table)], table)
    np.testing.assert_allclose(found[names].astype(float), np.hstack(expected(folder, table, "proba")), atol=1e-12)


def test_draws_one_after_the_other(pmdc, folder, table):
    sample = ["impute", folder / "model.skops", "gaps.csv", "--kind", "sample", "--draws", "3", "--seed", "4"]
    assert pmdc(*sample, "-o", "out.csv").code == 0
    found = read("out.csv")
    assert found["draw"].tolist() == ["1"] * 30 + ["2"] * 30 + ["3"] * 30
    tables = expected(folder, table, "sample", n_draws=3, random_state=4)
    drawn = pd.concat(tables, ignore_index=True)
    rows = [30 * draw + row for draw in range(3) for row in (0, 3, 5)]
    assert found["mood"][rows].tolist() == drawn["mood"][rows].astype(str).tolist()
    done = pmdc(*sample[:3], "--draws", "3")
    assert done.code == 2
    assert "--draws 3" in done.err
    table.rename(columns={"note": "draw"}).to_csv("taken.csv", index=False)
    done = pmdc("impute", folder / "model.skops", "taken.csv", "--kind", "sample")
    assert done.code == 2
    assert "'draw'" in done.err
    assert pmdc("impute", folder / "model.skops", "taken.csv", "--kind", "sample", "--keep", "site").code == 0


def test_class_columns_may_be_absent(pmdc, folder, table):
    table.drop(columns="works").to_csv("less.csv", index=False)
    done = pmdc("impute", folder / "model.skops", "less.csv", "-o", "out.csv")
    assert "less.csv has no column 'works': its states are missing in all 30 rows" in done.err
    assert list(read("out.csv")) == [*table.columns.drop("works"), "works"]
    assert set(read("out.csv")["works"]) <= {"0", "1"}
    done = pmdc("impute", folder / "model.skops", "less.csv", "--kind", "proba", "-q")
    assert done.out.splitlines()[0].startswith("note,age,income,site,colour,mood,works,P(mood=bad)")


def test_types_of_excel_files(pmdc, folder, table):
    pytest.importorskip("openpyxl")
    assert pmdc("impute", folder / "model.skops", "gaps.csv", "-o", "out.xlsx").code == 0
    found = pd.read_excel("out.xlsx", dtype={"site": str})
    assert found["works"].dtype.kind == "i"
    assert found["mood"][7] == "angry"
    assert found["site"].tolist() == table["site"].tolist()


def test_bad_input_of_impute(pmdc, folder, table):
    model = folder / "model.skops"
    assert "--force" in pmdc("impute", model, "gaps.csv", "-o", "gaps.csv").err
    assert "is the table itself" in pmdc("impute", model, "gaps.csv", "-o", "gaps.csv", "--force").err
    done = pmdc("impute", model, "gaps.csv", "--keep", "nothing")
    assert (done.code, done.out) == (2, "")
    assert "--keep names 'nothing'" in done.err
    done = pmdc("impute", model, folder / "new.csv", "-o", "out.csv")
    assert "nothing was filled" in done.err


# check --------------------------------------------------------------------------------------------------------


def test_the_most_improbable_states(pmdc, folder, table):
    done = pmdc("check", folder / "model.skops", "gaps.csv", "--folds", "3", "--most", "4", "-o", "cells.csv")
    assert done.code == 0, done.err
    cells = read("cells.csv")
    assert list(cells) == ["line", "class variable", "state", "expected", "probability"]
    assert len(cells) == 60 - 5, "known cells only"
    prob = cells["probability"].astype(float)
    assert (prob.diff().dropna() >= 0).all()
    for line, name, state in cells.iloc[:, :3].itertuples(index=False):
        assert table[name][int(line) - 2] == state, "as it is written"
    assert set(cells.loc[cells["class variable"] == "works", "expected"]) <= {"0", "1"}
    said = " ".join(done.out.split())
    assert "gaps.csv: the 4 most improbable of 55 known states" in said
    assert "by a model that has not seen the row" in said
    assert done.out.count("\n  ") >= 4
    angry = cells[cells["state"] == "angry"]
    assert angry["line"].tolist() == ["9"]
    told = json.loads(pmdc("check", folder / "model.skops", "gaps.csv", "--folds", "3", "--most", "4", "--json").out)
    assert told["cells"] == 55
    assert [cell["line"] for cell in told["most"]] == [int(line) for line in cells["line"][:4]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds", "1"], "'1'"),
        (["--folds", "31"], "--folds 31 is more than the 30 rows"),
        (["--jobs", "0"], "--jobs 0"),
        (["--json", "-o", "-"], "leave out --json"),
        (["-o", "cells.txt.zip"], "cells.txt.zip"),
        (["-o", "gaps.csv", "--force"], "is the table itself"),
    ],
)
def test_bad_options_of_check(pmdc, folder, table, options, message):
    done = pmdc("check", folder / "model.skops", "gaps.csv", *options)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("arguments", [["model.skops", "table.csv"], ["table.csv"]])
def test_columns_of_check_are_those_of_the_model(pmdc, folder, arguments):
    done = pmdc("check", *(folder / name for name in arguments), "-c", "mood,works")
    assert done.code == 2
    assert "--classes mood,works: the class variables and features are those of MODEL" in done.err
    said = " ".join(pmdc("check", "--help").out.split())
    assert "its settings, class variables and features are used" in said
    assert "--classes" not in said


def test_tables_that_cannot_be_checked(pmdc, folder, table):
    table.assign(works="").to_csv("none.csv", index=False)
    assert "class variable 'works' has no known state" in pmdc("check", folder / "model.skops", "none.csv").err
    table.assign(works="1").to_csv("one.csv", index=False)
    assert "class variable 'works' has only the state '1'" in pmdc("check", folder / "model.skops", "one.csv").err
    table.drop(columns="works").to_csv("less.csv", index=False)
    assert "has no column 'works'" in pmdc("check", folder / "model.skops", "less.csv").err
    model = library.load(folder / "model.skops").set_params(missing_labels="error")
    library.save(model, "strict.skops")
    done = pmdc("check", "strict.skops", "gaps.csv")
    assert done.code == 2
    assert "class variable 'mood' has 3 missing value(s)" in done.err
