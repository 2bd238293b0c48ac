"""Dates and times as features: every container gives the same numbers, and later tables need no known dates."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pmdc
from pmdc import GBNC
from pmdc.table.columns import read_columns
from pmdc.table.features import FeatureTable

STAMPS = pd.date_range("2019-03-01 06:30", periods=60, freq="11D7h")
LISTED = STAMPS.to_pydatetime().tolist()


def read(X):
    columns = read_columns(X, "X", "test")
    table = FeatureTable.fit(columns)
    return table, table.encode(columns)


CONTAINERS = {
    "pandas": lambda: pd.DataFrame({"when": STAMPS}),
    "pandas seconds": lambda: pd.DataFrame({"when": STAMPS.as_unit("s")}),
    "pandas zone": lambda: pd.DataFrame({"when": STAMPS.tz_localize("Europe/Berlin")}),
    "pandas objects": lambda: pd.DataFrame({"when": pd.Series(LISTED, dtype=object)}),
    "polars": lambda: pl.DataFrame({"when": LISTED}),
    "polars zone": lambda: pl.DataFrame({"when": pl.Series(LISTED).dt.replace_time_zone("Asia/Tokyo")}),
    "array": lambda: STAMPS.to_numpy().reshape(-1, 1),
    "list": lambda: [[stamp] for stamp in LISTED],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_gives_the_numbers_of_the_clock(name):
    table, features = read(CONTAINERS[name]())
    (parts,) = table.date_names.values()
    assert parts == ["days", "month", "weekday", "hour"]
    assert [table.names[i] for i in table.continuous] == table.names * 4
    since = [(stamp - datetime.datetime(2000, 1, 1)).total_seconds() / 86400 for stamp in LISTED]
    expected = [[d, s.month, s.weekday(), s.hour + s.minute / 60] for d, s in zip(since, LISTED, strict=True)]
    np.testing.assert_allclose(features.continuous, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("dates", "parts"),
    [
        (["2020-01-01", "2020-01-01"], ["days"]),
        (["2020-01-01", "2020-01-08", "2020-01-15"], ["days"]),
        (["2020-01-01", "2020-06-02"], ["days", "weekday"]),
        (["2018-01-01", "2020-06-02"], ["days", "month", "weekday"]),
        (["2020-01-01 08:00", "2020-01-01 09:00"], ["days", "hour"]),
    ],
)
def test_only_what_varies_is_a_feature(dates, parts):
    assert read(pd.DataFrame({"when": pd.to_datetime(dates)}))[0].date_names == {"when": parts}


def test_times_of_day():
    times = [datetime.time(6, 30), datetime.time(23, 0, 36)]
    for X in (pd.DataFrame({"at": times}), pl.DataFrame({"at": times})):
        table, features = read(X)
        assert table.date_names == {"at": ["time"]}
        np.testing.assert_allclose(features.continuous[:, 0], [6.5, 23.01])


def test_a_date_must_stay_a_date():
    table, _ = read(pd.DataFrame({"when": STAMPS}))
    for column in ([1.0], ["2020-01-01"], [datetime.time(3)]):
        with pytest.raises(ValueError, match="column 'when' was a date in fit and now holds"):
            table.encode(read_columns(pd.DataFrame({"when": column}), "X", "test"))
    number, _ = read(pd.DataFrame({"a": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="column 'a' was continuous in fit"):
        number.encode(read_columns(pd.DataFrame({"a": STAMPS}), "X", "test"))


def test_dates_can_be_categories():
    X = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"] * 5)})
    columns = read_columns(X, "X", "test")
    table = FeatureTable.fit(columns, ["when"])
    assert table.discrete_names == ["when"]
    assert table.encode(columns).discrete[:, 0].tolist() == [0, 1] * 5


def test_a_model_learns_from_dates_and_predicts_days_never_seen(tmp_path):
    random = np.random.default_rng(0)
    when = pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 700, 300), unit="D")
    late = (when > pd.Timestamp("2021-01-01")).astype(int)
    Y = pd.DataFrame({"late": late, "coin": random.integers(0, 2, 300)})
    X = pd.DataFrame({"x": random.normal(size=300), "when": when})
    model = GBNC(experts=None).fit(X, Y)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["x", "when"]
    new = pd.DataFrame({"x": [0.0, 0.0], "when": pd.to_datetime(["2019-05-05", "2023-05-05"])})
    assert model.predict(new)["late"].tolist() == [0, 1]
    pmdc.save(model, tmp_path / "model.skops")
    again = pmdc.load(tmp_path / "model.skops")
    for one, other in zip(model.predict_proba(new), again.predict_proba(new), strict=True):
        assert (one == other).all()
    with pytest.raises(ValueError, match="column 'when' was a date"):
        model.predict(new.assign(when=[1, 2]))
    with pytest.raises(ValueError, match="'when'"):
        GBNC(experts=None, required_edges=[("when", "late")]).fit(X, Y)
