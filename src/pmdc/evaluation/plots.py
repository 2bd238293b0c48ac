"""Plots of a comparison: critical differences, pairs of methods, differences by data set, calibration.

Needs matplotlib (extra "plot" or "benchmark"). Each function draws into the given axes or a new figure and returns it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.extras import require
from pmdc.evaluation.statistics import average_ranks, critical_difference
from pmdc.report.calibration import draw_curves
from pmdc.report.canvas import COLOURS, GREY

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def critical_difference_diagram(losses: Any, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Plot average ranks, with bars over methods that Nemenyi's test does not find different (Demšar, 2006).

    Parameters
    ----------
    losses : DataFrame (data sets x methods), smaller is better
    alpha : float, default=0.05
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ranked = average_ranks(losses).sort_values(kind="stable")
    distance = critical_difference(len(ranked), len(losses), alpha)
    half = (len(ranked) + 1) // 2
    groups = cliques(ranked.to_numpy(), distance)
    if ax is None:
        ax = _new_axes(7.0, 1.2 + 0.28 * (half + len(groups)))
    top = half + len(groups) + 1.0
    ax.set_xlim(0.2, len(ranked) + 0.8)
    ax.set_ylim(0.2, top + 1.4)
    ax.axis("off")
    ax.plot([1, len(ranked)], [top, top], color="black", linewidth=1.2)
    for tick in range(1, len(ranked) + 1):
        ax.plot([tick, tick], [top, top + 0.15], color="black", linewidth=1.2)
        ax.text(tick, top + 0.25, str(tick), ha="center", va="bottom", fontsize=9)
    ax.plot([1, 1 + distance], [top + 1.1, top + 1.1], color=GREY, linewidth=2)
    ax.text(1 + distance + 0.08, top + 1.1, f"critical difference {distance:.2f}", va="center", fontsize=9, color=GREY)
    for i, (name, rank) in enumerate(ranked.items()):
        left = i < half
        # The best and the worst rank are on the outermost levels, so that no lines cross.
        level = half - i - 0.4 if left else half - (len(ranked) - 1 - i) - 0.4
        end = 0.9 if left else len(ranked) + 0.1
        ax.plot([rank, rank, end], [top, level, level], color="black", linewidth=0.9)
        text = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
        ax.text(end + (-0.05 if left else 0.05), level, text, ha="right" if left else "left", va="center", fontsize=9)
    for i, (first, last) in enumerate(groups):
        level = top - 0.45 - 0.45 * i
        ax.plot([first - 0.04, last + 0.04], [level, level], color=COLOURS[0], linewidth=3.5, solid_capstyle="round")
    return ax


def cliques(ranks: Sequence[float] | Any, distance: float) -> list[tuple[float, float]]:
    """Return the widest runs of sorted average ranks that differ by less than the critical difference."""
    runs: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = max(i for i in range(first, len(ranks)) if ranks[i] - ranks[first] < distance)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return [(float(ranks[a]), float(ranks[b])) for a, b in runs]


def pair_plots(means: pd.DataFrame, control: str, *, measure: str = "loss") -> Figure:
    """Plot the loss of each other method against that of the control, one point for each data set.

    Points above the diagonal are data sets on which the control is better.
    """
    others = [name for name in means.columns if name != control]
    figure, axes = require("matplotlib.pyplot").subplots(
        1, len(others), figsize=(2.6 * len(others), 2.9), squeeze=False, layout="constrained"
    )
    for ax, other in zip(axes[0], others, strict=True):
        both = means[[control, other]].to_numpy(dtype=float)
        both = both[np.isfinite(both).all(axis=1)]
        ends = [float(both.min(initial=0.0)), float(both.max(initial=0.0)) * 1.05]
        ax.plot(ends, ends, color=GREY, linewidth=1)
        ax.scatter(both[:, 0], both[:, 1], s=22, color=COLOURS[0], zorder=3)
        ax.set_aspect("equal")
        ax.set_xlabel(f"{control}")
        ax.set_ylabel(f"{other}")
    figure.suptitle(f"{measure}: above the line {control} is better", fontsize=10)
    return figure


def difference_bars(
    means: pd.DataFrame, control: str, n_variables: Mapping[str, int], *, measure: str = "loss", ax: Axes | None = None
) -> Axes:
    """Plot the loss of each method minus that of the control, data sets ordered by number of class variables.

    Bars above zero are data sets on which the control is better.
    """
    order = sorted(means.index, key=lambda name: (n_variables[name], str(name)))
    others = [name for name in means.columns if name != control]
    if ax is None:
        ax = _new_axes(max(5.0, 0.7 * len(order) + 1.5), 3.2)
    width = 0.8 / len(others)
    for i, other in enumerate(others):
        differences = (means.loc[order, other] - means.loc[order, control]).to_numpy(dtype=float)
        differences = np.where(np.isfinite(differences), differences, np.nan)
        places = np.arange(len(order)) + (i - (len(others) - 1) / 2) * width
        ax.bar(places, differences, width, label=other, color=COLOURS[i % len(COLOURS)])
    ax.axhline(0, color="black", linewidth=0.8)
    names = [f"{name}\n{n_variables[name]}" for name in order]
    ax.set_xticks(range(len(order)), names, fontsize=8, rotation=45 if len(order) > 8 else 0)
    ax.set_xlabel("data set, number of class variables")
    ax.set_ylabel(f"{measure} minus {control}")
    # Above the axes, where it covers no bar.
    ax.legend(fontsize=8, ncols=min(len(others), 4), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return ax


def calibration_plot(bins: Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Plot the accuracy of predicted states against their confidence; a calibrated method is on the diagonal.

    Parameters
    ----------
    bins : dict from method to `pmdc.metrics.Reliability`
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        ax = _new_axes(4.6, 4.4)
    draw_curves(ax, bins.items())
    return ax


def _new_axes(width: float, height: float) -> Axes:
    _, ax = require("matplotlib.pyplot").subplots(figsize=(width, height), layout="constrained")
    return ax
