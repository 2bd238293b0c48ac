"""Calibration plots on held-out rows."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from scipy import stats
from sklearn.exceptions import NotFittedError

from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.metrics import expected_calibration_error, reliability
from pmdc.metrics.probabilities import effective_rows
from pmdc.report import plot_calibration
from pmdc.report.calibration import wilson_interval


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def fitted(n_class_variables):
    data = make_network(300, n_class_variables=n_class_variables, random_state=0)
    model = BinaryRelevance().fit(data.X[:150], data.Y[:150])
    return model, data.X[150:], data.Y[150:]


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines if not line.get_label().startswith("_")}


def test_curves_are_the_bins_of_the_metrics():
    model, X, Y = fitted(3)
    ax = plot_calibration(model, X, Y, n_bins=5, title="$3")
    proba = model.predict_proba(X)
    found = lines(ax)
    expected = {"all class variables": (Y, proba, model.classes_)}
    expected |= {name: (Y[[name]], [proba[k]], [model.classes_[k]]) for k, name in enumerate(Y.columns)}
    assert len(found) == 4
    for name, given in expected.items():
        bins = reliability(*given, n_bins=5)
        filled = bins.weight > 0
        label = f"{expected_calibration_error(*given, n_bins=5):.3f}  {name}"
        np.testing.assert_allclose(found[label], np.column_stack([bins.confidence, bins.accuracy])[filled])
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, reliability(Y, proba, model.classes_, n_bins=5).weight)
    assert ax.get_title() == "$3"


def test_every_name_is_in_the_legend():
    data = make_network(200, n_class_variables=2, random_state=0)
    model = BinaryRelevance().fit(data.X[:100], data.Y[:100].set_axis(["_a", "$b$"], axis=1))
    ax = plot_calibration(model, data.X[100:], data.Y[100:].to_numpy())
    texts = [text.get_text().partition("  ")[2] for text in ax.get_legend().get_texts()]
    assert [text for text in texts if text] == ["_a", "$b$", "all class variables"]


def test_it_can_be_read_on_a_dark_ground():
    model, X, Y = fitted(2)
    with plt.style.context("dark_background"):
        assert plot_calibration(model, X, Y).lines[-1].get_color() == "white"


def test_columns_are_matched_by_name():
    model, X, Y = fitted(3)
    one, other = plot_calibration(model, X, Y), plot_calibration(model, X, Y[["y2", "y0", "y1"]])
    assert lines(one).keys() == lines(other).keys()


def test_many_class_variables_are_grey():
    model, X, Y = fitted(9)
    ax = plot_calibration(model, X, Y)
    assert set(lines(ax)) == {
        "each of 9 class variables",
        next(name for name in lines(ax) if name.endswith("all class variables")),
    }
    assert len(ax.lines) == 11  # with the diagonal and all together


def test_a_single_class_variable():
    data = make_network(200, n_class_variables=2, random_state=0)
    model = BinaryRelevance().fit(data.X[:100], data.Y["y0"][:100])
    _, ax = plt.subplots()
    assert plot_calibration(model, data.X[100:], data.Y["y0"][100:], ax) is ax
    assert len(lines(ax)) == 1


def test_weights_count():
    model, X, Y = fitted(2)
    weights = np.arange(len(X)) % 2
    one = plot_calibration(model, X, Y, sample_weight=weights)
    other = plot_calibration(model, X[weights == 1], Y[weights == 1])
    assert lines(one).keys() == lines(other).keys()


def band(ax):
    """The confidence, lower and upper limit of each bin, as drawn."""
    (drawn,) = (one for one in ax.collections if one.get_label() == "95 % interval")
    points = np.unique(drawn.get_paths()[0].vertices.round(12), axis=0)
    places = np.unique(points[:, 0])
    return np.array([[x, points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()] for x in places])


@pytest.mark.parametrize(("right", "n"), [(0, 7), (3, 7), (7, 7), (40, 50), (499, 500)])
def test_intervals_are_those_of_scipy(right, n):
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    lower, upper = wilson_interval(np.array([right / n]), np.array([float(n)]))
    assert (lower[0], upper[0]) == pytest.approx((expected.low, expected.high))


def test_an_empty_bin_may_have_any_accuracy():
    lower, upper = wilson_interval(np.array([0.0]), np.array([0.0]))
    assert (lower[0], upper[0]) == (0, 1)


def test_predictions_of_one_row_count_as_one():
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    ones = np.ones(4)
    np.testing.assert_allclose(effective_rows([proba], 4, ones), [0, 0, 2, 2])
    np.testing.assert_allclose(effective_rows([proba, proba], 4, ones), [0, 0, 2, 2])
    np.testing.assert_allclose(effective_rows([proba], 4, 7 * ones), [0, 0, 2, 2])  # only unequal weights matter
    uneven = effective_rows([proba], 4, np.array([1.0, 3.0, 1.0, 0.0]))
    np.testing.assert_allclose(uneven, [0, 0, 1, 16 / 10])


def test_the_band_holds_the_line_and_narrows_with_more_rows():
    data = make_network(4000, n_class_variables=2, random_state=0)
    model = BinaryRelevance().fit(data.X[:300], data.Y[:300])
    few, many = (plot_calibration(model, data.X[300:stop], data.Y[300:stop], n_bins=5) for stop in (500, 4000))
    widths = []
    for ax in (few, many):
        limits = band(ax)
        (line,) = (line for line in ax.lines if line.get_label().endswith("all class variables"))
        np.testing.assert_allclose(limits[:, 0], line.get_xdata())
        assert (limits[:, 1] <= line.get_ydata()).all()
        assert (line.get_ydata() <= limits[:, 2]).all()
        widths.append((limits[:, 2] - limits[:, 1])[-1])
    assert widths[1] < widths[0] / 3
    # Each class variable has limits of its own.
    assert sum(isinstance(one, LineCollection) for one in few.collections) == 2


def test_intervals_hold_the_true_accuracy_of_a_calibrated_model():
    """In most bins of many tables, although the predictions of a row are alike."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(300):
        confidence = rng.uniform(0.5, 1.0, 100)
        right = rng.random(100) < confidence
        proba = np.column_stack([confidence, 1 - confidence])
        marginals, truth = [proba] * 4, np.column_stack([np.where(right, 0, 1)] * 4)
        bins = reliability(truth, marginals, [range(2)] * 4, n_bins=4)
        lower, upper = wilson_interval(bins.accuracy, effective_rows(marginals, 4, np.ones(100)))
        covered += ((lower <= bins.confidence) & (bins.confidence <= upper))[2:].tolist()
    assert 0.92 < np.mean(covered) < 0.99


def test_what_is_wrong_is_said():
    model, X, Y = fitted(2)
    with pytest.raises(TypeError, match="model is of type str: give a fitted model of pmdc"):
        plot_calibration("model", X, Y)
    with pytest.raises(NotFittedError):
        plot_calibration(GBNC(experts=None), X, Y)
    with pytest.raises(ValueError, match="X has 150 rows, Y has 10"):
        plot_calibration(model, X, Y[:10])
    with pytest.raises(ValueError, match="n_bins=0"):
        plot_calibration(model, X, Y, n_bins=0)
