"""A picture of a model's graph: class variables, the discrete features that are their parents, and the edges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pmdc._support.extras import require
from pmdc.report.canvas import (
    FONT_SIZE,
    LINE_HEIGHT,
    Entry,
    Legend,
    Sampler,
    add_shape,
    add_text,
    gid,
    line_sample,
    lines_of,
    paper,
    prepare,
    pyplot_figure,
    rectangle,
    shape_sample,
    text_width,
)
from pmdc.report.layout import PORT_GAP, Box, Edge, Floats, Layout, Node, layered_layout, sample_route, upward_edges

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.path import Path

# Lengths are in points (at scale 1).
_PADDING = (9.0, 6.0)
_CORNER = 6.0
_LINE_WIDTHS = (0.6, 3.0)
_PLAIN_WIDTH = 1.2
_HEAD = (7.0, 2.9)
"""Length and half the width of an arrow head; wider lines have larger heads."""
_LABEL_SIZE = 7.0
_MIN_OPACITY = 0.2

# Border and fill.
KIND_COLOURS = {"class": ("#0072b2", "#e3f0f8"), "discrete": ("#c26f00", "#fdf0d5")}
EDGE_COLOURS = {"class": "#4d4d4d", "discrete": "#c26f00"}
_KINDS = {"class": "class variable", "discrete": "discrete feature"}
_DASHES = {"partition": (), "input": (5.0, 3.0), "block": (1.5, 1.5), "mixed": (7.0, 2.0, 2.0, 2.0)}
"""Lengths of dashes and gaps."""
_CONDITIONING = {
    "partition": "parent partitions the rows",
    "input": "parent is an input",
    "block": "members of a block",
    "mixed": "differs between the models",
}
_UNKNOWN_DASHES = (1.2, 2.0)

_Spot = tuple[float, float, float, float]
"""Left, bottom, width and height of a rectangle."""


def draw_graph(graph: nx.DiGraph, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw a graph over class variables and discrete features, parents above children.

    Parameters
    ----------
    graph : networkx.DiGraph
        Such as ``graph_`` of a `GBNC` or the result of `consensus_graph`. These attributes are drawn, and explained in
        a legend:

        - ``kind`` of a node: "class" (the default) is a rounded box, "discrete" a hexagon.
        - ``strength`` of an edge: its arc strength, shown by the width of the line. If only some edges have one, the
          others are dotted.
        - ``conditioning`` of an edge, if edges differ: "partition" is a solid line, "input" is dashed, "block" has
          short dashes, "mixed" is dash-dotted.
        - ``confidence`` of an edge: shown by the opacity of the line, and as a percentage if there is room. An edge
          that closes a cycle with more confident ones points upwards.
        - ``note`` of the graph: a sentence below.
    ax : matplotlib Axes, optional
        The axes to draw in; by default a new figure of fitting size.
    title : str, optional
        The title above the graph.

    Returns
    -------
    matplotlib Axes
        The shapes have gids, which are kept in SVG files: "node:<name>", "text:<name>", "edge:<parent>:<child>",
        "head:<parent>:<child>", "confidence:<parent>:<child>".

    Examples
    --------
    >>> import networkx as nx
    >>> from pmdc.report import draw_graph
    >>> graph = nx.DiGraph([("education", "party"), ("party", "vote")])
    >>> graph.nodes["education"]["kind"] = "discrete"
    >>> ax = draw_graph(graph, title="What the vote depends on")
    >>> ax.figure.savefig("graph.png")  # doctest: +SKIP
    """
    return draw_in(graph, ax, title, pyplot_figure)


def draw_in(graph: nx.DiGraph, ax: Axes | None, title: str | None, figure: Any) -> Axes:
    """Draw a graph as `draw_graph` does; without `ax`, in a new figure made by the function `figure`."""
    require("matplotlib.patches")
    kinds = {node: _kind(node, attributes) for node, attributes in graph.nodes(data=True)}
    lines = {node: lines_of(node) for node in graph}
    room = _arrows(graph)
    layout = layered_layout(graph, {node: _box_size(lines[node], kinds[node], room[node]) for node in graph})
    strokes = Strokes(graph)
    legend = Legend([*_kind_entries(kinds), *strokes.entries(), *_notes(graph)], layout.width)
    ax, scale = prepare(ax, layout.width, layout.height, legend, title, figure)
    for edge, route in layout.routes.items():
        add_arrow(ax, edge, route, scale, EDGE_COLOURS[kinds[edge[0]]], **strokes.style(edge))
    for node, box in layout.boxes.items():
        border, inside = KIND_COLOURS[kinds[node]]
        outline = node_outline(box, kinds[node])
        add_shape(ax, gid("node", node), outline, fc=inside, ec=border, linewidth=1.3 * scale, zorder=2)
        add_text(ax, gid("text", node), lines[node], box.x, box.y)
    for edge, (label, place) in _confidence_labels(graph, layout).items():
        left, bottom, width, height = place
        add_shape(ax, gid("behind", *edge), rectangle(*place), fc=paper(ax), linewidth=0, zorder=1.5)
        middle = left + width / 2, bottom + height / 2
        add_text(ax, gid("confidence", *edge), [label], *middle, _LABEL_SIZE, colour=EDGE_COLOURS[kinds[edge[0]]])
    legend.draw(ax, layout.width / 2, 0.0, scale)
    return ax


def _kind(node: Node, attributes: Mapping[str, Any]) -> str:
    kind = str(attributes.get("kind", "class"))
    if kind not in KIND_COLOURS:
        raise ValueError(f"Node {node!r} has kind={kind!r}; it must be one of {', '.join(map(repr, KIND_COLOURS))}.")
    return kind


# Boxes -----------------------------------------------------------------------------------------------------------


def _arrows(graph: nx.DiGraph) -> dict[Node, int]:
    """Return the largest number of arrows on one side of each node."""
    upward = upward_edges(graph)
    above, below = dict.fromkeys(graph, 0), dict.fromkeys(graph, 0)
    for edge in graph.edges:
        upper, lower = edge[::-1] if edge in upward else edge
        below[upper] += 1
        above[lower] += 1
    return {node: max(above[node], below[node]) for node in graph}


def _box_size(lines: list[str], kind: str, n_arrows: int) -> tuple[float, float]:
    """Return the width and height of a box, with room for the text and the arrows."""
    width = max(*map(text_width, lines), PORT_GAP * n_arrows) + 2 * _PADDING[0]
    height = LINE_HEIGHT * FONT_SIZE * len(lines) + 2 * _PADDING[1]
    if kind == "discrete":
        width += _CORNER
    return max(width, 1.6 * height), height


def node_outline(box: Box, kind: str, corner: float = _CORNER) -> Path:
    """Return the outline of a node: a rounded box for a class variable, a hexagon for a discrete feature."""
    from matplotlib.patches import BoxStyle
    from matplotlib.path import Path

    if kind == "class":
        return BoxStyle.Round(pad=0, rounding_size=corner)(box.left, box.bottom, box.width, box.height, 1)
    left, right = box.left + corner, box.right - corner
    corners = [(box.left, box.y), (left, box.top), (right, box.top)]
    corners += [(box.right, box.y), (right, box.bottom), (left, box.bottom)]
    return Path([*corners, corners[0]], closed=True)


# Edges -----------------------------------------------------------------------------------------------------------


def add_arrow(
    ax: Axes, edge: Edge, route: Any, scale: float, colour: str, width: float = _PLAIN_WIDTH, **style: Any
) -> None:
    """Draw a line along the route, and an arrow head at its end."""
    from matplotlib.path import Path

    length, half = ((0.8 + 0.2 * width) * side for side in _HEAD)
    x, y = route[-1]
    base = y + math.copysign(length, route[-2][1] - y)  # routes are vertical at their ends
    line = [*route[:-2], (route[-2][0], route[-2][1] + base - y), (x, base)]
    curve = Path(line, [Path.MOVETO] + [Path.CURVE4] * (len(line) - 1))
    alpha = style.pop("alpha", 1.0)
    add_shape(
        ax,
        gid("edge", *edge),
        curve,
        **style,
        fc="none",
        ec=colour,
        alpha=alpha,
        linewidth=scale * width,
        capstyle="butt",
        zorder=1,
    )
    head = Path([(x - half, base), (x + half, base), (x, y), (x - half, base)], closed=True)
    add_shape(ax, gid("head", *edge), head, fc=colour, alpha=alpha, linewidth=0, zorder=1)


class Strokes:
    """Line styles of the edges of a graph, and their legend."""

    def __init__(self, graph: nx.DiGraph):
        data: dict[Edge, Mapping[str, Any]] = {(a, b): given for a, b, given in graph.edges(data=True)}
        strengths = {edge: float(d.get("strength", math.nan)) for edge, d in data.items()}
        self.strengths = {edge: max(strength, 0.0) for edge, strength in strengths.items() if math.isfinite(strength)}
        self.greatest = max(self.strengths.values(), default=0.0)
        kinds = {edge: str(d["conditioning"]) for edge, d in data.items() if d.get("conditioning") in _CONDITIONING}
        self.conditioning = kinds if len(set(kinds.values())) > 1 else {}
        self.confidence = {edge: float(d["confidence"]) for edge, d in data.items() if "confidence" in d}
        self.unknown = {edge for edge in data if self.greatest and edge not in self.strengths}
        self.n_models = graph.graph.get("n_models")

    def style(self, edge: Edge) -> dict[str, Any]:
        width = _PLAIN_WIDTH
        if self.greatest and edge in self.strengths:
            thinnest, widest = _LINE_WIDTHS
            width = thinnest + (widest - thinnest) * self.strengths[edge] / self.greatest
        dashes = _UNKNOWN_DASHES if edge in self.unknown else _DASHES[self.conditioning.get(edge, "partition")]
        return {"width": width, "linestyle": _linestyle(dashes, width), "alpha": _opacity(self.confidence.get(edge))}

    def entries(self) -> list[Entry]:
        ink = EDGE_COLOURS["class"]
        entries = []
        if self.greatest:
            entries.append(
                Entry(
                    f"{'mean ' if self.n_models else ''}arc strength (score lost without the edge), "
                    f"0 to {_number(self.greatest)}",
                    shape_sample(_wedge, fc=ink, ec=ink, linewidth=0),
                )
            )
        if self.unknown:
            dotted = _linestyle(_UNKNOWN_DASHES, _PLAIN_WIDTH)
            entries.append(Entry("arc strength unknown", line_sample(ec=ink, linestyle=dotted, width=_PLAIN_WIDTH)))
        for kind, meaning in _CONDITIONING.items():
            if kind in self.conditioning.values():
                entries.append(Entry(meaning, line_sample(ec=ink, linestyle=_linestyle(_DASHES[kind], 1.4))))
        if self.confidence:
            models = "models" if self.n_models is None else f"{self.n_models} models"
            entries.append(Entry(f"share of the {models} with this edge", _fading(ink)))
        return entries


def _linestyle(dashes: tuple[float, ...], width: float) -> Any:
    """Return a matplotlib line style; `dashes` are in points, not in widths of the line."""
    return (0, tuple(length / width for length in dashes)) if dashes else "solid"


def _opacity(confidence: float | None) -> float:
    return 1.0 if confidence is None else _MIN_OPACITY + (1 - _MIN_OPACITY) * min(max(confidence, 0.0), 1.0)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


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


def _confidence_labels(graph: nx.DiGraph, layout: Layout) -> dict[Edge, tuple[str, _Spot]]:
    """Return the percentage of each edge and a free rectangle for it on or beside the edge, if there is one."""
    shares = {(a, b): float(d["confidence"]) for a, b, d in graph.edges(data=True) if "confidence" in d}
    points = {edge: sample_route(route) for edge, route in layout.routes.items()}
    boxes = [(box.left, box.bottom, box.width, box.height) for box in layout.boxes.values()]
    labels: dict[Edge, tuple[str, _Spot]] = {}
    height = 1.3 * _LABEL_SIZE
    for edge in sorted(shares, key=lambda edge: -shares[edge]):
        label = f"{100 * shares[edge]:.0f} %"
        width = text_width(label, _LABEL_SIZE) + 2
        own = points[edge]
        middle_first = own[sorted(range(len(own)), key=lambda i: abs(i - len(own) / 2))]
        for offset in (0.0, *(side * (width / 2 + gap) for gap in (4, 8, 12) for side in (-1, 1))):
            spots = ((x + offset - width / 2, y - height / 2, width, height) for x, y in middle_first.tolist())
            taken = [*boxes, *(spot for _, spot in labels.values())]
            others = [points[other] for other in points if other != edge or offset]
            spot = next((spot for spot in spots if _is_free(spot, taken, others, layout.width)), None)
            if spot is not None:
                labels[edge] = label, spot
                break
    return labels


def _is_free(spot: _Spot, taken: Sequence[_Spot], routes: Sequence[Floats], width: float) -> bool:
    """Check that a rectangle is inside the picture, overlaps no other, and no edge passes through it."""
    if spot[0] < 0 or spot[0] + spot[2] > width or any(_overlap(spot, other) for other in taken):
        return False
    left, bottom = spot[0] - 3, spot[1] - 3
    right, top = left + spot[2] + 6, bottom + spot[3] + 6
    return not any(
        ((route[:, 0] > left) & (route[:, 0] < right) & (route[:, 1] > bottom) & (route[:, 1] < top)).any()
        for route in routes
    )


def _overlap(one: _Spot, other: _Spot, gap: float = 2.0) -> bool:
    return all(one[i] < other[i] + other[i + 2] + gap and other[i] < one[i] + one[i + 2] + gap for i in (0, 1))


# Legend ----------------------------------------------------------------------------------------------------------


def _kind_entries(kinds: Mapping[Node, str]) -> list[Entry]:
    if len(set(kinds.values())) < 2:
        return []
    entries = []
    for kind, meaning in _KINDS.items():
        border, inside = KIND_COLOURS[kind]

        def make(x: float, y: float, width: float, kind: str = kind) -> Path:
            return node_outline(Box(x + width / 2, y, width, 0.55 * width), kind, 0.15 * width)

        entries.append(Entry(meaning, shape_sample(make, fc=inside, ec=border)))
    return entries


def _notes(graph: nx.DiGraph) -> list[Entry]:
    return [Entry(str(graph.graph["note"]))] if graph.graph.get("note") else []
