"""Run a function on chunks of rows, in threads and with reused buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np

from pmdc._support.arrays import Floats

_SPARE: list[Floats] = []
"""Buffers of earlier calls: for small batches, allocating memory takes as long as the computation."""

_MAX_SPARE, _MAX_SPARE_BYTES = 4, 2**24


def run_chunks(work: Callable[[slice, Floats], None], chunks: Sequence[slice], size: int, n_threads: int) -> None:
    """Call `work` on each chunk of rows, with a buffer of at least this size whose content is arbitrary."""
    n_threads = min(n_threads, len(chunks))
    buffers: SimpleQueue[Floats] = SimpleQueue()
    for _ in range(n_threads):
        buffers.put(_borrow(size))

    def run(rows: slice) -> None:
        buffer = buffers.get()
        try:
            work(rows, buffer)
        finally:
            buffers.put(buffer)  # another thread may be waiting for it

    try:
        if n_threads <= 1:
            for rows in chunks:
                run(rows)
            return
        pool = ThreadPoolExecutor(n_threads)
        try:
            for _ in pool.map(run, chunks):
                pass
        finally:
            pool.shutdown(cancel_futures=True)
    finally:
        while not buffers.empty():
            _give_back(buffers.get())


def _borrow(size: int) -> Floats:
    """Return a buffer of at least this size."""
    try:
        buffer = _SPARE.pop()
    except IndexError:
        return np.empty(size)
    return buffer if len(buffer) >= size else np.empty(size)


def _give_back(buffer: Floats) -> None:
    if buffer.nbytes <= _MAX_SPARE_BYTES and len(_SPARE) < _MAX_SPARE:
        _SPARE.append(buffer)
