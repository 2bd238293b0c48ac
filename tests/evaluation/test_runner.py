"""The runner: the same records whatever happens on the way, and clear words for mistakes."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.evaluation import methods
from pmdc.evaluation.methods import FAMILIES
from pmdc.evaluation.runner import QUICK_SETS, Run, benchmark, execute, measure
from pmdc.evaluation.store import MEASURES, Record, Store
from pmdc.metrics import joint_log_loss, subset_loss

TIMED = ["fit_seconds", "predict_seconds", "peak_megabytes"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    data = make_network(150, n_class_variables=3, n_states=2, n_continuous=2, n_discrete=1, random_state=0)
    path = tmp_path_factory.mktemp("tables") / "own.csv"
    pd.concat([data.X, data.Y], axis=1).to_csv(path, index=False)
    return str(path)


def run(table, out, **options):
    settings = {"classes": ["y0", "y1", "y2"], "n_folds": 3, "progress": False, "methods": ["GBNC", "BR", "CC"]}
    return benchmark([table], out=out, **{**settings, **options})


def same(a, b):
    pd.testing.assert_frame_equal(a.drop(columns=TIMED), b.drop(columns=TIMED))


def test_one_record_for_each_cell_with_all_measures(table, tmp_path):
    frame = run(table, tmp_path, methods=None).frame()
    names = [name for family in methods.FAMILIES.values() for name in family.records]
    assert len(frame) == 3 * len(names)
    assert set(frame["method"]) == set(names)
    assert (frame["status"] == "ok").all(), frame["error"].dropna().tolist()
    joint = frame["method"] != "MultiOutput"
    assert frame.loc[joint, list(MEASURES)].notna().all(axis=None)
    assert frame.loc[~joint, "joint_log_loss"].isna().all()
    assert (frame["hamming_loss"] <= frame["subset_loss"]).all()
    gbnc = frame[frame["method"].isin(["GBNC-H", "GBNC-S"])].groupby("fold")
    assert (gbnc["joint_log_loss"].nunique() == 1).all(), "one fit, two decisions"


def test_the_measures_are_those_of_the_metrics():
    data = make_network(200, n_class_variables=2, random_state=1)
    model = BinaryRelevance().fit(data.X[:150], data.Y[:150])
    measures, details = measure(model, "hamming", data.X[150:], data.Y[150:])
    assert measures["subset_loss"] == subset_loss(data.Y[150:], model.predict(data.X[150:]))
    assert measures["joint_log_loss"] == pytest.approx(joint_log_loss(data.Y[150:], model.predict_joint(data.X[150:])))
    assert set(details["accuracy"]) == {"y0", "y1"}
    _, details = measure(
        GBNC(experts=None, max_parents=1).fit(data.X[:150], data.Y[:150]), "subset", data.X[150:], data.Y[150:]
    )
    assert details["status"].startswith("optimal over the ")


def test_workers_and_order_change_nothing(table, tmp_path):
    one = run(table, tmp_path / "one").frame()
    two = run(table, tmp_path / "two", n_jobs=2, methods=["CC", "BR", "GBNC"]).frame()
    same(one, two)


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_it_continues_and_ends_with_the_same_records(table, tmp_path, seed):
    whole = run(table, tmp_path / "whole").frame()
    command = [sys.executable, "-m", "pmdc", "benchmark", "--sets", table, "--classes", "y0,y1,y2", "--folds", "3"]
    command += ["--methods", "GBNC,BR,CC", "--out", str(tmp_path / "killed")]
    random = np.random.default_rng(seed)
    path = tmp_path / "killed" / "results.sqlite"
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = int(random.integers(1, 5))
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline and count(path) < wanted:
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "15 records in" in done.stdout
    same(Store(path).frame(), whole)


def count(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5) as connection:
            return connection.execute("SELECT count(*) FROM records").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def test_what_is_there_is_not_done_again(table, tmp_path, monkeypatch):
    store = run(table, tmp_path)
    monkeypatch.setattr("pmdc.evaluation.runner.execute", None)  # any call would fail
    same(run(table, tmp_path).frame(), store.frame())


def test_a_failed_cell_is_recorded_and_can_be_retried(table, tmp_path, monkeypatch):
    broken = methods.Family({"BR": ("br", "hamming")}, lambda *a: 1 / 0)
    with monkeypatch.context() as patch:
        patch.setitem(methods.FAMILIES, "BR", broken)
        frame = run(table, tmp_path, methods=["BR", "GBNC"]).frame()
    failed = frame[frame["status"] == "failed"]
    assert set(failed["method"]) == {"BR"}
    assert failed["error"].tolist() == ["ZeroDivisionError: division by zero"] * 3
    assert (frame[frame["method"] != "BR"]["status"] == "ok").all()
    assert (run(table, tmp_path, methods=["BR", "GBNC"]).frame()["status"] == "failed").sum() == 3
    again = run(table, tmp_path, methods=["BR", "GBNC"], retry_failed=True).frame()
    assert (again["status"] == "ok").all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["gbn"]}, "methods has 'gbn', which is unknown; did you mean 'GBNC'"),
        ({"estimators": ["naive-bays"]}, "estimators has 'naive-bays', which is unknown; did you mean 'naive-bayes'"),
        ({"classes": ["y0", "nothing"]}, "classes has 'nothing', which is not a column of"),
        ({"classes": []}, "classes is empty"),
        ({"n_folds": 0}, "n_folds=0"),
    ],
)
def test_mistakes_are_told_before_the_work_starts(table, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(table, tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_results_of_another_kind_are_refused_and_kept(table, tmp_path):
    run(table, tmp_path, methods=["BR"])
    before = Store(tmp_path / "results.sqlite").frame()
    with pytest.raises(ValueError, match="n_folds=3, not 2"):
        run(table, tmp_path, methods=["BR"], n_folds=2)
    same(Store(tmp_path / "results.sqlite").frame(), before)
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        connection.execute("UPDATE info SET value = '0' WHERE key = 'schema'")
    with pytest.raises(ValueError, match="has schema '0', this version needs '1'"):
        run(table, tmp_path, methods=["BR"])
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "results.sqlite").write_text("not a database, but long enough to be taken for one " * 20)
    with pytest.raises(ValueError, match="results.sqlite is not a results file"):
        run(table, tmp_path / "text")
    with pytest.raises(FileNotFoundError, match="no results file"):
        Store(tmp_path / "nowhere.sqlite")


def test_the_command_line_tells_mistakes_without_a_traceback(tmp_path):
    command = [sys.executable, "-m", "pmdc", "benchmark", "--sets", "no.csv", "--classes", "a", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no such file" in done.stderr
    assert "Traceback" not in done.stderr
    tour = subprocess.run([sys.executable, "-m", "pmdc", "--help"], capture_output=True, text=True, check=True)
    assert "benchmark" in tour.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["--data", "PMDC_DATA"]),
        (["--sets", "edm"], ["--data", "PMDC_DATA"]),
        (["--quick"], ["--data", "PMDC_DATA"]),
        (["--data", "nowhere"], ["--data is 'nowhere'"]),
    ],
)
def test_the_command_line_says_where_benchmark_tables_are_expected(options, words, capsys, tmp_path, monkeypatch):
    from pmdc.cli import main

    monkeypatch.delenv("PMDC_DATA", raising=False)
    assert main(["benchmark", "--out", str(tmp_path / "new"), *options]) == 2
    message = capsys.readouterr().err
    assert all(word in message for word in words)
    monkeypatch.setenv("PMDC_DATA", "nowhere")
    assert main(["benchmark", "--out", str(tmp_path / "new")]) == 2
    assert "PMDC_DATA is 'nowhere'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_missing_extra_is_told_before_the_work_starts(table, tmp_path):
    program = f"""
import sys
sys.modules["scikit_posthocs"] = None
sys.argv = ["pmdc", "benchmark", "--sets", {table!r}, "--classes", "y0", "--out", {str(tmp_path / "new")!r}]
from pmdc.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "pmdc[benchmark]"' in done.stderr
    assert not (tmp_path / "new").exists()


def test_records_that_belong_together_are_written_together(tmp_path):
    store = Store(tmp_path / "results.sqlite", {"a": 1})
    good = Record(("s", 0, "m", "e"), {"hamming_loss": 0.5})
    bad = Record(("s", object(), "m", "e"))  # no value that SQLite takes
    with pytest.raises(sqlite3.Error):
        store.write([good, bad])
    assert store.keys() == set()
    store.write([good])
    assert store.keys() == {good.key}


def test_the_quick_benchmark(data_dir, tmp_path):
    """What `make benchmark-quick` runs: all methods, tables and pictures."""
    command = [
        sys.executable,
        "-m",
        "pmdc",
        "benchmark",
        "--quick",
        "--data",
        str(data_dir),
        "--out",
        str(tmp_path),
    ]
    subprocess.run(command, capture_output=True, text=True, check=True)
    frame = Store(tmp_path / "results.sqlite").frame()
    assert set(frame["data_set"]) == set(QUICK_SETS)
    assert (frame["status"] == "ok").all(), frame["error"].dropna().tolist()
    assert sorted(frame["fold"].unique()) == [0, 1, 2]
    names = [name for family in FAMILIES.values() for name in family.records]
    assert sorted(frame["method"].unique()) == sorted(names)
    for name in ("hamming_loss-naive-bayes.md", "subset_loss-naive-bayes.tex", "joint_log_loss-naive-bayes-pairs.png"):
        assert (tmp_path / name).is_file()


def test_more_folds_than_a_table_has(data_dir, tmp_path):
    with pytest.raises(ValueError, match="n_folds=11"):
        benchmark(["edm"], n_folds=11, data_dir=data_dir, out=tmp_path / "more", progress=False)


def test_a_cell_has_its_own_seed():
    runs = [Run("s", fold, "BR", "forest", None, (), 3, 10) for fold in range(3)]
    assert len({run.seed() for run in runs}) == 3
    assert execute(Run("missing.csv", 0, "BR", "forest", None, ("a",), 3, 10))[0].error.startswith("FileNotFound")
