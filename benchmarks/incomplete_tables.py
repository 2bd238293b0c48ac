"""Tables for `incomplete.py`: training and test rows, and how cells are removed from them or made wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pandas as pd

from pmdc.datasets import load, make_network

GENERATED = "generated"
"""The name of tables of `make_network`; their splits are seeds."""

TEST_ROWS, GENERATED_TEST_ROWS = 1000, 2000

Mask = npt.NDArray[np.bool_]
read = lru_cache(maxsize=2)(load)


@dataclass(frozen=True)
class Split:
    """Training and test rows of one fold of a table, or of one generated table."""

    X: pd.DataFrame
    Y: pd.DataFrame
    X_test: pd.DataFrame
    Y_test: pd.DataFrame

    def rated(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the test rows without those that have a state of which there is no training row."""
        seen = np.column_stack([self.Y_test[name].isin(self.Y[name].dropna().unique()) for name in self.Y])
        return self.X_test[seen.all(axis=1)], self.Y_test[seen.all(axis=1)]


def rng_of(*words: Any) -> np.random.Generator:
    """Return a generator that is seeded by words and numbers."""
    return np.random.default_rng([crc32(str(word).encode()) for word in words])


def make_split(table: str, number: int, rows: int, gaps: str = "none", share: float = 0.0) -> Split:
    """Return a fold of a table with at most `rows` training rows, or a generated table with so many.

    Parameters
    ----------
    table : str
        "waterquality:4" is the table with its first four class variables only.
    number : int
        The fold, or the seed of a generated table: 4, 5 or 6 class variables of three states in turn, each with one or
        two class variables as parents (but one, the first of the order).
    gaps, share : str, float
        The kind and share of the cells that `remove_features` removes from training and test rows.
    """
    if table == GENERATED:
        data = make_network(rows + GENERATED_TEST_ROWS, n_class_variables=4 + number % 3, random_state=number)
        train, test = np.arange(rows), np.arange(rows, rows + GENERATED_TEST_ROWS)
    else:
        data = read(table.partition(":")[0])
        test = data.folds[number]
        train = np.setdiff1d(np.arange(len(data.X)), test)
        train, test = sample(train, rows, table, number, "train"), sample(test, TEST_ROWS, table, number, "test")
    X = remove_features(data.X, gaps, share, rng_of(table, gaps, share, number))
    Y = data.Y.iloc[:, : n_class_variables(table)]
    return Split(X.iloc[train], Y.iloc[train], X.iloc[test], Y.iloc[test])


def n_class_variables(table: str) -> int | None:
    """Return the number of class variables that a table's name asks for; None is all."""
    number = table.partition(":")[2]
    return int(number) if number else None


def sample(rows: npt.NDArray[np.int64], size: int, *seed: Any) -> npt.NDArray[np.int64]:
    """Return at most `size` of the rows, drawn at random."""
    return rows if len(rows) <= size else np.sort(rng_of(*seed).permutation(rows)[:size])


def some_cells(shape: tuple[int, ...], share: float, rng: np.random.Generator) -> Mask:
    """Return a mask of this share of the cells, drawn completely at random."""
    chosen = np.zeros(int(np.prod(shape)), dtype=bool)
    chosen[rng.permutation(len(chosen))[: round(share * len(chosen))]] = True
    return chosen.reshape(shape)


def remove_states(Y: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Remove a share of the cells completely at random. Columns keep all their categories."""
    return Y.mask(some_cells(Y.shape, share, rng))


def remove_features(X: pd.DataFrame, gaps: str, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Remove a share of the cells of X.

    Parameters
    ----------
    gaps : {"none", "own", "at random", "not at random"}
        "none" and "own" remove nothing, "at random" removes completely at random. "not at random": a number is missing
        with probability ``2 share rank / n`` (at most 1), so larger ones are likelier to be missing; of a discrete
        feature, the most frequent value is three times as likely to be missing as the others.
    """
    if gaps in ("none", "own"):
        return X
    if gaps == "at random":
        return X.mask(some_cells(X.shape, share, rng))
    return X.mask(rng.random(X.shape) < np.column_stack([_chance(X[name], share) for name in X]))


def _chance(column: pd.Series, share: float) -> npt.NDArray[np.float64]:
    """Return the probability that each value is missing; its mean is `share`."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        frequent = (column == column.mode()[0]).to_numpy()
        return np.where(frequent, 3, 1) * share / (1 + 2 * frequent.mean())
    return np.minimum(1.0, 2 * share * column.rank(pct=True).to_numpy())


def flip_states(Y: pd.DataFrame, share: float, rng: np.random.Generator) -> tuple[pd.DataFrame, Mask]:
    """Replace a share of the cells by another category of their column, each with equal probability."""
    flipped, wrong = some_cells(Y.shape, share, rng), {}
    for k, name in enumerate(Y):
        states, codes = Y[name].cat.categories, Y[name].cat.codes.to_numpy().astype(np.int64)
        step = rng.integers(1, len(states), size=len(Y))
        wrong[name] = pd.Categorical.from_codes(np.where(flipped[:, k], (codes + step) % len(states), codes), states)
    return pd.DataFrame(wrong, index=Y.index), flipped
