"""Run an application on a socket: in the foreground until Ctrl-C, or in a thread for notebooks."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from pmdc.explore.guards import Refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_MAX_CONNECTIONS = 512
_GRACE_SECONDS = 3
"""How long running requests may take to end when the server is stopped."""
_HEAD_SECONDS = 10.0
"""How long a client may take to send the head of a request."""
_READ_SECONDS, _READ_BYTES = 30.0, 30_000
"""A client that reads less of its answer in this time is given up."""

_COLLECT_AFTER = 100_000
"""Objects made until garbage is looked for: more than an answer about a thousand rows has."""

_NOT_STARTED = "the server could not be started; the message above says why."


class CannotListen(Exception):
    """No socket could be opened at this host and port."""


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host and a port.

    Parameters
    ----------
    port : int
        0 for any port that is free.
    """
    if not 0 <= port <= 65535:
        raise CannotListen(f"port {port} must be from 0 (any free port) to 65535.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        found = []
    if not host or not found:
        raise CannotListen(f"host {host!r} is not an address or name of this computer: give one, such as 127.0.0.1.")
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere the option lets two programs share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise CannotListen(_refused(host, port, error)) from error
    return listener


def _refused(host: str, port: int, error: OSError) -> str:
    place = f"port {port} of {host}"
    if isinstance(error, PermissionError):
        return f"{place} may not be used by this user: choose one from 1024 on, or 0 for any free port."
    if _probe(host, port):
        return f"{place} is in use by another program: choose another port, or 0 for any free port."
    return f"{place} cannot be used ({error.strerror}): choose another port, or a host that is this computer."


def _probe(host: str, port: int) -> bool:
    """Return whether a program answers at a port."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def url_of(listener: socket.socket) -> str:
    """Return the address of a socket for a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether only programs of this computer can reach a host."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Protocol(H11Protocol):
    """HTTP that does not wait forever for clients, and refuses what is not HTTP, or too much, like all else."""

    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _MAX_CONNECTIONS:
            self._refuse(503, "busy", f"The server has {_MAX_CONNECTIONS} connections: try again later.")
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()
        self._stop_reading()

    def _watch(self) -> None:
        """Set a deadline for the head that is awaited, if one is."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._unwatch()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_reading()

    def _await_reader(self, size: int) -> None:
        """Set a deadline until which the client must have read some of so many bytes."""

        def check() -> None:
            now = self.transport.get_write_buffer_size()
            if now > size - _READ_BYTES:
                self.transport.abort()
            else:
                self._await_reader(now)

        self._reading = self.loop.call_later(_READ_SECONDS, check)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "invalid", "This is not a valid HTTP request.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Send a structured error outside of a request, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refusal = Refusal(status, code, message, ((b"connection", b"close"),))
            reason = HTTPStatus(status).phrase.encode()
            response = h11.Response(status_code=status, headers=refusal.all_headers, reason=reason)
            for event in (response, h11.Data(data=refusal.body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Server(uvicorn.Server):
    """A server that ends by a signal as if it had been asked to, and says when it has started."""

    def __init__(self, app: ASGIApp, started: Callable[[], object]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Protocol,
                ws="none",
                access_log=False,
                log_config=None,
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=5,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, without raising them again afterwards as uvicorn does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [
            getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
        ]
        before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
        before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
        for number in before:
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(app: ASGIApp, listener: socket.socket, started: Callable[[], object] = lambda: None) -> None:
    """Serve an application until Ctrl-C, SIGTERM or SIGHUP.

    What is in memory now, such as the model, is kept from the garbage collector: large answers make it run often.

    Parameters
    ----------
    started : callable
        Called when the server answers.
    """
    server = _Server(app, started)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    _serve(server, listener)
    if not server.started:
        raise RuntimeError(_NOT_STARTED)


def _serve(server: _Server, listener: socket.socket) -> None:
    with listener, suppress(SystemExit):  # how uvicorn ends if the application does not start
        server.run(sockets=[listener])


class Background:
    """A server in a thread that ends with the process.

    Attributes
    ----------
    url : str
        Where it answers.
    """

    def __init__(self, app: ASGIApp, listener: socket.socket) -> None:
        self.url = url_of(listener)
        answers = threading.Event()
        self._server = _Server(app, answers.set)
        self._thread = threading.Thread(target=_serve, args=(self._server, listener), daemon=True)
        self._thread.start()
        while not answers.wait(0.05):
            if not self._thread.is_alive():
                raise RuntimeError(_NOT_STARTED)

    def stop(self) -> None:
        """End the server; running requests have a few seconds to end."""
        self._server.should_exit = True
        self._thread.join(_GRACE_SECONDS + 2)


def in_background(app: ASGIApp, host: str = "127.0.0.1", port: int = 0) -> Background:
    """Serve an application in a thread, for notebooks."""
    return Background(app, open_socket(host, port))


def open_browser(url: str) -> None:
    """Show a page in the browser of the desktop, if there is one; never in the terminal."""
    desktop = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if desktop or not sys.platform.startswith(("linux", "freebsd")):
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
