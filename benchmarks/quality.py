"""Losses, calibration and cost of the default classifier, of calibrated baselines and of plain scikit-learn models.

    python benchmarks/quality.py [--tables a,b] [--methods a,b] [--estimators a,b] [--folds 0,1,2,3,4] [--jobs 1]
                                 [--data FOLDER] [--records FILE] [--report FILE] [--only-report]

`--methods` and `--estimators` select among those of `quality_methods.py`, which describes them. Every finished cell
(table, fold, method, estimator) is a line of the records file and is not computed again, so a run that was stopped,
even by ``kill -9``, can be continued; delete a line to compute its cell again. A cell that fails, or is left out for its
cost, is a line with the reason.

- Tables: all with at most 20 class variables and without gaps; the settings of the default may be chosen on the first
  half only. Folds are those of the tables.
- Large tables: at most 1,500 training and 1,000 test rows of a fold, drawn at random with a seed that depends on table
  and fold.
- Hamming loss and subset 0/1 loss, in percent, are of the predictions that minimise the one and the other. A chain
  enumerates outcomes for this; where that takes too many predictions of links, predictions are greedy (chain, PCC) or
  by vote (ECC), as the column `decision` says, and there are no marginals.
- The log-loss is that of the whole outcome, in nats for each row. A test row with a state that no training row has is
  left out of it, for every method; `n_unseen` counts them. Probabilities below 1e-15 of plain scikit-learn models are
  raised to it.
- `ece` is the expected calibration error of the marginals, `joint_ece` that of the predicted outcome (subset decision).
- Standard errors (`_se`) are over the test rows of the cell.
- CPU seconds include child processes. Methods that share a fit (chain and PCC; both joint distributions of a forest)
  both have its time. `predict_cpu` is for one row, with all decisions and probabilities of the unit.
- Tree estimators are seeded by the cell. The setting of boosting for a table is that with the best log-loss of binary
  relevance, after temperature scaling, by three folds of the training rows of fold 0; it is kept beside the records.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import resource
import subprocess
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from quality_methods import BOOSTING, UNITS, Judged, Split, Unit, make_estimator
from quality_report import FIRST_HALF, SECOND_HALF, report
from reporting import publish
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from pmdc import __version__
from pmdc.baselines import BinaryRelevance
from pmdc.baselines.calibration import best_temperature
from pmdc.datasets import load, make_network

MAX_TRAIN, MAX_TEST = 1500, 1000

MEASURES = ("hamming", "hamming_se", "subset", "subset_se", "log_loss", "log_loss_se", "ece", "joint_ece")
COLUMNS = (
    *("table", "fold", "method", "estimator"),
    *MEASURES,
    *("fit_cpu", "predict_cpu", "n_train", "n_test", "n_unseen", "decision", "status", "version", "commit"),
)

COMPILED = ("default", "experts=None", "BR", "chain", "CP", "ECC")
"""The first methods of units that use compiled kernels."""

ESTIMATOR_ORDER = ("-", "logistic", "extra trees", "boosting", "random forest")
"""Cheap estimators come first."""


class Job(NamedTuple):
    """A unit on one fold of a table."""

    table: str
    fold: int
    unit: int
    estimator: str
    setting: str = ""

    def cells(self) -> list[tuple[str, int, str, str]]:
        return [(self.table, self.fold, method, self.estimator) for method in UNITS[self.unit].methods]

    def seed(self) -> int:
        return zlib.crc32(f"{self.table}|{self.fold}|{UNITS[self.unit].methods[0]}|{self.estimator}".encode()) % 2**31


# Records --------------------------------------------------------------------------------------------------------


class Records:
    """Finished cells, in a file that grows by whole lines."""

    def __init__(self, path: Path):
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            whole, _, rest = path.read_text(encoding="utf-8").rpartition("\n")
            if rest:  # a line that was being written when the process was killed
                path.write_text(whole + "\n", encoding="utf-8")
            self.rows = list(csv.DictReader(whole.splitlines()))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")

    def keys(self) -> set[tuple[str, int, str, str]]:
        return {(row["table"], int(row["fold"]), row["method"], row["estimator"]) for row in self.rows}

    def add(self, rows: Sequence[dict[str, str]]) -> None:
        """Append the rows of a unit, all in one write."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writerows(rows)
            file.flush()
            os.fsync(file.fileno())
        self.rows += rows


# One job --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def read_split(table: str, fold: int, data_dir: str | None) -> Split:
    """Return the training and test rows of a fold, at most `MAX_TRAIN` and `MAX_TEST` of them."""
    data = _load(table, data_dir)
    random = np.random.default_rng(zlib.crc32(f"{table}|{fold}".encode()))
    test = data.folds[fold]
    train = np.setdiff1d(np.arange(len(data.X)), test)
    train, test = (
        np.sort(random.choice(rows, most, replace=False)) if len(rows) > most else rows
        for rows, most in ((train, MAX_TRAIN), (test, MAX_TEST))
    )
    n_distinct = len(data.Y.drop_duplicates())
    return Split(data.X.iloc[train], data.Y.iloc[train], data.X.iloc[test], data.Y.iloc[test], n_distinct)


@lru_cache(maxsize=2)
def _load(table: str, data_dir: str | None) -> Any:
    return load(table, data_dir)


def execute(job: Job, data_dir: str | None) -> list[dict[str, str]]:
    """Fit and judge a unit; an error becomes the status of its records."""
    split, unit = read_split(job.table, job.fold, data_dir), UNITS[job.unit]
    if reason := unit.left_out(split, job.estimator):
        return [_row(key, status=f"left out: {reason}") for key in job.cells()]
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _measure(job, unit, split)
    except Exception as error:  # any error is recorded, and the run continues
        traceback.print_exc()
        return [_row(key, status=f"failed: {type(error).__name__}: {error}".splitlines()[0]) for key in job.cells()]


def _measure(job: Job, unit: Unit, split: Split) -> list[dict[str, str]]:
    if unit.methods[0] in COMPILED:
        compile_all()
    start = cpu_seconds()
    model = unit.fit(split, job.estimator, job.setting, job.seed())
    middle = cpu_seconds()
    judged = unit.judge(model, split, job.estimator)
    costs = {"fit_cpu": middle - start, "predict_cpu": (cpu_seconds() - middle) / len(split.X_test)}
    return [
        _row(key, measures(one, split) | costs, split, _decision(one))
        for key, one in zip(job.cells(), judged, strict=True)
    ]


def _decision(judged: Judged) -> str:
    if judged.subset == "subset":
        return "exact"
    return judged.subset or "predict"


def measures(judged: Judged, split: Split) -> dict[str, float]:
    """Return losses, their standard errors and calibration errors."""
    found, seen = judged.held_out, _is_seen(split)
    assert found.log_prob is not None
    rows = {
        "hamming": 100 * found.wrong(judged.hamming).mean(axis=1),
        "subset": 100 * found.wrong(judged.subset).any(axis=1),
        "log_loss": -found.log_prob[seen],
    }
    values = {}
    for name, losses in rows.items():
        values[name] = float(losses.mean())
        values[f"{name}_se"] = float(losses.std(ddof=1) / math.sqrt(len(losses)))
    values["ece"] = found.calibration_error() if found.marginals is not None else math.nan
    values["joint_ece"] = found.joint_calibration_error(judged.subset)
    return values


def _is_seen(split: Split) -> np.ndarray:
    """Return which test rows have only states that some training row has."""
    return np.all([split.Y_test[name].isin(split.Y[name].unique()) for name in split.Y], axis=0)


def _row(
    key: tuple[str, int, str, str],
    values: dict[str, float] | None = None,
    split: Split | None = None,
    decision: str = "",
    status: str = "ok",
) -> dict[str, str]:
    row = dict(zip(COLUMNS, map(str, key), strict=False))
    row |= {name: "" if math.isnan(value) else f"{value:.6g}" for name, value in (values or {}).items()}
    if split is not None:
        row |= {"n_train": str(len(split.X)), "n_test": str(len(split.X_test))}
        row["n_unseen"] = str(int((~_is_seen(split)).sum()))
    return row | {"decision": decision, "status": status, "version": __version__, "commit": commit()}


def cpu_seconds() -> float:
    """Return the CPU time of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@cache
def commit() -> str:
    """Return the commit of the checkout, with a plus sign if it has been changed."""
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--abbrev=7",
        "--exclude=*",
        "--dirty=+",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@cache
def compile_all() -> None:
    """Fit and predict a small table, so that no CPU time of a cell includes the compilation of kernels."""
    data = make_network(200, random_state=0)
    split = Split(data.X, data.Y, data.X[:50], data.Y[:50], 9)
    for unit in UNITS:
        if unit.methods[0] in COMPILED and unit.methods[0] != "experts=None":
            unit.judge(unit.fit(split, "logistic", "", 0), split, "logistic")


# The setting of boosting ----------------------------------------------------------------------------------------


class Settings:
    """The setting of boosting for each table, in a file beside the records."""

    def __init__(self, path: Path, data_dir: str | None):
        self.path, self.data_dir = path, data_dir
        self.found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def __getitem__(self, table: str) -> str:
        if table not in self.found:
            start, split = cpu_seconds(), read_split(table, 0, self.data_dir)
            losses = {setting: relevance_log_loss(split, setting) for setting in BOOSTING}
            best = min(losses, key=losses.__getitem__)
            self.found[table] = {"best": best, "log_loss": losses, "cpu": cpu_seconds() - start}
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.found, indent=1) + "\n", encoding="utf-8")
            new.replace(self.path)
        return str(self.found[table]["best"])


def relevance_log_loss(split: Split, setting: str) -> float:
    """Return the log-loss of binary relevance by three folds of the training rows, after temperature scaling."""
    log_proba: list[list[np.ndarray]] = [[] for _ in split.sizes]
    order = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in KFold(3, shuffle=True, random_state=0).split(split.X):
            model = BinaryRelevance(make_estimator("boosting", split, setting), random_state=0)
            model.fit(split.X.iloc[train], split.Y.iloc[train])
            order.append(test)
            for found, proba in zip(log_proba, model.predict_proba(split.X.iloc[test]), strict=True):
                found.append(np.log(proba))
    total, rows = 0.0, np.concatenate(order)
    for name, parts in zip(split.Y, log_proba, strict=True):
        scores, codes = np.concatenate(parts), split.Y[name].cat.codes.to_numpy()[rows].astype(np.int64)
        scores = scores / best_temperature(scores, codes, np.ones(len(codes)))
        total += float(np.mean(np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(codes)), codes]))
    return total


# All jobs -------------------------------------------------------------------------------------------------------


def jobs(tables: Sequence[str], methods: Sequence[str], estimators: Sequence[str], folds: Sequence[int]) -> list[Job]:
    """Return the jobs: folds 0 to 2 first, cheap ones first, the second half of the tables first."""
    tables = [*(t for t in SECOND_HALF if t in tables), *(t for t in FIRST_HALF if t in tables)]
    keyed = []
    for number, unit in enumerate(UNITS):
        if not set(unit.methods) & set(methods):
            continue
        for estimator in (e for e in unit.estimators if e in estimators):
            ensemble = "ECC" in unit.methods
            cost = ensemble, ESTIMATOR_ORDER.index(estimator), number
            for fold in folds:
                for place, table in enumerate(tables):
                    keyed.append((fold > 2, *cost, place, Job(table, fold, number, estimator)))
    return [job for *_, job in sorted(keyed, key=lambda one: one[:-1])]


def run(todo: Sequence[Job], data_dir: str | None, settings: Settings, n_jobs: int) -> Iterator[list[dict[str, str]]]:
    def prepared() -> Iterator[Job]:
        for job in todo:
            needed = job.estimator == "boosting" and not UNITS[job.unit].left_out(
                read_split(job.table, job.fold, data_dir), job.estimator
            )
            yield job._replace(setting=settings[job.table]) if needed else job

    if n_jobs == 1:
        yield from (execute(job, data_dir) for job in prepared())
    else:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from parallel(delayed(execute)(job, data_dir) for job in prepared())


def main() -> None:
    every_method = list(dict.fromkeys(method for unit in UNITS for method in unit.methods))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join((*SECOND_HALF, *FIRST_HALF)))
    parser.add_argument("--methods", default=",".join(every_method))
    parser.add_argument("--estimators", default=",".join(ESTIMATOR_ORDER))
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", "--data-dir", dest="data_dir", help="benchmark tables; default: PMDC_DATA")
    parser.add_argument("--records", type=Path, default=Path(__file__).parent / "results" / "quality.csv")
    parser.add_argument("--report", type=Path, help="write the report to this file, too")
    parser.add_argument("--only-report", action="store_true", help="compute nothing")
    options = parser.parse_args()
    tables, methods, estimators = (getattr(options, name).split(",") for name in ("tables", "methods", "estimators"))
    folds = [int(fold) for fold in options.folds.split(",")]
    for name, given, known in (
        ("--tables", tables, (*FIRST_HALF, *SECOND_HALF)),
        ("--methods", methods, every_method),
        ("--estimators", estimators, ESTIMATOR_ORDER),
    ):
        if unknown := [one for one in given if one not in known]:
            parser.error(f"{name} has {unknown[0]!r}, which is unknown. Choose from {', '.join(known)}.")
    records = Records(options.records)
    wanted = jobs(tables, methods, estimators, folds)
    if not options.only_report:
        done = records.keys()
        todo = [job for job in wanted if not set(job.cells()) <= done]
        settings = Settings(options.records.with_name(options.records.stem + "-boosting.json"), options.data_dir)
        start = time.monotonic()
        for number, rows in enumerate(run(todo, options.data_dir, settings, options.jobs), 1):
            records.add([row for row in rows if _key(row) not in done])
            _show(number, len(todo), time.monotonic() - start, rows)
    cells = {key for job in wanted for key in job.cells()}
    publish(report(records.rows, sorted(cells), tables, folds), options.report)


def _key(row: dict[str, str]) -> tuple[str, int, str, str]:
    return row["table"], int(row["fold"]), row["method"], row["estimator"]


def _show(number: int, total: int, seconds: float, rows: Sequence[dict[str, str]]) -> None:
    for row in rows:
        losses = " ".join(row.get(name, "") for name in ("hamming", "subset", "log_loss", "fit_cpu"))
        told = losses if row["status"] == "ok" else row["status"]
        print(f"{number}/{total} {seconds:.0f} s", *_key(row), told, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
