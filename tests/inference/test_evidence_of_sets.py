"""Evidence that is a set of possible states, against a list of all outcomes; and how evidence is read."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracles import Enumeration, log_sum
from pmdc import GBNC, BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.datasets import make_network
from pmdc.decisions import CustomLoss
from pmdc.decisions.prediction_sets import outcome_sets
from pmdc.inference import JointDistribution, OutcomeDistribution
from pmdc.inference.evidence import read_evidence, read_given
from pmdc.learners import NaiveBayes
from pmdc.table import ClassTable
from problems import States, networks

LOSSES = {
    "hamming": lambda true, predicted: np.mean(true != predicted),
    "subset": lambda true, predicted: float(np.any(true != predicted)),
    "sub-exact": lambda true, predicted: float(np.sum(true != predicted) > 1),
}


def as_table(possible, states, n_rows):
    """A list of rows of sets, single states and None."""
    rows = [[None] * len(states) for _ in range(n_rows)]
    for k, own in enumerate(possible):
        for row in range(n_rows) if own is not None else ():
            members = states[k][own[row]].tolist()
            rows[row][k] = None if own[row].all() else members[0] if len(members) == 1 else frozenset(members)
    return rows


@settings(max_examples=40)
@given(networks(max_variables=4), st.integers(0, 2**32 - 1))
def test_every_answer_of_a_restricted_distribution(network, seed):
    sizes, parents, tables = network
    rng, n_rows, table = np.random.default_rng(seed), len(tables[0]), States(sizes)
    every = Enumeration.of_network(sizes, parents, tables)
    possible = [rng.random((n_rows, size)) < 0.6 if rng.random() < 0.8 else None for size in sizes]
    log_p = every.log_prob.copy()
    for states, own in zip(every.outcomes.T, possible, strict=True):
        if own is not None:
            own[~own.any(axis=1), 0] = True
            log_p[~own[:, states]] = -np.inf
    assume(np.isfinite(log_sum(log_p)).all())
    truth = Enumeration(sizes, log_p - log_sum(log_p)[:, None])
    K = len(sizes)
    evidence = as_table(possible, table.states, n_rows)
    for distribution in (
        JointDistribution(table, parents, tables),
        OutcomeDistribution(table, every.outcomes, every.log_prob, np.zeros(n_rows)),
    ):
        posterior = distribution.given(evidence)
        for found, expected in zip(posterior.marginals(), truth.marginals(), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-9)
        pair = [0, K - 1] if K > 1 else [0]
        np.testing.assert_allclose(posterior.joint(pair), truth.joint(pair), atol=1e-9)
        np.testing.assert_allclose(posterior.entropy(), truth.entropy(), atol=1e-7)
        codes, best = posterior.mode_codes()
        np.testing.assert_allclose(best, truth.log_prob.max(axis=1), atol=1e-9)
        np.testing.assert_allclose(truth.log_prob[np.arange(n_rows), truth.index_of(codes)], best, atol=1e-9)
        k = min(3, len(truth.outcomes))
        np.testing.assert_allclose(
            np.exp(posterior.top_codes(k)[1]), np.sort(truth.prob, axis=1)[:, ::-1][:, :k], atol=1e-9
        )
        drawn = posterior.sample_codes(5, np.random.RandomState(0))
        for i in range(5):
            assert np.isfinite(truth.log_prob[np.arange(n_rows), truth.index_of(drawn[:, i])]).all()
        some = drawn[:, 0].copy()
        some[:, K // 2 :] = -1
        np.testing.assert_allclose(posterior.log_prob_codes(some), truth.log_marginal(some), atol=1e-7)
        np.testing.assert_allclose(
            posterior.given_codes(some).marginals()[-1], truth.given(some).marginals()[-1], atol=1e-7
        )
        weights = [rng.random(size) + 0.1 for size in sizes]
        mass = sum(np.log(w)[truth.outcomes[:, j]] for j, w in enumerate(weights))
        np.testing.assert_allclose(posterior.tilted(weights)[0], log_sum(truth.log_prob + mass), atol=1e-7)
        for name, loss in LOSSES.items():
            risk = truth.expected_losses(loss)
            decision = posterior.decide(name)
            np.testing.assert_allclose(decision.expected_loss, risk.min(axis=1), atol=1e-7)
        value = posterior.value_of_information("hamming")
        assert (value >= 0).all()
        for codes, prob in zip(*outcome_sets(posterior, 0.7, 1000, False), strict=True):
            assert prob >= 0.7 - 1e-9
            assert len(codes) >= 1


DATA = make_network(150, n_class_variables=3, random_state=0)
CLASSIFIERS = {
    "network": GBNC(NaiveBayes(), experts=None, max_parents=2, guard=0),
    "independent": BinaryRelevance(NaiveBayes()),
    "chain": ClassifierChain(NaiveBayes()),
    "chains": ChainEnsemble(NaiveBayes(), n_chains=2),
    "powerset": ClassPowerset(NaiveBayes()),
}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_weak_labels_are_evidence_for_every_classifier(kind):
    model = CLASSIFIERS[kind].fit(DATA.X, DATA.Y)
    X, rng = DATA.X[:40], np.random.default_rng(1)
    W = DATA.Y[:40].astype(object).mask(rng.random((40, 3)) < 0.3, None)
    for row in range(40):
        W.at[row, "y1"] = {"a", "b"} if row % 2 else frozenset("bc")
    every = model.predict_joint(X).enumerate()
    agree = np.ones(every.log_p.shape, dtype=bool)
    for k, name in enumerate(W):
        for row, cell in enumerate(W[name]):
            allowed = "abc" if cell is None else cell
            agree[row] &= [s in [("abc").index(c) for c in allowed] for s in every.outcomes[:, k]]
    p = np.exp(every.log_p) * agree
    p /= p.sum(axis=1, keepdims=True)
    joint = model.predict_joint(X, given=W)
    proba, predicted = model.predict_proba(X, given=W), model.predict(X, "hamming", given=W)
    for k, name in enumerate(W):
        expected = np.column_stack([p[:, every.outcomes[:, k] == s].sum(axis=1) for s in range(3)])
        np.testing.assert_allclose(proba[k], expected, atol=1e-9)
        np.testing.assert_allclose(joint.marginals()[k], expected, atol=1e-9)
        chosen = [("abc").index(state) for state in predicted[name]]
        np.testing.assert_allclose(expected[np.arange(40), chosen], expected.max(axis=1))
    assert (model.expected_loss(X, "hamming", given=W) <= 1).all()
    sets = model.predict_set(X, 0.8, given=W)
    assert (sets.prob >= 0.8 - 1e-9).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: {"A": [row[0] for row in rows], "B": [row[1] for row in rows]},
        lambda rows: pd.DataFrame(rows, columns=["A", "B"], dtype=object),
        lambda rows: pl.DataFrame(
            {n: pl.Series([row[k] for row in rows], dtype=pl.Object) for k, n in enumerate("AB")}
        ),
        lambda rows: rows,
        lambda rows: np.array(rows, dtype=object),
    ],
    ids=["mapping", "pandas", "polars", "list", "array"],
)
def test_sets_are_read_from_any_container(make):
    table = ClassTable.fit(pd.DataFrame({"A": list("abc"), "B": list("pqr")}))
    rows = [[{"a", "c"}, "q"], [None, frozenset("pq")], [{"b"}, {"q", "never seen"}]]
    evidence = read_given(table, make(rows), 3)
    assert evidence.codes.tolist() == [[-1, 1], [-1, -1], [1, -1]]
    assert evidence.possible[0].tolist() == [[True, False, True], [True] * 3, [True] * 3]
    assert evidence.possible[1].tolist() == [[True] * 3, [True, True, False], [False, True, False]]
    part = evidence[1:]
    assert part.codes.tolist() == [[-1, -1], [1, -1]]
    assert part.possible[1].tolist() == [[True, True, False], [False, True, False]]


def test_one_set_for_all_rows():
    table = ClassTable.fit(
        pd.DataFrame({"A": list("abc"), "B": pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"])})
    )
    evidence = read_given(table, {"A": {"a", "b"}, "B": {pd.Timestamp("2021-01-01"), pd.Timestamp("2022-01-01")}}, 2)
    assert [own.tolist() for own in evidence.possible] == [[[True, True, False]] * 2, [[False, True, True]] * 2]
    assert read_given(table, {"A": {"b"}}, 2).codes.tolist() == [[1, -1]] * 2
    assert read_given(table, {"A": {"b"}}, 2).possible is None


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"A": ["a", {"x", "y"}]}, "given, class variable 'A', row 1: none of {'x', 'y'}"),
        ([["a", None], [frozenset("xy"), None]], "given, class variable 'A', row 1: none of {'x', 'y'}"),
        ({"B": [set(), None]}, "given, column 'B', row 0 is an empty set"),
        ({"A": [{"a", None}, None]}, "given, column 'A', row 0 is .*missing value"),
        ({"A": [{"a", "b"}, "x"]}, "given, class variable 'A', row 1: 'x'"),
    ],
)
def test_bad_sets_are_named(bad, message):
    table = ClassTable.fit(pd.DataFrame({"A": list("ab"), "B": list("pq")}))
    with pytest.raises(ValueError, match=message):
        read_given(table, bad, 2)


def test_impossible_sets_and_questions_about_single_states():
    table = ClassTable.fit(pd.DataFrame({"A": list("abc")}))
    with np.errstate(divide="ignore"):
        joint = JointDistribution(table, [()], [np.log(np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))])
    with pytest.raises(ValueError, match="in row 1"):
        joint.given({"A": {"a", "b"}})
    with pytest.raises(ValueError, match="class variable 'A', row 1 is a set"):
        read_evidence(table, {"A": [None, {"a", "b"}]}, 2)
    assert read_evidence(table, {"A": ["b", None]}, 2).tolist() == [[1], [-1]]


def test_a_function_of_outcomes_given_sets():
    joint = JointDistribution(States([3, 2]), [(), (0,)], [np.log([[0.5, 0.3, 0.2]]), np.log([[[0.9, 0.1]] * 3])])
    loss = CustomLoss(
        lambda true, predicted: sum(abs(int(s[1]) - int(t[1])) for s, t in zip(true, predicted, strict=True))
    )
    decision = joint.given({"A": {"s0", "s2"}}).decide(loss)
    assert decision.expected_loss[0] == pytest.approx(2 * 0.2 / 0.7 + 0.1)
