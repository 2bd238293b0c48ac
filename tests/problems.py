"""Random problems: score tables, networks, tables of class variables."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from pmdc.candidates.ranking import rank_parents
from pmdc.learners import make_learner
from pmdc.learners.options import Options
from pmdc.scores.fitter import Fitter
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows


class States:
    """Class variables `A`, `B`, ... whose states are strings; codes and back for two-dimensional arrays."""

    def __init__(self, sizes, states=None):
        self.names = [f"{chr(ord('A') + k % 26)}{k // 26 or ''}" for k in range(len(sizes))]
        self.states = states or [np.array([f"s{i}" for i in range(size)]) for size in sizes]

    @property
    def sizes(self):
        return tuple(len(states) for states in self.states)

    def encode(self, Y, unknown="mark", missing="mark"):
        code = [{None: -2} | {state: i for i, state in enumerate(states.tolist())} for states in self.states]
        rows = np.asarray(Y, dtype=object).tolist()
        return np.array([[c.get(v, -1) for c, v in zip(code, row, strict=True)] for row in rows], dtype=np.int64)

    def decode(self, codes):
        return np.column_stack([states[codes[:, k]] for k, states in enumerate(self.states)])


def random_tables(rng, sizes, parents, n_rows, zeros=0.0, tiny=0.0):
    """Log conditional tables in which some entries are zero and some are about 1e-300."""
    tables = []
    for k, members in enumerate(parents):
        shape = (n_rows, *(sizes[p] for p in members), sizes[k])
        weights = rng.random(shape) + 1e-3
        weights[rng.random(shape) < tiny] = 1e-300
        weights[rng.random(shape) < zeros] = 0.0
        weights[..., 0][weights.sum(axis=-1) == 0] = 1.0
        with np.errstate(divide="ignore"):
            tables.append(np.log(weights / weights.sum(axis=-1, keepdims=True)))
    return tables


def random_parents(rng, n_variables, probability):
    """A random DAG, whose order is not that of the class variables."""
    order = rng.permutation(n_variables).tolist()
    parents = [()] * n_variables
    for i, k in enumerate(order):
        parents[k] = tuple(p for p in order[:i] if rng.random() < probability)
    return parents


@st.composite
def networks(draw, max_variables=6):
    """Sizes, parents and log tables of a few rows."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_variables))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = random_parents(rng, len(sizes), draw(st.sampled_from([0.0, 0.3, 0.6, 1.0])))
    zeros, tiny = draw(st.sampled_from([0.0, 0.3, 0.8])), draw(st.sampled_from([0.0, 0.3]))
    return sizes, parents, random_tables(rng, sizes, parents, draw(st.integers(1, 4)), zeros, tiny)


@st.composite
def factor_products(draw, max_variables=6):
    """Sizes, scopes and log tables of a few rows whose product is normalised, but not one table for each variable.

    The distributions of blocks of class variables given some of those before them, with their axes in any order; some
    of them are split into two factors, neither of which is normalised.
    """
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=max_variables))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(1, 4))
    zeros, tiny = draw(st.sampled_from([0.0, 0.3, 0.8])), draw(st.sampled_from([0.0, 0.3]))
    scopes, tables, order = [], [], rng.permutation(len(sizes)).tolist()
    done = 0
    while done < len(order):
        block = order[done : done + int(rng.integers(1, 4))]
        parents = [v for v in order[:done] if rng.random() < 0.4]
        done += len(block)
        block_size, parent_sizes = math.prod(sizes[v] for v in block), [sizes[p] for p in parents]
        numbers = [tuple(range(1, len(parents) + 1))]
        (table,) = random_tables(rng, [block_size, *parent_sizes], numbers, n_rows, zeros, tiny)
        scope = (*parents, *block)
        axes = rng.permutation(len(scope))
        scopes.append(tuple(scope[axis] for axis in axes))
        tables.append(table.reshape(n_rows, *(sizes[v] for v in scope)).transpose(0, *(axes + 1)))
    for i in range(len(scopes)):
        if rng.random() < 0.4:
            scopes.append(tuple(v for v in scopes[i] if rng.random() < 0.5) or scopes[i][:1])
            tables[i], rest = split_factor(tables[i], scopes[i], scopes[-1])
            tables.append(rest)
    return sizes, scopes, tables


def split_factor(table, scope, part):
    """A log table as the sum of one over all its class variables and one over a part of them."""
    others = tuple(axis for axis, v in enumerate(scope, start=1) if v not in part)
    largest = table.max(axis=others, keepdims=True)
    kept = np.where(np.isneginf(largest), 0.0, largest)
    return np.where(np.isneginf(largest), 0.0, table - kept), largest.squeeze(axis=others)


@st.composite
def long_networks(draw, most_outcomes=3000):
    """Up to ten class variables, few enough states to list all outcomes."""
    chosen = []
    for _ in range(draw(st.integers(1, 10))):
        size = draw(st.integers(2, 5))
        if math.prod(chosen) * size > most_outcomes:
            size = 2
        if math.prod(chosen) * size <= most_outcomes:
            chosen.append(size)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = random_parents(rng, len(chosen), draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])))
    zeros, tiny = draw(st.sampled_from([0.0, 0.2])), draw(st.sampled_from([0.0, 0.3, 0.7]))
    return chosen, parents, random_tables(rng, chosen, parents, draw(st.integers(1, 3)), zeros, tiny)


def possible_evidence(rng, outcomes, log_prob, share=0.4):
    """Known states of some class variables, one line for each row, taken from a possible outcome of the row."""
    evidence = np.empty((len(log_prob), outcomes.shape[1]), dtype=np.int64)
    for row, logs in enumerate(log_prob):
        evidence[row] = outcomes[rng.choice(np.flatnonzero(np.isfinite(logs)))]
    evidence[rng.random(evidence.shape) > share] = -1
    return evidence


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


def bic_scores(class_variables, seed, *, n_rows=300, most_parents=2):
    """BIC of all parent sets up to a size, of rows from a random network: tables as data give them."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, size=class_variables)
    parents = random_parents(rng, class_variables, min(1.0, 2.0 / class_variables))
    rows = np.zeros((n_rows, class_variables), dtype=np.int64)

    def configurations(members):
        codes = np.zeros(n_rows, dtype=np.int64)
        for p in members:
            codes = codes * sizes[p] + rows[:, p]
        return codes

    for k in sorted(range(class_variables), key=lambda k: _depth(parents, k)):
        table = rng.dirichlet(np.full(sizes[k], 0.5), size=math.prod(sizes[list(parents[k])].tolist()))
        above = rng.random(n_rows)[:, None] > np.cumsum(table[configurations(parents[k])], axis=1)
        rows[:, k] = np.minimum(above.sum(axis=1), sizes[k] - 1)

    def log_likelihood(members):
        counts = np.bincount(configurations(members))
        return float((counts[counts > 0] * np.log(counts[counts > 0])).sum())

    scores = {f"y{k}": {} for k in range(class_variables)}
    for k in range(class_variables):
        others = [p for p in range(class_variables) if p != k]
        for size in range(most_parents + 1):
            for members in itertools.combinations(others, size):
                penalty = 0.5 * math.log(n_rows) * (sizes[k] - 1) * math.prod(sizes[list(members)].tolist())
                fit = log_likelihood([*members, k]) - log_likelihood(members)
                scores[f"y{k}"][frozenset(f"y{p}" for p in members)] = float(fit - penalty)
    return scores


def _depth(parents, k):
    return 1 + max((_depth(parents, p) for p in parents[k]), default=0)


def numbers(X):
    """The inputs of a local model without discrete ones."""
    return Features(X, np.empty((len(X), 0), dtype=np.int64))


def training_rows(X, codes, sizes, n_classes, *, weights=None, origin=None):
    """`TrainingRows` of continuous features and the codes of all nodes."""
    n = len(codes)
    return TrainingRows(
        Features(np.asarray(X, dtype=float).reshape(n, -1), codes[:, n_classes:]),
        codes[:, :n_classes],
        tuple(sizes[:n_classes]),
        tuple(sizes[n_classes:]),
        np.ones(n) if weights is None else np.asarray(weights, dtype=float),
        weights is not None,
        np.arange(n) if origin is None else np.asarray(origin),
        n if origin is None else int(np.max(origin)) + 1,
    )


def fitter_of(estimator, rows, ranking=None, **options):
    """A `Fitter` of an estimator for these rows."""
    learner = make_learner(estimator, rows.features.numbers(), rows.weights, (), Options(rows.weighted, **options))
    return Fitter.of(rows, [learner] * rows.n_classes, rank_parents(rows) if ranking is None else ranking)
