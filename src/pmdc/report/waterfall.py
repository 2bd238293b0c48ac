"""A waterfall: from the base rate to the log-odds of a row, a bar for each contribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pmdc._support.checks import check_count
from pmdc._support.extras import require
from pmdc.explain.explanation import Contribution, label, probability
from pmdc.report.canvas import COLOURS, GREY, INK, families, lines_of, printable, pyplot_figure, set_title, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmdc.explain.explanation import Explanation

_SIZE = 9.0
_ROW, _WIDTH = 22.0, 300.0
_LABEL_LENGTH = 44
_HEIGHT = 0.64
_TICKS = (
    (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5),
    (1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5),
    (0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5),
    tuple(i / 100 for i in range(1, 51)),
)
"""Probabilities up to 1/2 that may be marked, coarse and finer; the others are their complements."""

_MIN_TICKS, _MAX_TICKS = 3, 7


class _Bar(NamedTuple):
    """A line of the picture: from where to where, and the standard error."""

    label: str
    start: float
    stop: float
    error: float = 0.0


def draw_waterfall(
    explanation: Explanation, ax: Axes | None, max_bars: int, title: str | None, figure: Any = None
) -> Axes:
    """Draw an explanation; see `Explanation.plot`."""
    require("matplotlib.patches")
    check_count("max_bars", max_bars, 1)
    bars = _bars(explanation, max_bars)
    labels = ["\n".join(lines_of(bar.label, _LABEL_LENGTH)) for bar in bars]
    if title is None:
        title = f"{explanation.variable} = {explanation.state}"
    if ax is None:
        ax = _new_axes(labels, title, pyplot_figure if figure is None else figure)
    place = np.arange(len(bars))[::-1]
    for y, bar in zip(place.tolist(), bars, strict=True):
        _draw_bar(ax, y, bar, whole=y in (0, len(bars) - 1))
    for y, bar in zip(place[:-1].tolist(), bars[:-1], strict=True):
        ax.plot([bar.stop, bar.stop], [y - _HEIGHT / 2, y - 1 + _HEIGHT / 2], color=GREY, linewidth=0.8, zorder=1)
    ax.set_yticks(place, labels, **_text())
    ax.set_ylim(-0.7, len(bars) - 0.3)
    _finish(ax, bars)
    set_title(ax, title, pad=10, loc="left")
    return ax


def _bars(explanation: Explanation, max_bars: int) -> list[_Bar]:
    parts = list(explanation.contributions)
    shown, rest = (parts, []) if len(parts) <= max_bars + 1 else (parts[:max_bars], parts[max_bars:])
    if rest:
        total = sum(part.contribution for part in rest)
        error = float(np.sqrt(sum(part.standard_error**2 for part in rest)))
        shown = [*shown, Contribution("others", f"{len(rest)} others", None, total, error)]
    at = explanation.base
    bars = [_Bar(explanation.reference, 0.0, at)]
    for part in shown:
        bars.append(_Bar(label(part), at, at + part.contribution, part.standard_error))
        at += part.contribution
    return [*bars, _Bar("log-odds", 0.0, explanation.log_odds)]


def _draw_bar(ax: Axes, y: int, bar: _Bar, whole: bool) -> None:
    if whole:  # a value, not a change
        ax.plot([bar.stop], [y], "D", color=INK, markersize=5, zorder=3)
        text = f"{bar.stop:+.2f} ({_percent(probability(bar.stop))})"
    else:
        colour = COLOURS[0] if bar.stop >= bar.start else COLOURS[1]
        ax.barh(y, bar.stop - bar.start, _HEIGHT, left=bar.start, color=colour, zorder=2, gid=f"contribution:{y}")
        text = f"{bar.stop - bar.start:+.2f}"
        if bar.error >= 0.005:
            ax.errorbar(bar.stop, y, xerr=bar.error, color=INK, capsize=2, linewidth=1, zorder=4)
            text += f" ± {bar.error:.2f}"
    right = whole or bar.stop >= bar.start
    end = bar.stop + (bar.error if right else -bar.error)
    ax.annotate(
        text, (end, y), (6 if right else -6, 0), textcoords="offset points", va="center",
        ha="left" if right else "right", zorder=5, **_text(color=INK),
    )  # fmt: skip


def _percent(p: float) -> str:
    return f"{100 * p:.3g} %" if p <= 0.999 else f"{100 * p:.6g} %"


def _finish(ax: Axes, bars: list[_Bar]) -> None:
    ends = np.array([[bar.start, bar.stop] if 0 < i < len(bars) - 1 else [bar.stop] * 2 for i, bar in enumerate(bars)])
    low, high = float(ends.min()), float(ends.max())
    share = 0.36 if any(bar.error >= 0.005 for bar in bars) else 0.24
    margin = share * max(high - low, 0.5)  # for the numbers beside the bars
    ax.set_xlim(low - margin, high + margin)
    ax.set_xlabel("log-odds", **_text())
    ax.tick_params(axis="x", labelsize=_SIZE)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    above = ax.secondary_xaxis("top")
    ticks = _ticks(low - margin, high + margin)
    above.set_xticks([np.log(p / (1 - p)) for p in ticks], [_percent(p) for p in ticks], **_text())
    above.tick_params(length=3)
    above.set_xlabel("probability", **_text())


def _ticks(low: float, high: float) -> list[float]:
    """Return probabilities to be marked between two log-odds: the coarsest that are at least `_MIN_TICKS`."""
    inside: list[float] = []
    for small in _TICKS:
        every = sorted({*small, *(1 - p for p in small)})
        inside = [p for p in every if low <= np.log(p / (1 - p)) <= high]
        if len(inside) >= _MIN_TICKS:
            break
    return inside[:: -(-len(inside) // _MAX_TICKS) or 1]


def _text(**options: Any) -> dict[str, Any]:
    return {"fontsize": _SIZE, "fontfamily": families(), "parse_math": False} | options


def _new_axes(labels: list[str], title: str, figure: Any) -> Axes:
    """Return axes in a new figure with room for the labels."""
    lines = [line for text in labels for line in text.split("\n")]
    width = max(text_width(line, _SIZE) for line in lines) + _WIDTH + 40
    width = max(width, 1.3 * text_width(printable(title), 12.0) + 40)
    height = _ROW * len(labels) + 0.6 * _ROW * (len(lines) - len(labels)) + 110
    return figure(figsize=(width / 72, height / 72), layout="constrained").add_subplot()
