"""`OutcomeDistribution`: P(Y | x) of a batch of rows, as an explicit list of outcomes.

Models that treat whole outcomes as the states of one variable (class powersets, ensembles of chains) know a
probability for each outcome of a list. What is left over, if anything, is spread evenly over all the other
outcomes of the product space. The space may be astronomically large: it is counted with Python's integers
and never enumerated beyond the length of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from math import log, prod

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from pmdc._support.arrays import Codes, Floats
from pmdc.inference.base import BaseDistribution, ClassTable, contradicts, merge_evidence
from pmdc.inference.evidence import NO_EVIDENCE, ImpossibleEvidenceError
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
        The probability that remains, spread evenly over all outcomes that are not listed (and agree with the
        evidence). With the listed probabilities it adds up to one.
    evidence : array of shape (n_rows, K), optional
        Codes of known states; -1 is unknown. Listed outcomes that contradict it must have probability zero.

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
        evidence: Codes | None = None,
    ):
        self.outcomes = np.asarray(outcomes, dtype=np.int64)
        self.log_p = np.asarray(log_p, dtype=np.float64)
        self.rest = np.asarray(rest, dtype=np.float64)
        self.evidence = evidence
        super().__init__(class_table, len(self.log_p))
        self._check()
        order = np.lexsort(self.outcomes.T[::-1])  # so that of equals the first found is the first in order
        if (order[1:] < order[:-1]).any():
            self.outcomes, self.log_p = self.outcomes[order], self.log_p[:, order]
        full = np.array([not case.n_unlisted for case in self._cases])[self._case]
        if (self.rest[full] > TOTAL_TOLERANCE).any():
            raise ValueError("rest must be zero, because all outcomes are listed.")
        self.rest = np.where(full, 0.0, self.rest)

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

    # Rows that know the same -----------------------------------------------------------------------------------

    @cached_property
    def _by_case(self) -> tuple[list[Case], Codes]:
        return _cases(self.class_table.sizes, self.outcomes, self.evidence, len(self))

    @property
    def _cases(self) -> list[Case]:
        """One for each different evidence."""
        return self._by_case[0]

    @property
    def _case(self) -> Codes:
        """Which of them each row has."""
        return self._by_case[1]

    @cached_property
    def _log_each(self) -> Floats:
        """Log probability of any one unlisted outcome in each row."""
        log_counts = np.array([case.log_unlisted for case in self._cases])[self._case]
        with np.errstate(divide="ignore"):
            return np.where(self.rest > 0, np.log(self.rest), -np.inf) - np.where(
                np.isneginf(log_counts), 0.0, log_counts
            )

    # Answers ---------------------------------------------------------------------------------------------------

    def marginals(self) -> list[Floats]:
        return [self.joint([k]) for k in range(len(self.class_table.sizes))]

    def joint(self, variables: Sequence[int]) -> Floats:
        sizes = [self.class_table.sizes[v] for v in variables]
        table = np.zeros((len(self), prod(sizes)))
        place = np.ravel_multi_index(tuple(self.outcomes[:, list(variables)].T), sizes)
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        if len(place):
            table[:, place[order][starts]] = np.add.reduceat(np.exp(self.log_p[:, order]), starts, axis=1)
        for number, case in enumerate(self._cases):
            if case.n_unlisted:
                rows = self._case == number
                table[rows] += self.rest[rows, None] * case.unlisted_shares(variables, place)
        return (table / table.sum(axis=1, keepdims=True)).reshape(-1, *sizes)

    def entropy(self) -> Floats:
        log_p = np.where(np.isneginf(self.log_p), 0.0, self.log_p)  # 0 log 0 = 0
        log_each = np.where(self.rest > 0, self._log_each, 0.0)
        total = -(np.exp(self.log_p) * log_p).sum(axis=1) - self.rest * log_each
        return np.maximum(total, 0.0)

    def mode_codes(self) -> tuple[Codes, Floats]:
        codes, log_prob = self.top_codes(1)
        return codes[:, 0], log_prob[:, 0]

    def top_codes(self, k: int) -> tuple[Codes, Floats]:
        """Equally probable outcomes come in the order of class variables and their states."""
        codes = np.empty((len(self), k, len(self.class_table.sizes)), dtype=np.int64)
        log_prob = np.empty((len(self), k))
        for number, case in enumerate(self._cases):
            rows = np.flatnonzero(self._case == number)
            unlisted = np.array(list(islice(case.unlisted(), k)), dtype=np.int64).reshape(-1, codes.shape[2])
            candidates = np.vstack([self.outcomes, unlisted])
            values = np.hstack([self.log_p[rows], np.repeat(self._log_each[rows, None], len(unlisted), axis=1)])
            if len(candidates) < k:  # fewer agree with the evidence: some impossible ones follow
                impossible = list(islice(case.impossible(candidates), k - len(candidates)))
                candidates = np.vstack([candidates, impossible])
                values = np.pad(values, ((0, 0), (0, len(impossible))), constant_values=-np.inf)
            order = np.lexsort(candidates.T[::-1])
            candidates, values = candidates[order], values[:, order]
            if k == 1:
                best = values.argmax(axis=1)[:, None]
            else:
                best = np.argsort(-values, axis=1, kind="stable")[:, :k]
            codes[rows], log_prob[rows] = candidates[best], np.take_along_axis(values, best, axis=1)
        return codes, log_prob

    def tilted(self, weights: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        log_weights = [np.log(weight) for weight in weights]
        log_w = np.sum([w[self.outcomes[:, k]] for k, w in enumerate(log_weights)], axis=0)
        log_listed = self.log_p + log_w
        means = [case.unlisted_weight(weights, np.exp(log_w)) if case.n_unlisted else None for case in self._cases]
        with np.errstate(divide="ignore"):
            log_mean = np.array([-np.inf if mean is None else np.log(mean[0]) for mean in means])[self._case]
            log_rest = np.where(self.rest > 0, np.log(self.rest), -np.inf) + log_mean
        log_total = np.asarray(logsumexp(np.column_stack([log_listed, log_rest]), axis=1))
        shares = np.exp(log_listed - log_total[:, None])
        rest_share = np.exp(log_rest - log_total)
        marginals = []
        for k, size in enumerate(self.class_table.sizes):
            marginal = shares @ (self.outcomes[:, k, None] == np.arange(size))
            for number, mean in enumerate(means):
                if mean is not None and mean[0] > 0:
                    rows = self._case == number
                    marginal[rows] += rest_share[rows, None] * (mean[1][k] / mean[0])
            marginals.append(marginal / marginal.sum(axis=1, keepdims=True))
        return log_total, marginals

    def given_codes(self, evidence: Codes) -> OutcomeDistribution:
        known = merge_evidence(self.evidence, evidence)
        log_p = np.where(contradicts(known, self.outcomes), -np.inf, self.log_p)
        cases, case = _cases(self.class_table.sizes, self.outcomes, known, len(self))
        before = [self._cases[number].log_unlisted for number in self._case]
        after = [cases[number].log_unlisted for number in case]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rest = np.where(self.rest > 0, np.log(self.rest) + np.array(after) - np.array(before), -np.inf)
        log_total = np.asarray(logsumexp(np.column_stack([log_p, log_rest]), axis=1))
        if np.isneginf(log_total).any():
            raise ImpossibleEvidenceError(int(np.argmin(log_total)))
        rest = np.exp(log_rest - log_total)
        return OutcomeDistribution(self.class_table, self.outcomes, log_p - log_total[:, None], rest, known)

    def rows(self, rows: slice | Codes) -> OutcomeDistribution:
        evidence = None if self.evidence is None else self.evidence[rows]
        return OutcomeDistribution(self.class_table, self.outcomes, self.log_p[rows], self.rest[rows], evidence)

    def enumerate(self) -> OutcomeDistribution:
        if len(self.outcomes) == self.n_outcomes:
            return self
        outcomes = self.every_outcome()
        index = np.ravel_multi_index(tuple(self.outcomes.T), self.class_table.sizes)
        log_p = np.repeat(self._log_each[:, None], len(outcomes), axis=1)
        log_p[:, index] = self.log_p
        if self.evidence is not None:
            log_p[contradicts(self.evidence, outcomes)] = -np.inf
        return OutcomeDistribution(self.class_table, outcomes, log_p, np.zeros(len(self)))

    def log_prob_codes(self, codes: Codes) -> Floats:
        partly = (codes == NO_EVIDENCE).any(axis=1)
        log_prob = np.column_stack([self.log_p, self._log_each])[np.arange(len(self)), self._index_of(codes)]
        if self.evidence is not None:
            clash = (self.evidence != NO_EVIDENCE) & (codes != NO_EVIDENCE) & (codes != self.evidence)
            log_prob[clash.any(axis=1)] = -np.inf
        for row in np.flatnonzero(partly):
            log_prob[row] = self._log_partly(int(row), codes[row])
        return log_prob

    def _log_partly(self, row: int, codes: Codes) -> float:
        """Log probability that the known ones are so, summed over the others."""
        case = self._cases[self._case[row]]
        free = codes == NO_EVIDENCE
        if (~free & (case.known != NO_EVIDENCE) & (codes != case.known)).any():
            return -np.inf
        logs = self.log_p[row][(free | (self.outcomes == codes)).all(axis=1)]
        if self.rest[row] > 0:
            left = Case(self.class_table.sizes, self.outcomes, np.where(free, case.known, codes))
            logs = np.append(logs, np.log(self.rest[row]) + left.log_unlisted - case.log_unlisted)
        return float(logsumexp(logs)) if len(logs) else -np.inf

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
        for number, case in enumerate(self._cases):
            mine = unlisted & (self._case == number)[:, None]
            codes[mine] = case.draw_unlisted(int(mine.sum()), random)
        return codes

    def _index_of(self, codes: Codes) -> Codes:
        """Where each outcome is in the list; the length of the list if it is not there."""
        listed = len(self.outcomes)
        _, group = np.unique(np.vstack([self.outcomes, codes]), axis=0, return_inverse=True)
        group = group.reshape(-1)
        index = np.full(len(group), listed)
        index[group[:listed]] = np.arange(listed)
        return index[group[listed:]]


def _cases(sizes: Sequence[int], outcomes: Codes, evidence: Codes | None, n_rows: int) -> tuple[list[Case], Codes]:
    """The different kinds of evidence, and which of them each row has."""
    if evidence is None:
        return [Case(sizes, outcomes, np.full(len(sizes), NO_EVIDENCE))], np.zeros(n_rows, dtype=np.int64)
    patterns, case = np.unique(evidence, axis=0, return_inverse=True)
    return [Case(sizes, outcomes, known) for known in patterns], case.reshape(-1)


class Case:
    """The unlisted outcomes that agree with some evidence: counted, listed in order, and drawn.

    Attributes
    ----------
    known : array of shape (K,)
        Codes of known states; -1 is unknown.
    n_unlisted : int
        How many outcomes agree with the evidence and are not listed; of any size.
    """

    def __init__(self, sizes: Sequence[int], outcomes: Codes, known: Codes):
        self.known = known
        self._choices = [[int(k)] if k != NO_EVIDENCE else range(size) for size, k in zip(sizes, known, strict=True)]
        self._sizes = tuple(sizes)
        self._outcomes = outcomes
        self._agree = ((known == NO_EVIDENCE) | (outcomes == known)).all(axis=1)
        self._n_all = prod(len(choice) for choice in self._choices)
        self._n_listed = int(self._agree.sum())
        self.n_unlisted = self._n_all - self._n_listed
        self.log_unlisted = log(self.n_unlisted) if self.n_unlisted else -np.inf  # of integers of any size

    def unlisted_shares(self, variables: Sequence[int], place: Codes) -> Floats:
        """Which share of the unlisted outcomes has each configuration of some class variables.

        `place` is the configuration of each listed outcome.
        """
        sizes = [self._sizes[v] for v in variables]
        listed = np.bincount(place[self._agree], minlength=prod(sizes))
        each = self._n_all // prod(len(self._choices[v]) for v in variables)
        shares = np.zeros(prod(sizes))
        for configuration in product(*(self._choices[v] for v in variables)):
            index = int(np.ravel_multi_index(configuration, sizes))
            shares[index] = (each - int(listed[index])) / self.n_unlisted
        return shares

    def unlisted_weight(self, weights: Sequence[Floats], listed_weight: Floats) -> tuple[float, list[Floats]]:
        """The mean weight of an unlisted outcome, and its parts by the state of each class variable.

        The weight of an outcome is the product of those of its states: so the sum over all outcomes factorises, and
        what is listed is taken away.
        """
        sums = [float(weight[list(choice)].sum()) for weight, choice in zip(weights, self._choices, strict=True)]
        means = [total / len(choice) for total, choice in zip(sums, self._choices, strict=True)]
        share = self._n_all / self.n_unlisted  # of all outcomes, in means of unlisted ones
        agreeing = np.where(self._agree, listed_weight, 0.0)
        parts = []
        for k, (weight, choice) in enumerate(zip(weights, self._choices, strict=True)):
            others = prod(mean for j, mean in enumerate(means) if j != k)
            part = np.zeros(self._sizes[k])
            part[list(choice)] = weight[list(choice)] / len(choice) * others * share
            part -= np.bincount(self._outcomes[:, k], agreeing, minlength=len(part)) / float(self.n_unlisted)
            parts.append(np.maximum(part, 0.0))
        return float(parts[0].sum()), parts

    def unlisted(self) -> Iterator[tuple[int, ...]]:
        """The unlisted outcomes, in the order of class variables and their states."""
        listed = set(map(tuple, self._outcomes[self._agree].tolist()))
        return (outcome for outcome in product(*self._choices) if outcome not in listed)

    def impossible(self, outcomes: Codes) -> Iterator[tuple[int, ...]]:
        """Outcomes that contradict the evidence and are not among these."""
        there = set(map(tuple, outcomes.tolist()))
        return (outcome for outcome in product(*map(range, self._sizes)) if outcome not in there)

    def draw_unlisted(self, count: int, random: np.random.RandomState) -> Codes:
        """Unlisted outcomes, all with the same probability."""
        if count and self._n_all <= 2 * self._n_listed:
            unlisted = np.array(list(self.unlisted()), dtype=np.int64)
            return unlisted[random.randint(len(unlisted), size=count)]
        # Rejection is exact, and as at least half of all outcomes are unlisted it soon ends.
        listed = set(map(tuple, self._outcomes[self._agree].tolist()))
        codes = np.empty((count, len(self._sizes)), dtype=np.int64)
        open_draws = np.arange(count)
        while open_draws.size:
            some = np.column_stack([random.randint(size, size=open_draws.size) for size in self._sizes])
            codes[open_draws] = np.where(self.known == NO_EVIDENCE, some, self.known)
            open_draws = open_draws[[tuple(outcome) in listed for outcome in codes[open_draws].tolist()]]
        return codes
