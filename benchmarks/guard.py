"""What the guard means: false arcs where there are none, and power where there are some.

    python benchmarks/guard.py null [--fits 200] [--experts]
    python benchmarks/guard.py power [--fits 100] [--experts]

*null*: class variables that are independent given x, beside noise: discrete features of 2 to 250 values, a date, an
identifier; class variables of 2 to 150 states. Printed: how many graphs have an arc between class variables, how many
have an arc from a feature that is noise, and the joint log-loss of new rows against the same model without these
columns. *power*: two binary class variables whose log odds ratio is 0.5 or 1, beside two others, and three numbers.
Without `--experts`, local models are on the features themselves (``experts=None``).
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from pmdc import GBNC


def null_table(rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Return features, class variables that are independent given the first three features, and the noise columns."""
    X = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(3)})
    noise = {}
    for i, values in enumerate(rng.choice([2, 3, 5, 10, 25, 60, 120, 250], size=rng.integers(2, 6), replace=False)):
        weights = rng.dirichlet(np.full(values, 0.5 if rng.random() < 0.5 else 50.0))
        noise[f"d{i}"] = [f"v{v}" for v in rng.choice(values, size=n, p=weights)]
    if rng.random() < 0.5:
        noise["date"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 60, size=n), unit="D")
    if rng.random() < 0.5:
        noise["id"] = rng.permutation(n)
    Y = pd.DataFrame(index=X.index)
    for k in range(int(rng.integers(2, 6))):
        states = int(rng.choice([2, 2, 3, 4, 6, 12, 40, 150], p=[0.2, 0.2, 0.2, 0.15, 0.1, 0.05, 0.05, 0.05]))
        scores = X.to_numpy() @ rng.normal(scale=0.7, size=(3, states)) + rng.normal(scale=0.7, size=states)
        edges = softmax(scores, axis=1).cumsum(axis=1)
        Y[f"y{k}"] = [f"s{s}" for s in np.minimum((rng.random(n)[:, None] > edges).sum(axis=1), states - 1)]
    return pd.concat([X, pd.DataFrame(noise)], axis=1), Y, list(noise)


def power_table(rng: np.random.Generator, n: int, log_odds: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return three features and four binary class variables; y1 depends on y0."""
    X = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(3)})
    Y = pd.DataFrame(
        {f"y{k}": (rng.random(n) < 1 / (1 + np.exp(-0.7 * X.iloc[:, k % 3]))).astype(int) for k in (0, 2, 3)}
    )
    scores = log_odds * (Y["y0"] - 0.5) + 0.7 * X["x1"]
    Y.insert(1, "y1", (rng.random(n) < 1 / (1 + np.exp(-scores))).astype(int))
    return X, Y


def fit(X: pd.DataFrame, Y: pd.DataFrame, experts: bool) -> GBNC:
    return GBNC(experts="auto" if experts else None, random_state=0).fit(X, Y)


def loss(model: GBNC, X: pd.DataFrame, Y: pd.DataFrame) -> float:
    return -float(model.predict_joint(X).log_prob(Y).mean())


def null(fits: int, experts: bool, first: int) -> None:
    found: list[tuple[int, int, int, float]] = []
    started = time.process_time()
    for seed in range(first, first + fits):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([200, 400]))
        X, Y, noise = null_table(rng, n + 1000)
        train = Y[:n]
        seen = pd.concat([Y[name][n:].isin(train[name].unique()) for name in Y], axis=1).all(axis=1)
        test = Y.index[n:][seen]  # states that no training row has are left out
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, plain = fit(X[:n], Y[:n], experts), fit(X[:n].drop(columns=noise), Y[:n], experts)
            difference = loss(model, X.loc[test], Y.loc[test]) - loss(
                plain, X.loc[test].drop(columns=noise), Y.loc[test]
            )
        arcs = list(model.graph_.edges)
        between = sum(parent in Y.columns for parent, _ in arcs)
        plain_arcs = sum(parent in Y.columns for parent, _ in plain.graph_.edges)
        found.append((between, len(arcs) - between, plain_arcs, difference))
        if arcs:
            print(f"seed {seed}, {n} rows, states {Y[:n].nunique().tolist()}: {arcs}", flush=True)
        if len(found) % 20 == 0 or len(found) == fits:
            summarise(np.array(found), time.process_time() - started)


def summarise(table: np.ndarray, seconds: float) -> None:
    shares = [f"{100 * (table[:, i] > 0).mean():.1f} %" for i in range(3)]
    error = table[:, 3].std(ddof=1) / np.sqrt(len(table))
    print(
        f"{len(table)} fits; graphs with an arc between class variables: {shares[0]} ({shares[2]} without the noise columns)"
    )
    print(f"graphs with an arc from a noise column: {shares[1]}")
    print(f"joint log-loss with the noise columns minus without: {table[:, 3].mean():+.4f} ± {error:.4f} nats a row")
    print(f"{seconds:.0f} s of CPU", flush=True)


def power(fits: int, experts: bool, first: int) -> None:
    print("| log odds ratio | rows | true arc found, % | any other arc, % |\n| ---: | ---: | ---: | ---: |")
    for log_odds in (0.5, 1.0):
        for n in (200, 500, 2000, 8000):
            found: list[tuple[bool, bool]] = []
            for seed in range(first, first + fits):
                X, Y = power_table(np.random.default_rng(seed), n, log_odds)
                arcs = {frozenset(arc) for arc in fit(X, Y, experts).graph_.edges}
                true = frozenset({"y0", "y1"})
                found.append((true in arcs, bool(arcs - {true})))
            shares = 100 * np.mean(found, axis=0)
            print(f"| {log_odds} | {n:,} | {shares[0]:.0f} | {shares[1]:.0f} |", flush=True)


def main() -> None:
    parser: Any = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["null", "power"])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--experts", action="store_true")
    given = parser.parse_args()
    (null if given.part == "null" else power)(given.fits, given.experts, given.first)


if __name__ == "__main__":
    main()
