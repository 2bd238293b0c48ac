"""The class powerset: one classifier whose classes are the observed outcomes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc.baselines.base import Baseline, no_codes
from pmdc.baselines.calibration import Calibrated
from pmdc.decisions.decide import LossLike
from pmdc.inference import OutcomeDistribution
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx


class ClassPowerset(Baseline):
    """One classifier whose classes are the observed outcomes (label powerset).

    The outcomes that no training row has share the probability 1 / (1 + N) evenly, so none is impossible.

    Parameters
    ----------
    estimator : scikit-learn classifier with `predict_proba`, default=None
        None is ``pmdc.learners.Logistic(C="auto")``.
    loss : {"hamming", "subset"}, default="subset"
        The loss that `predict` minimises.
    calibrate : bool, default=False
        Whether the log-probabilities of the outcomes are divided by a temperature, which minimises the log-loss of
        out-of-fold probabilities (three folds): better probabilities for about three times the work.
    discrete_features : "from_dtype", None or list, default="from_dtype"
        As in `GBNC`.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : list of arrays, or one array for 1-D y
    temperature_ : float or None
        The temperature of the outcomes; None without `calibrate`.

    Examples
    --------
    >>> from pmdc import ClassPowerset
    >>> from pmdc.datasets import make_network
    >>> data = make_network(200, n_class_variables=2, random_state=0)
    >>> ClassPowerset().fit(data.X, data.Y).predict(data.X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: LossLike = "subset",
        calibrate: bool = False,
        discrete_features: Any = "from_dtype",
        random_state: Any = None,
    ):
        super().__init__(
            estimator, loss=loss, calibrate=calibrate, discrete_features=discrete_features, random_state=random_state
        )

    def _learn(self, rows: TrainingRows, started: float) -> None:
        self._outcomes, outcome = np.unique(rows.classes, axis=0, return_inverse=True)
        self._model = self.fit_target(rows, 0, outcome.ravel(), len(self._outcomes))
        self.temperature_ = self._model[0].temperature if isinstance(self._model[0], Calibrated) else None
        unseen = math.prod(rows.class_sizes) - len(self._outcomes)
        self._rest = 1.0 / (1.0 + float(rows.weights.sum())) if unseen else 0.0

    def _own_graph(self) -> networkx.DiGraph:
        raise ValueError(
            "ClassPowerset has no graph: it is one classifier of whole outcomes. Plot the distribution of a row "
            "instead: predict_joint(X).plot(row)."
        )

    def _cells_per_row(self) -> int:
        return len(self._outcomes)

    def _distribution(self, features: Features) -> OutcomeDistribution:
        model, prepare = self._model
        log_p = model.log_proba(prepare(features), no_codes(len(features))) + math.log1p(-self._rest)
        return OutcomeDistribution(self.class_table_, self._outcomes, log_p, np.full(len(features), self._rest))
