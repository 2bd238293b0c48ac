"""Candidate parent sets: enumeration, pruning and the score table.

Nodes are numbered: class variables first, then discrete features. A parent set is the sorted tuple of its nodes.
Sets are visited level by level (Algorithm 3), so that the scores of all subsets are known when a set comes up
and pruning can spare its local models. All local models of a level are independent of each other.

So it is where all parents divide the rows, the paper's way; for parents that may be inputs see `pmdc.family_search`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations

import numpy as np

from pmdc.checks import check_choice
from pmdc.families import ParentSet
from pmdc.progress import tell_phase

ScoreTable = dict[ParentSet, float]


@dataclass(frozen=True)
class ParentRules:
    """Which parent sets one class variable may have: F^Y in the paper.

    Attributes
    ----------
    child : int
    n_classes : int
        Nodes below this number are class variables, the others discrete features.
    optional : tuple of int
        The nodes that may be parents, best first where they were ranked.
    required : frozenset of int
        The nodes that must be.
    max_parents, max_discrete_parents : int
        Most class variables and most discrete features in a set.
    """

    child: int
    n_classes: int
    optional: tuple[int, ...]
    required: frozenset[int]
    max_parents: int
    max_discrete_parents: int

    def _split(self, nodes: Sequence[int] | frozenset[int]) -> tuple[list[int], list[int]]:
        ordered = sorted(nodes)
        return [v for v in ordered if v < self.n_classes], [v for v in ordered if v >= self.n_classes]

    def _room(self) -> tuple[int, int]:
        """How many optional class variables and discrete features fit beside the required ones."""
        classes, features = self._split(self.required)
        return self.max_parents - len(classes), self.max_discrete_parents - len(features)

    def count(self) -> int:
        """The number of parent sets, without listing them."""
        counts = []
        for nodes, room in zip(self._split(self.optional), self._room(), strict=True):
            counts.append(sum(math.comb(len(nodes), size) for size in range(room + 1)))
        return math.prod(counts)

    def max_size(self) -> int:
        classes, features = self._split(self.optional)
        room, feature_room = self._room()
        return len(self.required) + min(room, len(classes)) + min(feature_room, len(features))

    def sets(self, size: int) -> Iterator[ParentSet]:
        """The parent sets with this many nodes, class variables before features, in lexicographic order."""
        classes, features = self._split(self.optional)
        room, feature_room = self._room()
        free = size - len(self.required)
        for n_features in range(max(0, free - room), min(free, feature_room) + 1):
            for chosen in combinations(classes, free - n_features):
                for chosen_features in combinations(features, n_features):
                    yield tuple(sorted(chain(self.required, chosen, chosen_features)))

    def keep(self, optional: Sequence[int]) -> ParentRules:
        """The same rules with fewer optional parents."""
        return replace(self, optional=tuple(optional))


def predicted_models(rules: Sequence[ParentRules], sizes: Sequence[int], n_rows: int) -> int:
    """An upper bound on the local models to be fitted: no set has more parts than configurations or rows."""
    total = 0
    for rule in rules:
        for size in range(len(rule.required), rule.max_size() + 1):
            total += sum(min(math.prod(sizes[v] for v in parents), n_rows) for parents in rule.sets(size))
    return total


# Pruning ------------------------------------------------------------------------------------------------------


class NoPruning:
    """Every set is scored."""

    def survivors(self, child: int, sets: Sequence[ParentSet], penalties: Sequence[float]) -> list[ParentSet]:
        return list(sets)

    def record(self, child: int, parents: ParentSet, score: float) -> None:
        pass

    def table(self, child: int, scores: ScoreTable) -> ScoreTable:
        return scores


@dataclass
class LemmaPruning:
    """The Lemma of the appendix: discard D' when a subset D has S(Y, D) >= -pen(D').

    C(Y, D') <= 0, so S(Y, D') <= -pen(D') <= S(Y, D), and D can stand wherever D' does without closing a
    cycle: the optimum is preserved. Nothing is assumed of the penalty, each set is compared with its own, and
    subsets that break a required edge are never visited, so they cannot prune.
    """

    rules: Sequence[ParentRules]
    best: dict[tuple[int, ParentSet], float] = field(default_factory=dict)
    """Greatest score among the subsets of a set, itself included."""

    def _best_subset(self, child: int, parents: ParentSet) -> float:
        required = self.rules[child].required
        subsets = (parents[:i] + parents[i + 1 :] for i, v in enumerate(parents) if v not in required)
        return max((self.best[child, subset] for subset in subsets), default=-np.inf)

    def survivors(self, child: int, sets: Sequence[ParentSet], penalties: Sequence[float]) -> list[ParentSet]:
        kept = []
        for parents, penalty in zip(sets, penalties, strict=True):
            bound = self.best[child, parents] = self._best_subset(child, parents)
            if bound < -penalty or np.isneginf(bound):
                kept.append(parents)
        return kept

    def record(self, child: int, parents: ParentSet, score: float) -> None:
        self.best[child, parents] = max(self.best[child, parents], score)

    def table(self, child: int, scores: ScoreTable) -> ScoreTable:
        return scores


@dataclass
class DefinitionPruning:
    """The paper's refinement, read literally (Definition and Algorithm 3): a heuristic.

    When the best subset D* of D' has S(Y, D*) >= -pen(D'), all supersets of D* are discarded, not only D' and
    its supersets. A superset of D* that is none of D' may have had the greatest score: the optimum can be lost.
    """

    rules: Sequence[ParentRules]
    scores: dict[int, ScoreTable] = field(default_factory=dict)
    stars: dict[int, set[frozenset[int]]] = field(default_factory=dict)

    def _discarded(self, child: int, parents: ParentSet) -> bool:
        return any(star < frozenset(parents) for star in self.stars.get(child, ()))

    def survivors(self, child: int, sets: Sequence[ParentSet], penalties: Sequence[float]) -> list[ParentSet]:
        known = self.scores.setdefault(child, {})
        for parents, penalty in zip(sets, penalties, strict=True):
            if self._discarded(child, parents):
                continue
            subsets = chain.from_iterable(combinations(parents, size) for size in range(len(parents)))
            alive = [s for s in subsets if s in known and not self._discarded(child, s)]
            star = max(alive, key=known.__getitem__, default=None)
            if star is not None and known[star] >= -penalty:
                self.stars.setdefault(child, set()).add(frozenset(star))
        return [parents for parents in sets if not self._discarded(child, parents)]

    def record(self, child: int, parents: ParentSet, score: float) -> None:
        self.scores.setdefault(child, {})[parents] = score

    def table(self, child: int, scores: ScoreTable) -> ScoreTable:
        return {parents: score for parents, score in scores.items() if not self._discarded(child, parents)}


PRUNING = ("lemma", "definition", None)

Pruning = NoPruning | LemmaPruning | DefinitionPruning


def make_pruning(prune: str | None, rules: Sequence[ParentRules]) -> Pruning:
    if prune is None:
        return NoPruning()
    if prune == "lemma":
        return LemmaPruning(rules)
    check_choice("prune", prune, PRUNING)
    return DefinitionPruning(rules)


# The score table ----------------------------------------------------------------------------------------------

Scorer = Callable[[list[tuple[int, ParentSet]]], list[float]]
"""Scores many (class variable, parent set) pairs at once, in order, in parallel if it likes."""


def restrict(rules: Sequence[ParentRules], limit: int, score: Scorer) -> tuple[list[ParentRules], list[ScoreTable]]:
    """Fewer possible parents, so that all class variables together have at most `limit` parent sets.

    Every class variable gets an equal share of the limit. Its possible parents are ranked by the score that each
    has as the only one (beside the required ones), and the longest head of this ranking whose sets fit into the
    share is kept. Also returned are the scores that the ranking has cost already.
    """
    share = limit // len(rules)
    if share < 1:
        raise ValueError(
            f"max_candidates={limit} leaves no parent set to some of the {len(rules)} class variables: "
            f"it must be at least {len(rules)}."
        )
    kept: list[ParentRules] = []
    spent: list[ScoreTable] = []
    for rule in rules:
        # Parents that no set can take (their kind has no room) are not worth a score. What they add to comes first.
        size = len(rule.required) + 1
        least = tuple(sorted(rule.required))
        singles = list(rule.sets(size)) if size <= rule.max_size() else []
        table = {parents: score([(rule.child, parents)])[0] for parents in [least]}
        table.update(zip(singles, score([(rule.child, parents) for parents in singles]), strict=True))
        ranked = sorted(singles, key=lambda parents: -table[parents])  # stable: ties stay in node order
        order = [next(v for v in parents if v not in rule.required) for parents in ranked]
        width = len(order)
        while width and rule.keep(order[:width]).count() > share:
            width -= 1
        kept.append(rule.keep(order[:width]))
        spent.append(table)
    return kept, spent


def score_parent_sets(
    rules: Sequence[ParentRules],
    penalty: Callable[[int, ParentSet], float],
    score: Scorer,
    prune: str | None,
    known: Sequence[ScoreTable] | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> list[ScoreTable]:
    """S(Y, D) of all parent sets that pruning leaves: Algorithm 3, and Algorithm 2 with ``prune=None``.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    penalty : function (child, parents) -> pen(D)
    score : function that scores many pairs at once
    prune : {"lemma", "definition", None}
    known : scores that are there already
    progress : called with a line of text after each level

    Returns
    -------
    list of dict
        For each class variable, parent set -> score, smaller sets first.
    """
    pruning = make_pruning(prune, rules)
    tables: list[ScoreTable] = [{} for _ in rules]
    for level in range(max(rule.max_size() for rule in rules) + 1):
        tasks: list[tuple[int, ParentSet]] = []
        visited = 0
        for rule in rules:
            sets = list(rule.sets(level)) if level <= rule.max_size() else []
            visited += len(sets)
            survivors = pruning.survivors(rule.child, sets, [penalty(rule.child, parents) for parents in sets])
            tasks.extend((rule.child, parents) for parents in survivors)
        if not visited:
            continue
        tell_phase(f"scoring parent sets of size {level}")
        new = [task for task in tasks if known is None or task[1] not in known[task[0]]]
        fresh = dict(zip(new, score(new), strict=True))
        for child, parents in tasks:
            value = fresh[child, parents] if (child, parents) in fresh else known[child][parents]  # type: ignore[index]
            tables[child][parents] = value
            pruning.record(child, parents, value)
        progress(f"level {level}: {len(tasks)} of {visited} parent sets scored, {visited - len(tasks)} pruned")
    return [pruning.table(child, table) for child, table in enumerate(tables)]
