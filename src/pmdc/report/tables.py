"""A heat map of the conditional table of a class variable in one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.checks import check_count
from pmdc._support.extras import require
from pmdc.report.canvas import contrast, families, lines_of, printable, pyplot_figure, set_title, text_width
from pmdc.report.individual import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmdc.inference.distribution import JointDistribution

_SIZE = 8.5
_CELL = (48.0, 20.0)


def draw_table(
    distribution: JointDistribution, k: int, row: int, ax: Axes | None, max_rows: int, title: str | None
) -> Axes:
    """Draw P(Y_k | parents, x) of one row; see `JointDistribution.plot_table`."""
    require("matplotlib.patches")
    check_count("max_rows", max_rows, 1)
    names, states = distribution.class_table.names, distribution.class_table.states
    parents = distribution.parents[k]
    table = np.exp(distribution.log_tables[k][row]).reshape(-1, len(states[k]))
    shape = tuple(len(states[p]) for p in parents)
    shown, note = np.arange(len(table)), None
    if len(table) > max_rows:
        weight = distribution.rows(slice(row, row + 1)).joint(parents)[0].ravel()
        shown = np.argsort(-weight, kind="stable")[:max_rows]
        total = percent(float(weight[shown].sum()))
        note = f"the {max_rows} most probable of {len(table)} configurations ({total} in total)"
    codes = np.column_stack(np.unravel_index(shown, shape)) if parents else np.empty((1, 0), dtype=int)
    across = ["\n".join(lines_of(state, 14)) for state in states[k].tolist()]
    down = [
        " · ".join(printable(str(states[p].tolist()[code])) for p, code in zip(parents, some, strict=True))
        for some in codes
    ]
    heading = " · ".join(printable(names[p]) for p in parents) or "no parents"
    if title is None:
        title = f"P({names[k]} | {', '.join([*(names[p] for p in parents), 'x'])})"
    if ax is None:
        ax = _new_axes(across, [heading, *down], [note or "", title])
    _fill(ax, table[shown], across, down)
    ax.annotate(
        heading, (0, 1), (-5, 5), "axes fraction", "offset points", ha="right", va="bottom", weight="bold", **_text()
    )
    if note:
        ax.set_xlabel(note, labelpad=6, loc="right", **_text())
    set_title(ax, title, pad=10, loc="right")
    return ax


def _text(**options: Any) -> dict[str, Any]:
    return {"fontsize": _SIZE, "fontfamily": families(), "parse_math": False} | options


def _new_axes(across: list[str], down: list[str], lines: list[str]) -> Axes:
    """Return axes in a new figure with room for the labels beside the cells and the lines above and below."""
    cell = max(_CELL[0], *(text_width(line, _SIZE) + 10 for label in across for line in label.split("\n")))
    width = max(text_width(label, _SIZE, bold=True) for label in down) + cell * len(across)
    width = max(width, *(1.4 * text_width(printable(line), _SIZE) for line in lines)) + 30
    height = _CELL[1] * (len(down) + bool(lines[0])) + 12 * max(label.count("\n") + 1 for label in across) + 30
    figure = pyplot_figure(figsize=(width / 72, height / 72), layout="constrained")
    return figure.add_subplot()


def _fill(ax: Axes, table: Any, across: list[str], down: list[str]) -> None:
    from matplotlib import colormaps

    image = ax.imshow(table, cmap=colormaps["Blues"], vmin=0.0, vmax=1.0, aspect="auto")
    for (i, j), p in np.ndenumerate(table):
        ink = contrast(image.cmap(image.norm(p)))
        ax.text(j, i, percent(float(p)), ha="center", va="center", gid=f"cell:{i}:{j}", **_text(color=ink))
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("bottom")
    ax.set_xticks(range(len(across)), across, **_text())
    ax.set_yticks(range(len(down)), down, **_text())
    ax.tick_params(length=0)
    # Draw white lines between the cells.
    ax.set_xticks(np.arange(len(across) - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(len(down) - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)
