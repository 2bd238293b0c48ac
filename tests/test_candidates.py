"""Parent sets: enumeration, pruning and restriction, on score tables made up by hand or at random."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import best_score
from pmdc.candidates.families import Family, best_coarser
from pmdc.candidates.family_search import backoff_chain, settle_families
from pmdc.candidates.parent_sets import restrict, score_parent_sets
from pmdc.candidates.rules import ParentRules, predicted_models
from pmdc.scores.criteria import Size, penalty_of

K, P = 3, 2  # class variables 0, 1, 2 and discrete features 3, 4


def rules_for(required=(), forbidden=(), max_parents=2, max_discrete_parents=2, n_classes=K, n_features=P):
    rules = []
    for child in range(n_classes):
        must = frozenset(p for p, c in required if c == child)
        out = must | {p for p, c in forbidden if c == child} | {child}
        optional = tuple(v for v in range(n_classes + n_features) if v not in out)
        rules.append(ParentRules(child, n_classes, optional, must, max_parents, max_discrete_parents))
    return rules


class RandomScores:
    """S = C - pen with C <= 0 and any penalty, the same for every call."""

    def __init__(self, seed, scale):
        self.rng = np.random.default_rng(seed)
        self.scale = scale
        self.likelihoods, self.penalties = {}, {}
        self.calls = []

    def penalty(self, child, parents):
        return self.penalties.setdefault((child, parents), float(self.rng.exponential(self.scale)) * len(parents))

    def score(self, tasks):
        self.calls.extend(tasks)
        return [
            self.likelihoods.setdefault(task, -float(self.rng.exponential(5.0))) - self.penalty(*task) for task in tasks
        ]


def best(tables, n_classes=K):
    settled = [settle_families({Family(p): s for p, s in table.items()}, n_classes) for table in tables]
    return best_score({child: {frozenset(p): s for p, (s, _) in t.items()} for child, t in enumerate(settled)})


def run(source, rules, prune):
    return score_parent_sets(rules, source.penalty, source.score, prune)


def test_every_set_is_listed_once_and_counted():
    for rule in rules_for(required=[(0, 1), (3, 2)], forbidden=[(2, 0)], max_parents=2, max_discrete_parents=1):
        listed = [s for size in range(rule.max_size() + 1) for s in rule.sets(size)]
        expected = set()
        for size in range(K + P + 1):
            for nodes in itertools.combinations(sorted({*rule.optional, *rule.required}), size):
                classes = sum(v < K for v in nodes)
                if classes <= 2 and size - classes <= 1 and rule.required <= set(nodes):
                    expected.add(nodes)
        assert len(listed) == len(set(listed)) == rule.count()
        assert set(listed) == expected


def test_the_sets_of_thyroid_are_counted_without_listing_them():
    rules = rules_for(max_parents=3, max_discrete_parents=3, n_classes=7, n_features=22)
    assert sum(rule.count() for rule in rules) == 7 * (1 + 6 + 15 + 20) * (1 + 22 + 231 + 1540)


def test_predicted_models_bound_configurations_by_rows():
    rules = rules_for(n_classes=2, n_features=0, max_parents=1)
    assert predicted_models(rules, [3, 50], 20) == (1 + 20) + (1 + 3)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 2.0, 8.0]), st.booleans())
def test_the_lemma_preserves_the_optimum(seed, scale, with_edges):
    edges = {"required": [(0, 1), (3, 0)], "forbidden": [(1, 2)]} if with_edges else {}
    everything = RandomScores(seed, scale)
    reference = best(run(everything, rules_for(**edges), None))
    pruned = RandomScores(seed, scale)
    pruned.likelihoods, pruned.penalties = dict(everything.likelihoods), dict(everything.penalties)
    assert best(run(pruned, rules_for(**edges), "lemma")) == reference
    assert len(pruned.calls) <= len(everything.calls)


def test_the_lemma_spares_work():
    source = RandomScores(0, 8.0)
    run(source, rules_for(), "lemma")
    assert len(source.calls) < sum(rule.count() for rule in rules_for())


def test_the_definition_can_lose_the_optimum():
    """The empty set beats -pen({1}), so all its supersets go, and with them {2}, which was the best by far."""
    penalties = {(): 0.0, (1,): 10.0, (2,): 1.0, (1, 2): 11.0}
    likelihoods = {(): -9.0, (1,): -9.0, (2,): -0.5, (1, 2): -0.4}
    rules = [ParentRules(0, 3, (1, 2), frozenset(), 2, 0)]

    def scores(prune):
        table = score_parent_sets(
            rules,
            lambda child, parents: penalties[parents],
            lambda tasks: [likelihoods[parents] - penalties[parents] for _, parents in tasks],
            prune,
        )
        return table[0]

    assert max(scores(None).values()) == max(scores("lemma").values()) == -1.5
    assert scores("definition") == {(): -9.0}
    assert set(scores("lemma")) == {(), (2,)}


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_the_definition_leaves_a_part_of_what_the_lemma_leaves(seed):
    everything = RandomScores(seed, 2.0)
    run(everything, rules_for(), None)
    tables = {}
    for prune in ("lemma", "definition"):
        source = RandomScores(seed, 2.0)
        source.likelihoods, source.penalties = dict(everything.likelihoods), dict(everything.penalties)
        tables[prune] = run(source, rules_for(), prune)
    assert best(tables["definition"]) <= best(tables["lemma"])
    for table in tables["definition"]:
        assert () in table


def test_a_subset_that_violates_a_required_edge_may_not_prune():
    """The empty set scores 0, better than any other, but it lacks the required parent."""
    rules = [ParentRules(0, 2, (), frozenset({1}), 1, 0)]
    table = score_parent_sets(rules, lambda c, p: 100.0 * len(p), lambda tasks: [-100.0 for _ in tasks], "lemma")
    assert table == [{(1,): -100.0}]


def test_restriction_keeps_the_best_single_parents():
    rules = rules_for(max_parents=2, max_discrete_parents=2)
    value = {1: -1.0, 2: -5.0, 3: -2.0, 4: -4.0, 0: -3.0}
    calls = []

    def score(tasks):
        calls.extend(tasks)
        return [sum(value[v] for v in parents) for _, parents in tasks]

    kept, known = restrict(rules, 12, score)  # a share of 4 sets: two parents
    assert [set(rule.optional) for rule in kept] == [{1, 3}, {3, 0}, {1, 3}]
    assert all(rule.count() <= 4 for rule in kept)
    assert len(calls) == 3 * 5, "what they add to, and each alone"
    tables = score_parent_sets(kept, lambda c, p: 0.0, score, None, known)
    assert len(calls) == 3 * 5 + 3, "only the pair is new"
    assert [len(table) for table in tables] == [4, 4, 4]
    with pytest.raises(ValueError, match="max_candidates=2 leaves no parent set"):
        restrict(rules, 2, score)


def test_settling_features_takes_the_best_beside_each_set_of_class_variables():
    table = {(): -5.0, (3,): -4.0, (4,): -4.0, (1,): -3.0, (1, 3): -3.5, (1, 3, 4): -2.0}
    table = {Family(p): score for p, score in table.items()}
    assert settle_families(table, K) == {(): (-4.0, Family((3,))), (1,): (-2.0, Family((1, 3, 4)))}
    table[Family((3,), (1, 4))] = -1.0
    assert settle_families(table, K)[1,] == (-1.0, Family((3,), (1, 4))), "the way of a parent is settled too"


def test_the_backoff_chain_drops_what_is_missed_least():
    table = {(): -9.0, (1,): -7.0, (3,): -6.0, (1, 3): -2.0, (3, 4): -5.0, (1, 3, 4): -1.0}
    table = {Family(p): score for p, score in table.items()}
    assert backoff_chain(partial(best_coarser, table), Family((1, 3, 4))) == [
        Family(p) for p in [(1, 3, 4), (1, 3), (3,), ()]
    ]
    nothing_known = backoff_chain(partial(best_coarser, {}), Family((1, 3), (2,)))
    assert nothing_known == [Family(p, (2,)) for p in [(1, 3), (1,), ()]], "the last goes first, inputs stay"


def test_unknown_pruning():
    with pytest.raises(ValueError, match="prune='best' is not known"):
        score_parent_sets(rules_for(), lambda c, p: 0.0, lambda t: [0.0] * len(t), "best")


def test_penalties_by_hand():
    def pen(name, n_states, parent_states, n_rows, input_states=(), n_parameters=None):
        return penalty_of(name)(Size(n_states, parent_states, input_states, n_rows, n_parameters))

    half = 0.5 * math.log(100)
    assert pen("bic", 4, [3, 2], 100.0) == pytest.approx(half * 3 * 6)
    assert pen("bic", 4, [], 100.0) == pytest.approx(half * 3)
    assert pen("bic", 1, [3, 2], 100.0) == 0.0
    assert pen("bic", 4, [3, 2], 0.5) == 0.0
    assert pen("bic", 4, [3], 100.0, [5, 2]) == pytest.approx(half * 3 * 3 * (1 + 4 + 1))
    assert pen("aic", 4, [3, 2], 100.0) == 3 * 6
    assert pen("bic-full", 4, [3, 2], 100.0, n_parameters=10) == pytest.approx(half * 60)
    for name in ("cll", "loo", "cv", "auto"):
        assert pen(name, 4, [3, 2], 100.0) == 0.0
    with pytest.raises(ValueError, match="'bic-full' counts the parameters .* choose criterion='cv'"):
        pen("bic-full", 4, [3, 2], 100.0)
    with pytest.raises(ValueError, match="criterion='bik' is not known; did you mean 'bic'"):
        penalty_of("bik")
