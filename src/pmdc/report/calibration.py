"""Calibration curves: accuracy against confidence on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pmdc._support.arrays import Codes, Floats
from pmdc._support.extras import require
from pmdc.metrics import Reliability, expected_calibration_error, reliability
from pmdc.metrics.probabilities import effective_rows
from pmdc.report.canvas import COLOURS, GREY, LIGHT_GREY, contrast, printable, pyplot_figure, set_title
from pmdc.table.columns import MISSING
from pmdc.table.rows import read_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_CURVES = 6
"""Above this number, the curves of class variables are grey and unlabelled."""


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
    """Draw the accuracy of predicted states against the confidence of the model.

    The prediction for a class variable is its most probable state, and the confidence is the probability of this state.
    A calibrated model is on the diagonal, an overconfident one below it. Bars show the share of all predictions in each
    bin of confidence. The size of a point grows with the number of its predictions.

    The band around the line of all class variables, and the thin vertical lines of each of them, are 95 % intervals of
    the accuracy in each bin (Wilson's, for a binomial proportion). Where an interval contains the diagonal, the
    distance to it may be chance. Predictions of one row count as one, because they may be wrong together; rows of
    unequal weight count as fewer rows.

    Parameters
    ----------
    model : fitted model
        A `GBNC` or one of the baselines.
    X, Y : tables as for `fit`
        Rows that were not used in `fit`. Missing cells of Y are left out.
    ax : matplotlib Axes, optional
        The axes to draw in; a new figure by default.
    n_bins : int, default=10
        The number of bins of confidence, of equal width.
    sample_weight : array-like of shape (n,), optional
    title : str, optional

    Returns
    -------
    matplotlib Axes
        With a line for all class variables together and one for each; thin, grey and without intervals for more than
        six class variables. The legend shows the `pmdc.metrics.expected_calibration_error` of each line.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import plot_calibration
    >>> data = make_network(400, random_state=0)
    >>> model = GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])
    >>> ax = plot_calibration(model, data.X[200:], data.Y[200:])
    """
    from pmdc.estimator import MultiDimensionalClassifier

    require("matplotlib.patches")
    if not isinstance(model, MultiDimensionalClassifier):
        raise TypeError(
            f"model is of type {type(model).__name__}: give a fitted model of pmdc, such as a GBNC. For a search use "
            "its best_estimator_, for a pipeline its last step, with X transformed by the steps before."
        )
    check_is_fitted(model)
    proba = model.predict_proba(X)
    proba = proba if isinstance(proba, list) else [proba]
    truth = model.class_table_.encode(Y, unknown="mark", missing="mark")
    if len(truth) != len(proba[0]):
        raise ValueError(f"X has {len(proba[0])} rows, Y has {len(truth)}: they must have the same number.")
    held_out = CalibrationRows(truth, proba, read_weights(sample_weight, len(truth)), n_bins)
    return draw_calibration(model.class_names_, held_out, ax, title, pyplot_figure)


def draw_calibration(
    class_names: Sequence[str], held_out: CalibrationRows, ax: Axes | None, title: str | None, figure: Any
) -> Axes:
    """Draw the curves of `plot_calibration`; without `ax`, in a new figure made by the function `figure`."""
    names = [printable(name) for name in class_names]
    each = [held_out.curve(name, [k]) for k, name in enumerate(names)]
    pooled = held_out.curve("all class variables" if len(names) > 1 else names[0], range(len(names)))
    new_figure = ax is None
    if ax is None:
        ax = figure(figsize=(6.6, 4.4), layout="constrained").add_subplot()
    _draw_shares(ax, pooled.bins.weight)
    if len(names) > _MAX_CURVES:
        labels = ["_"] * (len(names) - 1) + [f"each of {len(names)} class variables"]  # "_" is not in the legend
        curves = [(label, one.bins) for label, one in zip(labels, each, strict=True)]
        draw_curves(ax, curves, colours=[LIGHT_GREY], linewidth=1.0, points=False)
    elif len(names) > 1:
        draw_curves(ax, [(one.label, one.bins) for one in each])
        for one, colour in zip(each, COLOURS, strict=False):
            ax.vlines(*one.interval(), color=(colour, 0.35), linewidth=1.0)
    ink = contrast(ax.get_facecolor())
    ax.fill_between(*pooled.interval(), color=(ink, 0.13), linewidth=0, zorder=1.5, label="95 % interval")
    draw_curves(ax, [(pooled.label, pooled.bins)], colours=[ink], linewidth=2.0, diagonal=len(names) == 1)
    legend: Any = ax.get_legend()
    if new_figure:  # place the legend beside the curves
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((1.02, 1.0))
    legend.set_title("calibration error")
    legend.get_title().set_fontsize(8)
    if title:
        set_title(ax, title)
    return ax


class _Curve(NamedTuple):
    """A line of the plot: its label, its bins and the limits of the accuracy in each bin."""

    label: str
    bins: Reliability
    lower: Floats
    upper: Floats

    def interval(self) -> tuple[Floats, Floats, Floats]:
        """Return confidence, lower and upper limit of the accuracy, of the bins that are not empty."""
        filled = self.bins.weight > 0
        return self.bins.confidence[filled], self.lower[filled], self.upper[filled]


class CalibrationRows(NamedTuple):
    """Codes of the true states, marginal probabilities and weights of held-out rows, and the number of bins."""

    truth: Codes
    proba: list[Floats]
    weights: Floats
    n_bins: int

    def curve(self, name: str, variables: Sequence[int]) -> _Curve:
        marginals = [self.proba[k] for k in variables]
        truth = self.truth[:, list(variables)]
        known = truth != MISSING
        data = np.where(known, truth, np.nan), marginals, [range(each.shape[1]) for each in marginals]
        options: dict[str, Any] = {"n_bins": self.n_bins, "sample_weight": self.weights}
        bins = reliability(*data, **options)
        limits = wilson_interval(bins.accuracy, effective_rows(marginals, self.n_bins, self.weights, known))
        # The number comes first because matplotlib hides labels that begin with an underscore, as a name may.
        return _Curve(f"{expected_calibration_error(*data, **options):.3f}  {name}", bins, *limits)


def _draw_shares(ax: Axes, weight: Floats) -> None:
    """Draw the share of all predictions in each bin as bars."""
    edges = np.linspace(0, 1, len(weight) + 1)
    look = {"color": (GREY, 0.15), "edgecolor": ax.get_facecolor(), "zorder": 0}
    ax.bar(edges[:-1], weight, np.diff(edges), align="edge", label="share of all predictions", **look)


def wilson_interval(share: Floats, n: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return Wilson's interval of binomial proportions, of `n` trials each; n may be a fraction, and 0."""
    from scipy.stats import norm

    z = norm.isf((1 - level) / 2)
    some = np.where(n > 0, n, 1.0)
    middle = (share + z**2 / (2 * some)) / (1 + z**2 / some)
    half = z / (1 + z**2 / some) * np.sqrt(share * (1 - share) / some + z**2 / (4 * some**2))
    return np.where(n > 0, middle - half, 0.0).clip(0, 1), np.where(n > 0, middle + half, 1.0).clip(0, 1)


def draw_curves(
    ax: Axes,
    bins: Iterable[tuple[str, Reliability]],
    *,
    colours: Any = COLOURS,
    linewidth: float = 1.3,
    points: bool = True,
    diagonal: bool = True,
) -> None:
    """Draw accuracy against confidence, a line for each name; the size of points shows the weight of the bins.

    Empty bins are left out.
    """
    if diagonal:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    for i, (name, each) in enumerate(bins):
        weight, confidence, accuracy = (np.asarray(values, dtype=float) for values in each)
        filled, colour = weight > 0, colours[i % len(colours)]
        ax.plot(confidence[filled], accuracy[filled], linewidth=linewidth, color=colour, label=name)
        if points:
            ax.scatter(
                confidence[filled], accuracy[filled], s=4 + 160 * weight[filled], color=colour, zorder=3, clip_on=False
            )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("confidence (probability of the predicted state)")
    ax.set_ylabel("accuracy (share of right predictions)")
    for text in ax.legend(fontsize=8).get_texts():
        text.set_parse_math(False)
