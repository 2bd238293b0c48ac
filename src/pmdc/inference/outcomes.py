"""`OutcomeDistribution`: P(Y | x) of a batch of rows, as an explicit list of outcomes.

Models that treat whole outcomes as the states of one variable (class powersets, ensembles of chains) know a
probability for each outcome of a list. What is left over, if anything, is spread evenly over all the other
outcomes of the product space. The space may be astronomically large: it is counted with Python's integers
and never enumerated beyond the length of the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from math import log, prod

import numpy as np
import numpy.typing as npt

from pmdc.inference.base import BaseDistribution, ClassTable, Codes, Floats
from pmdc.inference.junction_tree import TOTAL_TOLERANCE


class OutcomeDistribution(BaseDistribution):
    """The conditional joint distribution of the class variables, given by a list of outcomes.

    Parameters
    ----------
    class_table : object with names, states, sizes, encode and decode
        The class variables.
    outcomes : array of shape (R, K)
        Codes of the listed outcomes, each listed once.
    log_p : array of shape (n_rows, R)
        Log probability of each listed outcome in each row.
    rest : array of shape (n_rows,)
        The probability that remains, spread evenly over all outcomes that are not listed. With the listed
        probabilities it adds up to one.

    Examples
    --------
    >>> import numpy as np
    >>> from pmdc.table import ClassTable
    >>> Y = ClassTable.fit(np.array([["no", "low"], ["yes", "high"]]))
    >>> distribution = OutcomeDistribution(Y, [[0, 1], [1, 0]], np.log([[0.5, 0.3]]), [0.2])
    >>> distribution.mode().outcome
    array([['no', 'low']], dtype='<U4')
    >>> distribution.marginals()[0]
    array([[0.6, 0.4]])
    """

    def __init__(
        self,
        class_table: ClassTable,
        outcomes: npt.ArrayLike,
        log_p: npt.ArrayLike,
        rest: npt.ArrayLike,
    ):
        self.outcomes = np.asarray(outcomes, dtype=np.int64)
        self.log_p = np.asarray(log_p, dtype=np.float64)
        self.rest = np.asarray(rest, dtype=np.float64)
        super().__init__(class_table, len(self.log_p))
        self._check()
        self._n_outcomes = prod(class_table.sizes)
        self._n_unlisted = self._n_outcomes - len(self.outcomes)
        if not self._n_unlisted:
            if (self.rest > TOTAL_TOLERANCE).any():
                raise ValueError("rest must be zero, because all outcomes are listed.")
            self.rest = np.zeros_like(self.rest)

    def _check(self) -> None:
        n_rows, listed, sizes = len(self), len(self.outcomes), self.class_table.sizes
        if self.outcomes.shape != (listed, len(sizes)):
            raise ValueError(f"outcomes has shape {self.outcomes.shape}; it must be (R, {len(sizes)}).")
        if self.log_p.shape != (n_rows, listed) or self.rest.shape != (n_rows,):
            raise ValueError(
                f"log_p has shape {self.log_p.shape} and rest {self.rest.shape}; for {listed} outcomes they "
                f"must be (n_rows, {listed}) and (n_rows,)."
            )
        if ((self.outcomes < 0) | (self.outcomes >= np.array(sizes))).any():
            raise ValueError(f"outcomes holds codes outside the numbers of states, {sizes}.")
        if len(set(map(tuple, self.outcomes.tolist()))) < listed:
            raise ValueError("outcomes lists some outcome twice: add up its probabilities first.")
        total = np.exp(self.log_p).sum(axis=1) + self.rest
        wrong = ~(np.abs(total - 1) <= TOTAL_TOLERANCE) | (self.rest < 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"In row {row} the listed probabilities and rest ({self.rest[row]:.6g}) add up to "
                f"{total[row]:.6g}: they must add up to one, and rest must not be negative."
            )

    @cached_property
    def _log_each(self) -> Floats:
        """Log probability of any one unlisted outcome in each row."""
        if not self._n_unlisted:
            return np.full(len(self), -np.inf)
        with np.errstate(divide="ignore"):
            return np.log(self.rest) - log(self._n_unlisted)  # math.log takes integers of any size

    def marginals(self) -> list[Floats]:
        listed = np.exp(self.log_p)
        result = []
        for k, size in enumerate(self.class_table.sizes):
            member = self.outcomes[:, k, None] == np.arange(size)
            marginal = listed @ member
            if self._n_unlisted:
                with_state = [self._n_outcomes // size - int(count) for count in member.sum(axis=0)]
                marginal += self.rest[:, None] * [count / self._n_unlisted for count in with_state]
            result.append(marginal / marginal.sum(axis=1, keepdims=True))
        return result

    def entropy(self) -> Floats:
        log_p = np.where(np.isneginf(self.log_p), 0.0, self.log_p)  # 0 log 0 = 0
        log_each = np.where(self.rest > 0, self._log_each, 0.0)
        total = -(np.exp(self.log_p) * log_p).sum(axis=1) - self.rest * log_each
        return np.maximum(total, 0.0)

    def mode_codes(self) -> tuple[Codes, Floats]:
        """Codes of the most probable outcomes and their log probabilities.

        Ties go to the outcome that is listed first, and to listed before unlisted ones. Of the latter, which
        are all equally probable, it is the first in the order of class variables and their states.
        """
        log_p = np.column_stack([self.log_p, self._log_each])
        best = log_p.argmax(axis=1)
        codes = np.vstack([self.outcomes, self._first_unlisted()])[best]
        return codes, log_p[np.arange(len(self)), best]

    def log_prob_codes(self, codes: Codes) -> Floats:
        index = self._index_of(codes)
        return np.column_stack([self.log_p, self._log_each])[np.arange(len(self)), index]

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Draw by inversion; a draw that falls into the rest becomes any unlisted outcome, evenly."""
        cumulative = np.cumsum(np.column_stack([np.exp(self.log_p), self.rest]), axis=1)
        uniform = random.random_sample((len(self), n)) * cumulative[:, -1:]
        index = np.empty((len(self), n), dtype=np.int64)
        # Row by row, because a comparison of all draws with all outcomes may not fit into memory.
        for row, (steps, heights) in enumerate(zip(cumulative, uniform, strict=True)):
            index[row] = np.searchsorted(steps, heights, side="right")
        unlisted = index == len(self.outcomes)
        codes = np.empty((len(self), n, len(self.class_table.sizes)), dtype=np.int64)
        codes[~unlisted] = self.outcomes[index[~unlisted]]
        codes[unlisted] = self._draw_unlisted(int(unlisted.sum()), random)
        return codes

    def _index_of(self, codes: Codes) -> Codes:
        """Where each outcome is in the list; the length of the list if it is not there."""
        listed = len(self.outcomes)
        _, group = np.unique(np.vstack([self.outcomes, codes]), axis=0, return_inverse=True)
        group = group.reshape(-1)
        index = np.full(len(group), listed)
        index[group[:listed]] = np.arange(listed)
        return index[group[listed:]]

    def _first_unlisted(self) -> Codes:
        """The first unlisted outcome, found in as many steps as there are listed ones at the most."""
        anything = (0,) * len(self.class_table.sizes)  # if all are listed: its probability is then zero
        return np.array(next(self._unlisted(), anything), dtype=np.int64)

    def _unlisted(self) -> Iterator[tuple[int, ...]]:
        """The unlisted outcomes, in the order of class variables and their states."""
        listed = set(map(tuple, self.outcomes.tolist()))
        every = product(*map(range, self.class_table.sizes))
        return (outcome for outcome in every if outcome not in listed)

    def _draw_unlisted(self, count: int, random: np.random.RandomState) -> Codes:
        sizes = self.class_table.sizes
        if count and self._n_outcomes <= 2 * len(self.outcomes):
            unlisted = np.array(list(self._unlisted()), dtype=np.int64)
            return unlisted[random.randint(len(unlisted), size=count)]
        # Rejection is exact, and as at least half of all outcomes are unlisted it soon ends.
        codes = np.empty((count, len(sizes)), dtype=np.int64)
        open_draws = np.arange(count)
        while open_draws.size:
            codes[open_draws] = random.randint(0, sizes, size=(open_draws.size, len(sizes)))
            open_draws = open_draws[self._index_of(codes[open_draws]) < len(self.outcomes)]
        return codes
