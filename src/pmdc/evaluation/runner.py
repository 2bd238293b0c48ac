"""Resumable comparisons of methods: each (data set, fold, method, estimator) is one record in one file.

A comparison that was stopped, even by ``kill -9``, can be continued and gives the same records. A run that fails is
recorded with its error, and the others continue.
"""

from __future__ import annotations

import contextlib
import difflib
import sys
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from pmdc import metrics
from pmdc._support.arrays import Codes
from pmdc._support.checks import check_count
from pmdc._support.extras import require
from pmdc.datasets import available, load
from pmdc.evaluation.held_out import evaluate
from pmdc.evaluation.methods import ESTIMATORS, FAMILIES
from pmdc.evaluation.store import Record, Store
from pmdc.model_selection import MultiStratifiedKFold
from pmdc.table_files import SUFFIXES, read_table

QUICK_SETS = ("edm", "enb", "flare1")
"""Small sets for ``quick=True``."""


@dataclass(frozen=True)
class Run:
    """One family of methods on one fold of one data set."""

    data_set: str
    fold: int
    family: str
    estimator: str
    data_dir: str | None
    classes: tuple[str, ...]
    n_folds: int
    max_candidates: int

    def record_keys(self) -> list[tuple[str, int, str, str]]:
        return [(self.data_set, self.fold, name, self.estimator) for name in FAMILIES[self.family].records]

    def seed(self) -> int:
        """Return a seed that depends only on the run, so that order and interruptions do not change results."""
        return zlib.crc32(f"{self.data_set}|{self.fold}|{self.family}|{self.estimator}".encode()) % 2**31


def benchmark(
    sets: str | Sequence[str] = "all",
    *,
    methods: Sequence[str] | None = None,
    estimators: Sequence[str] = ("naive-bayes",),
    n_folds: int = 10,
    n_jobs: int | None = None,
    out: str | Path = "results",
    data_dir: str | Path | None = None,
    classes: Sequence[str] = (),
    max_candidates: int = 2000,
    quick: bool = False,
    retry_failed: bool = False,
    progress: bool = True,
) -> Store:
    """Compare methods on data sets by cross-validation, resumably.

    Parameters
    ----------
    sets : "all" or list of str
        Names of benchmark tables, or paths of table files (CSV, Parquet, Excel; then `classes` names their class
        variables).
    methods : list of str, default=None
        Families of methods: GBNC, GBNC-paper, BR, CC, ECC, CP, MultiOutput, RF, ET. None is all of them.
    estimators : list of str
        Local models: logistic, naive-bayes, forest, boosting.
    n_folds : int, default=10
        Folds. Benchmark tables have ten of their own, of which the first `n_folds` are run.
    n_jobs : int, default=None
        Number of parallel workers, as in joblib.
    out : path, default="results"
        The folder of the results file, ``results.sqlite``. An existing file is continued.
    data_dir : path, default=None
        The folder of the benchmark tables; by default the one that the environment variable ``PMDC_DATA`` names.
    classes : list of str
        The class variables of your own files.
    max_candidates : int, default=2000
        As in `GBNC`; the details of the records say what was left out.
    quick : bool, default=False
        Three small sets and three folds, in place of `sets` and `n_folds`.
    retry_failed : bool, default=False
        Whether to repeat failed runs.
    progress : bool, default=True
        Whether to show finished runs, remaining time and running means on the standard error stream.

    Returns
    -------
    Store
        The results file; `frame()` gives its records.
    """
    if quick:
        sets, n_folds = list(QUICK_SETS), 3
    check_count("n_folds", n_folds, 1)
    check_count("max_candidates", max_candidates, 1)
    families = _check_names("methods", list(FAMILIES) if methods is None else methods, FAMILIES)
    chosen = _check_names("estimators", estimators, ESTIMATORS)
    folder = None if data_dir is None else str(data_dir)
    names = _check_sets(sets, folder, tuple(classes), n_folds)
    runs = [
        Run(name, fold, family, estimator, folder, tuple(classes), n_folds, max_candidates)
        for name in names
        for fold in range(n_folds)
        for estimator in chosen
        for family in families
    ]
    from pmdc import __version__

    settings = {"pmdc": __version__, "n_folds": n_folds, "max_candidates": max_candidates, "classes": list(classes)}
    store = Store(Path(out) / "results.sqlite", settings)
    if retry_failed:
        store.drop_failed()
    done = store.keys()
    todo = [run for run in runs if not set(run.record_keys()) <= done]
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(execute)(run) for run in todo)
    shown = _show_progress(results, len(runs), len(runs) - len(todo)) if progress else results
    for records in shown:
        store.write(records)
    return store


def _check_names(argument: str, values: Sequence[str], choices: Mapping[str, Any]) -> list[str]:
    for value in values:
        if value not in choices:
            near = difflib.get_close_matches(str(value).lower(), [c.lower() for c in choices], n=1)
            hint = next((f"; did you mean {c!r}?" for c in choices if near and c.lower() == near[0]), ".")
            raise ValueError(f"{argument} has {value!r}, which is unknown{hint} Choose from {', '.join(choices)}.")
    return list(dict.fromkeys(values))


def _check_sets(sets: str | Sequence[str], folder: str | None, classes: tuple[str, ...], n_folds: int) -> list[str]:
    """Return the names of the data sets, after reading each of them once to check it."""
    if isinstance(sets, str):
        sets = available(folder) if sets == "all" else [sets]
    for name in sets:
        _table(name, folder, classes, n_folds)
    return list(dict.fromkeys(sets))


def origins(names: Sequence[str], data_dir: str | Path | None) -> dict[str, str]:
    """Return how each benchmark table was obtained: "exact", "rebuilt" or "extra"; your own files have no entry."""
    folder = None if data_dir is None else str(data_dir)
    return {name: str(load(name, folder).meta["origin"]) for name in names if not name.endswith(SUFFIXES)}


@lru_cache(maxsize=4)
def _table(name: str, folder: str | None, classes: tuple[str, ...], n_folds: int) -> tuple[Any, Any, list[Codes]]:
    """Return X, Y and the test rows of each fold."""
    if not name.endswith(SUFFIXES):
        data = load(name, folder)
        if n_folds > len(data.folds):
            raise ValueError(f"n_folds={n_folds}: the table {name!r} has only {len(data.folds)} folds.")
        return data.X, data.Y, data.folds[:n_folds]
    if not Path(name).is_file():
        raise FileNotFoundError(f"sets has {name!r}, but there is no such file.")
    table = read_table(name).frame()
    absent = [column for column in classes if column not in table.columns]
    if absent or not classes:
        what = f"classes has {absent[0]!r}, which is not a column" if absent else "classes is empty"
        raise ValueError(f"{what} of {name}: name its class variables, from {', '.join(map(str, table.columns))}.")
    Y = table[list(classes)].astype("category")
    splitter = MultiStratifiedKFold(n_folds, shuffle=True, random_state=0)
    X = table.drop(columns=list(classes))
    return X, Y, [test for _, test in splitter.split(X, Y)]


# One run ------------------------------------------------------------------------------------------------------


def execute(run: Run) -> list[Record]:
    """Fit and evaluate the methods of a run; an error is recorded."""
    try:
        with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            records = _measure_all(run)
        messages = sorted({str(w.message).split(" (and ")[0] for w in caught})[:20]
        return [Record(r.key, r.measures, {**r.details, "warnings": messages}) for r in records]
    except Exception as error:  # any error is recorded, and the run continues
        return [Record(key, error=f"{type(error).__name__}: {error}") for key in run.record_keys()]


def _measure_all(run: Run) -> list[Record]:
    X, Y, folds = _table(run.data_set, run.data_dir, run.classes, run.n_folds)
    test = folds[run.fold]
    train = np.setdiff1d(np.arange(len(X)), test)
    family = FAMILIES[run.family]
    classifiers = family.build(ESTIMATORS[run.estimator](), run.seed(), run.max_candidates)
    fitted: dict[str, dict[str, float]] = {}
    for name, classifier in classifiers.items():
        _reset_peak()
        start = time.process_time()
        classifier.fit(X.iloc[train], Y.iloc[train])
        fitted[name] = {"fit_seconds": time.process_time() - start}
    records = []
    for key, (name, decision) in zip(run.record_keys(), family.records.values(), strict=True):
        measures, details = measure(classifiers[name], decision, X.iloc[test], Y.iloc[test])
        records.append(Record(key, {**fitted[name], **measures, "peak_megabytes": _peak()}, details))
    return records


def measure(classifier: Any, decision: str | None, X: Any, Y: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Compute all measures of a fitted classifier on held-out rows, and the details of its record."""
    start = time.process_time()
    held_out = evaluate(classifier, X, Y, [decision])
    seconds = time.process_time() - start
    truth, predicted = held_out.truth, held_out.predicted[decision]
    measures = {
        "hamming_loss": metrics.hamming_loss(truth, predicted),
        "subset_loss": metrics.subset_loss(truth, predicted),
        "sub_exact_loss": metrics.sub_exact_loss(truth, predicted),
        "predict_seconds": seconds,
    }
    accuracy = (~held_out.wrong(decision)).mean(axis=0).tolist()
    balanced = metrics.balanced_accuracy_by_variable(truth, predicted)
    details: dict[str, Any] = {
        "accuracy": dict(zip(held_out.names, accuracy, strict=True)),
        "balanced_accuracy": dict(zip(held_out.names, balanced.values(), strict=True)),
        "n_variables": truth.shape[1],
        "n_rows": truth.shape[0],
    }
    if held_out.marginals is None:
        details["no marginals"] = held_out.no_marginals
    else:
        codes = [range(marginal.shape[1]) for marginal in held_out.marginals]
        measures["marginal_log_loss"] = metrics.marginal_log_loss(truth, held_out.marginals, codes)
        measures["brier_score"] = metrics.brier_score(truth, held_out.marginals, codes)
        measures["calibration_error"] = held_out.calibration_error()
        bins = metrics.reliability(truth, held_out.marginals, codes)
        details["reliability"] = [values.tolist() for values in bins]
    if held_out.log_prob is not None:
        measures["joint_log_loss"] = -held_out.log_prob.mean()
        measures["joint_calibration_error"] = held_out.joint_calibration_error(decision)
    if hasattr(classifier, "structure_"):
        details["status"] = classifier.structure_.status
        details["parents"] = {child: sorted(parents) for child, parents in classifier.structure_.parents.items()}
    if hasattr(classifier, "order_"):
        details["order"] = classifier.order_
    return {name: float(value) for name, value in measures.items()}, details


def _reset_peak() -> None:
    """Reset the peak memory of this process, where the system allows it (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float:
    """Return the peak memory of this process in megabytes, since the last reset or since its start."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        import resource

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# Progress -----------------------------------------------------------------------------------------------------


def _show_progress(results: Iterator[list[Record]], total: int, done: int) -> Iterator[list[Record]]:
    """Show finished runs, remaining time and the mean Hamming loss of each method so far."""
    require("rich")
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    sums: dict[str, tuple[float, int]] = {}
    failed = 0
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, completed=done)
        for records in results:
            yield records
            for record in records:
                if record.error:
                    failed += 1
                    bar.console.print(f"failed: {record.key}: {record.error}", markup=False)
                else:
                    total_loss, count = sums.get(record.key[2], (0.0, 0))
                    sums[record.key[2]] = (total_loss + record.measures["hamming_loss"], count + 1)
            means = "  ".join(f"{name} {value / count:.3f}" for name, (value, count) in sorted(sums.items()))
            bar.update(task, advance=1, description=means + (f"  failed {failed}" if failed else ""))
