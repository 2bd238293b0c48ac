"""The report in a browser: nothing is requested, nothing overflows, and axe-core finds no serious violation.

Needs the extra "browser" and Chromium (see CONTRIBUTING.md); skipped without them.
"""

import pytest

from chromium import chromium, serious_violations, watch
from pmdc import GBNC
from pmdc.datasets import make_network
from report_page import report

VIEWS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
NAMES = ("plain", "hostile", "many")


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def files(page, hostile, tmp_path_factory):
    """The files of a plain report, one of hostile names and gaps, and one of 20 class variables."""
    data = make_network(300, n_class_variables=20, n_continuous=12, random_state=0)
    model = GBNC(experts=None, max_parents=1, conditioning="partition").fit(data.X[:200], data.Y[:200])
    many = report(model, data.X[200:], data.Y[200:], tmp_path_factory.mktemp("many"), n_rows=1)
    return dict(zip(NAMES, (page.path, hostile[0].path, many.path), strict=True))


@pytest.fixture
def show(browser, files):
    """Open a report and return the page, with what it requests and says."""
    contexts = []

    def opened(name, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        shown = context.new_page()
        watch(shown)
        shown.goto(files[name].as_uri())
        return shown

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_views(show, files, name, width, scheme):
    shown = show(name, width, scheme)
    assert [url for url in shown.requested if not url.startswith("data:")] == [files[name].as_uri()]
    assert shown.said == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert serious_violations(shown) == []


def test_dark_and_light_differ_and_pictures_stay_on_a_light_card(show):
    def colours(scheme):
        shown = show("plain", scheme=scheme)
        ask = "selector => getComputedStyle(document.querySelector(selector)).backgroundColor"
        values = (shown.evaluate(ask, selector) for selector in ("body", "figure .frame"))
        return [[int(number) for number in value[4:-1].split(",")] for value in values]

    (light_page, _), (dark_page, dark_card) = colours("light"), colours("dark")
    assert min(light_page) > 240
    assert max(dark_page) < 60
    assert min(dark_card) > 240


def test_the_policy_forbids_requests_and_scripts(show):
    shown = show("plain")
    found = shown.evaluate(
        """async () => {
            const found = [];
            document.addEventListener('securitypolicyviolation', event => found.push(event.effectiveDirective));
            const image = new Image(); image.src = 'https://example.org/x.png'; document.body.append(image);
            const script = document.createElement('script'); script.textContent = 'window.ran = true';
            document.body.append(script);
            await fetch('https://example.org/').catch(() => null);
            await new Promise(resolve => setTimeout(resolve, 100));
            return [found, window.ran === undefined];
        }"""
    )
    assert sorted(found[0]) == ["connect-src", "img-src", "script-src-elem"]
    assert found[1]


def test_print_shows_all_lines_and_no_menu(show):
    shown = show("many")
    shown.emulate_media(media="print")
    assert shown.locator("details").count() > 0
    heights = shown.evaluate(
        "[...document.querySelectorAll('details table')].map(t => t.getBoundingClientRect().height)"
    )
    assert min(heights) > 50
    assert not shown.locator("nav").is_visible()
    assert shown.pdf(format="A4").startswith(b"%PDF")


def test_the_skip_link_comes_first(show):
    shown = show("plain")
    shown.keyboard.press("Tab")
    assert shown.evaluate("document.activeElement.getAttribute('href')") == "#summary"
