"""Losses, and for each of them the prediction of least expected loss.

Here are those that decompose: over class variables, or over groups of them. What they need of a distribution are
marginals, or the most probable states of a group together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc.inference.base import BaseDistribution, ClassTable
from pmdc.inference.evidence import NO_EVIDENCE, variable_number


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
    """What a wrong prediction costs."""

    @property
    def whole_batch(self) -> bool:
        """Whether the loss is one of all rows together, which cannot be decided in parts."""
        return False

    @abstractmethod
    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """The prediction of least expected loss for each row."""

    def check(self, class_table: ClassTable) -> None:  # noqa: B027 (most fit any class variables)
        """Refuse what does not fit the class variables."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


class HammingLoss(Loss):
    """The share of class variables that are wrong."""

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Algorithm 5, Eq. 27: the most probable state of each class variable; of equals, the first."""
        marginals = distribution.marginals()
        codes = np.column_stack([marginal.argmax(axis=1) for marginal in marginals])
        return Choice.exact(codes, 1 - np.mean([marginal.max(axis=1) for marginal in marginals], axis=0))


class SubsetLoss(Loss):
    """Whether any class variable is wrong."""

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Algorithm 4, Eq. 28: the most probable outcome."""
        codes, log_prob = distribution.mode_codes()
        return Choice.exact(codes, -np.expm1(log_prob))


class CostLoss(Loss):
    """Costs for each class variable, added up.

    Parameters
    ----------
    costs : mapping from names of class variables
        To what a mistake costs: a number (whatever the mistake); a matrix, with a row for each true and a column for
        each predicted state, in the order of `classes_`; or "absolute" or "squared", the distance of the two states in
        that order, for ordered states. A class variable that is not named costs 1 when it is wrong.

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
        """The cost matrix of each class variable: rows are true states, columns predicted ones."""
        if not isinstance(self.costs, Mapping):
            raise TypeError(f"costs={self.costs!r} must be a mapping from class variables to what mistakes cost.")
        costs: list[tuple[Any, Any]] = [(name, 1.0) for name in class_table.names]
        for name, cost in self.costs.items():
            costs[variable_number(class_table, "costs", name)] = name, cost
        return [_cost_matrix(*cost, size) for cost, size in zip(costs, class_table.sizes, strict=True)]

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """Of each class variable the state of least expected cost; of equals, the first."""
        risks = [
            marginal @ matrix
            for marginal, matrix in zip(distribution.marginals(), self.matrices(distribution.class_table), strict=True)
        ]
        if distribution.evidence is not None:  # what is known is predicted as it is, whatever that costs
            for known, risk in zip(distribution.evidence.T, risks, strict=True):
                risk[(known[:, None] != NO_EVIDENCE) & (known[:, None] != np.arange(risk.shape[1]))] = np.inf
        codes = np.column_stack([risk.argmin(axis=1) for risk in risks])
        expected = np.sum([risk.min(axis=1) for risk in risks], axis=0)
        return Choice(codes, expected, np.zeros(len(codes)), np.ones(len(codes), dtype=bool))


def _cost_matrix(name: Any, cost: Any, size: int) -> Floats:
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(float)
    if isinstance(cost, str):
        if cost not in ("absolute", "squared"):
            raise ValueError(f"costs[{name!r}]={cost!r}: give 'absolute', 'squared', a number or a matrix.")
        return distance if cost == "absolute" else distance**2
    try:
        matrix = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"costs[{name!r}]={cost!r}: give 'absolute', 'squared', a number or a matrix.") from None
    if not np.isfinite(matrix).all():
        raise ValueError(f"costs[{name!r}] holds {matrix[~np.isfinite(matrix)][0]}: costs must be finite numbers.")
    if matrix.ndim == 0:
        if matrix < 0:
            raise ValueError(f"costs[{name!r}]={cost!r}: a mistake must not cost less than nothing.")
        return np.where(distance > 0, matrix, 0.0)
    if matrix.shape != (size, size):
        raise ValueError(
            f"costs[{name!r}] has shape {matrix.shape}; for {size} states it must be {(size, size)}: a row for each "
            "true and a column for each predicted state."
        )
    return matrix


class BlockLoss(Loss):
    """The share of groups of class variables that are wrong; a group is wrong if any of its members is.

    Parameters
    ----------
    blocks : list of lists of names
        Without a class variable in common. Each class variable that is in none is a group of its own: so
        ``BlockLoss([])`` is the Hamming loss, and one group of all is the subset loss.
    weights : list of float, optional
        How much each of the given groups counts; those that are not given count 1. The loss is the weighted mean.

    Examples
    --------
    >>> from pmdc.decisions import BlockLoss
    >>> loss = BlockLoss([["disease", "stage"], ["treatment"]])
    """

    def __init__(self, blocks: Sequence[Sequence[str]], weights: Sequence[float] | None = None):
        self.blocks = blocks
        self.weights = weights

    def check(self, class_table: ClassTable) -> None:
        self.groups(class_table)

    def groups(self, class_table: ClassTable) -> tuple[list[list[int]], Floats]:
        """The numbers of the class variables of each group, and how much it counts."""
        names = list(class_table.names)
        if isinstance(self.blocks, str) or not isinstance(self.blocks, Sequence):
            raise TypeError(f"blocks={self.blocks!r} must be a list of lists of class variables.")
        groups: list[list[int]] = []
        for block in self.blocks:
            if isinstance(block, str) or not isinstance(block, Sequence) or not len(block):
                raise ValueError(f"blocks holds {block!r}: each block is a list of at least one class variable.")
            groups.append([variable_number(class_table, "blocks", name) for name in block])
        members = [k for group in groups for k in group]
        for k in members:
            if members.count(k) > 1:
                raise ValueError(f"blocks names {names[k]!r} twice: a class variable can be in one block only.")
        weights = np.ones(len(groups)) if self.weights is None else np.asarray(self.weights, dtype=float)
        if weights.shape != (len(groups),) or not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"weights={self.weights!r}: give one number for each of the {len(groups)} blocks, not negative."
            )
        alone = [[k] for k in range(len(names)) if k not in members]
        weights = np.concatenate([weights, np.ones(len(alone))])
        if not weights.any():
            raise ValueError(f"weights={self.weights!r}: at least one block must count.")
        return groups + alone, weights / weights.sum()

    def choose(self, distribution: BaseDistribution, random: np.random.RandomState) -> Choice:
        """The most probable states of each group together (marginal MAP)."""
        groups, weights = self.groups(distribution.class_table)
        codes = np.empty((len(distribution), len(distribution.class_table.sizes)), dtype=np.int64)
        expected = np.zeros(len(distribution))
        marginals = distribution.marginals() if any(len(group) == 1 for group in groups) else []
        for group, weight in zip(groups, weights, strict=True):
            if len(group) == 1:
                marginal = marginals[group[0]]
                codes[:, group[0]] = marginal.argmax(axis=1)
                expected += weight * (1 - marginal.max(axis=1))
            else:
                codes[:, group], log_prob = distribution.group_mode_codes(group)
                expected -= weight * np.expm1(log_prob)
        return Choice.exact(codes, expected)
