"""HTML for notebooks: the graph of a model, the network of one row, or the first rows of a batch.

The HTML is self-contained: no scripts, no style sheets, no external resources. Names are escaped.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc.report.canvas import FONT, LINE_HEIGHT, figure_of, plain_figure, text_width
from pmdc.report.selection import MAX_ARCS, strongest_arcs
from pmdc.report.strokes import is_undetermined

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pmdc.inference.base import BaseDistribution

MAX_CHARACTERS = 150_000
"""A longer picture is replaced by a table."""
_MAX_NODES = 80
"""A graph of which more nodes would be drawn is shown as a table."""
_MAX_LINES = 200
_N_ROWS = 10

_CELL = "padding:2px 8px;text-align:left;vertical-align:top;white-space:nowrap"


def model_html(model: Any) -> str:
    """Return the graph of a fitted model as HTML; empty if the model is not fitted or has no graph."""
    try:
        graph = model.to_networkx()
    except ValueError:  # NotFittedError is a ValueError
        return ""
    picture = None
    if _has_matplotlib() and len(strongest_arcs(graph, MAX_ARCS).graph) <= _MAX_NODES:
        from pmdc.report.graph import draw_in

        picture = _inline(partial(draw_in, graph, None, None, plain_figure))
    return _block(_parents_table(graph) if picture is None else picture)


def distribution_html(distribution: BaseDistribution) -> str:
    """Return the network of a single row, or a table of the most probable outcomes of the first rows, as HTML."""
    heading = f"<p>{escape(repr(distribution))}</p>"
    try:
        shown = _individual(distribution) if len(distribution) == 1 else _first_rows(distribution)
    except ValueError as error:  # a distribution may have too many outcomes to enumerate
        shown = f"<p>{escape(str(error))}</p>"
    return _block(heading + shown)


def _has_matplotlib() -> bool:
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # the import is blocked
        return False


# Pictures --------------------------------------------------------------------------------------------------------


def _inline(draw: Callable[[], Axes]) -> str | None:
    """Return a drawing as an SVG element; None if it is too long."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the browser's fonts may have it
        svg = svg_of(draw())
    return svg if len(svg) <= MAX_CHARACTERS else None


def svg_of(ax: Axes, salt: str | None = None) -> str:
    """Return a drawing as an SVG element.

    The ids in it differ each time, so that two pictures can be on one page; with a `salt` they are always the same.
    """
    from matplotlib import rc_context

    figure = figure_of(ax)
    texts = [patch for patch in ax.patches if hasattr(patch, "words")]
    for patch in texts:
        patch.set_visible(False)
    file = StringIO()
    # Override settings that would crop the picture or make its background transparent.
    settings: dict[str, Any] = {"savefig.bbox": "standard", "savefig.transparent": False}
    with rc_context(settings if salt is None else settings | {"svg.hashsalt": salt}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # A style element would apply to the whole page.
    svg = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    # Two pictures on a page may use the same ids; keep only those that are referred to.
    svg = svg.replace('<g id="', '<g data-id="')
    look = "max-width:100%;height:auto;stroke-linejoin:round;stroke-linecap:butt"
    svg = svg.replace("<svg", f'<svg style="{look}"', 1)
    # Round coordinates to a hundredth of a point.
    svg = re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"-?\d+\.\d+", _rounded, path[0]), svg)
    # Text elements instead of paths: shorter, and they can be searched and copied.
    end = svg.rindex("</svg>")
    return svg[:end] + "".join(_text(ax, patch) for patch in texts) + svg[end:]


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _text(ax: Axes, patch: Any) -> str:
    """Return a text of the picture as SVG text elements, whose length does not depend on the browser's font."""
    from matplotlib.colors import to_hex

    figure, words = figure_of(ax), patch.words
    anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[words.align]
    weight = ' font-weight="bold"' if words.bold else ""
    colour = to_hex(patch.get_facecolor())
    height = LINE_HEIGHT * words.size
    first = words.y + height * (len(words.lines) - 1) / 2 - 0.36 * words.size
    elements = []
    for i, line in enumerate(words.lines):
        x, y = ax.transData.transform((words.x, first - i * height)) * 72 / figure.dpi
        y = 72 * figure.get_figheight() - y
        elements.append(
            f'<text x="{x:.2f}" y="{y:.2f}" font-size="{words.size}" text-anchor="{anchor}"{weight} '
            f'font-family="{FONT},Verdana,sans-serif" fill="{colour}" lengthAdjust="spacingAndGlyphs" '
            f'textLength="{text_width(line, words.size, words.bold):.2f}">{escape(line)}</text>'
        )
    return "".join(elements)


def _individual(distribution: BaseDistribution) -> str:
    if _has_matplotlib() and len(distribution.class_table.names) <= _MAX_NODES // 2:
        from pmdc.report.individual import draw_individual

        picture = _inline(partial(draw_individual, distribution, 0, None, "hamming", None, plain_figure))
        if picture is not None:
            return picture
    return _states_table(distribution)


# Tables ----------------------------------------------------------------------------------------------------------


def _block(content: str) -> str:
    return f'<div style="overflow-x:auto">{content}</div>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, escaped."""
    kept = list(rows)
    lines = ["<tr>" + "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in head) + "</tr>"]
    for row in kept[:_MAX_LINES]:
        lines.append("<tr>" + "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in row) + "</tr>")
    more = f"<p>and {len(kept) - _MAX_LINES} more</p>" if len(kept) > _MAX_LINES else ""
    return "<table>" + "".join(lines) + "</table>" + more


def _parents_table(graph: Any) -> str:
    rows = []
    for node, kind in graph.nodes(data="kind", default="class"):
        if kind == "class":
            parents = []
            for parent, _, data in graph.in_edges(node, data=True):
                strength = f"{data['strength']:.3g}" if "strength" in data else ""
                open_direction = "direction not determined" if is_undetermined(data) else ""
                details = ", ".join(word for word in (data.get("conditioning", ""), strength, open_direction) if word)
                parents.append(f"{parent} ({details})" if details else str(parent))
            rows.append([str(node), ", ".join(parents) or "none"])
    note = f"<p>{escape(str(graph.graph['note']))}</p>" if graph.graph.get("note") else ""
    return _table(["class variable", "parents (conditioning, arc strength)"], rows) + note


def _states_table(distribution: BaseDistribution) -> str:
    from pmdc.report.individual import panels_of, percent

    rows = [
        [panel.name, state.name, percent(state.probability), state.role]
        for panel in panels_of(distribution, 0, "hamming")
        for state in panel.states
    ]
    return _table(["class variable", "state", "probability", ""], rows)


def _first_rows(distribution: BaseDistribution) -> str:
    """Return a table of the most probable outcome of each row, with the probabilities of its states."""
    from pmdc.report.individual import percent

    some = distribution.rows(slice(0, _N_ROWS))
    if not len(some):
        return ""
    codes, log_prob = some.mode_codes()
    marginals = some.marginals()
    table = distribution.class_table
    rows = [
        [
            str(row),
            *(
                f"{known.tolist()[code]} ({percent(float(marginals[k][row, code]))})"
                for k, (known, code) in enumerate(zip(table.states, codes[row], strict=True))
            ),
            percent(float(np.exp(log_prob[row]))),
        ]
        for row in range(len(some))
    ]
    more = len(distribution) - len(some)
    caption = "The most probable outcome of each row, with the probability of each state and of the whole outcome."
    return (
        f"<p>{caption}</p>"
        + _table(["row", *map(str, table.names), "outcome"], rows)
        + (f"<p>and {more} more rows</p>" if more else "")
    )
