"""Fit the local models of the chosen families, and those they back off to, on all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family
from pmdc.learners.protocols import LocalLearner
from pmdc.learners.tasks import LocalTask
from pmdc.network.backoff import backoff_chains, inherited_kappas
from pmdc.network.network import Level, Network, Node
from pmdc.scores.fitter import Fitter
from pmdc.scores.scorer import Parallel

Winner = tuple[int, Sequence[Sequence[Family]], dict[Family, float | None]]
"""A class variable, the chains of families that it backs off to, its own first, and kappa of each family."""


def fit_network(
    fitter: Fitter,
    parallel: Parallel,
    chosen: Sequence[Family],
    kappa: Callable[[int, Family], float | None],
    backoff: bool,
) -> Network:
    """Fit the local models of the chosen families and, with `backoff`, those they back off to.

    `kappa` returns the shrinkage of a scored family towards the coarser one.
    """
    tell_phase("fitting the local models")
    winners: list[Winner] = []
    for child, family in enumerate(chosen):
        chains = backoff_chains(partial(fitter.coarser, child), family, fitter.n_classes)
        winners.append((child, chains, inherited_kappas(chains, partial(kappa, child))))
    nodes = parallel(fit_node, winners, fitter, backoff)
    return Network(nodes, tuple(learner.prepare for learner in fitter.learners), fitter.sizes)


def fit_node(winner: Winner, fitter: Fitter, backoff: bool) -> Node:
    """Fit the local models of one class variable and, with `backoff`, those they back off to."""
    child, chains, kappas = winner
    levels: dict[Family, Level] = {}
    fewer: dict[Family, Family] = {}
    for chain in chains if backoff else [chains[0][:1]]:
        fewer.update(pairwise(chain))
        for family in chain:
            if family not in levels:
                local = fitter.local(child, family)
                levels[family] = _level(local.task, local.learner, kappas[family])
    return Node(chains[0][0], fitter.sizes[child], fitter.sizes, levels, fewer, backoff)


def fit_root(learner: LocalLearner, task: LocalTask) -> Node:
    """Fit the local model of a class variable without parents."""
    return Node(Family(()), task.n_states, (), {Family(()): _level(task, learner, None)}, {}, backoff=True)


def _level(task: LocalTask, learner: LocalLearner, kappa: float | None) -> Level:
    weights = task.partition.weights(learner.sample_weight)
    return Level(task.partition.configurations, learner.fit(task), weights, kappa)
