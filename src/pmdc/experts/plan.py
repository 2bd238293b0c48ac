"""The plan of the experts: folds and recipes, from the numbers of rows, features and states, before any work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pmdc.experts.recipes import BoostingRecipe, ForestRecipe, LogisticRecipe, Recipe

MAX_LOGISTIC, MAX_BOOSTING = 4e9, 6e9
"""Largest work for which logistic regression and boosting are tried: rows x features x states x (features or trees)."""

MIN_ROWS_PER_STATE = 10
"""Boosting is not tried for class variables with fewer rows than this for each state, on average.

It fits one tree for each state in every iteration: with 39 states and 200 rows it takes half of the time of a fit.
"""

MAX_TREE_ROWS = 40_000
"""Above this number of rows, trees have larger leaves, so that forests stay small."""


class ExpertPlan(NamedTuple):
    """The planned work of the experts.

    Attributes
    ----------
    n_folds : int
    recipes : tuple of Recipe
        Candidates for each class variable; those that do not improve held-out rows are dropped.
    refit : bool
        Whether new rows are answered by one model of all rows, instead of the mean of the models without each fold.
    notes : tuple of str
        What was left out or made cheaper because of the size of the table.
    """

    n_folds: int
    recipes: tuple[Recipe, ...]
    refit: bool
    notes: tuple[str, ...]

    def recipes_for(self, rows_per_state: float) -> list[Recipe]:
        """Return the candidates of a class variable: no boosting if it has few rows for each state."""
        few = rows_per_state < MIN_ROWS_PER_STATE
        return [recipe for recipe in self.recipes if not (few and isinstance(recipe, BoostingRecipe))]

    def __str__(self) -> str:
        what = f"{self.n_folds} folds of {', '.join(recipe.name for recipe in self.recipes)}"
        return "; ".join([what, *self.notes])


def n_expert_folds(n_rows: int) -> int:
    """Return 10 folds below 500 rows, 5 below 3,000, 3 above; at most one for each row."""
    return min(10 if n_rows < 500 else 5 if n_rows < 3000 else 3, n_rows)


def plan_experts(n_rows: int, n_features: int, sizes: Sequence[int], refit: bool) -> ExpertPlan:
    """Plan the default experts."""
    notes: list[str] = []
    scale = max(1, -(-n_rows // MAX_TREE_ROWS))
    if scale > 1:
        notes.append(f"forests with leaves of at least {scale} rows because of {n_rows} rows")
    recipes: list[Recipe] = [
        ForestRecipe("extra trees", "extra trees", 100, scale),
        ForestRecipe("extra trees, larger leaves", "extra trees", 100, 3 * scale),
        ForestRecipe("random forest", "random forest", 100, 3 * scale),
    ]
    states = max(sizes, default=1)
    if n_rows * n_features**2 * states <= MAX_LOGISTIC:
        recipes.append(LogisticRecipe())
    else:
        notes.append(f"no logistic regression because of {n_rows} rows x {n_features} features")
    if n_rows * n_features * states * 100 <= MAX_BOOSTING:
        recipes.append(BoostingRecipe("boosting", 0.1, 100, 20, 31, 0.0))
        recipes.append(BoostingRecipe("slow boosting", 0.04, 150, 5, 15, 1.0))
    else:
        notes.append(f"no boosting because of {n_rows} rows x {n_features} features x {states} states")
    return ExpertPlan(n_expert_folds(n_rows), tuple(recipes), refit, tuple(notes))
