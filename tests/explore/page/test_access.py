"""A tour by keyboard alone, axe-core, names that look like code, and the policy of the page."""

import json

import pytest

from chromium import serious_violations
from explorer_page import address, eventually, served
from pmdc import GBNC
from pmdc.datasets import make_network

HOSTILE = [
    "<script>alert('x')</script>",
    '"><img src=x onerror=alert(1)>',
    "x" * 200,
    "عدد الزيارات",
    "😀 'quoted' \"names\" & more",
    "\u202egnp.exe",
    "__proto__",
    "two\nlines",
]


@pytest.fixture(scope="module")
def hostile():
    """A model in which all names and states look like something else."""
    data = make_network(320, n_class_variables=4, n_continuous=2, n_discrete=2, random_state=1)
    X, Y = data.X.copy(), data.Y.astype(str).set_axis(HOSTILE[:4], axis=1)
    X.columns = HOSTILE[4:]
    X[HOSTILE[6]] = X[HOSTILE[6]].astype(str).map(lambda value: HOSTILE[0] + value)
    Y = Y.apply(lambda column: column.map(lambda state: HOSTILE["abc".index(state)] + state))
    model = GBNC(experts=None, max_parents=1).fit(X[:200], Y[:200])
    rows = (own[200:].reset_index(drop=True) for own in (X, Y))
    with served(model, *rows, name='<b>"table"</b>.csv') as case:
        yield case


# Keyboard -------------------------------------------------------------------------------------------------------


class Keyboard:
    """Presses keys only; finds out where the focus is."""

    def __init__(self, view):
        self.view = view

    def press(self, *keys):
        for key in keys:
            self.view.keyboard.press(key)

    def id(self):
        return self.view.evaluate("document.activeElement.id || document.activeElement.innerText")

    def tab_to(self, wanted, key="Tab", limit=150):
        for _ in range(limit):
            if self.id() == wanted:
                assert self.view.evaluate("document.activeElement.matches(':focus-visible')")
                return
            self.press(key)
        raise AssertionError(f"{wanted} is not reached by {key}")


def test_a_tour_by_keyboard_alone(view, survey):
    shown = view(survey)
    keys = Keyboard(shown)
    keys.press("Tab")
    assert keys.id() == "skip"

    # Find a row of which the vote is wrong, and open it.
    keys.tab_to("find-rows")
    keys.press("Enter")
    keys.tab_to("filter-kind")
    keys.press("ArrowDown", "ArrowDown", "ArrowDown")
    keys.tab_to("add-filter")
    keys.press("Enter")
    eventually(lambda: shown.locator("dialog .chip").count() == 1)
    shown.wait_for_timeout(300)
    first = shown.locator("dialog .rows strong").first.inner_text()
    for _ in range(20):
        keys.press("Tab")
        if keys.id().startswith(first):
            break
    keys.press("Enter")
    index = int(first.removeprefix("row ")) - 1
    shown.shows(survey.joint(index))
    assert keys.id() == "find-rows"

    # Edit a number, set another one to missing.
    keys.tab_to("field-0")
    keys.press("Control+a", *"47")
    keys.tab_to("field-4-missing")
    keys.press("Space")
    edits = {"age": 47.0, "tv_news": None}
    shown.shows(survey.joint(index, **edits))
    assert keys.id() == "field-4-missing"

    # Fix a state and another one, by arrows inside a box; release the first by its chip.
    keys.tab_to("node-1-0")
    keys.press("ArrowDown", "Space")
    shown.shows(survey.joint(index, {"party": "independent"}, **edits))
    assert keys.id() == "node-1-1"
    keys.tab_to("node-2-0")
    keys.press("Enter")
    shown.shows(survey.joint(index, {"party": "independent", "self": "liberal"}, **edits))
    keys.tab_to("release-1", "Shift+Tab")
    keys.press("Enter")
    given = {"self": "liberal"}
    shown.shows(survey.joint(index, given, **edits))

    # Keep it as A, say something else, ask why the vote differs, and what it consists of.
    keys.tab_to("compare", "Shift+Tab")
    keys.press("Enter")
    keys.tab_to("node-2-0")
    keys.press("ArrowDown", "ArrowDown", "Space")
    shown.shows(survey.joint(index, {"self": "conservative"}, **edits))
    shown.shows(survey.joint(index, given, **edits), "first")
    keys.tab_to("node-0-why", "Shift+Tab")
    keys.press("Enter")
    shown.locator(".waterfall").wait_for()
    assert keys.id() == "why"
    keys.tab_to("through-0")
    keys.press("Space")
    assert shown.locator(".waterfall .part:visible").count() > 0
    keys.tab_to("why-close", "Shift+Tab")
    keys.press("Enter")

    # Another loss and another coverage.
    keys.tab_to("loss")
    keys.press("ArrowDown")
    eventually(lambda: shown.url_state()["loss"] == "subset")
    shown.settled()
    assert keys.id() == "loss"
    keys.tab_to("coverage")
    keys.press("ArrowDown")
    eventually(lambda: shown.url_state()["coverage"] == 0.95)

    # Undo, the menu of a class variable, and its neighbours only.
    keys.press("Control+z")
    eventually(lambda: "coverage" not in shown.url_state())
    keys.tab_to("node-0-name", "Shift+Tab")
    keys.press("Enter")
    keys.tab_to("only-neighbours")
    keys.press("Space")
    eventually(lambda: shown.url_state().get("focus") == "vote")
    shown.settled()
    assert shown.locator(".node").count() == 4
    keys.tab_to("show-all", "Shift+Tab")
    keys.press("Enter")
    eventually(lambda: shown.locator(".node").count() == 5)

    # Save the known states.
    keys.tab_to("files", "Shift+Tab")
    keys.press("Enter")
    keys.tab_to("save-states")
    with shown.expect_download() as download:
        keys.press("Enter")
    assert json.loads(download.value.path().read_text()) == {"self": "conservative"}
    assert keys.id() == "files"


def test_the_graph_moves_and_zooms_by_keys(view, survey):
    shown = view(survey)
    transform = "getComputedStyle(document.getElementById('canvas')).transform"
    shown.locator("#viewport").focus()
    before = shown.evaluate(transform)
    shown.keyboard.press("ArrowRight")
    moved = shown.evaluate(transform)
    shown.keyboard.press("+")
    zoomed = shown.evaluate(transform)
    assert len({before, moved, zoomed}) == 3


def test_what_changed_is_said(view, survey):
    shown = view(survey, index=3)
    shown.fix("party", "Republican")
    loss = float(survey.joint(3, {"party": "Republican"}).decide("hamming").expected_loss[0])
    assert shown.locator("#said").text_content().endswith(f"Expected loss {loss:.3f}.")
    label = shown.state("party", "Republican").get_attribute("aria-label")
    assert label.startswith("party: Republican, 100")
    assert label.endswith("known")


# axe-core --------------------------------------------------------------------------------------------------------

EVERYTHING = {"why": {"variable": "vote", "state": "Dole"}, "pinned": {"index": 2, "edits": {}, "given": {}}}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_violation(view, survey, width, scheme):
    shown = view(survey, width, scheme, given={"party": "Republican"}, edits={"age": 50}, **EVERYTHING)
    assert serious_violations(shown.page) == []
    for opener in ("#find-rows", "#node-0-name", "#files"):
        shown.locator(opener).click()
        shown.wait_for_timeout(200)
        assert serious_violations(shown.page) == []
        shown.keyboard.press("Escape")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_violation_among_sixty_variables(view, sixty, width, scheme):
    assert serious_violations(view(sixty, width, scheme).page) == []


# Names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390])
def test_names_are_text_wherever_they_are(view, hostile, width):
    names = hostile.model.class_names_
    states = [own.listed for own in hostile.interface.reader.states]
    given = {names[1]: states[1][0], names[2]: states[2][:2]}
    pinned = {"index": 3, "edits": {}, "given": {names[1]: states[1][1]}}
    shown = view(hostile, width, given=given, pinned=pinned, why={"variable": names[0], "state": states[0][0]})
    for opener in ("#find-rows", "#node-0-name", "#files"):
        shown.locator(opener).click()
        shown.wait_for_timeout(300)
        if opener == "#find-rows":
            shown.locator("#filter-kind").select_option("true 2")
        assert shown.locator("dialog").evaluate("one => one.scrollWidth <= one.clientWidth")
        shown.keyboard.press("Escape")
    assert shown.locator("img, b:has-text('table'), script:not(#start):not(body > script)").count() == 0
    text = shown.locator("body").inner_text()
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[3], HOSTILE[4], "__proto__", '<b>"table"</b>.csv', "two lines"):
        assert name in text
    assert "x" * 61 not in text
    assert HOSTILE[2] in shown.locator("#node-2-name").get_attribute("title")
    assert "\u202e" not in text
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_violations(shown.page) == []


def test_hostile_states_are_fixed_and_edited(view, hostile):
    name, state = hostile.model.class_names_[0], hostile.interface.reader.states[0].listed[1]
    shown = view(hostile)
    shown.click("#node-0-1")
    shown.shows(hostile.joint(0, {name: state}))
    shown.act(lambda: shown.select_option("#field-2", index=2))
    value = hostile.interface.reader.categories["__proto__"].listed[1]
    shown.shows(hostile.joint(0, {name: state}, __proto__=value))
    shown.reload()
    shown.settled()
    shown.shows(hostile.joint(0, {name: state}, __proto__=value))


# The policy ------------------------------------------------------------------------------------------------------


def test_the_policy_forbids_other_hosts_and_scripts(browser, survey):
    page = browser.new_page()
    page.goto(address(survey.url))
    found = page.evaluate(
        """async () => {
            const found = [];
            document.addEventListener('securitypolicyviolation', event => found.push(event.effectiveDirective));
            const image = new Image(); image.src = 'https://example.org/x.png'; document.body.append(image);
            const script = document.createElement('script'); script.textContent = 'window.ran = true';
            document.body.append(script);
            await fetch('https://example.org/').catch(() => null);
            await new Promise(resolve => setTimeout(resolve, 100));
            return [found.sort(), window.ran === undefined];
        }"""
    )
    assert found == [["connect-src", "img-src", "script-src-elem"], True]
    page.close()
