"""Which features matter: the log-loss that is added if the values of a feature are shuffled, and a graph of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.arrays import Array, Codes, Floats
from pmdc._support.checks import check_count
from pmdc._support.progress import tell_step
from pmdc.table.columns import UNKNOWN
from pmdc.table.features import Features

if TYPE_CHECKING:
    import networkx as nx

_LOWEST = float(np.log(1e-12))
"""Lower log-probabilities count as this, so that one row cannot decide alone."""
_LEVEL = 0.05


@dataclass(frozen=True)
class FeatureImportance:
    """How much each class variable depends on each feature, given its parents; returned by `feature_importance`."""

    class_names: list[str]
    feature_names: list[str]
    increase: Floats
    """Mean increase of -log P(y_k | parents, x) if the feature is shuffled, in nats per row; (n_features, K)."""
    standard_error: Floats
    """Standard errors of these means, of the same shape."""
    n_rows: int
    """The number of rows that were used."""

    def top(self, n_features: int) -> dict[str, dict[str, float]]:
        """Return the most important features of each class variable with their increase, in descending order.

        Only features whose increase is more than chance are listed: by one-sided tests over all features and class
        variables with a false discovery rate of 0.05 (Benjamini-Hochberg).
        """
        from scipy.stats import false_discovery_control, norm

        z = np.divide(self.increase, self.standard_error, np.zeros_like(self.increase), where=self.standard_error > 0)
        real = (false_discovery_control(norm.sf(z).ravel()) <= _LEVEL).reshape(z.shape)
        found = {}
        for k, name in enumerate(self.class_names):
            order = np.argsort(-self.increase[:, k], kind="stable").tolist()
            listed = [j for j in order if real[j, k]][:n_features]
            found[name] = {self.feature_names[j]: float(self.increase[j, k]) for j in listed}
        return found


def permutation_importance(
    log_prob: Callable[[Features, Codes], Floats],
    features: Features,
    truth: Codes,
    *,
    n_repeats: int,
    max_rows: int | None,
    random_state: Any,
) -> tuple[Floats, Floats, int]:
    """Return mean increases of the log-loss by shuffling each feature, their standard errors, and the rows used.

    Parameters
    ----------
    log_prob : function of (features, truth)
        Returns log-probabilities of the true states, shape (n_rows, K).
    features : Features
        Continuous ones come first in the result, then discrete ones.
    truth : codes of shape (n_rows, K)
        Rows with an unknown state are left out.
    n_repeats, max_rows, random_state : as in `feature_importance`
    """
    check_count("n_repeats", n_repeats, 1)
    if max_rows is not None:
        check_count("max_rows", max_rows, 2)
    random = check_random_state(random_state)
    known = np.flatnonzero((truth != UNKNOWN).all(axis=1))
    if len(known) < 2:
        raise ValueError(
            f"Y has {len(known)} row(s) whose states are all known to the model: at least 2 are needed to shuffle "
            "features. Give rows with states that were seen in fit."
        )
    kept = known
    if max_rows is not None and len(known) > max_rows:
        kept = np.sort(random.choice(known, max_rows, replace=False))
    features, truth = features.rows(kept), truth[kept]
    before = np.maximum(log_prob(features, truth), _LOWEST)
    increase, error = [], []
    n_features = features.continuous.shape[1] + features.discrete.shape[1]
    for j in range(n_features):
        rows = np.zeros_like(before)
        for _ in range(n_repeats):
            shuffled = _with_shuffled(features, j, random.permutation(len(kept)))
            rows += (before - np.maximum(log_prob(shuffled, truth), _LOWEST)) / n_repeats
        increase.append(rows.mean(axis=0))
        error.append(rows.std(axis=0, ddof=1) / np.sqrt(len(kept)))
        tell_step(j + 1, n_features)
    return np.array(increase), np.array(error), len(kept)


def _with_shuffled(features: Features, j: int, order: Array) -> Features:
    """Return the features with column j in another order of rows; continuous columns come first."""
    n_continuous = features.continuous.shape[1]
    continuous, discrete = features.continuous.copy(), features.discrete.copy()
    matrix, column = (continuous, j) if j < n_continuous else (discrete, j - n_continuous)
    matrix[:, column] = matrix[order, column]
    return Features(continuous, discrete)


def feature_graph(model: Any, X: Any, Y: Any, features: int = 5, **options: Any) -> nx.DiGraph:
    """Return the graph of a model with the features that matter most for each class variable.

    Parameters
    ----------
    model : fitted model
        A `GBNC` or `BinaryRelevance`.
    X, Y : tables as for `fit`
        Rows with known outcomes, best those that were not used in `fit`.
    features : int, default=5
        The largest number of features for each class variable. Only features whose importance is more than chance are
        added, continuous and discrete ones.
    **options
        Those of `feature_importance`: ``n_repeats``, ``max_rows``, ``random_state``.

    Returns
    -------
    networkx.DiGraph
        For `draw_graph` and `write_graph`: the graph of the model with further nodes (``kind``: "continuous" or
        "discrete") and edges with the attribute ``importance``, in nats per row. An edge from a discrete feature that
        is already in the graph gets this attribute, too. A ``note`` says how many rows were used.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import draw_graph, feature_graph
    >>> data = make_network(600, n_class_variables=3, random_state=0)
    >>> model = GBNC(experts=None).fit(data.X[:400], data.Y[:400])
    >>> graph = feature_graph(model, data.X[400:], data.Y[400:], features=2)
    >>> ax = draw_graph(graph)
    """
    check_count("features", features, 1)
    for name, table in (("X", X), ("Y", Y)):
        if table is None:
            raise ValueError(
                f"{name}=None: a model contains no rows, and the features that matter are found on rows with known "
                f"outcomes. Give both tables, such as plot(features={features}, X=X, Y=Y)."
            )
    return add_features(model, model.feature_importance(X, Y, **options), features)


def add_features(model: Any, importance: FeatureImportance, features: int) -> nx.DiGraph:
    """Return the graph of a model with the most important features; see `feature_graph`."""
    graph = model.to_networkx().copy()
    discrete = model.feature_table_.discrete_names
    top = importance.top(features)
    for child, found in top.items():
        for feature, increase in found.items():
            if feature not in graph:
                graph.add_node(feature, kind="discrete" if feature in discrete else "continuous")
            graph.add_edge(feature, child, importance=increase)
    which = f"at most {features} for each class variable" if any(top.values()) else "none"
    note = f"Features whose importance is more than chance, by {importance.n_rows} rows: {which}."
    graph.graph["note"] = " ".join(filter(None, [graph.graph.get("note"), note]))
    return graph
