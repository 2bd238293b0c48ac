"""What `model.explore(X)` shows in a notebook: the live page in a frame, or a saved one without a server."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from chromium import watch
from explorer_page import View, eventually, ignored_warnings, marginals_of


@pytest.fixture
def notebook(browser):
    """Show what a notebook shows, in a page of localhost; return the page and its address."""
    contexts, servers = [], []

    def shown(html):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(f"<!DOCTYPE html><title>Notebook</title><body>{html}</body>".encode())

            def log_message(self, *arguments):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        context = browser.new_context(viewport={"width": 1000, "height": 900}, reduced_motion="reduce")
        servers.append(server)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.home = f"http://localhost:{server.server_port}"
        page.goto(f"{page.home}/notebook")
        return page

    yield shown
    for context in contexts:
        context.close()
    for server in servers:
        server.shutdown()
        server.server_close()


def explore(case, **options):
    with ignored_warnings():
        return case.model.explore(case.X, case.Y, **options)


def test_the_live_page_answers_inside_a_notebook(notebook, survey):
    exploration = explore(survey, n_saved=2)
    try:
        page = notebook(exploration._repr_html_())
        frame = eventually(lambda: page.frame(url=lambda url: url.startswith(exploration.url)))
        live = page.frame_locator("iframe").frame_locator("iframe.live")
        live.locator('.state[data-variable="party"][data-state="Democrat"]').click()
        view = View(frame, survey)
        view.shows(survey.joint(0, {"party": "Democrat"}))
        live.locator("#undo").click()
        view.shows(survey.joint(0))
        others = [url for url in page.requested if not url.startswith((page.home, exploration.url, "about:"))]
        assert others == []
        assert page.said == []
    finally:
        exploration.stop()


def test_the_saved_page_needs_no_server(notebook, survey):
    page = notebook(explore(survey, live=False, n_saved=3)._repr_html_())
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
    frame.locator("#field-0").fill("33")
    eventually(lambda: "Open the explorer to ask: model.explore(X, Y)" in view.text("#problem"))
    assert [url for url in page.requested if not url.startswith((page.home, "about:"))] == []
    assert page.said == []


def test_after_its_server_the_saved_page_remains(notebook, survey):
    exploration = explore(survey, n_saved=2)
    html = exploration._repr_html_()
    exploration.stop()
    page = notebook(html)
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
