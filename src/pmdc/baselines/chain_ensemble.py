"""Ensembles of classifier chains: the mean of the joint distributions of several random chains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from pmdc.baselines.base import Baseline
from pmdc.baselines.classifier_chain import MOST_OUTCOMES, Chain, ChainDistribution, fit_chain
from pmdc.checks import check_count
from pmdc.inference import OutcomeDistribution
from pmdc.inference.base import BaseDistribution, ClassTable
from pmdc.inference.decisions import LossLike
from pmdc.inference.junction_tree import NO_EVIDENCE
from pmdc.table import Codes, Features, Floats

if TYPE_CHECKING:
    import networkx


class ChainEnsemble(Baseline):
    """Classifier chains in random orders, put together (ECC; Read, Pfahringer, Holmes and Frank 2011).

    The joint distribution of the ensemble is the mean of those of its chains. Probabilities of outcomes and
    samples are exact for any number of class variables. Marginals and the most probable outcome are exact, by
    enumeration, where there are at most 100,000 outcomes; above that they are refused unless `n_samples` asks for
    an estimate.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, default=None
        None is `pmdc.learners.Logistic()`.
    n_chains : int, default=10
        The number of chains, each with a random order of its own.
    bootstrap : bool, default=False
        Whether each chain learns from rows drawn with replacement, or from all of them. Drawn rows count as often as
        they were drawn, so the estimator has to take `sample_weight`.
    loss : {"vote", "hamming", "subset"}, default="vote"
        "vote" takes, for each class variable, the state that most chains predict greedily, as ensembles of chains
        usually do. The others are Bayes-optimal for the mean joint distribution.
    n_samples : int, default=None
        Where there are too many outcomes to enumerate, estimate marginals and entropy from this many draws for each
        row (the standard error of a probability p is sqrt(p (1 - p) / n_samples)), and look for the most probable
        outcome among them. None refuses instead.
    discrete_features : "from_dtype", None or list, default="from_dtype"
        As in `GBNC`.
    random_state : int, RandomState or None, default=None
        Of the orders, the draws and the estimators.

    Attributes
    ----------
    classes_ : list of arrays, or one array for 1-D y
    orders_ : list of lists of str
        The class variables in the order of each chain.

    Examples
    --------
    >>> from pmdc import ChainEnsemble
    >>> from pmdc.datasets import make_network
    >>> data = make_network(200, random_state=0)
    >>> ensemble = ChainEnsemble(n_chains=3, random_state=0).fit(data.X, data.Y)
    >>> ensemble.predict(data.X[:2]).shape
    (2, 4)
    >>> len(ensemble.orders_)
    3
    """

    _own_decisions = ("vote",)

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_chains: int = 10,
        bootstrap: bool = False,
        loss: LossLike = "vote",
        n_samples: int | None = None,
        discrete_features: Any = "from_dtype",
        random_state: Any = None,
    ):
        super().__init__(estimator, loss=loss, discrete_features=discrete_features, random_state=random_state)
        self.n_chains = n_chains
        self.bootstrap = bootstrap
        self.n_samples = n_samples

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_chains", self.n_chains, 1)
        if self.n_samples is not None:
            check_count("n_samples", self.n_samples, 1)

    def _learn(self, features: Features, codes: Codes, sample_weight: Floats, weighted: bool) -> None:
        random = check_random_state(self.random_state)
        n, n_variables = codes.shape
        self._chains: list[Chain] = []
        for _ in range(self.n_chains):
            order = tuple(int(k) for k in random.permutation(n_variables))
            rows, weights = np.arange(n), sample_weight
            if self.bootstrap:
                drawn = np.bincount(random.randint(n, size=n), minlength=n)
                rows, weights = np.flatnonzero(drawn), sample_weight * drawn
            self._chains.append(
                fit_chain(self, order, features.rows(rows), codes[rows], weights[rows], weighted or self.bootstrap)
            )
        self._sampling_seed = int(random.randint(np.iinfo(np.int32).max))
        self.orders_ = [[self._classes.names[k] for k in chain.order] for chain in self._chains]

    def _own_graph(self) -> networkx.DiGraph:
        raise ValueError(
            "ChainEnsemble has no graph: its chains have random orders (orders_), which say nothing of the table. Draw "
            "the distribution of a row instead: predict_joint(X).plot(row)."
        )

    def _cells_per_row(self) -> int:
        return min(math.prod(self._classes.sizes), MOST_OUTCOMES)

    def _decide(self, features: Features, loss: LossLike, evidence: Codes | None) -> Codes:
        if not isinstance(loss, str) or loss != "vote":
            return super()._decide(features, loss, evidence)
        if evidence is not None:
            raise ValueError("given: loss='vote' lets chains vote whatever is known; name a loss, as 'hamming'.")
        votes = np.stack([chain.greedy(features) for chain in self._chains])
        counts = [(votes[:, :, k, None] == np.arange(size)).sum(axis=0) for k, size in enumerate(self._classes.sizes)]
        return np.column_stack([count.argmax(axis=1) for count in counts])

    def _distribution(self, features: Features) -> MixtureDistribution:
        components = [ChainDistribution(self._classes, chain, features) for chain in self._chains]
        return MixtureDistribution(self._classes, components, self.n_samples, self._sampling_seed)


class MixtureDistribution(BaseDistribution):
    """The mean of several joint distributions of the same batch.

    Parameters
    ----------
    class_table : ClassTable
    components : sequence of ChainDistribution
    n_samples : int or None
        Draws for each row where there are too many outcomes to enumerate; None refuses.
    seed : int
        Of these draws.
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
        """For each draw a component at random, then an outcome from it."""
        chosen = random.randint(len(self._components), size=(len(self), n))
        codes = np.empty((len(self), n, len(self.class_table.sizes)), dtype=np.int64)
        for number, component in enumerate(self._components):
            mine = chosen == number
            most = int(mine.sum(axis=1).max(initial=0))
            drawn = component.sample_codes(most, random)
            codes[mine] = drawn[np.arange(most) < mine.sum(axis=1)[:, None]]
        return codes

    def _is_small(self) -> bool:
        small = math.prod(self.class_table.sizes) <= MOST_OUTCOMES
        if not small and self._n_samples is None:
            raise ValueError(
                f"this ensemble has {math.prod(self.class_table.sizes):.3g} outcomes; it is exact only by enumerating "
                f"them, which is done up to {MOST_OUTCOMES}. Use predict(X, loss='vote'), log_prob or sample, or set "
                "n_samples for an estimate."
            )
        return small

    def enumerate(self) -> OutcomeDistribution:
        if not self._is_small():
            raise ValueError(
                f"this ensemble has {math.prod(self.class_table.sizes):.3g} outcomes, too many to enumerate. From "
                "n_samples draws only marginals, mode and entropy are estimated."
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
