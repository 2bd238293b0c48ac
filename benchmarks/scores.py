"""Which criterion, which way of parents, how strong a guard: what they gain on rows that no model has seen.

    python benchmarks/scores.py [--parts choice,targets,all,space,speed] [--tables a,b] [--data FOLDER]
                                [--records FILE] [--out FILE]

- choice: every setting on the tables of the first half, from which the defaults were chosen.
- targets: the defaults and the baselines on the tables with numbers to reach, all ten folds.
- all: the defaults, the paper's criterion and the baselines on all tables with up to 16 class variables.
- space: the score of the chosen network beside those of binary relevance and of a chain, without the guard.
- speed: CPU time of the default fit on rf1 over that of ``criterion="bic", conditioning="partition"``.

Every finished cell (table, fold, setting) is a line of the records file, and is not computed again. Hamming loss and
subset 0/1 loss are of the predictions that minimise the one and the other, in percent; the log-loss is that of the whole
outcome, in nats for each row. A chain answers exactly by enumerating outcomes: where they are too many, its losses are
those of its greedy prediction.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from reporting import publish

from pmdc import GBNC
from pmdc.baselines import BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.datasets import load, make_network
from pmdc.inference.chain import MAX_OUTCOMES
from pmdc.learners import Logistic

FIRST_HALF = ("enb", "voice", "flare1", "flags", "wqanimals", "wqplants", "belae", "oes97")
SECOND_HALF = ("edm", "emotions", "scene", "waterquality", "adult", "default", "rf1", "thyroid", "scm20d")

TARGETS = {"rf1": (3.6, 23.5), "adult": (28.0, 68.0), "edm": (22.0, 36.0), "emotions": (18.5, 62.0)}
"""Hamming loss and subset 0/1 loss to reach over ten folds."""

LIMITS = {
    "oes97": {"max_parents": 1},
    "scm20d": {"max_parents": 1},
    "waterquality": {"max_parents": 2},
}
"""Where three parents would take too long here; the same for every GBNC."""

MANY_DISCRETE = ("belae", "thyroid")
"""Tables with more than 20 discrete features: of these only one, not two, divides the rows of a partition."""

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "guard 0": {"guard": 0},
    "guard 0.5": {"guard": 0.5},
    "guard 1": {"guard": 1},
    "10 folds": {"cv": 10},
    "partition": {"conditioning": "partition", "max_discrete_parents": 2},
    "input": {"conditioning": "input"},
    "C = 1": {"estimator": Logistic(C=1.0)},
    "bic": {"criterion": "bic"},
    "bic-full": {"criterion": "bic-full"},
    "aic": {"criterion": "aic"},
    "cll": {"criterion": "cll"},
    "bic, partition": {"criterion": "bic", "conditioning": "partition", "max_discrete_parents": 2},
}
BASELINES = {"binary relevance": BinaryRelevance, "chain": ClassifierChain, "powerset": ClassPowerset}

POWERSET = 100
"""The most outcomes of a table that the powerset is run on: it fits coefficients for each of them."""


def make(setting: str, table: str) -> Any:
    if setting in BASELINES:
        return BASELINES[setting]()
    options = LIMITS.get(table, {}) | SETTINGS[setting]
    if table in MANY_DISCRETE and "max_discrete_parents" in options:
        options["max_discrete_parents"] = 1
    return GBNC(**options)


class Records:
    """Finished cells, in a file that grows."""

    columns = ("table", "fold", "setting", "hamming", "subset", "log_loss", "cpu")

    def __init__(self, path: Path):
        self.path = path
        self.cells: dict[tuple[str, int, str], dict[str, float]] = {}
        if path.exists():
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    key = row["table"], int(row["fold"]), row["setting"]
                    self.cells[key] = {name: float(row[name]) for name in self.columns[3:]}
        else:
            path.write_text(",".join(self.columns) + "\n")

    def get(self, data: Any, table: str, fold: int, setting: str) -> dict[str, float]:
        key = table, fold, setting
        if key not in self.cells:
            self.cells[key] = evaluate(make(setting, table), data, fold)
            with self.path.open("a") as file:
                values = [f"{self.cells[key][name]:.6g}" for name in self.columns[3:]]
                file.write(",".join([table, str(fold), f'"{setting}"', *values]) + "\n")
            print(*key, {k: round(float(v), 3) for k, v in self.cells[key].items()}, file=sys.stderr, flush=True)
        return self.cells[key]

    def folds(self, data: Any, table: str, setting: str, n: int) -> np.ndarray:
        """The measures of the first folds, shape (n, 4)."""
        cells = [self.get(data, table, fold, setting) for fold in range(n)]
        return np.array([[cell[name] for name in self.columns[3:]] for cell in cells])


@cache
def compile_all() -> None:
    """Fits and predictions of a small table, so that no CPU time of a cell has the compilation in it."""
    table = make_network(200, random_state=0)
    for model in (GBNC(), GBNC(criterion="bic", conditioning="partition"), *(make() for make in BASELINES.values())):
        model.fit(table.X, table.Y)
        for loss in ("hamming", "subset"):
            model.predict(table.X, loss=loss)
        model.predict_joint(table.X).log_prob(table.Y)


def evaluate(model: Any, data: Any, fold: int) -> dict[str, float]:
    compile_all()
    test = data.folds[fold]
    train = np.setdiff1d(np.arange(len(data.X)), test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(data.X.iloc[train], data.Y.iloc[train])
        cpu = time.process_time() - start
        X, Y = data.X.iloc[test], data.Y.iloc[test]
        truth = np.asarray(Y.astype(str))
        wrong = [np.asarray(model.predict(X, loss=loss).astype(str)) != truth for loss in _losses(model, data)]
        log_prob = model.predict_joint(X).log_prob(Y)
    return {
        "hamming": 100 * wrong[0].mean(),
        "subset": 100 * wrong[1].any(axis=1).mean(),
        "log_loss": -float(np.mean(log_prob)),
        "cpu": cpu,
    }


def _losses(model: Any, data: Any) -> tuple[str, str]:
    outcomes = math.prod(len(data.Y[name].cat.categories) for name in data.Y)
    if isinstance(model, ClassifierChain) and outcomes > MAX_OUTCOMES:
        return "greedy", "greedy"
    return "hamming", "subset"


def compare(
    records: Records,
    data_dir: str | None,
    tables: Sequence[str],
    settings: Sequence[str],
    folds: int,
    powerset: bool = False,
) -> Iterator[str]:
    """A line for each table and setting, and the average rank of each setting; the powerset, where it can, has none."""
    yield "| table | setting | Hamming % | subset 0/1 % | log-loss | CPU s |"
    yield "| --- | --- | --- | --- | --- | --- |"
    ranks: dict[str, list[Any]] = {setting: [] for setting in settings}
    for table in tables:
        data = load(table, data_dir)
        means = {}
        can = powerset and len(data.Y.drop_duplicates()) <= POWERSET
        for setting in [*settings, "powerset"] if can else settings:
            means[setting] = records.folds(data, table, setting, folds).mean(axis=0)
            hamming, subset, log_loss, cpu = means[setting]
            yield f"| {table} | {setting} | {hamming:.2f} | {subset:.2f} | {log_loss:.3f} | {cpu:.1f} |"
        values = np.array([means[setting][:3] for setting in settings])
        for setting, row in zip(settings, values, strict=True):
            better = (values < row - 1e-12).sum(axis=0) + 0.5 * ((np.abs(values - row) <= 1e-12).sum(axis=0) - 1)
            ranks[setting].append(1 + better)
    yield ""
    yield f"Average rank over {len(tables)} tables (1 is best):"
    yield ""
    yield "| setting | Hamming | subset 0/1 | log-loss |"
    yield "| --- | --- | --- | --- |"
    for setting in settings:
        yield "| " + " | ".join([setting, *(f"{rank:.2f}" for rank in np.mean(ranks[setting], axis=0))]) + " |"
    yield ""


def choice(records: Records, data_dir: str | None, tables: Sequence[str]) -> Iterator[str]:
    yield "## Choice of the defaults (first half of the tables, folds 0 to 2)"
    yield ""
    chosen = [table for table in FIRST_HALF if table in tables]
    yield from compare(records, data_dir, chosen, list(SETTINGS), 3)


def everything(records: Records, data_dir: str | None, tables: Sequence[str]) -> Iterator[str]:
    settings = ["default", "bic, partition", "binary relevance", "chain"]
    for title, names in (("first half, which the defaults come from", FIRST_HALF), ("second half", SECOND_HALF)):
        chosen = [name for name in names if name in tables]
        if chosen:
            yield f"## All tables: {title} (folds 0 to 2)"
            yield ""
            yield from compare(records, data_dir, chosen, settings, 3, powerset=True)


def targets(records: Records, data_dir: str | None, tables: Sequence[str]) -> Iterator[str]:
    yield "## Numbers to reach (ten folds)"
    yield ""
    yield "| table | setting | Hamming % | to reach | subset 0/1 % | to reach | log-loss | CPU s |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for table in (name for name in TARGETS if name in tables):
        data = load(table, data_dir)
        for setting in ("default", "binary relevance", "chain"):
            values = records.folds(data, table, setting, 10)
            (hamming, subset, log_loss, cpu), errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(10)
            goals = TARGETS[table] if setting == "default" else ("", "")
            yield (
                f"| {table} | {setting} | {hamming:.2f} ± {errors[0]:.2f} | {goals[0]} "
                f"| {subset:.2f} ± {errors[1]:.2f} | {goals[1]} | {log_loss:.3f} | {cpu:.1f} |"
            )
    yield ""


def space(records: Records, data_dir: str | None, tables: Sequence[str]) -> Iterator[str]:
    yield "## The chosen network beside binary relevance and a chain (fold 0, one parent, no guard)"
    yield ""
    yield "| table | chosen | binary relevance | chain | at least as good |"
    yield "| --- | --- | --- | --- | --- |"
    for table in (name for name in (*FIRST_HALF, *SECOND_HALF) if name in tables):
        data = load(table, data_dir)
        train = np.setdiff1d(np.arange(len(data.X)), data.folds[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GBNC(max_parents=1, guard=0).fit(data.X.iloc[train], data.Y.iloc[train])
        features, names = frozenset(data.X.select_dtypes("category")), list(data.Y)
        relevance = sum(model.scores_[name][features] for name in names)
        links = [model.scores_[name].get(features | set(names[:k]), np.nan) for k, name in enumerate(names)]
        chain = float(np.sum(links))
        good = model.structure_.score >= relevance and not model.structure_.score < chain
        told = f"{chain:.2f}" if np.isfinite(chain) else "too wide"
        yield f"| {table} | {model.structure_.score:.2f} | {relevance:.2f} | {told} | {'yes' if good else 'NO'} |"
    yield ""


def speed(records: Records, data_dir: str | None, tables: Sequence[str]) -> Iterator[str]:
    yield "## CPU time of the fit on rf1 (fold 0; compiled before)"
    yield ""
    compile_all()
    data = load("rf1", data_dir)
    train = np.setdiff1d(np.arange(len(data.X)), data.folds[0])
    X, Y = data.X.iloc[train], data.Y.iloc[train]
    times: dict[str, list[float]] = {}
    for _ in range(2):
        for setting in ("default", "bic, partition"):
            start = time.process_time()
            make(setting, "rf1").fit(X, Y)
            times.setdefault(setting, []).append(time.process_time() - start)
    a, b = (min(times[setting]) for setting in ("default", "bic, partition"))
    yield f"default {a:.1f} s, bic with partition {b:.1f} s: {a / b:.2f} times (the less of two rounds each)."
    yield ""


PARTS = {"choice": choice, "targets": targets, "all": everything, "space": space, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--tables", default=",".join((*FIRST_HALF, *SECOND_HALF)))
    parser.add_argument("--data", "--data-dir", dest="data_dir", help="benchmark tables; default: PMDC_DATA")
    parser.add_argument("--records", type=Path, default=Path(__file__).parent / "results" / "scores.csv")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    records, tables = Records(options.records), options.tables.split(",")
    parts = [PARTS[name](records, options.data_dir, tables) for name in options.parts.split(",")]
    publish((line for part in parts for line in part), options.out)


if __name__ == "__main__":
    main()
