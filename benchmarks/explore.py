"""How fast the explorer and the service answer.

    python benchmarks/explore.py [--seconds 60] [--only click,busy,row,batch,load] [--out FILE]

Two models of 20 class variables, with and without experts, learned from 600 generated rows; 2,000 further rows are
asked for. `pmdc explore` and `pmdc serve` run as processes of their own, the service on one core.

- click: milliseconds of wall-clock time from a click on a state, in Chromium, until the bars are painted, with all
  class variables in the list view; needs the extra "browser". Answers that the page has kept are not counted: each
  click makes new evidence.
- busy: milliseconds until the explorer has answered what the bars of a click need, while it computes what the page
  asks after the click before: prediction sets with other known states, and what to ask next.
- row: milliseconds until the answer to /predict of one row over a kept connection, and the CPU time of the service.
- batch: CPU seconds of the service for 1,000 rows, beside those of the library for the same answers, alternating:
  `predict_joint`, its decisions for the Hamming loss and its marginals. "Throughput" is their ratio.
- load: `wrk` with 64 connections, each asking for one of 2,000 rows at a time (must be installed); memory is that of the service.
"""

from __future__ import annotations

import argparse
import copy
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pandas as pd
from reporting import publish

import pmdc
from pmdc import GBNC
from pmdc.datasets import make_network

N_LEARNED, N_CLICKS, N_BUSY, N_ROWS, N_BATCHES, BATCH = 600, 200, 60, 500, 12, 1000
CONNECTIONS = 64
MODELS = {"experts=None": {"experts": None, "max_parents": 2}, "default": {"time_budget": 60}}
WRK = """
wrk.method = "POST"
local bodies = {{{bodies}}}
local asked = 0
function request()
  asked = asked + 1
  return wrk.format(nil, nil, nil, bodies[asked % #bodies + 1])
end
wrk.headers["Content-Type"] = "application/json"
local threads = {{}}
function setup(thread) table.insert(threads, thread) end
function init(args) refused = 0 end
function response(status, headers, body) if status ~= 200 then refused = refused + 1 end end
function done(summary, latency, requests)
  local refused = 0
  for _, thread in ipairs(threads) do refused = refused + thread:get("refused") end
  local e = summary.errors
  local text = '{{"requests": %d, "seconds": %f, "refused": %d, "errors": %d, "p50": %f, "p99": %f}}\\n'
  io.write(string.format(text, summary.requests, summary.duration / 1e6, refused,
    e.connect + e.read + e.write + e.timeout, latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
"""
CLICK = """
(button) => new Promise((resolve) => {
  const begun = performance.now();
  const watch = new MutationObserver(() => {
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
  });
  watch.observe(button, { attributes: true, attributeFilter: ["aria-pressed"] });
  button.click();
})
"""


class Server:
    """A process of the command line."""

    def __init__(self, command: str, *arguments: str, core: int | None = None):
        pinned = [] if core is None else ["taskset", "--cpu-list", str(core)]
        self.process = subprocess.Popen(
            [*pinned, sys.executable, "-m", "pmdc", command, *arguments, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.url = found.group()
        self.connection = http.client.HTTPConnection(urlsplit(self.url).netloc)

    def another(self) -> Server:
        """Return the same server with a connection of its own."""
        other = copy.copy(self)
        other.connection = http.client.HTTPConnection(urlsplit(self.url).netloc)
        return other

    def post(self, path: str, body: str) -> bytes:
        self.connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text[:500]
        return text

    def cpu_seconds(self) -> float:
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def memory(self, kind: str = "VmRSS") -> float:
        """Return memory in MB; "VmHWM" is the peak."""
        return int(Path(f"/proc/{self.process.pid}/status").read_text().split(f"{kind}:")[1].split()[0]) / 1024


@contextmanager
def serving(command: str, *arguments: str, core: int | None = None) -> Iterator[Server]:
    server = Server(command, *arguments, core=core)
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(30)


class Case:
    """A model in a file, and rows that it has not seen."""

    def __init__(self, folder: Path, name: str, options: dict[str, Any]):
        data = make_network(N_LEARNED + 2000, n_class_variables=20, random_state=0)
        self.name, self.path, self.table = name, folder / f"{name[:7]}.skops", folder / "rows.csv"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = GBNC(random_state=0, **options).fit(data.X[:N_LEARNED], data.Y[:N_LEARNED])
        self.X = data.X[N_LEARNED:]
        pmdc.save(self.model, self.path)
        pd.concat([data.X, data.Y], axis=1)[N_LEARNED:].head(300).to_csv(self.table, index=False)
        self.rows: list[dict[str, Any]] = json.loads(self.X.to_json(orient="records"))


def spread(milliseconds: list[float]) -> str:
    return " | ".join(f"{np.percentile(milliseconds, at):.1f}" for at in (50, 95, 99))


def show(page: Any, url: str, index: int) -> None:
    """Open the page for a row; as a list, in which all class variables are near enough to be clicked."""
    page.goto("about:blank")
    page.goto(f"{url}/#" + quote(json.dumps({"index": index, "view": "list"})))
    page.locator("button.state[aria-pressed=false]:visible").first.wait_for()


def clicks(case: Case) -> Iterator[str]:
    from playwright.sync_api import sync_playwright

    random = np.random.default_rng(0)
    with serving("explore", str(case.path), str(case.table), "--no-browser") as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        show(page, server.url, 0)
        times = []
        while len(times) < N_CLICKS:
            free = page.query_selector_all("button.state[aria-pressed=false]:visible")
            times.append(page.evaluate(CLICK, free[random.integers(len(free))]))
            if len(times) % 6 == 0:  # another row, with nothing known
                show(page, server.url, len(times) // 6)
            time.sleep(0.3)  # as people do; what comes after the bars is asked meanwhile
        browser.close()
    yield f"| {case.name} | click | {spread(times)} | - |"


def busy(case: Case) -> Iterator[str]:
    random, row, times = np.random.default_rng(0), case.rows[0], []
    variables = list(zip(case.model.class_names_, case.model.classes_, strict=True))

    def known() -> dict[str, Any]:
        chosen = random.choice(len(variables), 3, replace=False)
        return {variables[k][0]: str(variables[k][1][0]) for k in chosen}

    with serving("explore", str(case.path), str(case.table), "--no-browser") as server:
        for i in range(N_BUSY + 10):
            before = {"given": known()}
            details = {"rows": [row], "marginals": False, "top": 10, "coverage": 0.9}
            server.post("/predict", json.dumps({"rows": [row]}))  # the row has been looked at
            others = [
                threading.Thread(target=server.another().post, args=(path, json.dumps(body | before)))
                for path, body in (("/predict", details), ("/ask", {"row": row}))
            ]
            for thread in others:
                thread.start()
            time.sleep(0.015)
            started = time.perf_counter()
            server.post("/predict", json.dumps({"rows": [row], "given": known()}))
            if i >= 10:
                times.append(1000 * (time.perf_counter() - started))
            for thread in others:
                thread.join()
    yield f"| {case.name} | /predict while the answers of the click before are computed | {spread(times)} | - |"


def single_rows(case: Case) -> Iterator[str]:
    times, before = [], 0.0
    with serving("serve", str(case.path), core=0) as server:
        for row in case.rows[: N_ROWS + 50]:
            body = json.dumps({"rows": [row]})
            started = time.perf_counter()
            server.post("/predict", body)
            times.append(1000 * (time.perf_counter() - started))
            if len(times) == 50:
                before = server.cpu_seconds()
        cpu = 1000 * (server.cpu_seconds() - before) / N_ROWS
    yield f"| {case.name} | /predict, one row | {spread(times[50:])} | {cpu:.1f} |"


def batches(case: Case) -> Iterator[str]:
    own, service = 0.0, 0.0
    with serving("serve", str(case.path), core=0) as server:
        os.sched_setaffinity(0, {1})
        for i in range(N_BATCHES + 1):
            part = slice(BATCH * (i % 2), BATCH * (i % 2 + 1))
            body, X = json.dumps({"rows": case.rows[part]}), case.X[part]
            before = server.cpu_seconds()
            server.post("/predict", body)
            middle = server.cpu_seconds()
            started = time.process_time()
            joint = case.model.predict_joint(X)
            joint.decide("hamming")
            joint.marginals()
            if i:  # the first compiles
                own += time.process_time() - started
                service += middle - before
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    rates = (BATCH * N_BATCHES / seconds for seconds in (service, own))
    yield f"| {case.name} | {' | '.join(f'{rate:,.0f}' for rate in rates)} | {own / service:.0%} |"


def load(case: Case, seconds: int) -> Iterator[str]:
    with serving("serve", str(case.path), core=0) as server, tempfile.TemporaryDirectory() as folder:
        bodies = [json.dumps({"rows": [row]}) for row in case.rows]
        server.post("/predict", bodies[0])
        before = server.memory()
        script = Path(folder) / "post.lua"
        script.write_text(WRK.format(bodies=", ".join(f"[[{body}]]" for body in bodies)))
        command = ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--timeout", "30s", "-s", script]
        ran = subprocess.run([*command, f"{server.url}/predict"], capture_output=True, text=True, check=True)
        found = json.loads(ran.stdout.splitlines()[-1])
        yield (
            f"| {case.name} | {found['requests']:,} | {found['requests'] / found['seconds']:.0f} | {found['p50']:.0f} | "
            f"{found['p99']:.0f} | {found['refused'] + found['errors']} | {before:.0f} | {server.memory():.0f} | "
            f"{server.memory('VmHWM'):.0f} |"
        )


def lines(seconds: int, only: list[str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        cases = [Case(Path(folder), name, options) for name, options in MODELS.items()]
        yield "| model | question | p50, ms | p95 | p99 | CPU of the service, ms |"
        yield "| --- | --- | ---: | ---: | ---: | ---: |"
        for name, measure in (("click", clicks), ("busy", busy), ("row", single_rows)):
            for case in cases if name in only else []:
                yield from measure(case)
        if "batch" in only:
            yield ""
            yield "| model | service, rows per CPU second | library | throughput |"
            yield "| --- | ---: | ---: | ---: |"
            for case in cases:
                yield from batches(case)
        if "load" in only:
            yield ""
            yield "| model | answers | per second | p50, ms | p99 | errors | memory before, MB | after | peak |"
            yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
            for case in cases:
                yield from load(case, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", default="click,busy,row,batch,load")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    publish(lines(given.seconds, given.only.split(",")), given.out)
