"""Tables with gaps: what learning from them gains and costs, against simpler ways and other tools.

    PMDC_DATA=... python benchmarks/incomplete.py labels     [--settings default|features] [--tables generated,flags]
    PMDC_DATA=... python benchmarks/incomplete.py unlabelled [--seeds 0-19]
    PMDC_DATA=... python benchmarks/incomplete.py features   [--folds 0,1,2]
    PMDC_DATA=... python benchmarks/incomplete.py check      [--seeds 0,1,2]
    PMDC_DATA=... python benchmarks/incomplete.py cost       [--settings default,features]
    python benchmarks/incomplete.py report

Each record is appended to the CSV file of ``--out`` when it is computed; those that are there are not computed again.
Each command ends with the Markdown tables of its records, "report" prints all. The settings "default" are ``GBNC()``,
"features" are ``GBNC(experts=None)``.

*labels*: cells of the training Y are removed completely at random. "em", "available" and "drop" are the values of
``missing_labels``; "alone" is "available" with ``max_parents=0``: the same experts without arcs; "complete" is fitted
to the table before the removal, a bound.
*unlabelled*: 100 complete rows, and so many rows without any state that they are this share of all rows: "em" leaves
these out, "em+unlabelled" has ``use_unlabelled=True``.
*features*: cells of X are removed, in training and test rows alike (see `incomplete_tables.remove_features`), or are
missing by themselves ("own"). "GBNC" gets the gaps as they are. "median", "iterative" and "knn" impute first and then
fit the same GBNC: numbers by `SimpleImputer`, `IterativeImputer` or `KNNImputer` (the last two scale them before),
discrete features by the most frequent value. The others are scikit-learn's and take NaN: one multi-output random forest
(defaults, or at least 3 rows in a leaf) and one `HistGradientBoostingClassifier` for each class variable.
*check*: 2 % of the cells of Y are replaced by another state, each with equal probability. Precision is the share of
such cells among the first as many of `suspicious_cells` of "GBNC"; of "alone", ``GBNC(max_parents=0)``, with the
same experts given x alone; and of "forest", binary relevance with random forests (at least 3 rows in a leaf).
*cost*: CPU of a fit with 30 % of the cells of Y missing, divided by that of the fit to the complete table, one after
the other in one process, after a fit of both kinds to a few rows (so compilation is not counted).

Rules for all methods. Test rows with a state that the (complete) training rows lack are left out. A probability of a
state below 1e-6 counts as 1e-6 in the marginal log-loss, which is summed over class variables; a probability of an
outcome of K class variables below 1e-6 to the power of K counts as that in the joint log-loss ("floored" are the rows
where it did). Class variables declare all their states, so a state that has vanished from the training rows has a small
probability, not zero. Times are of the CPU, with one thread.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from incomplete_methods import IMPUTERS, MIN_LEAF, Values, boosting, fitted, forest, impute, losses, losses_of_marginals
from incomplete_report import report
from incomplete_tables import (
    GENERATED,
    Split,
    flip_states,
    make_split,
    read,
    remove_states,
    rng_of,
    sample,
)
from reporting import publish
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.incomplete import MISSING_LABELS

KEY = ("part", "settings", "table", "gaps", "share", "split", "rows", "method")
MEASURES = (
    *("log_loss", "marginal_log_loss", "hamming", "subset", "precision", "n_flipped", "floored", "n_train", "n_test"),
    *("cpu", "cpu_complete", "cpu_ratio", "em_rounds", "em_converged", "em_pruned", "n_completions"),
)
COLUMNS = (*KEY, *MEASURES, "note", "commit")

SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "features": {"experts": None}}

LABELS: dict[str, dict[str, Any]] = {
    "em": {"missing_labels": "em"},
    "available": {"missing_labels": "available"},
    "drop": {"missing_labels": "drop"},
    "alone": {"missing_labels": "available", "max_parents": 0},
    "complete": {},
}
UNLABELLED = {"em": {"use_unlabelled": False}, "em+unlabelled": {"use_unlabelled": True}}
N_LABELLED, MAX_UNLABELLED = 100, 400
GENERATED_ROWS = 400
"""Training rows of generated tables in the other parts."""

CHECKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "GBNC": lambda options: GBNC(**options),
    "alone": lambda options: GBNC(max_parents=0, **options),
    "forest": lambda _: BinaryRelevance(RandomForestClassifier(min_samples_leaf=MIN_LEAF, random_state=0)),
}


@dataclass(frozen=True)
class Task:
    """One record: its key, and the function that computes its values."""

    key: dict[str, Any]
    run: Callable[[], Values]


class Records:
    """The CSV file of the records."""

    def __init__(self, path: Path):
        self.path = path
        self.commit = commit()
        self.done: set[tuple[str, ...]] = set()
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self.done = {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}

    def __contains__(self, key: dict[str, Any]) -> bool:
        return tuple(str(key[name]) for name in KEY) in self.done

    def add(self, key: dict[str, Any], values: Values) -> None:
        is_new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if is_new:
                writer.writeheader()
            writer.writerow(key | values | {"commit": self.commit})
        self.done.add(tuple(str(key[name]) for name in KEY))


def commit() -> str:
    """Return the commit of the checkout, with a plus sign if it has been changed."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    return found.stdout.strip()


def run(task: Task, records: Records) -> None:
    """Compute a record; errors and warnings are its note."""
    print(*task.key.values(), flush=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            values = task.run()
        except Exception as error:  # a long run goes on, and the report lists what failed
            values = {"note": f"failed: {type(error).__name__}: {error}"}
    messages = dict.fromkeys(f"{one.category.__name__}: {one.message}"[:200] for one in caught)
    note = " | ".join([values.get("note", ""), *list(messages)[:3]]).strip(" |").replace("\n", " ")
    records.add(task.key, values | {"note": note})
    shown = (f"{name} {value:.5g}" for name, value in values.items() if name != "note")
    print("   ", ", ".join(shown), note, flush=True)


# Gaps in Y -----------------------------------------------------------------------------------------------------


def labels(given: Any) -> Iterator[Task]:
    for key in keys(given, "labels", "states", given.shares):
        if key["method"] == "complete":
            key |= {"gaps": "none", "share": 0.0}  # one record for all shares
        if LABELS[key["method"]].get("missing_labels", "em") not in MISSING_LABELS:
            print(*key.values(), "is skipped: this version has no missing_labels='available'.")
            continue
        yield Task(key, lambda key=key: fit_with_gaps(key))


def fit_with_gaps(key: dict[str, Any]) -> Values:
    split = make_split(key["table"], key["split"], key["rows"])
    complete = key["method"] == "complete"
    Y = split.Y if complete else with_gaps(split, key)
    model, values = fitted(GBNC(**SETTINGS[key["settings"]], **LABELS[key["method"]]), split.X, Y)
    return values | losses(model, *split.rated())


def with_gaps(split: Split, key: dict[str, Any]) -> pd.DataFrame:
    return remove_states(split.Y, key["share"], rng_of(key["table"], "states", key["share"], key["split"]))


def unlabelled(given: Any) -> Iterator[Task]:
    for key in keys(given, "unlabelled", "rows", given.shares):
        yield Task(key, lambda key=key: fit_unlabelled(key))


def fit_unlabelled(key: dict[str, Any]) -> Values:
    labelled = min(N_LABELLED, key["rows"])
    n = round(labelled / (1 - key["share"]))
    split = make_split(key["table"], key["split"], N_LABELLED + MAX_UNLABELLED)  # the same rows for all shares
    if n > len(split.X):
        raise ValueError(f"share={key['share']} needs {n} training rows, there are {len(split.X)}.")
    X, Y = split.X[:n], split.Y[:n].mask(np.tile(np.arange(n)[:, None] >= labelled, split.Y.shape[1]))
    model, values = fitted(GBNC(**SETTINGS[key["settings"]], **UNLABELLED[key["method"]]), X, Y)
    return values | losses(model, *Split(X, Y, split.X_test, split.Y_test).rated())


# Gaps in X -----------------------------------------------------------------------------------------------------


def features(given: Any) -> Iterator[Task]:
    for gaps in ("own", "none", "at random", "not at random"):
        shares = [share for share in given.shares if (share > 0) == gaps.endswith("random")]
        tables = [table for table in given.tables if (table == "scpf") == (gaps == "own")]
        for key in keys(given, "features", gaps, [0.0] if gaps == "own" else shares, tables):
            yield Task(key, lambda key=key: fit_features(key))


def fit_features(key: dict[str, Any]) -> Values:
    split = make_split(key["table"], key["split"], key["rows"], key["gaps"], key["share"])
    X_test, Y_test = split.rated()
    method, options = key["method"], SETTINGS[key["settings"]]
    if method == "GBNC":
        model, values = fitted(GBNC(**options), split.X, split.Y)
        return values | losses(model, X_test, Y_test)
    started = time.process_time()
    if method in IMPUTERS:
        X, X_test = impute(IMPUTERS[method](), split.X, X_test)
        spent = time.process_time() - started
        model, values = fitted(GBNC(**options), X, split.Y)
        return values | {"cpu": values["cpu"] + spent} | losses(model, X_test, Y_test)
    proba = boosting if method == "boosting" else forest
    found, spent = proba(split, X_test, 1 if method == "forest" else MIN_LEAF)
    return {"cpu": spent, "n_train": len(split.X)} | losses_of_marginals(found, Y_test)


# Wrong cells, and times ----------------------------------------------------------------------------------------


def check(given: Any) -> Iterator[Task]:
    for key in keys(given, "check", "flipped", given.shares):
        yield Task(key, lambda key=key: rank(key))


def rank(key: dict[str, Any]) -> Values:
    if key["table"] == GENERATED:
        split = make_split(GENERATED, key["split"], key["rows"])
        X, Y = split.X, split.Y
    else:
        data = read(key["table"])
        chosen = sample(np.arange(len(data.X)), key["rows"], key["table"], key["split"], "rows")
        X, Y = data.X.iloc[chosen], data.Y.iloc[chosen]
    wrong, flipped = flip_states(Y, key["share"], rng_of(key["table"], "flip", key["share"], key["split"]))
    started = time.process_time()
    found = CHECKERS[key["method"]](SETTINGS[key["settings"]]).suspicious_cells(X, wrong)
    n = int(flipped.sum())
    hits = flipped[found.rows[:n], [Y.columns.get_loc(name) for name in found.names[:n]]]
    return {"precision": hits.mean(), "n_flipped": n, "n_train": len(X), "cpu": time.process_time() - started}


def cost(given: Any) -> Iterator[Task]:
    for key in keys(given, "cost", "states", given.shares):
        yield Task(key, lambda key=key: compare_cost(key))


def compare_cost(key: dict[str, Any]) -> Values:
    options, split = SETTINGS[key["settings"]], make_split(key["table"], key["split"], key["rows"])
    warm_up(key["settings"])
    Y = with_gaps(split, key)
    _, complete = fitted(GBNC(**options), split.X, split.Y)
    _, values = fitted(GBNC(**options, missing_labels=key["method"]), split.X, Y)
    return values | {"cpu_complete": complete["cpu"], "cpu_ratio": values["cpu"] / complete["cpu"]}


@lru_cache
def warm_up(settings: str) -> None:
    """Compile the kernels: fit a few rows, with gaps and without."""
    few = make_network(100, n_class_variables=3, n_continuous=2, n_discrete=1, random_state=0)
    for Y in (few.Y, remove_states(few.Y, 0.2, rng_of("warm-up"))):
        GBNC(**SETTINGS[settings]).fit(few.X, Y)


# Command line --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A subcommand with its defaults."""

    tasks: Callable[[Any], Iterator[Task]]
    tables: str
    methods: tuple[str, ...]
    shares: str
    rows: int = 600
    folds: str = "0,1,2"
    seeds: str = "0-19"


FEATURE_METHODS = ("GBNC", *IMPUTERS, "forest", "forest, leaf 3", "boosting")
PARTS = {
    "labels": Part(labels, f"{GENERATED},emotions,flags,waterquality,rf1,adult,thyroid", tuple(LABELS), "0.1,0.3,0.5"),
    "unlabelled": Part(unlabelled, GENERATED, tuple(UNLABELLED), "0,0.5,0.8"),
    "features": Part(features, "scpf,voice,enb,flags,thyroid", FEATURE_METHODS, "0.1,0.3", rows=1000),
    "check": Part(
        check, "emotions,flags,waterquality,rf1,enb,thyroid", tuple(CHECKERS), "0.02", folds="0", seeds="0,1,2"
    ),
    "cost": Part(
        cost,
        f"emotions,flags,{GENERATED},waterquality:4,waterquality:8,waterquality",
        ("em",),
        "0.3",
        folds="0",
        seeds="0",
    ),
}


def keys(
    given: Any, part: str, gaps: str, shares: list[float], tables: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the keys of the records that were asked for; the first folds and seeds of all tables come first."""
    for settings in given.settings:
        for place in range(max(len(given.folds), len(given.seeds))):
            for table in given.tables if tables is None else tables:
                by_seed = table == GENERATED or part == "check"
                numbers = given.seeds if by_seed else given.folds
                rows = min(given.rows, GENERATED_ROWS) if table == GENERATED else given.rows
                for share in shares if place < len(numbers) else []:
                    for method in given.methods:
                        at = (part, settings, table, gaps, share, numbers[place], rows, method)
                        yield dict(zip(KEY, at, strict=True))


def numbers(text: str) -> list[int]:
    """Read "0,1,5-9"."""
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [number for end in ends for number in range(end[0], end[-1] + 1)]


def words(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subparsers = parser.add_subparsers(dest="part", required=True)
    default = Path(__file__).parent / "results" / "incomplete.csv"
    for name in (*PARTS, "report"):
        own = subparsers.add_parser(name)
        own.add_argument("--out", type=Path, default=default, help="CSV file of the records")
        if name == "report":
            continue
        part = PARTS[name]
        own.add_argument("--settings", type=words, default="default", help="default, features or both")
        own.add_argument("--tables", type=words, default=part.tables)
        own.add_argument("--shares", type=lambda text: [float(share) for share in text.split(",")], default=part.shares)
        own.add_argument("--rows", type=int, default=part.rows, help="the most training rows")
        own.add_argument("--folds", type=numbers, default=part.folds, help="of real tables, such as 0,1 or 0-9")
        own.add_argument("--seeds", type=numbers, default=part.seeds)
        own.add_argument("--methods", type=lambda text: text.split(";"), default=list(part.methods), help="a;b")
    given = parser.parse_args()
    if given.part != "report":
        records = Records(given.out)
        with threadpool_limits(1):
            for task in PARTS[given.part].tasks(given):
                if task.key not in records:
                    run(task, records)
    publish(report(given.out, None if given.part == "report" else given.part), None)


if __name__ == "__main__":
    main()
