"""Losses of a model with standard errors, beside those of a constant prediction and of independent models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from pmdc.evaluation.held_out import HeldOut, evaluate
from pmdc.evaluation.verdict import Differences, Losses, Mean, RowLosses, from_marginals, most_frequent, with_balanced
from pmdc.metrics import balanced_loss
from pmdc.table.frequencies import Frequencies

TRAINING_ROWS, THIS_TABLE = "training rows", "this table"
NO_ARCS, ITS_MARGINALS, NO_DEPENDENCE = "fitted without arcs", "product of its marginals", "the model itself"


class VariableLosses(NamedTuple):
    """Accuracy and log-loss of one class variable.

    The balanced accuracy is that of the predictions for the balanced loss; a constant prediction has one divided by the
    number of states. NaN if no state is known.
    """

    accuracy: Mean
    most_frequent_accuracy: float
    balanced_accuracy: float
    log_loss: Mean


class Rival(NamedTuple):
    """What the model is compared with.

    Attributes
    ----------
    losses : Losses
    model_is : Differences
        The model compared with it.
    source : str
        Where it comes from: for the constant prediction `TRAINING_ROWS` or `THIS_TABLE`, for independent models
        `NO_ARCS`, `ITS_MARGINALS`, or `NO_DEPENDENCE` if the model has no arc between class variables.
    """

    losses: Losses
    model_is: Differences
    source: str

    @classmethod
    def of(cls, model: RowLosses, other: HeldOut, source: str) -> Rival:
        rows = RowLosses.of(other)
        return cls(rows.means(), Differences.of(model, rows), source)


@dataclass(frozen=True)
class LossReport:
    """The losses of a model on a table, of the most frequent states and outcome, and of independent models."""

    n_rows: int
    model: Losses
    most_frequent: Rival
    independent: Rival
    class_variables: dict[str, VariableLosses]
    calibration_error: float
    joint_calibration_error: float
    n_complete: int
    cells_ignored: dict[str, int]
    """The number of missing cells of each class variable that has some."""

    def as_json(self) -> dict[str, Any]:
        rivals = {"most_frequent": self.most_frequent, "independent": self.independent}
        return {
            "rows": self.n_rows,
            "cells_ignored": self.cells_ignored,
            "model": self.model.as_json(),
            **{name: rival.losses.as_json() for name, rival in rivals.items()},
            "verdict": {name: {"of": rival.source, **rival.model_is.as_json()} for name, rival in rivals.items()},
            "calibration_error": self.calibration_error,
            "joint_calibration_error": self.joint_calibration_error,
            "class_variables": {
                name: {
                    "accuracy": losses.accuracy.as_json(),
                    "most_frequent_accuracy": losses.most_frequent_accuracy,
                    "balanced_accuracy": losses.balanced_accuracy,
                    "log_loss": losses.log_loss.as_json(),
                }
                for name, losses in self.class_variables.items()
            },
        }


def report_losses(model: Any, X: Any, Y: Any, independent: Any = None, held_out: HeldOut | None = None) -> LossReport:
    """Compute the losses of a model on rows whose outcomes are known.

    Parameters
    ----------
    model : fitted classifier
        The constant prediction has the frequencies of its training rows, each state counted once more than it occurs so
        that no frequency is zero; those of Y if the model, of an earlier version, does not have them.
    X, Y : tables
    independent : fitted classifier, optional
        Independent models to compare with; by default the product of the marginals of `model`.
    held_out : HeldOut, optional
        What `evaluate(model, X, Y)` returned, if it is known already.
    """
    held_out = evaluate(model, X, Y) if held_out is None else held_out
    frequencies = getattr(model, "frequencies_", None)
    source, smoothing = (TRAINING_ROWS, 1.0) if frequencies is not None else (THIS_TABLE, 0.0)
    if frequencies is None:
        frequencies = Frequencies.of(held_out.truth, model.class_table_.sizes)
    held_out = with_balanced(held_out, frequencies)
    rows = RowLosses.of(held_out)
    constant = most_frequent(held_out, frequencies, smoothing)
    if not has_class_arcs(model):
        alone = Rival.of(rows, held_out, NO_DEPENDENCE)
    elif independent is None:
        alone = Rival.of(rows, from_marginals(held_out), ITS_MARGINALS)
    else:
        alone = Rival.of(rows, with_balanced(evaluate(independent, X, Y), frequencies), NO_ARCS)
    log_losses, known = held_out.log_losses(), held_out.known
    variables = {
        name: VariableLosses(
            Mean.of(~held_out.wrong("hamming")[known[:, k], k]),
            float((~constant.wrong("hamming")[known[:, k], k]).mean()),
            _balanced_accuracy(held_out, k),
            Mean.of(log_losses[known[:, k], k]),
        )
        for k, name in enumerate(held_out.names)
    }
    return LossReport(
        len(held_out.truth),
        rows.means(),
        Rival.of(rows, constant, source),
        alone,
        variables,
        held_out.calibration_error(),
        held_out.joint_calibration_error("subset"),
        int(known.all(axis=1).sum()),
        {name: int(gone) for name, gone in zip(held_out.names, (~known).sum(axis=0), strict=True) if gone},
    )


def _balanced_accuracy(held_out: HeldOut, k: int) -> float:
    rows = held_out.known[:, k]
    if not rows.any():
        return math.nan
    return 1 - balanced_loss(held_out.truth[rows, k], held_out.predicted["balanced"][rows, k])


def has_class_arcs(model: Any) -> bool:
    """Return whether a model may have arcs between class variables; one without a graph may."""
    from pmdc.baselines import BinaryRelevance

    if not hasattr(model, "graph_"):
        return len(model.class_names_) > 1 and not isinstance(model, BinaryRelevance)
    names = set(model.class_names_)
    return any(parent in names for parent, _ in model.graph_.edges)
