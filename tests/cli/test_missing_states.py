"""Class columns with gaps and with alternatives, from the file to the model and its test."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

import pmdc as library
from pmdc.cli.findings import em_sentence
from pmdc.cli.kinds import Choices, read_training
from pmdc.cli.matching import read_states
from pmdc.datasets import make_network
from pmdc.table_files import Format, read_table
from small_survey import survey

FIT = ["--classes", "mood,works", "--estimator", "logistic", "--max-parents", "1"]


def rows_of(text):
    return pd.read_csv(pd.io.common.StringIO(text), dtype=str)


@pytest.fixture
def table(tmp_path):
    """A table with gaps in all columns; two rows have no known state."""
    frame = rows_of(survey())
    frame.loc[[3, 7], "age"] = ["", "NA"]
    frame.loc[[1, 2, 10, 11, 30], "mood"] = ["", "NA", "null", "", ""]
    frame.loc[[1, 2, 50], "works"] = ""
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    return frame


def test_gaps_are_told_and_learned_from(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--test-size", "0.3")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "5 missing" in said.partition("works class variable")[0]
    assert "'mood' has 5 missing states (4%), 'works' 3 (2%): rows are completed by their probabilities" in said
    assert "2 rows have no known state (lines 3, 4) and are ignored; --use-unlabelled" in said
    assert "structural EM settled after" in said
    assert "a row (of the completed rows)" in said
    assert "has probability" not in said
    assert "missing cell(s) of class variables are ignored" in said
    assert "fitted on the 118 rows with a known state" in said
    model = library.load("m.skops")
    assert [states.tolist() for states in model.classes_] == [["bad", "good", "so so"], [0, 1]]
    assert f"settled after {model.em_.n_rounds} round" in " ".join(pmdc("show", "m.skops").out.split())


def test_gaps_as_json(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--test-size", "0.3", "--json", "-q", "--use-unlabelled")
    told = json.loads(done.out)
    assert {column["name"]: column["missing"] for column in told["columns"] if "missing" in column} == {
        "mood": 5,
        "works": 3,
        "age": 2,
    }
    em = library.load("m.skops").em_
    assert told["structure"]["em"] == {
        "n_rounds": em.n_rounds,
        "converged": em.converged,
        "log_likelihood": em.log_likelihood,
        "n_completions": em.n_completions,
        "pruned": em.pruned,
        "n_drawn": getattr(em, "n_drawn", 0),
    }
    assert em.n_completions > 120, "rows without a known state are used"
    assert 0 < sum(told["test"]["cells_ignored"].values()) <= 4, "rows without a known state are not held out"
    shown = json.loads(pmdc("show", "m.skops", "--json").out)
    assert shown["structure"]["em"] == told["structure"]["em"]


def test_draws_of_rows_with_many_ways():
    em = SimpleNamespace(n_rounds=2, converged=True, log_likelihood=[-9.0, -8.0], n_completions=80, pruned=0.0)
    assert "draws" not in em_sentence(em), "of an earlier version"
    em.n_drawn = 3
    assert em_sentence(em).endswith("80 completed rows; 3 rows with more than 64 ways get 20 draws each.")
    em.n_drawn = 0
    assert "draws" not in em_sentence(em)


def test_one_draw_for_each_row_of_an_estimator_without_weights():
    data = make_network(90, n_class_variables=2, random_state=0)
    Y = data.Y.astype(object).mask(np.random.default_rng(0).random((90, 2)) < 0.2, None)
    limits = {"max_parents": 0, "max_discrete_parents": 0}
    model = library.GBNC(KNeighborsClassifier(), experts=None, **limits).fit(data.X, Y)
    said = em_sentence(model.em_)
    assert "more than 64 ways" not in said
    assert f"by {model.n_rows_used_} completed rows" in said
    assert "one draw for each row" in said


def test_rows_without_states_are_for_em(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--missing-labels", "available")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "2 rows have no known state (lines 3, 4) and are ignored." in said
    assert "--use-unlabelled" not in said
    assert "fitted on the 118 rows with a known state" in said


def test_rows_with_gaps_can_be_left_out(pmdc, table, tmp_path):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "dropped.skops", "--missing-labels", "drop")
    assert "6 of 120 rows have missing values and are left out (lines 3, 4, 12 and 3 more)" in done.err
    assert "fitted on all 114 rows" in done.out
    assert "EM" not in done.out
    rows = table.replace(["NA", "null"], "").query("mood != '' and works != ''")
    rows.to_csv(tmp_path / "complete.csv", index=False)
    pmdc("fit", "complete.csv", *FIT, "-o", "complete.skops")
    ours, theirs = library.load("dropped.skops"), library.load("complete.skops")
    assert ours.structure_.score == pytest.approx(theirs.structure_.score)
    assert not hasattr(ours, "em_")


def test_gaps_can_be_refused(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--missing-labels", "error")
    assert done.code == 2
    for words in ("class variable 'mood' has 5 missing value(s), lines 3, 4, 12", "'works' (3)", "--missing-labels em"):
        assert words in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--missing-labels", "drop", "--use-unlabelled"], "--missing-labels drop"),
        (["--drop-missing", "--use-unlabelled"], "--drop-missing"),
        (["--missing-labels", "guess"], "'guess'"),
        (["--alternatives", "||"], "--alternatives '||'"),
        (["--alternatives", "a"], "--alternatives 'a'"),
        (["--alternatives", ";", "--delimiter", ";"], "--alternatives ';' is the delimiter"),
        (["--alternatives", "|", "--missing-labels", "drop"], "--missing-labels em, not drop"),
    ],
)
def test_options(pmdc, table, options, message):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", *options)
    assert done.code == 2
    assert message in done.err


def test_resamples_have_gaps(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--confidence", "2", "--json", "-q")
    assert json.loads(done.out)["structure"]["resamples"]["number"] == 2, done.err


def test_rows_that_are_known_in_one_column_only(pmdc, tmp_path):
    frame = rows_of(survey())
    frame.loc[frame.index % 2 == 0, "mood"] = ""
    frame.loc[frame.index % 2 == 1, "works"] = ""
    frame.to_csv(tmp_path / "halves.csv", index=False)
    done = pmdc("fit", "halves.csv", *FIT, "-o", "m.skops", "--test-size", "0.25")
    assert done.code == 0, done.err
    assert "uses the 0 of 30 rows that are complete" in " ".join(done.out.split())
    done = pmdc("fit", "halves.csv", *FIT, "-o", "m.skops", "-f", "--missing-labels", "drop")
    assert done.code == 2
    assert "No row is complete: learn from these rows, too (--missing-labels em)" in done.err


def test_gaps_in_text_of_excel_files(pmdc, table):
    pytest.importorskip("openpyxl")
    table.replace(["", "NA", "null"], None).to_excel("gaps.xlsx", index=False)
    done = pmdc("fit", "gaps.xlsx", *FIT, "-o", "m.skops")
    assert done.code == 0, done.err
    assert "'mood' has 5 missing states" in " ".join(done.out.split())


# Alternatives -------------------------------------------------------------------------------------------------


@pytest.fixture
def weak(tmp_path):
    frame = rows_of(survey())
    frame.loc[[3, 9, 12], "mood"] = ["good|bad", " bad | good", "so so|so so"]
    frame.loc[[4, 5], "works"] = ["0|1", ""]
    frame.to_csv(tmp_path / "weak.csv", index=False)
    return tmp_path / "weak.csv"


def test_alternatives_are_sets_of_states(weak):
    read = read_training(read_table(str(weak), Format()), Choices(["mood", "works"], alternatives="|"))
    assert read.Y["mood"].iloc[3] == read.Y["mood"].iloc[9] == frozenset({"good", "bad"})
    assert read.Y["mood"].iloc[12] == "so so"
    assert read.Y["works"].iloc[4] == frozenset({0, 1}), "of the type of the other states"
    assert read.Y["works"].iloc[5] is None
    assert isinstance(read.Y["works"].iloc[0], int)
    kinds = {kind.name: kind for kind in read.kinds}
    assert (kinds["mood"].alternatives, kinds["mood"].missing) == (2, 0)
    assert (kinds["works"].alternatives, kinds["works"].missing) == (1, 1)
    assert list(kinds["mood"].states) == ["bad", "good", "so so"]
    assert any("'mood' has 2 cells with alternatives, such as 'good|bad' (line 5)" in hint for hint in read.hints)


def test_states_that_look_like_alternatives(pmdc, weak):
    read = read_training(read_table(str(weak), Format()), Choices(["mood", "works"]))
    assert any("'good|bad' (line 5)" in hint and "--alternatives '|'" in hint for hint in read.hints)
    read = read_training(read_table(str(weak), Format()), Choices(["mood", "works"], alternatives="/"))
    assert any("separated by '/'" in hint for hint in read.hints)
    weak.write_text(weak.read_text().replace("good|bad", "good|"))
    done = pmdc("fit", weak, *FIT, "-o", "m.skops", "--alternatives", "|")
    assert done.code == 2
    assert "class variable 'mood' holds 'good|' (line 5): one of the alternatives is ''" in done.err


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["good|bad"] * 120, "'mood' has no known state in its 120 rows (120 name alternatives)"),
        (["good|bad"] * 60 + [""] * 60, "'mood' has no known state in its 120 rows (60 name alternatives)"),
        (["good|bad"] * 50 + ["good"] * 70, "'mood' is 'good' in all 70 rows in which it is known (50 name altern"),
        (
            ["good|bad"] * 50 + [""] * 10 + ["good"] * 60,
            "'mood' is 'good' in all 60 rows in which it is known (10 are missing, 50 name alternatives)",
        ),
    ],
)
def test_alternatives_are_not_known_states(pmdc, tmp_path, cells, message):
    rows_of(survey()).assign(mood=cells).to_csv(tmp_path / "weak.csv", index=False)
    done = pmdc("fit", "weak.csv", *FIT, "-o", "m.skops", "--alternatives", "|")
    assert done.code == 2
    assert message in done.err


def test_alternatives_are_learned_from(pmdc, weak):
    done = pmdc("fit", weak, *FIT, "-o", "m.skops", "--alternatives", "|", "--test-size", "0.3", "--confidence", "2")
    assert done.code == 0, done.err
    model = library.load("m.skops")
    assert [states.tolist() for states in model.classes_] == [["bad", "good", "so so"], [0, 1]]
    assert model.em_.n_rounds > 0


@pytest.fixture
def weak_model(pmdc, weak):
    """A model of such a table, and a table with other sets; the last one is of states that the model does not know."""
    assert pmdc("fit", weak, *FIT, "-o", "m.skops", "--alternatives", "|", "-q").code == 0
    frame = rows_of(survey(40, seed=2))
    frame.loc[[0, 1, 2, 3], "mood"] = ["bad|so so", "so so | angry", "good|good", "angry|furious"]
    frame.loc[[1, 5, 6], "works"] = ["0|1", "1|1", ""]
    frame.to_csv("new.csv", index=False)
    return library.load("m.skops"), frame


ALTERNATIVES = ["--alternatives", "|"]
STRANGE = "'mood' has 1 cell(s) with alternatives of which the model knows none: 'angry|furious' (line 5)"


def states_of(name):
    return pd.read_csv(name, dtype=str, keep_default_na=False)


def given(frame):
    """The class variables of the new table as `impute` takes them."""
    Y = pd.DataFrame({"mood": frame["mood"].astype(object), "works": frame["works"].replace("", None).astype(object)})
    Y["mood"] = [*map(frozenset, (["bad", "so so"], ["so so", "angry"])), "good", None, *Y["mood"][4:]]
    works = [frozenset({0, 1}) if i == 1 else None if i == 6 else int(cell[0]) for i, cell in enumerate(frame["works"])]
    return Y.assign(works=pd.Series(works, dtype=object))


def test_alternatives_are_filled(pmdc, weak_model):
    model, frame = weak_model
    done = pmdc("impute", "m.skops", "new.csv", *ALTERNATIVES, "-o", "out.csv")
    assert done.code == 0, done.err
    assert "1 missing cell(s) and 3 with alternatives were filled: 'mood' 2, 'works' 2." in done.err
    assert f"{STRANGE}. They stay as they are" in done.err
    assert "states that the model does not know" not in done.err
    table = read_table("new.csv", Format())
    X = pd.DataFrame({name: table[name].own_type() for name in ("age", "income", "site", "colour")})
    filled, out = model.impute(X, given(frame)), states_of("out.csv")
    assert out["mood"][0] == filled["mood"][0] != "good"
    assert out["mood"][1] == "so so", "the only one that the model knows"
    assert out["mood"][2:4].tolist() == ["good|good", "angry|furious"], "as they are written"
    assert out["works"][[1, 6]].tolist() == filled["works"][[1, 6]].astype(str).tolist()
    assert out["works"][5] == "1|1"
    pd.testing.assert_frame_equal(out.drop(index=[0, 1, 6]), frame.drop(index=[0, 1, 6]))
    assert pmdc("impute", "m.skops", "new.csv", *ALTERNATIVES, "--kind", "proba", "-o", "proba.csv").code == 0
    proba = states_of("proba.csv")
    assert proba["mood"].tolist() == frame["mood"].tolist()
    assert proba["P(mood=good)"].astype(float)[0] == 0
    np.testing.assert_allclose(proba["P(mood=bad)"].astype(float), model.impute(X, given(frame), "proba")[0][:, 0])
    assert pmdc("impute", "m.skops", "new.csv", *ALTERNATIVES, "--kind", "sample", "-o", "draws.csv").code == 0
    draws = states_of("draws.csv").iloc[0::40]
    assert len(draws) == 5
    assert set(draws["mood"]) <= {"bad", "so so"}


def test_alternatives_in_files_with_types(pmdc, weak_model):
    pytest.importorskip("openpyxl")
    assert pmdc("impute", "m.skops", "new.csv", *ALTERNATIVES, "-o", "out.xlsx").code == 0
    found = pd.read_excel("out.xlsx")
    assert found["works"].dtype.kind == "i"
    assert found["mood"][2:4].tolist() == ["good", "angry|furious"]


def test_alternatives_are_not_tested(pmdc, weak_model):
    _, frame = weak_model
    done = pmdc("evaluate", "m.skops", "new.csv", *ALTERNATIVES, "--json")
    assert done.code == 0, done.err
    assert STRANGE in done.err
    assert "states that the model does not know" not in done.err
    assert "5 missing cell(s) of class variables are ignored: 'mood' (3), 'works' (2)" in done.err
    told = json.loads(done.out)
    assert told["cells_ignored"] == {"mood": 3, "works": 2}
    frame.loc[[0, 1, 2, 3], "mood"] = ["", "", "good", ""]
    frame.loc[[1, 5], "works"] = ["", "1"]
    frame.to_csv("plain.csv", index=False)
    plain = json.loads(pmdc("evaluate", "m.skops", "plain.csv", "--json").out)
    assert {**told, "table": ""} == {**plain, "table": ""}
    frame.assign(mood="good|bad").to_csv("weak_only.csv", index=False)
    done = pmdc("evaluate", "m.skops", "weak_only.csv", *ALTERNATIVES)
    assert done.code == 2
    assert "'mood' has no value but alternatives" in done.err


def test_alternatives_are_not_ranked(pmdc, weak_model):
    _, frame = weak_model
    frame.loc[7:9, "mood"] = ["tired|angry", "angry", "angry"]  # known in this table, not to the model
    frame.to_csv("new.csv", index=False)
    done = pmdc("check", "m.skops", "new.csv", *ALTERNATIVES, "--folds", "2", "-o", "cells.csv")
    assert done.code == 0, done.err
    assert "does not know" not in done.err, "angry is a state of this table"
    cells = states_of("cells.csv")
    assert len(cells) == 80 - 4 - 1 - 1, "neither sets nor gaps"
    ranked = set(zip(cells["line"], cells["class variable"], strict=True))
    assert {("2", "mood"), ("3", "mood"), ("5", "mood"), ("9", "mood"), ("3", "works"), ("8", "works")}.isdisjoint(
        ranked
    )
    assert ("4", "mood") in ranked
    assert cells.loc[cells["line"].isin(["10", "11"]) & (cells["class variable"] == "mood"), "state"].eq("angry").all()


def test_alternatives_of_no_state_are_missing_in_check(pmdc, weak_model):
    done = pmdc("check", "m.skops", "new.csv", *ALTERNATIVES, "--folds", "2")
    assert done.code == 0, done.err
    assert f"{STRANGE}. They are taken as missing." in done.err
    library.save(library.load("m.skops").set_params(missing_labels="error"), "strict.skops")
    done = pmdc("check", "strict.skops", "new.csv", *ALTERNATIVES)
    assert done.code == 2
    assert "'mood' has 3 missing value(s) or alternatives" in done.err


@pytest.mark.parametrize("command", ["impute", "check", "evaluate"])
def test_bad_alternatives(pmdc, weak_model, command):
    done = pmdc(command, "m.skops", "new.csv", "--alternatives", "a")
    assert done.code == 2
    assert "--alternatives 'a' must be one character" in done.err
    _, frame = weak_model
    frame.assign(mood="good|").to_csv("odd.csv", index=False)
    done = pmdc(command, "m.skops", "odd.csv", *ALTERNATIVES)
    assert done.code == 2
    assert "'mood' holds 'good|' (line 2): one of the alternatives is ''" in done.err


def test_states_that_contain_the_character_stay_states(pmdc, weak):
    assert pmdc("fit", weak, *FIT, "-o", "m.skops", "-q").code == 0
    column = read_states(read_table(str(weak), Format()), library.load("m.skops"), "mood", "|")
    assert column.values[3] == "good|bad"
    assert not column.alternatives.any()


def test_rows_in_which_a_family_is_known(pmdc, table):
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--missing-labels", "available", "--test-size", "0.3")
    assert done.code == 0, done.err
    assert "each class variable is learned from the rows in which it and its parents are known" in done.out
    assert library.load("m.skops").missing_labels == "available"
