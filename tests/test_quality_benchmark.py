"""The benchmark of quality: it continues where it was killed, and its report names what is absent."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

from pmdc.datasets import load

FOLDER = Path(__file__).parents[1] / "benchmarks"
TIMED = ("fit_cpu", "predict_cpu", "commit")


@pytest.fixture(scope="module")
def finished(data_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("quality") / "quality.csv"
    return path, run(data_dir, path)


def run(data_dir, path):
    options = [
        "--tables",
        "edm",
        "--folds",
        "0,1",
        "--methods",
        "sklearn ET,forest-marginal",
        "--records",
        str(path),
    ]
    options += ["--estimators", "-,extra trees", "--data", str(data_dir)]
    command = [sys.executable, str(FOLDER / "quality.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read(path):
    with path.open(newline="") as file:
        return [{name: value for name, value in row.items() if name not in TIMED} for row in csv.DictReader(file)]


def test_a_killed_run_continues_with_the_same_records(finished, data_dir, tmp_path):
    whole, _ = finished
    lines = whole.read_text().splitlines(keepends=True)
    path = tmp_path / "quality.csv"
    path.write_text("".join(lines[:4]) + lines[4][:30])
    run(data_dir, path)
    found, expected = (sorted(read(one), key=str) for one in (path, whole))
    assert found == expected


def test_the_losses_of_plain_extra_trees(finished, data_dir):
    path, _ = finished
    rows = [row for row in read(path) if row["method"] == "sklearn ET" and row["fold"] == "0"]
    assert len(rows) == 1
    data = load("edm", data_dir)
    test = data.folds[0]
    train = np.setdiff1d(np.arange(len(data.X)), test)
    codes = np.column_stack([data.Y[name].cat.codes for name in data.Y])
    losses = []
    for seed in range(30):
        forest = ExtraTreesClassifier(random_state=seed).fit(data.X.iloc[train], codes[train])
        proba = forest.predict_proba(data.X.iloc[test])
        own = [np.log(np.maximum(p[np.arange(len(test)), codes[test, k]], 1e-15)) for k, p in enumerate(proba)]
        losses.append(-np.sum(own, axis=0).mean())
    assert min(losses) <= float(rows[0]["log_loss"]) <= max(losses)
    assert rows[0]["status"] == "ok"
    assert (rows[0]["n_train"], rows[0]["n_test"]) == (str(len(train)), str(len(test)))


def test_the_report(finished):
    _, report = finished
    assert "| sklearn ET | " in report
    assert "| forest-joint, extra trees | " in report, "it shares the fit of forest-marginal"
    assert "The default has no records yet." in report


def record(table, fold, method, log_loss, status="ok"):
    values = dict.fromkeys(("hamming", "subset", "ece", "joint_ece", "fit_cpu", "predict_cpu"), "1")
    place = {"table": table, "fold": str(fold), "method": method, "estimator": "-", "log_loss": str(log_loss)}
    about = {"n_unseen": "0", "decision": "exact", "status": status, "version": "1", "commit": "c"}
    return {**place, **values, **about}


def test_comparisons_and_absent_cells_of_the_report(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from quality_report import report

    rows = []
    for fold, noise in enumerate((0.0, 0.1)):
        rows += [record("edm", fold, "default", 2.0), record("rf1", fold, "default", 1.0)]
        rows += [record("edm", fold, "sklearn ET", 1.5 + noise), record("rf1", fold, "sklearn ET", 1.5)]
        rows += [record("edm", fold, "sklearn RF", 3.0, "failed: broken")]
    cells = [("rf1", 1, "sklearn RF", "-")]
    lines = list(report(rows, cells, ["edm", "rf1"], [0, 1]))
    ranks = next(line for line in lines if line.startswith("| sklearn ET | 1.50 | 1.50 | "))
    assert ranks.split(" | ")[3] == "1.50", "best on edm, second on rf1"
    assert "| sklearn ET | 2 | +0.00 | +0.00 | -0.025 | 1 : 1 | 1.0000 |" in lines
    assert "| edm | log-loss | sklearn ET | 0.450 | 0.050 |" in lines
    assert sum(line.startswith("| edm |") and "sklearn" in line for line in lines) == 1
    assert "- sklearn RF: edm (folds 0, 1) (failed: broken)." in lines
    assert "- sklearn RF: rf1 (folds 1) (no record)." in lines
