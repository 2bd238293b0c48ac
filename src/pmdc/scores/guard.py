"""The guard: a significance test on gains of held-out scores.

Let a family with p more parameters gain g over another, and let chi2 be twice the gain of the training rows. The more
held-out rows speak for the parameters, the less they are shrunk: the gain with the best shrinkage is about

    g = (chi2 - p)^2 / (2 chi2).

If the parameters have no effect, chi2 has a chi-squared distribution with p degrees of freedom, so its quantile gives
the gain that noise exceeds with a given probability: t nats. The standard error of g, a sum over rows, is then about
sqrt(2 g). If few rows make the gain, it is larger. So a gain must exceed t and, with its standard error s,
s sqrt(t / 2).

The number of tests is counted. `guard` is a number of standard errors for a whole graph: if no parent had any effect,
P(|Z| > guard), 5 % with 2, would be about the probability that the graph has an arc. There are m ways to add d parents,
over all class variables; each is tested at the level P(|Z| > guard) / m (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from scipy.stats import chi2, norm

from pmdc.candidates.families import Family, FamilyTable, ParentSet, in_order
from pmdc.scores.scorer import Gain


def least_gain(z: float, n_tests: float = 1.0, n_parameters: float = math.inf) -> float:
    """Return t: the held-out gain, in nats, that noise exceeds in one of several tests with probability P(|Z| > z).

    Parameters
    ----------
    z : float
        0 for no test.
    n_tests : float
    n_parameters : float
        The additional parameters p; t rises with it to a finite limit.
    """
    if not z:
        return 0.0
    level = 2 * norm.sf(z) / max(n_tests, 1.0)
    if n_parameters > 1e6:
        return max(float(norm.isf(level)), 0.0) ** 2
    quantile = float(chi2.isf(level, n_parameters))
    return max(quantile - n_parameters, 0.0) ** 2 / (2 * quantile)


def exceeds(gain: Gain, least: float) -> bool:
    """Return whether a gain is significant; with ``least=0``, whether it is positive."""
    return gain.value > max(least, gain.standard_error * math.sqrt(least / 2))


def guard(
    table: Mapping[Family, float],
    gain: Callable[[Family, Family], Gain],
    least: Callable[[Family, Family], float],
    required: Collection[int] = (),
) -> FamilyTable:
    """Return the accepted families of one class variable.

    A family is accepted if, for each of its parents, it scores significantly better than the best accepted family whose
    parents are among the others. The result depends on the finished table only. A family that gains nothing over a
    smaller one is never accepted; some optimal network does without it.

    Parameters
    ----------
    table : dict of family to score
    gain : function (family, other) -> Gain
    least : function (family, other) -> the gain that is significant
    required : collection of int
        Parents that are not tested.
    """
    ordered = in_order(table)
    groups: dict[ParentSet, list[Family]] = {}
    for family in ordered:
        groups.setdefault(family.parents, []).append(family)
    best: dict[ParentSet, Family | None] = {}
    accepted: list[Family] = []

    def best_within(parents: ParentSet) -> Family | None:
        """Return the best accepted family whose parents are among these."""
        if parents in best:
            return best[parents]
        allowed = [family for family in accepted if set(family.parents) <= set(parents)]
        return max(allowed, key=ordered.__getitem__, default=None)

    for parents in sorted(groups, key=lambda parents: (len(parents), parents)):
        subsets = [tuple(v for v in parents if v != gone) for gone in parents if gone not in required]
        rivals = list(dict.fromkeys(rival for rival in map(best_within, subsets) if rival is not None))
        own = [f for f in groups[parents] if all(exceeds(gain(f, rival), least(f, rival)) for rival in rivals)]
        accepted += own
        best[parents] = max([*own, *rivals], key=ordered.__getitem__, default=None)
    chosen = set(accepted)
    return {family: score for family, score in ordered.items() if family in chosen}
