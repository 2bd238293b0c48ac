"""The explorer in a browser: a server for tests, what its page shows, and what the library says about it."""

import json
import time
import warnings
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from pmdc.explore.explorer import explorer
from pmdc.explore.guards import Settings, guarded
from pmdc.explore.interface import Interface
from pmdc.explore.page.document import write_page
from pmdc.explore.server import in_background
from pmdc.explore.table import Table

SECONDS = 15
EXACT = 1e-6


class Case(NamedTuple):
    """A model and its rows, and where the explorer shows them."""

    model: Any
    X: Any
    Y: Any
    interface: Interface
    url: str

    def row(self, index=0, **edits):
        """Return a table of one row, with changed values."""
        row = self.X.iloc[[index]].reset_index(drop=True)
        for name, value in edits.items():
            row.loc[0, name] = value
        return row

    def joint(self, index=0, given=None, **edits):
        """Return the distribution of a row with changed values, from the library."""
        known = {name: frozenset(own) if isinstance(own, list) else own for name, own in (given or {}).items()}
        with ignored_warnings():
            return self.model.predict_joint(self.row(index, **edits), given=known or None)


@contextmanager
def ignored_warnings():
    """Ignore what the library says of gaps; the page shows it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@contextmanager
def served(model, X, Y, name="survey.csv"):
    """Serve the explorer of a model, and yield the case."""
    with ignored_warnings():
        interface = Interface(model, Table.of(model, X, Y, name, 1), "model.skops")
    interface.predict_table()
    server = in_background(guarded(explorer(interface, write_page), Settings()))
    try:
        yield Case(model, X, Y, interface, server.url)
    finally:
        server.stop()


def address(url, **state):
    """Return the address of the explorer in a state."""
    return f"{url}/#{quote(json.dumps(state))}" if state else f"{url}/"


class View:
    """A page of the explorer in a browser."""

    def __init__(self, page, case):
        self.page, self.case = page, case

    def __getattr__(self, name):
        return getattr(self.page, name)

    def settled(self):
        """Wait until nothing is asked, and return the view."""
        self.page.wait_for_function(
            "() => document.getElementById('layout').getAttribute('aria-busy') === 'false'",
            timeout=SECONDS * 1000,
        )
        return self

    def act(self, action):
        """Do something, and wait for what follows."""
        action()
        return self.settled()

    def click(self, selector, **options):
        return self.act(lambda: self.page.locator(selector).first.click(**options))

    def state(self, variable, state):
        """Return the button of a state."""
        return self.page.locator(f'.state[data-variable="{variable}"][data-state="{state}"]')

    def fix(self, variable, state, **options):
        return self.act(lambda: self.state(variable, state).click(**options))

    def text(self, selector):
        return " ".join(self.page.locator(selector).inner_text().split())

    def numbers(self, selector, attribute="data-value"):
        """Return the unrounded numbers of elements, in the order of the page."""
        found = self.page.locator(selector).evaluate_all(f"all => all.map(one => one.getAttribute('{attribute}'))")
        return [float(own) for own in found]

    def marginals(self, which="value"):
        """Return the probabilities in the boxes, by class variable and state."""
        found = self.page.locator(".state").evaluate_all(
            f"all => all.map(({{dataset: one}}) => [one.variable, one.state, one.{which}])"
        )
        return {(variable, state): float(own) for variable, state, own in found}

    def shows(self, joint, which="value"):
        """Wait until the boxes show the marginals of a distribution."""
        expected = pytest.approx(marginals_of(joint, self.case.model.class_table_), abs=EXACT)
        eventually(lambda: self.marginals(which) == expected)
        self.settled()

    def url_state(self):
        return self.page.evaluate("JSON.parse(decodeURIComponent(location.hash.slice(1)) || '{}')")


def marginals_of(joint, classes):
    """Return marginals as a page shows them, from the library."""
    tables = zip(classes.names, classes.states, joint.marginals(), strict=True)
    return {
        (name, str(state)): float(p)
        for name, states, table in tables
        for state, p in zip(states, table[0], strict=True)
    }


def eventually(check):
    """Return the first true answer of a check."""
    end = time.monotonic() + SECONDS
    while not (found := check()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found
