"""Speed and memory of exact inference on batches, beside peers in the same run.

    python benchmarks/inference.py [--parts rf1,wide,alarm,binary] [--data FOLDER] [--out FILE]

Needs the benchmark table rf1 and the extra "peers". Each peer is first checked: its marginals and the probability of its
most probable outcome must agree with ours to 1e-9. Then all run in turn; a time is the median over rounds. Peers get
probabilities, in the fastest layout, before the clock starts; we get log probabilities. CPU time is that of all threads;
peers use one, because more do not help for a single row. Compare ratios, which are taken within one run.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import numpy as np
from reporting import peak_memory, publish
from threadpoolctl import threadpool_limits

from pmdc.inference import JunctionTree, family_scopes

AGREEMENT = 1e-9
Parents = Sequence[tuple[int, ...]]
Answer = tuple[list[np.ndarray] | None, np.ndarray | None]
"""Marginals and codes of the most probable outcomes; None if not computed."""


class Problem:
    """A network of class variables with log conditional tables for a batch of rows."""

    def __init__(self, sizes: Sequence[int], parents: Parents, tables: Sequence[np.ndarray]):
        self.sizes, self.parents, self.tables = tuple(sizes), [tuple(members) for members in parents], list(tables)
        self.names = [f"v{k}" for k in range(len(sizes))]

    def __len__(self) -> int:
        return len(self.tables[0])

    def some(self, count: int) -> Problem:
        """Return evenly spaced rows."""
        rows = np.linspace(0, len(self) - 1, min(count, len(self))).astype(int)
        return Problem(self.sizes, self.parents, [table[rows] for table in self.tables])

    @cached_property
    def probabilities(self) -> list[np.ndarray]:
        """What peers get; exactly normalised, because they check it."""
        tables = [np.exp(table) for table in self.tables]
        return [table / table.sum(axis=-1, keepdims=True) for table in tables]

    @cached_property
    def tree(self) -> JunctionTree:
        return JunctionTree(self.sizes, family_scopes(self.parents))

    def log_prob(self, codes: np.ndarray) -> np.ndarray:
        every = range(len(codes))
        entries = [table[(every, *codes[:, [*self.parents[k], k]].T)] for k, table in enumerate(self.tables)]
        return np.sum(entries, axis=0)

    def ancestors(self, k: int) -> list[int]:
        """Class variable `k` and all before it: the marginal of `k` does not depend on the others."""
        found = {k}
        waiting = [k]
        while waiting:
            new = set(self.parents[waiting.pop()]) - found
            found |= new
            waiting.extend(new)
        return sorted(found)


def random_problem(rng: np.random.Generator, sizes: Sequence[int], parents: Parents, n_rows: int) -> Problem:
    """Every conditional distribution uniform on the simplex. Made in small pieces, so that only the result is large."""
    tables = []
    for k, members in enumerate(parents):
        table = np.empty((n_rows, *(sizes[p] for p in members), sizes[k]))
        for start in range(0, n_rows, 256):
            weights = rng.exponential(size=table[start : start + 256].shape) + 1e-300
            table[start : start + 256] = np.log(weights / weights.sum(axis=-1, keepdims=True))
        tables.append(table)
    return Problem(sizes, parents, tables)


# Methods ---------------------------------------------------------------------------------------


@dataclass
class Way:
    """One method to answer all rows of a problem. `run` is timed, `prepare` is not."""

    label: str
    problem: Problem
    run: Callable[..., Answer]
    prepare: Callable[[], tuple] = tuple

    def timed(self, at_least: float = 0.0) -> tuple[float, float, Answer]:
        """CPU and wall time of a row in microseconds, and the answer; short work is repeated for some seconds."""
        times, spent = [], 0.0
        while not times or spent < at_least:
            ready = self.prepare()
            wall, cpu = time.perf_counter(), time.process_time()
            answer = self.run(*ready)
            times.append((time.process_time() - cpu, time.perf_counter() - wall))
            spent += times[-1][1]
        cpu, wall = 1e6 * np.median(times, axis=0) / len(self.problem)
        return cpu, wall, answer


def ours(problem: Problem) -> list[Way]:
    tree, tables = problem.tree, problem.tables
    return [
        Way("pmdc", problem, lambda: (tree.marginals(tables), tree.mode(tables)[0])),
        Way("pmdc", problem, lambda: (tree.marginals(tables), None)),
        Way("pmdc", problem, lambda: (None, tree.mode(tables)[0])),
    ]


def by_row(problem: Problem, answer: Callable[[int], tuple[list[np.ndarray], list[int] | None]]) -> Answer:
    marginals, codes = zip(*map(answer, range(len(problem))), strict=True)
    return [np.array(column) for column in zip(*marginals, strict=True)], None if None in codes else np.array(codes)


def pgmpy_network(problem: Problem, row: int):
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    names, sizes = problem.names, problem.sizes
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(names)
    network.add_edges_from((names[p], names[k]) for k, members in enumerate(problem.parents) for p in members)
    for k, (members, table) in enumerate(zip(problem.parents, problem.probabilities, strict=True)):
        columns = table[row].reshape(-1, sizes[k]).T
        before = [names[p] for p in members]
        network.add_cpds(TabularCPD(names[k], sizes[k], columns, before, [sizes[p] for p in members]))
    return network


def pgmpy_ways(problem: Problem) -> list[Way]:
    """A query for each marginal and one for the mode; a query for the joint table; two calibrations of a tree."""
    from pgmpy.inference import BeliefPropagation, VariableElimination

    names = problem.names
    axes = range(len(names))

    def networks() -> list:
        return [pgmpy_network(problem, row) for row in range(len(problem))]

    def engines(kind: type) -> Callable[[], tuple]:
        return lambda: ([kind(network) for network in networks()],)

    def queries(engine) -> tuple[list[np.ndarray], list[int]]:
        marginals = [engine.query([name], show_progress=False).values for name in names]
        best = engine.map_query(names, show_progress=False)
        return marginals, [int(best[name]) for name in names]

    def joint(engine) -> tuple[list[np.ndarray], list[int]]:
        values = engine.query(names, show_progress=False).values
        marginals = [values.sum(axis=tuple(other for other in axes if other != k)) for k in axes]
        return marginals, [int(code) for code in np.unravel_index(values.argmax(), values.shape)]

    def calibrated(engine) -> tuple[list[np.ndarray], list[int]]:
        marginals, codes = {}, {}
        engine.calibrate()
        for clique, belief in engine.get_clique_beliefs().items():
            for name in set(clique) - marginals.keys():
                values = belief.marginalize([other for other in clique if other != name], inplace=False).values
                marginals[name] = values / values.sum()
        engine.max_calibrate()
        for belief in engine.get_clique_beliefs().values():  # right unless there are ties
            best = np.unravel_index(belief.values.argmax(), belief.values.shape)
            codes |= dict(zip(belief.variables, map(int, best), strict=True))
        return [marginals[name] for name in names], [codes[name] for name in names]

    def given(answer: Callable) -> Callable[[list], Answer]:
        return lambda ready: by_row(problem, lambda row: answer(ready[row]))

    def built(kind: type, answer: Callable) -> Callable[[], Answer]:
        return lambda: by_row(problem, lambda row: answer(kind(pgmpy_network(problem, row))))

    ways = []
    for label, kind, answer in [
        ("`VariableElimination`, a query for each marginal, `map_query`", VariableElimination, queries),
        ("`VariableElimination`, one query for the joint table, the rest by numpy", VariableElimination, joint),
        ("`BeliefPropagation`, `calibrate` and `max_calibrate`", BeliefPropagation, calibrated),
    ]:
        ways.append(Way(f"pgmpy {label}; network and engine given", problem, given(answer), engines(kind)))
        ways.append(Way(f"pgmpy {label}; built for each row", problem, built(kind, answer)))
    return ways


def pyagrum_network(problem: Problem):
    """Without tables. Parents are added last first: then a table has our layout and is filled without a copy."""
    import pyagrum as gum

    network = gum.BayesNet()
    for name, size in zip(problem.names, problem.sizes, strict=True):
        network.add(gum.RangeVariable(name, name, 0, size - 1))
    for k, members in enumerate(problem.parents):
        for p in reversed(members):
            network.addArc(p, k)
    return network


def pyagrum_rows(problem: Problem, mode: bool) -> Way:
    """One network, its tables filled anew for each row. An engine does not see that, so it is new for each row.

    In many networks, as small as five binary class variables, `mpe` of pyAgrum 3.3 fails ("Empty tensor").
    """
    import pyagrum as gum

    network = pyagrum_network(problem)
    tensors = [network.cpt(name) for name in problem.names]
    flat = [table.reshape(len(problem), -1) for table in problem.probabilities]

    def answer(row: int) -> tuple[list[np.ndarray], list[int] | None]:
        for tensor, table in zip(tensors, flat, strict=True):
            tensor.fillWith(table[row])
        engine = gum.LazyPropagation(network)
        engine.makeInference()
        marginals = [engine.posterior(k).toarray() for k in range(len(tensors))]
        if not mode:
            return marginals, None
        best = engine.mpe()
        return marginals, [best[name] for name in problem.names]

    label = f"pyAgrum `LazyPropagation`, row by row: tables filled, posteriors{', `mpe`' if mode else ''}"
    return Way(label, problem, lambda: by_row(problem, answer))


def pyagrum_batch(problem: Problem, kind: str) -> Way:
    """The number of the row as one more variable, before all others: marginals of all rows by one propagation."""
    import pyagrum as gum

    n_rows = len(problem)
    network = pyagrum_network(problem)
    network.add(gum.RangeVariable("row", "row", 0, n_rows - 1))
    network.cpt("row").fillWith(1 / n_rows)
    for name in problem.names:
        network.addArc("row", name)

    def run() -> Answer:
        for name, table in zip(problem.names, problem.probabilities, strict=True):
            network.cpt(name).fillWith(table.reshape(-1))
        engine = getattr(gum, kind)(network)
        for name in problem.names:
            engine.addJointTarget({"row", name})
        engine.makeInference()
        marginals = []
        for name in problem.names:
            joint = engine.jointPosterior({"row", name})
            table = joint.toarray()  # its axes are in the reverse order of its names
            marginals.append((table.T if joint.names[0] == "row" else table) * n_rows)
        return marginals, None

    return Way(f"pyAgrum `{kind}`, the row as one more variable, all rows at once", problem, run)


def einsum_way(problem: Problem, label: str, needed: Callable[[int], Sequence[int]]) -> Way:
    """One contraction for each marginal; paths are found before the clock starts."""
    from opt_einsum import contract_expression, get_symbol

    row = get_symbol(len(problem.sizes))

    def indices(members: Sequence[int]) -> str:
        return row + "".join(map(get_symbol, members))

    calls = []
    for k in range(len(problem.sizes)):
        tables = needed(k)
        terms = ",".join(indices((*problem.parents[j], j)) for j in tables)
        shapes = [problem.tables[j].shape for j in tables]
        calls.append((contract_expression(f"{terms}->{indices([k])}", *shapes, optimize="auto-hq"), tables))
    operands = problem.probabilities
    return Way(
        f"opt_einsum, a call for each marginal, all rows at once; {label}",
        problem,
        lambda: ([call(*(operands[j] for j in tables)) for call, tables in calls], None),
    )


# Comparison ------------------------------------------------------------------------------------------------


def difference(way: Way, answer: Answer) -> float:
    """The largest difference of a marginal and of the log probability of a mode from ours, on the same rows."""
    problem, (marginals, codes) = way.problem, answer
    worst = 0.0
    if marginals is not None:
        pairs = zip(marginals, problem.tree.marginals(problem.tables), strict=True)
        worst = max(float(np.abs(theirs - own).max()) for theirs, own in pairs)
    if codes is not None:
        own = problem.tree.mode(problem.tables)[1]
        worst = max(worst, float(np.abs(problem.log_prob(codes) - own).max()))
    return worst


def asked(answer: Answer) -> str:
    return " and ".join(what for what, part in zip(("marginals", "mode"), answer, strict=True) if part is not None)


def compare(problem: Problem, peers: Sequence[Way], rounds: int = 5) -> Iterator[str]:
    """A table of all ways; each peer beside ours for the same question."""
    ways = [*ours(problem), *peers]
    worst, question = [], []
    for way in ways:  # this also compiles and warms up
        *_, answer = way.timed()
        worst.append(difference(way, answer))
        question.append(asked(answer))
        if worst[-1] > AGREEMENT:
            raise AssertionError(f"{way.label}: differs by {worst[-1]:.1e} from ours")
    times = np.array([[way.timed(0.2)[:2] for way in ways] for _ in range(rounds)])
    median = np.median(times, axis=0)
    reference = {question[i]: i for i in range(len(ways) - len(peers))}
    yield "| way | asked for | rows | CPU, µs a row | wall, µs a row | CPU ratio (least, most) | wall ratio | difference |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for i, way in enumerate(ways):
        cells = " | ".join(map(number, median[i]))
        line = f"| {way.label} | {question[i]} | {len(way.problem):,} | {cells} |"
        if i < len(reference):
            yield f"{line} | | |"
        else:
            base = reference[question[i]]
            cpu, wall = map(number, median[i] / median[base])
            each = times[:, i, 0] / times[:, base, 0]
            spread = f"({number(each.min())}, {number(each.max())})"
            yield f"{line} **{cpu}** {spread} | {wall} | {worst[i]:.0e} |"


def number(value: float) -> str:
    """Format with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def headline(what: str, problem: Problem) -> Iterator[str]:
    start = time.process_time()
    tree = JunctionTree(problem.sizes, family_scopes(problem.parents))
    seconds = time.process_time() - start
    cells = sum(table[0].size for table in problem.tables)
    yield f"**{what}.** {tree!r}, compiled in {1e3 * seconds:.1f} ms; {cells:,} numbers in the tables of a row."
    yield ""


# Parts -----------------------------------------------------------------------------------------------------


def rf1(args: argparse.Namespace) -> Iterator[str]:
    """The network learned on the benchmark table rf1, with the tables of 1,000 of its rows."""
    from pmdc import GBNC
    from pmdc.datasets import load
    from pmdc.learners import Logistic, NaiveBayes

    data = load("rf1", args.data_dir)
    train = np.setdiff1d(np.arange(len(data.X)), data.folds[0])
    rows = data.X.iloc[np.linspace(0, len(data.X) - 1, 1000).astype(int)]
    for name, estimator in (("naive Bayes", NaiveBayes()), ("logistic", Logistic())):
        model = GBNC(estimator, criterion="bic", conditioning="partition").fit(data.X.iloc[train], data.Y.iloc[train])
        network = model._network
        problem = Problem(network.sizes, network.class_parents, network.tables(model._read(rows)))
        yield from headline(f"rf1, {name}, {len(problem):,} rows", problem)
        peers = [
            *pgmpy_ways(problem.some(40)),
            pyagrum_rows(problem.some(200), mode=True),
            pyagrum_rows(problem.some(200), mode=False),
            pyagrum_batch(problem, "LazyPropagation"),
            pyagrum_batch(problem, "VariableElimination"),
            einsum_way(problem, "all tables", lambda k, problem=problem: range(len(problem.sizes))),
            einsum_way(problem, "tables of ancestors only", problem.ancestors),
        ]
        yield from compare(problem, peers)
        yield ""


def alarm(args: argparse.Namespace) -> Iterator[str]:
    """The structure of the alarm network, with other random tables in each row."""
    from pgmpy.readwrite import BIFReader

    packed = files("pgmpy") / "utils" / "example_models" / "alarm.bif.gz"
    reader = BIFReader(string=gzip.decompress(packed.read_bytes()).decode())
    place = {name: k for k, name in enumerate(reader.variable_states)}
    sizes = [len(states) for states in reader.variable_states.values()]
    parents = [tuple(place[parent] for parent in reader.variable_parents[name]) for name in place]
    problem = random_problem(np.random.default_rng(0), sizes, parents, 10_000)
    yield from headline(f"alarm, {len(problem):,} rows", problem)
    peers = [
        pyagrum_rows(problem.some(200), mode=False),
        pyagrum_batch(problem, "LazyPropagation"),
        einsum_way(problem, "tables of ancestors only", problem.ancestors),
    ]
    yield from compare(problem, peers)
    yield ""


def binary(args: argparse.Namespace) -> Iterator[str]:
    """Every class variable after the fifth has five parents that are parents of each other: a tree of cliques."""
    rng = np.random.default_rng(0)
    parents: list[tuple[int, ...]] = [tuple(range(k)) for k in range(6)]
    cliques = [(*members, 5) for members in parents[5:]]
    while len(parents) < 174:
        clique = cliques[rng.integers(len(cliques))]
        gone = rng.integers(6)
        parents.append((*clique[:gone], *clique[gone + 1 :]))
        cliques.append((*parents[-1], len(parents) - 1))
    problem = random_problem(rng, [2] * 174, parents, 500)
    yield from headline(f"174 binary class variables, treewidth 5, {len(problem)} rows", problem)
    peers = [pyagrum_rows(problem.some(10), mode=False), pyagrum_batch(problem, "LazyPropagation")]
    yield from compare(problem, peers, rounds=3)
    yield ""


WIDE = {"hardest": 47, "typical": 13}
"""Seeds of 16 class variables with three random parents: of 200, the most cells in all cliques and the median."""


def wide_structure(seed: int) -> list[tuple[int, ...]]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(16).tolist()
    parents: list[tuple[int, ...]] = [()] * 16
    for i, k in enumerate(order):
        parents[k] = tuple(sorted(rng.choice(order[:i], min(i, 3), replace=False).tolist())) if i else ()
    return parents


def wide_rows(seed: int, n_rows: int) -> None:
    """Run in a separate process, to measure its memory."""
    parents = wide_structure(seed)
    rng = np.random.default_rng(0)
    warm = random_problem(rng, [4] * 16, parents, 2)
    for way in ours(warm):
        way.timed()
    before = peak_memory()
    problem = random_problem(rng, [4] * 16, parents, n_rows)
    inputs = sum(table.nbytes for table in problem.tables) / 2**20
    marginals, mode = (way.timed() for way in ours(problem)[1:])
    seconds = [n_rows * 1e-6 * (marginals[i] + mode[i]) for i in range(2)]
    print(
        f"{n_rows:,} | {1e-3 * marginals[0]:.3g} | {1e-3 * mode[0]:.3g} | {seconds[0]:.1f} | {seconds[1]:.1f} | "
        f"{n_rows / seconds[0]:,.0f} | {inputs:,.0f} MB | {before:,.0f} MB | {peak_memory():,.0f} MB"
    )


def wide(args: argparse.Namespace) -> Iterator[str]:
    """Time and memory by number of rows, for large cliques."""
    for name, counts in (("hardest", (1250, 2500, 5000, 10_000)), ("typical", (10_000,))):
        tree = JunctionTree([4] * 16, family_scopes(wide_structure(WIDE[name])))
        yield f"**16 class variables of 4 states, 3 random parents, the {name} of 200 structures.** {tree!r}"
        yield ""
        yield (
            "| rows | marginals, CPU ms a row | mode, CPU ms a row | both, CPU s | both, wall s | rows a CPU second "
            "| inputs | peak before | peak |"
        )
        yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        for count in counts:
            command = [sys.executable, __file__, "--wide-rows", str(WIDE[name]), str(count)]
            yield f"| {subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()} |"
        yield ""


PARTS = {"rf1": rf1, "wide": wide, "alarm": alarm, "binary": binary}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--data", "--data-dir", dest="data_dir", help="benchmark tables; default: PMDC_DATA")
    parser.add_argument("--out", type=Path, default=None, help="also write the tables to this file")
    parser.add_argument("--wide-rows", nargs=2, type=int, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if args.wide_rows:
            wide_rows(*args.wide_rows)
            return
        publish(report(args), args.out)


def report(args: argparse.Namespace) -> Iterator[str]:
    import pyagrum as gum

    gum.setNumberOfThreads(1)  # for one row, more only cost
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pgmpy", "pyagrum", "opt_einsum"))
    yield f"{os.cpu_count()} cores, Python {platform.python_version()}, {packages}"
    yield ""
    for name in args.parts.split(","):
        yield from PARTS[name](args)


if __name__ == "__main__":
    main()
