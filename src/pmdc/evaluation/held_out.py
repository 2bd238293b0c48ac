"""Predictions and probabilities on held-out rows, from which the benchmark, the demo and the command line take losses.

Needs no extra.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes, Floats
from pmdc._support.progress import tell_step
from pmdc.inference.evidence import NO_EVIDENCE
from pmdc.metrics import expected_calibration_error
from pmdc.metrics.probabilities import binned_calibration_error
from pmdc.table.columns import MISSING, UNKNOWN

BATCH_ROWS = 2048

Decision = str | None
"""What ``loss=`` of `predict` takes; None calls `predict` without it."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions and probabilities of a classifier for rows whose outcomes are known.

    Attributes
    ----------
    names : list of str
        The K class variables.
    truth : array of shape (n, K)
        Codes of the true states; -1 for states that the classifier does not know, -2 for missing ones.
    predicted : dict from decision to array of shape (n, K)
        Codes of the predicted states.
    confidence : dict from decision to array of shape (n,)
        Joint probabilities of the predicted outcomes; empty for a classifier without `predict_joint`.
    log_prob : array of shape (n,) or None
        Log of the joint probability of the true states that are not missing; None for a classifier without
        `predict_joint`.
    marginals : list of K arrays of shape (n, n_states), or None
        None where the marginals cannot be computed exactly; then `no_marginals` says why.
    """

    names: list[str]
    truth: Codes
    predicted: dict[Decision, Codes]
    confidence: dict[Decision, Floats]
    log_prob: Floats | None
    marginals: list[Floats] | None
    no_marginals: str = ""

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which true states are not missing, shape (n, K)."""
        return self.truth != MISSING

    def wrong(self, decision: Decision) -> npt.NDArray[np.bool_]:
        """Return which class variables are predicted wrongly, shape (n, K); not those whose true state is missing."""
        return (self.predicted[decision] != self.truth) & self.known

    def log_losses(self) -> Floats:
        """Return minus the log of the marginal probabilities of the true states, shape (n, K); 0 for missing ones."""
        codes = np.maximum(self.truth, 0)
        found = [p[np.arange(len(rows)), rows] for p, rows in zip(self.marginals or [], codes.T, strict=True)]
        prob = np.where(self.truth == UNKNOWN, 0.0, np.column_stack(found))
        with np.errstate(divide="ignore"):
            return -np.log(np.where(self.known, prob, 1.0))

    def calibration_error(self) -> float:
        """Return the `pmdc.metrics.expected_calibration_error`."""
        marginals = self.marginals or []
        truth = np.where(self.known, self.truth, np.nan)
        return expected_calibration_error(truth, marginals, [range(p.shape[1]) for p in marginals])

    def joint_calibration_error(self, decision: Decision) -> float:
        """Return the `pmdc.metrics.joint_calibration_error` of the predicted outcomes; NaN if no row is complete."""
        complete = self.known.all(axis=1)
        if not complete.any():
            return math.nan
        right = (self.predicted[decision] == self.truth).all(axis=1)[complete]
        return binned_calibration_error(self.confidence[decision][complete], right, 10, np.ones(len(right)))


def evaluate(
    classifier: Any,
    X: Any,
    Y: Any,
    decisions: Sequence[Decision] = ("hamming", "subset"),
    marginals: bool = True,
) -> HeldOut:
    """Compute predictions and probabilities for rows whose outcomes are known.

    Parameters
    ----------
    classifier : classifier of this library, or with at least `predict`, `predict_proba` and ``class_table_``
    X, Y : tables
        Y may have missing cells.
    decisions : sequence of str or None
        "hamming" and "subset" are taken from the joint distribution, others from `predict`.
    marginals : bool, default=True
        False omits the marginals, which a chain computes by enumerating all outcomes, unless a decision needs them.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> from pmdc import BinaryRelevance
    >>> from pmdc.datasets import make_network
    >>> from pmdc.evaluation.held_out import evaluate
    >>> data = make_network(300, random_state=0)
    >>> held_out = evaluate(BinaryRelevance().fit(data.X[:200], data.Y[:200]), data.X[200:], data.Y[200:])
    >>> bool(held_out.wrong("hamming").mean() <= held_out.wrong("subset").any(axis=1).mean())
    True
    """
    truth = classifier.class_table_.encode(Y, unknown="mark", missing="mark")
    parts = [
        _evaluate_batch(classifier, take_rows(X, rows), truth[rows], decisions, marginals)
        for rows in row_batches(len(truth))
    ]
    found = [part.marginals for part in parts if part.marginals is not None]
    log_prob = [part.log_prob for part in parts if part.log_prob is not None]
    return HeldOut(
        list(classifier.class_table_.names),
        truth,
        {decision: np.concatenate([part.predicted[decision] for part in parts]) for decision in decisions},
        {decision: np.concatenate([part.confidence[decision] for part in parts]) for decision in parts[0].confidence},
        np.concatenate(log_prob) if log_prob else None,
        None if parts[0].no_marginals else [np.concatenate(arrays) for arrays in zip(*found, strict=True)],
        parts[0].no_marginals,
    )


def _evaluate_batch(
    classifier: Any, X: Any, truth: Codes, decisions: Sequence[Decision], with_marginals: bool
) -> HeldOut:
    table = classifier.class_table_
    if not hasattr(classifier, "predict_joint"):
        predicted = {decision: table.encode(_predict(classifier, X, decision)) for decision in decisions}
        return HeldOut(table.names, truth, predicted, {}, None, classifier.predict_proba(X))
    joint = classifier.predict_joint(X)
    marginals: list[Floats] = []
    no_marginals = "" if with_marginals or "hamming" in decisions else "not computed"
    try:
        marginals = [] if no_marginals else joint.marginals()
    except ValueError as error:  # a chain with too many outcomes
        if "hamming" in decisions:
            raise
        no_marginals = str(error)
    predicted = {}
    for decision in decisions:
        if decision == "hamming":
            predicted[decision] = np.column_stack([marginal.argmax(axis=1) for marginal in marginals])
        elif decision == "subset":
            predicted[decision] = joint.mode_codes()[0]
        else:
            predicted[decision] = table.encode(_predict(classifier, X, decision))
    confidence = {decision: np.exp(joint.log_prob_codes(codes)) for decision, codes in predicted.items()}
    known = joint.log_prob_codes(np.where(truth == MISSING, NO_EVIDENCE, np.maximum(truth, 0)))
    log_prob = np.where((truth == UNKNOWN).any(axis=1), -np.inf, known)
    return HeldOut(
        table.names, truth, predicted, confidence, log_prob, None if no_marginals else marginals, no_marginals
    )


def _predict(classifier: Any, X: Any, decision: Decision) -> Any:
    return classifier.predict(X) if decision is None else classifier.predict(X, loss=decision)


def row_batches(n_rows: int) -> Iterator[slice]:
    """Yield slices of `BATCH_ROWS` rows and report progress after each."""
    for start in range(0, n_rows, BATCH_ROWS):
        stop = min(start + BATCH_ROWS, n_rows)
        yield slice(start, stop)
        tell_step(stop, n_rows)


def take_rows(table: Any, rows: slice) -> Any:
    """Return some rows of a DataFrame or an array."""
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
