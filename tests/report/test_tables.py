"""The heat map of a conditional table shows its numbers, and a note if it is cut."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from pmdc.inference import JointDistribution
from pmdc.table.classes import ClassTable


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def joint():
    """Three class variables of 3, 4 and 2 states; the last has the others as parents. Two rows."""
    rng = np.random.default_rng(0)
    Y = pd.DataFrame({"$a": list("uvwu"), "b": list("pqrs"), "c": ["no", "yes", "no", "yes"]})
    tables = [rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(4), (2, 3)), rng.dirichlet(np.ones(2), (2, 3, 4))]
    return JointDistribution(ClassTable.fit(Y), [(), (0,), (0, 1)], [np.log(table) for table in tables])


def cells(ax):
    return {
        tuple(map(int, text.get_gid().split(":")[1:])): text
        for text in ax.texts
        if (text.get_gid() or "").startswith("cell:")
    }


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_cells_are_conditional_probabilities(joint):
    ax = joint.plot_table("c", row=1)
    table = np.exp(joint.log_tables[2][1]).reshape(12, 2)
    np.testing.assert_allclose(ax.images[0].get_array(), table)
    assert {place: text.get_text() for place, text in cells(ax).items()} == {
        place: f"{100 * p:.0f} %" for place, p in np.ndenumerate(table)
    }
    assert labels(ax.xaxis) == ["no", "yes"]
    assert labels(ax.yaxis) == [f"{a} · {b}" for a in "uvw" for b in "pqrs"]
    assert ax.get_title(loc="right") == "P(c | $a, b, x)"
    assert "$a · b" in [text.get_text() for text in ax.texts]


def test_without_parents_there_is_one_line(joint):
    ax = joint.plot_table("$a", title="P")
    np.testing.assert_allclose(ax.images[0].get_array(), np.exp(joint.log_tables[0][:1]))
    assert "no parents" in [text.get_text() for text in ax.texts]
    assert ax.get_title(loc="right") == "P"


def test_too_many_configurations_leave_out_the_least_probable_and_say_so(joint):
    ax = joint.plot_table("c", max_rows=5)
    weight = joint.joint([0, 1])[0].ravel()
    shown = np.argsort(-weight)[:5]
    np.testing.assert_allclose(ax.images[0].get_array(), np.exp(joint.log_tables[2][0]).reshape(12, 2)[shown])
    assert labels(ax.yaxis) == [f"{'uvw'[i // 4]} · {'pqrs'[i % 4]}" for i in shown]
    share = f"{100 * weight[shown].sum():.0f} %"
    assert ax.get_xlabel() == f"the 5 most probable of 12 configurations ({share} in total)"
    assert joint.plot_table("c", max_rows=12).get_xlabel() == ""


def test_numbers_stand_out(joint):
    def luminance(colour):
        channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return np.dot([0.2126, 0.7152, 0.0722], channels)

    ax = joint.plot_table("c")
    image = ax.images[0]
    for place, text in cells(ax).items():
        low, high = sorted([luminance(text.get_color()), luminance(image.cmap(image.norm(image.get_array()[place])))])
        assert (high + 0.05) / (low + 0.05) > 4.5


def test_all_words_are_in_the_picture_and_none_touch(joint):
    ax = joint.plot_table("c", max_rows=3, title="A title that is much longer than the table of three lines is wide")
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    words = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax._right_title]
    boxes = [text.get_window_extent(renderer) for text in words if text.get_text()]
    for i, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.width + 1
        assert box.y1 <= figure.bbox.height + 1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_words_stand_out_from_a_dark_ground(joint):
    with plt.style.context("dark_background"):
        ax = joint.plot_table("c", max_rows=3)
    words = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax._right_title, ax.texts[-1]]
    assert {to_rgb(text.get_color()) for text in words} == {(1, 1, 1)}


def test_given_axes_are_used(joint):
    _, ax = plt.subplots()
    assert joint.plot_table("b", ax=ax) is ax


def test_what_is_wrong_is_said(joint):
    with pytest.raises(ValueError, match="name names 'd'"):
        joint.plot_table("d")
    with pytest.raises(ValueError, match="row=2, but there are 2 rows"):
        joint.plot_table("c", row=2)
    with pytest.raises(ValueError, match="max_rows=0 must be a whole number of at least 1"):
        joint.plot_table("c", max_rows=0)
    with pytest.raises(ValueError, match="evidence has no conditional tables"):
        joint.given({"b": "p"}).plot_table("c")
