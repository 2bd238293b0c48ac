"""The settings of `GBNC` that the stages of learning use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pmdc._support.arrays import Codes
from pmdc._support.deadline import Deadline
from pmdc.bounds import Bounds
from pmdc.candidates.rules import ParentRules
from pmdc.experts.recipes import Recipe
from pmdc.scores import criteria
from pmdc.search import Structure


@dataclass(frozen=True)
class Settings:
    """The parameters of `GBNC` as the stages of learning use them.

    Attributes
    ----------
    rules : one `ParentRules` for each class variable, made from edges, tiers and limits
    bounds : bounds on the cliques of the network
    names : the names of all nodes
    estimators : for each class variable its local model, or None for the default
    recipes : for each class variable its candidates for experts; none if its local models are on the features
    n_folds, refit : as in `pmdc.experts.plan.ExpertPlan`
    fold : the fold of each row that `cv` gives, also for the experts; None if they deal their own
    deadline : when the fit should end
    """

    rules: Sequence[ParentRules]
    bounds: Bounds
    names: Sequence[str]
    estimators: Sequence[Any]
    recipes: Sequence[Sequence[Recipe]]
    n_folds: int
    refit: bool
    fold: Codes | None
    deadline: Deadline
    criterion: str | criteria.Penalty
    conditioning: str
    guard: float
    cv: Any
    prune: str | None
    max_parents: int | None
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
