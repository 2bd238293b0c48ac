"""The application of `pmdc explore`: the JSON interface, the list of rows, the picture of the graph and the page."""

import math
import re
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import parse_qsl

import networkx as nx
from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field, StrictStr, ValidationError

from pmdc._support.checks import suggest
from pmdc.explore import replies
from pmdc.explore.application import answers, post, service
from pmdc.explore.interface import Interface
from pmdc.explore.messages import Problem, problem_of
from pmdc.explore.rows import list_rows
from pmdc.explore.table import Table
from pmdc.explore.values import shown
from pmdc.report.layout import layered_layout

_WIDTH, _HEADING, _LINE, _PADDING, _MAX_STATES = 210.0, 30.0, 22.0, 10.0, 6
"""Sizes of a node in CSS pixels: width, heading, each state, margin; and the most states shown."""
_MAX_STEPS = 10
_ASPECT = 1.2
"""Width of the picture of a graph, divided by its height, that suits the page: the one shown largest is chosen."""


class Recorded(BaseModel):
    """A request whose answer is to be in an exported page."""

    key: StrictStr
    path: StrictStr
    body: Any = None


class Export(BaseModel):
    """The view to be exported."""

    state: StrictStr = Field(max_length=100_000)
    recorded: list[Recorded] = Field(max_length=1000)


class Explorer:
    """The answers that only the page asks for.

    Parameters
    ----------
    interface : Interface
    write_page : function
        Returns the page as HTML for what it starts with.
    """

    def __init__(self, interface: Interface, write_page: Callable[[dict[str, Any]], str]):
        self.interface, self.write_page = interface, write_page

    @property
    def table(self) -> Table:
        if self.interface.table is None:
            raise Problem("There is no table: start with pmdc explore MODEL TABLE.", None, "not_found", 404)
        return self.interface.table

    def rows(self, request: Any) -> dict[str, Any]:
        """Answer /rows: the list of rows."""
        return list_rows(self.table, self.interface.reader, request)

    def row(self, index: int) -> dict[str, Any]:
        """Answer /rows/{index}: the values and the true states of a row."""
        table = self.table
        if not 0 <= index < len(table):
            raise Problem(
                f"index: {index} is not a row of the table, which has {len(table)}, from 0.", "index", "not_found", 404
            )
        true = table.true_states(index, self.interface.reader.states)
        return {"index": index, "values": table.values(index), "true": true}

    def graph(self, focus: str | None = None, steps: int = 1) -> dict[str, Any]:
        """Answer /graph: the places of the class variables, all or those near one of them."""
        names = self.interface.model.class_names_
        if focus is not None and focus not in names:
            raise Problem(f"focus: {shown(focus)} is not a class variable{suggest(focus, names)}", "focus")
        return draw(self.interface, focus, steps)

    def export(self, request: Export) -> str:
        """Return the page with the answers to the requests of the present view, which asks no server."""
        answers = {own.key: self.answer(own.path, own.body) for own in request.recorded}
        return self.write_page({"live": False, "state": request.state, "recorded": answers})

    def answer(self, path: str, body: Any) -> Any:
        """Return the answer to a request of the page."""
        place, _, query = path.partition("?")
        try:
            if place in self.interface.paths:
                kind, reply = self.interface.paths[place]
                return reply(kind.model_validate(body))
            if place == "/rows":
                return self.rows(self.interface.requests.rows.model_validate(body))
        except ValidationError as error:
            names = self.interface.reader.features.names, self.interface.model.class_names_
            raise problem_of(error.errors(), *names) from None
        if place == "/schema":
            return self.interface.schema
        named = dict(parse_qsl(query))
        if place == "/graph" and re.fullmatch("[0-9]{1,9}", named.get("steps", "1")):
            return self.graph(named.get("focus"), min(int(named.get("steps", "1")), _MAX_STEPS))
        if re.fullmatch("/rows/[0-9]{1,15}", place):
            return self.row(int(place.removeprefix("/rows/")))
        raise Problem(f"recorded: {shown(path)} is not a request of the page.", "recorded")


def explorer(interface: Interface, write_page: Callable[[dict[str, Any]], str]) -> FastAPI:
    """Return the application of `pmdc explore`."""
    app, own = service(interface), Explorer(interface, write_page)
    post(app, "/rows", interface.requests.rows, own.rows, "List rows of the table", replies.RowsReply)

    @app.get("/rows/{index}", summary="Return a row of the table", **answers(replies.RowReply))
    async def row(request: Request, index: Annotated[int, Path(ge=0, le=2**53)]) -> Response:
        return await app.state.work(request, own.row, index)

    @app.get("/graph", summary="Draw the graph", **answers(replies.GraphReply))
    async def graph(
        request: Request, focus: str | None = None, steps: Annotated[int, Query(ge=0, le=_MAX_STEPS)] = 1
    ) -> Response:
        return await app.state.work(request, own.graph, focus, steps)

    @app.post(
        "/export",
        summary="Export the view as a page",
        operation_id="export",
        **answers(None),
    )
    async def export(request: Request, view: Export) -> Response:
        text = await app.state.compute(request, own.export, view)
        return HTMLResponse(text, headers={"Content-Disposition": 'attachment; filename="explorer.html"'})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(write_page({"live": True}))

    return app


# The graph --------------------------------------------------------------------------------------------------------


def draw(interface: Interface, focus: str | None, steps: int) -> dict[str, Any]:
    """Return where the nodes and arcs of a graph are, in CSS pixels, with y downwards."""
    graph = _class_graph(interface)
    if focus is not None:
        near = nx.ego_graph(graph.to_undirected(as_view=True), focus, radius=steps)
        graph = graph.subgraph([name for name in graph if name in near]).copy()
    heights = {own.name: _height(len(own.listed)) for own in interface.reader.states}
    sizes = {name: (_WIDTH, heights[name]) for name in graph}
    widest = max(2, math.isqrt(len(sizes)))
    layouts = [layered_layout(graph, sizes, most) for most in range(2, widest + 1)]
    layout = min(layouts, key=lambda own: max(own.width, _ASPECT * own.height))
    return {
        "width": layout.width,
        "height": layout.height,
        "nodes": [
            {"name": name, "x": box.left, "y": layout.height - box.top, "width": box.width, "height": box.height}
            for name, box in layout.boxes.items()
        ],
        "edges": [
            {
                "parent": parent,
                "child": child,
                "strength": graph.edges[parent, child].get("strength"),
                "path": _path(route, layout.height),
            }
            for (parent, child), route in layout.routes.items()
        ],
    }


def _class_graph(interface: Interface) -> nx.DiGraph:
    names = interface.model.class_names_
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    try:
        learned = interface.model.to_networkx()
    except ValueError:  # a model without a graph
        return graph
    graph.add_edges_from((p, c, d) for p, c, d in learned.edges(data=True) if p in graph and c in graph)
    return graph


def _height(n_states: int) -> float:
    lines = n_states if n_states <= _MAX_STATES else _MAX_STATES + 1
    return _HEADING + _LINE * lines + _PADDING


def _path(route: Any, height: float) -> str:
    """Return joined Bézier curves as the path of an SVG element."""
    points = [f"{x:.1f} {height - y:.1f}" for x, y in route]
    return f"M {points[0]} C {' '.join(points[1:])}"
