"""Draw the picture of a report in README.md: the beginning of a report on the election survey, in Chromium.

python examples/report_page.py --out docs/images

Needs the extras "browser" and "data", and Chromium (see CONTRIBUTING.md). ``--report FILE`` only writes the report.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from sklearn.model_selection import train_test_split

from pmdc import GBNC
from pmdc.datasets import load_election
from pmdc.report import write_report

WIDTH, HEIGHT = 1280, 1990


def write(path):
    """Learn from two thirds of the survey, and report on the others."""
    survey = load_election(levels=3)
    X, X_test, Y, Y_test = train_test_split(survey.X, survey.Y, test_size=1 / 3, random_state=0)
    model = GBNC(random_state=0).fit(X, Y)
    write_report(model, X_test, Y_test, path, title="The US election survey of 1996")


def draw(report, picture):
    """Take a picture of the beginning of the page, with few colours so that the file is small."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(report.as_uri())
        page.screenshot(path=picture)
        browser.close()
    Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--report", type=Path, help="only write the report, to this file")
    arguments = parser.parse_args()
    if arguments.report:
        write(arguments.report)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        write(report)
        draw(report, arguments.out / "report-page.png")


if __name__ == "__main__":
    main()
