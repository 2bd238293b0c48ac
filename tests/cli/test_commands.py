"""What the commands answer, and that types survive the way through files."""

import gzip
import json
import stat
import subprocess
import sys
from io import StringIO

import numpy as np
import pandas as pd
import pytest

import pmdc as library
from pmdc import metrics
from small_survey import FIT, survey


def test_fit_tells_kinds_and_writes_json(pmdc, tmp_path):
    (tmp_path / "table.csv").write_text(survey())
    done = pmdc("fit", "table.csv", *FIT, "-o", "m.skops", "--discrete", "age", "--ignore", "inc*", "--json")
    assert done.code == 0
    told = json.loads(done.out)
    assert {column["name"]: column["kind"] for column in told["columns"]} == {
        "mood": "class variable",
        "works": "class variable",
        "age": "discrete",
        "site": "discrete",
        "colour": "discrete",
        "income": "ignored",
    }
    assert told["structure"]["status"].startswith("optimal")
    assert told["test"] is None
    assert "'site' have leading zeros" in done.err, "where the standard output is for data, people look elsewhere"
    model = library.load("m.skops")
    assert model.feature_table_.discrete_names == ["age", "site", "colour"]
    assert model.feature_table_.states[1].tolist() == ["007", "012", "120"]
    assert [states.tolist() for states in model.classes_] == [["bad", "good", "so so"], [0, 1]]
    edges = {(edge["parent"], edge["child"]) for edge in told["structure"]["edges"]}
    assert edges == set(model.graph_.edges)


def test_the_test_is_that_of_the_metrics(pmdc, tmp_path):
    (tmp_path / "table.csv").write_text(survey())
    done = pmdc("fit", "table.csv", *FIT, "-o", "m.skops", "--test-size", "0.3", "--json", "--quiet")
    assert done.err == ""
    told = json.loads(done.out)["test"]
    assert told["rows"] == 36
    again = pmdc("fit", "table.csv", *FIT, "-o", "m.skops", "--test-size", "0.3", "--json", "--quiet", "--force")
    assert again.out == done.out
    assert told["most_frequent"]["subset_loss"]["mean"] > told["model"]["subset_loss"]["mean"] > 0
    assert pmdc("fit", "table.csv", *FIT, "-o", "m.skops", "--test-size", "1", "--force").code == 2


def test_predictions_for_the_balanced_loss(pmdc, folder, tmp_path):
    model = library.load(folder / "model.skops")
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})
    predict = ["predict", "--loss", "balanced"]
    assert pmdc(*predict, folder / "model.skops", folder / "new.csv", "-o", "out.csv", "--force").code == 0
    expected = model.predict(table[["age", "income", "site", "colour"]], loss="balanced")
    written = pd.read_csv("out.csv")[list(expected)]
    assert written.to_numpy(dtype=str).tolist() == expected.to_numpy(dtype=str).tolist()
    del model.frequencies_  # as in files of early versions
    library.save(model, tmp_path / "old.skops")
    done = pmdc(*predict, tmp_path / "old.skops", folder / "new.csv")
    assert done.code == 2
    assert "loss='balanced' needs the frequencies of the states in the training rows" in " ".join(done.err.split())


def test_evaluate_agrees_with_the_metrics(pmdc, folder):
    told = json.loads(pmdc("evaluate", folder / "model.skops", folder / "new.csv", "--json").out)
    model = library.load(folder / "model.skops")
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})
    X, Y = table[["age", "income", "site", "colour"]], table[["mood", "works"]]
    assert told["model"]["hamming_loss"]["mean"] == pytest.approx(metrics.hamming_loss(Y, model.predict(X)))
    subset = metrics.subset_loss(Y, model.predict(X, loss="subset"))
    assert told["model"]["subset_loss"]["mean"] == pytest.approx(subset)
    assert told["model"]["subset_loss"]["standard_error"] == pytest.approx(np.sqrt(subset * (1 - subset) / 29))
    balanced = model.predict(X, loss="balanced")
    assert told["model"]["balanced_loss"]["mean"] == pytest.approx(metrics.balanced_loss(Y, balanced))
    rare = metrics.balanced_accuracy_by_variable(Y, balanced)
    assert {name: own["balanced_accuracy"] for name, own in told["class_variables"].items()} == pytest.approx(rare)
    joint = model.predict_joint(X)
    assert told["model"]["joint_log_loss"]["mean"] == pytest.approx(metrics.joint_log_loss(Y, joint))
    assert told["joint_calibration_error"] == pytest.approx(metrics.joint_calibration_error(Y, joint))
    proba = model.predict_proba(X)
    error = metrics.expected_calibration_error(Y, proba, model.classes_)
    assert told["calibration_error"] == pytest.approx(error)
    works = told["class_variables"]["works"]
    assert works["accuracy"]["mean"] == pytest.approx(metrics.accuracy_by_variable(Y, model.predict(X))["works"])
    assert works["log_loss"]["mean"] == pytest.approx(
        metrics.marginal_log_loss(Y[["works"]], proba[1:], model.classes_[1:])
    )
    most_frequent = pd.read_csv(folder / "table.csv")["works"].mode()[0]
    assert works["most_frequent_accuracy"] == pytest.approx((Y["works"] == most_frequent).mean()), "of training rows"
    shown = pmdc("evaluate", folder / "model.skops", folder / "new.csv")
    assert f"{told['model']['hamming_loss']['mean']:.3f} ±" in shown.out
    assert shown.err == ""


def test_what_is_known_changes_predictions(pmdc, folder):
    model = library.load(folder / "model.skops")
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})
    X = table[["age", "income", "site", "colour"]]
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "--given", "works=1", "--proba", "-q")
    found = pd.read_csv(StringIO(done.out))
    expected = model.predict_proba(X, given={"works": 1})[0][:, 0]
    np.testing.assert_allclose(found["P(mood=bad)"], expected, rtol=1e-12)
    assert (found["works"] == 1).all()
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "--given", "mood=@mood", "-q")
    assert pd.read_csv(StringIO(done.out))["mood"].tolist() == table["mood"].tolist()


def test_top_and_keep(pmdc, folder):
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "--top", "2", "--keep", "site,age", "-q")
    found = pd.read_csv(StringIO(done.out), dtype={"site": str})
    assert list(found.columns) == ["site", "age", "row", "rank", "mood", "works", "probability"]
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})
    assert found["site"].tolist() == table["site"].repeat(2).tolist()
    top = library.load(folder / "model.skops").predict_joint(table[["age", "income", "site", "colour"]]).top(2)
    np.testing.assert_allclose(found["probability"], np.exp(top.log_prob).ravel(), rtol=1e-12)
    assert found["mood"].tolist() == top.outcomes[:, :, 0].ravel().tolist()
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "--keep", "*", "-q")
    assert done.out.splitlines()[0] == "age,income,site,colour,mood,works"


def test_show(pmdc, folder):
    done = pmdc("show", folder / "model.skops")
    model = library.load(folder / "model.skops")
    assert "bad, good, so so" in done.out
    words = " ".join(done.out.split())
    assert f"score {model.structure_.score:.2f} nats, {model.structure_.score / 120:.3f} a row" in words
    for child, parents in model.structure_.parents.items():
        assert all(parent in done.out for parent in (child, *parents))
    told = json.loads(pmdc("show", folder / "model.skops", "--json").out)
    assert told["class_variables"]["works"] == [0, 1]
    assert told["features"]["continuous"] == ["age", "income"]
    done = pmdc("show", folder / "model.skops", "--row", folder / "new.csv", "--index", "3", "--given", "works=1")
    assert "new.csv, line 4" in done.out.replace("\n", "")
    assert "100.0%" in done.out
    assert "known" in done.out
    text = (folder / "new.csv").read_text().splitlines()[1].rpartition(",")[0]
    (folder / "unknown.csv").write_text(f"age,income,site,colour,mood,works\n{text},\n")
    done = pmdc("show", folder / "model.skops", "--row", folder / "unknown.csv", "--given", "works=@works")
    assert "known" not in done.out.partition("line 2")[2]
    row = json.loads(pmdc("show", folder / "model.skops", "--row", folder / "new.csv", "--index", "3", "--json").out)
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})[["age", "income", "site", "colour"]]
    assert row["marginals"]["works"]["1"] == pytest.approx(model.predict_proba(table.iloc[[2]])[1][0, 1])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".parquet", ".xlsx"])
def test_the_same_answers_in_and_out_of_every_kind_of_file(pmdc, folder, tmp_path, suffix):
    plain = pmdc("predict", folder / "model.skops", folder / "new.csv", "-q", "--keep", "site,age").out
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})
    new, out = tmp_path / f"new{suffix}", tmp_path / f"out{suffix}"
    write = {".parquet": table.to_parquet, ".xlsx": table.to_excel}.get(suffix, table.to_csv)
    write(new, index=False, **({"sep": "\t"} if suffix == ".tsv" else {}))
    assert pmdc("predict", folder / "model.skops", new, "-q", "--keep", "site,age", "-o", out).code == 0
    expected = pd.read_csv(StringIO(plain), dtype={"site": str})
    if suffix == ".parquet":
        found = pd.read_parquet(out)
    elif suffix == ".xlsx":
        found = pd.read_excel(out, dtype={"site": str})
    else:
        found = pd.read_csv(out, dtype={"site": str}, sep="\t" if suffix == ".tsv" else ",")
    pd.testing.assert_frame_equal(found, expected)
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE(new.stat().st_mode), "as other programs write files"


@pytest.mark.parametrize(
    ("train", "new", "same"),
    [
        (["1", "2", "1", "2"], ["1", "x", "2", "1.0"], [0, None, 1, 0]),  # codes, and a text among them
        (["1", "x", "1", "x"], ["1", "1", "2", "1"], [0, 0, None, 0]),  # text, which is now all numbers
        (["007", "7", "007", "7"], ["7", "007", "07", "7"], [1, 0, None, 1]),  # leading zeros tell apart
        (["True", "False", "True", "False"], ["True", "true", "FALSE", "maybe"], [1, 1, 0, None]),
        (["NA", "b", "NA", "b"], ["NA", "b", "b", "NA"], [0, 1, 1, 0]),  # a value like others
    ],
)
def test_a_model_reads_values_as_it_has_learned_them(pmdc, tmp_path, train, new, same):
    rows = [f"{i * 37 % 11},{train[i % 4]},{'yn'[(i * 7 // 3) % 2]}" for i in range(40)]
    (tmp_path / "a.csv").write_text("x,code,c\n" + "\n".join(rows) + "\n")
    options = ["--missing", ""] if "NA" in train else []
    assert (
        pmdc(
            "fit", "a.csv", "-c", "c", "--discrete", "code", "-o", "m.skops", "--estimator", "naive-bayes", *options
        ).code
        == 0
    )
    (tmp_path / "b.csv").write_text("code,x\n" + "\n".join(f"{value},3" for value in new) + "\n")
    model = library.load("m.skops")
    from pmdc.cli.matching import read_features
    from pmdc.table_files import read_table

    used = read_features(read_table("b.csv"), model, drop_missing=False)
    codes = model.feature_table_.encode(library.table.columns.read_columns(used.X, "X", "test")).discrete[:, 0].tolist()
    assert codes == [-1 if code is None else code for code in same]
    assert pmdc("predict", "m.skops", "b.csv").code == 0


def test_states_come_back_as_they_were(pmdc, tmp_path):
    states = {
        "whole": "12",
        "code": ("01", "02"),
        "truth": ("True", "False"),
        "half": ("0.5", "1.5"),
        "words": ("a b", "é"),
    }
    rows = [",".join([str(i * 37 % 11), *(pair[i % 2] for pair in states.values())]) for i in range(30)]
    (tmp_path / "a.csv").write_text("x," + ",".join(states) + "\n" + "\n".join(rows) + "\n", encoding="utf-8")
    fit = ["fit", "a.csv", "-c", ",".join(states), "-o", "m.skops", "--estimator", "naive-bayes", "--max-parents", "1"]
    assert pmdc(*fit, "-q").code == 0
    model = library.load("m.skops")
    assert [s.tolist() for s in model.classes_] == [[1, 2], ["01", "02"], [False, True], [0.5, 1.5], ["a b", "é"]]
    lines = pmdc("predict", "m.skops", "a.csv", "-q").out.splitlines()
    assert lines[0] == ",".join(states)
    assert set(lines[1:]) <= {row.partition(",")[2] for row in rows}


def test_bounds_and_tiers(pmdc, tmp_path):
    rows = [[i % 2, (i + (i % 5 == 0)) % 2, (i + (i % 7 == 0)) % 2, (i + (i % 4 == 0)) % 2] for i in range(200)]
    lines = [",".join([str(i * 37 % 11), *map(str, row)]) for i, row in enumerate(rows)]
    (tmp_path / "a.csv").write_text("\n".join(["x,one,two,three,four", *lines]))
    fit = ["fit", "a.csv", "-c", "one,two,three,four", "-o", "m.skops", "--estimator", "naive-bayes"]
    done = pmdc(*fit, "--max-treewidth", 1, "--max-clique-cells", 8, "--tier", "four", "--tier", "t*")
    assert done.code == 0
    model = library.load("m.skops")
    assert (model.max_treewidth, model.max_clique_cells) == (1, 8)
    assert model.tiers == [["four"], ["two", "three"]]
    assert not {"two", "three"} & set(model.graph_.predecessors("four"))
    assert "best with treewidth at most 1 and at most 8 cells" in " ".join(done.out.split())
    shown = pmdc("show", "m.skops").out
    assert "within max_treewidth=1 and max_clique_cells=8" in " ".join(shown.split())


def test_unseen_values_are_told_once_with_their_lines(pmdc, folder, tmp_path):
    new = (folder / "new.csv").read_text().splitlines()
    new[5] = new[5].replace("red", "green").replace("blue", "green")
    (tmp_path / "new.csv").write_text("\n".join(new))
    done = pmdc("predict", folder / "model.skops", "new.csv")
    assert done.code == 0
    used = "colour" in library.load(folder / "model.skops").graph_
    words = (
        "pmdc predict: warning: column 'colour' holds values that the model has not seen, in 1 row(s): 'green' (line"
    )
    assert (words in done.err) == used
    assert (words in pmdc("predict", folder / "model.skops", "new.csv", "--quiet").err) == used


def test_missing_values_can_be_left_out(pmdc, folder, tmp_path):
    rows = (folder / "table.csv").read_text().splitlines()
    rows[3] = "," + rows[3].partition(",")[2]
    rows[7] = "?," + rows[7].partition(",")[2]
    rows[9] = "NA," + rows[9].partition(",")[2]
    (tmp_path / "gaps.csv").write_text("\n".join(rows))
    done = pmdc("fit", "gaps.csv", *FIT, "-o", "m.skops", "--missing", "?", "--drop-missing")
    assert done.code == 0
    assert "3 of 120 rows have missing values and are left out" in done.err
    assert "fitted on all 117 rows" in done.out
    done = pmdc("predict", "m.skops", "gaps.csv", "--missing", "?", "--drop-missing", "-o", "out.csv")
    assert len(pd.read_csv("out.csv")) == 117
    assert "3 of 120 rows have missing values and are left out (lines 4, 8, 10)." in done.err
    done = pmdc("predict", "m.skops", "gaps.csv", "--missing", "?", "--drop-missing", "--top", "1", "-q")
    rows = pd.read_csv(StringIO(done.out))["row"].tolist()
    assert rows == [row for row in range(1, 121) if row not in (3, 7, 9)], "those of the file"


def test_evaluate_ignores_missing_cells_of_class_variables(pmdc, folder, tmp_path):
    rows = [line.split(",") for line in (folder / "new.csv").read_text().splitlines()]
    rows[3][4] = rows[5][4] = rows[5][5] = ""
    (tmp_path / "gaps.csv").write_text("\n".join(map(",".join, rows)))
    done = pmdc("evaluate", folder / "model.skops", "gaps.csv")
    assert done.code == 0
    note = " ".join(done.err.split())
    assert "3 missing cell(s) of class variables are ignored: 'mood' (2), 'works' (1)." in note
    assert "28 of 30 rows" in note
    told = json.loads(pmdc("evaluate", folder / "model.skops", "gaps.csv", "--json").out)
    assert told["cells_ignored"] == {"mood": 2, "works": 1}
    model, data = library.load(folder / "model.skops"), pd.read_csv("gaps.csv", dtype={"site": str, "works": "Int64"})
    truth = data[["mood", "works"]]
    pred = model.predict(data.drop(columns=["mood", "works"]))
    assert told["model"]["hamming_loss"]["mean"] == pytest.approx(library.metrics.hamming_loss(truth, pred))
    dropped = json.loads(pmdc("evaluate", folder / "model.skops", "gaps.csv", "--json", "--drop-missing").out)
    assert (dropped["rows"], dropped["rows_dropped"], dropped["cells_ignored"]) == (28, 2, {})
    for row in rows[1:]:
        row[4] = ""
    (tmp_path / "empty.csv").write_text("\n".join(map(",".join, rows)))
    done = pmdc("evaluate", folder / "model.skops", "empty.csv")
    assert (done.code, "class variable 'mood' has no value in any row" in done.err) == (2, True)
    for number, row in enumerate(rows[1:]):
        row[4 + number % 2], row[5 - number % 2] = "", "1" if number % 2 == 0 else "good"
    (tmp_path / "never.csv").write_text("\n".join(map(",".join, rows)))
    done = pmdc("evaluate", folder / "model.skops", "never.csv")
    assert (done.code, "unknown" in done.out) == (0, True), "no row is complete"


def test_separators_encodings_and_decimal_commas(pmdc, folder, tmp_path):
    plain = pmdc("predict", folder / "model.skops", folder / "new.csv", "-q").out
    text = (folder / "new.csv").read_text()
    european = text.replace(".", "@").replace(",", ";").replace("@", ",")
    for name, content, options in [
        ("semicolons.csv", european.encode(), ["--decimal", ","]),
        ("mark.csv", b"\xef\xbb\xbf" + text.encode(), []),
        ("wide.csv", text.encode("utf-16"), []),
        ("tabs.txt", text.replace(",", "\t").encode(), []),
        ("packed.csv.gz", gzip.compress(text.encode()), []),
        ("windows.csv", text.replace("\n", "\r\n").encode(), []),
        ("quoted.csv", text.replace("so so", '"so so"').encode(), ["--delimiter", ","]),
    ]:
        (tmp_path / name).write_bytes(content)
        done = pmdc("predict", folder / "model.skops", name, "-q", *options)
        assert (done.code, done.out) == (0, plain), name


def test_a_model_fitted_in_python_on_arrays(pmdc, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    model = library.BinaryRelevance(library.learners.NaiveBayes()).fit(X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0]))
    library.save(model, "m.skops")
    pd.DataFrame(X, columns=["x0", "x1"]).to_csv("new.csv", index=False)
    done = pmdc("predict", "m.skops", "new.csv")
    assert done.out.splitlines()[0] == "y0,y1"
    assert [line == "True" for line in (row.split(",")[0] for row in done.out.splitlines()[1:])] == list(
        model.predict(X)[:, 0]
    )
    assert pmdc("show", "m.skops").code == 0


@pytest.mark.parametrize("estimator", ["logistic", "forest", "boosting"])
def test_every_estimator_can_be_kept(pmdc, tmp_path, estimator):
    (tmp_path / "table.csv").write_text(survey(60))
    fit = ["fit", "table.csv", "-c", "works", "--ignore", "mood,site,colour", "--estimator", estimator, "-q"]
    assert pmdc(*fit, "--criterion", "cll", "-o", "m.skops").code == 0
    done = pmdc("predict", "m.skops", "table.csv", "-q")
    if estimator != "logistic":
        assert (done.code, done.out) == (2, "")
        assert "m.skops holds trees" in done.err
        assert "add --trust" in done.err
        done = pmdc("predict", "m.skops", "table.csv", "-q", "--trust")
        assert pmdc("show", "m.skops", "--trust").code == 0
    assert (done.code, len(done.out.splitlines())) == (0, 61), done.err


def test_pictures(pmdc, folder, tmp_path):
    pytest.importorskip("matplotlib")
    model, new = folder / "model.skops", folder / "new.csv"
    assert pmdc("show", model, "-o", "graph.svg").code == 0
    assert json.loads(pmdc("show", model, "-o", "graph.dot", "--json").out)["class"] == "GBNC"
    assert pmdc("show", model, "--row", new, "-o", "row.png").code == 0
    assert pmdc("evaluate", model, new, "--plot", "calibration.svg", "-q").out == ""
    assert "node:mood" in (tmp_path / "graph.svg").read_text()
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    assert (tmp_path / "row.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (tmp_path / "calibration.svg").read_text()
    assert "must end in one of" in pmdc("show", model, "-o", "graph.jpeg").err
    assert "--plot calibration.svg: this file exists" in pmdc("evaluate", model, new, "--plot", "calibration.svg").err


def test_features_that_matter(pmdc, folder, tmp_path):
    pytest.importorskip("matplotlib")
    model, table = folder / "model.skops", folder / "table.csv"
    chosen = "--features", "2", "--table", table
    told = json.loads(pmdc("show", model, *chosen, "--json").out)["features_that_matter"]
    data = pd.read_csv(table, dtype={"site": str})
    importance = library.load(model).feature_importance(data.drop(columns=["mood", "works"]), data[["mood", "works"]])
    top = importance.top(2)
    assert told == {name: pytest.approx(found) for name, found in top.items()}
    assert {"age", "income"} <= set(top["works"])
    shown = pmdc("show", model, *chosen).out
    assert "120 rows" in shown
    arcs = json.loads(pmdc("show", model, *chosen, "--json").out)["arcs_that_matter"]
    assert [(arc["parent"], arc["child"]) for arc in arcs] == importance.arc_names
    assert [arc["importance"] for arc in arcs] == pytest.approx(importance.arcs.importances_mean.tolist())
    assert len(importance.arc_names) > 0
    assert all(sentence in " ".join(shown.split()) for sentence in importance.sentences()[:6])
    for found in top.values():
        assert all(f"{feature} (+{increase:.2g})" in shown for feature, increase in found.items())
    assert pmdc("show", model, *chosen, "-o", "graph.svg", "--max-arcs", "1").code == 0
    text = (tmp_path / "graph.svg").read_text()
    assert sum(f'"edge:{name}:works"' in text for name in ("age", "income")) == 1  # the more important one
    (tmp_path / "gaps.csv").write_text("".join(table.read_text().splitlines(True)[:60]) + "50,1,007,red,,1\n")
    done = pmdc("show", model, "--features", "2", "--table", "gaps.csv")
    assert "1 of 60 rows have missing values" in done.err
    assert "59 rows" in done.out


def test_a_terminal_sees_colours_only_if_it_wants_them(pmdc, folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1m" in pmdc("show", folder / "model.skops").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in pmdc("show", folder / "model.skops").out


def test_the_columns_are_shown_before_the_model_is_imported(tmp_path):
    (tmp_path / "table.csv").write_text(survey())
    program = """
import sys
from pmdc.cli import display, main
def stop(*arguments):
    assert not {"sklearn", "numba", "scipy"} & set(sys.modules)
    raise KeyboardInterrupt
import pmdc.cli.fitting as fitting
fitting.show_kinds = stop
sys.exit(main(["fit", "table.csv", "-c", "mood,works", "-o", "m.skops"]))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "pmdc fit: interrupted.\n")


def test_states_that_look_like_formulas_are_text_in_excel(pmdc, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    rows = [f"{i * 37 % 11},{'=x+1' if i % 2 else '@y'},{'=1+1' if i % 3 else 'b'}" for i in range(40)]
    (tmp_path / "a.csv").write_text("x,=f,=c\n" + "\n".join(rows) + "\n")
    assert pmdc("fit", "a.csv", "-c", "=c", "-o", "m.skops", "--estimator", "naive-bayes", "-q").code == 0
    assert pmdc("predict", "m.skops", "a.csv", "--keep", "=f", "--proba", "-q", "-o", "out.xlsx").code == 0
    cells = [cell for row in openpyxl.load_workbook("out.xlsx").active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    found = pd.read_excel("out.xlsx")
    assert found["=f"].tolist() == [row.split(",")[1] for row in rows]
    assert set(found["=c"]) <= {"=1+1", "b"}
