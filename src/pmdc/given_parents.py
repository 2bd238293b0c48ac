"""Give experts the parents of their class variables where held-out rows gain by it, after the structure search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter

import numpy as np

from pmdc._support.arrays import Floats
from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family
from pmdc.experts.features import ConditionalExperts
from pmdc.experts.given_parents import fit_given_parents, widen
from pmdc.experts.out_of_fold import ExpertFits, FittedExperts
from pmdc.learners.conditional_logit import ConditionalLogitLearner
from pmdc.learners.validation import standard_error
from pmdc.scores.fitter import Fitter
from pmdc.scores.guard import exceeds
from pmdc.scores.held_out import HeldOutScorer
from pmdc.scores.scorer import Gain
from pmdc.settings import Settings


@dataclass(frozen=True)
class Chosen:
    """The chosen families, and what is needed to fit them.

    Attributes
    ----------
    families : list of Family
    fitter : Fitter
    kappa : function (child, family) -> shrinkage of a scored family, or None
    held_out : array of shape (n,) or None
        The held-out log-probability of each row's outcome.
    experts : tuple of ConditionalExperts or None
        For each class variable, its experts on the features and its parents; empty if no class variable has any.
    """

    families: list[Family]
    fitter: Fitter
    kappa: Callable[[int, Family], float | None]
    held_out: Floats | None
    experts: tuple[ConditionalExperts | None, ...] = ()


def give_parents(
    chosen: Chosen, fits: ExpertFits, experts: FittedExperts, scorer: HeldOutScorer, settings: Settings
) -> Chosen:
    """Try experts on (x, parents) for each class variable, and keep those that pass the guard.

    Only class variables with expert features and the default local model are tried, and only if held-out scores are of
    the rows as they are (leave-one-out).
    """
    n_classes = len(chosen.families)
    if settings.max_parents == 0 or chosen.held_out is None:
        return chosen
    held_out = chosen.held_out
    order = list(TopologicalSorter({k: f.classes(n_classes) for k, f in enumerate(chosen.families)}).static_order())
    families, learners = list(chosen.families), list(chosen.fitter.learners)
    found: list[ConditionalExperts | None] = [None] * n_classes
    scorers: dict[int, HeldOutScorer] = {}
    tell_phase("trying experts given the parents")
    for place, k in enumerate(order):
        learner = learners[k]
        if not experts.for_parents[k] or not isinstance(learner, ConditionalLogitLearner):
            continue
        parents = _parents(families[k], k, order[:place], scorer.fitter, settings)
        if not parents:
            continue
        base = scorer.rows(k, families[k])
        given = fit_given_parents(fits, experts, k, parents, base)
        if given is None:
            continue
        wider = ConditionalLogitLearner(np.hstack([learner.X, given.rows]), learner.sample_weight)
        fitter = replace(scorer.fitter, learners=(*learners[:k], wider, *learners[k + 1 :]))
        own = HeldOutScorer(fitter, scorer.parallel, scorer.evaluator, scorer.shrunk, settings.memory_budget)
        extra = [p for p in parents if p not in families[k].parents]
        tried = list(dict.fromkeys([families[k].feed(*extra), families[k].feed(*parents)]))
        scores = own.score([(k, family) for family in tried])
        best = max(tried, key=lambda family: scores[k, family])
        difference = own.rows(k, best) - base
        error = standard_error(difference, scorer.fitter.sample_weight, scorer.fitter.origin)
        gain = Gain(float(scorer.fitter.sample_weight @ difference), error)
        if exceeds(gain, settings.guard, len(tried)):
            names = [settings.names[p] for p in parents]
            settings.log(f"experts of {settings.names[k]!r} given {names} gain {gain.value:.4g} nats")
            families[k], learners[k], found[k], scorers[k] = best, wider, given.experts, own
            held_out = held_out + difference
    if not scorers:
        return chosen

    def kappa(child: int, family: Family) -> float | None:
        return scorers[child].kappa(child, family) if child in scorers else chosen.kappa(child, family)

    return Chosen(families, replace(chosen.fitter, learners=tuple(learners)), kappa, held_out, tuple(found))


def _parents(family: Family, child: int, before: Sequence[int], fitter: Fitter, settings: Settings) -> tuple[int, ...]:
    """Return the class variables that are given: the parents, and the most informative of those before it."""
    allowed = settings.rules[child].allowed
    ranked = [v for v in fitter.ranking[child] if v in before and v in allowed]
    return widen(family.classes(fitter.n_classes), ranked, fitter.sizes)
