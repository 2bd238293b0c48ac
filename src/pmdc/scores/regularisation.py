"""C of the local models, chosen for each class variable by rows that they have not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, Task
from pmdc.candidates.rules import ParentRules, with_parent
from pmdc.learners.protocols import Regularised, Start, best_C
from pmdc.scores.evaluators import Evaluator
from pmdc.scores.fitter import Fitter
from pmdc.scores.scorer import Parallel
from pmdc.scores.shrinkage import floor, shrink, uniform


def choose_C(
    fitter: Fitter,
    rules: Sequence[ParentRules],
    conditioning: str,
    evaluator: Evaluator,
    parallel: Parallel,
    shrunk: bool,
) -> Fitter:
    """Choose C twice for each class variable and return the fitter with it.

    Once for its models without class variables as parents: with all discrete features as inputs or with none, whichever
    is better with a C of its own. And once for those with: there for the most informative class variable beside these,
    as an input or as what partitions the rows, as parents say what features would have to.
    """

    def best(tasks: Sequence[Task], fitter: Fitter) -> dict[int, tuple[float, float, Family]]:
        """Class variable -> greatest score, its C, its family."""
        found: dict[int, tuple[float, float, Family]] = {}
        for (child, family), (score, C) in zip(tasks, parallel(_choose, tasks, fitter, evaluator, shrunk), strict=True):
            if child not in found or score > found[child][0]:
                found[child] = score, C, family
        return found

    tell_phase("choosing the regularisation of the local models")
    alone = best([(rule.child, family) for rule in rules for family in rule.without_classes(conditioning)], fitter)
    fitter = fitter.with_C([(alone[rule.child][1],) * 2 for rule in rules])
    tasks: list[Task] = []
    for rule in rules:
        possible = [v for v in fitter.ranking[rule.child] if v < rule.n_classes and v in rule.allowed]
        if possible and rule.max_parents:
            base = alone[rule.child][2]
            tasks += [(rule.child, family) for family in with_parent(base, possible[0], conditioning)]
    beside = best(tasks, fitter)
    return fitter.with_C(
        [(alone[rule.child][1], beside.get(rule.child, alone[rule.child])[1]) for rule in rules],
    )


def _choose(task: Task, fitter: Fitter, evaluator: Evaluator, shrunk: bool) -> tuple[float, float]:
    """The greatest log-likelihood of the held-out rows of a family, and the C that gives it."""
    child, family = task
    learner, weights = fitter.learner, fitter.sample_weight
    assert isinstance(learner, Regularised)
    towards = uniform(len(fitter.codes), fitter.sizes[child])
    if family.partition and shrunk:  # towards the model that partitions nothing, for which C was chosen before
        coarse = family.without(*family.partition)
        rows, _ = evaluator(fitter, fitter.learner_of(child, coarse), child, coarse, None)
        towards = shrink(rows, towards, weights)[0]

    def score(C: float, start: Start | None) -> tuple[float, Start | None]:
        rows, start = evaluator(fitter, learner.with_C(C), child, family, start)
        value = shrink(rows, towards, weights)[0] if shrunk else floor(rows, towards)
        return float(np.dot(weights, value)), start

    return best_C(score)
