"""`JointDistribution`: P(Y | x) of a batch of rows, as a Bayesian network over the class variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.inference.base import BaseDistribution, ClassTable, contradicts, draw, merge_evidence
from pmdc.inference.evidence import NO_EVIDENCE, ImpossibleEvidenceError
from pmdc.inference.factors import check_tables, family_scopes, outcome_log_prob
from pmdc.inference.junction_tree import JunctionTree
from pmdc.inference.outcomes import OutcomeDistribution
from pmdc.table.rows import take_possible

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class JointDistribution(BaseDistribution):
    """The conditional joint distribution of the class variables, in each row of a batch.

    It is the product of the conditional tables of the class variables given their parents, and may be conditioned on
    evidence. All answers are exact. Most of them use a junction tree; `log_prob` of whole outcomes and, without
    evidence, `sample` do not need it.

    Parameters
    ----------
    class_table : object with names, states, sizes, encode and decode
        The class variables.
    parents : sequence of K tuples of int
        The parents of each class variable, as indices of class variables. They must not form a cycle.
    log_tables : sequence of K arrays of shape (n_rows, *sizes of the parents, size)
        Log probabilities of the states of each class variable given its parents. Zero probabilities (-inf) are allowed.
    junction_tree : JunctionTree, optional
        The compiled structure; by default it is compiled when first needed.
    evidence : array of shape (n_rows, K), optional
        Codes of known states; -1 is unknown.
    possible : for each class variable an array of shape (n_rows, n_states) or None, optional
        The states that are possible in each row (`restricted`).

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
    >>> distribution.given({"y1": "low"}).marginal("y0").round(4)
    array([[0.3077, 0.6923]])
    >>> top = distribution.top(2)
    >>> top.outcomes[0]
    array([['yes', 'low'],
           ['no', 'high']], dtype='<U4')
    """

    def __init__(
        self,
        class_table: ClassTable,
        parents: Sequence[tuple[int, ...]],
        log_tables: Sequence[Floats],
        junction_tree: JunctionTree | None = None,
        evidence: Codes | None = None,
        possible: Sequence[Marks | None] | None = None,
    ):
        self.parents = tuple(tuple(members) for members in parents)
        self.log_tables = [np.asarray(table, dtype=np.float64) for table in log_tables]
        self.evidence = evidence
        self.possible = possible
        _check_parents(self.parents, len(class_table.sizes))
        self._scopes = family_scopes(self.parents)
        super().__init__(class_table, check_tables(class_table.sizes, self._scopes, self.log_tables, "log_tables"))
        if evidence is not None and evidence.shape != (len(self), len(self.parents)):
            raise ValueError(f"evidence has shape {evidence.shape}; it must be {(len(self), len(self.parents))}.")
        if junction_tree is not None:
            if (junction_tree.sizes, junction_tree.scopes) != (class_table.sizes, self._scopes):
                raise ValueError("junction_tree was compiled for other parents or other numbers of states.")
            self.junction_tree = junction_tree

    @cached_property
    def junction_tree(self) -> JunctionTree:
        """The junction tree of the network."""
        return JunctionTree(self.class_table.sizes, self._scopes)

    @cached_property
    def log_evidence(self) -> Floats:
        """The log probability of the evidence in each row; zero without evidence."""
        return self.table_log_evidence(self.evidence)

    def table_log_evidence(self, evidence: Codes | None) -> Floats:
        """Return log P(known states, possible states | x) of each row for some known states."""
        if evidence is None and self.possible is None:
            return np.zeros(len(self))
        return self.junction_tree.log_evidence(self.log_tables, evidence)

    def marginals(self) -> list[Floats]:
        return self.junction_tree.marginals(self.log_tables, self.evidence)

    def joint(self, variables: Sequence[int]) -> Floats:
        tree = self.junction_tree
        if not tree.holds(variables):
            tree = tree.variant(together=variables)
        return tree.joint(self.log_tables, [variables], self.evidence)[0]

    def entropy(self) -> Floats:
        # H(Y | e) = log P(e) - E[log P(Y, e)], and log P(Y, e) is a sum over class variables given their parents.
        total = self.log_evidence.copy()
        joint_tables = self.junction_tree.factor_marginals(self.log_tables, self.evidence)
        for joint, log_table in zip(joint_tables, self.log_tables, strict=True):
            logs = np.where(joint > 0, log_table, 0.0)  # 0 log 0 = 0
            total -= (joint * logs).sum(axis=tuple(range(1, joint.ndim)))
        return np.maximum(total, 0.0)

    def mode_codes(self) -> tuple[Codes, Floats]:
        codes, log_prob = self.junction_tree.mode(self.log_tables, self.evidence)
        return codes, log_prob - self.log_evidence

    def top_codes(self, k: int) -> tuple[Codes, Floats]:
        codes, log_prob = self.junction_tree.top(self.log_tables, k, self.evidence)
        return codes, log_prob - self.log_evidence[:, None]

    def group_mode_codes(self, variables: Sequence[int]) -> tuple[Codes, Floats]:
        if len(variables) == len(self.parents):
            codes, log_prob = self.mode_codes()
            return codes[:, list(variables)], log_prob
        if self.junction_tree.holds(variables):
            return super().group_mode_codes(variables)
        tree = self.junction_tree.variant(last=variables)
        codes, log_prob = tree.marginal_mode(self.log_tables, self.evidence)
        return codes[:, list(variables)], log_prob - self.log_evidence

    def tilted(self, weights: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        largest = [float(weight.max()) for weight in weights]  # the tree needs log weights of at most zero
        tables = [
            table + _along_states(np.log(w / top), table.ndim)
            for table, w, top in zip(self.log_tables, weights, largest, strict=True)
        ]
        log_total, marginals = self.junction_tree.weighted_marginals(tables, self.evidence)
        return log_total - self.log_evidence + np.log(largest).sum(), marginals

    def log_prob_codes(self, codes: Codes) -> Floats:
        impossible = np.zeros(len(self), dtype=bool)
        if self.evidence is not None:
            known = self.evidence != NO_EVIDENCE
            impossible = (known & (codes != NO_EVIDENCE) & (codes != self.evidence)).any(axis=1)
            codes = np.where(known, self.evidence, codes)
        partial = (codes == NO_EVIDENCE).any(axis=1)
        total = np.empty(len(self))
        whole = np.flatnonzero(~partial)
        total[whole] = outcome_log_prob(self._scopes, self.log_tables, codes[whole], whole)
        if partial.any():
            tables = [table[partial] for table in self.log_tables]
            total[partial] = self.junction_tree.log_evidence(tables, codes[partial])
        return np.where(impossible, -np.inf, total - self.log_evidence)

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Draw each class variable given its parents (ancestral sampling); with evidence, use the junction tree."""
        if self.evidence is not None or self.possible is not None:
            return self.junction_tree.sample(self.log_tables, n, random, self.evidence)
        codes = np.empty((len(self), n, len(self.parents)), dtype=np.int64)
        every = np.broadcast_to(np.arange(len(self))[:, None], (len(self), n))
        for k in TopologicalSorter(dict(enumerate(self.parents))).static_order():
            conditional = self.log_tables[k][(every, *(codes[:, :, p] for p in self.parents[k]))]
            codes[:, :, k] = draw(np.exp(conditional), random)
        return codes

    def given_codes(self, evidence: Codes) -> JointDistribution:
        known = merge_evidence(self.evidence, evidence)
        tree = self.junction_tree
        posterior = JointDistribution(self.class_table, self.parents, self.log_tables, tree, known, self.possible)
        impossible = np.isneginf(posterior.log_evidence)
        if impossible.any():
            raise ImpossibleEvidenceError(int(np.argmax(impossible)))
        return posterior

    def rows(self, rows: slice | Codes) -> JointDistribution:
        return JointDistribution(
            self.class_table,
            self.parents,
            [table[rows] for table in self.log_tables],
            self.junction_tree,
            None if self.evidence is None else self.evidence[rows],
            take_possible(self.possible, rows),
        )

    def restricted(self, possible: Sequence[Marks | None]) -> JointDistribution:
        """Return the distribution given that states are among the possible ones.

        `possible` has for each class variable an array of shape (n_rows, n_states), or None if all states are possible.
        The conditional tables then have probability zero for the others and do not add up to one.
        """
        tables = list(self.log_tables)
        for k, own in enumerate(possible):
            if own is not None:
                shape = (len(self), *(1,) * len(self.parents[k]), own.shape[1])
                tables[k] = np.where(own.reshape(shape), tables[k], -np.inf)
        both = possible if self.possible is None else list(map(_both, self.possible, possible))
        tree = self.junction_tree.unnormalised()
        return JointDistribution(self.class_table, self.parents, tables, tree, self.evidence, both)

    def may_be(self, evidence: Codes, possible: Sequence[Marks | None]) -> Marks:
        if self.evidence is not None or all(own is None for own in possible):
            return super().may_be(evidence, possible)
        return ~np.isneginf(self.restricted(possible).table_log_evidence(evidence))

    def log_prob_at(self, rows: Codes, codes: Codes) -> Floats:
        if self.evidence is not None or self.possible is not None or (codes == NO_EVIDENCE).any():
            return super().log_prob_at(rows, codes)
        return self.table_log_prob_at(rows, codes)

    def table_log_prob_at(self, rows: Codes, codes: Codes) -> Floats:
        """Return the sum of the logarithms of the conditional tables for whole outcomes, each in its own row."""
        return outcome_log_prob(self._scopes, self.log_tables, codes, rows)

    def enumerate(self) -> OutcomeDistribution:
        outcomes = self.every_outcome()
        log_p = np.zeros((len(self), len(outcomes)))
        for scope, table in zip(self._scopes, self.log_tables, strict=True):
            place: tuple[Any, ...] = (slice(None), *(outcomes[:, v] for v in scope))
            log_p += table[place]
        if self.evidence is not None:
            log_p[contradicts(self.evidence, outcomes)] = -np.inf
        log_p -= self.log_evidence[:, None]
        return OutcomeDistribution(self.class_table, outcomes, log_p, np.zeros(len(self)))

    # Pictures -------------------------------------------------------------------------------------------------

    def plot_table(
        self, name: str, row: int = 0, ax: Axes | None = None, *, max_rows: int = 40, title: str | None = None
    ) -> Axes:
        """Draw a heat map of the conditional table of a class variable in one row, P(Y | parents, x).

        Parameters
        ----------
        name : str
            The class variable.
        row : int, default=0
        ax : matplotlib Axes, optional
            The axes to draw in; by default a new figure of fitting size.
        max_rows : int, default=40
            The largest number of parent configurations shown. If there are more, the most probable ones of this row
            are shown, in descending order, with a note.
        title : str, optional

        Returns
        -------
        matplotlib Axes
            A row for each configuration of the parent class variables, a column for each state. (Parents that are
            discrete features have their values in this row of X.)

        Examples
        --------
        >>> from pmdc import GBNC
        >>> from pmdc.datasets import make_network
        >>> data = make_network(300, random_state=0)
        >>> joint = GBNC(experts=None, max_parents=1).fit(data.X, data.Y).predict_joint(data.X)
        >>> ax = joint.plot_table("y1", row=7)
        """
        from pmdc.report.tables import draw_table

        self._check_exportable(row)
        (number,) = self._numbers("name", [name])
        return draw_table(self, number, int(row), ax, max_rows, title)

    # Export ---------------------------------------------------------------------------------------------------

    def to_pgmpy(self, row: int = 0) -> Any:
        """Return the network of one row as a `pgmpy.models.DiscreteBayesianNetwork`, with names and states."""
        from pmdc.inference.export import to_pgmpy

        self._check_exportable(row)
        return to_pgmpy(self, row)

    def to_bif(self, row: int = 0) -> str:
        """Return the network of one row in the Bayesian interchange format, the text of a ``.bif`` file."""
        from pmdc.inference.export import to_bif

        self._check_exportable(row)
        return to_bif(self, row)

    def _check_exportable(self, row: int) -> None:
        self._check_row(row)
        if self.evidence is not None or self.possible is not None:
            raise ValueError(
                "A distribution with evidence has no conditional tables. Use the distribution before `given`; another "
                "tool can be given the evidence itself."
            )


def _along_states(weights: Floats, n_axes: int) -> Floats:
    """Return weights of states, for each row or for all, so that they fit the last axis of a conditional table."""
    rows = weights.shape[:-1]
    return weights.reshape(*rows, *(1,) * (n_axes - 1 - len(rows)), weights.shape[-1])


def _both(one: Marks | None, other: Marks | None) -> Marks | None:
    """Return the states that are possible for two reasons."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _check_parents(parents: Sequence[tuple[int, ...]], n_variables: int) -> None:
    """Raise ValueError unless `parents` describes a directed acyclic graph over the class variables."""
    if len(parents) != n_variables:
        raise ValueError(f"parents has {len(parents)} entries; it must have {n_variables}, one per class variable.")
    for k, members in enumerate(parents):
        if len({*members, k}) != len(members) + 1 or not all(0 <= p < n_variables for p in members):
            raise ValueError(
                f"parents[{k}]={members} must be distinct indices of other class variables, below {n_variables}."
            )
    try:
        TopologicalSorter(dict(enumerate(parents))).prepare()
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1]))
        raise ValueError(f"parents has the cycle {cycle}: remove one of its arcs.") from None
