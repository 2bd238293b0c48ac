"""Classifier chains: each class variable given the features and the class variables before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import check_choice, check_count
from pmdc.baselines.base import Baseline, TargetModel, no_codes
from pmdc.baselines.calibration import Calibrated
from pmdc.decisions.decide import LossLike
from pmdc.inference.chain import MAX_OUTCOMES, ChainDistribution
from pmdc.inference.evidence import Evidence
from pmdc.learners.protocols import Preparation
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx

_ROW_LOSSES: dict[str, Callable[[Any], Floats]] = {
    "hamming": lambda wrong: wrong.mean(axis=1),
    "subset": lambda wrong: wrong.any(axis=1),
}
"""The loss of each row, given which of its predictions are wrong."""


class ClassifierChain(Baseline):
    """Classifier chain: each class variable is predicted from the features and the class variables before it.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, default=None
        None is ``pmdc.learners.Logistic(C="auto")``.
    order : None, "random", "best", or a list of names or indices, default=None
        None is the order of Y's columns. "best" compares that order and `n_orders` random ones by their greedy
        predictions on held-out rows, and refits the best on all rows.
    n_orders : int, default=10
        Number of random orders for "best".
    validation_size : float, default=0.2
        Share of the rows that "best" holds out.
    order_loss : {"hamming", "subset"}, default="hamming"
        The loss by which "best" compares orders.
    loss : {"greedy", "hamming", "subset"}, default="greedy"
        "greedy" takes the most probable state of each class variable given the predictions before it, as is usual for
        classifier chains; it minimises no loss. The others are Bayes-optimal; they enumerate all outcomes.
    calibrate : bool, default=False
        Whether the log-probabilities of each class variable are divided by a temperature, which minimises the log-loss
        of out-of-fold probabilities (three folds): better probabilities for about three times the work.
    discrete_features : "from_dtype", None or list, default="from_dtype"
        As in `GBNC`.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : list of arrays, or one array for 1-D y
    order_ : list of str
        The class variables in the order of the chain. Predictions always have the order of Y.
    temperatures_ : dict of str to float
        The temperature of each class variable; empty without `calibrate`.

    Examples
    --------
    >>> from pmdc import ClassifierChain
    >>> from pmdc.datasets import make_network
    >>> data = make_network(200, random_state=0)
    >>> chain = ClassifierChain(order=["y2", "y0", "y3", "y1"]).fit(data.X, data.Y)
    >>> chain.predict(data.X[:3]).columns.tolist()
    ['y0', 'y1', 'y2', 'y3']
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        order: Any = None,
        n_orders: int = 10,
        validation_size: float = 0.2,
        order_loss: str = "hamming",
        loss: LossLike = "greedy",
        calibrate: bool = False,
        discrete_features: Any = "from_dtype",
        random_state: Any = None,
    ):
        super().__init__(
            estimator, loss=loss, calibrate=calibrate, discrete_features=discrete_features, random_state=random_state
        )
        self.order = order
        self.n_orders = n_orders
        self.validation_size = validation_size
        self.order_loss = order_loss

    _own_decisions = ("greedy",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_orders", self.n_orders, 0)
        check_choice("order_loss", self.order_loss, _ROW_LOSSES)
        if isinstance(self.order, str) or not isinstance(self.order, (Sequence, np.ndarray, type(None))):
            check_choice("order", self.order, ("random", "best", None), ", or give a list of class variables")
        if not isinstance(self.validation_size, Real) or not 0 < self.validation_size < 1:
            raise ValueError(f"validation_size={self.validation_size!r} must be a number between 0 and 1.")

    def _learn(self, rows: TrainingRows, started: float) -> None:
        order = self._choose_order(rows)
        self._chain = fit_chain(self, order, rows)
        self.order_ = [self.class_table_.names[k] for k in order]
        self.temperatures_ = self.named(self._chain.temperatures)

    def _choose_order(self, rows: TrainingRows) -> tuple[int, ...]:
        given = tuple(range(len(self.class_table_.names)))
        if self.order is None:
            return given
        random = check_random_state(self.random_state)
        if isinstance(self.order, str) and self.order == "random":
            return tuple(int(k) for k in random.permutation(given))
        if isinstance(self.order, str) and self.order == "best":
            others = [tuple(int(k) for k in random.permutation(given)) for _ in range(self.n_orders)]
            return self._best_order([given, *others], rows, random)
        return self._listed_order()

    def _listed_order(self) -> tuple[int, ...]:
        names = self.class_table_.names
        order = [names.index(k) if isinstance(k, str) and k in names else k for k in self.order]
        if sorted(map(str, order)) != sorted(map(str, range(len(names)))):
            raise ValueError(
                f"order={list(self.order)!r} must name each class variable once, by name or index; they are {names}."
            )
        return tuple(int(k) for k in order)

    def _best_order(
        self, orders: Sequence[tuple[int, ...]], rows: TrainingRows, random: np.random.RandomState
    ) -> tuple[int, ...]:
        if len(rows) < 2:
            raise ValueError("order='best' needs at least 2 rows: one is held out.")
        halves = train_test_split(np.arange(len(rows)), test_size=self.validation_size, random_state=random)
        train, test = map(rows.take, halves)
        losses = []
        plain = dict.fromkeys(range(rows.classes.shape[1]), 1.0)  # a temperature does not change greedy predictions
        for order in dict.fromkeys(orders):
            wrong = fit_chain(self, order, train, plain).greedy(test.features) != test.classes
            losses.append((np.average(_ROW_LOSSES[self.order_loss](wrong), weights=test.weights), order))
        return min(losses, key=lambda pair: pair[0])[1]  # the first of equals: the given order is preferred

    def _decide(self, features: Features, loss: LossLike, evidence: Evidence | None) -> Codes:
        if not isinstance(loss, str) or loss != "greedy":
            return super()._decide(features, loss, evidence)
        if evidence is not None:
            raise ValueError("given= cannot be used with loss='greedy': choose another loss, such as 'hamming'.")
        return self._chain.greedy(features)

    def _own_graph(self) -> networkx.DiGraph:
        return self._graph_of(
            pairwise(self.order_), "a chain: the inputs of each class variable are all before it and all features"
        )

    def _cells_per_row(self) -> int:
        return min(math.prod(self.class_table_.sizes), MAX_OUTCOMES)

    def _distribution(self, features: Features) -> ChainDistribution:
        return ChainDistribution(self.class_table_, self._chain, features)


class Chain:
    """The fitted links of a chain, in its order."""

    def __init__(self, order: tuple[int, ...], links: Sequence[tuple[TargetModel, Preparation]], sizes: Sequence[int]):
        self.order, self.links, self.sizes = order, links, sizes

    @property
    def temperatures(self) -> dict[int, float]:
        """The temperatures of calibrated class variables."""
        pairs = zip(self.order, self.links, strict=True)
        return {k: model.temperature for k, (model, _) in pairs if isinstance(model, Calibrated)}

    def log_proba(self, place: int, inputs: Features, codes: Codes) -> Floats:
        """Return log P(class variable at `place` | x, those before it), whose states are in `codes`."""
        model, prepare = self.links[place]
        prepared = prepare(inputs.with_discrete(codes[:, self.order[:place]]))
        return model.log_proba(prepared, no_codes(len(inputs)))

    def greedy(self, inputs: Features) -> Codes:
        """Predict the most probable state of each class variable given the predictions before it."""
        codes = np.zeros((len(inputs), len(self.order)), dtype=np.int64)
        for place, k in enumerate(self.order):
            codes[:, k] = self.log_proba(place, inputs, codes).argmax(axis=1)
        return codes


def fit_chain(
    owner: Baseline, order: tuple[int, ...], rows: TrainingRows, temperatures: Mapping[int, float] | None = None
) -> Chain:
    """Fit the links of a chain with the estimator of `owner`; `temperatures` are those of known class variables."""
    known = temperatures or {}
    links = [
        owner.fit_target(rows, k, rows.classes[:, k], rows.class_sizes[k], order[:place], known.get(k))
        for place, k in enumerate(order)
    ]
    return Chain(order, links, rows.class_sizes)
