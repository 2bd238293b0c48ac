"""What a learner of local models does, and what it may do beyond that.

A `LocalLearner` knows the inputs of the training rows: the continuous features in a `GBNC`, discrete ones too in the
baselines. Given a `LocalTask` it fits one model P(Y | pi, x) for each part (Eq. 15 of the paper) and returns either
their log-likelihood (all that the search keeps: scores first, models last) or the `LocalModels` themselves.

What only some learners can do is a class of its own here; a learner that can inherits from it (`registry` lists which).
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
"""Brings the inputs of any rows into the form that the models use."""

MAX_STACKED = 2**22
"""The most numbers that `LocalModels.log_table` stacks in one call (32 MiB)."""


class LocalModels(ABC):
    """The fitted local models of one class variable, one for each observed configuration."""

    @abstractmethod
    def log_proba(self, X: Floats, part: Codes, input_codes: Codes | None = None) -> Floats:
        """Return log P(Y | pi, x) for prepared rows, each under the model of its part, or of its parts.

        Parts of shape (n,) or (n, n_columns) give an answer of the same shape with an axis for the states behind.
        The codes of the parents that are inputs have shape (n, n_inputs), -1 where they are unknown.
        A state that has no row in the part, and every state where the part is -1, gets -inf.
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
        """Whether the numbers fit together: those of a file may not, and compiled loops do not look twice."""


class LocalLearner(ABC):
    """Fits local models on the inputs of the training rows."""

    estimator: object
    """What the user gave, for messages."""
    prepare: Preparation
    X: Floats
    sample_weight: Floats
    releases_gil: bool = False
    """Whether almost all work is in compiled kernels, so that threads are cheaper than processes."""

    @abstractmethod
    def on(self, rows: Codes) -> Self:
        """Return the same learner with fewer training rows; how inputs are prepared stays as it is."""

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


C_PATH = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
"""What ``C="auto"`` chooses from, as scikit-learn's own search."""


def best_C(score: Callable[[float, Start | None], tuple[float, Start | None]]) -> tuple[float, float]:
    """Return the greatest score and its C, from the strongest penalty to the weakest.

    Each model starts from the one before; the path ends when two in a row are worse than the best.

    Parameters
    ----------
    score : function (C, start) -> score, start for the next
    """
    best, chosen, worse, start = -np.inf, C_PATH[0], 0, None
    for C in C_PATH:
        value, start = score(C, start)
        if value > best:
            best, chosen, worse = value, C, 0
        else:
            worse += 1
        if worse == 2:
            break
    return best, chosen
