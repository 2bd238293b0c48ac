"""Metrics of predictions and probabilities of several class variables.

- Losses of predictions, ``(y_true, y_pred)``: `hamming_loss`, `subset_loss`, `sub_exact_loss`, `balanced_loss`;
  `accuracy_by_variable`, `balanced_accuracy_by_variable`.
- Metrics of predictions of binary class variables, ``(y_true, y_pred)``, greater is better: `f1_micro`, `f1_macro`,
  `f1_samples`, `jaccard`.
- Losses of the marginals of `predict_proba`, ``(y_true, proba, classes)``: `marginal_log_loss`, `brier_score`,
  `expected_calibration_error`; `reliability`, the bins of a calibration plot.
- Losses of the joint distribution of `predict_joint`, ``(y_true, distribution)``: `joint_log_loss`,
  `joint_calibration_error`.
- Scorers of fitted classifiers, for ``scoring=`` in scikit-learn, greater is better: `subset_accuracy`,
  `hamming_accuracy`, `sub_exact_accuracy`, `balanced_accuracy`, `f1_micro_scorer`, `f1_macro_scorer`,
  `f1_samples_scorer`, `jaccard_scorer`, `neg_marginal_log_loss`, `neg_brier_score`, `neg_expected_calibration_error`,
  `neg_joint_log_loss`.

All accept DataFrames, arrays or lists with states of any type, and ``sample_weight``. A column is always a class
variable, even if it contains only 0 and 1: there is no special treatment of multilabel indicators. A row of weight zero
is ignored.

Missing cells of `y_true` (None, NaN, NA, NaT) are ignored, and so are sets of possible states (weak labels): they count
as missing. Predictions must be complete.

- `hamming_loss`, `marginal_log_loss` and `brier_score` are weighted means over all known cells; `reliability` has the
  predictions of all known cells, and `f1_micro` counts them.
- `accuracy_by_variable`, `balanced_accuracy_by_variable`, `balanced_loss`, `f1_macro` and `expected_calibration_error`
  use, for each class variable, the rows in which it is known. A class variable that is never known has accuracy NaN and
  is left out of the means over class variables, with a warning.
- `subset_loss`, `sub_exact_loss`, `f1_samples`, `jaccard` and `joint_calibration_error` use the rows whose true outcome
  is completely known.
- `joint_log_loss` is the mean of -log P(known cells | x), exactly, over the rows with a known cell. Rows with few known
  cells have a smaller loss: compare models on the same cells only.

It is an error if nothing is left. Scorers and `score` follow. Without missing cells, nothing changes.
"""

from pmdc.metrics.decisions import (
    accuracy_by_variable,
    balanced_accuracy_by_variable,
    balanced_loss,
    hamming_loss,
    sub_exact_loss,
    subset_loss,
)
from pmdc.metrics.labels import f1_macro, f1_micro, f1_samples, jaccard
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
    balanced_accuracy,
    f1_macro_scorer,
    f1_micro_scorer,
    f1_samples_scorer,
    hamming_accuracy,
    jaccard_scorer,
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
    "balanced_accuracy",
    "balanced_accuracy_by_variable",
    "balanced_loss",
    "brier_score",
    "expected_calibration_error",
    "f1_macro",
    "f1_macro_scorer",
    "f1_micro",
    "f1_micro_scorer",
    "f1_samples",
    "f1_samples_scorer",
    "hamming_accuracy",
    "hamming_loss",
    "jaccard",
    "jaccard_scorer",
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
