"""The progress bar: the phase of the work, the elapsed time, and the remaining time of the phase where it is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

_MIN_SECONDS = 1.0
"""Seconds of work from which the remaining time is estimated."""


class Clock:
    """Measures the whole work, and estimates the remaining time of its current phase.

    A phase may consist of several rounds, each with a total of its own. The remaining time is that of the current
    round, from the mean time of its steps so far.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._start = now()
        self.begin()

    def begin(self, done: float = 0.0) -> None:
        """Begin a round, of which so much is done already."""
        self._since = self._last = self._now()
        self._before = self._done = done
        self._total: float | None = None

    def step(self, done: float, total: float) -> None:
        """Set how much of the round is done; another total, or less than before, begins another round."""
        now = self._now()
        if (self._total is not None and total != self._total) or done < self._done:
            self._since, self._before = self._last, 0.0
        self._done, self._total, self._last = done, total, now

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return self._now() - self._start

    @property
    def remaining(self) -> float | None:
        """Seconds that the round still takes; None if that is not known, or if it takes longer than estimated."""
        worked, advanced = self._last - self._since, self._done - self._before
        if self._total is None or worked < _MIN_SECONDS or advanced <= 0 or self._done >= self._total:
            return None
        left = worked / advanced * (self._total - self._done) - (self._now() - self._last)
        return left if left >= 0.5 else None

    def __str__(self) -> str:
        elapsed, remaining = f"{_minutes(self.elapsed)} elapsed", self.remaining
        return elapsed if remaining is None else f"{elapsed}, {_minutes(remaining)} left in phase"


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def progress_columns() -> list[ProgressColumn]:
    """Return the columns of the progress bar."""
    return [
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        BarColumn(bar_width=10),
        _ShareColumn(table_column=Column(no_wrap=True, min_width=4)),
        _ClockColumn(table_column=Column(no_wrap=True)),
    ]


class _ShareColumn(ProgressColumn):
    """How much of the phase is done, where that is known."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.percentage:>3.0f}%")


class _ClockColumn(ProgressColumn):
    """Elapsed and remaining time."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["clock"]))


class Bar:
    """A progress bar that shows the phase of the work; see `pmdc._support.progress.Watcher`.

    Parameters
    ----------
    shown : Progress
    phase : str
        The first phase.
    clock : Clock, optional
        Of a command that shows several bars, one after the other.
    """

    def __init__(self, shown: Progress, phase: str, clock: Clock | None = None):
        self._shown = shown
        self._phase = phase
        self._clock = Clock() if clock is None else clock
        self._clock.begin()
        self._left: tuple[str, float] = phase, 0.0  # the phase before this one, and how much of it was done
        self._done = 0.0
        self._task = shown.add_task(phase, total=None, clock=self._clock)

    def phase(self, name: str) -> None:
        """Show a new phase, or return to the earlier one after a notice; the total is unknown until the next step."""
        if name != self._phase:
            left, done = self._left
            self._left = self._phase, self._done
            self._phase = name
            self._restart(done if name == left else 0.0)

    def step(self, done: float, total: float) -> None:
        """Show how much of the phase is done."""
        if done >= total > 1:  # another round of this phase may follow
            self._restart()
        else:
            self._done = done
            self._clock.step(done, total)
            self._shown.update(self._task, completed=done, total=total)

    def _restart(self, done: float = 0.0) -> None:
        """Replace the task: rich cannot make the total of a task unknown again."""
        self._done = done
        self._clock.begin(done)
        self._shown.remove_task(self._task)
        self._task = self._shown.add_task(self._phase, total=None, clock=self._clock)

    def searching(self, structure: Any) -> bool:
        """Show score and gap; the callback of the search."""
        self._shown.update(
            self._task, description=f"{self._phase}: score {structure.score:.6g}, gap {structure.gap:.2g}"
        )
        return False
