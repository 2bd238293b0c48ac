"""Layered layout of a directed graph whose nodes are boxes: parents above children, no edge through a box.

In a graph with cycles, edges that close a cycle with more confident ones point upwards. The steps are those of
Sugiyama's method: assign layers, add a bend where an edge passes a layer, order each layer to avoid crossings, place
the boxes horizontally, and draw the curves. Lengths are in the unit of the box sizes (`pmdc.report.graph` uses points).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import networkx as nx

Floats = npt.NDArray[np.float64]
Node = Hashable
Edge = tuple[Node, Node]

_BOX_GAP = 22.0
"""Minimum distance between two boxes of a layer."""
_BEND_GAP = 13.0
"""Minimum distance between an edge that passes a layer and its neighbours."""
_LAYER_GAP = (32.0, 72.0)
"""Minimum and maximum distance between two layers; it grows with the horizontal extent of the edges."""
PORT_GAP = 9.0
"""Distance between two arrow heads on a box, if the box is wide enough."""
_CLEARANCE = 5.0
"""Minimum distance between a smoothed edge and the boxes it passes."""
_SAME_HEIGHT = 1e-6
"""Heights that differ by less are equal."""
_MAX_SWEEPS, _MAX_EXCHANGES = 12, 6
"""Iterations of the search for an order with few crossings."""


@dataclass(frozen=True)
class Box:
    """A rectangle, given by its centre."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y - self.height / 2

    @property
    def top(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Layout:
    """Positions of boxes and edges, all in [0, width] x [0, height]; y points upwards.

    Attributes
    ----------
    boxes : dict of node to Box
    routes : dict of edge to array of shape (3 m + 1, 2)
        Control points of m joined cubic Bézier curves, from the lower border of the parent to the upper border of the
        child; the other way round if the edge points upwards.
    layers : dict of node to int
        Counted from the top; a parent has a smaller number than its child, unless the edge points upwards.
    upward : frozenset of edges
        The edges that would close a cycle; none in a DAG.
    width, height : float
    """

    boxes: dict[Node, Box]
    routes: dict[Edge, Floats]
    layers: dict[Node, int]
    upward: frozenset[Edge]
    width: float
    height: float


@dataclass(frozen=True)
class _Bend:
    """The point at which an edge passes a layer."""

    edge: Edge
    layer: int


_Item = Hashable  # a node or a bend
_Rows = list[list[_Item]]
_Neighbours = dict[_Item, list[_Item]]


def layered_layout(graph: nx.DiGraph, sizes: Mapping[Node, tuple[float, float]], most_in_layer: int = 6) -> Layout:
    """Lay out a graph from top to bottom.

    Parameters
    ----------
    graph : networkx.DiGraph
        If it has cycles, edges of greater ``confidence`` (an edge attribute) are preferred to point downwards.
    sizes : mapping of node to (width, height)
    most_in_layer : int, default=6
        If a layer has more boxes, some without parents move up; if more than twice as many, some without children move
        down.

    Raises
    ------
    ValueError
        If an edge leads from a node to itself.

    Examples
    --------
    >>> import networkx as nx
    >>> from pmdc.report.layout import layered_layout
    >>> layout = layered_layout(nx.DiGraph([("party", "vote")]), {"party": (50, 20), "vote": (40, 20)})
    >>> layout.boxes["party"].bottom > layout.boxes["vote"].top
    True
    """
    upward = upward_edges(graph)
    ends = {edge: edge[::-1] if edge in upward else edge for edge in graph.edges}  # the upper one first
    layers = _assign_layers(graph, ends.values(), most_in_layer)
    paths = {edge: _path(edge, upper, lower, layers) for edge, (upper, lower) in ends.items()}
    rows: _Rows = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for node, layer in layers.items():
        rows[layer].append(node)
    for path in paths.values():
        for bend in path[1:-1]:
            assert isinstance(bend, _Bend)
            rows[bend.layer].append(bend)
    above: _Neighbours = {item: [] for row in rows for item in row}
    below: _Neighbours = {item: [] for row in rows for item in row}
    for path in paths.values():
        for upper, lower in pairwise(path):
            below[upper].append(lower)
            above[lower].append(upper)

    rows = _order(rows, above, below)
    widths = {item: 0.0 if isinstance(item, _Bend) else sizes[item][0] for row in rows for item in row}
    x = _horizontal_places(rows, above, below, widths)
    bands, height = _bands(rows, below, x, sizes)
    boxes = {node: Box(x[node], sum(bands[layer]) / 2, *sizes[node]) for node, layer in layers.items()}
    routes = _routes(paths, boxes, bands, layers, x)
    routes.update({edge: routes[edge][::-1] for edge in upward})
    width = max((x[item] + widths[item] / 2 for item in x), default=0.0)
    return Layout(boxes, routes, layers, upward, width, height)


# Layers ----------------------------------------------------------------------------------------------------


def upward_edges(graph: nx.DiGraph) -> frozenset[Edge]:
    """Return the edges that close a cycle with edges that are at least as confident."""
    import networkx as nx

    loops = [node for node in graph if graph.has_edge(node, node)]
    if loops:
        raise ValueError(f"The graph has an edge from {loops[0]!r} to itself, which cannot be drawn: remove it.")
    if nx.is_directed_acyclic_graph(graph):
        return frozenset()
    downward, upward = nx.DiGraph(), []
    downward.add_nodes_from(graph)
    for parent, child in sorted(graph.edges, key=lambda edge: -float(graph.edges[edge].get("confidence", 1.0))):
        if nx.has_path(downward, child, parent):
            upward.append((parent, child))
        else:
            downward.add_edge(parent, child)
    return frozenset(upward)


def _assign_layers(nodes: Iterable[Node], edges: Iterable[Edge], most: int) -> dict[Node, int]:
    """Return the layer of each node: its topological generation, except for nodes without parents.

    Nodes without parents (mostly discrete features) are placed just above the first of their children, so fewer edges
    are long. If a layer gets too wide, some of them move up, and some nodes without children move down. Nodes without
    edges are in the last layers.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    alone = [node for node in graph if graph.degree(node) == 0]
    layers = {node: i for i, nodes in enumerate(nx.topological_generations(graph)) for node in nodes}
    for node in alone:
        del layers[node]
    roots = [node for node in layers if graph.in_degree(node) == 0]
    for node in roots:
        layers[node] = min(layers[child] for child in graph.successors(node)) - 1

    _spread_roots(layers, sorted(roots, key=graph.out_degree), most)
    _spread_leaves(layers, [node for node in layers if graph.out_degree(node) == 0], 2 * most)
    first = max(layers.values(), default=-1) + 1
    n_rows = -(-len(alone) // most)
    layers.update({node: first + i * n_rows // len(alone) for i, node in enumerate(alone)})
    return {node: layers[node] for node in graph}


def _spread_roots(layers: dict[Node, int], roots: Sequence[Node], most: int) -> None:
    """Move roots up from layers that are too full, the first ones first; then renumber the layers from 0."""
    layer = max(layers.values(), default=-1)
    while layer >= min(layers.values(), default=0):
        count = sum(other == layer for other in layers.values())
        keep = most
        if layer == min(layers.values()):  # roots that move up form new layers: distribute them evenly
            keep = -(-count // -(-count // most))
        for node in [node for node in roots if layers[node] == layer][: max(count - keep, 0)]:
            layers[node] -= 1
        layer -= 1
    top = min(layers.values(), default=0)
    layers.update({node: layer - top for node, layer in layers.items()})


def _spread_leaves(layers: dict[Node, int], leaves: Sequence[Node], most: int) -> None:
    """Move nodes without children from layers that are too full down into as many layers as needed."""
    for layer in range(max(layers.values(), default=-1) + 1):
        full = [node for node in leaves if layers[node] == layer]
        others = sum(other == layer for other in layers.values()) - len(full)
        room = max(most - others, 1)
        if len(full) > room:
            n_layers = -(-len(full) // room)
            layers.update({node: layer + i * n_layers // len(full) for i, node in enumerate(full)})


def _path(edge: Edge, upper: Node, lower: Node, layers: Mapping[Node, int]) -> list[_Item]:
    return [upper, *(_Bend(edge, layer) for layer in range(layers[upper] + 1, layers[lower])), lower]


# Order inside the layers -----------------------------------------------------------------------------------


def _order(rows: _Rows, above: _Neighbours, below: _Neighbours) -> _Rows:
    """Order each row so that few edges cross: barycentre sweeps down and up, and exchanges of neighbours."""
    best, least = rows, (_crossings(rows, below), np.inf)
    # Try a second start, with every other row reversed: it may lead to fewer crossings.
    for start in (rows, [row[::-1] if i % 2 else row for i, row in enumerate(rows)]):
        rows = [list(row) for row in start]
        for sweep in range(_MAX_SWEEPS):
            if sweep % 2 == 0:
                for fixed, row in pairwise(rows):
                    _sort_by_barycentre(row, fixed, above)
            else:
                for fixed, row in pairwise(reversed(rows)):
                    _sort_by_barycentre(row, fixed, below)
            _exchange_neighbours(rows, above, below)
            cost = (_crossings(rows, below), _sideways(rows, below))
            if cost < least:
                best, least = [list(row) for row in rows], cost
    return best


def _sort_by_barycentre(row: list[_Item], fixed: Sequence[_Item], neighbours: _Neighbours) -> None:
    position = {item: i for i, item in enumerate(fixed)}
    # An item without neighbours in the fixed row keeps its relative position.
    centre = {item: (i + 0.5) / len(row) * len(fixed) - 0.5 for i, item in enumerate(row)}
    for item in row:
        if neighbours[item]:
            centre[item] = sum(position[other] for other in neighbours[item]) / len(neighbours[item])
    row.sort(key=centre.__getitem__)


def _exchange_neighbours(rows: _Rows, above: _Neighbours, below: _Neighbours) -> None:
    position = {item: i for row in rows for i, item in enumerate(row)}

    def gain(first: _Item, second: _Item) -> int:
        total = 0
        for neighbours in (above, below):
            ours = sorted(position[other] for other in neighbours[first])
            theirs = sorted(position[other] for other in neighbours[second])
            total += _inversions(ours, theirs) - _inversions(theirs, ours)
        return total

    for _ in range(_MAX_EXCHANGES):
        improved = False
        for row in rows:
            for i in range(len(row) - 1):
                if gain(row[i], row[i + 1]) > 0:
                    row[i], row[i + 1] = row[i + 1], row[i]
                    position[row[i]], position[row[i + 1]] = i, i + 1
                    improved = True
        if not improved:
            break


def _inversions(first: Iterable[int], second: Sequence[int]) -> int:
    """Count the pairs whose first number is greater; `second` is sorted."""
    return sum(bisect_left(second, place) for place in first)


def _crossings(rows: _Rows, below: _Neighbours) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        position = {item: i for i, item in enumerate(lower)}
        seen: list[int] = []
        for item in upper:
            ends = [position[other] for other in below[item]]
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _sideways(rows: _Rows, below: _Neighbours) -> float:
    """Return the total horizontal extent of the edges, with all rows stretched to the same length."""
    place = {item: (i + 0.5) / len(row) for row in rows for i, item in enumerate(row)}
    return sum(abs(place[item] - place[other]) for item, others in below.items() for other in others)


# Places ----------------------------------------------------------------------------------------------------


def _horizontal_places(
    rows: _Rows, above: _Neighbours, below: _Neighbours, widths: Mapping[_Item, float]
) -> dict[_Item, float]:
    """Place items so that edges are short (least squares), row by row until nothing moves; the leftmost is at 0."""
    gaps = [[_gap(a, b, widths) for a, b in pairwise(row)] for row in rows]
    x: dict[_Item, float] = {}
    for row, gap in zip(rows, gaps, strict=True):
        places = _cumulated(gap)
        x.update(zip(row, (places - places.mean()).tolist(), strict=True))
    joined = [i for i, row in enumerate(rows) if any(above[item] or below[item] for item in row)]
    for sweep in range(200):
        moved = 0.0
        for i in joined if sweep % 2 == 0 else reversed(joined):
            targets, weights = np.empty(len(rows[i])), np.empty(len(rows[i]))
            for j, item in enumerate(rows[i]):
                others = [*above[item], *below[item]]
                pulls = [_weight(item, other) for other in others]
                weights[j] = sum(pulls)
                targets[j] = np.dot(pulls, [x[other] for other in others]) / weights[j]
            places = _separate(targets, gaps[i], weights)
            moved = max(moved, *(abs(place - x[item]) for item, place in zip(rows[i], places, strict=True)))
            x.update(zip(rows[i], places.tolist(), strict=True))
        if moved < 0.05:
            break

    def extent(items: Iterable[_Item]) -> tuple[float, float]:
        sides = [(x[item] - widths[item] / 2, x[item] + widths[item] / 2) for item in items]
        return min((left for left, _ in sides), default=0.0), max((right for _, right in sides), default=0.0)

    # Centre the rows of nodes without edges below the rest, which may have moved.
    drift = sum(extent(item for i in joined for item in rows[i])) / 2
    for i in set(range(len(rows))) - set(joined):
        x.update({item: x[item] + drift for item in rows[i]})
    left, _ = extent(x)
    return {item: place - left for item, place in x.items()}


def _gap(first: _Item, second: _Item, widths: Mapping[_Item, float]) -> float:
    """Return the minimum distance between the centres of two neighbours in a row."""
    bends = isinstance(first, _Bend) or isinstance(second, _Bend)
    return (widths[first] + widths[second]) / 2 + (_BEND_GAP if bends else _BOX_GAP)


def _weight(first: _Item, second: _Item) -> float:
    """Return the weight of a piece of an edge; pieces between two bends weigh most, to keep long edges straight."""
    return (1.0, 2.0, 8.0)[isinstance(first, _Bend) + isinstance(second, _Bend)]


def _separate(targets: Floats, gaps: Sequence[float], weights: Floats | None = None) -> Floats:
    """Return the places nearest to the targets, in the same order and at least the gaps apart."""
    from scipy.optimize import isotonic_regression

    offsets = _cumulated(gaps)
    return np.asarray(isotonic_regression(targets - offsets, weights=weights).x) + offsets


def _cumulated(gaps: Sequence[float]) -> Floats:
    return np.concatenate([[0.0], np.cumsum(gaps)])


def _bands(
    rows: _Rows, below: _Neighbours, x: Mapping[_Item, float], sizes: Mapping[Node, tuple[float, float]]
) -> tuple[list[tuple[float, float]], float]:
    """Return top and bottom of each layer, and the total height."""
    depths, depth = [], 0.0
    for row in rows:
        thickness = max(sizes[item][1] for item in row if not isinstance(item, _Bend))
        depths.append((depth, depth + thickness))
        sideways = max((abs(x[item] - x[other]) for item in row for other in below[item]), default=0.0)
        depth += thickness + float(np.clip(0.45 * sideways, *_LAYER_GAP))
    height = depths[-1][1] if depths else 0.0
    return [(height - top, height - bottom) for top, bottom in depths], height


# Edges -----------------------------------------------------------------------------------------------------


def _routes(
    paths: Mapping[Edge, Sequence[_Item]],
    boxes: Mapping[Node, Box],
    bands: Sequence[tuple[float, float]],
    layers: Mapping[Node, int],
    x: Mapping[_Item, float],
) -> dict[Edge, Floats]:
    starts = _ports({edge: (path[0], x[path[1]]) for edge, path in paths.items()}, boxes)
    ends = _ports({edge: (path[-1], x[path[-2]]) for edge, path in paths.items()}, boxes)
    routes = {}
    for edge, path in paths.items():
        upper, lower = path[0], path[-1]
        passed = [bands[layers[upper] + i] for i in range(1, len(path) - 1)]
        places = [x[bend] for bend in path[1:-1]]
        start, end = (starts[edge], boxes[upper].bottom), (ends[edge], boxes[lower].top)
        middles = [(place, sum(band) / 2) for place, band in zip(places, passed, strict=True)]
        smooth = _curve([start, *middles, end])
        if _is_clear(smooth, [box for node, box in boxes.items() if node not in edge]):
            routes[edge] = smooth
            continue
        # Otherwise go straight down through each layer and bend only between layers, which touches no box.
        corners = [(place, level) for place, band in zip(places, passed, strict=True) for level in band]
        leave, arrive = (start[0], bands[layers[upper]][1]), (end[0], bands[layers[lower]][0])
        routes[edge] = _curve([start, leave, *corners, arrive, end])
    return routes


def _ports(aims: Mapping[Edge, tuple[Node, float]], boxes: Mapping[Node, Box]) -> dict[Edge, float]:
    """Return where each edge meets the border of a box: on the side it comes from, apart from the other edges."""
    at_box: dict[Node, list[tuple[float, Edge]]] = {}
    for edge, (node, aim) in aims.items():
        at_box.setdefault(node, []).append((aim, edge))
    ports = {}
    for node, edges in at_box.items():
        box = boxes[node]
        edges.sort(key=lambda pair: pair[0])
        reach = 0.36 * box.width
        targets = np.array([np.clip(0.12 * (aim - box.x), -reach, reach) for aim, _ in edges])
        gap = min(PORT_GAP, 2 * reach / max(len(edges) - 1, 1))
        offsets = np.clip(_separate(targets, [gap] * (len(edges) - 1)), -reach, reach)
        ports.update({edge: box.x + float(offset) for (_, edge), offset in zip(edges, offsets, strict=True)})
    return ports


def _curve(stops: Sequence[tuple[float, float]]) -> Floats:
    """Return control points of Bézier curves through the stops, from top to bottom.

    The curve is monotone between two stops, and vertical at its ends and where it changes direction.
    """
    # A box as high as its layer ends where the layer ends, up to rounding: this is one stop, not two.
    stops = [stop for i, stop in enumerate(stops) if i == 0 or abs(stop[1] - stops[i - 1][1]) > _SAME_HEIGHT]
    pieces = [(x1 - x0) / (y1 - y0) for (x0, y0), (x1, y1) in pairwise(stops)]
    # The harmonic mean of the slopes on both sides, as in monotone cubic interpolation.
    inner = [2 * a * b / (a + b) if a * b > 0 else 0.0 for a, b in pairwise(pieces)]
    points = [stops[0]]
    for ((x0, y0), (x1, y1)), (slope0, slope1) in zip(pairwise(stops), pairwise([0.0, *inner, 0.0]), strict=True):
        reach = 0.42 * (y1 - y0)
        points += [(x0 + slope0 * reach, y0 + reach), (x1 - slope1 * reach, y1 - reach), (x1, y1)]
    return np.array(points)


def sample_route(route: Floats, n_points: int = 24) -> Floats:
    """Return points along a route, `n_points` on each of its Bézier curves."""
    t = np.linspace(0.0, 1.0, n_points)[:, None]
    basis = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3]
    curves = [sum(b * route[i + j] for j, b in enumerate(basis)) for i in range(0, len(route) - 1, 3)]
    return np.concatenate(curves)


def _is_clear(route: Floats, boxes: Iterable[Box]) -> bool:
    x, y = sample_route(route).T
    for box in boxes:
        beside = (x < box.left - _CLEARANCE) | (x > box.right + _CLEARANCE)
        if not (beside | (y < box.bottom - _CLEARANCE) | (y > box.top + _CLEARANCE)).all():
            return False
    return True
