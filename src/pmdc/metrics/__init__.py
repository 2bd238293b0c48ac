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
