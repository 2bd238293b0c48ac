"""Run a command: exit codes, signals, closed pipes, warnings and error messages.

Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, 130 interrupted by Ctrl-C, 143 ended by SIGTERM.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # click's UsageError, which typer does not export


class BadInput(Exception):
    """An error in the arguments or in the files that the user gave."""


class WorkFailed(Exception):
    """An error during the work itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : list of str, optional
        By default the arguments of the process.
    """
    from pmdc.cli.app import app

    _prepare_streams()
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    command = next((word for word in arguments if not word.startswith("-")), "")

    def report(message: object) -> None:
        sys.stderr.write(f"pmdc{' ' * bool(command)}{command}: {message}\n")

    with _interruptible(report) as signals, _plain_warnings(report):
        code = _run(app, arguments, report)
        if code == INTERRUPTED or signals.received:
            code = _interrupted(signals.received or signal.SIGINT, report, command)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        if code == 0:
            report(f"the standard output cannot be written: {error.strerror}.")
        _discard_output()
        return code or FAILED
    return code


def _prepare_streams() -> None:
    """Write UTF-8 to files and pipes, replace what a terminal cannot show, and stand in for closed streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # file names may hold any bytes


def _run(app: typer.Typer, arguments: list[str], report: Callable[[object], None]) -> int:
    """Run the command and return its exit code; errors that are meant for the user are reported."""
    from pmdc.table_files import TableFileError

    try:
        return int(app(arguments, prog_name="pmdc", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except _UsageError as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "pmdc")
        sys.stderr.write(f"{path}: {_usage_message(error)} See {path} --help.\n")
        return WRONG_USAGE
    except SystemExit as error:  # how typer and rich end when the reader of a pipe has gone
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _discard_output()
        return 0
    except (BadInput, TableFileError, ImportError) as error:
        report(error)
        return WRONG_USAGE
    except (WorkFailed, OSError) as error:
        report(error)
        return FAILED


def _usage_message(error: Any) -> str:
    """Return the message of typer as a sentence that names the value, which newer versions take from pydantic."""
    message = error.format_message().replace("Value error, ", "")
    for invalid in getattr(error.__cause__, "errors", list)():
        if repr(invalid["input"]) not in message:
            message = message.replace("Invalid value for", f"Invalid value {invalid['input']!r} for", 1)
    return message if message.endswith((".", "?")) else f"{message}."


@contextmanager
def work() -> Iterator[None]:
    """Turn errors of the library into `WorkFailed`, with the same message."""
    try:
        yield
    except (BrokenPipeError, BadInput, NotImplementedError):
        raise
    except MemoryError as error:
        raise WorkFailed(f"not enough memory. {error}".strip()) from error
    except (ValueError, ArithmeticError, OSError, RuntimeError) as error:
        raise WorkFailed(str(error)) from error


# Signals ------------------------------------------------------------------------------------------------------


class _Signals:
    """A signal handler: the first signal raises KeyboardInterrupt, the second ends the process at once."""

    received = 0

    def __call__(self, number: int, frame: Any) -> None:
        if self.received:
            _stop_workers()
            os._exit(128 + number)
        self.received = number
        raise KeyboardInterrupt


@contextmanager
def _interruptible(report: Callable[[object], None]) -> Iterator[_Signals]:
    """Handle Ctrl-C, SIGTERM and SIGHUP; signals that the caller ignores stay ignored.

    With this handler in place, Ctrl-C ends the whole command: the search does not return the best DAG so far.
    """
    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = {number: signal.getsignal(number) for number in numbers}
    handlers = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    unraisable = sys.unraisablehook

    def end_if_interrupted(lost: Any) -> None:
        """Python only reports exceptions in callbacks from C, such as those of compilers and solvers, and goes on."""
        if lost.exc_type is not KeyboardInterrupt:
            unraisable(lost)
            return
        code = _interrupted(signals.received, report)
        sys.stderr.flush()
        os._exit(code)

    sys.unraisablehook = end_if_interrupted
    for number in handlers:
        signal.signal(number, signals)
    try:
        yield signals
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = unraisable


def _interrupted(number: int, report: Callable[[object], None], command: str = "") -> int:
    """Stop the workers and return the exit code of an interruption."""
    _stop_workers()
    report("interrupted; the same command continues." if command == "benchmark" else "interrupted.")
    return 128 + number


def _stop_workers() -> None:
    for worker in multiprocessing.active_children():
        worker.kill()


# Streams and warnings -----------------------------------------------------------------------------------------


def _discard_output() -> None:
    """Discard what is still in the buffer, so that Python does not complain about the closed pipe at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _plain_warnings(report: Callable[[object], None]) -> Iterator[None]:
    """Show warnings without their place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                report(f"warning: {message}")

        warnings.showwarning = show
        yield
