"""Are these the training rows of a model? By what the model knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pmdc._support.arrays import Codes
from pmdc.table.columns import Column
from pmdc.table.frequencies import Frequencies
from pmdc.table.gaps import weighted_median


def is_like_training(model: Any, columns: Sequence[Column], truth: Codes) -> bool:
    """Return whether the rows are as many as in training, with the same counts of states and gaps and the same medians.

    Counts of states alone also agree between the halves of a stratified split.
    """
    frequencies, features = getattr(model, "frequencies_", None), model.feature_table_
    if frequencies is None or len(truth) != frequencies.n_rows:
        return False
    own = Frequencies.of(truth, model.class_table_.sizes)
    if not all(np.array_equal(mine, theirs) for mine, theirs in zip(own.counts, frequencies.counts, strict=True)):
        return False
    medians = zip(features.continuous, features.filling.values, strict=False)  # earlier versions do not have them
    return all(
        features.gaps.get(columns[i].name, 0) == columns[i].missing.sum()
        for i in {*features.continuous, *features.discrete}
    ) and all(_median(columns[i]) == median for j, (i, median) in enumerate(medians) if j not in features.parts)


def _median(column: Column) -> float | None:
    """Return the median of a column of numbers; None for one of something else."""
    values = column.values[~column.missing]
    return weighted_median(values) if len(values) and values.dtype.kind in "fiub" else None
