"""How good a model is on rows with known outcomes: losses with standard errors, beside a constant prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.progress import tell_step

if TYPE_CHECKING:
    from pmdc._support.arrays import Codes, Floats

ROWS = 2048
"""Rows that are asked about together."""


class Mean(NamedTuple):
    """A mean over rows, and its standard error (None for a single row)."""

    value: float
    error: float | None

    @classmethod
    def of(cls, rows: npt.NDArray[Any]) -> Mean:
        values = np.asarray(rows, dtype=float)
        mean = float(values.mean())
        if len(values) < 2 or not np.isfinite(mean):
            return cls(mean, None)
        return cls(mean, float(values.std(ddof=1) / np.sqrt(len(values))))


class Losses(NamedTuple):
    """What `pmdc fit --test-size` and `pmdc evaluate` tell first."""

    hamming: Mean
    subset: Mean
    log: Mean


@dataclass(frozen=True)
class Judgement:
    """A model on a table.

    Attributes
    ----------
    model, baseline : Losses
        Of the model, and of predicting the same for all rows: the most frequent states, the most frequent outcome, and
        the frequencies of the states.
    accuracy, log_loss, baseline_accuracy : dict from class variable to Mean
    marginals : list of arrays
        The probabilities of the states in each row.
    codes : array of shape (n, K)
        The true states.
    calibration_error, joint_calibration_error : float
    """

    n_rows: int
    model: Losses
    baseline: Losses
    accuracy: dict[str, Mean]
    baseline_accuracy: dict[str, Mean]
    log_loss: dict[str, Mean]
    marginals: list[Floats]
    codes: Codes
    calibration_error: float
    joint_calibration_error: float


def blocks(n_rows: int) -> Iterator[slice]:
    """The rows in blocks, each told when it is done."""
    for start in range(0, n_rows, ROWS):
        stop = min(start + ROWS, n_rows)
        yield slice(start, stop)
        tell_step(stop, n_rows)


def rows_of(table: Any, block: slice) -> Any:
    """Some rows of a DataFrame or an array."""
    return table.iloc[block] if hasattr(table, "iloc") else table[block]


def judge(model: Any, X: Any, Y: Any, frequencies: Codes | None = None) -> Judgement:
    """Ask a model about rows whose outcomes are known.

    Parameters
    ----------
    frequencies : array of shape (n, K), optional
        Codes of other rows, from which the baseline takes its frequencies; by default the rows themselves.
    """
    from pmdc import metrics
    from pmdc.table.columns import UNKNOWN

    table = model.class_table_
    truth = table.encode(Y, unknown="mark")
    wrong, any_wrong, log_prob, joint_error = [], [], [], []
    marginals: list[list[Floats]] = []
    for block in blocks(len(truth)):
        part, own = rows_of(X, block), truth[block]
        joint = model.predict_joint(part)
        marginals.append(joint.marginals())
        wrong.append(np.column_stack([marginal.argmax(axis=1) for marginal in marginals[-1]]) != own)
        best, confidence = joint.mode_codes()
        any_wrong.append((best != own).any(axis=1))
        joint_error.append(np.exp(confidence))
        log_prob.append(np.where((own == UNKNOWN).any(axis=1), -np.inf, joint.log_prob_codes(np.maximum(own, 0))))
    mistakes, missed = np.concatenate(wrong), np.concatenate(any_wrong)
    proba = [np.concatenate(parts) for parts in zip(*marginals, strict=True)]
    losses = Losses(Mean.of(mistakes.mean(axis=1)), Mean.of(missed), Mean.of(-np.concatenate(log_prob)))
    known = truth if frequencies is None else frequencies
    baseline, by_variable = _constant(truth, known, table.sizes, smooth=frequencies is not None)
    names = table.names
    with np.errstate(divide="ignore"):
        log_losses = {
            name: Mean.of(-np.log(np.where(own == UNKNOWN, 0.0, p[np.arange(len(own)), own])))
            for name, p, own in zip(names, proba, truth.T, strict=True)
        }
    return Judgement(
        len(truth),
        losses,
        baseline,
        {name: Mean.of(~mistakes[:, k]) for k, name in enumerate(names)},
        {name: Mean.of(by_variable[:, k]) for k, name in enumerate(names)},
        log_losses,
        proba,
        truth,
        metrics.expected_calibration_error(truth, proba, [range(size) for size in table.sizes]),
        _calibration_error(np.concatenate(joint_error), ~missed),
    )


def _calibration_error(confidence: Floats, right: npt.NDArray[np.bool_]) -> float:
    from pmdc.metrics.probabilities import _calibration_error as error

    return error(confidence, right, 10, np.ones(len(right)))


def _constant(truth: Codes, known: Codes, sizes: tuple[int, ...], smooth: bool) -> tuple[Losses, npt.NDArray[np.bool_]]:
    """The losses of the same prediction for all rows, and where it is right.

    The frequencies of other rows are smoothed (one row more for each state), so that none is zero.
    """
    from pmdc.table.columns import UNKNOWN

    right, logs = [], np.zeros(len(truth))
    for own, column, size in zip(truth.T, known.T, sizes, strict=True):
        counts = np.bincount(column[column >= 0], minlength=size) + float(smooth)
        with np.errstate(divide="ignore"):
            log = np.log(counts / counts.sum())
        logs += np.where(own == UNKNOWN, -np.inf, log[own])
        right.append(own == counts.argmax())
    by_variable = np.column_stack(right)
    outcomes = Counter(tuple(row) for row in known.tolist() if UNKNOWN not in row)
    missed = (truth != np.array(outcomes.most_common(1)[0][0])).any(axis=1) if outcomes else np.ones(len(truth))
    losses = Losses(Mean.of((~by_variable).mean(axis=1)), Mean.of(missed), Mean.of(-logs))
    return losses, by_variable


def as_json(judgement: Judgement) -> dict[str, Any]:
    """The numbers for machines."""

    def losses(of: Losses) -> dict[str, Any]:
        return {
            name: {"mean": mean.value, "standard_error": mean.error}
            for name, mean in (("hamming_loss", of.hamming), ("subset_loss", of.subset), ("joint_log_loss", of.log))
        }

    return {
        "rows": judgement.n_rows,
        "model": losses(judgement.model),
        "most_frequent": losses(judgement.baseline),
        "calibration_error": judgement.calibration_error,
        "joint_calibration_error": judgement.joint_calibration_error,
        "class_variables": {
            name: {
                "accuracy": {"mean": mean.value, "standard_error": mean.error},
                "most_frequent_accuracy": judgement.baseline_accuracy[name].value,
                "log_loss": {
                    "mean": judgement.log_loss[name].value,
                    "standard_error": judgement.log_loss[name].error,
                },
            }
            for name, mean in judgement.accuracy.items()
        },
    }
