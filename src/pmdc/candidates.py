"""Candidate parent sets: enumeration, pruning and the score table.

Nodes are numbered: class variables first, then discrete features. A parent set is the sorted tuple of its nodes.
Sets are visited level by level (Algorithm 3), so that the scores of all subsets are known when a set comes up
and pruning can spare its local models. All local models of a level are independent of each other.

Where all parents divide the rows (the paper's way) a parent set says everything; where they may be inputs as well, each
set of class variables stands for several families (`pmdc.families`, `score_families`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

from pmdc.checks import check_choice
from pmdc.families import Family, ParentSet

if TYPE_CHECKING:
    from pmdc.scoring import Scores

ScoreTable = dict[ParentSet, float]
FamilyTable = dict[Family, float]


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
        new = [task for task in tasks if known is None or task[1] not in known[task[0]]]
        fresh = dict(zip(new, score(new), strict=True))
        for child, parents in tasks:
            value = fresh[child, parents] if (child, parents) in fresh else known[child][parents]  # type: ignore[index]
            tables[child][parents] = value
            pruning.record(child, parents, value)
        progress(f"level {level}: {len(tasks)} of {visited} parent sets scored, {visited - len(tasks)} pruned")
    return [pruning.table(child, table) for child, table in enumerate(tables)]


# Families -----------------------------------------------------------------------------------------------------

WAYS = ("partition", "input", "auto")

_ROUNDS = 4
"""The most features whose way is changed, one after the other."""

_FEW = 80
"""All ways of all sets of class variables are tried where they are no more than this."""

_TRIED = 16
"""The most features that each of these rounds tries."""


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
    3. *A chain.* All class variables before it in the order of the columns as inputs, with the features as found in 1,
       and with all of them as inputs.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    uncut : the same before `max_candidates` took some parents away, for the chain
    scores : `pmdc.scoring.Scores`
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
        self._best: list[dict[ParentSet, tuple[float, Family]]] = [{} for _ in self.rules]
        self._worth: list[set[ParentSet]] = [set() for _ in self.rules]

    def run(self) -> list[FamilyTable]:
        features = self.settle_features()
        self.score_levels(features)
        self.score_chains(features)
        return self.tables

    def _score(self, tasks: Sequence[tuple[int, Family]], last: bool = False) -> None:
        tasks = list(dict.fromkeys(tasks))
        for (child, family), value in zip(tasks, self.scores(tasks, last), strict=True):
            classes = family.classes(self.rules[child].n_classes)
            self.tables[child][family] = value
            if self.scores.offered(child, family):
                self._worth[child].add(classes)
            if classes not in self._best[child] or value > self._best[child][classes][0]:
                self._best[child][classes] = value, family

    def settle_features(self) -> list[Family]:
        """The features of each class variable and their ways."""
        self._score([(rule.child, make(rule)) for rule in self.rules for make in (least, everything)])
        best = [
            everything(rule) if self.scores.exceeds(rule.child, everything(rule), least(rule), 1) else least(rule)
            for rule in self.rules
        ]
        open_ = [rule for rule in self.rules if self.ranked[rule.child]]
        for _ in range(_ROUNDS):
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
        for rule in self.rules:
            self.scores.settle(rule.child, best[rule.child], list(self.tables[rule.child]))
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
                    tasks.extend((child, family) for family in families if not self.skip(child, family, bound))
            self._score(tasks, last=level == most)
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
        (_, family), gone = max(known, key=lambda pair: pair[0][0])
        return [family.divide_by(gone), family.feed(gone)]

    def _best_subset(self, rule: ParentRules, classes: ParentSet) -> float:
        subsets = chain.from_iterable(combinations(classes, size) for size in range(len(classes) + 1))
        best = self._best[rule.child]
        return max((best[s][0] for s in subsets if s in best), default=-np.inf)

    def score_chains(self, features: Sequence[Family]) -> None:
        """For each class variable all those before it as inputs."""
        tasks = []
        for rule in self.uncut if self.rules[0].max_parents else ():
            before = [v for v in rule.optional if v < rule.child]
            for base in dict.fromkeys([features[rule.child], everything(rule)]):
                family = base.feed(*before)
                if self.affordable(rule.child, family):
                    tasks.append((rule.child, family))
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


def backoff_chains(table: FamilyTable, family: Family, n_classes: int) -> list[list[Family]]:
    """The families to fall back on: a chain for the family itself, and one without each choice of dividing features.

    The latter answer for values of discrete features that were never seen.
    """
    features = [v for v in family.partition if v >= n_classes]
    unseen = chain.from_iterable(combinations(features, size) for size in range(len(features) + 1))
    return [backoff_chain(table, family.without(*gone)) for gone in unseen]


def backoff_chain(table: FamilyTable, family: Family) -> list[Family]:
    """A family and ever coarser ones, down to the one that does not divide the rows.

    At each step goes the parent without which the score is best; a family that was not scored comes last, and
    among equals the later parent goes first.
    """
    levels = [family]
    while family.partition:
        family = max(family.coarser(), key=lambda fewer: table.get(fewer, -np.inf))
        levels.append(family)
    return levels
