"""Pruning of parent sets: the Lemma and the Definition of the paper's appendix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np

from pmdc._support.checks import check_choice
from pmdc.candidates.families import ParentSet
from pmdc.candidates.rules import ParentRules

ScoreTable = dict[ParentSet, float]

Visited = Iterable[tuple[ParentSet, float]]
"""Parent sets with their penalties."""


class NoPruning:
    """No pruning: every set is scored."""

    def survivors(self, child: int, sets: Visited) -> list[ParentSet]:
        return [parents for parents, _ in sets]

    def record(self, child: int, parents: ParentSet, score: float) -> None:
        pass

    def table(self, child: int, scores: ScoreTable) -> ScoreTable:
        return scores


@dataclass
class LemmaPruning(NoPruning):
    """The Lemma of the appendix: discard D' when a subset D has S(Y, D) >= -pen(D').

    C(Y, D') <= 0, so S(Y, D') <= -pen(D') <= S(Y, D), and D can replace D' without closing a cycle: the optimum is
    preserved, for any penalty. Subsets that lack a required edge are never visited, so they cannot prune.
    """

    rules: Sequence[ParentRules]
    best: dict[tuple[int, ParentSet], float] = field(default_factory=dict)
    """The greatest score among the subsets of a set, including itself."""

    def _best_subset(self, child: int, parents: ParentSet) -> float:
        required = self.rules[child].required
        subsets = (parents[:i] + parents[i + 1 :] for i, v in enumerate(parents) if v not in required)
        return max((self.best[child, subset] for subset in subsets), default=-np.inf)

    def survivors(self, child: int, sets: Visited) -> list[ParentSet]:
        kept = []
        for parents, penalty in sets:
            bound = self.best[child, parents] = self._best_subset(child, parents)
            if bound < -penalty or np.isneginf(bound):
                kept.append(parents)
        return kept

    def record(self, child: int, parents: ParentSet, score: float) -> None:
        self.best[child, parents] = max(self.best[child, parents], score)


@dataclass
class DefinitionPruning(NoPruning):
    """The paper's refinement taken literally (Definition and Algorithm 3): a heuristic.

    When the best subset D* of D' has S(Y, D*) >= -pen(D'), all supersets of D* are discarded, not only those of D'.
    One of the others may have the greatest score: the optimum can be lost.
    """

    rules: Sequence[ParentRules]
    scores: dict[int, ScoreTable] = field(default_factory=dict)
    stars: dict[int, set[frozenset[int]]] = field(default_factory=dict)

    def _discarded(self, child: int, parents: ParentSet) -> bool:
        return any(star < frozenset(parents) for star in self.stars.get(child, ()))

    def survivors(self, child: int, sets: Visited) -> list[ParentSet]:
        known = self.scores.setdefault(child, {})
        visited = []
        for parents, penalty in sets:
            visited.append(parents)
            if self._discarded(child, parents):
                continue
            subsets = chain.from_iterable(combinations(parents, size) for size in range(len(parents)))
            alive = [s for s in subsets if s in known and not self._discarded(child, s)]
            star = max(alive, key=known.__getitem__, default=None)
            if star is not None and known[star] >= -penalty:
                self.stars.setdefault(child, set()).add(frozenset(star))
        return [parents for parents in visited if not self._discarded(child, parents)]

    def record(self, child: int, parents: ParentSet, score: float) -> None:
        self.scores.setdefault(child, {})[parents] = score

    def table(self, child: int, scores: ScoreTable) -> ScoreTable:
        return {parents: score for parents, score in scores.items() if not self._discarded(child, parents)}


PRUNING = ("lemma", "definition", None)


def make_pruning(prune: str | None, rules: Sequence[ParentRules]) -> NoPruning:
    """Return the pruning of this name."""
    check_choice("prune", prune, PRUNING)
    return NoPruning() if prune is None else LemmaPruning(rules) if prune == "lemma" else DefinitionPruning(rules)
