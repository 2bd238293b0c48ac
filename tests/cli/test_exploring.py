"""``pmdc explore`` and ``pmdc serve``: what is wrong is said before anything is served; signals end them cleanly."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing, contextmanager
from urllib.error import HTTPError

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

ROW = {"age": 30, "income": 0.5, "site": "007", "colour": "red"}
TOKEN = "0123456789abcdef"


@contextmanager
def running(folder, *arguments):
    """Start a command; yield the process and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pmdc", *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200", "BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""},
    )
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        yield process, re.search(r"http://\S+:\d+", line)[0]
    finally:
        process.kill()
        process.communicate()


def ask(url, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | {name.title(): value for name, value in headers.items()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as response:
            return response.status, response.read()
    except HTTPError as error:
        return error.code, error.read()


def end(process, number):
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


# What is wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["serve", "explore"])
def test_a_port_in_use(pmdc, folder, command):
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        done = pmdc(command, folder / "model.skops", "--port", port)
    assert (done.code, done.out) == (2, "")
    assert f"--port {port}" in done.err
    assert "in use" in done.err


@pytest.mark.parametrize("command", ["serve", "explore"])
def test_wrong_ports_models_and_tables(pmdc, folder, tmp_path, command):
    model = folder / "model.skops"
    (tmp_path / "other.csv").write_text("age,income\n1,2\n")
    (tmp_path / "no_rows.csv").write_text("age,income,site,colour\n")
    (tmp_path / "words.csv").write_text("age,income,site,colour\nyoung,1,007,red\n")
    for arguments, words in [
        (["absent.skops"], ["absent.skops", "pmdc fit"]),
        ([folder / "table.csv"], ["table.csv"]),
        ([model, "absent.csv"], ["absent.csv"]),
        ([model, "other.csv"], ["other.csv", "'site'"]),
        ([model, "no_rows.csv"], ["no_rows.csv"]),
        ([model, "words.csv"], ["words.csv", "'age'", "young"]),
        ([model, "--port", "65536"], ["65536"]),
        ([model, "--port", "-1"], ["-1"]),
        ([model, "--port", "http"], ["--port", "http"]),
    ]:
        done = pmdc(command, *arguments, *([] if "--port" in arguments else ["--port", 0]))
        assert (done.code, done.out) == (2, ""), (arguments, done)
        assert all(word in done.err for word in words), done.err
        assert "Traceback" not in done.err


def test_an_untrusted_model(pmdc, folder, tmp_path):
    fit = ["fit", folder / "new.csv", "-c", "mood,works", "--estimator", "forest", "--max-parents", 0]
    assert pmdc(*fit, "-o", "trees.skops").code == 0
    done = pmdc("serve", "trees.skops", "--port", 0)
    assert (done.code, done.out) == (2, "")
    assert "--trust" in done.err
    (tmp_path / "cut.skops").write_bytes((folder / "model.skops").read_bytes()[:1000])
    assert pmdc("serve", "cut.skops", "--port", 0).code == 2


def test_a_host_needs_a_token(pmdc, folder, tmp_path):
    model = folder / "model.skops"
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", ""):
        done = pmdc("serve", model, "--host", host, "--port", 0)
        assert (done.code, done.out) == (2, "")
        assert f"--host {host}" in done.err
        assert "--token-file" in done.err
    (tmp_path / "token").write_text(TOKEN)
    done = pmdc("serve", model, "--host", "no.such.host.invalid", "--token-file", "token", "--port", 0)
    assert done.code == 2
    assert "'no.such.host.invalid'" in done.err


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "no such file"),
        (b"", "0 characters"),
        (b" \n\n", "0 characters"),
        (b"  0123456789abcde \n", "15 characters"),
        (b"0123456789 abcdef", "one word"),
        (b"0123456789\nabcdef", "one word"),
        (b"0123456789abc\xc3\xa9def", "ASCII"),
        (b"\xff\xfe0123456789abcdef", "not text"),
    ],
)
def test_token_files(pmdc, folder, tmp_path, content, word):
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    done = pmdc("serve", folder / "model.skops", "--host", "0.0.0.0", "--token-file", "token", "--port", 0)
    assert (done.code, done.out) == (2, "")
    assert "--token-file token" in done.err
    assert word in done.err
    assert "0123456789" not in done.err  # a token is no matter for a terminal


@pytest.mark.skipif(os.name != "posix", reason="other commands elsewhere")
def test_the_command_that_makes_a_token(pmdc, folder, tmp_path):
    (tmp_path / "my tokens").mkdir()
    options = "serve", folder / "model.skops", "--host", "no.such.host.invalid", "--token-file", "my tokens/new"
    command = re.search(r"Make one: (.*)", " ".join(pmdc(*options).err.split()))[1].replace("python", sys.executable, 1)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    assert stat.S_IMODE((tmp_path / "my tokens" / "new").stat().st_mode) == 0o600
    assert "'no.such.host.invalid'" in pmdc(*options).err


@pytest.mark.parametrize("command", ["serve", "explore"])
@pytest.mark.parametrize("module", ["fastapi", "uvicorn"])
def test_a_missing_extra(pmdc, folder, monkeypatch, command, module):
    monkeypatch.setitem(sys.modules, module, None)
    done = pmdc(command, folder / "model.skops")
    assert done.code == 2
    assert 'pip install "pmdc[explore]"' in done.err


# What works ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(folder, tmp_path_factory):
    """A service with a token and small limits, in a folder of its own."""
    place = tmp_path_factory.mktemp("served")
    (place / "token").write_text(f"{TOKEN}\n")
    (place / "token").chmod(stat.S_IRUSR | stat.S_IRGRP)
    options = ["--port", 0, "--token-file", "token", "--max-body", "0.1", "--max-rows", "5", "--host", "0.0.0.0"]
    with running(place, "serve", folder / "model.skops", folder / "new.csv", *options) as (process, url):
        yield process, url.replace("0.0.0.0", "127.0.0.1")


def test_a_service_with_a_token(served):
    _, url = served
    allowed = {"authorization": f"Bearer {TOKEN}"}
    assert ask(f"{url}/health")[0] == 200
    for path in ("/schema", "/openapi.json", "/nowhere"):
        assert ask(url + path)[0] == 401
        assert ask(url + path, authorization=f"Bearer {TOKEN}x")[0] == 401
    assert ask(f"{url}/schema", **allowed)[0] == 200
    status, answer = ask(f"{url}/predict", {"rows": [ROW] * 5}, **allowed)
    assert (status, len(json.loads(answer)["rows"])) == (200, 5)
    for rows, expected in (([ROW] * 6, 422), ([ROW] * 5000, 413)):
        status, answer = ask(f"{url}/predict", {"rows": rows}, **allowed)
        assert status == expected
        assert json.loads(answer)["error"]["message"]


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_token_that_others_can_read(folder, tmp_path, mode, warned):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(mode)
    with running(tmp_path, "serve", folder / "model.skops", "--port", 0, "--token-file", "token") as (process, _):
        _, _, err = end(process, signal.SIGTERM)
    assert ("chmod 600 token" in err) == warned
    assert TOKEN not in err


def test_the_output_of_a_service(folder, tmp_path):
    """A line with the address; a line for each request, without its contents; exit code 0 for Ctrl-C."""
    with running(tmp_path, "serve", folder / "model.skops", "--port", 0) as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert ask(f"{url}/predict", {"rows": [{**ROW, "colour": "s3cret"}]})[0] == 200
        assert ask(f"{url}/predict?key=s3cret", {"rows": ["s3cret"]})[0] == 422
        assert ask(f"{url}/schema", host="evil.example")[0] == 403
        code, out, err = end(process, signal.SIGINT)
    assert (code, out) == (0, "")
    lines = err.splitlines()
    assert [re.search(r"(GET|POST) (\S+) (\d+) ", line).groups() for line in lines] == [
        ("POST", "/predict", "200"),
        ("POST", "/predict", "422"),
        ("GET", "/schema", "403"),
    ]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", line) for line in lines)
    assert "s3cret" not in err
    assert "evil" not in err


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_explorer_ends_with_sigterm_and_frees_its_port(folder, tmp_path):
    command = ["explore", folder / "model.skops", folder / "new.csv", "--port"]
    with running(tmp_path, *command, 0) as (process, url):
        status, page = ask(url)
        assert status == 200
        assert b"<!DOCTYPE html>" in page[:100]
        assert ask(f"{url}/rows/29")[0] == 200
        code, out, err = end(process, signal.SIGTERM)
        assert (code, out, err) == (0, "", "")
    with running(tmp_path, *command, url.rpartition(":")[2]) as (process, again):
        assert again == url
        assert end(process, signal.SIGHUP)[0] == 0


def test_explorers_without_a_port_get_different_ones(folder, tmp_path):
    command = ["explore", folder / "model.skops"]
    with running(tmp_path, *command) as (_, one), running(tmp_path, *command) as (_, other):
        assert one != other
        assert ask(f"{one}/health")[0] == ask(f"{other}/health")[0] == 200


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_sigterm_during_a_request(folder, tmp_path):
    """The request is answered, a new one is not accepted, and the exit code is 0."""
    rows = {"rows": [ROW] * 5000, "top": 5}
    with running(tmp_path, "serve", folder / "model.skops", "--port", 0) as (process, url):
        assert ask(f"{url}/predict", {"rows": [ROW]})[0] == 200  # compiles
        answers = []
        client = threading.Thread(target=lambda: answers.append(ask(f"{url}/predict", rows)))
        client.start()
        time.sleep(0.15)
        code, out, err = end(process, signal.SIGTERM)
        client.join(20)
    assert (code, out) == (0, "")
    assert "Traceback" not in err
    assert [status for status, _ in answers] == [200]
    assert len(json.loads(answers[0][1])["rows"]) == 5000


def test_known_states_of_the_table(folder, tmp_path):
    """Class columns are optional; states that the model does not know count as missing, with a warning."""
    text = (folder / "new.csv").read_text().splitlines()
    rows = [line.split(",") for line in text]
    rows[1][4], rows[2][4], rows[3][4] = "", "excellent", "good"
    (tmp_path / "known.csv").write_text("\n".join(",".join(row[:5]) for row in rows))
    (tmp_path / "unknown.csv").write_text("\n".join(",".join(row[:4]) for row in rows))
    with running(tmp_path, "explore", folder / "model.skops", "known.csv", "--port", 0) as (process, url):
        table = json.loads(ask(f"{url}/schema")[1])["table"]
        assert (table["name"], table["n_rows"], table["known"]) == ("known.csv", 30, ["mood"])
        found = [json.loads(ask(f"{url}/rows/{i}")[1])["true"] for i in range(3)]
        assert [row["mood"] for row in found] == [None, None, "good"]
        assert {row["works"] for row in found} == {None}
        _, _, err = end(process, signal.SIGINT)
    assert "'mood'" in err
    assert "excellent" in err
    assert "1 row(s)" in err
    with running(tmp_path, "serve", folder / "model.skops", "unknown.csv", "--port", 0) as (process, url):
        table = json.loads(ask(f"{url}/schema")[1])["table"]
        assert (table["n_rows"], table["known"]) == (30, [])


def test_help_is_fast(process):
    start = time.monotonic()
    for command in ("serve", "explore"):
        done = process(command, "--help")
        assert done.code == 0
        assert "--port" in done.out
    assert time.monotonic() - start < 4
