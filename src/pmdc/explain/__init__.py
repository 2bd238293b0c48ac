"""Why a model predicts what it does, what matters to it, and what to find out next.

`importance` measures how much predictions need each feature, and each class variable its parents. `value_of_features`
says by how much the expected loss decreases if a missing feature becomes known.
"""

from pmdc.explain.feature_values import FeatureValues, value_of_features
from pmdc.explain.increases import Importance
from pmdc.explain.permutation import importance

__all__ = ["FeatureValues", "Importance", "importance", "value_of_features"]
