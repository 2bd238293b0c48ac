"""The mean of several joint distributions of the same batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from pmdc._support.arrays import Codes, Floats
from pmdc.inference.base import BaseDistribution, ClassTable
from pmdc.inference.chain import MAX_OUTCOMES, ChainDistribution
from pmdc.inference.evidence import NO_EVIDENCE
from pmdc.inference.outcomes import OutcomeDistribution


class MixtureDistribution(BaseDistribution):
    """The mean of several joint distributions of the same batch.

    Parameters
    ----------
    class_table : ClassTable
    components : sequence of ChainDistribution
    n_samples : int or None
        Draws for each row if there are too many outcomes to enumerate; None raises an error in this case.
    seed : int
        The random seed of these draws.
    """

    def __init__(
        self, class_table: ClassTable, components: Sequence[ChainDistribution], n_samples: int | None, seed: int
    ):
        super().__init__(class_table, len(components[0]))
        self._components = components
        self._n_samples = n_samples
        self._seed = seed
        self._exact: OutcomeDistribution | None = None

    def log_prob_codes(self, codes: Codes) -> Floats:
        if (codes == NO_EVIDENCE).any():
            return self.enumerate().log_prob_codes(codes)
        each = np.stack([component.log_prob_codes(codes) for component in self._components])
        return np.asarray(logsumexp(each, axis=0)) - math.log(len(each))

    def rows(self, rows: slice | Codes) -> MixtureDistribution:
        components = [component.rows(rows) for component in self._components]
        return MixtureDistribution(self.class_table, components, self._n_samples, self._seed)

    def sample_codes(self, n: int, random: np.random.RandomState) -> Codes:
        """Draw a component at random, then an outcome from it."""
        chosen = random.randint(len(self._components), size=(len(self), n))
        codes = np.empty((len(self), n, len(self.class_table.sizes)), dtype=np.int64)
        for number, component in enumerate(self._components):
            mine = chosen == number
            most = int(mine.sum(axis=1).max(initial=0))
            drawn = component.sample_codes(most, random)
            codes[mine] = drawn[np.arange(most) < mine.sum(axis=1)[:, None]]
        return codes

    def _is_small(self) -> bool:
        small = self.n_outcomes <= MAX_OUTCOMES
        if not small and self._n_samples is None:
            raise ValueError(
                f"This ensemble has {self.n_outcomes:.3g} outcomes, too many to enumerate (at most {MAX_OUTCOMES}). "
                "Use predict(X, loss='vote'), log_prob or sample, or set n_samples for an estimate."
            )
        return small

    def enumerate(self) -> OutcomeDistribution:
        if not self._is_small():
            raise ValueError(
                f"This ensemble has {self.n_outcomes:.3g} outcomes, too many to enumerate. Only marginals, mode and "
                "entropy can be estimated from n_samples draws."
            )
        if self._exact is None:
            each = [component.enumerate() for component in self._components]
            mean = np.asarray(logsumexp(np.stack([d.log_p for d in each]), axis=0)) - math.log(len(each))
            self._exact = OutcomeDistribution(self.class_table, each[0].outcomes, mean, np.zeros(len(self)))
        return self._exact

    def _draws(self) -> Codes:
        assert self._n_samples is not None
        return self.sample_codes(self._n_samples, np.random.RandomState(self._seed))

    def marginals(self) -> list[Floats]:
        if self._is_small():
            return self.enumerate().marginals()
        draws = self._draws()
        return [(draws[:, :, k, None] == np.arange(size)).mean(axis=1) for k, size in enumerate(self.class_table.sizes)]

    def mode_codes(self) -> tuple[Codes, Floats]:
        if self._is_small():
            return self.enumerate().mode_codes()
        draws = self._draws()
        log_prob = np.column_stack([self.log_prob_codes(draws[:, i]) for i in range(draws.shape[1])])
        best = log_prob.argmax(axis=1)
        rows = np.arange(len(self))
        return draws[rows, best], log_prob[rows, best]

    def entropy(self) -> Floats:
        if self._is_small():
            return self.enumerate().entropy()
        draws = self._draws()
        return -np.mean([self.log_prob_codes(draws[:, i]) for i in range(draws.shape[1])], axis=0)
