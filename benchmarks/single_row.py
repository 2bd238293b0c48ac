"""Milliseconds that `predict` needs for a single row, and where they go.

    PMDC_DATA=... python benchmarks/single_row.py [--repeats 300] [--out FILE]

The table is rf1 (64 continuous features, 8 class variables), of which a cheap model is fitted on 500 rows. Rows are
asked for one by one, as pandas and polars DataFrames and as arrays. Times are medians (p50) of wall-clock time;
"reading" turns X into numbers and codes, "decoding" makes the container that is returned, "model" is the rest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from reporting import publish

from pmdc import GBNC
from pmdc.datasets import load


def timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    """Return a function that does the same and records the seconds of each call."""

    def call(*args: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            times.append(time.perf_counter() - start)

    return call


def measure(X: Any, Y: Any, repeats: int) -> tuple[float, float, float, float]:
    """Return the medians for predict as a whole, reading, model and decoding, in milliseconds."""
    model = GBNC(max_parents=1).fit(X[:500], Y[:500])
    reading: list[float] = []
    decoding: list[float] = []
    whole: list[float] = []
    model._read = timed(model._read, reading)
    model.class_table_.decode = timed(model.class_table_.decode, decoding)
    predict = timed(model.predict, whole)
    for row in range(500, 500 + repeats):
        predict(X[row : row + 1])
    warm = slice(repeats // 10, None)  # the first calls compile and import
    read, decoded, total = (1000 * np.array(times[warm]) for times in (reading, decoding, whole))
    return tuple(float(np.median(times)) for times in (total, read, total - read - decoded, decoded))


def lines(repeats: int) -> Iterator[str]:
    data = load("rf1")
    X, Y = data.X.astype(float), data.Y
    tables = {
        "pandas": (X, Y),
        "polars": (pl.from_pandas(X), pl.from_pandas(Y)),
        "numpy": (X.to_numpy(), Y.to_numpy()),
    }
    yield "| container | predict, ms | reading | model | decoding |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, (features, classes) in tables.items():
        yield f"| {name} | {' | '.join(f'{ms:.2f}' for ms in measure(features, classes, repeats))} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    publish(lines(given.repeats), given.out)
