"""What the pictures share: how names are broken into lines."""

import pytest

from pmdc.report.canvas import Entry, Legend, lines_of


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("vote", ["vote"]),
        ("number of previous admissions", ["number of", "previous", "admissions"]),
        ("number_of_previous_admissions", ["number_of_", "previous_", "admissions"]),
        ("very-long-hyphenated-name", ["very-long-", "hyphenated-name"]),
        ("customerLifetimeValueInEuros", ["customerLifetime", "ValueInEuros"]),
        ("HTTPResponseCodeOfServer", ["HTTPResponseCode", "OfServer"]),
        ("GrößenÄnderungDesTeils", ["GrößenÄnderung", "DesTeils"]),
        ("measurementsOf2ndQuarter2023", ["measurements", "Of2ndQuarter2023"]),
        ("a vote for McDonald today", ["a vote for", "McDonald today"]),  # a short word is not broken
        ("Geschwindigkeitsbegrenzung", ["Geschwindigkeitsbegrenzung"]),  # nor is one without a boundary
        ("from 0.5 up to 12.75 litres", ["from 0.5 up to", "12.75 litres"]),
        ("temperatures -5 to -3", ["temperatures -5", "to -3"]),
        ("measured on 2024-05-17", ["measured on", "2024-05-17"]),
        ("__private__attribute", ["__private__", "attribute"]),
        ("two\nlines", ["two", "lines"]),
        ("", [""]),
    ],
)
def test_names_are_broken_between_words(name, lines):
    assert lines_of(name) == lines


def test_a_long_word_of_a_note_stays_whole():
    word = "x" * 80
    legend = Legend([Entry(f"the column {word} is constant")], 200.0)
    assert [row[0].label for row in legend.rows] == ["the column", word, "is constant"]
    assert legend.width > 400
