"""The joint distribution of a classifier chain; exact by enumeration if there are few outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.inference.base import BaseDistribution, ClassTable, draw
from pmdc.inference.evidence import NO_EVIDENCE
from pmdc.inference.outcomes import OutcomeDistribution
from pmdc.table.features import Features

_MAX_BYTES = 2**31
"""Largest memory for the outcomes of one batch."""

MAX_OUTCOMES = 100_000
"""Largest number of outcomes that a chain enumerates; above it, exact marginals and modes are not available."""

_BATCH_CELLS = 2**24
"""Largest number of inputs given to a link at once during enumeration (128 MiB)."""


class Chain(Protocol):
    """Fitted models of all class variables, each given the features and the class variables before it."""

    order: tuple[int, ...]
    sizes: Sequence[int]

    def log_proba(self, place: int, inputs: Features, codes: Codes) -> Floats:
        """Return log P(link | x, links before it); `codes` has all class variables."""


class ChainDistribution(BaseDistribution):
    """The joint distribution of a chain: the product of its links.

    `log_prob` of whole outcomes and `sample` follow the chain. All other methods enumerate the outcomes and raise
    ValueError if there are too many.
    """

    def __init__(self, class_table: ClassTable, chain: Chain, inputs: Features):
        super().__init__(class_table, len(inputs))
        self._chain = chain
        self._inputs = inputs
        self._enumerated: OutcomeDistribution | None = None

    def log_prob_codes(self, codes: Codes) -> Floats:
        if (codes == NO_EVIDENCE).any():
            return self.enumerate().log_prob_codes(codes)
        total = np.zeros(len(self))
        for place, k in enumerate(self._chain.order):
            total += self._chain.log_proba(place, self._inputs, codes)[np.arange(len(self)), codes[:, k]]
        return total

    def rows(self, rows: slice | Codes) -> ChainDistribution:
        return ChainDistribution(self.class_table, self._chain, self._inputs.rows(rows))

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        inputs = self._inputs.rows(np.repeat(np.arange(len(self)), n))
        codes = np.zeros((len(inputs), len(self._chain.order)), dtype=np.int64)
        for place, k in enumerate(self._chain.order):
            codes[:, k] = draw(np.exp(self._chain.log_proba(place, inputs, codes)), random)
        return codes.reshape(len(self), n, -1)

    def enumerate(self) -> OutcomeDistribution:
        """Return the same distribution as a list of all outcomes."""
        if self._enumerated is None:
            sizes = self._chain.sizes
            count = math.prod(sizes)
            if count > MAX_OUTCOMES:
                raise ValueError(
                    f"This chain has {count:.3g} outcomes, too many to enumerate (at most {MAX_OUTCOMES}). Use "
                    "predict(X, loss='greedy'), log_prob or sample, or a GBNC."
                )
            if 8 * count * len(self) > _MAX_BYTES:
                raise ValueError(
                    f"{count} outcomes for each of {len(self)} rows need {8 * count * len(self) / 2**30:.1f} GiB of "
                    f"memory (at most {_MAX_BYTES / 2**30:g}): use fewer rows at a time."
                )
            outcomes = np.array(list(np.ndindex(*sizes)), dtype=np.int64).reshape(count, len(sizes))
            log_p = np.zeros((len(self), count))
            for place, k in enumerate(self._chain.order):
                # Outcomes with the same states so far have the same probabilities for this link.
                before = list(self._chain.order[:place])
                _, first, prefix = np.unique(outcomes[:, before], axis=0, return_index=True, return_inverse=True)
                log_p += self._link_log_proba(place, outcomes[first])[:, prefix.ravel(), outcomes[:, k]]
            self._enumerated = OutcomeDistribution(self.class_table, outcomes, log_p, np.zeros(len(self)))
        return self._enumerated

    def _link_log_proba(self, place: int, prefixes: Codes) -> Floats:
        """Return log P(link | x, prefix) for all rows and prefixes, shape (n, n_prefixes, n_states)."""
        n, size = len(self), self._chain.sizes[self._chain.order[place]]
        log_proba = np.empty((n, len(prefixes), size))
        width = self._inputs.continuous.shape[1] + self._inputs.discrete.shape[1] + sum(self._chain.sizes)
        step = max(1, _BATCH_CELLS // max(1, n * width))
        for start in range(0, len(prefixes), step):
            some = prefixes[start : start + step]
            inputs = self._inputs.rows(np.repeat(np.arange(n), len(some)))
            codes = np.tile(some, (n, 1))
            log_proba[:, start : start + step] = self._chain.log_proba(place, inputs, codes).reshape(n, len(some), size)
        return log_proba
