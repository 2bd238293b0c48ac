"""Losses that decompose over class variables or blocks of them, with their optimal predictions.

They need the marginals of a distribution, or the most probable joint states of a block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc.inference.base import BaseDistribution, ClassTable, all_outcomes
from pmdc.inference.evidence import NO_EVIDENCE, variable_number

_MAX_OUTCOMES = 2**12
"""Up to this many outcomes, the expected loss of a prediction is a sum over all of them."""
_MAX_CELLS = 2**22
"""Largest number of values in a table over outcomes held at once."""


class Choice(NamedTuple):
    """A decision in codes."""

    codes: Codes
    expected_loss: Floats
    standard_error: Floats
    proved: npt.NDArray[np.bool_]

    @classmethod
    def exact(cls, codes: Codes, expected_loss: Floats) -> Choice:
        n_rows = len(codes)
        return cls(codes, np.maximum(expected_loss, 0.0), np.zeros(n_rows), np.ones(n_rows, dtype=bool))


class Loss(ABC):
    """Base class of losses."""

    @property
    def whole_batch(self) -> bool:
        """Whether the loss is defined on the whole batch, so that rows cannot be decided separately."""
        return False

    @abstractmethod
    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Return the prediction of least expected loss for each row."""

    def check(self, class_table: ClassTable) -> None:  # noqa: B027 (most losses fit any class variables)
        """Raise an error if the loss does not fit the class variables."""

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        """Return the loss of each prediction whose true outcome is known; both are codes of shape (n, K)."""
        raise TypeError(
            f"loss={self!r} does not say what a prediction costs if the truth is known: give it a `values`."
        )

    def by_variable(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats | None:
        """Return the loss of each class variable, shape (n, K); None if the loss has none for single ones."""
        return None

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        """Return the exact expected loss of any prediction for each row, codes of shape (n_rows, K).

        By default it is a sum over all outcomes; losses with a formula override it.
        """
        if distribution.n_outcomes > _MAX_OUTCOMES:
            raise ValueError(
                f"loss={self!r}: the expected loss of a given prediction is a sum over all outcomes, and there are "
                f"{distribution.n_outcomes:.3g} of them (at most {_MAX_OUTCOMES}). Choose a loss with a formula, such "
                "as 'hamming', 'subset' or a CostLoss."
            )
        outcomes = all_outcomes(distribution.class_table.sizes)
        expected = np.empty(len(distribution))
        step = max(1, _MAX_CELLS // (len(outcomes) * outcomes.shape[1]))
        for start in range(0, len(distribution), step):
            rows = slice(start, start + step)
            some, place = np.unique(predicted[rows], axis=0, return_inverse=True)
            pairs = np.tile(outcomes, (len(some), 1)), np.repeat(some, len(outcomes), axis=0)
            losses = self.values(distribution, *pairs).reshape(len(some), len(outcomes))
            prob = np.exp(distribution.rows(rows).enumerate().log_p)
            expected[rows] = (prob * losses[place.ravel()]).sum(axis=1)
        return expected

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


class HammingLoss(Loss):
    """The share of wrong class variables."""

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Choose the most probable state of each class variable, the first of ties (Algorithm 5, Eq. 27)."""
        marginals = distribution.marginals()
        codes = np.column_stack([marginal.argmax(axis=1) for marginal in marginals])
        return Choice.exact(codes, 1 - np.mean([marginal.max(axis=1) for marginal in marginals], axis=0))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return (true != predicted).mean(axis=1)

    def by_variable(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return (true != predicted).astype(float)

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        return 1 - np.mean(_prob_of_states(distribution, predicted), axis=0)


def _prob_of_states(distribution: BaseDistribution, codes: Codes) -> list[Floats]:
    """Return the marginal probabilities of one state of each class variable."""
    rows = np.arange(len(codes))
    return [marginal[rows, own] for marginal, own in zip(distribution.marginals(), codes.T, strict=True)]


class SubsetLoss(Loss):
    """Whether any class variable is wrong."""

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Choose the most probable outcome (Algorithm 4, Eq. 28)."""
        codes, log_prob = distribution.mode_codes()
        return Choice.exact(codes, -np.expm1(log_prob))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return (true != predicted).any(axis=1).astype(float)

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        return -np.expm1(distribution.log_prob_codes(predicted))


class CostLoss(Loss):
    """The sum of the costs of wrong class variables.

    Parameters
    ----------
    costs : mapping from names of class variables to costs
        A cost is a number, the same for all mistakes; a matrix with a row for each true and a column for each predicted
        state, in the order of `classes_`; or, for ordered states, "absolute" or "squared", the distance of the two
        states in this order. Class variables that are not named cost 1 if they are wrong.

    Examples
    --------
    >>> from pmdc.decisions import CostLoss
    >>> loss = CostLoss({"stage": "absolute", "sick": [[0, 1], [10, 0]]})
    """

    def __init__(self, costs: Mapping[str, Any]):
        self.costs = costs

    def check(self, class_table: ClassTable) -> None:
        self.matrices(class_table)

    def matrices(self, class_table: ClassTable) -> list[Floats]:
        """Return the cost matrix of each class variable: rows are true states, columns predicted states."""
        if not isinstance(self.costs, Mapping):
            raise TypeError(f"costs={self.costs!r} must be a mapping from names of class variables to costs.")
        costs: list[tuple[Any, Any]] = [(name, 1.0) for name in class_table.names]
        for name, cost in self.costs.items():
            costs[variable_number(class_table, "costs", name)] = name, cost
        return [_cost_matrix(*cost, size) for cost, size in zip(costs, class_table.sizes, strict=True)]

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Choose the state of least expected cost for each class variable, the first of ties."""
        risks = [
            marginal @ matrix
            for marginal, matrix in zip(distribution.marginals(), self.matrices(distribution.class_table), strict=True)
        ]
        if distribution.evidence is not None:  # known states are always predicted
            for known, risk in zip(distribution.evidence.T, risks, strict=True):
                risk[(known[:, None] != NO_EVIDENCE) & (known[:, None] != np.arange(risk.shape[1]))] = np.inf
        codes = np.column_stack([risk.argmin(axis=1) for risk in risks])
        expected = np.sum([risk.min(axis=1) for risk in risks], axis=0)
        return Choice(codes, expected, np.zeros(len(codes)), np.ones(len(codes), dtype=bool))

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return self.by_variable(distribution, true, predicted).sum(axis=1)

    def by_variable(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        matrices = self.matrices(distribution.class_table)
        return np.column_stack([matrix[true[:, k], predicted[:, k]] for k, matrix in enumerate(matrices)])

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        matrices = self.matrices(distribution.class_table)
        costs = [
            (marginal * matrix[:, own].T).sum(axis=1)
            for marginal, matrix, own in zip(distribution.marginals(), matrices, predicted.T, strict=True)
        ]
        return np.asarray(np.sum(costs, axis=0))


def _cost_matrix(name: Any, cost: Any, size: int) -> Floats:
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    if isinstance(cost, str):
        if cost not in ("absolute", "squared"):
            raise ValueError(f"costs[{name!r}]={cost!r} must be 'absolute', 'squared', a number or a matrix.")
        return distance if cost == "absolute" else distance**2
    try:
        matrix = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"costs[{name!r}]={cost!r} must be 'absolute', 'squared', a number or a matrix.") from None
    if not np.isfinite(matrix).all():
        raise ValueError(f"costs[{name!r}] has {matrix[~np.isfinite(matrix)][0]}: costs must be finite numbers.")
    if matrix.ndim == 0:
        if matrix < 0:
            raise ValueError(f"costs[{name!r}]={cost!r} must not be negative.")
        return np.where(distance > 0, matrix, 0.0)
    if matrix.shape != (size, size):
        raise ValueError(
            f"costs[{name!r}] has shape {matrix.shape}; for {size} states it must be {(size, size)}, a row for each "
            "true and a column for each predicted state."
        )
    return matrix


class BalancedLoss(CostLoss):
    """The mean of the wrong class variables, weighted by the inverse frequencies of their true states in training.

    A wrong class variable costs ``N / (r n_s)``, where its true state s has n_s of the N training rows and r is the
    number of states with training rows. So the mean loss over the training rows is one minus the balanced accuracy
    (the mean recall of the states), averaged over class variables, and the best prediction is the state with the
    greatest ratio of probability to frequency. The loss of a row exceeds one if its true states are rare.

    A declared state without training rows has no recall, so it costs nothing to miss and is predicted only if it is
    known. If no state of a class variable is known in training, each mistake costs one, as in the Hamming loss.
    """

    def __init__(self) -> None:
        """The frequencies are those of the class table (`pmdc.table.frequencies.Frequencies`)."""

    def matrices(self, class_table: ClassTable) -> list[Floats]:
        """Return the cost matrix of each class variable, divided by the number of class variables."""
        frequencies = getattr(class_table, "frequencies", None)
        if frequencies is None:
            raise ValueError(
                "loss='balanced' needs the frequencies of the states in the training rows, and these class variables "
                "have none: use predict_joint of a fitted classifier (fit it again if it was saved by an early "
                "version), or give a CostLoss with your own costs, such as 1 / frequency of the true state."
            )
        weights = [balanced_weights(counts) for counts in frequencies.counts]
        return [np.where(np.eye(len(own)) > 0, 0.0, own[:, None]) / len(weights) for own in weights]

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return self.by_variable(distribution, true, predicted).mean(axis=1)

    def by_variable(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        return true.shape[1] * super().by_variable(distribution, true, predicted)


def balanced_weights(counts: Floats) -> Floats:
    """Return the cost of missing each state of a class variable: its inverse frequency, divided by their number."""
    if not counts.any():
        return np.ones(len(counts))
    return np.divide(counts.sum() / np.count_nonzero(counts), counts, out=np.zeros(len(counts)), where=counts > 0)


class BlockLoss(Loss):
    """The share of wrong blocks of class variables; a block is wrong if any of its members is wrong.

    Parameters
    ----------
    blocks : list of lists of names
        Without a class variable in common. Each class variable that is in no block is a block of its own:
        ``BlockLoss([])`` is the Hamming loss, and one block of all class variables is the subset loss.
    weights : list of float, optional
        The weight of each given block; the other blocks have weight 1. The loss is the weighted mean.

    Examples
    --------
    >>> from pmdc.decisions import BlockLoss
    >>> loss = BlockLoss([["disease", "stage"], ["treatment"]])
    """

    def __init__(self, blocks: Sequence[Sequence[str]], weights: Sequence[float] | None = None):
        self.blocks = blocks
        self.weights = weights

    def check(self, class_table: ClassTable) -> None:
        self.members(class_table)

    def members(self, class_table: ClassTable) -> tuple[list[list[int]], Floats]:
        """Return the indices of the class variables of each block, and the weights of the blocks."""
        names = list(class_table.names)
        if isinstance(self.blocks, str) or not isinstance(self.blocks, Sequence):
            raise TypeError(f"blocks={self.blocks!r} must be a list of lists of class variables.")
        blocks: list[list[int]] = []
        for block in self.blocks:
            if isinstance(block, str) or not isinstance(block, Sequence) or not len(block):
                raise ValueError(f"blocks has {block!r}: each block must be a list of at least one class variable.")
            blocks.append([variable_number(class_table, "blocks", name) for name in block])
        members = [k for block in blocks for k in block]
        for k in members:
            if members.count(k) > 1:
                raise ValueError(f"blocks names {names[k]!r} twice: a class variable can be in one block only.")
        weights = np.ones(len(blocks)) if self.weights is None else np.asarray(self.weights, dtype=float)
        if weights.shape != (len(blocks),) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"weights={self.weights!r} must be one non-negative number for each of the {len(blocks)} blocks."
            )
        alone = [[k] for k in range(len(names)) if k not in members]
        weights = np.concatenate([weights, np.ones(len(alone))])
        if not weights.any():
            raise ValueError(f"weights={self.weights!r}: at least one block must have a positive weight.")
        return blocks + alone, weights / weights.sum()

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Choose the most probable joint states of each block (marginal MAP)."""
        blocks, weights = self.members(distribution.class_table)
        codes = np.empty((len(distribution), len(distribution.class_table.sizes)), dtype=np.int64)
        expected = np.zeros(len(distribution))
        marginals = distribution.marginals() if any(len(block) == 1 for block in blocks) else []
        for block, weight in zip(blocks, weights, strict=True):
            if len(block) == 1:
                marginal = marginals[block[0]]
                codes[:, block[0]] = marginal.argmax(axis=1)
                expected += weight * (1 - marginal.max(axis=1))
            else:
                codes[:, block], log_prob = distribution.group_mode_codes(block)
                expected -= weight * np.expm1(log_prob)
        return Choice.exact(codes, expected)

    def values(self, distribution: BaseDistribution, true: Codes, predicted: Codes) -> Floats:
        blocks, weights = self.members(distribution.class_table)
        wrong = np.column_stack([(true[:, block] != predicted[:, block]).any(axis=1) for block in blocks])
        return wrong @ weights

    def expected(self, distribution: BaseDistribution, predicted: Codes) -> Floats:
        expected = np.zeros(len(distribution))
        for block, weight in zip(*self.members(distribution.class_table), strict=True):
            codes = np.full_like(predicted, NO_EVIDENCE)  # the others are summed out
            codes[:, block] = predicted[:, block]
            expected -= weight * np.expm1(distribution.log_prob_codes(codes))
        return expected
