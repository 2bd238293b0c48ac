import warnings

import numpy as np
import pytest

from oracles import Enumeration
from pmdc import GBNC, ClassPowerset
from pmdc.datasets import make_network
from pmdc.decisions.prediction_sets import (
    Calibration,
    outcome_ranks,
    outcome_sets,
    state_ranks,
    state_sets,
    true_state_ranks,
)
from pmdc.inference import JointDistribution
from problems import States, random_parents, random_tables


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    sizes = [3, 2, 4, 2, 3]
    parents = random_parents(rng, 5, 0.5)
    tables = random_tables(rng, sizes, parents, 20)
    return JointDistribution(States(sizes), parents, tables), Enumeration.of_network(sizes, parents, tables)


@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.9, 0.999])
def test_the_smallest_sets_that_are_probable_enough(network, coverage):
    distribution, truth = network
    found, prob = outcome_sets(distribution, coverage, 1000, inclusive=False)
    for row, codes in enumerate(found):
        descending = np.sort(truth.prob[row])[::-1]
        smallest = int(np.argmax(np.cumsum(descending) >= coverage - 1e-12)) + 1
        assert len(codes) == smallest
        np.testing.assert_allclose(truth.prob[row, truth.index_of(codes)], descending[:smallest])
        np.testing.assert_allclose(prob[row], descending[:smallest].sum())


def test_ranks_are_the_probability_before(network):
    distribution, truth = network
    rng = np.random.default_rng(1)
    index = rng.integers(len(truth.outcomes), size=20)
    ranks = outcome_ranks(distribution, truth.outcomes[index], 1000)
    own = truth.prob[np.arange(20), index]
    before = np.where(truth.prob > own[:, None], truth.prob, 0).sum(axis=1)
    np.testing.assert_allclose(ranks, before, atol=1e-12)
    few = outcome_ranks(distribution, truth.outcomes[index], 20)
    assert np.isinf(few).any()
    np.testing.assert_allclose(few[np.isfinite(few)], ranks[np.isfinite(few)])


def test_sets_of_states():
    marginal = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(state_ranks(marginal), [[0.8, 0.0, 0.5], [0.0, 0.4, 0.8]])
    assert state_sets(marginal, 0.5, False).tolist() == [[False, True, False], [True, True, False]]
    assert state_sets(marginal, 0.5, True).tolist() == [[False, True, True], [True, True, False]]


def test_levels_of_few_rows():
    ranks = np.array([0.3, 0.1, 0.2])
    calibration = Calibration("outcomes", ranks, 100)
    assert calibration.levels(0.25).tolist() == [0.1]
    assert calibration.levels(0.5).tolist() == [0.2]
    assert calibration.levels(0.75).tolist() == [0.3]
    assert calibration.levels(0.76).tolist() == [np.inf]


@pytest.mark.parametrize("coverage", [1e-300, 1e-14, 1e-12])
def test_a_tiny_coverage_gives_the_smallest_set(coverage):
    assert Calibration("outcomes", np.array([0.3, 0.1, 0.2]), 100).levels(coverage).tolist() == [0.1]
    marginal = np.array([[0.2, 0.5, 0.3]])
    assert state_sets(marginal, coverage, False).tolist() == [[False, True, False]]
    distribution = JointDistribution(States([3]), [()], [np.log(marginal)])
    assert outcome_sets(distribution, coverage, 3, False)[0][0].tolist() == [[1]]


@pytest.mark.parametrize(("unseen", "coverage", "expected"), [(0.1, 0.8, 0.8), (0.36, 0.95, 0.64)])
@pytest.mark.parametrize("kind", ["outcomes", "variables"])
def test_coverage_with_states_never_seen_in_training(kind, unseen, coverage, expected):
    """Such rows have an infinite rank; coverage is lost only if their share exceeds 1 - coverage."""
    rng = np.random.default_rng(0)
    n, repetitions = 199, 100
    n_rows = (n + 1) * repetitions
    tables = random_tables(rng, [4], [()], n_rows)
    model = JointDistribution(States([4]), [()], tables)
    truth = model.sample_codes(1, np.random.RandomState(0))[:, 0]
    truth[rng.random(n_rows) < unseen] = -1
    ranks = outcome_ranks(model, truth, 10) if kind == "outcomes" else true_state_ranks(model, truth)[:, 0]
    marginal = model.marginals()[0]
    held = []
    for group in range(repetitions):
        new = (n + 1) * group + n
        (level,) = Calibration(kind, ranks[new - n : new], 10).levels(coverage)
        assert np.isfinite(level) == (unseen < 1 - coverage)
        held.append(truth[new, 0] >= 0 and state_sets(marginal[[new]], level, True)[0, truth[new, 0]])
    error = np.sqrt(expected * (1 - expected) / repetitions)
    assert abs(np.mean(held) - expected) < 3 * error


@pytest.mark.parametrize("kind", ["outcomes", "variables"])
def test_calibrated_sets_hold_the_truth_often_enough(kind):
    """The guarantee does not depend on the probabilities of the model, which are far too extreme here.

    With n held-out rows, the coverage over many repetitions lies between c and c + 1 / (n + 1), if ranks have no ties.
    """
    rng = np.random.default_rng(0)
    sizes, parents = [3, 2, 3], [(), (0,), (0, 1)]
    coverage, n_held_out, repetitions = 0.8, 19, 4000
    names = n_held_out + 1
    table = States(sizes)
    right = random_tables(rng, sizes, parents, repetitions * names)
    wrong = [5 * t for t in right]
    wrong = [t - np.log(np.exp(t).sum(axis=-1, keepdims=True)) for t in wrong]
    draws = JointDistribution(table, parents, right).sample_codes(1, np.random.RandomState(0))[:, 0]
    model = JointDistribution(table, parents, wrong)
    if kind == "outcomes":
        ranks = outcome_ranks(model, draws, 1000).reshape(repetitions, names)
    else:
        ranks = state_ranks(model.marginals()[1])[np.arange(len(draws)), draws[:, 1]].reshape(repetitions, names)
    covered = [line[-1] <= Calibration(kind, line[:-1], 1000).levels(coverage)[0] for line in ranks]
    error = np.sqrt(coverage * (1 - coverage) / repetitions)
    assert np.mean(covered) > coverage - 3 * error
    if kind == "outcomes":
        assert np.mean(covered) < coverage + 1 / (n_held_out + 1) + 0.02 + 3 * error  # first ranks are tied at zero
        nominal = (ranks[:, -1] < coverage).mean()
        assert nominal < coverage - 0.05  # the model alone would not have kept its promise


@pytest.fixture(scope="module")
def fitted():
    data = make_network(900, random_state=0)
    return GBNC(experts=None, max_parents=1).fit(data.X[:300], data.Y[:300]), data


def test_sets_of_a_classifier(fitted):
    model, data = fitted
    X, Y = data.X[600:], data.Y[600:]
    calibration = model.calibrate_sets(data.X[300:600], data.Y[300:600])
    found = model.predict_set(X, coverage=0.9, calibration=calibration)
    held = [(outcomes == y).all(axis=1).any() for outcomes, y in zip(found.outcomes, Y.to_numpy(), strict=True)]
    assert 0.82 < np.mean(held) < 0.97
    assert (model.predict_set(X, coverage=0.9).prob >= 0.9 - 1e-9).all()
    wide = model.predict_set(X, coverage=0.99, calibration=calibration)
    narrow = model.predict_set(X, coverage=0.5, calibration=calibration)
    assert np.mean([len(s) for s in wide.outcomes]) > np.mean([len(s) for s in narrow.outcomes])


def test_sets_for_each_class_variable(fitted):
    model, data = fitted
    X, Y = data.X[600:], data.Y[600:]
    calibration = model.calibrate_sets(data.X[300:600], data.Y[300:600], kind="variables")
    for given_calibration in (None, calibration):
        masks = model.predict_set(X, coverage=0.9, kind="variables", calibration=given_calibration)
        assert [mask.shape for mask in masks] == [(300, len(states)) for states in model.classes_]
        codes = model.class_table_.encode(Y)
        for k, mask in enumerate(masks):
            assert 0.83 < mask[np.arange(300), codes[:, k]].mean() <= 1.0
    single = GBNC(experts=None).fit(data.X[:300], data.Y.iloc[:300, 0])
    assert single.predict_set(X, kind="variables").shape == (300, len(single.classes_))


def test_calibration_warns_of_states_never_seen(fitted):
    model, data = fitted
    X, Y = data.X[300:400], data.Y[300:400].astype(str)
    Y.iloc[:7, 0] = "new"
    Y.iloc[5:9, 2] = "newer"
    for kind in ("outcomes", "variables"):
        with pytest.warns(UserWarning, match=r"9 of 100 rows .*'y0': 'new'; 'y2': 'newer'") as caught:
            calibration = model.calibrate_sets(X, Y, kind=kind)
        assert len(caught) == 1
        assert np.isinf(calibration.ranks).sum() == (9 if kind == "outcomes" else 11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.calibrate_sets(data.X[300:400], data.Y[300:400])


def test_sets_when_something_is_known(fitted):
    model, data = fitted
    X, Y = data.X[600:620], data.Y[600:620]
    name = next(iter(Y))
    found = model.predict_set(X, given={name: Y[name]})
    for outcomes, state in zip(found.outcomes, Y[name], strict=True):
        assert (outcomes[:, 0] == state).all()
    assert np.mean([len(s) for s in found.outcomes]) < np.mean([len(s) for s in model.predict_set(X).outcomes])


def test_sets_that_would_be_too_large_are_everything(fitted):
    model, data = fitted
    with pytest.warns(UserWarning, match=r"row\(s\) get the set of all outcomes, given as None: .*max_outcomes=2"):
        found = model.predict_set(data.X[600:], coverage=0.99, max_outcomes=2)
    assert any(outcomes is None for outcomes in found.outcomes)
    calibration = model.calibrate_sets(data.X[300:305], data.Y[300:305])
    with pytest.warns(UserWarning, match=r"held-out rows are too few for coverage=0.9"):
        assert model.predict_set(data.X[600:601], calibration=calibration).outcomes == [None]


def test_sets_of_baselines(fitted):
    _, data = fitted
    model = ClassPowerset().fit(data.X[:300], data.Y[:300])
    found = model.predict_set(data.X[600:610], coverage=0.8)
    assert (found.prob >= 0.8 - 1e-9).all()


@pytest.mark.parametrize("coverage", [0, 1, 1.5, "0.9", True, None, np.nan])
def test_impossible_coverage(fitted, coverage):
    model, data = fitted
    with pytest.raises(ValueError, match="coverage=.* must be a number between 0 and 1"):
        model.predict_set(data.X[:5], coverage=coverage)


def test_other_wrong_arguments(fitted):
    model, data = fitted
    with pytest.raises(ValueError, match="kind='outcome' is not known; did you mean 'outcomes'"):
        model.predict_set(data.X[:5], kind="outcome")
    with pytest.raises(ValueError, match="max_outcomes=0"):
        model.predict_set(data.X[:5], max_outcomes=0)
    with pytest.raises(ValueError, match="X has 5 rows, Y has 4"):
        model.calibrate_sets(data.X[:5], data.Y[:4])


def test_as_many_outcomes_as_are_allowed():
    distribution = JointDistribution(States([3]), [()], [np.log([[0.5, 0.45, 0.05]])])
    (two,), prob = outcome_sets(distribution, 0.9, 2, False)
    assert two.tolist() == [[0], [1]]
    np.testing.assert_allclose(prob, 0.95)
    assert outcome_sets(distribution, 0.96, 2, False)[0] == [None]
    assert len(outcome_sets(distribution, 1e-13, 2, False)[0][0]) == 1


@pytest.mark.parametrize("coverage", [0.5, 0.8])
def test_equally_probable_outcomes(coverage):
    """All 128 outcomes are equally probable according to the model, so a set must have all or none of them."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    Y = np.array([[int(bit) for bit in np.binary_repr(i % 128, 7)] for i in range(512)])

    def draw(n):
        return pd.DataFrame({"f": rng.choice(["u", "v"], n)}), rng.integers(0, 2, (n, 7))

    model = GBNC(experts=None, max_parents=0, max_discrete_parents=0).fit(draw(512)[0], Y)
    calibration = model.calibrate_sets(*draw(500))
    X, truth = draw(1000)
    found = model.predict_set(X, coverage, calibration=calibration)
    held = [(outcomes == y).all(axis=1).any() for outcomes, y in zip(found.outcomes, truth, strict=True)]
    assert np.mean(held) >= coverage - 0.05


def test_ties_of_a_few_levels_keep_the_promise():
    """Few different probabilities, many outcomes: the coverage over repetitions is at least the nominal one."""
    sizes = [2] * 11  # more outcomes than are listed at once
    n, coverage = 3000, 0.7
    p = np.where(np.arange(11) < 5, 0.5, 0.75)
    tables = [np.log(np.tile([[q, 1 - q]], (n, 1))) for q in p]
    distribution = JointDistribution(States(sizes), [()] * 11, tables)
    draws = distribution.sample_codes(1, np.random.RandomState(0))[:, 0]
    ranks = outcome_ranks(distribution, draws, 3000).reshape(-1, 20)
    covered = []
    for line in range(len(ranks)):
        (level,) = Calibration("outcomes", ranks[line, :-1], 3000).levels(coverage)
        row = distribution.rows(np.array([20 * line + 19]))
        (found,), _ = outcome_sets(row, level, 3000, True)
        inside = (found == draws[20 * line + 19]).all(axis=1).any()
        assert inside == (ranks[line, -1] <= level)
        covered.append(inside)
    assert np.mean(covered) > coverage - 3 * np.sqrt(0.21 / len(covered))


def test_calibration_of_another_model(fitted):
    model, data = fitted
    calibration = model.calibrate_sets(data.X[300:600], data.Y[300:600], kind="variables")
    other = GBNC(experts=None, max_parents=0).fit(data.X[:300], data.Y.iloc[:300, :2])
    with pytest.raises(ValueError, match="calibration has 4 class variables, but the model has 2"):
        other.predict_set(data.X[:5], calibration=calibration)
