"""Hill climbing, for comparison: add, remove and reverse single edges as long as the score improves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from .chordal import greedy_order, moral_graph
from .limits import Limits
from .problem import Problem, SearchResult, members, topological_order
from .progress import SearchState


def hill_climb(problem: Problem, first: SearchResult, state: SearchState, limits: Limits) -> SearchResult:
    """Change the single edge that improves the score most, until none does.

    The search begins with the given start, otherwise with the smallest parent sets. An edge can be changed only if the
    new parent set is in the problem; sets that are no better than one of their subsets are not. With limits, a change
    is made only if greedy rules find an order of elimination within them.
    """
    table = [{mask: rank for rank, mask in enumerate(row)} for row in problem.masks]
    possible = [reduce(or_, row) for row in problem.masks]

    def allowed(masks: list[int]) -> bool:
        return topological_order(masks) is not None and (
            not limits or greedy_order(moral_graph(masks), limits) is not None
        )

    masks = [min(row, key=lambda mask: (mask.bit_count(), row[mask])) for row in table]
    if state.has_start or not allowed(masks):
        masks = [problem.masks[child][rank] for child, rank in enumerate(first.ranks)]
    threshold = 1e-12 * max(row[-1] for row in problem.regrets)
    while True:
        ranks = [table[child][mask] for child, mask in enumerate(masks)]
        reason = state.stop(ranks, first.least_regret)
        if reason:
            break
        moves = [move for move in _moves(problem, table, possible, masks) if move[0] > threshold]
        moves.sort(key=lambda move: -move[0])
        trials = ([change.get(child, mask) for child, mask in enumerate(masks)] for _, change in moves)
        better = next((trial for trial in trials if allowed(trial)), None)
        if better is None:
            break
        masks = better
    return SearchResult(ranks, first.least_regret, reason or "unproved")


def _moves(
    problem: Problem, table: list[dict[int, int]], possible: list[int], masks: list[int]
) -> Iterator[tuple[float, dict[int, int]]]:
    """Yield the changes of single edges with their gains; added edges close no cycle, reversed ones may."""
    ancestors = _ancestors(masks)
    assert ancestors is not None
    now = [problem.regrets[child][row[mask]] for child, (row, mask) in enumerate(zip(table, masks, strict=True))]
    for child, row in enumerate(table):
        for parent in members(possible[child]):
            changed = masks[child] ^ 1 << parent
            if changed not in row:
                continue
            gain = now[child] - problem.regrets[child][row[changed]]
            removed = masks[child] >> parent & 1
            if removed or not ancestors[parent] >> child & 1:
                yield gain, {child: changed}
            reverse = masks[parent] | 1 << child
            if removed and reverse in table[parent]:
                gain += now[parent] - problem.regrets[parent][table[parent][reverse]]
                yield gain, {child: changed, parent: reverse}


def _ancestors(masks: list[int]) -> list[int] | None:
    """Return the ancestors of each class variable as bit masks, or None if there is a cycle."""
    order = topological_order(masks)
    if order is None:
        return None
    ancestors = [*masks]
    for child in order:
        for parent in members(masks[child]):
            ancestors[child] |= ancestors[parent]
    return ancestors
