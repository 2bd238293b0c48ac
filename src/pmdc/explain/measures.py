"""The losses of rows whose outcomes are known, for one class variable and for all together.

"log" judges probabilities. All other losses judge the prediction that is optimal for them (`pmdc.decisions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.checks import check_choice
from pmdc.decisions.decide import LOSSES, LossLike, choose, resolve
from pmdc.decisions.losses import HammingLoss, Loss
from pmdc.inference.base import BaseDistribution, ClassTable
from pmdc.inference.evidence import NO_EVIDENCE

LEAST_PROBABILITY = 1e-12
"""Smaller probabilities of a true state count as this, so that one row cannot decide alone."""


class Measure(ABC):
    """A loss of probabilities or predictions.

    In `truth`, codes of shape (n, K), a negative code is an unknown state. Losses that need it are meaningless.
    """

    has_variables: bool
    """Whether single class variables have losses."""

    @abstractmethod
    def by_variable(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        """Return the loss of each class variable in each row, shape (n, K); (n, 0) if they have none."""

    @abstractmethod
    def overall(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        """Return the loss of each row."""

    def usable(self, known: Marks) -> Marks:
        """Return which rows have a loss, given which states are known."""
        return np.asarray(known.all(axis=1))

    @abstractmethod
    def words(self, name: str) -> tuple[str, str]:
        """Return in words the loss of a class variable, and its unit."""


class LogLoss(Measure):
    """-log P(y_k | x), and -log P(y | x) overall; of the known states of a row, with the others summed out."""

    has_variables = True

    def by_variable(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        rows, codes = np.arange(len(truth)), np.maximum(truth, 0)
        prob = [marginal[rows, own] for marginal, own in zip(distribution.marginals(), codes.T, strict=True)]
        return -np.log(np.maximum(np.column_stack(prob), LEAST_PROBABILITY))

    def overall(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        least = (truth >= 0).sum(axis=1) * np.log(LEAST_PROBABILITY)
        return -np.maximum(distribution.log_prob_codes(np.maximum(truth, NO_EVIDENCE)), least)

    def usable(self, known: Marks) -> Marks:
        return np.asarray(known.any(axis=1))

    def words(self, name: str) -> tuple[str, str]:
        return f"the log-loss of {name}", " nats a row"


class DecisionLoss(Measure):
    """The loss of the prediction that is optimal for it."""

    def __init__(self, loss: Loss):
        self.loss = loss
        self.has_variables = type(loss).by_variable is not Loss.by_variable

    def by_variable(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        if not self.has_variables:
            return np.empty((len(truth), 0))
        predicted = choose(distribution, self.loss).codes
        found = self.loss.by_variable(distribution, np.maximum(truth, 0), predicted)
        assert found is not None
        return found

    def overall(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        predicted = choose(distribution, self.loss).codes
        return self.loss.values(distribution, np.maximum(truth, 0), predicted)

    def words(self, name: str) -> tuple[str, str]:
        return f"the cost of {name}", ""


class Mistakes(DecisionLoss):
    """The Hamming loss. A row with unknown states has the number of its mistakes, divided by `n_cells`.

    With the mean number of known states as `n_cells`, the mean over rows is that over all known states.
    """

    def __init__(self, n_cells: float):
        super().__init__(HammingLoss())
        self.n_cells = n_cells

    def overall(self, distribution: BaseDistribution, truth: Codes) -> Floats:
        return (self.by_variable(distribution, truth) * (truth >= 0)).sum(axis=1) / self.n_cells

    def usable(self, known: Marks) -> Marks:
        return np.asarray(known.any(axis=1))

    def words(self, name: str) -> tuple[str, str]:
        return f"the share of wrong predictions of {name}", ""


def measure_of(loss: LossLike, class_table: ClassTable, known: Marks, weights: Floats) -> Measure:
    """Return how a loss is measured on rows of which some states are known."""
    if not (isinstance(loss, Loss) or callable(loss)):
        check_choice("loss", loss, ("log", *LOSSES), ", or give a loss object or a function (y_true, y_pred)")
        if loss == "log":
            return LogLoss()
    resolved = resolve(loss)
    refuse_whole_batch(loss, resolved)
    resolved.check(class_table)
    if isinstance(resolved, HammingLoss):
        counts = known.sum(axis=1)
        return Mistakes(float(np.average(counts[counts > 0], weights=weights[counts > 0])) if counts.any() else 1.0)
    return DecisionLoss(resolved)


def refuse_whole_batch(loss: Any, resolved: Loss) -> None:
    if resolved.whole_batch:
        raise ValueError(
            f"loss={loss!r} is a loss of the whole batch, so single rows have none and there is no standard error over "
            "rows. Give a loss of single rows, such as 'f1_samples' or 'hamming'."
        )
