"""Running a command: exit codes, interruption, closed pipes, and words for what goes wrong.

0 is fine, 1 a failure in the work, 2 wrong usage or bad input, 130 an interruption, 143 an end from outside (SIGTERM).
"""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import typer

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
_BY_SIGNAL = 128
"""What shells add to the number of the signal that ended a command."""

_AGAIN = 0.05
"""Seconds after which a signal that was lost comes again."""

_INTERRUPTED = {"benchmark": "the same command goes on where it was."}

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # typer has no name of its own for it


class BadInput(Exception):
    """What was asked for cannot be done with what was given."""


class WorkFailed(Exception):
    """The work itself went wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        Instead of those of the process.
    """
    from pmdc.cli.app import app

    _prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    command = next((f" {word}" for word in given if not word.startswith("-")), "")

    def tell(message: object) -> None:
        sys.stderr.write(f"pmdc{command}: {message}\n")

    code = _run(app, given, command, tell)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    except OSError as error:
        if code == 0:
            tell(f"the standard output cannot be written: {error.strerror}.")
        _forget_output()
        return code or FAILED
    return code


def _prepare_streams() -> None:
    """Files and pipes are UTF-8; a terminal shows what it can; what is closed takes nothing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # names of files may be anything


def _run(app: typer.Typer, arguments: list[str], command: str, tell: Callable[[object], None]) -> int:
    def interrupted() -> int:
        signals.heeded = True
        _stop_workers()
        # Where the interruption came within an exec, as dataclasses have it, Python would still end itself by SIGINT.
        exec("")
        tell("interrupted; " + _INTERRUPTED.get(command.strip(), "nothing was written."))
        return _BY_SIGNAL + signals.last

    with _interruptible() as signals, _plain_warnings(tell):
        try:
            answer = app(arguments, prog_name="pmdc", standalone_mode=False)
            return interrupted() if answer == INTERRUPTED else int(answer or 0)  # typer's word for KeyboardInterrupt
        except (KeyboardInterrupt, typer.Abort):
            return interrupted()
        except _UsageError as error:
            path = getattr(getattr(error, "ctx", None), "command_path", "pmdc")
            sys.stderr.write(f"{path}: {error.format_message()} See {path} --help.\n")  # type: ignore[attr-defined]
            return WRONG_USAGE
        except SystemExit as error:  # how typer and rich end where nobody reads the output any more
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            _forget_output()
            return 0
        except Exception as error:
            if signals.asked:  # it was lost on the way, and this is what came of it
                return interrupted()
            code = _code_of(error)
            if code is None:
                raise
            tell(error)
            return code


def _code_of(error: Exception) -> int | None:
    """The exit code of a mistake that has words for the user; None is a defect of ours."""
    from pmdc.table_files import TableFileError

    if isinstance(error, (BadInput, TableFileError, ImportError)):
        return WRONG_USAGE
    return FAILED if isinstance(error, (WorkFailed, OSError)) else None


@contextmanager
def work() -> Iterator[None]:
    """Within this, the library's own complaints are failures of the work, in its words."""
    try:
        yield
    except (BrokenPipeError, BadInput):
        raise
    except MemoryError as error:
        raise WorkFailed(f"the memory is not enough. {error}".strip()) from error
    except NotImplementedError:
        raise
    except (ValueError, ArithmeticError, OSError, RuntimeError) as error:
        raise WorkFailed(str(error)) from error


class _Signals:
    """What asks the command to stop. Once that is heeded, nothing disturbs the clearing up."""

    def __init__(self) -> None:
        self.last: int = signal.SIGINT
        self.asked = False
        self.heeded = False

    def stop(self, number: int, frame: Any) -> None:
        if not self.heeded:
            self.last = number
            self.asked = True
            raise KeyboardInterrupt

    def interrupt(self, number: int, frame: Any) -> None:
        self.stop(signal.SIGINT, frame)


@contextmanager
def _interruptible() -> Iterator[_Signals]:
    """Within this, Ctrl-C ends everything; in particular no search goes on with the best graph so far.

    So do the signals by which a system ends a process. What the caller of the command ignores stays ignored.
    """
    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, signals.stop)
    alone = signal.SIGINT in before and hasattr(signal, "pthread_sigmask")
    try:
        with _interruptible_alone(signals.interrupt) if alone else nullcontext(), _interruptible_callbacks(signals):
            yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interruptible_alone(stop: Callable[[int, Any], None]) -> Iterator[None]:
    """Within this, Ctrl-C is for this process alone.

    A terminal sends it to the workers too, which would die with tracebacks. They inherit what is blocked here; a thread
    waits for it and passes it on to the main thread as another signal.
    """
    main_thread = threading.main_thread().ident
    over = threading.Event()

    def pass_on() -> None:
        while signal.sigwait({signal.SIGINT}) and not over.is_set():
            signal.pthread_kill(main_thread, signal.SIGUSR2)  # type: ignore[arg-type]

    before = signal.signal(signal.SIGUSR2, stop)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    watch = threading.Thread(target=pass_on, daemon=True)
    watch.start()
    try:
        yield
    finally:
        over.set()
        if watch.is_alive():
            signal.pthread_kill(watch.ident, signal.SIGINT)  # type: ignore[arg-type]
        watch.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGUSR2, before)


@contextmanager
def _interruptible_callbacks(signals: _Signals) -> Iterator[None]:
    """Within this, an interruption gets through callbacks from C, where Python only reports exceptions and goes on.

    The compiler of numba has such callbacks. The signal comes again a moment later.
    """
    before = sys.unraisablehook
    timers: list[threading.Timer] = []

    def report(lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            before(lost)
        elif not signals.heeded:
            again = threading.Timer(_AGAIN, _thread.interrupt_main, [signals.last])
            again.daemon = True
            again.start()
            timers.append(again)

    sys.unraisablehook = report
    try:
        yield
    finally:
        signals.heeded = True  # what comes now comes too late: the work is done
        for timer in timers:
            timer.cancel()
        sys.unraisablehook = before


def shield_workers() -> None:
    """Let joblib start what it keeps beside the workers, since that lets Ctrl-C through again to what follows."""
    if not hasattr(signal, "pthread_sigmask") or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as tracker_of_joblib

    resource_tracker.ensure_running()
    tracker_of_joblib.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _stop_workers() -> None:
    """End the processes that joblib keeps for the next call."""
    if "joblib" in sys.modules:
        from joblib.externals.loky import reusable_executor

        if reusable_executor._executor is not None:
            reusable_executor._executor.shutdown(wait=True, kill_workers=True)


def _forget_output() -> None:
    """Nobody reads any more: what is left in the buffer must not make Python complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _plain_warnings(tell: Any) -> Iterator[None]:
    """Warnings without the place in the code that they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                tell(f"warning: {message}")

        warnings.showwarning = show
        yield
