"""How much of the default fit is spent outside the engine that fits the local models.

PMDC_DATA=... python benchmarks/fit_overhead.py [table ...]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

from pmdc import GBNC
from pmdc.datasets import load
from pmdc.learners.logistic.logistic import LogisticLearner

ENTRIES = ("fit", "log_likelihood", "log_likelihood_from", "cross_validate", "start")


class Clock:
    """Adds up the CPU time spent in the methods of the engine, nested calls counted once."""

    def __init__(self) -> None:
        self.seconds, self.depth = 0.0, 0

    def watch(self, method):
        def timed(*args, **kwargs):
            start, self.depth = time.process_time(), self.depth + 1
            try:
                return method(*args, **kwargs)
            finally:
                self.depth -= 1
                if not self.depth:
                    self.seconds += time.process_time() - start

        return timed


def main() -> None:
    warnings.simplefilter("ignore")
    clock = Clock()
    for name in ENTRIES:
        setattr(LogisticLearner, name, clock.watch(getattr(LogisticLearner, name)))
    for table in sys.argv[1:] or ("emotions", "scene"):
        data = load(table)
        train = np.setdiff1d(np.arange(len(data.X)), data.folds[0])
        X, Y = data.X.iloc[train], data.Y.iloc[train]
        GBNC(max_parents=1).fit(X[:60], Y[:60])  # compiled
        clock.seconds, start = 0.0, time.process_time()
        GBNC().fit(X, Y)
        total = time.process_time() - start
        outside = 1 - clock.seconds / total
        print(f"{table}: {total:.2f} s of CPU, {clock.seconds:.2f} s in the engine, {outside:.1%} outside", flush=True)


if __name__ == "__main__":
    main()
