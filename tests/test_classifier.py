"""GBNC as users meet it: containers in and out, parameters, scikit-learn around it, and what it says of mistakes."""

import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from pmdc import GBNC
from pmdc.datasets import make_network
from pmdc.learners import Logistic

DATA = make_network(300, n_class_variables=3, n_states=3, n_continuous=2, n_discrete=2, random_state=0)
X, Y = DATA.X, DATA.Y
NUMBERS = X.select_dtypes("number").to_numpy()
CODES = np.column_stack([Y[c].cat.codes for c in Y])
PAPER = {"criterion": "bic", "conditioning": "partition"}
FAST = GBNC(GaussianNB(), max_parents=1, max_discrete_parents=1, **PAPER)


def to_polars(frame):
    return pl.DataFrame(
        {
            name: pl.Series(
                frame[name].to_list(),
                dtype=pl.Enum(frame[name].cat.categories.to_list()) if frame[name].dtype == "category" else None,
            )
            for name in frame
        }
    )


# Containers ---------------------------------------------------------------------------------------------------


def test_pandas_in_pandas_out_with_the_index_of_the_rows():
    model = clone(FAST).fit(X[:200], Y[:200])
    predicted = model.predict(X[200:])
    assert isinstance(predicted, pd.DataFrame)
    assert predicted.index.equals(X.index[200:])
    assert predicted.dtypes.equals(Y.dtypes)
    assert [c.tolist() for c in model.classes_] == [Y[c].cat.categories.tolist() for c in Y]


def test_polars_in_polars_out():
    model = clone(FAST).fit(to_polars(X), to_polars(Y))
    predicted = model.predict(to_polars(X))
    assert isinstance(predicted, pl.DataFrame)
    assert predicted.schema == to_polars(Y).schema
    expected = clone(FAST).fit(X, Y).predict(X)
    assert {c: predicted[c].to_list() for c in Y} == {c: expected[c].to_list() for c in Y}


def test_a_table_of_numbers_is_read_as_one_matrix(monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    frame = pd.DataFrame(NUMBERS, columns=["u", "v"]).assign(w=np.arange(300), t=np.float32(0.1))
    rows = frame[:3]
    tables = {
        "pandas": (frame, rows),
        "polars": (pl.from_pandas(frame), pl.from_pandas(rows)),
        "numpy": (frame.to_numpy(), rows.to_numpy()),
        "arrow": (arrow.Table.from_pandas(frame), arrow.Table.from_pandas(rows)),
        "list": (frame.to_numpy().tolist(), rows.to_numpy().tolist()),
    }
    expected = clone(FAST).fit(frame, CODES).predict_proba(rows)
    for name, (table, some) in tables.items():
        model = clone(FAST).fit(table, CODES)
        with monkeypatch.context() as patch:
            if name in ("pandas", "polars", "numpy"):
                patch.setattr("pmdc.estimator.read_columns", None)
                patch.setattr("pmdc.estimator.validate_data", None)
            for one, other in zip(model.predict_proba(some), expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
    model = clone(FAST).fit(frame, CODES)
    for bad in (rows.assign(w=[1, None, 2]), pl.from_pandas(rows).with_columns(w=pl.Series([1, None, 2]))):
        with pytest.warns(UserWarning, match="column 'w': 1 row.*row 1"):
            model.predict(bad)
    with pytest.raises(ValueError, match="infinity: column 'u', row 0"):
        model.predict(rows.assign(u=np.inf))
    with pytest.raises(ValueError, match="'u' was continuous in fit and now holds 'one'"):
        model.predict(rows.assign(u="one"))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(rows.to_numpy())
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(rows[:0])


def test_tables_are_read_once_in_fit(monkeypatch):
    from pmdc.table import columns

    read = []
    read_columns, factorise = columns.read_columns, columns.factorise

    def count_tables(data, argument, *more, **options):
        read.append(argument)
        return read_columns(data, argument, *more, **options)

    def count_columns(values):
        read.append("column")
        return factorise(values)

    monkeypatch.setattr("pmdc.estimator.read_columns", count_tables)
    monkeypatch.setattr("pmdc.table.classes.read_columns", count_tables)
    monkeypatch.setattr(columns, "factorise", count_columns)
    clone(FAST).fit(X.astype({"d0": str, "d1": str}), Y.astype(str))
    assert read.count("X") == read.count("Y") == 1
    assert read.count("column") == 2 + Y.shape[1]


def test_what_is_masked_is_missing():
    mask = np.zeros((300, 1), dtype=bool)
    mask[7] = True
    masked = np.ma.array(NUMBERS, mask=mask & [True, False])
    assert clone(FAST).fit(masked, CODES).feature_table_.gaps == {"x0": 1}
    with pytest.raises(ValueError, match="Y contains NaN: column 'y2' has 1 missing.*row 7"):
        clone(FAST).set_params(missing_labels="error").fit(
            NUMBERS, np.ma.array(CODES, mask=mask & [False, False, True])
        )
    with pytest.raises(ValueError, match=r"sample_weight\[7\] is nan"):
        clone(FAST).fit(NUMBERS, CODES, sample_weight=np.ma.array(np.ones(300), mask=mask[:, 0]))
    model = clone(FAST).fit(np.ma.array(NUMBERS), np.ma.array(CODES))
    np.testing.assert_array_equal(model.predict(NUMBERS), clone(FAST).fit(NUMBERS, CODES).predict(NUMBERS))
    with pytest.warns(UserWarning, match="column 'x0': 1 row.*row 7"):
        model.predict(masked)
    known, hidden = np.ma.array(CODES[:, 0]), np.ma.array(CODES[:, 0], mask=mask[:, 0])
    marginal, partial = (model.predict_proba(NUMBERS, given={"y0": given})[0] for given in (known, hidden))
    assert marginal[7].max() == 1.0
    assert partial[7].max() < 1.0, "what is masked is not known"
    whole = np.ma.array(CODES, mask=np.ones_like(CODES, dtype=bool))
    np.testing.assert_array_equal(model.predict_proba(NUMBERS, given=whole)[0], model.predict_proba(NUMBERS)[0])


def test_dates_are_states():
    days = pd.to_datetime(["2020-01-01", "2020-02-01", "2021-01-01"])
    dated = pd.DataFrame({"day": days[CODES[:, 0]], "y1": CODES[:, 1]})
    model, plain = clone(FAST).fit(X, dated), clone(FAST).fit(X, CODES[:, :2])
    assert model.predict(X).dtypes.equals(dated.dtypes)
    assert (model.predict(X)["day"] == days[plain.predict(X)[:, 0]]).all()
    assert (model.predict(X, given={"day": days[1]})["day"] == days[1]).all()
    with pytest.raises(TypeError, match="column 'x0' is of type Duration.*Convert"):
        model.fit(X.assign(x0=days[0] - days[1]), Y)


def test_arrow_in_arrow_out():
    arrow = pytest.importorskip("pyarrow")
    tables = [arrow.Table.from_pandas(frame) for frame in (X, Y)]
    predicted = clone(FAST).fit(*tables).predict(tables[0])
    assert isinstance(predicted, arrow.Table)
    expected = clone(FAST).fit(X, Y).predict(X)
    assert {c: predicted[c].to_pylist() for c in Y} == {c: expected[c].to_list() for c in Y}
    with pytest.raises(ValueError, match=f"X has several columns named '{X.columns[0]}'"):
        clone(FAST).fit(tables[0].append_column(X.columns[0], tables[0][0]), tables[1])


def test_arrays_and_lists():
    model = clone(FAST).fit(NUMBERS, CODES)
    assert model.predict(NUMBERS).dtype == CODES.dtype
    from_lists = clone(FAST).fit(NUMBERS.tolist(), CODES.tolist())
    np.testing.assert_array_equal(from_lists.predict(NUMBERS.tolist()), model.predict(NUMBERS))
    words = clone(FAST).fit(NUMBERS, Y.astype(str).to_numpy().astype(str))
    assert words.predict(NUMBERS).tolist() == np.array(["a", "b", "c"])[model.predict(NUMBERS)].tolist()


def test_1d_y_gives_arrays_and_2d_y_gives_lists():
    one = GBNC(experts=None).fit(NUMBERS, CODES[:, 0])
    assert isinstance(one.classes_, np.ndarray)
    assert one.predict(NUMBERS).shape == (300,)
    assert one.predict_proba(NUMBERS).shape == (300, 3)
    column = GBNC(experts=None).fit(NUMBERS, CODES[:, :1])
    assert isinstance(column.classes_, list)
    assert column.predict(NUMBERS).shape == (300, 1)
    assert isinstance(column.predict_proba(NUMBERS), list)
    np.testing.assert_array_equal(one.predict(NUMBERS), column.predict(NUMBERS)[:, 0])
    # one class variable without parents is the estimator itself, where no held-out criterion shrinks it
    plain = GBNC(experts=None, criterion="bic").fit(NUMBERS, CODES[:, 0])
    expected = Logistic(C=plain.C_["y0"]).fit(NUMBERS, CODES[:, 0]).predict_proba(NUMBERS)
    np.testing.assert_allclose(plain.predict_proba(NUMBERS), expected)


def test_states_of_mixed_types_come_back():
    rows = [[bool(a % 2), "xyz"[b], int(c)] for a, b, c in CODES]
    model = clone(FAST).fit(X, rows)
    predicted = model.predict(X)
    assert {type(v) for v in predicted[:, 0]} == {bool}
    assert {type(v) for v in predicted[:, 1]} == {str}
    assert {type(v) for v in predicted[:, 2]} == {int}


# Answers ------------------------------------------------------------------------------------------------------


def test_the_default_decision_is_the_argmax_of_the_marginals():
    model = clone(FAST).fit(X, Y)
    codes = np.column_stack([p.argmax(axis=1) for p in model.predict_proba(X)])
    np.testing.assert_array_equal(model.class_table_.encode(model.predict(X)), codes)
    pd.testing.assert_frame_equal(model.predict(X), model.predict(X, loss="hamming"))
    subset = clone(FAST).set_params(loss="subset").fit(X, Y)
    pd.testing.assert_frame_equal(subset.predict(X), model.predict(X, loss="subset"))
    with pytest.raises(ValueError, match="loss='haming' is not known.*'hamming'"):
        model.predict(X, loss="haming")


def test_score_is_one_minus_hamming_loss_and_takes_weights():
    model = clone(FAST).fit(X, Y)
    right = (model.predict(X).astype(str) == Y.astype(str)).to_numpy()
    assert model.score(X, Y) == pytest.approx(right.mean())
    weights = np.arange(300.0)
    assert model.score(X, Y, sample_weight=weights) == pytest.approx(np.average(right.mean(axis=1), weights=weights))
    unknown = Y.astype(str).assign(y0="never seen")
    assert model.score(X, unknown) == pytest.approx(right[:, 1:].sum() / 900)


def test_graph_and_structure():
    model = GBNC(experts=None, max_parents=2, max_discrete_parents=1).fit(X, Y)
    assert nx.is_directed_acyclic_graph(model.graph_)
    for child, parents in model.structure_.parents.items():
        assert set(model.graph_.predecessors(child)) == set(parents)
        assert parents in model.scores_[child]
    kinds = nx.get_node_attributes(model.graph_, "kind")
    assert {n for n, kind in kinds.items() if kind == "class"} == set(Y)
    total = sum(model.scores_[child][parents] for child, parents in model.structure_.parents.items())
    assert model.structure_.score == pytest.approx(total)
    assert (model.structure_.gap, model.structure_.bound) == (0.0, model.structure_.score)


def test_a_table_of_discrete_features_only():
    discrete = X.select_dtypes("category")
    model = GBNC(experts=None, max_discrete_parents=2).fit(discrete, Y)
    proba = model.predict_proba(discrete)
    assert all(np.allclose(p.sum(axis=1), 1) and (p > 0).all() for p in proba)


def test_rows_in_pieces_give_the_same_answers(monkeypatch):
    model = clone(FAST).fit(X, Y)
    whole = model.predict(X), model.predict_proba(X)
    monkeypatch.setattr("pmdc.estimator._CHUNK_CELLS", 100)
    pd.testing.assert_frame_equal(model.predict(X), whole[0])
    for a, b in zip(model.predict_proba(X), whole[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-14)


def test_weights_are_repetitions_and_zero_weights_are_absent_rows():
    weights = np.random.default_rng(0).integers(0, 3, size=300)
    a = clone(FAST).fit(X, Y, sample_weight=weights)
    rows = np.repeat(np.arange(300), weights)
    b = clone(FAST).fit(X.iloc[rows], Y.iloc[rows])
    assert a.structure_.parents == b.structure_.parents
    assert a.structure_.score == pytest.approx(b.structure_.score)
    for p, q in zip(a.predict_proba(X), b.predict_proba(X), strict=True):
        np.testing.assert_allclose(p, q, atol=1e-9)
    only = clone(FAST).fit(NUMBERS, CODES, sample_weight=(CODES[:, 0] < 2).astype(float))
    assert only.classes_[0].tolist() == [0, 1]


def test_rows_of_weight_zero_bring_no_states_of_features():
    frame = pd.DataFrame({"d": X["d0"].astype(str)})
    more = pd.concat([frame, pd.DataFrame({"d": [f"new {i}" for i in range(30)]})], ignore_index=True)
    states = np.concatenate([CODES, CODES[:30]])
    weights = np.repeat([1.0, 0.0], [300, 30])
    assert (
        GBNC(experts=None).fit(more, states, sample_weight=weights).structure_.score
        == GBNC(experts=None).fit(frame, CODES).structure_.score
    )


def test_weights_that_sum_to_one_are_warned_of():
    with pytest.warns(UserWarning, match="sample_weight sums to 1 over .* rows. It should sum to the number of rows"):
        clone(FAST).fit(X, Y, sample_weight=np.full(300, 1 / 300))


# Estimators ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5),
        HistGradientBoostingClassifier(max_iter=3),
        KNeighborsClassifier(3),
        DecisionTreeClassifier(),
        CalibratedClassifierCV(LinearSVC(), cv=2),
        make_pipeline(StandardScaler(), SVC(probability=True)),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_any_classifier_with_probabilities_serves(estimator):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*could not be fitted on.*")
        model = GBNC(estimator, experts=None, max_parents=1, max_discrete_parents=0, random_state=0).fit(
            X[:200], Y[:200]
        )
    log_prob = model.predict_joint(X[200:]).log_prob(Y[200:])
    assert np.isfinite(log_prob).all()
    assert all((p > 0).all() for p in model.predict_proba(X[200:]))


@pytest.mark.parametrize("estimator", [None, RandomForestClassifier(3)], ids=["logistic", "forest"])
def test_the_number_of_workers_changes_no_bit(estimator):
    models = [
        GBNC(estimator, experts=None, max_parents=1, max_discrete_parents=1, n_jobs=n_jobs, random_state=7).fit(X, Y)
        for n_jobs in (1, 2)
    ]
    assert models[0].scores_ == models[1].scores_
    for p, q in zip(models[0].predict_proba(X), models[1].predict_proba(X), strict=True):
        np.testing.assert_array_equal(p, q)


def test_warnings_of_the_workers_come_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GBNC(KNeighborsClassifier(30), max_parents=2, max_discrete_parents=1, n_jobs=2, **PAPER).fit(X, Y)
    messages = [str(w.message) for w in caught if "could not be fitted" in str(w.message)]
    assert 1 <= len(messages) <= 3
    assert "times more" in messages[0]


# scikit-learn around it ---------------------------------------------------------------------------------------


def test_grid_search_reaches_into_the_estimator():
    search = GridSearchCV(
        GBNC(Logistic(), max_parents=1, max_discrete_parents=0), {"estimator__C": [1e-4, 1.0]}, cv=2
    ).fit(X, Y)
    assert search.best_params_ == {"estimator__C": 1.0}
    assert search.predict(X).shape == Y.shape


def test_pipelines():
    pipeline = make_pipeline(StandardScaler(), clone(FAST)).fit(NUMBERS, CODES)
    assert pipeline.predict(NUMBERS).shape == CODES.shape
    mixed = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["x0", "x1"]), remainder="passthrough", verbose_feature_names_out=False
        ).set_output(transform="pandas"),
        clone(FAST),
    ).fit(X, Y)
    assert mixed[-1].feature_table_.discrete_names == ["d0", "d1"]
    assert mixed.predict(X).shape == Y.shape


@pytest.mark.parametrize("states", [CODES, Y.astype(str).to_numpy().astype(str)], ids=["int", "str"])
def test_cross_val_predict_of_probabilities(states):
    proba = cross_val_predict(clone(FAST), NUMBERS, states, cv=3, method="predict_proba")
    assert [p.shape for p in proba] == [(300, 3)] * 3
    for p in proba:
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_cross_val_score():
    assert cross_val_score(clone(FAST), X, Y, cv=3).mean() > 0.5


def test_parameters_of_the_default_estimator_can_be_searched():
    search = GridSearchCV(GBNC(experts=None, max_parents=0), {"estimator__C": [0.5, 1.0]}, cv=2).fit(NUMBERS, CODES)
    assert isinstance(search.best_estimator_.estimator, Logistic)
    assert GBNC(experts=None).set_params(estimator__C=3.0).estimator.C == 3.0
    assert GBNC(GaussianNB()).set_params(estimator=None, estimator__C=3.0).estimator.C == 3.0
    model = GBNC(experts=None)
    with pytest.raises(ValueError, match="bogus"):
        model.set_params(estimator__bogus=1)
    assert model.estimator is None


def test_columns_of_different_types_need_an_explicit_splitter():
    mixed = pd.DataFrame({"a": Y["y0"].astype(str), "b": CODES[:, 1]})
    assert cross_val_score(clone(FAST), X, mixed, cv=KFold(2)).shape == (2,)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    model = clone(FAST).fit(NUMBERS, CODES)
    before = model.predict(NUMBERS)
    with pytest.raises(ValueError, match="prune='x'"):
        model.set_params(prune="x").fit(NUMBERS, CODES[:, ::-1] + 5)
    np.testing.assert_array_equal(model.predict(NUMBERS), before)
    with pytest.raises(TypeError, match="predict_proba"):
        model.set_params(prune=None, estimator=LinearSVC()).fit(NUMBERS[:, :1], CODES + 5)
    np.testing.assert_array_equal(model.predict(NUMBERS), before)


def test_a_pickle_answers_the_same_and_holds_no_training_rows():
    small, large = make_network(200, random_state=1), make_network(4000, random_state=1)
    models = [GBNC(experts=None, max_parents=1, max_discrete_parents=0).fit(d.X, d.Y) for d in (small, large)]
    packed = [pickle.dumps(model) for model in models]
    assert len(packed[1]) < 1.5 * len(packed[0])
    again = pickle.loads(packed[0])
    for p, q in zip(models[0].predict_proba(small.X), again.predict_proba(small.X), strict=True):
        np.testing.assert_array_equal(p, q)


def test_fitting_changes_no_parameter_and_twice_is_once():
    model = GBNC(GaussianNB(), max_parents=1)
    before = model.get_params()
    first = model.fit(X, Y).predict_proba(X)
    second = model.fit(X, Y).predict_proba(X)
    assert model.get_params() == before
    assert not hasattr(model.estimator, "classes_")
    for p, q in zip(first, second, strict=True):
        np.testing.assert_array_equal(p, q)
    with pytest.raises(NotFittedError):
        GBNC(experts=None).predict(X)


# Edges and limits ---------------------------------------------------------------------------------------------


def test_required_and_forbidden_edges_are_obeyed():
    free = clone(FAST).fit(X, Y)
    edge = next((p, c) for c, ps in free.structure_.parents.items() for p in sorted(ps) if p in Y)
    without = clone(FAST).set_params(forbidden_edges=[edge]).fit(X, Y)
    assert edge[0] not in without.structure_.parents[edge[1]]
    wanted = [("y2", "y0"), ("d1", "y2")]
    with_edges = clone(FAST).set_params(required_edges=wanted).fit(X, Y)
    assert all(parent in with_edges.structure_.parents[child] for parent, child in wanted)
    assert without.structure_.score <= free.structure_.score
    assert with_edges.structure_.score <= free.structure_.score


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"required_edges": [("y0", "y1")], "forbidden_edges": [("y0", "y1")]},
            r"\('y0', 'y1'\) is both in required_edges and in forbidden_edges",
        ),
        ({"required_edges": [("y0", "y1"), ("y1", "y0")]}, "cycle 'y0' -> 'y1' -> 'y0'|cycle 'y1' -> 'y0' -> 'y1'"),
        (
            {"required_edges": [("y9", "y1")]},
            "'y9' is neither a class variable nor a discrete feature; there are 'y0', 'y1'",
        ),
        ({"required_edges": [("y0", "d0")]}, "'d0', which is a feature"),
        ({"forbidden_edges": [("x0", "y0")]}, "'x0' is a continuous feature"),
        ({"forbidden_edges": [("y0", "y0")]}, "'y0' cannot be its own parent"),
        ({"required_edges": ["y0"]}, "required_edges contains 'y0'"),
        (
            {"required_edges": [("y0", "y2"), ("y1", "y2")], "max_parents": 1},
            "'y2' 2 parents, more than max_parents=1",
        ),
        ({"loss": "haming"}, "loss='haming' is not known; did you mean 'hamming'"),
        ({"prune": "all"}, "prune='all'"),
        ({"search": "dynamic"}, "search='dynamic'"),
        ({"backoff": "no"}, "backoff='no'"),
        ({"criterion": "bci"}, "criterion='bci' is not known; did you mean 'bic'"),
        ({"criterion": lambda *a: np.nan}, "returned nan for 'y0'"),
        ({"criterion": lambda *a: "much"}, "returned 'much' for 'y0'"),
        ({"criterion": lambda size: np.array([3.0])}, r"returned array\(\[3.\]\) for 'y0'"),
        ({"criterion": lambda size: np.inf}, "criterion=<function .* 'y0'"),
        ({"cv": "what"}, "^cv='what' must be a number of folds, a splitter or a list of .train, test. rows.$"),
        ({"cv": KFold}, "cv=<class .*KFold'> must be a number of folds"),
        ({"cv": None}, "cv=None must be a number of folds"),
        ({"cv": 1}, "cv=1 must be a whole number of at least 2"),
        ({"criterion": ["bic"]}, r"criterion=\['bic'\] is not known"),
        ({"required_edges": 5}, "required_edges=5 must be a list"),
        ({"required_edges": 5, "blocks": [["y0", "y1"]]}, "required_edges=5 must be a list"),
        ({"forbidden_edges": [3]}, "forbidden_edges contains 3"),
        ({"required_edges": iter([("y0", "y1")])}, "required_edges=<list_iterator"),
        ({"discrete_features": 3}, "discrete_features=3: give"),
        ({"max_parents": -1}, "max_parents=-1 must be a whole number"),
        ({"max_parents": 1.5}, "max_parents=1.5"),
        ({"max_candidates": 0}, "max_candidates=0"),
        ({"max_candidates": 2}, "max_candidates=2 must be at least 3"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        clone(FAST).set_params(**parameters).fit(X, Y)


def test_too_many_candidates_are_restricted_and_said_so():
    free = GBNC(GaussianNB(), **PAPER, max_parents=2, max_discrete_parents=2).fit(X, Y)
    with pytest.warns(UserWarning, match="48 parent sets .* more than max_candidates=24.*24 sets are left"):
        model = GBNC(GaussianNB(), **PAPER, max_parents=2, max_discrete_parents=2, max_candidates=24).fit(X, Y)
    assert model.structure_.status == "optimal over the 24 of 48 parent sets kept by max_candidates=24"
    assert model.structure_.score <= free.structure_.score
    assert GBNC(GaussianNB(), **PAPER, max_candidates=48).fit(X, Y).structure_.status == "optimal"
    heuristic = GBNC(GaussianNB(), **PAPER, prune="definition").fit(X, Y)
    assert "prune='definition'" in heuristic.structure_.status
    with pytest.warns(UserWarning, match="12 parent sets .* more than max_candidates=6.*6 sets are left"):
        ways = GBNC(GaussianNB(), max_parents=2, max_candidates=6).fit(X, Y)
    assert "the 6 of 12 parent sets kept by max_candidates=6 and the" in ways.structure_.status


def test_a_huge_fit_warns_before_it_starts(monkeypatch):
    monkeypatch.setattr("pmdc.scores.families.MANY_MODELS", 100)
    with pytest.warns(UserWarning, match="parent sets with .* local models.*max_candidates"):
        GBNC(GaussianNB(), **PAPER).fit(X, Y)


def test_verbose_reports_the_phases(capsys):
    clone(FAST).set_params(verbose=1).fit(X, Y)
    told = capsys.readouterr().err
    assert "27 parent sets with up to" in told
    assert "level 1:" in told
    assert "structure: score -591.51488, optimal, by dynamic-programming" in told
    clone(FAST).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_a_callable_criterion_is_a_penalty():
    def bic(size):
        return 0.5 * np.log(size.n_rows) * (size.n_states - 1) * np.prod(size.parent_states)

    a, b = (clone(FAST).set_params(criterion=c).fit(X, Y).structure_ for c in (bic, "bic"))
    assert (a.parents, a.score) == (b.parents, b.score)
    a, b = (clone(FAST).set_params(criterion=lambda size, c=c: c).fit(X, Y).structure_ for c in (np.array(3.0), 3))
    assert (a.parents, a.score) == (b.parents, b.score)


def test_a_callable_criterion_is_told_when_parameters_are_not_known():
    model = GBNC(DecisionTreeClassifier(), criterion=lambda size: 0.5 * size.n_parameters, max_parents=0)
    with pytest.raises(
        TypeError, match="(?s)for 'y0' .*n_parameters is None for estimator=DecisionTree.*choose"
    ) as caught:
        model.fit(X, Y)
    assert isinstance(caught.value.__cause__, TypeError)
    assert np.isfinite(model.set_params(estimator=GaussianNB()).fit(X, Y).structure_.score)
    with pytest.raises(TypeError, match="must be a function of a pmdc.scores.criteria.Size"):
        model.set_params(criterion=lambda: 1.0).fit(X, Y)


def test_more_class_variables_than_the_dynamic_program_takes():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, size=(150, 28))
    states[:, 1] = states[:, 0] ^ (rng.random(150) < 0.1)
    model = GBNC(GaussianNB(), max_parents=1, criterion="bic").fit(rng.normal(size=(150, 1)), states)
    assert model.structure_.method == "integer-program"
    assert {("y0", "y1"), ("y1", "y0")} & set(model.graph_.edges)
    assert model.predict(rng.normal(size=(5, 1))).shape == (5, 28)


# Tables that are hard -----------------------------------------------------------------------------------------


def test_a_constant_class_variable_and_a_state_that_occurs_once():
    states = CODES.copy()
    states[:, 0] = 5
    states[0, 1] = 9
    model = clone(FAST).fit(NUMBERS, states)
    assert (model.predict(NUMBERS)[:, 0] == 5).all()
    assert model.classes_[1].tolist() == [0, 1, 2, 9]
    assert all(np.isfinite(p).all() for p in model.predict_proba(NUMBERS))
    assert np.isfinite(model.predict_joint(NUMBERS).log_prob(states)).all()


def test_a_declared_state_without_rows_has_a_probability():
    declared = Y.assign(y0=Y["y0"].cat.add_categories("z"))
    model = clone(FAST).fit(X, declared)
    assert model.classes_[0].tolist() == ["a", "b", "c", "z"]
    assert (model.predict_proba(X)[0][:, 3] > 0).all()
    held_out = declared.assign(y0="z").astype(declared.dtypes)
    assert np.isfinite(model.predict_joint(X).log_prob(held_out)).all()


def test_an_undeclared_state_has_none_and_says_so():
    model = clone(FAST).fit(NUMBERS, CODES)
    with pytest.warns(UserWarning, match="'y0'.*unknown to the model.*categorical"):
        assert np.isneginf(model.predict_joint(NUMBERS[:1]).log_prob(np.array([[7, 0, 0]]))).all()


def test_an_unseen_category_is_answered_without_that_parent():
    frame = pd.DataFrame({"x": NUMBERS[:, 0], "d": X["d0"].astype(str), "unused": X["d1"].astype(str)})
    settings = {
        "required_edges": [("d", "y0")],
        "forbidden_edges": [("unused", y) for y in Y] + [("d", "y1"), ("d", "y2")],
    }
    model = GBNC(GaussianNB(), max_parents=0, **PAPER, **settings).fit(frame, Y)
    plain = GBNC(GaussianNB(), max_parents=0, **PAPER, max_discrete_parents=0).fit(frame, Y)
    new = frame[:4].assign(d="new", unused="new")
    with pytest.warns(
        UserWarning, match=r"column 'd': 4 row\(s\) hold a value that was not seen in fit.*'new'"
    ) as told:
        answer = model.predict_proba(new)
    assert len(told) == 1, "a column that the model does not use is no matter"
    np.testing.assert_allclose(answer[0], plain.predict_proba(frame[:4])[0], atol=1e-12)


def test_a_declared_category_without_rows_is_as_good_as_unseen():
    declared = X["d0"].cat.add_categories("new")
    frames = [pd.DataFrame({"x": NUMBERS[:, 0], "d": d}) for d in (X["d0"].astype(str), declared)]
    answers = []
    for frame in frames:
        edges = [("d", "y0"), ("y1", "y0")]
        model = GBNC(GaussianNB(), required_edges=edges, max_parents=1, **PAPER).fit(frame, Y)
        with pytest.warns(UserWarning, match="column 'd': 4 row.*models without that parent"):
            answers.append(np.exp(model.predict_joint(frame[:4].assign(d=["new"] * 4)).log_tables[0]))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-12)
    hard = GBNC(GaussianNB(), backoff="none", required_edges=[("d", "y0")], **PAPER).fit(frames[0], Y)
    with pytest.warns(UserWarning, match="backoff='none'"):
        hard.predict(frames[0][:4].assign(d="new"))


def test_a_plan_counts_without_fitting():
    model = GBNC(experts=None, max_parents=1, max_discrete_parents=1, **PAPER)
    plan = model.plan(X, Y)
    # 3 class variables x (none or one of 2 others) x (none or one of 2 features), all with 3 states
    assert plan == (27, 3 * (1 + 2 * 3) * (1 + 2 * 3), None)
    assert not hasattr(model, "classes_")
    assert GBNC(experts=None, max_parents=1).plan(X, Y) == (9, None, None), (
        "sets of class variables; their ways are found later"
    )
    many = GBNC(experts=None, max_parents=3, max_discrete_parents=7, **PAPER).plan(*wide_table())
    assert many.local_models is None
    assert many.parent_sets > 1_000_000


def wide_table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({f"d{i}": rng.choice(list("ab"), 50) for i in range(30)}), rng.integers(0, 2, size=(50, 3))


def test_columns_missing_extra_or_in_another_order():
    model = clone(FAST).fit(X, Y)
    with pytest.raises(ValueError, match="(?s)feature names should match.*missing.*d0"):
        model.predict(X.drop(columns="d0"))
    with pytest.raises(ValueError, match="(?s)feature names should match.*unseen.*more"):
        model.predict(X.assign(more=1.0))
    with pytest.raises(ValueError, match="same order"):
        model.predict(X[list(X)[::-1]])
    with pytest.raises(ValueError, match="X has 1 features, but GBNC is expecting 2"):
        clone(FAST).fit(NUMBERS, CODES).predict(NUMBERS[:, :1])


def test_rows_that_differ_and_names_that_clash():
    with pytest.raises(ValueError, match="inconsistent numbers of samples: X has 300 rows, Y has 299"):
        clone(FAST).fit(X, Y[:-1])
    with pytest.raises(ValueError, match="'y0' is the name of a column of X and of a class variable"):
        clone(FAST).fit(X.assign(y0=1.0), Y)
    with pytest.raises(ValueError, match="'x0' is the name of a column of X and of a class variable"):
        clone(FAST).fit(X, Y["y0"].rename("x0"))
    renamed = clone(FAST).fit(X.rename(columns={"x0": "y0"}), CODES)
    assert list(renamed.structure_.parents) == ["y0_", "y1", "y2"]
    nameless = clone(FAST).fit(NUMBERS, pd.DataFrame(CODES, columns=["x0", "b", "c"]))
    assert list(nameless.structure_.parents) == ["x0", "b", "c"]
    with pytest.raises(TypeError, match="has no predict_proba"):
        GBNC(LinearSVC()).fit(X, Y)


def test_a_network_too_wide_for_exact_inference_says_so():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 12, size=(60, 9))
    edges = [(f"y{i}", f"y{j}") for j in range(1, 9) for i in range(j)]
    with pytest.raises(ValueError, match="max_parents"):
        GBNC(GaussianNB(), criterion="cll", max_parents=8, required_edges=edges).fit(rng.normal(size=(60, 1)), states)


# The paper's settings -----------------------------------------------------------------------------------------


def test_the_papers_settings_give_hard_and_uniform_answers():
    rows = np.array([[0, 0], [0, 0], [1, 1], [2, 1], [1, 1], [2, 1]])
    features = np.array([[0.0], [1.0], [0.0], [1.0], [0.2], [0.9]])
    model = GBNC.as_in_paper(GaussianNB(), required_edges=[("y1", "y0")], criterion="cll").fit(features, rows)
    table = np.exp(model.predict_joint(features).log_tables[0])
    np.testing.assert_allclose(table[:, 0], [[1, 0, 0]] * 6)
    assert (table[:, 1, 0] == 0).all()
    equal = pd.DataFrame({"x": np.ones(6), "d": list("uvuvuv")})
    settings = {"required_edges": [("y1", "y0")], "criterion": "cll", "max_discrete_parents": 0}
    contradictory = GBNC.as_in_paper(**settings).fit(equal, rows)
    np.testing.assert_allclose(np.exp(contradictory.predict_joint(equal[:1]).log_tables[0])[0, 1], [1 / 3] * 3)
    assert contradictory.scores_["y0"][frozenset({"y1"})] == 0.0
    assert GBNC.as_in_paper().get_params()["max_parents"] == 3
    assert type(GBNC.as_in_paper().estimator).__name__ == "SGDClassifier"
    assert clone(GBNC.as_in_paper()).backoff == "paper"


@pytest.mark.filterwarnings("ignore:The structure search stopped .memory limit")
def test_a_network_too_wide_for_the_memory_budget_is_refused():
    data = make_network(200, random_state=0)
    with pytest.raises(ValueError, match=r"memory_budget is 100 bytes"):
        GBNC(GaussianNB(), memory_budget=100).fit(data.X, data.Y)
    with pytest.raises(ValueError, match=r"memory_budget=0"):
        GBNC(experts=None, memory_budget=0).fit(data.X, data.Y)


def test_a_search_that_is_stopped_says_so():
    data = make_network(300, n_class_variables=6, random_state=0)
    model = GBNC(GaussianNB(), **PAPER, search="dynamic-programming", time_limit=1e-9)
    with pytest.warns(UserWarning, match=r"stopped \(time limit\).*Raise time_limit"):
        model.fit(data.X, data.Y)
    assert model.structure_.status == "time limit"
    assert model.structure_.bound > model.structure_.score
    assert model.predict(data.X).shape == data.Y.shape
    best = GBNC(GaussianNB(), **PAPER, time_limit=100).fit(data.X, data.Y)
    assert best.structure_.status == "optimal"
    assert model.structure_.score <= best.structure_.score <= model.structure_.bound
    with pytest.raises(ValueError, match="time_limit=0"):
        GBNC(experts=None, time_limit=0).fit(data.X, data.Y)


def test_parameters_of_the_search_are_passed_on(capsys):
    data = make_network(300, n_class_variables=6, random_state=0)
    told = []
    GBNC(GaussianNB(), **PAPER, callback=told.append).fit(data.X, data.Y)
    assert told
    assert set(told[0].parents) == set(data.Y.columns)
    with pytest.warns(UserWarning, match=r"stopped \(interrupted\)"):
        stopped = GBNC(GaussianNB(), **PAPER, callback=lambda best: True).fit(data.X, data.Y)
    assert stopped.structure_.status == "interrupted"
    near = GBNC(GaussianNB(), **PAPER, gap=0.5, verbose=1).fit(data.X, data.Y)
    assert near.structure_.status == "gap limit"
    assert f"[GBNC] structure: {near.structure_}" in capsys.readouterr().err
    with pytest.raises(ValueError, match="gap=-1"):
        GBNC(experts=None, gap=-1).fit(data.X, data.Y)
    with pytest.raises(ValueError, match="callback=3"):
        GBNC(experts=None, callback=3).fit(data.X, data.Y)


def test_local_search_of_the_structure():
    data = make_network(300, n_class_variables=6, random_state=0)
    found = GBNC(GaussianNB(), search="local-search").fit(data.X, data.Y).structure_
    assert found.method == "local-search"
    assert found.score == pytest.approx(GBNC(GaussianNB()).fit(data.X, data.Y).structure_.score)


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_tables_of_a_few_rows(n_rows):
    X = pd.DataFrame({"a": [0.5, 1.0, 2.0][:n_rows], "b": ["u", "v", "u"][:n_rows]})
    Y = pd.DataFrame({"y": ["p", "q", "p"][:n_rows], "z": ["r", "r", "s"][:n_rows]})
    model = GBNC(experts=None).fit(X, Y)
    assert model.predict(X).shape == (n_rows, 2)
    assert all(np.isfinite(proba).all() for proba in model.predict_proba(X))


def test_states_that_differ_only_in_capitals_are_pointed_out():
    party = np.where(CODES[:, 0] == 0, "Democrat", "Republican").astype(object)
    party[3] = "democrat"
    with pytest.warns(UserWarning, match=r"Y, column 'party'.*'democrat' \(1 row.*'Democrat'"):
        clone(FAST).fit(X, pd.DataFrame({"party": party}))
