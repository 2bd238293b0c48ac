"""Learning a network: the stages of the pipeline, in order.

    rows -> experts -> ranked parents -> C and scores (P1) -> guard -> best DAG (P2) -> fitted network

Nodes are numbered, class variables first; names are used in messages only.

A time budget is divided by the shares below. A stage that ends early leaves its time to the next ones, and all but the
final fit stop when their time is up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.arrays import Codes, Floats
from pmdc._support.parallel import workers
from pmdc.blocks import Blocks
from pmdc.bounds import Bounds
from pmdc.candidates.families import Family, FamilyTable, Task
from pmdc.candidates.ranking import rank_parents
from pmdc.candidates.rules import ParentRules
from pmdc.directions import undetermined_arcs
from pmdc.experts.features import ExpertScore
from pmdc.experts.out_of_fold import ExpertFits, FittedExperts, fit_experts
from pmdc.find_network import class_parents, compile_tree, find_network
from pmdc.given_parents import Chosen, give_parents
from pmdc.inference import JunctionTree
from pmdc.inference.junction_tree import NetworkTooWideError
from pmdc.learners.conditional_logit import ConditionalLogitLearner
from pmdc.learners.options import Options
from pmdc.learners.protocols import LocalLearner
from pmdc.learners.registry import make_learner
from pmdc.network.fit import fit_network
from pmdc.network.network import Network
from pmdc.network.summary import arc_strengths
from pmdc.scores import criteria
from pmdc.scores.evaluators import CrossValidation, make_evaluator
from pmdc.scores.families import FamilyScoring
from pmdc.scores.fitter import Fitter
from pmdc.scores.held_out import HeldOutScorer
from pmdc.scores.regularisation import choose_C, chooses_C
from pmdc.scores.scorer import Parallel, Scorer
from pmdc.scores.training import TrainingScorer
from pmdc.search import Structure
from pmdc.settings import Settings
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

EXPERTS_SHARE, C_SHARE, SCORES_SHARE, PARENTS_SHARE = 0.7, 0.4, 0.8, 0.9
"""How much of the time left the experts, the choice of C, the scores and the experts given the parents may use."""


class LearnedNetwork(NamedTuple):
    """The result of learning.

    Attributes
    ----------
    network : Network
    junction_tree : JunctionTree
    structure : Structure
        The DAG over the class variables, by name, with its bound and status.
    families : list of Family
        The chosen family of each class variable.
    arc_strengths : list of dict
        For each class variable, parent -> score lost without it.
    either_way : set of (int, int)
        The arcs (parent, child) whose direction is not determined.
    tables, accepted : lists of dict
        For each class variable, family -> score: all that were scored, and those that the guard accepted.
    limits : list of str
        Over which families the structure is optimal, if not over all within the rules.
    C : tuple of pairs of float or None, or None
        With ``C="auto"``, the chosen C for each class variable: of models without and with class variables as parents.
    experts : list of lists of ExpertScore
        The experts that were tried for each class variable.
    held_out : array of shape (n, n_nodes) or None
        The held-out log-probability of each row's states, if a held-out criterion has scored the rows as they are.
    ranking : for each class variable its possible parents, the most informative first
    kappas : dict
        (class variable, family) -> shrinkage, of all families that were scored by held-out rows.
    counted : list of dict
        For each class variable, itself and each parent -> the weight of the rows that count in its score and in the arc
        strength, where it is not that of all rows.
    bounds : Bounds
        Within which the structure was searched, and the network is.
    narrowed : str
        Why these are not those of the settings; empty if they are.
    """

    network: Network
    junction_tree: JunctionTree
    structure: Structure
    families: list[Family]
    arc_strengths: list[dict[int, float]]
    either_way: set[tuple[int, int]]
    tables: list[FamilyTable]
    accepted: list[FamilyTable]
    limits: list[str]
    C: tuple[tuple[float, float] | None, ...] | None
    experts: list[list[ExpertScore]]
    held_out: Floats | None
    ranking: Sequence[Sequence[int]]
    kappas: dict[Task, float]
    counted: list[dict[int, float]]
    bounds: Bounds
    narrowed: str


class Stage2(NamedTuple):
    """The experts of a table: how they are fitted, and what was fitted."""

    fits: ExpertFits
    experts: FittedExperts

    def copies(self, rows: TrainingRows, index: Codes) -> Stage2:
        """Return the same for copies of the rows, completed in several ways; copy i is of row ``index[i]``."""
        features = [own[index] for own in self.experts.rows]
        return Stage2(self.fits.copies(rows, index), self.experts._replace(rows=features))


def run_stage2(rows: TrainingRows, settings: Settings) -> Stage2 | None:
    """Fit the experts; None if no class variable has any."""
    if not any(settings.recipes):
        return None
    with workers(settings.n_jobs, settings.log if settings.verbose else None) as parallel:
        fits = ExpertFits.of(rows, settings.recipes, settings.n_folds, _seed(settings), parallel, settings.fold)
        experts = fit_experts(replace(fits, deadline=settings.deadline.share(EXPERTS_SHARE)), settings.refit)
    _report(experts, settings)
    return Stage2(fits, experts)


def learn_network(rows: TrainingRows, settings: Settings, blocks: Blocks) -> LearnedNetwork:
    """Learn a network from prepared rows, whose class variables are the blocks."""
    if settings.deadline.exists:
        settings.log(settings.deadline.note())
    return learn_given_experts(rows, settings, blocks, run_stage2(rows, settings))


def learn_given_experts(
    rows: TrainingRows,
    settings: Settings,
    blocks: Blocks,
    stage2: Stage2 | None,
    with_parents: bool = True,
    before: LearnedNetwork | None = None,
) -> LearnedNetwork:
    """Learn a network whose experts are fitted.

    Parameters
    ----------
    rows : TrainingRows
        Whose class variables are the blocks.
    settings : Settings
    blocks : Blocks
    stage2 : Stage2 or None
        The experts, with features of the same rows.
    with_parents : bool
        Whether experts may be fitted again with the parents.
    before : LearnedNetwork or None
        The network whose C, shrinkage and ranking of parents are used instead of chosen.
    """
    write, deadline = settings.log if settings.verbose else None, settings.deadline
    fits, experts = (None, None) if stage2 is None else stage2
    learners = _learners(rows, settings, experts)
    fitter = Fitter.of(rows, learners, _rank(rows, settings.rules) if before is None else before.ranking)
    fitter = replace(fitter, C=None if before is None else before.C)
    with workers(settings.n_jobs, write, all(learner.releases_gil for learner in learners)) as parallel:
        scorer = _make_scorer(rows, settings, fitter, parallel, {} if before is None else before.kappas)
        scored = FamilyScoring(settings, scorer).run()
        _check_scores(scored.tables, settings)
        found = find_network(scored.accepted, blocks, settings)
        structure, families, tree = found.structure, found.families, found.tree
        settings = replace(settings, bounds=found.bounds)
        either_way = undetermined_arcs(scored.tables, families, scorer.gain_of, settings)
        fitter, kappas = replace(fitter, C=scorer.fitter.C), _kappas(scorer, scored.tables)
        chosen = searched = Chosen(families, fitter, kappas, _rows(scorer, families, rows), order=found.order)
        if with_parents and experts is not None and fits is not None and isinstance(scorer, HeldOutScorer):
            fits = replace(fits, parallel=parallel, deadline=deadline.share(PARENTS_SHARE))
            chosen = give_parents(chosen, fits, experts, scorer, settings)
            try:
                tree = compile_tree(class_parents(chosen.families), blocks, settings, chosen.order)
            except NetworkTooWideError as error:
                settings.log(f"no experts given the parents: {error}")
                chosen = searched
        network = fit_network(chosen.fitter, parallel, chosen.families, chosen.kappa, settings.shrunk)
    if experts is not None:
        network = replace(network, experts=replace(experts.features, given_parents=chosen.experts))
    either_way |= _reversible(_arcs(chosen.families) - _arcs(families), chosen.families, settings)
    strengths = [arc_strengths(table, family) for table, family in zip(scored.accepted, families, strict=True)]
    for own, added in zip(strengths, chosen.strengths, strict=False):
        own |= added
    tried: list[list[ExpertScore]] = [[] for _ in families] if experts is None else experts.scores
    return LearnedNetwork(
        network,
        tree,
        structure,
        chosen.families,
        strengths,
        either_way,
        scored.tables,
        scored.accepted,
        scored.limits,
        scorer.fitter.C,
        tried,
        chosen.held_out,
        fitter.ranking,
        scorer.kappas if isinstance(scorer, HeldOutScorer) else {},
        _counted(fitter, chosen.families, isinstance(scorer, HeldOutScorer)),
        found.bounds,
        found.narrowed,
    )


def fit_again(learned: LearnedNetwork, rows: TrainingRows, settings: Settings, stage2: Stage2 | None) -> LearnedNetwork:
    """Fit the local models of a learned network, without experts given the parents, again on other rows."""
    experts = None if stage2 is None else stage2.experts
    learners = _learners(rows, settings, experts)
    fitter = replace(Fitter.of(rows, learners, learned.ranking), C=learned.C)

    def kappa(child: int, family: Family) -> float | None:
        level = learned.network.nodes[child].levels.get(family)
        return None if level is None else level.kappa

    with workers(settings.n_jobs, None, all(learner.releases_gil for learner in learners)) as parallel:
        network = fit_network(fitter, parallel, learned.families, kappa, settings.shrunk)
    return learned._replace(network=replace(network, experts=learned.network.experts))


def _arcs(families: Sequence[Family]) -> set[tuple[int, int]]:
    return {(p, child) for child, parents in enumerate(class_parents(families)) for p in parents}


def _reversible(added: set[tuple[int, int]], families: Sequence[Family], settings: Settings) -> set[tuple[int, int]]:
    """Return the arcs added after the search, in the order that it left, that may as well point the other way."""
    found = set()
    for parent, child in added:
        parents = class_parents(families)
        parents[child] = tuple(p for p in parents[child] if p != parent)
        parents[parent] = (*parents[parent], child)
        fits = not settings.bounds or settings.bounds.order(parents) is not None
        if child in settings.rules[parent].allowed and fits:
            found.add((parent, child))
    return found


def _counted(fitter: Fitter, families: Sequence[Family], held_out: bool) -> list[dict[int, float]]:
    """Return the weights of the rows that count in scores and arc strengths, where they are not those of all rows.

    Held-out rows without a parent are scored without it, so its arc gains nothing there. On training rows, every family
    is scaled to the rows in which the class variable is known.
    """
    total, n_classes, found = float(fitter.sample_weight.sum()), len(families), []
    for child, family in enumerate(families):
        own = dict.fromkeys((child, *family.parents), fitter.weight(child))
        if held_out:
            own |= {p: fitter.weight(child, p) for p in family.classes(n_classes)}
        found.append({node: weight for node, weight in own.items() if weight != total})
    return found


def _rows(scorer: Scorer, families: Sequence[Family], rows: TrainingRows) -> Floats | None:
    """Return the held-out log-probability of each row's states, if the scorer has it."""
    if not isinstance(scorer, HeldOutScorer) or len(scorer.fitter.codes) != len(rows):
        return None
    return np.column_stack([scorer.rows(k, family) for k, family in enumerate(families)])


def _report(experts: FittedExperts, settings: Settings) -> None:
    for name, scores in zip(settings.names, experts.scores, strict=False):
        used = ", ".join(f"{score.name} ({score.log_loss:.4g})" for score in scores if score.used)
        settings.log(f"experts of {name!r} (held-out log-loss): {used or 'none'}")


def _learners(rows: TrainingRows, settings: Settings, experts: FittedExperts | None) -> list[LocalLearner]:
    """Make the learner of each class variable, on its expert features or on the continuous features."""
    options = Options(rows.weighted, settings.random_state, settings.backoff, bool(rows.feature_sizes))
    numbers = rows.features.numbers()
    on_features: dict[tuple[int, int], LocalLearner] = {}  # to share the prepared features
    learners: list[LocalLearner] = []
    for k, (estimator, recipes) in enumerate(zip(settings.estimators, settings.recipes, strict=True)):
        weights = rows.weights_of(k)
        if recipes and experts is not None:
            Z = experts.rows[k]
            if estimator is None:
                learners.append(ConditionalLogitLearner(Z, weights))
            else:
                learners.append(make_learner(estimator, Features(Z, numbers.discrete), weights, (), options))
        else:
            key = id(estimator), -1 if rows.cell_weights is None else k
            if key not in on_features:
                on_features[key] = make_learner(estimator, numbers, weights, (), options)
            learners.append(on_features[key])
    return learners


def _seed(settings: Settings) -> int:
    """Return the seed of the experts; without a `random_state` it is 0, so that a fit can be repeated."""
    if settings.random_state is None:
        return 0
    return int(check_random_state(settings.random_state).randint(np.iinfo(np.int32).max))


def _rank(rows: TrainingRows, rules: Sequence[ParentRules]) -> list[list[int]]:
    """Return the possible parents of each class variable, required ones first, then the most informative."""
    return [
        sorted(ranked, key=lambda v, rule=rule: v not in rule.required)  # type: ignore[misc]
        for rule, ranked in zip(rules, rank_parents(rows), strict=True)
    ]


def _make_scorer(
    rows: TrainingRows, settings: Settings, fitter: Fitter, parallel: Parallel, kappas: Mapping[Task, float]
) -> Scorer:
    """Make the scorer of families; choose C first if it is to be chosen."""
    auto_C = fitter.C is None and any(map(chooses_C, fitter.learners))
    deadline = settings.deadline
    if not settings.held_out and not auto_C:
        return TrainingScorer(fitter, parallel, _penalty(fitter, settings), deadline.share(SCORES_SHARE))
    criterion = str(settings.criterion) if settings.held_out else "cv"
    # Experts have not split rows either.
    evaluator = make_evaluator(criterion, fitter.learners, rows, settings.cv, whole_rows=any(settings.recipes))
    held_out = fitter
    if isinstance(evaluator, CrossValidation):
        folds = evaluator.folds
        held_out = fitter.on(folds.rows, folds.share, folds.origin)
    if auto_C:
        limit = deadline.share(C_SHARE)
        C = choose_C(held_out, settings.rules, evaluator, parallel, settings.shrunk, limit)
        fitter, held_out = replace(fitter, C=C), replace(held_out, C=C)
        pairs = ", ".join("-" if c is None else f"{c[0]:g}" if c[0] == c[1] else f"{c[0]:g} ({c[1]:g})" for c in C)
        settings.log(f"C of each class variable (with class variables as parents): {pairs}")
    limit = deadline.share(SCORES_SHARE)
    if not settings.held_out:
        return TrainingScorer(fitter, parallel, _penalty(fitter, settings), limit)
    return HeldOutScorer(held_out, parallel, evaluator, settings.shrunk, settings.memory_budget, limit, kappas)


def _penalty(fitter: Fitter, settings: Settings) -> Callable[[int, Family], float]:
    sizes, names = fitter.sizes, settings.names
    weights = [fitter.weight(child) for child in range(fitter.n_classes)]

    def penalty(child: int, family: Family) -> float:
        inputs = [sizes[p] for p in family.inputs]
        n_parameters = fitter.learners[child].n_parameters(sizes[child], inputs)
        size = criteria.Size(sizes[child], [sizes[p] for p in family.partition], inputs, weights[child], n_parameters)
        owner = f"{names[child]!r} with parents {[names[p] for p in family.parents]}"
        return criteria.ask_penalty(settings.criterion, size, owner, fitter.learners[child].estimator)

    return penalty


def _check_scores(tables: Sequence[FamilyTable], settings: Settings) -> None:
    """Raise an error if a penalty excludes every parent set of a class variable."""
    for name, table in zip(settings.names, tables, strict=False):
        if callable(settings.criterion) and not any(score > -math.inf for score in table.values()):
            raise ValueError(
                f"criterion={settings.criterion!r} returned an infinite penalty for every parent set of {name!r}: "
                "return a finite number for at least one, such as the empty set."
            )


def _kappas(scorer: Scorer, tables: Sequence[FamilyTable]) -> Callable[[int, Family], float | None]:
    """Return a function that gives the kappa of a family, if it is in the tables."""
    return lambda child, family: scorer.kappa(child, family) if family in tables[child] else None
