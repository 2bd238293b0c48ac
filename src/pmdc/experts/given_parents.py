"""Experts on the features and the parents of a class variable, where their effects are not additive.

On expert features of x alone, a local model adds the effects of the parents to the experts' scores. Where the parents
change what the features mean, a classifier of (x, parents) sees more. After the structure search, one is tried for each
class variable, out of fold on the same folds: its parents are those of the network and, as far as the conditional table
stays small, the most informative class variables before it in a topological order. So the graph stays acyclic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats, log_sum_exp
from pmdc.experts.features import ConditionalExperts, Expert, log_features
from pmdc.experts.jobs import Candidate
from pmdc.experts.out_of_fold import ExpertFits, FittedExperts
from pmdc.learners.inputs import one_hot

MAX_CONFIGURATIONS = 64
"""Largest number of configurations of the parents: each is evaluated for every new row."""

CUT = "experts given the parents"
"""What is left out when the time is up."""


class ParentExperts(NamedTuple):
    """Experts on (x, parents) of one class variable.

    Attributes
    ----------
    rows : array of shape (n, n_experts * n_states)
        Out-of-fold features of the training rows, with their own parents.
    experts : ConditionalExperts
        Computes them for new rows and any configuration.
    """

    rows: Floats
    experts: ConditionalExperts


def widen(
    parents: Sequence[int],
    before: Sequence[int],
    sizes: Sequence[int],
    max_parents: int | None,
    fits: Callable[[Sequence[int]], bool] = lambda parents: True,
) -> tuple[int, ...]:
    """Return the parents and as many of the class variables `before`, in this order, as the limits allow.

    `fits` returns whether the network is within its bounds with some parents.
    """
    out = list(parents)
    for v in before:
        if max_parents is not None and len(out) >= max_parents:
            break
        if v not in out and math.prod(sizes[p] for p in (*out, v)) <= MAX_CONFIGURATIONS and fits((*out, v)):
            out.append(v)
    return tuple(sorted(out))


def fit_given_parents(
    fits: ExpertFits, experts: FittedExperts, child: int, parents: tuple[int, ...], base: Floats
) -> ParentExperts | None:
    """Fit experts of a class variable on the features and its parents.

    Parameters
    ----------
    fits : ExpertFits
        As for the experts of x alone.
    experts : FittedExperts
    child : int
    parents : tuple of int
    base : array of shape (n,)
        Held-out log-probability of each row's state by the model so far. Experts that do not improve it on the pilot
        folds are not fitted further.

    Returns
    -------
    ParentExperts, or None if no expert improves on its pilot, or none was fitted until the deadline
    """
    sizes = tuple(fits.data.sizes[p] for p in parents)
    codes = fits.data.codes[:, list(parents)]
    own = fits.beside(one_hot(codes, sizes), salt=parents).knowing(child, parents)
    tried = [own.candidate(recipe, (child,)) for recipe in experts.for_parents[child]]
    piloted = own.run(tried, own.pilots)
    promising = [candidate for candidate in piloted if _promising(own, candidate, base)]
    kept = own.run(promising, range(len(own.pilots), own.n_folds)) if promising else []
    if len(piloted) < len(tried) or len(kept) < len(promising):
        own.deadline.cut(CUT)
    if not kept:
        return None
    smoothed = [own.smooth(candidate, child) for candidate in kept]
    found = tuple(
        Expert(
            f"{candidate.recipe.name} given parents",
            (child,),
            ((0, fits.data.sizes[child]),),
            (m,),
            own.members(candidate, experts.refit),
            candidate.recipe.raw,
            candidate.recipe.nan,
        )
        for candidate, (m, _) in zip(kept, smoothed, strict=True)
    )
    return ParentExperts(np.hstack([z for _, z in smoothed]), ConditionalExperts(parents, sizes, found))


def _promising(own: ExpertFits, candidate: Candidate, base: Floats) -> bool:
    """Return whether the mean with the model so far is better on the pilot folds."""
    rows: Codes = np.flatnonzero(np.isfinite(candidate.proba[:, 0]) & own.known(candidate.targets[0]))
    z = log_features(candidate.proba[rows], 100.0)
    log_p = (z - log_sum_exp(z))[np.arange(len(rows)), own.data.codes[rows, candidate.targets[0]]]
    mixed = np.logaddexp(base[rows], log_p) - math.log(2.0)
    return bool(own.rows.weights_of(candidate.targets[0])[rows] @ (mixed - base[rows]) > 0)
