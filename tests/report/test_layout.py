"""Properties of the layout of any DAG: layers, no overlaps, no edge through a box."""

from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmdc.datasets import make_network
from pmdc.report.layout import layered_layout, sample_route


@st.composite
def dags(draw):
    """DAGs of up to 20 nodes of all densities, with boxes of all sizes."""
    n = draw(st.integers(1, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.05, 0.15, 0.3, 0.7]))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    names = rng.permutation(n).tolist()
    graph.add_edges_from((names[i], names[j]) for i, j in combinations(range(n), 2) if rng.random() < density)
    return graph, {node: (rng.uniform(30, 140), rng.choice([24, 37, 49])) for node in graph}


@settings(deadline=None, max_examples=150)
@given(dags())
def test_promises(problem):
    graph, sizes = problem
    layout = layered_layout(graph, sizes)
    assert set(layout.boxes) == set(graph)
    for parent, child in graph.edges:
        assert layout.layers[parent] < layout.layers[child]
        assert layout.boxes[parent].bottom > layout.boxes[child].top
    for node, box in layout.boxes.items():
        assert (box.width, box.height) == sizes[node]
        assert box.left >= -1e-6
        assert box.right <= layout.width + 1e-6
        assert box.bottom >= -1e-6
        assert box.top <= layout.height + 1e-6
    check_geometry(layout)
    assert not layout.upward
    assert set(layout.routes) == set(graph.edges)
    for (parent, child), route in layout.routes.items():
        source, target = layout.boxes[parent], layout.boxes[child]
        assert route[0, 1] == pytest.approx(source.bottom)
        assert source.left < route[0, 0] < source.right
        assert route[-1, 1] == pytest.approx(target.top)
        assert target.left < route[-1, 0] < target.right
        assert route[-2, 0] == pytest.approx(route[-1, 0])  # arrows point straight down
        assert route[-2, 1] > route[-1, 1] + 1  # and have a length from which the head takes its direction
        y = sample_route(route)[:, 1]
        assert (np.diff(y) <= 1e-9).all()


def boxes(graph, **nodes):
    return {node: nodes.get(str(node), (50.0, 24.0)) for node in graph}


@pytest.mark.parametrize("seed", [231, 361])
def test_edges_keep_a_direction_at_boxes_as_high_as_their_layer(seed):
    """Box and layer end at the same height, up to rounding: an edge that stops at both has no length between them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 20))
    graph = nx.DiGraph((a, b) for a, b in combinations(range(n), 2) if rng.random() < 0.3)
    for route in layered_layout(graph, dict.fromkeys(graph, (50.0, 24.5))).routes.values():
        assert route[0, 1] > route[1, 1] + 1
        assert route[-2, 1] > route[-1, 1] + 1


def test_crossings_that_can_be_avoided_are():
    graph = nx.DiGraph([("a", "z"), ("b", "y"), ("c", "x"), ("a", "y")])
    layout = layered_layout(graph, boxes(graph))
    for (parent, child), (other_parent, other_child) in combinations(graph.edges, 2):
        above = layout.boxes[parent].x - layout.boxes[other_parent].x
        below = layout.boxes[child].x - layout.boxes[other_child].x
        assert above * below >= 0


def test_a_chain_is_straight():
    graph = nx.path_graph(6, create_using=nx.DiGraph)
    layout = layered_layout(graph, boxes(graph))
    assert np.ptp([box.x for box in layout.boxes.values()]) < 0.1


def test_a_parent_stands_over_the_middle_of_its_children():
    graph = nx.DiGraph([("a", "x"), ("a", "y"), ("a", "z")])
    layout = layered_layout(graph, boxes(graph, x=(120, 24)))
    assert layout.boxes["a"].x == pytest.approx(np.mean([layout.boxes[node].x for node in "xyz"]), abs=0.1)


def test_a_root_stands_just_above_its_first_child():
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d"), ("late", "d")])
    layers = layered_layout(graph, boxes(graph)).layers
    assert layers == {"a": 0, "b": 1, "c": 2, "d": 3, "late": 2}


@pytest.mark.parametrize("n_roots", [5, 12, 19])
def test_many_roots_share_several_layers(n_roots):
    graph = nx.DiGraph([(f"root{i}", "y") for i in range(n_roots)])
    layout = layered_layout(graph, boxes(graph))
    counts = np.bincount(list(layout.layers.values()))
    assert counts.max() <= 6
    assert counts[-1] == 1
    assert np.ptp(counts[:-1]) <= 1


@pytest.mark.parametrize("n_leaves", [12, 13, 48])
def test_many_leaves_share_several_layers(n_leaves):
    graph = nx.DiGraph([("root", i) for i in range(n_leaves)] + [(0, "below")])
    layout = layered_layout(graph, boxes(graph))
    counts = np.bincount(list(layout.layers.values()))
    assert counts[0] == 1
    assert counts.max() <= 12
    assert len(counts) == (3 if n_leaves < 24 else 6)


def test_nodes_without_edges_stand_in_rows_below():
    graph = nx.DiGraph([("a", "b")])
    graph.add_nodes_from(range(14))
    layout = layered_layout(graph, boxes(graph))
    assert max(np.bincount(list(layout.layers.values()))) <= 6
    assert all(layout.boxes[node].top < layout.boxes["b"].bottom for node in range(14))


def test_the_layout_is_the_same_every_time():
    graph = nx.gnp_random_graph(12, 0.3, seed=1, directed=True)
    graph = nx.DiGraph((a, b) for a, b in graph.edges if a < b)
    first, second = (layered_layout(graph, boxes(graph)) for _ in range(2))
    assert first.boxes == second.boxes


def test_edges_that_close_a_cycle_point_upwards():
    graph = nx.DiGraph()
    graph.add_edge("c", "a", confidence=0.2)
    graph.add_edge("b", "a", confidence=0.4)
    graph.add_edge("a", "b", confidence=0.6)
    graph.add_edge("b", "c", confidence=1.0)
    layout = layered_layout(graph, boxes(graph))
    assert layout.upward == {("c", "a"), ("b", "a")}
    assert layout.layers == {"a": 0, "b": 1, "c": 2}
    for (parent, child), route in layout.routes.items():
        upper, lower = (child, parent) if (parent, child) in layout.upward else (parent, child)
        start, end = (route[-1], route[0]) if (parent, child) in layout.upward else (route[0], route[-1])
        assert start[1] == pytest.approx(layout.boxes[upper].bottom)
        assert end[1] == pytest.approx(layout.boxes[lower].top)
    # Both directions have a line of their own.
    assert abs(layout.routes["a", "b"][0, 0] - layout.routes["b", "a"][-1, 0]) > 5


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 16), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.3, 0.6]))
def test_graphs_with_cycles_keep_the_other_promises(n, seed, density):
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    for a, b in permutations(range(n), 2):
        if rng.random() < density:
            graph.add_edge(a, b, confidence=float(rng.random()))
    layout = layered_layout(graph, boxes(graph))
    for a, b in graph.edges:
        assert (layout.layers[a] < layout.layers[b]) == ((a, b) not in layout.upward)
    check_geometry(layout)
    if nx.is_directed_acyclic_graph(graph):
        assert not layout.upward
    # Those that point downwards have no cycle, and each of the others closes one with surer ones.
    down = nx.DiGraph(edge for edge in graph.edges if edge not in layout.upward)
    assert nx.is_directed_acyclic_graph(down)
    for a, b in layout.upward:
        surer = [edge for edge in down.edges if graph.edges[edge]["confidence"] >= graph.edges[a, b]["confidence"]]
        assert nx.has_path(nx.DiGraph(surer), b, a)


def test_a_loop_is_named():
    with pytest.raises(ValueError, match="an edge from 'a' to itself, which cannot be drawn: remove it"):
        layered_layout(nx.DiGraph([("a", "a")]), {"a": (50.0, 24.0)})


@pytest.mark.parametrize("n", [5, 16, 50])
@pytest.mark.parametrize("seed", range(6))
def test_trees_have_no_crossings(n, seed):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    rng = np.random.default_rng(seed)
    graph.add_edges_from((int(rng.integers(max(0, i - 12), i)), i) for i in range(1, n))
    layout = layered_layout(graph, boxes(graph))
    check_geometry(layout)
    assert not crossings(layout)


@pytest.mark.parametrize("n", [5, 16, 50])
@pytest.mark.parametrize("seed", range(3))
def test_networks_of_all_sizes(n, seed):
    graph = make_network(1, n_class_variables=n, n_discrete=n // 8, random_state=seed).truth.graph
    rng = np.random.default_rng(seed)
    layout = layered_layout(graph, {node: (rng.uniform(30, 140), rng.choice([24, 37, 49])) for node in graph})
    check_geometry(layout)
    # A figure of a shape that fits on a screen.
    assert 1 / 3 < layout.width / layout.height < 3


def crossings(layout):
    """Pairs of edges whose routes cross."""
    lines = {edge: sample_route(route, 10) for edge, route in layout.routes.items()}
    return [(a, b) for a, b in combinations(lines, 2) if _cross(lines[a], lines[b])]


def _cross(one, other):
    def side(p, q, r):
        return np.sign(
            (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])
        )

    a, b = one[:-1, None], one[1:, None]
    c, d = other[None, :-1], other[None, 1:]
    return bool(((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0)).any())


def check_geometry(layout):
    """No box over another, no edge over a box, all in the picture."""
    for a, b in combinations(layout.boxes.values(), 2):
        assert max(a.left - b.right, b.left - a.right, a.bottom - b.top, b.bottom - a.top) > 20
    for (parent, child), route in layout.routes.items():
        x, y = sample_route(route).T
        assert x.min() >= -1e-6
        assert x.max() <= layout.width + 1e-6
        for node, box in layout.boxes.items():
            if node not in (parent, child):
                inside = (x > box.left - 2) & (x < box.right + 2) & (y > box.bottom - 2) & (y < box.top + 2)
                assert not inside.any(), f"{parent} -> {child} touches {node}"


def test_an_empty_graph():
    layout = layered_layout(nx.DiGraph(), {})
    assert layout.boxes == {}
    assert layout.width == layout.height == 0
