"""Tree ensembles as plain arrays: equal to scikit-learn, and safe whatever their arrays are."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

from pmdc.experts.trees import boosting_trees, concatenate, forest_trees


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """The threads of gradient boosting wait for each other for seconds when the machine is busy."""
    with threadpool_limits(1):
        yield


FORESTS = [ExtraTreesClassifier, RandomForestClassifier]


def table(seed, n=150, n_classes=3, integers=False):
    """Features, among them a constant one and duplicates, and a class that depends on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 100, 1e-3, 1, 1]
    if integers:
        X = rng.integers(-2, 3, size=(n, 5)).astype(float)
    X[:, 3] = 7.0
    X[: n // 5] = X[n // 5 : 2 * (n // 5)]
    scores = X[:, :2] / np.abs(X[:, :2]).max(axis=0) @ rng.normal(size=(2, n_classes))
    y = (scores + 0.3 * rng.normal(size=scores.shape)).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def twin(ensemble, X):
    """The scores by plain loops that refuse to read out of bounds."""
    out = np.tile(ensemble.baseline, (len(X), 1))
    with np.errstate(over="ignore"):
        inputs = X.astype(ensemble.threshold.dtype)
    width = ensemble.values.shape[1]
    for row, scores in zip(inputs, out, strict=True):
        for root, column in zip(ensemble.roots, ensemble.column, strict=True):
            node = root
            while at(ensemble.feature, node) != -1:
                left = at(row, ensemble.feature[node]) <= ensemble.threshold[node]
                assert ensemble.child[node] > node
                node = ensemble.child[node] + (0 if left else 1)
            assert 0 <= column <= len(scores) - width
            scores[column : column + width] += at(ensemble.values, ensemble.child[node])
    return out / len(ensemble.roots) if ensemble.average else out


def at(array, number):
    assert 0 <= number < len(array)
    return array[number]


def probabilities(forest, X):
    found = forest.predict_proba(X)
    return np.hstack(found) if isinstance(found, list) else found


def check_forest(forest, X):
    trees = forest_trees(forest)
    assert trees.consistent(X.shape[1])
    np.testing.assert_allclose(trees.scores(X), probabilities(forest, X), atol=1e-7)
    np.testing.assert_array_equal(trees.scores(X), twin(trees, X))
    for i in (0, len(X) - 1):
        np.testing.assert_array_equal(trees.scores(X[i : i + 1])[0], trees.scores(X)[i])
    return trees


def check_booster(booster, X):
    trees = boosting_trees(booster)
    assert trees.consistent(X.shape[1])
    raw = booster.decision_function(X)
    np.testing.assert_allclose(trees.scores(X), raw.reshape(len(X), -1), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(trees.scores(X), twin(trees, X))
    return trees


# Equality with scikit-learn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": 12}, {"min_samples_leaf": 5}])
def test_forests(kind, integers, n_classes, settings):
    X, y = table(0, n_classes=n_classes, integers=integers)
    forest = kind(8, random_state=0, **settings).fit(X, np.array(list("abcd"))[y])
    trees = check_forest(forest, np.vstack([X, X + 0.5, table(1, n=50)[0]]))
    assert trees.n_outputs == n_classes


@pytest.mark.parametrize("kind", FORESTS)
def test_several_outputs(kind):
    X, y = table(2)
    Y = np.column_stack([y, X[:, 0] > 0, np.zeros(len(y)), table(2, n_classes=5)[1]])
    forest = kind(8, random_state=0).fit(X, Y)
    assert check_forest(forest, X).n_outputs == 3 + 2 + 1 + 5


@pytest.mark.parametrize("kind", FORESTS)
def test_features_on_the_thresholds_of_forests(kind):
    X, y = table(3)
    forest = kind(5, random_state=0).fit(X, y)
    used = np.concatenate([one.tree_.threshold[one.tree_.feature == 1] for one in forest.estimators_])
    near = used.astype(np.float32)
    for direction in (-np.inf, 0, np.inf):
        on = np.zeros((len(used), 5))
        on[:, 1] = used if direction == 0 else np.nextafter(near, np.float32(direction))
        check_forest(forest, on)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("settings", [{}, {"max_leaf_nodes": None, "max_depth": 2, "l2_regularization": 1.0}])
def test_boosting(n_classes, integers, settings):
    X, y = table(4, n_classes=n_classes, integers=integers)
    booster = HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5, **settings).fit(X, y)
    nodes = booster._predictors[0][0].nodes
    inner = nodes["is_leaf"] == 0
    on = np.zeros((inner.sum(), 5))
    on[np.arange(inner.sum()), nodes["feature_idx"][inner]] = nodes["num_threshold"][inner]
    trees = check_booster(booster, np.vstack([X, X + 0.5, on]))
    assert trees.n_outputs == (1 if n_classes == 2 else n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_first_iterations_of_boosting(n_classes):
    X, y = table(5, n_classes=n_classes)
    booster = HistGradientBoostingClassifier(max_iter=6).fit(X, y)
    for n_iterations, raw in enumerate(booster.staged_decision_function(X), start=1):
        trees = boosting_trees(booster, n_iterations)
        np.testing.assert_allclose(trees.scores(X), raw.reshape(len(X), -1), rtol=1e-9, atol=1e-12)
    for wrong in (0, 7):
        with pytest.raises(ValueError, match=f"n_iterations={wrong}"):
            boosting_trees(booster, wrong)


def test_trees_of_one_leaf():
    X, y = table(6)
    for kind in FORESTS:
        check_forest(kind(3, random_state=0).fit(np.ones_like(X), y), X)
        check_forest(kind(3, random_state=0).fit(X, np.zeros(len(X))), X)
    check_booster(HistGradientBoostingClassifier(max_iter=3).fit(np.ones_like(X), y), X)


def test_splits_that_only_separate_nan():
    X, y = table(7, n_classes=2)
    X[:, 3] = np.where(y == 1, np.nan, 0.0)
    finite = np.nan_to_num(X)
    check_booster(HistGradientBoostingClassifier(max_iter=3).fit(X, y), finite)
    check_forest(RandomForestClassifier(3, random_state=0).fit(X, y), finite)


def test_categorical_features_are_refused():
    X, y = table(8, integers=True)
    booster = HistGradientBoostingClassifier(max_iter=2, categorical_features=[0]).fit(X + 2, y)
    with pytest.raises(ValueError, match="categorical"):
        boosting_trees(booster)


# What is ours -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forest():
    X, y = table(9, n=40)
    return forest_trees(ExtraTreesClassifier(4, random_state=0).fit(X, y))


@pytest.fixture(scope="module")
def booster():
    X, y = table(9, n=40)
    return boosting_trees(HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3).fit(X, y))


@pytest.fixture(params=["forest", "booster"])
def ensemble(request):
    return request.getfixturevalue(request.param)


def test_features_that_are_no_float32(ensemble):
    X = table(9, n=40)[0]
    X[:, 0], X[:10, 1], X[10:20, 1] = np.nan, 1e300, -np.inf
    np.testing.assert_array_equal(ensemble.scores(X), twin(ensemble, X))


def test_layouts_of_features(ensemble):
    X = table(9, n=40)[0]
    for same in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(ensemble.scores(same), ensemble.scores(X))
    assert ensemble.scores(X[:0]).shape == (0, 3)
    for wrong in (X[:, 1:], X[0]):
        with pytest.raises(ValueError, match="5 columns"):
            ensemble.scores(wrong)


def test_leaves_with_equal_values_share_a_row(forest):
    n_leaves = (forest.feature < 0).sum()
    assert len(forest.values) == len(np.unique(forest.values, axis=0)) < n_leaves / 10


def test_concatenate():
    X, y = table(10)
    forests = [kind(6, random_state=seed).fit(X, y) for seed in range(2) for kind in FORESTS]
    trees = concatenate([forest_trees(forest) for forest in forests])
    assert trees.consistent(5)
    expected = np.mean([forest.predict_proba(X) for forest in forests], axis=0)
    np.testing.assert_allclose(trees.scores(X), expected, atol=1e-7)


def test_forests_that_cannot_be_concatenated(forest, booster):
    X, y = table(10, n_classes=2)
    other = ExtraTreesClassifier(2).fit(X, y)
    narrow = ExtraTreesClassifier(2).fit(X[:, :4], table(10)[1])
    for wrong in (forest_trees(other), forest_trees(narrow), booster):
        with pytest.raises(ValueError, match="forests must"):
            concatenate([forest, wrong])
    with pytest.raises(ValueError, match="forests is empty"):
        concatenate([])


# Arrays of malicious files ------------------------------------------------------------------------------------------

INDICES = ["roots", "column", "feature", "child"]
NUMBERS = ["threshold", "values", "baseline"]


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("name", [*INDICES, *NUMBERS])
@pytest.mark.parametrize(
    "corrupt",
    [
        lambda array: None,
        lambda array: array.tolist(),
        lambda array: array.astype(object),
        lambda array: array.astype(np.int64),
        lambda array: array.astype(np.uint32),
        lambda array: array.astype(np.float16),
        lambda array: array.astype(array.dtype.newbyteorder()),
        lambda array: array.view(np.ma.MaskedArray),
        lambda array: array[..., None],
        lambda array: array.ravel()[0],
        lambda array: array[::-1].repeat(2, axis=0)[::2],
        lambda array: array[:0],
    ],
)
def test_wrong_types_and_shapes(ensemble, name, corrupt):
    assert not replace(ensemble, **{name: corrupt(getattr(ensemble, name))}).consistent(5)


@pytest.mark.parametrize("name", [*INDICES, *NUMBERS])
@pytest.mark.parametrize("value", [None, "text", 3, [0.5], np.zeros(0), np.zeros(4), np.array(["a"]), np.array(1)])
def test_wrong_types_among_empty_arrays(ensemble, name, value):
    """No check may rely on another array that is wrong as well."""
    empty = {other: getattr(ensemble, other)[:0] for other in (*INDICES, *NUMBERS)}
    for others in ({}, empty, {**empty, "roots": ensemble.roots[:1], "column": ensemble.column[:1]}):
        wrong = replace(ensemble, **{**others, name: value})
        assert not wrong.consistent(5) or name == "baseline"  # any four numbers are a baseline


@pytest.mark.parametrize("name", ["roots", "column", "feature", "threshold", "child"])
def test_wrong_lengths(ensemble, name):
    array = getattr(ensemble, name)
    for wrong in (array[:-1], np.append(array, array[-1:])):
        assert not replace(ensemble, **{name: wrong}).consistent(5)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("value", [-(2**31), -2, 10**6, 2**31 - 1])
def test_indices_out_of_range(ensemble, name, value):
    array = getattr(ensemble, name)
    for place in {0, len(array) // 2, len(array) - 1}:
        assert not replace(ensemble, **{name: changed(array, place, value)}).consistent(5)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(ensemble, name, value):
    array = getattr(ensemble, name)
    assert not replace(ensemble, **{name: changed(array, -1, value)}).consistent(5)


def test_indices_just_out_of_range(ensemble):
    inner, leaf = np.flatnonzero(ensemble.feature >= 0), np.flatnonzero(ensemble.feature < 0)
    n_nodes, width = len(ensemble.feature), ensemble.values.shape[1]
    for name, place, value in [
        ("feature", inner[0], 5),
        ("roots", 0, n_nodes),
        ("column", 0, 3 - width + 1),
        ("column", 0, -1),
        ("child", leaf[0], len(ensemble.values)),
        ("child", leaf[0], -1),
        ("child", inner[-1], n_nodes - 1),  # its right child does not exist
        ("child", inner[0], inner[0]),  # a cycle
        ("child", inner[-1], inner[0]),  # a cycle
        ("child", inner[1], ensemble.child[inner[0]]),  # shared children
        ("roots", 0, ensemble.roots[1]),  # shared trees
        ("roots", 0, 1),  # a node that nothing leads to
        ("feature", leaf[0], 0),
        ("feature", inner[0], -1),
    ]:
        assert not replace(ensemble, **{name: changed(getattr(ensemble, name), place, value)}).consistent(5), name


@pytest.mark.parametrize(
    ("feature", "child", "fits"),
    [
        ([0, -1, -1], [1, 0, 1], True),
        ([-1], [1], True),
        ([0, -1], [1, 0], False),  # the right child does not exist
        ([-1, 0, -1], [0, 1, 1], False),  # a node that is its own child, beside the tree
        ([-1, -1], [0, 1], False),  # a node outside the tree
    ],
)
def test_small_trees(forest, feature, child, fits):
    small = replace(
        forest,
        roots=np.zeros(1, dtype=np.int32),
        column=np.zeros(1, dtype=np.int32),
        feature=np.array(feature, dtype=np.int32),
        child=np.array(child, dtype=np.int32),
        threshold=np.zeros(len(feature), dtype=np.float32),
    )
    assert small.consistent(5) == fits


def test_other_fields(ensemble):
    assert ensemble.consistent(5)
    assert not ensemble.consistent(4)
    assert not ensemble.consistent(6)
    for wrong in (4, 5.0, None, "5", np.int64(5)):
        assert not replace(ensemble, n_inputs=wrong).consistent(5)
    for wrong in (1, None, np.True_):
        assert not replace(ensemble, average=wrong).consistent(5)
    empty = {name: getattr(ensemble, name)[:0] for name in (*INDICES, "threshold")}
    assert not replace(ensemble, **empty).consistent(5)
    assert {one.name for one in fields(ensemble)} == {"n_inputs", "average", *INDICES, *NUMBERS}


@given(
    st.sampled_from(["forest", "booster"]),
    st.lists(st.tuples(st.sampled_from(INDICES), st.integers(0), st.integers(-3, 60)), min_size=1, max_size=3),
)
def test_consistent_ensembles_stay_in_bounds(forest, booster, which, changes):
    """Whatever the indices are, either they are refused or the twin finds them in bounds."""
    ensemble = {"forest": forest, "booster": booster}[which]
    for name, place, value in changes:
        array = getattr(ensemble, name)
        ensemble = replace(ensemble, **{name: changed(array, place % len(array), value)})
    if ensemble.consistent(5):
        X = table(9, n=10)[0]
        np.testing.assert_array_equal(ensemble.scores(X), twin(ensemble, X))
