"""The model card has the sections of skops, and shows names as they are."""

import pytest

from pmdc import GBNC
from pmdc.datasets import make_network
from pmdc.report import write_report
from pmdc.report.page.card import plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("a|b", r"a\|b"),
        ("[x](http://y) `z` _a_ *b* # $c$", r"\[x\](http://y) \`z\` \_a\_ \*b\* \# \$c\$"),
        ("two\nlines", "two lines"),
    ],
)
def test_names_are_plain_text_in_markdown(text, expected):
    assert plain(text) == expected


def test_sections(tmp_path):
    pytest.importorskip("skops.card")
    data = make_network(300, n_class_variables=2, random_state=0)
    model = GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])
    write_report(model, data.X[200:], data.Y[200:], tmp_path / "r.html", card=tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    titles = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert titles == [
        "Model description",
        "Intended uses & limitations",
        "Training Procedure",
        "Class variables",
        "Graph",
        "Evaluation Results",
        "Losses",
        "Calibration error",
        "How to Get Started with the Model",
    ]
    assert "GBNC(experts=None, max_parents=1)" in text
    assert "100 rows" in text
