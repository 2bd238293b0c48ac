"""Mistakes of users: a clear message, the right exit code, no traceback and no file."""

import json

import pytest

import pmdc as library
from small_survey import FIT, survey

HEADER, *ROWS = survey().splitlines()


def changed(line, column, value):
    """The survey with another value on a line of the file."""
    rows = [HEADER, *ROWS]
    cells = rows[line - 1].split(",")
    cells[HEADER.split(",").index(column)] = value
    rows[line - 1] = ",".join(cells)
    return "\n".join(rows)


def with_column(name, values):
    rows = [f"{row},{values[i % len(values)]}" for i, row in enumerate(ROWS)]
    return "\n".join([f"{HEADER},{name}", *rows])


BAD_TABLES = {
    "empty": ("", "bad.csv is empty"),
    "header only": (HEADER + "\n", "has a header (6 columns) but no rows"),
    "header of one column": ("age\n", "has a header (1 column) but no rows"),
    "ragged": ("\n".join([HEADER, *ROWS[:3], "1,2", *ROWS[3:]]), "line 5 has 2 cell(s), but the header has 6"),
    "longer": ("\n".join([HEADER, ROWS[0] + ",1"]), "line 2 has 7 cell(s), but the header has 6, separated by commas"),
    "all longer": ("\n".join([HEADER, *(row + "," for row in ROWS)]), "line 2 has 7 cell(s)"),
    "open quote": ("\n".join([HEADER, ROWS[0], '"' + ROWS[1], *ROWS[2:]]), "line 3: a quotation mark"),
    "same names": (HEADER.replace("income", "age") + "\n" + ROWS[0], "columns 1 and 2 have the same name 'age'"),
    "latin-1": (survey().replace("so so", "gré").encode("latin-1"), "is not UTF-8 text"),
    "binary": (b"\x00\x01\x02" * 50, "is not a text file"),
    "damaged gz": (b"\x1f\x8b\x08\x00garbage", "damaged"),
    "mixed": (
        changed(4, "age", "old"),
        "column 'age' mixes numbers and text: 1 of 120 cells are not numbers, 'old' (line 4)",
    ),
    "decimal comma": ("\n".join([HEADER, *ROWS]).replace(",", ";").replace(".", ","), "--decimal ','"),
    "thousands": (
        with_column("price", ['"1,000.50"', '"2,100.00"', "7"]),
        "column 'price' holds numbers with other characters, '1,000.50' (line 2), '2,100.00' (line 3).",
    ),
    "percent": (
        with_column("share", ["5%", "7.5 %"]),
        "column 'share' holds numbers with other characters, '5%'",
    ),
    "no class": (
        "\n".join([HEADER, *(row.rsplit(",", 1)[0] + "," for row in ROWS)]),
        "the class variable 'works' has no known state in its 120 rows",
    ),
    "one known class": (
        "\n".join([HEADER, ROWS[0].rsplit(",", 1)[0] + ",", *(row[:-1] + "1" for row in ROWS[1:])]),
        "the class variable 'works' is '1' in all 119 rows in which it is known (1 are missing)",
    ),
    "one state": (
        "\n".join([HEADER, *(row[:-1] + "1" for row in ROWS)]),
        "the class variable 'works' is '1' in all 120 rows",
    ),
    "one row": (HEADER + "\n" + ROWS[0], "bad.csv has 1 row (line 2): a model is learned from many rows"),
    "two rows": ("\n".join([HEADER, *ROWS[:2]]), "bad.csv has 2 rows (lines 2, 3)"),
    "dates and text": (
        with_column("when", [f"2024-01-{i:02}" for i in range(1, 29)] + ["soon"]),
        "column 'when' holds dates, but 4 of 120 cells are not, or not written in the same way: 'soon' (line 30). "
        "Correct them (2024-01-31 is always understood), declare them missing (--missing soon)",
    ),
    "day or month": (
        with_column("when", ["01/02/2024", "03/04/2024"]),
        "column 'when' holds dates such as '01/02/2024', in none of which day and month can be told apart: say which "
        "comes first with --date-order dmy or --date-order mdy",
    ),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_tables(pmdc, tmp_path, name):
    content, message = BAD_TABLES[name]
    (tmp_path / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    done = pmdc("fit", "bad.csv", *FIT, "-o", "m.skops")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("pmdc fit: bad.csv")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_several_columns_of_a_kind_are_told_together(pmdc, tmp_path):
    rows = [f"{row},n{i},m{i}" for i, row in enumerate(ROWS)]
    both = ["--discrete", "name", "--discrete", "my mail"]
    (tmp_path / "bad.csv").write_text("\n".join([HEADER + ",name,my mail", *rows]))
    done = pmdc("fit", "bad.csv", *FIT, "-o", "m.skops", *both)
    assert "columns 'name', 'my mail' have" in done.err
    assert "--ignore 'name,my mail'" in done.err
    assert pmdc("fit", "bad.csv", *FIT, "-o", "m.skops", "--ignore", "name,my mail", "-q").code == 0
    (tmp_path / "bad.csv").write_text("\n".join([HEADER + ',name,"my, mail"', *rows]))
    both = ["--discrete", "name", "--discrete", "my, mail"]
    assert "--ignore name --ignore 'my, mail'." in pmdc("fit", "bad.csv", *FIT, "-o", "n.skops", *both).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-c", "mod"], "--classes names 'mod', which is not a column of table.csv; did you mean 'mood'?"),
        (["-c", "mood", "--continuous", "colour"], "--continuous names 'colour', which holds 'red'"),
        (["-c", "mood", "--date-order", "ymd"], "'ymd'"),
        (["-c", "mood,income"], "the class variable 'income' is continuous (119 different values in 120 rows"),
        (["-c", "mood", "--ignore", "mood"], "'mood' is named by --classes and by --ignore"),
        (["-c", "mood", "--discrete", "works,x"], "--discrete names 'x', which is not a column"),
        (["-c", "z*"], "--classes 'z*' matches no column"),
        (["-c", "*"], "has no column left from which to predict 'age'"),
        (["-c", ","], "--classes is empty"),
        (["-c", "mood", "--test-size", "0"], "--test-size 0 must be"),
        (["-c", "mood", "--delimiter", ";"], "but its header contains commas: use --delimiter ','"),
        (["-c", "mood", "--delimiter", "::"], "--delimiter '::' must be one character"),
        (["-c", "mood", "--encoding", "utf8x"], "--encoding utf8x is unknown"),
        (["-c", "mood", "--encoding", "utf-16"], "is not utf-16 text"),
        (["-c", "mood", "--jobs", "0"], "--jobs 0"),
        (["-c", "mood", "--time-limit", "0"], "--time-limit 0"),
        (
            ["-c", "mood", "--test-size", "0.001"],
            "a fraction between 0.01 and 0.99",
        ),
        (["-c", "mood", "--estimator", "bayes"], "Invalid value for '--estimator': 'bayes' is not one of"),
        (["-c", "mood", "--max-parents", "-1"], "-1"),
        (["-c", "mood", "--max-treewidth", "0"], "--max-treewidth"),
        (["-c", "mood", "--max-clique-cells", "many"], "'many'"),
        (["-c", "mood,works", "--tier", "mood", "--tier", "wroks"], "--tier names 'wroks', which is not a column"),
        (["-c", "mood,works", "--tier", "mood,colour"], "--tier names 'colour', which is not one of --classes"),
        (["-c", "mood", "--jobs", "two"], "'two'"),
        (
            ["-c", "mood", "--criterion", "loo", "--estimator", "logistic"],
            "--criterion loo works only with --estimator auto or naive-bayes",
        ),
        (["-c", "mood", "--criterion", "bic-full", "--estimator", "forest"], "use --criterion cv"),
    ],
)
def test_options_of_fit(pmdc, tmp_path, options, message):
    (tmp_path / "table.csv").write_text(survey())
    done = pmdc("fit", "table.csv", *options, "-o", "m.skops")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("pmdc fit: ")
    assert message in done.err
    assert not (tmp_path / "m.skops").exists()


def test_a_quantity_in_whole_numbers_is_no_class_variable(pmdc, tmp_path):
    (tmp_path / "table.csv").write_text(with_column("price", range(1000, 1120)))
    done = pmdc("fit", "table.csv", "-c", "mood,price", "-o", "m.skops")
    assert done.code == 2
    assert "'price' has 120 different values in 120 rows, such as '1000', '1001', '1002'" in done.err


def test_output_paths_are_checked_before_the_work(pmdc, tmp_path, folder, monkeypatch):
    (tmp_path / "table.csv").write_text(survey())
    monkeypatch.setattr("pmdc.cli.fitting.read_table", None)  # any call would fail
    (tmp_path / "there.skops").write_text("mine")
    for path, message in [
        ("there.skops", "there.skops: this file exists already"),
        ("nowhere/m.skops", "there is no folder nowhere"),
        (".", "is a folder"),
        ("-", "a model cannot be written to the standard output"),
        ("/proc/m.skops", "cannot be written"),
        ("/dev/null", "is not a regular file"),
        ("m.csv", "such as model.skops"),
        ("m.XLSX", "such as model.skops"),
    ]:
        done = pmdc("fit", "table.csv", "-c", "mood", "-o", path)
        assert done.code == 2
        assert message in done.err
    assert "is the table itself" in pmdc("fit", "table.csv", "-c", "mood", "-o", "table.csv", "--force").err
    assert (tmp_path / "there.skops").read_text() == "mine"
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "-o", "out.doc")
    assert (done.code, "must end in one of .csv" in done.err) == (2, True)


def test_a_failure_of_the_work_leaves_what_was_there(pmdc, tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text(survey())
    (tmp_path / "m.skops").write_text("mine")

    def fail(*arguments):
        raise ValueError("the matrix is singular")

    monkeypatch.setattr("pmdc.classifier.GBNC.fit", fail)
    done = pmdc("fit", "table.csv", *FIT, "-o", "m.skops", "--force", "-q")
    assert (done.code, done.err) == (1, "pmdc fit: the matrix is singular\n")
    assert (tmp_path / "m.skops").read_text() == "mine"
    monkeypatch.undo()


def test_a_failure_while_writing_leaves_what_was_there(pmdc, tmp_path, folder, monkeypatch):
    import pandas as pd

    (tmp_path / "out.csv").write_text("mine")

    def fail(self, path, **options):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "-o", "out.csv", "--force")
    assert done.code == 1
    assert "No space left on device" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("age,income,site\n1,2,007\n", "has no column 'colour'"),
        ("age,income,site,color\n1,2,007,red\n", "did you mean 'color'?"),
        ("age,income,site,colour\n1,2,007,red\nold,2,007,red\n", "column 'age' was a number when the model was fitted"),
        (
            "age;income;site;colour\n1;2,5;007;red\n",
            "'2,5' (line 2). If the comma is the decimal separator, use --decimal ','",
        ),
    ],
)
def test_tables_that_do_not_fit_the_model(pmdc, tmp_path, folder, text, message):
    (tmp_path / "new.csv").write_text(text)
    done = pmdc("predict", folder / "model.skops", "new.csv")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("pmdc predict: new.csv")
    assert message in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--given", "mood=fine"], "'fine' is not a state of 'mood'; there are 'bad', 'good', 'so so'."),
        (["--given", "moo=good"], "'moo' is not a class variable of the model; did you mean 'mood'?"),
        (["--given", "mood"], "such as --given mood=STATE"),
        (["--given", "mood=good", "--given", "mood=bad"], "names 'mood' twice"),
        (["--given", "mood=@where"], "names 'where', which is not a column"),
        (["--given", "mood=@colour"], "'red' (line"),
        (["--loss", "subst"], "did you mean 'subset'?"),
        (["--loss", "subst"], "'jaccard'.\n"),
        (["--loss", "jaccard"], "choose another loss, such as 'hamming'"),
        (["--loss", "f1_macro"], "choose another loss, such as 'hamming'"),
        (["--top", "7"], "--top 7: there are only 6 outcomes"),
        (["--top", "2", "--proba"], "--top cannot be combined with --proba"),
        (["--keep", "mood"], "the prediction has this name"),
        (["--keep", "where"], "--keep names 'where', which is not a column"),
        (["--sheet", "first", "--delimiter", "ab"], "--delimiter"),
    ],
)
def test_options_of_predict(pmdc, folder, options, message):
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_files_that_are_no_models(pmdc, folder, tmp_path):
    for path, message in [
        (folder / "new.csv", "was not written by pmdc fit"),
        (folder / "new.csv", "The model comes first, then the table."),
        (folder / "none.skops", "there is no file"),
        (folder, "is a folder"),
    ]:
        for command in ("predict", "evaluate"):
            done = pmdc(command, path, folder / "new.csv")
            assert (done.code, done.out) == (2, "")
            assert message in done.err
        assert pmdc("show", path).code == 2


def test_files_that_are_not_there(pmdc, folder):
    done = pmdc("predict", folder / "model.skops", folder / "nwe.csv")
    assert done.code == 2
    assert "there is no file" in done.err
    assert "did you mean 'new.csv'?" in done.err
    (folder.parent / "there.csv").write_text("mine")
    done = pmdc("predict", folder / "model.skops", "nwe.csv", "-o", folder.parent / "there.csv", "--force")
    assert (done.code, "there is no file nwe.csv" in done.err) == (2, True)
    assert "there is no folder" in pmdc("predict", folder / "model.skops", "nowhere/new.csv").err
    assert "is a folder" in pmdc("predict", folder / "model.skops", folder).err


def test_evaluate_needs_outcomes_that_the_model_knows(pmdc, folder, tmp_path):
    text = (folder / "new.csv").read_text()
    (tmp_path / "a.csv").write_text(text.replace("mood", "moods"))
    assert "has no column 'mood'" in pmdc("evaluate", folder / "model.skops", "a.csv").err
    (tmp_path / "b.csv").write_text(text.replace("good", "x").replace("bad", "y").replace("so so", "z"))
    done = pmdc("evaluate", folder / "model.skops", "b.csv")
    assert done.code == 2
    assert "class variable 'mood': none of its values" in done.err
    (tmp_path / "c.csv").write_text(text.replace("so so", "z"))
    done = pmdc("evaluate", folder / "model.skops", "c.csv")
    assert done.code == 0
    assert "infinite" in done.out
    assert "None" in str(json.loads(pmdc("evaluate", folder / "model.skops", "c.csv", "--json", "-q").out))
    assert "states that the model does not know" in done.err


def test_show_asks_for_what_its_options_need(pmdc, folder):
    model, table = folder / "model.skops", folder / "new.csv"
    for options, named in (
        (["--features", "3"], "--table"),
        (["--table", table], "--features"),
        (["--features", "3", "--table", table, "--row", table], "--row"),
        (["--max-arcs", "9"], "-o"),
        (["--max-arcs", "9", "--row", table], "--max-arcs 9"),
    ):
        done = pmdc("show", model, *options)
        assert done.code == 2
        assert named in done.err
    (folder / "unlabelled.csv").write_text("age,income,site,colour\n30,1.0,007,red\n")
    assert "'mood'" in pmdc("show", model, "--features", "3", "--table", folder / "unlabelled.csv").err


def test_show_asks_for_a_row_that_is_there(pmdc, folder):
    done = pmdc("show", folder / "model.skops", "--row", folder / "new.csv", "--index", "31")
    assert (done.code, "has 30 rows; choose 1 to 30." in done.err) == (2, True)
    (folder / "gap.csv").write_text("age,income,site,colour\n1,,007,red\n")
    done = pmdc("show", folder / "model.skops", "--row", folder / "gap.csv", "--index", "1")
    assert done.code == 0
    assert "column 'income' has 1 missing value(s), line 2, but had none" in done.err.replace("\n", " ")
    assert "--row" in pmdc("show", folder / "model.skops", "--given", "works=1").err


def test_a_model_is_not_a_table(pmdc, folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    done = pmdc("fit", folder / "model.skops", *FIT, "-o", "m.skops")
    assert (done.code, "model.skops is a model file" in done.err) == (2, True)


def test_too_few_rows_to_learn_from(pmdc, tmp_path):
    (tmp_path / "few.csv").write_text("colour,mood\nred,a\nblue,b\nred,b\nblue,a\ngreen,a\ngreen,b\n")
    done = pmdc("fit", "few.csv", "-c", "mood", "--test-size", "0.5", "-o", "m.skops")
    assert (done.code, "--test-size 0.5 leaves 3 rows to learn from" in done.err) == (2, True)


def test_excel_sheets(pmdc, folder, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    table = pd.read_csv(folder / "new.csv", dtype={"site": str})
    with pd.ExcelWriter("book.xlsx") as book:
        table.head(3).to_excel(book, sheet_name="few", index=False)
        table.to_excel(book, sheet_name="all", index=False)
    done = pmdc("predict", folder / "model.skops", "book.xlsx")
    assert len(done.out.splitlines()) == 4
    assert "has 2 sheets; only 'few'" in done.err
    assert len(pmdc("predict", folder / "model.skops", "book.xlsx", "--sheet", "all").out.splitlines()) == 31
    assert "did you mean 'all'?" in pmdc("predict", folder / "model.skops", "book.xlsx", "--sheet", "al").err
    mixed = table.astype(object)
    mixed.loc[4, "age"] = "old"
    mixed.to_excel("mixed.xlsx", index=False)
    assert "'old' (row 6)" in pmdc("predict", folder / "model.skops", "mixed.xlsx").err
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 no archive")
    assert "bad.xlsx cannot be read" in pmdc("predict", folder / "model.skops", "bad.xlsx").err
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no table")
    assert "bad.parquet cannot be read" in pmdc("predict", folder / "model.skops", "bad.parquet").err


def test_a_missing_extra_is_told(pmdc, folder, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openpyxl", None)
    done = pmdc("predict", folder / "model.skops", folder / "new.csv", "-o", "out.xlsx")
    assert (done.code, 'pip install "pmdc[excel]"' in done.err) == (2, True)


def test_defects_of_ours_are_not_hidden(pmdc, folder, monkeypatch):
    def fail(*arguments, **options):
        raise KeyError("a defect")

    monkeypatch.setattr(library.GBNC, "predict", fail)
    with pytest.raises(KeyError):
        pmdc("predict", folder / "model.skops", folder / "new.csv")
