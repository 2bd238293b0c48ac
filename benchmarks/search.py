"""Speed of the exact search for the best DAG, beside peers in the same run.

python benchmarks/search.py [--parts networks] [--out FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

from pmdc.search import find_structure, read_scores, write_scores

AGREEMENT = 1e-6
"""Relative difference of the scores of two DAGs that are both proved to be best."""

LIMIT = 600
"""CPU seconds after which a search on a random network is ended."""

NETWORKS = ((25, 2), (40, 2), (60, 2), (100, 2), (25, 3), (40, 3), (60, 3), (100, 3))
"""Class variables and most parents in the score table."""

Scores = dict[str, dict[frozenset[str], float]]

# Score tables of random networks ---------------------------------------------------------------------------


def random_rows(
    count: int, n_rows: int, seed: int, max_parents: int = 3, window: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn from a random discrete network, and the number of states of each variable, 2 or 3.

    The parents of a variable are up to `max_parents` of the `window` variables before it in a random order; its
    conditional distributions are drawn from a Dirichlet distribution with all parameters 0.5.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(count)
    parents: list[list[int]] = [[] for _ in range(count)]
    for i, k in enumerate(order):
        n_parents = rng.integers(0, min(i, max_parents) + 1)
        near = order[max(0, i - window) : i]
        parents[k] = rng.choice(near, size=min(n_parents, len(near)), replace=False).tolist()
    sizes = rng.integers(2, 4, size=count)
    rows = np.zeros((n_rows, count), dtype=np.int64)
    for k in order:
        table = rng.dirichlet(np.full(sizes[k], 0.5), size=math.prod(sizes[parents[k]].tolist()))
        configuration = np.zeros(n_rows, dtype=np.int64)
        for p in parents[k]:
            configuration = configuration * sizes[p] + rows[:, p]
        above = rng.random(n_rows)[:, None] > np.cumsum(table[configuration], axis=1)
        rows[:, k] = np.minimum(above.sum(axis=1), sizes[k] - 1)
    return rows, sizes


def bic_scores(rows: np.ndarray, sizes: np.ndarray, max_parents: int) -> Scores:
    """BIC of all parent sets up to a size, without those that are no better than one of their subsets.

    With L(S) the sum of n log n over the counts n of the joint configurations of S, the log likelihood of a variable k
    with the parents P is L(P and k) - L(P). So L is computed once for each set of variables.
    """
    n_rows, count = rows.shape
    data = np.ascontiguousarray(rows.T.astype(np.int32))
    n_log_n = np.arange(n_rows + 1) * np.log(np.maximum(np.arange(n_rows + 1), 1))
    keys, values = [], []
    for size in range(max_parents + 2):
        sets = combinations(count, size)
        keys.append(key(sets, count))
        values.append(_sums_n_log_n(data, sizes, sets, n_log_n))

    names = [f"v{k}" for k in range(count)]
    scores: Scores = {}
    for k in range(count):
        best_within: dict[int, np.ndarray] = {}  # of each set of the size before, the best score of it and its subsets
        scores[names[k]] = {}
        for size in range(max_parents + 1):
            others = combinations(count - 1, size)
            sets = others + (others >= k)
            together = np.sort(np.column_stack([sets, np.full(len(sets), k)]), axis=1)
            score = values[size + 1][np.searchsorted(keys[size + 1], key(together, count))]
            score = score - values[size][np.searchsorted(keys[size], key(sets, count))]
            score -= 0.5 * np.log(n_rows) * (sizes[k] - 1) * np.prod(sizes[sets], axis=1)
            below = np.full(len(sets), -np.inf)
            if size:
                smaller = key(combinations(count - 1, size - 1), count)
                for i in range(size):
                    place = np.searchsorted(smaller, key(np.delete(others, i, axis=1), count))
                    np.maximum(below, best_within[size - 1][place], out=below)
            best_within[size] = np.maximum(below, score)
            for i in np.flatnonzero(score > below):
                scores[names[k]][frozenset(names[p] for p in sets[i])] = float(score[i])
    return scores


def combinations(count: int, size: int) -> np.ndarray:
    """All sets of a size in lexicographic order, one in each row."""
    members = itertools.chain.from_iterable(itertools.combinations(range(count), size))
    return np.fromiter(members, dtype=np.int64).reshape(math.comb(count, size), size)


def key(sets: np.ndarray, count: int) -> np.ndarray:
    """One number for each set, in the same order."""
    return sets @ count ** np.arange(sets.shape[1] - 1, -1, -1)


@njit(cache=True)
def _sums_n_log_n(data: np.ndarray, sizes: np.ndarray, sets: np.ndarray, n_log_n: np.ndarray) -> np.ndarray:
    n_rows, width = data.shape[1], sets.shape[1]
    result = np.empty(len(sets))
    start = np.zeros(n_rows, dtype=np.int32)  # the configuration of all members but the last
    for t in range(len(sets)):
        if t == 0 or np.any(sets[t, :-1] != sets[t - 1, :-1]):
            start[:] = 0
            cells = 1
            for j in range(width - 1):
                cells *= sizes[sets[t, j]]
                start = start * np.int32(sizes[sets[t, j]]) + data[sets[t, j]]
        if width == 0:
            result[t] = n_log_n[n_rows]
            continue
        last = sets[t, width - 1]
        counts = np.zeros(cells * sizes[last], dtype=np.int32)
        factor, column = np.int32(sizes[last]), data[last]
        for i in range(n_rows):
            counts[start[i] * factor + column[i]] += 1
        total = 0.0
        for n in counts:
            total += n_log_n[n]
        result[t] = total
    return result


# Searches in processes of their own ------------------------------------------------------------------------


def ours(method: str):
    def search(scores: Scores) -> tuple[float, str]:
        found = find_structure(scores, method)
        return found.score, found.status

    return search


def prototype(name: str):
    def search(scores: Scores) -> tuple[float, str]:
        import prototype

        parents = getattr(prototype, name)(scores)
        if not acyclic(parents):
            raise AssertionError(f"{name} gives a cycle")
        return math.fsum(scores[child][members] for child, members in parents.items()), "optimal"

    return search


SEARCHES = {
    "pmdc": ours("integer-program"),
    "SCIP": prototype("by_scip"),
    "HiGHS": prototype("by_highs"),
    "local search": ours("local-search"),
    "dynamic program": ours("dynamic-programming"),
}


def acyclic(parents: dict[str, frozenset[str]]) -> bool:
    left = dict(parents)
    while left:
        first = [name for name, members in left.items() if not members & left.keys()]
        if not first:
            return False
        for name in first:
            del left[name]
    return True


def search_in_process(name: str, path: str, limit: int) -> None:
    """One search, with what it took, as JSON. A small search before imports and compiles what is needed."""
    search = SEARCHES[name]
    rows, sizes = random_rows(6, 200, seed=1)
    search(bic_scores(rows, sizes, 2))
    scores = read_scores(path)
    before = peak_memory()
    start = time.process_time()
    seconds = math.ceil(start) + limit
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    try:
        score, status = search(scores)
    except ValueError as refusal:
        print(json.dumps({"refusal": str(refusal)}))
        return
    taken = time.process_time() - start
    print(json.dumps({"seconds": taken, "score": score, "status": status, "before": before, "peak": peak_memory()}))


def run(name: str, path: Path, limit: int = LIMIT) -> dict | None:
    """What `search_in_process` prints; None if it is not done within so many CPU seconds."""
    command = [sys.executable, __file__, "--search", name, str(path), str(limit)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == -signal.SIGXCPU:
        return None
    done.check_returncode()
    return json.loads(done.stdout.splitlines()[-1])


def peak_memory() -> float:
    """Peak of this process in MB. Unlike that of `getrusage`, it does not begin with the peak of the parent process."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def number(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# Parts -----------------------------------------------------------------------------------------------------


def networks(args: argparse.Namespace) -> Iterator[str]:
    """Exact with proof on random networks, beside plain programs for the same integer program."""
    yield f"**Random networks.** 1,000 rows, BIC, CPU seconds; at most {LIMIT:,}"
    yield ""
    yield (
        "| class variables | most parents | parent sets | pmdc | SCIP, plain | ratio | HiGHS, plain | ratio "
        "| local search | its distance from the best |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for count, max_parents in NETWORKS:
        if args.networks and f"{count}:{max_parents}" not in args.networks.split(","):
            continue
        scores = bic_scores(*random_rows(count, 1000, seed=0), max_parents)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores"
            write_scores(scores, path)
            found = {name: run(name, path) for name in ("pmdc", "SCIP", "HiGHS", "local search")}
        proved = {name: answer["score"] for name, answer in found.items() if answer and answer["status"] == "optimal"}
        best = max(proved.values(), default=math.nan)
        for name, score in proved.items():
            if not math.isclose(score, best, rel_tol=AGREEMENT):
                raise AssertionError(
                    f"{count} class variables, {max_parents} parents: {name} proves {score}, not {best}"
                )
        fields = [str(count), str(max_parents), f"{sum(map(len, scores.values())):,}"]
        own = found["pmdc"]
        fields.append(number(own["seconds"]) if own else f"> {LIMIT}")
        for name in ("SCIP", "HiGHS"):
            peer = found[name]
            fields.append(number(peer["seconds"]) if peer else f"> {LIMIT}")
            ratio = (peer["seconds"] if peer else LIMIT) / own["seconds"] if own else math.nan
            fields.append(f"{'' if peer else '> '}**{number(ratio)}**" if own else "")
        quick = found["local search"]
        fields += [number(quick["seconds"]), f"{max(0.0, best - quick['score']):.3g}"]
        yield f"| {' | '.join(fields)} |"
    yield ""


PARTS = {"networks": networks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--networks", default=None, help="some of the random networks only, such as 25:2,40:3")
    parser.add_argument("--out", type=Path, default=None, help="also write the tables to this file")
    parser.add_argument("--search", nargs=3, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if args.search:
            name, path, limit = args.search
            search_in_process(name, path, int(limit))
            return
        lines = []
        for line in report(args):
            print(line, flush=True)
            lines.append(line)
    if args.out:
        args.out.write_text("\n".join(lines), encoding="utf-8")


def report(args: argparse.Namespace) -> Iterator[str]:
    packages = ("numpy", "pyscipopt", "highspy", "pygobnilp", "gurobipy", "pomegranate", "causal-learn")
    yield f"{os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(map(installed, packages))}"
    yield ""
    for name in args.parts.split(","):
        yield from PARTS[name](args)


def installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


if __name__ == "__main__":
    main()
