"""What the graph costs beside its experts: CPU of fits and predictions, and sizes of saved models.

    PMDC_DATA=... python benchmarks/expert_cost.py [--tables a,b] [--max-rows N] [--out FILE]

"experts alone" is ``GBNC(max_parents=0)``: the same experts and local models without a graph, which is binary relevance
with these experts. "fit" is the CPU time of ``GBNC()`` on the training rows of fold 0, "times" its multiple of the
experts alone. Prediction is ``predict_proba`` of the test rows of the fold, per row; the file is that of `pmdc.save`.
Losses (Hamming and subset 0/1 in percent, joint log-loss in nats) are of these test rows.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reporting import publish

import pmdc
from pmdc import GBNC
from pmdc.datasets import load, make_network
from pmdc.evaluation.held_out import evaluate

TABLES = ("edm", "enb", "flags", "emotions", "thyroid", "rf1", "adult", "waterquality", "oes97", "scm20d")


def cpu(function: Any, *arguments: Any) -> tuple[Any, float]:
    start = time.process_time()
    return function(*arguments), time.process_time() - start


def row(name: str, max_rows: int | None) -> str:
    data = load(name)
    test = data.folds[0]
    train = np.setdiff1d(np.arange(len(data.X)), test)
    if max_rows is not None and len(train) > max_rows:
        train = np.sort(np.random.default_rng(0).permutation(train)[:max_rows])
    X, Y = data.X.iloc[train], data.Y.iloc[train]
    alone, base = cpu(GBNC(max_parents=0).fit, X, Y)
    model, own = cpu(GBNC().fit, X, Y)
    _, alone_predict = cpu(alone.predict_proba, data.X.iloc[test])
    _, predict = cpu(model.predict_proba, data.X.iloc[test])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.skops")
        pmdc.save(model, path)
        size = os.path.getsize(path)
    held_out = evaluate(model, data.X.iloc[test], data.Y.iloc[test])
    known = (held_out.truth >= 0).all(axis=1)
    assert held_out.log_prob is not None
    losses = (
        100 * held_out.wrong("hamming").mean(),
        100 * held_out.wrong("subset").any(axis=1).mean(),
        -held_out.log_prob[known].mean(),
    )
    n = len(test) / 1000
    return (
        f"| {name} | {len(train):,} | {Y.shape[1]} | {base:.1f} | {own:.1f} | **{own / base:.2f}** | "
        f"{alone_predict / n:.2f} | {predict / n:.2f} | {size / 1e6:.1f} | "
        f"{losses[0]:.2f} / {losses[1]:.1f} / {losses[2]:.3f} |"
    )


def lines(tables: list[str], max_rows: int | None) -> Iterator[str]:
    small = make_network(300, random_state=0)
    GBNC().fit(small.X, small.Y).predict(small.X)  # compiled
    yield "| table | rows | K | experts alone, s | fit, s | times | predict alone, ms | predict, ms | file, MB | losses |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    for name in tables:
        yield row(name, max_rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--max-rows", type=int)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    publish(lines(given.tables.split(","), given.max_rows), given.out)
