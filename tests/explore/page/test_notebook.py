"""What `model.explore(X)` shows in a notebook: the live page in a frame, or a saved one without a server."""

import pytest

from chromium import watch
from explorer_page import View, eventually, ignored_warnings, marginals_of


@pytest.fixture
def notebook(browser, tmp_path):
    """Show what a notebook shows, in a page of localhost; return the page and the frame of the explorer."""
    contexts = []

    def shown(exploration, **options):
        context = browser.new_context(viewport={"width": 1000, "height": 900}, reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        html = f"<!DOCTYPE html><title>Notebook</title><body>{exploration._repr_html_()}</body>"
        page.route("http://localhost:8888/**", lambda route: route.fulfill(body=html, content_type="text/html"))
        page.goto("http://localhost:8888/notebook")
        return page

    yield shown
    for context in contexts:
        context.close()


def explore(case, **options):
    with ignored_warnings():
        return case.model.explore(case.X, case.Y, **options)


def test_the_live_page_answers_inside_a_notebook(notebook, survey):
    exploration = explore(survey, n_saved=2)
    try:
        page = notebook(exploration)
        frame = eventually(lambda: page.frame(url=exploration.url + "/"))
        live = page.frame_locator("iframe").frame_locator("iframe.live")
        live.locator('.state[data-variable="party"][data-state="Democrat"]').click()
        view = View(frame, survey)
        view.shows(survey.joint(0, {"party": "Democrat"}))
        live.locator("#undo").click()
        view.shows(survey.joint(0))
        hosts = {url.split("/")[2] for url in page.requested if url.startswith("http")}
        assert hosts == {"localhost:8888", exploration.url.removeprefix("http://")}
        assert page.said == []
    finally:
        exploration.stop()


def test_the_saved_page_needs_no_server(notebook, survey):
    page = notebook(explore(survey, live=False, n_saved=3))
    frame = eventually(lambda: next((own for own in page.frames if own.parent_frame), None))
    frame.wait_for_selector(".state")
    view = View(frame, survey).settled()
    view.shows(survey.joint(0))
    view.fix("party", "Democrat")
    view.shows(survey.joint(0, {"party": "Democrat"}))
    view.fix("party", "Democrat")
    view.shows(survey.joint(0))
    frame.locator("#row-after").click()
    view.shows(survey.joint(1))
    assert [url for url in page.requested if not url.startswith(("http://localhost:8888/", "about:"))] == []
    assert page.said == []


def test_after_its_server_the_saved_page_remains(notebook, survey):
    exploration = explore(survey, n_saved=2)
    html = exploration._repr_html_()
    exploration.stop()

    class Old:
        def _repr_html_(self):
            return html

    page = notebook(Old())
    frame = eventually(lambda: next((own for own in page.frames if own.parent_frame == page.main_frame), None))
    frame.wait_for_selector(".state")
    View(frame, survey).settled().shows(survey.joint(0))
    assert frame.locator(".state").first.is_visible()


def test_a_saved_file_explains_every_prediction(browser, survey, tmp_path):
    path = tmp_path / "explorer.html"
    explore(survey, live=False, n_saved=2).save(path)
    context = browser.new_context(offline=True)
    page = context.new_page()
    watch(page)
    page.goto(path.as_uri())
    view = View(page, survey).settled()
    assert view.marginals() == pytest.approx(marginals_of(survey.joint(0), survey.model.class_table_))
    page.locator("#row-after").click()
    view.shows(survey.joint(1))
    for number in range(5):
        page.locator(f"#node-{number}-why").click()
        view.locator(".waterfall").wait_for()
        view.settled()
        assert view.text("#problem") == ""
    assert page.requested == [path.as_uri()]
    assert page.said == []
    context.close()
