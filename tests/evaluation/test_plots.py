"""The pictures of a comparison show what they claim."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from pmdc.evaluation.plots import calibration_plot, cliques, critical_difference_diagram, difference_bars, pair_plots
from pmdc.metrics import Reliability

matplotlib.use("Agg")

MEANS = pd.DataFrame(
    {"GBNC": [0.1, 0.2, 0.3, 0.2], "BR": [0.2, 0.3, 0.3, 0.4], "CC": [0.3, 0.25, 0.4, np.inf]},
    index=["edm", "rf1", "adult", "flags"],
)


def test_cliques_are_the_widest_runs():
    assert cliques([1.0, 1.5, 2.2, 4.0], 1.0) == [(1.0, 1.5), (1.5, 2.2)]
    assert cliques([1.0, 1.2, 1.4], 1.0) == [(1.0, 1.4)]
    assert cliques([1.0, 3.0], 1.0) == []


@pytest.mark.parametrize("n_methods", [3, 4, 7])
def test_the_diagram_names_all_methods_and_no_texts_overlap(n_methods):
    rng = np.random.default_rng(n_methods)
    losses = pd.DataFrame(
        rng.random((12, n_methods)) + np.arange(n_methods), columns=[f"method {i}" for i in range(n_methods)]
    )
    ax = critical_difference_diagram(losses)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    texts = [text.get_text() for text in ax.texts]
    assert sum("method" in text for text in texts) == n_methods
    assert any(text.startswith("critical difference") for text in texts)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_pairs_have_a_point_for_each_finite_pair():
    figure = pair_plots(MEANS, "GBNC")
    points = [ax.collections[0].get_offsets() for ax in figure.axes]
    np.testing.assert_allclose(points[0], MEANS[["GBNC", "BR"]])
    assert len(points[1]) == 3
    assert [ax.get_ylabel() for ax in figure.axes] == ["BR", "CC"]


def test_bars_are_differences_in_the_order_of_the_number_of_class_variables():
    ax = difference_bars(MEANS, "GBNC", {"edm": 2, "rf1": 8, "adult": 4, "flags": 7})
    labels = [text.get_text().split("\n")[0] for text in ax.get_xticklabels()]
    assert labels == ["edm", "adult", "flags", "rf1"]
    heights = [bar.get_height() for bar in ax.containers[0]]
    np.testing.assert_allclose(heights, [0.1, 0.0, 0.2, 0.1])


def test_calibration_leaves_out_empty_bins():
    bins = {"GBNC": Reliability(np.array([0.0, 0.4, 0.6]), np.array([0.0, 0.5, 0.9]), np.array([0.0, 0.45, 0.95]))}
    ax = calibration_plot(bins)
    line = next(line for line in ax.lines if line.get_label() == "GBNC")
    np.testing.assert_allclose(line.get_xdata(), [0.5, 0.9])
