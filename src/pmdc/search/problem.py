"""The score table in the form that the search methods use.

Class variables are numbered and parent sets are bit masks. Each class variable keeps only the sets that may be in a
best DAG, best first. Each set has a *regret*: the difference between the best score of its class variable and its own.
A DAG of least total regret is a DAG of greatest score.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .structure import show_set

if TYPE_CHECKING:
    from .limits import Limits


@dataclass(frozen=True)
class Problem:
    """Candidate parent sets of each class variable, ranked.

    Sets are ranked by score, ties by the number of parents (fewer first), then by the position of the parents in the
    score table. All methods refer to a parent set by its rank.
    """

    names: tuple[str, ...]
    masks: tuple[tuple[int, ...], ...]
    scores: tuple[tuple[float, ...], ...]
    regrets: tuple[tuple[float, ...], ...]

    def total_regret(self, ranks: Sequence[int]) -> float:
        """Return the total regret of the DAG with these parent sets."""
        return math.fsum(self.regrets[child][rank] for child, rank in enumerate(ranks))

    def total_score(self, ranks: Sequence[int]) -> float:
        """Return the score of the DAG with these parent sets."""
        return math.fsum(self.scores[child][rank] for child, rank in enumerate(ranks))

    def select(self, kept: Sequence[Sequence[int]]) -> Problem:
        """Return the problem with some of the parent sets of each class variable, given by their ranks."""
        return Problem(
            self.names,
            masks=tuple(tuple(row[rank] for rank in ranks) for row, ranks in zip(self.masks, kept, strict=True)),
            scores=tuple(tuple(row[rank] for rank in ranks) for row, ranks in zip(self.scores, kept, strict=True)),
            regrets=tuple(tuple(row[rank] for rank in ranks) for row, ranks in zip(self.regrets, kept, strict=True)),
        )

    def parents(self, ranks: Sequence[int]) -> dict[str, frozenset[str]]:
        """Return the DAG with these parent sets, by name."""
        return {
            name: frozenset(self.names[parent] for parent in members(self.masks[child][rank]))
            for child, (name, rank) in enumerate(zip(self.names, ranks, strict=True))
        }


class SearchResult(NamedTuple):
    """The result of a search method for one component."""

    ranks: list[int]
    """The rank of the parent set of each class variable."""
    least_regret: float
    """A lower bound: no DAG has a smaller total regret."""
    status: str


def members(mask: int) -> list[int]:
    """Return the positions of the class variables in a bit mask, in ascending order."""
    positions = []
    while mask:
        positions.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return positions


def build_problem(
    scores: Mapping[str, Mapping[frozenset[str], float]],
    required: Mapping[str, set[str]],
    forbidden: Mapping[str, set[str]],
    limits: Limits,
) -> Problem:
    """Drop parent sets that edges or limits exclude or that are dominated, and rank the rest."""
    bit = {name: 1 << position for position, name in enumerate(scores)}
    masks, values = [], []
    for child, table in scores.items():
        # Apply the edges first: a set must not be dominated by one that lacks a required parent.
        allowed = {
            sum(bit[parent] for parent in parents): score
            for parents, score in table.items()
            if required[child] <= parents and not forbidden[child] & parents
        }
        if not allowed:
            raise ValueError(
                f"scores[{child!r}] has no parent set left: none of its {len(table)} sets with a score above -inf has "
                f"all required parents {show_set(required[child])} and no forbidden parents "
                f"{show_set(forbidden[child] & frozenset().union(*table))}; add such a set, or change "
                "required_edges, forbidden_edges and tiers."
            )
        fitting = {mask: score for mask, score in allowed.items() if limits.fits(mask | bit[child])}
        if not fitting:
            smallest = limits.describe(min((mask | bit[child] for mask in allowed), key=limits.cells))
            raise ValueError(
                f"scores[{child!r}] has no parent set left within {limits}: with each of its {len(allowed)} allowed "
                f"sets {child!r} forms a clique that is too large, the smallest one of {smallest}; add a smaller set, "
                "such as frozenset(), or raise the bound."
            )
        ranked = _undominated(fitting)
        masks.append(tuple(ranked))
        values.append(tuple(fitting[mask] for mask in ranked))
    regrets = tuple(tuple(row[0] - score for score in row) for row in values)
    return Problem(tuple(scores), tuple(masks), tuple(values), regrets)


class Component(NamedTuple):
    """A set of class variables that can be on a common cycle, as a problem of its own."""

    members: tuple[int, ...]
    """Their positions in the whole problem."""
    problem: Problem
    whole_ranks: tuple[tuple[int, ...], ...]
    """For each member and each of its parent sets here: the rank in the whole problem."""


def whole(problem: Problem) -> Component:
    """Return all class variables as one component."""
    ranks = tuple(tuple(range(len(row))) for row in problem.masks)
    return Component(tuple(range(len(problem.names))), problem, ranks)


def split(problem: Problem) -> list[Component]:
    """Split the problem into the strongly connected components of the graph of possible parents.

    No cycle leaves a component, so each can be solved separately: of the parent sets of a class variable that are equal
    within the component, only the best is kept. The least total regret is the sum over the components.
    """
    count = len(problem.names)
    possible = [0] * count
    for child, row in enumerate(problem.masks):
        for mask in row:
            possible[child] |= mask
    edges = [(parent, child) for child, mask in enumerate(possible) for parent in members(mask)]
    graph = csr_array((np.ones(len(edges)), tuple(zip(*edges, strict=True)) or ([], [])), shape=(count, count))
    _, labels = connected_components(graph, directed=True, connection="strong")
    components = []
    for label in dict.fromkeys(labels.tolist()):
        inside = tuple(np.flatnonzero(labels == label).tolist())
        place = {position: i for i, position in enumerate(inside)}
        outside = sum(1 << position for position in range(count) if position not in place)
        masks, ranks = [], []
        for child in inside:
            seen: dict[int, int] = {}
            for rank, mask in enumerate(problem.masks[child]):
                seen.setdefault(sum(1 << place[p] for p in members(mask) if p in place), rank)
            # Without parents outside, the sets are unchanged and none is dominated.
            kept = _without_supersets(seen) if possible[child] & outside else seen
            masks.append(tuple(kept))
            ranks.append(tuple(kept.values()))
        own = Problem(
            names=tuple(problem.names[child] for child in inside),
            masks=tuple(masks),
            scores=tuple(tuple(problem.scores[c][r] for r in row) for c, row in zip(inside, ranks, strict=True)),
            regrets=tuple(tuple(problem.regrets[c][r] for r in row) for c, row in zip(inside, ranks, strict=True)),
        )
        components.append(Component(inside, own, tuple(ranks)))
    return components


def start_masks(problem: Problem, parents: Mapping[str, frozenset[str]]) -> list[int]:
    """Return the parents of a given DAG as bit masks; raise a ValueError if it is not usable as a start."""
    bit = {name: 1 << position for position, name in enumerate(problem.names)}
    masks = [sum(bit[parent] for parent in parents[name]) for name in problem.names]
    for name, row, mask in zip(problem.names, problem.masks, masks, strict=True):
        if not any(other & mask == other for other in row):
            raise ValueError(
                f"start gives {name!r} the parents {show_set(parents[name])}: neither they nor a subset of them is a "
                "parent set that scores, required_edges and forbidden_edges allow."
            )
    if topological_order(masks) is None:
        raise ValueError("start has a cycle: give a DAG.")
    return masks


def ranks_within(component: Component, masks: Sequence[int]) -> list[int]:
    """Return the rank of the best parent set within the given parents, for each class variable of a component."""
    ranks = []
    for position, row in zip(component.members, component.problem.masks, strict=True):
        given = sum(1 << i for i, parent in enumerate(component.members) if masks[position] >> parent & 1)
        ranks.append(next(rank for rank, mask in enumerate(row) if mask & given == mask))
    return ranks


def _without_supersets(ranks: Mapping[int, int]) -> dict[int, int]:
    """Drop the sets that contain a better one."""
    kept: dict[int, int] = {}
    for mask, rank in ranks.items():  # best first
        if not any(other & mask == other for other in kept):
            kept[mask] = rank
    return kept


def _undominated(scores: Mapping[int, float]) -> list[int]:
    """Return the sets that score more than each of their proper subsets, ranked.

    This is exact: replacing a set by a subset removes edges, which cannot create a cycle, nor a larger clique: the
    moral graph loses edges, and every order of elimination then has the same or smaller cliques.
    """
    preference = sorted(scores, key=lambda mask: (-scores[mask], mask.bit_count(), members(mask)))

    # Small sets have few subsets, which are looked up recursively with a cache. Large sets have too many and are
    # compared with each better set instead.
    everyone, widest = 0, 0
    for mask in scores:
        everyone |= mask
        widest = max(widest, mask.bit_count())
    subsets = min(sum(1 << mask.bit_count() for mask in scores), 1 << everyone.bit_count())
    if subsets * (widest + 1) > len(scores) ** 2:
        return list(_without_supersets(dict.fromkeys(preference, 0)))

    @cache
    def best_below(mask: int) -> float:
        """Return the greatest score among the proper subsets of a set."""
        best = -math.inf
        for parent in members(mask):
            without = mask ^ 1 << parent
            best = max(best, scores.get(without, -math.inf), best_below(without))
        return best

    return [mask for mask in preference if best_below(mask) < scores[mask]]


def greedy_dag(problem: Problem) -> SearchResult:
    """Return a first DAG: repeatedly place the class variable whose best available parent set has the least regret.

    A set is available when all its parents are placed. When the largest regret is taken, no remaining class variable
    has an available set of smaller regret, so every DAG has at least that regret: this is the lower bound, and the
    result is within a factor K of it. The function fails only if there is no DAG.
    """
    count = len(problem.names)
    missing = [[mask.bit_count() for mask in row] for row in problem.masks]
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    available: list[tuple[float, int, int]] = []
    for child, row in enumerate(problem.masks):
        for rank, mask in enumerate(row):
            for parent in members(mask):
                waiting[parent].append((child, rank))
            if not mask:
                available.append((problem.regrets[child][rank], child, rank))
    heapq.heapify(available)

    ranks = [-1] * count
    least = 0.0
    while available:
        regret, placed, placed_rank = heapq.heappop(available)
        if ranks[placed] >= 0:
            continue
        ranks[placed] = placed_rank
        least = max(least, regret)
        for child, rank in waiting[placed]:
            missing[child][rank] -= 1
            if not missing[child][rank] and ranks[child] < 0:
                heapq.heappush(available, (problem.regrets[child][rank], child, rank))
    if -1 in ranks:
        stuck = [name for name, rank in zip(problem.names, ranks, strict=True) if rank < 0]
        raise ValueError(
            f"scores admit no DAG: every parent set of each of {show_set(stuck)} contains another of them, so each "
            "choice has a cycle; give one of them a set without the others, such as frozenset(), or relax "
            "required_edges and forbidden_edges."
        )
    return SearchResult(ranks, least, "unproved")


def topological_order(masks: Sequence[int]) -> list[int] | None:
    """Return an order of the class variables with parents before children, or None if there is a cycle."""
    order: list[int] = []
    placed = 0
    while len(order) < len(masks):
        n_before = len(order)
        for child, mask in enumerate(masks):
            if not placed >> child & 1 and not mask & ~placed:
                order.append(child)
                placed |= 1 << child
        if len(order) == n_before:
            return None
    return order


def settle_ties(
    problem: Problem, ranks: Sequence[int], allowed: Callable[[int, int], bool] = lambda child, mask: True
) -> list[int]:
    """Replace parent sets by higher-ranked ones of the same score, as long as this creates no cycle.

    So no method returns a larger set where a smaller one has the same score. Only sets that are `allowed` are used.
    """
    settled = list(ranks)
    chosen = [problem.masks[child][rank] for child, rank in enumerate(settled)]
    changed = True
    while changed:
        changed = False
        for child, scores in enumerate(problem.scores):
            current = settled[child]
            for rank in range(scores.index(scores[current]), current):
                mask = problem.masks[child][rank]
                trial = [*chosen[:child], mask, *chosen[child + 1 :]]
                if allowed(child, mask) and topological_order(trial) is not None:
                    settled[child], chosen[child] = rank, mask
                    changed = True
                    break
    return settled
