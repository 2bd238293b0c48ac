"""Missing values in the features: filled and indicated, a state of their own, or NaN for estimators that take it."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pmdc
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.learners import Logistic, NaiveBayes
from pmdc.learners.nan import takes_nan
from pmdc.table.columns import read_columns
from pmdc.table.features import FeatureTable
from pmdc.table.gaps import weighted_median

DATA = make_network(160, n_class_variables=3, n_continuous=3, n_discrete=1, random_state=3)
NUMBERS = DATA.X.select_dtypes("number").to_numpy()
Y = DATA.Y
TRAIN, TEST = slice(0, 120), slice(120, 160)


def holes(X, columns=(0, 2), seed=0):
    """Return a copy with NaN in a quarter of the cells of some columns."""
    random, X = np.random.default_rng(seed), X.copy()
    for j in columns:
        X[random.random(len(X)) < 0.25, j] = np.nan
    return X


GAPS = holes(NUMBERS)


def by_hand(X, train=GAPS[TRAIN]):
    """Fill with the medians of the training rows, then append indicators of columns with gaps there."""
    indicated = np.isnan(train).any(axis=0)
    return np.hstack([np.where(np.isnan(X), np.nanmedian(train, axis=0), X), np.isnan(X[:, indicated])])


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def table_of(X, **options):
    columns = read_columns(X, "X", "test", allow_missing=True)
    table = FeatureTable.fit(columns, **options)
    return table, table.encode(columns)


@pytest.mark.parametrize(
    "model",
    [
        GBNC(experts=None, max_parents=2),
        GBNC(max_parents=1, random_state=0),
        GBNC(LogisticRegression(), experts=None, max_parents=1),
        GBNC(experts=[LogisticRegression()], max_parents=1),
        BinaryRelevance(),
        BinaryRelevance(LogisticRegression(), calibrate=True),
        ClassifierChain(),
        ChainEnsemble(n_chains=2, random_state=0),
        ClassPowerset(),
    ],
    ids=repr,
)
def test_gaps_are_filled_and_indicated_as_by_hand(model):
    found = model.fit(GAPS[TRAIN], Y[TRAIN]).predict_proba(GAPS[TEST])
    model.fit(by_hand(GAPS[TRAIN]), Y[TRAIN])
    assert same(found, model.predict_proba(by_hand(GAPS[TEST])))


@pytest.mark.parametrize("estimator", [GaussianNB(), NaiveBayes()])
def test_naive_bayes_has_no_indicators(estimator):
    model = GBNC(estimator, max_parents=1)
    found = model.fit(GAPS[TRAIN], Y[TRAIN]).predict_proba(GAPS[TEST])
    model.fit(by_hand(GAPS[TRAIN])[:, :3], Y[TRAIN])
    assert same(found, model.predict_proba(by_hand(GAPS[TEST])[:, :3]))


def test_without_gaps_nothing_is_different():
    table, features = table_of(NUMBERS)
    assert features.missing is None
    assert np.array_equal(features.continuous, NUMBERS)
    assert table.gaps == {}
    assert table.filling.values == pytest.approx(np.median(NUMBERS, axis=0))


# ---------------------------------------------------------------- what is filled in


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [5.0, 1.0, 3.0], [1.0, 1.0, 7.0, 9.0], [1e308, 1.5e308]])
def test_the_median(values):
    values = np.array(values)
    with np.errstate(over="ignore"):
        expected = np.median(values)
    assert weighted_median(values) == (1.25e308 if np.isinf(expected) else expected)


def test_weights_are_counts_of_rows_in_the_median():
    random = np.random.default_rng(0)
    for _ in range(200):
        n = random.integers(1, 8)
        values, weights = random.integers(0, 5, n).astype(float), random.integers(1, 4, n)
        assert weighted_median(values, weights.astype(float)) == np.median(np.repeat(values, weights))


def test_rows_of_weight_zero_neither_fill_nor_count():
    X = np.array([[1.0, np.nan], [2.0, 1.0], [3.0, 2.0], [100.0, 3.0]])
    table, features = table_of(X, weights=np.array([0.0, 1.0, 1.0, 1.0]))
    assert table.filling.values == (3.0, 2.0)
    assert table.gaps == {}
    assert features.continuous[0].tolist() == [1.0, 2.0]


def test_other_rows_do_not_change_what_is_filled_in():
    model = BinaryRelevance().fit(GAPS[TRAIN], Y[TRAIN])
    one_by_one = [model.predict_proba(GAPS[[i]])[0] for i in range(120, 160)]
    assert np.allclose(np.vstack(one_by_one), model.predict_proba(GAPS[TEST])[0], rtol=0, atol=1e-12)
    assert model.feature_table_.filling.values == pytest.approx(np.nanmedian(GAPS[TRAIN], axis=0))


def test_every_container_gives_the_same():
    frame = pd.DataFrame(GAPS, columns=list("abc"))
    nullable = frame.astype("Float64")
    polars = pl.DataFrame({name: [None if np.isnan(v) else v for v in frame[name]] for name in frame})
    objects = np.array([[None if np.isnan(v) else v for v in row] for row in GAPS], dtype=object)
    masked = np.ma.masked_invalid(GAPS)
    expected = by_hand(GAPS, GAPS)
    for X in (frame, nullable, polars, pl.from_pandas(frame), objects, objects.tolist(), masked, GAPS):
        table, features = table_of(X)
        assert np.array_equal(features.continuous, expected)
        assert np.array_equal(features.missing, np.isnan(GAPS))
        assert list(table.gaps.values()) == np.isnan(GAPS).sum(axis=0)[[0, 2]].tolist()
        assert np.array_equal(features.with_nan().continuous, GAPS, equal_nan=True)


# ---------------------------------------------------------------- dates


def test_gaps_in_dates():
    days = pd.Series(pd.date_range("2020-01-01", periods=9, freq="100D"))
    days[[2, 5]] = pd.NaT
    known = days.dropna()
    for X in (
        pd.DataFrame({"when": days}),
        pl.DataFrame({"when": [None if day is pd.NaT else day for day in days]}),
        pd.DataFrame({"when": [None if day is pd.NaT else day.date() for day in days]}, dtype=object),
    ):
        table, features = table_of(X)
        assert table.date_names == {"when": ["days", "month", "weekday"]}
        assert table.gaps == {"when": 2}
        assert features.continuous.shape == (9, 4), "one indicator for the column"
        assert features.continuous[:, 3].tolist() == days.isna().astype(float).tolist()
        assert features.continuous[2, 1:3].tolist() == [known.dt.month.median(), known.dt.day_of_week.median()]
        assert not np.isnan(features.continuous).any()


def test_gaps_in_times_of_day():
    X = pd.DataFrame({"at": [datetime.time(6), None, datetime.time(12), datetime.time(9)]}, dtype=object)
    table, features = table_of(X)
    assert features.continuous.tolist() == [[6, 0], [9, 1], [12, 0], [9, 0]]
    only = read_columns(pd.DataFrame({"at": [None, None]}, dtype=object), "X", "test", allow_missing=True)
    assert table.encode(only).continuous.tolist() == [[9, 1]] * 2


# ---------------------------------------------------------------- discrete features


@pytest.mark.parametrize(
    ("values", "states"),
    [
        (["a", None, "b", "a", "b"], ["a", "b", "missing"]),
        (["missing", None, "b", "missing", "b"], ["b", "missing", "missing_"]),
        ([True, None, False, True, True], [False, True, "missing"]),
        (pd.Categorical(["a", None, "b", "a", "b"], categories=["b", "c", "a"]), ["b", "c", "a", "missing"]),
    ],
)
def test_missing_is_a_state_of_its_own(values, states):
    table, features = table_of(pd.DataFrame({"x": values}))
    assert table.states[0].tolist() == states
    assert table.gaps == {"x": 1}
    assert features.discrete[1, 0] == len(states) - 1
    assert (features.discrete[[0, 2, 3, 4], 0] < len(states) - 1).all()
    assert table.values(0).tolist() == states[:-1]


def test_numbers_that_are_codes():
    X = np.array([[1.0], [np.nan], [2.0], [np.nan], [2.0], [1.0]])
    table, features = table_of(X, discrete_features=[0])
    assert table.states[0].tolist() == [1.0, 2.0, "missing"]
    assert features.discrete.ravel().tolist() == [0, 2, 1, 2, 1, 0]
    whole = read_columns([[2], [1], [5]], "X", "test", allow_missing=True)
    assert table.encode(whole).discrete.ravel().tolist() == [1, 0, -1]


def test_missing_beside_other_values():
    words = [f"w{i}" for i in range(300)] * 2 + ["often"] * 20 + [None] * 5
    with pytest.warns(UserWarning, match="300 most|301 values|other"):
        table, features = table_of(pd.DataFrame({"x": pd.Series(words, dtype=object)}))
    assert table.states[0].tolist() == ["often", "other values", "missing"]
    assert features.discrete[[0, 600, 620], 0].tolist() == [1, 0, 2]


def test_a_model_learns_from_a_missing_category():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 200)
    x = np.where(y == 1, None, random.choice(["a", "b"], 200))
    model = GBNC(experts=None).fit(pd.DataFrame({"x": x, "n": random.random(200)}), pd.DataFrame({"y": y, "z": 1 - y}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict(pd.DataFrame({"x": [None, "a"], "n": [0.5, 0.5]}))
    assert found["y"].tolist() == [1, 0]


# ---------------------------------------------------------------- gaps only at prediction


def one_warning(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        answer = call()
    assert len(found) == 1
    return str(found[0].message), answer


@pytest.mark.parametrize("model", [GBNC(experts=None, max_parents=1), BinaryRelevance(GaussianNB())], ids=repr)
def test_new_gaps_are_filled_with_one_warning(model):
    model.fit(NUMBERS[TRAIN], Y[TRAIN])
    X = NUMBERS[TEST].copy()
    X[[3, 5], 1] = np.nan
    message, found = one_warning(lambda: model.predict_proba(X))
    assert "column 'x1': 2 row(s)" in message
    assert "row 3" in message
    median = np.median(NUMBERS[TRAIN], axis=0)[1]
    assert f"{median:.6g}" in message
    X[[3, 5], 1] = median
    assert same(found, model.predict_proba(X))


def test_a_new_gap_of_a_date_has_one_warning():
    X = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=120, freq="30h")})
    model = BinaryRelevance().fit(X, Y[TRAIN])
    X.loc[[4], "when"] = pd.NaT
    message, _ = one_warning(lambda: model.predict(X))
    assert "column 'when': 1 row(s)" in message
    one_warning(lambda: model.predict(X.iloc[[4]]))


def test_a_new_gap_of_a_category_is_an_unseen_value():
    X = DATA.X.select_dtypes("category").astype(object)
    name = X.columns[0]
    model = BinaryRelevance().fit(X[TRAIN], Y[TRAIN])
    gone, unseen = X[TEST].copy(), X[TEST].copy()
    gone.iloc[2, 0], unseen.iloc[2, 0] = None, "never seen"
    message, found = one_warning(lambda: model.predict_proba(gone))
    assert f"column {name!r}: 1 row(s) have a missing value, the first is row 2" in message
    message, expected = one_warning(lambda: model.predict_proba(unseen))
    assert "never seen" in message
    assert same(found, expected)


def test_infinity_is_refused():
    X = GAPS[TRAIN].copy()
    X[5, 1] = np.inf
    with pytest.raises(ValueError, match="X contains infinity: column 'x1', row 5"):
        BinaryRelevance().fit(X, Y[TRAIN])


# ---------------------------------------------------------------- columns without any value


@pytest.mark.parametrize("nothing", [np.nan, None, pd.NaT], ids=str)
def test_a_column_without_values_is_ignored(nothing):
    X = pd.DataFrame(NUMBERS, columns=list("abc"))
    model = GBNC(experts=None, max_parents=1)
    message, _ = one_warning(lambda: model.fit(X.assign(e=nothing)[TRAIN], Y[TRAIN]))
    assert "column 'e' has no value" in message
    assert "Drop the column" in message
    assert model.feature_table_.ignored_names == ["e"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [model.predict_proba(X.assign(e=e)[TEST]) for e in (nothing, 7.0)]
    model.fit(X[TRAIN], Y[TRAIN])
    expected = model.predict_proba(X[TEST])
    assert same(found[0], expected)
    assert same(found[1], expected)


def test_a_table_without_any_value_is_refused():
    with pytest.raises(ValueError, match="none of its 1 column.*'e'"):
        BinaryRelevance().fit(pd.DataFrame({"e": [np.nan] * 120}), Y[TRAIN])


# ---------------------------------------------------------------- estimators that take NaN


GIVEN = []


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is given."""

    def __init__(self, nan=True):
        self.nan = nan

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        GIVEN.append(X)
        return self

    def predict_proba(self, X):
        GIVEN.append(X)
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.nan
        return tags


@pytest.mark.parametrize("nan", [True, False])
@pytest.mark.parametrize("where", ["estimator", "experts"])
def test_an_estimator_gets_nan_only_if_it_takes_it(nan, where):
    model = BinaryRelevance(Recorder(nan)) if where == "estimator" else GBNC(experts=[Recorder(nan)], max_parents=1)
    GIVEN.clear()
    model.fit(GAPS[TRAIN], Y[TRAIN])
    given = list(GIVEN)
    GIVEN.clear()
    model.predict_proba(GAPS[TEST])
    expected = GAPS if nan else by_hand(GAPS)
    width = expected.shape[1]
    rows = {row.tobytes() for row in np.ascontiguousarray(expected)}
    assert given
    for X in (*given, *GIVEN):
        assert {row.tobytes() for row in np.ascontiguousarray(X[:, :width])} <= rows
    assert np.array_equal(GIVEN[0][:, :width], expected[TEST], equal_nan=True)


@pytest.mark.parametrize(
    ("estimator", "takes"),
    [
        (HistGradientBoostingClassifier(), True),
        (RandomForestClassifier(), True),
        (LogisticRegression(), False),
        (Logistic(), False),
        (make_pipeline(SimpleImputer(), LogisticRegression()), True),
        (make_pipeline(StandardScaler(), SimpleImputer(), GaussianNB()), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
        (make_pipeline(StandardScaler(), HistGradientBoostingClassifier()), True),
        (make_pipeline("passthrough", SimpleImputer(missing_values=-1), LogisticRegression()), False),
        (object(), False),
    ],
)
def test_which_estimators_take_nan(estimator, takes):
    assert takes_nan(estimator) is takes


def test_boosting_gets_nan_as_by_itself():
    booster = HistGradientBoostingClassifier(max_iter=5, random_state=0)
    model = BinaryRelevance(booster).fit(GAPS[TRAIN], Y[TRAIN])
    alone = booster.fit(GAPS[TRAIN], Y[TRAIN].iloc[:, 0].cat.codes)
    assert model.predict_proba(GAPS[TEST])[0] == pytest.approx(alone.predict_proba(GAPS[TEST]))


@pytest.mark.parametrize(
    "estimator", [HistGradientBoostingClassifier(max_iter=3), make_pipeline(SimpleImputer(), GaussianNB())]
)
def test_a_column_with_a_single_value_in_some_fold(estimator):
    X = GAPS[TRAIN].copy()
    X[1:, 0] = np.nan
    X[0, 0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GBNC(estimator, experts=None, max_parents=1, backoff="none", conditioning="input").fit(X, Y[TRAIN])
        GBNC(experts=[estimator], max_parents=1).fit(X, Y[TRAIN])


# ---------------------------------------------------------------- around a model


MIXED = DATA.X.assign(when=pd.date_range("2020-01-01", periods=160, freq="50h"), empty=np.nan)
MIXED = MIXED.mask(np.random.default_rng(1).random(MIXED.shape) < 0.15)


@pytest.mark.parametrize(
    ("model", "trusted"),
    [
        (GBNC(max_parents=1), []),
        (GBNC(experts=None), []),
        (GBNC(NaiveBayes()), []),
        (ClassifierChain(), []),
        (GBNC(experts=[GaussianNB()], max_parents=1), []),
        (
            GBNC(experts=[HistGradientBoostingClassifier(max_iter=3)], max_parents=1),
            ["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"],
        ),
        (BinaryRelevance(make_pipeline(SimpleImputer(), GaussianNB())), ["numpy.dtype"]),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:X, column 'empty'")
def test_a_saved_model_predicts_the_same(model, trusted, tmp_path):
    pytest.importorskip("skops")
    model.fit(MIXED[TRAIN], Y[TRAIN])
    pmdc.save(model, tmp_path / "model.skops")
    again = pmdc.load(tmp_path / "model.skops", trusted=trusted)
    assert same(again.predict_proba(MIXED[TEST]), model.predict_proba(MIXED[TEST]))
    assert again.feature_table_.filling == model.feature_table_.filling
    assert again.feature_table_.gaps.keys() == set(MIXED) - {"empty"}


def test_a_file_of_an_earlier_version_refuses_gaps():
    model = BinaryRelevance().fit(NUMBERS[TRAIN], Y[TRAIN])
    del model.feature_table_.filling
    assert model.predict(NUMBERS[TEST]).shape == (40, 3)
    with pytest.raises(ValueError, match="X contains NaN: column 'x0'.*fit it again"):
        model.predict(GAPS[TEST])


@pytest.mark.filterwarnings("ignore:X, column 'empty'")
def test_the_number_of_workers_changes_nothing():
    models = [GBNC(max_parents=1, n_jobs=n, random_state=0).fit(MIXED[TRAIN], Y[TRAIN]) for n in (1, 2)]
    assert same(*(model.predict_proba(MIXED[TEST]) for model in models))


@pytest.mark.filterwarnings("ignore:X, column 'empty'")
def test_the_importance_of_features_with_gaps():
    model = GBNC(experts=None, max_parents=1).fit(MIXED[TRAIN], Y[TRAIN])
    importance = model.feature_importance(MIXED[TEST], Y[TEST], n_repeats=1)
    assert importance.feature_names == list(MIXED)
    assert np.isfinite(importance.by_variable.importances).all()
    assert not importance.by_variable.importances[importance.feature_names.index("empty")].any()
