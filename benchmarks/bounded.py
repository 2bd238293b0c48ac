"""Structures with bounded cliques: beside published scores, growth, large tables.

    python benchmarks/bounded.py published [--seconds 60] [--jobs 2] [--only NAME,...] [--keep FILE]
    python benchmarks/bounded.py report [--keep FILE]
    python benchmarks/bounded.py growth
    python benchmarks/bounded.py large

- published: each instance of the folder `scores` of the benchmark tables (PMDC_DATA), each bound in `published.csv` on
  treewidth (2 to 8) and on the cells of a clique (500, 5,000 and 50,000). The published scores are the best of runs of
  30 to 90 minutes. Each search is a process of its own on one core; results are appended to the file, and what is
  there is not repeated. Numbers of states are those of the networks in pgmpy (extra "peers"), whose variables are in
  the order of the score files.
- report: the table and the shares of what was kept.
- growth: 100 to 1,000 class variables with 100 parent sets each, from random networks; hill climbing within the same
  bound beside it, ended after two minutes.
- large: a random table of 1,041 class variables with 177,691 parent sets.

Every structure is checked: its parents have no cycle, and its elimination order keeps the bound.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from graphlib import TopologicalSorter
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from reporting import peak_memory, publish

from pmdc.search import Structure, find_structure, read_scores, write_scores
from search import random_rows

DATA = Path(os.environ.get("PMDC_DATA", Path(__file__).parents[2] / "shared" / "data")) / "scores"
KEEP = Path(__file__).parent / "results" / "bounded.csv"
TREEWIDTHS, CELLS = range(2, 9), (500, 5_000, 50_000)
FIELDS = (
    "instance", "bound_on", "bound", "seconds", "score", "upper_bound", "status", "method", "wall", "cpu", "memory",
    "treewidth", "clique_cells", "published", "published_by",
)  # fmt: skip
GROWTH = (100, 200, 500, 1000)
HILL_CLIMBING_SECONDS = 120
ROUNDING = 1e-7
"""Of published scores, relative."""

Scores = dict[str, dict[frozenset[str], float]]

# One search ---------------------------------------------------------------------------------------------------


def check(found: Structure, sizes: dict[str, int]) -> tuple[int, int]:
    """Return the width and the cells of the largest clique of the elimination order; raise an error for a cycle."""
    TopologicalSorter(found.parents).prepare()
    graph: dict[str, set[str]] = {name: set() for name in found.parents}
    for child, parents in found.parents.items():
        for a, b in itertools.combinations((child, *parents), 2):
            graph[a].add(b)
            graph[b].add(a)
    width = cells = 0
    assert found.elimination_order is not None
    for name in found.elimination_order:
        around = graph.pop(name)
        width = max(width, len(around))
        cells = max(cells, math.prod(sizes[other] for other in (name, *around)))
        for other in around:
            graph[other] |= around - {other}
            graph[other].discard(name)
    return width, cells


def search(task: dict[str, Any]) -> dict[str, Any]:
    scores = read_scores(task["path"])
    sizes = dict(zip(scores, task["sizes"], strict=True))
    bound = {"max_treewidth": task["max_treewidth"], "max_clique_cells": task["max_clique_cells"]}
    compile_first()
    wall, cpu = time.perf_counter(), time.process_time()
    found = find_structure(scores, task["method"], n_states=sizes, time_limit=task["seconds"], **bound)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    width, cells = check(found, sizes)
    assert width <= (task["max_treewidth"] or math.inf)
    assert cells <= (task["max_clique_cells"] or math.inf)
    return {
        "score": found.score, "upper_bound": found.bound, "status": found.status, "method": found.method,
        "wall": round(wall, 1), "cpu": round(cpu, 1), "memory": round(peak_memory()), "treewidth": width,
        "clique_cells": cells,
    }  # fmt: skip


def compile_first() -> None:
    """Compile what a search needs, on random scores of 30 class variables."""
    rng = np.random.default_rng(0)
    names = [f"v{k}" for k in range(30)]
    sets = [frozenset(names[i] for i in rng.choice(30, 2, replace=False)) for _ in range(300)]
    scores = {name: {frozenset(): 0.0} | {s: rng.random() for s in sets if name not in s} for name in names}
    find_structure(scores, max_treewidth=2, max_clique_cells=8, n_states=dict.fromkeys(names, 2), max_iter=1)


def in_process(
    path: Path, sizes: list[int], seconds: float | None, method: str = "auto", **bound: int
) -> dict[str, Any]:
    """Run a search in a process of its own, on one core."""
    task = {"path": str(path), "sizes": sizes, "seconds": seconds, "method": method}
    task |= {"max_treewidth": None, "max_clique_cells": None} | bound
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "task"]
    ran = subprocess.run(command, input=json.dumps(task), env=os.environ | one, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


# Published scores ---------------------------------------------------------------------------------------------


def number_of_states(instance: str) -> list[int]:
    text = gzip.decompress((files("pgmpy") / "utils" / "example_models" / f"{instance}.bif.gz").read_bytes()).decode()
    return [int(size) for size in re.findall(r"variable\s+\S+\s*\{\s*type discrete \[\s*(\d+)", text)]


def cells_of_the_table(only: list[str]) -> list[dict[str, str]]:
    with (DATA / "published.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if not only or row["instance"] in only]
    wanted = {"treewidth": set(map(str, TREEWIDTHS)), "clique cells": set(map(str, CELLS))}
    return [row for row in rows if row["bound"] in wanted[row["bound_on"]]]


def kept(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def published(seconds: float, jobs: int, only: list[str], path: Path) -> None:
    done = {(row["instance"], row["bound_on"], row["bound"], float(row["seconds"])) for row in kept(path)}
    rows = cells_of_the_table(only)
    if not path.exists():
        path.write_text(",".join(FIELDS) + "\n")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for instance in {row["instance"] for row in rows}:
            text = gzip.decompress((DATA / f"{instance}.jkl.gz").read_bytes())
            (Path(folder) / instance).write_bytes(text)

        def run(row: dict[str, str]) -> None:
            key = row["instance"], row["bound_on"], row["bound"], seconds
            if key in done:
                return
            argument = "max_treewidth" if row["bound_on"] == "treewidth" else "max_clique_cells"
            bound = {argument: int(row["bound"])}
            found = in_process(Path(folder) / row["instance"], number_of_states(row["instance"]), seconds, **bound)
            line = dict(zip(FIELDS, key, strict=False)) | found
            line |= {"published": row["score"], "published_by": row["method"]}
            with path.open("a", newline="") as file:
                csv.DictWriter(file, FIELDS).writerow(line)
            print(*line.values(), sep=",", flush=True)

        list(pool.map(run, rows))


def report(path: Path) -> Iterator[str]:
    rows = kept(path)
    for seconds in sorted({float(row["seconds"]) for row in rows}):
        own = [row for row in rows if float(row["seconds"]) == seconds]
        yield f"After {seconds:g} s, {len(own)} bounds:"
        yield ""
        yield (
            "| instance | "
            + " | ".join([f"treewidth {t}" for t in TREEWIDTHS] + [f"{c:,} cells" for c in CELLS])
            + " |"
        )
        yield "| --- |" + " ---: |" * (len(TREEWIDTHS) + len(CELLS))
        for instance in dict.fromkeys(row["instance"] for row in own):
            cells = {(row["bound_on"], int(row["bound"])): row for row in own if row["instance"] == instance}
            keys = [("treewidth", t) for t in TREEWIDTHS] + [("clique cells", c) for c in CELLS]
            yield f"| {instance} | " + " | ".join(_against(cells.get(key)) for key in keys) + " |"
        gains = [_gain(row) for row in own]
        at_least = sum(gain >= 0 for gain in gains)
        proved = sum(row["status"] == "optimal" for row in own)
        yield ""
        yield (
            f"At least as good: {at_least} of {len(own)} ({at_least / len(own):.0%}); better by more than 1e-5: "
            f"{sum(gain > 1e-5 for gain in gains)}; worst {min(gains):+.3%}, median {np.median(gains):+.3%}, best "
            f"{max(gains):+.2%}; proved the best: {proved}; most memory {max(int(row['memory']) for row in own)} MB; "
            f"longest {max(float(row['wall']) for row in own)} s."
        )
        yield ""


def _gain(row: dict[str, str]) -> float:
    """Return the relative difference from the published score, which is rounded; above zero is better."""
    gain = (float(row["score"]) - float(row["published"])) / abs(float(row["published"]))
    return 0.0 if abs(gain) < ROUNDING else gain


def _against(row: dict[str, str] | None) -> str:
    if row is None:
        return ""
    mark = "*" if row["status"] == "optimal" else ""
    return f"{_gain(row):+.2%}{mark}"


# Growth and size ----------------------------------------------------------------------------------------------


def bic_table(rows: np.ndarray, sizes: np.ndarray, n_near: int = 9, n_sets: int = 100) -> Scores:
    """BIC of the empty set and the best sets of up to 3 parents among those with which a variable shares most."""
    n_rows, count = rows.shape
    starts = np.cumsum([0, *sizes])
    indicators = np.zeros((n_rows, starts[-1]), dtype=np.float32)
    np.put_along_axis(indicators, rows + starts[:-1], 1.0, axis=1)
    together = (indicators.T @ indicators).astype(np.float64)
    parts = np.add.reduceat(np.add.reduceat(_x_log_x(together), starts[:-1], axis=0), starts[:-1], axis=1)
    alone = np.add.reduceat(_x_log_x(np.diag(together)), starts[:-1])
    shared = parts - alone[:, None] - alone[None, :]
    np.fill_diagonal(shared, -np.inf)
    names = [f"v{k}" for k in range(count)]
    scores: Scores = {}
    for k in range(count):
        near = np.argsort(-shared[k])[:n_near].tolist()
        own = {}
        for parents in itertools.chain(*(itertools.combinations(near, size) for size in range(4))):
            counts = _counts(rows, sizes, [*parents, k]), _counts(rows, sizes, parents)
            cells = math.prod(int(sizes[p]) for p in parents)
            penalty = 0.5 * math.log(n_rows) * (sizes[k] - 1) * cells
            own[frozenset(names[p] for p in parents)] = float(
                _x_log_x(counts[0]).sum() - _x_log_x(counts[1]).sum() - penalty
            )
        best = sorted(own, key=own.__getitem__, reverse=True)[: n_sets - 1]
        scores[names[k]] = {frozenset(): own[frozenset()]} | {parents: own[parents] for parents in best}
    return scores


def _x_log_x(x: np.ndarray) -> np.ndarray:
    return x * np.log(np.maximum(x, 1))


def _counts(rows: np.ndarray, sizes: np.ndarray, columns: Any) -> np.ndarray:
    code = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        code = code * sizes[column] + rows[:, column]
    return np.bincount(code)


def growth() -> Iterator[str]:
    yield "| class variables | bounded search, CPU s | score | hill climbing, CPU s | score | bounded search is better by |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for count in GROWTH:
            rows, sizes = random_rows(count, 1000, seed=count)
            path = Path(folder) / f"{count}"
            write_scores(bic_table(rows, sizes), path)
            ours = in_process(path, sizes.tolist(), None, max_treewidth=3)
            peer = in_process(path, sizes.tolist(), HILL_CLIMBING_SECONDS, "hill-climb", max_treewidth=3)
            times.append(ours["cpu"])
            gain = (ours["score"] - peer["score"]) / abs(peer["score"])
            ended = " (ended)" if peer["status"] == "time limit" else ""
            yield (
                f"| {count:,} | {ours['cpu']:.1f} | {ours['score']:.1f} | {peer['cpu']:.1f}{ended} | "
                f"{peer['score']:.1f} | {gain:+.2%} |"
            )
    slope = np.polyfit(np.log(GROWTH), np.log(times), 1)[0]
    yield ""
    yield f"CPU time of the bounded search grows with the number of class variables to the power {slope:.2f}."


def large() -> Iterator[str]:
    rng = np.random.default_rng(0)
    count, total = 1041, 177_691
    names = [f"v{k}" for k in range(count)]
    yield "| bound | limit, s | wall, s | CPU, s | peak memory, MB | status | score |"
    yield "| --- | ---: | ---: | ---: | ---: | --- | ---: |"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large"
        write_scores(_random_table(rng, names, total), path)
        sizes = rng.integers(2, 10, size=count).tolist()
        for seconds in (20, 60):
            for bound in ({"max_treewidth": 5}, {"max_clique_cells": 5000}):
                found = in_process(path, sizes, seconds, **bound)
                argument, value = next(iter(bound.items()))
                yield (
                    f"| {argument}={value} | {seconds} | {found['wall']} | {found['cpu']} | {found['memory']} | "
                    f"{found['status']} | {found['score']:.1f} |"
                )


def _random_table(rng: np.random.Generator, names: list[str], total: int) -> Scores:
    """Random sets of up to 6 parents among the 30 variables next to each one; larger sets tend to score higher."""
    count = len(names)
    scores: Scores = {name: {frozenset(): -100.0} for name in names}
    left = total - count
    while left:
        k = int(rng.integers(count))
        near = [
            (k + int(step)) % count for step in rng.choice(np.r_[-15:0, 1:16], size=rng.integers(1, 7), replace=False)
        ]
        parents = frozenset(names[p] for p in near)
        if parents not in scores[names[k]]:
            scores[names[k]][parents] = -100.0 + 10 * len(parents) + 20 * rng.random()
            left -= 1
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["published", "report", "growth", "large", "task"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, default=KEEP)
    given = parser.parse_args()
    if given.part == "task":
        print(json.dumps(search(json.loads(sys.stdin.read()))))
    elif given.part == "published":
        published(given.seconds, given.jobs, [name for name in given.only.split(",") if name], given.keep)
    else:
        publish({"report": lambda: report(given.keep), "growth": growth, "large": large}[given.part](), None)
