"""`OutcomeDistribution`: P(Y | x) of a batch of rows, as an explicit list of outcomes.

Models that treat whole outcomes as the states of one variable (class powersets, ensembles of chains) have a probability
for each outcome of a list. The remaining probability, if any, is distributed uniformly over all other outcomes. These
may be too many to enumerate: P is computed as a uniform distribution over all outcomes, whose sums factorise, plus
corrections for the listed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from pmdc._support.arrays import Codes, Floats, Marks
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
        Codes of the listed outcomes, without duplicates.
    log_p : array of shape (n_rows, R)
        Log probability of each listed outcome in each row.
    rest : array of shape (n_rows,)
        The remaining probability, distributed uniformly over all unlisted outcomes that agree with the evidence. The
        listed probabilities and the rest add up to one.
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
        order = np.lexsort(self.outcomes.T[::-1])  # ties are resolved in this order
        if (order[1:] < order[:-1]).any():
            self.outcomes, self.log_p = self.outcomes[order], self.log_p[:, order]
        full = np.isneginf(self._space.log_unlisted)
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
            raise ValueError(f"outcomes has codes outside the numbers of states, {sizes}.")
        if len(set(map(tuple, self.outcomes.tolist()))) < listed:
            raise ValueError("outcomes lists an outcome twice: add up its probabilities first.")
        total = np.exp(self.log_p).sum(axis=1) + self.rest
        wrong = ~(np.abs(total - 1) <= TOTAL_TOLERANCE) | (self.rest < 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"In row {row} the listed probabilities and rest ({self.rest[row]:.6g}) add up to "
                f"{total[row]:.6g}: they must add up to one, and rest must not be negative."
            )

    @cached_property
    def _space(self) -> _Space:
        return _Space.of(self.class_table.sizes, self.outcomes, self.evidence, len(self))

    @property
    def _log_rest(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(self.rest)

    @property
    def _log_each(self) -> Floats:
        """Log probability of a single unlisted outcome in each row."""
        return np.where(self.rest > 0, self._log_rest - np.where(self.rest > 0, self._space.log_unlisted, 0.0), -np.inf)

    @property
    def _log_uniform(self) -> Floats:
        """Log weight of the uniform distribution over all outcomes that agree with the evidence."""
        return self._log_each + self._space.log_all

    def _choices(self, variable: int) -> npt.NDArray[np.bool_]:
        """Return which states of a class variable agree with the evidence, shape (n_rows, n_states)."""
        states = np.arange(self.class_table.sizes[variable])
        if self.evidence is None:
            return np.ones((len(self), len(states)), dtype=bool)
        known = self.evidence[:, variable, None]
        return (known == NO_EVIDENCE) | (known == states)

    # Answers ---------------------------------------------------------------------------------------------------

    def marginals(self) -> list[Floats]:
        return [self.joint([k]) for k in range(len(self.class_table.sizes))]

    def joint(self, variables: Sequence[int]) -> Floats:
        sizes = [self.class_table.sizes[v] for v in variables]
        table = np.exp(self._log_uniform)[:, None]
        for variable, size in zip(variables, sizes, strict=True):
            choices = self._choices(variable)
            share = choices / choices.sum(axis=1, keepdims=True)
            table = (table[:, :, None] * share[:, None, :]).reshape(len(self), table.shape[1] * size)
        place = np.ravel_multi_index(tuple(self.outcomes[:, list(variables)].T), sizes)
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        if len(place):
            correction = np.exp(self.log_p) - np.exp(self._log_each)[:, None] * self._space.agree
            table[:, place[order][starts]] += np.add.reduceat(correction[:, order], starts, axis=1)
        table = np.maximum(table, 0.0)
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
        """Return the k most probable outcomes; ties are in the order of class variables and their states."""
        codes = np.empty((len(self), k, len(self.class_table.sizes)), dtype=np.int64)
        log_prob = np.empty((len(self), k))
        for known, rows in self._by_evidence():
            unlisted = list(islice(self._unlisted(known), k))
            # If too few outcomes agree with the evidence, impossible ones follow.
            n_impossible = max(k - len(self.outcomes) - len(unlisted), 0)
            others = [*unlisted, *islice(self._unlisted(np.full_like(known, NO_EVIDENCE), unlisted), n_impossible)]
            candidates = np.vstack([self.outcomes, np.array(others, dtype=np.int64).reshape(-1, codes.shape[2])])
            values = np.full((len(rows), len(candidates)), -np.inf)
            values[:, : len(self.outcomes)] = self.log_p[rows]
            values[:, len(self.outcomes) :][:, : len(unlisted)] = self._log_each[rows, None]
            order = np.lexsort(candidates.T[::-1])
            candidates, values = candidates[order], values[:, order]
            best = values.argmax(axis=1)[:, None] if k == 1 else np.argsort(-values, axis=1, kind="stable")[:, :k]
            codes[rows], log_prob[rows] = candidates[best], np.take_along_axis(values, best, axis=1)
        return codes, log_prob

    def tilted(self, weights: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
        log_w = np.sum([np.log(w)[..., self.outcomes[:, k]] for k, w in enumerate(weights)], axis=0)
        # The weight of an outcome is the product of those of its states, so the uniform part factorises.
        parts = [self._choices(k) * w for k, w in enumerate(weights)]
        log_means = np.column_stack([np.log(part.sum(axis=1) / (part > 0).sum(axis=1)) for part in parts])
        log_uniform = self._log_uniform + log_means.sum(axis=1)
        scale = np.max(np.column_stack([self.log_p + log_w, log_uniform]), axis=1, keepdims=True)  # against underflow
        listed = np.exp(self.log_p + log_w - scale)
        listed -= np.exp(self._log_each[:, None] + log_w - scale) * self._space.agree
        uniform = np.exp(log_uniform[:, None] - scale)
        marginals = []
        for k, part in enumerate(parts):
            marginal = uniform * part / part.sum(axis=1, keepdims=True)
            marginal = np.maximum(marginal + listed @ (self.outcomes[:, k, None] == np.arange(part.shape[1])), 0.0)
            total = marginal.sum(axis=1)
            marginals.append(marginal / total[:, None])
        return np.log(total) + scale[:, 0], marginals

    def given_codes(self, evidence: Codes) -> OutcomeDistribution:
        known = merge_evidence(self.evidence, evidence)
        log_p, log_rest = self._restricted(known)
        log_total = np.asarray(logsumexp(np.column_stack([log_p, log_rest]), axis=1))
        if np.isneginf(log_total).any():
            raise ImpossibleEvidenceError(int(np.argmin(log_total)))
        rest = np.exp(log_rest - log_total)
        return OutcomeDistribution(self.class_table, self.outcomes, log_p - log_total[:, None], rest, known)

    def _restricted(self, known: Codes) -> tuple[Floats, Floats]:
        """Return log_p and the log of rest without the outcomes that contradict the known states, not normalised."""
        space = _Space.of(self.class_table.sizes, self.outcomes, known, len(self))
        return np.where(space.agree, self.log_p, -np.inf), self._log_each + space.log_unlisted

    def restricted(self, possible: Sequence[Marks | None]) -> OutcomeDistribution:
        every = self.enumerate()
        log_p = every.log_p.copy()
        for states, own in zip(every.outcomes.T, possible, strict=True):
            if own is not None:
                log_p[~own[:, states]] = -np.inf
        log_total = np.asarray(logsumexp(log_p, axis=1))
        if np.isneginf(log_total).any():
            raise ImpossibleEvidenceError(int(np.argmin(log_total)))
        return OutcomeDistribution(
            self.class_table, every.outcomes, log_p - log_total[:, None], np.zeros(len(self)), self.evidence
        )

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
        clash = np.zeros(len(self), dtype=bool)
        if self.evidence is not None:
            clash = ((self.evidence != NO_EVIDENCE) & (codes != NO_EVIDENCE) & (codes != self.evidence)).any(axis=1)
            codes = np.where(codes == NO_EVIDENCE, self.evidence, codes)
        log_prob = np.asarray(logsumexp(np.column_stack(self._restricted(codes)), axis=1))
        return np.where(clash, -np.inf, log_prob)

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Draw by inversion; a draw from the rest becomes an unlisted outcome, chosen uniformly."""
        cumulative = np.cumsum(np.column_stack([np.exp(self.log_p), self.rest]), axis=1)
        uniform = random.random_sample((len(self), n)) * cumulative[:, -1:]
        index = np.empty((len(self), n), dtype=np.int64)
        # Row by row, because a comparison of all draws with all outcomes may not fit into memory.
        for row, (steps, heights) in enumerate(zip(cumulative, uniform, strict=True)):
            index[row] = np.searchsorted(steps, heights, side="right")
        unlisted = index == len(self.outcomes)
        codes = np.empty((len(self), n, len(self.class_table.sizes)), dtype=np.int64)
        codes[~unlisted] = self.outcomes[index[~unlisted]]
        for known, rows in self._by_evidence():
            some = codes[rows]
            some[unlisted[rows]] = self._draw_unlisted(known, int(unlisted[rows].sum()), random)
            codes[rows] = some
        return codes

    # Unlisted outcomes -----------------------------------------------------------------------------------------

    @cached_property
    def _listed(self) -> set[tuple[int, ...]]:
        return set(map(tuple, self.outcomes.tolist()))

    def _by_evidence(self) -> Iterator[tuple[Codes, Codes]]:
        """Yield each distinct evidence and the rows that have it."""
        if self.evidence is None:
            yield np.full(len(self.class_table.sizes), NO_EVIDENCE), np.arange(len(self))
            return
        patterns, pattern = np.unique(self.evidence, axis=0, return_inverse=True)
        for number, known in enumerate(patterns):
            yield known, np.flatnonzero(pattern.reshape(-1) == number)

    def _unlisted(self, known: Codes, excluded: Iterable[tuple[int, ...]] = ()) -> Iterator[tuple[int, ...]]:
        """Yield the unlisted outcomes that agree with the evidence, in the order of class variables and states."""
        choices = [
            range(size) if code == NO_EVIDENCE else [int(code)]
            for size, code in zip(self.class_table.sizes, known, strict=True)
        ]
        taken = self._listed | set(excluded)
        return (outcome for outcome in product(*choices) if outcome not in taken)

    def _draw_unlisted(self, known: Codes, count: int, random: np.random.RandomState) -> Codes:
        """Draw unlisted outcomes uniformly, given the evidence."""
        codes = np.empty((count, len(known)), dtype=np.int64)
        sizes = self.class_table.sizes
        n_all = prod(size for size, code in zip(sizes, known, strict=True) if code == NO_EVIDENCE)
        if count and n_all <= 2 * len(self.outcomes):
            unlisted = np.array(list(self._unlisted(known)), dtype=np.int64)
            return unlisted[random.randint(len(unlisted), size=count)]
        # Rejection is exact, and fast because at least half of all outcomes are unlisted.
        left = np.arange(count)
        while left.size:
            drawn = np.column_stack([random.randint(size, size=left.size) for size in sizes])
            codes[left] = np.where(known == NO_EVIDENCE, drawn, known)
            left = left[[tuple(outcome) in self._listed for outcome in codes[left].tolist()]]
        return codes


class _Space(NamedTuple):
    """The outcomes that agree with the evidence of each row."""

    agree: npt.NDArray[np.bool_]
    """Which listed outcomes agree with it, shape (n_rows, R)."""
    log_all: Floats
    """Log of the number of all outcomes that agree, shape (n_rows,)."""
    log_unlisted: Floats
    """Log of the number of unlisted ones."""

    @classmethod
    def of(cls, sizes: Sequence[int], outcomes: Codes, evidence: Codes | None, n_rows: int) -> _Space:
        if evidence is None:
            agree = np.broadcast_to(True, (n_rows, len(outcomes)))
            free = np.ones((n_rows, len(sizes)), dtype=bool)
        else:
            agree, free = ~contradicts(evidence, outcomes), evidence == NO_EVIDENCE
        log_all = free @ np.log(sizes)
        with np.errstate(divide="ignore", over="ignore"):
            n_all = np.where(free, np.array(sizes, dtype=float), 1.0).prod(axis=1)  # infinite above 1e308
            return cls(agree, log_all, log_all + np.log1p(-agree.sum(axis=1) / n_all))
