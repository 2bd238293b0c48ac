"""Reading tables: kinds, states, codes and back, and every error message."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

from pmdc import GBNC, BinaryRelevance
from pmdc.metrics import hamming_loss
from pmdc.table.classes import ClassTable
from pmdc.table.columns import MISSING, encode_values, read_columns
from pmdc.table.features import FeatureTable
from pmdc.table.rows import read_weights


def features(X, discrete_features="from_dtype"):
    return FeatureTable.fit(read_columns(X, "X", "test"), discrete_features)


def encode(table, X):
    return table.encode(read_columns(X, "X", "test"))


MIXED = pd.DataFrame(
    {
        "number": [1.5, 2.0, 3.0, 4.0],
        "count": [1, 2, 3, 1],
        "word": ["b", "a", "b", "a"],
        "flag": [True, False, True, True],
        "level": pd.Categorical(["low", "high", "low", "low"], categories=["low", "mid", "high"]),
    }
)


# Kinds --------------------------------------------------------------------------------------------------------


def as_polars(X):
    kinds = {"level": pl.Enum(["low", "mid", "high"])}
    return pl.DataFrame({name: X[name].to_list() for name in X}, schema_overrides=kinds)


@pytest.mark.parametrize("make", [lambda X: X, as_polars], ids=["pandas", "polars"])
def test_types_tell_the_kinds(make):
    table = features(make(MIXED))
    assert table.discrete_names == ["word", "flag", "level"]
    assert [table.names[i] for i in table.continuous] == ["number", "count"]
    coded = encode(table, make(MIXED))
    assert coded.continuous.tolist() == MIXED[["number", "count"]].to_numpy().tolist()
    assert coded.discrete[:, 0].tolist() == [1, 0, 1, 0]
    assert coded.discrete[:, 1].tolist() == [1, 0, 1, 1]


def test_a_categorical_type_declares_states_without_rows():
    assert features(MIXED).states[2].tolist() == ["low", "mid", "high"]
    enum = pl.DataFrame({"level": pl.Series(["low", "low", "high"], dtype=pl.Enum(["low", "mid", "high"]))})
    assert features(enum).states[0].tolist() == ["low", "mid", "high"]


def test_values_of_lists_and_object_arrays_tell_the_kinds():
    rows = [[1, "a", True], [2.5, "b", False], [3, "a", False]]
    for X in (rows, np.array(rows, dtype=object)):
        table = features(X)
        assert table.continuous == [0]
        assert table.discrete_names == ["x1", "x2"]
    assert features(np.array([["a", "b"], ["c", "b"], ["c", "b"]])).discrete == [0, 1]
    assert features(np.zeros((3, 2), dtype=bool)).discrete == [0, 1]
    assert features(np.zeros((3, 2), dtype=np.float32)).discrete == []


@pytest.mark.parametrize("chosen", [["count"], [1], [-4], np.array([False, True, False, False, False])])
def test_discrete_features_can_be_named(chosen):
    table = features(MIXED.assign(word=[1, 2, 3, 4], flag=0, level=0), chosen)
    assert table.discrete_names == ["count"]
    assert table.states[0].tolist() == [1, 2, 3]


def test_values_match_across_types():
    table = features(pd.DataFrame({"code": [1, 2, 1]}), ["code"])
    later = pd.DataFrame({"code": [2.0, 1.0, 7.0]})
    assert encode(table, later).discrete[:, 0].tolist() == [1, 0, -1]


# Class variables ----------------------------------------------------------------------------------------------

CLASSES = pd.DataFrame(
    {
        "ordered": pd.Categorical(["u", "v", "u"], categories=["w", "v", "u"], ordered=True),
        "integer": [3, 1, 3],
        "string": ["x", "y", "x"],
        "boolean": [True, False, True],
        "nullable": pd.array([1, 2, 2], dtype="Int64"),
        "codes": pd.Categorical([1, 2, 1], categories=[1, 2, 5]),
    },
    index=[10, 20, 30],
)


def test_pandas_comes_back_as_it_went_in():
    table = ClassTable.fit(CLASSES)
    assert table.names == list(CLASSES)
    assert table.sizes == (3, 2, 2, 2, 2, 3)
    pd.testing.assert_frame_equal(table.decode(table.encode(CLASSES), like=CLASSES), CLASSES)


def test_polars_comes_back_as_it_went_in():
    Y = pl.DataFrame({"a": ["u", "v"], "b": [1, 2], "c": [True, False]}).with_columns(
        d=pl.Series(["x", "y"], dtype=pl.Enum(["z", "x", "y"])), e=pl.Series(["x", "y"], dtype=pl.Categorical)
    )
    table = ClassTable.fit(Y)
    assert table.decode(table.encode(Y)).equals(Y)
    assert table.decode(table.encode(Y)).schema == Y.schema
    assert table.states[3].tolist() == ["z", "x", "y"]


@pytest.mark.parametrize(
    "Y",
    [
        np.array([[1, 2], [3, 4], [3, 2]]),
        np.array([["a", "b"], ["c", "b"]]),
        np.array([[True, False], [False, False]]),
        np.array([[1.0, 2.0], [0.0, 2.0]]),
        np.array([[1, "a"], [2, "b"]], dtype=object),
        np.array([2, 1, 2]),
        np.array(["b", "a"]),
    ],
    ids=["int", "str", "bool", "whole floats", "object", "1-D int", "1-D str"],
)
def test_arrays_come_back_as_they_went_in(Y):
    table = ClassTable.fit(Y)
    back = table.decode(table.encode(Y))
    assert back.dtype == Y.dtype
    assert back.tolist() == Y.tolist()
    assert table.one_dimensional == (Y.ndim == 1)


def test_lists_of_rows_keep_the_types_of_their_states():
    Y = [["a", 1], ["b", 2], ["a", 2]]
    table = ClassTable.fit(Y)
    assert table.decode(table.encode(Y)).tolist() == Y
    assert [states.tolist() for states in table.states] == [["a", "b"], [1, 2]]
    nested = [[(1, 2), "a"], [(2, 3), "b"]]
    table = ClassTable.fit(nested)
    assert table.decode(table.encode(nested)).tolist() == nested


def test_states_are_sorted_and_states_of_several_types_have_some_order():
    assert ClassTable.fit(np.array(["b", "c", "a"])).states[0].tolist() == ["a", "b", "c"]
    assert ClassTable.fit([["x", 1], [2, 1], ["a", 1]]).states[0].tolist() == [2, "a", "x"]


def test_frames_are_matched_by_name_and_arrays_by_position():
    table = ClassTable.fit(CLASSES)
    swapped = CLASSES[list(CLASSES)[::-1]]
    assert (table.encode(swapped) == table.encode(CLASSES)).all()
    with pytest.raises(ValueError, match="lacks the class variable 'string'"):
        table.encode(CLASSES.rename(columns={"string": "other"}))
    with pytest.raises(ValueError, match=r"Y has 1 column\(s\), but the model has 6"):
        table.encode(CLASSES[["string"]])


def test_columns_whose_names_are_no_strings_are_matched_by_them_too():
    Y = pd.DataFrame({30: [1, 2, 1], 10: ["a", "b", "b"]})
    table = ClassTable.fit(Y)
    assert table.names == ["y0", "y1"]
    assert (table.encode(Y[[10, 30]]) == table.encode(Y)).all()
    pd.testing.assert_frame_equal(table.decode(table.encode(Y)), Y)


@pytest.mark.parametrize("states", [[10**30, 10**30 + 1, 10**30], [2**63 + 1, -1, 2**63 + 2], [2**62, 2**62 + 1, 0]])
def test_large_integers_stay_apart(states):
    table = ClassTable.fit([[state] for state in states])
    assert table.sizes == (len(set(states)),)
    assert table.decode(table.encode([[state] for state in states])).ravel().tolist() == states


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_pandas_dates_and_times_are_states(unit, zone):
    stamps = pd.to_datetime(["2020-03-01", "2019-01-01", "2020-03-01"]).as_unit(unit)
    Y = pd.DataFrame(
        {
            "stamp": stamps.tz_localize(zone),
            "delta": pd.to_timedelta([2, 1, 2], unit="h").as_unit(unit),
            "period": pd.PeriodIndex(["2020-03", "2019-01", "2020-03"], freq="M"),
            "date": pd.Series([datetime.date(2020, 3, 1), datetime.date(2019, 1, 1), datetime.date(2020, 3, 1)]),
            "object": pd.Series([Decimal("2.5"), Decimal(1), Decimal("2.5")], dtype=object),
        }
    )
    table, codes = ClassTable.fit_encode(Y)
    assert codes.tolist() == [[1] * 5, [0] * 5, [1] * 5], "states are sorted"
    pd.testing.assert_frame_equal(table.decode(codes), Y)
    later = Y.assign(stamp=Y["stamp"] + pd.Timedelta(days=1))
    assert (table.encode(later, unknown="mark")[:, 0] == -1).all()
    with pytest.raises(ValueError, match="NaN: column 'stamp' has 1 missing.*row 1"):
        table.encode(Y.assign(stamp=Y["stamp"].where([True, False, True])))
    assert encode_values(np.array([Y["stamp"][1]], dtype=object), table.states[0]).tolist() == [0]


def test_polars_dates_times_and_decimals_are_states():
    day = datetime.datetime(2020, 3, 1, 12)
    Y = pl.DataFrame(
        {
            "date": [day.date(), datetime.date(2019, 1, 1)],
            "stamp": pl.Series([day, datetime.datetime(2019, 1, 1)], dtype=pl.Datetime("ms", "UTC")),
            "delta": pl.Series([datetime.timedelta(2), datetime.timedelta(1)], dtype=pl.Duration("ns")),
            "time": [datetime.time(12), datetime.time(1)],
            "decimal": pl.Series([Decimal("1.25"), Decimal("0.50")], dtype=pl.Decimal(10, 2)),
            "bytes": [b"b", b"a"],
        }
    )
    table, codes = ClassTable.fit_encode(Y)
    assert codes.tolist() == [[1] * 6, [0] * 6]
    back = table.decode(codes)
    assert back.equals(Y)
    assert back.schema == Y.schema


@pytest.mark.parametrize("dtype", ["M8[D]", "M8[ns]", "M8[Y]", "m8[s]"])
@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_numpy_dates_are_states(dtype, shape):
    Y = np.array([50, 3, 50, 7]).astype(dtype).reshape(shape)
    table, codes = ClassTable.fit_encode(Y)
    assert codes.ravel().tolist() == [2, 0, 2, 1]
    assert table.states[0].dtype == Y.dtype
    back = table.decode(codes)
    assert back.dtype == Y.dtype
    assert (back == Y).all()
    Y[1] = "NaT"
    with pytest.raises(ValueError, match="NaN: column 'y0' has 1 missing.*row 1"):
        table.encode(Y)
    assert table.encode(Y, missing="mark").ravel().tolist() == [2, -2, 2, 1]


def test_nanoseconds_are_not_lost():
    Y = np.array([1, 2, 1001], dtype="M8[ns]")
    for states in (Y, pd.DataFrame({"a": Y}), pd.Series(Y)):
        table, codes = ClassTable.fit_encode(states)
        assert table.sizes == (3,)
        assert (np.asarray(table.decode(codes)).ravel() == Y).all()


def test_rows_that_do_not_count_bring_no_states():
    Y = pd.DataFrame({"a": ["x", "z", "y"], "b": pd.Categorical(["u", "v", "u"])})
    table, codes = ClassTable.fit_encode(Y, kept=np.array([True, False, True]))
    assert [states.tolist() for states in table.states] == [["x", "y"], ["u", "v"]]
    assert codes.tolist() == [[0, 0], [-1, 1], [1, 0]]
    assert table.decode(codes[[0, 2]])["a"].tolist() == ["x", "y"]
    assert table.unknown_states(Y) == {"a": ["z"]}


@pytest.mark.parametrize(
    "convert",
    [
        lambda words: pd.DataFrame(words, dtype=object),
        lambda words: pd.DataFrame(words).astype("str"),
        lambda words: pd.DataFrame(words).astype("category"),
        lambda words: pl.DataFrame(words.tolist(), orient="row"),
        lambda words: words,
        lambda words: words.tolist(),
    ],
    ids=["object", "str", "category", "polars", "array", "list"],
)
def test_the_work_for_a_column_grows_with_its_states_only(convert, monkeypatch):
    from pmdc.table import columns

    calls = []

    def count(real):
        return lambda value: calls.append(1) or real(value)

    for name in ("_is_missing", "_kind_of_type", "show"):
        monkeypatch.setattr(columns, name, count(getattr(columns, name)))
    words = np.random.default_rng(0).choice(np.array(["a", "b", "c", "d"], dtype=object), size=(1000, 3))
    table, codes = ClassTable.fit_encode(convert(words))
    assert (np.array(list("abcd"), dtype=object)[codes] == words).all()
    assert (table.encode(convert(words)) == codes).all()
    assert len(calls) < 100


def test_unknown_states():
    table = ClassTable.fit(np.array([["a", "x"], ["b", "y"]]))
    later = np.array([["a", "x"], ["b", "z"]])
    assert table.encode(later, unknown="mark").tolist() == [[0, 0], [1, -1]]
    with pytest.raises(ValueError, match="column 'y1', row 1: .*'z'.* is not among the states"):
        table.encode(later)


# Complaints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (MIXED.assign(number=[1.0, np.nan, 2.0, np.nan]), ValueError, "NaN: column 'number' has 2 missing.*row 1"),
        (MIXED.assign(word=["a", None, "b", "a"]), ValueError, "NaN: column 'word' has 1 missing.*row 1"),
        (MIXED.assign(count=pd.array([1, None, 2, 3], dtype="Int64")), ValueError, "NaN: column 'count'"),
        (MIXED.assign(flag=pd.array([True, None, True, False], dtype="boolean")), ValueError, "NaN: column 'flag'"),
        (MIXED.assign(level=pd.Categorical(["low", None, "low", "low"])), ValueError, "NaN: column 'level'"),
        (MIXED.assign(number=[1.0, np.inf, 2.0, 3.0]), ValueError, "infinity: column 'number', row 1"),
        (pl.DataFrame({"a": [1.0, None]}), ValueError, "NaN: column 'a'"),
        (pl.DataFrame({"a": [1.0, float("nan")]}), ValueError, "NaN: column 'a'"),
        (pl.DataFrame({"a": ["x", None]}), ValueError, "NaN: column 'a'"),
        (np.array([[1.0], [np.nan]]), ValueError, "NaN: column 'x0'"),
        ([[1, "a"], [None, "b"]], ValueError, "NaN: column 'x0'"),
        (MIXED.assign(long=pd.Timedelta("2h")), TypeError, "column 'long' is of type Duration.*seconds"),
        (np.array([[5]], dtype="m8[s]"), TypeError, r"X is of type timedelta64\[s\]"),
        (MIXED.assign(when=pd.to_datetime(["2020-01-01", None] * 2)), ValueError, "NaN: column 'when' has 2 missing"),
        ([[datetime.date(2020, 1, 1)], [None]], ValueError, "NaN: column 'x0' has 1 missing.*row 1"),
        ([[datetime.date(2020, 1, 1)], ["a"]], TypeError, "column 'x0'.*datetime.date"),
        (MIXED.assign(when=pd.Series(pd.Period("2020-01"))), TypeError, "column 'when'.*Period"),
        (MIXED.assign(odd=pd.Series(["a", 1, "a", 2], dtype=object)), TypeError, "column 'odd' mixes types: 'a', 2"),
        (
            [[{"a": 1}], [2]],
            TypeError,
            "column 'x0': argument must be a string, a real number or a date, not {",
        ),
        ([[1, 2], [3]], ValueError, r"X is ragged: row 0 has 2 value\(s\), row 1 has 1"),
        ([[10**400], [1]], ValueError, "column 'x0' holds a number too large"),
        ({"a": [1]}, TypeError, "X is of type dict: give a DataFrame"),
        ("table.csv", TypeError, "X is of type str"),
        (None, TypeError, "X is of type NoneType"),
        (pl.LazyFrame({"a": [1]}), TypeError, r"X is of type LazyFrame: call .collect\(\)"),
        (pd.DataFrame(index=range(5)), ValueError, r"0 feature\(s\)"),
        (MIXED[:0], ValueError, "0 sample"),
        (np.empty((0, 3)), ValueError, "0 sample"),
        (np.empty((3, 0)), ValueError, "0 feature"),
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array"),
        (csr_matrix(np.eye(3)), TypeError, "[Ss]parse"),
        (np.array([[1j]]), ValueError, "Complex data not supported"),
    ],
)
def test_bad_features_are_named(X, error, message):
    with pytest.raises(error, match=message):
        features(X)


def test_two_columns_of_one_name():
    with pytest.raises(ValueError, match="several columns named 'a'"):
        features(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))


def test_an_identifier_is_refused():
    X = pd.DataFrame({"name": ["ann", "bob", "cleo"], "age": [1, 2, 3]})
    with pytest.raises(ValueError, match="column 'name' .* as many values as rows .*identifier.*Drop it"):
        features(X)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ("all", "discrete_features='all'"),
        (["colour"], "'colour'.* columns are 'number'"),
        ([9], "names 9"),
        ([True], "1 booleans, but X has 5 columns"),
        (None, "column 'word' holds 'b', which is not a number"),
        (["count"], "column 'word' holds 'b'.*leaves it out"),
    ],
)
def test_bad_choices_of_discrete_features(chosen, message):
    with pytest.raises(ValueError, match=message):
        features(MIXED, chosen)


def test_a_column_that_changes_its_kind():
    table = features(MIXED)
    with pytest.raises(ValueError, match="column 'number' was continuous in fit and now holds 'one'"):
        encode(table, MIXED.assign(number="one"))


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (None, "requires y to be passed"),
        (np.empty((3, 0)), "0 class variable"),
        (pd.DataFrame(index=[0, 1]), "0 class variable"),
        ([], "0 sample"),
        (np.array([[0.5, 1.0], [1.0, 2.0]]), "Unknown label type: class variable 'y0' is continuous .*0.5.*intervals"),
        (pd.DataFrame({"a": ["x", None]}), "NaN: column 'a' .*make 'missing' a state"),
        (np.array([1.0, np.nan]), "NaN"),
        ([["a", None], ["b", 1]], "NaN: column 'y1'"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "infinity: column 'a'"),
        ([["a"], ["b", "c"]], "Y is ragged"),
    ],
)
def test_bad_class_variables_are_named(Y, message):
    with pytest.raises(ValueError, match=message):
        ClassTable.fit(Y)


@pytest.mark.parametrize("Y", [[[["a"]], [["b"]]], [[True], [1]], [[1], [True]], {"a": 1}, np.array([1j])])
def test_what_cannot_be_states(Y):
    with pytest.raises(TypeError, match="Y"):
        ClassTable.fit(Y)


MASKED = [
    np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, False], [False, True]]),
    np.ma.array([[1, 2], [3, 4]], mask=[[False, False], [False, True]]),
    np.ma.array([["a", "b"], ["c", "d"]], mask=[[False, False], [False, True]]),
    [np.ma.array([1, 2]), np.ma.array([3, 4], mask=[False, True])],
]


@pytest.mark.parametrize("masked", MASKED, ids=["float", "int", "str", "list"])
def test_masked_cells_are_missing(masked):
    with pytest.raises(ValueError, match="X contains NaN: column 'x1' has 1 missing.*row 1"):
        features(masked)
    with pytest.raises(ValueError, match="Y contains NaN: column 'y1' has 1 missing.*row 1"):
        ClassTable.fit(masked)
    table = ClassTable.fit(np.array([masked[0].data, np.array(masked[1].data)]))
    assert table.encode(masked, missing="mark").tolist() == [[0, 0], [1, -2]]


def test_masked_cells_of_one_dimension_are_missing():
    with pytest.raises(ValueError, match="NaN: column 'y0' has 1 missing.*row 2"):
        ClassTable.fit(np.ma.array([1, 2, 3], mask=[False, False, True]))
    with pytest.raises(ValueError, match="NaN: column 'y0' has 1 missing.*row 0"):
        ClassTable.fit(np.ma.array(["2020", "2021"], dtype="M8[Y]", mask=[True, False]))
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is nan"):
        read_weights(np.ma.array([1.0, 2.0], mask=[False, True]), 2)


def test_a_masked_array_without_masked_cells_is_an_array():
    numbers = np.array([[1.5, 2.5], [3.0, 4.0]])
    assert encode(features(np.ma.array(numbers)), np.ma.array(numbers)).continuous.tolist() == numbers.tolist()
    whole = np.ma.array([[1, 2], [3, 4]], mask=np.zeros((2, 2), dtype=bool))
    table, codes = ClassTable.fit_encode(whole)
    assert table.decode(codes).dtype == whole.dtype
    assert table.decode(codes).tolist() == whole.tolist()
    assert read_weights(np.ma.array([1, 2]), 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\); it must be \(3,\)"),
        ([1.0, -1.0, 1.0], r"sample_weight\[1\] is -1.0"),
        ([1.0, np.nan, 1.0], r"sample_weight\[1\] is nan"),
        ([0, 0, 0], "zero for all rows"),
        (["a", "b", "c"], "must be numbers"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        read_weights(weights, 3)


BIG = 2**53
WHOLE = {
    "pandas": lambda values: pd.DataFrame({"a": pd.array(values, dtype="Int64")}),
    "pandas unsigned": lambda values: pd.DataFrame({"a": pd.array(values, dtype="UInt32")}),
    "pyarrow in pandas": lambda values: pd.DataFrame({"a": pd.array(values, dtype="int64[pyarrow]")}),
    "polars": lambda values: pl.DataFrame({"a": pl.Series(values, dtype=pl.Int64)}),
    "list": lambda values: [[value] for value in values],
}


@pytest.mark.parametrize("container", WHOLE)
def test_whole_numbers_beside_gaps_stay_whole(container):
    small = container == "pandas unsigned"
    one, other = (1, 2) if small else (BIG, BIG + 1)
    make = WHOLE[container]
    table, codes = ClassTable.fit_encode(make([other, None, one, other]), missing="mark")
    assert table.states[0].dtype == np.int64
    assert table.states[0].tolist() == [one, other]
    assert codes[:, 0].tolist() == [1, MISSING, 0, 1]
    assert table.encode(make([one, other]))[:, 0].tolist() == [0, 1]
    assert table.encode(make([one, None]), missing="mark")[:, 0].tolist() == [0, MISSING]
    complete = ClassTable.fit(make([one, other]))
    assert complete.states[0].tolist() == [one, other]
    back = np.asarray(table.decode(np.array([[1], [0]])), dtype=object)[:, 0]
    assert back.tolist() == [other, one]


def test_what_to_do_about_missing_states_depends_on_the_question():
    Y = pd.DataFrame({"a": ["x", "y", "x", "y"], "b": ["p", "p", "q", "q"]})
    gaps = Y.assign(a=["x", None, "x", "y"])
    X = np.arange(8.0).reshape(4, 2)
    for classifier in (BinaryRelevance(), GBNC(missing_labels="error")):
        with pytest.raises(ValueError, match=r"column 'a' has 1 missing .*row 1.*missing_labels='em'"):
            classifier.fit(X, gaps)
    model = BinaryRelevance().fit(X, Y)
    questions = [
        lambda: model.calibrate_sets(X, gaps),
        lambda: hamming_loss(Y, gaps),
    ]
    for question in questions:
        with pytest.raises(ValueError, match=r"column 'a' has 1 missing .*row 1.*complete rows") as caught:
            question()
        assert "missing_labels" not in str(caught.value)
