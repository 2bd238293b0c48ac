"""Phase P1: score the candidate families of all class variables, and accept some of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from pmdc._support.warn import warn_user
from pmdc.candidates.families import (
    MAX_INPUT_COEFFICIENTS,
    Family,
    FamilyTable,
    ParentSet,
    Task,
    in_order,
    is_small,
)
from pmdc.candidates.family_search import FamilySearch
from pmdc.candidates.parent_sets import restrict, score_parent_sets
from pmdc.candidates.rules import ParentRules, predicted_models
from pmdc.experts.plan import ExpertPlan
from pmdc.learners.validation import are_counts
from pmdc.scores.guard import exceeds, guard, least_gain
from pmdc.scores.scorer import Scorer
from pmdc.scores.training import TrainingScorer
from pmdc.settings import Settings

MANY_MODELS = 1_000_000
"""A fit without `max_candidates` warns if it has more local models than this."""

MAX_CELLS = 2**10
"""Maximal cells of the conditional table of a family with inputs beyond `DEFAULT_MAX_PARENTS`.

Prediction fills this table for every row, about half a microsecond a cell.
"""

MAX_ROWS_SCORED = 2_000_000
"""With ``conditioning="auto"``, parent sets that partition the rows are scored level by level up to this many rows.

The rows are counted once for each set. Logistic regression takes about eight microseconds for each.
"""


class Plan(NamedTuple):
    """An estimate of the work of a fit.

    Attributes
    ----------
    parent_sets : int
    local_models : int or None
    experts : ExpertPlan or None
        Folds and candidates of the default experts; None without experts.
    """

    parent_sets: int
    local_models: int | None
    experts: ExpertPlan | None = None


class ScoredFamilies(NamedTuple):
    """The result of phase P1.

    Attributes
    ----------
    tables : for each class variable, family -> score
    accepted : the same for the families that the search may choose from
    limits : list of str
        Over which families the structure search is exact, if not over all within the rules.
    """

    tables: list[FamilyTable]
    accepted: list[FamilyTable]
    limits: list[str]


@dataclass(frozen=True)
class FamilyScoring:
    """Scores and accepts families; the `Judge` of `FamilySearch`."""

    settings: Settings
    scorer: Scorer
    left_out: list[str] = field(default_factory=list)

    def run(self) -> ScoredFamilies:
        """Score the families of all class variables."""
        least = [(rule.child, self._least(rule)) for rule in self.settings.rules]
        if self.scorer.deadline.exists:
            self.scorer.score_always(least)  # so that there is a model, however little time is left
        rules, limits = self._restrict()
        found = self._score_partitions(rules, limits) if self._partition else self._search(rules)
        for (child, family), table in zip(least, found, strict=True):
            if not table:
                table[family] = self.scorer.score([(child, family)])[child, family]
        tables = [in_order(table) for table in found]
        accepted = [self.accepted(child, table) for child, table in enumerate(tables)]
        if self.scorer.stopped:
            self._record_cut(tables)
        return ScoredFamilies(tables, accepted, limits + self._exact_over(tables, accepted) + self.left_out)

    def _search(self, rules: Sequence[ParentRules]) -> list[FamilyTable]:
        """Score families in which parents may be inputs.

        With ``conditioning="auto"``, the families that "input" scores are among them, and those that "partition" scores
        as far as they are affordable.
        """
        beyond, log = self.settings.max_parents is None, self.settings.log
        inputs = FamilySearch(rules, self, False, beyond, [{} for _ in rules], log).run()
        if self.settings.conditioning == "input":
            return inputs
        max_sets = MAX_ROWS_SCORED // len(self.scorer.fitter.codes)
        if self.settings.max_candidates is not None:
            max_sets = min(max_sets, self.settings.max_candidates)
        partitions = self._score_partitions(rules, [], max_sets)
        known = [own | other for own, other in zip(inputs, partitions, strict=True)]
        return FamilySearch(rules, self, True, beyond, known, log).run()

    def _least(self, rule: ParentRules) -> Family:
        """Return the family of the required parents alone."""
        return rule.least().divide_by(*rule.required) if self._partition else rule.least()

    def _record_cut(self, tables: Sequence[FamilyTable]) -> None:
        """Record that families were not scored because the time was up."""
        deadline, n_classes = self.settings.deadline, len(tables)
        if any(family.classes(n_classes) for table in tables for family in table):
            deadline.cut(f"the scores of further parent sets ({sum(map(len, tables))} families were scored)")
        else:
            deadline.cut(
                "the scores of class variables as parents: the model treats the class variables as independent given x"
            )

    @property
    def _guarded(self) -> bool:
        """Whether families must pass the guard; scores on training rows have no standard errors."""
        return not isinstance(self.scorer, TrainingScorer)

    def _least_gain(self, child: int, family: Family, other: Family) -> float:
        """Return the significant gain of a family over one with fewer parents; see `pmdc.scores.guard`."""
        n_added = len(family.parents) - len(other.parents)
        ways = 2 if self.settings.conditioning == "auto" else 1  # in which each parent may enter
        n_tests = ways**n_added * sum(math.comb(len(rule.optional), n_added) for rule in self.settings.rules)
        n_parameters = math.inf
        if math.isfinite(own := self._n_parameters(child, family)):
            n_parameters = own - self._n_parameters(child, other)
        return self._design_effect(child) * least_gain(self.settings.guard, n_tests, max(n_parameters, 1.0))

    def _design_effect(self, child: int) -> float:
        """Return by how much weights that are not counts raise the variance of a score; copies of a row are one."""
        fitter = self.scorer.fitter
        weights = fitter.learners[child].sample_weight
        if fitter.merge:
            weights = np.round(np.bincount(np.unique(fitter.origin, return_inverse=True)[1], weights), 9)
        return 1.0 if are_counts(weights) else max(1.0, float(np.dot(weights, weights) / weights.sum()))

    def _n_parameters(self, child: int, family: Family) -> float:
        """Return the number of parameters of all local models of a family, infinite if it is unknown."""
        fitter = self.scorer.fitter
        sizes = fitter.sizes
        one = fitter.learners[child].n_parameters(sizes[child], [sizes[p] for p in family.inputs])
        return math.inf if one is None else one * math.prod(sizes[p] for p in family.partition)

    def score(self, tasks: Sequence[Task]) -> dict[Task, float]:
        return self.scorer.score(tasks)

    def accepted(self, child: int, table: FamilyTable) -> FamilyTable:
        if not self._guarded:
            return table
        gain, least = partial(self.scorer.gain, child), partial(self._least_gain, child)
        return guard(table, gain, least, self.settings.rules[child].required)

    def exceeds(self, child: int, family: Family, other: Family) -> bool:
        least = self._least_gain(child, family, other) if self._guarded else 0.0
        return exceeds(self.scorer.gain(child, family, other), least)

    def hopeless(self, child: int, family: Family, bound: float) -> bool:
        """Apply the Lemma: C(Y, D) <= 0, so no family scores better than minus its penalty."""
        if not isinstance(self.scorer, TrainingScorer) or self.settings.prune is None:
            return False
        return bound >= -self.scorer.penalty(child, family)

    def small(self, child: int, family: Family) -> bool:
        small = is_small(child, family, self.scorer.fitter.sizes, self.settings.rules[child].required)
        if not small and not self.left_out:
            self.left_out.append(f"those whose inputs have at most {MAX_INPUT_COEFFICIENTS} coefficients")
        return small

    def out_of_time(self) -> bool:
        return self.scorer.out_of_time()

    def affordable(self, child: int, family: Family) -> bool:
        sizes, classes = self.scorer.fitter.sizes, family.classes(len(self.settings.rules))
        return math.prod(sizes[p] for p in (child, *classes)) <= MAX_CELLS

    def _score_partitions(
        self, rules: Sequence[ParentRules], limits: list[str], max_sets: int | None = None
    ) -> list[FamilyTable]:
        """Score parent sets that partition the rows, as in the paper; the levels that `max_sets` allows."""
        scorer = self.scorer

        def penalty(child: int, parents: ParentSet) -> float:
            return scorer.penalty(child, Family(parents)) if isinstance(scorer, TrainingScorer) else 0.0

        prune = self.settings.prune if isinstance(scorer, TrainingScorer) else None
        if prune == "definition":
            limits.append("the parent sets kept by prune='definition'")
        return score_parent_sets(rules, penalty, scorer.score, prune, self.settings.log, max_sets, self.out_of_time)

    def _restrict(self) -> tuple[list[ParentRules], list[str]]:
        """Report the planned work, and apply `max_candidates`; return the rules and what limits the search."""
        limit, partition, fitter = self.settings.max_candidates, self._partition, self.scorer.fitter
        rules = [rule if partition else rule.classes_alone() for rule in self.settings.rules]
        n_sets = sum(rule.count() for rule in rules)
        if limit is not None and n_sets > limit:
            few = restrict(rules, limit, self.scorer.score, not partition)
            kept = sum(rule.count() for rule in few)
            features = f" and {rules[0].max_discrete_parents} discrete features" if partition else ""
            warn_user(
                f"There are {n_sets} parent sets of up to {max(rule.max_parents for rule in rules)} class variables"
                f"{features}, more than max_candidates={limit}. Each class variable keeps the possible parents that "
                f"score best alone: {kept} sets are left, and the structure is optimal over these only."
            )
            over = f"the {kept} of {n_sets} parent sets kept by max_candidates={limit}"
            return [self._with_features(*pair) for pair in zip(self.settings.rules, few, strict=True)], [over]
        models = plan(rules, fitter.sizes, len(fitter.codes)).local_models
        many = "very many" if models is None else f"up to {models}"
        self.settings.log(f"{n_sets} parent sets with {many} local models")
        bounded = limit is not None or self.scorer.deadline.exists
        if not bounded and (models is None or models > MANY_MODELS):
            warn_user(
                f"{n_sets} parent sets with {many} local models will be fitted, which may take long. To reduce this, "
                "lower max_parents or max_discrete_parents, or set max_candidates or time_budget."
            )
        return list(self.settings.rules), []

    @property
    def _partition(self) -> bool:
        return self.settings.conditioning == "partition"

    def _with_features(self, rule: ParentRules, few: ParentRules) -> ParentRules:
        """Return the rule with the remaining class variables; features are cut only in a partition."""
        if self._partition:
            return few
        return rule.keep((*few.optional, *(v for v in rule.optional if v >= rule.n_classes)))

    def _exact_over(self, tables: Sequence[FamilyTable], accepted: Sequence[FamilyTable]) -> list[str]:
        scored, left = sum(map(len, tables)), sum(map(len, accepted))
        until = f" until time_budget={self.settings.deadline.budget:g} ran out" if self.scorer.stopped else ""
        if self.settings.guard and left < scored:
            also = f" and scored{until}" if until else ""
            return [f"the {left} of {scored} families accepted by guard={self.settings.guard:g}{also}"]
        return [] if self._partition and not until else [f"the {scored} families scored{until}"]


def plan(rules: Sequence[ParentRules], sizes: Sequence[int], n_rows: int) -> Plan:
    """Count the parent sets, and the local models they need at most unless the sets are too many to list."""
    n_sets = sum(rule.count() for rule in rules)
    return Plan(n_sets, predicted_models(rules, sizes, n_rows) if n_sets <= MANY_MODELS else None)
