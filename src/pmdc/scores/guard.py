"""The guard against noise: parents must gain more than chance would.

Held-out scores have errors, and the best of many is best by luck too. A family is accepted only if it scores better
than what the same class variable has without each one of its class variables, by more than z standard errors of the
difference. The best of m that are tried for the same place is better by luck by about sqrt(2 ln m) standard errors (the
greatest of m normal errors); it has to gain these too. Where all rows gain the same the standard error is 0, however
little that is: so z standard errors are also z^2 / 2 nats at least, which is where a likelihood ratio of one parameter
has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from pmdc.candidates.families import Family, FamilyTable, ParentSet, in_order
from pmdc.scores.scorer import Gain


def exceeds(gain: Gain, z: float, among: int = 1) -> bool:
    """Whether a gain, the best of some, is more than chance would bring; with ``z=0`` whether there is any."""
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
    """Return the families of one class variable that are worth their parents.

    The answer depends on the finished table alone. Families that gain nothing over a smaller one are left out whatever
    z is, which no best network misses.

    Parameters
    ----------
    table : dict of family to score
    gain : function (family, other) -> Gain
    z : float
    key : function family -> parent set
        The parents that have to be worth it: the class variables, or all parents.
    required : collection of int
        Parents that are not asked what they gain.
    discarded : collection of Family
        Families that have been refused already.
    """
    ordered = in_order({family: score for family, score in table.items() if family not in discarded})
    groups: dict[ParentSet, list[Family]] = {}
    for family in ordered:
        groups.setdefault(key(family), []).append(family)
    best: dict[ParentSet, Family | None] = {}
    accepted: list[Family] = []

    def best_within(parents: ParentSet) -> Family | None:
        """The best accepted family with no other parents than these."""
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
