"""What the baselines share: discrete features as indicator inputs, one model with all rows for each target."""

from __future__ import annotations

from typing import Any

import numpy as np

from pmdc.base import MultiDimensionalClassifier
from pmdc.learners import make_learner
from pmdc.learners.base import Preparation
from pmdc.network import Node, fit_node
from pmdc.table import Array, Codes, Features, Floats


def no_codes(n: int) -> Codes:
    """The codes of no parents at all."""
    return np.empty((n, 0), dtype=np.int64)


def one_hot(codes: Codes, sizes: Any) -> Floats:
    """Indicator columns of the states of discrete columns; an unknown state (-1) is none of them."""
    blocks: list[Array] = [codes[:, j, None] == np.arange(size) for j, size in enumerate(sizes)]
    return np.hstack([np.empty((len(codes), 0)), *blocks]).astype(float)


class Baseline(MultiDimensionalClassifier):
    """Discrete features as indicator inputs, one model with all rows for each target."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: str = "hamming",
        discrete_features: Any = "from_dtype",
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.loss = loss
        self.discrete_features = discrete_features
        self.random_state = random_state

    def _unseen_answer(self) -> str:
        return "All indicators of that column are zero for them."

    def _inputs(self, features: Features) -> Floats:
        sizes = [len(states) for states in self._features.states]
        return np.hstack([features.continuous, one_hot(features.discrete, sizes)])

    def _fit_target(
        self, inputs: Floats, target: int, codes: Codes, size: int, sample_weight: Floats, weighted: bool
    ) -> tuple[Node, Preparation]:
        """The model of one target, given as codes, with what is to be done to the inputs before."""
        learner = make_learner(self.estimator, inputs, sample_weight, weighted=weighted, random_state=self.random_state)
        node = fit_node(learner, target, codes, size, no_codes(len(codes)), (), [[()]], sample_weight, backoff=True)
        return node, learner.prepare
