"""Running a command: exit codes, interruption, closed pipes, and words for what goes wrong.

0 is fine, 1 a failure in the work, 2 wrong usage or bad input, 130 an interruption.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

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

    for stream in (sys.stdout, sys.stderr):  # files and pipes are UTF-8; a terminal shows what it can
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    command = next((f" {word}" for word in given if not word.startswith("-")), "")
    code = _run(app, given, command)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    return code


def _run(app: typer.Typer, arguments: list[str], command: str) -> int:
    def tell(message: object) -> None:
        sys.stderr.write(f"pmdc{command}: {message}\n")

    with _interruptible(), _plain_warnings(tell):
        try:
            answer = app(arguments, prog_name="pmdc", standalone_mode=False)
            if answer == INTERRUPTED:  # typer's word for KeyboardInterrupt
                raise KeyboardInterrupt
            return int(answer or 0)
        except (KeyboardInterrupt, typer.Abort):
            _stop_workers()
            tell("interrupted; " + _INTERRUPTED.get(command.strip(), "nothing was written."))
            return INTERRUPTED
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
    return FAILED if isinstance(error, WorkFailed) else None


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


@contextmanager
def _interruptible() -> Iterator[None]:
    """Within this, Ctrl-C ends everything; in particular no search goes on with the best graph so far."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        if hasattr(signal, "pthread_sigmask"):
            with _interruptible_alone(stop):
                yield
        else:
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _interruptible_alone(stop: Callable[[int, Any], NoReturn]) -> Iterator[None]:
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
        signal.pthread_kill(watch.ident, signal.SIGINT)  # type: ignore[arg-type]
        watch.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGUSR2, before)


def shield_workers() -> None:
    """Let joblib start what it keeps beside the workers, since that lets Ctrl-C through again to what follows."""
    if not hasattr(signal, "pthread_sigmask"):
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
