"""Which local models a family falls back on, and how its answers are put together with theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations

import numpy as np

from pmdc._support.arrays import Floats
from pmdc.candidates.families import Family


def backoff_chains(coarser: Callable[[Family], Family | None], family: Family, n_classes: int) -> list[list[Family]]:
    """List the families to fall back on: a chain for the family itself, and one without each choice of its features.

    The latter answer for values of discrete features that were never seen. Each chain becomes coarser at every step,
    down to the family that does not partition the rows.
    """
    features = [v for v in family.partition if v >= n_classes]
    unseen = chain.from_iterable(combinations(features, size) for size in range(len(features) + 1))
    return [_chain(coarser, family.without(*gone)) for gone in unseen]


def _chain(coarser: Callable[[Family], Family | None], family: Family) -> list[Family]:
    families = [family]
    while (following := coarser(families[-1])) is not None:
        families.append(following)
    return families


def inherited_kappas(
    chains: Sequence[Sequence[Family]], kappa: Callable[[Family], float | None]
) -> dict[Family, float | None]:
    """Return kappa of all families of some chains; one that was not scored has that of the one before it."""
    first = kappa(chains[0][0])
    found: dict[Family, float | None] = {}
    for families in chains:
        last = first
        for family in families:
            own = kappa(family)
            last = last if own is None else own
            found.setdefault(family, last)
    return found


def shrink(own: Floats, coarser: Floats, weight: Floats, kappa: float) -> Floats:
    """Shrink log-probabilities towards those of the coarser family: (W p + kappa q) / (W + kappa).

    Parameters
    ----------
    own, coarser : arrays of shape (n, n_configurations, n_states)
    weight : array of shape (n, n_configurations)
        The weight of the rows behind each of the former.
    kappa : float
    """
    W = weight[..., None]
    with np.errstate(divide="ignore"):
        return np.logaddexp(own + np.log(W / (W + kappa)), coarser + np.log(kappa / (W + kappa)))


def fill_absent(own: Floats, coarser: Floats, weight: Floats) -> Floats:
    """Give absent states (-inf) their share of what the coarser family answers, as `network` says; as in `shrink`."""
    share, absent = coarser - np.log1p(weight)[..., None], np.isneginf(own)
    taken = np.where(absent, np.exp(share), 0.0).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.where(absent, share, own + np.log1p(-np.minimum(taken, 1.0)))
