"""Graphs written to files are the same when read back."""

import os
import re
import subprocess
import sys
from itertools import pairwise

import networkx as nx
import pytest

from pmdc import GBNC, ClassPowerset
from pmdc.datasets import make_network
from pmdc.report import write_graph

AWKWARD = [
    "plain",
    "two words",
    'say "yes"',
    "back\\slash",
    "ends with \\",
    'both \\"',
    "two\nlines",
    "a\\nb",
    "Größe 日本 🙂",
    "<b>&amp;</b>",
    "->",
    "digraph",
    "1.5",
    "",
    "\ttab",
    "a;b{c}[d]",
]


@pytest.fixture
def graph():
    made = nx.DiGraph(note='a "note"')
    made.add_nodes_from(AWKWARD, kind="class")
    made.add_node("feature", kind="discrete")
    for parent, child in pairwise(AWKWARD):
        made.add_edge(parent, child, strength=1.25, conditioning="partition")
    made.add_edge("feature", "plain", strength=2.5, conditioning="input", confidence=0.25)
    made.edges["plain", "two words"]["determined"] = False
    made.edges["->", "digraph"]["determined"] = True
    return made


def read_dot(text):
    """A strict reader of what we write: a statement a line, all names and values quoted, line breaks in quotes only."""
    quoted = r'"((?:[^"\\]|\\.)*)"'

    def name(text):
        return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)

    assert text.startswith("digraph {\n")
    assert text.endswith("}\n")
    graph, rest = nx.DiGraph(), text.removeprefix("digraph {\n").removesuffix("}\n")
    pattern = re.compile(
        rf"  (?:label={quoted}|{quoted}(?: -> {quoted})? \[((?:{quoted}={quoted}(?:, )?)+)\]);\n", re.DOTALL
    )
    while rest:
        found = pattern.match(rest)
        assert found, rest
        label, first, second, attributes = found.groups()[:4]
        data = {name(key): name(value) for key, value in re.findall(f"{quoted}={quoted}", attributes or "")}
        if label is not None:
            graph.graph["label"] = name(label)
        elif second is None:
            graph.add_node(name(first), **data)
        else:
            graph.add_edge(name(first), name(second), **data)
        rest = rest[found.end() :]
    return graph


def test_graphml_comes_back(graph, tmp_path):
    path = tmp_path / "graph.graphml"
    write_graph(graph, path, title="Title")
    back = nx.read_graphml(path)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert {(a, b): data for a, b, data in back.edges(data=True)} == {
        (a, b): data for a, b, data in graph.edges(data=True)
    }
    assert back.graph["note"] == 'a "note"'
    assert back.graph["title"] == "Title"


@pytest.mark.parametrize("suffix", [".dot", ".gv", ".DOT"])
def test_dot_comes_back(graph, tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    write_graph(graph, path, title="Title")
    back = read_dot(path.read_text(encoding="utf-8"))
    assert list(back) == list(graph)
    assert back.graph["label"].startswith('Title\na "note"\n')
    assert "direction" in back.graph["label"]
    assert {edge for edge in back.edges if back.edges[edge].get("dir") == "none"} == {("plain", "two words")}
    assert set(back.edges) == set(graph.edges)
    for node, kind in graph.nodes(data="kind"):
        assert back.nodes[node]["kind"] == kind
    assert back.nodes["feature"]["shape"] != back.nodes["plain"]["shape"]
    for edge in graph.edges:
        assert float(back.edges[edge]["strength"]) == graph.edges[edge]["strength"]
        assert back.edges[edge]["conditioning"] == graph.edges[edge]["conditioning"]
    assert back.edges["feature", "plain"]["style"] == "dashed"
    assert back.edges["feature", "plain"]["label"] == "25 %"
    assert float(back.edges["feature", "plain"]["penwidth"]) > float(back.edges["plain", "two words"]["penwidth"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_other_tools_read_the_dot(graph, tmp_path):
    pydot = pytest.importorskip("pydot")
    write_graph(graph, tmp_path / "graph.dot")
    (read,) = pydot.graph_from_dot_data((tmp_path / "graph.dot").read_text(encoding="utf-8"))
    names = {re.sub(r"\\(.)", r"\1", node.get_name()[1:-1], flags=re.DOTALL) for node in read.get_nodes()}
    assert names == set(graph)
    assert len(read.get_edges()) == graph.number_of_edges()


def test_a_fitted_model_is_written(tmp_path):
    data = make_network(150, n_class_variables=3, n_discrete=1, random_state=0)
    model = GBNC(experts=None, max_parents=1).fit(data.X, data.Y)
    write_graph(model, str(tmp_path / "model.graphml"))
    back = nx.read_graphml(tmp_path / "model.graphml")
    assert dict(back.nodes(data="kind")) == dict(model.graph_.nodes(data="kind"))
    for parent, child, attributes in model.graph_.edges(data=True):
        assert back.edges[parent, child]["conditioning"] == attributes["conditioning"]
        assert back.edges[parent, child]["strength"] == pytest.approx(attributes["strength"])
    with pytest.raises(ValueError, match="ClassPowerset has no graph"):
        write_graph(ClassPowerset().fit(data.X, data.Y), tmp_path / "powerset.dot")
    assert not (tmp_path / "powerset.dot").exists()


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_pictures_are_written_without_pyplot(graph, tmp_path, suffix, start):
    plt = pytest.importorskip("matplotlib.pyplot")
    figures = plt.get_fignums()
    path = tmp_path / f"graph{suffix}"
    write_graph(nx.DiGraph([("a", "b")]), path, title="T")
    assert path.read_bytes().startswith(start)
    assert plt.get_fignums() == figures
    if suffix == ".svg":
        assert 'id="node:a"' in path.read_text(encoding="utf-8")


def test_pictures_have_the_strongest_arcs_and_other_files_all(tmp_path):
    pytest.importorskip("matplotlib")
    graph = nx.DiGraph()
    for i in range(6):
        graph.add_edge(f"a{i}", f"b{i}", strength=float(i))
    graph.edges["a5", "b5"]["determined"] = False
    for suffix, n_arcs in ((".svg", 2), (".dot", 6), (".graphml", 6)):
        path = tmp_path / f"graph{suffix}"
        write_graph(graph, path, max_arcs=2)
        text = path.read_text(encoding="utf-8")
        assert len(re.findall(r'id="edge:| -> |<edge ', text)) == n_arcs
    assert len(re.findall('id="head:', (tmp_path / "graph.svg").read_text(encoding="utf-8"))) == 1
    with pytest.raises(ValueError, match="max_arcs=0"):
        write_graph(graph, tmp_path / "other.dot", max_arcs=0)


def test_what_cannot_be_written_is_refused(graph, tmp_path):
    with pytest.raises(ValueError, match=r"path='.*graph.jpg': extension='.jpg'.* '.svg'"):
        write_graph(graph, tmp_path / "graph.jpg")
    with pytest.raises(TypeError, match="model is of type str"):
        write_graph("model", tmp_path / "graph.dot")
    with pytest.raises(FileNotFoundError):
        write_graph(graph, tmp_path / "nowhere" / "graph.dot")
    for name, suffix in (("a\0b", ".dot"), ("a\0b", ".graphml"), ("a\x07b", ".graphml"), ("\ud800", ".dot")):
        with pytest.raises(ValueError, match="which .* does not allow"):
            write_graph(nx.DiGraph([(name, "child")]), tmp_path / f"graph{suffix}")
    with pytest.raises(ValueError, match="Two nodes of the graph have the same name"):
        write_graph(nx.DiGraph([(1, "1")]), tmp_path / "graph.dot")
    assert not list(tmp_path.iterdir())


def test_what_was_there_stays_if_writing_fails(graph, tmp_path, monkeypatch):
    path = tmp_path / "graph.dot"
    path.write_text("before")

    def no_room(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match=r"graph.dot cannot be written: No space left on device"):
        write_graph(graph, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_strengths_may_be_whole_numbers_or_unknown(tmp_path):
    graph = nx.DiGraph()
    graph.add_edge("a", "b", strength=1)
    graph.add_edge("b", "c", strength=2.5)
    graph.add_edge("c", "d", strength=float("nan"))
    write_graph(graph, tmp_path / "graph.graphml")
    back = nx.read_graphml(tmp_path / "graph.graphml")
    assert [back.edges[edge]["strength"] for edge in ("ab", "bc")] == [1, 2.5]
    write_graph(graph, tmp_path / "graph.dot")
    widths = read_dot((tmp_path / "graph.dot").read_text()).edges(data="penwidth")
    assert [width for *_, width in widths] == ["1.56", "3.0", None]


def test_names_and_attributes_of_other_types(tmp_path):
    import numpy as np

    graph = nx.DiGraph()
    graph.add_edge(("a", 1), 2, strength=np.float64(0.5), extra=[1, 2])
    write_graph(graph, tmp_path / "graph.graphml")
    back = nx.read_graphml(tmp_path / "graph.graphml")
    assert back.edges["('a', 1)", "2"] == {"strength": 0.5, "extra": "[1, 2]"}


def test_other_formats_need_no_matplotlib(tmp_path):
    program = """
import sys
sys.modules["matplotlib"] = None
import networkx as nx
from pmdc.report import write_graph
graph = nx.DiGraph([("a", "b")])
write_graph(graph, sys.argv[1] + "/graph.dot")
write_graph(graph, sys.argv[1] + "/graph.graphml")
try:
    write_graph(graph, sys.argv[1] + "/graph.svg")
except ImportError as error:
    assert "pmdc[plot]" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"graph.dot", "graph.graphml"}
