"""What the commands say about a model, in words: findings, verdicts, resamples and conditional tables."""

import json

import numpy as np
import pandas as pd
import pytest

import pmdc as library
from small_survey import FIT, survey

LINKED = [*FIT, "--ignore", "age,income"]


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """A folder with table.csv, new.csv and a model with an arc between the class variables."""
    from pmdc.cli import main

    folder = tmp_path_factory.mktemp("words")
    (folder / "table.csv").write_text(survey(400))
    (folder / "new.csv").write_text(survey(30, seed=1))
    assert main(["fit", str(folder / "table.csv"), *LINKED, "-o", str(folder / "model.skops"), "--quiet"]) == 0
    return folder


def test_fit_and_show_begin_with_what_was_found(pmdc, linked, tmp_path):
    model = library.load(linked / "model.skops")
    told = json.loads(pmdc("show", linked / "model.skops", "--json").out)["structure"]
    shown = pmdc("show", linked / "model.skops").out
    assert " ".join(told["headline"].split()) in " ".join(shown.split())
    assert shown.index(told["headline"][:20]) < shown.index("class variable  "), "before the tables"
    assert told["score_per_row"] == pytest.approx(model.structure_.score / 400)
    for edge in told["edges"]:
        assert edge["strength_per_row"] == pytest.approx(edge["strength"] / 400)
        assert f"{np.exp(edge['strength'] / 400):.2f}" in shown
        assert f"{edge['conditioning'].capitalize()}: " in shown, "partition and input are explained"


def test_directions_that_the_data_do_not_determine_are_marked(pmdc, linked, tmp_path):
    model = library.load(linked / "model.skops")
    parent, child = next((p, c) for p, c in model.graph_.edges if p in model.class_names_)
    for name, determined in (("m.skops", True), ("n.skops", False)):
        for arc in model.graph_.edges:
            model.graph_.edges[arc]["determined"] = determined
        library.save(model, tmp_path / name)
    assert "(either way)" not in pmdc("show", "m.skops").out
    shown = pmdc("show", "n.skops").out
    assert f"{parent} (either way)" in shown
    assert f"{parent} -- {child}" in shown
    assert "could as well point the other way" in " ".join(shown.split())


def test_a_verdict_on_held_out_rows(pmdc, tmp_path):
    (tmp_path / "table.csv").write_text(survey(400))
    fit = ["fit", "table.csv", *LINKED, "--test-size", "0.4", "--force", "-o", "m.skops"]
    told = json.loads(pmdc(*fit, "--json", "-q").out)["test"]
    log_loss = told["verdict"]["most_frequent"]["joint_log_loss"]
    means = told["most_frequent"]["joint_log_loss"]["mean"], told["model"]["joint_log_loss"]["mean"]
    assert log_loss["gain"] == pytest.approx(means[0] - means[1])
    assert log_loss["answer"] == "better"
    assert told["verdict"]["independent"]["of"] == "fitted without arcs"
    assert told["verdict"]["independent"]["joint_log_loss"]["standard_error"] > 0
    shown = " ".join(pmdc(*fit).out.split())
    assert f"better by {log_loss['gain']:.3f} ± {log_loss['standard_error']:.3f} nats a row" in shown
    assert "Verdict: the model is better than always predicting the most frequent states" in shown
    assert "Each loss has its own prediction" in shown
    told = json.loads(pmdc(*fit, "--max-parents", "0", "--json", "-q").out)["test"]
    assert told["verdict"]["independent"]["of"] == "the model itself"


def test_a_model_that_loses_to_a_constant_is_told_so(pmdc, linked, tmp_path):
    text = (linked / "table.csv").read_text()
    for old, new in [("good", "#"), ("bad", "good"), ("#", "bad")]:
        text = text.replace(old, new)
    (tmp_path / "turned.csv").write_text(text)  # where the mood is the opposite
    done = pmdc("evaluate", linked / "model.skops", "turned.csv")
    assert done.code == 0
    assert "the model is WORSE than always predicting the most frequent states" in " ".join(done.out.split())
    told = json.loads(pmdc("evaluate", linked / "model.skops", "turned.csv", "--json").out)["verdict"]
    assert told["most_frequent"]["of"] == "training rows"
    assert told["most_frequent"]["joint_log_loss"]["answer"] == "worse"
    assert told["independent"]["of"] == "product of its marginals"
    assert told["independent"]["hamming_loss"]["answer"] == "the same"


def test_a_model_of_an_earlier_version_is_compared_with_the_table_itself(pmdc, linked, tmp_path):
    model = library.load(linked / "model.skops")
    del model.frequencies_
    library.save(model, tmp_path / "old.skops")
    done = pmdc("evaluate", "old.skops", linked / "new.csv")
    assert "the most frequent states of this table" in " ".join(done.out.split())
    told = json.loads(pmdc("evaluate", "old.skops", linked / "new.csv", "--json").out)
    assert told["verdict"]["most_frequent"]["of"] == "this table"
    table = pd.read_csv(linked / "new.csv")
    frequent = table["works"].value_counts(normalize=True).max()
    assert told["class_variables"]["works"]["most_frequent_accuracy"] == pytest.approx(frequent)
    assert pmdc("show", "old.skops").code == 0


def test_how_often_arcs_appear_in_resamples(pmdc, tmp_path):
    (tmp_path / "table.csv").write_text(survey(200))
    fit = ["fit", "table.csv", *LINKED, "--confidence", "3", "--force", "-o", "m.skops"]
    done = pmdc(*fit, "--json", "-q")
    told = json.loads(done.out)["structure"]
    assert told["resamples"]["number"] == 3
    shares = {(edge["parent"], edge["child"]): edge["confidence"] for edge in told["resamples"]["edges"]}
    assert set(shares.values()) <= {1 / 3, 2 / 3, 1.0}
    for edge in told["edges"]:
        assert edge["confidence"] == shares.get((edge["parent"], edge["child"]), 0.0)
    assert pmdc(*fit, "--json", "-q").out == done.out, "the same seed, the same resamples"
    shown = pmdc("show", "m.skops").out
    assert "in how many of 3 graphs" in " ".join(shown.split())
    assert all(f"{edge['confidence']:.0%}" in shown for edge in told["edges"])
    assert json.loads(pmdc("show", "m.skops", "--json").out)["structure"] == told
    assert pmdc("show", "m.skops", "-o", "graph.dot").code == 0
    assert "confidence" in (tmp_path / "graph.dot").read_text()
    assert pmdc("fit", "table.csv", *LINKED, "--confidence", "0", "-o", "n.skops").code == 2


def test_conditional_tables(pmdc, linked, tmp_path):
    model = library.load(linked / "model.skops")
    table = pd.read_csv(linked / "new.csv", dtype={"site": str})
    joint = model.predict_joint(table[["site", "colour"]])
    parent, child = next((p, c) for p, c in model.graph_.edges if p in model.class_names_)
    show = ["show", linked / "model.skops", "--row", linked / "new.csv", "--conditional", child]
    k = model.class_names_.index(child)
    for index in ([], ["--index", 3]):
        rows = slice(2, 3) if index else slice(None)
        told = json.loads(pmdc(*show, *index, "--json").out)
        assert told["parents"] == [parent]
        both = joint.joint([1 - k, k])[rows].mean(axis=0)  # P(parent, child)
        for i, row in enumerate(told["rows"]):
            assert row["given"] == {parent: model.classes_[1 - k].tolist()[i]}
            assert row["probability_of_given"] == pytest.approx(both[i].sum())
            np.testing.assert_allclose(list(row["probabilities"].values()), both[i] / both[i].sum(), rtol=1e-9)
        shown = pmdc(*show, *index).out
        assert all(f"{p:.1%}" in shown for row in told["rows"] for p in row["probabilities"].values())
    alone = json.loads(pmdc(*show[:-1], parent, "--json").out)["rows"]
    assert [row["given"] for row in alone] == [{}]
    np.testing.assert_allclose(list(alone[0]["probabilities"].values()), joint.marginals()[1 - k].mean(axis=0))
    assert pmdc(*show[:-1], parent).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--conditional", "mood"], "give a table with --row"),
        (
            ["--conditional", "mod", "--row", "new.csv"],
            "--conditional 'mod' is not a class variable of the model; did you mean",
        ),
        (
            ["--conditional", "mood", "--row", "new.csv", "--given", "works=1"],
            "--given cannot be combined with --conditional",
        ),
        (["--conditional", "mood", "--row", "new.csv", "-o", "t.svg"], "add --index"),
        (["--conditional", "mood", "--row", "new.csv", "--index", "31"], "--index 31"),
        (["--index", "2"], "--given and --index need a row"),
    ],
)
def test_options_of_conditional_tables(pmdc, linked, monkeypatch, options, message):
    monkeypatch.chdir(linked)
    done = pmdc("show", "model.skops", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_resample_that_cannot_be_learned_from_is_told_so(pmdc, tmp_path):
    rows = [f"{i},{code},{'yn'[i % 2]}" for i, code in enumerate("abca")]
    (tmp_path / "table.csv").write_text("\n".join(["x,code,c", *rows]))
    options = ["-c", "c", "--estimator", "naive-bayes", "-q", "--criterion", "cll"]
    assert pmdc("fit", "table.csv", *options, "-o", "one.skops").code == 0
    done = pmdc("fit", "table.csv", *options, "--confidence", "20", "-o", "m.skops")
    assert done.code == 2
    assert "--confidence 20" in done.err, "some resample of three rows has three different codes"
    assert (tmp_path / "m.skops").exists(), "the fit itself is kept"
