"""HTML for notebooks is small, self-contained and safe."""

import re
import sys
import warnings
from html.parser import HTMLParser
from itertools import combinations

import matplotlib

matplotlib.use("Agg")

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn

from pmdc import GBNC, BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.inference import JointDistribution
from pmdc.report import html
from pmdc.table.classes import ClassTable

EVIL = "<script>alert('x')</script>"


class Reader(HTMLParser):
    """Elements and attributes of some HTML; complains about what does not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("input", "br", "link", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def check(text, scripts=False):
    """No scripts, nothing to fetch, not too long."""
    assert len(text) < 200_000
    read = Reader(text)
    for tag, attributes in read.elements:
        assert scripts or tag not in ("script", "style", "link", "iframe", "object")
        for name, value in attributes.items():
            assert not name.startswith("on") or scripts
            assert name not in ("src", "href", "xlink:href") or scripts or value.startswith("#")
            if "url(" in (value or ""):
                assert re.search(r"url\(#", value)
    return read


def own_part(model):
    """What we add to scikit-learn's diagram."""
    return html.model_html(model)


@pytest.fixture(scope="module")
def data():
    return make_network(150, n_class_variables=3, n_discrete=1, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return GBNC(experts=None, max_parents=1).fit(data.X, data.Y)


def small(n_rows=1, names=("a", "b")):
    Y = pd.DataFrame({names[0]: ["no", "yes"], names[1]: [EVIL, "high"]})
    tables = [np.log([[0.4, 0.6]] * n_rows), np.log([[[0.5, 0.5], [0.25, 0.75]]] * n_rows)]
    return JointDistribution(ClassTable.fit(Y), [(), (0,)], tables)


def without_matplotlib(monkeypatch):
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_fitted_model_shows_its_diagram_and_its_graph(model):
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "sk-" in text  # scikit-learn's
        assert 'data-id="node:y0"' in text
        assert len(text) < 200_000
    read = check(own_part(model))
    ids = {attributes.get("data-id") for _, attributes in read.elements}
    assert {f"node:{node}" for node in model.graph_} <= ids
    assert {f"edge:{a}:{b}" for a, b in model.graph_.edges} <= ids
    assert set(model.graph_) <= set(read.texts)


def test_scikit_learns_switch_is_heeded(model):
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()


def test_models_without_a_graph_show_the_diagram_alone(data):
    for other in (GBNC(experts=None), ClassPowerset().fit(data.X, data.Y)):
        assert own_part(other) == ""
        assert "sk-" in other._repr_html_()
    for other in (BinaryRelevance(), ClassifierChain()):
        assert "<svg" in own_part(other.fit(data.X, data.Y))


def test_a_model_without_matplotlib_is_a_table(model, monkeypatch):
    without_matplotlib(monkeypatch)
    text = own_part(model)
    read = check(text)
    assert "<svg" not in text
    assert set(model.structure_.parents) <= set(read.texts)
    for parents in model.structure_.parents.values():
        assert all(any(parent in told for told in read.texts) for parent in parents)


def test_a_graph_that_is_too_large_is_a_table(model, monkeypatch):
    monkeypatch.setattr(html, "MAX_CHARACTERS", 1000)
    assert "<table>" in own_part(model)
    monkeypatch.setattr(html, "MAX_CHARACTERS", 10**6)
    monkeypatch.setattr(html, "_MAX_NODES", 2)
    assert "<table>" in own_part(model)


def model_with(graph):
    """A fitted model with this graph."""

    class Fitted(BinaryRelevance):
        def _own_graph(self):
            return graph

    model = Fitted()
    model.classes_ = []
    return model


def test_fifty_nodes_are_not_too_much():
    graph = make_network(1, n_class_variables=50, n_discrete=5, random_state=0).truth.graph
    for edge in graph.edges:
        graph.edges[edge].update(strength=1.0, conditioning="input")
    text = own_part(model_with(graph))
    assert "<svg" in text
    check(text)


def test_many_arcs_are_a_picture_of_the_strongest():
    graph = nx.DiGraph()
    for i, (a, b) in enumerate(combinations([f"y{k}" for k in range(90)], 2)):
        if i % 5 == 0:
            graph.add_edge(a, b, strength=float(i), conditioning="input")
    text = own_part(model_with(graph))
    assert len(re.findall('data-id="edge:', text)) == 40
    assert f"{graph.number_of_edges() - 40} weaker arcs" in text
    check(text)


def test_undetermined_directions(monkeypatch):
    graph = nx.DiGraph()
    graph.add_edge("a", "b", strength=1.0, conditioning="input", determined=False)
    graph.add_edge("b", "c", strength=1.0, conditioning="input", determined=True)
    text = own_part(model_with(graph))
    assert re.findall('data-id="head:(.*?)"', text) == ["b:c"]
    assert "no arrowhead: the data do not determine the direction" in Reader(text).texts
    without_matplotlib(monkeypatch)
    cells = Reader(own_part(model_with(graph))).texts
    assert "a (input, 1, direction not determined)" in cells
    assert "b (input, 1)" in cells


def test_one_row_is_its_network():
    text = small()._repr_html_()
    read = check(text)
    ids = {attributes.get("data-id") for _, attributes in read.elements}
    assert {"node:a", "node:b", "bar:a:yes", "mark:a:yes", "edge:a:b"} <= ids
    assert {"a", "b", "no", "yes", "60 %"} <= set(read.texts)
    assert EVIL in "".join(read.texts)  # in lines


def test_the_page_keeps_its_style():
    assert "<style" not in small()._repr_html_()


def test_several_rows_are_a_table_of_the_first():
    text = small(13)._repr_html_()
    read = check(text)
    assert "and 3 more rows" in read.texts
    assert sum(tag == "tr" for tag, _ in read.elements) == 11
    assert {"yes (60 %)", "45 %", "high (35 %)"} & set(read.texts)
    assert "0 rows" in small(2).rows(slice(0, 0))._repr_html_()


@pytest.mark.parametrize("with_matplotlib", [True, False])
@pytest.mark.parametrize("n_rows", [1, 3])
def test_names_are_harmless(monkeypatch, with_matplotlib, n_rows):
    if not with_matplotlib:
        without_matplotlib(monkeypatch)
    text = small(n_rows, names=(EVIL, "a\"b' onload=x"))._repr_html_()
    read = check(text)
    assert EVIL in "".join(read.texts)
    assert ("<svg" in text) == (with_matplotlib and n_rows == 1)


def test_names_of_models_are_harmless(data, monkeypatch):
    model = BinaryRelevance().fit(data.X, data.Y.rename(columns={"y0": EVIL}))
    assert EVIL in "".join(check(own_part(model)).texts)
    without_matplotlib(monkeypatch)
    assert EVIL in check(own_part(model)).texts


def test_what_a_distribution_refuses_is_told():
    data = make_network(60, n_class_variables=11, n_states=3, random_state=0)
    joint = ClassifierChain().fit(data.X, data.Y).predict_joint(data.X)
    assert "too many to enumerate" in joint._repr_html_()


def test_pictures_on_one_page_have_no_ids_in_common():
    ids = [set(re.findall(r' id="(.*?)"', small()._repr_html_())) for _ in range(2)]
    assert not ids[0] & ids[1]


def test_settings_for_files_do_not_move_the_texts():
    def places():
        read = Reader(small()._repr_html_())
        return [attributes for tag, attributes in read.elements if tag in ("svg", "text")]

    expected = places()
    with matplotlib.rc_context({"savefig.bbox": "tight", "savefig.transparent": True}):
        assert places() == expected


def test_characters_that_matplotlib_has_not_are_left_to_the_reader():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "日本" in small(names=("日本", "b"))._repr_html_()


def test_displays_make_no_pyplot_figures(model):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    model._repr_html_()
    small()._repr_html_()
    assert plt.get_fignums() == before
