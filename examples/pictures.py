"""Draw the pictures of docs/pictures.md and docs/explain.md by running the code of these pages.

python examples/pictures.py --out docs/images
"""

from __future__ import annotations

import argparse
import doctest
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("pictures.md", "explain.md")


def run(page, out):
    """Run the examples of a page, save its pictures, and return the number of failed examples."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    examples, names = [], {}

    def run_examples():
        test = doctest.DocTest(examples, names, page.name, str(page), 0, None)
        runner.run(test, clear_globs=False)
        return test.globs

    for piece in doctest.DocTestParser().parse(page.read_text(encoding="utf-8")):
        if isinstance(piece, doctest.Example):
            examples.append(piece)
            continue
        for picture in re.findall(r"!\[.*?\]\(images/(.*?)\)", piece):
            names, examples = run_examples(), []
            names["ax"].figure.savefig(out / picture, dpi=110)
    run_examples()
    return runner.summarize(verbose=False).failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in PAGES if run(DOCS / name, out)]
    if failed:
        raise SystemExit(f"some examples of {', '.join(failed)} failed")


if __name__ == "__main__":
    main()
