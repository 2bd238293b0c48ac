"""Fitted tree ensembles of scikit-learn as plain arrays.

A saved model then holds no compiled tree of scikit-learn, which would use the numbers of a file as memory offsets
without checks, and scoring one row skips the overhead of one scikit-learn call for each tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Array, Codes, Floats, Marks


@dataclass(frozen=True)
class TreeEnsemble:
    """Trees whose leaves add up to scores.

    A node sends a row to its left child if the row's feature is at most the threshold, and to the right child
    otherwise. Children are numbered after their parents, and right children directly after left ones.

    Parameters
    ----------
    n_inputs : int
        The number of features of a row.
    roots : int32 array of shape (n_trees,)
        The first node of each tree.
    column : int32 array of shape (n_trees,)
        The first output that each tree adds to.
    feature : int32 array of shape (n_nodes,)
        The feature that a node compares; -1 for a leaf.
    threshold : float32 or float64 array of shape (n_nodes,)
        Features are rounded to its dtype before they are compared.
    child : int32 array of shape (n_nodes,)
        The left child of a node; for a leaf, its row of `values`.
    values : float32 or float64 array of shape (n_rows, width)
        What leaves add to `width` consecutive outputs. Leaves with equal values share a row.
    baseline : float64 array of shape (n_outputs,)
    average : bool
        Whether to divide the sum by the number of trees.
    """

    n_inputs: int
    roots: Array
    column: Array
    feature: Array
    threshold: Array
    child: Array
    values: Array
    baseline: Floats
    average: bool

    @property
    def n_outputs(self) -> int:
        return len(self.baseline)

    def scores(self, X: Floats) -> Floats:
        """Return the baseline plus the sum over the trees, divided by their number if `average`.

        NaN goes to the right, and so does what overflows when it is rounded.

        Parameters
        ----------
        X : array of shape (n, n_inputs)

        Returns
        -------
        array of shape (n, n_outputs)
        """
        from pmdc.experts import kernels

        if X.ndim != 2 or X.shape[1] != self.n_inputs:
            raise ValueError(f"X of shape {X.shape} must have {self.n_inputs} columns.")
        with np.errstate(over="ignore"):
            inputs = np.ascontiguousarray(X, dtype=self.threshold.dtype)
        out = np.tile(self.baseline, (len(X), 1))
        kernels.add_leaves(out, inputs, self.roots, self.column, self.feature, self.threshold, self.child, self.values)
        return out / len(self.roots) if self.average else out

    def outputs(self, kept: Marks) -> TreeEnsemble:
        """Return some of the outputs alone; every tree must add to all of them."""
        return replace(self, values=np.ascontiguousarray(self.values[:, kept]), baseline=self.baseline[kept])

    def first(self, n_trees: int) -> TreeEnsemble:
        """Return the first trees alone."""
        if n_trees >= len(self.roots):
            return self
        nodes = slice(0, self.roots[n_trees])
        return replace(
            self,
            roots=self.roots[:n_trees],
            column=self.column[:n_trees],
            feature=self.feature[nodes],
            threshold=self.threshold[nodes],
            child=self.child[nodes],
        )

    def groups(self, n_trees: int) -> Iterator[TreeEnsemble]:
        """Yield so many trees at a time, without the baseline; together they have all nodes in common."""
        zero = np.zeros_like(self.baseline)
        for i in range(0, len(self.roots), n_trees):
            some = slice(i, i + n_trees)
            yield replace(self, roots=self.roots[some], column=self.column[some], baseline=zero)

    def consistent(self, n_inputs: int) -> bool:
        """Return whether `scores` can be trusted with these arrays, which may come from a malicious file.

        If so, no number is used as an index out of range, and each row visits each node at most once.
        """
        if not (_is_array(self.feature, np.int32, 1) and _is_array(self.roots, np.int32, 1)):
            return False
        n_nodes, n_trees = len(self.feature), len(self.roots)
        floats = getattr(self.threshold, "dtype", None)
        return (
            type(self.n_inputs) is int
            and self.n_inputs == n_inputs
            and type(self.average) is bool
            and n_trees > 0
            and floats in (np.float32, np.float64)
            and _is_array(self.column, np.int32, 1, n_trees)
            and _is_array(self.threshold, floats, 1, n_nodes)
            and _is_array(self.child, np.int32, 1, n_nodes)
            and _is_array(self.values, floats, 2)
            and _is_array(self.baseline, np.float64, 1)
            and all(np.isfinite(numbers).all() for numbers in (self.threshold, self.values, self.baseline))
            and _within(self.column, 0, len(self.baseline) - self.values.shape[1])
            and _within(self.feature, -1, n_inputs - 1)
            and self._nodes_are_trees()
        )

    def _nodes_are_trees(self) -> bool:
        """Return whether each node is a root or the child of one earlier node, and each leaf has its values."""
        n_nodes = len(self.feature)
        inner = np.flatnonzero(self.feature >= 0)
        left = self.child[inner]
        if not (_within(self.roots, 0, n_nodes - 1) and _within(left, inner + 1, n_nodes - 2)):
            return False
        entries = np.bincount(np.concatenate([self.roots, left, left + 1]), minlength=n_nodes)
        return bool((entries == 1).all()) and _within(self.child[self.feature < 0], 0, len(self.values) - 1)


def forest_trees(forest: Any) -> TreeEnsemble:
    """Return the trees of a fitted forest classifier; their scores are its `predict_proba`.

    Scores differ from scikit-learn's by the rounding of the probabilities in leaves to float32, about 1e-8.

    Parameters
    ----------
    forest : ExtraTreesClassifier or RandomForestClassifier
        With several outputs, the columns of the first output come first, then those of the second, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = ExtraTreesClassifier(10, random_state=0).fit(X, y)
    >>> bool(np.allclose(forest_trees(forest).scores(X), forest.predict_proba(X)))
    True
    """
    n_classes = np.atleast_1d(forest.n_classes_)
    columns = np.arange(max(n_classes)) < n_classes[:, None]  # outputs with fewer classes are padded
    trees = []
    for estimator in forest.estimators_:
        tree = estimator.tree_
        nodes = _Nodes(
            tree.children_left < 0,
            tree.feature,
            _round_down(tree.threshold),
            tree.children_left,
            tree.children_right,
            tree.value[:, columns].astype(np.float32),
        )
        trees.append(_one_tree(nodes, int(forest.n_features_in_), sum(n_classes)))
    return replace(_join(trees), average=True)


def boosting_trees(booster: Any, n_iterations: int | None = None) -> TreeEnsemble:
    """Return the trees of a fitted gradient boosting classifier; their scores are its `decision_function`.

    Parameters
    ----------
    booster : HistGradientBoostingClassifier
        Without categorical features.
    n_iterations : int, optional
        Keep only the first so many iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> booster = HistGradientBoostingClassifier(max_iter=10).fit(X, y)
    >>> bool(np.allclose(boosting_trees(booster).scores(X), booster.decision_function(X)))
    True
    """
    if booster.is_categorical_ is not None:
        raise ValueError("booster has categorical features, which are not supported: encode them as indicators.")
    if n_iterations is None:
        n_iterations = booster.n_iter_
    if not 1 <= n_iterations <= booster.n_iter_:
        raise ValueError(f"n_iterations={n_iterations!r} must be from 1 to {booster.n_iter_}.")
    baseline = np.array(booster._baseline_prediction, dtype=np.float64).ravel()  # no public attributes exist
    trees = []
    for iteration in booster._predictors[:n_iterations]:
        for column, predictor in enumerate(iteration):
            node = predictor.nodes
            nodes = _Nodes(
                node["is_leaf"] == 1,
                node["feature_idx"],
                node["num_threshold"],
                node["left"].astype(np.int64),
                node["right"].astype(np.int64),
                node["value"][:, None],
            )
            trees.append(_one_tree(nodes, int(booster.n_features_in_), len(baseline), column))
    return replace(_join(trees), baseline=baseline)


def concatenate(forests: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Return all trees of several forests as one.

    Its scores are the mean over all trees: the mean of the forests if they have equally many trees.
    """
    if not forests:
        raise ValueError("forests is empty: give at least one.")
    first = forests[0]
    for forest in forests:
        if not forest.average:
            raise ValueError("forests must average their trees; boosted trees cannot be concatenated.")
        if (forest.n_inputs, forest.n_outputs) != (first.n_inputs, first.n_outputs):
            raise ValueError(
                f"forests must have the same inputs and outputs: one has {forest.n_inputs} and {forest.n_outputs}, "
                f"another {first.n_inputs} and {first.n_outputs}."
            )
    return _join(forests)


class _Nodes(NamedTuple):
    """The nodes of one tree in any order, the root first; of leaves, only the values matter."""

    is_leaf: Marks
    feature: Array
    threshold: Array
    left: Array
    right: Array
    values: Array


def _one_tree(nodes: _Nodes, n_inputs: int, n_outputs: int, column: int = 0) -> TreeEnsemble:
    order = _level_order(nodes)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    leaf = nodes.is_leaf[order]
    limit = np.finfo(nodes.threshold.dtype).max  # scikit-learn sets infinity where only NaN goes to the right
    return TreeEnsemble(
        n_inputs,
        roots=np.zeros(1, dtype=np.int32),
        column=np.full(1, column, dtype=np.int32),
        feature=np.where(leaf, -1, nodes.feature[order]).astype(np.int32),
        threshold=np.where(leaf, 0, np.minimum(nodes.threshold[order], limit)),
        child=np.where(leaf, np.cumsum(leaf) - 1, number[nodes.left[order]]).astype(np.int32),
        values=nodes.values[order[leaf]],
        baseline=np.zeros(n_outputs),
        average=False,
    )


def _level_order(nodes: _Nodes) -> Codes:
    """Return the nodes level by level, so that children follow their parents and siblings are neighbours."""
    level = np.zeros(1, dtype=np.int64)
    levels = []
    while len(level):
        levels.append(level)
        inner = level[~nodes.is_leaf[level]]
        level = np.column_stack([nodes.left[inner], nodes.right[inner]]).ravel()
    return np.concatenate(levels)


def _join(ensembles: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Return all trees as one ensemble; what is not about trees is that of the first."""
    feature = np.concatenate([one.feature for one in ensembles])
    values, row = _distinct_rows(np.concatenate([one.values for one in ensembles]))
    roots, child, n_nodes, n_rows = [], [], 0, 0
    for one in ensembles:
        roots.append(one.roots + n_nodes)
        child.append(one.child + np.where(one.feature < 0, n_rows, n_nodes))
        n_nodes += len(one.feature)
        n_rows += len(one.values)
    children = np.concatenate(child)
    leaf = feature < 0
    children[leaf] = row[children[leaf]]
    return replace(
        ensembles[0],
        roots=np.concatenate(roots).astype(np.int32),
        column=np.concatenate([one.column for one in ensembles]),
        feature=feature,
        threshold=np.concatenate([one.threshold for one in ensembles]),
        child=children.astype(np.int32),
        values=values,
    )


def _distinct_rows(values: Array) -> tuple[Array, Codes]:
    """Return the distinct rows in the order of their first appearance, and the number of each row."""
    rows = np.ascontiguousarray(values).view(f"V{values.itemsize * values.shape[1]}").ravel()  # compares bytes
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return values[first[order]], np.argsort(order)[number]


def _round_down(threshold: Floats) -> Array:
    """Return the largest float32 up to each threshold: a float32 is below one if it is below the other."""
    with np.errstate(over="ignore"):
        rounded = threshold.astype(np.float32)
    return np.where(rounded > threshold, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _is_array(value: Any, dtype: Any, n_axes: int, length: int | None = None) -> bool:
    return (
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.ndim == n_axes
        and value.flags.c_contiguous
        and (length is None or len(value) == length)
    )


def _within(numbers: Array, low: Any, high: int) -> bool:
    return bool(((numbers >= low) & (numbers <= high)).all())
