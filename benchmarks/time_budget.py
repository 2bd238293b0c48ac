"""How well `time_budget` bounds a fit: wall-clock seconds, what was left out, and losses of the rows not fitted.

    PMDC_DATA=... python benchmarks/time_budget.py [--tables a,b] [--settings a,b] [--budgets 5,20,60] [--out FILE]

The table "generated" has 83 discrete features of ten values and eight class variables; others are benchmark tables. Four
fifths of the rows are fitted, and the joint log-loss (nats) is of the others. "over" is the time beyond the budget.
Kernels are compiled before. A budget of "none" is a fit without one.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reporting import publish

from pmdc import GBNC
from pmdc.datasets import load, make_network

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "features": {"experts": None},
    "partition": {"experts": None, "conditioning": "partition"},
}


def generated(n_rows: int = 750, n_features: int = 83, n_values: int = 10, n_classes: int = 8) -> tuple[Any, Any]:
    """Return a table whose class variables depend on five of the features and on each other."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, n_values, size=(n_rows, n_features))
    Y = np.zeros((n_rows, n_classes), dtype=int)
    for k in range(n_classes):
        own = (X[:, k % 5] > n_values // 2).astype(int) + rng.integers(0, 2, n_rows)
        before = Y[:, k - 1] if k else 0
        Y[:, k] = np.where(rng.random(n_rows) < 0.4, before, own)
    features = {f"x{j}": pd.Categorical(column.astype(str)) for j, column in enumerate(X.T)}
    return pd.DataFrame(features), pd.DataFrame({f"y{k}": column.astype(str) for k, column in enumerate(Y.T)})


def row(name: str, setting: str, budget: float | None) -> str:
    X, Y = generated() if name == "generated" else (load(name).X, load(name).Y)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[len(X) // 5 :], order[: len(X) // 5]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.monotonic()
        model = GBNC(**SETTINGS[setting], time_budget=budget).fit(X.iloc[train], Y.iloc[train])
        seconds = time.monotonic() - start
    left_out = [str(w.message).partition("cut short: ")[2].partition(". The model")[0] for w in caught]
    said = " ".join(filter(None, left_out)) or "-"
    loss = -float(np.mean(model.predict_joint(X.iloc[test]).log_prob(Y.iloc[test])))
    over = "-" if budget is None else f"{max(0.0, seconds - budget):.1f}"
    n_sets = sum(map(len, model.scores_.values()))
    return (
        f"| {name} | {setting} | {'none' if budget is None else f'{budget:g}'} | **{seconds:.1f}** | {over} | "
        f"{n_sets} | {loss:.3f} | {said} |"
    )


def lines(tables: Sequence[str], settings: Sequence[str], budgets: Sequence[float | None]) -> Iterator[str]:
    small = make_network(300, random_state=0)
    for setting in SETTINGS.values():  # compiled
        GBNC(**setting).fit(small.X, small.Y).predict(small.X)
    yield "| table | settings | budget, s | fit, s | over, s | parent sets | log-loss | left out or cut short |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"
    for name in tables:
        for setting in settings:
            for budget in budgets:
                yield row(name, setting, budget)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="generated,oes97")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--budgets", default="5,20,60")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    seconds = [None if word == "none" else float(word) for word in given.budgets.split(",")]
    publish(lines(given.tables.split(","), given.settings.split(","), seconds), given.out)
