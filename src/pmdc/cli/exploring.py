"""``pmdc explore`` and ``pmdc serve``: a model in the browser, and as a service."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pmdc._support.extras import require
from pmdc.cli.display import Screen
from pmdc.cli.matching import read_features, read_states
from pmdc.cli.models import load_model
from pmdc.cli.running import BadInput, work
from pmdc.table_files import Format, TableFile, read_table

if TYPE_CHECKING:
    import socket

    from pmdc.explore.guards import Settings
    from pmdc.explore.table import Table

EXPLORER_PORT = 8150
MIN_TOKEN = 16
"""Characters of a token; 16 random ones cannot be guessed."""
_MAKE_TOKEN = "python -c 'import secrets; print(secrets.token_urlsafe())' > {}"


class Network(NamedTuple):
    """Where a service listens: options of the command."""

    host: str
    port: int
    token_file: Path | None

    def token(self) -> str | None:
        """Return what clients must send; None if only this computer may ask."""
        from pmdc.explore.server import is_loopback

        if self.token_file is not None:
            return _read_token(self.token_file)
        if not is_loopback(self.host):
            raise BadInput(
                f"--host {self.host} is for other computers, which must prove that they may ask: give a file with a "
                "token, --token-file, or leave --host out to serve only this computer."
            )
        return None


def _read_token(path: Path) -> str:
    command = _MAKE_TOKEN.format(shlex.quote(str(path)))
    make = f"Make one: (umask 077; {command})" if os.name == "posix" else f"Make one: {command}"
    where = f"--token-file {path}"
    try:
        token = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise BadInput(f"{where}: there is no such file. {make}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{where} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
    if len(token) < MIN_TOKEN:
        raise BadInput(f"{where} holds {len(token)} characters; a token has at least {MIN_TOKEN}. {make}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput(f"{where} must hold one word of ASCII characters, which fits into a header. {make}")
    return token


def run_service(
    path: Path,
    source: str | None,
    format: Format,
    network: Network,
    settings: Settings,
    *,
    max_rows: int,
    trust: bool,
    quiet: bool,
) -> None:
    _require_extra()
    from pmdc.explore.application import service
    from pmdc.explore.guards import guarded
    from pmdc.explore.interface import Interface

    screen = Screen(quiet)
    settings = replace(settings, token=network.token())
    if network.token_file is not None and os.name == "posix" and network.token_file.stat().st_mode & 0o077:
        screen.warn("serve", f"{network.token_file} can be read by other users: chmod 600 {network.token_file}")
    listener = _listen(network.host, network.port)
    with listener:
        model = load_model(path, trust)
        table = None if source is None else _read_table(screen, "serve", model, source, format)
        interface = Interface(model, table, path.name, max_rows, settings.max_seconds)
        _log_requests(logging.WARNING if quiet else logging.INFO)
        _run(guarded(service(interface), settings), listener, lambda url: screen.print(_served(path, url)))


def run_explorer(
    path: Path, source: str | None, format: Format, port: int | None, *, browser: bool, trust: bool, quiet: bool
) -> None:
    _require_extra()
    from pmdc.explore.explorer import explorer
    from pmdc.explore.guards import Settings, guarded
    from pmdc.explore.interface import Interface
    from pmdc.explore.page.document import write_page
    from pmdc.explore.server import open_browser

    screen = Screen(quiet)

    listener = _listen("127.0.0.1", EXPLORER_PORT if port is None else port, or_any=port is None)
    with listener:
        model = load_model(path, trust)
        table = None if source is None else _read_table(screen, "explore", model, source, format)
        _log_requests(logging.WARNING)
        interface = Interface(model, table, path.name)

        def started(url: str) -> None:
            screen.print(_served(path, url))
            threading.Thread(target=interface.predict_table, daemon=True).start()
            if browser:
                open_browser(url)

        _run(guarded(explorer(interface, write_page), Settings()), listener, started)


def _require_extra() -> None:
    for module in ("fastapi", "uvicorn"):
        require(module)


def _served(path: Path, url: str) -> str:
    return f"{path.name} is at {url} (Ctrl-C ends it)"


def _listen(host: str, port: int, *, or_any: bool = False) -> socket.socket:
    """Return a socket at a port, or with `or_any` at another one if it cannot be had."""
    from pmdc.explore.server import CannotListen, open_socket

    try:
        return open_socket(host, port)
    except CannotListen as error:
        if or_any:
            return open_socket(host, 0)
        raise BadInput(f"--port {port}: {error}") from None


def _log_requests(level: int) -> None:
    """Write what the server logs to the standard error stream, with the time."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    logger = logging.getLogger("pmdc.explore")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)


def _run(app: Any, listener: socket.socket, started: Any) -> None:
    """Serve until a signal, then end the process, also if work goes on in a thread."""
    from pmdc.explore.server import run, url_of

    url = url_of(listener)
    with work():
        run(app, listener, lambda: started(url))
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(0.5)
    if any(thread.is_alive() for thread in others):  # Python would wait for them, however long
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _read_table(screen: Screen, command: str, model: Any, source: str, format: Format) -> Table:
    """Return the features of a table, and the true states where it has class columns."""
    from pmdc.explore.table import Table

    table = read_table(source, format)
    for message in table.notes:
        screen.note(command, message)
    if not table.n_rows:
        raise BadInput(f"{table.source} has no rows: give a table with rows, or none.")
    used = read_features(table, model, drop_missing=None)
    for warning in used.warnings:
        screen.warn(command, warning)
    Y = _known_states(screen, command, model, table)
    with work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        return Table.of(model, used.X, Y, Path(table.source).name, first_number=1)


def _known_states(screen: Screen, command: str, model: Any, table: TableFile) -> Any:
    """Return the states in the class columns, None where there are none; None for a table without class columns."""
    names = model.class_names_
    if not any(name in table.names for name in names):
        return None
    columns = {}
    for name in names:
        found = read_states(table, model, name)
        columns[name] = found.evidence()
        if found.unknown.any():
            screen.warn(
                command,
                f"class variable {name!r} has states that the model does not know, in {int(found.unknown.sum())} "
                f"row(s): {table.examples(table[name], found.unknown)}. They count as missing.",
            )
    return require("pandas").DataFrame(columns)
