"""Turns: one thread at a time, short questions first, and nothing for clients that have gone."""

import asyncio
import json
import threading
import time

import pytest

pytest.importorskip("fastapi", reason='needs the extra "explore"')
from pmdc import GBNC
from pmdc.datasets import load_election
from pmdc.explore import turns
from pmdc.explore.application import service
from pmdc.explore.interface import Interface
from pmdc.explore.table import Table
from pmdc.explore.turns import Turns


class Crowd:
    """Threads that wait for their turn while it is taken; `served` tells in which order they had it."""

    def __init__(self):
        self.turns, self.served, self._threads = Turns(), [], []

    def come(self, name, *, short):
        def wait():
            with self.turns.take(short=short):
                self.served.append(name)

        thread = threading.Thread(target=wait, daemon=True)
        before = len(self.turns._waiting)
        thread.start()
        while len(self.turns._waiting) == before:
            time.sleep(0.001)
        self._threads.append(thread)

    def go(self):
        for thread in self._threads:
            thread.join(5)
        return self.served


def test_short_questions_overtake_long_ones():
    crowd = Crowd()
    with crowd.turns.take(short=True):
        for name, short in [("ask", False), ("click", True), ("explain", False), ("next click", True)]:
            crowd.come(name, short=short)
    assert crowd.go() == ["click", "next click", "ask", "explain"]


def test_long_questions_are_not_overtaken_for_ever(monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 0.01)
    crowd = Crowd()
    with crowd.turns.take(short=False):
        crowd.come("ask", short=False)
        time.sleep(0.02)
        crowd.come("click", short=True)
    assert crowd.go() == ["ask", "click"]


def test_one_at_a_time_also_after_a_failure():
    own, running, most = Turns(), 0, 0

    def work(short):
        nonlocal running, most
        for _ in range(50):
            try:
                with own.take(short=short):
                    running += 1
                    most = max(most, running)
                    time.sleep(0.0002)
                    running -= 1
                    raise ValueError
            except ValueError:
                continue

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (most, running) == (1, 0)


def test_questions_of_clients_that_have_gone_are_given_up(monkeypatch):
    data = load_election(levels=3)
    model = GBNC(experts=None, max_parents=1).fit(data.X[:300], data.Y[:300])
    interface = Interface(model, Table.of(model, data.X[300:400], data.Y[300:400]))
    row = interface.table.values(0)
    asked, begun, left = [], threading.Event(), threading.Event()
    monkeypatch.setattr(interface, "_values_of_features", lambda *_: asked.append("features") or [])
    choose = interface._joint_of

    def slow(*arguments):
        begun.set()
        left.wait(5)
        return choose(*arguments)

    monkeypatch.setattr(interface, "_joint_of", slow)
    sent = []

    async def leave():
        messages = iter([{"type": "http.request", "body": json.dumps({"row": row}).encode()}])

        async def receive():
            for message in messages:
                return message
            await asyncio.to_thread(begun.wait, 5)
            asyncio.get_running_loop().call_later(0.1, left.set)
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http", "http_version": "1.1", "method": "POST", "path": "/ask", "raw_path": b"/ask",
            "query_string": b"", "root_path": "", "scheme": "http", "headers": [(b"content-type", b"application/json")],
        }  # fmt: skip
        await service(interface)(scope, receive, send)

    asyncio.run(leave())
    assert asked == []
    assert sent[0]["status"] == 499
    monkeypatch.setattr(interface, "_joint_of", choose)
    kind, reply = interface.paths["/ask"]  # the next one is answered
    assert reply(kind.model_validate({"row": row}))["expected_loss"] > 0
    assert asked == ["features"]
