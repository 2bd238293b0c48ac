"""The fits of experts out of fold: what workers get and return, and what is known of an expert so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc.experts.members import Member
from pmdc.experts.recipes import Recipe, Sample
from pmdc.learners.validation import deal
from pmdc.table.rows import TrainingRows


@dataclass(frozen=True)
class Job:
    """One fit: a recipe for some class variables, without one fold (-1: on all rows)."""

    recipe: Recipe
    targets: tuple[int, ...]
    fold: int
    seed: int


@dataclass(frozen=True)
class ExpertData:
    """What workers need: the features, standardised and as in the table, states, weights and folds.

    `known` marks the states that experts learn from; None: all of them. `nan` is `raw` with NaN for missing numbers,
    without their indicators; None if nothing is missing.
    """

    X: Floats
    raw: Floats
    codes: Codes
    sizes: tuple[int, ...]
    weights: Floats | None
    fold: Codes
    known: Marks | None = None
    nan: Floats | None = None
    cell_weights: Floats | None = None

    def weights_of(self, targets: tuple[int, ...]) -> Floats | None:
        """Return the weights of the rows; with weights of cells, of a single class variable."""
        if self.cell_weights is None or self.weights is None:
            return self.weights
        assert len(targets) == 1
        return self.weights * self.cell_weights[:, targets[0]]

    def rows(self, targets: tuple[int, ...]) -> Marks:
        """Return the rows in which some of these class variables are known."""
        if self.known is None:
            return np.ones(len(self.codes), dtype=bool)
        return np.asarray(self.known[:, list(targets)].any(axis=1), dtype=bool)

    def states(self, targets: tuple[int, ...]) -> Codes:
        """Return the states of these class variables; one more than the largest code stands for a missing one."""
        codes = self.codes[:, list(targets)]
        if self.known is None:
            return codes
        return np.where(self.known[:, list(targets)], codes, [self.sizes[k] for k in targets])

    def inputs(self, recipe: Recipe) -> Floats:
        if recipe.nan and self.nan is not None:
            return self.nan
        return self.raw if recipe.raw else self.X

    def beside(self, columns: Floats) -> ExpertData:
        """Return the same with more inputs."""
        X, raw = (np.ascontiguousarray(np.hstack([old, columns])) for old in (self.X, self.raw))
        nan = None if self.nan is None else np.ascontiguousarray(np.hstack([self.nan, columns]))
        return replace(self, X=X, raw=raw, nan=nan)


@dataclass(eq=False)
class Candidate:
    """An expert on the folds fitted so far.

    Attributes
    ----------
    recipe : Recipe
    targets : tuple of int
        Its class variables.
    members : dict
        Fold -> the model without it.
    proba : array of shape (n, states of the targets side by side)
        Out-of-fold probabilities; NaN where no fold was fitted yet.
    n_iterations : int or None
        The iterations of boosting that are used.
    """

    recipe: Recipe
    targets: tuple[int, ...]
    members: dict[int, Member]
    proba: Floats
    n_iterations: int | None = None


def expert_folds(rows: TrainingRows, n_folds: int) -> Codes:
    """Deal the rows at random into folds; copies of a row are in the same fold."""
    _, first, owner = np.unique(rows.origin, return_index=True, return_inverse=True)
    inputs = np.hstack([rows.features.continuous, rows.features.discrete])[first]
    dealt = deal(inputs, rows.classes[first], np.ones(len(first)), n_folds)
    return dealt.fold[owner]


def fit_member(job: Job, data: ExpertData) -> Member:
    """Fit a recipe without the rows of one fold, on the states that are known."""
    kept = (data.fold != job.fold) & data.rows(job.targets)
    weights = data.weights_of(job.targets)
    weights = None if weights is None else weights[kept]
    sizes = tuple(data.sizes[k] for k in job.targets)
    return job.recipe.fit(
        Sample(data.inputs(job.recipe)[kept], data.states(job.targets)[kept], sizes, weights, job.seed)
    )
