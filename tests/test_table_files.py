"""Table files: what cells are, where they stand, and files that are written as a whole or not at all."""

import csv
import datetime
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmdc._support.atomic_files import replacing
from pmdc.table_files import Format, TableFileError, check_output, read_table, write_table


def table_of(tmp_path, text, **options):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    return read_table(tmp_path / "t.csv", Format(**options))


@pytest.mark.parametrize(
    ("cells", "looks"),
    [
        (["1", "-2", "+3"], "whole"),
        (["1", "2.5", "-3e-4", ".5", "2."], "number"),
        (["1", "NA", "2"], "whole"),
        (["007", "12"], "text"),
        (["-01", "12"], "text"),
        (["1", "x"], "mixed"),
        (["1_000", "2"], "mixed"),
        (["inf", "2"], "mixed"),
        (["True", "False"], "truth"),
        (["true", "false"], "text"),
        (["NA", "nan"], "empty"),
        (["1,5", "2"], "mixed"),
        (["99999999999999999999", "1"], "whole"),
        (["9" * 5000, "1"], "mixed"),
        (["1e999", "1"], "mixed"),
        ([" 1 ", "2 "], "whole"),
    ],
)
def test_what_cells_look_like(tmp_path, cells, looks):
    quoted = "\n".join(f'a,"{cell}"' for cell in cells)
    assert table_of(tmp_path, f"x,y\n{quoted}\n")["y"].looks == looks


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_are_read_to_the_last_bit(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("numbers")
    cells = table_of(folder, "x,y\n" + "".join(f"a,{value!r}\n" for value in values))["y"]
    assert cells.looks in ("number", "whole")
    assert cells.numbers().tolist() == values
    european = "x;y\n" + "".join(f"a;{value!r}\n".replace(".", ",") for value in values)
    assert table_of(folder, european, decimal=",")["y"].numbers().tolist() == values


def test_missing_values_and_rows(tmp_path):
    table = table_of(tmp_path, "a,b\n1,x\n,y\nNA,z\n4,?\n", missing=("NA", "?"))
    assert table["a"].missing().tolist() == [False, True, True, False]
    np.testing.assert_array_equal(table["a"].numbers(), [1, np.nan, np.nan, 4])
    assert table["b"].missing().tolist() == [False, False, False, True]
    assert table["b"].missing(known=["?"]).tolist() == [False] * 4
    few = table.rows(np.array([True, False, False, True]))
    assert few["a"].own_type() == [1, 4]
    assert few["b"].values == ["x", "?"]
    assert few.where([1]) == "line 5"
    assert table.where(np.ones(4, dtype=bool)) == "lines 2, 3, 4 and 1 more"


def test_lines_are_those_of_the_file(tmp_path):
    table = table_of(tmp_path, '\na,b\n1,"two\nlines"\n\n3,x\n   \n4,y\n')
    assert table.n_rows == 3
    assert [table.where([i]) for i in range(3)] == ["line 3", "line 6", "line 8"]
    assert table["b"].own_type() == ["two\nlines", "x", "y"]


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_separators_are_found_out(tmp_path, sign):
    rows = [["a", "b", "c"], ["1", "x, y; z", "2"], ["3", "w", "4"]]
    text = "\n".join(sign.join(f'"{cell}"' if " " in cell else cell for cell in row) for row in rows)
    table = table_of(tmp_path, text)
    assert table.names == ["a", "b", "c"]
    assert table["b"].values == ["x, y; z", "w"]


def test_names(tmp_path):
    table = table_of(tmp_path, ", b ,c\n0,1,2\n1,2,3\n")
    assert table.names == ["column 1", "b", "c"]
    assert "has no name" in table.notes[0]
    with pytest.raises(TableFileError, match="columns 1 and 3 have the same name 'a'"):
        table_of(tmp_path, "a,b,a\n1,2,3\n")


def test_columns_with_neither_name_nor_value_are_left_out(tmp_path):
    table = table_of(tmp_path, "a,b,,\n1,2,, \n1,3,,\n")
    assert table.names == ["a", "b"]
    assert [note.startswith(f"2 column(s) of {table.source}") for note in table.notes] == [True]


def test_blanks_around_cells_mean_nothing(tmp_path):
    table = table_of(tmp_path, 'a , b\n1 , yes\n2,yes \n3,"no "\n4, \n')
    assert table["a"].own_type() == [1, 2, 3, 4]
    assert table["b"].values == ["yes", "no", ""]
    assert table["b"].missing().tolist() == [False, False, False, True]
    assert table["b"].as_known([" no", "yes"]) == ["yes", "yes", " no", ""], "states of a model that was not so careful"


def test_lines_before_the_header(tmp_path):
    table = table_of(tmp_path, 'sep=;\r\na;b\r\n1;"x,y"\r\n')
    assert (table.names, table["b"].values, table.where([0])) == (["a", "b"], ["x,y"], "line 3")
    with pytest.raises(TableFileError, match="'Report', but line 3 has 2 cells"):
        table_of(tmp_path, "Report\n\n5,b\n1,2\n")
    with pytest.raises(TableFileError, match="line 2 has 4 cell.*'My, report' is a title"):
        table_of(tmp_path, "My, report\na,b,c,d\n1,2,3,4\n")
    pytest.importorskip("openpyxl")
    rows = pd.DataFrame([[None, None], ["a", "b"], [1, "x "], [None, None], [2, "y"]])
    rows.to_excel(tmp_path / "t.xlsx", header=False, index=False)
    table = read_table(tmp_path / "t.xlsx")
    assert (table.names, table["b"].values) == (["a", "b"], ["x", "y"])
    assert [table.where([i]) for i in range(2)] == ["row 3", "row 5"]


@pytest.mark.parametrize(
    ("sign", "titles", "quoted"),
    [
        (",", ["Report"], ["'Report'"]),
        (";", ["Report"], ["'Report'"]),
        ("\t", ["", "Report, 2024", "", "first half"], ["'Report, 2024'", "'first half'"]),
        (",", ["Report,,"], ["'Report'"]),
    ],
)
def test_titles_above_the_header_are_left_out_with_a_note(tmp_path, sign, titles, quoted):
    table = table_of(tmp_path, "\n".join([*titles, f"a{sign}b{sign}c", "", f"1{sign}x{sign}2", f"3{sign}y{sign}4"]))
    assert (table.names, table["b"].values) == (["a", "b", "c"], ["x", "y"])
    assert table.where([0]) == f"line {len(titles) + 3}"
    assert all(part in table.notes[0] for part in quoted)


def test_what_is_no_title(tmp_path):
    for text, names in {
        "a\n1\n2\n": ["a"],
        "a,\n1,2\n": ["a", "column 2"],
        "a,,\n1,2,3\n": ["a", "column 2", "column 3"],
        "note\na\nb\n": ["note"],
    }.items():
        table = table_of(tmp_path, text)
        assert table.names == names
        assert not any("at the beginning" in note for note in table.notes)


def test_titles_in_excel(tmp_path):
    pytest.importorskip("openpyxl")
    rows = pd.DataFrame([["Report", None, None], ["a", "b", "c"], [1, "x", 3], [2, "y", 4]])
    rows.to_excel(tmp_path / "t.xlsx", header=False, index=False)
    table = read_table(tmp_path / "t.xlsx")
    assert (table.names, table["b"].values, table.where([0])) == (["a", "b", "c"], ["x", "y"], "row 3")
    assert "'Report'" in table.notes[0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_and_without_a_mark(tmp_path, encoding):
    (tmp_path / "t.csv").write_bytes("naïve,b\n1,é\n".encode(encoding))
    table = read_table(tmp_path / "t.csv")
    assert (table.names, table["b"].values) == (["naïve", "b"], ["é"])


@pytest.mark.parametrize(
    ("cells", "looks", "first"),
    [
        (["2024-01-31", "2024-02-01"], "date", datetime.datetime(2024, 1, 31)),
        (["2024/1/31 14:05", "2024/2/1 1:00"], "date", datetime.datetime(2024, 1, 31, 14, 5)),
        (
            ["2024-01-31T14:05:30.5Z", "2024-02-01T00:00:00+02:00"],
            "date",
            datetime.datetime(2024, 1, 31, 14, 5, 30, 500_000),
        ),
        (["01/02/2024", "01/31/2024"], "date", datetime.datetime(2024, 1, 2)),
        (["01/02/2024", "31/01/2024"], "date", datetime.datetime(2024, 2, 1)),
        (["01/02/2024", "01/03/2024"], "date", datetime.datetime(2024, 2, 1)),
        (["01.02.2024", "02.03.2024"], "date", datetime.datetime(2024, 2, 1)),
        (["31 Jan 2024", "1 February 2024"], "date", datetime.datetime(2024, 1, 31)),
        (["Jan 31, 2024 2:05 PM", "Mar. 1, 2024 12:00 am"], "date", datetime.datetime(2024, 1, 31, 14, 5)),
        (["14:05", "9:30"], "time", datetime.time(14, 5)),
        (["2:05 PM", "12:00 AM"], "time", datetime.time(14, 5)),
        (["2024-02-30", "2024-02-01"], "text", None),
        (["31/01/2024", "01/31/2024"], "text", None),
        (["25:00", "14:05"], "text", None),
        (["2024-01-31", "soon"], "text", None),
        (["2024-01", "2024-02"], "text", None),
    ],
)
def test_dates(tmp_path, cells, looks, first):
    quoted = "\n".join(f'1,"{cell}"' for cell in cells)
    column = table_of(tmp_path, f"x,y\n{quoted}\n")["y"]
    assert column.looks == looks
    if first is not None:
        assert column.dates()[0] == first
        assert not column.not_dates().any()


def test_the_order_of_day_and_month_may_be_unknown(tmp_path):
    column = table_of(tmp_path, "x,y\n1,01/02/2024\n2,03/04/2024\n")["y"]
    assert (column.looks, column.date_order) == ("date", None)
    assert column.dates("mdy")[0] == datetime.datetime(2024, 1, 2)
    assert column.dates("dmy")[0] == datetime.datetime(2024, 2, 1)


def test_long_cells_and_quotation_marks_that_are_not_closed(tmp_path):
    limit = csv.field_size_limit()
    text = "long " * 60_000
    table = table_of(tmp_path, f'a,b\n1,"{text}"\n2,x\n')
    assert table["b"].values == [text.strip(), "x"]
    assert csv.field_size_limit() == limit
    rows = "".join(f"{i},x\n" for i in range(50_000))
    for column in ('"1,x', '1,"x'):
        with pytest.raises(TableFileError, match="line 3: a quotation mark is opened but never closed"):
            table_of(tmp_path, f"a,b\n0,y\n{column}\n{rows}")
    with pytest.raises(TableFileError, match="line 1: a quotation mark"):
        table_of(tmp_path, f'a,"b\n{rows}')
    assert csv.field_size_limit() == limit


def test_text_that_looks_like_a_formula_stays_text_in_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"=A1": ["=1+1", "+1", "-x", "@y", "#N/A"], "n": [1, 2, 3, 4, 5]})
    write_table(frame, tmp_path / "t.xlsx")
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} == {"s", "n"}
    table = read_table(tmp_path / "t.xlsx", Format(missing=()))
    assert table.names == ["=A1", "n"]
    assert table["=A1"].values == frame["=A1"].tolist()


def test_numbers_as_they_are_written(tmp_path):
    assert table_of(tmp_path, "a\n1.10\n1e5\n\n2\nNA\n")["a"].as_written() == ["1.10", "1e5", "2", "NA"]
    assert table_of(tmp_path, "a;b\n1,10;x\n,5;y\n", decimal=",")["a"].as_written() == ["1.10", ".5"]


def test_a_missing_truth_value_is_neither(tmp_path):
    assert table_of(tmp_path, "a,b\n1,True\n2,\n3,False\n")["b"].own_type() == [True, None, False]


def test_frames_have_the_types_of_the_cells(tmp_path):
    frame = table_of(tmp_path, "n,f,t,b\n1,0.5,x,True\n2,1.5,007,False\n").frame()
    assert frame["n"].dtype == np.int64
    assert frame["f"].dtype == np.float64
    assert frame["t"].tolist() == ["x", "007"]
    assert frame["b"].tolist() == [True, False]


def test_numbers_may_mean_missing_in_every_kind_of_file(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1, -999, 3], "b": [0.5, 1.5, -999.0]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for name, words in {"t.parquet": ("-999",), "t.csv": ("-999", "-999.0")}.items():
        table = read_table(tmp_path / name, Format(missing=words))
        assert table["a"].missing().tolist() == [False, True, False]
        assert table["b"].missing().tolist() == [False, False, True]
        assert table["a"].looks == "whole"


def test_frames_have_dates(tmp_path):
    frame = table_of(tmp_path, "d,t,u\n2024-01-31,14:05,01/02/2024\n,9:30,03/04/2024\n").frame()
    assert frame["d"][0] == pd.Timestamp("2024-01-31")
    assert frame["d"].isna().tolist() == [False, True]
    assert frame["t"][0] == datetime.time(14, 5)
    assert frame["u"].dtype == "category"


def test_parquet_keeps_its_types(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {"n": [1, 2], "f": [0.5, np.nan], "b": [True, False], "t": ["007", None], "c": pd.Categorical(["u", "v"])}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert {name: table[name].looks for name in table.names} == {
        "n": "whole",
        "f": "number",
        "b": "truth",
        "t": "text",
        "c": "text",
    }
    assert table["f"].missing().tolist() == [False, True]
    assert table["t"].missing().tolist() == [False, True]
    assert table["n"].as_known(["1", "2"]) == ["1", "2"]
    assert table["b"].as_known([False, True]) == [True, False]
    assert table["b"].as_known(["FALSE", "TRUE"]) == ["TRUE", "FALSE"]


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    os.chmod(path, 0o640)

    def fail():
        with replacing(path) as new:
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "before"
    (tmp_path / "link.csv").symlink_to(path)
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "link.csv")
    assert path.read_text() == "a\n1\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.csv").is_symlink()
    assert {p.name for p in tmp_path.iterdir()} == {"out.csv", "link.csv"}


def test_output_paths(tmp_path):
    check_output(tmp_path / "new.csv", overwrite=False)
    with pytest.raises(TableFileError, match=r"new: .* \.csv"):
        check_output(tmp_path / "new", overwrite=False)
    (tmp_path / "new.csv").write_text("")
    with pytest.raises(TableFileError, match="new.csv: .*--force"):
        check_output(tmp_path / "new.csv", overwrite=False)
    check_output(tmp_path / "new.csv", overwrite=True)
    check_output("/dev/null", overwrite=False)
    assert [p.name for p in tmp_path.iterdir()] == ["new.csv"]
