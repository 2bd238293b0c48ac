"""The state of a running search: what is known of each component, limits, callbacks and interruption."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .problem import Component, Problem, SearchResult, greedy_dag, ranks_within
from .structure import Structure

CALLBACK_SECONDS = 1.0
"""The callback is called at least this often, so that it can stop the search."""


class SearchState:
    """The best DAG and bound of each component of the problem, and the limits of the search.

    The methods work on one component after the other and call `stop` between their steps.
    """

    def __init__(
        self,
        problem: Problem,
        components: Sequence[Component],
        started: float,
        *,
        time_limit: float,
        gap: float,
        memory_budget: int,
        callback: Callable[[Structure], Any] | None,
        log: Callable[[str], None],
    ):
        self.problem, self.components, self.started = problem, components, started
        self.deadline, self.gap = started + time_limit, gap
        self.memory_budget, self.callback, self.log = memory_budget, callback, log
        self.method = ""
        self.has_start = False
        self.interrupted = False
        self._current = 0
        self._outcomes = [greedy_dag(component.problem) for component in components]
        self._last_call = (-math.inf, math.inf, started)

    def start_from(self, masks: Sequence[int]) -> None:
        """Start from this DAG instead of the greedy one, in each component where it is better."""
        self.has_start = True
        for number, component in enumerate(self.components):
            ranks = ranks_within(component, masks)
            if component.problem.total_regret(ranks) < component.problem.total_regret(self._outcomes[number].ranks):
                self._outcomes[number] = self._outcomes[number]._replace(ranks=ranks)

    def begin(self, ranks: list[int], has_start: bool) -> None:
        """Begin with this DAG instead of the greedy one; the class variables are one component."""
        self.has_start = has_start
        self._outcomes[0] = self._outcomes[0]._replace(ranks=ranks)

    def enter(self, number: int, method: str) -> SearchResult:
        """Go on to another component; return what is known of it."""
        self._current, self.method = number, method
        return self._outcomes[number]

    def keep(self, outcome: SearchResult) -> None:
        """Store the result of the current component; it is proved if its regret equals the lower bound."""
        proved = self.components[self._current].problem.total_regret(outcome.ranks) <= outcome.least_regret
        self._outcomes[self._current] = outcome._replace(status="optimal") if proved else outcome
        self._call_back()

    def time_left(self) -> float:
        """Return the seconds until the time limit."""
        return self.deadline - time.perf_counter()

    def check_memory(self, needed: int, what: str) -> None:
        """Raise a ValueError if more memory is needed than the budget allows."""
        if needed > self.memory_budget:
            raise ValueError(
                f"{what} needs {show_bytes(needed)} of memory, more than memory_budget={self.memory_budget:,} "
                f"({show_bytes(self.memory_budget)}): raise memory_budget, or use method='integer-program'"
            )
        self.log(f"{what} needs {show_bytes(needed)} of memory")

    def stop(self, ranks: list[int], least_regret: float) -> str:
        """Store the best DAG and bound of the current component; return why the search must stop, or ""."""
        self._outcomes[self._current] = self._outcomes[self._current]._replace(ranks=ranks, least_regret=least_regret)
        self._call_back()
        if reason := self.out_of_time():
            return reason
        open_regret = self.components[self._current].problem.total_regret(ranks) - least_regret
        if self.gap > 0 and open_regret <= self._allowed_regret():
            return "gap limit"
        return ""

    def out_of_time(self) -> str:
        """Return "interrupted", "time limit" or ""."""
        if self.interrupted:
            return "interrupted"
        return "time limit" if time.perf_counter() >= self.deadline else ""

    def _allowed_regret(self) -> float:
        """Return the current component's share of the allowed gap, in proportion to its class variables.

        The gap is relative to the size of the final score, which lies between the score and the bound.
        """
        now = self.structure(self.ranks(), "searching")
        size = 0.0 if now.score < 0 < now.bound else min(abs(now.score), abs(now.bound))
        return self.gap * max(1.0, size) * len(self.components[self._current].members) / len(self.problem.names)

    def _call_back(self) -> None:
        if self.callback is None or self.interrupted:
            return
        best = self.structure(self.ranks(), "searching")
        score, bound, when = self._last_call
        now = time.perf_counter()
        if best.score > score or best.bound < bound or now - when >= CALLBACK_SECONDS:
            self._last_call = best.score, best.bound, now
            if self.callback(best):
                self.interrupted = True

    def status(self) -> str:
        """Return the status of the whole search: "optimal", "gap limit", or why it stopped."""
        reasons = [outcome.status for outcome in self._outcomes if outcome.status != "optimal"]
        if not reasons:
            return "optimal"
        if self.gap > 0 and self.structure(self.ranks(), "searching").gap <= self.gap:
            return "gap limit"
        # If all components reached their share of the gap, the whole can miss it by rounding only.
        return next((reason for reason in reasons if reason != "gap limit"), "gap limit")

    def ranks(self) -> list[int]:
        """Return the best DAG so far, as ranks in the whole problem."""
        found = [-1] * len(self.problem.names)
        for component, outcome in zip(self.components, self._outcomes, strict=True):
            for child, rank, whole_ranks in zip(component.members, outcome.ranks, component.whole_ranks, strict=True):
                found[child] = whole_ranks[rank]
        return found

    def least_regret(self) -> float:
        """Return a lower bound on the total regret of every DAG."""
        return math.fsum(outcome.least_regret for outcome in self._outcomes)

    def structure(self, ranks: Sequence[int], status: str, order: Sequence[int] | None = None) -> Structure:
        """Return a DAG with its score and what is proved about it."""
        score = self.problem.total_score(ranks)
        bound = score
        if status != "optimal":
            best_of_each = self.problem.total_score([0] * len(ranks))
            bound = max(score, best_of_each - self.least_regret())
        return Structure(
            parents=self.problem.parents(ranks),
            score=score,
            bound=bound,
            gap=(bound - score) / max(1.0, abs(score)),
            status=status,
            seconds=time.perf_counter() - self.started,
            method=self.method,
            elimination_order=None if order is None else tuple(self.problem.names[position] for position in order),
        )


def show_bytes(count: float) -> str:
    """Return a number of bytes with a readable unit."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} GiB"


@contextmanager
def handle_interrupts(state: SearchState) -> Iterator[None]:
    """Let the first Ctrl-C stop the search with the best DAG so far; the second raises KeyboardInterrupt.

    Does nothing outside of the main thread, or if the program has its own handler.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        state.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
