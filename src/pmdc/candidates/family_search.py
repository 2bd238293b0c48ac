"""The families of all class variables that are worth a score, where parents may partition the rows or be inputs.

Each set of class variables stands for several families (`families`); the best of them is what the search of the
structure chooses from.
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
"""The most features that change sides, one after the other."""

_EXHAUSTIVE_LIMIT = 80
"""All conditionings of all sets of class variables are tried where they are no more than this."""

_EXTRA_INPUTS = 2
"""The class variables that each round of more inputs tries."""

_FEATURES_TRIED = 16
"""The most features that each round of changes tries."""


class Judge(Protocol):
    """What scores families and says which are worth it."""

    def score(self, tasks: Sequence[Task]) -> dict[Task, float]:
        """Score some families, and those that their scores need."""

    def exceeds(self, child: int, family: Family, other: Family, among: int) -> bool:
        """Whether a family, the best of some, scores better than another by more than chance would bring."""

    def accepted(self, child: int, table: FamilyTable, discarded: set[Family]) -> FamilyTable:
        """The families of a table that are worth their parents."""

    def hopeless(self, child: int, family: Family, bound: float) -> bool:
        """Whether a family cannot be better than a subset with this score: the Lemma."""

    def affordable(self, child: int, family: Family) -> bool:
        """Whether a family with many inputs is not too wide for inference."""


class Best(NamedTuple):
    """What a set of class variables has found so far."""

    accepted: bool
    score: float
    family: Family


class Scored(NamedTuple):
    """What the search has found: for each class variable the families scored, and those not believed."""

    tables: list[FamilyTable]
    discarded: list[set[Family]]


@dataclass
class FamilySearch:
    """Search the families of all class variables that are worth a score, where parents may be inputs.

    All conditionings of all parents are too many to be tried: 2 for each class variable in a set, 3 for each discrete
    feature. So

    1. *Discrete features, without class variables.* From the better of two, no feature and all features as inputs
       (binary relevance), one feature at a time changes sides - partition the rows by it, make it an input, leave it
       out - as long as the score rises, at most 4 times; each time the 16 features are tried that tell most of the
       class variable.
    2. *Class variables, level by level.* A set is tried as the best family of its best subset plus the member that is
       missing, in either conditioning. Where all conditionings of all sets of a class variable are no more than 80, all
       are tried. Only sets grow whose families were worth their parents: a set is left out if one of its subsets with a
       member less was not accepted. The features stay as found in 1.
    3. *More inputs.* Inputs do not count towards `max_parents`: the best family of as many class variables as that
       grows by one class variable after the other as an input, each time the better of the two that score best as the
       only one, as long as the score rises.
    4. *A chain.* All class variables before it in the order of the columns as inputs, with the features as found in 1,
       and with all of them as inputs.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    uncut : the same before `max_candidates` took some parents away, for the chain
    judge : Judge
    both : bool
        Whether parents may partition the rows, or are inputs always.
    ranking : for each class variable its possible parents, the most informative first
    progress : called with a line of text after each step
    """

    rules: Sequence[ParentRules]
    uncut: Sequence[ParentRules]
    judge: Judge
    both: bool
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
        self.grow_inputs()
        self.score_chains(features)
        return Scored(self.tables, self.discarded)

    def _score(self, tasks: Sequence[Task]) -> None:
        """Score families; they, and what their scores need, become candidates."""
        for (child, family), value in self.judge.score(list(dict.fromkeys(tasks))).items():
            if self.uncut[child].required <= set(family.parents):
                self.tables[child][family] = value
        for rule in self.rules:
            self._judge(rule)

    def _judge(self, rule: ParentRules) -> None:
        """Find the best family of each set of class variables: of those accepted, if there are any."""
        table = self.tables[rule.child]
        accepted = self.judge.accepted(rule.child, table, self.discarded[rule.child])
        best = self._best[rule.child] = {}
        for family, score in table.items():
            classes = family.classes(rule.n_classes)
            found = Best(family in accepted, score, family)
            if classes not in best or found[:2] > best[classes][:2]:
                best[classes] = found

    def settle_features(self) -> list[Family]:
        """Choose the features of each class variable and how they enter."""
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
        """Replace the best family of a class variable by the best of some changes, if that is more than luck."""
        top = max(changes, key=self.tables[child].__getitem__, default=best[child])
        if top == best[child] or not self.judge.exceeds(child, top, best[child], len(changes)):
            return False
        best[child] = top
        return True

    def _features(self, rule: ParentRules) -> list[int]:
        """The discrete features that may be parents, the most informative first."""
        return [v for v in self.ranking[rule.child] if v >= rule.n_classes and v in rule.allowed]

    def _changes(self, rule: ParentRules, family: Family) -> list[Family]:
        """The families in which one feature has changed sides."""
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
        """Score the sets of class variables within the limits, in one conditioning or another."""
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
                        if not kept:  # larger sets may be worth their penalty, whatever this one's is
                            self._spared[rule.child].add(classes)
            tell_phase(f"scoring parent sets of size {level}")
            self._score(tasks)
            if visited:
                sets = len({(child, family.classes(rules[child].n_classes)) for child, family in tasks})
                self.progress(
                    f"level {level}: {sets} of {visited} sets of class variables scored, in {len(tasks)} families"
                )

    def _pruned(self, rule: ParentRules, classes: ParentSet) -> bool:
        """Whether a subset with a member less was not accepted, or left out for this reason."""
        if self._exhaustive(rule):
            return False
        best, spared = self._best[rule.child], self._spared[rule.child]
        subsets = [tuple(v for v in classes if v != gone) for gone in classes if gone not in rule.required]
        return any(s not in spared and not (s in best and best[s].accepted) for s in subsets)

    def _exhaustive(self, rule: ParentRules) -> bool:
        """Whether all conditionings of all sets can be tried."""
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
        if not known:  # the least that is allowed, which has no subset
            return [features.feed(*classes), features.divide_by(*classes)]
        top, gone = max(known, key=lambda pair: pair[0].score)
        return [top.family.divide_by(gone), top.family.feed(gone)]

    def _best_subset(self, rule: ParentRules, classes: ParentSet) -> float:
        subsets = chain.from_iterable(combinations(classes, size) for size in range(len(classes) + 1))
        best = self._best[rule.child]
        return max((best[s].score for s in subsets if s in best), default=-np.inf)

    def grow_inputs(self) -> None:
        """Add inputs to the best families that have all class variables that `max_parents` allows."""
        tops: dict[int, Family] = {}
        for rule in (rule.classes_alone() for rule in self.rules):
            full = [best for classes, best in self._best[rule.child].items() if len(classes) == rule.max_size()]
            if rule.max_parents and any(best.accepted for best in full):
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
        """The class variables that may be parents, those first that score best as the only one."""
        rule = self.rules[child]
        best, needed = self._best[child], [v for v in rule.required if v < rule.n_classes]
        alone = {v: best.get(tuple(sorted({*needed, v}))) for v in rule.optional if v < rule.n_classes}
        return sorted(alone, key=lambda v: -np.inf if (own := alone[v]) is None else own.score, reverse=True)

    def score_chains(self, features: Sequence[Family]) -> None:
        """Score, for each class variable, all those before it as inputs."""
        tasks = []
        for rule in self.uncut if self.rules[0].max_parents else ():
            before = [v for v in rule.optional if v < rule.child]
            for base in dict.fromkeys([features[rule.child], rule.everything()]):
                family = base.feed(*before)
                if self.judge.affordable(rule.child, family):
                    tasks.append((rule.child, family))
        tell_phase("scoring a chain")
        self._score(tasks)
