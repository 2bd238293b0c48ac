"""Speed of the local models and of prediction, each beside a peer in the same run.

    python benchmarks/local_models.py [--data FOLDER] [--only logistic,naive-bayes,predict,growth,memory,profile,jobs]

Needs the benchmark table rf1 and the extra "peers". Times are CPU seconds of one thread unless said otherwise; ratios
are what to compare between machines. The results kept in `RESULTS.md` were printed by this program.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import os
import pstats
import resource
import subprocess
import sys
import time
import warnings
from functools import partial

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from pmdc import GBNC
from pmdc.candidates.families import Family
from pmdc.candidates.ranking import rank_parents
from pmdc.datasets import load, make_network
from pmdc.learners import Logistic, NaiveBayes, make_learner
from pmdc.learners.clones import EstimatorLearner
from pmdc.learners.inputs import Affine
from pmdc.learners.protocols import WarmStart
from pmdc.learners.tasks import local_task
from pmdc.scores.fitter import Fitter
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

PAPER = {"criterion": "bic", "conditioning": "partition"}
"""The paper's score and models, which every parent set of this benchmark has."""


def cpu(work):
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


class Table:
    """Continuous features and class variables as the learners see them, with all parent sets."""

    def __init__(self, X, codes, sizes, max_parents=3):
        self.features = Features(np.asarray(X, dtype=float), np.empty((len(X), 0), dtype=np.int64))
        self.codes, self.sizes = np.asfortranarray(codes, dtype=np.int64), tuple(sizes)
        self.weights = np.ones(len(codes))
        self.rows = TrainingRows(
            self.features, self.codes, self.sizes, (), self.weights, False, np.arange(len(codes)), len(codes)
        )
        self.levels = [
            [
                (child, parents)
                for child in range(len(sizes))
                for parents in itertools.combinations([v for v in range(len(sizes)) if v != child], size)
            ]
            for size in range(max_parents + 1)
        ]

    @property
    def sets(self):
        return [pair for level in self.levels for pair in level]

    def task(self, child, parents):
        return local_task(child, Family(parents), self.codes, self.sizes)

    def learner(self, estimator):
        return make_learner(estimator, self.features, self.weights)

    def loop(self, estimator, standardised):
        X = self.features.continuous
        inputs = (
            Features(Affine.standard(X, self.weights)(X), self.features.discrete) if standardised else self.features
        )
        return EstimatorLearner(estimator, inputs, self.weights)

    def score_all(self, learner):
        """What `GBNC` does in phase P1, without pruning: level by level, each family from the coarser one."""
        fitter = Fitter.of(self.rows, learner, rank_parents(self.rows))
        values, starts = {}, {}
        for child, parents in self.sets:
            task, family = self.task(child, parents), Family(parents)
            if isinstance(learner, WarmStart):
                start = starts.get((child, fitter.coarser(child, family)))
                values[child, parents], starts[child, family] = learner.log_likelihood_from(task, start)
            else:
                values[child, parents] = learner.log_likelihood(task)
        return values


def rf1(data_dir):
    data = load("rf1", data_dir)
    train = np.setdiff1d(np.arange(len(data.X)), data.folds[0])
    codes = np.column_stack([data.Y[name].cat.codes for name in data.Y])
    sizes = [len(data.Y[name].cat.categories) for name in data.Y]
    return data, train, Table(data.X.to_numpy()[train], codes[train], sizes)


def sample(table, count):
    """Some parent sets, from every level as many as its share."""
    rng = np.random.default_rng(0)
    total = len(table.sets)
    chosen = []
    for level in table.levels:
        number = max(1, round(count * len(level) / total))
        chosen.append([level[i] for i in rng.choice(len(level), number, replace=False)])
    return chosen


def against_loop(name, table, estimator, peer, standardised, count=48):
    learner = table.learner(estimator)
    learner.log_likelihood(table.task(*table.sets[0]))  # compiled before the clock starts
    loop = table.loop(peer, standardised)
    rounds, peer_rounds, worst = [], [], 0.0
    for _ in range(2):  # in turns, because the machine may not be ours alone
        seconds, values = cpu(lambda: table.score_all(learner))
        rounds.append(seconds)
        estimate = 0.0
        for level, some in zip(table.levels, sample(table, count), strict=True):
            spent, answers = cpu(lambda some=some: [loop.log_likelihood(table.task(*pair)) for pair in some])
            estimate += spent / len(some) * len(level)
            worst = max(worst, *(abs(values[p] - a) / abs(a) for p, a in zip(some, answers, strict=True)))
        peer_rounds.append(estimate)
    ours, theirs = min(rounds), min(peer_rounds)
    n_sets = len(table.sets)
    print(f"{name}: {n_sets} parent sets, {table.features.continuous.shape[0]} rows")
    print(
        f"  pmdc  {ours:8.2f} s CPU  ({1e3 * ours / n_sets:.1f} ms a set; both rounds {rounds[0]:.2f}, {rounds[1]:.2f})"
    )
    print(
        f"  loop  {theirs:8.2f} s CPU, extrapolated from {count} sets ({peer!r}; {peer_rounds[0]:.1f}, {peer_rounds[1]:.1f})"
    )
    print(f"  ratio {theirs / ours:8.1f}   greatest relative difference of a log-likelihood {worst:.1e}")


def logistic(args):
    _, _, table = rf1(args.data_dir)
    against_loop("logistic, rf1", table, Logistic(), LogisticRegression(solver="newton-cholesky", max_iter=1000), True)


def naive_bayes(args):
    _, _, table = rf1(args.data_dir)
    against_loop("naive Bayes, rf1", table, NaiveBayes(), GaussianNB(), False)


def predict(args):
    """Both decisions for the test fold, beside a network built and queried for each row."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

    class OneByOne(GaussianNB):
        """Takes the generic path: one scikit-learn classifier for each configuration."""

    data, train, _ = rf1(args.data_dir)
    rows = data.X.iloc[data.folds[0]]
    model = GBNC(NaiveBayes(), **PAPER).fit(data.X.iloc[train], data.Y.iloc[train])
    plain = GBNC(OneByOne(), **PAPER).fit(data.X.iloc[train], data.Y.iloc[train])
    names = list(data.Y)

    def both(X):
        joint = model.predict_joint(X)
        return [p.argmax(axis=1) for p in joint.marginals()], joint.mode_codes()[0]

    def by_pgmpy(parents, tables):
        network = DiscreteBayesianNetwork([(names[p], names[k]) for k, before in enumerate(parents) for p in before])
        network.add_nodes_from(names)
        for k, (before, table) in enumerate(zip(parents, tables, strict=True)):
            values = np.exp(table[0]).reshape(-1, table.shape[-1]).T
            values = values / values.sum(axis=0)
            sizes = [len(model.classes_[p]) for p in before]
            network.add_cpds(
                TabularCPD(names[k], values.shape[0], values, evidence=[names[p] for p in before], evidence_card=sizes)
            )
        query = VariableElimination(network)
        marginal = [int(query.query([name], show_progress=False).values.argmax()) for name in names]
        joint = query.map_query(names, show_progress=False)
        return marginal, [int(joint[name]) for name in names]

    both(rows[:2])
    ours = []
    for _ in range(3):
        seconds, (marginal, joint) = cpu(lambda: both(rows))
        ours.append(seconds / len(rows))
    some = np.linspace(0, len(rows) - 1, 20).astype(int)
    parents = plain._network.class_parents
    each = [plain._network.tables(plain._read(rows.iloc[[row]])) for row in some]
    local = cpu(lambda: [plain._network.tables(plain._read(rows.iloc[[row]])) for row in some])[0] / len(some)
    queries, answers = cpu(lambda: [by_pgmpy(parents, tables) for tables in each])
    queries /= len(some)
    agree = [
        [int(p[row]) for p in marginal] == answer[0] and joint[row].tolist() == answer[1]
        for row, answer in zip(some, answers, strict=True)
    ]
    best = min(ours)
    print(f"prediction, rf1 test fold, {len(rows)} rows, both losses, naive Bayes")
    print(f"  pmdc  {1e3 * best:8.3f} ms CPU a row ({', '.join(f'{1e3 * t:.3f}' for t in ours)})")
    print(
        f"  peer  {1e3 * (local + queries):8.1f} ms CPU a row, {len(some)} rows: local models by scikit-learn {1e3 * local:.1f}, "
    )
    print(
        f"        network and queries by pgmpy {1e3 * queries:.1f}; both answers the same in {np.mean(agree):.0%} of the rows"
    )
    print(
        f"  ratio {(local + queries) / best:8.0f}   ({queries / best:.0f} against pgmpy alone, conditional tables given)"
    )


def growth(args):
    """Exponents of the CPU time when rows, features or parent sets double."""
    for name, estimator in (("logistic", Logistic()), ("naive Bayes", NaiveBayes())):

        def spent(n_rows, n_features, n_classes, estimator=estimator):
            data = make_network(
                n_rows, n_class_variables=n_classes, n_states=3, n_continuous=n_features, n_discrete=0, random_state=0
            )
            codes = np.column_stack([data.Y[column].cat.codes for column in data.Y])
            table = Table(data.X, codes, [3] * n_classes, max_parents=2)
            learner = table.learner(estimator)
            learner.log_likelihood(table.task(*table.sets[0]))
            return cpu(lambda: table.score_all(learner))[0], len(table.sets)

        base = {"n_rows": 4000, "n_features": 32, "n_classes": 6}
        start = spent(**base)
        for what, doubled in (
            ("rows", {"n_rows": 8000}),
            ("features", {"n_features": 64}),
            ("parent sets", {"n_classes": 8}),
        ):
            after = spent(**(base | doubled))
            factor = after[1] / start[1] if what == "parent sets" else 2.0
            exponent = np.log(after[0] / start[0]) / np.log(factor)
            print(f"growth, {name}, {what} x {factor:.2g}: exponent of CPU time {exponent:.2f}")


MEMORY = """
import sys, time, warnings
from pathlib import Path
import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from pmdc import GBNC
from pmdc.datasets import load, make_network
from pmdc.learners import Logistic, NaiveBayes
warnings.simplefilter("ignore")
what, estimator, parents, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
if what == "rf1":
    data = load("rf1", folder or None)
    train = np.setdiff1d(np.arange(len(data.X)), data.folds[0])
    X, Y = data.X.iloc[train], data.Y.iloc[train]
else:
    data = make_network(10_000, n_class_variables=16, n_states=3, n_continuous=280, n_discrete=0, random_state=0)
    X, Y = data.X, data.Y
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
before = peak()
GBNC({"logistic": Logistic, "naive-bayes": NaiveBayes}[estimator](), max_parents=parents, criterion="bic", conditioning="partition").fit(X, Y)
print(f"{before:.0f} MB before fit, {peak():.0f} MB at its peak, {time.process_time():.0f} s CPU")
"""


def memory(args):
    cases = [("rf1", "logistic", 3), ("rf1", "naive-bayes", 3)]
    cases += [("16 x 280 x 10000", "naive-bayes", 3), ("16 x 280 x 10000", "logistic", 1)]
    for what, estimator, parents in cases:
        command = [sys.executable, "-c", MEMORY, what, estimator, str(parents), args.data_dir or ""]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"memory, {what}, {estimator}, max_parents={parents}: {done.stdout.strip()}", flush=True)


def jobs(args):
    """Wall and CPU time of the default fit with one worker, two threads and two processes; the machine must be free."""
    for name, estimator, n_rows in (("logistic", Logistic(C="auto"), 2_000), ("naive Bayes", NaiveBayes(), 20_000)):
        data = make_network(n_rows, n_class_variables=8, n_continuous=40, n_discrete=0, random_state=0)
        GBNC(estimator, max_parents=1).fit(data.X[:60], data.Y[:60])  # compiled
        scores = set()
        for backend, n_jobs in (("loky", 1), ("threading", 2), ("loky", 2)):
            wall, cpu_time = time.perf_counter(), total_cpu()
            with joblib.parallel_config(backend):
                scores.add(GBNC(estimator, n_jobs=n_jobs).fit(data.X, data.Y).structure_.score)
            get_reusable_executor().shutdown(wait=True)  # the CPU time of children counts once they have ended
            wall, cpu_time = time.perf_counter() - wall, total_cpu() - cpu_time
            print(f"workers, {name}, {n_rows} rows, {n_jobs} x {backend}: {wall:.1f} s wall, {cpu_time:.1f} s CPU")
        print(f"  same score to the bit: {len(scores) == 1}")


def total_cpu():
    """CPU time of this process and of its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def profile(args):
    """Where a fit on rf1 spends its time: own time of functions, compiled ones counted as one call."""
    data, train, _ = rf1(args.data_dir)
    X, Y = data.X.iloc[train], data.Y.iloc[train]
    for name, estimator in (("logistic", Logistic()), ("naive Bayes", NaiveBayes())):
        GBNC(estimator, max_parents=1, **PAPER).fit(X, Y)  # compiled, all modules imported
        recorder = cProfile.Profile()
        recorder.runcall(GBNC(estimator, **PAPER).fit, X, Y)
        stats = pstats.Stats(recorder)
        print(f"profile, {name}, {stats.total_tt:.1f} s in all; own time of")
        rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:6]
        for (path, _, function), (_, calls, own, _, _) in rows:
            where = os.path.basename(path)
            compiled = "compiled" if where in ("parts.py", "kernels.py") else "Python"
            print(f"  {own / stats.total_tt:6.1%}  {where}:{function} ({compiled}, {calls} calls)")


PARTS = {
    "logistic": logistic,
    "naive-bayes": naive_bayes,
    "predict": predict,
    "growth": growth,
    "memory": memory,
    "profile": profile,
    "jobs": jobs,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", "--data-dir", dest="data_dir", help="benchmark tables; default: PMDC_DATA")
    parser.add_argument("--only", default=",".join(PARTS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, numpy {np.__version__}")
    for name in args.only.split(","):
        part = partial(PARTS[name], args)
        if name == "jobs":
            part()
        else:
            with threadpool_limits(1):
                part()
        print(flush=True)


if __name__ == "__main__":
    main()
