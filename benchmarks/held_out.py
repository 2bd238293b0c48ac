"""How families are scored by rows that their models have not seen: error against refits, CPU time, graphs and losses.

    python benchmarks/held_out.py run --label NAME [--criterion auto] [--cv 5] [--parts refits,rare,tables,ten] [--tables a,b]
    python benchmarks/held_out.py report

Only the public interface is used, so that any version of pmdc can be measured (``PYTHONPATH=<other checkout>/src``).
Every finished cell is a line of ``results/held_out.csv`` and is not computed again; `report` prints the tables.

- refits: the score of every family with at most one class variable as parent, C = 1, beside n refits without one row.
- rare: tables of 1,000 rows with 150 indicators that 5 of them have: which edges are found, the test log-loss.
- tables: fold 0 of the benchmark tables (PMDC_DATA is their folder): CPU time of the fit, the edges between class variables, the test losses.
- ten: the same over all ten folds of the smaller tables.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pmdc import GBNC
from pmdc.datasets import load, make_network
from pmdc.learners import Logistic

RESULTS = Path(__file__).parent / "results" / "held_out.csv"
LIMITS: dict[str, dict[str, Any]] = {
    "oes97": {"max_parents": 1},
    "scm20d": {"max_parents": 1},
    "waterquality": {"max_parents": 2},
}
TABLES = [
    "edm",
    "enb",
    "flare1",
    "flags",
    "voice",
    "wqanimals",
    "wqplants",
    "emotions",
    "waterquality",
    "scene",
    "default",
    "oes97",
    "thyroid",
    "scm20d",
    "rf1",
    "adult",
]
SMALL = ["edm", "enb", "flare1", "flags", "voice", "wqanimals", "wqplants", "emotions", "waterquality"]
REFITS = ("edm", "flags", "flare1", "rare 0", "rare 1")
N_RARE = 30


def rare_table(seed: int, n: int = 1000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two class variables that depend on each other and on rare indicators, and a third that depends on nothing."""
    random = np.random.default_rng(seed)
    x = random.random((n, 150)) < 0.005
    dense = random.normal(size=(n, 2))
    weights = np.random.default_rng(7).normal(scale=2.0, size=150)
    y0 = (dense @ [1.0, -1.0] + x @ weights + random.logistic(size=n) > 0).astype(int)
    y1 = (dense[:, 0] + x @ np.roll(weights, 3) + 0.3 * (2 * y0 - 1) + random.logistic(size=n) > 0).astype(int)
    y2 = random.integers(0, 3, size=n)
    X = pd.DataFrame(np.hstack([dense, x])).add_prefix("x")
    return X, pd.DataFrame({"y0": y0, "y1": y1, "y2": y2})


def read(name: str) -> tuple[Any, Any]:
    if name.startswith("rare "):
        return rare_table(int(name.split()[1]), 400)
    data = load(name)
    return data.X, data.Y


def fit(X: Any, Y: Any, **options: Any) -> tuple[GBNC, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = GBNC(**options).fit(X, Y)
        return model, time.process_time() - start


def edges(model: GBNC, Y: Any) -> list[str]:
    return sorted(f"{p}>{c}" for p, c in model.graph_.edges if p in Y.columns)


def refits(name: str, criterion: str, **options: Any) -> dict[str, Any]:
    X, Y = read(name)
    settings = {"estimator": Logistic(C=1.0), "max_parents": 1, "max_discrete_parents": 1}
    settings["conditioning"] = "partition" if X.select_dtypes("number").shape[1] == X.shape[1] else "input"
    rows = np.arange(len(X))
    folds = [(np.delete(rows, i), rows[i : i + 1]) for i in rows]
    guard = {} if criterion == "refits" else {"criterion": criterion}
    if criterion == "refits":
        guard = {"criterion": "cv", "cv": folds}
    model, cpu = fit(X, Y, **settings, **guard, **no_guard(), **options)
    scores = {c: {"+".join(sorted(p)): s for p, s in table.items()} for c, table in model.scores_.items()}
    return {"cpu": cpu, "scores": scores}


def no_guard() -> dict[str, float]:
    """The parameter that switches the guard off has had two names."""
    return {"guard": 0.0} if "guard" in GBNC().get_params() else {"standard_errors": 0.0}


def rare(name: str, criterion: str, **options: Any) -> dict[str, Any]:
    X, Y = rare_table(int(name.split()[1]))
    model, cpu = fit(X, Y, criterion=criterion, **options)
    test_X, test_Y = rare_table(1000 + int(name.split()[1]), 2000)
    log_loss = -float(model.predict_joint(test_X).log_prob(test_Y).mean())
    return {"cpu": cpu, "edges": edges(model, Y), "log_loss": log_loss}


def ten_folds(name: str, criterion: str, **options: Any) -> dict[str, Any]:
    folds = [table(name, criterion, fold, **options) for fold in range(10)]
    return {key: [cell[key] for cell in folds] for key in ("cpu", "log_loss", "hamming", "subset")}


def table(name: str, criterion: str, fold: int = 0, **options: Any) -> dict[str, Any]:
    data = load(name)
    test = data.folds[fold]
    train = np.setdiff1d(np.arange(len(data.X)), test)
    model, cpu = fit(data.X.iloc[train], data.Y.iloc[train], criterion=criterion, **LIMITS.get(name, {}), **options)
    X, Y = data.X.iloc[test], data.Y.iloc[test]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [np.asarray(model.predict(X, loss=loss).astype(str)) != Y.astype(str) for loss in ("hamming", "subset")]
        log_loss = -float(model.predict_joint(X).log_prob(Y).mean())
    return {
        "cpu": cpu,
        "edges": edges(model, data.Y),
        "log_loss": log_loss,
        "hamming": 100 * float(np.mean(wrong[0])),
        "subset": 100 * float(np.any(wrong[1], axis=1).mean()),
    }


def compile_all(criterion: str) -> None:
    data = make_network(200, random_state=0)
    model = GBNC(criterion=criterion).fit(data.X, data.Y)
    for loss in ("hamming", "subset"):
        model.predict(data.X, loss=loss)
    model.predict_joint(data.X).log_prob(data.Y)


def finished() -> dict[tuple[str, str, str], dict[str, Any]]:
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        return {(r["label"], r["part"], r["table"]): json.loads(r["result"]) for r in csv.DictReader(file)}


def run(options: argparse.Namespace) -> None:
    compile_all("cv" if options.criterion == "refits" else options.criterion)
    cells = finished()
    known = options.tables.split(",") if options.tables else None
    names = {"refits": REFITS, "rare": [f"rare {i}" for i in range(N_RARE)], "tables": TABLES, "ten": SMALL}
    for part in options.parts.split(","):
        for name in names[part]:
            if (options.label, part, name) in cells or (known is not None and name not in known):
                continue
            result = {"refits": refits, "rare": rare, "tables": table, "ten": ten_folds}[part](
                name, options.criterion, **({} if options.cv is None else {"cv": options.cv})
            )
            new = not RESULTS.exists()
            with RESULTS.open("a", newline="") as file:
                writer = csv.writer(file)
                if new:
                    writer.writerow(["label", "part", "table", "result"])
                writer.writerow([options.label, part, name, json.dumps(result)])
            print(options.label, part, name, {k: v for k, v in result.items() if k != "scores"}, flush=True)


def report() -> Iterator[str]:
    cells = finished()
    labels = list(dict.fromkeys(label for label, _, _ in cells if label != "refits"))
    yield from report_refits(cells, labels)
    yield from report_rare(cells, labels)
    yield from report_ten(cells, labels)
    yield from report_tables(cells, labels)


def report_refits(cells: dict[Any, Any], labels: list[str]) -> Iterator[str]:
    yield "| table | evaluator | score, relative error | gain of a parent, mean absolute error in nats | CPU s |"
    yield "| --- | --- | --- | --- | --- |"
    for name in REFITS:
        truth = cells.get(("refits", "refits", name))
        for label in labels:
            found = cells.get((label, "refits", name))
            if truth is None or found is None:
                continue
            relative, gains = [], []
            for child, real in truth["scores"].items():
                own = found["scores"][child]
                both = [p for p in real if p in own]
                base = min(both, key=len)
                relative += [(own[p] - real[p]) / abs(real[p]) for p in both]
                gains += [abs((own[p] - own[base]) - (real[p] - real[base])) for p in both if p != base]
            yield (
                f"| {name} | {label} | {100 * np.mean(relative):+.1f} % (to {100 * max(relative, key=abs):+.1f} %) "
                f"| {np.mean(gains):.2f} | {found['cpu']:.1f} |"
            )
    yield ""


def report_rare(cells: dict[Any, Any], labels: list[str]) -> Iterator[str]:
    yield f"| evaluator | tables of {N_RARE} | with the true edge | with a false edge | test log-loss | CPU s a table |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for label in labels:
        own = [cell for (one, part, _), cell in cells.items() if one == label and part == "rare"]
        if own:
            true = sum(any(e in ("y0>y1", "y1>y0") for e in cell["edges"]) for cell in own)
            false = sum(any("y2" in e for e in cell["edges"]) for cell in own)
            loss, cpu = (np.mean([cell[key] for cell in own]) for key in ("log_loss", "cpu"))
            yield f"| {label} | {len(own)} | {true} | {false} | {loss:.4f} | {cpu:.2f} |"
    yield ""


def report_ten(cells: dict[Any, Any], labels: list[str]) -> Iterator[str]:
    yield "| table | evaluator | Hamming % | subset 0/1 % | log-loss | CPU s a fit |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in SMALL:
        for label in labels:
            cell = cells.get((label, "ten", name))
            if cell is not None:
                keys = ("hamming", "subset", "log_loss")
                means = [(np.mean(cell[key]), np.std(cell[key], ddof=1) / np.sqrt(10)) for key in keys]
                shown = " | ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in means)
                yield f"| {name} | {label} | {shown} | {np.mean(cell['cpu']):.2f} |"
    yield ""


def report_tables(cells: dict[Any, Any], labels: list[str]) -> Iterator[str]:
    yield "| table | evaluator | Hamming % | subset 0/1 % | log-loss | edges, and how many the first has not | CPU s |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in TABLES:
        first: set[str] | None = None
        for label in labels:
            cell = cells.get((label, "tables", name))
            if cell is None:
                continue
            own = set(cell["edges"])
            first = own if first is None else first
            yield (
                f"| {name} | {label} | {cell['hamming']:.2f} | {cell['subset']:.2f} | {cell['log_loss']:.3f} "
                f"| {len(own)}, {len(own - first)} | {cell['cpu']:.1f} |"
            )
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "report"])
    parser.add_argument("--label")
    parser.add_argument("--criterion", default="auto")
    parser.add_argument("--parts", default="refits,rare,tables,ten")
    parser.add_argument("--tables")
    parser.add_argument("--cv", type=int)
    options = parser.parse_args()
    if options.action == "run":
        run(options)
    else:
        print("\n".join(report()))


if __name__ == "__main__":
    main()
