"""The picture of a graph shows every node and edge at its place in the layout, and the kinds of nodes."""

import io
import sys
import warnings
from itertools import combinations
from xml.etree import ElementTree

import matplotlib

matplotlib.use("Agg")

import matplotlib.figure
import matplotlib.pyplot as plt
import networkx as nx
import pytest

from pmdc.datasets import make_network
from pmdc.report import draw_graph
from pmdc.report.canvas import text_width


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn(ax, kind):
    """What was drawn of a kind ("node", "text" or "edge"), by name."""
    ax.figure.canvas.draw()
    return {p.get_gid().removeprefix(f"{kind}:"): p for p in ax.patches if p.get_gid().startswith(f"{kind}:")}


def legend(ax):
    """The words of the legend, from above and from the left."""
    texts = extents(ax, "legend")
    return sorted(texts, key=lambda name: (-round(texts[name].y1), texts[name].x0))


def extents(ax, kind):
    """Rectangles around what was drawn, in the units of the axes."""
    return {name: patch.get_path().get_extents() for name, patch in drawn(ax, kind).items()}


@pytest.mark.parametrize(("n_class", "n_discrete"), [(2, 0), (5, 1), (7, 2), (16, 4), (50, 6)])
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
    assert set(drawn(ax, "edge")) == set(drawn(ax, "head")) == {f"{parent}:{child}" for parent, child in graph.edges}
    for edge, line in drawn(ax, "edge").items():
        for name, box in nodes.items():
            if name not in edge.split(":"):
                assert not line.get_path().intersects_bbox(box, filled=False), f"{edge} touches {name}"


def test_arrows_end_at_the_border():
    graph = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "c")])
    ax = draw_graph(graph)
    nodes, heads = extents(ax, "node"), extents(ax, "head")
    for edge, line in extents(ax, "edge").items():
        parent, child = edge.split(":")
        assert line.y1 == pytest.approx(nodes[parent].y0)
        assert line.y0 == pytest.approx(heads[edge].y1)
        assert heads[edge].y0 == pytest.approx(nodes[child].y1)


def test_everything_is_in_the_picture():
    graph = make_network(1, n_class_variables=9, random_state=0).truth.graph
    ax = draw_graph(graph, title="A title that is longer than the graph is wide, so that it needs more room")
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    assert legend(ax)
    for artist in [*ax.patches, ax.title]:
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
    assert legend(ax) == ["class variable", "discrete feature"]


@pytest.mark.parametrize("kind", ["class", "discrete"])
def test_one_kind_needs_no_legend(kind):
    graph = nx.DiGraph()
    graph.add_nodes_from("abc", kind=kind)
    assert not legend(draw_graph(graph))


def test_stronger_edges_are_wider():
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("a", "c", 10.0), ("b", "c", 4.0)], weight="strength")
    graph.add_edge("c", "d", strength=-1.0)
    ax = draw_graph(graph)
    lines = drawn(ax, "edge")
    assert legend(ax) == ["arc strength (score lost without the edge, in nats), 0 to 10"]
    widths = [lines[edge].get_linewidth() for edge in ("c:d", "a:b", "b:c", "a:c")]
    assert widths == sorted(widths)
    assert 0 < widths[0] < widths[1] / 1.2
    assert widths[3] > 2 * widths[1]


def test_edges_of_undetermined_direction_have_no_head():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", determined=False)
    graph.add_edge("a", "c", determined=True)
    graph.add_edge("b", "c")
    ax = draw_graph(graph)
    assert set(drawn(ax, "edge")) == {"a:b", "a:c", "b:c"}
    assert set(drawn(ax, "head")) == {"a:c", "b:c"}
    nodes, lines = extents(ax, "node"), extents(ax, "edge")
    assert lines["a:b"].y1 == pytest.approx(nodes["a"].y0)  # the line itself joins both boxes
    assert lines["a:b"].y0 == pytest.approx(nodes["b"].y1)
    assert legend(ax) == ["no arrowhead: the data do not determine the direction"]
    graph.edges["a", "b"]["determined"] = True
    ax = draw_graph(graph)
    assert set(drawn(ax, "head")) == {"a:b", "a:c", "b:c"}
    assert not legend(ax)


def large_graph(n_nodes, n_edges, **attributes):
    """A graph whose i-th edge has the strength i."""
    graph = nx.DiGraph()
    graph.add_nodes_from(f"y{i}" for i in range(n_nodes))
    for strength, (i, j) in enumerate(list(combinations(range(n_nodes), 2))[:n_edges]):
        graph.add_edge(f"y{i}", f"y{j}", strength=float(strength), **attributes)
    return graph


def test_the_strongest_of_many_arcs_are_drawn_and_the_others_counted():
    graph = large_graph(30, 200)
    graph.add_node("alone")
    ax = draw_graph(graph)
    strong = {(a, b) for a, b, strength in graph.edges(data="strength") if strength >= 160}
    assert set(drawn(ax, "edge")) == {f"{a}:{b}" for a, b in strong}
    ends = {node for edge in strong for node in edge}
    assert set(drawn(ax, "node")) == ends | {"alone"}  # a box without arcs has none in the graph either
    caption = " ".join(legend(ax)[1:])
    assert "160 weaker arcs (arc strength at most 159)" in caption
    assert f"{30 - len(ends)} class variables with such arcs only" in caption
    assert len(drawn(draw_graph(graph, max_arcs=None), "edge")) == 200
    few = draw_graph(graph, max_arcs=3)
    assert len(drawn(few, "edge")) == 3
    assert "197 weaker arcs (arc strength at most 196)" in " ".join(legend(few)[1:])


def test_arcs_of_unknown_strength_are_counted_too():
    graph = large_graph(8, 20)
    for edge in list(graph.edges)[:6]:
        graph.edges[edge]["strength"] = float("nan")
    ax = draw_graph(graph, max_arcs=10)
    caption = " ".join(legend(ax)[1:])
    assert "4 weaker arcs (arc strength at most 9)" in caption
    assert "6 arcs of unknown strength" in caption


def test_frequent_arcs_come_before_strong_ones():
    graph = large_graph(6, 12)
    for i, edge in enumerate(graph.edges):
        graph.edges[edge]["confidence"] = 1.0 if i < 5 else 0.4
    ax = draw_graph(graph, max_arcs=5)
    assert set(drawn(ax, "edge")) == {f"{a}:{b}" for a, b in list(graph.edges)[:5]}
    assert "7 less frequent or weaker arcs (in at most 40 % of the models)" in " ".join(legend(ax))


def test_all_arcs_are_drawn_if_nothing_says_which_are_stronger():
    graph = nx.DiGraph(combinations(range(12), 2))
    ax = draw_graph(graph)
    assert len(drawn(ax, "edge")) == 66
    assert not legend(ax)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "all"])
def test_a_wrong_number_of_arcs_is_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="max_arcs"):
        draw_graph(nx.DiGraph([("a", "b")]), max_arcs=wrong)


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


def test_edges_of_unknown_strength_are_dotted():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", strength=3.0)
    graph.add_edge("b", "c")
    graph.add_edge("a", "c", strength=float("nan"))
    ax = draw_graph(graph)
    lines = drawn(ax, "edge")
    assert lines["a:c"].get_linestyle() == lines["b:c"].get_linestyle()
    assert lines["a:b"].get_linestyle() in ("-", "solid")
    assert lines["b:c"].get_linestyle() not in ("-", "solid")
    assert legend(ax) == ["arc strength (score lost without the edge, in nats), 0 to 3", "arc strength unknown"]


def test_ways_are_told_apart_where_they_differ():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", conditioning="partition")
    graph.add_edge("a", "c", conditioning="input")
    ax = draw_graph(graph)
    full, dashed = drawn(ax, "edge")["a:b"], drawn(ax, "edge")["a:c"]
    assert full.get_linestyle() != dashed.get_linestyle()
    assert legend(ax) == ["parent partitions the rows", "parent is an input"]
    graph.edges["a", "b"]["conditioning"] = "input"
    ax = draw_graph(graph)
    assert {line.get_linestyle() for line in drawn(ax, "edge").values()} <= {"-", "solid"}
    assert not legend(ax)


def test_confidence_is_opacity_and_a_percentage_that_touches_nothing():
    graph = nx.DiGraph(n_models=4)
    names = "abcdefgh"
    for i, (parent, child) in enumerate(combinations(names, 2)):
        if i % 3 != 1:
            graph.add_edge(parent, child, confidence=(i % 4 + 1) / 4)
    graph.add_edge("h", "b", confidence=0.25)
    ax = draw_graph(graph)
    lines, labels, nodes = drawn(ax, "edge"), extents(ax, "label"), extents(ax, "node")
    alphas = {graph.edges[tuple(name.split(":"))]["confidence"]: line.get_alpha() for name, line in lines.items()}
    assert sorted(alphas.values()) == [alphas[share] for share in sorted(alphas)]
    assert alphas[1.0] == 1
    assert 0.1 < alphas[0.25] < 0.5
    assert len(labels) > len(lines) / 2
    for first, second in combinations(labels.values(), 2):
        assert not first.overlaps(second)
    for name, label in labels.items():
        assert not any(label.overlaps(box) for box in nodes.values())
        for other, line in lines.items():
            assert other == name or not line.get_path().intersects_bbox(label, filled=False)
    assert legend(ax) == ["share of the 4 models with this edge"]
    # The edge that closes a cycle with surer ones points upwards.
    assert extents(ax, "head")["h:b"].y1 == pytest.approx(nodes["b"].y0)


def test_a_note_stands_below():
    graph = nx.DiGraph([("a", "b")], note="a sentence that is too long to stand in a single line of the legend below")
    ax = draw_graph(graph)
    assert " ".join(legend(ax)) == graph.graph["note"]
    assert len(legend(ax)) == 2
    assert all(text.y1 < extents(ax, "node")["b"].y0 for text in extents(ax, "legend").values())


AWKWARD = ["$x$ and $y", r"\frac{1", "_", "Größe", "", "x" * 60, "two\nlines", "a\tb\0c", "<script>", 'a"b', "&amp;"]


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_can_be_drawn(name):
    ax = draw_graph(nx.DiGraph([(name, "child")]), title=name)
    shown = name.replace("\n", " ").replace("\t", " ").replace("\0", "\ufffd")
    assert set(drawn(ax, "node")) == {shown, "child"}
    file = io.BytesIO()
    ax.figure.savefig(file, format="svg")
    ids = {element.get("id") for element in ElementTree.fromstring(file.getvalue()).iter()}
    assert {f"node:{shown}", f"text:{shown}", f"edge:{shown}:child", "node:child"} <= ids


def test_dollars_are_characters():
    def width(name):
        return extents(draw_graph(nx.DiGraph([(name, "b")])), "text")[name].width

    assert width("$a$") > 2 * width("a")


def test_lines_of_a_name_stand_one_below_the_other():
    box = extents(draw_graph(nx.DiGraph([("two\nlines", "b")])), "node")
    assert box["two lines"].height > 1.5 * box["b"].height


def test_nothing_global_changes():
    before = dict(matplotlib.rcParams)
    figures = plt.get_fignums()
    figure = matplotlib.figure.Figure()
    draw_graph(nx.DiGraph([("a", "b")]), figure.add_subplot())
    assert plt.get_fignums() == figures
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("setting", ["figure.constrained_layout.use", "figure.autolayout"])
def test_layouts_of_the_users_settings_are_not_for_own_figures(setting):
    with plt.rc_context({setting: True}), warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_graph(nx.DiGraph([("a", "b")]), title="T").figure.canvas.draw()


def test_a_dark_figure_has_white_paper():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", confidence=0.5)
    assert not any(patch.get_gid() == "paper" for patch in draw_graph(graph).patches)
    with plt.style.context("dark_background"):
        ax = draw_graph(graph, title="T")
        (paper,) = (patch for patch in ax.patches if patch.get_gid() == "paper")
        assert paper.get_facecolor() == drawn(ax, "behind")["a:b"].get_facecolor() == (1, 1, 1, 1)
        assert paper.get_path().get_extents().bounds == pytest.approx(ax.viewLim.bounds)
        assert ax.title.get_color() == "white"  # it stands above the paper


def test_fonts_of_the_users_settings_have_what_the_own_one_has_not():
    alpha = "\ue000"  # a character for private use, which one of matplotlib's other fonts has
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="missing from font"):
            text_width(alpha)
        with plt.rc_context({"font.family": ["STIXNonUnicode"]}):
            assert text_width(alpha) > 0


def test_names_need_not_be_strings():
    graph = nx.DiGraph([(0, ("a", 1))])
    assert set(drawn(draw_graph(graph), "node")) == {"0", "('a', 1)"}


def test_an_empty_graph_is_an_empty_picture():
    ax = draw_graph(nx.DiGraph(), title="Nothing")
    ax.figure.canvas.draw()
    assert not ax.patches


def test_an_unknown_kind_is_refused():
    graph = nx.DiGraph()
    graph.add_node("age", kind="number")
    with pytest.raises(ValueError, match="'age' has kind='number'; it must be one of 'class', 'discrete'"):
        draw_graph(graph)


def test_without_matplotlib_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.patches", None)
    with pytest.raises(ImportError, match=r'pip install "pmdc\[plot\]"'):
        draw_graph(nx.DiGraph([("a", "b")]))
