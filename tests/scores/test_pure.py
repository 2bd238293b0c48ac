"""Scores depend on the family alone: not on the order of questions, nor on what was forgotten, nor on workers."""

import itertools
from functools import partial

import numpy as np
import pytest

from pmdc._support import deadline
from pmdc._support.parallel import workers
from pmdc.candidates.families import Family
from pmdc.datasets import make_network
from pmdc.learners import Logistic, NaiveBayes
from pmdc.scores.evaluators import make_evaluator
from pmdc.scores.guard import guard, least_gain
from pmdc.scores.held_out import HeldOutScorer
from pmdc.scores.row_cache import BoundedCache
from pmdc.scores.scorer import Gain
from pmdc.scores.training import TrainingScorer
from problems import fitter_of, training_rows

K, P = 3, 1


@pytest.fixture(scope="module")
def rows():
    data = make_network(150, n_class_variables=K, n_discrete=P, n_continuous=2, random_state=4)
    columns = [frame[c].cat for frame in (data.Y, data.X.select_dtypes("category")) for c in frame]
    codes = np.column_stack([c.codes for c in columns]).astype(np.int64)
    sizes = tuple(len(c.categories) for c in columns)
    return training_rows(data.X.select_dtypes("number").to_numpy(), codes, sizes, K)


def families(child):
    """All families of a class variable with up to two class variables and the feature, in any conditioning."""
    others = [v for v in range(K + P) if v != child]
    for size in range(len(others) + 1):
        for parents in itertools.combinations(others, size):
            for sides in itertools.product((True, False), repeat=size):
                chosen = [v for v, side in zip(parents, sides, strict=True) if side]
                yield Family(tuple(chosen), tuple(v for v in parents if v not in chosen))


def scorer_of(kind, rows, parallel, memory_budget=2**30):
    estimator = NaiveBayes() if kind == "naive Bayes" else Logistic(C=10.0)
    fitter = fitter_of(estimator, rows)
    if kind == "bic":
        return TrainingScorer(fitter, parallel, lambda child, family: float(len(family.parents)))
    evaluator = make_evaluator("auto", fitter.learners, rows, 4)
    return HeldOutScorer(fitter, parallel, evaluator, True, memory_budget)


@pytest.mark.parametrize("kind", ["logistic", "naive Bayes", "bic"])
def test_families_may_be_asked_for_in_any_order(kind, rows):
    tasks = [(child, family) for child in range(K) for family in families(child)]
    random = np.random.default_rng(0)
    with workers(None) as parallel:
        reference = scorer_of(kind, rows, parallel)
        expected = reference.score(tasks)
        for at_once in (1, 7, len(tasks)):
            asked = [tasks[i] for i in random.permutation(len(tasks))]
            other = scorer_of(kind, rows, parallel, memory_budget=3000)  # nearly everything is forgotten
            found = {}
            for start in range(0, len(asked), at_once):
                found |= other.score(asked[start : start + at_once])
            assert found == expected, "the same bits"
            for child, family in asked[:20]:
                assert other.gain(child, family, Family(())) == reference.gain(child, family, Family(()))
                assert other.kappa(child, family) == reference.kappa(child, family)


@pytest.mark.parametrize("conditioning", ["auto", "partition"])
def test_the_guard_reads_the_finished_table(conditioning, rows):
    random = np.random.default_rng(1)
    with workers(None) as parallel:
        scorer = scorer_of("logistic", rows, parallel)
        for child in range(K):
            of_child = [f for f in families(child) if conditioning == "auto" or not f.inputs]
            table = {family: score for (_, family), score in scorer.score([(child, f) for f in of_child]).items()}
            judge = partial(guard, gain=partial(scorer.gain, child), least=lambda f, g: 0.5)
            expected = judge(table)
            assert 0 < len(expected) < len(table)
            for _ in range(5):
                shuffled = {list(table)[i]: 0.0 for i in random.permutation(len(table))}
                shuffled = {family: table[family] for family in shuffled}
                found = judge(shuffled)
                assert list(found.items()) == list(expected.items())


def test_a_family_must_gain_over_the_best_without_each_of_its_parents():
    """By hand: 1 and 2 are worth it alone, both together are not better than 2 by enough if few rows make the gain."""
    table = {Family(()): -100.0, Family((1,)): -90.0, Family((2,)): -80.0, Family((1, 2)): -77.0, Family((3,)): -99.0}

    def accepted(error, least):
        return set(guard(table, lambda f, g: Gain(table[f] - table[g], error), lambda f, g: least))

    assert accepted(4.0, 2.0) == {Family(()), Family((1,)), Family((2,))}
    assert accepted(2.0, 2.0) == set(table) - {Family((3,))}
    assert accepted(0.0, 4.0) == {Family(()), Family((1,)), Family((2,))}
    assert accepted(9.0, 0.0) == set(table), "without a guard whatever scores better"


def test_a_set_whose_subsets_were_not_scored_is_compared_with_what_is_there():
    table = {Family(()): -100.0, Family((), (1,)): -90.0, Family((), (1, 2, 3)): -89.5}
    asked = []

    def least(family, other):
        asked.append((family, other))
        return 2.0

    answer = guard(table, lambda f, g: Gain(table[f] - table[g], 0.1), least)
    assert set(answer) == {Family(()), Family((), (1,))}
    assert (Family((), (1, 2, 3)), Family((), (1,))) in asked


@pytest.mark.parametrize("n_parameters", [1, 4, 30, 1000, np.inf])
@pytest.mark.parametrize("n_tests", [1, 20])
def test_the_least_gain_is_the_quantile_of_the_gain_of_noise(n_parameters, n_tests):
    """Of parameters without effect, shrunk as held-out rows like it best: (chi2 - p)^2 / (2 chi2)."""
    least = least_gain(2.0, n_tests, n_parameters)
    p = min(n_parameters, 10**6)
    noise = np.random.default_rng(0).chisquare(p, size=400_000)
    gain = np.where(noise > p, (noise - p) ** 2 / (2 * noise), 0.0)
    assert (gain > least).mean() == pytest.approx(0.0455 / n_tests, rel=0.1)
    assert least_gain(0.0, n_tests, n_parameters) == 0.0


def test_a_cache_forgets_the_oldest_and_computes_it_again():
    cache, computed = BoundedCache(3 * 80), []

    def value(number):
        computed.append(number)
        return np.full(10, number)

    for number in (0, 1, 2, 3):
        cache.put(number, value(number))
    assert cache.find(0) is None
    assert cache.find(3)[0] == 3
    assert cache.get(0, lambda: value(0))[0] == 0
    assert computed == [0, 1, 2, 3, 0]
    assert cache.find(1) is None, "the oldest gave way"


@pytest.mark.parametrize("kind", ["naive Bayes", "bic"])
def test_after_the_deadline_only_what_is_known_is_returned(kind, rows, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(deadline, "monotonic", lambda: float(next(ticks)))
    tasks = [(child, family) for child in range(K) for family in families(child)]
    with workers(None) as parallel:
        expected = scorer_of(kind, rows, parallel).score(tasks)
        scorer = scorer_of(kind, rows, parallel)
        scorer.deadline = deadline.Deadline.after(40.0, deadline.now())
        some = scorer.score(tasks)
        assert 0 < len(some) < len(expected)
        assert some.items() <= expected.items()
        for child, family in some:
            coarser = scorer.fitter.coarser(child, family)
            assert kind == "bic" or coarser is None or (child, coarser) in some, "what a score depends on is there"
        assert scorer.out_of_time()
        scorer.deadline = deadline.NEVER
        assert scorer.score(tasks) == some, "it stays so: later questions are not answered either"
        missing = [task for task in tasks if task not in some]
        scorer.score_always(missing[:1])
        found = scorer.score(missing)
        assert found[missing[0]] == expected[missing[0]]
        assert missing[-1] not in found
