"""Why a model predicts what it does, what matters to it, and what to find out next.

`explain_row` divides the log-odds of a state among the features and the other class variables; `explain_difference`
does so for two rows, or for two sets of known states. `importance` measures how much predictions need each feature, and
each class variable its parents. `value_of_features` says by how much the expected loss decreases if a missing feature
becomes known.
"""

from pmdc.explain.explain import explain_difference, explain_row
from pmdc.explain.explanation import Contribution, Explanation
from pmdc.explain.feature_values import FeatureValues, value_of_features
from pmdc.explain.increases import Importance
from pmdc.explain.permutation import importance

__all__ = [
    "Contribution",
    "Explanation",
    "FeatureValues",
    "Importance",
    "explain_difference",
    "explain_row",
    "importance",
    "value_of_features",
]
