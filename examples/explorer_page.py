"""Draw the pictures of docs/explore.md: the explorer of a model of the election survey, in Chromium.

python examples/explorer_page.py --out docs/images

Needs the extras "browser" and "data", and Chromium (see CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from urllib.parse import quote

from sklearn.model_selection import train_test_split

from pmdc import GBNC
from pmdc.datasets import load_election

WHY = {"variable": "vote", "state": "Dole"}


def explore():
    """Learn from two thirds of the survey, and explore the others.

    Returns
    -------
    exploration
    pictures : dict
        Width and state of the page of each picture; two voters are compared whose votes are most different.
    """
    survey = load_election(levels=3)
    X, X_test, Y, Y_test = train_test_split(survey.X, survey.Y, test_size=1 / 3, random_state=0)
    model = GBNC(random_state=0).fit(X, Y)
    clinton = model.predict_proba(X_test)[0][:, 0]
    given = {"party": "Republican"}
    first, second = int(clinton.argmax()), int(clinton.argmin())
    pictures = {
        "explorer-page": (1280, {"index": 4, "given": given, "why": WHY}),
        "explorer-compare": (
            1280,
            {"index": second, "why": WHY, "pinned": {"index": first, "edits": {}, "given": {}}},
        ),
        "explorer-phone": (390, {"index": 4, "given": given}),
    }
    return model.explore(X_test, Y_test), pictures


def draw(url, pictures, out):
    """Take the pictures down to the explanation, with few colours so that the files are small."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, state) in pictures.items():
            page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
            page.goto(f"{url}/#{quote(json.dumps(state))}")
            page.wait_for_selector("#layout[aria-busy=false]")
            path = out / f"{name}.png"
            box = page.locator("#why").bounding_box()
            height = box["y"] + box["height"] + 12 if "why" in state else 844
            page.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    exploration, pictures = explore()
    draw(exploration.url, pictures, out)
    exploration.stop()


if __name__ == "__main__":
    main()
