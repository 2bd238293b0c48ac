"""Saving and loading: models come back bit for bit, no code is run, and no partial file is left."""

import datetime
import errno
import importlib.util
import io
import json
import os
import pickle
import stat
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import pmdc
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.candidates.families import Family
from pmdc.decisions import BlockLoss, CostLoss
from pmdc.experts import ExpertPlan, ExpertScore
from pmdc.experts.recipes import BoostingRecipe, ForestRecipe, LogisticRecipe
from pmdc.learners import Logistic, NaiveBayes
from pmdc.learners.inputs import Affine, Indicators, Rotated
from pmdc.learners.partition import Configurations
from pmdc.model_selection import MultiStratifiedKFold
from pmdc.scores.criteria import bic_penalty

pytest.importorskip("skops")

SAVED = Path(__file__).parent / "saved"
_spec = importlib.util.spec_from_file_location("write_saved", SAVED / "write.py")
write_saved = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(write_saved)

X, Y = write_saved.table(90)
NEW = write_saved.table(25)[0]
NUMBERS = X[["u", "v"]].to_numpy()


@pytest.fixture(scope="module")
def fitted():
    """A model that no test changes."""
    return GBNC(experts=None, max_parents=2).fit(X, Y)


@pytest.fixture
def saved(fitted, tmp_path):
    path = tmp_path / "model.skops"
    pmdc.save(fitted, path)
    return path


def there_and_back(model, folder, trusted=()):
    path = folder / "model"
    pmdc.save(model, path)
    assert [p.name for p in folder.iterdir()] == ["model"]
    return pmdc.load(path, trusted)


def assert_equal(one, other):
    """Equal to the bit, in the same types."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)
        if one.dtype == object:
            assert [type(v) for v in one.ravel()] == [type(v) for v in other.ravel()]
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True, check_freq=True)
    elif isinstance(one, pl.DataFrame):
        assert one.schema == other.schema
        assert one.rows() == other.rows()
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_equal(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        assert_equal(list(one.values()), list(other.values()))
    else:
        assert one == other


def assert_same_model(model, again, rows=NEW, losses=("hamming", "subset")):
    assert type(again) is type(model)
    for loss in (None, *losses):
        assert_equal(model.predict(rows, loss=loss), again.predict(rows, loss=loss))
    assert_equal(model.predict_proba(rows), again.predict_proba(rows))
    joint, same = model.predict_joint(rows), again.predict_joint(rows)
    assert_equal(joint.log_prob(model.predict(rows)), same.log_prob(model.predict(rows)))
    assert_equal(joint.sample(3, random_state=1), same.sample(3, random_state=1))
    assert repr(model) == repr(again)
    assert repr(model.get_params()) == repr(again.get_params())
    assert repr(clone(again)) == repr(model)
    assert vars(model).keys() == vars(again).keys()
    assert_equal(model.classes_, again.classes_)
    assert model.n_features_in_ == again.n_features_in_


# The same model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [None, NaiveBayes(alpha=2.0), GaussianNB()], ids=["logistic", "bayes", "sklearn"])
@pytest.mark.parametrize(
    "kind",
    [
        GBNC(experts=None, max_parents=1),
        BinaryRelevance(),
        ClassifierChain(order="random", random_state=1),
        ChainEnsemble(n_chains=2, bootstrap=True, random_state=0),
        ClassPowerset(loss="hamming"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_model_comes_back_to_the_bit(kind, estimator, tmp_path):
    model = clone(kind).set_params(estimator=estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
        assert_same_model(model, there_and_back(model, tmp_path))


def test_what_fit_has_found_comes_back(fitted, saved):
    again = pmdc.load(saved)
    assert_same_model(fitted, again, losses=("hamming", "subset", "sub-exact", CostLoss({"kind": 3.0})))
    assert again.structure_ == fitted.structure_
    assert list(again.structure_.parents) == list(fitted.structure_.parents)
    assert_equal(fitted.scores_, again.scores_)
    assert {type(parents) for table in again.scores_.values() for parents in table} == {frozenset}
    assert again.conditioning_ == fitted.conditioning_
    assert again.C_ == fitted.C_
    assert list(again.graph_.nodes(data=True)) == list(fitted.graph_.nodes(data=True))
    assert list(again.graph_.edges(data=True)) == list(fitted.graph_.edges(data=True))
    assert_equal(fitted.feature_names_in_, again.feature_names_in_)
    evidence = {"kind": "a"}
    assert_equal(fitted.predict(NEW, given=evidence), again.predict(NEW, given=evidence))
    assert_equal(again.fit(X, Y).predict(NEW), fitted.predict(NEW))  # it can learn again


def test_complaints_about_tables_come_back(saved):
    again = pmdc.load(saved)
    with pytest.raises(ValueError, match="u"):
        again.predict(NEW.rename(columns={"u": "w"}))
    with pytest.warns(UserWarning, match="colour.*violet"):
        again.predict(NEW.assign(colour="violet"))


def test_a_model_of_a_model_that_was_loaded(fitted, saved, tmp_path):
    (tmp_path / "second").mkdir()
    assert_same_model(fitted, there_and_back(pmdc.load(saved), tmp_path / "second"))


PARAMETERS = [
    {"loss": CostLoss({"kind": [[0, 1], [5, 0]], "size": "absolute"})},
    {"loss": BlockLoss([["size", "count"]], weights=[2.0])},
    {"cv": MultiStratifiedKFold(3, shuffle=True, random_state=1), "criterion": "cv"},
    {"cv": [(np.arange(45), np.arange(45, 90)), (np.arange(45, 90), np.arange(45))], "criterion": "cv"},
    {"required_edges": [("size", "kind")], "forbidden_edges": {("kind", "ripe")}},
    {"discrete_features": ("colour",), "memory_budget": np.int64(2**28), "guard": np.float64(0.5)},
    {"cv": KFold(2, shuffle=True, random_state=0), "criterion": "cv"},
    {"estimator": LogisticRegression(C=0.5)},
    {"estimator": Logistic(C=np.inf, max_iter=50), "criterion": "bic"},
    {"estimator": NaiveBayes(), "backoff": "paper", "criterion": "bic", "conditioning": "partition"},
    {"backoff": "none", "criterion": "aic", "conditioning": "input"},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda given: "-".join(given))
def test_parameters_come_back(parameters, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GBNC(experts=None, **{"max_parents": 1, **parameters}).fit(X, Y)
        assert_same_model(model, there_and_back(model, tmp_path))


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), Logistic()),
        make_pipeline(StandardScaler(), NaiveBayes()),
        CalibratedClassifierCV(LinearDiscriminantAnalysis(), cv=2),
        VotingClassifier([("one", GaussianNB()), ("other", LogisticRegression())], voting="soft"),
        MLPClassifier((3,), max_iter=5, random_state=0),
        GaussianProcessClassifier(RBF(2.0) + WhiteKernel(), optimizer=None),
        SGDClassifier(loss="log_loss", random_state=0),
        GridSearchCV(Logistic(), {"C": [0.1, 1.0]}, cv=StratifiedKFold(2)),
        GBNC(experts=None),
    ],
    ids=lambda estimator: type(estimator[-1] if isinstance(estimator, Pipeline) else estimator).__name__,
)
def test_estimators_of_scikit_learn_come_back(estimator, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BinaryRelevance(estimator).fit(X, Y)
        assert_same_model(model, there_and_back(model, tmp_path))


def test_a_random_state_comes_back_as_it_was(tmp_path):
    model = ClassPowerset(random_state=np.random.RandomState(3)).fit(X, Y)
    model.random_state.rand(7)
    again = there_and_back(model, tmp_path)
    assert_equal(model.random_state.rand(5), again.random_state.rand(5))


def test_a_function_with_a_name_is_loaded_if_it_is_trusted(tmp_path):
    model = GBNC(experts=None, max_parents=1, criterion=bic_penalty).fit(X, Y)
    pmdc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"not known to be safe: pmdc\.scores\.criteria\.bic_penalty\."):
        pmdc.load(tmp_path / "model")
    again = pmdc.load(tmp_path / "model", trusted=["pmdc.scores.criteria.bic_penalty"])
    assert again.criterion is bic_penalty
    assert_same_model(model, again)


def test_trees_are_loaded_if_they_are_trusted(tmp_path):
    model = BinaryRelevance(RandomForestClassifier(3, random_state=0)).fit(X, Y)
    pmdc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"trusted=\['sklearn.tree._tree.Tree'\]"):
        pmdc.load(tmp_path / "model")
    assert_same_model(model, pmdc.load(tmp_path / "model", trusted=["sklearn.tree._tree.Tree"]))
    from sklearn.tree._tree import Tree

    assert_same_model(model, pmdc.load(tmp_path / "model", trusted=[Tree]))


# Containers and states ------------------------------------------------------------------------------------------

FLAG = (X["u"] > 0).to_numpy()
THREE = FLAG.astype(int) + (X["v"] > 1).to_numpy()


def chosen(*states):
    return [states[i] for i in THREE]


def stamps(zone=None):
    return pd.Series(pd.to_datetime(["2020-01-01", "2020-02-02", "2021-03-03"]).tz_localize(zone)[THREE])


PANDAS = {
    "category": pd.Categorical(chosen("a", "b", "c"), categories=["c", "d", "b", "a"], ordered=True),
    "category of integers": pd.Series(THREE, dtype="int8").astype("category"),
    "category of booleans": pd.Series(FLAG).astype("category"),
    "category of intervals": pd.cut(X["u"], 3),
    "category of timestamps": stamps().astype("category"),
    "category of zoned timestamps": stamps("Europe/Berlin").astype("category"),
    "category of timedeltas": pd.Series(pd.to_timedelta([1, 2, 3], unit="D")[THREE]).astype("category"),
    "category of periods": pd.Series(pd.period_range("2020-01", periods=3, freq="M")[THREE]).astype("category"),
    "category of tuples": pd.Categorical.from_codes(
        THREE, pd.Index([(1, "a"), (2, "b"), (3, "c")], tupleize_cols=False)
    ),
    "text": pd.Series(chosen("a", "b", "c")),
    "nullable text": pd.Series(chosen("a", "b", "c"), dtype=pd.StringDtype("python")),
    "nullable integers": pd.Series(THREE, dtype="Int64"),
    "nullable booleans": pd.Series(FLAG, dtype="boolean"),
    "small integers": pd.Series(THREE, dtype="uint8"),
    "floats": pd.Series(THREE, dtype="float32"),
    "booleans": pd.Series(FLAG),
    "tuples": pd.Series(chosen((1, "a"), (2, ("b",)), (3, "c"))),
    "dates": pd.Series(chosen(*(datetime.date(2020, 1, day) for day in (1, 2, 3))), dtype=object),
    "timestamps": stamps(),
    "timestamps of seconds": stamps().dt.as_unit("s"),
    "zoned timestamps": stamps("Europe/Berlin"),
    "timedeltas": pd.Series(pd.to_timedelta([1, 2, 3], unit="D")[THREE]),
    "periods": pd.Series(pd.period_range("2020-01", periods=3, freq="M")[THREE]),
    "arrow timestamps": stamps().astype("timestamp[us, tz=UTC][pyarrow]"),
    "arrow dates": stamps().astype("date32[day][pyarrow]"),
    "decimals": pd.Series(chosen(Decimal("1.10"), Decimal("1.2"), Decimal("3")), dtype=object),
}


@pytest.mark.parametrize("column", PANDAS.values(), ids=PANDAS)
def test_pandas_comes_back_as_pandas(column, tmp_path):
    classes = pd.DataFrame({"p": np.zeros(len(X)), 7: np.where(FLAG, "yes", "no")}, index=X.index + 5)
    classes["p"] = column if isinstance(column, pd.Categorical) else column.array
    model = GBNC(experts=None, max_parents=1).fit(X[["u", "v"]], classes)
    rows = NEW[["u", "v"]].set_index(NEW.index + 100)
    again = there_and_back(model, tmp_path)
    assert_same_model(model, again, rows)
    assert again.predict(rows).dtypes.tolist() == classes.dtypes.tolist()


TIMES = [datetime.datetime(2020, 1, day, 5) for day in (1, 2, 3)]
POLARS = {
    "text": pl.Series(chosen("a", "b", "c")),
    "category": pl.Series(chosen("a", "b", "c"), dtype=pl.Categorical),
    "enum": pl.Series(chosen("a", "b", "c"), dtype=pl.Enum(["c", "z", "b", "a"])),
    "small integers": pl.Series(THREE, dtype=pl.Int8),
    "booleans": pl.Series(FLAG),
    "tuples": pl.Series(chosen((1,), (2,), (3,)), dtype=pl.Object),
    "dates": pl.Series(chosen(*(datetime.date(2020, 1, day) for day in (1, 2, 3)))),
    "timestamps": pl.Series(
        chosen(*(datetime.datetime(2020, 1, day, 5) for day in (1, 2, 3))), dtype=pl.Datetime("ms")
    ),
    "zoned timestamps": pl.Series(
        chosen(*(datetime.datetime(2020, 1, day, 5) for day in (1, 2, 3))), dtype=pl.Datetime("ns", "Europe/Berlin")
    ),
    "durations": pl.Series(chosen(*map(datetime.timedelta, (1, 2, 3))), dtype=pl.Duration("us")),
    "times": pl.Series(chosen(*map(datetime.time, (1, 2, 3)))),
    "decimals": pl.Series(chosen(Decimal("1.10"), Decimal("1.2"), Decimal("3")), dtype=pl.Decimal(10, 2)),
    "bytes": pl.Series(chosen(b"a", b"b", b"c")),
}


@pytest.mark.parametrize("column", POLARS.values(), ids=POLARS)
def test_polars_comes_back_as_polars(column, tmp_path):
    table = pl.DataFrame({"u": X["u"].to_numpy(), "colour": X["colour"].tolist()})
    model = GBNC(experts=None, max_parents=1).fit(table, pl.DataFrame({"p": column, "q": FLAG}))
    again = there_and_back(model, tmp_path)
    assert_equal(model.predict(table), again.predict(table))
    assert again.predict(table).schema["p"] == column.dtype


STATES = {
    "text": ("a", "b", "c"),
    "integers": (1, 2, 30),
    "large integers": (10**30, 5, 6),
    "floats": (1.0, 2.0, 3.0),
    "booleans": (True, False, False),
    "bytes": (b"a", b"b", b"c"),
    "tuples": ((1, "a"), (2, (None, 0.5)), (3, "c")),
    "numpy scalars": ((np.int8(3), np.str_("x")), (np.float32(0.1), "y"), (np.bool_(True), "z")),
    "decimals": (Decimal("1.10"), Decimal("1.2"), Decimal("3")),
    "dates": tuple(datetime.date(2020, 1, day) for day in (1, 2, 3)),
    "times": tuple(datetime.datetime(2020, 1, day, 2, 3, 4, 5, tzinfo=datetime.UTC) for day in (1, 2, 3)),
    "of several types": ("a", 1, "z"),
}


@pytest.mark.parametrize("states", STATES.values(), ids=STATES)
def test_arrays_of_any_states_come_back(states, tmp_path):
    outcomes = np.empty((len(X), 2), dtype=object)
    outcomes[:, 1] = np.where(FLAG, "yes", "no")
    for i, state in enumerate(chosen(*states)):
        outcomes[i, 0] = state
    model = GBNC(experts=None, max_parents=1).fit(NUMBERS, outcomes)
    assert_same_model(model, there_and_back(model, tmp_path), NUMBERS)


@pytest.mark.parametrize(
    "y", [THREE, np.array(chosen("a", "b", "c")), chosen("a", "b", "c"), THREE.astype(">i4"), THREE.astype("M8[D]")]
)
def test_one_class_variable_comes_back(y, tmp_path):
    model = GBNC(experts=None).fit(NUMBERS, y)
    assert_same_model(model, there_and_back(model, tmp_path), NUMBERS)


# What cannot be saved -------------------------------------------------------------------------------------------


def bic_penalty_of_another(penalty):
    def bic_penalty(size):
        return penalty(size)

    bic_penalty.__module__ = "pmdc.scores.criteria"
    return bic_penalty


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": bic_penalty_of_another(lambda size: 1.0)}, r"criterion=<function.*set_params"),
        ({"callback": lambda structure: False}, r"callback=<function.*set_params\(callback=None\)"),
        ({"criterion": lambda size: 1.0}, r"criterion=<function.*set_params\(criterion='auto'\)"),
        ({"loss": lambda one, other: float((one != other).any())}, r"loss=<function.*give the function to predict"),
    ],
)
def test_what_cannot_be_saved_is_named(parameters, message, tmp_path):
    model = GBNC(experts=None, max_parents=1, **parameters).fit(X, Y)
    with pytest.raises(ValueError, match=message):
        pmdc.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_an_estimator_that_cannot_be_saved_is_named(tmp_path):
    model = BinaryRelevance(make_pipeline(FunctionTransformer(lambda x: x), Logistic())).fit(NUMBERS, THREE)
    with pytest.raises(ValueError, match=r"(?s)the estimator Pipeline.*Fit again.*lambda"):
        pmdc.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_states_that_cannot_be_saved_are_named(tmp_path):
    class State:
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return self.name

    class Named(str):
        __slots__ = ()

    with pytest.raises(ValueError, match="'[abc]', a state of a class variable, is of type Named"):
        pmdc.save(
            GBNC(experts=None).fit(NUMBERS, np.array(chosen(*map(Named, "abc")), dtype=object)),
            tmp_path / "model.skops",
        )
    outcomes = np.array(chosen(*map(State, "abc")), dtype=object)
    with pytest.raises(ValueError, match="[abc], a state of a class variable, is of type State"):
        pmdc.save(GBNC(experts=None).fit(NUMBERS, outcomes), tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_other_things_than_fitted_models_are_refused(tmp_path):
    with pytest.raises(TypeError, match="LogisticRegression: save takes GBNC"):
        pmdc.save(LogisticRegression(), tmp_path / "model")
    with pytest.raises(ValueError, match="this GBNC is not fitted"):
        pmdc.save(GBNC(experts=None), tmp_path / "model")


# Places ---------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_missing_is_named(fitted, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere. Create it"):
        pmdc.save(fitted, tmp_path / "nowhere" / "model.skops")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="there is no folder"):
        pmdc.save(fitted, tmp_path / "file" / "model.skops")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        pmdc.save(fitted, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_cannot_be_written_is_named(fitted, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match="model.skops cannot be written"):
            pmdc.save(fitted, tmp_path / "model.skops")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_what_was_there_stays_when_writing_fails(step, error, fitted, tmp_path, monkeypatch):
    def fail(*_):
        raise error

    path = tmp_path / "model.skops"
    path.write_text("what was there")
    monkeypatch.setattr(os, "fsync", fail) if step == "fsync" else monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(error), match="No space left" if isinstance(error, OSError) else None):
        pmdc.save(fitted, path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]
    assert path.read_text() == "what was there"


def test_a_name_may_be_as_long_as_the_system_takes(fitted, tmp_path):
    place = tmp_path / ("\u6a21" * 84)
    try:
        place.touch()
    except OSError:
        pytest.skip("the system takes no such names")
    pmdc.save(fitted, place)
    assert list(tmp_path.iterdir()) == [place]
    pmdc.load(place)


def test_links_and_rights_are_kept(fitted, tmp_path):
    place, link = tmp_path / "place", tmp_path / "link"
    place.write_text("old")
    place.chmod(0o640)
    link.symlink_to(place)
    pmdc.save(fitted, str(link))
    assert link.is_symlink()
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert_same_model(fitted, pmdc.load(place))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_only_files_are_written_to(fitted, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is not a regular file"):
        pmdc.save(fitted, tmp_path / "pipe")


# Files that are none, or not ours -------------------------------------------------------------------------------


class Marker:
    """A pickle of it makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_other_files_are_told_apart(tmp_path, saved):
    path, marker = tmp_path / "other", tmp_path / "marker"

    def complaint(content):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="other") as caught:
            pmdc.load(path)
        return str(caught.value)

    assert "is empty" in complaint(b"")
    assert "was not written by pmdc.save" in complaint(b"a,b\n1,2\n")
    assert "is a pickle" in complaint(pickle.dumps(Marker(marker)))
    assert "was not written by pmdc.save" in complaint(pickle.dumps(Marker(marker), protocol=0))
    assert not marker.exists()
    whole = saved.read_bytes()
    for share in (0.1, 0.5, 0.99):
        assert "damaged" in complaint(whole[: int(share * len(whole))])
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("schema.json", "{}")
    assert "archive that was not written by pmdc.save" in complaint(other.getvalue())
    import skops.io

    assert "archive that was not written by pmdc.save" in complaint(skops.io.dumps(LogisticRegression()))
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        pmdc.load(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError, match="cannot be read"):
        pmdc.load(tmp_path)
    for wrong in ("numpy.ndarray", True, None, np.ndarray, [None]):
        with pytest.raises(ValueError, match="trusted=.* must be a list"):
            pmdc.load(saved, trusted=wrong)


def test_bits_that_changed_are_noticed(saved):
    whole = bytearray(saved.read_bytes())
    noticed = []
    for place in np.random.default_rng(0).integers(0, len(whole), 60):
        changed = whole.copy()
        changed[place] ^= 0xFF
        saved.write_bytes(changed)
        with suppress(ValueError):  # what is not read, such as the time of writing, may change
            pmdc.load(saved)
            continue
        noticed.append(place)
    assert len(noticed) > 40


def edit(path, change, member="pmdc.json"):
    """Change the JSON of a member of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(members[member])
    changed = change(content)
    members[member] = json.dumps(content if changed is None else changed).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_a_later_format_is_refused_and_says_who_wrote_it(saved):
    edit(saved, lambda content: content.update(format=99, pmdc="7.5.0", model="whatever it will be"))
    with pytest.raises(ValueError, match=r"format 99 and was written by pmdc 7\.5\.0.*Update pmdc"):
        pmdc.load(saved)


def test_a_later_skops_is_told(saved):
    edit(saved, lambda schema: schema.update(protocol=99), "schema.json")
    with pytest.raises(ValueError, match="written with a later skops.*protocol 99"):
        pmdc.load(saved)


def test_what_cannot_be_read_says_what_it_was_written_with(saved):
    edit(saved, lambda content: content["model"]["parameters"].update(of_tomorrow=1) or content.update(pmdc="0.9.9"))
    with pytest.raises(ValueError, match=rf"of_tomorrow.*written with pmdc 0\.9\.9 \(here {pmdc.__version__}\): try"):
        pmdc.load(saved)


@pytest.mark.parametrize("version", [None, "1", 0, True, 1.0])
def test_a_format_that_is_none_is_refused(saved, version):
    edit(saved, lambda content: content.update(format=version))
    with pytest.raises(ValueError, match="no format version"):
        pmdc.load(saved)


def test_versions_are_in_the_file(saved):
    with zipfile.ZipFile(saved) as archive:
        content = json.loads(archive.read("pmdc.json"))
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    assert content["format"] == 1
    assert content["pmdc"] == pmdc.__version__
    assert content["scikit-learn"] == sklearn.__version__
    assert content["numpy"] == np.__version__


def test_another_scikit_learn_is_told_once_where_its_estimators_are(fitted, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_estimators = BinaryRelevance(LinearDiscriminantAnalysis()).fit(X, Y)
    with monkeypatch.context() as patch:
        patch.setattr("sklearn.base.__version__", "1.0.1")
        patch.setattr("pmdc.saving.files.version", lambda package: "1.0.1")
        pmdc.save(with_estimators, tmp_path / "with")
        pmdc.save(fitted, tmp_path / "without")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pmdc.load(tmp_path / "with")
        pmdc.load(tmp_path / "without")
    assert [str(one.message) for one in told] == [str(told[0].message)]
    assert "estimators of scikit-learn 1.0.1" in str(told[0].message)
    assert told[0].filename == __file__


def test_an_archive_that_expands_without_limit_is_refused(saved, monkeypatch):
    monkeypatch.setattr("pmdc.saving.files._MAX_BYTES", 0)
    monkeypatch.setattr("pmdc.saving.files._MAX_RATIO", 1)
    with pytest.raises(ValueError, match="bytes expand to"):
        pmdc.load(saved)


def write_crafted(path, member, text, valid):
    """Write an archive with this text as one member, and others that are valid."""
    with zipfile.ZipFile(valid) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**members, member: text}.items():
            archive.writestr(name, data)


def refused_with_peak(path):
    """Return the peak of memory while a file is refused, in MB."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="is damaged"):
            pmdc.load(path)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


JSON_BOMBS = {
    "empty lists": b"[" + b"[]," * 12_000_000 + b"[]]",
    "few enough bytes": b"[" + b"[]," * 5_000_000 + b"[]]",
    "mappings": b"[" + b'{"":0},' * 2_000_000 + b"0]",
    "numbers": b"[" + b"0," * 8_000_000 + b"0]",
    "deep": b"[" * 200_000 + b"]" * 200_000,
    "a string": b'"' + b"a" * 50_000_000 + b'"',
    "json in a string": b'["' + b"\\u005b\\u005d\\u002c" * 1_000_000 + b'"]',
}


@pytest.mark.parametrize("member", ["pmdc.json", "schema.json"])
@pytest.mark.parametrize("text", JSON_BOMBS.values(), ids=JSON_BOMBS)
def test_json_that_would_take_much_memory_is_refused_before_it_is_parsed(text, member, saved, tmp_path):
    path = tmp_path / "bomb"
    write_crafted(path, member, text, saved)
    assert path.stat().st_size < 120_000
    assert refused_with_peak(path) < 100


@pytest.mark.parametrize("name", ["more.npy", "pmdc.json", "schema.json"])
def test_a_member_that_expands_to_gigabytes_is_refused_before_it_is_read(name, saved, tmp_path):
    """Of the 3 GB there are only the first; it is the directory of the archive that promises them."""
    path = tmp_path / "bomb"
    write_crafted(path, name, bytes(1_000_000), saved)
    whole = path.read_bytes()
    size, promised = (1_000_000).to_bytes(4, "little"), (3_000_000_000).to_bytes(4, "little")
    assert whole.count(size) == 2
    path.write_bytes(whole.replace(size, promised))
    assert refused_with_peak(path) < 20


def test_a_model_that_could_not_be_loaded_is_not_saved(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("pmdc.saving.files._MAX_JSON_VALUES", 10)
    monkeypatch.setattr("pmdc.saving.files._MAX_VALUES_RATIO", 0)
    with pytest.raises(ValueError, match=r"too large.* values of schema\.json"):
        pmdc.save(fitted, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_asked_for_many_times_are_refused(saved, monkeypatch):
    def repeat(schema):
        array = next(iter(schema["content"]["arrays"]["content"].values()))
        again = {key: value for key, value in array.items() if key != "__id__"}
        schema["content"]["objects"]["content"].extend([again] * 1000)

    edit(saved, repeat, "schema.json")
    pmdc.load(saved)
    with zipfile.ZipFile(saved) as archive:
        once = sum(member.file_size for member in archive.infolist())
    monkeypatch.setattr("pmdc.saving.files._MAX_BYTES", 2 * once)
    monkeypatch.setattr("pmdc.saving.files._MAX_RATIO", 0)
    with pytest.raises(ValueError, match="bytes expand to"):
        pmdc.load(saved)


# Malice ---------------------------------------------------------------------------------------------------------


def node(module, name, loader, **more):
    return {"__module__": module, "__class__": name, "__loader__": loader, **more}


def text(value):
    return node("builtins", "str", "JsonNode", content=json.dumps(value), is_json=True)


def several(*values):
    return node("builtins", "tuple", "TupleNode", content=list(values))


def partial(function, *args):
    none = node("builtins", "dict", "DictNode", content={}, key_types=node("builtins", "list", "ListNode", content=[]))
    return node(
        "functools",
        "partial",
        "PartialNode",
        content={"func": function, "args": several(*args), "kwds": none, "namespace": text(None)},
    )


def malice(marker):
    """Nodes that run something when they are made, or hand out what could."""
    command = f"touch {marker}"
    call = "ConstructorFromReduceNode"
    system = node("os", "system", "FunctionNode")
    return {
        "os.system": node("os", "system", call, content=several(text(command))),
        "posix.system": node("posix", "system", "TypeNode"),
        "builtins.eval": node("builtins", "eval", call, content=several(text(f"open({str(marker)!r}, 'w')"))),
        "builtins.exec": node("builtins", "exec", "FunctionNode"),
        "subprocess.Popen": node("subprocess", "Popen", call, content=several(text(["touch", str(marker)]))),
        "operator.methodcaller": node("operator", "methodcaller", "OperatorFuncNode", attrs=several(text("mkdir"))),
        "functools.partial": partial(system, text(command)),
        "pathlib.Path": node("pathlib", "Path", call, content=several(text(str(marker)))),
        "pmdc.saving.files._write": node("pmdc.saving.files", "_write", call, content=several(text(str(marker)))),
        "pmdc.save": node("pmdc", "save", "FunctionNode"),
        "pmdc.load": node("pmdc", "load", "TypeNode"),
        "pmdc.GBNC": node("pmdc", "GBNC", "ObjectNode", content=None),
        "pmdc._support.extras.require": node(
            "pmdc._support.extras", "require", call, content=several(text("antigravity"))
        ),
        "pmdc.learners.Logistic.fit": node(
            "pmdc.learners",
            "Logistic",
            "MethodNode",
            content={"func": "fit", "obj": node("pmdc.learners", "Logistic", "ObjectNode", content=None)},
        ),
    }


@pytest.mark.parametrize("name", malice(None))
@pytest.mark.parametrize("place", ["object", "key", "root"])
def test_dangerous_types_are_refused_and_nothing_is_run(name, place, saved, tmp_path):
    marker = tmp_path / "marker"
    evil = malice(marker)[name]

    def change(schema):
        if place == "root":
            return {**evil, "protocol": schema["protocol"], "_skops_version": schema["_skops_version"]}
        if place == "key":
            schema["content"]["arrays"]["key_types"]["content"][0] = evil
        else:
            schema["content"]["objects"]["content"].append(evil)
        return None

    edit(saved, change, "schema.json")
    with pytest.raises(ValueError, match=name.replace(".", r"\.")) as caught:
        pmdc.load(saved)
    assert "not known to be safe" in str(caught.value)
    assert not marker.exists()


@pytest.mark.parametrize(
    "plain",
    [
        {"is": "os.system", "fields": ["true"]},
        {"is": "builtins.eval", "fields": ["1"]},
        {"is": "function", "name": "os.system"},
        {"is": "function", "name": "save"},
        {"is": "Writer", "fields": []},
        {"is": "pmdc.saving.files.save"},
        {"is": ["GBNC"]},
        {"no": "type"},
        {"is": "array", "dtype": "<f8", "shape": [10**9], "order": "C", "start": 0},
        {"is": "array", "dtype": "<f8", "shape": [1], "order": "C", "start": -1},
        {"is": "object", "number": 5},
        {"is": "tuple", "items": {"is": "builtins.range", "fields": [0, 10**15, 1]}},
        {"is": "fractions.Fraction", "fields": ["1e999999999"]},
        {"is": "Affine", "shift": 1.0},
        {"is": "column", "fields": ["polars", "p", {"is": "dict", "items": [["kind", "from_native"]]}, []]},
        {"is": "column", "fields": ["plugin", "p", {"is": "dict", "items": [["kind", "String"]]}, []]},
        {"is": "datetime.datetime", "fields": ["2020-01-01", 0, "../../etc/passwd"]},
    ],
)
def test_the_plain_data_names_no_other_types(plain, saved):
    edit(saved, lambda content: content["model"]["fitted"].update(_network=plain))
    with pytest.raises(ValueError, match="is damaged, or was not written by pmdc.save"):
        pmdc.load(saved)


def test_the_plain_data_hides_no_method_and_is_a_model(saved):
    edit(saved, lambda content: content["model"]["fitted"].update(predict=1))
    with pytest.raises(ValueError, match="a value for 'predict' of GBNC"):
        pmdc.load(saved)
    edit(saved, lambda content: content.update(model={"is": "Logistic", "parameters": {}, "fitted": {}}))
    with pytest.raises(ValueError, match="not hold a pmdc classifier"):
        pmdc.load(saved)
    edit(saved, lambda content: {"format": 1})
    with pytest.raises(ValueError, match="is damaged"):
        pmdc.load(saved)


def first_node(model):
    return model._network.nodes[0] if isinstance(model, GBNC) else model._models[0][0]


def first_level(model):
    """The local models of the first class variable."""
    node = first_node(model)
    return node.levels[node.family]


def first_classifier(model):
    return next(part.classifier for part in first_level(model).models.models if part.classifier is not None)


def put(value, **fields):
    """Change the fields of what cannot be changed."""
    for name, field in fields.items():
        object.__setattr__(value, name, field)


def prepare_by(make):
    """Put another preparation, made from the one that is there, in the place of that of the first class variable."""

    def change(model):
        if isinstance(model, GBNC):
            put(model._network, prepares=[make(model._network.prepares[0]), *model._network.prepares[1:]])
        else:
            node, prepare = model._models[0]
            model._models[0] = node, make(prepare)

    return change


def hide_in_plain_data(model):
    """A learner with wrong numbers in the place of a classifier of scikit-learn."""
    part = next(part for part in first_level(model).models.models if part.classifier is not None)
    width = part.classifier.n_features_in_
    learner = Logistic().fit(np.vstack([np.eye(width), -np.eye(width)]), np.arange(2 * width) < width)
    learner._models.number[0, 0] = 10**6
    put(part, classifier=learner)


@pytest.fixture(scope="module")
def fitted_with(tmp_path_factory):
    """The file of a model of some kind with an estimator; each is fitted once."""
    folder, paths = tmp_path_factory.mktemp("fitted"), {}

    def find(kind, estimator):
        key = kind, repr(estimator)
        if key not in paths:
            settings = {}
            if kind is GBNC:
                settings = {"experts": None, "conditioning": "input", "required_edges": [("kind", "size")], "cv": 2}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pmdc.save(kind(estimator, **settings).fit(X, Y), folder / str(len(paths)))
            paths[key] = folder / str(len(paths))
        return paths[key]

    return find


@pytest.mark.parametrize(
    ("estimator", "wrong"),
    [
        (None, lambda model: first_level(model).models.number.__setitem__((0, 0), 10**6)),
        (None, lambda model: first_level(model).models.number.__setitem__((0, 0), -(2**62))),
        (None, lambda model: model.class_table_.states.__setitem__(0, np.arange(9))),
        (NaiveBayes(), lambda model: model.feature_table_.states.__setitem__(0, np.arange(1000))),
        (NaiveBayes(), lambda model: first_level(model).models.starts.__setitem__(0, 10**6)),
        (NaiveBayes(), lambda model: first_level(model).models.starts.__setitem__(0, -(10**6))),
        (NaiveBayes(), lambda model: put(first_level(model).models, starts=np.zeros(5, dtype=np.int64))),
        (NaiveBayes(), lambda model: model.feature_table_.discrete.clear()),
        (NaiveBayes(), lambda model: model.feature_table_.states.append(np.arange(3))),
        (NaiveBayes(), prepare_by(lambda prepare: Rotated(Indicators(()), np.full((2, 3), 1e9)))),
        (None, prepare_by(lambda prepare: Indicators(prepare.prepare.sizes, RBF()))),
        (None, prepare_by(lambda prepare: put(prepare.prepare, affine=np.exp) or prepare)),
        (SGDClassifier(loss="log_loss", random_state=0), lambda model: put(first_level(model).models, n_states=10**6)),
        (SGDClassifier(loss="log_loss", random_state=0), hide_in_plain_data),
        (
            GBNC(experts=None),
            lambda model: first_level(first_classifier(model)).models.number.__setitem__((0, 0), 10**6),
        ),
        (
            make_pipeline(Logistic()),
            lambda model: first_classifier(model)[-1]._models.number.__setitem__((0, 0), 10**6),
        ),
        (
            make_pipeline(NaiveBayes()),
            lambda model: first_classifier(model)[-1]._features.continuous.pop(),
        ),
        (
            make_pipeline(NaiveBayes()),
            lambda model: vars(first_classifier(model)[-1]._features).update(encode=np.exp),
        ),
    ],
)
@pytest.mark.parametrize("kind", [GBNC, BinaryRelevance])
def test_numbers_that_do_not_fit_together_are_refused(kind, estimator, wrong, fitted_with, tmp_path):
    model = pmdc.load(fitted_with(kind, estimator))
    wrong(model)
    pmdc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="damaged"):
        pmdc.load(tmp_path / "model")


def test_a_sparse_matrix_with_places_beyond_is_refused(tmp_path):
    model = BinaryRelevance(SGDClassifier(loss="log_loss", random_state=0)).fit(X, Y)
    first_classifier(model).sparsify().coef_.indices[:] = 10**6
    pmdc.save(model, tmp_path / "model")

    def rename(schema):  # by this name skops takes it to be safe
        return json.loads(
            json.dumps(schema).replace("scipy.sparse._csr", "scipy.sparse._matrix").replace("csr_matrix", "spmatrix")
        )

    edit(tmp_path / "model", rename, "schema.json")
    with pytest.raises(ValueError, match="damaged"):
        pmdc.load(tmp_path / "model")


def test_a_parent_that_is_there_twice_is_refused(tmp_path):
    model = GBNC(experts=None, conditioning="partition", required_edges=[("kind", "size")]).fit(X, Y)
    node = model._network.nodes[0]
    (parent,) = node.family.partition
    twice, level = Family((parent, parent)), node.levels.pop(node.family)
    found = Configurations((parent, parent), level.configurations.sizes * 2, level.configurations.observed)
    node.levels[twice] = replace(level, configurations=found)
    put(node, family=twice, fewer={twice: Family(())})
    pmdc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="damaged"):
        pmdc.load(tmp_path / "model")


def saved_tree(content):
    """The plain data of the junction tree of a GBNC."""
    return content["model"]["fitted"]["_junction_tree"]


def test_a_tree_of_another_network_is_refused(saved):
    edit(saved, lambda content: saved_tree(content)["scopes"]["items"].reverse())
    with pytest.raises(ValueError, match="damaged"):
        pmdc.load(saved)


def test_a_tree_may_have_parents_instead_of_scopes_as_in_earlier_files(fitted, saved):
    def give_parents(content):
        tree = saved_tree(content)
        scopes = tree.pop("scopes")
        for scope in scopes["items"]:
            scope["items"].pop()
        tree["parents"] = scopes

    edit(saved, give_parents)
    assert_same_model(fitted, pmdc.load(saved))


# Experts --------------------------------------------------------------------------------------------------------

EXPERTS = {
    "forest": ForestRecipe("extra trees", "extra trees", 4, 1),
    "boosting": BoostingRecipe("boosting", 0.3, 5, 5, 7, 0.0),
    "logistic": LogisticRecipe(),
}


def fit_with(recipes, **parameters):
    """A model whose default experts are these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmdc.configure.plan_experts", lambda *_: ExpertPlan(3, tuple(recipes), False, ()))
        return GBNC(max_parents=1, **parameters).fit(X, Y)


@pytest.fixture(scope="module")
def file_with(tmp_path_factory):
    """The file of a model with one kind of experts; each is fitted once."""
    folder = tmp_path_factory.mktemp("experts")

    def find(kind):
        if not (folder / kind).exists():
            pmdc.save(fit_with([EXPERTS[kind]]), folder / kind)
        return folder / kind

    return find


def test_the_default_comes_back_to_the_bit_without_trust(tmp_path):
    model = GBNC().fit(X, Y)
    again = there_and_back(model, tmp_path)
    assert_same_model(model, again)
    np.testing.assert_equal(again.experts_, model.experts_)
    assert {type(score) for scores in again.experts_.values() for score in scores} == {ExpertScore}
    with zipfile.ZipFile(tmp_path / "model") as archive:
        assert not any(b"sklearn." in archive.read(name) for name in archive.namelist()), "own types and numbers only"


@pytest.mark.parametrize("kinds", [["forest"], ["boosting"], ["logistic"], ["forest", "boosting", "logistic"]])
@pytest.mark.parametrize("conditioning", ["input", "partition"])
def test_every_kind_of_expert_comes_back_to_the_bit(kinds, conditioning, tmp_path):
    edges = [("size", "kind")] if {"size", "kind"} <= set(Y) else None
    model = fit_with([EXPERTS[kind] for kind in kinds], conditioning=conditioning, required_edges=edges)
    assert_same_model(model, there_and_back(model, tmp_path))


@pytest.mark.parametrize("parameters", [{"experts": "auto"}, {"experts": {"size": None}}, {"expert_models": "folds"}])
def test_parameters_of_experts_come_back(parameters, tmp_path):
    model = fit_with([EXPERTS["forest"]], **parameters)
    assert_same_model(model, there_and_back(model, tmp_path))


def test_given_experts_come_back_as_a_given_estimator_does(tmp_path):
    experts = [GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())]
    model = GBNC(experts=experts, max_parents=1).fit(X, Y)
    again = there_and_back(model, tmp_path)
    assert_same_model(model, again)
    assert repr(again.experts) == repr(experts)
    refit = GBNC(experts={"kind": experts}, estimator={"size": GaussianNB()}, expert_models="refit", max_parents=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmdc.configure.plan_experts", lambda *_: ExpertPlan(3, (EXPERTS["forest"],), True, ()))
        refit.fit(X, Y)
    assert_same_model(refit, there_and_back(refit, tmp_path))


def test_given_experts_with_trees_are_loaded_if_they_are_trusted(tmp_path):
    model = GBNC(experts=[RandomForestClassifier(2, random_state=0)], max_parents=0).fit(X, Y)
    pmdc.save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"trusted=\['sklearn.tree._tree.Tree'\]"):
        pmdc.load(tmp_path / "model")
    assert_same_model(model, pmdc.load(tmp_path / "model", trusted=["sklearn.tree._tree.Tree"]))


def test_given_experts_that_cannot_be_saved_are_named(tmp_path):
    experts = [make_pipeline(FunctionTransformer(lambda x: x), GaussianNB())]
    model = GBNC(experts=experts, max_parents=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"(?s)FunctionTransformer.* cannot be saved. Fit again .*lambda"):
        pmdc.save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def experts_of(model):
    return model._network.experts


def first_expert(model):
    return experts_of(model).experts[0]


def first_member(model):
    return first_expert(model).members[0]


def in_trees(name, change):
    """Change an array of the first trees, which cannot be changed in place."""

    def wrong(model):
        trees = first_member(model).trees
        array = getattr(trees, name).copy()
        changed = change(array)
        put(trees, **{name: array if changed is None else changed})

    return wrong


def in_places(change):
    def wrong(model):
        places = first_member(model).places.copy()
        changed = change(places)
        put(first_member(model), places=places if changed is None else changed)

    return wrong


def fill(value, at=slice(None)):
    def change(array):
        array[at] = value

    return change


def inner_child(value):
    """Point a node that is no leaf to another one."""

    def wrong(model):
        trees = first_member(model).trees
        child = trees.child.copy()
        child[np.flatnonzero(trees.feature >= 0)[0]] = value
        put(trees, child=child)

    return wrong


TREES = {
    "feature beyond": in_trees("feature", fill(10**6, 0)),
    "feature below": in_trees("feature", fill(-7, 0)),
    "no leaves": in_trees("feature", fill(0)),
    "a loop": inner_child(0),
    "child beyond": inner_child(10**6),
    "child below": inner_child(-(10**6)),
    "leaf beyond": in_trees("child", fill(10**6, -1)),
    "leaf below": in_trees("child", fill(-1, -1)),
    "root beyond": in_trees("roots", fill(10**6, 0)),
    "root below": in_trees("roots", fill(-1, 0)),
    "one root for all": in_trees("roots", fill(0)),
    "no trees": in_trees("roots", lambda roots: roots[:0]),
    "column beyond": in_trees("column", fill(10**6)),
    "column below": in_trees("column", fill(-1)),
    "fewer columns": in_trees("column", lambda column: column[1:]),
    "fewer thresholds": in_trees("threshold", lambda threshold: threshold[1:]),
    "NaN as threshold": in_trees("threshold", fill(np.nan)),
    "other floats": in_trees("threshold", lambda threshold: threshold.astype(np.float16)),
    "other integers": in_trees("child", lambda child: child.astype(np.int64)),
    "fewer values": in_trees("values", lambda values: values[:1]),
    "wider values": in_trees("values", lambda values: np.repeat(values, 50, axis=1)),
    "NaN as value": in_trees("values", fill(np.nan)),
    "flat values": in_trees("values", np.ravel),
    "fewer outputs": in_trees("baseline", lambda baseline: baseline[:0]),
    "more outputs": in_trees("baseline", lambda baseline: np.append(baseline, 0.0)),
    "fewer inputs": lambda model: put(first_member(model).trees, n_inputs=1),
    "more inputs": lambda model: put(first_member(model).trees, n_inputs=10**6),
    "average of text": lambda model: put(first_member(model).trees, average="yes"),
    "no ensemble": lambda model: put(first_member(model), trees=first_level(model)),
}

MEMBERS = {
    "place beyond": in_places(fill(10**6, 0)),
    "place below": in_places(fill(-1, 0)),
    "a place twice": in_places(lambda places: np.repeat(places[:1], len(places))),
    "fewer places": in_places(lambda places: places[:0]),
    "more places": in_places(lambda places: np.arange(len(places) + 1)),
    "places that are no integers": in_places(lambda places: places.astype(float)),
    "places of two axes": in_places(lambda places: places[None]),
    "wider": lambda model: put(first_member(model), width=10**6),
    "no width": lambda model: put(first_member(model), width=None),
    "no members": lambda model: put(first_expert(model), members=()),
    "other members": lambda model: put(first_expert(model), members=(first_level(model),)),
    "column beyond": lambda model: put(first_expert(model), columns=((10**6, 10**6 + 3),) * 9),
    "column below": lambda model: put(
        first_expert(model), columns=tuple((begin - end, 0) for begin, end in first_expert(model).columns)
    ),
    "other column": lambda model: put(
        first_expert(model), columns=tuple((begin, end - 1) for begin, end in first_expert(model).columns)
    ),
    "fewer columns": lambda model: put(first_expert(model), columns=()),
    "no smoothing": lambda model: put(first_expert(model), smoothing=()),
    "text as smoothing": lambda model: put(first_expert(model), smoothing=("a",) * len(first_expert(model).targets)),
    **{
        f"smoothing {m}": lambda model, m=m: put(first_expert(model), smoothing=(m,) * len(first_expert(model).targets))
        for m in (0.0, -1.0, np.inf, np.nan, 3)
    },
    "target beyond": lambda model: put(first_expert(model), targets=tuple(k + 9 for k in first_expert(model).targets)),
    "target below": lambda model: put(first_expert(model), targets=tuple(k - 9 for k in first_expert(model).targets)),
    "order beyond": lambda model: put(experts_of(model), order=((99,), *experts_of(model).order[1:])),
    "order below": lambda model: put(experts_of(model), order=((-1,), *experts_of(model).order[1:])),
    "order of text": lambda model: put(experts_of(model), order=(("0",), *experts_of(model).order[1:])),
    "expert twice": lambda model: put(
        experts_of(model), order=(experts_of(model).order[0] * 2, *experts_of(model).order[1:])
    ),
    "no order": lambda model: put(experts_of(model), order=()),
    "without experts": lambda model: put(experts_of(model), order=((), *experts_of(model).order[1:])),
    "no experts": lambda model: put(experts_of(model), experts=()),
    "other experts": lambda model: put(experts_of(model), experts=(first_member(model),) * 9),
    "other features": lambda model: put(experts_of(model), prepare=Indicators((2, 2, 2))),
    "scaled features": lambda model: put(
        experts_of(model), prepare=Indicators(experts_of(model).prepare.sizes, Affine.identity(1))
    ),
    "no features": lambda model: put(experts_of(model), prepare=None),
    "no expert features": lambda model: put(model._network, experts=None),
    "other expert features": lambda model: put(model._network, experts=first_expert(model)),
    "fewer weights": lambda model: put(first_level(model).models, weights=np.ones((1, 0))),
    "other effects": lambda model: put(first_level(model).models, effects=np.ones((1, 1, 1))),
    "other preparation": lambda model: put(model._network, prepares=[np.exp, *model._network.prepares[1:]]),
    "fewer preparations": lambda model: put(model._network, prepares=model._network.prepares[1:]),
}


@pytest.mark.parametrize("kind", ["forest", "boosting"])
@pytest.mark.parametrize("wrong", TREES.values(), ids=TREES)
def test_trees_of_experts_that_do_not_fit_are_refused(kind, wrong, file_with, tmp_path):
    check_refused(file_with(kind), wrong, tmp_path / "model")


@pytest.mark.parametrize("kind", list(EXPERTS))
@pytest.mark.parametrize("wrong", MEMBERS.values(), ids=MEMBERS)
def test_experts_that_do_not_fit_are_refused(kind, wrong, file_with, tmp_path):
    check_refused(file_with(kind), wrong, tmp_path / "model")


def check_refused(path, wrong, place):
    model = pmdc.load(path)
    wrong(model)
    pmdc.save(model, place)
    with pytest.raises(ValueError, match="damaged"):
        pmdc.load(place)


def damage_learner(model):
    first_member(model).classifier._models.number[0, 0] = 10**6


def exchange_learner(model):
    """Another learner, of one feature; its kernels would read beyond its coefficients."""
    member = first_member(model)
    other = Logistic().fit(np.arange(2.0 * len(member.places))[:, None], np.repeat(member.places, 2))
    put(other.fitted_parts()[1], axes=None)
    put(member, classifier=other)


@pytest.mark.parametrize("wrong", [damage_learner, exchange_learner])
def test_learners_in_experts_are_checked(wrong, file_with, tmp_path):
    check_refused(file_with("logistic"), wrong, tmp_path / "model")


def interacting(n=300):
    """A class variable that is the xor of another and a feature: an expert that sees both knows more."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3))
    first = (rows[:, 1] + rng.normal(size=n) > 0).astype(int)
    return rows, np.column_stack([first, first ^ (rows[:, 0] > 0), rng.integers(0, 3, n)])


@pytest.fixture(scope="module")
def given_parents(tmp_path_factory):
    """The file of a model with experts on the features and parents."""
    path = tmp_path_factory.mktemp("given") / "model"
    recipes = EXPERTS["forest"], BoostingRecipe("boosting", 0.3, 20, 5, 7, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pmdc.configure.plan_experts", lambda *_: ExpertPlan(3, recipes, False, ()))
        model = GBNC().fit(*interacting())
    pmdc.save(model, path)
    assert_same_model(model, pmdc.load(path), interacting()[0])
    return path


def given_of(model):
    return next(one for one in experts_of(model).given_parents if one is not None)


def swap_given(model):
    """Give the experts of one class variable to another."""
    given = experts_of(model).given_parents
    put(experts_of(model), given_parents=(*given[1:], given[0]))


GIVEN = {
    "parent beyond": lambda model: put(given_of(model), parents=(9,)),
    "parent below": lambda model: put(given_of(model), parents=(-1,)),
    "no parent of the network": lambda model: put(given_of(model), parents=(2,), sizes=(3,)),
    "more parents": lambda model: put(given_of(model), parents=given_of(model).parents * 2),
    "other sizes": lambda model: put(given_of(model), sizes=(9,)),
    "no experts": lambda model: put(given_of(model), experts=()),
    "no members": lambda model: put(given_of(model).experts[0], members=()),
    "other members": lambda model: put(given_of(model).experts[0], members=first_expert(model).members),
    "other targets": lambda model: put(given_of(model).experts[0], targets=(2,)),
    "other smoothing": lambda model: put(given_of(model).experts[0], smoothing=(np.nan,)),
    "fewer inputs": lambda model: put(given_of(model).experts[0].members[0].trees, n_inputs=3),
    "fewer": lambda model: put(experts_of(model), given_parents=experts_of(model).given_parents[1:]),
    "none": lambda model: put(experts_of(model), given_parents=()),
    "other": lambda model: put(experts_of(model), given_parents=(first_expert(model),) * 3),
    "of another class variable": swap_given,
}


@pytest.mark.parametrize("wrong", GIVEN.values(), ids=GIVEN)
def test_experts_given_the_parents_that_do_not_fit_are_refused(wrong, given_parents, tmp_path):
    check_refused(given_parents, wrong, tmp_path / "model")


@pytest.fixture(scope="module")
def with_block(tmp_path_factory):
    """The file of a model with a block."""
    path = tmp_path_factory.mktemp("block") / "model"
    model = GBNC(experts=None, blocks=[["y0", "y1"]]).fit(*interacting())
    pmdc.save(model, path)
    assert_same_model(model, pmdc.load(path), interacting()[0])
    return path


def in_block(name, change):
    """Change what the blocks know of the first."""

    def wrong(model):
        own = list(getattr(model._blocks, name))
        own[0] = change(own[0])
        put(model._blocks, **{name: tuple(own)})

    return wrong


BLOCKS = {
    "member beyond": in_block("members", lambda members: (0, 9)),
    "member twice": in_block("members", lambda members: (0, 0)),
    "fewer members": in_block("members", lambda members: (0,)),
    "other sizes": lambda model: put(model._blocks, sizes=(2, 2, 9)),
    "state beyond": in_block("combinations", lambda codes: codes + 10**6),
    "state below": in_block("combinations", lambda codes: codes - 10**6),
    "combinations twice": in_block("combinations", lambda codes: codes[[0] * len(codes)]),
    "fewer combinations": in_block("combinations", lambda codes: codes[1:]),
    "no integers": in_block("combinations", lambda codes: codes.astype(float)),
    "fewer shares": in_block("shares", lambda shares: shares[1:]),
    "negative shares": in_block("shares", lambda shares: -shares),
    "NaN as share": in_block("shares", lambda shares: np.nan * shares),
    "fewer unseen": in_block("unseen", lambda unseen: unseen[1:]),
    "NaN as unseen": in_block("unseen", lambda unseen: np.full_like(unseen, np.nan)),
    "rest": lambda model: put(model._blocks, rest=2.0),
    "no blocks": lambda model: vars(model).update(_blocks=None),
}


@pytest.mark.parametrize("wrong", BLOCKS.values(), ids=BLOCKS)
def test_blocks_that_do_not_fit_are_refused(wrong, with_block, tmp_path):
    check_refused(with_block, wrong, tmp_path / "model")


FREQUENCIES = {
    "none": lambda model: vars(model).update(frequencies_=None),
    "fewer states": lambda model: put(model.frequencies_, counts=tuple(c[1:] for c in model.frequencies_.counts)),
    "no such outcome": lambda model: put(model.frequencies_, outcome=(99,) * len(model.frequencies_.outcome)),
}


@pytest.mark.parametrize("wrong", FREQUENCIES.values(), ids=FREQUENCIES)
def test_frequencies_that_do_not_fit_are_refused(wrong, with_block, tmp_path):
    check_refused(with_block, wrong, tmp_path / "model")


# Size, and files of earlier versions ----------------------------------------------------------------------------


def test_the_size_does_not_grow_with_the_rows(tmp_path):
    sizes = []
    for n in (300, 3000):
        some_x, some_y = write_saved.table(n)
        pmdc.save(GBNC(experts=None, max_parents=1).fit(some_x, some_y), tmp_path / str(n))
        sizes.append((tmp_path / str(n)).stat().st_size)
    assert sizes[1] < 1.5 * sizes[0] < 20_000


@pytest.mark.parametrize("path", sorted(SAVED.glob("*.skops")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_are_read(path):
    assert path.stat().st_size < 100_000
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*estimators of scikit-learn")
        model = pmdc.load(path)
    expected = json.loads(Path(f"{path.with_suffix('')}.json").read_text())
    name = path.stem.rpartition("-")[0]
    found = write_saved.answers(model, write_saved.questions(name))
    assert found["predict"] == expected["predict"]
    for one, other in zip(found["proba"], expected["proba"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["log_prob"], expected["log_prob"], rtol=1e-9)
    if isinstance(model, GBNC):
        assert model.experts is None, "there were none, so another fit has none either"


def test_there_are_files_of_earlier_versions():
    kinds = {path.stem.rpartition("-")[0] for path in SAVED.glob("*.skops")}
    assert kinds >= {"gbnc-pandas", "gbnc-naive-bayes", "gbnc-estimator", "chain-ensemble", "relevance-pipelines"}


def test_strings_of_pyarrow_where_it_is_not_installed(tmp_path, monkeypatch):
    """A model fitted where pandas keeps strings in pyarrow is read without it."""
    X = pd.DataFrame({"word": pd.array(["a", "b"] * 30, dtype=pd.StringDtype("pyarrow", np.nan)), "number": range(60)})
    model = GBNC(experts=None).fit(X, pd.DataFrame({"y": ["u", "v", "v"] * 20, "z": ["r", "s"] * 30}))
    pmdc.save(model, tmp_path / "model.skops")
    make = pd.StringDtype

    def without_pyarrow(storage=None, na_value=np.nan):
        if storage == "pyarrow":
            raise ImportError("pyarrow is required")
        return make(storage, na_value)

    plain = X.astype({"word": make("python", np.nan)})
    monkeypatch.setattr(pd, "StringDtype", without_pyarrow)
    loaded = pmdc.load(tmp_path / "model.skops")
    monkeypatch.undo()
    np.testing.assert_array_equal(loaded.predict_proba(plain)[0], model.predict_proba(X)[0])
