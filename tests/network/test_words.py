"""Sentences about a learned graph say what is in it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pmdc import GBNC
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
