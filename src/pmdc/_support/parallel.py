"""Parallel work with the same bits and the same warnings for any number of workers and any joblib backend."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from itertools import takewhile
from typing import Any

import sklearn
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from pmdc._support.deadline import NEVER, Deadline, Pace
from pmdc._support.progress import messages_to, tell_step

MESSAGE_INTERVAL = 3.0
"""Seconds between messages about progress."""

START_UP = 3.0
"""Seconds of CPU that starting two worker processes costs (about 3 s and 180 MB each)."""

Caught = tuple[type[Warning], str]


@contextmanager
def workers(
    n_jobs: int | None, write: Callable[[str], None] | None = None, threads: bool = False
) -> Iterator[Callable[..., list[Any]]]:
    """Provide a function that runs ``work(chunk, *rest)`` for all chunks and returns the results in order.

    With ``deadline=`` it starts no chunk that would end after it: there may be fewer results than chunks.

    Each kind of warning is issued once per call. Worker processes start only after the parent has run chunks for
    `START_UP` seconds, without those in which it compiled kernels. So little work does not pay for processes, and
    workers find the compiled kernels in the cache.

    Parameters
    ----------
    n_jobs : int or None
        As in joblib.
    write : function, optional
        Receives a message about progress every few seconds; a `progress.Watcher` is told of each chunk.
    threads : bool, default=False
        Whether to prefer threads, for work that releases the GIL. `joblib.parallel_config` overrides it.
    """
    prefer = {"prefer": "threads"} if threads else {}
    backend, _ = get_active_backend(**prefer)
    return_as = "generator" if getattr(backend, "supports_return_generator", False) else "list"
    in_threads = getattr(backend, "uses_threads", False)
    own = type(backend).__name__ in ("LokyBackend", "MultiprocessingBackend")  # processes that belong to this one
    one_process = in_threads or effective_n_jobs(n_jobs) == 1
    seconds = START_UP if one_process else 0.0  # of work in the parent
    with one_thread(), messages_to(write), Parallel(n_jobs=n_jobs, return_as=return_as, **prefer) as pool:

        def results(work: Callable[..., Any], chunks: Sequence[Any], rest: Sequence[Any], pace: Pace) -> Iterator[Any]:
            nonlocal seconds
            shared = os.getpid(), own, copy_context() if in_threads else None, sklearn.get_config()
            place = 0
            while place < len(chunks) and seconds < START_UP:
                if not pace.may_start():
                    return
                start, compiled = time.monotonic(), _n_compilations()
                answer = _run(*shared, work, chunks[place], *rest)
                if _n_compilations() == compiled:
                    seconds += time.monotonic() - start
                place += 1
                yield answer
            if place < len(chunks):
                in_time = takewhile(lambda _: pace.may_start(), chunks[place:])
                yield from pool(delayed(_run)(*shared, work, chunk, *rest) for chunk in in_time)

        def run(work: Callable[..., Any], chunks: Sequence[Any], *rest: Any, deadline: Deadline = NEVER) -> list[Any]:
            answers = []
            clock, pace = _Clock(len(chunks), write, deadline), Pace(deadline)
            with _recording() as caught:
                for answer, of_process in results(work, chunks, rest, pace):
                    pace.stop()
                    answers.append(answer)
                    caught += of_process
                    tell_step(len(answers), len(chunks))
                    clock.step(len(answers))
            _warn_once(caught)
            return answers

        yield run


class _Clock:
    """Writes how much is done and how long the rest takes, every few seconds."""

    def __init__(self, total: int, write: Callable[[str], None] | None, deadline: Deadline):
        self.total, self.write, self.deadline = total, write, deadline
        self.start = self.last = time.monotonic()

    def step(self, done: int) -> None:
        now = time.monotonic()
        if self.write is not None and now - self.last > MESSAGE_INTERVAL and done < self.total:
            self.last = now
            left = (now - self.start) / done * (self.total - done)
            budget = f"; {self.deadline.note()}" if self.deadline.exists else ""
            self.write(f"{done} of {self.total} tasks done, about {left:.0f} s left at this size{budget}")


def _run(
    parent: int, own: bool, context: Context | None, config: dict[str, Any], work: Callable[..., Any], *arguments: Any
) -> tuple[Any, list[Caught]]:
    """Run a task; return its result and, in another process, its warnings."""
    if os.getpid() == parent:
        with sklearn.config_context(**config):
            return (work(*arguments) if context is None else context.copy().run(work, *arguments)), []
    if own:
        _watch_parent(parent)
    with one_thread(), sklearn.config_context(**config), _recording() as caught:
        warnings.filterwarnings("ignore", message=".*NUMBA_CACHE_DIR")  # the parent has said it
        answer = work(*arguments)
    return answer, caught


@cache
def _watch_parent(parent: int) -> None:
    """Limit a worker process to one thread of linear algebra, once, and let it end with its parent (not on Windows)."""
    one_thread().__enter__()
    threading.Thread(target=_exit_with_parent, args=[parent], daemon=True).start()


def _exit_with_parent(parent: int) -> None:
    direct = os.getppid()  # may be a server that forks the workers; process 1 adopts orphans
    while os.getppid() == direct and (direct == parent or direct != 1):
        time.sleep(1.0)
    os._exit(1)


def _n_compilations() -> int:
    """Return how many kernels this process has compiled so far; 0 before numba is imported."""
    module = sys.modules.get("pmdc._support.compiled")
    return 0 if module is None else module.COMPILATIONS.count


class _OneThread:
    """Limits linear algebra to one thread while at least one thread of Python has entered it."""

    def __init__(self) -> None:
        self._lock, self._entered = threading.Lock(), 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._limits = threadpool_limits(1)
            self._entered += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered and self._limits is not None:
                self._limits.restore_original_limits()


_ONE_THREAD = _OneThread()


def one_thread() -> _OneThread:
    """Return a context manager that limits linear algebra to one thread.

    The engines have many small products, which more threads slow down, and sums have the same bits for any number of
    cores. The limit holds for the whole process until the last of nested or concurrent contexts is left.
    """
    return _ONE_THREAD


@contextmanager
def _recording() -> Iterator[list[Caught]]:
    """Append all warnings issued within this context, by any thread, to a list."""
    caught: list[Caught] = []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        yield caught
    caught += [(warning.category, str(warning.message)) for warning in recorded]


def _warn_once(caught: Sequence[Caught]) -> None:
    """Issue one warning of each kind, the first by its text; those that differ only in numbers are of the same kind."""
    counts: Counter[Caught] = Counter()
    first: dict[Caught, str] = {}
    for category, message in sorted(caught, key=lambda each: (each[0].__name__, each[1])):  # threads have no order
        kind = category, re.sub(r"[\d.]+", "#", message)
        counts[kind] += 1
        first.setdefault(kind, message)
    for kind, message in first.items():
        more = f" (and {counts[kind] - 1} times more, with other numbers)" if counts[kind] > 1 else ""
        warnings.warn(message + more, kind[0], stacklevel=4)
