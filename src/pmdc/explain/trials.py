"""What it costs to shuffle a column of X, or the states of the parents of a class variable.

The shuffled orders are those of `sklearn.inspection.permutation_importance` with the same seed: the same for all
columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Array, Codes, Floats, Marks
from pmdc._support.parallel import workers
from pmdc._support.progress import tell_phase
from pmdc.explain.columns import FeatureColumns
from pmdc.explain.increases import Increases
from pmdc.explain.measures import Measure
from pmdc.inference.base import BaseDistribution
from pmdc.inference.distribution import JointDistribution
from pmdc.table.features import Features


class RowLosses(NamedTuple):
    """Losses of rows: overall, of each class variable, and of each class variable given its parents."""

    overall: Array
    by_variable: Array
    local: Array


class Found(NamedTuple):
    """The increases of the losses by shuffling each column, and by shuffling the parent of each arc."""

    overall: Increases
    by_variable: Increases
    arcs: Increases


class Arc(NamedTuple):
    """A parent of a class variable: the class variable at some place among its parents, or some column of X."""

    child: int
    parent: int
    is_feature: bool


@dataclass(frozen=True)
class Trial:
    """A model and rows with known outcomes on which columns are shuffled.

    Attributes
    ----------
    model : fitted classifier
    columns : FeatureColumns
    truth : array of shape (n, K)
        Codes of the true states, negative where they are unknown.
    weights : array of shape (n,)
    measure : Measure
    given_parents : bool
        Whether the losses of class variables are those given their parents.
    n_repeats, seed : int
        Of the shuffled orders.
    """

    model: Any
    columns: FeatureColumns
    truth: Codes
    weights: Floats
    measure: Measure
    given_parents: bool
    n_repeats: int
    seed: int

    # The graph -------------------------------------------------------------------------------------------------

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...] | None:
        """The class variables that are parents of each; None if the model is no Bayesian network."""
        part = self.model._distribution(self.columns.rows(np.arange(1)).complete())
        return part.parents if isinstance(part, JointDistribution) else None

    @cached_property
    def arcs(self) -> list[Arc]:
        """The arcs that are measured: class variables that are parents, then discrete features, for each child."""
        if self.parents is None or not self.measure.has_variables:
            return []
        table, graph, found = self.columns.table, getattr(self.model, "graph_", None), []
        for child, own in enumerate(self.parents):
            found += [Arc(child, place, False) for place in range(len(own))]
            if graph is not None:
                above = set(graph.predecessors(self.model.class_names_[child])) & set(table.discrete_names)
                found += [Arc(child, i, True) for i in table.discrete if table.names[i] in above]
        return found

    @property
    def arc_names(self) -> list[tuple[str, str]]:
        names, features, parents = self.model.class_names_, self.columns.table.names, self.parents or ()
        return [
            (features[parent] if is_feature else names[parents[child][parent]], names[child])
            for child, parent, is_feature in self.arcs
        ]

    # Losses ----------------------------------------------------------------------------------------------------

    @cached_property
    def usable(self) -> RowLosses:
        """Which rows have which loss."""
        known = self.truth >= 0
        local = np.zeros((len(known), 0), dtype=bool)
        if self.parents is not None:
            local = np.column_stack([known[:, [k, *own]].all(axis=1) for k, own in enumerate(self.parents)])
        by_variable = local if self.given_parents else known
        n_variables = by_variable.shape[1] if self.measure.has_variables else 0
        return RowLosses(self.measure.usable(known), by_variable[:, :n_variables], local)

    def parts(self, features: Features) -> Iterator[tuple[slice, BaseDistribution]]:
        """Yield the distributions of the rows in chunks that fit into memory."""
        start = 0
        for part in self.model._chunk_distributions(features, None):
            yield slice(start, start + len(part)), part
            start += len(part)

    def losses(self, rows: slice, part: BaseDistribution, local: bool) -> RowLosses:
        """Return the losses of some rows; those given the parents only if they are needed."""
        truth, nothing = self.truth[rows], np.empty((len(part), 0))
        given = nothing
        if local or (self.given_parents and self.measure.has_variables):
            given = self.losses_given_parents(rows, part, self.states_of_parents())
        own = given if self.given_parents else self.measure.by_variable(part, truth)
        return RowLosses(self.measure.overall(part, truth), own, given if local else nothing)

    def states_of_parents(self) -> list[Codes]:
        """Return the true states of the parents of each class variable; any state where they are unknown."""
        return [np.maximum(self.truth[:, list(own)], 0) for own in self.parents or ()]

    def losses_given_parents(self, rows: slice, part: BaseDistribution, states: Sequence[Codes]) -> Floats:
        """Return the loss of each class variable given states of its parents, each on its own."""
        assert isinstance(part, JointDistribution)
        every = np.arange(len(part))
        tables = [table[(every, *own[rows].T)] for table, own in zip(part.log_tables, states, strict=True)]
        apart = JointDistribution(part.class_table, [()] * len(tables), tables)
        return self.measure.by_variable(apart, self.truth[rows])

    # Shuffling -------------------------------------------------------------------------------------------------

    def run(self) -> Found:
        """Measure all columns and arcs."""
        columns = range(len(self.columns.table.names))
        of_arcs = {arc.parent for arc in self.arcs if arc.is_feature}
        parts = [self.losses(rows, part, bool(of_arcs)) for rows, part in self.parts(self.columns.complete())]
        before = RowLosses(*map(np.concatenate, zip(*parts, strict=True)))
        tell_phase("measuring the importance of features")
        with workers(None) as run:
            shuffled = run(_shuffle_column, columns, self, before, of_arcs)
        overall, by_variable, local = zip(*shuffled, strict=True)
        by_place = self._shuffle_parents() if self.arcs else []
        arcs = [(local if arc.is_feature else by_place)[arc.parent].at(arc.child) for arc in self.arcs]
        return Found(Increases.stack(overall), Increases.stack(by_variable), Increases.stack(arcs, self.n_repeats))

    def orders(self, n_rows: int) -> list[Codes]:
        """Return the shuffled orders of so many rows; each shuffles the one before."""
        random, step, order, found = np.random.RandomState(self.seed), np.arange(n_rows), np.arange(n_rows), []
        for _ in range(self.n_repeats):
            random.shuffle(step)
            order = order[step]
            found.append(order)
        return found

    def _shuffle_parents(self) -> list[Increases]:
        """Return, for each place among the parents, what it costs each class variable to shuffle the parent there.

        For a class variable, the states of its parent are shuffled among the rows in which it and all its parents are
        known. Each class variable has its own loss, so the parents of all are shuffled at once.
        """
        usable, states = self.usable.local, self.states_of_parents()
        used = [np.flatnonzero(own) for own in usable.T]
        orders = {len(rows): self.orders(len(rows)) for rows in used}
        means = [_Mean(self, usable) for _ in range(max(map(len, self.parents or ())))]
        for rows, part in self.parts(self.columns.complete()):
            before = self.losses_given_parents(rows, part, states)
            for place, mean in enumerate(means):
                for repeat in range(self.n_repeats):
                    shuffled = [own.copy() for own in states]
                    for own, among in zip(shuffled, used, strict=True):
                        if place < own.shape[1]:
                            own[among, place] = own[among[orders[len(among)][repeat]], place]
                    mean.add(repeat, rows, self.losses_given_parents(rows, part, shuffled) - before)
        return [mean.result() for mean in means]


def _shuffle_column(column: int, trial: Trial, before: RowLosses, of_arcs: set[int]) -> list[Increases]:
    """Return what it costs to shuffle a column: overall, each class variable, and each given its parents."""
    local, usable = column in of_arcs, trial.usable
    if not local:
        before, usable = before._replace(local=before.local[:, :0]), usable._replace(local=usable.local[:, :0])
    means = [_Mean(trial, own) for own in usable]
    if any(trial.columns.places(column)):  # otherwise the model ignores it
        for repeat, order in enumerate(trial.orders(len(trial.truth))):
            for rows, part in trial.parts(trial.columns.shuffle(column, order).complete()):
                after = trial.losses(rows, part, local)
                for mean, new, old in zip(means, after, before, strict=True):
                    mean.add(repeat, rows, new - old[rows])
    return [mean.result() for mean in means]


class _Mean:
    """The mean over rows of increases, and its standard error."""

    def __init__(self, trial: Trial, usable: Marks):
        self.usable = usable
        self.weights = trial.weights.reshape(-1, *[1] * (usable.ndim - 1)) * usable
        self.sums = np.zeros((trial.n_repeats, *usable.shape[1:]))
        self.rows = np.zeros(usable.shape)

    def add(self, repeat: int, rows: slice, increases: Floats) -> None:
        """Add the increases of some rows in one repeat."""
        increases = np.where(self.usable[rows], increases, 0.0)
        self.sums[repeat] += (self.weights[rows] * increases).sum(axis=0)
        self.rows[rows] += increases / len(self.sums)

    def result(self) -> Increases:
        total, n_rows = self.weights.sum(axis=0), self.usable.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN without rows
            repeats = self.sums / total
            spread = self.weights * (self.rows - repeats.mean(axis=0))
            factor = np.where(n_rows > 1, n_rows / (n_rows - 1), np.nan)
            error = np.sqrt((spread**2).sum(axis=0) * factor) / total
        return Increases(np.moveaxis(repeats, 0, -1), np.asarray(error), np.asarray(n_rows))
