"""Brute force over all DAGs, and random score tables: what the structure search is compared with."""

import itertools
import math
from functools import cache
from graphlib import CycleError, TopologicalSorter

import numpy as np


@cache
def all_dags(names):
    """Every DAG over the names, as a tuple of parent sets: the subsets of the predecessors in every order."""
    dags = set()
    for order in itertools.permutations(names):
        choices = {name: subsets(order[:position]) for position, name in enumerate(order)}
        dags.update(itertools.product(*(choices[name] for name in names)))
    return dags


def subsets(names):
    return [frozenset(s) for size in range(len(names) + 1) for s in itertools.combinations(names, size)]


def best_score(scores, required=(), forbidden=()):
    """The greatest score of a DAG with all required and no forbidden edges, -inf if there is none."""
    names = tuple(scores)
    best = -math.inf
    for dag in all_dags(names):
        parents = dict(zip(names, dag, strict=True))
        if all(u in parents[v] for u, v in required) and not any(u in parents[v] for u, v in forbidden):
            best = max(best, math.fsum(scores[name].get(parents[name], -math.inf) for name in names))
    return best


def is_dag(parents):
    try:
        TopologicalSorter(parents).prepare()
    except CycleError:
        return False
    return True


def random_scores(class_variables, seed, *, sets=10, most_parents=3):
    """The empty set and some random sets for each class variable; more parents tend to score higher."""
    random = np.random.default_rng(seed)
    names = [f"y{position}" for position in range(class_variables)]
    scores = {}
    for name in names:
        others = [other for other in names if other != name]
        scores[name] = {frozenset(): -10.0}
        for _ in range(sets):
            size = int(random.integers(1, min(most_parents, len(others)) + 1))
            parents = frozenset(random.choice(others, size=size, replace=False).tolist())
            scores[name][parents] = float(random.normal(-9.0 + size, 2.0))
    return scores
