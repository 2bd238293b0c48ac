"""The families of all class variables that are worth a score, where parents may divide the rows or be inputs.

Each set of class variables stands for several families (`families`); the best of them is what the search of the
structure chooses from, and what models are shrunk towards comes from the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, ParentSet
from pmdc.candidates.rules import ParentRules
from pmdc.learners.inputs import one_hot
from pmdc.scores.scoring import Rowwise, Scores

FamilyTable = dict[Family, float]

WAYS = ("partition", "input", "auto")

_ROUNDS = 4
"""The most features whose way is changed, one after the other."""

_FEW = 80
"""All ways of all sets of class variables are tried where they are no more than this."""

_MORE = 2
"""The class variables that each round of more inputs tries."""

_TRIED = 16
"""The most features that each of these rounds tries."""


class Best(NamedTuple):
    """What a set of class variables has found so far."""

    offered: bool
    score: float
    family: Family


@dataclass
class FamilySearch:
    """The families of all class variables that are worth a score, where parents may be inputs.

    All ways of all parents are too many to be tried: 2 for each class variable in a set, 3 for each discrete feature.
    So

    1. *Discrete features, without class variables.* From the better of two, no feature and all features as inputs
       (binary relevance), one feature at a time changes its way - divide the rows by it, feed it, leave it out - as
       long as the score rises, at most 4 times; each time the 16 features are tried that tell most of the class
       variable.
    2. *Class variables, level by level.* A set is tried as the best family of its best subset plus the member that is
       missing, in either way; a single class variable so divides the rows or is an input. Where all ways of all sets
       of a class variable are no more than 80, all are tried. Only sets grow whose families were worth their parents:
       a set is left out if one of its subsets with a member less was no better than what is without another of its
       members (`offered`). The features keep the way found in 1.
    3. *More inputs.* Inputs do not count towards `max_parents`: the best family of as many class variables as that
       grows by one class variable after the other as an input, each time the better of the two that score best as the
       only one, as long as the score rises.
    4. *A chain.* All class variables before it in the order of the columns as inputs, with the features as found in 1,
       and with all of them as inputs.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    uncut : the same before `max_candidates` took some parents away, for the chain
    scores : `pmdc.scores.scoring.Scores`
    both : bool
        Whether parents may divide the rows, or are inputs always.
    ranked : for each class variable, the discrete features, the most telling first
    affordable : function family -> bool
        Whether a family of inputs is not too wide for inference.
    skip : function (child, family, best score of its subsets) -> bool
        Whether a family cannot be better than one of its subsets: the Lemma.
    """

    rules: Sequence[ParentRules]
    uncut: Sequence[ParentRules]
    scores: Scores
    both: bool
    ranked: Sequence[Sequence[int]]
    affordable: Callable[[int, Family], bool]
    skip: Callable[[int, Family, float], bool]
    progress: Callable[[str], None] = lambda message: None
    tables: list[FamilyTable] = field(init=False)

    def __post_init__(self) -> None:
        self.tables = [{} for _ in self.rules]
        self._best: list[dict[ParentSet, Best]] = [{} for _ in self.rules]
        self._worth: list[set[ParentSet]] = [set() for _ in self.rules]

    def run(self) -> list[FamilyTable]:
        features = self.settle_features()
        self.score_levels(features)
        self.grow_inputs()
        self.score_chains(features)
        return self.tables

    def _score(self, tasks: Sequence[tuple[int, Family]], last: bool = False) -> None:
        tasks = list(dict.fromkeys(tasks))
        for (child, family), value in zip(tasks, self.scores(tasks, last), strict=True):
            classes = family.classes(self.rules[child].n_classes)
            self.tables[child][family] = value
            found = Best(self.scores.offered(child, family), value, family)
            if found.offered:
                self._worth[child].add(classes)
            known = self._best[child].get(classes)
            if known is None or found[:2] > known[:2]:
                self._best[child][classes] = found

    def settle_features(self) -> list[Family]:
        """The features of each class variable and their ways."""
        self._score([(rule.child, make(rule)) for rule in self.rules for make in (least, everything)])
        best = [
            everything(rule) if self.scores.exceeds(rule.child, everything(rule), least(rule), 1) else least(rule)
            for rule in self.rules
        ]
        open_ = [rule for rule in self.rules if self.ranked[rule.child]]
        for _ in range(_ROUNDS):
            tell_phase("scoring discrete features")
            changes = {rule.child: self._changes(rule, best[rule.child]) for rule in open_}
            self._score([(child, family) for child, families in changes.items() for family in families])
            still = []
            for rule in open_:
                table = self.tables[rule.child]
                top = max(changes[rule.child], key=table.__getitem__, default=best[rule.child])
                if top != best[rule.child] and self.scores.exceeds(
                    rule.child, top, best[rule.child], len(changes[rule.child])
                ):
                    best[rule.child] = top
                    still.append(rule)
            open_ = still
            if not open_:
                break
        for rule, family in zip(self.rules, best, strict=True):
            table = self.tables[rule.child]
            self.scores.settle(rule.child, family, list(table))
            self._best[rule.child][family.classes(rule.n_classes)] = Best(True, table[family], family)
        self.progress(f"ways of the discrete features: {sum(map(len, self.tables))} families scored")
        return best

    def _changes(self, rule: ParentRules, family: Family) -> list[Family]:
        """The families in which one feature has another way."""
        found: list[Family] = []
        features = [v for v in family.partition if v >= rule.n_classes]
        for v in self.ranked[rule.child][:_TRIED]:
            ways = []
            if v not in rule.required:
                ways.append(family.without(v))
            ways.append(family.feed(v))
            if self.both and (v in features or len(features) < rule.max_discrete_parents):
                ways.append(family.divide_by(v))
            found.extend(way for way in ways if way != family)
        return found

    def score_levels(self, features: Sequence[Family]) -> None:
        """The sets of class variables within the limits, in one way or another."""
        rules = [classes_alone(rule) for rule in self.rules]
        most = max(rule.max_size() for rule in rules)
        grow = any(len(rule.optional) + len(rule.required) > rule.max_size() > 0 for rule in rules)
        for level in range(most + 1):
            tasks: list[tuple[int, Family]] = []
            visited = 0
            for rule in rules:
                child = rule.child
                for classes in rule.sets(level) if level <= rule.max_size() else ():
                    visited += 1
                    if self._hopeless(rule, classes):
                        continue
                    bound = self._best_subset(rule, classes)
                    families = self._ways(rule, features[child], classes)
                    kept = [(child, family) for family in families if not self.skip(child, family, bound)]
                    tasks.extend(kept)
                    if not kept:  # larger sets may be worth their penalty, whatever this one's is
                        self._worth[child].add(classes)
            tell_phase(f"scoring parent sets of size {level}")
            self._score(tasks, last=level == most and not grow)
            if visited:
                sets = len({(child, family.classes(rules[child].n_classes)) for child, family in tasks})
                self.progress(
                    f"level {level}: {sets} of {visited} sets of class variables scored, in {len(tasks)} families"
                )

    def _hopeless(self, rule: ParentRules, classes: ParentSet) -> bool:
        """Whether a subset with a member less was not worth its parents, or was not tried for this reason."""
        if self._few(rule):
            return False
        worth = self._worth[rule.child]
        subsets = [tuple(v for v in classes if v != gone) for gone in classes if gone not in rule.required]
        return any(s not in worth for s in subsets)

    def _few(self, rule: ParentRules) -> bool:
        """Whether all ways of all sets can be tried."""
        ways = 2 if self.both else 1
        free, needed = len(rule.optional), len(rule.required)
        sizes = range(rule.max_size() - needed + 1)
        return sum(math.comb(free, size) * ways ** (size + needed) for size in sizes) <= _FEW

    def _ways(self, rule: ParentRules, features: Family, classes: ParentSet) -> list[Family]:
        if not self.both:
            return [features.feed(*classes)]
        room = rule.max_parents
        if self._few(rule):
            dividing = chain.from_iterable(combinations(classes, size) for size in range(len(classes), -1, -1))
            return [features.feed(*classes).divide_by(*some) for some in dividing if len(some) <= room]
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
        """More inputs for the best families that have all class variables that `max_parents` allows."""
        tops = {}
        for rule in map(classes_alone, self.rules):
            full = [best for classes, best in self._best[rule.child].items() if len(classes) == rule.max_size()]
            if rule.max_parents and any(best.offered for best in full):
                tops[rule.child] = max(full, key=lambda best: best[:2]).family
        while tops:
            more = {}
            for child, family in tops.items():
                bound = self.tables[child][family]
                larger = [family.feed(v) for v in self._telling(child) if v not in family.parents][:_MORE]
                more[child] = [f for f in larger if self.affordable(child, f) and not self.skip(child, f, bound)]
            if not any(more.values()):
                break
            tell_phase("scoring more inputs")
            self._score([(child, family) for child, families in more.items() for family in families])
            grown = {}
            for child, families in more.items():
                top = max(families, key=self.tables[child].__getitem__, default=None)
                if top is not None and self.scores.exceeds(child, top, tops[child], 1):
                    grown[child] = top
            tops = grown

    def _telling(self, child: int) -> list[int]:
        """The class variables that may be parents, those first that score best as the only one."""
        rule = self.rules[child]
        best, needed = self._best[child], [v for v in rule.required if v < rule.n_classes]
        alone = {v: best.get(tuple(sorted({*needed, v}))) for v in rule.optional if v < rule.n_classes}
        return sorted(alone, key=lambda v: -np.inf if (own := alone[v]) is None else own.score, reverse=True)

    def score_chains(self, features: Sequence[Family]) -> None:
        """For each class variable all those before it as inputs."""
        tasks = []
        for rule in self.uncut if self.rules[0].max_parents else ():
            before = [v for v in rule.optional if v < rule.child]
            for base in dict.fromkeys([features[rule.child], everything(rule)]):
                family = base.feed(*before)
                if self.affordable(rule.child, family):
                    tasks.append((rule.child, family))
        tell_phase("scoring a chain")
        self._score(tasks, last=True)


def least(rule: ParentRules) -> Family:
    """The parents that a class variable must have, as inputs."""
    return Family((), tuple(sorted(rule.required)))


def everything(rule: ParentRules) -> Family:
    """The same with all discrete features that may be parents: binary relevance."""
    return least(rule).feed(*(v for v in rule.optional if v >= rule.n_classes))


def classes_alone(rule: ParentRules) -> ParentRules:
    """The same rules for the class variables among the parents alone."""
    optional = tuple(v for v in rule.optional if v < rule.n_classes)
    return replace(rule, optional=optional, required=frozenset(v for v in rule.required if v < rule.n_classes))


def offered_families(tables: Sequence[FamilyTable], scores: Scores) -> list[FamilyTable]:
    """The families that the search may choose from."""
    return [
        {family: value for family, value in table.items() if scores.offered(child, family)}
        for child, table in enumerate(tables)
    ]


def settle_families(table: FamilyTable, n_classes: int) -> dict[ParentSet, tuple[float, Family]]:
    """For each set of class variables the best family: the choice of discrete features and of everyone's way.

    Discrete features are never children, and the way of a parent is nobody else's business: neither closes a cycle. So
    whichever serves a set of class variables best can be settled before the search, and the search stays exact. Ties go
    to the family that was scored first.
    """
    best: dict[ParentSet, tuple[float, Family]] = {}
    for family, score in table.items():
        classes = family.classes(n_classes)
        if classes not in best or score > best[classes][0]:
            best[classes] = (score, family)
    return best


def backoff_chains(fewer: Callable[[Family], Family], family: Family, n_classes: int) -> list[list[Family]]:
    """The families to fall back on: a chain for the family itself, and one without each choice of dividing features.

    The latter answer for values of discrete features that were never seen.
    """
    features = [v for v in family.partition if v >= n_classes]
    unseen = chain.from_iterable(combinations(features, size) for size in range(len(features) + 1))
    return [backoff_chain(fewer, family.without(*gone)) for gone in unseen]


def backoff_chain(fewer: Callable[[Family], Family], family: Family) -> list[Family]:
    """A family and ever coarser ones, down to the one that does not divide the rows.

    `fewer` says what each falls back on (`pmdc.scores.scoring.Scores.fewer`).
    """
    levels = [family]
    while family.partition:
        family = fewer(family)
        levels.append(family)
    return levels


def inherited_strengths(
    chains: Sequence[Sequence[Family]], strength: Callable[[Family], float | None]
) -> dict[Family, float | None]:
    """The strengths of all families of some chains; those that were not scored have that of the one before them."""
    first = strength(chains[0][0])
    found: dict[Family, float | None] = {}
    for families in chains:
        last = first
        for family in families:
            own = strength(family)
            last = last if own is None else own
            found.setdefault(family, last)
    return found


def ranked_features(work: Rowwise, rules: Sequence[ParentRules]) -> list[list[int]]:
    """For each class variable the discrete features that may be its parents, by falling mutual information."""
    n_classes = len(rules)
    sizes = work.sizes[n_classes:]
    if not sizes:
        return [[] for _ in rules]
    weights = work.learner.sample_weight
    values = one_hot(work.codes[:, n_classes:], sizes) * (weights / weights.sum())[:, None]
    ends = np.cumsum([0, *sizes])
    ranked = []
    for rule in rules:
        joint = values.T @ one_hot(work.codes[:, [rule.child]], [work.sizes[rule.child]])
        states = joint[: ends[1]].sum(axis=0)  # every row has one value of the first feature
        independent = joint.sum(axis=1, keepdims=True) * states
        information = np.add.reduceat(rel_entr(joint, independent).sum(axis=1), ends[:-1])
        features = [v for v in range(n_classes, len(work.sizes)) if v in rule.optional or v in rule.required]
        ranked.append(sorted(features, key=lambda v: -information[v - n_classes]))
    return ranked
