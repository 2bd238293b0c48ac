"""Pages in Chromium; tests that use it are skipped without the extra "browser" or without Chromium."""

import os
import shutil
from contextlib import contextmanager

import pytest

_REASON = 'needs the extra "browser": make browser-test'


@contextmanager
def chromium():
    """Start Chromium and yield the browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason=_REASON)
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    with playwright.sync_playwright() as driver:
        if found is None and not os.path.exists(driver.chromium.executable_path):
            pytest.skip("Chromium is not installed")
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=found, args=options)
        yield browser
        browser.close()


def watch(page):
    """Keep what a page requests and says, errors included, in its attributes `requested` and `said`."""
    page.requested, page.said = [], []
    page.on("request", lambda request: page.requested.append(request.url))
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("dialog", lambda dialog: page.said.append(dialog.message))


def serious_violations(page):
    """Return what axe-core finds on a page, with the first element of each."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason=_REASON)
    violations = axe.Axe().run(page).response["violations"]
    serious = [own for own in violations if own["impact"] in ("serious", "critical")]
    return [(own["id"], own["nodes"][0]["html"][:200]) for own in serious]
