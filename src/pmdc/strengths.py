"""The strength C of the local models' penalty, chosen for each class variable by rows that they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pmdc.candidates import ParentRules
from pmdc.families import Family
from pmdc.family_search import everything
from pmdc.held_out import Evaluator, counted
from pmdc.learners.base import Adjustable, Start
from pmdc.progress import tell_phase
from pmdc.scoring import Parallel, Rowwise, Scores, Task, uniform_rows
from pmdc.table import Floats


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

    Once for its models without class variables as parents, and once for those with: there from the best family with
    one, as parents say what features would have to, and divide the rows.
    """
    n_classes = len(rules)

    def choose(families: Sequence[Family], work: Rowwise) -> list[float]:
        return parallel(_choose, list(enumerate(families)), work, evaluator, shrunk)

    alone = [
        Family(()) if conditioning == "partition" else everything(rule).without(*range(n_classes)) for rule in rules
    ]
    tell_phase("choosing the strength of the local models")
    without = choose(alone, work)
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
    return replace(work, strengths=tuple(zip(without, choose(best, work), strict=True)))


def _choose(task: Task, work: Rowwise, evaluator: Evaluator, shrunk: bool) -> float:
    """The C under which held-out rows of a family have the greatest log-likelihood."""
    assert isinstance(work.learner, Adjustable)
    child, family = task
    fewer = uniform_rows(work, child)
    if (
        family.partition and shrunk
    ):  # without which it would be the model without parents, for which C was chosen before
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
