"""Waterfalls are drawn where there is something to explain; readers get no message for developers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from pmdc import GBNC, ClassifierChain
from pmdc.datasets import make_network
from pmdc.report.page.cases import hardest_section
from pmdc.report.page.findings import Rows, measure
from pmdc.report.page.waterfalls import waterfall
from report_page import report


@pytest.fixture(scope="module")
def data():
    return make_network(160, n_class_variables=2, random_state=0)


def waterfall_of(model, X, Y, name):
    found = measure(model, Rows(X, Y, "here", "row", range(len(X))), 1, 0)
    return waterfall(found, 0, name, Y[name].iloc[0])


def test_a_class_variable_of_one_state_is_not_explained(data, tmp_path):
    Y = data.Y.assign(y0="always")
    model = GBNC(experts=None).fit(data.X[:100], Y[:100])
    X, Y = data.X[100:108], Y[100:108]
    assert waterfall_of(model, X, Y, "y0") is None
    assert waterfall_of(model, X, Y, "y1").tag == "figure"
    text = report(model, X, Y.assign(y1=Y["y1"].where(Y.index != Y.index[0])), tmp_path, n_rows=8).text
    assert "always" in text
    assert "choose" not in text


def test_the_most_surprising_of_the_others_is_explained():
    """A state that is certain by the features is as probable as that of a class variable of one state."""
    x = np.repeat([0.0, 1.0], 60)
    Y = pd.DataFrame({"one": "always", "two": np.where(x > 0, "high", "low")})
    model = GBNC(DecisionTreeClassifier(), experts=None, max_parents=0, backoff="none").fit(x[:, None], Y)
    assert model.predict_joint(x[:, None]).log_prob(Y).max() == 0
    found = measure(model, Rows(x[:, None], Y, "here", "row", range(len(x))), 1, 0)
    assert "No waterfall" in "".join(hardest_section(found).itertext())


def test_models_without_conditional_tables(data):
    model = ClassifierChain().fit(data.X[:100], data.Y[:100])
    assert waterfall_of(model, data.X[100:], data.Y[100:], "y0") is None
    blocks = GBNC(experts=None, blocks=[["y0", "y1"]]).fit(data.X[:100], data.Y[:100])
    assert waterfall_of(blocks, data.X[100:], data.Y[100:], "y0").tag == "figure"


def test_probabilities_of_zero_are_said_in_words_for_readers():
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(size=(60, 2)), random.normal(size=(60, 2)) + 9])
    Y = pd.DataFrame({"a": np.repeat(["no", "yes"], 60), "b": random.choice(["u", "v"], 120)})
    note = waterfall_of(
        GBNC(DecisionTreeClassifier(), experts=None, max_parents=0, backoff="none").fit(X, Y), X, Y, "a"
    )
    assert note.get("class") == "note"
    assert "zero" in note.text
    assert "fit" not in note.text
    assert "backoff" not in note.text
