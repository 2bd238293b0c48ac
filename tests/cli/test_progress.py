"""Times of the progress bar: elapsed is that of the whole work, remaining that of the phase, where it is known."""

from io import StringIO

import pytest
from rich.console import Console
from rich.progress import Progress

from pmdc.cli.progress import Bar, Clock, progress_columns

COMPILING = "compiling numerical kernels, first use only"


class Time:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


def test_elapsed_and_remaining(time):
    clock = Clock(time)
    time.now += 30
    assert str(clock) == "0:30 elapsed", "the total is unknown"
    clock.begin()
    time.now += 10
    clock.step(2, 8)
    assert clock.remaining == pytest.approx(30)
    assert str(clock) == "0:40 elapsed, 0:30 left in phase"
    time.now += 20
    assert clock.remaining == pytest.approx(10), "it counts down between steps"
    time.now += 20
    assert clock.remaining is None, "and is not shown when it was too short"
    assert str(clock) == "1:20 elapsed"
    time.now += 3600
    assert str(clock) == "1:01:20 elapsed"


def test_another_total_is_another_round(time):
    clock = Clock(time)
    time.now += 60
    clock.step(3, 4)
    assert clock.remaining == pytest.approx(20)
    time.now += 6
    clock.step(2, 12)
    assert clock.remaining == pytest.approx(30), "from the steps of this round alone"
    time.now += 4
    clock.step(1, 12)
    assert clock.remaining == pytest.approx(44), "fewer steps than before begin another round, too"


def test_what_is_done_before_an_interruption_took_no_time_after_it(time):
    clock = Clock(time)
    clock.begin(done=5)
    time.now += 10
    clock.step(6, 10)
    assert clock.remaining == pytest.approx(40)


def test_nothing_is_estimated_in_the_first_second_or_after_the_end(time):
    clock = Clock(time)
    time.now += 0.1
    clock.step(1, 1000)
    assert clock.remaining is None
    time.now += 10
    clock.step(1000, 1000)
    assert clock.remaining is None


def test_the_bar_shows_unknown_phases_and_returns_to_the_earlier_one():
    screen = StringIO()
    with Progress(*progress_columns(), console=Console(file=screen, force_terminal=True, width=120)) as shown:
        bar = Bar(shown, "fitting")
        bar.phase("scoring parent sets of size 1")
        bar.step(1, 4)
        (task,) = shown.tasks
        assert (task.completed, task.total) == (1, 4)
        bar.phase(COMPILING)
        shown.refresh()
        (task,) = shown.tasks
        assert (task.description, task.total) == (COMPILING, None)
        bar.phase("scoring parent sets of size 1")
        bar.step(2, 4)
        shown.refresh()
        (task,) = shown.tasks
        assert (task.description, task.completed, task.total) == ("scoring parent sets of size 1", 2, 4)
        bar.step(4, 4)
        (task,) = shown.tasks
        assert (task.completed, task.total) == (0, None), "another round may follow"
    told = screen.getvalue()
    assert COMPILING in told
    assert "0:00 elapsed" in told
    assert "left" not in told, "no remaining time where it is unknown"
