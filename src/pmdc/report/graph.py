"""A picture of a model's graph: class variables, the discrete features that are their parents, and the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pmdc._support.extras import require
from pmdc.report.canvas import (
    FONT_SIZE,
    LINE_HEIGHT,
    Entry,
    Legend,
    add_shape,
    add_text,
    gid,
    lines_of,
    paper,
    prepare,
    pyplot_figure,
    rectangle,
    shape_sample,
    text_width,
)
from pmdc.report.layout import PORT_GAP, Box, Edge, Floats, Layout, Node, layered_layout, sample_route, upward_edges
from pmdc.report.selection import KINDS, MAX_ARCS, strongest_arcs
from pmdc.report.strokes import EDGE_COLOURS, Strokes, add_arrow

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.path import Path

# Lengths are in points (at scale 1).
_PADDING = (9.0, 6.0)
_CORNER = 6.0
_LABEL_SIZE = 7.0

# Border and fill.
KIND_COLOURS = {
    "class": ("#0072b2", "#e3f0f8"),
    "discrete": ("#c26f00", "#fdf0d5"),
    "continuous": ("#009e73", "#e2f3ee"),
}

_Spot = tuple[float, float, float, float]
"""Left, bottom, width and height of a rectangle."""


def draw_graph(
    graph: nx.DiGraph, ax: Axes | None = None, *, title: str | None = None, max_arcs: int | None = MAX_ARCS
) -> Axes:
    """Draw a graph over class variables and features, parents above children.

    Parameters
    ----------
    graph : networkx.DiGraph
        Such as ``graph_`` of a `GBNC` or the result of `consensus_graph` or `feature_graph`. These attributes are
        drawn, and explained in a legend:

        - ``kind`` of a node: "class" (the default) is a rounded box, "discrete" a hexagon, "continuous" an oval.
        - ``strength`` of an edge: its arc strength, shown by the width of the line. If only some edges have one, the
          others are dotted.
        - ``determined`` of an edge: if it is False, the data do not determine its direction, and it has no arrow head.
        - ``conditioning`` of an edge, if edges differ: "partition" is a solid line, "input" is dashed, "block" has
          short dashes, "mixed" is dash-dotted.
        - ``confidence`` of an edge: shown by the opacity of the line, and as a percentage if there is room. An edge
          that closes a cycle with more confident ones points upwards.
        - ``importance`` of an edge from a feature: a number at the edge if there is room; the edge is thin and dotted
          unless it is part of the learned graph.
        - ``note`` of the graph: a sentence below.
    ax : matplotlib Axes, optional
        The axes to draw in; by default a new figure of fitting size.
    title : str, optional
        The title above the graph.
    max_arcs : int, default=40
        Draw this many arcs, the strongest (by confidence, if edges have it, then by strength), and as many of those
        that show importance; the others are counted below the graph, with the nodes that have no other arcs. None draws
        all arcs, and so does a graph whose edges have neither strength nor confidence.

    Returns
    -------
    matplotlib Axes
        The shapes have gids, which are kept in SVG files: "node:<name>", "text:<name>", "edge:<parent>:<child>",
        "head:<parent>:<child>", "label:<parent>:<child>".

    Examples
    --------
    >>> import networkx as nx
    >>> from pmdc.report import draw_graph
    >>> graph = nx.DiGraph([("education", "party"), ("party", "vote")])
    >>> graph.nodes["education"]["kind"] = "discrete"
    >>> ax = draw_graph(graph, title="What the vote depends on")
    >>> ax.figure.savefig("graph.png")  # doctest: +SKIP
    """
    return draw_in(graph, ax, title, pyplot_figure, max_arcs)


def draw_in(
    graph: nx.DiGraph, ax: Axes | None, title: str | None, figure: Any, max_arcs: int | None = MAX_ARCS
) -> Axes:
    """Draw a graph as `draw_graph` does; without `ax`, in a new figure made by the function `figure`."""
    require("matplotlib.patches")
    graph, caption = strongest_arcs(graph, max_arcs)
    kinds = {node: _kind(node, attributes) for node, attributes in graph.nodes(data=True)}
    lines = {node: lines_of(node) for node in graph}
    room = _arrows(graph)
    layout = layered_layout(graph, {node: _box_size(lines[node], kinds[node], room[node]) for node in graph})
    strokes = Strokes(graph)
    notes = [Entry(text) for text in (caption, graph.graph.get("note")) if text]
    legend = Legend([*_kind_entries(kinds), *strokes.entries(), *notes], layout.width)
    ax, scale = prepare(ax, layout.width, layout.height, legend, title, figure)
    for edge, route in layout.routes.items():
        add_arrow(ax, edge, route, scale, EDGE_COLOURS[kinds[edge[0]]], **strokes.style(edge))
    for node, box in layout.boxes.items():
        border, inside = KIND_COLOURS[kinds[node]]
        outline = node_outline(box, kinds[node])
        add_shape(ax, gid("node", node), outline, fc=inside, ec=border, linewidth=1.3 * scale, zorder=2)
        add_text(ax, gid("text", node), lines[node], box.x, box.y)
    for edge, (label, place) in _labels(graph, layout).items():
        left, bottom, width, height = place
        add_shape(ax, gid("behind", *edge), rectangle(*place), fc=paper(ax), linewidth=0, zorder=1.5)
        middle = left + width / 2, bottom + height / 2
        add_text(ax, gid("label", *edge), [label], *middle, _LABEL_SIZE, colour=EDGE_COLOURS[kinds[edge[0]]])
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
    if kind != "class":
        width += _CORNER
    return max(width, 1.6 * height), height


def node_outline(box: Box, kind: str, corner: float = _CORNER) -> Path:
    """Return the outline of a node: a rounded box, a hexagon for a discrete, an oval for a continuous feature."""
    from matplotlib.patches import BoxStyle
    from matplotlib.path import Path

    if kind != "discrete":
        corner = box.height / 2 if kind == "continuous" else corner
        return BoxStyle.Round(pad=0, rounding_size=corner)(box.left, box.bottom, box.width, box.height, 1)
    left, right = box.left + corner, box.right - corner
    corners = [(box.left, box.y), (left, box.top), (right, box.top)]
    corners += [(box.right, box.y), (right, box.bottom), (left, box.bottom)]
    return Path([*corners, corners[0]], closed=True)


# Labels ----------------------------------------------------------------------------------------------------------


def _label_texts(graph: nx.DiGraph) -> dict[Edge, str]:
    """Return the label of each edge that has one, the most important first."""
    texts = {}
    for attribute, form in (("confidence", lambda share: f"{100 * share:.0f} %"), ("importance", "+{:.2g}".format)):
        values = {(a, b): float(d[attribute]) for a, b, d in graph.edges(data=True) if attribute in d}
        texts.update({edge: form(values[edge]) for edge in sorted(values, key=lambda edge: -values[edge])})
    return texts


def _labels(graph: nx.DiGraph, layout: Layout) -> dict[Edge, tuple[str, _Spot]]:
    """Return the label of each edge and a free rectangle for it on or beside the edge, if there is one."""
    points = {edge: sample_route(route) for edge, route in layout.routes.items()}
    boxes = [(box.left, box.bottom, box.width, box.height) for box in layout.boxes.values()]
    labels: dict[Edge, tuple[str, _Spot]] = {}
    height = 1.3 * _LABEL_SIZE
    for edge, label in _label_texts(graph).items():
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
    for kind, meaning in KINDS.items():
        if kind not in kinds.values():
            continue
        border, inside = KIND_COLOURS[kind]

        def make(x: float, y: float, width: float, kind: str = kind) -> Path:
            return node_outline(Box(x + width / 2, y, width, 0.55 * width), kind, 0.15 * width)

        entries.append(Entry(meaning, shape_sample(make, fc=inside, ec=border)))
    return entries
