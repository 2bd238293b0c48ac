import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from oracles import Enumeration
from pmdc import GBNC, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.decisions import BlockLoss, CostLoss, CustomLoss, FMeasure, decide, losses
from pmdc.decisions.decide import choose, resolve
from pmdc.decisions.f_measure import quadrature
from pmdc.decisions.losses import Loss
from pmdc.inference import JointDistribution, OutcomeDistribution
from problems import States, long_networks, networks, random_parents, random_tables

LOSSES = {
    "hamming": lambda true, predicted: np.mean(true != predicted),
    "subset": lambda true, predicted: float(np.any(true != predicted)),
    "sub-exact": lambda true, predicted: float(np.sum(true != predicted) > 1),
}


def f_loss(true, predicted):
    return 1.0 - (2 * (true & predicted).sum() / (true.sum() + predicted.sum()) if (true | predicted).any() else 1.0)


def check_minimal(loss, function, network):
    """No outcome has a lower expected loss, and the expected loss is what it is."""
    sizes, parents, tables = network
    truth = Enumeration.of_network(*network)
    expected = truth.expected_losses(function)
    every = np.arange(len(expected))
    for distribution in (
        JointDistribution(States(sizes), parents, tables),
        OutcomeDistribution(States(sizes), truth.outcomes, truth.log_prob, np.zeros(len(expected))),
    ):
        choice = choose(distribution, loss)
        assert choice.codes.dtype == np.int64
        assert choice.proved.all()
        assert not choice.standard_error.any()
        np.testing.assert_allclose(expected[every, truth.index_of(choice.codes)], expected.min(axis=1), atol=1e-9)
        np.testing.assert_allclose(choice.expected_loss, expected.min(axis=1), atol=1e-9)
        check_given(resolve(loss), function, distribution, truth, expected)


def check_given(loss, function, distribution, truth, expected):
    """Any prediction has the expected loss of the definition and, with a known truth, the loss itself."""
    every, rng = np.arange(len(expected)), np.random.default_rng(0)
    true, predicted = truth.outcomes[rng.integers(0, len(truth.outcomes), (2, len(every)))]
    risk = loss.expected(distribution, predicted)
    np.testing.assert_allclose(risk, expected[every, truth.index_of(predicted)], atol=1e-9)
    values = loss.values(distribution, true, predicted)
    np.testing.assert_allclose(values, [function(*pair) for pair in zip(true, predicted, strict=True)])


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=30, deadline=None)
@given(network=networks(max_variables=4))
def test_no_outcome_has_a_lower_expected_loss(loss, network):
    check_minimal(loss, LOSSES[loss], network)


@settings(max_examples=30, deadline=None)
@given(networks(max_variables=4), st.integers(0, 2**32 - 1))
def test_costs(network, seed):
    sizes = network[0]
    rng = np.random.default_rng(seed)
    names = States(sizes).names
    matrices = [rng.normal(size=(size, size)) for size in sizes]  # some mistakes may even pay
    distance = [np.abs(np.subtract.outer(np.arange(size), np.arange(size))) for size in sizes]
    costs = {}
    for k, name in enumerate(names):
        kind = rng.integers(5)
        if kind == 1:
            matrices[k] = 2.5 * (distance[k] > 0)
        elif kind == 2:
            matrices[k] = distance[k]
        elif kind == 3:
            matrices[k] = distance[k] ** 2
        elif kind == 4:
            matrices[k] = 1.0 * (distance[k] > 0)
        if kind < 4:
            costs[name] = [matrices[k], 2.5, "absolute", "squared"][kind]

    def loss(true, predicted):
        return sum(matrix[true[k], predicted[k]] for k, matrix in enumerate(matrices))

    check_minimal(CostLoss(costs), loss, network)


@settings(max_examples=30, deadline=None)
@given(long_networks(most_outcomes=70), st.integers(0, 2**32 - 1))
def test_blocks(network, seed):
    sizes = network[0]
    rng = np.random.default_rng(seed)
    number = rng.integers(3, size=len(sizes))  # 2 is in no block
    blocks = [group for block in range(2) if (group := np.flatnonzero(number == block).tolist())]
    weights = (rng.random(len(blocks)) + 0.1).tolist() if rng.random() < 0.5 else None
    groups = blocks + [[k] for k in np.flatnonzero(number == 2)]
    share = np.concatenate([np.ones(len(blocks)) if weights is None else weights, np.ones(len(groups) - len(blocks))])

    def loss(true, predicted):
        return np.average([(true[group] != predicted[group]).any() for group in groups], weights=share)

    names = States(sizes).names
    check_minimal(BlockLoss([[names[k] for k in block] for block in blocks], weights), loss, network)


def test_the_ends_of_the_block_loss():
    sizes, parents, tables = random_network(0, [3, 2, 3, 2], 20)
    distribution = JointDistribution(States(sizes), parents, tables)
    for blocks, same in (([], "hamming"), ([["A", "B", "C", "D"]], "subset")):
        one, other = choose(distribution, BlockLoss(blocks)), choose(distribution, same)
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_allclose(one.expected_loss, other.expected_loss, atol=1e-12)


def random_network(seed, sizes, n_rows, edges=0.5):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, len(sizes), edges)
    return sizes, parents, random_tables(rng, sizes, parents, n_rows)


def test_the_losses_differ():
    distribution = OutcomeDistribution(States([2, 2]), [[0, 0], [1, 0], [1, 1]], np.log([[0.4, 0.3, 0.3]]), [0.0])
    assert decide(distribution, "subset").outcome.tolist() == [["s0", "s0"]]
    assert decide(distribution, "hamming").outcome.tolist() == [["s1", "s0"]]
    np.testing.assert_allclose(distribution.decide("hamming").expected_loss, (0.4 + 0.3) / 2)


def test_ties_go_to_the_first_state():
    distribution = JointDistribution(States([3, 2]), [(), ()], [np.log([[0.2, 0.4, 0.4]]), np.log([[0.5, 0.5]])])
    for loss in ("hamming", "subset", CostLoss({}), BlockLoss([["A", "B"]])):
        assert choose(distribution, loss).codes.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("loss", "suggestion"),
    [("haming", "did you mean 'hamming'"), ("Subset", "did you mean 'subset'"), ("xyz", ""), (3, ""), (dict, "")],
)
def test_unknown_loss(loss, suggestion):
    distribution = JointDistribution(States([2]), [()], [np.log([[0.2, 0.8]])])
    with pytest.raises(ValueError, match=f"loss={loss!r} is not known.*{suggestion}.*Choose from 'hamming', 'subset'"):
        decide(distribution, loss)


@pytest.mark.parametrize(
    ("loss", "complaint"),
    [
        (CostLoss({"Z": 1}), "costs names 'Z'"),
        (CostLoss({"A": [[0, 1]]}), r"costs\['A'\] has shape \(1, 2\); for 2 states it must be \(2, 2\)"),
        (CostLoss({"A": "cubic"}), r"costs\['A'\]='cubic'"),
        (CostLoss({"A": -1}), r"costs\['A'\]=-1"),
        (CostLoss({"A": [[0, np.inf], [0, 1]]}), r"costs\['A'\] has inf"),
        (CostLoss({"A": object()}), r"costs\['A'\]=<object.*'absolute', 'squared'"),
        (BlockLoss([["A", "Z"]]), "blocks names 'Z'"),
        (BlockLoss([["A"], ["A", "B"]]), "blocks names 'A' twice"),
        (BlockLoss(["AB"]), "blocks has 'AB'"),
        (BlockLoss([["A"]], weights=[1, 2]), r"weights=\[1, 2\].* 1 blocks"),
        (BlockLoss([["A", "B"]], weights=[0]), r"weights=\[0\]"),
        (FMeasure("weighted"), "average='weighted' is not known"),
        (FMeasure(positive="s7"), "positive='s7'.*'A'"),
        (FMeasure(positive=["s1"]), r"positive=\['s1'\].* 2 class variables"),
        (CustomLoss(lambda t, p: 0, n_samples=0), "n_samples=0"),
    ],
)
def test_losses_that_do_not_fit(loss, complaint):
    distribution = JointDistribution(States([2, 2]), [(), ()], [np.log([[0.2, 0.8]])] * 2)
    with pytest.raises(ValueError, match=complaint):
        decide(distribution, loss)


# Sub-exact, where not all outcomes are compared ---------------------------------------------------------------


def test_one_mistake_is_forgiven_in_a_large_space(monkeypatch):
    """Against a list of all outcomes, 5 ** 6 of them; peaked and flat rows."""
    rng = np.random.default_rng(3)
    sizes, n_rows = [5] * 6, 12
    parents = random_parents(rng, 6, 0.4)
    tables = random_tables(rng, sizes, parents, n_rows)
    sharp = np.repeat([1.0, 3.0, 8.0], 4)
    tables = [table * sharp.reshape(-1, *[1] * (table.ndim - 1)) for table in tables]
    tables = [table - np.log(np.exp(table).sum(axis=-1, keepdims=True)) for table in tables]
    truth = Enumeration.of_network(sizes, parents, tables)
    prob = truth.prob.reshape(n_rows, *sizes)
    balls = sum(prob.sum(axis=k, keepdims=True) for k in range(1, 7)) - 5 * prob
    lowest = 1 - balls.reshape(n_rows, -1).max(axis=1)
    distribution = JointDistribution(States(sizes), parents, tables)
    np.testing.assert_allclose(choose(distribution, "sub-exact").expected_loss, lowest, atol=1e-9)
    monkeypatch.setattr("pmdc.decisions.outcome_search._MAX_OUTCOMES", 100)
    choice = choose(distribution, "sub-exact")
    own = 1 - balls.reshape(n_rows, -1)[np.arange(n_rows), truth.index_of(choice.codes)]
    np.testing.assert_allclose(choice.expected_loss, own, atol=1e-9)
    assert choice.proved[8:].all()
    np.testing.assert_allclose(own[choice.proved], lowest[choice.proved], atol=1e-9)
    assert (own <= lowest * 1.01 + 1e-9).all()


# F-measures ---------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_f_measure_of_rows(n_variables, seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, n_variables, 0.5)
    tables = random_tables(rng, [2] * n_variables, parents, 3, zeros=0.2, tiny=0.1)
    check_minimal("f1_samples", f_loss, ([2] * n_variables, parents, tables))


def test_f_measure_of_rows_with_other_positive_states():
    sizes, parents, tables = random_network(1, [2, 2, 2], 4)
    positive = np.array([0, 1, 0])
    truth = Enumeration.of_network(sizes, parents, tables)
    expected = truth.expected_losses(lambda t, p: f_loss(t == positive, p == positive))
    choice = choose(JointDistribution(States(sizes), parents, tables), FMeasure(positive=["s0", "s1", "s0"]))
    np.testing.assert_allclose(choice.expected_loss, expected.min(axis=1), atol=1e-12)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("seed", range(6))
def test_f_measure_of_a_batch(average, seed):
    """Against all predictions of the whole batch and all its outcomes: 4 rows of 2 or 3 rows of 3 class variables."""
    n_rows, n_variables = ((4, 2), (3, 3))[seed % 2]
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, n_variables, 0.7)
    tables = random_tables(rng, [2] * n_variables, parents, n_rows, zeros=0.1)
    truth = Enumeration.of_network([2] * n_variables, parents, tables)
    batches = np.stack(np.meshgrid(*[np.arange(len(truth.outcomes))] * n_rows, indexing="ij"), axis=-1)
    batches = batches.reshape(-1, n_rows)
    prob = np.prod([truth.prob[row, batches[:, row]] for row in range(n_rows)], axis=0)
    cells = truth.outcomes[batches]  # batch, row, class variable
    axes = (1,) if average == "macro" else (1, 2)
    positives = cells.sum(axis=axes)

    def expected(predicted):
        both = (cells & predicted).sum(axis=axes)
        total = positives + predicted.sum(axis=axes[0] - 1 if average == "macro" else None)
        f = np.where(total > 0, 2 * both / np.maximum(total, 1), 1.0)
        return 1 - prob @ (f.mean(axis=1) if average == "macro" else f)

    lowest = min(expected(predicted) for predicted in cells[prob >= 0])
    choice = choose(JointDistribution(States([2] * n_variables), parents, tables), f"f1_{average}")
    assert choice.proved.all()
    np.testing.assert_allclose(choice.expected_loss, lowest, atol=1e-9)
    np.testing.assert_allclose(expected(choice.codes), lowest, atol=1e-9)


def test_fewer_nodes_are_as_good_as_all():
    """Expected F-measure of 3,000 independent rows: by quadrature, and by the distribution of the number of hits."""
    rng = np.random.default_rng(0)
    n = 3000
    p = np.sort(rng.beta(0.5, 2, size=n))[::-1]
    assert len(quadrature(n)[0]) < n
    distribution = JointDistribution(States([2]), [()], [np.log(np.column_stack([1 - p, p]))])
    choice = choose(distribution, "f1_macro")
    size = int(choice.codes.sum())
    # P(number of positives) among the predicted and among the others, by convolution one row at a time.
    inside, outside = np.ones(1), np.ones(1)
    for i, value in enumerate(p):
        if i < size:
            inside = np.convolve(inside, [1 - value, value])
        else:
            outside = np.convolve(outside, [1 - value, value])
    hits, others = np.arange(len(inside))[:, None], np.arange(len(outside))
    expected = (inside[:, None] * outside * 2 * hits / (size + hits + others)).sum()
    np.testing.assert_allclose(1 - choice.expected_loss[0], expected, rtol=1e-10)


def test_micro_average_of_many_cells_is_searched():
    rng = np.random.default_rng(0)
    parents = [(), (0,)]
    tables = random_tables(rng, [2, 2], parents, 2500)
    choice = choose(JointDistribution(States([2, 2]), parents, tables), "f1_micro")
    assert not choice.proved.any()
    half = choose(JointDistribution(States([2, 2]), parents, [t[:1000] for t in tables]), "f1_micro")
    assert half.proved.all()
    np.testing.assert_allclose(choice.expected_loss[0], half.expected_loss[0], atol=0.03)


def test_f_measure_needs_two_states():
    distribution = JointDistribution(States([2, 3]), [(), ()], [np.log([[0.5, 0.5]]), np.log([[0.2, 0.3, 0.5]])])
    with pytest.raises(ValueError, match=r"binary class variables; 'B' has 3 states \(s0, s1, s2\)"):
        decide(distribution, "f1_samples")


@pytest.mark.parametrize("loss", ["f1_samples", "f1_micro", "f1_macro"])
@pytest.mark.parametrize("listed", [False, True])
def test_many_positive_states(loss, listed):
    """E[t^S] is far below the smallest float at most nodes."""
    n_variables, n_rows = 120, 3
    table = States([2] * n_variables)
    if listed:
        ones = np.ones((1, n_variables), dtype=np.int64)
        distribution = OutcomeDistribution(table, ones, np.zeros((n_rows, 1)), np.zeros(n_rows))
        expected = 0.0
    else:
        tables = [np.log(np.tile([[0.001, 0.999]], (n_rows, 1)))] * n_variables
        distribution = JointDistribution(table, [()] * n_variables, tables)
        expected = 0.0005
    choice = choose(distribution, loss)
    assert choice.codes.all()
    np.testing.assert_allclose(choice.expected_loss, expected, atol=2e-4)


# Any function -------------------------------------------------------------------------------------------------


def test_a_hundred_random_losses_on_ten_class_variables():
    """Wholly random losses: nothing but comparing all outcomes finds their best predictions."""
    sizes, parents, tables = random_network(4, [2] * 10, 2, edges=0.3)
    distribution = JointDistribution(States(sizes, [np.arange(2)] * 10), parents, tables)
    truth = Enumeration.of_network(sizes, parents, tables)
    powers = 2 ** np.arange(9, -1, -1)
    for seed in range(100):
        matrix = np.random.default_rng(seed).random((1024, 1024))
        choice = choose(distribution, lambda t, p, matrix=matrix: matrix[t @ powers, p @ powers])
        risk = truth.prob @ matrix
        assert choice.proved.all()
        np.testing.assert_allclose(choice.expected_loss, risk.min(axis=1), rtol=1e-9)
        chosen = risk[np.arange(2), truth.index_of(choice.codes)]
        assert (chosen <= 1.01 * risk.min(axis=1)).all()


def random_loss(rng, sizes):
    """Costs of single class variables and of pairs, and a price for any mistake at all, with random weights."""
    matrices = [rng.random((size, size)) * (1 - np.eye(size)) for size in sizes]
    pairs = [(*rng.permutation(len(sizes))[:2], rng.random()) for _ in range(4)]
    flat = rng.random()

    def loss(true, predicted):
        wrong = true != predicted
        total = sum(matrix[true[..., k], predicted[..., k]] for k, matrix in enumerate(matrices))
        total = total + sum(price * (wrong[..., a] & wrong[..., b]) for a, b, price in pairs)
        return total + flat * wrong.any(axis=-1)

    return loss


def test_a_hundred_random_losses_without_comparing_all():
    sizes, parents, tables = random_network(5, [2] * 10, 2, edges=0.3)
    distribution = JointDistribution(States(sizes, [np.arange(size) for size in sizes]), parents, tables)
    truth = Enumeration.of_network(sizes, parents, tables)
    some = truth.outcomes  # all of them: this is the enumerated optimum
    worst, errors = 1.0, []
    for seed in range(100):
        function = random_loss(np.random.default_rng(seed), sizes)
        loss = CustomLoss(function, enumerate_up_to=0)
        choice = choose(distribution.rows(np.array([seed % 2])), loss, random_state=seed)
        assert not choice.proved.any()
        prob = truth.prob[seed % 2]
        own = prob @ function(truth.outcomes, np.broadcast_to(choice.codes, truth.outcomes.shape))
        lowest = min(prob @ function(truth.outcomes, np.broadcast_to(one, truth.outcomes.shape)) for one in some)
        worst = max(worst, own / lowest)
        errors.append((choice.expected_loss[0] - own) / choice.standard_error[0])
    assert worst <= 1.01
    assert 0.7 < np.std(errors) < 1.4  # the standard error is what it says
    assert abs(np.mean(errors)) < 0.3


def test_functions_of_one_pair_and_of_many_give_the_same():
    sizes, parents, tables = random_network(6, [2, 3, 2], 4)
    distribution = JointDistribution(States(sizes), parents, tables)
    many = choose(distribution, lambda t, p: (t != p).sum(axis=-1) ** 2)
    one = choose(distribution, lambda t, p: sum(a != b for a, b in zip(t.tolist(), p.tolist(), strict=True)) ** 2)
    np.testing.assert_array_equal(one.codes, many.codes)
    np.testing.assert_allclose(one.expected_loss, many.expected_loss)
    # What looks vectorised and is not: the mean over everything, and a sum over the wrong axis.
    for trap in (lambda t, p: np.mean(t != p), lambda t, p: (t != p).sum(axis=0) + 0.0):
        choice = choose(distribution, trap) if np.ndim(trap(np.array(["a"]), np.array(["b"]))) == 0 else None
        if choice is not None:
            np.testing.assert_array_equal(choice.codes, choose(distribution, "hamming").codes)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda t, p: np.nan, "loss returned nan for y_true="),
        (lambda t, p: (t != p) * 1.0, r"loss returned array\("),
        (lambda t, p: None, "loss returned None"),
    ],
)
def test_functions_that_answer_no_number(function, complaint):
    distribution = JointDistribution(States([2, 2]), [(), ()], [np.log([[0.2, 0.8]])] * 2)
    with pytest.raises(ValueError, match=complaint):
        decide(distribution, function)


def test_the_expected_loss_of_given_predictions():
    """By enumeration for a function, also in blocks of rows and with evidence; not of too many outcomes."""
    rng = np.random.default_rng(5)
    sizes, parents = [3, 2, 4], [(), (0,), (0, 1)]
    tables = random_tables(rng, sizes, parents, 30)
    truth = Enumeration.of_network(sizes, parents, tables)
    joint = JointDistribution(States(sizes), parents, tables)
    evidence = np.full((30, 3), -1)
    evidence[::2, 1] = rng.integers(0, 2, 15)
    predicted = truth.outcomes[rng.integers(0, 24, 30)]

    def squared(true, predicted):
        return float((true != predicted).sum() ** 2)

    for distribution, oracle in ((joint, truth), (joint.given_codes(evidence), truth.given(evidence))):
        expected = oracle.expected_losses(squared)[np.arange(30), truth.index_of(predicted)]
        with pytest.MonkeyPatch.context() as patch:
            for cells in (2**22, 1000):
                patch.setattr(losses, "_MAX_CELLS", cells)
                np.testing.assert_allclose(resolve(squared).expected(distribution, predicted), expected, atol=1e-12)
    wide = JointDistribution(States([2] * 13), [()] * 13, [np.full((1, 2), np.log(0.5))] * 13)
    with pytest.raises(ValueError, match=r"loss=CustomLoss.*8\.19e\+03.*4096"):
        resolve(squared).expected(wide, np.zeros((1, 13), dtype=int))
    assert resolve("hamming").expected(wide, np.zeros((1, 13), dtype=int)) == pytest.approx(0.5)


def test_a_loss_without_values():
    class Silent(Loss):
        def choose(self, distribution, random):
            raise NotImplementedError

    joint = JointDistribution(States([2]), [()], [np.full((1, 2), np.log(0.5))])
    codes = np.zeros((1, 1), dtype=int)
    assert Silent().by_variable(joint, codes, codes) is None
    with pytest.raises(TypeError, match=r"loss=Silent\(\).*values"):
        Silent().expected(joint, codes)


def test_sums_of_products_count_as_vectorised():
    """Products of matrices round differently for one pair and for many."""
    sizes, parents, tables = random_network(6, [2] * 11, 2)
    distribution = JointDistribution(States(sizes), parents, tables)
    weights = np.random.default_rng(0).random(11)
    choice = choose(distribution, lambda t, p: (t != p) @ weights)
    assert choice.proved.all()
    costs = CostLoss(dict(zip("ABCDEFGHIJK", weights, strict=True)))
    np.testing.assert_array_equal(choice.codes, choose(distribution, costs).codes)


def test_a_row_does_not_depend_on_the_others():
    sizes, parents, tables = random_network(7, [2] * 14, 4)
    distribution = JointDistribution(States(sizes), parents, tables)
    loss = CustomLoss(lambda t, p: (t != p).sum(axis=-1) ** 2, n_samples=100)
    together, alone = choose(distribution, loss), choose(distribution.rows(np.array([2])), loss)
    assert not together.proved.any()
    np.testing.assert_array_equal(together.codes[2], alone.codes[0])
    assert together.expected_loss[2] == alone.expected_loss[0]


@pytest.mark.parametrize("enumerate_up_to", [0, 4096])
def test_what_is_known_is_predicted(enumerate_up_to):
    """Also where a loss does not care, or would rather have something else."""
    sizes, parents, tables = random_network(8, [3, 3, 2], 3)
    distribution = JointDistribution(States(sizes), parents, tables).given({"A": "s2", "B": ["s2", None, "s1"]})
    listed = distribution.enumerate()
    listed.evidence = distribution.evidence
    free = CostLoss({"A": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]})  # being right about A costs
    careless = CustomLoss(lambda t, p: t[..., 2] != p[..., 2], enumerate_up_to=enumerate_up_to, n_samples=50)
    for each in (distribution, listed):
        for loss in ("hamming", "subset", "sub-exact", free, careless, BlockLoss([["A", "C"]])):
            codes = choose(each, loss).codes
            assert codes[:, 0].tolist() == [2, 2, 2]
            assert codes[[0, 2], 1].tolist() == [2, 1]


# Of classifiers -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    data = make_network(400, random_state=0)
    return GBNC(experts=None, max_parents=1).fit(data.X[:300], data.Y[:300]), data


def test_predictions_for_any_loss(fitted):
    model, data = fitted
    X = data.X[300:320]
    names = list(data.Y)
    joint = model.predict_joint(X)
    for loss in ("hamming", "sub-exact", BlockLoss([names[:2]]), CostLoss({names[0]: "absolute"})):
        decision = joint.decide(loss)
        np.testing.assert_array_equal(np.asarray(model.predict(X, loss=loss)), np.asarray(decision.outcome))
        np.testing.assert_array_equal(model.expected_loss(X, loss), decision.expected_loss)
    np.testing.assert_array_equal(model.expected_loss(X), model.expected_loss(X, "hamming"))


def test_a_loss_as_a_parameter(fitted):
    model, data = fitted
    other = clone(model).set_params(loss=BlockLoss([list(data.Y)[:2]])).fit(data.X[:300], data.Y[:300])
    assert "BlockLoss(blocks=" in repr(other)
    copy = pickle.loads(pickle.dumps(other))
    X = data.X[300:320]
    np.testing.assert_array_equal(np.asarray(copy.predict(X)), np.asarray(model.predict(X, loss=other.loss)))
    for loss, complaint in (
        ("nothing", "loss='nothing' is not known"),
        (CostLoss({"nobody": 1}), "costs names 'nobody'"),
        ("f1_macro", "binary class variables"),
    ):
        with pytest.raises(ValueError, match=complaint):
            GBNC(experts=None, loss=loss).fit(data.X, data.Y)
    for loss in (CostLoss(None), BlockLoss(None)):
        with pytest.raises(TypeError, match="must be a"):
            GBNC(experts=None, loss=loss).fit(data.X, data.Y)


def test_predictions_when_something_is_known(fitted):
    model, data = fitted
    X, Y = data.X[300:340], data.Y[300:340]
    first = next(iter(Y))
    given_first = model.predict(X, given=Y[[first]])
    assert (given_first[first].to_numpy() == Y[first].to_numpy()).all()
    np.testing.assert_allclose(model.predict_proba(X, given={first: Y[first]})[0].max(axis=1), 1.0)
    joint = model.predict_joint(X, given={first: Y[first]})
    np.testing.assert_allclose(joint.marginals()[1], model.predict_proba(X, given={first: Y[first]})[1])
    assert model.expected_loss(X, given=Y[[first]]).mean() < model.expected_loss(X).mean()
    with pytest.raises(ValueError, match="given names 'nobody'"):
        model.predict(X, given={"nobody": 1})


def test_chunks_do_not_change_decisions(fitted, monkeypatch):
    model, data = fitted
    X = data.X[300:]
    given_first = {next(iter(data.Y)): data.Y.iloc[300:, 0]}
    whole = model.predict(X, loss="sub-exact", given=given_first)
    monkeypatch.setattr("pmdc.estimator._CHUNK_CELLS", 200)
    assert len(list(model._chunks(model._read(X)))) > 3
    np.testing.assert_array_equal(model.predict(X, loss="sub-exact", given=given_first), whole)


@pytest.mark.parametrize("baseline", [ClassPowerset(), ClassifierChain(loss="hamming"), ChainEnsemble(n_chains=2)])
def test_baselines_answer_the_same_questions(baseline):
    data = make_network(200, random_state=1)
    model = baseline.fit(data.X, data.Y)
    X, Y = data.X[:15], data.Y[:15]
    names = list(Y)
    for loss in ("hamming", "subset", "sub-exact", BlockLoss([names[:2]]), lambda t, p: (t != p).mean(axis=-1)):
        assert model.predict(X, loss=loss).shape == Y.shape
    joint = model.predict_joint(X)
    np.testing.assert_allclose(joint.given(Y[names[:2]]).marginal(names[0]).max(axis=1), 1.0)
    assert joint.top(3).log_prob.shape == (15, 3)
    np.testing.assert_allclose(joint.marginal(names[:2]).sum(axis=(1, 2)), 1.0)
    own = {"ClassifierChain": "greedy", "ChainEnsemble": "vote"}.get(type(model).__name__)
    if own:
        with pytest.raises(ValueError, match="loss="):
            model.predict(X, loss=own, given=Y[names[:1]])
        with pytest.raises(ValueError, match="loss="):
            model.expected_loss(X, own)
