"""Blocks: several class variables as one node of the network."""

import itertools

import numpy as np
import pytest

import pmdc
from pmdc import GBNC
from pmdc.blocks import Blocks, proposed_blocks
from pmdc.datasets import make_network
from pmdc.learners import Logistic, NaiveBayes
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

SIZES = (2, 3, 2, 2)


def training_rows(n, seed=0):
    """Rows with few combinations of the first two class variables."""
    rng = np.random.default_rng(seed)
    classes = np.column_stack([rng.integers(size, size=n) for size in SIZES])
    classes[:, 1] = np.where(classes[:, 0] == 0, classes[:, 1] % 2, 2)  # (0, 2), (1, 0), (1, 1) never occur
    features = Features(rng.normal(size=(n, 2)), np.empty((n, 0), dtype=np.int64))
    return TrainingRows(features, classes, SIZES, (), np.ones(n), False, np.arange(n), n)


def random_tables(sizes, parents, n, rng):
    tables = [rng.normal(size=(n, *(sizes[p] for p in own), size)) for own, size in zip(parents, sizes, strict=True)]
    return [t - np.log(np.exp(t).sum(axis=-1, keepdims=True)) for t in tables]


def joint_of(tables, parents, outcome):
    """The log-probability of an outcome in every row, by the product of tables."""
    total = 0.0
    for k, (table, own) in enumerate(zip(tables, parents, strict=True)):
        total = total + table[(slice(None), *(outcome[p] for p in own), outcome[k])]
    return total


@pytest.mark.parametrize("members", [[(0, 1)], [(0, 1), (2, 3)], [(1, 3)], [(0, 1, 2, 3)], [(0, 2, 3)], []])
def test_split_tables_are_those_of_the_blocks(members):
    rows = training_rows(40)
    blocks = Blocks.of(members, rows)
    rng = np.random.default_rng(1)
    # each block may depend on all blocks after it
    parents = [tuple(range(b + 1, len(blocks.members))) for b in range(len(blocks.members))]
    tables = random_tables(blocks.n_states, parents, 5, rng)
    class_parents = blocks.class_parents(parents)
    split = blocks.split(tables, parents)
    total = np.zeros(5)
    merged = blocks.merge(rows)
    for outcome in itertools.product(*map(range, SIZES)):
        log_p = joint_of(split, class_parents, outcome)
        assert np.isfinite(log_p).all()
        total += np.exp(log_p)
        same = np.flatnonzero((rows.classes == outcome).all(axis=1))
        if len(same):  # seen: the product over the blocks, less what unseen combinations take
            rest = sum(np.log1p(-blocks.rest[b]) for b, u in enumerate(blocks.unseen) if len(u) > blocks.n_states[b])
            expected = joint_of(tables, parents, merged.classes[same[0]]) + rest
            np.testing.assert_allclose(log_p, expected, atol=1e-12)
    np.testing.assert_allclose(total, 1.0, atol=1e-12)


def test_unseen_combinations_share_what_one_more_row_could_contribute():
    rows = training_rows(40)
    blocks = Blocks.of([(0, 1)], rows)
    tables = random_tables(blocks.n_states, [(), (), ()], 3, np.random.default_rng(0))
    a, b = blocks.split(tables, [(), (), ()])[:2]
    joint = np.exp(a[:, :, None] + b)
    np.testing.assert_allclose(joint[:, [0, 1, 1], [2, 0, 1]].sum(axis=1), blocks.rest[0], atol=1e-12)
    assert blocks.rest[0] == 1 / 41, "no combination occurs once"


def test_unseen_combinations_of_a_parent_have_the_mean_of_the_others():
    rows = training_rows(40)
    blocks = Blocks.of([(0, 1)], rows)
    table = random_tables((3, 2), [(), (0,)], 4, np.random.default_rng(0))[1]
    spread = blocks.split([np.log(np.full((4, 3), 1 / 3)), table, np.log(np.full((4, 2), 0.5))], [(), (0,), ()])[2]
    mean = np.einsum("c,ncs->ns", blocks.shares[0], np.exp(table))
    for unseen in ((0, 2), (1, 0), (1, 1)):
        np.testing.assert_allclose(np.exp(spread[:, *unseen]), mean, atol=1e-12)


@pytest.fixture(scope="module")
def data():
    return make_network(300, n_class_variables=4, n_continuous=2, n_discrete=1, random_state=0)


def test_one_block_of_all_is_the_powerset(data):
    model = GBNC(NaiveBayes(), blocks=[list(data.Y.columns)]).fit(data.X, data.Y)
    joint = model.predict_joint(data.X[:50])
    seen = {tuple(row) for row in data.Y.to_numpy()}
    assert model.blocks_ == [list(data.Y.columns)]
    outcomes, _ = joint.mode()
    assert sum(tuple(row) in seen for row in outcomes.to_numpy()) == 50
    assert np.isfinite(joint.log_prob(data.Y[:50])).all()


@pytest.mark.parametrize("settings", [{"estimator": Logistic()}, {"estimator": NaiveBayes(), "criterion": "bic"}])
def test_questions_are_about_class_variables(data, settings):
    model = GBNC(**settings, blocks=[["y0", "y2"]], max_parents=1).fit(data.X, data.Y)
    assert model.class_names_ == ["y0", "y1", "y2", "y3"]
    assert [p.shape[1] for p in model.predict_proba(data.X[:5])] == [3, 3, 3, 3]
    assert model.graph_.edges["y0", "y2"]["conditioning"] == "block"
    assert set(model.structure_.parents) == {"y0", "y1", "y2", "y3"}
    assert "y0 + y2" in model.scores_
    joint = model.predict_joint(data.X[:5])
    given = joint.given({"y0": data.Y["y0"].iloc[0]})
    np.testing.assert_allclose([m.sum(axis=1) for m in given.marginals()], 1.0)
    model.plot()


def test_edges_between_members_are_edges_between_blocks(data):
    settings = {"estimator": NaiveBayes(), "blocks": [["y0", "y2"]], "max_parents": 2}
    model = GBNC(**settings, required_edges=[("y0", "y1")]).fit(data.X, data.Y)
    assert {"y0", "y2"} <= model.structure_.parents["y1"]
    model = GBNC(**settings, forbidden_edges=[("y2", "y1"), ("y2", "y3")]).fit(data.X, data.Y)
    assert not {"y0", "y2"} & (model.structure_.parents["y1"] | model.structure_.parents["y3"])


def test_a_pair_that_is_exclusive_is_merged():
    """y1 = y0 xor (x0 > 0) with noise: additive effects of y0 see nothing of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y0 = rng.integers(2, size=600)
    y1 = y0 ^ (X[:, 0] > 0) ^ (rng.random(600) < 0.05)
    Y = np.column_stack([y0, y1])
    settings = {"estimator": Logistic(C=1.0), "conditioning": "input"}
    plain = GBNC(**settings).fit(X[:400], Y[:400])
    merged = GBNC(**settings, blocks="auto").fit(X[:400], Y[:400])
    assert merged.blocks_ == [["y0", "y1"]]
    losses = [-m.predict_joint(X[400:]).log_prob(Y[400:]).mean() for m in (plain, merged)]
    assert losses[1] < losses[0] - 0.2


def test_noise_is_not_merged():
    rng = np.random.default_rng(0)
    Y = rng.integers(3, size=(200, 2))
    assert GBNC(NaiveBayes(), blocks="auto").fit(rng.normal(size=(200, 2)), Y).blocks_ == []


def test_blocks_are_saved(data, tmp_path):
    model = GBNC(NaiveBayes(), blocks=[["y1", "y3"]]).fit(data.X, data.Y)
    pmdc.save(model, tmp_path / "model.skops")
    again = pmdc.load(tmp_path / "model.skops")
    for a, b in zip(model.predict_proba(data.X), again.predict_proba(data.X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ("all", "blocks='all'"),
        (3, "blocks=3"),
        ([["y0", "vote"]], "'vote'"),
        (["y0"], "blocks\\[0\\]='y0'"),
        ([[]], "blocks\\[0\\]=\\[\\]"),
        ([["y0", "y1"], ["y1", "y2"]], "'y1'"),
        ([["y0", "y0"]], "'y0'"),
    ],
)
def test_bad_blocks(data, blocks, words):
    with pytest.raises(ValueError, match=words):
        GBNC(NaiveBayes(), blocks=blocks).fit(data.X, data.Y)


def test_auto_needs_held_out_scores(data):
    with pytest.raises(ValueError, match="blocks='auto'.*criterion"):
        GBNC(NaiveBayes(), blocks="auto", criterion="bic").fit(data.X, data.Y)


def test_independent_bits_are_not_merged():
    """Most combinations occur once: without their row they would be unseen."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), rng.integers(2, size=(60, 7))
    assert GBNC(NaiveBayes(), blocks="auto", max_parents=1).fit(X, Y).blocks_ == []


def test_rows_alone_in_their_combination_have_the_probability_of_unseen_ones():
    rows = training_rows(12)
    blocks = Blocks.of([(0, 1, 2, 3)], rows)
    merged = blocks.merge(rows).classes[:, 0]
    alone = np.bincount(merged)[merged] == 1
    assert 0 < alone.sum() < len(rows)
    log_prob = blocks.new_row_log_prob(np.zeros((len(rows), 1)), rows)
    assert blocks.rest[0] == alone.sum() / 13
    np.testing.assert_allclose(log_prob[~alone], np.log1p(-blocks.rest[0]))
    assert (log_prob[alone] < np.log(blocks.rest[0])).all()


def test_a_class_variable_is_in_one_block_only():
    rng = np.random.default_rng(1)
    a = rng.integers(3, size=400)
    Y = np.column_stack([a, (a + (rng.random(400) < 0.1)) % 3, (a + (rng.random(400) < 0.1)) % 3, a])
    blocks = GBNC(NaiveBayes(), blocks="auto", guard=0.0, max_parents=1).fit(rng.normal(size=(400, 1)), Y).blocks_
    named = [name for block in blocks for name in block]
    assert len(named) == len(set(named))


def test_at_most_three_pairs_are_tried():
    arcs = [(float(i), i, i + 1) for i in range(6)]
    assert proposed_blocks([8] * 7, arcs) == [(5, 6), (4, 5), (3, 4)]
    assert proposed_blocks([2] * 7, arcs)[0] == tuple(range(7))


def test_forbidden_edges_keep_class_variables_apart(data):
    with pytest.raises(ValueError, match="blocks has .*forbidden_edges"):
        GBNC(NaiveBayes(), blocks=[["y0", "y2"]], forbidden_edges=[("y2", "y0")]).fit(data.X, data.Y)
    every = [(a, b) for a in data.Y.columns for b in data.Y.columns if a != b]
    model = GBNC(NaiveBayes(), blocks="auto", guard=0.0, forbidden_edges=every).fit(data.X, data.Y)
    assert model.blocks_ == []
    assert not [edge for edge in model.graph_.edges if edge[0].startswith("y")]


def test_required_edges_that_a_block_would_close_to_a_cycle(data):
    edges = [("y0", "y2"), ("y2", "y1")]
    model = GBNC(NaiveBayes(), blocks="auto", guard=0.0, required_edges=edges).fit(data.X, data.Y)
    assert all(model.graph_.has_edge(*edge) for edge in edges)


def test_dicts_by_members_and_by_block(data):
    blocks = [["y0", "y2"]]
    model = GBNC({name: NaiveBayes() for name in data.Y.columns} | {"y0 + y2": NaiveBayes()}, blocks=blocks)
    assert not any(model.fit(data.X, data.Y).experts_.values())
    with pytest.raises(ValueError, match="estimator.*'y0 \\+ y2'"):
        GBNC({"y0": NaiveBayes()}, blocks=blocks).fit(data.X, data.Y)


def test_blocks_that_are_too_large(data):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="blocks: 30 class variables"):
        GBNC(NaiveBayes(), blocks=[[f"y{i}" for i in range(30)]]).fit(
            rng.normal(size=(40, 1)), rng.integers(2, size=(40, 30))
        )
    named = data.Y.rename(columns={"y3": "y0 + y1"})
    with pytest.raises(ValueError, match="'y0 \\+ y1'"):
        GBNC(NaiveBayes(), blocks=[["y0", "y1"]]).fit(data.X, named)


def test_folds_from_a_generator(data):
    from sklearn.model_selection import KFold

    folds = (pair for pair in KFold(3).split(data.X))
    GBNC(Logistic(), blocks="auto", cv=folds, max_parents=1).fit(data.X, data.Y)
