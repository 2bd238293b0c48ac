"""Metrics of predictions and probabilities of several class variables.

- Losses of predictions, ``(y_true, y_pred)``: `hamming_loss`, `subset_loss`, `sub_exact_loss`; `accuracy_by_variable`.
- Losses of the marginals of `predict_proba`, ``(y_true, proba, classes)``: `marginal_log_loss`, `brier_score`,
  `expected_calibration_error`; `reliability`, the bins of a calibration plot.
- Losses of the joint distribution of `predict_joint`, ``(y_true, distribution)``: `joint_log_loss`,
  `joint_calibration_error`.
- Scorers of fitted classifiers, for ``scoring=`` in scikit-learn, greater is better: `subset_accuracy`,
  `hamming_accuracy`, `sub_exact_accuracy`, `neg_marginal_log_loss`, `neg_brier_score`,
  `neg_expected_calibration_error`, `neg_joint_log_loss`.

All accept DataFrames, arrays or lists with states of any type, and ``sample_weight``. A column is always a class
variable, even if it contains only 0 and 1: there is no special treatment of multilabel indicators. A row of weight zero
is ignored.

Missing cells of `y_true` (None, NaN, NA, NaT) are ignored, and so are sets of possible states (weak labels): they count
as missing. Predictions must be complete.

- `hamming_loss`, `marginal_log_loss` and `brier_score` are weighted means over all known cells; `reliability` has the
  predictions of all known cells.
- `accuracy_by_variable` and `expected_calibration_error` use, for each class variable, the rows in which it is known. A
  class variable that is never known has accuracy NaN and is left out of the calibration error, with a warning.
- `subset_loss`, `sub_exact_loss` and `joint_calibration_error` use the rows whose true outcome is completely known.
- `joint_log_loss` is the mean of -log P(known cells | x), exactly, over the rows with a known cell. Rows with few known
  cells have a smaller loss: compare models on the same cells only.

It is an error if nothing is left. Scorers and `score` follow. Without missing cells, nothing changes.
"""

from pmdc.metrics.decisions import accuracy_by_variable, hamming_loss, sub_exact_loss, subset_loss
from pmdc.metrics.probabilities import (
    Reliability,
    brier_score,
    expected_calibration_error,
    joint_calibration_error,
    joint_log_loss,
    marginal_log_loss,
    reliability,
)
from pmdc.metrics.scorers import (
    hamming_accuracy,
    neg_brier_score,
    neg_expected_calibration_error,
    neg_joint_log_loss,
    neg_marginal_log_loss,
    sub_exact_accuracy,
    subset_accuracy,
)

__all__ = [
    "Reliability",
    "accuracy_by_variable",
    "brier_score",
    "expected_calibration_error",
    "hamming_accuracy",
    "hamming_loss",
    "joint_calibration_error",
    "joint_log_loss",
    "marginal_log_loss",
    "neg_brier_score",
    "neg_expected_calibration_error",
    "neg_joint_log_loss",
    "neg_marginal_log_loss",
    "reliability",
    "sub_exact_accuracy",
    "sub_exact_loss",
    "subset_accuracy",
    "subset_loss",
]
