"""Multi-output forests of scikit-learn as joint distributions, for comparisons.

One forest is fitted on all class variables at once; each leaf of a tree has a distribution of every class variable.
With q_tk the distribution of class variable k in the leaf of tree t that a row falls into, T trees and f_k the
frequencies of the training rows, there are two joint distributions:

- "marginal": the product over k of the marginals m_k = (sum over t of q_tk + f_k) / (T + 1), which are those of
  `predict_proba` but for the smoothing;
- "votes": (sum over t of the product over k of q_tk + product over k of m_k) / (T + 1). A tree grown to pure leaves
  votes for one whole outcome.

The additional member keeps all probabilities positive, also of states without training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_choice
from pmdc.inference import JointDistribution, OutcomeDistribution
from pmdc.inference.base import BaseDistribution, draw
from pmdc.table.classes import ClassTable


def discrete_as_indicators() -> ColumnTransformer:
    """Return a transformer of DataFrames that one-hot encodes the discrete features."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((encoder, make_column_selector(dtype_exclude="number")), remainder="passthrough")


class MultiOutputForest(BaseEstimator):
    """A forest of scikit-learn fitted on all class variables at once, with a joint distribution.

    Parameters
    ----------
    forest : RandomForestClassifier or ExtraTreesClassifier
    joint : {"votes", "marginal"}, default="votes"
        The joint distribution; see the module. It may be changed after `fit`.
    """

    def __init__(self, forest: Any, joint: str = "votes"):
        self.forest = forest
        self.joint = joint

    def fit(self, X: Any, y: Any) -> MultiOutputForest:
        """Fit the forest on DataFrames of features and class variables."""
        check_choice("joint", self.joint, ("votes", "marginal"))
        self.class_table_ = ClassTable.fit(y)
        codes = self.class_table_.encode(y)
        self._encoder = discrete_as_indicators()
        self._forest = clone(self.forest).fit(
            self._encoder.fit_transform(X), codes if codes.shape[1] > 1 else codes[:, 0]
        )
        self._seen = [np.unique(column) for column in codes.T]
        self._frequencies = [
            np.asarray((np.bincount(column, minlength=size) + 1.0 / size) / (len(codes) + 1.0), dtype=float)
            for column, size in zip(codes.T, self.class_table_.sizes, strict=True)
        ]
        self.classes_ = self.class_table_.states
        return self

    def predict_joint(self, X: Any) -> BaseDistribution:
        """Return the joint distribution of the class variables for a batch of rows."""
        votes = TreeVotes(self.class_table_, self._leaf_tables(X), self._frequencies)
        return votes if self.joint == "votes" else votes.independent

    def predict_proba(self, X: Any) -> list[Floats]:
        """Return the marginals of the joint distribution."""
        return self.predict_joint(X).marginals()

    def predict(self, X: Any, loss: str = "hamming") -> Any:
        """Return the prediction for the Hamming or the subset 0/1 loss."""
        joint = self.predict_joint(X)
        codes = np.column_stack([p.argmax(axis=1) for p in joint.marginals()])
        return self.class_table_.decode(codes if loss == "hamming" else joint.mode_codes()[0], like=X)

    def _leaf_tables(self, X: Any) -> list[Floats]:
        """Return the distributions in the leaves that rows fall into: K arrays of shape (n, n_trees, n_states)."""
        leaves = self._forest.apply(self._encoder.transform(X))
        shape = leaves.shape
        tables = [np.zeros((*shape, size), dtype=np.float32) for size in self.class_table_.sizes]
        for number, tree in enumerate(self._forest.estimators_):
            value = tree.tree_.value[leaves[:, number]]
            for k, seen in enumerate(self._seen):
                tables[k][:, number, seen] = value[:, k, : len(seen)]
        return tables


class TreeVotes(BaseDistribution):
    """The mean of the product distributions of trees and of the product of their marginals.

    Parameters
    ----------
    class_table : ClassTable
    tables : sequence of K arrays of shape (n_rows, n_trees, n_states)
        The distribution of each class variable by each tree.
    frequencies : sequence of K arrays of shape (n_states,)
        Positive probabilities of the states, for smoothing.
    """

    def __init__(self, class_table: ClassTable, tables: Sequence[Floats], frequencies: Sequence[Floats]):
        n_rows, self._n_trees = tables[0].shape[:2]
        super().__init__(class_table, n_rows)
        self._tables = tables
        smoothed = self._with_member(frequencies)
        log_tables = [np.log(p / p.sum(axis=1, keepdims=True)) for p in smoothed]
        self.independent = JointDistribution(class_table, [()] * len(log_tables), log_tables)
        """The product of the marginals."""

    def marginals(self) -> list[Floats]:
        return self._with_member(self.independent.marginals())

    def _with_member(self, proba: Sequence[Floats]) -> list[Floats]:
        """Return the mean of the distributions of each class variable by the trees and by one more member."""
        pairs = zip(self._tables, proba, strict=True)
        return [(table.sum(axis=1, dtype=float) + own) / (self._n_trees + 1) for table, own in pairs]

    def log_prob_codes(self, codes: Codes) -> Floats:
        rows = np.arange(len(self))
        votes = np.ones((len(self), self._n_trees), dtype=np.float32)
        for table, states in zip(self._tables, codes.T, strict=True):
            votes *= table[rows, :, states]
        own = np.exp(self.independent.log_prob_codes(codes))
        return np.log((votes.sum(axis=1, dtype=float) + own) / (self._n_trees + 1))

    def mode_codes(self) -> tuple[Codes, Floats]:
        """Return the most probable of these outcomes: the mode of each tree, and that of the product of marginals.

        It is the most probable of all outcomes if the trees have pure leaves and agree at least once.
        """
        best = self.independent.mode_codes()[0].copy()
        log_prob = self.log_prob_codes(best)
        modes = np.stack([table.argmax(axis=2) for table in self._tables], axis=2)
        for number in range(self._n_trees):
            found = self.log_prob_codes(modes[:, number])
            better = found > log_prob
            best[better], log_prob[better] = modes[better, number], found[better]
        return best, log_prob

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        member = random.randint(self._n_trees + 1, size=(len(self), n))
        by_trees, rows = member < self._n_trees, np.arange(len(self))[:, None]
        drawn = [draw(table[rows, np.minimum(member, self._n_trees - 1)], random) for table in self._tables]
        return np.where(by_trees[:, :, None], np.stack(drawn, axis=2), self.independent.sample_codes(n, random))

    def enumerate(self) -> OutcomeDistribution:
        outcomes = self.every_outcome()
        log_p = np.column_stack([self.log_prob_codes(np.tile(one, (len(self), 1))) for one in outcomes])
        return OutcomeDistribution(self.class_table, outcomes, log_p, np.zeros(len(self)))
