"""CPU seconds that `fit` and `encode` need to read a large table of string class variables.

    python benchmarks/reading.py [--rows 1000000] [--columns 10] [--out FILE]

Each container holds the same values. "fit" is all that a classifier does before it learns: reading X (one number for
each row) and Y, states, codes. "encode" reads Y once more for a model that exists, as `score` does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from reporting import publish

from pmdc.estimator import MultiDimensionalClassifier
from pmdc.inference.base import BaseDistribution
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows


class Reader(MultiDimensionalClassifier):
    """A classifier that reads its tables and learns nothing."""

    estimator, loss, discrete_features = None, "hamming", "from_dtype"

    def _learn(self, rows: TrainingRows) -> None:
        self.n_rows_ = len(rows)

    def _distribution(self, features: Features) -> BaseDistribution:
        raise NotImplementedError


def containers(n_rows: int, n_columns: int) -> dict[str, Any]:
    """The same random states, five for each class variable, in every kind of container."""
    codes = np.random.default_rng(0).integers(0, 5, size=(n_rows, n_columns))
    words = np.array(["never", "seldom", "sometimes", "often", "always"], dtype=object)[codes]
    names = [f"y{k}" for k in range(n_columns)]
    objects = pd.DataFrame(words, columns=names, dtype=object)
    strings = objects.astype("str")
    return {
        "pandas, object": objects,
        "pandas, str": strings,
        "pandas, category": objects.astype("category"),
        "polars, String": pl.from_pandas(strings),
        "numpy, object": words,
        "numpy, <U9": words.astype(str),
    }


def lines(n_rows: int, n_columns: int) -> Iterator[str]:
    yield f"{n_rows:,} rows, {n_columns} string class variables; CPU seconds"
    yield ""
    yield "| Y | fit | encode |"
    yield "| --- | ---: | ---: |"
    X = np.arange(n_rows, dtype=float)[:, None]
    for name, Y in containers(n_rows, n_columns).items():
        start = time.process_time()
        reader = Reader().fit(X, Y)
        fitted = time.process_time()
        reader.class_table_.encode(Y)
        yield f"| {name} | {fitted - start:.2f} | {time.process_time() - fitted:.2f} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    publish(lines(given.rows, given.columns), given.out)
