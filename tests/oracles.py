"""Brute force: plain versions of everything that claims to be exact."""

import itertools
import math
from functools import cache
from graphlib import CycleError, TopologicalSorter

import numpy as np

# Structures ---------------------------------------------------------------------------------------------------


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


# Local scores -------------------------------------------------------------------------------------------------


def local_score(fit_part, codes, sizes, child, parents, penalty):
    """S(Y, D) by the definition: one model for each observed configuration, fitted and scored on its own rows.

    `fit_part(rows, states)` returns the log-probabilities of the states of its own rows.
    """
    parts = {}
    for row, configuration in enumerate(map(tuple, codes[:, list(parents)].tolist())):
        parts.setdefault(configuration, []).append(row)
    total = 0.0
    for rows in parts.values():
        states = codes[rows, child]
        if len(set(states.tolist())) > 1:
            total += float(np.sum(fit_part(np.array(rows), states)))
    return total - penalty(sizes[child], [sizes[p] for p in parents], len(codes))


def best_network(score, n_classes, nodes, max_parents, max_discrete_parents):
    """The greatest total score over all DAGs, each class variable with any discrete features beside its parents."""
    names = tuple(range(n_classes))
    features = subsets(tuple(range(n_classes, nodes)))
    table = {
        child: {
            parents: max(score(child, tuple(sorted(parents | f))) for f in features if len(f) <= max_discrete_parents)
            for parents in subsets(tuple(v for v in names if v != child))
            if len(parents) <= max_parents
        }
        for child in names
    }
    return best_score(table)


# Outcomes -----------------------------------------------------------------------------------------------------


class Enumeration:
    """All outcomes with their log probabilities in each row, and the answers read off them."""

    def __init__(self, sizes, log_prob):
        self.sizes = sizes
        self.outcomes = all_outcomes(sizes)
        self.log_prob = log_prob
        self.prob = np.exp(log_prob)

    @classmethod
    def of_network(cls, sizes, parents, tables):
        return cls.of_factors(sizes, [(*members, k) for k, members in enumerate(parents)], tables)

    @classmethod
    def of_factors(cls, sizes, scopes, tables):
        columns = []
        for outcome in all_outcomes(sizes):
            entries = [table[(slice(None), *outcome[list(scope)])] for scope, table in zip(scopes, tables, strict=True)]
            columns.append(sum(entries))
        return cls(sizes, np.column_stack(columns))

    def given(self, evidence):
        """The distribution given codes of known states, -1 for unknown, one line for each row."""
        agree = ((evidence[:, None] == -1) | (evidence[:, None] == self.outcomes)).all(axis=2)
        log_prob = np.where(agree, self.log_prob, -np.inf)
        return Enumeration(self.sizes, log_prob - log_sum(log_prob)[:, None])

    def log_marginal(self, codes):
        """Log probability of the known states of codes, -1 for unknown, one line for each row."""
        agree = ((codes[:, None] == -1) | (codes[:, None] == self.outcomes)).all(axis=2)
        return log_sum(np.where(agree, self.log_prob, -np.inf))

    def mutual_information(self, one, other):
        table = self.joint([one, other])
        result = np.zeros(len(table))
        for row, p in enumerate(table):
            for i, j in np.argwhere(p > 0):
                result[row] += p[i, j] * (math.log(p[i, j]) - math.log(p[i].sum()) - math.log(p[:, j].sum()))
        return result

    def joint(self, variables):
        """The joint distribution of some class variables."""
        table = np.zeros((len(self.prob), *(self.sizes[v] for v in variables)))
        for outcome, prob in zip(self.outcomes, self.prob.T, strict=True):
            table[(slice(None), *outcome[list(variables)])] += prob
        return table

    def marginals(self):
        return [self.joint([k]) for k in range(len(self.sizes))]

    def entropy(self):
        logs = np.where(self.prob > 0, self.log_prob, 0.0)
        return -(self.prob * logs).sum(axis=1)

    def expected_losses(self, loss):
        """Expected loss of predicting each outcome, in each row (Eq. BOP of the paper)."""
        losses = np.array([[loss(true, predicted) for true in self.outcomes] for predicted in self.outcomes])
        return self.prob @ losses.T

    def index_of(self, codes):
        return np.ravel_multi_index(codes.T, self.sizes)


def log_sum(log_values):
    """Logarithm of the sum of exponentials over the last axis, -inf for impossible rows."""
    largest = log_values.max(axis=-1)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(log_values - shift[..., None]).sum(axis=-1)) + shift


def elimination_cells(sizes, neighbours, order):
    """The cells of all cliques when class variables are eliminated in this order."""
    total, graph = 0, {variable: set(others) for variable, others in neighbours.items()}
    for variable in order:
        separator = graph.pop(variable)
        total += math.prod(sizes[v] for v in (variable, *separator))
        for v in separator:
            graph[v] = (graph[v] | separator) - {v, variable}
    return total


def all_outcomes(sizes):
    return np.array(list(itertools.product(*map(range, sizes))), dtype=np.int64)
