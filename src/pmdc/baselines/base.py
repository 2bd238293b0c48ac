"""The base class of the baselines: discrete features as inputs, one model on all rows for each target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.arrays import Codes
from pmdc._support.checks import check_choice
from pmdc._support.parallel import one_thread
from pmdc.baselines.calibration import Calibrated, find_temperature
from pmdc.decisions.decide import LossLike
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.learners import make_learner
from pmdc.learners.groups import GroupedLearner
from pmdc.learners.logistic import LogisticLearner
from pmdc.learners.options import Options
from pmdc.learners.protocols import Preparation
from pmdc.learners.tasks import root_task
from pmdc.network.fit import fit_root
from pmdc.network.network import Node
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    import networkx

TargetModel = Node | Calibrated
"""The fitted model of one target."""


def no_codes(n: int) -> Codes:
    """Return an array of codes for `n` rows without parents."""
    return np.empty((n, 0), dtype=np.int64)


class Baseline(MultiDimensionalClassifier):
    """Base class: discrete features are inputs, and each target has one model on all rows.

    Discrete inputs are one-hot encoded, except for `NaiveBayes`, which takes them as they are.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: LossLike = "hamming",
        calibrate: bool = False,
        discrete_features: Any = "from_dtype",
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.loss = loss
        self.calibrate = calibrate
        self.discrete_features = discrete_features
        self.random_state = random_state

    def _graph_of(self, edges: Iterable[tuple[str, str]], note: str) -> networkx.DiGraph:
        """Return a graph of the class variables; the features, inputs of every model, are not shown."""
        import networkx as nx

        graph = nx.DiGraph(note=note)
        graph.add_nodes_from(self.class_table_.names, kind="class")
        graph.add_edges_from(edges)
        return graph

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("calibrate", self.calibrate, (True, False))

    def named(self, temperatures: Mapping[int, float]) -> dict[str, float]:
        """Return temperatures by the names of the class variables, in their order."""
        return {name: temperatures[k] for k, name in enumerate(self.class_table_.names) if k in temperatures}

    def fit_target(
        self,
        rows: TrainingRows,
        target: int,
        codes: Codes,
        size: int,
        before: Sequence[int] = (),
        temperature: float | None = None,
    ) -> tuple[TargetModel, Preparation]:
        """Fit the model of one target, given as codes; return it with the preparation of its inputs.

        The inputs are the features and the class variables `before`. With `calibrate`, the model has a temperature,
        which is found by out-of-fold probabilities unless it is given.
        """
        inputs = rows.features.with_discrete(rows.classes[:, list(before)])
        sizes = [*rows.feature_sizes, *(rows.class_sizes[j] for j in before)]
        learner = make_learner(self.estimator, inputs, rows.weights, sizes, Options(rows.weighted, self.random_state))
        task = root_task(target, codes, size)
        with one_thread() if isinstance(learner, GroupedLearner) else nullcontext():
            if self.calibrate and temperature is None:
                if isinstance(learner, LogisticLearner):  # C is chosen once, not again without each fold
                    learner = learner.with_chosen_C(task)
                temperature = find_temperature(learner, task)
            node = fit_root(learner, task)
        if self.calibrate and temperature is not None:
            return Calibrated(node, temperature), learner.prepare
        return node, learner.prepare
