"""Benchmark tables: what is read agrees with what the tables say of themselves, and errors help."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pmdc.datasets import available, load

FOLDER = Path(os.environ.get("PMDC_DATA") or Path(__file__).parents[3] / "shared" / "data")
NAMES = available(FOLDER) if FOLDER.is_dir() else []

needs_data = pytest.mark.skipif(not NAMES, reason="the benchmark tables are absent: set PMDC_DATA to their folder")


@pytest.fixture
def data_dir(tmp_path):
    """A folder with one small table that has every kind of column, and something that is no table."""
    folder = tmp_path / "data"
    table = folder / "tiny"
    table.mkdir(parents=True)
    frame = pd.DataFrame(
        {
            "x": [1, 2, 3, 4],
            "answer": ["NA", "None", "yes", "NA"],
            "code": [7, 5, 7, 6],
            "level": [2, 10, 2, 2],
            "diagnosis": ["null", "b", "nan", "b"],
        }
    )
    frame.to_csv(table / "data.csv.gz", index=False)
    meta = {
        "name": "tiny",
        "origin": "made",
        "source": "this test",
        "n": 4,
        "continuous": ["x"],
        "discrete": ["answer", "code"],
        "classes": {"level": 2, "diagnosis": 3},
        "folds": "two",
        "notes": "none",
    }
    (table / "meta.json").write_text(json.dumps(meta))
    np.savez(table / "folds.npz", fold0_test=np.array([3, 1]), fold1_test=np.array([0, 2]))
    (folder / "pictures").mkdir()
    return folder


def test_columns_keep_their_values_and_types(data_dir):
    table = load("tiny", data_dir)
    assert table.X["x"].dtype == np.float64
    assert list(table.X.columns) == ["x", "answer", "code"]
    assert table.X["answer"].tolist() == ["NA", "None", "yes", "NA"]
    assert table.X["code"].cat.categories.tolist() == [5, 6, 7]
    assert table.Y["level"].cat.categories.tolist() == [2, 10]  # sorted as numbers
    assert table.Y["diagnosis"].cat.categories.tolist() == ["b", "nan", "null"]
    assert [fold.tolist() for fold in table.folds] == [[3, 1], [0, 2]]
    assert table.name == "tiny"
    assert table.meta["origin"] == "made"
    assert "level (2), diagnosis (3)" in table.DESCR


def test_a_fold_knows_the_states_it_lacks(data_dir):
    table = load("tiny", data_dir)
    train = table.Y.drop(index=table.folds[0])
    assert "b" not in train["diagnosis"].tolist()
    assert "b" in train["diagnosis"].cat.categories


def test_the_data_folder_comes_from_the_argument_or_the_environment(data_dir, tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.delenv("PMDC_DATA", raising=False)
    (tmp_path / "shared").mkdir()
    shutil.copytree(data_dir, tmp_path / "shared" / "data")  # no folder is looked at unless it is named
    for ask in (available, lambda: load("tiny")):
        with pytest.raises(FileNotFoundError, match="data_dir.*PMDC_DATA"):
            ask()
    monkeypatch.setenv("PMDC_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"PMDC_DATA=.*nowhere"):
        load("tiny")
    monkeypatch.setenv("PMDC_DATA", str(data_dir))
    assert load("tiny").name == "tiny"
    with pytest.raises(FileNotFoundError, match="data_dir='elsewhere'"):
        load("tiny", "elsewhere")


@pytest.mark.parametrize("name", ["Tiny", "tinny"])
def test_an_unknown_name_gets_a_suggestion(data_dir, name):
    with pytest.raises(ValueError, match=rf"no table '{name}'.*Did you mean 'tiny'\? Available: tiny"):
        load(name, data_dir)


@pytest.mark.parametrize("name", ["pictures", "../data/tiny", ""])
def test_what_is_no_table_is_unknown(data_dir, name):
    with pytest.raises(ValueError, match=r"There is no table .* Available: tiny"):
        load(name, data_dir)


@pytest.mark.parametrize("file", ["data.csv.gz", "meta.json", "folds.npz"])
def test_an_incomplete_table_names_the_missing_file(data_dir, file):
    (data_dir / "tiny" / file).unlink()
    assert available(data_dir) == []
    with pytest.raises(FileNotFoundError, match=f"'tiny' .* {file}"):
        load("tiny", data_dir)


def test_files_of_different_tables_are_refused(data_dir):
    meta = data_dir / "tiny" / "meta.json"
    meta.write_text(meta.read_text().replace('"n": 4', '"n": 5'))
    with pytest.raises(ValueError, match=r"has 4 rows, but meta\.json says 5"):
        load("tiny", data_dir)


@needs_data
@pytest.mark.benchmark_data
def test_all_tables_are_there():
    assert len(NAMES) >= 22


@pytest.mark.benchmark_data
@pytest.mark.parametrize("name", NAMES or [pytest.param("none", marks=needs_data)])
def test_table_agrees_with_its_description(name):
    table = load(name, FOLDER)
    meta = table.meta
    assert meta["name"] == name
    assert len(table.X) == len(table.Y) == meta["n"]
    assert set(table.X.columns) == {*meta["continuous"], *meta["discrete"]}
    assert list(table.Y.columns) == list(meta["classes"])
    assert table.X.isna().any(axis=None) == ("empty cells in X" in meta["notes"])
    assert not table.Y.isna().any(axis=None)
    assert all(table.X[column].dtype == np.float64 for column in meta["continuous"])
    assert all(isinstance(table.X[column].dtype, pd.CategoricalDtype) for column in meta["discrete"])
    for variable, n_states in meta["classes"].items():
        states = table.Y[variable].cat.categories
        assert len(states) == n_states
        assert states.is_monotonic_increasing
        assert set(states) == set(table.Y[variable])
    assert len(table.folds) == 10
    assert np.array_equal(np.sort(np.concatenate(table.folds)), np.arange(meta["n"]))
