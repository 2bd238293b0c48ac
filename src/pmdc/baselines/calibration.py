"""Temperature scaling of the models of the baselines, by out-of-fold probabilities.

The temperature T of a target minimises the log-loss of softmax(log p / T) over the training rows, with p the
probabilities by models fitted without the fold of the row (Guo, Pleiss, Sun and Weinberger 2017, there with one
validation set). T > 1 makes an over-confident model less sure, T < 1 makes a hesitant one surer; the order of the
states of a row never changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from pmdc._support.arrays import Codes, Floats
from pmdc.learners.groups import GroupedLearner
from pmdc.learners.protocols import LocalLearner
from pmdc.learners.tasks import LocalTask
from pmdc.learners.validation import deal
from pmdc.network.fit import fit_root
from pmdc.network.network import Node

N_FOLDS = 3

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0


@dataclass(frozen=True)
class Calibrated:
    """The model of a target whose log-probabilities are divided by a temperature and normalised again."""

    node: Node
    temperature: float

    def log_proba(self, X: Floats, codes: Codes) -> Floats:
        """Return calibrated log-probabilities; arguments as in `Node.log_proba`."""
        return np.asarray(log_softmax(self.node.log_proba(X, codes) / self.temperature, axis=1), dtype=float)


def find_temperature(learner: LocalLearner, task: LocalTask) -> float:
    """Return the temperature of the models of a task without parents; 1 for a single row."""
    inputs = learner.plain if isinstance(learner, GroupedLearner) else learner.X
    rows, fold, share = deal(inputs, task.codes[:, None], learner.sample_weight, N_FOLDS, stratify=task.codes)
    if not fold.any():
        return 1.0
    log_proba = np.empty((len(rows), task.n_states))
    for number in range(int(fold.max()) + 1):
        held_out = fold == number
        weights = learner.sample_weight.copy()
        weights[rows[held_out]] *= 1.0 - share[held_out]
        others = np.flatnonzero(weights > 0)
        node = fit_root(learner.on(others, weights[others]), task.take(others))
        no_parents = np.empty((int(held_out.sum()), 0), dtype=np.int64)
        log_proba[held_out] = node.log_proba(learner.X[rows[held_out]], no_parents)
    return best_temperature(log_proba, task.codes[rows], share * learner.sample_weight[rows])


def best_temperature(log_proba: Floats, codes: Codes, weights: Floats) -> float:
    """Return the temperature that minimises the weighted log-loss, between 0.05 and 20.

    One more row, whose state is drawn from `log_proba` itself, is added in expectation. It draws the temperature
    towards 1 if there are few rows, and keeps the probabilities positive if all rows are predicted right.
    """
    target = np.exp(log_proba) / weights.sum()
    target[np.arange(len(codes)), codes] += 1.0
    target *= weights[:, None]

    def loss(log_temperature: float) -> float:
        return -float(np.vdot(target, log_softmax(log_proba / math.exp(log_temperature), axis=1)))

    found = minimize_scalar(loss, bounds=(math.log(MIN_TEMPERATURE), math.log(MAX_TEMPERATURE)), method="bounded")
    return math.exp(found.x)
