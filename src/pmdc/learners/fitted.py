"""Consistency checks of fitted models that were read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Array
from pmdc.learners.inputs import Affine


class Fitted(NamedTuple):
    """The dimensions that fitted models must have.

    Attributes
    ----------
    n_parts, n_states : int
    prepare : Preparation
    width : int
        The number of prepared inputs.
    values : sequence of int
        The numbers of values of the discrete inputs.
    inputs : sequence of int
        The numbers of states of the parents that are inputs.
    """

    n_parts: int
    n_states: int
    prepare: Any
    width: int
    values: Sequence[int]
    inputs: Sequence[int]


def is_affine(value: Any) -> bool:
    return type(value) is Affine and is_numbers(value.shift, 1) and is_numbers(value.width, 1)


def is_numbers(value: Any, n_axes: int) -> bool:
    return type(value) is np.ndarray and value.dtype.kind == "f" and value.ndim == n_axes


def are_places(codes: Array, below: Any) -> bool:
    """Return whether codes are integers from 0 to below `below`."""
    return codes.dtype.kind == "i" and bool(((codes >= 0) & (codes < np.asarray(below))).all())
