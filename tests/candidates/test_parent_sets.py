"""Parent sets: enumeration, pruning and restriction, on score tables made up by hand or at random."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import best_score
from pmdc.candidates.families import Family, best_per_class_set, in_order
from pmdc.candidates.parent_sets import restrict, score_parent_sets
from pmdc.candidates.ranking import rank_parents
from pmdc.candidates.rules import ParentRules, predicted_models
from pmdc.scores.criteria import Size, penalty_of
from problems import training_rows

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
        scores = {}
        for child, family in tasks:
            task = child, family.partition
            likelihood = self.likelihoods.setdefault(task, -float(self.rng.exponential(5.0)))
            scores[child, family] = likelihood - self.penalty(*task)
        return scores


def best(tables, n_classes=K):
    settled = [best_per_class_set(table, n_classes) for table in tables]
    return best_score(
        {child: {frozenset(p): tables[child][f] for p, f in t.items()} for child, t in enumerate(settled)}
    )


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
            lambda tasks: {(c, f): likelihoods[f.partition] - penalties[f.partition] for c, f in tasks},
            prune,
        )
        return {family.partition: score for family, score in table[0].items()}

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
        assert Family(()) in table


def test_a_subset_that_violates_a_required_edge_may_not_prune():
    """The empty set scores 0, better than any other, but it lacks the required parent."""
    rules = [ParentRules(0, 2, (), frozenset({1}), 1, 0)]
    table = score_parent_sets(rules, lambda c, p: 100.0 * len(p), lambda tasks: dict.fromkeys(tasks, -100.0), "lemma")
    assert table == [{Family((1,)): -100.0}]


@pytest.mark.parametrize("inputs", [False, True])
def test_restriction_keeps_the_best_single_parents(inputs):
    rules = rules_for(max_parents=2, max_discrete_parents=2)
    value = {1: -1.0, 2: -5.0, 3: -2.0, 4: -4.0, 0: -3.0}

    def score(tasks):
        assert all(bool(family.inputs) == inputs for _, family in tasks)
        return {(child, family): sum(value[v] for v in family.parents) for child, family in tasks}

    kept = restrict(rules, 12, score, inputs)  # a share of 4 sets: two parents
    assert [set(rule.optional) for rule in kept] == [{1, 3}, {3, 0}, {1, 3}]
    assert all(rule.count() <= 4 for rule in kept)
    with pytest.raises(ValueError, match="max_candidates=2 must be at least"):
        restrict(rules, 2, score, inputs)


def test_the_best_beside_each_set_of_class_variables_is_chosen():
    table = {(): -5.0, (3,): -4.0, (4,): -4.0, (1,): -3.0, (1, 3): -3.5, (1, 3, 4): -2.0}
    table = {Family(p): score for p, score in table.items()}
    assert best_per_class_set(table, K) == {(): Family((3,)), (1,): Family((1, 3, 4))}
    table[Family((3,), (1, 4))] = -1.0
    assert best_per_class_set(table, K)[1,] == Family((3,), (1, 4)), "so is the conditioning"


def test_tables_have_one_order_whatever_was_scored_first():
    families = [Family((1, 3)), Family((), (1,)), Family(()), Family((1,)), Family((3,))]
    tables = [in_order(dict.fromkeys(some, 0.0)) for some in itertools.permutations(families)]
    assert all(list(table) == list(tables[0]) for table in tables)
    assert next(iter(tables[0])) == Family(())


def test_a_coarser_family_lacks_the_least_informative_parent():
    ranking = [3, 1, 4]
    family, chain = Family((1, 3, 4), (2,)), []
    while family is not None:
        chain.append(family)
        family = family.coarser(ranking)
    assert chain == [Family(p, (2,)) for p in [(1, 3, 4), (1, 3), (3,), ()]], "inputs stay"


def test_parents_are_ranked_by_mutual_information():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=500)
    weak, strong = (np.where(rng.random(500) < share, y, rng.integers(0, 2, size=500)) for share in (0.3, 0.9))
    codes = np.column_stack([y, weak, rng.integers(0, 2, size=500), strong])
    rows = training_rows(np.zeros((500, 0)), codes, (2, 2, 2, 2), 2)
    assert rank_parents(rows)[0] == [3, 1, 2]
    weights = np.where(weak == y, 1e6, 1e-6)
    assert rank_parents(training_rows(np.zeros((500, 0)), codes, (2,) * 4, 2, weights=weights))[0][0] == 1


def test_unknown_pruning():
    with pytest.raises(ValueError, match="prune='best' is not known"):
        score_parent_sets(rules_for(), lambda c, p: 0.0, lambda t: dict.fromkeys(t, 0.0), "best")


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
