"""A server on real sockets: errors of ports and hosts, hostile clients, signals, threads."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

pytest.importorskip("uvicorn")

from pmdc.explore import server
from pmdc.explore.server import CannotListen, in_background, is_loopback, open_socket, url_of

PROGRAM = """
import sys, time, anyio.to_thread
from pathlib import Path
from pmdc.explore.guards import Settings, guarded
from pmdc.explore.server import open_socket, run, url_of

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/slow":
        await anyio.to_thread.run_sync(time.sleep, 60)
    size = len((await receive())["body"])
    peak = Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{size} {peak}".encode()})

listener = open_socket("127.0.0.1", 0)
settings = Settings(max_body=1_000_000, max_body_seconds=1.0, max_seconds=1.0)
run(guarded(app, settings), listener, lambda: print(url_of(listener), flush=True))
print("ended", flush=True)
"""


async def hello(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def background(app, **options):
    running = in_background(app, **options)
    try:
        yield running
    finally:
        running.stop()


@contextmanager
def started(*command):
    """Start a program that prints a line with its address; yield the process and its port."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, int(re.search(r":(\d+)", line)[1])
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def port():
    """A server with small limits, in a process of its own."""
    with started("-c", PROGRAM) as (_, port):
        yield port


def ask(port, method="GET", path="/", body=None, headers=None, encode_chunked=False):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path, body, headers or {}, encode_chunked=encode_chunked)
        response = connection.getresponse()
        return response.status, response.read()


def send_raw(port, *parts, pause=0.0):
    """Send these bytes and return all that is answered until the server closes the connection."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def code_of(body):
    return json.loads(body)["error"]["code"]


def lives(port):
    assert ask(port)[0] == 200


# Sockets ------------------------------------------------------------------------------------------------------


def test_a_port_in_use():
    with closing(open_socket("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"port {port} of 127\.0\.0\.1 is in use") as caught:
            open_socket("127.0.0.1", port)
        assert "free port" in str(caught.value)
    with closing(open_socket("127.0.0.1", port)):  # free again at once
        pass


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_ports_that_are_none(port):
    with pytest.raises(CannotListen, match=f"{port} .*65535"):
        open_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["", "no.such.host.invalid", "1.2.3.4.5", "a b", "\x00", "x" * 300, "192.0.2.1"])
def test_hosts_that_are_not_this_computer(host):
    with pytest.raises(CannotListen, match=re.escape(repr(host)) if host != "192.0.2.1" else "192.0.2.1"):
        open_socket(host, 0)


def test_ports_that_are_not_allowed(monkeypatch):
    def refuse(self, address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(CannotListen, match="port 80 .*1024"):
        open_socket("127.0.0.1", 80)


def test_addresses():
    with closing(open_socket("127.0.0.1", 0)) as listener:
        assert url_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
    if socket.has_ipv6:
        with closing(open_socket("::1", 0)) as listener:
            assert url_of(listener).startswith("http://[::1]:")


def test_loopback_addresses():
    assert all(map(is_loopback, ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.0.0.1.example.org"]))


# Threads ------------------------------------------------------------------------------------------------------


def test_in_a_thread():
    """Several at once; none touches the signal handlers of the process; a stopped one frees its port."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with background(hello) as first, background(hello) as second:
        assert first.url != second.url
        for running in (first, second):
            assert urllib.request.urlopen(running.url).read() == b"hello"
        port = int(first.url.rpartition(":")[2])
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    with background(hello, port=port) as again:
        assert urllib.request.urlopen(again.url).read() == b"hello"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(again.url)
    again.stop()  # twice does no harm


def test_a_server_that_cannot_start():
    async def broken(scope, receive, send):
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.raises(RuntimeError, match="could not be started"):
        in_background(broken)


def test_in_a_thread_while_a_loop_runs():
    """As in notebooks, whose cells run inside an event loop."""
    import asyncio

    async def cell():
        with background(hello) as running:
            return await asyncio.to_thread(lambda: urllib.request.urlopen(running.url).read())

    assert asyncio.run(cell()) == b"hello"


# Hostile clients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_100_mb(port, chunked):
    """With and without Content-Length: the client reads the refusal, and the server has not held the body."""
    before = int(ask(port)[1].split()[1])
    piece = bytes(1_000_000)
    body = (piece for _ in range(100))
    headers = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": "100000000"}
    status, answer = ask(port, "POST", "/", body, headers, encode_chunked=chunked)
    assert (status, code_of(answer)) == (413, "too_large")
    assert "1000000 bytes" in json.loads(answer)["error"]["message"]
    assert int(ask(port)[1].split()[1]) - before < 5_000  # kB
    lives(port)


def test_a_body_without_end_is_cut_off(port):
    """The rest of a refused body is read for two seconds, then the connection is closed."""
    start = time.monotonic()
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        cut_off = False
        while not cut_off and time.monotonic() < start + 15:
            try:
                connection.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
            except OSError:
                cut_off = True
    assert cut_off
    assert time.monotonic() - start < 10
    lives(port)


def test_the_largest_body_is_read(port):
    assert ask(port, "POST", "/", bytes(1_000_000))[1].split()[0] == b"1000000"
    pieces = (bytes(100_000) for _ in range(10))
    status, answer = ask(port, "POST", "/", pieces, {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert (status, answer.split()[0]) == (200, b"1000000")


def test_slow_bodies(port):
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    answer = send_raw(port, head, b"1", b"2")
    assert b" 408 " in answer.splitlines()[0]
    assert code_of(answer.partition(b"\r\n\r\n")[2]) == "timeout"
    lives(port)


def test_slow_heads(monkeypatch):
    """A connection on which no request arrives is closed; those that ask again and again are not."""
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.3)
    with background(hello) as running:
        port = int(running.url.rpartition(":")[2])
        start = time.monotonic()
        assert send_raw(port) == b""
        assert send_raw(port, b"GET / HT", b"TP/1.1", b"\r\nHost", pause=0.1) == b""
        assert time.monotonic() - start < 3
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
            for _ in range(6):
                connection.request("GET", "/")
                assert connection.getresponse().read() == b"hello"
                time.sleep(0.1)


@pytest.mark.parametrize(
    "request_text",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5, 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_what_is_not_http(port, request_text):
    answer = send_raw(port, request_text)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert code_of(answer.partition(b"\r\n\r\n")[2]) == "invalid"
    lives(port)


def test_a_head_that_is_too_large(port):
    """The connection is closed; whether the client still reads the answer depends on the network."""
    with suppress(ConnectionError):
        answer = send_raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000)
        assert b" 400 " in answer.splitlines()[0]
    lives(port)


def test_a_malformed_chunk(port):
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert send_raw(port, head, b"zz\r\n").startswith(b"HTTP/1.1 400 ")
    lives(port)


def test_foreign_hosts_and_origins(port):
    for headers in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{port}"},
    ):
        status, answer = ask(port, headers=headers)
        assert (status, code_of(answer)) == (403, "forbidden")
    assert ask(port, headers={"Origin": f"http://127.0.0.1:{port}"})[0] == 200
    assert ask(port, headers={"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"})[0] == 200


def test_websockets_are_no_way_in(port):
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}
    assert ask(port, headers=headers)[0] == 200  # an ordinary request
    assert ask(port, headers={**headers, "Host": "evil.example"})[0] == 403


def test_late_answers_and_others_meanwhile(port):
    start = time.monotonic()
    status, answer = ask(port, path="/slow")
    assert (status, code_of(answer)) == (503, "timeout")
    assert time.monotonic() - start < 5
    lives(port)


def test_too_many_connections(port):
    """One more than there may be is told so, in the form of all errors, and those before it are still answered."""
    with ExitStack() as stack:
        held = []
        for _ in range(server._MAX_CONNECTIONS):
            held.append(stack.enter_context(closing(socket.create_connection(("127.0.0.1", port), timeout=20))))
        time.sleep(0.5)
        answer = send_raw(port, b"")
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert code_of(answer.partition(b"\r\n\r\n")[2]) == "busy"
        held[0].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in held[0].recv(1000)
    time.sleep(0.5)
    lives(port)


def test_clients_that_do_not_read_are_given_up(monkeypatch):
    """A large answer is not kept for ever for a client that takes none of it; a slow one gets all of it."""
    ended = threading.Event()

    async def large(scope, receive, send):
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": bytes(30_000_000)})
            ended.set()

    monkeypatch.setattr(server, "_READ_SECONDS", 0.5)
    with background(large) as running:
        port = int(running.url.rpartition(":")[2])
        with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert ended.wait(10)
        with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            size = 0
            while piece := connection.recv(1_000_000):
                size += len(piece)
                time.sleep(0.02)
        assert size > 30_000_000


def test_clients_that_leave(port):
    for _ in range(20):
        with closing(socket.create_connection(("127.0.0.1", port))) as connection:
            connection.sendall(b"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12")
    lives(port)


def test_the_software_is_not_named(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}") as response:
        assert "server" not in {name.lower() for name in response.headers}


# Signals ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_server_cleanly(number):
    with started("-c", PROGRAM) as (process, port):
        lives(port)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out, err) == (0, "ended\n", "")
        with pytest.raises(OSError, match="refused"):
            ask(port)


def test_signals_are_handled_as_before_afterwards():
    """A server in the main thread gives the handlers back; a signal that was ignored stays so."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        during = {}
        listener = open_socket("127.0.0.1", 0)

        def stop():
            during.update({number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)})
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()

        server.run(hello, listener, stop)
        assert during[signal.SIGINT] != before[signal.SIGINT]
        assert during[signal.SIGHUP] == signal.SIG_IGN
        assert {number: signal.getsignal(number) for number in before} == before
    finally:
        signal.signal(signal.SIGHUP, ignored)
