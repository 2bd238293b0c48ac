"""The numbers of the example in docs/explore.md are those of the model that its commands make."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

import pmdc

pytest.importorskip("fastapi", reason='needs the extra "explore"')
from pmdc.explore.interface import Interface
from pmdc.explore.table import Table

ROOT = Path(__file__).parents[2]
TEXT = " ".join((ROOT / "docs" / "explore.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    script = runpy.run_path(str(ROOT / "examples" / "explorer_page.py"))
    script["make_example"](folder)
    model = pmdc.load(folder / "survey.skops")
    X = pd.read_csv(folder / "voters.csv")[list(model.feature_names_in_)]
    return Interface(model, Table.of(model, X)), [X.iloc[i].to_dict() for i in script["VOTERS"]]


def answer(interface, path, **body):
    kind, reply = interface.paths[path]
    return reply(kind.model_validate(body))


def percent(share):
    return f"{100 * share:.0f} %"


def test_the_numbers_of_the_two_voters(example):
    interface, (a, b) = example
    first, second = answer(interface, "/predict", rows=[a, b])["rows"]
    clinton = [own["marginals"]["vote"][0] for own in (first, second)]
    assert f"*Vote* has {percent(clinton[0])} for Clinton and {percent(1 - clinton[0])} for Dole" in TEXT
    assert f"{percent(clinton[0])} for A, {percent(clinton[1])} for B" in TEXT
    asked = [answer(interface, "/ask", row=own) for own in (a, b)]
    assert {own["class_variables"][0]["name"] for own in asked} == {"party"}
    before, after = zip(*((own["expected_loss"], own["class_variables"][0]["value"]) for own in asked), strict=True)
    left = [x - y for x, y in zip(before, after, strict=True)]
    assert f"The expected loss is {before[0]:.2f}" in TEXT
    assert f"from {before[0]:.2f} down to {left[0]:.2f}, on average; for voter 40 from {before[1]:.2f} to" in TEXT
    assert f"to {left[1]:.2f}." in TEXT


def test_what_makes_the_difference(example):
    interface, (a, b) = example
    found = answer(interface, "/explain", row=b, variable="vote", state="Clinton", compare={"row": a})
    parts = {own["name"]: own["contribution"] for own in found["contributions"]}
    assert list(parts)[:2] == ["log_population", "age"]
    assert f"the size of the place ({parts['log_population']:.2f}) and the age ({parts['age']:.2f})" in TEXT
    assert max(abs(own) for name, own in parts.items() if name not in ("log_population", "age")) < 0.005


def test_what_follows_from_the_party(example):
    interface, rows = example

    def vote(party, state):
        found = answer(interface, "/predict", rows=rows, given={"party": party})["rows"]
        return [percent(own["marginals"]["vote"][state]) for own in found]

    (a, b), (c, d) = vote("Democrat", 0), vote("Republican", 1)
    assert f"For voter 7 Clinton now has {a}, for voter 40 {b}." in TEXT
    assert f"Dole has {c.split()[0]} and {d}" in TEXT
