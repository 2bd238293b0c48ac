"""When a search ends before its own end, and who is told how far it is."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .problem import Outcome, Part, Problem, greedy_dag, inside
from .structure import Structure

# A callback is told of every better DAG and bound, and in any case so often, in seconds, that it can end the search.
_HEARTBEAT = 1.0


class Watch:
    """What is known of each part of the problem, and whether the search should go on.

    The methods work on one part after the other and look here between their steps.
    """

    def __init__(
        self,
        problem: Problem,
        parts: Sequence[Part],
        started: float,
        *,
        time_limit: float,
        gap: float,
        memory_budget: int,
        callback: Callable[[Structure], Any] | None,
        say: Callable[[str], None],
    ):
        self.problem, self.parts, self.started = problem, parts, started
        self.deadline, self.gap = started + time_limit, gap
        self.memory_budget, self.callback, self.say = memory_budget, callback, say
        self.method = ""
        self.has_start = False
        self.interrupted = False
        self._now = 0
        self._known = [greedy_dag(part.problem) for part in parts]
        self._told = (-math.inf, math.inf, started)

    def start_from(self, masks: Sequence[int]) -> None:
        """Another DAG than the greedy one to start from, where it is better."""
        self.has_start = True
        for number, part in enumerate(self.parts):
            ranks = inside(part, masks)
            if part.problem.total_regret(ranks) < part.problem.total_regret(self._known[number].ranks):
                self._known[number] = self._known[number]._replace(ranks=ranks)

    def enter(self, number: int, method: str) -> Outcome:
        """The search goes on to another part; what is known of it."""
        self._now, self.method = number, method
        return self._known[number]

    def keep(self, outcome: Outcome) -> None:
        """What the search of this part came to; proved if it loses no more than every DAG must."""
        proved = self.parts[self._now].problem.total_regret(outcome.ranks) <= outcome.least_regret
        self._known[self._now] = outcome._replace(status="optimal") if proved else outcome
        self._tell()

    def time_left(self) -> float:
        """Seconds until the time limit."""
        return self.deadline - time.perf_counter()

    def take_memory(self, needed: int, what: str) -> None:
        """Say how much memory will be taken, or refuse it."""
        if needed > self.memory_budget:
            raise ValueError(
                f"{what} would take {show_bytes(needed)} of memory, more than memory_budget={self.memory_budget:,} "
                f"({show_bytes(self.memory_budget)}): raise it, or use method='integer-program'"
            )
        self.say(f"{what} takes {show_bytes(needed)} of memory")

    def stop(self, ranks: list[int], least_regret: float) -> str:
        """Why the search should end, given the best DAG and the bound of the part it is at; empty if it should not."""
        self._known[self._now] = self._known[self._now]._replace(ranks=ranks, least_regret=least_regret)
        self._tell()
        if self.interrupted:
            return "interrupted"
        if time.perf_counter() >= self.deadline:
            return "time limit"
        if self.gap > 0 and self._open_here() <= self._allowed_here():
            return "gap limit"
        return ""

    def _open_here(self) -> float:
        known = self._known[self._now]
        return self.parts[self._now].problem.total_regret(known.ranks) - known.least_regret

    def _allowed_here(self) -> float:
        """The share of this part in what may remain open, by its class variables.

        The score may still rise up to the bound, and the gap is relative to it: the least size on the way counts.
        """
        now = self.structure(self.ranks(), "searching")
        size = 0.0 if now.score < 0 < now.bound else min(abs(now.score), abs(now.bound))
        return self.gap * max(1.0, size) * len(self.parts[self._now].members) / len(self.problem.names)

    def _tell(self) -> None:
        if self.callback is None or self.interrupted:
            return
        best = self.structure(self.ranks(), "searching")
        score, bound, when = self._told
        now = time.perf_counter()
        if best.score > score or best.bound < bound or now - when >= _HEARTBEAT:
            self._told = best.score, best.bound, now
            if self.callback(best):
                self.interrupted = True

    def status(self) -> str:
        """Whether the best DAG is proved ("optimal"), or the gap ("gap limit"), or why the search ended before."""
        reasons = [known.status for known in self._known if known.status != "optimal"]
        if not reasons:
            return "optimal"
        if self.gap > 0 and self.structure(self.ranks(), "searching").gap <= self.gap:
            return "gap limit"
        # With all parts at their share of the gap, only rounding makes the whole differ from what was asked for.
        return next((reason for reason in reasons if reason != "gap limit"), "gap limit")

    def ranks(self) -> list[int]:
        """The best DAG so far, in terms of the whole problem."""
        found = [-1] * len(self.problem.names)
        for part, known in zip(self.parts, self._known, strict=True):
            for child, rank, ranks_of_all in zip(part.members, known.ranks, part.whole_ranks, strict=True):
                found[child] = ranks_of_all[rank]
        return found

    def structure(self, ranks: Sequence[int], status: str) -> Structure:
        """A DAG with all that is known about its score."""
        score = self.problem.total_score(ranks)
        bound = score
        if status != "optimal":
            best_of_each = self.problem.total_score([0] * len(ranks))
            bound = max(score, best_of_each - math.fsum(known.least_regret for known in self._known))
        return Structure(
            parents=self.problem.parents(ranks),
            score=score,
            bound=bound,
            gap=(bound - score) / max(1.0, abs(score)),
            status=status,
            seconds=time.perf_counter() - self.started,
            method=self.method,
        )


def show_bytes(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


@contextmanager
def until_interrupted(watch: Watch) -> Iterator[None]:
    """Within this, the first Ctrl-C ends the search with the best DAG so far; the second is as always."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield  # somebody else wants to know
        return

    def note(number: int, frame: Any) -> None:
        watch.interrupted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
