"""Workers: progress, results, warnings and limits for every backend, and what is left of them."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import joblib
import pytest
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

from pmdc import GBNC, learn
from pmdc._support import parallel
from pmdc._support.parallel import one_thread, workers
from pmdc.datasets import make_network
from pmdc.learners import Logistic, NaiveBayes

BACKENDS = [None, "threading", "loky", "multiprocessing"]


def square(number, *messages):
    for message in messages:
        warnings.warn(f"{message} {number}", UserWarning, stacklevel=2)
    return number**2


def process_and_threads(_):
    time.sleep(0.01)
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]  # OpenMP's is per thread
    return os.getpid(), [library["num_threads"] for library in libraries]


@pytest.fixture
def at_once(monkeypatch):
    """Start worker processes whatever the work."""
    monkeypatch.setattr(parallel, "START_UP", 0.0)


def in_backend(backend, run):
    if backend is None:
        return run()
    with joblib.parallel_config(backend):
        return run()


def test_progress_tells_counts_and_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr(parallel, "MESSAGE_INTERVAL", 0.0)
    data = make_network(60, n_class_variables=6, random_state=0)
    GBNC(experts=None, verbose=1).fit(data.X, data.Y)
    told = capsys.readouterr().err
    assert "tasks done, about 0 s left" in told
    assert "sets of class variables scored" in told
    GBNC(experts=None).fit(data.X, data.Y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.usefixtures("at_once")
def test_results_are_in_order_and_each_kind_of_warning_comes_once(backend, threads):
    def run():
        with workers(2, threads=threads) as parallel:
            return parallel(square, range(20), "beware of", "mind")

    with pytest.warns(UserWarning, match="19 times more") as caught:
        assert in_backend(backend, run) == [number**2 for number in range(20)]
    messages = sorted(str(warning.message).split(" (")[1] for warning in caught)
    assert messages == ["and 19 times more, with other numbers)"] * 2
    assert sorted(str(warning.message)[:4] for warning in caught) == ["bewa", "mind"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.usefixtures("at_once")
def test_threads_are_a_hint_and_linear_algebra_has_one_thread(backend):
    def run():
        with workers(2, threads=True) as parallel:
            return [answer for _ in range(3) for answer in parallel(process_and_threads, range(8))]

    before = [library["num_threads"] for library in threadpool_info()]
    answers = in_backend(backend, run)
    assert all(limit == 1 for _, limits in answers for limit in limits)
    outside = {process for process, _ in answers} - {os.getpid()}
    assert bool(outside) == (backend in ("loky", "multiprocessing"))
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_the_limit_holds_until_the_last_of_several_threads_is_done():
    before = [library["num_threads"] for library in threadpool_info()]
    other = one_thread()
    with one_thread():
        thread = threading.Thread(target=other.__enter__)
        thread.start()
        thread.join()
    assert all(library["num_threads"] == 1 for library in threadpool_info())
    other.__exit__(None, None, None)
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_processes_start_after_some_work_without_compilation(monkeypatch):
    counts = iter([0, 1, 1, 2, 2, 2])  # the first two chunks compile something
    monkeypatch.setattr(parallel, "_n_compilations", lambda: next(counts))
    monkeypatch.setattr(parallel, "START_UP", 0.001)
    with joblib.parallel_config("loky"), workers(2) as run:
        processes = [process for process, _ in run(process_and_threads, range(6)) + run(process_and_threads, range(4))]
    assert [process == os.getpid() for process in processes] == [True] * 3 + [False] * 7
    monkeypatch.undo()
    with joblib.parallel_config("loky"), workers(2) as run:
        assert {process for process, _ in run(process_and_threads, range(6))} == {os.getpid()}


@pytest.mark.parametrize(("estimator", "threads"), [(Logistic(), False), (NaiveBayes(), True), (GaussianNB(), True)])
def test_engines_of_compiled_kernels_prefer_threads(estimator, threads, monkeypatch):
    asked = []

    def spy(n_jobs, write=None, threads=False):
        asked.append(threads)
        return workers(n_jobs, write, threads)

    monkeypatch.setattr(learn, "workers", spy)
    data = make_network(40, n_class_variables=2, n_continuous=2, n_discrete=0, random_state=0)
    GBNC(estimator).fit(data.X, data.Y)
    assert asked == [threads]


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
@pytest.mark.parametrize("estimator", [Logistic(max_iter=2), NaiveBayes(), DecisionTreeClassifier(max_depth=2)])
@pytest.mark.usefixtures("at_once")
def test_a_fit_has_the_same_bits_and_warnings_for_every_backend(estimator, backend):
    data = make_network(80, n_class_variables=3, n_continuous=3, random_state=0)

    def fit(n_jobs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = GBNC(estimator, experts=None, n_jobs=n_jobs, random_state=0).fit(data.X, data.Y)
        told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
        return model.structure_.score, [p.tobytes() for p in model.predict_proba(data.X)], told

    alone = fit(1)
    assert in_backend(backend, lambda: fit(2)) == alone
    assert bool(alone[2]) == isinstance(estimator, Logistic)


PROGRAM = """
import joblib
from pmdc import GBNC
from pmdc.datasets import make_network
data = make_network(4000, n_class_variables=10, n_continuous=40, n_discrete=0, random_state=0)
with joblib.parallel_config({backend!r}):
    GBNC(experts=None, max_parents=1, n_jobs=2).fit(data.X[:50], data.Y[:50])
    print("ready", flush=True)
    GBNC(experts=None, n_jobs=2).fit(data.X, data.Y)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("backend", "number"),
    [
        ("loky", signal.SIGINT),
        ("loky", signal.SIGKILL),
        ("multiprocessing", signal.SIGKILL),
        ("threading", signal.SIGINT),
    ],
)
def test_an_interrupted_fit_leaves_no_worker_behind(backend, number):
    fit = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(backend=backend)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def members():
        """Processes of the session that the fit began."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == fit.pid and fields[0] != "Z":
                found.append(stat.parent.name)
        return found

    assert fit.stdout.readline() == b"ready\n"
    for _ in range(100):  # workers start after some seconds of work
        time.sleep(0.1)
        if len(members()) > 2:
            break
    time.sleep(1)
    assert (len(members()) > 1) == (backend != "threading")
    os.kill(fit.pid, number)
    assert fit.wait(60) != 0
    fit.stdout.close()
    for _ in range(150):
        if not members():
            break
        time.sleep(0.1)
    assert members() == []


def test_workers_of_others_are_not_ended():
    """Those of dask or ray are children of another process, perhaps of process 1."""
    threads = threading.active_count()
    answer, _ = parallel._run(os.getpid() + 1, False, None, get_config(), process_and_threads, 0)
    assert answer[0] == os.getpid()
    assert set(answer[1]) <= {1}
    assert threading.active_count() == threads
