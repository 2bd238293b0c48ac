"""What stands between the network and the application: who may ask, how much, how long, and what is logged.

Each guard is a small ASGI middleware that wraps any application; `guarded` puts them together. What they refuse is
answered like every error of the service: ``{"error": {"code": ..., "message": ..., "field": null}}``.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import re
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOGGER = logging.getLogger("pmdc.explore")

_LINGER_SECONDS = 2.0
"""How long the rest of a refused body is received and dropped: a client that sends does not read the answer."""


@dataclass(frozen=True)
class Settings:
    """Limits and rights of a server.

    Attributes
    ----------
    token : str or None
        What a client must send as ``Authorization: Bearer <token>``. Without a token only this computer may ask: the
        Host header must be a loopback address, and pages of other origins are refused.
    max_body : int
        Largest body of a request, in bytes.
    max_seconds : float
        Longest time from the arrival of a request until its answer begins.
    max_body_seconds : float
        Longest time in which a body must have arrived.
    max_running : int
        Largest number of requests at the same time.
    frame_ancestors : tuple of str
        Origins whose pages may show this one in a frame, as in the Content-Security-Policy; empty for none.
    """

    token: str | None = None
    max_body: int = 20_000_000
    max_seconds: float = 30.0
    max_body_seconds: float = 20.0
    max_running: int = 256
    frame_ancestors: tuple[str, ...] = ()


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return the application behind all guards."""
    inner: ASGIApp = Failures(app)
    inner = TimeLimit(inner, settings.max_seconds, settings.max_running)
    inner = BodyLimit(inner, settings.max_body, settings.max_body_seconds)
    inner = LoopbackOnly(inner) if settings.token is None else BearerToken(inner, settings.token)
    inner = SecurityHeaders(inner, settings.frame_ancestors)
    return HttpOnly(RequestLog(inner), app)


class Refusal(NamedTuple):
    """A structured error instead of an answer."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def body(self) -> bytes:
        return json.dumps({"error": {"code": self.code, "message": self.message, "field": None}}).encode()

    @property
    def all_headers(self) -> list[tuple[bytes, bytes]]:
        length = str(len(self.body)).encode()
        return [(b"content-type", b"application/json"), (b"content-length", length), *self.headers]

    async def send(self, send: Send, *, more_body: bool = False) -> None:
        """Send it; `more_body` keeps the connection open until an empty body is sent."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.all_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": more_body})


def _header_values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


class HttpOnly:
    """Send HTTP requests to the guards, start and end of the server to the application; close websockets."""

    def __init__(self, guards: ASGIApp, app: ASGIApp) -> None:
        self.guards = guards
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.guards(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)


# Who may ask --------------------------------------------------------------------------------------------------


class LoopbackOnly:
    """Refuse requests that a page of another origin may have made.

    A page may send requests to any address, and by DNS rebinding make a name of its own mean this computer. The first
    is told by the Origin header, the second by the Host header.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _foreign(_header_values(scope, b"host"), _header_values(scope, b"origin"))
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            await Refusal(403, "forbidden", refusal).send(send)


def _foreign(hosts: list[str], origins: list[str]) -> str | None:
    """Return why these headers are refused; None if they are of this computer."""
    if len(hosts) != 1 or not _is_loopback(hosts[0]):
        return (
            "The Host header must be 127.0.0.1, localhost or [::1]: this server answers only programs on the same "
            "computer. For others, start pmdc serve with --host and --token-file."
        )
    if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
        return "The Origin header is not that of this server: pages of other origins may not ask it."
    return None


def _is_loopback(host: str) -> bool:
    """Return whether a Host header, with or without port, is localhost or an address of this computer."""
    parts = re.fullmatch(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<name>[0-9a-zA-Z.]+))(?::[0-9]{1,5})?", host)
    if parts is None:
        return False
    if parts["name"] is not None and parts["name"].lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts["six"] or parts["name"]).is_loopback
    except ValueError:
        return False


class BearerToken:
    """Refuse requests without the token, except for the paths in `free`."""

    def __init__(self, app: ASGIApp, token: str, free: tuple[str, ...] = ("/health",)) -> None:
        self.app = app
        self.free = free
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in self.free or self._is_known(_header_values(scope, b"authorization")):
            await self.app(scope, receive, send)
            return
        message = "This server needs the header Authorization: Bearer <token>, with the token of its token file."
        await Refusal(401, "unauthorised", message, ((b"www-authenticate", b'Bearer realm="pmdc"'),)).send(send)

    def _is_known(self, values: list[str]) -> bool:
        if len(values) != 1:
            return False
        scheme, _, token = values[0].partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), self._token)


# How much and how long ----------------------------------------------------------------------------------------


class BodyLimit:
    """Receive the whole body before the application is asked; refuse bodies that are too large or too slow.

    All bodies together take at most as much memory as eight of the largest.
    """

    def __init__(self, app: ASGIApp, max_body: int, max_seconds: float) -> None:
        self.app = app
        self.max_body = max_body
        self.max_seconds = max_seconds
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        try:
            refusal = await self._receive_into(body, receive, _header_values(scope, b"content-length"))
            if refusal is None:
                await self.app(scope, _replay(bytes(body), receive), send)
        except _Disconnected:
            return
        finally:
            self._held -= len(body)
        if refusal is not None:
            closing = refusal._replace(headers=(*refusal.headers, (b"connection", b"close")))
            await closing.send(send, more_body=True)
            await _drop(receive)
            await send({"type": "http.response.body", "body": b""})

    async def _receive_into(self, body: bytearray, receive: Receive, lengths: list[str]) -> Refusal | None:
        """Receive the body; return why it is refused, if it is."""
        if any(not re.fullmatch("[0-9]{1,18}", length) for length in lengths) or len(set(lengths)) > 1:
            return Refusal(400, "invalid", "The Content-Length header must be one whole number.")
        if lengths and int(lengths[0]) > self.max_body:
            return self._too_large()
        try:
            async with asyncio.timeout(self.max_seconds):
                return await self._receive_all(body, receive)
        except TimeoutError:
            message = f"The body of the request did not arrive within {self.max_seconds:g} s."
            return Refusal(408, "timeout", message)

    async def _receive_all(self, body: bytearray, receive: Receive) -> Refusal | None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Disconnected
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > self.max_body:
                return self._too_large()
            if self._held + len(chunk) > 8 * self.max_body:
                return Refusal(503, "busy", "The server is receiving too many large requests: try again later.", _LATER)
            body += chunk
            self._held += len(chunk)
            more = message.get("more_body", False)
        return None

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            "too_large",
            f"The body of the request is larger than {self.max_body} bytes, the limit of this server: send fewer rows "
            "at once.",
        )


class _Disconnected(Exception):
    """The client has gone."""


_LATER = ((b"retry-after", b"1"),)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body at once, then what comes after it."""
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


async def _drop(receive: Receive) -> None:
    """Receive and forget what the client still sends, for a while."""
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                pass
    except TimeoutError:
        pass


class TimeLimit:
    """Answer in time: with an error if the application has not begun its answer until then.

    Its work goes on, because threads cannot be stopped, and counts among the running requests until it ends.
    """

    def __init__(self, app: ASGIApp, max_seconds: float, max_running: int) -> None:
        self.app = app
        self.max_seconds = max_seconds
        self.max_running = max_running
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if len(self._running) >= self.max_running:
            message = f"The server is working on {self.max_running} requests: try again later."
            await Refusal(503, "busy", message, _LATER).send(send)
            return
        begun = late = False

        async def send_in_time(message: Message) -> None:
            nonlocal begun
            if not late:
                begun = True
                await send(message)

        task = asyncio.create_task(self._run(scope, receive, send_in_time))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        await asyncio.wait({task}, timeout=self.max_seconds)
        if task.done() or begun:
            await task
            return
        late = True
        message = (
            f"The answer was not ready within {self.max_seconds:g} s, the limit of this server: send fewer rows at "
            "once, or ask for less about each."
        )
        await Refusal(503, "timeout", message).send(send)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


# What is told -------------------------------------------------------------------------------------------------


class Failures:
    """Answer unexpected exceptions with a plain sentence, and log where they came from.

    Messages of exceptions are not logged: they may quote the request. A response of status 500 is held back until the
    application has ended, because frameworks send one of their own before they pass an exception on.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []
        begun = False

        async def hold_failure(message: Message) -> None:
            nonlocal begun
            if held or (message["type"] == "http.response.start" and message["status"] == 500):
                held.append(message)
            else:
                begun = True
                await send(message)

        try:
            await self.app(scope, receive, hold_failure)
        except Exception as error:
            LOGGER.error("%s failed:\n%s", _request_line(scope), "".join(_places(error)))
            if not begun:
                sentence = "The server failed to answer this request; its log says where."
                await Refusal(500, "internal", sentence).send(send)
            return
        for message in held:
            await send(message)


def _places(error: BaseException) -> Iterator[str]:
    """Yield the traceback of an exception and of its causes, without their messages."""
    seen = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield from traceback.format_tb(link.__traceback__)
        yield f"{type(link).__qualname__}\n"
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if link is not None:
            yield "caused by:\n"


class RequestLog:
    """Log a line for each request: method, path, status, milliseconds, bytes received and sent.

    Never contents, headers or the query. The path is quoted, so that it cannot forge a line.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        status = received = sent = 0

        async def count_received() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def count_sent(message: Message) -> None:
            nonlocal status, sent
            status = message.get("status", status)
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, count_received, count_sent)
        finally:
            milliseconds = 1000 * (time.perf_counter() - start)
            LOGGER.info(
                "%s %s %.1f ms, %d bytes in, %d bytes out",
                _request_line(scope),
                status or "-",
                milliseconds,
                received,
                sent,
            )


def _request_line(scope: Scope) -> str:
    """Return method and path, at most 200 characters of it, without control characters and spaces."""
    return f"{quote(scope['method'])} {quote(scope['path'][:200], errors='replace')}"


class SecurityHeaders:
    """Add headers that tell browsers to guess, store, share and frame nothing."""

    def __init__(self, app: ASGIApp, frame_ancestors: Iterable[str] = ()) -> None:
        self.app = app
        ancestors = " ".join(frame_ancestors) or "'none'"
        self._headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]
        self._policy = (b"content-security-policy", f"frame-ancestors {ancestors}".encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in self._headers}
                own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
                message = {**message, "headers": [*own, *self._headers, self._policy]}  # policies add up
            await send(message)

        await self.app(scope, receive, add_headers)
