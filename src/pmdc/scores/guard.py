"""The guard: a significance test on differences of held-out scores.

A family is accepted only if, for each class variable among its parents, it scores better than the best accepted family
without that parent, by more than z standard errors of the difference. The best of m alternatives must gain
sqrt(2 ln m) standard errors more, about the largest of m normal errors. If all rows gain the same, the standard error
is 0 however small the gain; so a gain must also exceed z^2 / 2 nats, the threshold of a likelihood ratio test of one
parameter at z standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from pmdc.candidates.families import Family, FamilyTable, ParentSet, in_order
from pmdc.scores.scorer import Gain


def exceeds(gain: Gain, z: float, among: int = 1) -> bool:
    """Return whether a gain, the best of `among`, is significant; with ``z=0``, whether it is positive."""
    if gain.value <= 0 or not z:
        return gain.value > 0
    errors = z + math.sqrt(2 * math.log(among))
    return gain.value > max(errors * gain.standard_error, errors**2 / 2)


def guard(
    table: Mapping[Family, float],
    gain: Callable[[Family, Family], Gain],
    z: float,
    key: Callable[[Family], ParentSet],
    required: Collection[int] = (),
    discarded: Collection[Family] = (),
) -> FamilyTable:
    """Return the accepted families of one class variable.

    The result depends on the finished table only. A family that gains nothing over a smaller one is never accepted;
    some optimal network does without it.

    Parameters
    ----------
    table : dict of family to score
    gain : function (family, other) -> Gain
    z : float
    key : function family -> parent set
        The parents that are tested: the class variables, or all parents.
    required : collection of int
        Parents that are not tested.
    discarded : collection of Family
        Families that were rejected before.
    """
    ordered = in_order({family: score for family, score in table.items() if family not in discarded})
    groups: dict[ParentSet, list[Family]] = {}
    for family in ordered:
        groups.setdefault(key(family), []).append(family)
    best: dict[ParentSet, Family | None] = {}
    accepted: list[Family] = []

    def best_within(parents: ParentSet) -> Family | None:
        """Return the best accepted family whose parents are among these."""
        if parents in best:
            return best[parents]
        allowed = [family for family in accepted if set(key(family)) <= set(parents)]
        return max(allowed, key=ordered.__getitem__, default=None)

    for parents in sorted(groups, key=lambda parents: (len(parents), parents)):
        subsets = [tuple(v for v in parents if v != gone) for gone in parents if gone not in required]
        rivals = [rival for rival in map(best_within, subsets) if rival is not None]
        own = [f for f in groups[parents] if all(exceeds(gain(f, rival), z) for rival in dict.fromkeys(rivals))]
        accepted += own
        best[parents] = max([*own, *rivals], key=ordered.__getitem__, default=None)
    return {family: score for family, score in ordered.items() if family in set(accepted)}
