"""Columns of messy tables: what is left out, what is pointed out, dates, and names with commas."""

import json

import pytest

import pmdc as library
from pmdc._support.spelling import misspellings
from small_survey import FIT, survey

HEADER, *ROWS = survey().splitlines()


def table(path, **columns):
    """Write the survey with further columns, each a function of the row number."""
    rows = [",".join([row, *(str(make(i)) for make in columns.values())]) for i, row in enumerate(ROWS)]
    path.write_text("\n".join([",".join([HEADER, *columns]), *rows]) + "\n")


def fit(pmdc, tmp_path, *options, **columns):
    """Fit on the survey with further columns; return the kinds of these and the hints."""
    table(tmp_path / "t.csv", **columns)
    done = pmdc("fit", "t.csv", *FIT, "-o", "m.skops", "--force", "--json", *options)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert all(f"- {hint}\n" in done.err for hint in told["hints"])
    return {column["name"]: column["kind"] for column in told["columns"]}, told["hints"]


def hint_on(hints, *parts):
    """Return the one hint that holds some text."""
    (found,) = [hint for hint in hints if all(part in hint for part in parts)]
    return found


def test_an_ordinary_table_gets_no_hints_but_on_its_codes(pmdc, tmp_path):
    _, hints = fit(pmdc, tmp_path)
    assert len(hints) == 1
    assert "'site'" in hints[0]


def test_columns_of_no_use_are_left_out_with_a_word(pmdc, tmp_path):
    kinds, hints = fit(
        pmdc,
        tmp_path,
        who=lambda i: f"p{i}",
        number=lambda i: 1000 + i,
        Patient_ID=lambda i: i * 37 % 1009,
        country=lambda i: "US",
        year=lambda i: 1900 + i,
        balance=lambda i: i * 7919 % 99991,
    )
    left_out = {name for name, kind in kinds.items() if kind == "ignored"}
    assert left_out == {"who", "number", "Patient_ID", "country"}
    assert kinds["year"] == kinds["balance"] == "continuous"
    assert "--continuous number,Patient_ID" in hint_on(hints, "'who'", "'number'", "'Patient_ID'", "left out")
    assert "the same value" in hint_on(hints, "'country'", "left out")
    assert "--ignore year,balance" in hint_on(hints, "identifiers")
    kinds, hints = fit(pmdc, tmp_path, "--continuous", "number", number=lambda i: 1000 + i)
    assert kinds["number"] == "continuous"


def test_free_text_is_left_out_unless_it_is_wanted(pmdc, tmp_path):
    def remark(i):
        return f"text {i % 90}"

    kinds, hints = fit(pmdc, tmp_path, remark=remark)
    assert kinds["remark"] == "ignored"
    assert "--discrete remark" in hint_on(hints, "'remark'", "left out")
    assert fit(pmdc, tmp_path, "--discrete", "remark", remark=remark)[0]["remark"] == "discrete"


def test_nothing_is_left(pmdc, tmp_path):
    (tmp_path / "t.csv").write_text("id,y\n" + "".join(f"{i},{i % 2}\n" for i in range(30)))
    done = pmdc("fit", "t.csv", "-c", "y", "-o", "m.skops")
    assert (done.code, "no column left" in done.err, "'id' is left out" in done.err) == (2, True, True)


def test_hints_on_many_columns_are_one(pmdc, tmp_path):
    many = {f"q{j}": lambda i, j=j: (i * i + i * j + j) % 7 for j in range(82)}
    done_kinds, hints = fit(pmdc, tmp_path, **many)
    assert sum(kind == "continuous" for kind in done_kinds.values()) == 84
    found = hint_on(hints, "82 columns", "'q0'")
    assert "--discrete q" not in found, "dozens of discrete features are not suggested"
    assert len(hints) == 2
    _, hints = fit(pmdc, tmp_path, q0=many["q0"], q1=many["q1"])
    assert "--discrete q0,q1" in hint_on(hints, "'q0'", "'q1'")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda i: -999 if i % 40 == 0 else i % 25, "-999"),
        (lambda i: 99999 if i % 40 == 0 else 20000 + 40 * (i % 50), "99999"),
        (lambda i: -1 if i % 40 == 0 else 18 + i % 70, "-1"),
        (lambda i: 99 if i % 40 == 0 else i % 50 / 10, "99"),
    ],
)
def test_codes_for_missing_values(pmdc, tmp_path, make, word):
    _, hints = fit(pmdc, tmp_path, a=make, b=make)
    assert f"missing: --missing={word}." in hint_on(hints, f"{word} lies far", "'a', 'b' (6 cells)")
    _, hints = fit(pmdc, tmp_path, f"--missing={word}", "--drop-missing", a=make)
    assert not any("far" in hint for hint in hints)


@pytest.mark.parametrize(
    "make",
    [lambda i: i % 20 - 1, lambda i: i % 101, lambda i: 990 + i % 10, lambda i: -999 + 17 * i, lambda i: i % 3 - 1],
)
def test_ordinary_numbers_are_no_codes_for_missing_values(pmdc, tmp_path, make):
    assert not any("lies far" in hint for hint in fit(pmdc, tmp_path, a=make)[1])


def test_copies_of_rows(pmdc, tmp_path):
    (tmp_path / "t.csv").write_text("\n".join([HEADER, *ROWS, ROWS[3], ROWS[8]]))
    done = pmdc("fit", "t.csv", *FIT, "-o", "m.skops")
    assert "2 of 122 rows repeat an earlier one in all columns (lines 122, 123)" in done.out
    (tmp_path / "u.csv").write_text("\n".join(["a,b,y", *(f"{i % 2},{i % 3},{i % 5 % 2}" for i in range(200))]))
    assert "repeat" not in pmdc("fit", "u.csv", "-c", "y", "--estimator", "naive-bayes", "-o", "n.skops").out


def test_misspelt_states(pmdc, tmp_path):
    place = next(i for i, row in enumerate(ROWS) if ",good," in row)
    rows = [row.replace(",good,", ",GOOD,") if i == place else row for i, row in enumerate(ROWS)]
    (tmp_path / "t.csv").write_text("\n".join([HEADER, *rows]))
    done = pmdc("fit", "t.csv", *FIT, "-o", "m.skops")
    assert f"'GOOD' in 'mood' (1 row, first in line {place + 2}): did you mean 'good'" in done.out


def test_what_is_a_misspelling():
    found = misspellings({"Democrat": 380, "Republican": 300, "Democart": 1, "democrat": 200, "Republicans": 2})
    assert {(one.state, one.meant, one.same_letters) for one in found} == {
        ("democrat", "Democrat", True),
        ("Democart", "Democrat", False),
        ("Republicans", "Republican", False),
    }
    for states in (
        {"male": 900, "female": 5},
        {"stage 1": 900, "stage 2": 3},
        {"Democrat": 30, "Democart": 10},
        {"AA": 50, "Aa": 90, "aa": 30},
        {"red": 900, "green": 1},
    ):
        assert misspellings(states) == []


def test_the_limit_of_values_is_that_of_the_library():
    from pmdc.cli import hints
    from pmdc.table.grouping import MAX_VALUES

    assert hints._VERY_MANY == MAX_VALUES


def test_many_values_are_told_once(pmdc, tmp_path):
    rows = [f"{i % 7},{'big' if i % 2 else f't{i % 1100}'},{i % 2}" for i in range(1200)]
    (tmp_path / "t.csv").write_text("\n".join(["a,town,y", *rows]))
    done = pmdc("fit", "t.csv", "-c", "y", "--estimator", "naive-bayes", "-o", "m.skops")
    assert (done.out.count("'town' has 551 values"), done.err) == (1, "")
    (tmp_path / "new.csv").write_text("a,town\n1,big\n1,never seen\n")
    done = pmdc("predict", "m.skops", "new.csv")
    assert (done.out, done.err) == ("y\n1\n0\n", "")


# Dates --------------------------------------------------------------------------------------------------------


def test_dates_from_the_file_to_the_prediction(pmdc, tmp_path):
    kinds, _ = fit(
        pmdc,
        tmp_path,
        when=lambda i: f"{i % 28 + 1:02}/{i % 12 + 1:02}/{2019 + i % 3}",
        at=lambda i: f"{i % 24}:30",
        iso=lambda i: f"2024-01-{i % 31 + 1:02}T12:00:00Z",
        same=lambda i: "2024-01-01",
    )
    assert {name: kinds[name] for name in ("when", "at", "iso", "same")} == {
        "when": "date",
        "at": "date",
        "iso": "date",
        "same": "ignored",
    }
    model = library.load(tmp_path / "m.skops")
    assert model.feature_table_.date_names == {
        "when": ["days", "month", "weekday"],
        "at": ["time"],
        "iso": ["days", "weekday"],
    }
    assert list(model.feature_names_in_) == ["age", "income", "site", "colour", "when", "at", "iso"]

    def predict(when):
        line = f"30,0.5,007,red,{when},7:30,2024-01-15"
        (tmp_path / "new.csv").write_text(f"age,income,site,colour,when,at,iso\n{line}\n")
        return pmdc("predict", "m.skops", "new.csv", "--proba")

    assert predict("02/03/2021").out == predict("2021-03-02").out != predict("03/02/2021").out
    for wrong in ("12/31/2021", "soon", "14:00"):
        done = predict(wrong)
        assert done.code == 2
        assert "new.csv, column 'when' was a date when the model was fitted, but 1 of 1 cells are not one" in done.err
        assert f"'{wrong}' (line 2)" in done.err
    shown = pmdc("show", "m.skops").out
    assert "when: days, month, weekday" in shown
    assert pmdc("evaluate", "m.skops", "t.csv").code == 0


def test_the_order_of_day_and_month_can_be_said(pmdc, tmp_path):
    def when(i):
        return f"0{i % 9 + 1}/0{i % 7 + 1}/2024"

    for order, first in {"dmy": "2024-01-01 to 2024-07-09", "mdy": "2024-01-01 to 2024-09-07"}.items():
        table(tmp_path / "t.csv", when=when)
        done = pmdc("fit", "t.csv", *FIT, "-o", f"{order}.skops", "--date-order", order)
        assert first in done.out
        assert library.load(tmp_path / f"{order}.skops").feature_table_.date_orders == {"when": order}
    assert fit(pmdc, tmp_path, "--discrete", "when", when=when)[0]["when"] == "discrete"


def test_dates_of_excel_and_parquet(pmdc, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    days = pd.date_range("2024-01-01", periods=60)
    frame = pd.DataFrame({"when": days, "y": (days.day_of_week < 5).astype(int)})
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    answers = []
    for name in ("t.xlsx", "t.parquet"):
        done = pmdc("fit", name, "-c", "y", "--estimator", "naive-bayes", "-o", f"{name}.skops")
        assert "2024-01-01 to 2024-02-29" in done.out
        answers.append(pmdc("predict", f"{name}.skops", name, "--proba").out)
    assert answers[0] == answers[1]


# Names --------------------------------------------------------------------------------------------------------


def test_class_variables_whose_names_hold_commas(pmdc, tmp_path):
    (tmp_path / "t.csv").write_text("\n".join([HEADER.replace("mood", '"mood, today"'), *ROWS]))
    rest = ["--estimator", "naive-bayes", "--max-parents", "1", "-o", "m.skops", "--force", "--json"]
    for options in (
        ["-c", "mood, today", "-c", "works"],
        ["-c", '"mood, today",works'],
        ["-c", '"mood, today", works'],
    ):
        told = json.loads(pmdc("fit", "t.csv", *options, *rest).out)
        assert [c["name"] for c in told["columns"] if c["kind"] == "class variable"] == ["mood, today", "works"]
    done = pmdc("fit", "t.csv", "-c", "mood, today,works", *rest)
    assert done.code == 2
    assert "--classes names 'mood'" in done.err
    assert "--classes 'mood, today' --classes ..." in done.err
    assert '"mood, today"' in done.err
