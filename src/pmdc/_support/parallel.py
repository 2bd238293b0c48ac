"""Work in parallel that gives the same bits, and the same warnings, for any number of workers."""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from pmdc._support.progress import tell_step

_EVERY = 3.0
"""Seconds between two words about progress."""


@contextmanager
def workers(n_jobs: int | None, say: Callable[[str], None] | None = None) -> Iterator[Callable[..., list[Any]]]:
    """A function that runs ``work(chunk, *rest)`` for all chunks and returns the answers in order.

    Warnings of the workers would get lost or come once for each part: they are gathered, and each kind is
    given once. `say` is told every few seconds how much is done and how long the rest will take, `progress`
    after each chunk.
    """
    with Parallel(n_jobs=n_jobs, return_as="generator") as pool:

        def run(work: Callable[..., Any], chunks: Sequence[Any], *rest: Any) -> list[Any]:
            answers = []
            start = told = time.monotonic()
            for done, answer in enumerate(pool(delayed(_quietly)(work, chunk, *rest) for chunk in chunks), 1):
                answers.append(answer)
                tell_step(done, len(chunks))
                now = time.monotonic()
                if say is not None and now - told > _EVERY and done < len(chunks):
                    told = now
                    left = (now - start) / done * (len(chunks) - done)
                    say(f"{done} of {len(chunks)} tasks done, about {left:.0f} s left at this size")
            _warn_once([warning for _, caught in answers for warning in caught])
            return [answer for answer, _ in answers]

        yield run


def _quietly(work: Callable[..., Any], *arguments: Any) -> tuple[Any, list[tuple[type[Warning], str]]]:
    # One thread each: the workers share the cores already, and sums come out the same bits for any n_jobs.
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = work(*arguments)
    return answer, [(warning.category, str(warning.message)) for warning in caught]


def _warn_once(caught: Sequence[tuple[type[Warning], str]]) -> None:
    kinds = Counter((category, re.sub(r"[\d.]+", "#", message)) for category, message in caught)
    seen = set()
    for category, message in caught:
        kind = category, re.sub(r"[\d.]+", "#", message)
        if kind not in seen:
            seen.add(kind)
            often = f" (and {kinds[kind] - 1} times more, with other numbers)" if kinds[kind] > 1 else ""
            warnings.warn(message + often, category, stacklevel=4)
