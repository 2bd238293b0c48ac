"""Speed and memory of the search for the best DAG, beside peers in the same run.

    python benchmarks/search.py [--parts gobnilp,dynamic,networks] [--out FILE]

Peers are installed in the environment of the benchmark only; what is not there is left out:

    pip install highspy pygobnilp gurobipy causal-learn pomegranate

Times are CPU seconds of all threads, of which peers have one. Before the clock starts, a small search imports and
compiles what is needed. Wherever two searches prove a best DAG, their scores are the same to 1e-6. Searches that may
take long or much memory run in processes of their own. Compare ratios, which are taken within one run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba import njit
from reporting import peak_memory, publish
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from pmdc.search import find_structure, read_scores, write_scores

AGREEMENT = 1e-6
"""Relative difference of the scores of two DAGs that are both proved to be best."""

LIMIT = 30
"""CPU seconds after which a search on a random network is ended."""

FIRST_SEED = 100
"""Of the random networks; settings of the search were chosen on networks with seeds below, but for what RESULTS.md says."""

NETWORKS = ((25, 2), (40, 2), (60, 2), (100, 2), (25, 3), (40, 3), (60, 3), (100, 3))
"""Class variables and most parents in the score table."""

PATIENCE, MEMORY = 600, 8192
"""CPU seconds and MB for a peer's dynamic program; sizes that would take more are not tried."""

LADDER = range(8, 31, 2)
"""Class variables of the peers' dynamic programs, as far as patience and memory reach."""

SIZES = range(10, 29, 2)
"""Class variables of our dynamic program."""

Scores = dict[str, dict[frozenset[str], float]]

# Score tables of random networks ---------------------------------------------------------------------------


def random_parents(
    rng: np.random.Generator, count: int, fewest: int = 0, most: int = 3, window: int = 10
) -> tuple[np.ndarray, list[list[int]]]:
    """A random order, and for each variable up to `most` parents among the `window` before it."""
    order = rng.permutation(count)
    parents: list[list[int]] = [[] for _ in range(count)]
    for i, k in enumerate(order):
        n_parents = rng.integers(min(i, fewest), min(i, most) + 1)
        near = order[max(0, i - window) : i]
        parents[k] = rng.choice(near, size=min(n_parents, len(near)), replace=False).tolist()
    return order, parents


def random_rows(count: int, n_rows: int, seed: int, fewest: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows drawn from a random discrete network, and the number of states of each variable, 2 or 3.

    Conditional distributions are drawn from a Dirichlet distribution with all parameters 0.5.
    """
    rng = np.random.default_rng(seed)
    order, parents = random_parents(rng, count, fewest)
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


def random_linear_rows(count: int, n_rows: int, seed: int) -> np.ndarray:
    """Rows drawn from a random network of linear regressions with normal noise, centred."""
    rng = np.random.default_rng(seed)
    order, parents = random_parents(rng, count, fewest=1)
    rows = rng.normal(size=(n_rows, count))
    for k in order:
        weights = rng.uniform(0.5, 1.5, len(parents[k])) * rng.choice([-1, 1], len(parents[k]))
        rows[:, k] += rows[:, parents[k]] @ weights
    return rows - rows.mean(axis=0)


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


def undivided(scores: Scores) -> bool:
    """Whether each class variable may be an ancestor of each other. Otherwise our search is one of smaller problems."""
    place = {name: k for k, name in enumerate(scores)}
    edges = np.zeros((len(place), len(place)))
    for child, sets in scores.items():
        for parent in set().union(*sets):
            edges[place[parent], place[child]] = 1
    return connected_components(edges, connection="strong")[0] == 1


def undivided_rows(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first of the random networks with a parent for each variable but the first, and a table that is undivided."""
    every = (random_rows(count, 1000, seed, fewest=1) for seed in itertools.count())
    return next(drawn for drawn in every if undivided(bic_scores(*drawn, 3)))


# Searches in processes of their own ------------------------------------------------------------------------


def ours(method: str) -> Callable[[Scores], tuple[float, str]]:
    def search(scores: Scores) -> tuple[float, str]:
        found = find_structure(scores, method)
        return found.score, found.status

    return search


def plain(name: str) -> Callable[[Scores], tuple[float, str]]:
    def search(scores: Scores) -> tuple[float, str]:
        import prototype

        return total(scores, getattr(prototype, name)(scores)), "optimal"

    return search


SEARCHES = {
    "pmdc": ours("integer-program"),
    "SCIP": plain("by_scip"),
    "HiGHS": plain("by_highs"),
    "local search": ours("local-search"),
    "dynamic program": ours("dynamic-programming"),
}


def total(scores: Scores, parents: dict[str, frozenset[str]]) -> float:
    """The score of a DAG. That it is one is checked, as is that each class variable has a set of the table."""
    left = dict(parents)
    while left:
        first = [name for name, members in left.items() if not members & left.keys()]
        if not first:
            raise AssertionError("not a DAG")
        for name in first:
            del left[name]
    return math.fsum(scores[child][parents[child]] for child in scores)


def agree(first: float, second: float, where: str) -> None:
    if not math.isclose(first, second, rel_tol=AGREEMENT):
        raise AssertionError(f"{where}: {first} and {second} cannot both be best")


def search_in_process(name: str, path: str) -> None:
    """One search, with what it took, as JSON. A small search before imports and compiles what is needed."""
    search = SEARCHES[name]
    rows, sizes = random_rows(6, 200, seed=1)
    search(bic_scores(rows, sizes, 2))
    scores = read_scores(path)
    before = peak_memory()
    start = time.process_time()
    try:
        score, status = search(scores)
    except ValueError as refusal:
        print(json.dumps({"refusal": str(refusal)}))
        return
    taken = time.process_time() - start
    print(json.dumps({"seconds": taken, "score": score, "status": status, "before": before, "peak": peak_memory()}))


def run(*command: object, limit: float = math.inf) -> dict | None:
    """What this script prints last, as JSON, if it is called so; None if it takes more CPU seconds, start included.

    The clock is watched from here: a limit that the process sets for itself makes its own clock tick in 4 ms.
    """
    process = subprocess.Popen([sys.executable, __file__, *map(str, command)], stdout=subprocess.PIPE, text=True)
    while True:
        try:
            output, _ = process.communicate(timeout=1)
            break
        except subprocess.TimeoutExpired:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > limit:
                process.kill()
                process.communicate()
                return None
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed, see above")
    return json.loads(output.splitlines()[-1])


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """The median of five rounds after a first one, fewer if they take more than 5 seconds, and the result."""
    result = work()
    times: list[float] = []
    while len(times) < 5 and sum(times) < 5:
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times)), result


def number(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


# Peers -----------------------------------------------------------------------------------------------------


def gobnilp_search() -> Callable[[Scores], dict[str, frozenset[str]]]:
    """The search of pygobnilp, from a table in memory to a DAG. Raises ImportError if it is not there.

    It is of 2020; since gurobipy 13, `addConstr` takes no (left side, sense, right side) any more, `addLConstr` does.
    """
    import pygobnilp.gobnilp as module
    from gurobipy import Model

    def add_constraint(self, left, sense=None, right=None, name=""):
        if sense is None:
            return Model.addConstr(self, left, name=name)
        return Model.addLConstr(self, left, sense, right, name)

    module.Gobnilp.addConstr = add_constraint
    module.Model = type("Model", (Model,), {"addConstr": add_constraint})  # for the programs that find its cuts

    def search(scores: Scores) -> dict[str, frozenset[str]]:
        with contextlib.redirect_stdout(io.StringIO()):
            model = module.Gobnilp()
            model.learn(local_scores_source=scores, palim=len(scores), end="BN(s)", Threads=1)
        if model.Status != 2:
            raise RuntimeError(f"Gurobi stopped with the status {model.Status}")
        return {name: frozenset(model.learned_bn.predecessors(name)) for name in scores}

    return search


Sets = list[tuple[tuple[int, ...], float]]
Found = tuple[list[Sets], list[tuple[int, ...]], float]
"""Each variable's parent sets with their scores, the parents in the DAG, and the CPU seconds that scoring took."""


def by_pomegranate(rows: np.ndarray) -> Found:
    """Scoring is what happens in `_generate_parent_graph`, the search is what comes after it.

    The first is BIC and the best set within each set of possible parents; the second builds the graph of all subsets
    and finds the shortest path. The pseudocount is there because without it a count of 0 makes a score NaN.
    """
    import pomegranate.bayesian_network as module
    import torch

    torch.set_num_threads(1)
    data, weights = torch.tensor(rows), torch.ones(len(rows), dtype=torch.float64)
    with recorded(module, "_generate_parent_graph") as (tables, seconds):
        parents = module._learn_structure(data, weights, algorithm="exact", max_parents=3, pseudocount=0.5)
    return [list(table.values()) for table in tables], parents, sum(seconds)


def by_causal_learn(method: str, rows: np.ndarray) -> Found:
    """Scoring is what happens in `generate_parent_graph`: BIC of linear regressions, and which sets are dominated."""
    import causallearn.search.ScoreBased.ExactSearch as module

    with recorded(module, "generate_parent_graph") as (tables, seconds):
        adjacency, _ = module.bic_exact_search(rows, search_method=method, max_parents=3)
    parents = [tuple(np.flatnonzero(column).tolist()) for column in adjacency.T]
    return [[(members, -score) for members, score in table] for table in tables], parents, sum(seconds)


@contextlib.contextmanager
def recorded(module: ModuleType, name: str) -> Iterator[tuple[list, list[float]]]:
    """The results of a function of a module and the CPU seconds of each call, as long as this context lasts."""
    function = getattr(module, name)
    results, seconds = [], []

    def call(*args, **kwargs):
        start = time.process_time()
        results.append(function(*args, **kwargs))
        seconds.append(time.process_time() - start)
        return results[-1]

    setattr(module, name, call)
    try:
        yield results, seconds
    finally:
        setattr(module, name, function)


def discrete_rows(count: int) -> np.ndarray:
    return undivided_rows(count)[0]


def linear_rows(count: int) -> np.ndarray:
    return random_linear_rows(count, 1000, seed=0)


PEERS = {
    "pomegranate, `exact`": (discrete_rows, by_pomegranate),
    "causal-learn, `dp`": (linear_rows, partial(by_causal_learn, "dp")),
    "causal-learn, `astar`": (linear_rows, partial(by_causal_learn, "astar")),
}


def peer_in_process(peer: str, count: int) -> None:
    """A peer's search, ours from the peer's own score table, and what both took, as JSON."""
    draw, search = PEERS[peer]
    search(draw(5))
    rows = draw(count)
    start = time.process_time()
    tables, parents, scoring = search(rows)
    seconds = time.process_time() - start
    peak = peak_memory()

    def named(members: tuple[int, ...]) -> frozenset[str]:
        return frozenset(f"v{k}" for k in members)

    scores = {f"v{k}": {named(members): float(score) for members, score in sets} for k, sets in enumerate(tables)}
    theirs = total(scores, {f"v{k}": named(members) for k, members in enumerate(parents)})
    own, found = cpu_seconds(lambda: find_structure(scores, "dynamic-programming"))
    agree(theirs, found.score, f"{peer}, {count} class variables")
    answer = {"scoring": scoring, "search": seconds - scoring, "own": own, "peak": peak, "undivided": undivided(scores)}
    print(json.dumps(answer | {"sets": sum(map(len, scores.values()))}))


# Parts -----------------------------------------------------------------------------------------------------


def gobnilp(args: argparse.Namespace) -> Iterator[str]:
    """Tables that fit the licence of gurobipy as it comes from pip: 2,000 variables and 2,000 constraints."""
    try:
        search = gobnilp_search()
    except ImportError:
        yield "pygobnilp is not here: pip install pygobnilp gurobipy"
        yield ""
        return
    from gurobipy import GurobiError
    from pygobnilp.gobnilp import read_local_scores

    yield (
        "**pygobnilp.** From the score table in memory to the DAG, CPU seconds, the median of 5 random networks; ratios "
        "with their least and most. Reading the score file is apart."
    )
    yield ""
    yield (
        "| class variables | rows | parent sets | pygobnilp | pmdc, auto | ratio | pmdc, integer program | ratio "
        "| reading: pygobnilp | pmdc |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for count, n_rows in itertools.product((8, 16), (1000, 5000)):
        sets, times, too_large = [], [], 0
        for seed in range(5):
            scores = bic_scores(*random_rows(count, n_rows, seed), 3)
            try:
                theirs, parents = cpu_seconds(lambda scores=scores: search(scores))
            except GurobiError as error:
                if "too large" not in str(error):
                    yield f"Gurobi cannot be used: {error}"
                    yield ""
                    return
                too_large += 1
                continue
            row = [theirs]
            for method in ("auto", "integer-program"):
                own, found = cpu_seconds(lambda scores=scores, method=method: find_structure(scores, method))
                agree(total(scores, parents), found.score, f"{method}, {count} class variables, seed {seed}")
                row.append(own)
            with tempfile.TemporaryDirectory() as folder:
                path = f"{folder}/scores"
                write_scores(scores, path)
                row += [
                    cpu_seconds(lambda read=read, path=path: read(path))[0] for read in (read_local_scores, read_scores)
                ]
            times.append(row)
            sets.append(sum(map(len, scores.values())))
        if times:
            median = [number(value) for value in np.median(times, axis=0)]
            ratios = [spread([row[0] / row[own] for row in times]) for own in (1, 2)]
            told = f"{min(sets)} to {max(sets)} | {median[0]} | {median[1]} | {ratios[0]} | {median[2]} | {ratios[1]}"
            yield f"| {count} | {n_rows:,} | {told} | {median[3]} | {median[4]} |"
        if too_large:
            yield f"| {count} | {n_rows:,} | {too_large} of 5 are too large for the licence | | | | | | | |"
    yield ""


def spread(ratios: list[float]) -> str:
    """The median, the least and the most."""
    return f"**{number(float(np.median(ratios)))}** ({number(min(ratios))}, {number(max(ratios))})"


def dynamic(args: argparse.Namespace) -> Iterator[str]:
    """Dynamic programs of peers, on their own scores; then ours alone."""
    yield (
        f"**Dynamic programs.** 1,000 rows, at most 3 parents, CPU seconds; up to {PATIENCE} s and {MEMORY:,} MB. The peer "
        "scores and searches; pmdc searches the same table."
    )
    yield ""
    yield (
        "| peer | class variables | parent sets | its scoring | its search | pmdc's search | ratio of the searches "
        "| with its scoring | its peak memory |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for peer in PEERS:
        package = peer.split(",")[0]
        if installed(package).startswith("no "):
            yield f"| {peer} | is not here: pip install {package} | | | | | | | |"
            continue
        done: list[dict] = []
        for count in LADDER:
            if too_much := predicted(done):
                yield f"| {peer} | {count} | not tried: {too_much} | | | | | | |"
                break
            answer = run("--peer", peer, count, limit=PATIENCE)
            if answer is None:
                yield f"| {peer} | {count} | not done in {PATIENCE} s | | | | | | |"
                break
            done.append(answer)
            own = answer["own"]
            told = " | ".join(number(answer[name]) for name in ("scoring", "search", "own"))
            ratios = f"**{number(answer['search'] / own)}** | {number((answer['search'] + answer['scoring']) / own)}"
            part = "" if answer["undivided"] else ", in parts"
            yield f"| {peer} | {count}{part} | {answer['sets']:,} | {told} | {ratios} | {answer['peak']:,.0f} MB |"
    yield ""
    yield "**Our dynamic program alone.** BIC of random networks, 1,000 rows, at most 3 parents"
    yield ""
    yield "| class variables | parent sets | CPU seconds | memory before | peak |"
    yield "| --- | --- | --- | --- | --- |"
    for count in SIZES:
        scores = bic_scores(*undivided_rows(count), 3)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores"
            write_scores(scores, path)
            answer = run("--search", "dynamic program", path)
        told = f"| {count} | {sum(map(len, scores.values())):,} |"
        if "refusal" in answer:
            yield f"{told} refused: {answer['refusal']} | | |"
        else:
            yield f"{told} {number(answer['seconds'])} | {answer['before']:,.0f} MB | {answer['peak']:,.0f} MB |"
    yield ""


def predicted(done: list[dict]) -> str:
    """What the next size would take too much of, if it grows once more as it did last; nothing if it would not."""
    if len(done) < 2:
        return ""
    before, after = (answer["scoring"] + answer["search"] for answer in done[-2:])
    seconds = after**2 / before
    before, after = (answer["peak"] for answer in done[-2:])
    memory = after + 5 * (after - before)  # about 5 times as many edges between subsets
    if seconds > PATIENCE:
        return f"{number(seconds)} s predicted"
    return f"{number(memory)} MB predicted" if memory > MEMORY else ""


def networks(args: argparse.Namespace) -> Iterator[str]:
    """Exact with proof on random networks, beside plain programs for the same integer program."""
    wanted = args.networks.split(",") if args.networks else [f"{count}:{most}" for count, most in NETWORKS]
    searches = ["pmdc", "SCIP", "HiGHS", "local search"]
    if installed("highspy").startswith("no "):
        searches.remove("HiGHS")
        yield "HiGHS is not here: pip install highspy"
        yield ""
    yield f"**Random networks.** 1,000 rows, BIC, CPU seconds; none has more than {LIMIT:,}"
    yield ""
    yield (
        "| class variables | most parents | seed | parent sets | pmdc | SCIP, plain | ratio | HiGHS, plain | ratio "
        "| local search | its score is below the best by |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for network, seed in itertools.product(wanted, range(FIRST_SEED, FIRST_SEED + args.seeds)):
        count, most = map(int, network.split(":"))
        scores = bic_scores(*random_rows(count, 1000, seed), most)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scores"
            write_scores(scores, path)
            found = {name: run("--search", name, path, limit=LIMIT) for name in searches}
        proved = [answer["score"] for answer in found.values() if answer and answer["status"] == "optimal"]
        best = max(proved, default=math.nan)
        for score in proved:
            agree(score, best, f"{count} class variables, {most} parents, seed {seed}")
        own = found["pmdc"]
        fields = [count, most, seed, f"{sum(map(len, scores.values())):,}", seconds_or_more(own)]
        for name in ("SCIP", "HiGHS"):
            peer = found.get(name)
            fields.append(seconds_or_more(peer) if name in found else "")
            if name in found and own:
                ratio = (peer["seconds"] if peer else LIMIT) / own["seconds"]
                fields.append(f"**{'' if peer else '> '}{number(ratio)}**")
            else:
                fields.append("")
        quick = found["local search"]
        fields += [seconds_or_more(quick), number(best - quick["score"]) if quick else ""]
        if quick and quick["score"] > best + AGREEMENT * abs(best):
            raise AssertionError(f"the local search finds {quick['score']}, above the best, {best}")
        yield f"| {' | '.join(map(str, fields))} |"
    yield ""


def seconds_or_more(answer: dict | None) -> str:
    return number(answer["seconds"]) if answer else f"> {LIMIT}"


PARTS = {"gobnilp": gobnilp, "dynamic": dynamic, "networks": networks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--networks", default=None, help="class variables and most parents, such as 25:2,40:3")
    parser.add_argument("--seeds", type=int, default=3, help="random networks of each kind")
    parser.add_argument("--out", type=Path, default=None, help="also write the tables to this file")
    parser.add_argument("--search", nargs=2, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--peer", nargs=2, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if args.search:
            search_in_process(*args.search)
            return
        if args.peer:
            peer, count = args.peer
            peer_in_process(peer, int(count))
            return
        publish(report(args), args.out)


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
