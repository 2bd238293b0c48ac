"""Which local models a family backs off to, and how its probabilities are combined with theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations

import numpy as np

from pmdc._support.arrays import Floats
from pmdc.candidates.families import Family


def backoff_chains(coarser: Callable[[Family], Family | None], family: Family, n_classes: int) -> list[list[Family]]:
    """Return chains of families to back off to: one for the family itself, and one without each set of its features.

    The latter are used for values of discrete features that do not occur in the training rows. Each step of a chain
    removes one parent, down to the family that does not partition the rows.
    """
    features = [v for v in family.partition if v >= n_classes]
    unseen = chain.from_iterable(combinations(features, size) for size in range(len(features) + 1))
    return [_chain(coarser, family.without(*removed)) for removed in unseen]


def _chain(coarser: Callable[[Family], Family | None], family: Family) -> list[Family]:
    families = [family]
    while (following := coarser(families[-1])) is not None:
        families.append(following)
    return families


def inherited_kappas(
    chains: Sequence[Sequence[Family]], kappa: Callable[[Family], float | None]
) -> dict[Family, float | None]:
    """Return kappa of all families of some chains; a family that was not scored takes it from its predecessor."""
    kappas: dict[Family, float | None] = {}
    for families in chains:
        current = kappa(chains[0][0])
        for family in families:
            own = kappa(family)
            current = current if own is None else own
            kappas.setdefault(family, current)
    return kappas


def shrink(own: Floats, coarser: Floats, weight: Floats, kappa: float) -> Floats:
    """Shrink log-probabilities towards those of the coarser family: (W p + kappa q) / (W + kappa).

    Parameters
    ----------
    own, coarser : arrays of shape (..., n_states)
    weight : array of shape (...)
        The weight W of the rows of the part.
    kappa : float
    """
    W = weight[..., None]
    with np.errstate(divide="ignore"):
        return np.logaddexp(own + np.log(W / (W + kappa)), coarser + np.log(kappa / (W + kappa)))


def fill_absent(own: Floats, coarser: Floats, weight: Floats) -> Floats:
    """Give absent states (-inf) a share of the coarser family's probability (see `network`); arguments as `shrink`."""
    share, absent = coarser - np.log1p(weight)[..., None], np.isneginf(own)
    moved = np.where(absent, np.exp(share), 0.0).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.where(absent, share, own + np.log1p(-np.minimum(moved, 1.0)))
