"""Interfaces of the learners of local models, and their optional capabilities.

A `LocalLearner` holds the inputs of the training rows: the continuous features in a `GBNC`, also discrete ones in the
baselines. For a `LocalTask` it fits one model P(Y | pi, x) for each part (Eq. 15 of the paper) and returns their
log-likelihood or the `LocalModels`. Each optional capability is a subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.learners.fitted import Fitted
from pmdc.learners.partition import Configurations
from pmdc.learners.tasks import LocalTask
from pmdc.table.features import Features

Preparation = Callable[[Features], Floats]
"""Prepares the inputs of any rows for the models."""

MAX_STACKED = 2**22
"""The most numbers that `LocalModels.log_table` stacks in one call (32 MiB)."""


class LocalModels(ABC):
    """The fitted local models of one class variable, one for each observed configuration."""

    @abstractmethod
    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        """Return log P(Y | pi, x) for prepared rows, each under the model of its part, or of its parts.

        For parts of shape (n,) or (n, n_columns), the result has an additional last axis for the states. The codes of
        the parents that are inputs have shape (n, n_inputs), -1 if unknown. A state without rows in the part, and every
        state if the part is -1, gets -inf.
        """

    def log_table(self, X: Floats, part: Codes, input_codes: Codes, free: Mapping[int, int]) -> Floats:
        """Return log P(Y | pi, x) for all configurations of some of the parents that are inputs.

        This default stacks the rows of all configurations; engines that can do better override it.

        Parameters
        ----------
        X : array of shape (n, d)
            Prepared rows.
        part : array of shape (n, n_columns)
        input_codes : array of shape (n, n_inputs)
        free : dict of int to int
            The columns of `input_codes` that are not read but run through all states, and their numbers of states.

        Returns
        -------
        array of shape (n, n_configurations, n_columns, n_states)
            The last of the free inputs runs fastest.
        """
        n, n_columns = part.shape
        configurations = np.array(list(product(*map(range, free.values()))), dtype=np.int64)
        step = max(1, MAX_STACKED // max(1, n * (X.shape[1] + n_columns)))
        tables = []
        for states in (configurations[i : i + step] for i in range(0, len(configurations), step)):
            codes = np.repeat(input_codes, len(states), axis=0)
            codes[:, list(free)] = np.tile(states, (n, 1))
            rows, parts = np.repeat(X, len(states), axis=0), np.repeat(part, len(states), axis=0)
            tables.append(self.log_proba(rows, parts, codes).reshape(n, len(states), n_columns, -1))
        return np.concatenate(tables, axis=1)

    @abstractmethod
    def fits(self, fitted: Fitted) -> bool:
        """Return whether the arrays are consistent; models from a file may not be, and kernels do not check."""


class LocalLearner(ABC):
    """Base class of learners of local models."""

    estimator: object
    """The estimator that the user gave, for messages."""
    prepare: Preparation
    X: Floats
    sample_weight: Floats
    releases_gil: bool = False
    """Whether almost all work is in compiled kernels, so that threads are cheaper than processes."""

    @abstractmethod
    def on(self, rows: Codes, sample_weight: Floats | None = None) -> Self:
        """Return the same learner on some of its training rows, with other weights if given.

        The preparation of the inputs does not change.
        """

    @abstractmethod
    def n_parameters(self, n_states: int, input_sizes: Sequence[int]) -> int | None:
        """Return the number of free parameters of the model of one configuration; None if unknown before fitting."""

    @abstractmethod
    def fit(self, task: LocalTask) -> LocalModels:
        """Fit the local models of a task."""

    @abstractmethod
    def log_likelihood(self, task: LocalTask) -> float:
        """Return C(Y, D) of Eq. 20: the (weighted) log-likelihood of the local models on their own rows."""


@dataclass(frozen=True)
class Start:
    """Coefficients of the models of a partition, as a warm start for those of a finer partition.

    Attributes
    ----------
    configurations : Configurations
        The parts.
    number : array of shape (n_parts, n_states)
        The row of `coef` for each part and state, -1 where there is none.
    coef : array of shape (n_groups, n_coefficients)
        In single precision, which is enough for a start.
    """

    configurations: Configurations
    number: npt.NDArray[np.int32]
    coef: npt.NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.configurations.observed.nbytes + self.number.nbytes + self.coef.nbytes


class WarmStart(LocalLearner):
    """A learner that can start from the models of a coarser partition with the same inputs."""

    @abstractmethod
    def start(self, task: LocalTask, start: Start | None) -> Start:
        """Fit the models of a task from a start; return the start for finer partitions."""

    @abstractmethod
    def log_likelihood_from(self, task: LocalTask, start: Start | None) -> tuple[float, Start]:
        """Return the log-likelihood of the models fitted from a start, and the start for finer partitions."""


class CrossValidated(WarmStart):
    """A learner that fits the models without each fold together, faster than one by one."""

    @abstractmethod
    def cross_validate(self, task: LocalTask, fold: Codes, start: Start | None) -> tuple[Floats, Start]:
        """Return log P(own state) of each row by the models fitted without its fold, and a start for finer ones.

        It is -inf if no other row of the part outside the fold has the same state.

        Parameters
        ----------
        task : LocalTask
        fold : array of shape (n,)
            The fold that holds each row out.
        start : Start or None
        """


class LeaveOneOut(LocalLearner):
    """A learner with leave-one-out predictions in closed form."""

    exact_leave_one_out: bool = True
    """Whether these are those of refitted models."""

    @abstractmethod
    def leave_one_out(self, task: LocalTask) -> Floats:
        """Return log P(own state) of each row by the models fitted without it.

        A row of weight 3 is three rows, of which one is left out: a weight of 1, or the whole weight if it is less. The
        result is -inf if no other row of the part has the same state.
        """


class OutOfBag(LocalLearner):
    """A learner of ensembles with out-of-bag predictions."""

    @abstractmethod
    def out_of_bag(self, task: LocalTask) -> tuple[Floats, Marks]:
        """Return log P(own state) of each row by the members that have not seen it, and whether there are any.

        The log-probability is -inf if no other row of the part has the same state, or all members have seen the row.
        """


class Regularised(LocalLearner):
    """A learner whose models have an L2 penalty with inverse weight C."""

    auto: bool
    """Whether C is chosen by held-out rows."""

    @abstractmethod
    def with_C(self, C: float) -> Self:
        """Return the same learner with another C."""
