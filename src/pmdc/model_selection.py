"""Cross-validation folds stratified by several class variables: `MultiStratifiedKFold`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state, indexable

from pmdc._support.arrays import Codes
from pmdc._support.checks import check_count
from pmdc.table.classes import ClassTable
from pmdc.table.columns import show

__all__ = ["MultiStratifiedKFold"]


class MultiStratifiedKFold(BaseCrossValidator):
    """K-fold cross-validator that balances the states of all class variables over the folds.

    Every row is in exactly one test fold, and the sizes of test folds differ by at most one.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, at least 2.
    shuffle : bool, default=False
        Whether to process the rows in random order. The folds are balanced in both cases.
    random_state : int, RandomState or None, default=None
        The order of the rows with ``shuffle=True``; pass an integer for reproducible folds.

    Notes
    -----
    This is iterative stratification (Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data",
    2011) for class variables with any number of states. The state with the fewest remaining rows is distributed first,
    because it is the hardest to balance: each of its rows goes to the fold with the fewest rows of this state. Ties go
    to the fold with the smallest shares of the other states of the row and of its pairs of states, relative to their
    numbers in the whole table (compare the second-order variant of Szymański and Kajdanowicz, 2017). This is repeated
    with the next state. A full fold takes no more rows.

    Memory grows with ``n_splits`` times the squared total number of states, time with the number of rows times the
    squared number of class variables.

    Examples
    --------
    >>> import numpy as np
    >>> from pmdc.model_selection import MultiStratifiedKFold
    >>> Y = np.array([["low", "no"], ["low", "no"], ["low", "yes"], ["high", "no"], ["high", "no"], ["high", "yes"]])
    >>> for train, test in MultiStratifiedKFold(2).split(Y, Y):
    ...     print(test, Y[test, 0], Y[test, 1])
    [1 2 3] ['low' 'low' 'high'] ['no' 'yes' 'no']
    [0 4 5] ['low' 'high' 'high'] ['no' 'no' 'yes']
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None):
        check_count("n_splits", n_splits, 2)
        if not isinstance(shuffle, bool):
            raise ValueError(f"shuffle={shuffle!r} must be True or False.")
        if random_state is not None and not shuffle:
            raise ValueError(
                f"random_state={random_state!r} has no effect with shuffle=False: set shuffle=True or omit it."
            )
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are ignored."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Codes, Codes]]:
        """Yield the training and test rows of each fold.

        Parameters
        ----------
        X : table with as many rows as y
            Only the number of rows is used.
        y : DataFrame, 2-D array, list of rows, or 1-D array for a single class variable
            The states of the class variables; missing is balanced like a state.
        groups : ignored
            With a warning.

        Yields
        ------
        train, test : arrays of int
            Indices of rows, in ascending order.
        """
        if y is None:
            raise ValueError("y is None: MultiStratifiedKFold needs the class variables to balance the folds.")
        if groups is not None:
            warnings.warn("groups is ignored by MultiStratifiedKFold.", UserWarning, stacklevel=2)
        indexable(X, y)  # raises an error for different numbers of rows
        table, codes = ClassTable.fit_encode(y, type(self).__name__, missing="mark")
        if self.n_splits > len(codes):
            raise ValueError(
                f"n_splits={self.n_splits} is more than the {len(codes)} row(s) of y: use fewer folds or more rows."
            )
        _warn_rare(table, codes, self.n_splits)
        rows = np.arange(len(codes))
        if self.shuffle:
            rows = check_random_state(self.random_state).permutation(rows)
        fold = np.empty_like(rows)
        sizes = tuple(size + 1 for size in table.sizes) if (codes < 0).any() else table.sizes
        fold[rows] = _assign_folds(np.where(codes < 0, table.sizes, codes)[rows], sizes, self.n_splits)
        for i in range(self.n_splits):
            yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


def _warn_rare(table: ClassTable, codes: Codes, n_splits: int) -> None:
    """Warn once of the states that cannot be in every fold."""
    rare = [
        (count, f"class variable {name!r}, state {show(state)}")
        for name, states, column in zip(table.names, table.states, codes.T, strict=True)
        for state, count in zip(states, np.bincount(column[column >= 0], minlength=len(states)).tolist(), strict=True)
        if 0 < count < n_splits  # a state without rows is only declared
    ]
    if rare:
        count, where = min(rare)
        others = f", as have {len(rare) - 1} other state(s)" if len(rare) > 1 else ""
        warnings.warn(
            f"y, {where} has fewer rows ({count}) than n_splits={n_splits}{others}, so it is missing in some test "
            "folds. Use fewer folds or merge rare states.",
            UserWarning,
            stacklevel=3,
        )


def _assign_folds(codes: Codes, sizes: tuple[int, ...], n_splits: int) -> Codes:
    """Return the fold of each row, by iterative stratification."""
    n_rows, n_variables = codes.shape
    states = codes + np.cumsum((0, *sizes[:-1]))  # one numbering for the states of all class variables
    n_states = sum(sizes)
    indicators = csr_array(
        (np.ones(states.size), states.ravel(), np.arange(0, states.size + 1, n_variables)), shape=(n_rows, n_states)
    )
    # The number of rows with each pair of states; the diagonal has the single states.
    together = (indicators.T @ indicators).toarray()
    one_row = np.divide(1, together, out=np.zeros_like(together), where=together > 0).ravel()
    left = together.diagonal().astype(np.int64)

    first, second = np.triu_indices(n_variables)
    count = np.zeros((n_splits, n_states), dtype=np.int64)  # rows of each state in each fold
    share = np.zeros((n_splits, n_states**2))  # share of the rows of each pair of states in each fold
    room = np.full(n_splits, n_rows // n_splits)
    room[: n_rows % n_splits] += 1
    fold = np.full(n_rows, -1)

    while left.any():
        rarest = int(np.where(left > 0, left, n_rows + 1).argmin())
        rows = np.flatnonzero((states == rarest).any(axis=1) & (fold < 0))
        for row in rows:
            own = states[row]
            pairs = own[first] * n_states + own[second]
            open_folds = np.flatnonzero(room)
            held = count[open_folds, rarest]
            open_folds = open_folds[held == held.min()]
            if len(open_folds) > 1:
                total = share[open_folds[:, None], pairs].sum(axis=1).round(9)  # ties in spite of rounding errors
                open_folds = open_folds[np.lexsort((-room[open_folds], total))]
            chosen = open_folds[0]
            fold[row] = chosen
            room[chosen] -= 1
            count[chosen, own] += 1
            share[chosen, pairs] += one_row[pairs]
        left -= np.bincount(states[rows].ravel(), minlength=n_states)
    return fold
