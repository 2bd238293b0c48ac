"""Sentences about a learned graph say what is in it."""

import math
from dataclasses import replace

import numpy as np
import pytest

import pmdc as library
from pmdc import GBNC
from pmdc.cli.findings import structure_json
from pmdc.network.words import arcs, describe_structure, headline, n_rows_of, reading


@pytest.fixture
def model():
    """Of y1, which is mostly y0, and y2, which is noise; 300 rows."""
    random = np.random.default_rng(0)
    y0, y2 = random.integers(0, 2, (2, 300))
    y1 = np.where(random.random(300) < 0.9, y0, 1 - y0)
    return GBNC(experts=None).fit(random.normal(size=(300, 1)), np.column_stack([y0, y1, y2]))


def test_the_headline_says_what_depends_on_what(model):
    ((parent, child),) = model.graph_.edges
    assert {parent, child} == {"y0", "y1"}
    model.graph_.edges[parent, child]["determined"] = True
    told = headline(model)
    assert told.startswith(f"{child} depends on {parent}; {parent} and y2 depend on the features alone. ")
    assert told.endswith("(proved).")
    model.graph_.edges[parent, child]["determined"] = False
    told = headline(model)
    assert f"{parent} -- {child}" in told
    assert f"{child} depends on" not in told
    assert "y2 depends on the features alone" in told


def test_strengths_are_told_for_each_row(model):
    ((parent, child, data),) = model.graph_.edges(data=True)
    (arc,) = arcs(model.graph_, child, n_rows_of(model))
    assert n_rows_of(model) == 300
    assert arc.strength == pytest.approx(data["strength"] / 300)
    assert arc.times == pytest.approx(math.exp(data["strength"] / 300))
    assert 1.2 < arc.times < 1.6, "knowing y0 raises the probability of y1 from about 0.5 to 0.9 or 0.1"
    assert f"knowing {parent} makes the true state of {child} {arc.times:.2f} times as likely" in reading(arc, "cv")
    assert "penalty" in reading(arc, "bic")
    likely = math.exp(model.structure_.score / 300)
    assert f"{model.structure_.score / 300:.3f} a row" in describe_structure(model)
    assert f"probability {likely:.2g}" in describe_structure(model)


def test_scores_of_completed_rows_are_not_read_as_probabilities(model):
    model.em_ = None
    told = describe_structure(model)
    assert "probability" not in told
    assert f"{model.structure_.score / 300:.3f} a row (of the completed rows)" in told


def test_a_model_of_an_earlier_version_has_totals_only(model):
    del model.frequencies_
    (child,) = (child for _, child in model.graph_.edges)
    (arc,) = arcs(model.graph_, child, n_rows_of(model))
    assert (arc.strength, arc.times) == (None, None)
    assert "a row" not in headline(model) + describe_structure(model)


def test_what_is_not_proved_is_not_called_so(model):
    score = model.structure_.score
    model.structure_ = replace(model.structure_, status="time limit over 3 families", bound=score + 30, gap=0.1)
    assert "(not proved: time limit)" in headline(model)
    assert "at most 0.1 nats a row" in headline(model)


def test_no_arcs_and_many_class_variables(model):
    edge = next(iter(model.graph_.edges))
    model.graph_.remove_edge(*edge)
    assert headline(model).startswith("No class variable depends on another")
    names = [f"y{k}" for k in range(12)]
    for k in range(11):
        model.graph_.add_edge(names[k], names[k + 1], conditioning="input", strength=10.0 * k)
    model.class_table_.names[:] = names
    told = headline(model)
    assert told.startswith(
        "11 of 12 class variables depend on others, by 11 arcs. The strongest: y11 depends on y10 (x"
    )
    assert told.count("depends on") == 6


def available(n_rows=400, share=0.5, **settings):
    """Of y1, which is mostly y0, with gaps in both; and the model of the complete table."""
    random = np.random.default_rng(1)
    y0 = random.integers(0, 2, n_rows)
    Y = np.column_stack([y0, np.where(random.random(n_rows) < 0.9, y0, 1 - y0)]).astype(float)
    X = random.normal(size=(n_rows, 1))
    gaps = np.where(random.random(Y.shape) < share, np.nan, Y)
    gaps[np.isnan(gaps).all(axis=1)] = Y[np.isnan(gaps).all(axis=1)]
    settings = {"experts": None, "missing_labels": "available", "required_edges": [], **settings}
    settings["forbidden_edges"] = [("y1", "y0")]
    return GBNC(**settings).fit(X, gaps), GBNC(**settings).fit(X, Y), gaps


@pytest.mark.parametrize("criterion", ["cv", "bic"])
def test_rows_without_the_states_do_not_dilute_an_arc(criterion, tmp_path):
    model, complete, gaps = available(criterion=criterion)
    known = ~np.isnan(gaps)
    counted = known.all(axis=1).sum() if criterion == "cv" else known[:, 1].sum()
    (arc,) = arcs(model.graph_, "y1", n_rows_of(model))
    gained = model.scores_["y1"][frozenset({"y0"})] - model.scores_["y1"][frozenset()]
    assert arc.strength == pytest.approx(gained / counted)
    (whole,) = arcs(complete.graph_, "y1", n_rows_of(complete))
    assert arc.times == pytest.approx(whole.times, rel=0.1), "as in the table without gaps"
    assert "n_rows" not in whole.attributes
    assert model.graph_.nodes["y1"]["n_rows"] == known[:, 1].sum()
    assert f"over the {counted} rows that count" in reading(arc, criterion)
    assert "has probability" not in describe_structure(model)
    assert "a row (of the known states)" in describe_structure(model)
    assert ("has probability" in describe_structure(complete)) == (criterion == "cv")
    (edge,) = structure_json(model)["edges"]
    assert edge["strength_per_row"] == pytest.approx(arc.strength)
    library.save(model, tmp_path / "m.skops")
    again = library.load(tmp_path / "m.skops")
    assert (headline(again), describe_structure(again)) == (headline(model), describe_structure(model))
    assert arcs(again.graph_, "y1", n_rows_of(again)) == [arc]


def test_weights_of_cells_do_not_dilute_an_arc():
    random = np.random.default_rng(0)
    y0 = random.integers(0, 2, 300)
    Y = np.column_stack([y0, np.where(random.random(300) < 0.9, y0, 1 - y0)])
    X, weights = random.normal(size=(300, 1)), np.column_stack([np.ones(300), np.full(300, 0.5)])
    settings = {"experts": None, "forbidden_edges": [("y1", "y0")]}
    (plain,) = arcs(GBNC(**settings).fit(X, Y).graph_, "y1", 300)
    model = GBNC(**settings).fit(X, Y, cell_weight=weights)
    (arc,) = arcs(model.graph_, "y1", n_rows_of(model))
    assert arc.times == pytest.approx(plain.times, rel=0.05)
    assert "has probability" not in describe_structure(model)


def test_strengths_of_completed_rows_are_over_all_rows():
    *_, gaps = available(share=0.3)
    em = GBNC(experts=None, forbidden_edges=[("y1", "y0")]).fit(np.arange(400.0)[:, None], gaps)
    (arc,) = arcs(em.graph_, "y1", n_rows_of(em))
    assert "n_rows" not in arc.attributes
    assert arc.strength == pytest.approx(arc.attributes["strength"] / 400)
