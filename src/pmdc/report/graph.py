"""A picture of a network's graph: class variables, the discrete features they depend on, and the edges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pmdc.report.layout import PORT_GAP, Box, Edge, Layout, Node, layered_layout

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.path import Path

# Lengths are in points; a drawing in a figure of its own is shown in that size.
_FONT_SIZE = 10.0
_LINE_HEIGHT = 12.5
_LINE_LENGTH = 16
_PADDING = (9.0, 6.0)
_CORNER = 6.0
_MARGIN = 12.0
_TITLE_HEIGHT = 26.0
_LEGEND_SIZE = (200.0, 28.0)
_LARGEST_SCALE = 1.4
_LINE_WIDTHS = (0.6, 3.0)

# Blue and orange after Okabe and Ito, which colour-blind readers can tell apart: border and inside.
_COLOURS = {"class": ("#0072b2", "#e3f0f8"), "discrete": ("#c26f00", "#fdf0d5")}
_EDGE_COLOURS = {"class": "#4d4d4d", "discrete": "#c26f00"}
_LEGEND = {"class": "class variable", "discrete": "discrete feature"}
_TEXT_COLOUR = "#1a1a1a"


def draw_graph(graph: nx.DiGraph, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Draw a DAG over class variables and discrete features, parents above children.

    Parameters
    ----------
    graph : networkx.DiGraph
        Its nodes carry the attribute ``kind``: "class" (taken if absent) or "discrete". If edges carry the
        attribute ``strength``, the line is the wider the greater it is.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure that is just large enough.
    title : str, optional
        Shown above the graph.

    Returns
    -------
    matplotlib Axes
        What is drawn has gids, which SVG files keep: "node:<name>", "text:<name>", "edge:<parent>:<child>".

    Examples
    --------
    >>> import networkx as nx
    >>> from pmdc.report import draw_graph
    >>> graph = nx.DiGraph([("education", "party"), ("party", "vote")])
    >>> graph.nodes["education"]["kind"] = "discrete"
    >>> ax = draw_graph(graph, title="What the vote depends on")
    >>> ax.figure.savefig("graph.png")  # doctest: +SKIP
    """
    try:
        from matplotlib.patches import FancyArrowPatch, PathPatch
        from matplotlib.path import Path
    except ImportError as error:
        raise ImportError('draw_graph needs matplotlib: pip install "pmdc[plot]"') from error

    kinds = {node: _kind(node, attributes) for node, attributes in graph.nodes(data=True)}
    lines = {node: _lines(str(node)) for node in graph}
    ends = {node: max(graph.in_degree(node), graph.out_degree(node)) for node in graph}
    layout = layered_layout(graph, {node: _box_size(lines[node], kinds[node], ends[node]) for node in graph})
    with_legend = len(set(kinds.values())) > 1
    ax, scale = _prepare(ax, layout, title, with_legend)

    widths = _line_widths(graph)
    for edge, route in layout.routes.items():
        arrow = FancyArrowPatch(
            path=Path(route, [Path.MOVETO] + [Path.CURVE4] * (len(route) - 1)),
            arrowstyle="-|>,head_length=5,head_width=2",
            mutation_scale=scale * (0.8 + 0.2 * widths[edge]),
            linewidth=scale * widths[edge],
            color=_EDGE_COLOURS[kinds[edge[0]]],
            joinstyle="miter",
            capstyle="butt",
            gid=f"edge:{edge[0]}:{edge[1]}",
            zorder=1,
        )
        ax.add_patch(arrow)
    for node, box in layout.boxes.items():
        border, inside = _COLOURS[kinds[node]]
        outline = _outline(box, kinds[node])
        ax.add_patch(PathPatch(outline, fc=inside, ec=border, linewidth=1.3 * scale, gid=f"node:{node}", zorder=2))
        text = _text_path(lines[node], box)
        ax.add_patch(PathPatch(text, fc=_TEXT_COLOUR, linewidth=0, gid=f"text:{node}", zorder=3))
    if with_legend:
        _add_legend(ax, layout, scale)
    return ax


def _kind(node: Node, attributes: Mapping[str, Any]) -> str:
    kind = str(attributes.get("kind", "class"))
    if kind not in _COLOURS:
        raise ValueError(f"Node {node!r} has kind={kind!r}; it must be one of {', '.join(map(repr, _COLOURS))}.")
    return kind


def _line_widths(graph: nx.DiGraph) -> dict[Edge, float]:
    strengths = {
        (parent, child): max(float(attributes["strength"]), 0.0)
        for parent, child, attributes in graph.edges(data=True)
        if "strength" in attributes
    }
    greatest = max(strengths.values(), default=0.0)
    thinnest, widest = _LINE_WIDTHS
    if greatest == 0:
        return dict.fromkeys(graph.edges, 1.2)
    return {edge: thinnest + (widest - thinnest) * strengths.get(edge, 0.0) / greatest for edge in graph.edges}


# Text and boxes --------------------------------------------------------------------------------------------


def _lines(name: str) -> list[str]:
    """Break a long name at its separators; a name is never cut."""
    lines = [""]
    for piece in re.findall(r"[^\s_.\-/]*[\s_.\-/]*", name):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > _LINE_LENGTH:
            lines.append("")
        lines[-1] += piece
    return [line.strip() for line in lines]


def _text_width(text: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=_FONT_SIZE), ismath=False)
    return float(width)


def _box_size(lines: list[str], kind: str, n_arrows: int) -> tuple[float, float]:
    """Room for the text, and for as many arrows as end or begin on one side."""
    width = max(*map(_text_width, lines), PORT_GAP * n_arrows) + 2 * _PADDING[0]
    height = _LINE_HEIGHT * len(lines) + 2 * _PADDING[1]
    if kind == "discrete":
        width += _CORNER  # its sides are pointed
    return max(width, 1.6 * height), height


def _outline(box: Box, kind: str) -> Path:
    """A class variable is a rounded box, a discrete feature a hexagon; both are flat above and below."""
    from matplotlib.patches import BoxStyle
    from matplotlib.path import Path

    if kind == "class":
        return BoxStyle.Round(pad=0, rounding_size=_CORNER)(box.left, box.bottom, box.width, box.height, 1)
    left, right = box.left + _CORNER, box.right - _CORNER
    corners = [(box.left, box.y), (left, box.top), (right, box.top)]
    corners += [(box.right, box.y), (right, box.bottom), (left, box.bottom)]
    return Path([*corners, corners[0]], closed=True)


def _text_path(lines: list[str], box: Box) -> Path:
    """The text as a shape, so that it keeps its size relative to the box whatever happens to the figure."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path
    from matplotlib.textpath import text_to_path
    from matplotlib.transforms import Affine2D

    font = FontProperties(size=_FONT_SIZE)
    first = box.y + _LINE_HEIGHT * (len(lines) - 1) / 2 - 0.36 * _FONT_SIZE  # about half of a capital
    shapes = []
    for i, line in enumerate(lines):
        if line:
            vertices, codes = text_to_path.get_text_path(font, line, ismath=False)
            path = Path(vertices, codes)
            unit = _FONT_SIZE / text_to_path.FONT_SCALE
            place = (box.x - _text_width(line) / 2, first - i * _LINE_HEIGHT)
            shapes.append(Affine2D().scale(unit).translate(*place).transform_path(path))
    return Path.make_compound_path(*shapes)


# Axes ------------------------------------------------------------------------------------------------------


def _prepare(ax: Axes | None, layout: Layout, title: str | None, legend: bool) -> tuple[Axes, float]:
    """Axes in which a unit is a point, times the scale that is returned with them."""
    below = _LEGEND_SIZE[1] if legend else 0.0
    width = max(layout.width, _LEGEND_SIZE[0] if legend else 0.0) + 2 * _MARGIN
    height = layout.height + below + 2 * _MARGIN
    if ax is None:
        import matplotlib.pyplot as plt

        above = _TITLE_HEIGHT if title else 0.0
        figure_width = max(width, 1.3 * _text_width(title or "") + 2 * _MARGIN)
        figure = plt.figure(figsize=(figure_width / 72, (height + above) / 72))
        ax = figure.add_axes((0.0, 0.0, 1.0, height / (height + above)))
    root = ax.get_figure(root=True)
    assert root is not None
    space = ax.get_window_extent().transformed(root.dpi_scale_trans.inverted())
    scale = min(72 * space.width / width, 72 * space.height / height, _LARGEST_SCALE)
    half_width, half_height = 36 * space.width / scale, 36 * space.height / scale
    middle_x, middle_y = layout.width / 2, (layout.height - below) / 2
    ax.set_xlim(middle_x - half_width, middle_x + half_width)
    ax.set_ylim(middle_y - half_height, middle_y + half_height)
    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize=1.2 * _FONT_SIZE, color=_TEXT_COLOUR)
    return ax, scale


def _add_legend(ax: Axes, layout: Layout, scale: float) -> None:
    from matplotlib.lines import Line2D

    handles = []
    for kind, name in _LEGEND.items():
        border, inside = _COLOURS[kind]
        shape = _outline(Box(0.0, 0.0, 40.0, 24.0), kind)
        handles.append(
            Line2D([], [], ls="none", marker=shape, ms=16 * scale, mfc=inside, mec=border, mew=scale, label=name)
        )
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(layout.width / 2, -0.5 * _LEGEND_SIZE[1]),
        bbox_transform=ax.transData,
        ncols=2,
        frameon=False,
        fontsize=0.85 * _FONT_SIZE * scale,
        handletextpad=0.6,
        columnspacing=1.5,
        borderpad=0,
        borderaxespad=0,
        labelcolor=_TEXT_COLOUR,
    )
