"""What a learner of local models does, and what it may do beyond that.

A `LocalLearner` knows the inputs of the training rows: the continuous features in a `GBNC`, discrete ones too in the
baselines. Given a `LocalTask` it fits one model P(Y | pi, x) for each part (Eq. 15 of the paper) and returns either
their log-likelihood (all that the search keeps: scores first, models last) or the `LocalModels` themselves.

What only some learners can do is a class of its own here; a learner that can inherits from it (`registry` lists which).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.learners.fitted import Fitted
from pmdc.learners.partition import Configurations
from pmdc.learners.tasks import LocalTask
from pmdc.table.features import Features

Preparation = Callable[[Features], Floats]
"""Brings the inputs of any rows into the form that the models use."""


class LocalModels(Protocol):
    """The fitted local models of one class variable, one for each observed configuration."""

    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        """Return log P(Y | pi, x) for prepared rows, each under the model of its part, or of its parts.

        Parts of shape (n,) or (n, n_columns) give an answer of the same shape with an axis for the states behind.
        The codes of the parents that are inputs have shape (n, n_inputs), -1 where they are unknown.
        A state that has no row in the part, and every state where the part is -1, gets -inf.
        """

    def fits(self, fitted: Fitted) -> bool:
        """Whether the numbers fit together: those of a file may not, and compiled loops do not look twice."""


class LocalLearner(ABC):
    """Fits local models on the inputs of the training rows."""

    estimator: object
    """What the user gave, for messages."""
    prepare: Preparation
    X: Floats
    sample_weight: Floats

    @abstractmethod
    def on(self, rows: Codes, sample_weight: Floats | None = None) -> Self:
        """Return the same learner on some of its training rows, with other weights if given.

        The preparation of the inputs does not change.
        """

    @abstractmethod
    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int | None:
        """Count the free parameters of the model of one configuration; None where only a fit can tell."""

    @abstractmethod
    def fit(self, task: LocalTask) -> LocalModels:
        """Fit the local models of a task."""

    @abstractmethod
    def log_likelihood(self, task: LocalTask) -> float:
        """Return C(Y, D) of Eq. 20: the (weighted) log-likelihood of the local models on their own rows."""


@dataclass(frozen=True)
class Start:
    """Coefficients of the models of a partition, for those of a finer partition to start from.

    Attributes
    ----------
    configurations : Configurations
        The parts.
    number : array of shape (n_parts, n_states)
        The row of `coef` for each part and state, -1 where there is none.
    coef : array of shape (n_groups, n_coefficients)
        In single precision: it is only a place to start.
    """

    configurations: Configurations
    number: npt.NDArray[np.int32]
    coef: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.configurations.observed.nbytes + self.number.nbytes + self.coef.nbytes


class WarmStart(LocalLearner):
    """A learner that is faster from the models of a coarser partition with the same inputs."""

    @abstractmethod
    def start(self, task: LocalTask, start: Start | None) -> Start:
        """Fit the models of a task, from a start, and return what finer partitions may start from."""

    @abstractmethod
    def log_likelihood_from(self, task: LocalTask, start: Start | None) -> tuple[float, Start]:
        """Return the log-likelihood of the models fitted from a start, and what finer partitions may start from."""


class CrossValidated(WarmStart):
    """A learner that fits the models without each of several folds together, faster than one after the other."""

    @abstractmethod
    def cross_validate(self, task: LocalTask, fold: Codes, start: Start | None) -> tuple[Floats, Start]:
        """Return log P(own state) of each row by the models fitted without its fold, and a start for finer ones.

        It is -inf where the rest of the row's part has no row with its state.

        Parameters
        ----------
        task : LocalTask
        fold : array of shape (n,)
            The fold that holds each row out.
        start : Start or None
        """


class LeaveOneOut(LocalLearner):
    """A learner that knows in closed form what the models fitted without each row say of it."""

    @abstractmethod
    def leave_one_out(self, task: LocalTask) -> Floats:
        """Return log P(own state) of each row by the models fitted without it.

        A row of weight 3 is three rows, of which one leaves: what leaves is a weight of 1, or all that the row has. The
        answer is -inf where the rest of the row's part has no row with its state.
        """


class OutOfBag(LocalLearner):
    """A learner of ensembles whose members know which rows they have not seen."""

    @abstractmethod
    def out_of_bag(self, task: LocalTask) -> tuple[Floats, Marks]:
        """Return log P(own state) of each row by the members that have not seen it, and whether there are any.

        The former is -inf where the row's part has no other row with its state, or where all members have seen it.
        """


class Regularised(WarmStart):
    """A learner whose models have an L2 penalty with the inverse strength C."""

    auto: bool
    """Whether C is to be chosen."""

    @abstractmethod
    def with_C(self, C: float) -> Self:
        """Return the same learner with another C."""
