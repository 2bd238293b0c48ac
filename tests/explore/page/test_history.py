"""Undo and redo, the state in the address, and files: known states and whole views."""

import json

import pytest

from explorer_page import View, eventually, marginals_of

SEVERAL = {
    "index": 6,
    "edits": {"age": 61, "education": None},
    "given": {"party": "Republican"},
    "loss": "subset",
    "coverage": 0.8,
    "why": {"variable": "vote", "state": "Dole"},
    "pinned": {"index": 2, "edits": {}, "given": {"self": "liberal"}},
}


def contents(view):
    """Return what is on the page, without the tools."""
    parts = "#fields", "#known-panel", "#canvas", "#comparison", "#why", "#decision", "#next", "#outcomes", "#sets"
    return [view.text(part) for part in parts]


def test_undo_and_redo(view, survey):
    shown = view(survey, index=4)
    assert shown.locator("#undo").is_disabled()
    shown.fix("party", "Democrat")
    shown.fix("self", "liberal")
    shown.locator("#undo").click()
    shown.shows(survey.joint(4, {"party": "Democrat"}))
    shown.keyboard.press("Control+z")
    shown.shows(survey.joint(4))
    shown.keyboard.press("Control+Shift+Z")
    shown.shows(survey.joint(4, {"party": "Democrat"}))
    shown.locator("#redo").click()
    shown.shows(survey.joint(4, {"party": "Democrat", "self": "liberal"}))
    assert shown.locator("#redo").is_disabled()
    shown.go_back()
    shown.shows(survey.joint(4, {"party": "Democrat"}))
    shown.fix("vote", "Dole")
    shown.shows(survey.joint(4, {"party": "Democrat", "vote": "Dole"}))
    assert shown.locator("#redo").is_disabled()


def test_typing_is_one_step_of_undo(view, survey):
    shown = view(survey, index=4)
    shown.locator("#field-0").select_text()
    shown.locator("#field-0").press_sequentially("35")
    shown.shows(survey.joint(4, age=35))
    shown.locator("#undo").click()
    shown.shows(survey.joint(4))
    assert shown.locator("#undo").is_disabled()


def test_the_same_address_shows_the_same_view(view, survey):
    first = view(survey, **SEVERAL)
    assert first.url_state() == SEVERAL
    first.fix("dole", "conservative")
    again = view(survey, **first.url_state())
    assert again.url_state() == first.url_state()
    assert contents(again) == contents(first)
    first.reload()
    assert contents(first.settled()) == contents(again)


def test_export_and_open_offline(view, survey, browser, tmp_path):
    shown = view(survey, **SEVERAL)
    shown.locator("#files").click()
    with shown.expect_download() as download:
        shown.locator("#save-page").click()
    path = tmp_path / "view.html"
    download.value.save_as(path)
    assert download.value.suggested_filename == "model-view.html"
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    requested, said = [], []
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    saved = View(page, survey).settled()
    assert contents(saved) == contents(shown)
    assert saved.marginals() == shown.marginals()
    saved.fix("self", "liberal")
    assert "pmdc explore model.skops survey.csv" in saved.text("#problem")
    saved.locator("#undo-problem").click()
    eventually(lambda: contents(saved) == contents(shown))
    assert requested == [path.as_uri()]
    assert said == []
    context.close()


@pytest.fixture
def known(view, survey):
    """A page on which two class variables are known."""
    return view(survey, index=3, given={"party": ["Democrat", "independent"], "vote": "Clinton"})


def test_save_known_states_and_load_them(known, view, survey, tmp_path):
    known.locator("#files").click()
    with known.expect_download() as download:
        known.locator("#save-states").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    given = json.loads(path.read_text())
    assert given == known.url_state()["given"]
    other = view(survey, index=8)
    load(other, path)
    other.shows(survey.joint(8, given))


def load(view, path):
    view.locator("#files").click()
    with view.expect_file_chooser() as chooser:
        view.locator("#load-states").click()
    chooser.value.set_files(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "JSON"), ("[1]", "like {"), ('{"party": "Whig"}', "‘Whig’"), ('{"nose": 1}', "‘nose’")],
)
def test_a_file_that_does_not_fit_is_refused(known, survey, tmp_path, text, words):
    path = tmp_path / "known.json"
    path.write_text(text)
    load(known, path)
    eventually(lambda: words in known.text("#problem"))
    expected = marginals_of(survey.joint(3, known.url_state()["given"]), survey.model.class_table_)
    assert known.marginals() == pytest.approx(expected)


def test_an_address_that_is_broken_starts_anew(view, survey):
    shown = view(survey)
    shown.evaluate("location.hash = '#%7B%22index'")
    eventually(lambda: "not complete" in shown.text("#problem"))
    shown.shows(survey.joint(0))
