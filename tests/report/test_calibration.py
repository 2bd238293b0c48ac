"""Calibration plots on held-out rows."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pmdc import GBNC, BinaryRelevance
from pmdc.datasets import make_network
from pmdc.metrics import expected_calibration_error, reliability
from pmdc.report import plot_calibration


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
    assert texts[:3] == ["_a", "$b$", "all class variables"]


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
