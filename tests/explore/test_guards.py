"""The guards refuse what they must, with a structured error, and pass on everything else unchanged."""

import asyncio
import json
import logging
import re
import threading

import pytest

from pmdc.explore.guards import BodyLimit, Settings, guarded

HOST = (b"host", b"127.0.0.1:8000")


async def echo(scope, receive, send):
    """Answer with the body that was received."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await answer(send, 200, body)


async def answer(send, status, body):
    await send({"type": "http.response.start", "status": status, "headers": [(b"x-own", b"1")]})
    await send({"type": "http.response.body", "body": body})


class Answer:
    def __init__(self, messages, taken):
        (start,) = (message for message in messages if message["type"] == "http.response.start")
        self.status = start["status"]
        self.headers = [(name.decode(), value.decode()) for name, value in start["headers"]]
        self.body = b"".join(message.get("body", b"") for message in messages)
        self.ended = not messages[-1].get("more_body", False)
        self.taken = taken
        """How many messages the application was given."""

    @property
    def error(self):
        document = json.loads(self.body)
        assert list(document) == ["error"]
        assert list(document["error"]) == ["code", "message", "field"]
        assert ("content-type", "application/json") in self.headers
        return document["error"]


async def request(app, chunks=(b"",), *, method="POST", path="/", headers=(HOST,), wait=None):
    """Send a request with these parts of a body; then wait like a client that has more, if `wait` is given."""
    sent, taken = [], 0
    chunks = list(chunks)
    more = [*([True] * (len(chunks) - 1)), wait is not None]

    async def receive():
        nonlocal taken
        if taken < len(chunks):
            taken += 1
            return {"type": "http.request", "body": chunks[taken - 1], "more_body": more[taken - 1]}
        if wait is not None:
            await asyncio.sleep(wait)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"secret=1", "headers": list(headers)}
    await app(scope, receive, send)
    return Answer(sent, taken)


def ask(app=echo, chunks=(b"",), settings=None, **options):
    return asyncio.run(request(guarded(app, settings or Settings()), chunks, **options))


def test_requests_pass_unchanged():
    found = ask(chunks=[b"a", b"", b"bc"])
    assert (found.status, found.body) == (200, b"abc")
    assert ("x-own", "1") in found.headers


# Who may ask --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:1", "[::1]", "[::1]:65535"])
def test_loopback_hosts(host):
    assert ask(headers=[(b"host", host.encode())]).status == 200
    assert ask(headers=[(b"host", host.encode()), (b"origin", f"http://{host}".lower().encode())]).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1",
        "127.0.0.1@evil.example", "evil.example#127.0.0.1", "localhost:x", "localhost:", "[::2]", "::1", "0x7f.1",
        "0.0.0.0", "localhost ", "127.0.0.1\n",
    ],
)  # fmt: skip
def test_foreign_hosts(host):
    found = ask(headers=[(b"host", host.encode())])
    assert found.status == 403
    assert found.error["code"] == "forbidden"
    assert "Host" in found.error["message"]
    assert found.taken == 0


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "evil.example"]])
def test_there_must_be_one_host(hosts):
    assert ask(headers=[(b"host", host.encode()) for host in hosts]).status == 403


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://evil.example", "https://127.0.0.1:8000", "http://127.0.0.1", "http://127.0.0.1:8001",
     "http://localhost:8000", "http://127.0.0.1:8000.evil.example"],
)  # fmt: skip
def test_foreign_origins(origin):
    found = ask(headers=[HOST, (b"origin", origin.encode())])
    assert found.status == 403
    assert "Origin" in found.error["message"]
    both = ask(headers=[HOST, (b"origin", b"http://127.0.0.1:8000"), (b"origin", origin.encode())])
    assert both.status == 403


def test_with_a_token_hosts_do_not_matter_but_the_token_does():
    settings = Settings(token="sésame-0123456789")
    elsewhere = [(b"host", b"api.example"), (b"origin", b"https://shop.example")]
    for value in ("Bearer sésame-0123456789", "bearer  sésame-0123456789 "):
        assert ask(settings=settings, headers=[*elsewhere, (b"Authorization", value.encode())]).status == 200
    right = (b"authorization", "Bearer sésame-0123456789".encode())
    wrong = [
        [], [(b"authorization", b"")], [(b"authorization", b"Bearer")], [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Bearer s")], [(b"authorization", "Basic sésame-0123456789".encode())],
        [(b"authorization", "sésame-0123456789".encode())], [(b"authorization", b"Bearer \xff\xfe")],
        [right, (b"authorization", b"Bearer other")], [(b"cookie", b"token=s")],
    ]  # fmt: skip
    for headers in wrong:
        found = ask(settings=settings, headers=[HOST, *headers])
        assert (found.status, found.error["code"], found.taken) == (401, "unauthorised", 0)
        assert any(name == "www-authenticate" and value.startswith("Bearer") for name, value in found.headers)


def test_only_health_is_free():
    settings = Settings(token="x" * 16)
    assert ask(settings=settings, method="GET", path="/health").status == 200
    for path in ("/", "/health/", "/health/..", "/HEALTH", "//health", "/healthy", "/schema"):
        assert ask(settings=settings, method="GET", path=path).status == 401


# How much and how long ----------------------------------------------------------------------------------------


def test_the_largest_body_passes_and_a_larger_one_does_not():
    settings = Settings(max_body=10)
    assert ask(chunks=[b"12345", b"67890"], settings=settings).body == b"1234567890"
    for chunks in ([b"12345", b"678901"], [b"12345678901"], [b"1"] * 11):
        found = ask(chunks=chunks, settings=settings)
        assert (found.status, found.error["code"]) == (413, "too_large")
        assert " 10 bytes" in found.error["message"]
        assert ("connection", "close") in found.headers
        assert found.ended


def test_an_announced_length_is_refused_before_anything_is_read():
    taken = []

    async def app(scope, receive, send):
        taken.append(await receive())

    found = ask(app, chunks=[b"1"], settings=Settings(max_body=10), headers=[HOST, (b"content-length", b"11")])
    assert (found.status, found.error["code"]) == (413, "too_large")
    assert not taken


@pytest.mark.parametrize("lengths", [["-1"], ["x"], ["1e3"], [""], ["0x10"], ["+1"], ["1_0"], ["9" * 19], ["1", "2"]])
def test_malformed_lengths(lengths):
    found = ask(headers=[HOST, *((b"content-length", length.encode()) for length in lengths)])
    assert (found.status, found.error["code"]) == (400, "invalid")
    assert "Content-Length" in found.error["message"]


def test_slow_bodies():
    found = ask(chunks=[b"1"], wait=5, settings=Settings(max_body_seconds=0.1))
    assert (found.status, found.error["code"]) == (408, "timeout")
    assert "0.1 s" in found.error["message"]
    assert found.ended


def test_a_client_that_goes_away_is_not_answered():
    async def run():
        sent = []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/", "headers": [HOST]}
        await guarded(echo, Settings())(scope, receive, send)
        return sent

    assert asyncio.run(run()) == []


def test_bodies_of_all_requests_together_are_limited():
    """Eight of the largest fit; the ninth is told to come again, and fits when they have gone."""

    async def run():
        gate = asyncio.Event()

        async def held(scope, receive, send):
            await gate.wait()
            await echo(scope, receive, send)

        app = BodyLimit(held, max_body=10, max_seconds=5)
        first = [asyncio.create_task(request(app, [b"x" * 10])) for _ in range(8)]
        await asyncio.sleep(0.05)
        ninth = await request(app, [b"x" * 10])
        gate.set()
        return [found.status for found in await asyncio.gather(*first)], ninth, await request(app, [b"x" * 10])

    first, ninth, later = asyncio.run(run())
    assert first == [200] * 8
    assert (ninth.status, ninth.error["code"]) == (503, "busy")
    assert later.status == 200


def test_late_answers_become_an_error_and_the_work_goes_on():
    done = threading.Event()

    async def run():
        async def slow(scope, receive, send):
            await asyncio.sleep(0.3)
            await answer(send, 200, b"late")
            done.set()

        found = await request(guarded(slow, Settings(max_seconds=0.1)))
        assert not done.is_set()
        await asyncio.sleep(0.4)
        return found

    found = asyncio.run(run())
    assert (found.status, found.error["code"]) == (503, "timeout")
    assert "0.1 s" in found.error["message"]
    assert done.is_set()
    assert b"late" not in found.body


def test_work_in_a_thread_does_not_hold_the_answer_back():
    """Frameworks shield threads from cancellation, so that cancelling would wait for them."""
    import anyio.to_thread

    gate = threading.Event()

    async def run():
        async def threaded(scope, receive, send):
            await anyio.to_thread.run_sync(gate.wait)

        try:
            return await request(guarded(threaded, Settings(max_seconds=0.1)))
        finally:
            assert not gate.is_set()
            gate.set()

    assert asyncio.run(run()).error["code"] == "timeout"


def test_answers_that_have_begun_are_finished():
    async def streamed(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await asyncio.sleep(0.3)
        await send({"type": "http.response.body", "body": b"b"})

    found = ask(streamed, settings=Settings(max_seconds=0.1))
    assert (found.status, found.body) == (200, b"ab")


def test_running_requests_are_limited_also_those_answered_late():
    async def run():
        gate = asyncio.Event()

        async def held(scope, receive, send):
            await gate.wait()
            await answer(send, 200, b"")

        app = guarded(held, Settings(max_running=2, max_seconds=0.1))
        codes = [(await request(app)).error["code"] for _ in range(3)]
        gate.set()
        await asyncio.sleep(0.05)
        return codes, (await request(app)).status

    assert asyncio.run(run()) == (["timeout", "timeout", "busy"], 200)


# What is told -------------------------------------------------------------------------------------------------


def failing(begin):
    async def app(scope, receive, send):
        secret = (await receive())["body"].decode()
        if begin:
            await answer(send, begin, b"from the framework")
        try:
            int(secret)
        except ValueError as error:
            raise RuntimeError(f"bad value {secret}") from error

    return app


@pytest.mark.parametrize("begin", [None, 500])
def test_failures_are_plain_and_their_log_quotes_nothing(begin, caplog):
    """Also if the framework has sent an answer of its own before it passes the exception on."""
    with caplog.at_level(logging.INFO, "pmdc.explore"):
        found = ask(failing(begin), chunks=[b"pa55word"])
    assert (found.status, found.error["code"]) == (500, "internal")
    assert "pa55word" not in found.body.decode() + caplog.text
    assert "secret=1" not in caplog.text
    assert "RuntimeError" in caplog.text
    assert "ValueError" in caplog.text
    assert "test_guards.py" in caplog.text


def test_a_failure_after_the_answer_is_only_logged(caplog):
    found = ask(failing(200), chunks=[b"pa55word"])
    assert (found.status, found.body) == (200, b"from the framework")
    assert "RuntimeError" in caplog.text


def test_an_error_of_the_application_itself_passes():
    async def app(scope, receive, send):
        await answer(send, 500, b"own")

    found = ask(app)
    assert (found.status, found.body) == (500, b"own")


def test_one_line_for_each_request_without_contents(caplog):
    headers = [HOST, (b"authorization", b"Bearer tok3n"), (b"cookie", b"c00kie")]
    with caplog.at_level(logging.INFO, "pmdc.explore"):
        ask(chunks=[b"pa55", b"word"], headers=headers, path="/predict")
        ask(method="GET", path="/a b\r\n2026 GET /forged 200\x1b[31m\ud800é", headers=[HOST])
        ask(headers=[(b"host", b"evil.example")], path="/x" * 10_000)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert re.fullmatch(r"POST /predict 200 \d+\.\d ms, 8 bytes in, 8 bytes out", lines[0])
    assert re.fullmatch(r"GET /\S+ 200 \d+\.\d ms, 0 bytes in, 0 bytes out", lines[1])
    assert lines[1].isascii()
    assert lines[1].isprintable()
    assert " 403 " in lines[2]
    assert len(lines[2]) < 300
    for secret in ("tok3n", "c00kie", "pa55", "word", "secret", "evil"):
        assert secret not in caplog.text


def test_security_headers_on_every_answer():
    async def app(scope, receive, send):
        headers = [(b"Cache-Control", b"public"), (b"content-security-policy", b"default-src 'none'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    for found in (ask(app), ask(headers=[(b"host", b"evil.example")]), ask(settings=Settings(token="x" * 16))):
        headers = dict(found.headers)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert [name for name, _ in found.headers].count("cache-control") == 1
        assert ("content-security-policy", "frame-ancestors 'none'") in found.headers
    assert ("content-security-policy", "default-src 'none'") in ask(app).headers  # both hold


def test_frames_of_a_notebook():
    found = ask(settings=Settings(frame_ancestors=("http://localhost:8888", "'self'")))
    assert ("content-security-policy", "frame-ancestors http://localhost:8888 'self'") in found.headers


def test_start_and_end_pass_and_websockets_do_not():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    async def run(kind):
        sent = []

        async def send(message):
            sent.append(message["type"])

        await guarded(app, Settings(token="x" * 16))({"type": kind}, None, send)
        return sent

    assert asyncio.run(run("lifespan")) == []
    assert asyncio.run(run("websocket")) == ["websocket.close"]
    assert seen == ["lifespan"]
