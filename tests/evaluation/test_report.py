"""The files that a comparison leaves behind."""

import numpy as np
import pytest

from pmdc.evaluation.report import METHODS, write_report
from pmdc.evaluation.store import Record, Store


@pytest.fixture
def store(tmp_path):
    """Made-up records of five data sets, on which GBNC is best and all methods differ."""
    store = Store(tmp_path / "results.sqlite", {})
    rng = np.random.default_rng(0)
    names = sorted({name for methods in METHODS.values() for name in methods})
    records = []
    for data_set in "abcde":
        for fold in range(4):
            for i, name in enumerate(names):
                base = 0.1 if name.startswith("GBNC-") and "paper" not in name else 0.2 + 0.01 * i
                losses = {measure: base + 0.02 * rng.random() for measure in METHODS}
                details = {
                    "n_variables": 2 + 3 * "abcde".index(data_set),
                    "n_rows": 20,
                    "reliability": [[0.5, 0.5], [0.3, 0.8], [0.25, 0.9]],
                }
                records.append(Record((data_set, fold, name, "naive-bayes"), losses, details))
    store.write(records)
    return store


def test_tables_in_three_formats_with_tests_and_notes(store, tmp_path):
    written = write_report(store, tmp_path / "report", {"a": "rebuilt"})
    texts = [path for path in written if path.suffix in (".md", ".tex", ".html")]
    assert len(texts) == 9
    pictures = {path.name for path in written} - {path.name for path in texts}
    for name in ("critical-difference", "pairs", "pairs-7-or-more", "differences", "calibration"):
        assert {f"hamming_loss-naive-bayes-{name}.png", f"hamming_loss-naive-bayes-{name}.svg"} <= pictures
    assert "subset_loss-naive-bayes-calibration.png" not in pictures
    assert all(path.stat().st_size > 500 for path in written)
    text = (tmp_path / "report" / "hamming_loss-naive-bayes.md").read_text(encoding="utf-8")
    assert "| hamming\\_loss (%) | GBNC-H |" in text
    assert "rebuilt" in text
    for words in ("Friedman", "Nemenyi", "Conover", "GBNC-H against the others", "| BR | +0."):
        assert words in text
    assert "GBNC-S" not in text
    assert "GBNC-S" in (tmp_path / "report" / "subset_loss-naive-bayes.md").read_text(encoding="utf-8")
    assert "MultiOutput" not in (tmp_path / "report" / "joint_log_loss-naive-bayes.md").read_text(encoding="utf-8")
    assert r"\toprule" in (tmp_path / "report" / "subset_loss-naive-bayes.tex").read_text(encoding="utf-8")
    assert "<table" in (tmp_path / "report" / "subset_loss-naive-bayes.html").read_text(encoding="utf-8")


def test_tests_that_cannot_be_made_say_why(tmp_path):
    store = Store(tmp_path / "results.sqlite", {})
    store.write([Record(("a", fold, "BR", "forest"), {"hamming_loss": 0.1 * fold}) for fold in range(2)])
    write_report(store, tmp_path)
    text = (tmp_path / "hamming_loss-forest.md").read_text(encoding="utf-8")
    assert "None: " in text


def test_a_failed_cell_is_marked_in_the_table(store, tmp_path):
    store.write([Record(("a", 0, "BR", "naive-bayes"), error="ValueError: no")])
    write_report(store, tmp_path / "report")
    text = (tmp_path / "report" / "hamming_loss-naive-bayes.md").read_text(encoding="utf-8")
    assert "BR" in text.split("## Tests")[0].split("[1]")[-1]
