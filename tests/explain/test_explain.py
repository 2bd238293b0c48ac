"""Explanations of rows add up to the log-odds of the model, and agree with other tools where these apply."""

import math
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import pmdc
from pmdc import GBNC, BinaryRelevance, ChainEnsemble
from pmdc.datasets import load_election, make_network
from pmdc.explain import explain_difference, explain_row
from pmdc.learners import Logistic

DATA = make_network(240, n_class_variables=4, random_state=2)
SURVEY = load_election(levels=3)
MODELS = {
    "default local models": GBNC(experts=None),
    "partition": GBNC(Logistic(C=1.0), experts=None, conditioning="partition", max_parents=2),
    "training criterion": GBNC(Logistic(C=1.0), experts=None, criterion="bic"),
    "naive Bayes": GBNC(GaussianNB(), experts=None, max_parents=1),
    "trees": GBNC(DecisionTreeClassifier(min_samples_leaf=20), experts=None, max_parents=1),
    "blocks": GBNC(Logistic(C=1.0), experts=None, blocks=[["y0", "y1"]], max_parents=1),
    "independent": BinaryRelevance(LogisticRegression()),
}


@cache
def fitted(name):
    return MODELS[name].fit(DATA.X, DATA.Y)


@pytest.fixture(scope="module")
def with_experts():
    return GBNC(experts=[Logistic(C=1.0), DecisionTreeClassifier(min_samples_leaf=20)], max_parents=1, cv=2).fit(
        SURVEY.X[:150], SURVEY.Y[:150]
    )


def log_odds(model, X, row, variable, state, given=None):
    p = model.predict_joint(X[row : row + 1], given).marginal(variable)[0]
    k = model.class_names_.index(variable)
    p = p[model.class_table_.states[k].tolist().index(state)]
    return math.log(p / (1 - p))


def total(found):
    return found.base + sum(part.contribution for part in found.contributions)


def check(found, model, X, row, given=None):
    assert found.log_odds == pytest.approx(log_odds(model, X, row, found.variable, found.state, given), abs=1e-9)
    assert total(found) == pytest.approx(found.log_odds, abs=1e-9)
    assert found.prob == pytest.approx(1 / (1 + math.exp(-found.log_odds)))
    own = {part.name: part for part in found.contributions}
    for name, parts in found.through.items():
        assert sum(part.contribution for part in parts) == pytest.approx(own[name].contribution, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("known", [(), ("y1",), ("y1", "y3")])
def test_contributions_add_up_to_the_log_odds(name, known):
    model = fitted(name)
    for row in (0, 17):
        given = {one: DATA.Y[one].iloc[row + 1] for one in known}
        found = explain_row(model, DATA.X, row, "y0", given=given, max_background=20)
        check(found, model, DATA.X, row, given)
        assert {part.name for part in found.contributions} == {*DATA.X, "y1", "y2", "y3"}


@pytest.mark.parametrize("by", ["features", "experts"])
def test_experts(with_experts, by):
    for row, given in ((0, None), (5, {"party": "Democrat", "self": "liberal"})):
        for variable in ("vote", "clinton"):
            found = explain_row(with_experts, SURVEY.X, row, variable, given=given, by=by, max_background=20)
            check(found, with_experts, SURVEY.X, row, given)
    experts = {part.name: part for part in found.contributions if part.kind == "expert"}
    assert bool(experts) == (by == "experts")
    assert all(part.standard_error < 1e-9 for part in experts.values())
    same = explain_row(with_experts, SURVEY.X, row, variable, given=given, max_background=20)
    direct = sum(part.contribution for part in same.contributions if part.kind == "feature")
    if by == "experts":
        assert sum(part.contribution for part in experts.values()) == pytest.approx(direct, abs=1e-9)


def test_missing_values():
    X = DATA.X.mask(np.random.default_rng(0).random(DATA.X.shape) < 0.2)
    model = GBNC(experts=None, max_parents=1).fit(X, DATA.Y)
    row = int(np.flatnonzero(X.isna().any(axis=1))[0])
    found = explain_row(model, X, row, "y1", max_background=30)
    check(found, model, X, row)
    gone = set(X.columns[X.iloc[row].isna()])
    assert gone
    assert {part.name for part in found.contributions if part.kind == "feature" and part.value is None} == gone


def test_dates_are_one_feature():
    X = DATA.X.assign(visit=pd.date_range("2024-01-01", periods=len(DATA.X), freq="13h"))
    model = GBNC(experts=None, max_parents=1).fit(X, DATA.Y)
    found = explain_row(model, X, 3, "y0", max_background=20)
    check(found, model, X, 3)
    assert [part.name for part in found.contributions].count("visit") == 1


def test_states_that_are_numbers():
    Y = DATA.Y.assign(y0=np.arange(len(DATA.Y)) % 3)
    model = GBNC(Logistic(), experts=None, max_parents=1).fit(DATA.X, Y)
    assert explain_row(model, DATA.X, 0, "y0", 2, max_background=5).state == 2
    with pytest.raises(ValueError, match=r"state='2'.*states 0, 1, 2"):
        explain_row(model, DATA.X, 0, "y0", "2")


def test_dates_are_written_as_dates():
    visit = pd.date_range("2024-01-01", periods=len(DATA.X), freq="D")
    model = GBNC(Logistic(), experts=None, max_parents=1).fit(DATA.X.assign(visit=visit), DATA.Y)
    text = str(explain_row(model, DATA.X.assign(visit=visit), 3, "y0", max_background=5))
    assert "visit = 2024-01-04 " in text


def test_known_states_share_what_they_say():
    """What is separated only by what is known at the end contributes; what is separated all along does not."""
    model = GBNC(Logistic(), experts=None, max_parents=1, required_edges=[("y0", "y1"), ("y1", "y2")])
    model.fit(DATA.X, DATA.Y)
    chain = {"y1": DATA.Y["y1"].iloc[0], "y2": DATA.Y["y2"].iloc[0]}
    both = explain_row(model, DATA.X, 0, "y0", DATA.Y["y0"].iloc[0], given=chain, max_background=10)
    one = explain_row(model, DATA.X, 0, "y0", both.state, given={"y1": chain["y1"]}, max_background=10)
    assert both.log_odds == pytest.approx(one.log_odds, abs=1e-9)
    shared, alone = ({part.name: part.contribution for part in found.contributions} for found in (both, one))
    assert abs(shared["y2"]) > 1e-6
    assert abs(alone["y2"]) < 1e-12


def test_an_unused_feature_contributes_nothing():
    X = DATA.X.assign(constant=1.0, label=np.arange(len(DATA.X)) % 7)
    X["label"] = X["label"].astype(str)
    model = GBNC(Logistic(), experts=None, forbidden_edges=[("label", f"y{k}") for k in range(4)]).fit(X, DATA.Y)
    found = explain_row(model, X, 0, "y0", given={"y1": DATA.Y["y1"].iloc[0]}, max_background=20)
    parts = [*found.contributions, *(part for own in found.through.values() for part in own)]
    unused = [part for part in parts if part.name in ("constant", "label")]
    assert len(unused) == 8
    assert all(part.contribution == 0 and part.standard_error == 0 for part in unused)


def test_logistic_regression_is_exact():
    """The contributions of features are the coefficients times the distances from the mean row."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 9)), columns=list("abcdefghi"))
    y = pd.DataFrame({"y": np.where(X["a"] - 2 * X["b"] + rng.normal(size=300) > 0, "yes", "no")})
    model = GBNC(LogisticRegression(C=2.0), experts=None, criterion="cll").fit(X, y)
    corners = np.vstack([np.zeros(9), np.eye(9)])
    p = model.predict_joint(pd.DataFrame(corners, columns=X.columns)).marginal("y")[:, 1]
    scores = np.log(p / (1 - p))
    slopes = scores[1:] - scores[0]
    background = X[:50]
    found = explain_row(model, background, 7, "y", "yes")
    parts = {part.name: part for part in found.contributions}
    for name, slope in zip(X, slopes, strict=True):
        expected = slope * (background[name].iloc[7] - background[name].mean())
        assert parts[name].contribution == pytest.approx(expected, abs=1e-9)
        assert parts[name].standard_error < 1e-9
    shap = pytest.importorskip("shap")
    plain = LogisticRegression()
    plain.coef_, plain.intercept_ = slopes[None], scores[:1]
    explainer = shap.LinearExplainer(plain, shap.maskers.Independent(background.to_numpy(), 50))
    values = explainer(background.iloc[7:8].to_numpy())
    assert [parts[name].contribution for name in X] == pytest.approx(values.values[0], abs=1e-9)
    assert found.base == pytest.approx(float(np.ravel(values.base_values)[0]), abs=1e-9)


def test_trees_as_in_shap():
    shap = pytest.importorskip("shap")
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
    y = pd.DataFrame({"y": np.where(X["a"] * X["b"] + X["c"] + rng.normal(size=300) > 0, "yes", "no")})
    trees = GradientBoostingClassifier(n_estimators=20, random_state=0)
    model = GBNC(trees, experts=None, criterion="cll").fit(X, y)
    background = X[:40]
    plain = trees.fit(X.to_numpy(), y["y"])
    explainer = shap.TreeExplainer(plain, background.to_numpy(), feature_perturbation="interventional")
    expected = explainer.shap_values(background.iloc[3:4].to_numpy())[0]
    found = explain_row(model, background, 3, "y", "yes")
    parts = {part.name: part.contribution for part in found.contributions}
    assert [parts[name] for name in X] == pytest.approx(expected, abs=1e-6)


def test_the_most_probable_state_is_explained():
    model = fitted("partition")
    proba = model.predict_proba(DATA.X[:30], {"y1": DATA.Y["y1"].iloc[0]})[2]
    for row in range(0, 30, 10):
        found = explain_row(model, DATA.X, row, "y2", given={"y1": DATA.Y["y1"].iloc[0]}, max_background=5)
        assert found.state == model.classes_[2][proba[row].argmax()]


def test_two_rows_and_two_sets_of_known_states():
    model = fitted("default local models")
    known = {"y1": DATA.Y["y1"].iloc[0]}
    there = explain_difference(model, DATA.X, (3, 8), "y0", DATA.Y["y0"].iloc[0], given=(None, known))
    back = explain_difference(model, DATA.X, (8, 3), "y0", there.state, given=(known, None))
    assert there.base == pytest.approx(log_odds(model, DATA.X, 3, "y0", there.state), abs=1e-9)
    assert there.log_odds == pytest.approx(log_odds(model, DATA.X, 8, "y0", there.state, known), abs=1e-9)
    assert total(there) == pytest.approx(there.log_odds, abs=1e-9)
    opposite = {part.name: part.contribution for part in back.contributions}
    for part in there.contributions:
        if part.kind == "class variable":
            assert opposite[part.name] == pytest.approx(-part.contribution, abs=1e-9)
    y1 = next(part for part in there.contributions if part.name == "y1")
    assert y1.value == (None, known["y1"])


def test_the_same_row_with_other_known_states():
    model = fitted("partition")
    states = DATA.Y["y1"].unique()
    found = explain_difference(model, DATA.X, 4, "y0", given=({"y1": states[0]}, {"y1": states[1]}))
    changed = {part.name for part in found.contributions if part.contribution}
    assert changed <= {"y1"}
    assert total(found) == pytest.approx(found.log_odds, abs=1e-9)
    assert found.reference == "row 4"


def test_the_same_answer_each_time():
    model = fitted("default local models")
    one, two = (explain_row(model, DATA.X, 5, "y0", max_background=30) for _ in range(2))
    assert one == two
    other = explain_row(model, DATA.X, 5, "y0", max_background=30, random_state=1)
    assert other.base != one.base  # another sample of the background


@pytest.mark.parametrize("kind", ["array", "polars"])
def test_other_tables(kind):
    X = DATA.X.select_dtypes("number")
    if kind == "array":
        X, Y = X.to_numpy(), DATA.Y.to_numpy()
    else:
        polars = pytest.importorskip("polars")
        X, Y = polars.from_pandas(X), polars.from_pandas(DATA.Y)
    model = GBNC(experts=None, max_parents=1).fit(X, Y)
    found = explain_row(model, X, 2, "y0", max_background=20)
    assert total(found) == pytest.approx(found.log_odds, abs=1e-9)


def test_a_saved_model(tmp_path, with_experts):
    path = tmp_path / "model.skops"
    pmdc.save(with_experts, path)
    again = pmdc.load(path, trusted=["sklearn.tree._tree.Tree"])
    one, two = (explain_row(model, SURVEY.X, 1, "vote", max_background=10) for model in (with_experts, again))
    assert one == two


def test_a_table_and_text():
    model = fitted("partition")
    known = DATA.Y["y1"].iloc[0]
    found = explain_row(model, DATA.X, 0, "y0", given={"y1": known}, max_background=10)
    frame = found.to_frame()
    assert list(frame) == ["kind", "name", "value", "contribution", "standard_error"]
    assert frame["contribution"].abs().is_monotonic_decreasing
    text = str(found)
    assert f"y0 = {found.state}" in text
    assert f"y1 = {known}" in text
    assert "y2 (not known)" in text
    assert f"{found.log_odds:.3f}" in text


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variable": "y9"}, ["variable", "'y9'", "'y0'"]),
        ({"state": "s9"}, ["state='s9'", "'y0'"]),
        ({"state": ["s0"]}, ["state=['s0']", "'y0'"]),
        ({"row": 240}, ["row=240", "0 to 239"]),
        ({"row": -1}, ["row=-1", "0 to 239"]),
        ({"row": "a"}, ["row='a'"]),
        ({"given": {"y9": "s0"}}, ["given", "'y9'"]),
        ({"given": {"y1": "s9"}}, ["given", "'y1'", "'s9'"]),
        ({"given": {"y0": None}, "variable": "y9"}, ["'y9'"]),
        ({"by": "trees"}, ["by='trees'", "'experts'"]),
        ({"by": "experts"}, ["by='experts'", "'y0'", "'features'"]),
        ({"max_background": 0}, ["max_background=0"]),
        ({"n_permutations": 1}, ["n_permutations=1"]),
    ],
)
def test_complaints(options, words):
    model = fitted("partition")
    arguments = {"row": 0, "variable": "y0"} | options
    with pytest.raises(ValueError) as error:  # noqa: PT011
        explain_row(model, DATA.X, **arguments)
    for word in words:
        assert word in str(error.value)


def test_the_variable_itself_is_known():
    model = fitted("partition")
    with pytest.raises(ValueError, match="'y0'"):
        explain_row(model, DATA.X, 0, "y0", given={"y0": DATA.Y["y0"].iloc[0]})


def test_models_that_cannot_be_explained():
    for X in (None, DATA.X[:0]):
        with pytest.raises(ValueError, match=r"^X must be a table"):
            explain_row(fitted("partition"), X, 0, "y0")
    with pytest.raises(TypeError, match="ChainEnsemble"):
        explain_row(ChainEnsemble(LogisticRegression()).fit(DATA.X, DATA.Y), DATA.X, 0, "y0")
    paper = GBNC(DecisionTreeClassifier(), experts=None, criterion="cll", backoff="none", max_parents=1)
    paper.fit(DATA.X, DATA.Y)
    with pytest.raises(ValueError, match="backoff='parents'"):
        explain_row(paper, DATA.X, 0, "y0")


def test_known_states_that_contradict_each_other():
    """By structural zeros of the paper's method; the error names the evidence."""
    Y = pd.DataFrame({"a": ["x", "y"] * 60, "b": ["x", "y"] * 60, "c": ["u", "u", "v"] * 40})
    X = pd.DataFrame({"q": np.linspace(0, 1, 120)})
    model = GBNC.as_in_paper(LogisticRegression()).fit(X, Y)
    with pytest.raises(ValueError, match=r"given|backoff='parents'"):
        explain_row(model, X, 0, "c", given={"a": "x", "b": "y"})
