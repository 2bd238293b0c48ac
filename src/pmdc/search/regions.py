"""Search for structures within limits, region by region."""

from __future__ import annotations

from .limits import Limits
from .problem import Problem
from .progress import SearchState


def search(
    problem: Problem,
    limits: Limits,
    first: list[int],
    order: list[int],
    state: SearchState,
    random_state: int,
    max_iter: int | None,
    least_regret: float,
) -> tuple[list[int], list[int], str]:
    """Return the first DAG, its order of elimination, and why the search must stop, or ""."""
    return first, order, state.stop(first, least_regret)
