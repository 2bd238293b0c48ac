"""Heuristic search for candidate families where parents may partition the rows or be inputs.

Several families share a set of class variables (see `families`); the structure search uses the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import NamedTuple, Protocol

import numpy as np

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, FamilyTable, ParentSet, Task
from pmdc.candidates.rules import ParentRules

CONDITIONING = ("partition", "input", "auto")

_MAX_CHANGES = 4
"""Maximal number of changes of the discrete features of a class variable."""

_EXHAUSTIVE_LIMIT = 80
"""All conditionings of all sets of class variables are tried if there are at most this many."""

_EXTRA_INPUTS = 2
"""Number of class variables that each round of additional inputs tries."""

_FEATURES_TRIED = 16
"""Maximal number of features that each round of changes tries."""


class Judge(Protocol):
    """Scores families and decides which to keep."""

    def score(self, tasks: Sequence[Task]) -> dict[Task, float]:
        """Return the scores of families, and of those that these scores depend on."""

    def exceeds(self, child: int, family: Family, other: Family, among: int) -> bool:
        """Return whether a family, the best of `among`, scores significantly better than another."""

    def accepted(self, child: int, table: FamilyTable, discarded: set[Family]) -> FamilyTable:
        """Return the families of a table that the guard accepts."""

    def hopeless(self, child: int, family: Family, bound: float) -> bool:
        """Return whether a family cannot score better than a subset with this score (the Lemma)."""

    def affordable(self, child: int, family: Family) -> bool:
        """Return whether the conditional table of a family is small enough for prediction."""


class Best(NamedTuple):
    """The best family of a set of class variables so far."""

    accepted: bool
    score: float
    family: Family


class Scored(NamedTuple):
    """Result of the search: for each class variable the scored families, and those that were discarded."""

    tables: list[FamilyTable]
    discarded: list[set[Family]]


@dataclass
class FamilySearch:
    """Search for candidate families of all class variables, where parents may be inputs.

    There are too many conditionings to try them all: 2 for each class variable in a set, 3 for each discrete feature.
    So the search has four steps:

    1. *Discrete features.* Start from no features or all features as inputs (binary relevance), whichever scores
       better. Change one feature at a time - partition, input, or left out - as long as the score rises, at most 4
       times. Each round tries the 16 most informative features.
    2. *Class variables, level by level.* Extend the best family of the best subset by the missing member, both as a
       partition and as an input. If all conditionings of all sets are at most 80, try all. Otherwise skip a set if one
       of its subsets with one member less was not accepted. The features stay as found in step 1.
    3. *More inputs.* Inputs do not count towards `max_parents`. Extend the best family of that size by one class
       variable at a time as an input, as long as the score rises. Each round tries the two that score best alone.
    4. *A chain.* All class variables that precede it in column order as inputs, with the features of step 1 and with
       all features as inputs.

    Steps 3 and 4 offer only families with a small conditional table (`Judge.affordable`).

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    uncut : the same before `max_candidates` removed some parents, for the chain
    judge : Judge
    both : bool
        Whether parents may partition the rows; otherwise they are always inputs.
    beyond : bool
        Whether inputs may exceed `max_parents` (steps 3 and 4).
    ranking : for each class variable its possible parents, the most informative first
    progress : called with a line of text after each step
    """

    rules: Sequence[ParentRules]
    uncut: Sequence[ParentRules]
    judge: Judge
    both: bool
    beyond: bool
    ranking: Sequence[Sequence[int]]
    progress: Callable[[str], None] = lambda message: None
    tables: list[FamilyTable] = field(init=False)
    discarded: list[set[Family]] = field(init=False)

    def __post_init__(self) -> None:
        self.tables = [{} for _ in self.rules]
        self.discarded = [set() for _ in self.rules]
        self._best: list[dict[ParentSet, Best]] = [{} for _ in self.rules]
        self._spared: list[set[ParentSet]] = [set() for _ in self.rules]

    def run(self) -> Scored:
        features = self.settle_features()
        self.score_levels(features)
        if self.beyond:
            self.grow_inputs()
            self.score_chains(features)
        return Scored(self.tables, self.discarded)

    def _score(self, tasks: Sequence[Task]) -> None:
        """Score families and add them, and those that their scores depend on, to the tables."""
        for (child, family), value in self.judge.score(list(dict.fromkeys(tasks))).items():
            if self.uncut[child].required <= set(family.parents):
                self.tables[child][family] = value
        for rule in self.rules:
            self._judge(rule)

    def _judge(self, rule: ParentRules) -> None:
        """Find the best family of each set of class variables, accepted ones before others."""
        table = self.tables[rule.child]
        accepted = self.judge.accepted(rule.child, table, self.discarded[rule.child])
        best = self._best[rule.child] = {}
        for family, score in table.items():
            classes = family.classes(rule.n_classes)
            found = Best(family in accepted, score, family)
            if classes not in best or found[:2] > best[classes][:2]:
                best[classes] = found

    def settle_features(self) -> list[Family]:
        """Choose the discrete features of each class variable and how they enter."""
        self._score([(rule.child, family) for rule in self.rules for family in (rule.least(), rule.everything())])
        best = [
            rule.everything() if self.judge.exceeds(rule.child, rule.everything(), rule.least(), 1) else rule.least()
            for rule in self.rules
        ]
        unsettled = [rule for rule in self.rules if self._features(rule)]
        for _ in range(_MAX_CHANGES):
            if not unsettled:
                break
            tell_phase("scoring discrete features")
            changes = {rule.child: self._changes(rule, best[rule.child]) for rule in unsettled}
            self._score([(child, family) for child, families in changes.items() for family in families])
            unsettled = [rule for rule in unsettled if self._improve(rule.child, changes[rule.child], best)]
        for rule, family in zip(self.rules, best, strict=True):
            table = self.tables[rule.child]
            self.discarded[rule.child] = {other for other, score in table.items() if score > table[family]}
            self._judge(rule)
        self.progress(f"discrete features: {sum(map(len, self.tables))} families scored")
        return best

    def _improve(self, child: int, changes: Sequence[Family], best: list[Family]) -> bool:
        """Replace the best family of a class variable by the best change if it is significantly better."""
        top = max(changes, key=self.tables[child].__getitem__, default=best[child])
        if top == best[child] or not self.judge.exceeds(child, top, best[child], len(changes)):
            return False
        best[child] = top
        return True

    def _features(self, rule: ParentRules) -> list[int]:
        """Return the discrete features that may be parents, the most informative first."""
        return [v for v in self.ranking[rule.child] if v >= rule.n_classes and v in rule.allowed]

    def _changes(self, rule: ParentRules, family: Family) -> list[Family]:
        """Return the families in which one feature enters differently."""
        found: list[Family] = []
        features = [v for v in family.partition if v >= rule.n_classes]
        for v in self._features(rule)[:_FEATURES_TRIED]:
            changed = [family.feed(v)]
            if v not in rule.required:
                changed.append(family.without(v))
            if self.both and (v in features or len(features) < rule.max_discrete_parents):
                changed.append(family.divide_by(v))
            found.extend(other for other in changed if other != family)
        return found

    def score_levels(self, features: Sequence[Family]) -> None:
        """Score the sets of class variables within the limits (step 2)."""
        rules = [rule.classes_alone() for rule in self.rules]
        for level in range(max(rule.max_size() for rule in rules) + 1):
            tasks: list[Task] = []
            visited = 0
            for rule in rules:
                for classes in rule.sets(level) if level <= rule.max_size() else ():
                    visited += 1
                    if not self._pruned(rule, classes):
                        bound = self._best_subset(rule, classes)
                        families = self._conditionings(rule, features[rule.child], classes)
                        kept = [(rule.child, f) for f in families if not self.judge.hopeless(rule.child, f, bound)]
                        tasks += kept
                        if not kept:  # a penalty may fall with size: do not rule out larger sets
                            self._spared[rule.child].add(classes)
            tell_phase(f"scoring parent sets of size {level}")
            self._score(tasks)
            if visited:
                sets = len({(child, family.classes(rules[child].n_classes)) for child, family in tasks})
                self.progress(
                    f"level {level}: {sets} of {visited} sets of class variables scored, in {len(tasks)} families"
                )

    def _pruned(self, rule: ParentRules, classes: ParentSet) -> bool:
        """Return whether a subset with one member less was not accepted or not tried."""
        if self._exhaustive(rule):
            return False
        best, spared = self._best[rule.child], self._spared[rule.child]
        subsets = [tuple(v for v in classes if v != gone) for gone in classes if gone not in rule.required]
        return any(s not in spared and not (s in best and best[s].accepted) for s in subsets)

    def _exhaustive(self, rule: ParentRules) -> bool:
        """Return whether all conditionings of all sets can be tried."""
        ways = 2 if self.both else 1
        free, needed = len(rule.optional), len(rule.required)
        sizes = range(rule.max_size() - needed + 1)
        return sum(math.comb(free, size) * ways ** (size + needed) for size in sizes) <= _EXHAUSTIVE_LIMIT

    def _conditionings(self, rule: ParentRules, features: Family, classes: ParentSet) -> list[Family]:
        if not self.both:
            return [features.feed(*classes)]
        if self._exhaustive(rule):
            dividing = chain.from_iterable(combinations(classes, size) for size in range(len(classes), -1, -1))
            return [features.feed(*classes).divide_by(*some) for some in dividing if len(some) <= rule.max_parents]
        best = self._best[rule.child]
        subsets = [(tuple(v for v in classes if v != gone), gone) for gone in classes]
        known = [(best[s], gone) for s, gone in subsets if s in best]
        if not known:  # the smallest allowed set has no subset
            return [features.feed(*classes), features.divide_by(*classes)]
        top, gone = max(known, key=lambda pair: pair[0].score)
        return [top.family.divide_by(gone), top.family.feed(gone)]

    def _best_subset(self, rule: ParentRules, classes: ParentSet) -> float:
        subsets = chain.from_iterable(combinations(classes, size) for size in range(len(classes) + 1))
        best = self._best[rule.child]
        return max((best[s].score for s in subsets if s in best), default=-np.inf)

    def grow_inputs(self) -> None:
        """Add inputs beyond `max_parents` to the best families of that size (step 3)."""
        tops: dict[int, Family] = {}
        for rule in (rule.classes_alone() for rule in self.rules):
            full = [best for classes, best in self._best[rule.child].items() if len(classes) == rule.max_size()]
            if any(best.accepted for best in full):
                tops[rule.child] = max(full, key=lambda best: best[:2]).family
        while tops:
            more = {}
            for child, family in tops.items():
                bound = self.tables[child][family]
                larger = [family.feed(v) for v in self._by_score(child) if v not in family.parents][:_EXTRA_INPUTS]
                more[child] = [
                    f for f in larger if self.judge.affordable(child, f) and not self.judge.hopeless(child, f, bound)
                ]
            if not any(more.values()):
                break
            tell_phase("scoring more inputs")
            self._score([(child, family) for child, families in more.items() for family in families])
            grown = {}
            for child, families in more.items():
                top = max(families, key=self.tables[child].__getitem__, default=None)
                if top is not None and self.judge.exceeds(child, top, tops[child], 1):
                    grown[child] = top
            tops = grown

    def _by_score(self, child: int) -> list[int]:
        """Return the class variables that may be parents, sorted by their scores as the only one."""
        rule = self.rules[child]
        best, needed = self._best[child], [v for v in rule.required if v < rule.n_classes]
        alone = {v: best.get(tuple(sorted({*needed, v}))) for v in rule.optional if v < rule.n_classes}
        return sorted(alone, key=lambda v: -np.inf if (own := alone[v]) is None else own.score, reverse=True)

    def score_chains(self, features: Sequence[Family]) -> None:
        """Score for each class variable the family with all preceding ones as inputs (step 4)."""
        tasks = []
        for rule in self.uncut:
            before = [v for v in rule.optional if v < rule.child]
            for base in dict.fromkeys([features[rule.child], rule.everything()]):
                family = base.feed(*before)
                if self.judge.affordable(rule.child, family):
                    tasks.append((rule.child, family))
        tell_phase("scoring a chain")
        self._score(tasks)
