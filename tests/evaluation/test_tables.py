"""Tables of results: the numbers in them, what is missing, and the three ways to write them."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest

from paper_tables import AVERAGE_RANKS, CLASSIFIERS, TABLES
from pmdc.evaluation import average_ranks, comparison_table, friedman, ranks


def paper_records(key):
    """Two folds for each cell of a table of the paper, with its mean and its standard deviation."""
    return pd.DataFrame(
        [
            {"set": name, "fold": fold, "method": method, "value": mean + sign * deviation / np.sqrt(2)}
            for name, cells in TABLES[key].items()
            for method, (mean, deviation, _) in zip(CLASSIFIERS, cells, strict=True)
            for fold, sign in enumerate((-1, 1))
        ]
    )


def random_records(n_sets=3, n_folds=4, methods=("GBNC", "BR", "CC"), seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        [
            {"set": f"set{i}", "fold": fold, "method": method, "hamming": rng.uniform(), "seconds": 60 * rng.uniform()}
            for i in range(n_sets)
            for fold in range(n_folds)
            for method in methods
        ]
    )


def markdown_cells(text):
    lines = text.split("\n\n")[0].splitlines()
    return [re.split(r" (?<!\\)\| ", line.removeprefix("| ").removesuffix(" |")) for line in lines[:1] + lines[2:]]


def latex_cells(text):
    lines = [line for line in text.splitlines() if line.endswith(r" \\") and "multicolumn" not in line]
    return [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in lines]


def html_cells(text):
    rows = ElementTree.fromstring(text).iter("tr")
    return [[ElementTree.tostring(cell, "unicode", "html") for cell in row] for row in rows if not is_note(row)]


def is_note(row):
    return row[0].get("colspan") is not None


READERS = {"to_markdown": markdown_cells, "to_latex": latex_cells, "to_html": html_cells}
BOLD = {"to_markdown": "**", "to_latex": r"\textbf{", "to_html": "<b>"}


def numbers(cell):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", cell)]


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("key", TABLES)
def test_the_tables_of_the_paper(form, key):
    table = comparison_table(paper_records(key))
    head, *rows, last = READERS[form](getattr(table, form)())
    assert [name in cell for name, cell in zip(CLASSIFIERS, head[1:], strict=True)] == [True] * 4
    assert len(rows) == 20
    for (name, cells), row in zip(TABLES[key].items(), rows, strict=True):
        assert name in row[0]
        if (key, name) == (("naive_bayes", "subset"), "Pain"):
            continue  # its printed ranks are wrong
        for printed, cell in zip(cells, row[1:], strict=True):
            assert numbers(cell) == list(printed)
            assert (BOLD[form] in cell) == (printed[0] == min(mean for mean, _, _ in cells))
    expected = (1.73, 2.85, 2.28, 3.15) if key == ("naive_bayes", "subset") else AVERAGE_RANKS[key]
    assert [numbers(cell)[0] for cell in last[1:]] == list(expected)
    assert [BOLD[form] in cell for cell in last[1:]] == [True, False, False, False]


def test_numbers_behind_the_table():
    records = random_records()
    table = comparison_table(records, "hamming")
    groups = records.groupby(["set", "method"])["hamming"]
    for (name, method), values in groups:
        assert table.means.loc[name, method] == pytest.approx(values.mean())
        assert table.deviations.loc[name, method] == pytest.approx(np.std(values, ddof=1))
    pd.testing.assert_frame_equal(table.ranks, ranks(table.means))
    pd.testing.assert_series_equal(table.average_ranks, average_ranks(table.means))
    assert friedman(table.ranks) == friedman(table.means)
    assert table.notes == {}


def test_percent_decimals_order_and_direction():
    records = random_records()
    table = comparison_table(
        records,
        "hamming",
        percent=True,
        decimals=4,
        sets=["set2", "set0"],
        methods=["CC", "GBNC"],
        greater_is_better=True,
    )
    head, *rows, _ = markdown_cells(table.to_markdown())
    assert head == ["hamming (%)", "CC", "GBNC"]
    assert [row[0] for row in rows] == ["set2", "set0"]
    for row in rows:
        means = [records.query(f"set == '{row[0]}' and method == '{m}'")["hamming"].mean() for m in ("CC", "GBNC")]
        assert [numbers(cell)[0] for cell in row[1:]] == pytest.approx([100 * mean for mean in means], abs=5e-5)
        assert all(len(re.findall(r"\.\d{4}\b", cell)) == 2 for cell in row[1:])
        best = int(np.argmax(means))
        assert [cell.startswith("**") for cell in row[1:]] == [best == 0, best == 1]
        assert row[1 + best].endswith("(1.0)")


def test_methods_that_tie_are_both_bold():
    records = random_records(methods=("GBNC", "BR"))
    records["hamming"] = 0.25
    row = markdown_cells(comparison_table(records, "hamming").to_markdown())[1]
    assert row == ["set0", "**0.25 ± 0.00** (1.5)", "**0.25 ± 0.00** (1.5)"]


def test_order_of_the_records_does_not_matter_to_the_numbers():
    records = random_records()
    shuffled = comparison_table(records.sample(frac=1, random_state=0), "hamming", sets=["set0", "set1", "set2"])
    expected = comparison_table(records, "hamming")
    pd.testing.assert_frame_equal(shuffled.means[expected.means.columns], expected.means)


# ---------------------------------------------------------------- what is missing


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("how", ["dropped", "failed"])
def test_missing_folds_of_a_method(form, how):
    records = random_records()
    gone = (records["set"] == "set1") & (records["method"] == "BR") & (records["fold"] > 1)
    if how == "dropped":
        records = records[~gone]
    else:
        records.loc[gone, "hamming"] = np.nan
    table = comparison_table(records, "hamming")
    assert list(table.ranks.index) == ["set0", "set2"]
    assert table.notes == {"set1": ["not ranked, folds are missing: BR 2 of 4"]}
    text = getattr(table, form)()
    assert "not ranked, folds are missing: BR 2 of 4" in text
    _, _, row, _, last = READERS[form](text)
    assert "1" in row[0].replace("set1", "")  # the mark of the note
    assert [len(numbers(cell)) for cell in row[1:]] == [2, 2, 2]  # mean and deviation, no rank
    assert not any(BOLD[form] in cell for cell in row[1:])
    assert "average rank on 2 of 3 sets" in last[0]
    complete = records[records["set"] != "set1"]
    pd.testing.assert_series_equal(table.average_ranks, comparison_table(complete, "hamming").average_ranks)


def test_missing_methods_and_sets():
    records = random_records()
    records = records[(records["set"] != "set1") | (records["method"] != "CC")]
    table = comparison_table(records, "hamming", sets=["set0", "set1", "set2", "later"])
    assert table.notes == {"set1": ["not ranked, folds are missing: CC 0 of 4"], "later": ["no results"]}
    rows = {row[0]: row[1:] for row in markdown_cells(table.to_markdown())}
    assert rows[r"set1 \[1\]"][2] == "–"
    assert rows[r"later \[2\]"] == ["–", "–", "–"]
    assert r"- \[2\] no results" in table.to_markdown()


def test_folds_that_all_methods_lack_are_noted_and_ranked():
    records = random_records()
    records = records[(records["set"] != "set2") | (records["fold"] < 3)]
    table = comparison_table(records, "hamming")
    assert table.notes == {"set2": ["3 of 4 folds"]}
    assert len(table.ranks) == 3
    assert set(comparison_table(records, "hamming", folds=10).notes) == {"set0", "set1", "set2"}


def test_nothing_is_complete():
    records = random_records()
    table = comparison_table(records, "hamming", methods=["GBNC", "absent"])
    assert len(table.ranks) == 0
    assert markdown_cells(table.to_markdown())[-1] == ["average rank on 0 of 3 sets", "–", "–"]
    ElementTree.fromstring(table.to_html())


def test_one_fold_has_no_deviation():
    row = markdown_cells(comparison_table(random_records(n_folds=1), "hamming").to_markdown())[1]
    assert all("±" not in cell for cell in row)
    assert all(len(numbers(cell)) == 2 for cell in row[1:])


@pytest.mark.filterwarnings("error")
def test_infinite_losses():
    records = random_records()
    records.loc[(records["set"] == "set0") & (records["method"] == "BR") & (records["fold"] == 0), "hamming"] = np.inf
    table = comparison_table(records, "hamming")
    assert table.ranks.loc["set0", "BR"] == 3
    assert markdown_cells(table.to_markdown())[1][2] == "∞ (3.0)"
    assert latex_cells(table.to_latex())[1][2] == r"$\infty$ (3.0)"


def test_notes_of_the_caller_are_shared():
    table = comparison_table(random_records(), "hamming", notes={"set0": "rebuilt", "set2": "rebuilt", "other": "x"})
    text = table.to_markdown()
    assert text.endswith("\n\n- \\[1\\] rebuilt")
    assert [row[0] for row in markdown_cells(text)[1:4]] == [r"set0 \[1\]", "set1", r"set2 \[1\]"]


# ---------------------------------------------------------------- names


NASTY = ["a_b & c", "<b>|x|</b>", "[p] *q*", "50% $m^2$ #1 {~} \\n", "two\nlines", '"quoted"']


def nasty_table():
    records = random_records(n_sets=len(NASTY), methods=tuple(NASTY))
    records["set"] = records["set"].map({f"set{i}": name for i, name in enumerate(NASTY)})
    return comparison_table(records.rename(columns={"hamming": "a_b & c"}), "a_b & c")


def test_names_in_html():
    root = ElementTree.fromstring(nasty_table().to_html())
    names = [" ".join(name.split()) for name in NASTY]
    assert [cell.text for cell in root.find("thead/tr")] == ["a_b & c", *names]
    assert [row[0].text for row in root.find("tbody")] == names
    assert all(len(row) == 1 + len(NASTY) for row in root.find("tbody"))


def test_names_in_markdown():
    markdown_it = pytest.importorskip("markdown_it")
    written = markdown_it.MarkdownIt("commonmark").enable("table").render(nasty_table().to_markdown())
    root = ElementTree.fromstring(written)
    names = [" ".join(name.split()) for name in NASTY]
    assert [cell.text for cell in root.iter("th")] == ["a_b & c", *names]
    assert [row[0].text for row in root.find("tbody")] == [*names, "average rank"]
    assert all(len(row) == 1 + len(NASTY) for row in root.find("tbody"))


def test_names_in_latex():
    text = nasty_table().to_latex()
    head, *rows, _ = latex_cells(text)
    assert all(len(row) == 1 + len(NASTY) for row in [head, *rows])
    assert [row[0] for row in rows] == [
        r"a\_b \& c",
        r"\textless{}b\textgreater{}\textbar{}x\textbar{}\textless{}/b\textgreater{}",
        r"{[}p] {*}q{*}",
        r"50\% \$m\textasciicircum{}2\$ \#1 \{\textasciitilde{}\} \textbackslash{}n",
        "two lines",
        '"quoted"',
    ]
    # braces balance, no special character stands alone
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert text.startswith("\\begin{tabular}{lcccccc}\n\\toprule\n")
    assert text.endswith("\\bottomrule\n\\end{tabular}")
    assert text.count(r"\midrule") == 2


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("records", "words"),
    [
        (random_records().drop(columns="fold"), "no column 'fold'"),
        (random_records().rename(columns={"hamming": "subset"}), "no column 'hamming'"),
        (random_records().iloc[:0], "is empty"),
        (random_records().assign(hamming="low"), "'hamming' of records does not hold numbers"),
        (random_records().assign(method=None), "missing value in column 'method'"),
        (pd.concat([random_records()] * 2), "more than one record with set=set0, fold=0, method=GBNC"),
    ],
)
def test_bad_records(records, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        comparison_table(records, "hamming")


def test_bad_parameters():
    with pytest.raises(ValueError, match="decimals=-1"):
        comparison_table(random_records(), "hamming", decimals=-1)
    with pytest.raises(ValueError, match="folds=0"):
        comparison_table(random_records(), "hamming", folds=0)
