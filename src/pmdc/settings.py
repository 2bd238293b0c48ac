"""The settings of `GBNC` that the stages of learning use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pmdc.candidates.rules import ParentRules
from pmdc.scores import criteria
from pmdc.search import Structure


@dataclass(frozen=True)
class Settings:
    """The parameters of `GBNC`, with the `names` of all nodes and the `rules` made from edges and limits."""

    rules: Sequence[ParentRules]
    names: Sequence[str]
    estimator: Any
    criterion: str | criteria.Penalty
    conditioning: str
    guard: float
    cv: Any
    prune: str | None
    max_parents: int
    max_candidates: int | None
    search: str
    time_limit: float | None
    gap: float
    callback: Callable[[Structure], Any] | None
    backoff: str
    memory_budget: int
    n_jobs: int | None
    random_state: Any
    verbose: int

    @property
    def shrunk(self) -> bool:
        """Whether local models are shrunk towards those of the coarser family."""
        return self.backoff == "parents"

    @property
    def held_out(self) -> bool:
        return criteria.is_held_out(self.criterion)

    def log(self, message: str) -> None:
        """Write a message to standard error if `verbose` is set."""
        if self.verbose:
            sys.stderr.write(f"[GBNC] {message}\n")
