"""Discrete features of very many values: the frequent values stay, all others are one.

Each value of a discrete feature costs a column of indicators or a part of the rows, and from a value of a few rows
nothing can be learned. Class variables are never grouped.
"""

from __future__ import annotations

import numpy as np

from pmdc._support.arrays import Array, Floats, Marks
from pmdc._support.warn import warn_user
from pmdc.table.columns import as_objects

MAX_VALUES = 255
"""A discrete feature with more values than this keeps at most so many."""
MIN_ROWS = 10
"""Of such a feature, only values with so many rows are kept."""
OTHER = "other values"
"""The value that stands for the others."""


def kept_values(counts: Floats) -> Marks:
    """Return which values stay, by the (weighted) number of rows of each; among equals the first ones."""
    order = np.argsort(-counts, kind="stable")[:MAX_VALUES]
    kept = np.zeros(len(counts), dtype=bool)
    kept[order[counts[order] >= MIN_ROWS]] = True
    return kept


def with_others(states: Array) -> Array:
    """Return the states and, behind them, one for all others."""
    listed = states.tolist()
    other = OTHER
    while other in listed:
        other += "_"
    return as_objects([*listed, other])


def limit_values(name: str, states: Array, counts: Floats) -> tuple[Array, bool]:
    """Return the states of a discrete feature, and whether the last one stands for all others.

    More than `MAX_VALUES` states become those with rows; if these are still too many, the rare ones become one, with a
    warning.
    """
    if len(states) > MAX_VALUES:
        states, counts = states[counts > 0], counts[counts > 0]
    if len(states) <= MAX_VALUES:
        return states, False
    kept = kept_values(counts)
    warn_user(f"X, column {name!r} has {describe_groups(counts, kept)}")
    return with_others(states[kept]), True


def describe_groups(counts: Floats, kept: Marks) -> str:
    """Say what grouping does to a column and what to do about it."""
    most = f"the {kept.sum()} most frequent ones ({MIN_ROWS} rows or more) stay" if kept.any() else "none stays"
    return (
        f"{len(counts)} values, which are too many: {most}, and the other {(~kept).sum()}, in "
        f"{counts[~kept].sum():g} of {counts.sum():g} rows, become one, {OTHER!r}. Group them by meaning (towns by "
        "region, for example), or leave the column out if it only names the rows."
    )
