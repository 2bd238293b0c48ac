"""The score table in the form that the exact methods work on.

Class variables become positions and parent sets become bit masks. Of each class variable only those sets
remain that may stand in a best DAG, best first, and instead of its score each carries its *regret*: what is
lost against the best set of the same class variable. A DAG of least total regret is a DAG of greatest score.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .structure import show_set


@dataclass(frozen=True)
class Problem:
    """Candidate parent sets of each class variable, in the order of preference.

    A set is preferred to another if it has the greater score; at equal scores if it has fewer parents; then
    if its parents stand earlier in the score table. Both exact methods name a parent set by its rank in this
    order.
    """

    names: tuple[str, ...]
    masks: tuple[tuple[int, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    regrets: tuple[tuple[float, ...], ...]

    def total_regret(self, ranks: Sequence[int]) -> float:
        """What the DAG of these parent sets loses against the best set of every class variable."""
        return math.fsum(self.regrets[child][rank] for child, rank in enumerate(ranks))

    def total_score(self, ranks: Sequence[int]) -> float:
        """The score of the DAG of these parent sets."""
        return math.fsum(self.scores[child][rank] for child, rank in enumerate(ranks))

    def parents(self, ranks: Sequence[int]) -> dict[str, frozenset[str]]:
        """The DAG of these parent sets, by name."""
        return {
            name: frozenset(self.names[parent] for parent in members(self.masks[child][rank]))
            for child, (name, rank) in enumerate(zip(self.names, ranks, strict=True))
        }


class Outcome(NamedTuple):
    """What an exact method hands back: the rank of each parent set, and what it proved."""

    ranks: list[int]
    least_regret: float  # no DAG has less
    status: str


def members(mask: int) -> list[int]:
    """The positions of the class variables in a bit mask, in ascending order."""
    positions = []
    while mask:
        positions.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return positions


def build_problem(
    scores: Mapping[str, Mapping[frozenset[str], float]],
    required: Mapping[str, set[str]],
    forbidden: Mapping[str, set[str]],
) -> Problem:
    """Drop what the edges exclude and what is dominated, and rank the rest."""
    bit = {name: 1 << position for position, name in enumerate(scores)}
    masks, values = [], []
    for child, table in scores.items():
        # The required parents are in every set that remains, so dominance compares only allowed sets.
        allowed = {
            sum(bit[parent] for parent in parents): score
            for parents, score in table.items()
            if required[child] <= parents and not forbidden[child] & parents
        }
        if not allowed:
            raise ValueError(_nothing_left(child, table, required[child], forbidden[child]))
        ranked = _undominated(allowed)
        masks.append(tuple(ranked))
        values.append(tuple(allowed[mask] for mask in ranked))
    regrets = tuple(tuple(row[0] - score for score in row) for row in values)
    return Problem(tuple(scores), tuple(masks), tuple(values), regrets)


class Part(NamedTuple):
    """Class variables that may stand on a cycle together, as a problem of their own."""

    members: tuple[int, ...]
    """Their positions in the whole problem."""
    problem: Problem
    whole_ranks: tuple[tuple[int, ...], ...]
    """For each of them the rank in the whole problem of each of its parent sets here."""


def whole(problem: Problem) -> Part:
    """All class variables as one part."""
    ranks = tuple(tuple(range(len(row))) for row in problem.masks)
    return Part(tuple(range(len(problem.names))), problem, ranks)


def split(problem: Problem) -> list[Part]:
    """The strongly connected components of the graph of possible parents.

    No cycle leaves a component, so each can be solved on its own: of the parent sets of a class variable that are alike
    within the component, only the best counts. What is lost by the best DAG is the sum over the components.
    """
    count = len(problem.names)
    possible = [0] * count
    for child, row in enumerate(problem.masks):
        for mask in row:
            possible[child] |= mask
    edges = [(parent, child) for child, mask in enumerate(possible) for parent in members(mask)]
    graph = csr_array((np.ones(len(edges)), tuple(zip(*edges, strict=True)) or ([], [])), shape=(count, count))
    _, component = connected_components(graph, directed=True, connection="strong")
    parts = []
    for number in dict.fromkeys(component.tolist()):
        inside = tuple(np.flatnonzero(component == number).tolist())
        place = {position: i for i, position in enumerate(inside)}
        outside = sum(1 << position for position in range(count) if position not in place)
        masks, ranks = [], []
        for child in inside:
            seen: dict[int, int] = {}
            for rank, mask in enumerate(problem.masks[child]):
                seen.setdefault(sum(1 << place[p] for p in members(mask) if p in place), rank)
            # Where no parent is outside, the sets are as they were, and none contains a better one.
            kept = _without_supersets(seen) if possible[child] & outside else seen
            masks.append(tuple(kept))
            ranks.append(tuple(kept.values()))
        part = Problem(
            names=tuple(problem.names[child] for child in inside),
            masks=tuple(masks),
            scores=tuple(tuple(problem.scores[c][r] for r in row) for c, row in zip(inside, ranks, strict=True)),
            regrets=tuple(tuple(problem.regrets[c][r] for r in row) for c, row in zip(inside, ranks, strict=True)),
        )
        parts.append(Part(inside, part, tuple(ranks)))
    return parts


def start_masks(problem: Problem, parents: Mapping[str, frozenset[str]]) -> list[int]:
    """The parents of a given DAG as bits; each class variable must have a set within them."""
    bit = {name: 1 << position for position, name in enumerate(problem.names)}
    masks = [sum(bit[parent] for parent in parents[name]) for name in problem.names]
    for name, row, mask in zip(problem.names, problem.masks, masks, strict=True):
        if not any(other & mask == other for other in row):
            raise ValueError(
                f"start gives {name!r} the parents {show_set(parents[name])}: neither they nor a part of them are a "
                "parent set that scores, required_edges and forbidden_edges leave to it"
            )
    if not is_acyclic(masks):
        raise ValueError("start has a cycle: give a DAG")
    return masks


def inside(part: Part, masks: Sequence[int]) -> list[int]:
    """For each class variable of a part the rank of its best set within the given parents."""
    ranks = []
    for position, row in zip(part.members, part.problem.masks, strict=True):
        given = sum(1 << i for i, parent in enumerate(part.members) if masks[position] >> parent & 1)
        ranks.append(next(rank for rank, mask in enumerate(row) if mask & given == mask))
    return ranks


def _without_supersets(ranks: Mapping[int, int]) -> dict[int, int]:
    """Without the sets that contain a better one: they are no more allowed, and worth less."""
    kept: dict[int, int] = {}
    for mask, rank in ranks.items():  # best first
        if not any(other & mask == other for other in kept):
            kept[mask] = rank
    return kept


def _nothing_left(child: str, table: Mapping[frozenset[str], float], required: set[str], forbidden: set[str]) -> str:
    message = f"scores[{child!r}] has no parent set left: "
    if not table:
        return message + "give at least one set a score above -inf, such as {frozenset(): 0.0}"
    return message + (
        f"none of its {len(table)} sets with a score above -inf has all of its required parents "
        f"{show_set(required)} and none of its forbidden parents {show_set(forbidden)}; add such a set or "
        "relax required_edges and forbidden_edges"
    )


def _undominated(scores: Mapping[int, float]) -> list[int]:
    """The sets that score more than each of their subsets, in the order of preference.

    Exact: replacing a set by a subset takes edges away, which keeps a DAG a DAG.
    """
    preference = sorted(scores, key=lambda mask: (-scores[mask], mask.bit_count(), members(mask)))

    # Two ways to the same answer. Small sets have few subsets, which are looked up with the subsets' own
    # results kept; large sets have too many, and are compared with each preferred set instead.
    everyone, widest = 0, 0
    for mask in scores:
        everyone |= mask
        widest = max(widest, mask.bit_count())
    subsets = min(sum(1 << mask.bit_count() for mask in scores), 1 << everyone.bit_count())
    if subsets * (widest + 1) > len(scores) ** 2:
        kept: list[int] = []
        for mask in preference:
            if not any(other & mask == other for other in kept):
                kept.append(mask)
        return kept

    @cache
    def best_below(mask: int) -> float:
        """The greatest score among the proper subsets of a set."""
        best = -math.inf
        for parent in members(mask):
            without = mask ^ 1 << parent
            best = max(best, scores.get(without, -math.inf), best_below(without))
        return best

    return [mask for mask in preference if best_below(mask) < scores[mask]]


def greedy_dag(problem: Problem) -> Outcome:
    """A first DAG: again and again place the class variable that regrets least, given those already placed.

    When the largest of its regrets is taken, no class variable that is left has a set of smaller regret open
    to it. So every DAG takes at least that regret for one of them, the result is within a factor K of the
    least total regret, and this fails only if there is no DAG at all.
    """
    count = len(problem.names)
    missing = [[mask.bit_count() for mask in row] for row in problem.masks]
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    open_sets: list[tuple[float, int, int]] = []
    for child, row in enumerate(problem.masks):
        for rank, mask in enumerate(row):
            for parent in members(mask):
                waiting[parent].append((child, rank))
            if not mask:
                open_sets.append((problem.regrets[child][rank], child, rank))
    heapq.heapify(open_sets)

    ranks = [-1] * count
    least = 0.0
    while open_sets:
        regret, placed, placed_rank = heapq.heappop(open_sets)
        if ranks[placed] >= 0:
            continue
        ranks[placed] = placed_rank
        least = max(least, regret)
        for child, rank in waiting[placed]:
            missing[child][rank] -= 1
            if not missing[child][rank] and ranks[child] < 0:
                heapq.heappush(open_sets, (problem.regrets[child][rank], child, rank))
    if -1 in ranks:
        stuck = [name for name, rank in zip(problem.names, ranks, strict=True) if rank < 0]
        raise ValueError(
            f"scores admit no DAG: every parent set left for each of {show_set(stuck)} contains another of "
            "them, so each choice has a cycle; give one of them a set without the others, such as "
            "frozenset(), or relax required_edges and forbidden_edges"
        )
    return Outcome(ranks, least, "unproved")


def is_acyclic(masks: Sequence[int]) -> bool:
    """Whether the graph with these parents of each class variable has no cycle."""
    placed = 0
    left = list(enumerate(masks))
    while left:
        later = [(child, mask) for child, mask in left if mask & ~placed]
        if len(later) == len(left):
            return False
        for child, mask in left:
            if not mask & ~placed:
                placed |= 1 << child
        left = later
    return True


def settle_ties(problem: Problem, ranks: Sequence[int]) -> list[int]:
    """Replace parent sets by preferred ones of the same score as long as no cycle arises.

    So no method prefers a larger set to a smaller one of the same score, whatever it went by.
    """
    settled = list(ranks)
    chosen = [problem.masks[child][rank] for child, rank in enumerate(settled)]
    changed = True
    while changed:
        changed = False
        for child, scores in enumerate(problem.scores):
            current = settled[child]
            for rank in range(scores.index(scores[current]), current):
                if is_acyclic([*chosen[:child], problem.masks[child][rank], *chosen[child + 1 :]]):
                    settled[child], chosen[child] = rank, problem.masks[child][rank]
                    changed = True
                    break
    return settled
