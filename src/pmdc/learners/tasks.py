"""What is to be fitted for one class variable and one family."""

from __future__ import annotations

from collections.abc import Sequence

from pmdc._support.arrays import Codes
from pmdc.candidates.families import Family
from pmdc.learners.partition import Partition
from pmdc.learners.protocols import LocalTask


def local_task(child: int, family: Family, codes: Codes, sizes: Sequence[int]) -> LocalTask:
    """What is to be fitted for one class variable and one family, on these rows."""
    return LocalTask(
        child,
        codes[:, child],
        sizes[child],
        Partition(codes, family.partition, sizes),
        family.inputs,
        codes[:, list(family.inputs)] if family.inputs else None,
        tuple(sizes[v] for v in family.inputs),
    )
