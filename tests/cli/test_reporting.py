"""``pmdc report`` writes a report and a model card, or says what is wrong before it begins."""

import pytest

from report_page import Page

pytest.importorskip("matplotlib")


@pytest.fixture
def arguments(folder):
    return ["report", folder / "model.skops", folder / "new.csv"]


def test_report_and_card(pmdc, arguments, tmp_path):
    done = pmdc(*arguments, "-o", "report.html", "--title", "A <title>")
    assert (done.code, done.out) == (0, "")
    assert "report.html" in done.err
    assert "report.md" in done.err
    page = Page(tmp_path / "report.html")
    assert "A <title>" in page.text
    assert "30 rows of new.csv" in page.text
    assert "line " in page.text  # of the file, with the header as line 1
    assert "good" in (tmp_path / "report.md").read_text()


def test_lines_of_the_file(pmdc, folder, tmp_path):
    """The hardest line is found in the file, even if lines before it are left out."""
    text = (folder / "new.csv").read_text().splitlines()
    fields = text[1].split(",")
    (tmp_path / "gaps.csv").write_text("\n".join([text[0], ",".join(["", *fields[1:]]), *text[1:3]]))
    command = ["report", folder / "model.skops", "gaps.csv", "-o", "r.html", "--no-card", "--drop-missing", "--rows", 2]
    assert pmdc(*command).code == 0
    page = Page(tmp_path / "r.html")
    assert "2 rows of gaps.csv" in page.text
    assert "Line 3: " in page.text
    assert "Line 4: " in page.text
    assert not (tmp_path / "r.md").exists()


def test_existing_files_are_kept_without_force(pmdc, arguments, tmp_path):
    (tmp_path / "report.md").write_text("mine")
    done = pmdc(*arguments, "-o", "report.html")
    assert done.code == 2
    assert "report.md" in done.err
    assert "--no-card" in done.err
    assert "--force" in done.err
    assert pmdc(*arguments, "-o", "report.html", "--no-card").code == 0
    done = pmdc(*arguments, "-o", "report.html", "--no-card")
    assert done.code == 2
    assert "report.html" in done.err
    assert (tmp_path / "report.md").read_text() == "mine"
    assert pmdc(*arguments, "-o", "report.html", "--force", "--quiet") == (0, "", "")
    assert (tmp_path / "report.md").read_text() != "mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "report.pdf"], ["report.pdf", ".html"]),
        (["-o", "absent/report.html"], ["absent", "folder"]),
        (["-o", "r.html", "--rows", "-1"], ["--rows", "-1"]),
        (["-o", "r.html", "--row", "1"], ["--row"]),
        ([], ["--output"]),
    ],
)
def test_wrong_options(pmdc, arguments, tmp_path, options, words):
    done = pmdc(*arguments, *options)
    assert done.code == 2
    assert all(word in done.err for word in words)
    assert not list(tmp_path.iterdir())


def test_a_table_that_does_not_fit(pmdc, folder, tmp_path):
    model = folder / "model.skops"
    text = (folder / "new.csv").read_text()
    (tmp_path / "without.csv").write_text(text.replace("mood", "moods"))
    done = pmdc("report", model, "without.csv", "-o", "r.html")
    assert done.code == 2
    assert "'mood'" in done.err
    lines = text.splitlines()
    empty = [lines[0], *(",".join([*line.split(",")[:4], "", line[-1]]) for line in lines[1:])]
    (tmp_path / "empty.csv").write_text("\n".join(empty))
    done = pmdc("report", model, "empty.csv", "-o", "r.html")
    assert done.code == 2
    assert "'mood'" in done.err
    assert "no value" in done.err
    assert not (tmp_path / "r.html").exists()


def test_training_rows_are_warned_of(pmdc, folder, tmp_path):
    done = pmdc("report", folder / "model.skops", folder / "table.csv", "-o", "r.html", "--rows", "0")
    assert done.code == 0
    assert "training rows" in done.err
    assert "hardest" not in Page(tmp_path / "r.html").sections
