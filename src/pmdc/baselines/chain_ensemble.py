"""Ensembles of classifier chains: the mean of the joint distributions of several random chains."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.arrays import Codes
from pmdc._support.checks import check_count
from pmdc.baselines.base import Baseline
from pmdc.baselines.classifier_chain import Chain, fit_chain
from pmdc.decisions.decide import LossLike
from pmdc.inference.chain import MAX_OUTCOMES, ChainDistribution
from pmdc.inference.evidence import Evidence
from pmdc.inference.mixture import MixtureDistribution
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx


class ChainEnsemble(Baseline):
    """Ensemble of classifier chains in random orders (ECC; Read, Pfahringer, Holmes and Frank 2011).

    The joint distribution is the mean of those of the chains. Probabilities of outcomes and samples are exact for any
    number of class variables. Marginals and the most probable outcome are exact, by enumeration, for up to 100,000
    outcomes; above that they raise an error unless `n_samples` asks for an estimate.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, default=None
        None is ``pmdc.learners.Logistic(C="auto")``.
    n_chains : int, default=10
        The number of chains, each in its own random order.
    bootstrap : bool, default=False
        Whether each chain is fitted to a bootstrap sample of the rows instead of all rows. The sample is given by
        `sample_weight`, which the estimator must support.
    loss : {"vote", "hamming", "subset"}, default="vote"
        "vote" predicts, for each class variable, the state that most chains predict greedily, as is usual for ECC.
        The others are Bayes-optimal for the mean joint distribution.
    n_samples : int, default=None
        If there are too many outcomes to enumerate: estimate marginals and entropy from this many samples per row
        (the standard error of a probability p is sqrt(p (1 - p) / n_samples)), and take the most probable outcome
        among them. None raises an error instead.
    calibrate : bool, default=False
        Whether the log-probabilities of each class variable are divided by a temperature, which minimises the log-loss
        of out-of-fold probabilities (three folds). To limit the work, temperatures are found in the first chain only
        (with `bootstrap`, in one more chain of all rows) and shared by all chains.
    discrete_features : "from_dtype", None or list, default="from_dtype"
        As in `GBNC`.
    random_state : int, RandomState or None, default=None
        Seed of the orders, the bootstrap, the samples and the estimators.

    Attributes
    ----------
    classes_ : list of arrays, or one array for 1-D y
    orders_ : list of lists of str
        The class variables in the order of each chain.
    temperatures_ : dict of str to float
        The temperature of each class variable; empty without `calibrate`.

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
        calibrate: bool = False,
        discrete_features: Any = "from_dtype",
        random_state: Any = None,
    ):
        super().__init__(
            estimator, loss=loss, calibrate=calibrate, discrete_features=discrete_features, random_state=random_state
        )
        self.n_chains = n_chains
        self.bootstrap = bootstrap
        self.n_samples = n_samples

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_chains", self.n_chains, 1)
        if self.n_samples is not None:
            check_count("n_samples", self.n_samples, 1)

    def _learn(self, rows: TrainingRows, started: float) -> None:
        random = check_random_state(self.random_state)
        n, n_variables = rows.classes.shape
        self._chains: list[Chain] = []
        temperatures: dict[int, float] = {}
        for _ in range(self.n_chains):
            order = tuple(int(k) for k in random.permutation(n_variables))
            sample = rows
            if self.bootstrap:
                counts = np.bincount(random.randint(n, size=n), minlength=n)
                sample = replace(rows, weights=rows.weights * counts, weighted=True).take(np.flatnonzero(counts))
            if self.bootstrap and self.calibrate and not temperatures:  # copies of a row would be in several folds
                temperatures = fit_chain(self, order, rows).temperatures
            self._chains.append(fit_chain(self, order, sample, temperatures))
            temperatures = temperatures or self._chains[0].temperatures
        self._sampling_seed = int(random.randint(np.iinfo(np.int32).max))
        self.temperatures_ = self.named(temperatures)
        self.orders_ = [[self.class_table_.names[k] for k in chain.order] for chain in self._chains]

    def _own_graph(self) -> networkx.DiGraph:
        raise ValueError(
            "ChainEnsemble has no graph: its chains have random orders (orders_). Plot the distribution of a row "
            "instead: predict_joint(X).plot(row)."
        )

    def _cells_per_row(self) -> int:
        return min(math.prod(self.class_table_.sizes), MAX_OUTCOMES)

    def _decide(self, features: Features, loss: LossLike, evidence: Evidence | None) -> Codes:
        if not isinstance(loss, str) or loss != "vote":
            return super()._decide(features, loss, evidence)
        if evidence is not None:
            raise ValueError("given= cannot be used with loss='vote': choose another loss, such as 'hamming'.")
        votes = np.stack([chain.greedy(features) for chain in self._chains])
        return np.column_stack(
            [
                (votes[:, :, k, None] == np.arange(size)).sum(axis=0).argmax(axis=1)
                for k, size in enumerate(self.class_table_.sizes)
            ]
        )

    def _distribution(self, features: Features) -> MixtureDistribution:
        components = [ChainDistribution(self.class_table_, chain, features) for chain in self._chains]
        return MixtureDistribution(self.class_table_, components, self.n_samples, self._sampling_seed)
