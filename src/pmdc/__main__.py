"""Entry point of the command ``pmdc`` and of ``python -m pmdc``."""

import atexit
import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line, or say which extra it needs."""
    try:
        try:
            from pmdc.cli import main as run
        except ImportError as error:
            sys.stderr.write(f'pmdc: the command line could not be loaded ({error}): pip install "pmdc[cli]"\n')
            raise SystemExit(2) from None
        code = run()
    except KeyboardInterrupt:
        code = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C while Python shuts down must not print a traceback
    if code >= 128:  # where Ctrl-C interrupted an `exec`, Python would end by the signal, whatever the exit code
        atexit._run_exitfuncs()
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
