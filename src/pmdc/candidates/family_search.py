"""Heuristic search for candidate families where parents may partition the rows or be inputs.

Several families share a set of class variables (see `families`); the structure search uses the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import NamedTuple, Protocol

import numpy as np

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, FamilyTable, ParentSet, Task
from pmdc.candidates.rules import ParentRules

CONDITIONING = ("partition", "input", "auto")

_EXHAUSTIVE_LIMIT = 80
"""All conditionings of all sets of class variables are tried if there are at most this many."""

_EXTRA_INPUTS = 2
"""Number of class variables that each round of additional inputs tries."""

_FEATURES_TRIED = 16
"""Number of features that each round tries to add to a family, the best ones by their scores as the only parent."""

_SETS_REVISED = 8
"""Number of sets of class variables, those with the best scores, whose features are chosen again."""


class Judge(Protocol):
    """Scores families and decides which to keep."""

    def score(self, tasks: Sequence[Task]) -> dict[Task, float]:
        """Return the scores of families, and of those that these scores depend on; fewer when out of time."""

    def exceeds(self, child: int, family: Family, other: Family) -> bool:
        """Return whether a family scores significantly better than another."""

    def accepted(self, child: int, table: FamilyTable) -> FamilyTable:
        """Return the families of a table that the guard accepts."""

    def hopeless(self, child: int, family: Family, bound: float) -> bool:
        """Return whether a family cannot score better than a subset with this score (the Lemma)."""

    def affordable(self, child: int, family: Family) -> bool:
        """Return whether the conditional table of a family is small enough for prediction."""

    def small(self, child: int, family: Family) -> bool:
        """Return whether the inputs of a family have few enough coefficients to be fitted."""

    def out_of_time(self) -> bool:
        """Return whether no further families can be scored."""


class Best(NamedTuple):
    """The best family of a set of class variables so far."""

    accepted: bool
    score: float
    family: Family


@dataclass
class FamilySearch:
    """Search for candidate families of all class variables, where parents may be inputs.

    There are too many conditionings to try them all: 2 for each class variable in a set, 3 for each discrete feature.
    So the search has four steps. Which family is the best of a set is decided among those that the guard accepts.

    1. *Discrete features alone.* Start without optional parents. Score every feature as the only one; then add, remove
       or change one feature of the best family at a time, until nothing better is found. Each round tries to add the 16
       features that score best alone.
    2. *Class variables, level by level.* Extend the best family of the best subset by the missing member, both as a
       partition and as an input, with the features of that family, without each of them, and without all. If all
       conditionings of all sets are at most 80, try all. Otherwise skip a set if one of its subsets with one member
       less was not accepted, unless the set itself is known to be acceptable.
    3. *More inputs*, if `beyond`. Extend the best family of the largest size by one class variable at a time as an
       input, as long as the score rises significantly and the conditional table is small (`Judge.affordable`). Each
       round tries the two that score best alone.
    4. *Features beside class variables.* Add, remove or change one feature at a time, as in step 1, for the eight sets
       of class variables that score best. For every other set, the best family without each of its parents is scored,
       so that each arc is compared with the same family without it.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    judge : Judge
    both : bool
        Whether parents may partition the rows; otherwise they are always inputs.
    beyond : bool
        Whether inputs may exceed `max_parents` (step 3).
    tables : list of dict
        For each class variable, the families that were scored before; more are added.
    progress : called with a line of text after each step
    """

    rules: Sequence[ParentRules]
    judge: Judge
    both: bool
    beyond: bool
    tables: list[FamilyTable]
    progress: Callable[[str], None] = lambda message: None
    _best: list[dict[ParentSet, Best]] = field(init=False)

    def __post_init__(self) -> None:
        self._best = [{} for _ in self.rules]
        self._spared: list[set[ParentSet]] = [set() for _ in self.rules]

    def run(self) -> list[FamilyTable]:
        self._score([(rule.child, family) for rule in self.rules for family in (rule.least(), rule.everything())])
        for rule in self.rules:
            self._judge(rule)
        self.choose_features()
        self.score_levels()
        if self.beyond:
            self.grow_inputs()
        self.revise()
        return self.tables

    def _score(self, tasks: Iterable[Task]) -> None:
        """Score families, and add them and those that their scores depend on to the tables."""
        changed = set()
        new = [(k, f) for k, f in dict.fromkeys(tasks) if f not in self.tables[k] and self._possible(k, f)]
        for (child, family), value in self.judge.score(new).items():
            if self.rules[child].required <= set(family.parents):
                self.tables[child][family] = value
                changed.add(child)
        for rule in self.rules:
            if rule.child in changed:
                self._judge(rule)

    def _possible(self, child: int, family: Family) -> bool:
        return self.judge.small(child, family) and self.rules[child].fits(family.parents)

    def _judge(self, rule: ParentRules) -> None:
        """Find the best family of each set of class variables, accepted ones before others."""
        table = self.tables[rule.child]
        accepted = self.judge.accepted(rule.child, table)
        best = self._best[rule.child] = {}
        for family, score in table.items():
            classes = family.classes(rule.n_classes)
            found = Best(family in accepted, score, family)
            if classes not in best or found[:2] > best[classes][:2]:
                best[classes] = found

    # Discrete features ---------------------------------------------------------------------------------------

    def choose_features(self) -> None:
        """Choose the discrete features of families without optional class variables (step 1)."""
        rules = [rule for rule in self.rules if rule.features()]
        if not rules:
            return
        tell_phase("scoring discrete features")
        self._score([(rule.child, rule.least().feed(v)) for rule in rules for v in rule.features()])
        self._improve({rule.child: [rule.least().classes(rule.n_classes)] for rule in rules})
        self.progress(f"discrete features: {sum(map(len, self.tables))} families scored")

    def revise(self) -> None:
        """Choose the features of families with class variables again, and compare each arc with none (step 4)."""
        tops: dict[int, list[ParentSet]] = {}
        for rule in self.rules:
            if rule.features():
                best = self._best[rule.child]
                accepted = sorted((s for s in best if best[s].accepted), key=lambda s: best[s].score, reverse=True)
                tops[rule.child] = accepted[:_SETS_REVISED]
        tell_phase("scoring families without each of their parents")
        self._improve(tops)
        while not self.judge.out_of_time():
            tasks = [(rule.child, f) for rule in self.rules for f in self._untested(rule)]
            if not tasks:
                break
            self._score(tasks)

    def _untested(self, rule: ParentRules) -> list[Family]:
        """Return the accepted best families without one of their parents that were not scored yet."""
        table = self.tables[rule.child]
        accepted = [best.family for best in self._best[rule.child].values() if best.accepted]
        return [f for family in accepted for f in self._without_one(rule, family) if f not in table]

    def _improve(self, sets: dict[int, list[ParentSet]]) -> None:
        """Change one feature at a time in the best families of some sets of class variables, until none is better."""
        while not self.judge.out_of_time():
            tasks: list[Task] = []
            for child, own in sets.items():
                rule, table = self.rules[child], self.tables[child]
                families = [self._best[child][classes].family for classes in own if classes in self._best[child]]
                changes = [f for family in families for f in self._changes(rule, family)]
                tasks += [(child, f) for f in changes if f not in table and self.judge.small(child, f)]
            if not tasks:
                break
            self._score(tasks)

    def _changes(self, rule: ParentRules, family: Family) -> list[Family]:
        """Return the families in which one feature enters differently, and those without one of the parents."""
        found = self._without_one(rule, family)
        room = rule.max_discrete_parents - sum(v >= rule.n_classes for v in family.partition)
        for v in family.parents:
            if v >= rule.n_classes and self.both:
                found += [family.feed(v)] if v in family.partition else [family.divide_by(v)] if room > 0 else []
        for v in [v for v in self._by_score(rule.child, rule.features()) if v not in family.parents][:_FEATURES_TRIED]:
            found.append(family.feed(v))
            if self.both and room > 0:
                found.append(family.divide_by(v))
        return found

    def _without_one(self, rule: ParentRules, family: Family) -> list[Family]:
        return [family.without(v) for v in family.parents if v not in rule.required]

    def _by_score(self, child: int, nodes: Sequence[int]) -> list[int]:
        """Return optional parents sorted by their scores as the only one, in whichever conditioning is better."""
        rule, table = self.rules[child], self.tables[child]
        alone = dict.fromkeys(nodes, -np.inf)
        for family, score in table.items():
            others = [v for v in family.parents if v not in rule.required]
            if len(others) == 1 and others[0] in alone:
                alone[others[0]] = max(alone[others[0]], score)
        return sorted(alone, key=alone.__getitem__, reverse=True)

    # Class variables -----------------------------------------------------------------------------------------

    def score_levels(self) -> None:
        """Score the sets of class variables within the limits (step 2)."""
        rules = [rule.classes_alone() for rule in self.rules]
        features = [self._best[rule.child][tuple(sorted(rule.required))].family for rule in rules]
        for level in range(max(rule.max_size() for rule in rules) + 1):
            if self.judge.out_of_time():
                return
            tasks: list[Task] = []
            visited = 0
            for rule in rules:
                for classes in rule.sets(level) if level <= rule.max_size() else ():
                    visited += 1
                    if not self._pruned(rule, classes):
                        tasks += self._level_tasks(rule, features[rule.child], classes)
            tell_phase(f"scoring parent sets of size {level}")
            self._score(tasks)
            if visited:
                sets = len({(child, family.classes(rules[child].n_classes)) for child, family in tasks})
                self.progress(
                    f"level {level}: {sets} of {visited} sets of class variables scored, in {len(tasks)} families"
                )

    def _level_tasks(self, rule: ParentRules, features: Family, classes: ParentSet) -> list[Task]:
        """Return the families of a set of class variables to be scored."""
        bound = self._best_subset(rule, classes)
        families = self._with_fewer_features(rule, self._conditionings(rule, features, classes))
        kept = [(rule.child, f) for f in families if not self.judge.hopeless(rule.child, f, bound)]
        if not kept:  # a penalty may fall with size: do not rule out larger sets
            self._spared[rule.child].add(classes)
        return kept

    def _with_fewer_features(self, rule: ParentRules, families: Sequence[Family]) -> list[Family]:
        """Return families, the same without each optional feature, and without all of them."""
        required = self.rules[rule.child].required
        found = list(families)
        for family in families:
            features = [v for v in family.parents if v >= rule.n_classes and v not in required]
            found += [family.without(v) for v in features]
            found.append(family.without(*features))
        return list(dict.fromkeys(found))

    def _pruned(self, rule: ParentRules, classes: ParentSet) -> bool:
        """Return whether a subset with one member less was not accepted or not tried, and the set was not either."""
        if self._exhaustive(rule):
            return False
        best, spared = self._best[rule.child], self._spared[rule.child]
        if classes in best and best[classes].accepted:
            return False
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
        top, gone = max(known, key=lambda pair: pair[0][:2])
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
        while tops and not self.judge.out_of_time():
            tell_phase("scoring more inputs")
            more = {child: self._larger(child, family) for child, family in tops.items()}
            self._score([(child, family) for child, families in more.items() for family in families])
            grown = {}
            for child, families in more.items():
                table = self.tables[child]
                top = max((f for f in families if f in table), key=table.__getitem__, default=None)
                if top is not None and self.judge.exceeds(child, top, tops[child]):
                    grown[child] = top
            tops = grown

    def _larger(self, child: int, family: Family) -> list[Family]:
        """Return the families with one more input that are worth scoring."""
        bound = self.tables[child][family]
        rule = self.rules[child]
        classes = [v for v in rule.optional if v < rule.n_classes and v not in family.parents]
        classes = [v for v in classes if rule.fits((*family.parents, v))]
        larger = [family.feed(v) for v in self._by_score(child, classes)[:_EXTRA_INPUTS]]
        return [f for f in larger if self.judge.affordable(child, f) and not self.judge.hopeless(child, f, bound)]
