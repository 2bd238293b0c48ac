"""The row picker: search and filters, against the table itself."""

import numpy as np
import pytest

from explorer_page import eventually, ignored_warnings


@pytest.fixture
def rows(view, survey):
    """The page with the dialog open, and the numbers of the rows that it lists."""
    shown = view(survey)
    shown.locator("#find-rows").click()

    def listed():
        texts = shown.evaluate(
            """() => {
                const buttons = [...document.querySelectorAll('dialog button')];
                buttons.find(one => one.innerText.startsWith('Show more'))?.click();
                return [...document.querySelectorAll('dialog .rows strong')].map(one => one.innerText);
            }"""
        )
        return [int(text.removeprefix("row ")) - 1 for text in texts]

    def are(expected):
        expected = np.flatnonzero(expected).tolist()
        assert 0 < len(expected) < len(survey.X)
        eventually(lambda: listed() == expected)
        assert shown.locator("dialog [role=status]").inner_text().startswith(f"{len(expected)} row")

    shown.rows_are = are
    return shown


def choose(rows, kind, value=None):
    rows.locator("#filter-kind").select_option(kind)
    if value is not None:
        rows.locator("#filter-value").select_option(label=value)
    rows.locator("#add-filter").click()


def predicted(case):
    with ignored_warnings():
        return case.model.predict(case.X).astype(str)


def test_search(rows, survey):
    rows.fill("#row-search", "associate REPUBLICAN")
    rows.rows_are((survey.X["education"] == "associate degree") & (survey.Y["party"] == "Republican"))
    rows.fill("#row-search", "no such words")
    eventually(lambda: rows.locator("dialog [role=status]").inner_text() == "0 rows of 244")


def test_filter_by_feature_and_state(rows, survey):
    choose(rows, "feature 1", "bachelor degree")
    degree = (survey.X["education"] == "bachelor degree").to_numpy()
    rows.rows_are(degree)
    choose(rows, "true 0", "Dole")
    dole = (survey.Y["vote"] == "Dole").to_numpy()
    rows.rows_are(degree & dole)
    choose(rows, "predicted 1", "Republican")
    republican = (predicted(survey)["party"] == "Republican").to_numpy()
    rows.rows_are(degree & dole & republican)
    rows.locator(".chip button").first.click()
    rows.rows_are(dole & republican)


def test_filter_by_a_range_and_by_gaps(rows, survey):
    rows.locator("#filter-kind").select_option("feature 0")
    rows.fill(".values input >> nth=0", "30")
    rows.fill(".values input >> nth=1", "40.5")
    rows.locator("#add-filter").click()
    rows.rows_are(survey.X["age"].between(30, 40.5).to_numpy())
    rows.locator(".chip button").click()
    rows.locator("#filter-kind").select_option("feature 2")
    rows.locator(".values input[type=checkbox]").check()
    rows.locator("#add-filter").click()
    rows.rows_are(survey.X["income"].isna().to_numpy())


@pytest.mark.parametrize("kind", ["any", "none", "wrong 3"])
def test_filter_by_error(rows, survey, kind):
    wrong = predicted(survey).to_numpy() != survey.Y.astype(str).to_numpy()
    expected = {"any": wrong.any(axis=1), "none": ~wrong.any(axis=1), "wrong 3": wrong[:, 3]}
    choose(rows, kind)
    rows.rows_are(expected[kind])


def test_choose_a_row_of_the_list(rows, survey):
    rows.fill("#row-search", "associate")
    rows.rows_are(survey.X["education"] == "associate degree")
    row = rows.locator("dialog .rows button").nth(2)
    index = int(row.locator("strong").inner_text().removeprefix("row ")) - 1
    row.click()
    rows.shows(survey.joint(index))
    assert rows.url_state()["index"] == index
    assert rows.locator("#row-number").input_value() == str(index + 1)


def test_the_next_row_and_one_by_its_number(view, survey):
    shown = view(survey)
    shown.click("#row-after")
    shown.shows(survey.joint(1))
    shown.fill("#row-number", "244")
    shown.keyboard.press("Enter")
    shown.shows(survey.joint(243))
    assert shown.locator("#row-after").is_disabled()
