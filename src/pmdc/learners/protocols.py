"""The two protocols of phase P1: what learns local models, and what was learned.

A `LocalLearner` knows the inputs of the training rows: the continuous features in a `GBNC`, discrete ones too in the
baselines. Given one class variable, one partition of the rows and the parents that are inputs beside the features, it
fits one model P(Y | pi, x) for each part (Eq. 15 of the paper) and returns either their log-likelihood (all that the
search keeps: scores first, models last) or the `LocalModels` themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc.learners.partition import Configurations, Partition
from pmdc.table.features import Features


@dataclass(frozen=True)
class LocalTask:
    """One class variable and one parent set: what phase P1 fits.

    Attributes
    ----------
    child : int
        The class variable.
    codes : array of shape (n,)
        The states of the class variable.
    n_states : int
    partition : Partition
        The rows grouped by the configuration of the parents that divide them.
    inputs : tuple of int
        The parents that are inputs of the models instead.
    input_codes : array of shape (n, n_inputs)
        Their states.
    input_sizes : tuple of int
        Their numbers of states.
    """

    child: int
    codes: Codes
    n_states: int
    partition: Partition
    inputs: tuple[int, ...] = ()
    input_codes: Codes | None = None
    input_sizes: tuple[int, ...] = ()

    def take(self, rows: Codes) -> LocalTask:
        """The same task on other rows of the table, as `Partition.take`."""
        inputs = None if self.input_codes is None else self.input_codes[rows]
        return replace(self, codes=self.codes[rows], partition=self.partition.take(rows), input_codes=inputs)


@dataclass(frozen=True)
class Start:
    """Coefficients of the models of a partition, for those of finer partitions to start from.

    Attributes
    ----------
    configurations : Configurations
        The parts.
    number : array of shape (n_parts, n_states)
        The row of `coef` for each part and state, -1 where there is none.
    coef : array of shape (n_groups, n_coefficients)
        In single precision: it is only a place to start.
    inputs, input_sizes : as in `LocalTask`
        Their coefficients come behind the intercepts.
    """

    configurations: Configurations
    number: npt.NDArray[np.int32]
    coef: npt.NDArray[np.float32]
    inputs: tuple[int, ...] = ()
    input_sizes: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return self.configurations.observed.nbytes + self.number.nbytes + self.coef.nbytes


Preparation = Callable[[Features], Floats]
"""Brings the inputs of any rows into the form that the models use."""


class LocalModels(Protocol):
    """The fitted local models of one class variable, one for each observed configuration."""

    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        """log P(Y | pi, x) for prepared rows, each under the model of its part, or of its parts.

        Parts of shape (n,) or (n, n_columns) give an answer of the same shape with an axis for the states behind.
        The codes of the parents that are inputs have shape (n, n_inputs), -1 where they are unknown.
        A state that has no row in the part, and every state where the part is -1, gets -inf.
        """


class LocalLearner(Protocol):
    """Fits local models on the inputs of the training rows."""

    prepare: Preparation
    X: Floats
    sample_weight: Floats

    def on(self, rows: Codes) -> Self:
        """The same learner with fewer training rows; how inputs are prepared stays as it is."""

    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int | None:
        """The free parameters of the model of one configuration; None where they are not known before it is fitted."""

    def fit(self, task: LocalTask) -> LocalModels:
        """Fit the local models of a task."""

    def fit_from(self, task: LocalTask, start: Start | None) -> tuple[LocalModels, Start | None]:
        """The same, from the models of a coarser partition, and what finer partitions may start from."""

    def log_likelihood(self, task: LocalTask) -> float:
        """C(Y, D) of Eq. 20: the (weighted) log-likelihood of the local models on their own rows."""

    def log_likelihood_from(self, task: LocalTask, start: Start | None) -> tuple[float, Start | None]:
        """The same, from the models of a coarser partition, and what finer partitions may start from."""


@runtime_checkable
class Adjustable(LocalLearner, Protocol):
    """A learner whose models have a penalty, of the strength C, which may be chosen for them."""

    auto: bool
    """Whether it is to be chosen."""

    def with_strength(self, C: float) -> Self:
        """The same learner with another strength of the penalty."""

    def choose_strength(self, score: Callable[[Any, Start | None], tuple[float, Start | None]]) -> tuple[float, float]:
        """The greatest score and its strength C, where each model starts from the one before.

        Parameters
        ----------
        score : function (learner with a strength, start) -> score, start for the next
        """


def rows_by_part(part: Codes) -> Iterator[tuple[int, Codes]]:
    """The parts that occur, with their rows; one sort for all of them. Rows without a part are left out."""
    order = np.argsort(part, kind="stable")
    present, starts = np.unique(part[order], return_index=True)
    for number, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if number >= 0:
            yield number, rows


TINY = float(np.log(np.finfo(float).eps))
"""Logarithm of the machine precision: a smaller probability is zero but for the way it was computed."""


def fill_zeros(log_proba: Floats, frequencies: Floats, weight: float) -> Floats:
    """Let no state that was seen in a part have probability zero there.

    Trees, forests, neighbours and others answer 0 for states that they have seen. Where a model does so, no state of
    that row gets less than its share of what one row more could have brought: its frequency in the part times
    1 / (1 + weight of the part). Elsewhere, probabilities below the machine precision, such as naive Bayes is fond
    of, are raised to it. The other states give way in proportion.
    """
    low = (log_proba < TINY).any(axis=1)
    if not low.any():
        return log_proba
    from pmdc.learners import kernels

    rows = log_proba[low]
    one_part = np.zeros(len(rows), dtype=np.int64), np.arange(rows.shape[1])[None]
    kernels.normalise(rows, *one_part, np.log(frequencies), np.array([weight]), True, TINY)
    filled = log_proba.copy()
    filled[low] = rows
    return filled
