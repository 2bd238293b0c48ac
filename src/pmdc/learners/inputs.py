"""What local models see of a row: one matrix of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pmdc._support.arrays import Array, Codes, Floats
from pmdc.table.features import Features


@dataclass(frozen=True)
class Affine:
    """Columns shifted and scaled: (X - shift) / width."""

    shift: Floats
    width: Floats

    def __call__(self, X: Floats) -> Floats:
        return (X - self.shift) / self.width

    @classmethod
    def identity(cls, n_columns: int) -> Affine:
        return cls(np.zeros(n_columns), np.ones(n_columns))

    @classmethod
    def min_max(cls, X: Floats) -> Affine:
        """Each column to [0, 1] over the training rows: the preparation of the paper's experiments."""
        low, high = X.min(axis=0), X.max(axis=0)
        return cls(low, np.where(high > low, high - low, 1.0))

    @classmethod
    def standard(cls, X: Floats, weights: Floats) -> Affine:
        """Each column to (weighted) mean 0 and variance 1 over the training rows; a constant column keeps its scale."""
        largest = np.abs(X).max(axis=0, initial=0.0)
        largest[largest == 0] = 1.0
        Z = X / largest  # so that squares neither overflow nor vanish
        mean = weights @ Z / weights.sum()
        width = np.sqrt(weights @ (Z - mean) ** 2 / weights.sum())
        # What rounding makes of the mean of a constant column is no variation.
        noise = 10 * np.sqrt(len(X)) * np.finfo(float).eps * np.abs(mean)
        constant = (X[:1] == X).all(axis=0) | (width <= noise)
        return cls(np.where(constant, X[0], mean * largest), np.where(constant, 1.0, width * largest))


@dataclass(frozen=True)
class Indicators:
    """The preparation for models of numbers: discrete inputs as indicator columns behind the continuous ones."""

    sizes: Sequence[int]
    affine: Affine | None = None

    def __call__(self, inputs: Features) -> Floats:
        X = np.hstack([inputs.continuous, one_hot(inputs.discrete, self.sizes)]) if self.sizes else inputs.continuous
        return X if self.affine is None else self.affine(X)


@dataclass(frozen=True)
class CodesBehind:
    """The preparation for models that know discrete inputs: their codes, as numbers, behind the continuous ones."""

    affine: Affine

    def __call__(self, inputs: Features) -> Floats:
        return np.hstack([self.affine(inputs.continuous), inputs.discrete])


@dataclass(frozen=True)
class Rotated:
    """Another preparation, followed by a rotation."""

    prepare: Indicators
    axes: Floats | None

    def __call__(self, inputs: Features) -> Floats:
        X = self.prepare(inputs)
        return X if self.axes is None else X @ self.axes


@dataclass(frozen=True)
class IndicatorsBefore:
    """Parents that are inputs, as scaled indicators before the inputs that are there already.

    An unknown state counts as the average of the states seen in fit.
    """

    sizes: tuple[int, ...]
    shares: Floats
    affine: Affine

    def __call__(self, X: Floats, codes: Codes) -> Floats:
        return np.hstack([self.affine(shares_or_one_hot(codes, self.sizes, self.shares)), X])


@dataclass(frozen=True)
class IndicatorsBehind:
    """Parents that are inputs, as indicators behind the inputs that are there already.

    An unknown state counts as the average of the states seen in fit.
    """

    sizes: tuple[int, ...]
    shares: Floats

    def __call__(self, X: Floats, codes: Codes) -> Floats:
        return np.hstack([X, shares_or_one_hot(codes, self.sizes, self.shares)])


def codes_behind(X: Floats, codes: Codes) -> Floats:
    """Parents that are inputs, as codes behind the inputs that are there already."""
    return np.hstack([X, codes])


Joining = Callable[[Floats, Codes], Floats]
"""Puts the codes of parents that are inputs beside the inputs that are there already."""


def principal_axes(X: Floats) -> Floats | None:
    """The axes of the rows of X, longest first: a rotation, or fewer columns where there are fewer rows than columns.

    None where finding them would cost more than it saves.
    """
    n, d = X.shape
    if not d or min(n, d) > _MOST_AXES:
        return None
    if n < d:  # coefficients outside of the span of the rows are zero under a penalty
        return np.linalg.svd(X, full_matrices=False)[2].T.copy()
    return np.ascontiguousarray(np.linalg.eigh(X.T @ X)[1][:, ::-1])


_MOST_AXES = 2000


def one_hot(codes: Codes, sizes: Sequence[int]) -> Floats:
    """Indicator columns of the states of discrete columns; an unknown state (-1) is none of them."""
    blocks: list[Array] = [codes[:, j, None] == np.arange(size) for j, size in enumerate(sizes)]
    return np.hstack([np.empty((len(codes), 0)), *blocks]).astype(float)


def shares_or_one_hot(codes: Codes, sizes: Sequence[int], shares: Floats) -> Floats:
    """Indicator columns of the states of discrete columns; an unknown state (-1) has the shares of all states."""
    indicators = one_hot(codes, sizes)
    if (codes < 0).any():
        unknown = np.repeat(codes < 0, sizes, axis=1)
        indicators[unknown] = np.broadcast_to(shares, indicators.shape)[unknown]
    return indicators


def state_shares(codes: Codes, sizes: Sequence[int], weights: Floats) -> Floats:
    """The (weighted) share of each state of discrete columns."""
    return np.asarray(weights @ one_hot(codes, sizes) / weights.sum(), dtype=float)
