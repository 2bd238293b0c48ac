"""The time budget of a fit: until when work may begin, and what was left out because of it.

The result of a fit depends on its deadline, so a `Deadline` is an argument, handed from stage to stage in
`pmdc.settings.Settings`, and not a context as progress is. Work that has begun is finished: whoever has many jobs asks
a `Pace` before each of them whether it would end in time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from time import monotonic  # the same clock in all processes


def now() -> float:
    """Return the moment by the clock of deadlines."""
    return monotonic()


@dataclass(frozen=True)
class Deadline:
    """A moment after which no work should begin, by default never.

    Attributes
    ----------
    end : float
        On the monotonic clock.
    budget : float
        The seconds that the user gave.
    cuts : list of str
        What was left out so far; shared by all deadlines of a fit.
    """

    end: float = math.inf
    budget: float = math.inf
    cuts: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def after(cls, seconds: float, started: float) -> Deadline:
        """Return the deadline of a fit that has started at this moment (`now`)."""
        return cls(started + seconds, seconds)

    @property
    def exists(self) -> bool:
        """Whether there is a budget at all."""
        return math.isfinite(self.end)

    def left(self) -> float:
        """Return the seconds left; negative after the deadline."""
        return self.end - now()

    def passed(self) -> bool:
        return self.left() <= 0

    def share(self, part: float) -> Deadline:
        """Return the deadline of a phase that may use this part of the time left."""
        return replace(self, end=now() + part * max(self.left(), 0.0)) if self.exists else self

    def cut(self, what: str) -> None:
        """Record that something was left out because the time was up."""
        if what not in self.cuts:
            self.cuts.append(what)

    def note(self) -> str:
        """Return how much is left, for messages about progress; empty without a budget."""
        return f"time budget: {max(self.left(), 0.0):.0f} s left" if self.exists else ""


NEVER = Deadline()


class Pace:
    """Tells before each of many similar jobs whether it would end in time, by how long those before it took."""

    def __init__(self, deadline: Deadline):
        self.deadline, self.begin = deadline, now()
        self.started = self.ended = 0

    def may_start(self) -> bool:
        """Count one more job as started unless it would end too late; the first may start if any time is left."""
        each = (now() - self.begin) / self.ended if self.ended else 0.0
        in_time = self.begin + each * (self.started + 1) <= self.deadline.end and not self.deadline.passed()
        if in_time:
            self.start()
        return in_time

    def start(self, number: int = 1) -> None:
        """Count jobs that must be done in any case."""
        self.started += number

    def stop(self, number: int = 1) -> None:
        """Count jobs as ended."""
        self.ended += number
