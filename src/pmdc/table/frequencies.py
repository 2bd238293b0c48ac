"""How often the states of the class variables occur in the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmdc._support.arrays import Codes, Floats


@dataclass(frozen=True)
class Frequencies:
    """How often the states of the class variables occur, and their most frequent combination.

    Attributes
    ----------
    counts : tuple of K arrays of shape (n_states,)
        The number of rows in each state; with weights, their sum.
    outcome : tuple of K ints
        The codes of the most frequent outcome; among equally frequent ones, the first in the order of the states. If
        no row is complete, of the most frequent states.
    weight : float or None
        The number of rows; with weights, their sum. None in files of earlier versions, whose rows are complete.
    """

    counts: tuple[Floats, ...]
    outcome: tuple[int, ...]
    weight: float | None = None

    @classmethod
    def of(cls, codes: Codes, sizes: tuple[int, ...], weights: Floats | None = None) -> Frequencies:
        """Count the rows; unknown (code -1) and missing states (-2) are left out.

        Parameters
        ----------
        codes : array of shape (n, K)
        sizes : tuple of K ints
        weights : array of shape (n,), optional
        """
        weights = np.ones(len(codes)) if weights is None else weights
        counts = tuple(
            np.bincount(column[column >= 0], weights[column >= 0], size).astype(np.float64)
            for column, size in zip(codes.T, sizes, strict=True)
        )
        known = (codes >= 0).all(axis=1)
        if not known.any():
            return cls(counts, tuple(int(count.argmax()) for count in counts), float(weights.sum()))
        outcomes, number = np.unique(codes[known], axis=0, return_inverse=True)
        best = int(np.bincount(number.ravel(), weights[known]).argmax())
        return cls(counts, tuple(outcomes[best].tolist()), float(weights.sum()))

    @property
    def n_rows(self) -> float:
        """The number of rows; with weights, their sum."""
        return float(self.counts[0].sum()) if self.weight is None else self.weight
