"""The picture of a graph shows every node and edge, where the layout says, and tells the kinds apart."""

import sys
from itertools import combinations

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import pytest

from pmdc.datasets import make_network
from pmdc.report import draw_graph


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn(ax, kind):
    """What was drawn of a kind ("node", "text" or "edge"), by name."""
    ax.figure.canvas.draw()
    return {p.get_gid().removeprefix(f"{kind}:"): p for p in ax.patches if p.get_gid().startswith(f"{kind}:")}


def extents(ax, kind):
    """Rectangles around what was drawn, in the units of the axes."""
    return {name: patch.get_path().get_extents() for name, patch in drawn(ax, kind).items()}


@pytest.mark.parametrize(("n_class", "n_discrete"), [(2, 0), (4, 1), (7, 2), (12, 4), (16, 4)])
def test_boxes_do_not_overlap_and_hold_their_text(n_class, n_discrete):
    graph = make_network(1, n_class_variables=n_class, n_discrete=n_discrete, random_state=n_class).truth.graph
    graph = nx.relabel_nodes(graph, {"y1": "a_rather_long name-of.a/class variable"})
    ax = draw_graph(graph)
    nodes, texts = extents(ax, "node"), extents(ax, "text")
    assert set(nodes) == set(texts) == set(graph)
    for first, second in combinations(nodes.values(), 2):
        assert not first.padded(5).overlaps(second)
    for name, box in nodes.items():
        text = texts[name]
        assert box.x0 + 3 < text.x0
        assert text.x1 < box.x1 - 3
        assert box.y0 + 2 < text.y0
        assert text.y1 < box.y1 - 2
    assert set(drawn(ax, "edge")) == {f"{parent}:{child}" for parent, child in graph.edges}


def test_arrows_end_at_the_border():
    graph = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "c")])
    ax = draw_graph(graph)
    nodes = extents(ax, "node")
    for edge, arrow in extents(ax, "edge").items():
        parent, child = edge.split(":")
        assert arrow.y1 == pytest.approx(nodes[parent].y0, abs=0.5)
        # The outline of the head ends before the border by what the width of its line adds to the tip.
        assert nodes[child].y1 < arrow.y0 < nodes[child].y1 + 2


def test_everything_is_in_the_picture():
    graph = make_network(1, n_class_variables=9, random_state=0).truth.graph
    ax = draw_graph(graph, title="A title that is longer than the graph is wide, so that it needs more room")
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for artist in [*ax.patches, ax.get_legend(), ax.title]:
        extent = artist.get_window_extent(renderer)
        assert extent.x0 >= 0
        assert extent.y0 >= 0
        assert extent.x1 <= figure.bbox.width
        assert extent.y1 <= figure.bbox.height


def test_kinds_differ_in_shape_and_colour():
    graph = nx.DiGraph()
    graph.add_node("vote", kind="class")
    graph.add_node("news", kind="discrete")
    ax = draw_graph(graph)
    vote, news = drawn(ax, "node")["vote"], drawn(ax, "node")["news"]
    assert vote.get_edgecolor() != news.get_edgecolor()
    assert vote.get_facecolor() != news.get_facecolor()
    assert len(vote.get_path()) != len(news.get_path())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["class variable", "discrete feature"]


@pytest.mark.parametrize("kind", ["class", "discrete"])
def test_one_kind_needs_no_legend(kind):
    graph = nx.DiGraph()
    graph.add_nodes_from("abc", kind=kind)
    assert draw_graph(graph).get_legend() is None


def test_stronger_edges_are_wider():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("a", "c", 10.0), ("b", "c", 4.0)], weight="strength")
    graph.add_edge("c", "d", strength=-1.0)
    lines = drawn(draw_graph(graph), "edge")
    widths = [lines[edge].get_linewidth() for edge in ("c:d", "a:b", "b:c", "a:c")]
    assert widths == sorted(widths)
    assert 0 < widths[0] < widths[1] / 1.2
    assert widths[3] > 2 * widths[1]


def test_given_axes_are_used():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
    graph = nx.DiGraph([("party", "vote")])
    assert draw_graph(graph, ax=right, title="Structure") is right
    assert right.get_title() == "Structure"
    assert not left.patches
    assert len(plt.get_fignums()) == 1
    for box in extents(right, "node").values():
        assert right.viewLim.x0 < box.x0
        assert box.x1 < right.viewLim.x1
    # A unit is as long upwards as sideways, and a small graph is not blown up.
    width, height = right.get_window_extent().size / figure.dpi * 72
    assert width / right.viewLim.width == pytest.approx(height / right.viewLim.height)
    assert width / right.viewLim.width < 1.5


@pytest.mark.parametrize("name", ["$x$ and $y", r"\frac{1", "_", "Größe", "", "x" * 60])
def test_any_name_can_be_drawn(name):
    ax = draw_graph(nx.DiGraph([(name, "child")]))
    assert set(drawn(ax, "node")) == {name, "child"}


def test_names_need_not_be_strings():
    graph = nx.DiGraph([(0, ("a", 1))])
    assert set(drawn(draw_graph(graph), "node")) == {"0", "('a', 1)"}


def test_an_empty_graph_is_an_empty_picture():
    ax = draw_graph(nx.DiGraph(), title="Nothing")
    ax.figure.canvas.draw()
    assert not ax.patches


def test_an_unknown_kind_is_refused():
    graph = nx.DiGraph()
    graph.add_node("age", kind="continuous")
    with pytest.raises(ValueError, match="'age' has kind='continuous'; it must be one of 'class', 'discrete'"):
        draw_graph(graph)


def test_without_matplotlib_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.patches", None)
    with pytest.raises(ImportError, match=r'pip install "pmdc\[plot\]"'):
        draw_graph(nx.DiGraph([("a", "b")]))
