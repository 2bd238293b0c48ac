"""Pictures of a report: SVG in data addresses, so that their ids are apart and nothing is fetched."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np

from pmdc._support.arrays import Codes
from pmdc.report.calibration import CalibrationRows, draw_calibration
from pmdc.report.canvas import figure_of, plain_figure
from pmdc.report.graph import draw_in
from pmdc.report.html import svg_of
from pmdc.report.individual import Panel, State, draw_panels, legend_entries, panels_of
from pmdc.report.page.elements import Content, E, shorten
from pmdc.report.selection import MAX_ARCS, strongest_arcs

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

    from pmdc.inference.base import BaseDistribution

MAX_PANELS = 12
"""The panels of a picture of one row."""
TRUE = "✓"
_MAX_LABEL = 40
"""The length of a name in a picture."""
_MAX_LEGEND = 20
_WIDE = 520
"""Wider pictures, in pixels, are not shrunk to the width of a telephone but can be moved sideways."""
_PIXELS = 96
"""Of an inch, as browsers count."""


def picture(ax: Axes, alternative: str, *caption: Content | None) -> Element:
    """Return a figure with a drawing and, for those who do not see it, a text."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the browser's fonts may have it
        svg = svg_of(ax, salt="pmdc")
    width, height = (round(_PIXELS * inches) for inches in figure_of(ax).get_size_inches())
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    image = E("img", src=source, alt=alternative, width=width, height=height, class_="wide" if width > _WIDE else "")
    frame = E("div", image, class_="frame", role="group", tabindex="0", aria_label="Picture")
    return E("figure", frame, E("figcaption", *caption) if caption else None)


def labels_of(names: Iterable[Hashable], limit: int = _MAX_LABEL) -> dict[Hashable, str]:
    """Return short names for pictures, no two of which are the same."""
    found: dict[Hashable, str] = {}
    for name in names:
        label = shorten(name, limit)
        number, taken = 1, set(found.values())
        while label in taken:
            number += 1
            label = f"{shorten(name, limit - 5)} ({number})"
        found[name] = label
    return found


def graph_picture(graph: nx.DiGraph) -> Element:
    """Draw the graph of a model, its strongest arcs if it has many."""
    import networkx as nx

    drawn = strongest_arcs(graph, MAX_ARCS).graph
    counted = f"{drawn.number_of_nodes()} nodes and {drawn.number_of_edges()} arcs"
    axes = draw_in(nx.relabel_nodes(graph, labels_of(graph)), None, None, plain_figure, MAX_ARCS)
    return picture(
        axes,
        f"The graph of the model: {counted}. The table below lists the arcs.",
        "The wider a line, the more is lost without it. A line without an arrowhead has no direction that the data "
        "determine.",
    )


def calibration_picture(names: Sequence[str], truth: Codes, marginals: list[Any]) -> Element:
    labels = list(labels_of(names, _MAX_LEGEND).values())
    rows = CalibrationRows(truth, marginals, np.ones(len(truth)), 10)
    axes = draw_calibration(labels, rows, None, None, plain_figure)
    return picture(
        axes,
        "Calibration curve: the share of right predictions for each confidence of the model.",
        "Accuracy against confidence, in ten bins. On the diagonal the model is as often right as it says; below it, "
        "less often. Where the shaded band contains the diagonal, the distance may be chance.",
    )


def row_picture(joint: BaseDistribution, truth: Codes, alternative: str) -> Element:
    """Draw the network of the single row of a distribution, with its true states."""
    listed, edges, n_left_out = _panels(joint, truth)
    axes = draw_panels(listed, edges, None, legend_entries(listed, "hamming"), None, plain_figure)
    left_out = f" {n_left_out} further class variables, in which it is less surprising, are not drawn." * bool(
        n_left_out
    )
    return picture(
        axes, alternative, f"The probability of each state in this row. {TRUE} marks the state in the table.{left_out}"
    )


def _panels(joint: BaseDistribution, truth: Codes) -> tuple[list[Panel], list[tuple[int, int]], int]:
    """Return the panels with the most surprising true states, the edges between them, and how many are left out."""
    marginals = [marginal[0] for marginal in joint.marginals()]
    likely = [float(own[code]) if code >= 0 else 1.0 for own, code in zip(marginals, truth.tolist(), strict=True)]
    chosen = sorted(sorted(range(len(likely)), key=lambda k: likely[k])[:MAX_PANELS])
    panels, labels = panels_of(joint, 0, "hamming"), list(labels_of(joint.class_table.names).values())
    shown = []
    for k in chosen:
        true = str(joint.class_table.states[k].tolist()[truth[k]]) if truth[k] >= 0 else None
        states = [
            State(shorten(state.name, _MAX_LABEL) + f" {TRUE}" * (state.name == true), state.probability, state.role)
            for state in panels[k].states
        ]
        shown.append(Panel(labels[k], panels[k].known, states))
    place = {k: i for i, k in enumerate(chosen)}
    edges = [(place[p], place[k]) for k, own in enumerate(joint.parents) for p in own if k in place and p in place]
    return shown, edges, len(likely) - len(chosen)
