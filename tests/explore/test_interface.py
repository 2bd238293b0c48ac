"""The JSON interface says what the library says."""

import datetime
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import load_election, make_network
from pmdc.decisions import CostLoss
from pmdc.explain import explain_difference, explain_row, value_of_features

pytest.importorskip("fastapi", reason='needs the extra "explore"')
from pmdc.explore.interface import Interface
from pmdc.explore.messages import Problem, problem_of
from pmdc.explore.table import Table


@pytest.fixture(scope="module")
def survey():
    data = load_election(levels=3)
    return data.X.reset_index(drop=True), data.Y.reset_index(drop=True)


@pytest.fixture(scope="module")
def model(survey):
    X, Y = survey
    return GBNC(experts=None, max_parents=1).fit(X[:700], Y[:700])


@pytest.fixture(scope="module")
def held_out(survey):
    return tuple(own[700:].reset_index(drop=True) for own in survey)


@pytest.fixture(scope="module")
def interface(model, held_out):
    return Interface(model, Table.of(model, *held_out, "survey.csv", 1))


def ask(interface, path, **body):
    """Send a request through JSON, as a client does."""
    kind, answer = interface.paths[path]
    text = json.dumps(answer(kind.model_validate(json.loads(json.dumps(body)))), allow_nan=False)
    return json.loads(text)


def refused(interface, path, **body):
    kind, answer = interface.paths[path]
    try:
        answer(kind.model_validate(body))
    except ValidationError as error:
        return problem_of(error.errors(), interface.reader.features.names, interface.model.class_names_)
    except Problem as problem:
        return problem
    raise AssertionError("the request was answered")


def rows(interface, *index):
    return [interface.table.values(i) for i in index]


# Predictions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hamming", "subset", "sub-exact"])
@pytest.mark.parametrize(
    "given", [None, {"party": "Democrat"}, {"party": ["Democrat", "independent"], "dole": "liberal"}]
)
def test_predictions_are_those_of_the_library(interface, model, held_out, loss, given):
    index = list(range(20))
    found = ask(interface, "/predict", rows=rows(interface, *index), given=given, loss=loss, top=5)
    known = {name: frozenset(own) if isinstance(own, list) else own for name, own in (given or {}).items()}
    joint = model.predict_joint(held_out[0].iloc[index], given=known or None)
    decision = joint.decide(loss)
    assert [own["prediction"] for own in found["rows"]] == decision.outcome.astype(object).to_dict("records")
    np.testing.assert_allclose([own["expected_loss"] for own in found["rows"]], decision.expected_loss, rtol=1e-12)
    for name, marginal in zip(model.class_names_, joint.marginals(), strict=True):
        np.testing.assert_allclose([own["marginals"][name] for own in found["rows"]], marginal, rtol=1e-12)
    top = joint.top(5)
    for own, outcomes, log_prob in zip(found["rows"], top.outcomes, top.log_prob, strict=True):
        assert [list(one["states"].values()) for one in own["outcomes"]] == outcomes.tolist()
        np.testing.assert_allclose([one["probability"] for one in own["outcomes"]], np.exp(log_prob), rtol=1e-12)


def test_known_states_of_each_row(interface):
    both = rows(interface, 0, 0)
    found = ask(interface, "/predict", rows=both, given=[{"vote": "Dole"}, None])["rows"]
    assert found[0] == ask(interface, "/predict", rows=both[:1], given={"vote": "Dole"})["rows"][0]
    assert found[1] == ask(interface, "/predict", rows=both[:1])["rows"][0]


def test_many_rows_have_the_answers_of_single_rows(interface, monkeypatch):
    index = [3, 1, 4, 1, 5, 9, 2, 6]
    whole = ask(interface, "/predict", rows=rows(interface, *index), top=2, coverage=0.9)
    monkeypatch.setattr("pmdc.explore.interface._STEP", 3)
    assert ask(interface, "/predict", rows=rows(interface, *index), top=2, coverage=0.9) == whole
    single = [ask(interface, "/predict", rows=rows(interface, i), top=2, coverage=0.9)["rows"][0] for i in index]
    for one, own in zip(single, whole["rows"], strict=True):
        assert one["prediction"] == own["prediction"]
        np.testing.assert_allclose(one["marginals"]["party"], own["marginals"]["party"], rtol=1e-12)


def test_the_answer_has_only_what_was_asked_for(interface):
    (own,) = ask(interface, "/predict", rows=rows(interface, 0), marginals=False)["rows"]
    assert own.keys() == {"prediction", "expected_loss", "standard_error", "proved"}


def test_a_long_request_is_given_up(model, held_out, monkeypatch):
    monkeypatch.setattr("pmdc.explore.interface._STEP", 1)
    slow = Interface(model, Table.of(model, *held_out), seconds=0.0)
    for path, body in (
        ("/predict", {"rows": rows(slow, 0, 1)}),
        ("/predict", {"rows": rows(slow, 0)}),
        ("/ask", {"row": rows(slow, 0)[0]}),
        ("/explain", {"row": rows(slow, 0)[0], "variable": "vote"}),
    ):
        problem = refused(slow, path, **body)
        assert (problem.status, problem.code) == (503, "timeout")


def test_kept_rows_change_no_answer(interface, model):
    """Rows that are asked about again, with other known states, losses and warnings in between."""
    first, odd = rows(interface, 0)[0], rows(interface, 1)[0] | {"education": "none at all"}
    questions = [
        {"rows": [row], "given": given, "loss": loss, "top": 3}
        for given in (None, {"party": "Democrat"})
        for loss in ("hamming", "subset")
        for row in (first, odd)
    ]
    fresh = [ask(Interface(model), "/predict", **question) for question in questions]
    for _ in range(2):
        assert [ask(interface, "/predict", **question) for question in questions] == fresh
    assert all("'none at all'" in own["warnings"][0] for own in fresh[1::2])


# Sets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_sets_are_calibrated_on_the_table(interface, model, held_out, coverage):
    found = ask(interface, "/predict", rows=rows(interface, 0, 1, 2), coverage=coverage)
    assert found["calibrated"] == {"n_rows": len(held_out[0])}
    for kind in ("variables", "outcomes"):
        calibration = model.calibrate_sets(*held_out, kind=kind, max_outcomes=100)
        expected = model.predict_set(held_out[0][:3], coverage, calibration=calibration)
        for i, own in enumerate(found["rows"]):
            if kind == "variables":
                chosen = [
                    states[mask[i]].tolist() for states, mask in zip(model.class_table_.states, expected, strict=True)
                ]
                assert list(own["sets"]["states"].values()) == chosen
            else:
                listed = [list(one.values()) for one in own["sets"]["outcomes"]]
                assert listed == expected.outcomes[i].tolist()
                assert own["sets"]["probability"] == pytest.approx(expected.prob[i])


def test_sets_with_known_states_are_calibrated_with_the_same_ones_known(interface, model, held_out):
    X, Y = held_out
    found = ask(interface, "/predict", rows=rows(interface, 0), coverage=0.9, given={"party": "Democrat"})
    calibration = model.calibrate_sets(X, Y, kind="variables", max_outcomes=100, given={"party": Y["party"].tolist()})
    expected = model.predict_set(X[:1], 0.9, calibration=calibration, given={"party": "Democrat"})
    chosen = [s[mask[0]].tolist() for s, mask in zip(model.class_table_.states, expected, strict=True)]
    assert list(found["rows"][0]["sets"]["states"].values()) == chosen


def test_sets_rely_on_the_model_without_known_outcomes(model, held_out):
    bare = Interface(model, Table.of(model, held_out[0]))
    found = ask(bare, "/predict", rows=rows(bare, 0), coverage=0.9)
    assert found["calibrated"] is None
    expected = model.predict_set(held_out[0][:1], 0.9, kind="variables")
    chosen = [s[mask[0]].tolist() for s, mask in zip(model.class_table_.states, expected, strict=True)]
    assert list(found["rows"][0]["sets"]["states"].values()) == chosen


def test_a_set_of_possible_states_is_not_calibrated(interface):
    given = {"party": ["Democrat", "independent"]}
    assert ask(interface, "/predict", rows=rows(interface, 0), coverage=0.9, given=given)["calibrated"] is None


# Explanations -----------------------------------------------------------------------------------------------------


def check_explanation(found, expected):
    assert found["state"] == expected.state
    assert found["base"] == pytest.approx(expected.base, abs=1e-12)
    assert found["log_odds"] == pytest.approx(expected.log_odds, abs=1e-12)
    listed = {(own["kind"], own["name"]): own["contribution"] for own in found["contributions"]}
    assert listed == pytest.approx({(own.kind, own.name): own.contribution for own in expected.contributions})
    assert found["base"] + sum(listed.values()) == pytest.approx(found["log_odds"], abs=1e-9)


@pytest.mark.parametrize("given", [None, {"party": "Republican"}])
def test_a_row_of_the_table_is_explained_as_by_explain_row(interface, model, held_out, given):
    found = ask(interface, "/explain", row=rows(interface, 7)[0], index=7, variable="vote", given=given)
    check_explanation(found, explain_row(model, held_out[0], 7, "vote", given=given))


def test_an_edited_row_takes_the_place_of_the_row(interface, model, held_out):
    edited = rows(interface, 7)[0] | {"age": 30.0, "education": None}
    found = ask(interface, "/explain", row=edited, index=7, variable="vote", state="Dole")
    X = held_out[0].copy()
    X.loc[7, "age"], X.loc[7, "education"] = 30.0, None
    with pytest.warns(UserWarning, match="education"):
        check_explanation(found, explain_row(model, X, 7, "vote", "Dole"))
    assert "'education'" in found["warnings"][0]


def test_two_rows_and_two_sets_of_known_states(interface, model, held_out):
    one, other = rows(interface, 3, 8)
    compared = {"row": one, "given": None}
    found = ask(interface, "/explain", row=other, variable="vote", given={"self": "liberal"}, compare=compared)
    expected = explain_difference(model, held_out[0], (3, 8), "vote", given=(None, {"self": "liberal"}))
    check_explanation(found, expected)
    assert found["reference"] == "the first row"


# What to ask next -------------------------------------------------------------------------------------------------


def test_what_to_ask_next(interface, model, held_out):
    row = rows(interface, 4)[0] | {"age": None, "tv_news": None}
    found = ask(interface, "/ask", row=row, given={"party": "Democrat"}, loss="subset")
    X = held_out[0][4:5].assign(age=np.nan, tv_news=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        joint = model.predict_joint(X, given={"party": "Democrat"})
        known = value_of_features(
            model, held_out[0], "subset", row=X, given={"party": "Democrat"}, features=["age", "tv_news"], max_rows=200
        )
    values = dict(zip(model.class_names_, joint.value_of_information("subset")[0], strict=True))
    del values["party"]
    assert {own["name"]: own["value"] for own in found["class_variables"]} == pytest.approx(values)
    listed = [own["value"] for own in found["class_variables"]]
    assert listed == sorted(listed, reverse=True)
    features = {own["name"]: own["value"] for own in found["features"]}
    assert features == pytest.approx(dict(zip(known.feature_names, known.value, strict=True)))
    assert found["expected_loss"] == pytest.approx(joint.decide("subset").expected_loss[0])
    assert found["exact"]


# Models, losses, types --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        GBNC(time_budget=20, random_state=0),
        GBNC(experts=[LogisticRegression()], random_state=0),
        GBNC(experts=None, blocks=[["vote", "party"]], max_parents=1),
        ChainEnsemble(n_chains=3, random_state=0),
        ClassifierChain(),
        BinaryRelevance(),
    ],
    ids=["default experts", "one expert", "blocks", "ensemble", "chain", "independent"],
)
def test_numbers_of_all_kinds_of_models(survey, model):
    """Predictions, explanations and questions, through JSON, are those of the library."""
    X, Y = survey
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the time budget
        model = clone(model).fit(X[:300], Y[:300])
    held_out = X[300:340].reset_index(drop=True)
    interface = Interface(model, Table.of(model, held_out))
    found = ask(
        interface, "/predict", rows=rows(interface, *range(40)), given={"dole": "liberal"}, loss="subset", top=4
    )
    joint = model.predict_joint(held_out, given={"dole": "liberal"})
    for name, marginal in zip(model.class_names_, joint.marginals(), strict=True):
        np.testing.assert_allclose([own["marginals"][name] for own in found["rows"]], marginal, atol=1e-12)
    top, decision = joint.top(4), joint.decide("subset")
    listed = [[one["probability"] for one in own["outcomes"]] for own in found["rows"]]
    np.testing.assert_allclose(listed, np.exp(top.log_prob), atol=1e-12)
    np.testing.assert_allclose([own["expected_loss"] for own in found["rows"]], decision.expected_loss, atol=1e-12)
    asked = ask(interface, "/ask", row=rows(interface, 3)[0])["class_variables"]
    values = model.predict_joint(held_out[3:4]).value_of_information("hamming")[0]
    expected = dict(zip(model.class_names_, values, strict=True))
    assert {own["name"]: own["value"] for own in asked} == pytest.approx(expected, abs=1e-12)
    if interface.schema["explains"]:
        explained = ask(interface, "/explain", row=rows(interface, 3)[0], index=3, variable="vote")
        check_explanation(explained, explain_row(model, held_out, 3, "vote"))


@pytest.mark.parametrize("make", [BinaryRelevance, ClassifierChain, ClassPowerset])
def test_other_classifiers(survey, make):
    X, Y = survey
    model = make().fit(X[:300], Y[:300])
    interface = Interface(model, Table.of(model, X[300:350].reset_index(drop=True)))
    found = ask(interface, "/predict", rows=rows(interface, 0), top=3)
    expected = model.predict(X[300:301], loss=interface.schema["default_loss"]).iloc[0].tolist()
    assert list(found["rows"][0]["prediction"].values()) == expected
    explains = interface.schema["explains"]
    assert explains == ("average" if make is BinaryRelevance else None)
    if explains is None:
        problem = refused(interface, "/explain", row=rows(interface, 0)[0], variable="vote")
        assert make.__name__ in problem.message
    assert all(own["parents"] == [] for own in interface.schema["class_variables"]) or make is ClassifierChain


def test_a_loss_object_of_the_model_is_offered_first(survey):
    X, Y = survey
    loss = CostLoss({"vote": 5.0})
    model = GBNC(experts=None, max_parents=1, loss=loss).fit(X[:300], Y[:300])
    interface = Interface(model, Table.of(model, X[300:310].reset_index(drop=True)))
    assert interface.schema["default_loss"] == "own"
    found = ask(interface, "/predict", rows=rows(interface, 0))
    assert found["rows"][0]["expected_loss"] == pytest.approx(model.expected_loss(X[300:301])[0])


def test_losses_that_do_not_fit_are_not_offered(interface):
    names = [own["name"] for own in interface.schema["losses"]]
    assert names == ["hamming", "subset", "sub-exact", "balanced"]
    assert "f1_macro" in refused(interface, "/predict", rows=rows(interface, 0), loss="f1_macro").message


def test_a_loss_of_the_whole_batch_takes_all_rows_together(monkeypatch):
    data = make_network(300, n_class_variables=3, n_states=2, random_state=0)
    model = GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])
    interface = Interface(model, Table.of(model, data.X[200:].reset_index(drop=True)))
    monkeypatch.setattr("pmdc.explore.interface._STEP", 10)
    found = ask(interface, "/predict", rows=rows(interface, *range(50)), loss="f1_macro")
    expected = model.predict(data.X[200:250], loss="f1_macro")
    assert [list(own["prediction"].values()) for own in found["rows"]] == expected.to_numpy().tolist()
    assert refused(interface, "/ask", row=rows(interface, 0)[0], loss="f1_macro").field == "loss"


@pytest.fixture(scope="module")
def odd():
    """A table of all kinds of columns, with gaps, and class variables whose states are not strings."""
    rng = np.random.RandomState(0)
    n = 240
    number = rng.normal(size=n)
    X = pd.DataFrame(
        {
            "number": np.where(rng.rand(n) < 0.1, np.nan, number),
            "flag": rng.rand(n) < 0.5,
            "word": np.where(rng.rand(n) < 0.1, None, rng.choice(["a", 'b "<c>"', "ü"], n)),
            "grade": rng.randint(0, 3, n),
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.randint(0, 500, n), "D"),
            "clock": [datetime.time(int(h), 30) for h in rng.randint(0, 24, n)],
        }
    )
    Y = pd.DataFrame({"count": (number > 0) * 2 + rng.randint(0, 2, n), "yes": (number > 0.5) ^ (rng.rand(n) < 0.1)})
    model = GBNC(experts=None, max_parents=1, discrete_features=["flag", "word", "grade"]).fit(X, Y)
    return model, X, Y


def test_all_kinds_of_columns_keep_their_values(odd):
    model, X, Y = odd
    interface = Interface(model, Table.of(model, X, Y))
    kinds = {own["name"]: own["kind"] for own in interface.schema["features"]}
    expected = {"number": "number", "flag": "category", "word": "category", "grade": "category"}
    assert kinds == expected | {"day": "date", "clock": "time"}
    found = ask(interface, "/predict", rows=rows(interface, *range(len(X))))
    assert found["warnings"] == []
    for name, marginal in zip(model.class_names_, model.predict_proba(X), strict=True):
        np.testing.assert_allclose([own["marginals"][name] for own in found["rows"]], marginal, rtol=1e-12)
    assert isinstance(found["rows"][0]["prediction"]["yes"], bool)
    assert isinstance(found["rows"][0]["prediction"]["count"], int)
    first = rows(interface, 0)[0]
    assert isinstance(first["flag"], bool)
    assert first["day"] == str(X["day"][0].date())
    assert first["clock"] == X["clock"][0].isoformat()


def test_known_states_keep_their_types(odd):
    model, X, _ = odd
    interface = Interface(model, Table.of(model, X))
    row = rows(interface, 0)
    found = ask(interface, "/predict", rows=row, given={"count": 2, "yes": True})
    assert found["rows"][0]["prediction"] == {"count": 2, "yes": True}
    assert "'2' is not a state of 'count'" in refused(interface, "/predict", rows=row, given={"count": "2"}).message
    assert "1 is not a state of 'yes'" in refused(interface, "/predict", rows=row, given={"yes": 1}).message
    explained = ask(interface, "/explain", row=row[0], variable="yes", state=True, index=0)
    check_explanation(explained, explain_row(model, X, 0, "yes", True))


@pytest.mark.parametrize("discrete", [False, True])
def test_a_model_fitted_on_an_array(odd, discrete):
    _, X, Y = odd
    array = X[["number", "grade"]].fillna(0.0).to_numpy()
    model = GBNC(experts=None, max_parents=1, discrete_features=[1] if discrete else "from_dtype").fit(array, Y)
    interface = Interface(model, Table.of(model, array))
    found = ask(interface, "/predict", rows=rows(interface, 0, 1))
    np.testing.assert_allclose(found["rows"][1]["marginals"]["count"], model.predict_proba(array[:2])[0][1])
    explained = ask(interface, "/explain", row=rows(interface, 5)[0], index=5, variable="count")
    check_explanation(explained, explain_row(model, array, 5, "count"))


def test_one_class_variable():
    data = make_network(200, n_class_variables=2, random_state=0)
    model = GBNC(experts=None).fit(data.X, data.Y["y0"])
    interface = Interface(model, Table.of(model, data.X, data.Y["y0"]))
    found = ask(interface, "/predict", rows=rows(interface, 0), coverage=0.9, top=10)
    np.testing.assert_allclose(found["rows"][0]["marginals"][model.class_names_[0]], model.predict_proba(data.X[:1])[0])


def test_a_time_zone_is_ignored_as_in_tables(odd):
    model, X, _ = odd
    interface = Interface(model, Table.of(model, X))
    row = rows(interface, 0)[0]
    zone = row | {"day": f"{row['day']}T00:00:00+02:00", "clock": f"{row['clock']}+02:00"}
    here, there = ask(interface, "/predict", rows=[row, zone])["rows"]
    assert here == there


# What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"age": "old"}, "rows[1].age", ["'old'", "number"]),
        ({"age": True}, "rows[1].age", ["True", "number"]),
        ({"age": 10**400}, "rows[1].age", ["number"]),
        ({"age": float("inf")}, "rows[1].age", ["finite"]),
        ({"age": float("nan")}, "rows[1].age", ["finite"]),
        ({"education": "\ud800"}, "rows[1].education", ["Unicode"]),
        ({"\ud800": 1}, "rows[1]", ["Unicode"]),
        ({"education": 3}, "rows[1].education", ["3", "string"]),
        ({"education": ["a"]}, "rows[1].education", ["string"]),
        ({"agee": 3}, "rows[1].agee", ["'agee'", "did you mean 'age'?"]),
    ],
)
def test_wrong_values_are_named(interface, change, field, words):
    one, other = rows(interface, 0, 1)
    problem = refused(interface, "/predict", rows=[one, other | change])
    assert problem.field == field
    assert (problem.status, problem.code) == (422, "invalid")
    for word in [field, *words]:
        assert word in problem.message


def test_a_missing_column_is_named(interface):
    row = rows(interface, 0)[0]
    del row["age"]
    problem = refused(interface, "/predict", rows=[row])
    assert problem.field == "rows[0].age"
    assert "null" in problem.message


@pytest.mark.parametrize(
    ("given", "field", "word"),
    [
        ({"vote": "Clintn"}, "given.vote", "did you mean 'Clinton'?"),
        ({"votes": "Clinton"}, "given.votes", "did you mean 'vote'?"),
        ({"vote": []}, "given.vote", "empty"),
        ({"vote": {"a": 1}}, "given.vote", "'vote'"),
        ({"vote": "x" * 10_000}, "given.vote", "'" + "x" * 50),
        ({"vote": 10**500}, "given.vote", "10000"),
        ({"vote": ["Clinton", "x"]}, "given.vote", "'x'"),
        ([{"vote": "x"}], "given[0].vote", "'x'"),
        ([None, None], "given", "1 rows"),
        ("vote", "given", "object"),
    ],
)
def test_wrong_known_states_are_named(interface, given, field, word):
    problem = refused(interface, "/predict", rows=rows(interface, 0), given=given)
    assert problem.field == field
    assert word in problem.message
    assert len(problem.message) < 200


def test_contradictory_known_states():
    """By structural zeros of the paper's method: c is free, a and b are equal in all rows."""
    Y = pd.DataFrame({"a": ["x", "y"] * 60, "b": ["x", "y"] * 60, "c": ["u", "u", "v"] * 40})
    X = pd.DataFrame({"q": np.linspace(0, 1, 120)})
    model = GBNC.as_in_paper(LogisticRegression()).fit(X, Y)
    interface = Interface(model, Table.of(model, X, Y))
    row, possible, impossible = {"q": 0.5}, {"a": "x", "b": "x"}, {"a": "x", "b": "y"}
    assert ask(interface, "/predict", rows=[row], given=possible)["rows"][0]["prediction"]["b"] == "x"
    problem = refused(interface, "/predict", rows=[row, row, row], given=[possible, None, impossible])
    assert (problem.status, problem.code, problem.field) == (422, "impossible", "given")
    assert "row 2" in problem.message
    for path, more in (
        ("/predict", {"rows": [row]}),
        ("/ask", {"row": row}),
        ("/explain", {"row": row, "variable": "c"}),
    ):
        problem = refused(interface, path, given=impossible, **more)
        assert (problem.status, problem.code, problem.field) == (422, "impossible", "given"), path
    assert ask(interface, "/predict", rows=[row])["rows"]


@pytest.mark.parametrize(
    ("path", "change", "field"),
    [
        ("/predict", {"loss": "hammin"}, "loss"),
        ("/predict", {"loss": None}, "loss"),
        ("/predict", {"top": -1}, "top"),
        ("/predict", {"top": 1.5}, "top"),
        ("/predict", {"coverage": 1.0}, "coverage"),
        ("/predict", {"rows": []}, "rows"),
        ("/predict", {"marginals": "yes"}, "marginals"),
        ("/predict", {"more": 1}, "more"),
        ("/explain", {"variable": "votes"}, "variable"),
        ("/explain", {"variable": "vote", "state": "x"}, "state"),
        ("/explain", {"variable": "vote", "state": ["x"]}, "state"),
        ("/explain", {"variable": "vote", "index": 10_000}, "index"),
        ("/explain", {"variable": "vote", "index": -1}, "index"),
        ("/explain", {"variable": "vote", "by": "x"}, "by"),
        ("/explain", {"variable": "vote", "given": {"party": ["Democrat", "independent"]}}, "given.party"),
        ("/explain", {"variable": "vote", "compare": {}}, "compare.row"),
        ("/explain", {"variable": "vote", "given": {"vote": "Dole"}}, "given"),
        ("/explain", {"variable": "vote", "by": "experts"}, "by"),
    ],
)
def test_wrong_options_are_named(interface, path, change, field):
    row = rows(interface, 0)[0]
    body = {"rows": [row]} if path == "/predict" else {"row": row}
    problem = refused(interface, path, **(body | change))
    assert problem.field == field
    assert field in problem.message


def test_too_many_rows(model, held_out):
    small = Interface(model, Table.of(model, *held_out), max_rows=2)
    problem = refused(small, "/predict", rows=rows(small, 0, 1, 2))
    assert problem.field == "rows"
    assert "3" in problem.message
    assert "2" in problem.message


def test_answers_that_would_take_too_much_memory(interface):
    """The most probable outcomes are limited for all rows together."""
    many = rows(interface, 0) * 500
    problem = refused(interface, "/predict", rows=many, top=1000)
    assert (problem.status, problem.field) == (422, "top")
    assert "at most 400" in problem.message  # 2,000,000 states, five for each outcome
    assert refused(interface, "/predict", rows=many * 10, coverage=0.9).field == "coverage"
    assert ask(interface, "/predict", rows=many[:2], top=1000, marginals=False)["rows"]


def test_numbers_that_are_too_large_for_the_model(odd):
    model, X, _ = odd
    interface = Interface(model, Table.of(model, X))
    row = rows(interface, 0)[0] | {"number": 1.7976931348623157e308}
    assert refused(interface, "/predict", rows=[row]).field == "rows"
    assert refused(interface, "/ask", row=row).field == "row"


def test_without_a_table_only_differences_are_explained(model, interface):
    bare = Interface(model)
    row, other = rows(interface, 0, 1)
    assert bare.schema["explains"] == "differences"
    assert refused(bare, "/explain", row=row, variable="vote").field == "compare"
    assert ask(bare, "/explain", row=row, variable="vote", compare={"row": other})["contributions"]


def test_warnings_name_rows_of_the_whole_request(interface, monkeypatch):
    monkeypatch.setattr("pmdc.explore.interface._STEP", 2)
    listed = rows(interface, 0, 1, 2, 3, 4)
    listed[4]["education"] = "none at all"
    (warning,) = ask(interface, "/predict", rows=listed)["warnings"]
    assert "row 4" in warning
    assert "'none at all'" in warning
