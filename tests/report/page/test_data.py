"""The summary of the data shows the values of each column, whatever they are."""

import numpy as np
import pytest

from pmdc.report.page.data import _states, _values
from pmdc.table.columns import Column, read_columns


def column(values) -> Column:
    return read_columns(np.asarray(values).reshape(-1, 1), "X", "test", allow_missing=True)[0]


def heights(cell):
    return [float(bar.get("height")) for bar in cell[0]]


def test_the_bars_of_a_histogram_are_as_high_as_their_counts():
    values = np.random.default_rng(0).normal(size=500)
    counts = np.histogram(values, 12)[0]
    np.testing.assert_allclose(
        heights(_values(column(values), "continuous")), 15 * counts / counts.max() + 0.6, atol=0.1
    )


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.arange(300) + 10**17, "1e+17 to 1e+17, median 1e+17"),
        ([-1.5e308, 1.5e308, 1.5e308], "-1.5e+308 to 1.5e+308, median 1.5e+308"),
        ([1.5e308, 1.6e308], "1.5e+308 to 1.6e+308, median 1.55e+308"),
    ],
)
def test_large_numbers_and_ranges(values, text):
    cell = _values(column(values), "continuous")
    assert cell[1] == text
    assert heights(cell)[0] > 0
    assert heights(cell)[-1] > 0


def text_of(cell):
    return "".join(part if isinstance(part, str) else "".join(part.itertext()) for part in cell)


@pytest.mark.parametrize(
    ("values", "least", "text"),
    [
        ("aaaaabbbbc", 0, "a: 50 % · b: 40 % · c: 10 %"),
        ("aaaaabbbbc", 5, "a: 50 % · 2 rare values left out"),
        ("abc", 5, "3 rare values left out"),
        ("aaaaabbbbbcccccd", 5, "a: 31 % · b: 31 % · c: 31 % · 1 further values"),
    ],
)
def test_rare_values_are_left_out(values, least, text):
    assert text_of(_values(column(np.array(list(values), object)), "discrete", least)) == text


@pytest.mark.parametrize(
    ("counts", "least", "text"),
    [
        ([5, 4, 0], 0, "a: 56 % · b: 44 % · c: 0 %"),
        ([5, 4, 0], 5, "a: 56 % · 2 rare values left out: 44 %"),
        ([1, 2, 0], 5, "3 rare values left out: 100 %"),
        ([9, 8, 7, 6, 5, 4, 3], 5, "a: 21 % · b: 19 % · c: 17 % · d: 14 % · e: 12 % · 2 others: 17 %"),
    ],
)
def test_rare_states_are_left_out(counts, least, text):
    codes = np.append(np.repeat(np.arange(len(counts)), counts), -2)
    assert text_of(_states(np.array(list("abcdefg"[: len(counts)])), codes, least)) == text


@pytest.mark.parametrize("values", [[1e18, 1e18], [7, 7, 7], [10**17, 10**17 + 1]])
def test_a_range_that_floats_cannot_resolve_has_no_histogram(values):
    cell = _values(column(values), "continuous")
    assert cell == f"{values[0]:.4g} to {values[0]:.4g}, median {values[0]:.4g}"
