"""The choice of C for each class variable by held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pmdc._support.arrays import Floats
from pmdc._support.deadline import NEVER, Deadline
from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, Task, is_small
from pmdc.candidates.rules import ParentRules
from pmdc.learners.protocols import LocalLearner, Regularised, Start
from pmdc.learners.validation import best_C
from pmdc.scores.evaluators import Evaluator
from pmdc.scores.fitter import Fitter
from pmdc.scores.scorer import Parallel
from pmdc.scores.shrinkage import floor, shrink, uniform

DEFAULT_C = 1.0
"""C of a class variable for which there was no time to choose one; scikit-learn's default."""


def choose_C(
    fitter: Fitter,
    rules: Sequence[ParentRules],
    evaluator: Evaluator,
    parallel: Parallel,
    shrunk: bool,
    deadline: Deadline = NEVER,
) -> tuple[tuple[float, float] | None, ...]:
    """Choose two values of C for each class variable whose learner has ``C="auto"``; None for others.

    The first is for models without class variables as parents: of the family with all discrete features as inputs and
    the one with none, the better with its own C decides. The second is for models with class variables as parents: the
    most informative class variable is added to that family, as an input and as a partition, and the better decides.
    The first is replaced by the second if this is better without parents, too, so that parents do not gain by a better
    C alone. Neither depends on `conditioning`, so that the scores of a family can be compared between settings.
    After the deadline, the best of the values tried so far is taken, or `DEFAULT_C` for a class variable without any.
    """

    def best(tasks: Sequence[Task], fitter: Fitter) -> dict[int, tuple[float, float, Family]]:
        """Return for each class variable the best score, its C and its family."""
        found: dict[int, tuple[float, float, Family]] = {}
        answers = parallel(_choose, tasks, fitter, evaluator, shrunk, deadline, deadline=deadline)
        if len(answers) < len(tasks) or deadline.passed():
            deadline.cut("the choice of C")
        for (child, family), (score, C) in zip(tasks, answers, strict=False):
            if child not in found or score > found[child][0]:
                found[child] = score, C, family
        return found

    tell_phase("choosing the regularisation of the local models")
    every, rules = rules, [rule for rule in rules if chooses_C(fitter.learners[rule.child])]
    alone = {rule.child: (-math.inf, DEFAULT_C, rule.without_classes()[-1]) for rule in rules}
    tasks = [(rule.child, family) for rule in rules for family in rule.without_classes()]
    required = {rule.child: rule.required for rule in rules}
    alone |= best([task for task in tasks if is_small(*task, fitter.sizes, required[task[0]])], fitter)
    fitter = replace(fitter, C=tuple((alone[r.child][1],) * 2 if r.child in alone else None for r in every))
    tasks = []
    for rule in rules:
        possible = [v for v in fitter.ranking[rule.child] if v < rule.n_classes and v in rule.allowed]
        if possible and rule.max_parents:
            base = alone[rule.child][2]
            tasks += [(rule.child, base.feed(possible[0])), (rule.child, base.divide_by(possible[0]))]
    beside = best([task for task in tasks if is_small(*task, fitter.sizes, required[task[0]])], fitter)
    other = [(child, alone[child][2], C) for child, (_, C, _) in beside.items() if alone[child][1] != C]
    answers = parallel(_score, other, fitter, evaluator, shrunk, deadline=deadline)
    scores = dict(zip(other, answers, strict=False))
    first = {child: own[1] for child, own in alone.items()}
    first |= {child: C for (child, _, C), score in scores.items() if score > alone[child][0]}
    return tuple((first[r.child], beside.get(r.child, alone[r.child])[1]) if r.child in alone else None for r in every)


def chooses_C(learner: LocalLearner) -> bool:
    """Return whether a learner has ``C="auto"``."""
    return isinstance(learner, Regularised) and learner.auto


def _choose(task: Task, fitter: Fitter, evaluator: Evaluator, shrunk: bool, deadline: Deadline) -> tuple[float, float]:
    """Return the held-out log-likelihood of a family with the best C, and this C."""
    child, family = task
    held_out = _held_out(child, family, fitter, evaluator, shrunk)
    return best_C(held_out, fitter.learners[child].sample_weight, fitter.origin, deadline)


def _score(trial: tuple[int, Family, float], fitter: Fitter, evaluator: Evaluator, shrunk: bool) -> float:
    """Return the held-out log-likelihood of a family with some C."""
    child, family, C = trial
    rows, _ = _held_out(child, family, fitter, evaluator, shrunk)(C, None)
    return float(np.dot(fitter.learners[child].sample_weight, rows))


def _held_out(
    child: int, family: Family, fitter: Fitter, evaluator: Evaluator, shrunk: bool
) -> Callable[[float, Start | None], tuple[Floats, Start | None]]:
    """Return a function of C and a warm start: the held-out log-probability of each row's state."""
    learner = fitter.learners[child]
    weights = learner.sample_weight
    assert isinstance(learner, Regularised)
    towards = uniform(len(fitter.codes), fitter.sizes[child])
    if family.partition and shrunk:  # towards the family without a partition, whose C is known already
        coarse = family.without(*family.partition)
        rows, _ = evaluator(fitter, fitter.learner_of(child, coarse), child, coarse, None)
        towards = shrink(rows, towards, weights)[0]

    def held_out(C: float, start: Start | None) -> tuple[Floats, Start | None]:
        rows, start = evaluator(fitter, learner.with_C(C), child, family, start)
        return shrink(rows, towards, weights)[0] if shrunk else floor(rows, towards), start

    return held_out
