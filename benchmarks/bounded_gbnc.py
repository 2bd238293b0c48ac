"""What a bound on the treewidth costs in log-loss and saves in query time, on tables sampled from known networks.

    python benchmarks/bounded_gbnc.py [--networks win95pts:40,hailfinder:30] [--seeds 3] [--bounds 2,3,5] [--out FILE]

Needs the extra "peers". For each seed, rows are drawn from the network, and class variables and discrete features from
its variables. Each bound and no bound ("none") learn from the same rows, with the paper's score, BIC, and naive Bayes as
the local model: the features are parents, so each part is a table of counts. The joint log-loss (nats a row) is that of
held-out rows; "more" is by how much it exceeds that without a bound, with its standard error over the seeds. The query
is `predict_proba` for all held-out rows: CPU time a row, the least of five. All other numbers are means over the seeds.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from reporting import publish

from pmdc import GBNC
from pmdc.learners import NaiveBayes

N_FEATURES, N_QUERIES = 2, 5
SETTINGS = {
    "experts": None,
    "criterion": "bic",
    "conditioning": "partition",
    "max_parents": 3,
    "max_discrete_parents": 1,
}


class Result(NamedTuple):
    """One fit."""

    width: int
    cells: int
    log_loss: float
    microseconds: float
    """CPU time of a query, for each row."""
    fit_seconds: float


def sample(name: str, n_rows: int, seed: int) -> pd.DataFrame:
    """Draw rows from a network that comes with pgmpy."""
    import pyagrum as gum

    packed = files("pgmpy") / "utils" / "example_models" / f"{name}.bif.gz"
    with tempfile.NamedTemporaryFile(suffix=".bif") as file:
        file.write(gzip.decompress(packed.read_bytes()))
        file.flush()
        network = gum.loadBN(file.name)
    gum.initRandom(seed + 1)  # 0 is a random seed
    generator = gum.BNDatabaseGenerator(network)
    generator.drawSamples(n_rows)
    drawn = generator.to_pandas()
    return drawn[sorted(drawn.columns)]


def draw_columns(table: pd.DataFrame, n_classes: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return features and class variables, drawn from the columns with at least two states."""
    varying = [name for name in table.columns if table[name].nunique() > 1]
    chosen = np.random.default_rng(seed).permutation(varying)[: n_classes + N_FEATURES]
    return table[list(chosen[:N_FEATURES])], table[list(chosen[N_FEATURES:])]


def run(X: pd.DataFrame, Y: pd.DataFrame, n_train: int, bound: int | None, max_sets: int, seed: int) -> Result:
    """Fit on the first rows; measure on the others."""
    model = GBNC(NaiveBayes(), **SETTINGS, max_candidates=max_sets, max_treewidth=bound, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # max_candidates
        start = time.monotonic()
        model.fit(X[:n_train], Y[:n_train])
        fit_seconds = time.monotonic() - start
        test = X[n_train:]
        seconds = min(query_time(model, test) for _ in range(N_QUERIES))
        known = [column.isin(Y[name][:n_train]) for name, column in Y[n_train:].items()]
        seen = np.logical_and.reduce(known)  # rows with a state that training rows lack have no log-loss
        log_loss = -float(np.mean(model.predict_joint(test[seen]).log_prob(Y[n_train:][seen])))
    tree = model._junction_tree
    return Result(tree.width, tree.cells, log_loss, 1e6 * seconds / len(test), fit_seconds)


def query_time(model: GBNC, X: pd.DataFrame) -> float:
    """Return the CPU seconds of `predict_proba`."""
    start = time.process_time()
    model.predict_proba(X)
    return time.process_time() - start


def lines(given: argparse.Namespace) -> Iterator[str]:
    bounds: Sequence[int | None] = [None, *map(int, given.bounds.split(","))]
    yield f"{given.rows} training and {given.test} test rows, {given.seeds} seeds, at most {given.max_sets} parent sets."
    yield ""
    yield "| network | class variables | bound | width | cells | log-loss | more | query, us a row | fit, s |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, n_classes in (word.split(":") for word in given.networks.split(",")):
        results: dict[int | None, list[Result]] = {bound: [] for bound in bounds}
        for seed in range(given.seeds):
            X, Y = draw_columns(sample(name, given.rows + given.test, seed), int(n_classes), seed)
            for bound in bounds:
                results[bound].append(run(X, Y, given.rows, bound, given.max_sets, seed))
        for bound in bounds:
            yield line(name, n_classes, bound, results)


def line(name: str, n_classes: str, bound: int | None, results: dict[int | None, list[Result]]) -> str:
    mean = Result(*np.mean(results[bound], axis=0))
    more = np.array([own.log_loss - free.log_loss for own, free in zip(results[bound], results[None], strict=True)])
    error = more.std(ddof=1) / len(more) ** 0.5 if len(more) > 1 else float("nan")
    compared = "-" if bound is None else f"{more.mean():+.3f} ± {error:.3f}"
    return (
        f"| {name} | {n_classes} | {'none' if bound is None else bound} | {mean.width:.1f} | {mean.cells:,.0f} | "
        f"{mean.log_loss:.3f} | {compared} | {mean.microseconds:.1f} | {mean.fit_seconds:.1f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="win95pts:40,hailfinder:30,andes:50", help="networks and class variables")
    parser.add_argument("--bounds", default="2,3,5")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--max-sets", type=int, default=20_000, help="max_candidates")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    publish(lines(options), options.out)
