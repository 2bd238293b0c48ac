"""The value of features, against plain loops over the list of all outcomes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from oracles import Enumeration
from pmdc import GBNC, ClassifierChain, ClassPowerset, estimator
from pmdc.decisions import BlockLoss, CostLoss, CustomLoss, FMeasure
from pmdc.decisions.outcome_search import SubExactLoss
from pmdc.explain import value_of_features

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, SEEN = 220, slice(0, 150)


def table(seed=0):
    """Numbers, a category, a date, gaps in some of them, and two class variables that depend on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"width": rng.normal(size=N), "noise": rng.normal(size=N)})
    X["town"] = rng.choice(["north", "south", "west"], N)
    X["when"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 900, N), "D")
    flips = rng.random((N, 3)) < 0.15
    colour = (X["width"] > 0).to_numpy() ^ flips[:, 0]
    size = (X["town"] == "north").to_numpy() ^ flips[:, 1]
    late = (X["when"] > "2022-06-01").to_numpy() ^ colour ^ flips[:, 2]
    for name in ("width", "town", "when"):
        X[name] = X[name].mask(rng.random(N) < 0.1)
    Y = pd.DataFrame({"colour": colour, "size": size, "late": late}).replace({True: "yes", False: "no"})
    return X, Y


X, Y = table()
X_NEW = X.iloc[150:].reset_index(drop=True)
COSTS = [[0.0, 1.0], [5.0, 0.0]]


def f_loss(true, predicted):
    labels = true.sum() + predicted.sum()
    return 1 - (2 * (true & predicted).sum() / labels if labels else 1.0)


LOSSES = {
    "hamming": ("hamming", lambda true, predicted: np.mean(true != predicted)),
    "subset": ("subset", lambda true, predicted: float(np.any(true != predicted))),
    "sub-exact": ("sub-exact", lambda true, predicted: float(np.sum(true != predicted) > 1)),
    "f1_samples": ("f1_samples", f_loss),
    "costs": (
        CostLoss(dict.fromkeys(Y, COSTS)),
        lambda true, predicted: sum(COSTS[t][p] for t, p in zip(true, predicted, strict=True)),
    ),
    "blocks": (
        BlockLoss([["colour", "late"]]),
        lambda true, predicted: (any(true[[0, 2]] != predicted[[0, 2]]) + float(true[1] != predicted[1])) / 2,
    ),
    "function": (
        CustomLoss(lambda true, predicted: float((true != predicted).sum() ** 2)),
        lambda true, predicted: float((true != predicted).sum() ** 2),
    ),
}

MODELS = {
    "features": GBNC(experts=None, required_edges=[("colour", "late")]),
    "an expert": GBNC(experts=[LogisticRegression(max_iter=500)], required_edges=[("colour", "late")]),
    "chain": ClassifierChain(),
    "powerset": ClassPowerset(),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param].fit(X[SEEN], Y[SEEN])


@pytest.fixture(scope="module")
def model():
    return MODELS["features"].fit(X[SEEN], Y[SEEN])


def outcomes_of(model, table):
    joint = model.predict_joint(table)
    outcomes = Enumeration([2, 2, 2], np.zeros((1, 8))).outcomes
    return Enumeration(
        [2, 2, 2], np.column_stack([joint.log_prob_codes(np.tile(own, (len(table), 1))) for own in outcomes])
    )


def decreases(model, having, lacking, function, evidence=None):
    """Expected loss, with the feature, of the decision without it minus that of the decision with it, row by row."""
    truths = [outcomes_of(model, table) for table in (having, lacking)]
    if evidence is not None:
        truths = [truth.given(evidence) for truth in truths]
    risks = [truth.expected_losses(function) for truth in truths]
    if evidence is not None:  # known states are predicted
        wrong = ((evidence[:, None] != -1) & (evidence[:, None] != truths[0].outcomes)).any(axis=2)
        risks = [np.where(wrong, np.inf, risk) for risk in risks]
    rows = np.arange(len(having))
    # Which of several predictions of equal expected loss is chosen without the feature matters with it.
    with_it, without_it = risks
    best = without_it.min(axis=1, keepdims=True)
    worst = np.where(without_it <= best + 1e-9, with_it, -np.inf).max(axis=1)
    chosen = with_it[rows, without_it.argmin(axis=1)]
    assert np.allclose(worst, chosen), "the example has ties"
    return chosen - with_it.min(axis=1)


def without(table, name):
    gone = pd.NaT if name == "when" else None if name == "town" else np.nan
    return table.assign(**{name: pd.Series([gone] * len(table), dtype=table[name].dtype, index=table.index)})


@pytest.mark.filterwarnings("ignore:X, column 'noise'")
@pytest.mark.parametrize("name", LOSSES)
def test_averages_by_a_plain_loop(fitted, name):
    loss, function = LOSSES[name]
    values = value_of_features(fitted, X_NEW, loss)
    assert values.feature_names == list(X)
    for j, feature in enumerate(X):
        known = X_NEW[X_NEW[feature].notna()]
        rows = decreases(fitted, known, without(known, feature), function)
        assert values.n_rows[j] == len(known)
        assert values.value[j] == pytest.approx(rows.mean(), abs=1e-9)
        assert values.standard_error[j] == pytest.approx(rows.std(ddof=1) / np.sqrt(len(rows)), abs=1e-9)
    assert (values.value >= 0).all()
    assert values.value.max() > 0.01


@pytest.mark.parametrize("name", ["hamming", "subset", "costs"])
def test_a_single_row_by_a_plain_loop(fitted, name):
    loss, function = LOSSES[name]
    known = X_NEW.dropna()
    row = known.iloc[[3]]
    row = without(without(row, "width"), "town")
    values = value_of_features(fitted, X_NEW, loss, row=row)
    for j, feature in enumerate(X):
        if feature in ("width", "town"):
            draws = X_NEW[feature].dropna()
            lacking = pd.concat([row] * len(draws), ignore_index=True)
            having = lacking.assign(**{feature: draws.array})
            rows = decreases(fitted, having, lacking, function)
            assert values.n_rows[j] == len(draws)
            assert values.value[j] == pytest.approx(rows.mean(), abs=1e-9)
            assert values.standard_error[j] == pytest.approx(rows.std(ddof=1) / np.sqrt(len(rows)), abs=1e-9)
        else:  # known already
            assert (values.value[j], values.standard_error[j], values.n_rows[j]) == (0, 0, 0)
    assert values.value.max() > 0.002


@pytest.mark.filterwarnings("ignore:X, column 'noise'")
def test_known_states_are_used(model):
    rng = np.random.default_rng(0)
    given = pd.DataFrame({"colour": rng.choice(["yes", "no", None], len(X_NEW))})
    codes = np.full((len(X_NEW), 3), -1)
    codes[:, 0] = given["colour"].map({"no": 0, "yes": 1}).fillna(-1)
    values = value_of_features(model, X_NEW, "subset", given=given)
    for j, feature in enumerate(X):
        kept = X_NEW[feature].notna().to_numpy()
        known = X_NEW[kept]
        rows = decreases(model, known, without(known, feature), LOSSES["subset"][1], codes[kept])
        assert values.value[j] == pytest.approx(rows.mean(), abs=1e-9)
    row = without(X_NEW.dropna().iloc[[0]], "width")
    alone = value_of_features(model, X_NEW, row=row, features="width").value
    told = value_of_features(model, X_NEW, row=row, features="width", given={"colour": "yes"}).value
    assert told < alone, "the width says little but the colour"


def test_experts_of_all_kinds():
    some = X[["width", "town"]]
    model = GBNC(max_parents=1, random_state=0).fit(some[:80], Y[:80])
    new = some[80:140].dropna()
    values = value_of_features(model, new, "subset")
    for j, feature in enumerate(some):
        rows = decreases(model, new, without(new, feature), LOSSES["subset"][1])
        assert values.value[j] == pytest.approx(rows.mean(), abs=1e-9)


def test_what_no_model_uses_is_worth_nothing_at_all():
    some = X.assign(spare=np.random.default_rng(9).choice(["a", "b"], N))
    model = GBNC(experts=None, max_discrete_parents=0, conditioning="partition").fit(some[SEEN], Y[SEEN])
    for loss in ("hamming", "subset", "sub-exact", "f1_samples", BlockLoss([["colour", "size"]])):
        values = value_of_features(model, some[150:], loss)
        for j in (values.feature_names.index("town"), values.feature_names.index("spare")):
            assert values.value[j] == 0
            assert values.standard_error[j] == 0
            assert values.n_rows[j] > 0


def test_a_column_without_values_in_training():
    some = X.assign(empty=np.nan)
    with pytest.warns(UserWarning, match="'empty'"):
        model = GBNC(experts=None).fit(some[SEEN], Y[SEEN])
    values = value_of_features(model, some[150:].assign(empty=1.0))
    assert values.value[4] == 0
    with pytest.warns(UserWarning, match="'empty'.*NaN"):
        values = value_of_features(model, some[150:])
    assert np.isnan(values.value[4])
    assert np.isfinite(values.value[:4]).all()
    with pytest.raises(ValueError, match="X has no row.*'empty'"):
        value_of_features(model, some[150:], features=["empty"])
    assert str(values).splitlines()[-2].split()[0] == "empty"


def test_whether_gaps_were_learned_is_said(model):
    values = value_of_features(model, X_NEW)
    assert dict(zip(values.feature_names, values.learned_gaps.tolist(), strict=True)) == {
        "width": True,
        "noise": False,
        "town": True,
        "when": True,
    }
    lines = str(values).splitlines()
    assert [line.split()[0] for line in lines if line.endswith(" *")] == ["noise"]
    assert "no gaps in training" in lines[-1]


def test_containers_chunks_and_samples(model, monkeypatch):
    expected = value_of_features(model, X_NEW, "subset")
    frames = value_of_features(model, pl.from_pandas(X_NEW), "subset")
    monkeypatch.setattr(estimator, "_CHUNK_CELLS", 7 * model._cells_per_row())
    chunked = [value_of_features(model, X_NEW, loss) for loss in ("subset", BlockLoss([list(Y)]))]
    for other in (frames, *chunked):
        np.testing.assert_allclose(other.value, expected.value, atol=1e-12)
        np.testing.assert_allclose(other.standard_error, expected.standard_error, atol=1e-12)
    first, same, other = (value_of_features(model, X_NEW, max_rows=30, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.value, same.value)
    assert first.n_rows.max() == 30
    assert not np.array_equal(first.value, other.value)
    one = value_of_features(model, X_NEW, "subset", features=["town"])
    assert one.feature_names == ["town"]
    assert one.value[0] == pytest.approx(expected.value[2], abs=1e-12)


def test_asking_changes_nothing(model):
    table, before = X_NEW.copy(), model.predict_proba(X_NEW)
    value_of_features(model, X_NEW, row=without(X_NEW.iloc[[0]], "width"))
    value_of_features(model, X_NEW)
    pd.testing.assert_frame_equal(X_NEW, table)
    for one, again in zip(before, model.predict_proba(X_NEW), strict=True):
        np.testing.assert_array_equal(one, again)


def test_predictions_that_are_not_proved_are_said(model, monkeypatch):
    choose = SubExactLoss.choose

    def unproved(self, distribution, random):
        choice = choose(self, distribution, random)
        return choice._replace(proved=np.zeros(len(choice.codes), dtype=bool))

    monkeypatch.setattr(SubExactLoss, "choose", unproved)
    with pytest.warns(UserWarning, match="loss='sub-exact'.*not proved"):
        value_of_features(model, X_NEW, "sub-exact")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"loss": "hammin"}, "loss='hammin'.*'hamming'"),
        ({"loss": "log"}, "loss='log'"),
        ({"loss": "f1_macro"}, "loss='f1_macro'.*'f1_samples'"),
        ({"loss": FMeasure("micro")}, "loss=FMeasure.*micro"),
        ({"features": ["widht"]}, "features.*'widht'.*'width'"),
        ({"features": []}, r"features=\[\]"),
        ({"features": ["width", "width"]}, "features=.*twice"),
        ({"row": X_NEW[:2]}, "row has 2 rows"),
        ({"max_rows": 1}, "max_rows=1"),
        ({"given": {"colours": "yes"}}, "given.*'colours'.*'colour'"),
        ({"given": {"colour": ["yes"] * 3}}, r"given\['colour'\] has 3 values"),
        ({"X": X_NEW[["width"]]}, "noise"),
        ({"X": X_NEW.assign(width=np.nan), "features": "width"}, "X has no row.*'width'"),
        ({"loss": CustomLoss(lambda t, p: np.nan)}, "nan"),
    ],
)
def test_what_is_wrong_is_said(model, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        value_of_features(model, **{"X": X_NEW, **options})


def test_models_that_have_no_values():
    with pytest.raises(TypeError, match="LogisticRegression"):
        value_of_features(LogisticRegression(), X_NEW)
    with pytest.raises(ValueError, match="not fitted"):
        value_of_features(GBNC(), X_NEW)


def test_impossible_states_are_located():
    some = pd.DataFrame({"town": ["north", "south"] * 40, "width": np.linspace(-1, 1, 80)})
    other = some["town"].map({"north": "a", "south": "b"})
    Y = pd.DataFrame({"u": other, "v": np.where(some["width"] > 0, "x", "y")})
    model = GBNC(experts=None, backoff="none", criterion="bic", conditioning="partition").fit(some, Y)
    with pytest.raises(ValueError, match="row 3"):
        value_of_features(model, some[:6], given={"u": ["a", "b", "a", "a", "a", "b"]}, features="town")
