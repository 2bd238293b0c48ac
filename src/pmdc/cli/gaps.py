"""Say what ``pmdc fit`` does about missing values of the features."""

from __future__ import annotations

import numpy as np

from pmdc._support.checks import shorten
from pmdc.cli.kinds import Kind, Training

_MANY = 20
"""Of more columns with missing values, the names are listed together."""


def gap_hints(training: Training, estimator: str) -> list[str]:
    """Return for each column with missing values how many it has and what is done about them."""
    gaps = [kind for kind in training.kinds if kind.missing and kind.role != "class variable"]
    if not gaps:
        return []
    how = _treatment(estimator)
    if len(gaps) > _MANY:
        total = sum(kind.missing for kind in gaps)
        numbers = "given to the estimator as missing" if how == "nan" else f"filled with medians{how}"
        return [
            f"{len(gaps)} columns have missing values, {total} in all: {shorten([kind.name for kind in gaps])}. "
            f"Numbers and dates are {numbers}; in discrete features, missing is a state of its own."
        ]
    return [
        f"{kind.name!r} has {kind.missing} missing value{'s' * (kind.missing > 1)}: {_answer(kind, training, how)}."
        for kind in gaps
    ]


def _answer(kind: Kind, training: Training, how: str) -> str:
    if kind.role == "discrete":
        return "a state of its own"
    if how == "nan":
        return "given to the estimator as missing"
    if kind.role == "date":
        return f"filled with the median{how}"
    return f"filled with the median {np.nanmedian(training.X[kind.name]):.4g}{how}"


def _treatment(estimator: str) -> str:
    """Return "nan" for an estimator that takes missing values, else whether there are indicators."""
    if estimator == "naive-bayes":
        return ""
    if estimator != "auto":
        from pmdc.evaluation.methods import ESTIMATORS
        from pmdc.learners.nan import takes_nan

        if takes_nan(ESTIMATORS[estimator]()):
            return "nan"
    return ", with an indicator"
