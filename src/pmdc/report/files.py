"""Graph files: pictures, and DOT and GraphML for other tools."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.atomic_files import replacing
from pmdc._support.checks import check_choice, check_count
from pmdc.report.canvas import figure_of, plain_figure
from pmdc.report.consensus import graph_of
from pmdc.report.graph import draw_in
from pmdc.report.selection import MAX_ARCS
from pmdc.report.strokes import UNDETERMINED, is_feature_arc, is_undetermined

if TYPE_CHECKING:
    import networkx as nx

_Writer = Callable[["nx.DiGraph", str | None, int | None], bytes]
"""Takes a graph, its title and the largest number of arcs in a picture."""

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOT_IN_DOT = re.compile("[\0\ud800-\udfff]")
_SHAPES = {"class": "box", "discrete": "hexagon", "continuous": "ellipse"}
_STYLES = {"input": "dashed", "mixed": "dashed"}


def write_graph(
    model: Any, path: str | PathLike[str], *, title: str | None = None, max_arcs: int | None = MAX_ARCS
) -> None:
    """Write the graph of a model to a file; the extension of the name selects the format.

    Parameters
    ----------
    model : fitted model, or networkx.DiGraph
        Such as a `GBNC`, or the result of `consensus_graph` or `feature_graph`.
    path : str or path
        The name of the file, with one of these extensions:

        - ``.svg``, ``.png`` or ``.pdf``: a picture, as drawn by `draw_graph`;
        - ``.dot`` or ``.gv``: for Graphviz;
        - ``.graphml``: for networkx, Gephi, yEd, Cytoscape and others.

        DOT and GraphML contain all arcs and the attributes of nodes (``kind``) and edges (``conditioning``,
        ``strength``, ``determined``, ``confidence``, ``importance``). In DOT, arcs whose direction is not determined
        have no head. If writing fails, an existing file is kept.
    title : str, optional
    max_arcs : int, default=40
        The largest number of arcs in a picture, the strongest, as in `draw_graph`; None for all.

    See Also
    --------
    pmdc.inference.JointDistribution.to_bif : The network of one row with its probabilities.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import write_graph
    >>> data = make_network(300, n_class_variables=2, random_state=0)
    >>> model = GBNC(experts=None, max_parents=1).fit(data.X, data.Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "graph.dot"
    ...     write_graph(model, path)
    ...     print(path.read_text().splitlines()[0])
    digraph {
    """
    path = Path(path)
    check_choice(f"path={str(path)!r}: extension", path.suffix.lower(), _WRITERS)
    if max_arcs is not None:
        check_count("max_arcs", max_arcs, 1)
    content = _WRITERS[path.suffix.lower()](graph_of(model, "model"), title, max_arcs)
    with replacing(path) as new:
        new.write_bytes(content)


def _plain(graph: nx.DiGraph, title: str | None, outside: re.Pattern[str], format_name: str) -> nx.DiGraph:
    """Return the graph with names and attributes as text, numbers or booleans."""
    import networkx as nx

    names = {node: str(node) for node in graph}
    if len(set(names.values())) < len(names):
        raise ValueError("Two nodes of the graph have the same name when written as text: rename one of them.")
    plain = nx.DiGraph(**_values(graph.graph | ({} if title is None else {"title": title})))
    plain.add_nodes_from((names[node], _values(data)) for node, data in graph.nodes(data=True))
    plain.add_edges_from((names[a], names[b], _values(data)) for a, b, data in graph.edges(data=True))
    data = [plain.graph, *(d for _, d in plain.nodes(data=True)), *(d for *_, d in plain.edges(data=True))]
    for text in [*plain, *(value for values in data for value in values.values() if isinstance(value, str))]:
        if wrong := outside.search(text):
            raise ValueError(f"{text!r} has the character {wrong[0]!r}, which {format_name} does not allow: rename it.")
    return plain


def _values(attributes: dict[str, Any]) -> dict[str, Any]:
    return {str(key): _value(value) for key, value in attributes.items()}


def _value(value: Any) -> Any:
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    return float(value) if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _graphml(graph: nx.DiGraph, title: str | None, max_arcs: int | None) -> bytes:
    import networkx as nx

    file = BytesIO()
    nx.write_graphml(_plain(graph, title, _NOT_IN_XML, "GraphML"), file)
    return file.getvalue()


def _dot(graph: nx.DiGraph, title: str | None, max_arcs: int | None) -> bytes:
    """Return the graph in the language of Graphviz; names are quoted, and a doubled backslash is displayed as one."""
    plain = _plain(graph, title, _NOT_IN_DOT, "DOT")
    lines = ["digraph {"]
    heading = [str(plain.graph[key]) for key in ("title", "note") if key in plain.graph]
    if any(is_undetermined(data) for *_, data in plain.edges(data=True)):
        heading.append(UNDETERMINED)
    if label := "\n".join(heading):
        lines.append(f"  label={_quoted(label)};")
    strengths = [data.get("strength", math.nan) for *_, data in plain.edges(data=True)]
    greatest = max(filter(math.isfinite, strengths), default=0.0)
    for node, data in plain.nodes(data=True):
        lines.append(
            f"  {_quoted(node)}{_attributes(data | {'shape': _SHAPES.get(data.get('kind', 'class'), 'box')})};"
        )
    for parent, child, data in plain.edges(data=True):
        lines.append(f"  {_quoted(parent)} -> {_quoted(child)}{_attributes(data | _look(data, greatest))};")
    return "\n".join([*lines, "}", ""]).encode()


def _look(data: dict[str, Any], greatest: float) -> dict[str, Any]:
    """Return how Graphviz draws an edge; `greatest` is the greatest arc strength."""
    look: dict[str, Any] = {}
    if greatest > 0 and math.isfinite(strength := data.get("strength", math.nan)):
        look["penwidth"] = round(0.6 + 2.4 * max(strength, 0.0) / greatest, 2)
    if is_feature_arc(data):
        look["style"] = "dotted"
    elif data.get("conditioning") in _STYLES:
        look["style"] = _STYLES[data["conditioning"]]
    if is_undetermined(data):
        look["dir"] = "none"
    if "confidence" in data:
        look["label"] = f"{100 * data['confidence']:.0f} %"
    elif "importance" in data:
        look["label"] = f"+{data['importance']:.2g}"
    return look


def _attributes(values: dict[str, Any]) -> str:
    shown = ", ".join(
        f"{_quoted(key)}={_quoted(value) if isinstance(value, str) else _quoted(repr(value))}"
        for key, value in values.items()
    )
    return f" [{shown}]" if shown else ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _picture(kind: str, **options: Any) -> _Writer:
    def write(graph: nx.DiGraph, title: str | None, max_arcs: int | None) -> bytes:
        file = BytesIO()
        axes = draw_in(graph, None, title, plain_figure, max_arcs)
        figure_of(axes).savefig(file, format=kind, **options)
        return file.getvalue()

    return write


_WRITERS: dict[str, _Writer] = {
    ".svg": _picture("svg", metadata={"Date": None}),
    ".png": _picture("png", dpi=150),
    ".pdf": _picture("pdf", metadata={"CreationDate": None}),
    ".dot": _dot,
    ".gv": _dot,
    ".graphml": _graphml,
}
