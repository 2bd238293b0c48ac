"""Give experts the parents of their class variables where held-out rows gain by it, after the structure search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np

from pmdc._support.arrays import Floats
from pmdc._support.deadline import Pace
from pmdc._support.progress import tell_phase
from pmdc.bounds import Bounds
from pmdc.candidates.families import Family
from pmdc.experts.features import ConditionalExperts
from pmdc.experts.given_parents import CUT, fit_given_parents, widen
from pmdc.experts.out_of_fold import ExpertFits, FittedExperts
from pmdc.learners.conditional_logit import ConditionalLogitLearner
from pmdc.learners.protocols import LocalLearner
from pmdc.learners.validation import standard_error
from pmdc.scores.fitter import Fitter
from pmdc.scores.guard import exceeds, least_gain
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
    held_out : array of shape (n, n_nodes) or None
        The held-out log-probability of each row's states.
    experts : tuple of ConditionalExperts or None
        For each class variable, its experts on the features and its parents; empty if no class variable has any.
    strengths : sequence of dict
        For each class variable, the arc strengths of parents that the structure search did not give it; empty likewise.
    order : sequence of int or None
        An order of elimination within the bounds; None without bounds.
    """

    families: list[Family]
    fitter: Fitter
    kappa: Callable[[int, Family], float | None]
    held_out: Floats | None
    experts: tuple[ConditionalExperts | None, ...] = ()
    strengths: Sequence[dict[int, float]] = ()
    order: Sequence[int] | None = None


def give_parents(
    chosen: Chosen, fits: ExpertFits, experts: FittedExperts, scorer: HeldOutScorer, settings: Settings
) -> Chosen:
    """Try experts on (x, parents) for each class variable, and keep those that pass the guard.

    The wider set of parents is tried first (`widen`). If it passes, each further parent is left out in turn, and stays
    out unless held-out rows lose significantly by it. Only class variables with expert features and
    the default local model are tried, not with ``conditioning="partition"``, and only if held-out scores are of the
    rows as they are. After the deadline of the fits, no further class variable is tried. The network stays within the
    bounds of the settings.
    """
    n_classes = len(chosen.families)
    if settings.max_parents == 0 or settings.conditioning == "partition" or chosen.held_out is None:
        return chosen
    held_out = chosen.held_out.copy()
    order = list(TopologicalSorter({k: f.classes(n_classes) for k, f in enumerate(chosen.families)}).static_order())
    trial = _Trial(chosen.families, chosen.fitter.learners, fits, experts, scorer, settings)
    found: dict[int, _Given] = {}
    growth = _Growth.of(chosen, settings)
    tell_phase("trying experts given the parents")
    pace = Pace(fits.deadline)
    for place, k in enumerate(order):
        if not experts.for_parents[k] or not isinstance(chosen.fitter.learners[k], ConditionalLogitLearner):
            continue
        wider = _parents(chosen.families[k], k, order[:place], scorer.fitter, settings, growth)
        if not wider:
            continue
        if not pace.may_start():
            fits.deadline.cut(CUT)
            break
        base = scorer.rows(k, chosen.families[k])
        best = trial.best(k, wider, chosen.families[k].classes(n_classes), base)
        pace.stop()
        if best is None:
            continue
        found[k] = best
        growth.grow(k, wider, best.family.classes(n_classes))
        held_out[:, k] = best.rows
        names = [settings.names[p] for p in best.experts.parents]
        settings.log(f"experts of {settings.names[k]!r} given {names} gain {trial.gain(k, best.rows - base):.4g} nats")
    if not found:
        return chosen

    def kappa(child: int, family: Family) -> float | None:
        return found[child].scorer.kappa(child, family) if child in found else chosen.kappa(child, family)

    families = [found[k].family if k in found else family for k, family in enumerate(chosen.families)]
    learners = [found[k].learner if k in found else own for k, own in enumerate(chosen.fitter.learners)]
    given = tuple(found[k].experts if k in found else None for k in range(n_classes))
    strengths = [found[k].strengths if k in found else {} for k in range(n_classes)]
    fitter = replace(chosen.fitter, learners=tuple(learners))
    return Chosen(families, fitter, kappa, held_out, given, strengths, growth.order)


@dataclass
class _Growth:
    """The parents so far of each class variable, with an order of elimination within the bounds."""

    parents: list[tuple[int, ...]]
    order: Sequence[int] | None
    bounds: Bounds

    @classmethod
    def of(cls, chosen: Chosen, settings: Settings) -> _Growth:
        n_classes = len(chosen.families)
        return cls([family.classes(n_classes) for family in chosen.families], chosen.order, settings.bounds)

    def with_parents(self, k: int, parents: Sequence[int]) -> list[int] | None:
        """Return an order of elimination with these parents of a class variable, None if none is found."""
        graph = [*self.parents[:k], parents, *self.parents[k + 1 :]]
        return self.bounds.order(graph, self.order or ())

    def fits(self, k: int, parents: Sequence[int]) -> bool:
        return not self.bounds or self.with_parents(k, parents) is not None

    def grow(self, k: int, wider: Sequence[int], parents: tuple[int, ...]) -> None:
        """Give a class variable some of the wider parents that fit; their order fits these, too."""
        if self.bounds:
            self.order = self.with_parents(k, wider)
        self.parents[k] = parents


class _Given(NamedTuple):
    """A class variable with experts on (x, parents): held-out rows, family, and what is needed to fit it.

    `strengths` are the arc strengths of the parents that the graph did not have.
    """

    rows: Floats
    family: Family
    learner: ConditionalLogitLearner
    scorer: HeldOutScorer
    experts: ConditionalExperts
    strengths: dict[int, float]


@dataclass(frozen=True)
class _Trial:
    """Fits and scores experts on (x, parents)."""

    families: Sequence[Family]
    learners: Sequence[LocalLearner]
    fits: ExpertFits
    experts: FittedExperts
    scorer: HeldOutScorer
    settings: Settings

    def best(self, k: int, wider: tuple[int, ...], parents: tuple[int, ...], base: Floats) -> _Given | None:
        """Return the experts given the parents of the graph and those of the wider set that are worth it."""
        best = self.run(k, wider, base)
        ranking, sizes = self.scorer.fitter.ranking[k], self.scorer.fitter.sizes
        strengths: dict[int, float] = {}
        for extra in sorted(set(wider) - set(parents), key=ranking.index, reverse=True):  # the least informative first
            if best is None:
                break
            rest = tuple(p for p in best.experts.parents if p != extra)
            fewer = self.run(k, rest, base) if rest else None
            lost = best.rows - (base if fewer is None else fewer.rows)
            if self.passes(k, lost, len(sizes), (sizes[k] - 1) * (sizes[extra] - 1)):
                strengths[extra] = self.gain(k, lost)
            else:
                best = fewer
        return None if best is None else best._replace(strengths=strengths)

    def run(self, k: int, parents: tuple[int, ...], base: Floats) -> _Given | None:
        """Return the best family with experts given these parents, if it passes the guard against `base`."""
        given = fit_given_parents(self.fits, self.experts, k, parents, base)
        if given is None:
            return None
        learner, scorer = self.learners[k], self.scorer
        wider = ConditionalLogitLearner(np.hstack([learner.X, given.rows]), learner.sample_weight)
        fitter = replace(scorer.fitter, learners=(*self.learners[:k], wider, *self.learners[k + 1 :]))
        budget = self.settings.memory_budget
        own = HeldOutScorer(fitter, scorer.parallel, scorer.evaluator, scorer.shrunk, budget, otherwise=base)
        family = self.families[k]
        extra = [p for p in parents if p not in family.parents]
        tried = list(dict.fromkeys([family.feed(*extra), family.feed(*parents)]))
        scores = own.score([(k, other) for other in tried])
        best = max(tried, key=lambda other: scores[k, other])
        rows = own.rows(k, best)
        return _Given(rows, best, wider, own, given.experts, {}) if self.passes(k, rows - base) else None

    def gain(self, k: int, difference: Floats) -> float:
        return float(self.learners[k].sample_weight @ difference)

    def passes(self, k: int, difference: Floats, n_each: int = 1, n_parameters: float = math.inf) -> bool:
        """Return whether held-out rows gain more than the guard, with `n_each` tests for each class variable."""
        fitter = self.scorer.fitter
        error = standard_error(difference * fitter.cell_weight(k), fitter.sample_weight, fitter.origin)
        gain = Gain(self.gain(k, difference), error)
        return exceeds(gain, least_gain(self.settings.guard, n_each * len(self.families), n_parameters))


def _parents(
    family: Family, child: int, before: Sequence[int], fitter: Fitter, settings: Settings, growth: _Growth
) -> tuple[int, ...]:
    """Return the class variables that are given: the parents, and the most informative of those before it."""
    allowed = settings.rules[child].allowed
    ranked = [v for v in fitter.ranking[child] if v in before and v in allowed]
    fits = partial(growth.fits, child)
    return widen(family.classes(fitter.n_classes), ranked, fitter.sizes, settings.max_parents, fits)
