"""`JointDistribution`: P(Y | x) of a batch of rows, as a Bayesian network over the class variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from graphlib import TopologicalSorter

import numpy as np

from pmdc.inference.base import BaseDistribution, ClassTable, Codes, Floats, draw
from pmdc.inference.junction_tree import JunctionTree, check_tables, outcome_log_prob


class JointDistribution(BaseDistribution):
    """The conditional joint distribution of the class variables, in each row of a batch.

    It is the product of one conditional table for each class variable given its parents. Every answer is
    exact. `marginals`, `mode` and `entropy` run a junction tree; `log_prob` and `sample` do not need one.

    Parameters
    ----------
    class_table : object with names, states, sizes, encode and decode
        The class variables.
    parents : sequence of K tuples of int
        The parents of each class variable, as indices of class variables.
    log_tables : sequence of K arrays of shape (n_rows, *sizes of the parents, size)
        Log probabilities of the states of each class variable given its parents. Zero probabilities (-inf)
        are allowed.
    junction_tree : JunctionTree, optional
        The compiled structure, if there is one; otherwise it is compiled when first needed.

    Examples
    --------
    >>> import numpy as np
    >>> from pmdc.table import ClassTable
    >>> Y = ClassTable.fit(np.array([["no", "low"], ["yes", "high"]]))
    >>> tables = [np.log([[0.4, 0.6]]), np.log([[[0.5, 0.5], [0.25, 0.75]]])]
    >>> distribution = JointDistribution(Y, [(), (0,)], tables)
    >>> distribution
    JointDistribution(P(y0, y1 | x), 1 rows)
    >>> distribution.mode().outcome
    array([['yes', 'low']], dtype='<U4')
    >>> distribution.marginals()[1]
    array([[0.35, 0.65]])
    """

    def __init__(
        self,
        class_table: ClassTable,
        parents: Sequence[tuple[int, ...]],
        log_tables: Sequence[Floats],
        junction_tree: JunctionTree | None = None,
    ):
        self.parents = tuple(tuple(members) for members in parents)
        self.log_tables = [np.asarray(table, dtype=np.float64) for table in log_tables]
        super().__init__(class_table, check_tables(class_table.sizes, self.parents, self.log_tables))
        if junction_tree is not None:
            if (junction_tree.sizes, junction_tree.parents) != (class_table.sizes, self.parents):
                raise ValueError("junction_tree was compiled for other parents or other numbers of states.")
            self.junction_tree = junction_tree

    @cached_property
    def junction_tree(self) -> JunctionTree:
        """The compiled structure."""
        return JunctionTree(self.class_table.sizes, self.parents)

    def marginals(self) -> list[Floats]:
        return self.junction_tree.marginals(self.log_tables)

    def entropy(self) -> Floats:
        # By the chain rule the entropy is that of each class variable given its parents, on average.
        total = np.zeros(len(self))
        joint_tables = self.junction_tree.family_marginals(self.log_tables)
        for joint, log_table in zip(joint_tables, self.log_tables, strict=True):
            logs = np.where(joint > 0, log_table, 0.0)  # 0 log 0 = 0
            total -= (joint * logs).sum(axis=tuple(range(1, joint.ndim)))
        return np.maximum(total, 0.0)

    def mode_codes(self) -> tuple[Codes, Floats]:
        """Codes of the most probable outcomes and their log probabilities; ties as in `JunctionTree.mode`."""
        return self.junction_tree.mode(self.log_tables)

    def log_prob_codes(self, codes: Codes) -> Floats:
        return outcome_log_prob(self.parents, self.log_tables, codes)

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Ancestral sampling: each class variable given its parents, for all rows and draws at once."""
        codes = np.empty((len(self), n, len(self.parents)), dtype=np.int64)
        every = np.broadcast_to(np.arange(len(self))[:, None], (len(self), n))
        for k in TopologicalSorter(dict(enumerate(self.parents))).static_order():
            conditional = self.log_tables[k][(every, *(codes[:, :, p] for p in self.parents[k]))]
            codes[:, :, k] = draw(np.exp(conditional), random)
        return codes
