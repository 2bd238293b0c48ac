"""Estimators that take missing values as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from pmdc._support.arrays import Floats

_IMPUTERS = (SimpleImputer, KNNImputer, MissingIndicator)


def takes_nan(estimator: Any) -> bool:
    """Return whether an estimator takes NaN, by scikit-learn's tag ``input_tags.allow_nan``.

    A pipeline, which has no such tag of its own, does so if all its steps do, up to an imputer or the end.
    """
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            if step is None or isinstance(step, str):
                continue
            if not takes_nan(step):
                return False
            if isinstance(step, _IMPUTERS) or type(step).__name__ == "IterativeImputer":  # needs an opt-in to import
                return True
        return True
    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except (AttributeError, TypeError, ValueError):  # it has no tags
        return False


def fill_empty(X: Floats) -> Floats:
    """Return X with 0 in columns without any number, on which scikit-learn's boosting and imputers fail.

    The rows of a fold or of a part may have such columns.
    """
    empty = np.isnan(X).all(axis=0)
    return np.where(empty, 0.0, X) if empty.any() else X
