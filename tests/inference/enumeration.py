"""Oracles by full enumeration, random networks, and a stand-in for the table of class variables."""

from itertools import product

import numpy as np
from hypothesis import strategies as st


class States:
    """Class variables `A`, `B`, ... whose states are strings; codes and back for two-dimensional arrays."""

    def __init__(self, sizes, states=None):
        self.names = [f"{chr(ord('A') + k % 26)}{k // 26 or ''}" for k in range(len(sizes))]
        self.states = states or [np.array([f"s{i}" for i in range(size)]) for size in sizes]

    @property
    def sizes(self):
        return tuple(len(states) for states in self.states)

    def encode(self, Y, unknown="mark"):
        code = [{state: i for i, state in enumerate(states.tolist())} for states in self.states]
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


class Enumeration:
    """All outcomes with their log probabilities in each row, and the answers read off them."""

    def __init__(self, sizes, log_prob):
        self.sizes = sizes
        self.outcomes = all_outcomes(sizes)
        self.log_prob = log_prob
        self.prob = np.exp(log_prob)

    @classmethod
    def of_network(cls, sizes, parents, tables):
        columns = []
        for outcome in all_outcomes(sizes):
            entries = [
                table[(slice(None), *(outcome[p] for p in parents[k]), outcome[k])] for k, table in enumerate(tables)
            ]
            columns.append(sum(entries))
        return cls(sizes, np.column_stack(columns))

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


def all_outcomes(sizes):
    return np.array(list(product(*map(range, sizes))), dtype=np.int64)
