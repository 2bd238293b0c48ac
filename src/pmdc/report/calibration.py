"""Whether probabilities are what they say: confidence against accuracy on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pmdc._support.extras import require
from pmdc.metrics import Reliability, expected_calibration_error, reliability
from pmdc.report.canvas import COLOURS, GREY, LIGHT_GREY, contrast, printable, pyplot_figure, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CURVES = 6
"""More class variables than this are not told apart."""


def plot_calibration(
    model: Any,
    X: Any,
    Y: Any,
    ax: Axes | None = None,
    *,
    n_bins: int = 10,
    sample_weight: Any = None,
    title: str | None = None,
) -> Axes:
    """Draw how often predicted states are right, by how sure the model was of them.

    For each class variable the most probable state is the prediction, its probability the confidence. On the diagonal
    the model is calibrated, below it is too sure. Bars behind the curves are the share of all predictions that each
    bin of confidence has; the larger a point, the more predictions it stands for.

    Parameters
    ----------
    model : fitted model
        A `GBNC` or one of the baselines.
    X, Y : tables as for `fit`
        Rows that the model has not seen.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.
    n_bins : int, default=10
        Bins of confidence, of equal width.
    sample_weight : array-like of shape (n,), optional
    title : str, optional

    Returns
    -------
    matplotlib Axes
        With a line for all class variables together and, up to six class variables, one for each; for more, these are
        thin and grey. Before the names are the `pmdc.metrics.expected_calibration_error`.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import plot_calibration
    >>> data = make_network(400, random_state=0)
    >>> model = GBNC(max_parents=1).fit(data.X[:200], data.Y[:200])
    >>> ax = plot_calibration(model, data.X[200:], data.Y[200:])
    """
    from pmdc.estimator import MultiDimensionalClassifier

    require("matplotlib.patches")
    if not isinstance(model, MultiDimensionalClassifier):
        raise TypeError(
            f"model is of type {type(model).__name__}: give a fitted model of pmdc, such as a GBNC; of a search "
            "`best_estimator_`, of a pipeline its last step, with X as it comes out of the others."
        )
    check_is_fitted(model)
    proba = model.predict_proba(X)
    proba = proba if isinstance(proba, list) else [proba]
    truth = model.class_table_.encode(Y, unknown="mark")
    if len(truth) != len(proba[0]):
        raise ValueError(f"X has {len(proba[0])} rows, Y has {len(truth)}: they must agree.")

    def bins(name: str, variables: list[int]) -> tuple[str, Reliability]:
        given = truth[:, variables], [proba[k] for k in variables], [range(proba[k].shape[1]) for k in variables]
        options = {"n_bins": n_bins, "sample_weight": sample_weight}
        # The number first: matplotlib hides labels that begin with an underscore, as a name may.
        return f"{expected_calibration_error(*given, **options):.3f}  {name}", reliability(*given, **options)

    names = [printable(name) for name in model.class_names_]
    each = [bins(name, [k]) for k, name in enumerate(names)]
    label, together = bins("all class variables" if len(names) > 1 else names[0], list(range(len(names))))
    own = ax is None
    if ax is None:
        ax = pyplot_figure(figsize=(6.6, 4.4), layout="constrained").add_subplot()
    edges = np.linspace(0, 1, n_bins + 1)
    ax.bar(
        edges[:-1],
        together.weight,
        np.diff(edges),
        align="edge",
        color=(GREY, 0.15),
        edgecolor=ax.get_facecolor(),
        zorder=0,
        label="share of all predictions",
    )
    if len(names) > MOST_CURVES:
        before = len(ax.lines)
        draw_curves(ax, each, colours=[LIGHT_GREY], linewidth=1.0, points=False)
        for line in ax.lines[before:-1]:
            line.set_label("_")
        ax.lines[-1].set_label(f"each of {len(names)} class variables")
    elif len(names) > 1:
        draw_curves(ax, each)
    draw_curves(
        ax, [(label, together)], colours=[contrast(ax.get_facecolor())], linewidth=2.0, diagonal=len(names) == 1
    )
    legend: Any = ax.get_legend()
    if own:  # beside the curves, where it hides none
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((1.02, 1.0))
    legend.set_title("calibration error")
    legend.get_title().set_fontsize(8)
    if title:
        set_title(ax, title)
    return ax


def draw_curves(
    ax: Axes,
    bins: Iterable[tuple[str, Reliability]],
    *,
    colours: Any = COLOURS,
    linewidth: float = 1.3,
    points: bool = True,
    diagonal: bool = True,
) -> None:
    """Accuracy against confidence, a line for each name, the larger the points the fuller the bin.

    Empty bins are left out.
    """
    if diagonal:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    for i, (name, each) in enumerate(bins):
        weight, confidence, accuracy = (np.asarray(values, dtype=float) for values in each)
        filled = weight > 0
        ax.plot(
            confidence[filled],
            accuracy[filled],
            linewidth=linewidth,
            color=colours[i % len(colours)],
            label=name,
        )
        if points:
            colour = colours[i % len(colours)]
            ax.scatter(
                confidence[filled], accuracy[filled], s=4 + 160 * weight[filled], color=colour, zorder=3, clip_on=False
            )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("confidence of predicted states")
    ax.set_ylabel("share of them that are right")
    for text in ax.legend(fontsize=8).get_texts():
        text.set_parse_math(False)
