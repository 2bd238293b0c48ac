"""How long an explanation of one row takes, beside the prediction of as many rows as it evaluates.

    PMDC_DATA=... python benchmarks/explain.py

For each model: CPU seconds of `explain_row` (features; experts), of `explain_difference`, the largest standard error of
a feature, and what the sum of the contributions differs from the log-odds by. Means over two rows and the first
four class variables.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from pmdc import GBNC
from pmdc.datasets import load, make_network
from pmdc.explain import explain_difference, explain_row

N_ROWS = 600
ROWS = (0, 22)


def tables():
    for name in ("flags", "enb", "rf1"):
        data = load(name)
        yield name, data.X[:N_ROWS], data.Y[:N_ROWS], ({"experts": None}, {"time_budget": 30})
    for n in (20, 60):
        data = make_network(N_ROWS, n_class_variables=n, random_state=0)
        yield f"generated, K = {n}", data.X, data.Y, ({"experts": None, "max_parents": 1},)


def measure(model, X, explain, **options):
    seconds, errors, rests = [], [], []
    for name in model.class_names_[:4]:
        for row in ROWS:
            started = time.process_time()
            found = explain(model, X, row, name, **options)
            seconds.append(time.process_time() - started)
            errors.append(max(part.standard_error for part in found.contributions))
            rests.append(abs(found.base + sum(part.contribution for part in found.contributions) - found.log_odds))
    return np.mean(seconds), np.max(errors), np.max(rests)


def main():
    print(
        "| table | features | K | model | explain_row, s | by experts, s | explain_difference, s | largest ± | rest |"
    )
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for name, X, Y, settings in tables():
        for options in settings:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = GBNC(**options).fit(X, Y)
                explain_row(model, X, 0, model.class_names_[0])  # compiles
                row = measure(model, X, explain_row)
                experts = "-"
                if "experts" not in options:
                    experts = f"{measure(model, X, explain_row, by='experts')[0]:.2f}"
                pair = measure(model, X, lambda m, X, row, name: explain_difference(m, X, (row, row + 1), name))
            kind = "experts=None" if "experts" in options else "default, time_budget=30"
            print(
                f"| {name} | {X.shape[1]} | {Y.shape[1]} | {kind} | {row[0]:.2f} | {experts} | {pair[0]:.2f} | "
                f"{row[1]:.3f} | {max(row[2], pair[2]):.0e} |",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
