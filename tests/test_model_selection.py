"""Stratified folds for several class variables."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from pmdc import GBNC
from pmdc.datasets import load, make_network
from pmdc.metrics import neg_joint_log_loss, subset_accuracy
from pmdc.model_selection import MultiStratifiedKFold


def skewed(n, K=6, seed=0):
    """Dependent class variables with a frequent, a less frequent and a rare state each."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    return np.digitize(common + rng.normal(size=(n, K)), [1.0, 2.5])


def folds_of(splitter, Y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fewer rows.*")
        return [test for _, test in splitter.split(np.zeros(len(Y)), Y)]


def counts(Y, folds, of):
    """How often each value occurs in each fold, one row for each fold."""
    values = [of(row) for row in np.asarray(Y).tolist()]
    known = sorted({value for row in values for value in row}, key=str)
    index = {value: i for i, value in enumerate(known)}
    table = np.zeros((len(folds), len(known)))
    for f, test in enumerate(folds):
        for i in test:
            for value in values[i]:
                table[f, index[value]] += 1
    return table


def states(row):
    return list(enumerate(row))


def pairs(row):
    return [(j, row[j], k, row[k]) for j in range(len(row)) for k in range(j)]


def deviation(Y, folds, of):
    table = counts(Y, folds, of)
    return np.abs(table - table.mean(axis=0))


@st.composite
def problems(draw):
    n, K, n_splits = draw(st.integers(2, 40)), draw(st.integers(1, 4)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return rng.integers(draw(st.integers(1, 4)), size=(n, K)), min(n, n_splits), draw(st.booleans())


@settings(deadline=None)
@given(problems())
def test_a_partition_into_folds_of_equal_size(problem):
    Y, n_splits, shuffle = problem
    splitter = MultiStratifiedKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        splits = list(splitter.split(Y, Y))
    assert len(splits) == splitter.get_n_splits() == n_splits
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(Y)))
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(len(Y)))
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7))
def test_one_class_variable_is_stratified_perfectly(seed, n_splits):
    y = np.random.default_rng(seed).choice(list("abc"), p=[0.7, 0.2, 0.1], size=60)
    folds = folds_of(MultiStratifiedKFold(n_splits), y)
    assert np.ptp(counts(y[:, None], folds, states), axis=0).max() <= 1
    if min(np.unique(y, return_counts=True)[1]) >= n_splits:
        theirs = [test for _, test in StratifiedKFold(n_splits).split(y, y)]
        mine = deviation(y[:, None], folds, states)
        assert mine.max() <= deviation(y[:, None], theirs, states).max() + 1e-9


@pytest.mark.parametrize("n_splits", [3, 5, 10])
@pytest.mark.parametrize("shuffle", [False, True])
def test_states_and_pairs_are_spread_far_more_evenly_than_by_chance(n_splits, shuffle):
    Y = skewed(2003)
    folds = folds_of(MultiStratifiedKFold(n_splits, shuffle=shuffle, random_state=1 if shuffle else None), Y)
    by_chance = folds_of(KFold(n_splits, shuffle=True, random_state=1), Y)
    assert deviation(Y, folds, states).max() <= 2.5
    # A deviation of about 0.3 is left by rounding alone.
    assert deviation(Y, folds, states).mean() < 0.2 * deviation(Y, by_chance, states).mean()
    assert deviation(Y, folds, pairs).mean() < 0.4 * deviation(Y, by_chance, pairs).mean()


def test_every_fold_has_each_state_that_has_enough_rows():
    Y = skewed(300)
    Y[:5, 0] = 7
    for test in folds_of(MultiStratifiedKFold(5), Y):
        assert (Y[test, 0] == 7).sum() == 1


def test_the_same_folds_for_the_same_seed():
    Y = skewed(200)
    fixed = MultiStratifiedKFold(4, shuffle=True, random_state=3)
    first, second = folds_of(fixed, Y), folds_of(fixed, Y)
    other = folds_of(MultiStratifiedKFold(4, shuffle=True, random_state=4), Y)
    plain = folds_of(MultiStratifiedKFold(4), Y)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(plain, folds_of(MultiStratifiedKFold(4), Y), strict=True))


def test_containers_and_types_of_states_do_not_matter():
    codes = skewed(120, K=3)
    frame = pd.DataFrame(
        {
            "a": np.array(["high", "low", "medium"])[codes[:, 0]],
            "b": codes[:, 1],
            "c": pd.Categorical.from_codes(codes[:, 2], ["x", "y", "z", "never"]),
        },
        index=np.arange(120)[::-1],
    )
    tables = [
        codes,
        codes.tolist(),
        frame,
        pl.DataFrame({c: frame[c].tolist() for c in frame}),
        frame.astype(object).to_numpy(),
    ]
    folds = [folds_of(MultiStratifiedKFold(4), table) for table in tables]
    for other in folds[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(folds[0], other, strict=True))


def test_a_rare_state_warns_once():
    Y = pd.DataFrame({"a": ["x"] * 18 + ["y"] * 2, "b": [0, 1] * 10, "c": [True] * 16 + [False] * 4})
    with pytest.warns(UserWarning, match="'a', state 'y' .*(2).* n_splits=5.* 1 other") as record:
        list(MultiStratifiedKFold(5).split(Y, Y))
    assert len(record) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(MultiStratifiedKFold(2).split(Y, Y))


@pytest.mark.parametrize("options", [{"n_splits": 1}, {"n_splits": 2.0}, {"n_splits": "5"}, {"n_splits": True}])
def test_bad_numbers_of_folds(options):
    with pytest.raises(ValueError, match="n_splits=.*at least 2"):
        MultiStratifiedKFold(**options)


def test_bad_input():
    Y = np.arange(20).reshape(-1, 1) % 2
    with pytest.raises(ValueError, match="random_state=0 has no effect with shuffle=False"):
        MultiStratifiedKFold(random_state=0)
    with pytest.raises(ValueError, match="shuffle='yes'"):
        MultiStratifiedKFold(shuffle="yes")
    with pytest.raises(ValueError, match="y is None"):
        list(MultiStratifiedKFold().split(Y))
    with pytest.raises(ValueError, match="n_splits=21 is more than the 20 row"):
        list(MultiStratifiedKFold(21).split(Y, Y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        list(MultiStratifiedKFold().split(Y[1:], Y))
    with pytest.raises(ValueError, match="continuous"):
        list(MultiStratifiedKFold().split(Y, Y + 0.5))
    with pytest.warns(UserWarning, match="groups is ignored"):
        list(MultiStratifiedKFold(2).split(Y, Y, groups=np.arange(20)))


def test_repr_pickle_and_model_selection():
    splitter = MultiStratifiedKFold(3, shuffle=True, random_state=0)
    assert repr(splitter) == "MultiStratifiedKFold(n_splits=3, random_state=0, shuffle=True)"
    assert repr(pickle.loads(pickle.dumps(splitter))) == repr(clone(splitter, safe=False)) == repr(splitter)
    data = make_network(150, n_class_variables=3, n_states=2, n_continuous=2, random_state=0)
    Y = data.Y.astype(object)
    Y["y1"] = np.where(Y["y1"] == Y["y1"].iloc[0], 1, 2)  # columns of different types
    model = GBNC(GaussianNB(), max_parents=1)
    assert len(cross_val_score(model, data.X, Y, cv=splitter, scoring=subset_accuracy, error_score="raise")) == 3
    search = GridSearchCV(model, {"max_parents": [0, 1]}, scoring=neg_joint_log_loss, cv=splitter, n_jobs=2)
    assert np.isfinite(search.fit(data.X, Y).best_score_)


def test_thyroid(data_dir):
    Y = load("thyroid", data_dir).Y
    folds = folds_of(MultiStratifiedKFold(10, shuffle=True, random_state=0), Y)
    by_chance = folds_of(KFold(10, shuffle=True, random_state=0), Y)
    for of in (states, pairs):
        assert deviation(Y, folds, of).max() < 2.5
        assert deviation(Y, folds, of).mean() < 0.2 * deviation(Y, by_chance, of).mean()
    table = counts(Y, folds, states)
    assert (table.min(axis=0) > 0)[table.sum(axis=0) >= 10].all()
