"""The explorers that the tests of the page look at, and the browser in which they do."""

import pytest

from chromium import chromium, watch
from pmdc import GBNC
from pmdc.datasets import load_election, make_network

pytest.importorskip("fastapi", reason='needs the extra "explore"')
from explorer_page import View, address, served


@pytest.fixture(scope="module")  # as long as it runs, other tests cannot start a loop of asyncio
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def survey():
    """The election survey: 5 class variables, with a gap in the first held-out row."""
    data = load_election(levels=3)
    X, Y = data.X.reset_index(drop=True), data.Y.reset_index(drop=True)
    model = GBNC(experts=None, max_parents=1).fit(X[:700], Y[:700])
    X, Y = (own[700:].reset_index(drop=True) for own in (X, Y))
    X.loc[0, ["income", "education"]] = None
    with served(model, X, Y) as case:
        yield case


def _network(n_class_variables):
    data = make_network(500, n_class_variables=n_class_variables, n_continuous=6, random_state=0)
    model = GBNC(experts=None, max_parents=1, conditioning="partition").fit(data.X[:300], data.Y[:300])
    return served(model, data.X[300:].reset_index(drop=True), data.Y[300:].reset_index(drop=True), "network.csv")


@pytest.fixture(scope="session")
def twenty():
    with _network(20) as case:
        yield case


@pytest.fixture(scope="session")
def sixty():
    with _network(60) as case:
        yield case


@pytest.fixture
def view(browser):
    """Open the explorer of a case in a state; at the end, nothing was asked of others and nothing complained of."""
    contexts, pages = [], []

    def opened(case, width=1280, scheme="light", height=900, **state):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        pages.append((page, case))
        watch(page)
        page.goto(address(case.url, **state))
        return View(page, case).settled()

    yield opened
    for page, case in pages:
        others = [url for url in page.requested if not url.startswith((case.url + "/", "blob:", "data:", "file:"))]
        assert others == []
        assert page.said == []
    for context in contexts:
        context.close()
