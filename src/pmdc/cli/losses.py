"""Losses of a model with standard errors, beside those of a constant prediction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pmdc._support.arrays import Codes
from pmdc.evaluation.held_out import HeldOut, evaluate
from pmdc.table.columns import UNKNOWN


class Mean(NamedTuple):
    """A mean over rows and its standard error (None for a single row or an infinite mean)."""

    value: float
    error: float | None

    @classmethod
    def of(cls, rows: npt.NDArray[Any]) -> Mean:
        mean = float(np.mean(rows))
        if len(rows) < 2 or not np.isfinite(mean):
            return cls(mean, None)
        return cls(mean, float(np.std(rows, ddof=1) / np.sqrt(len(rows))))

    def as_json(self) -> dict[str, float | None]:
        return {"mean": self.value, "standard_error": self.error}


class Losses(NamedTuple):
    """The three losses of a model."""

    hamming_loss: Mean
    subset_loss: Mean
    joint_log_loss: Mean

    @classmethod
    def of(cls, held_out: HeldOut) -> Losses:
        assert held_out.log_prob is not None
        return cls(
            Mean.of(held_out.wrong("hamming").mean(axis=1)),
            Mean.of(held_out.wrong("subset").max(axis=1)),
            Mean.of(-held_out.log_prob),
        )

    def as_json(self) -> dict[str, Any]:
        return {name: mean.as_json() for name, mean in self._asdict().items()}


class VariableLosses(NamedTuple):
    """Accuracy and log-loss of one class variable."""

    accuracy: Mean
    most_frequent_accuracy: float
    log_loss: Mean


@dataclass(frozen=True)
class LossReport:
    """The losses of a model on a table, and those of the most frequent states and outcome."""

    n_rows: int
    model: Losses
    most_frequent: Losses
    class_variables: dict[str, VariableLosses]
    calibration_error: float
    joint_calibration_error: float

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.n_rows,
            "model": self.model.as_json(),
            "most_frequent": self.most_frequent.as_json(),
            "calibration_error": self.calibration_error,
            "joint_calibration_error": self.joint_calibration_error,
            "class_variables": {
                name: {
                    "accuracy": losses.accuracy.as_json(),
                    "most_frequent_accuracy": losses.most_frequent_accuracy,
                    "log_loss": losses.log_loss.as_json(),
                }
                for name, losses in self.class_variables.items()
            },
        }


def report_losses(model: Any, X: Any, Y: Any, training: Codes | None = None) -> LossReport:
    """Compute the losses of a model on rows whose outcomes are known.

    Parameters
    ----------
    training : array of shape (n, K), optional
        Codes of the training rows, from which the constant prediction takes its frequencies, each state counted once
        more than it occurs so that no frequency is zero. By default the frequencies in Y itself.
    """
    held_out = evaluate(model, X, Y)
    smoothing = 0.0 if training is None else 1.0
    known = held_out.truth if training is None else training
    constant = predict_most_frequent(held_out, known, model.class_table_.sizes, smoothing)
    log_losses = held_out.log_losses()
    variables = {
        name: VariableLosses(
            Mean.of(~held_out.wrong("hamming")[:, k]),
            float((~constant.wrong("hamming")[:, k]).mean()),
            Mean.of(log_losses[:, k]),
        )
        for k, name in enumerate(held_out.names)
    }
    return LossReport(
        len(held_out.truth),
        Losses.of(held_out),
        Losses.of(constant),
        variables,
        held_out.calibration_error(),
        held_out.joint_calibration_error("subset"),
    )


def predict_most_frequent(held_out: HeldOut, known: Codes, sizes: tuple[int, ...], smoothing: float) -> HeldOut:
    """Return what `held_out` would be for the most frequent states, outcome and frequencies of the rows in `known`."""
    counts = [
        np.bincount(codes[codes >= 0], minlength=size) + smoothing for codes, size in zip(known.T, sizes, strict=True)
    ]
    states = np.array([count.argmax() for count in counts])
    outcomes = Counter(tuple(row) for row in known.tolist() if UNKNOWN not in row)
    outcome = np.array(outcomes.most_common(1)[0][0]) if outcomes else states
    shape = held_out.truth.shape
    marginals = [np.tile(count / count.sum(), (shape[0], 1)) for count in counts]
    constant = HeldOut(
        held_out.names,
        held_out.truth,
        {"hamming": np.broadcast_to(states, shape), "subset": np.broadcast_to(outcome, shape)},
        {},
        None,
        marginals,
    )
    return HeldOut(**{**vars(constant), "log_prob": -constant.log_losses().sum(axis=1)})
