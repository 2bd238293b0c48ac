"""Inputs of local models: features and parents as one matrix of numbers."""

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
        """Return the scaling of each column to [0, 1] over the training rows, as in the paper's experiments."""
        least, most = (np.nanmin, np.nanmax) if np.isnan(X).any() else (np.min, np.max)
        low, high = least(X, axis=0), most(X, axis=0)
        return cls(low, np.where(high > low, high - low, 1.0))

    @classmethod
    def standard(cls, X: Floats, weights: Floats) -> Affine:
        """Return the scaling to weighted mean 0 and variance 1; a constant column keeps its scale."""
        largest = np.abs(X).max(axis=0, initial=0.0)
        largest[largest == 0] = 1.0
        Z = X / largest  # so that squares neither overflow nor vanish
        mean = weights @ Z / weights.sum()
        width = np.sqrt(weights @ (Z - mean) ** 2 / weights.sum())
        # Rounding of the mean must not make a constant column vary.
        noise = 10 * np.sqrt(len(X)) * np.finfo(float).eps * np.abs(mean)
        constant = (X[:1] == X).all(axis=0) | (width <= noise)
        return cls(np.where(constant, X[0], mean * largest), np.where(constant, 1.0, width * largest))


@dataclass(frozen=True)
class Indicators:
    """Preparation: discrete inputs as indicator columns after the continuous ones.

    With `nan`, missing numbers are NaN, for estimators that take it; else they are filled and have indicators.
    """

    sizes: Sequence[int]
    affine: Affine | None = None
    nan: bool = False

    def __call__(self, inputs: Features) -> Floats:
        inputs = inputs.with_nan() if self.nan else inputs
        X = np.hstack([inputs.continuous, one_hot(inputs.discrete, self.sizes)]) if self.sizes else inputs.continuous
        return X if self.affine is None else self.affine(X)


@dataclass(frozen=True)
class CodesBehind:
    """Preparation: the codes of discrete inputs after the continuous ones, without indicators of missing numbers."""

    affine: Affine

    def __call__(self, inputs: Features) -> Floats:
        return np.hstack([self.affine(inputs.continuous[:, : len(self.affine.shift)]), inputs.discrete])


@dataclass(frozen=True)
class Rotated:
    """A preparation followed by a rotation."""

    prepare: Indicators
    axes: Floats | None

    def __call__(self, inputs: Features) -> Floats:
        X = self.prepare(inputs)
        return X if self.axes is None else X @ self.axes


@dataclass(frozen=True)
class IndicatorsBefore:
    """Joins parents as scaled indicators before the other inputs.

    An unknown state is treated as the average of the states seen in fit.
    """

    sizes: tuple[int, ...]
    shares: Floats
    affine: Affine

    def __call__(self, X: Floats, codes: Codes) -> Floats:
        return np.hstack([self.affine(shares_or_one_hot(codes, self.sizes, self.shares)), X])


@dataclass(frozen=True)
class IndicatorsBehind:
    """Joins parents as indicators after the other inputs.

    An unknown state is treated as the average of the states seen in fit.
    """

    sizes: tuple[int, ...]
    shares: Floats

    def __call__(self, X: Floats, codes: Codes) -> Floats:
        return np.hstack([X, shares_or_one_hot(codes, self.sizes, self.shares)])


def codes_behind(X: Floats, codes: Codes) -> Floats:
    """Join parents as codes after the other inputs."""
    return np.hstack([X, codes])


Joining = Callable[[Floats, Codes], Floats]
"""Joins the codes of parents that are inputs with the other inputs."""


def principal_axes(X: Floats) -> Floats | None:
    """Return the principal axes of X by decreasing variance, at most as many as rows; None if there are too many.

    Fitting is faster along these axes.
    """
    n, d = X.shape
    if not d or min(n, d) > MAX_AXES:
        return None
    if n < d:  # with a penalty, coefficients are in the span of the rows
        return np.linalg.svd(X, full_matrices=False)[2].T.copy()
    return np.ascontiguousarray(np.linalg.eigh(X.T @ X)[1][:, ::-1])


MAX_AXES = 2000
"""Above this number of rows and columns, principal axes cost more than they save."""


def one_hot(codes: Codes, sizes: Sequence[int]) -> Floats:
    """Return indicator columns of the states of discrete columns; all 0 for an unknown state (-1)."""
    blocks: list[Array] = [codes[:, j, None] == np.arange(size) for j, size in enumerate(sizes)]
    return np.hstack([np.empty((len(codes), 0)), *blocks]).astype(float)


def shares_or_one_hot(codes: Codes, sizes: Sequence[int], shares: Floats) -> Floats:
    """Return indicator columns of the states of discrete columns; the shares for an unknown state (-1)."""
    indicators = one_hot(codes, sizes)
    if (codes < 0).any():
        unknown = np.repeat(codes < 0, sizes, axis=1)
        indicators[unknown] = np.broadcast_to(shares, indicators.shape)[unknown]
    return indicators


def state_shares(codes: Codes, sizes: Sequence[int], weights: Floats) -> Floats:
    """Return the weighted share of each state of discrete columns."""
    return np.asarray(weights @ one_hot(codes, sizes) / weights.sum(), dtype=float)
