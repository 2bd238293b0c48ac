"""Search for structures within limits, region by region.

`improve_region` takes a region of a DAG, at most some tens of class variables that are near each other in the tree of
cliques, and changes their parents while all others are fixed (simulated annealing by `rebuilding.anneal`). It is called
in rounds:

1. The first round only improves.
2. The next ones start from the best DAG known and cool down: at first they also accept worse DAGs, in the end only
   better ones. Each is twice as long as the one before.

Regions are to the search what local improvement is to BN-SLIM (Peruvemba Ramaswamy and Szeider, "Turbocharging
treewidth-bounded Bayesian network structure learning", AAAI 2021), where a MaxSAT solver works on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

from .limits import Limits
from .problem import Problem, members
from .progress import SearchState
from .rebuilding import Bounds
from .region_kernels import Network, Table, improve_region

_SIZES = 40, 60
"""Most class variables in a region, by turns; at most 64, which fit into one word."""
_STEPS = 400
"""Changes that are tried in a region."""
_HOT, _COLD = 0.05, 0.0025
"""First and last temperature of a round, in units of the difference between the best and the worst parent set of a
class variable, on average. (The regret of the best DAG as a unit would freeze problems in which it is small.)"""
_PATIENCE, _MAX_ROUNDS = 2, 5
"""Without limits of time or iterations, the search ends after so many rounds without improvement, or in all."""


def search(
    problem: Problem,
    limits: Limits,
    first: list[int],
    order: list[int],
    state: SearchState,
    random_state: int,
    max_iter: int | None,
    least_regret: float,
) -> tuple[list[int], list[int], str]:
    """Return the best DAG found, its order of elimination, and why the search must stop, or "".

    An iteration is a region. The result is deterministic unless a limit of time or an interruption ends the search.
    """
    table = _table(problem, limits)
    network = Network(table.start[:-1] + np.array(first, dtype=np.int64), np.array(order, dtype=np.int64))
    seed = np.random.default_rng(random_state).integers(1, 2**63, size=1, dtype=np.uint64)
    best = list(first), list(order)
    least, unit = problem.total_regret(first), float(np.mean([regrets[-1] for regrets in problem.regrets]))
    improved = 0  # the last round that has
    for i, (round_, warmth) in enumerate(_rounds(len(first))):
        if reason := state.stop(best[0], least_regret):
            return *best, reason
        if i == max_iter or least <= least_regret:
            break
        if max_iter is None and state.deadline == math.inf and round_ >= min(improved + _PATIENCE + 1, _MAX_ROUNDS):
            break
        if warmth == _HOT:  # a new round
            network.chosen[:] = table.start[:-1] + np.array(best[0])
            network.order[:] = best[1]
        improve_region(table, network, _SIZES[i % len(_SIZES)], _STEPS, warmth * unit, seed)
        ranks = (network.chosen - table.start[:-1]).tolist()
        regret = problem.total_regret(ranks)
        if regret < least:
            best, least, improved = (ranks, network.order.tolist()), regret, round_
    return *best, ""


def _rounds(n_variables: int) -> Iterator[tuple[int, float]]:
    """Yield the number of the round and the temperature of each region."""
    for round_ in count():
        length = n_variables << max(0, round_ - 1)
        for i in range(length):
            yield round_, 0.0 if round_ == 0 else _HOT * (_COLD / _HOT) ** (i / length)


def _table(problem: Problem, limits: Limits) -> Table:
    parents = [members(mask) for row in problem.masks for mask in row]
    cells = limits.max_clique_cells
    sizes = np.ones(len(problem.names)) if cells is None else np.array(limits.sizes, dtype=float)
    most = len(problem.names) if limits.max_treewidth is None else limits.max_treewidth + 1
    return Table(
        start=np.cumsum([0, *map(len, problem.masks)]),
        first=np.cumsum([0, *map(len, parents)]),
        parents=np.array([parent for row in parents for parent in row], dtype=np.int64),
        regrets=np.array([regret for row in problem.regrets for regret in row]),
        bounds=Bounds(sizes, most, math.inf if cells is None else float(cells)),
    )
