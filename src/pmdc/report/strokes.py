"""The lines of a graph: width, dashes, opacity and arrow head of each edge, and the legend that explains them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pmdc.report.canvas import Entry, Sampler, add_shape, gid, line_sample, shape_sample
from pmdc.report.layout import Edge

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.path import Path

# Lengths are in points (at scale 1).
_LINE_WIDTHS = (0.6, 3.0)
_PLAIN_WIDTH = 1.2
_FEATURE_WIDTH = 0.8
_HEAD = (7.0, 2.9)
"""Length and half the width of an arrow head; wider lines have larger heads."""
_MIN_OPACITY = 0.2

EDGE_COLOURS = {"class": "#4d4d4d", "discrete": "#c26f00", "continuous": "#00795a"}
"""By the kind of the parent."""
_DASHES = {"partition": (), "input": (5.0, 3.0), "block": (1.5, 1.5), "mixed": (7.0, 2.0, 2.0, 2.0)}
"""Lengths of dashes and gaps."""
_CONDITIONING = {
    "partition": "parent partitions the rows",
    "input": "parent is an input",
    "block": "members of a block",
    "mixed": "differs between the models",
}
_DOTS = (1.2, 2.0)
UNDETERMINED = "no arrowhead: the data do not determine the direction"
_IMPORTANCE = "+: log-loss added in nats per row if the feature is shuffled"


def is_feature_arc(data: Mapping[str, Any]) -> bool:
    """Return whether an edge shows the importance of a feature and is not part of the learned graph."""
    return "importance" in data and "conditioning" not in data and "strength" not in data


def is_undetermined(data: Mapping[str, Any]) -> bool:
    """Return whether the data do not determine the direction of an edge."""
    return not data.get("determined", True)


def add_arrow(
    ax: Axes, edge: Edge, route: Any, scale: float, colour: str, width: float = _PLAIN_WIDTH, **style: Any
) -> None:
    """Draw a line along the route and, unless ``head=False``, an arrow head at its end."""
    from matplotlib.path import Path

    pointed = style.pop("head", True)
    length, half = ((0.8 + 0.2 * width) * side * pointed for side in _HEAD)
    x, y = route[-1]
    base = y + math.copysign(length, route[-2][1] - y)  # routes are vertical at their ends
    line = [*route[:-2], (route[-2][0], route[-2][1] + base - y), (x, base)]
    curve = Path(line, [Path.MOVETO] + [Path.CURVE4] * (len(line) - 1))
    alpha = style.pop("alpha", 1.0)
    look = {"fc": "none", "ec": colour, "alpha": alpha, "linewidth": scale * width, "capstyle": "butt", "zorder": 1}
    add_shape(ax, gid("edge", *edge), curve, **style, **look)
    if pointed:
        head = Path([(x - half, base), (x + half, base), (x, y), (x - half, base)], closed=True)
        add_shape(ax, gid("head", *edge), head, fc=colour, alpha=alpha, linewidth=0, zorder=1)


class Strokes:
    """Line styles of the edges of a graph, and their legend."""

    def __init__(self, graph: nx.DiGraph):
        data: dict[Edge, Mapping[str, Any]] = {(a, b): given for a, b, given in graph.edges(data=True)}
        self.feature_arcs = {edge for edge, d in data.items() if is_feature_arc(d)}
        strengths = {edge: float(d.get("strength", math.nan)) for edge, d in data.items()}
        self.strengths = {edge: max(strength, 0.0) for edge, strength in strengths.items() if math.isfinite(strength)}
        self.greatest = max(self.strengths.values(), default=0.0)
        kinds = {edge: str(d["conditioning"]) for edge, d in data.items() if d.get("conditioning") in _CONDITIONING}
        self.conditioning = kinds if len(set(kinds.values())) > 1 else {}
        self.confidence = {edge: float(d["confidence"]) for edge, d in data.items() if "confidence" in d}
        self.unknown = {edge for edge in data if self.greatest and edge not in self.strengths} - self.feature_arcs
        self.undetermined = {edge for edge, d in data.items() if is_undetermined(d)}
        self.has_importance = any("importance" in d for d in data.values())
        self.n_models = graph.graph.get("n_models")

    def style(self, edge: Edge) -> dict[str, Any]:
        width = _FEATURE_WIDTH if edge in self.feature_arcs else _PLAIN_WIDTH
        if self.greatest and edge in self.strengths:
            thinnest, widest = _LINE_WIDTHS
            width = thinnest + (widest - thinnest) * self.strengths[edge] / self.greatest
        dotted = edge in self.unknown or edge in self.feature_arcs
        dashes = _DOTS if dotted else _DASHES[self.conditioning.get(edge, "partition")]
        return {
            "width": width,
            "linestyle": _linestyle(dashes, width),
            "alpha": _opacity(self.confidence.get(edge)),
            "head": edge not in self.undetermined,
        }

    def entries(self) -> list[Entry]:
        ink = EDGE_COLOURS["class"]
        entries = []
        if self.greatest:
            entries.append(
                Entry(
                    f"{'mean ' if self.n_models else ''}arc strength (score lost without the edge, in nats), "
                    f"0 to {number(self.greatest)}",
                    shape_sample(_wedge, fc=ink, ec=ink, linewidth=0),
                )
            )
        if self.unknown:
            entries.append(Entry("arc strength unknown", _dotted_sample(ink, _PLAIN_WIDTH)))
        for kind, meaning in _CONDITIONING.items():
            if kind in self.conditioning.values():
                entries.append(Entry(meaning, line_sample(ec=ink, linestyle=_linestyle(_DASHES[kind], 1.4))))
        if self.undetermined:
            entries.append(Entry(UNDETERMINED, line_sample(ec=ink, width=_PLAIN_WIDTH)))
        if self.confidence:
            models = "models" if self.n_models is None else f"{self.n_models} models"
            entries.append(Entry(f"share of the {models} with this edge", _fading(ink)))
        if self.feature_arcs:
            entries.append(Entry(_IMPORTANCE, _dotted_sample(EDGE_COLOURS["continuous"], _FEATURE_WIDTH)))
        elif self.has_importance:  # all of them at arcs of the model, which have other lines
            entries.append(Entry(_IMPORTANCE))
        return entries


def number(value: float) -> str:
    """Format an arc strength."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _dotted_sample(ink: str, width: float) -> Sampler:
    return line_sample(ec=ink, linestyle=_linestyle(_DOTS, width), width=width)


def _linestyle(dashes: tuple[float, ...], width: float) -> Any:
    """Return a matplotlib line style; `dashes` are in points, not in widths of the line."""
    return (0, tuple(length / width for length in dashes)) if dashes else "solid"


def _opacity(confidence: float | None) -> float:
    return 1.0 if confidence is None else _MIN_OPACITY + (1 - _MIN_OPACITY) * min(max(confidence, 0.0), 1.0)


def _wedge(x: float, y: float, width: float) -> Path:
    from matplotlib.path import Path

    thin, wide = (w / 2 for w in _LINE_WIDTHS)
    corners = [(x, y - thin), (x + width, y - wide), (x + width, y + wide), (x, y + thin)]
    return Path([*corners, corners[0]], closed=True)


def _fading(ink: str) -> Sampler:
    """Return a sampler that draws a line in three pieces of increasing opacity."""

    def draw(ax: Axes, x: float, y: float, scale: float) -> None:
        from matplotlib.path import Path

        for i, share in enumerate((0.0, 0.5, 1.0)):
            piece = Path([(x + 7.5 * i, y), (x + 7.5 * i + 6.5, y)])
            add_shape(ax, "sample", piece, ec=ink, fc="none", linewidth=2 * scale, alpha=_opacity(share), zorder=2)

    return draw
