"""Learning a network: the stages of the pipeline, in order.

    rows -> experts -> ranked parents -> C and scores (P1) -> guard -> best DAG (P2) -> fitted network

Nodes are numbered, class variables first; names are used in messages only.

A time budget is divided by the shares below. A stage that ends early leaves its time to the next ones, and all but the
final fit stop when their time is up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.arrays import Codes, Floats
from pmdc._support.parallel import workers
from pmdc._support.progress import tell_phase
from pmdc._support.warn import warn_user
from pmdc.blocks import Blocks
from pmdc.bounds import Bounds
from pmdc.candidates.families import Family, FamilyTable, ParentSet, Task, best_per_class_set
from pmdc.candidates.ranking import rank_parents
from pmdc.candidates.rules import ParentRules
from pmdc.directions import undetermined_arcs
from pmdc.experts.features import ExpertScore
from pmdc.experts.out_of_fold import ExpertFits, FittedExperts, fit_experts
from pmdc.given_parents import Chosen, give_parents
from pmdc.inference import JunctionTree, family_scopes
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
from pmdc.search import BOUNDED_METHODS, Structure, find_structure
from pmdc.settings import Settings
from pmdc.table.features import Features
from pmdc.table.rows import TrainingRows

EXPERTS_SHARE, C_SHARE, SCORES_SHARE, PARENTS_SHARE = 0.7, 0.4, 0.8, 0.9
"""How much of the time left the experts, the choice of C, the scores and the experts given the parents may use."""

BOUNDED_SHARE = 0.5
"""The same for a structure search within bounds, which may not end before its time is up."""

MIN_SEARCH_SECONDS = 0.5
"""The structure search gets as much even if no time is left: enough for up to 18 class variables."""

_REMEDIES = {
    "time limit": "Raise time_limit",
    "memory limit": "Raise memory_budget",
    "interrupted": "Let it finish",
}
"""Advice for a structure search that stopped early."""


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
        found = _find_network(scored.accepted, blocks, settings)
        structure, families, tree = found.structure, found.families, found.tree
        settings = replace(settings, bounds=found.bounds)
        either_way = undetermined_arcs(scored.tables, families, scorer.gain_of, settings)
        fitter, kappas = replace(fitter, C=scorer.fitter.C), _kappas(scorer, scored.tables)
        chosen = searched = Chosen(families, fitter, kappas, _rows(scorer, families, rows), order=found.order)
        if with_parents and experts is not None and fits is not None and isinstance(scorer, HeldOutScorer):
            fits = replace(fits, parallel=parallel, deadline=deadline.share(PARENTS_SHARE))
            chosen = give_parents(chosen, fits, experts, scorer, settings)
            try:
                tree = _compile(_class_parents(chosen.families), blocks, settings, chosen.order)
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


def _class_parents(families: Sequence[Family]) -> list[ParentSet]:
    return [family.classes(len(families)) for family in families]


def _arcs(families: Sequence[Family]) -> set[tuple[int, int]]:
    return {(p, child) for child, parents in enumerate(_class_parents(families)) for p in parents}


def _reversible(added: set[tuple[int, int]], families: Sequence[Family], settings: Settings) -> set[tuple[int, int]]:
    """Return the arcs added after the search, in the order that it left, that may as well point the other way."""
    found = set()
    for parent, child in added:
        parents = _class_parents(families)
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


class _Found(NamedTuple):
    """The result of phase P2: the DAG, the family of each class variable, and the junction tree.

    `order` is an order of elimination within `bounds`, None without bounds. `narrowed` says why these are not those of
    the settings.
    """

    structure: Structure
    families: list[Family]
    tree: JunctionTree
    order: list[int] | None
    bounds: Bounds
    narrowed: str = ""


def _find_network(accepted: Sequence[FamilyTable], blocks: Blocks, settings: Settings) -> _Found:
    """Run phase P2: return the best DAG over the class variables whose network is not too wide for exact inference."""
    try:
        return _search(accepted, blocks, settings)
    except NetworkTooWideError as error:
        if settings.bounds.merged and settings.bounds.max_treewidth is not None:
            raise
        return _search_narrower(accepted, blocks, settings, error)


def _search_narrower(
    accepted: Sequence[FamilyTable], blocks: Blocks, settings: Settings, wide: NetworkTooWideError
) -> _Found:
    """Search under a bound on the cells of a clique for which the network fits into the memory budget.

    The bound is first what would fit if the memory were proportional to the largest clique. It is halved until the
    junction tree fits; then the graph has the required edges only. If even this is too wide, raise a
    NetworkTooWideError.
    """
    required = [rule.required_classes for rule in settings.rules]
    _compile(required, blocks, settings)
    sizes = settings.bounds.cells
    least = JunctionTree(sizes, family_scopes(required), memory_budget=settings.memory_budget).largest_clique
    search = settings.search if settings.search in BOUNDED_METHODS else "auto"
    first = min(wide.largest_clique * settings.memory_budget // wide.bytes_per_row, wide.largest_clique - 1)
    alone = [
        {family: score for family, score in table.items() if family.classes(len(accepted)) == own}
        for table, own in zip(accepted, required, strict=True)
    ]
    attempts = [*((cells, accepted) for cells in _halved(first, least)), (least, alone)]
    for cells, tables in attempts:
        bounds = replace(settings.bounds, max_clique_cells=cells, by_memory=True)
        try:
            found = _search(tables, blocks, replace(settings, bounds=bounds, search=search))
        except NetworkTooWideError:
            continue
        return found._replace(narrowed=_explain_narrowing(wide, cells, found.tree, settings))
    raise wide


def _halved(cells: int, least: int) -> Iterator[int]:
    while cells > least:
        yield cells
        cells //= 2
    yield least


def _explain_narrowing(wide: NetworkTooWideError, cells: int, tree: JunctionTree, settings: Settings) -> str:
    return (
        f"The best graph is too wide for exact inference: its largest table has {wide.largest_clique:,} cells, and a "
        f"row needs {wide.bytes_per_row:,} bytes, more than memory_budget={settings.memory_budget:,}. So the graph was "
        f"searched again with max_clique_cells={cells}; it needs {tree.bytes_per_row:,} bytes for each row. For more "
        "arcs, raise memory_budget; for faster predictions, lower max_clique_cells."
    )


def _search(accepted: Sequence[FamilyTable], blocks: Blocks, settings: Settings) -> _Found:
    """Return the best DAG within the bounds; raise a NetworkTooWideError before its models are fitted."""
    structure, families = _best_structure(accepted, settings)
    order = None
    if structure.elimination_order is not None:
        place = {name: k for k, name in enumerate(settings.names[: len(accepted)])}
        order = [place[name] for name in structure.elimination_order]
    tree = _compile(_class_parents(families), blocks, settings, order)
    return _Found(structure, families, tree, order, settings.bounds)


def _compile(
    parents: Sequence[ParentSet], blocks: Blocks, settings: Settings, order: Sequence[int] | None = None
) -> JunctionTree:
    """Return the junction tree over the class variables, given the parents of each block.

    It uses an order of the blocks unless the tree without it is as cheap and within the bounds, too. So a bound that
    makes no difference to the graph makes none to the tree.
    """
    scopes = family_scopes(blocks.class_parents(parents))
    make = partial(JunctionTree, blocks.sizes, scopes, memory_budget=settings.memory_budget)
    if order is None:
        return make()
    tree = make(order=[k for block in order for k in blocks.members[block]])
    try:
        free = make()
    except NetworkTooWideError:
        return tree
    return free if free.cells <= tree.cells and settings.bounds.admit(free) else tree


def _best_structure(accepted: Sequence[FamilyTable], settings: Settings) -> tuple[Structure, list[Family]]:
    tell_phase("searching for the best graph")
    own_limit = math.inf if settings.time_limit is None else settings.time_limit
    deadline = settings.deadline.share(BOUNDED_SHARE) if settings.bounds else settings.deadline
    time_limit = min(own_limit, max(deadline.left(), MIN_SEARCH_SECONDS))
    n_classes = len(accepted)
    names = list(settings.names[:n_classes])
    best = [best_per_class_set(table, n_classes) for table in accepted]
    structure = find_structure(
        {
            names[child]: {frozenset(names[p] for p in classes): table[f] for classes, f in best[child].items()}
            for child, table in enumerate(accepted)
        },
        settings.search,
        **settings.bounds.arguments(names),
        random_state=_seed(replace(settings, random_state=deepcopy(settings.random_state))),
        time_limit=time_limit,
        gap=settings.gap,
        callback=settings.callback,
        memory_budget=settings.memory_budget,
        verbose=settings.verbose,
    )
    distance = f"its score {structure.score:.6g} may be up to {structure.bound - structure.score:.3g} below the optimum"
    if structure.status == "time limit" and time_limit < own_limit:
        settings.deadline.cut(f"the structure search ({distance})")
    elif structure.status in _REMEDIES:
        warn_user(
            f"The structure search stopped ({structure.status}) before it was proved optimal: {distance}. "
            f"{_REMEDIES[structure.status]}, or lower max_parents or max_candidates."
        )
    chosen = [tuple(sorted(names.index(p) for p in structure.parents[name])) for name in names]
    return structure, [own[classes] for own, classes in zip(best, chosen, strict=True)]
