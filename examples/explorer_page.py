"""Draw the pictures of docs/explore.md: the explorer of its example, in Chromium.

python examples/explorer_page.py --out docs/images

Needs the extra "browser" and Chromium (see CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

CLASSES = "vote,party,self,clinton,dole"
N_LEARNED = 700
VOTERS = 6, 39
"""Voters 7 and 40 of the page, counted from 0."""
PICTURES = {
    "explorer-page": (
        1280,
        {"index": VOTERS[0], "given": {"party": "Republican"}, "why": {"variable": "vote", "state": "Dole"}},
    ),
    "explorer-compare": (
        1280,
        {
            "index": VOTERS[1],
            "why": {"variable": "vote", "state": "Clinton"},
            "pinned": {"index": VOTERS[0], "edits": {}, "given": {}},
        },
    ),
    "explorer-phone": (390, {"index": VOTERS[0], "given": {"party": "Republican"}}),
}
"""Width of each picture, and the state of the page."""


def make_example(folder: Path) -> None:
    """Run the commands of the page: make survey.skops, and voters.csv of the rows that it was not learned from."""

    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "pmdc", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    run("demo", "--table", "survey.csv")
    head, *rows = (folder / "survey.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "learned.csv").write_text(head + "".join(rows[:N_LEARNED]), encoding="utf-8")
    (folder / "voters.csv").write_text(head + "".join(rows[N_LEARNED:]), encoding="utf-8")
    run("fit", "learned.csv", "--classes", CLASSES, "--estimator", "logistic", "-o", "survey.skops")


@contextmanager
def explored(folder: Path) -> Iterator[str]:
    """Run `pmdc explore` for the example; yield its address."""
    command = [sys.executable, "-m", "pmdc", "explore", "survey.skops", "voters.csv", "--no-browser", "--port", "0"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None
        yield found.group()
    finally:
        server.terminate()
        server.wait(30)


def draw(url: str, out: Path) -> None:
    """Take the pictures down to the explanation, with few colours so that the files are small."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, state) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
            page.goto(f"{url}/#{quote(json.dumps(state))}")
            page.wait_for_selector("#layout[aria-busy=false]")
            path = out / f"{name}.png"
            box = page.locator("#why").bounding_box()
            height = box["y"] + box["height"] + 12 if "why" in state else 844
            page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_example(folder)
        with explored(folder) as url:
            draw(url, out)


if __name__ == "__main__":
    main()
