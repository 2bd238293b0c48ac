"""The generator: rows follow the truth that is returned with them, and every true edge can be found."""

from itertools import combinations, product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from pmdc.datasets import make_network


def naive_log_prob(truth, x_row, y_row):
    """log P(y | x) of one row, written down as the definition reads."""
    total = 0.0
    for variable, states in truth.classes.items():
        index = []
        for parent in truth.parents[variable]:
            if parent in truth.classes:
                index.append(truth.classes[parent].index(y_row[parent]))
            else:
                index.append(truth.discrete[parent].index(x_row[parent]))
        x = np.array([x_row[name] for name in truth.continuous])
        logits = truth.intercepts[variable][tuple(index)] + x @ truth.slopes[variable][tuple(index)]
        total += logits[states.index(y_row[variable])] - np.log(np.exp(logits).sum())
    return total


@pytest.mark.parametrize("seed", range(4))
def test_log_prob_is_that_of_the_definition(seed):
    table = make_network(30, n_states=(2, 4), n_discrete_states=(2, 3), random_state=seed)
    expected = [naive_log_prob(table.truth, table.X.iloc[i], table.Y.iloc[i]) for i in range(30)]
    np.testing.assert_allclose(table.truth.log_prob(table.X, table.Y), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_all_outcomes_sum_to_one(seed):
    table = make_network(8, n_class_variables=3, n_states=(2, 3), max_discrete_parents=2, random_state=seed)
    classes = table.truth.classes
    total = np.zeros(8)
    for outcome in product(*classes.values()):
        Y = pd.DataFrame([outcome] * 8, columns=list(classes))
        total += np.exp(table.truth.log_prob(table.X, Y))
    np.testing.assert_allclose(total, 1, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_joint_agrees_with_log_prob_and_enumeration(seed):
    table = make_network(6, n_class_variables=3, n_states=(2, 4), random_state=seed)
    truth, joint = table.truth, table.truth.joint(table.X)
    np.testing.assert_allclose(joint.log_prob(table.Y), truth.log_prob(table.X, table.Y), rtol=1e-10)
    marginals = [np.zeros((6, len(states))) for states in truth.classes.values()]
    for outcome in product(*truth.classes.values()):
        Y = pd.DataFrame([outcome] * 6, columns=list(truth.classes))
        for k, state in enumerate(outcome):
            marginals[k][:, list(truth.classes.values())[k].index(state)] += np.exp(truth.log_prob(table.X, Y))
    for ours, expected in zip(joint.marginals(), marginals, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_rows_follow_the_truth(seed):
    """In each configuration, how often each state occurs, and with which x, is what the truth says."""
    table = make_network(20_000, n_states=(2, 3), max_discrete_parents=2, random_state=seed)
    truth = table.truth
    data = pd.concat([table.X, table.Y], axis=1)
    x = np.column_stack([np.ones(len(data)), table.X[list(truth.continuous)]])
    worst = []
    for (variable, states), log_table in zip(truth.classes.items(), truth.log_tables(table.X), strict=True):
        codes = [data[parent].cat.codes.to_numpy() for parent in truth.class_parents(variable)]
        p = np.exp(log_table[np.arange(len(data)), *codes])
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        y = data[variable].cat.codes.to_numpy()
        configuration = np.zeros(len(data), dtype=int)
        for parent in truth.parents[variable]:
            configuration = configuration * 10 + data[parent].cat.codes.to_numpy()
        for c in np.unique(configuration):
            rows = configuration == c
            for s in range(len(states)):
                # Residuals, alone and times each continuous feature, have mean 0 and a known variance.
                residual = ((y[rows] == s) - p[rows, s])[:, None] * x[rows]
                variance = (p[rows, s] * (1 - p[rows, s]))[:, None] * x[rows] ** 2
                worst.append(np.abs(residual.sum(axis=0)) / np.sqrt(variance.sum(axis=0) + 1))
    # Some thousand standard normals.
    assert np.max(worst) < 5.5
    assert 0.85 < np.sqrt(np.mean(np.square(worst))) < 1.15


def test_features_are_what_the_truth_says():
    X = make_network(20_000, n_continuous=2, n_discrete=2, n_discrete_states=4, random_state=0).X
    assert list(X.columns) == ["x0", "x1", "d0", "d1"]
    np.testing.assert_allclose(X[["x0", "x1"]].mean(), 0, atol=0.03)
    np.testing.assert_allclose(X[["x0", "x1"]].std(), 1, atol=0.03)
    np.testing.assert_allclose(X["d0"].value_counts(normalize=True), 0.25, atol=0.02)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_states", "n_discrete_states"), [(3, 3), (2, 4), (4, 2)])
def test_every_value_of_every_parent_matters(seed, n_states, n_discrete_states):
    truth = make_network(
        1,
        n_class_variables=5,
        n_states=n_states,
        n_discrete_states=n_discrete_states,
        max_discrete_parents=2,
        random_state=seed,
    ).truth
    for variable, parents in truth.parents.items():
        for weights, least in [(truth.intercepts[variable], 0.99), (truth.slopes[variable], 0.1)]:
            for axis in range(len(parents)):
                by_value = np.moveaxis(weights, axis, 0)
                for first, second in combinations(by_value, 2):
                    # Adding the same to all states changes nothing, so the range over states is what counts.
                    assert np.ptp(first - second, axis=-1).max() >= least


def test_without_effect_no_parent_matters():
    truth = make_network(1, effect=0, random_state=0).truth
    assert any(truth.parents.values())
    for variable, parents in truth.parents.items():
        axes = tuple(range(len(parents)))
        assert np.ptp(truth.intercepts[variable], axis=axes).max(initial=0) == 0 or not parents
        assert np.ptp(truth.slopes[variable], axis=axes).max(initial=0) == 0 or not parents


@pytest.mark.parametrize("seed", range(2))
def test_no_parent_can_be_left_out(seed):
    """The BIC of the truth beats that of logistic models fitted without one of the parents, whichever."""
    n = 10_000
    table = make_network(n, n_class_variables=6, random_state=seed)
    truth, x = table.truth, table.X[list(table.truth.continuous)].to_numpy()
    discrete = pd.concat([table.Y, table.X[list(truth.discrete)]], axis=1)
    codes = {name: column.cat.codes.to_numpy() for name, column in discrete.items()}
    for (variable, states), log_table in zip(truth.classes.items(), truth.log_tables(table.X), strict=True):
        y, penalty = codes[variable], 0.5 * np.log(n) * (len(states) - 1)
        family = [codes[name] for name in (*truth.class_parents(variable), variable)]
        bic = log_table[np.arange(n), *family].sum() - penalty * 3 ** len(truth.parents[variable])
        for others in combinations(truth.parents[variable], len(truth.parents[variable]) - 1):
            configuration = sum((codes[name] * 3**i for i, name in enumerate(others)), np.zeros(n, dtype=int))
            without = -penalty * 3 ** len(others)
            for c in np.unique(configuration):
                rows = configuration == c
                model = LogisticRegression().fit(x[rows], y[rows])
                without -= rows.sum() * log_loss(y[rows], model.predict_proba(x[rows]), labels=model.classes_)
            assert bic - without > 100


def test_graph_and_parents():
    table = make_network(10, n_class_variables=7, n_discrete=4, max_parents=3, random_state=2)
    truth, graph = table.truth, table.truth.graph
    assert nx.is_directed_acyclic_graph(graph)
    assert list(truth.parents) == list(table.Y.columns)
    kinds = nx.get_node_attributes(graph, "kind")
    for variable, parents in truth.parents.items():
        assert set(graph.predecessors(variable)) == set(parents)
        assert [kinds[p] for p in parents] == sorted(kinds[p] for p in parents)  # class first
        assert sum(kinds[p] == "class" for p in parents) <= 3
        assert sum(kinds[p] == "discrete" for p in parents) <= 1
    assert sum(not truth.class_parents(variable) for variable in truth.classes) == 1
    assert {name for name, kind in kinds.items() if kind == "class"} == set(table.Y.columns)


def test_shapes_of_tables():
    table = make_network(7, n_states=(2, 5), random_state=3)
    truth = table.truth
    for (variable, states), log_table in zip(truth.classes.items(), truth.log_tables(table.X), strict=True):
        sizes = [len(truth.classes[parent]) for parent in truth.class_parents(variable)]
        assert log_table.shape == (7, *sizes, len(states))


def test_same_seed_same_bits():
    first, second, other = (make_network(200, random_state=seed) for seed in (5, 5, 6))
    pd.testing.assert_frame_equal(first.X, second.X, check_exact=True)
    pd.testing.assert_frame_equal(first.Y, second.Y, check_exact=True)
    assert first.truth.parents == second.truth.parents
    assert not first.X.equals(other.X)
    X, Y = first.truth.sample(50, random_state=1)
    X_again, Y_again = second.truth.sample(50, random_state=np.random.RandomState(1))
    pd.testing.assert_frame_equal(X, X_again, check_exact=True)
    pd.testing.assert_frame_equal(Y, Y_again, check_exact=True)


def test_all_states_are_declared():
    table = make_network(1, n_states=30, n_discrete_states=4, random_state=0)
    for column in table.Y:
        states = table.Y[column].cat.categories.tolist()
        assert len(states) == 30
        assert states == sorted(states) == list(table.truth.classes[column])
    assert table.X["d0"].cat.categories.tolist() == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    "shape",
    [
        {"n_continuous": 0},
        {"n_discrete": 0},
        {"n_class_variables": 1},
        {"max_parents": 0, "max_discrete_parents": 0},
        {"n_continuous": 1, "n_states": 2},
    ],
)
def test_small_shapes(shape):
    table = make_network(50, random_state=0, **shape)
    assert np.isfinite(table.truth.log_prob(table.X, table.Y)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples=0"),
        ({"n_class_variables": 0}, "n_class_variables=0"),
        ({"n_states": 1}, "n_states=1"),
        ({"n_states": (3, 2)}, r"n_states=\(3, 2\)"),
        ({"n_discrete_states": 1}, "n_discrete_states=1"),
        ({"max_parents": -1}, "max_parents=-1"),
        ({"effect": -1.0}, "effect=-1.0"),
        ({"n_continuous": 0, "n_discrete": 0}, "at least one feature"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_network(**{"n_samples": 10, **arguments})


def test_an_unknown_state_is_named():
    table = make_network(5, random_state=0)
    Y = table.Y.astype(object)
    Y.loc[3, "y1"] = "zebra"
    with pytest.raises(ValueError, match=r"Column 'y1', row 3: 'zebra'"):
        table.truth.log_prob(table.X, Y)
