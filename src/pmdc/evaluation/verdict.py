"""Is one model better than another on the same rows, and is the difference more than chance?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from pmdc._support.arrays import Codes, Floats
from pmdc.decisions.losses import balanced_weights
from pmdc.evaluation.held_out import Decision, HeldOut
from pmdc.table.frequencies import Frequencies

LEVEL = 0.05
"""A difference is clear if chance alone would exceed it in fewer cases than this."""

_MIN_CHANGED = 6
"""A difference in fewer rows than this is never clear: by a sign test at the level, these could be chance."""

Answer = Literal["better", "worse", "no clear difference", "the same"]


class Mean(NamedTuple):
    """A mean over rows and its standard error (None for a single row or an infinite mean); NaN without rows."""

    value: float
    error: float | None

    @classmethod
    def of(cls, rows: npt.NDArray[Any]) -> Mean:
        if not len(rows):
            return cls(math.nan, None)
        mean = float(np.mean(rows))
        if len(rows) < 2 or not np.isfinite(mean):
            return cls(mean, None)
        return cls(mean, float(np.std(rows, ddof=1) / np.sqrt(len(rows))))

    def as_json(self) -> dict[str, float | None]:
        return {"mean": self.value, "standard_error": self.error}


class RowLosses(NamedTuple):
    """The losses of each row.

    With missing cells, the Hamming loss, the balanced loss and the joint log-loss have the rows with a known cell, the
    subset loss those that are completely known. The Hamming loss of a row is then the number of its mistakes, divided
    by the mean number of known cells, so that its mean is that over all known cells.

    In the balanced loss a mistake is weighted by the inverse frequency of the true state in these rows, so that the
    mean over rows is `pmdc.metrics.balanced_loss`. All states that the model does not know count as one.
    """

    hamming_loss: Floats
    balanced_loss: Floats
    subset_loss: Floats
    joint_log_loss: Floats

    @classmethod
    def of(cls, held_out: HeldOut, decisions: tuple[Decision, Decision] = ("hamming", "subset")) -> RowLosses:
        """Return the losses of these predictions for the Hamming and for the subset 0/1 loss, and of the model.

        The balanced loss is that of the predictions for it (`with_balanced`), if there are any, otherwise of those for
        the Hamming loss.
        """
        assert held_out.log_prob is not None
        hamming, subset = (held_out.wrong(decision) for decision in decisions)
        balanced = _balanced(held_out, "balanced" if "balanced" in held_out.predicted else decisions[0])
        known = held_out.known
        if known.all():
            return cls(hamming.mean(axis=1), balanced, subset.any(axis=1).astype(float), -held_out.log_prob)
        some, complete = known.any(axis=1), known.all(axis=1)
        mistakes = hamming[some].sum(axis=1) / (known.sum() / some.sum())
        return cls(mistakes, balanced, subset[complete].any(axis=1).astype(float), -held_out.log_prob[some])

    def means(self) -> Losses:
        return Losses(*map(Mean.of, self))


def _balanced(held_out: HeldOut, decision: Decision) -> Floats:
    """Return the balanced loss of the rows with a known cell."""
    known, wrong = held_out.known, held_out.wrong(decision)
    some = known.any(axis=1)
    total = np.zeros(len(known))
    for k in np.flatnonzero(known.any(axis=0)):
        rows = known[:, k]
        _, places, counts = np.unique(held_out.truth[rows, k], return_inverse=True, return_counts=True)
        total[rows] += wrong[rows, k] / (len(counts) * counts[places.ravel()])
    return total[some] * some.sum() / max(1, known.any(axis=0).sum())


class Losses(NamedTuple):
    """The means of the losses."""

    hamming_loss: Mean
    balanced_loss: Mean
    subset_loss: Mean
    joint_log_loss: Mean

    def as_json(self) -> dict[str, Any]:
        return {name: mean.as_json() for name, mean in self._asdict().items()}


class Difference(NamedTuple):
    """By how much a model is better than another: the mean over rows of its loss subtracted from that of the other.

    Attributes
    ----------
    gain : float
        Positive if the model is better.
    error : float or None
        The standard error of the gain, from the differences within rows; None for one row or an infinite gain.
    answer : str
        "better" or "worse" if the difference is more than chance explains (a paired t-test at level 0.05, and at least
        six rows that differ), otherwise "no clear difference" or "the same".
    n_impossible : int
        The number of rows that are left out, because both losses are infinite.
    """

    gain: float
    error: float | None
    answer: Answer
    n_impossible: int = 0

    @classmethod
    def of(cls, model: Floats, other: Floats) -> Difference:
        """Compare the losses of the same rows."""
        finite = np.isfinite(model) | np.isfinite(other)
        gains = other[finite] - model[finite]
        left_out = int(np.count_nonzero(~finite))
        if not gains.any():
            return cls(0.0, 0.0 if len(gains) > 1 else None, "the same", left_out)
        if not np.isfinite(gains).all():  # one of the two gives some outcome the probability zero
            worse = bool(np.isinf(model[finite]).any())
            return cls(-math.inf if worse else math.inf, None, "worse" if worse else "better", left_out)
        gain, error = Mean.of(gains)
        if error is None or np.count_nonzero(gains) < _MIN_CHANGED:
            return cls(gain, error, "no clear difference", left_out)
        if abs(gain) <= stats.t.ppf(1 - LEVEL / 2, len(gains) - 1) * error:
            return cls(gain, error, "no clear difference", left_out)
        return cls(gain, error, "better" if gain > 0 else "worse", left_out)

    def words(self, unit: str = "") -> str:
        """Return the answer as words, such as "better by 0.31 ± 0.05 nats a row"."""
        left_out = f"; without {self.n_impossible} row(s) that are impossible for both" if self.n_impossible else ""
        return self._words(unit) + left_out

    def _words(self, unit: str) -> str:
        if self.answer == "the same":
            return "the same"
        if not math.isfinite(self.gain):
            which = "the model" if self.gain < 0 else "the other"
            return f"{self.answer.replace('worse', 'WORSE')}: {which} gives some outcome the probability 0"
        size = f"{abs(self.gain):.3f}" + ("" if self.error is None else f" ± {self.error:.3f}") + unit
        direction = "better" if self.gain > 0 else "worse"
        if self.answer == "no clear difference":
            return f"no clear difference ({direction} by {size})"
        return f"{direction.replace('worse', 'WORSE')} by {size}"

    def as_json(self) -> dict[str, Any]:
        return {
            "gain": self.gain,
            "standard_error": self.error,
            "answer": self.answer,
            "rows_impossible_for_both": self.n_impossible,
        }


class Differences(NamedTuple):
    """The differences in the losses."""

    hamming_loss: Difference
    balanced_loss: Difference
    subset_loss: Difference
    joint_log_loss: Difference

    @classmethod
    def of(cls, model: RowLosses, other: RowLosses) -> Differences:
        return cls(*(Difference.of(own, its) for own, its in zip(model, other, strict=True)))

    def as_json(self) -> dict[str, Any]:
        return {name: difference.as_json() for name, difference in self._asdict().items()}


# What a model is compared with --------------------------------------------------------------------------------


def most_frequent(held_out: HeldOut, frequencies: Frequencies, smoothing: float) -> HeldOut:
    """Return what `held_out` would be for a constant prediction.

    It is the most frequent state of each class variable for the Hamming and the balanced loss (for which all constant
    predictions are alike), the most frequent outcome for the subset
    0/1 loss, and the product of the frequencies for the log-loss.

    Parameters
    ----------
    held_out : HeldOut
    frequencies : Frequencies
        Of the training rows, or of the rows themselves.
    smoothing : float
        Added to the number of rows in each state, so that no frequency is zero.
    """
    counts = [count + smoothing for count in frequencies.counts]
    states = np.array([count.argmax() for count in counts])
    shape = held_out.truth.shape
    predicted: dict[Decision, Codes] = {
        "hamming": np.broadcast_to(states, shape),
        "subset": np.broadcast_to(np.array(frequencies.outcome), shape),
    }
    marginals = [np.tile(count / count.sum(), (shape[0], 1)) for count in counts]
    return _independent(HeldOut(held_out.names, held_out.truth, predicted, {}, None, marginals))


def from_marginals(held_out: HeldOut) -> HeldOut:
    """Return what `held_out` would be for the product of its marginals: class variables independent given x."""
    states = held_out.predicted["hamming"]
    predicted: dict[Decision, Codes] = {**held_out.predicted, "hamming": states, "subset": states}
    return _independent(HeldOut(held_out.names, held_out.truth, predicted, {}, None, held_out.marginals))


def with_balanced(held_out: HeldOut, frequencies: Frequencies) -> HeldOut:
    """Return the same with the predictions for the balanced loss, which follow from the marginals.

    Parameters
    ----------
    held_out : HeldOut
    frequencies : Frequencies
        Of the training rows, or of the rows themselves.
    """
    pairs = zip(held_out.marginals or [], frequencies.counts, strict=True)
    states = np.column_stack([(marginal * balanced_weights(count)).argmax(axis=1) for marginal, count in pairs])
    return replace(held_out, predicted={**held_out.predicted, "balanced": states})


def _independent(held_out: HeldOut) -> HeldOut:
    """Return the same predictions with the probabilities of independent class variables."""
    return HeldOut(**{**vars(held_out), "log_prob": -held_out.log_losses().sum(axis=1)})
