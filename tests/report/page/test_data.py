"""The summary of the data shows the values of each column, whatever they are."""

import numpy as np
import pytest

from pmdc.report.page.data import _values
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


@pytest.mark.parametrize("values", [[1e18, 1e18], [7, 7, 7], [10**17, 10**17 + 1]])
def test_a_range_that_floats_cannot_resolve_has_no_histogram(values):
    cell = _values(column(values), "continuous")
    assert cell == f"{values[0]:.4g} to {values[0]:.4g}, median {values[0]:.4g}"
