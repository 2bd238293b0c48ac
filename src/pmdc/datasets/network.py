"""Synthetic mixed tables from a known network, to compare learners and inference with the truth.

Each class variable depends on the continuous features x by multinomial logistic regression, with its own weights for
each configuration c of its parents: P(Y = s | c, x) ∝ exp(b[c, s] + x · W[c, :, s]).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch, check_random_state

from pmdc._support.arrays import Codes, Floats
from pmdc._support.extras import require

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from pmdc.inference.distribution import JointDistribution

RandomState = int | np.random.RandomState | None


@dataclass(frozen=True, eq=False)
class TrueNetwork:
    """A network over class variables and discrete features whose local models are known.

    Attributes
    ----------
    continuous : tuple of str
        Names of the continuous features; they are independent and standard normal.
    discrete : mapping of str to tuple of str
        States of each discrete feature; they are independent and uniform.
    classes : mapping of str to tuple of str
        States of each class variable.
    parents : mapping of str to tuple of str
        Parents of each class variable: class variables first, then discrete features.
    intercepts : mapping of str to array
        For each class variable the intercepts, of shape (\\*numbers of states of the parents, own number of
        states).
    slopes : mapping of str to array
        For each class variable the slopes, of shape (\\*numbers of states of the parents, number of
        continuous features, own number of states).

    Examples
    --------
    >>> from pmdc.datasets import make_network
    >>> truth = make_network(100, n_class_variables=3, random_state=0).truth
    >>> truth.parents
    {'y0': ('y1', 'y2', 'd0'), 'y1': ('y2', 'd0'), 'y2': ('d1',)}
    >>> X, Y = truth.sample(5, random_state=1)
    >>> [table.shape for table in truth.log_tables(X)]
    [(5, 3, 3, 3), (5, 3, 3), (5, 3)]
    >>> truth.log_prob(X, Y).shape
    (5,)
    """

    continuous: tuple[str, ...]
    discrete: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, tuple[str, ...]]
    intercepts: Mapping[str, Floats]
    slopes: Mapping[str, Floats]

    @property
    def graph(self) -> nx.DiGraph:
        """Return the true DAG over the class variables and the discrete features that are parents.

        The attribute ``kind`` of a node is "class" or "discrete".
        """
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.classes, kind="class")
        used = {parent for parents in self.parents.values() for parent in parents}
        graph.add_nodes_from((name for name in self.discrete if name in used), kind="discrete")
        graph.add_edges_from((parent, child) for child, parents in self.parents.items() for parent in parents)
        return graph

    def class_parents(self, variable: str) -> tuple[str, ...]:
        """Return the class variables among the parents, in the order of the axes of the conditional table."""
        return tuple(parent for parent in self.parents[variable] if parent in self.classes)

    def log_tables(self, X: pd.DataFrame) -> list[Floats]:
        """Return the log conditional table of each class variable, in the order of Y's columns.

        Parameters
        ----------
        X : DataFrame
            The features of n rows.

        Returns
        -------
        list of arrays
            Of shape (n, \\*numbers of states of the class parents, own number of states); the values of the
            discrete parents are those of the row.
        """
        numbers = X[list(self.continuous)].to_numpy(dtype=float)
        codes = dict(zip(self.discrete, _encode(X, self.discrete).T, strict=True))
        return [self._log_table(variable, numbers, codes) for variable in self.classes]

    def _log_table(self, variable: str, numbers: Floats, codes: Mapping[str, Codes]) -> Floats:
        intercepts, slopes = self.intercepts[variable], self.slopes[variable]
        n_class = len(self.class_parents(variable))
        discrete = self.parents[variable][n_class:]
        every = (slice(None),) * n_class
        table = np.empty((len(numbers), *intercepts.shape[:n_class], intercepts.shape[-1]))
        for configuration in np.ndindex(*intercepts.shape[n_class:-1]):
            here = np.ones(len(numbers), dtype=bool)
            for parent, value in zip(discrete, configuration, strict=True):
                here &= codes[parent] == value
            index = every + configuration
            table[here] = intercepts[index] + np.tensordot(numbers[here], slopes[index], axes=(1, -2))
        return _log_softmax(table)

    def log_prob(self, X: pd.DataFrame, Y: pd.DataFrame) -> Floats:
        """Return the log-probability of the outcome of each row given its features."""
        codes = dict(zip(self.classes, _encode(Y, self.classes).T, strict=True))
        rows = np.arange(len(Y))
        total = np.zeros(len(Y))
        for variable, table in zip(self.classes, self.log_tables(X), strict=True):
            family = (*self.class_parents(variable), variable)
            total += table[rows, *(codes[member] for member in family)]
        return total

    def sample(self, n_samples: int, random_state: RandomState = None) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw rows of features and class variables.

        Returns
        -------
        X, Y : DataFrames
            Categorical columns have all states as categories, sampled or not.
        """
        pd = require("pandas")
        rng = check_random_state(random_state)
        features: dict[str, Any] = {name: rng.standard_normal(n_samples) for name in self.continuous}
        for name, states in self.discrete.items():
            features[name] = _categorical(rng.randint(len(states), size=n_samples), states)
        X = pd.DataFrame(features)

        tables = dict(zip(self.classes, self.log_tables(X), strict=True))
        rows = np.arange(n_samples)
        codes: dict[str, Codes] = {}
        for variable in TopologicalSorter({name: self.class_parents(name) for name in self.classes}).static_order():
            local = np.exp(tables[variable][rows, *(codes[parent] for parent in self.class_parents(variable))])
            # Without the last boundary, so that rounding cannot lead beyond the last state.
            boundaries = local.cumsum(axis=1)[:, :-1]
            codes[variable] = (boundaries < rng.uniform(size=(n_samples, 1))).sum(axis=1)
        Y = pd.DataFrame({name: _categorical(codes[name], states) for name, states in self.classes.items()})
        return X, Y

    def joint(self, X: pd.DataFrame) -> JointDistribution:
        """Return the true conditional joint distribution of the class variables for each row of X."""
        pd = require("pandas")
        from pmdc.inference.distribution import JointDistribution
        from pmdc.table.classes import ClassTable

        # One row is enough, because the dtype has all states.
        declaration = pd.DataFrame({name: _categorical([0], states) for name, states in self.classes.items()})
        position = {name: k for k, name in enumerate(self.classes)}
        parents = [tuple(position[p] for p in self.class_parents(name)) for name in self.classes]
        return JointDistribution(ClassTable.fit(declaration), parents, self.log_tables(X))


def make_network(
    n_samples: int = 1000,
    *,
    n_class_variables: int = 4,
    n_states: int | tuple[int, int] = 3,
    n_continuous: int = 4,
    n_discrete: int = 2,
    n_discrete_states: int | tuple[int, int] = 3,
    max_parents: int = 2,
    max_discrete_parents: int = 1,
    effect: float = 2.0,
    random_state: RandomState = None,
) -> Bunch:
    """Generate a random network and a mixed table from it.

    Every parent matters: each of its values favours one state of the child, by up to ``effect`` on the scale of the
    logits, whatever the other parents are; and the slopes of any two configurations differ.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    n_class_variables : int
        Number of class variables, named y0, y1, ...; edges can go in both directions of this order.
    n_states : int or (low, high)
        Number of states of each class variable, or the inclusive range to draw it from.
    n_continuous, n_discrete : int
        Number of continuous features x0, x1, ... and of discrete features d0, d1, ...
    n_discrete_states : int or (low, high)
        Number of states of each discrete feature.
    max_parents, max_discrete_parents : int
        Maximum number of class variables and of discrete features among the parents of a class variable. All but one
        have a class variable as parent, unless ``max_parents`` is 0.
    effect : float
        How much the local models of different configurations differ; with 0 they are equal.
    random_state : int, RandomState instance or None
        The same seed gives the same network and the same rows.

    Returns
    -------
    Bunch
        With ``X`` and ``Y`` (DataFrames; categorical columns have all states as categories), ``truth``
        (`TrueNetwork`) and ``DESCR``.

    Examples
    --------
    >>> from pmdc.datasets import make_network
    >>> table = make_network(500, n_class_variables=3, n_continuous=2, n_discrete=1, random_state=0)
    >>> list(table.X.columns), list(table.Y.columns)
    (['x0', 'x1', 'd0'], ['y0', 'y1', 'y2'])
    >>> sorted(table.truth.graph.edges)
    [('d0', 'y0'), ('d0', 'y2'), ('y1', 'y0'), ('y2', 'y0'), ('y2', 'y1')]
    """
    _check_at_least(1, n_samples=n_samples, n_class_variables=n_class_variables)
    _check_at_least(
        0,
        n_continuous=n_continuous,
        n_discrete=n_discrete,
        max_parents=max_parents,
        max_discrete_parents=max_discrete_parents,
        effect=effect,
    )
    if n_continuous + n_discrete == 0:
        raise ValueError("n_continuous=0 and n_discrete=0: a table needs at least one feature.")
    rng = check_random_state(random_state)
    continuous = tuple(f"x{i}" for i in range(n_continuous))
    discrete = {
        f"d{i}": _states(size, ascii_uppercase)
        for i, size in enumerate(_sizes(rng, n_discrete, n_discrete_states, "n_discrete_states"))
    }
    classes = {
        f"y{i}": _states(size, ascii_lowercase)
        for i, size in enumerate(_sizes(rng, n_class_variables, n_states, "n_states"))
    }
    parents = _random_parents(rng, list(classes), list(discrete), max_parents, max_discrete_parents)
    intercepts, slopes = {}, {}
    for variable, states in classes.items():
        parent_sizes = [len((classes | discrete)[parent]) for parent in parents[variable]]
        weights = _random_local_model(rng, parent_sizes, len(states), n_continuous, effect)
        intercepts[variable], slopes[variable] = weights
    truth = TrueNetwork(continuous, discrete, classes, parents, intercepts, slopes)
    X, Y = truth.sample(n_samples, rng)
    return Bunch(X=X, Y=Y, truth=truth, DESCR=_describe(truth, n_samples))


def _random_parents(
    rng: np.random.RandomState, classes: Sequence[str], discrete: Sequence[str], max_class: int, max_discrete: int
) -> dict[str, tuple[str, ...]]:
    order = rng.permutation(len(classes))
    parents: dict[str, tuple[str, ...]] = {}
    for place, k in enumerate(order):
        available = min(max_class, place)
        count = rng.randint(1, available + 1) if available else 0
        chosen = sorted(rng.choice(order[:place], size=count, replace=False)) if count else []
        count = rng.randint(min(max_discrete, len(discrete)) + 1)
        chosen_discrete = sorted(rng.choice(len(discrete), size=count, replace=False)) if count else []
        parents[classes[k]] = (*(classes[i] for i in chosen), *(discrete[i] for i in chosen_discrete))
    return {name: parents[name] for name in classes}


def _random_local_model(
    rng: np.random.RandomState, parent_sizes: Sequence[int], n_states: int, n_continuous: int, effect: float
) -> tuple[Floats, Floats]:
    """Return intercepts and slopes for each configuration of the parents.

    The effects of the parents on the intercepts are additive, so that none cancels on average over the others (as in an
    exclusive or); the slopes of each configuration are drawn independently.
    """
    intercepts = np.broadcast_to(rng.normal(scale=0.3, size=n_states), (*parent_sizes, n_states)).copy()
    for axis, size in enumerate(parent_sizes):
        favour = np.zeros((size, n_states))
        first = rng.randint(n_states)
        for value in range(size):
            # Values beyond the number of states favour a state again, but less.
            favour[value, (first + value) % n_states] = effect / (1 + value // n_states)
        shape = [1] * len(parent_sizes)
        shape[axis] = size
        intercepts += favour.reshape(*shape, n_states)
    # Scaled so that the effect of x on the logits does not depend on the number of continuous features.
    scale = 1 / np.sqrt(max(n_continuous, 1))
    common = rng.normal(scale=scale, size=(n_continuous, n_states))
    own = rng.normal(scale=scale, size=(*parent_sizes, n_continuous, n_states))
    return intercepts, common + (effect / 2 * own if parent_sizes else 0)


def _sizes(rng: np.random.RandomState, count: int, given: int | tuple[int, int], argument: str) -> list[int]:
    low, high = (given, given) if isinstance(given, (int, np.integer)) else given
    if not 2 <= low <= high:
        raise ValueError(f"{argument}={given!r} must be an integer of at least 2, or a range (low, high) of them.")
    return [int(size) for size in rng.randint(low, high + 1, size=count)]


def _states(count: int, letters: str) -> tuple[str, ...]:
    if count <= len(letters):
        return tuple(letters[:count])
    width = len(str(count - 1))  # leading zeros, so that sorting keeps the order
    return tuple(f"{letters[0]}{i:0{width}}" for i in range(count))


def _categorical(codes: npt.ArrayLike, states: Sequence[str]) -> pd.Categorical:
    return require("pandas").Categorical.from_codes(codes, categories=list(states))


def _encode(frame: pd.DataFrame, columns: Mapping[str, tuple[str, ...]]) -> Codes:
    """Return the codes of the named columns, shape (n, number of columns)."""
    codes = np.empty((len(frame), len(columns)), dtype=np.int64)
    for j, (name, states) in enumerate(columns.items()):
        codes[:, j] = require("pandas").Index(states).get_indexer(frame[name].astype(object))
        if (unknown := np.flatnonzero(codes[:, j] < 0)).size:
            row, value = unknown[0], frame[name].iloc[unknown[0]]
            raise ValueError(f"Column {name!r}, row {row}: {value!r} is not one of the states {list(states)}.")
    return codes


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _check_at_least(least: int, **arguments: float) -> None:
    for name, value in arguments.items():
        if value < least:
            raise ValueError(f"{name}={value!r} must be at least {least}.")


def _describe(truth: TrueNetwork, n_samples: int) -> str:
    lines = [
        f"A table of {n_samples} rows from a known network: {len(truth.continuous)} continuous and "
        f"{len(truth.discrete)} discrete features, {len(truth.classes)} class variables.",
        "True parents:",
    ]
    lines += [f"  {child}: {', '.join(parents) or 'none'}" for child, parents in truth.parents.items()]
    return "\n".join(lines)
