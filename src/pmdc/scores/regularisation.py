"""The strength C of the local models' penalty, chosen for each class variable by rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pmdc._support.arrays import Floats
from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family
from pmdc.candidates.family_search import everything, least
from pmdc.candidates.rules import ParentRules
from pmdc.learners.protocols import Adjustable, Start
from pmdc.scores.held_out import Evaluator, counted
from pmdc.scores.scoring import Parallel, Rowwise, Scores, Task, uniform_rows


def choose_strengths(
    work: Rowwise,
    rules: Sequence[ParentRules],
    conditioning: str,
    evaluator: Evaluator,
    make_scores: Callable[[Rowwise], Scores],
    parallel: Parallel,
    shrunk: bool,
) -> Rowwise:
    """The same work with C chosen for each class variable.

    Once for its models without class variables as parents: with all discrete features as inputs or with none, whichever
    is better with a C of its own. And once for those with: there from the best family with one, as parents say what
    features would have to, and divide the rows.
    """
    n_classes = len(rules)

    def choose(tasks: Sequence[Task], work: Rowwise) -> list[tuple[float, float]]:
        return parallel(_choose, tasks, work, evaluator, shrunk)

    tell_phase("choosing the strength of the local models")
    tasks = [(rule.child, family) for rule in rules for family in _without_classes(rule, conditioning)]
    found: dict[int, tuple[float, float, Family]] = {}
    for (child, family), (score, C) in zip(tasks, choose(tasks, work), strict=True):
        if child not in found or score > found[child][0]:
            found[child] = score, C, family
    without, alone = [found[child][1] for child in range(n_classes)], [found[child][2] for child in range(n_classes)]
    work = replace(work, strengths=tuple((C, C) for C in without))
    singles = list(enumerate(alone))
    for rule in rules:
        for v in (v for v in (*rule.optional, *rule.required) if v < n_classes and rule.max_parents):
            if conditioning != "partition":
                singles.append((rule.child, alone[rule.child].feed(v)))
            if conditioning != "input":
                singles.append((rule.child, alone[rule.child].divide_by(v)))
    if len(singles) == n_classes:
        return work
    scores = make_scores(work)
    scores(singles)
    best = [
        max((f for f in table if f.classes(n_classes)), key=table.__getitem__, default=alone[child])
        for child, table in enumerate(scores.known)
    ]
    with_parents = [C for _, C in choose(list(enumerate(best)), work)]
    return replace(work, strengths=tuple(zip(without, with_parents, strict=True)))


def _without_classes(rule: ParentRules, conditioning: str) -> list[Family]:
    """The families without class variables that C is chosen for."""
    if conditioning == "partition":
        return [Family(())]
    return list(dict.fromkeys(make(rule).without(*range(rule.n_classes)) for make in (everything, least)))


def _choose(task: Task, work: Rowwise, evaluator: Evaluator, shrunk: bool) -> tuple[float, float]:
    """The greatest log-likelihood of the held-out rows of a family, and the C that gives it."""
    assert isinstance(work.learner, Adjustable)
    child, family = task
    fewer = uniform_rows(work, child)
    if family.partition and shrunk:  # towards the model that divides nothing, for which C was chosen before
        coarse = family.without(*family.partition)
        rows = evaluator(work.learner_of(child, coarse), child, coarse, work.codes, work.sizes, None)
        fewer = counted(rows, fewer, work.learner.sample_weight)[0]
    return work.learner.choose_strength(partial(_held_out_score, work, evaluator, task, fewer, shrunk))


def _held_out_score(
    work: Rowwise, evaluator: Evaluator, task: Task, fewer: Floats, shrunk: bool, learner: Any, start: Start | None
) -> tuple[float, Start | None]:
    rows = evaluator(learner, *task, work.codes, work.sizes, start)
    weights = work.learner.sample_weight
    return float(np.dot(weights, counted(rows, fewer, weights, shrunk)[0])), rows.start
