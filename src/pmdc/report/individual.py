"""A picture of the network of one row: a panel for each class variable, with a bar for each state."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pmdc._support.extras import require
from pmdc.decisions.decide import LossLike, choose, resolve
from pmdc.inference.evidence import NO_EVIDENCE
from pmdc.report.canvas import (
    FONT_SIZE,
    LINE_HEIGHT,
    Entry,
    Legend,
    add_shape,
    add_text,
    gid,
    lines_of,
    prepare,
    rectangle,
    shape_sample,
    text_width,
)
from pmdc.report.graph import KIND_COLOURS, node_outline
from pmdc.report.layout import PORT_GAP, Box, layered_layout
from pmdc.report.strokes import EDGE_COLOURS, add_arrow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

    from pmdc.inference.base import BaseDistribution

_MAX_STATES = 8
"""The least probable states of a class variable with more states are combined into one line."""

_STATE_SIZE = 8.5
_PADDING = 8.0
_MARK, _GAP, _BAR = 10.0, 6.0, 64.0
_HEAD_GAP = 5.0

_BARS = {"": "#8bb9d9", "predicted": "#d55e00", "known": "#4d4d4d"}
_KNOWN_COLOURS = ("#4d4d4d", "#ededed")


class State(NamedTuple):
    """A line of a panel: a state, or several states combined."""

    name: str
    probability: float
    role: str
    """"predicted", "known" or ""."""


class Panel(NamedTuple):
    """The panel of a class variable."""

    name: str
    known: bool
    states: list[State]


def panels_of(distribution: BaseDistribution, row: int, loss: LossLike) -> list[Panel]:
    """Return the panels of one row."""
    resolved = resolve(loss)
    one = distribution.rows(slice(row, row + 1))
    # For a loss of the whole batch, the decision for a row depends on the other rows.
    predicted = choose(distribution, resolved).codes[row] if resolved.whole_batch else choose(one, resolved).codes[0]
    marginals = [marginal[0] for marginal in one.marginals()]
    known = [NO_EVIDENCE] * len(marginals) if distribution.evidence is None else distribution.evidence[row].tolist()
    table = distribution.class_table
    return [
        _panel(name, [str(state) for state in states.tolist()], marginal.tolist(), int(best), fixed)
        for name, states, marginal, best, fixed in zip(
            table.names, table.states, marginals, predicted, known, strict=True
        )
    ]


def _panel(name: str, states: Sequence[str], marginal: Sequence[float], predicted: int, known: int) -> Panel:
    fixed = known != NO_EVIDENCE
    chosen, role = (known, "known") if fixed else (predicted, "predicted")
    shown = list(range(len(states)))
    if len(states) > _MAX_STATES:
        ranked = sorted(shown, key=lambda code: (code != chosen, -marginal[code]))
        shown = sorted(ranked[: _MAX_STATES - 1])
    rows = [State(states[code], marginal[code], role if code == chosen else "") for code in shown]
    if len(shown) < len(states):
        rest = sum(p for code, p in enumerate(marginal) if code not in shown)
        rows.append(State(f"{len(states) - len(shown)} other states", rest, ""))
    return Panel(name, fixed, rows)


def percent(probability: float) -> str:
    """Format a probability as a percentage; 0 % and 100 % only if exact."""
    rounded = round(100 * probability)
    if rounded == 0 and probability > 0:
        return "<1 %"
    if rounded == 100 and probability < 1 - 1e-9:
        return ">99 %"
    return f"{rounded} %"


def loss_name(loss: LossLike) -> str:
    """Return the name of a loss for the legend."""
    if isinstance(loss, str):
        return "Hamming" if loss == "hamming" else loss
    return str(getattr(loss, "__name__", type(loss).__name__)).removesuffix("Loss")


# The picture -----------------------------------------------------------------------------------------------------


def draw_individual(
    distribution: BaseDistribution, row: int, ax: Axes | None, loss: LossLike, title: str | None, figure: Any
) -> Axes:
    """Draw the network of one row; see `BaseDistribution.plot`."""
    panels = panels_of(distribution, row, loss)
    edges = [(p, k) for k, members in enumerate(distribution.parents) for p in members]
    return draw_panels(panels, edges, ax, legend_entries(panels, loss), title, figure)


def draw_panels(
    listed: Sequence[Panel],
    edges: Iterable[tuple[int, int]],
    ax: Axes | None,
    entries: Sequence[Entry],
    title: str | None,
    figure: Any,
) -> Axes:
    """Draw panels and the edges between them, which are pairs of positions in the list."""
    require("matplotlib.patches")
    import networkx as nx

    panels = {panel.name: panel for panel in listed}
    names = list(panels)
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[p], names[k]) for p, k in edges)
    arrows = {name: max(graph.in_degree(name), graph.out_degree(name)) for name in names}
    sizes: dict[Hashable, tuple[float, float]] = {name: _size(panels[name], arrows[name]) for name in names}
    layout = layered_layout(graph, sizes, max(3, math.isqrt(len(names))))
    legend = Legend(entries, layout.width)
    ax, scale = prepare(ax, layout.width, layout.height, legend, title, figure)
    for edge, route in layout.routes.items():
        add_arrow(ax, edge, route, scale, EDGE_COLOURS["class"])
    for name, box in layout.boxes.items():
        _draw_panel(ax, panels[str(name)], box, scale)
    legend.draw(ax, layout.width / 2, 0.0, scale)
    return ax


def _heading(panel: Panel) -> list[str]:
    return lines_of(panel.name, 24)


def _state_lines(state: State) -> list[str]:
    return lines_of(state.name, 24)


def _state_height(state: State) -> float:
    return LINE_HEIGHT * _STATE_SIZE * len(_state_lines(state)) + 3.0


def _state_width(panel: Panel) -> float:
    return max(text_width(line, _STATE_SIZE, bold=True) for state in panel.states for line in _state_lines(state))


def _size(panel: Panel, n_arrows: int) -> tuple[float, float]:
    columns = _MARK + _state_width(panel) + _GAP + _BAR + _GAP + text_width("100 %", _STATE_SIZE, bold=True)
    heading = max(text_width(line, bold=True) for line in _heading(panel))
    width = max(columns, heading, PORT_GAP * n_arrows) + 2 * _PADDING
    height = LINE_HEIGHT * FONT_SIZE * len(_heading(panel)) + _HEAD_GAP + sum(map(_state_height, panel.states))
    return width, height + 2 * _PADDING


def _draw_panel(ax: Axes, panel: Panel, box: Box, scale: float) -> None:
    border, inside = _KNOWN_COLOURS if panel.known else KIND_COLOURS["class"]
    add_shape(
        ax, gid("node", panel.name), node_outline(box, "class"), fc=inside, ec=border, linewidth=1.3 * scale, zorder=2
    )
    left, right, y = box.left + _PADDING, box.right - _PADDING, box.top - _PADDING
    heading = _heading(panel)
    height = LINE_HEIGHT * FONT_SIZE * len(heading)
    add_text(ax, gid("text", panel.name), heading, box.x, y - height / 2, bold=True)
    y -= height + _HEAD_GAP
    bars = right - text_width("100 %", _STATE_SIZE, bold=True) - _GAP - _BAR
    for state in panel.states:
        height = _state_height(state)
        middle = y - height / 2
        bold, colour = bool(state.role), _BARS[state.role]
        if state.role:
            mark = _mark(state.role, left, middle)
            add_shape(ax, gid("mark", panel.name, state.name), mark, fc=colour, linewidth=0, zorder=3)
        lines = _state_lines(state)
        add_text(ax, gid("state", panel.name, state.name), lines, left + _MARK, middle, _STATE_SIZE, 0.0, bold=bold)
        track = rectangle(bars, middle - 4, _BAR, 8)
        add_shape(ax, gid("track", panel.name, state.name), track, fc="white", linewidth=0, zorder=3)
        bar = rectangle(bars, middle - 4, _BAR * min(state.probability, 1.0), 8)
        add_shape(ax, gid("bar", panel.name, state.name), bar, fc=colour, linewidth=0, zorder=3.5)
        share = percent(state.probability)
        add_text(ax, gid("percent", panel.name, state.name), [share], right, middle, _STATE_SIZE, 1.0, bold=bold)
        y -= height


def _mark(role: str, left: float, middle: float) -> Path:
    """Return the marker of a state: a triangle if it is predicted, a square if it is known."""
    from matplotlib.path import Path

    if role == "known":
        return rectangle(left, middle - 3, 6, 6)
    corners = [(left, middle - 3.5), (left + 6, middle), (left, middle + 3.5)]
    return Path([*corners, corners[0]], closed=True)


def legend_entries(panels: Sequence[Panel], loss: LossLike) -> list[Entry]:
    meanings = {"predicted": f"prediction for the {loss_name(loss)} loss", "known": "known state (evidence)"}
    roles = {state.role for panel in panels for state in panel.states}
    entries = []
    for role, meaning in meanings.items():
        if role in roles:

            def make(x: float, y: float, width: float, role: str = role) -> Path:
                return _mark(role, x + width - 8, y)

            entries.append(Entry(meaning, shape_sample(make, fc=_BARS[role], linewidth=0)))
    return entries
