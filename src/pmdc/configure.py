"""From the parameters of `GBNC` and a table to the settings of learning, and to the blocks that are learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pmdc._support.checks import shorten, suggest
from pmdc._support.deadline import NEVER, Deadline, Pace
from pmdc._support.warn import warn_user
from pmdc.blocks import Blocks, proposed_blocks, read_blocks
from pmdc.bounds import Bounds, make_bounds
from pmdc.candidates.rules import ParentRules, parent_rules
from pmdc.experts.plan import ExpertPlan, plan_experts
from pmdc.experts.recipes import Recipe, check_classifier, user_recipes
from pmdc.learn import LearnedNetwork, learn_network
from pmdc.learners.validation import standard_error
from pmdc.scores.folds import read_folds
from pmdc.scores.guard import exceeds, least_gain
from pmdc.scores.scorer import Gain
from pmdc.settings import Settings
from pmdc.table.rows import TrainingRows

if TYPE_CHECKING:
    from pmdc.classifier import GBNC

MANY_ROWS = 3_000
"""From so many rows on, ``expert_models="auto"`` fits each expert once more on all rows.

The folds are three then: a model without a fold sees two thirds of the rows, and three forests take three times as long
to predict as one.
"""

Learned = tuple[Blocks, Settings, LearnedNetwork]


def learn_blocks(model: GBNC, rows: TrainingRows, deadline: Deadline = NEVER) -> Learned:
    """Learn the network of a classifier over the blocks that it asks for, or over those that gain most."""
    cv = read_cv(model.cv)
    if model.blocks is None:
        return _learn(model, rows, [], cv, deadline)
    if rows.cell_weights is not None:
        raise ValueError(
            f"blocks={model.blocks!r} cannot be combined with cell_weight, because the states of a block are those of "
            "several cells: set blocks=None, or give sample_weight, the weights of rows."
        )
    if not isinstance(model.blocks, str):
        members = read_blocks(model.blocks, model.class_table_.names)
        _refuse_forbidden(model, members)
        return _learn(model, rows, members, cv, deadline)
    return _try_blocks(model, rows, cv, deadline)


def _try_blocks(model: GBNC, rows: TrainingRows, cv: Any, deadline: Deadline) -> Learned:
    """Learn the network without blocks, and with those that gain more than the guard, as far as the time allows."""
    pace = Pace(deadline)
    pace.start()
    alone = best = _learn(model, rows, [], cv, deadline)
    pace.stop()
    merged: set[int] = set()
    accepted: list[tuple[int, ...]] = []
    for proposed in proposed_blocks(rows.class_sizes, _arcs(alone)):
        if merged & set(proposed) or _forbidden(model, proposed) or _cyclic(model, [*accepted, proposed]):
            continue
        if _exceeds(model, rows, [*accepted, proposed]):
            continue
        if not pace.may_start():
            deadline.cut("blocks of class variables")
            break
        trial = _learn(model, rows, [*accepted, proposed], cv, deadline, forests_only=[*accepted, proposed])
        pace.stop()
        gain = _gain(best, trial, rows)
        best[1].log(f"block {proposed}: gain {gain.value:.4g}, standard error {gain.standard_error:.3g}")
        if exceeds(gain, least_gain(model.guard)):
            best = trial
            accepted.append(proposed)
            merged |= set(proposed)
    if accepted and not pace.may_start():
        deadline.cut("further experts of the blocks, which have forests only")
        return best
    return _learn(model, rows, accepted, cv, deadline) if accepted else best


def _learn(
    model: GBNC,
    rows: TrainingRows,
    members: Sequence[tuple[int, ...]],
    cv: Any,
    deadline: Deadline,
    forests_only: Sequence[tuple[int, ...]] = (),
) -> Learned:
    blocks = Blocks.of(members, rows)
    blocks.check_names(model.class_table_.names, model.feature_table_.discrete_names)
    settings = replace(configure(model, rows, blocks, cv, forests_only), deadline=deadline)
    return blocks, settings, learn_network(blocks.merge(rows), settings, blocks)


def read_cv(cv: Any) -> Any:
    """Return `cv` so that it can be read several times."""
    return cv if isinstance(cv, Integral) or hasattr(cv, "split") else list(cv)


def _forbidden(model: GBNC, block: Sequence[int]) -> bool:
    """Return whether an edge between two members is forbidden, in either direction."""
    names = {model.class_table_.names[k] for k in block}
    return any(set(edge) <= names for edge in _edges(model.forbidden_edges))


def _refuse_forbidden(model: GBNC, members: Sequence[Sequence[int]]) -> None:
    for block in members:
        if _forbidden(model, block):
            names = [model.class_table_.names[k] for k in block]
            raise ValueError(f"blocks has {names}, but forbidden_edges has an edge between two of them: remove one.")


def _edges(edges: Any) -> Sequence[tuple[str, str]]:
    """Return the edges; what is no list of edges is refused where the rules are made."""
    return list(edges) if isinstance(edges, (list, tuple, set, frozenset)) else []


def _cyclic(model: GBNC, members: Sequence[Sequence[int]]) -> bool:
    """Return whether required edges between class variables would form a cycle between blocks."""
    names = model.class_table_.names
    home = {names[k]: number for number, block in enumerate(members) for k in block}
    graph: dict[Any, set[Any]] = {}
    for parent, child in _edges(model.required_edges):
        one, other = home.get(parent, parent), home.get(child, child)
        if one != other:
            graph.setdefault(other, set()).add(one)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def _exceeds(model: GBNC, rows: TrainingRows, members: Sequence[tuple[int, ...]]) -> bool:
    """Return whether blocks exceed the bounds or join class variables of different tiers."""
    blocks = Blocks.of(members, rows)
    try:
        _bounded(model, blocks, _rules(model, blocks))
    except ValueError:
        return True
    return False


def _arcs(learned: Learned) -> list[tuple[float, int, int]]:
    """Return the arcs between class variables with their strengths."""
    network = learned[2]
    n_classes = len(network.families)
    return [
        (strength, parent, child)
        for child, strengths in enumerate(network.arc_strengths)
        for parent, strength in strengths.items()
        if parent < n_classes
    ]


def _gain(old: Learned, new: Learned, rows: TrainingRows) -> Gain:
    """Return by how much the held-out log-likelihood of one network exceeds that of another."""
    found = []
    for blocks, _, network in (old, new):
        if network.held_out is None:
            raise ValueError(
                "blocks='auto' cannot compare networks of weighted rows by folds: give the blocks, or omit "
                "sample_weight."
            )
        found.append(blocks.new_row_log_prob(network.held_out, rows))
    difference = found[1] - found[0]
    return Gain(float(rows.weights @ difference), standard_error(difference, rows.weights, rows.origin))


def configure(
    model: GBNC, rows: TrainingRows, blocks: Blocks, cv: Any, forests_only: Sequence[tuple[int, ...]] = ()
) -> Settings:
    """Return the settings of learning.

    Parameters
    ----------
    model : GBNC
    rows : TrainingRows
        Of the class variables, not of blocks.
    blocks : Blocks
    cv : as in `GBNC`, but no generator
    forests_only : sequence of tuples of int
        Blocks whose experts are forests only, to try them quickly.
    """
    plan = _plan(model, rows, blocks.n_states)
    experts = _by_block(model, blocks, "experts")
    recipes = [
        _recipes(one, plan, len(rows) / n_states, rows.weighted)
        for one, n_states in zip(experts, blocks.n_states, strict=True)
    ]
    recipes = [
        [recipe for recipe in own if not recipe.needs_pilot] if block in forests_only else own
        for block, own in zip(blocks.members, recipes, strict=True)
    ]
    fold = None
    if any(recipes) and not isinstance(cv, Integral):
        folds = read_folds(cv, rows)
        fold = folds.fold if all(len(train) for train, _ in folds.pairs) else None
        if fold is None:
            warn_user(
                "cv has folds that do not train on all other rows, so no experts are fitted: local models are on the "
                "features themselves. Give other folds, or experts=None."
            )
            experts, recipes = [None] * len(experts), [[] for _ in recipes]
    own = ("rules", "bounds", "names", "estimators", "recipes", "n_folds", "refit", "fold", "deadline", "cv")
    rules = _rules(model, blocks)
    bounds = _bounded(model, blocks, rules)
    settings = Settings(
        rules=bounds.restrict(_without_features(rules, experts)),
        bounds=bounds,
        names=[*blocks.names(model.class_table_.names), *model.feature_table_.discrete_names],
        estimators=_by_block(model, blocks, "estimator"),
        recipes=recipes,
        n_folds=plan.n_folds if fold is None else int(fold.max()) + 1,
        refit=plan.refit,
        fold=fold,
        deadline=NEVER,
        cv=cv,
        **{name: getattr(model, name) for name in Settings.__dataclass_fields__ if name not in own},
    )
    if any(isinstance(one, str) for one in experts):
        settings.log(f"experts: {plan}")
    return settings


def _plan(model: GBNC, rows: TrainingRows, n_states: Sequence[int]) -> ExpertPlan:
    n_features = rows.features.continuous.shape[1] + sum(rows.feature_sizes)
    refit = {"auto": len(rows) >= MANY_ROWS, "folds": False, "refit": True}[model.expert_models]
    return plan_experts(len(rows), n_features, n_states, refit)


def plan_for(model: GBNC, rows: TrainingRows, settings: Settings) -> ExpertPlan | None:
    """Return the plan of the experts, with all their recipes; None if no class variable has experts."""
    distinct: dict[str, Recipe] = {recipe.name: recipe for own in settings.recipes for recipe in own}
    if not distinct:
        return None
    plan = _plan(model, rows, rows.class_sizes)
    return plan._replace(n_folds=settings.n_folds, recipes=tuple(distinct.values()))


def _rules(model: GBNC, blocks: Blocks) -> list[ParentRules]:
    table, class_names = model.feature_table_, model.class_table_.names
    _check_tiers(model.tiers, class_names)
    return parent_rules(
        blocks.names(class_names),
        table.discrete_names,
        [table.names[i] for i in table.continuous],
        model.max_parents,
        model.max_discrete_parents,
        blocks.block_edges(model.required_edges, class_names),
        blocks.block_edges(model.forbidden_edges, class_names),
        inputs=model.conditioning != "partition",
        tiers=blocks.block_tiers(model.tiers, class_names),
    )


def _check_tiers(tiers: Any, class_names: Sequence[str]) -> None:
    """Refuse what is no list of lists of class variables."""
    remedy = "give lists of class variables, those that come first in the first list, such as [['a', 'b'], ['c']]"
    if not isinstance(tiers, (list, tuple, type(None))):
        raise ValueError(f"tiers={tiers!r} is no list of lists: {remedy}.")
    for number, tier in enumerate(tiers or ()):
        if not isinstance(tier, (list, tuple, set, frozenset)):
            raise ValueError(f"tiers[{number}]={tier!r} is no list: {remedy}.")
        for name in tier:
            if name not in class_names:
                raise ValueError(
                    f"tiers[{number}] has {name!r}, which is not a class variable{suggest(name, class_names)}"
                )


def _without_features(rules: Sequence[ParentRules], experts: Sequence[Any]) -> list[ParentRules]:
    """Return the rules without optional discrete features for class variables whose experts have seen them."""
    return [
        rule if own is None else rule.keep(tuple(v for v in rule.optional if v < len(rules)))
        for rule, own in zip(rules, experts, strict=True)
    ]


def _bounded(model: GBNC, blocks: Blocks, rules: Sequence[ParentRules]) -> Bounds:
    names = blocks.names(model.class_table_.names)
    return make_bounds(model.max_treewidth, model.max_clique_cells, blocks, names, rules)


def _by_block(model: GBNC, blocks: Blocks, parameter: str) -> list[Any]:
    """Return `estimator` or `experts` of each block."""
    given, names = getattr(model, parameter), blocks.names(model.class_table_.names)
    values = [given] * len(names)
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in (*names, *model.class_table_.names)]
        if unknown:
            raise ValueError(
                f"{parameter} names {unknown[0]!r}, which is not a class variable; they are {shorten(list(names))}."
            )
        default = "auto" if parameter == "experts" else None
        values = [
            _of_block(given, parameter, name, model, block, default)
            for name, block in zip(names, blocks.members, strict=True)
        ]
    if parameter == "experts":  # an estimator of its own is on the features
        values = [
            None if isinstance(value, str) and estimator is not None else value
            for value, estimator in zip(values, _by_block(model, blocks, "estimator"), strict=True)
        ]
    return values


def _of_block(
    given: Mapping[str, Any], parameter: str, name: str, model: GBNC, block: Sequence[int], default: Any
) -> Any:
    """Return what a dict gives a block: by its own name, or what it gives all its members."""
    if name in given:
        return given[name]
    values = [given.get(model.class_table_.names[k], default) for k in block]
    if any(value is not values[0] for value in values):
        raise ValueError(
            f"{parameter} gives the members of the block {name!r} different values: name the block itself, "
            f"{parameter}={{{name!r}: ...}}."
        )
    return values[0]


def _recipes(experts: Any, plan: ExpertPlan, rows_per_state: float, weighted: bool) -> list[Recipe]:
    if experts is None or plan.n_folds < 2:  # no model can be without the only row
        return []
    if isinstance(experts, str):
        return plan.recipes_for(rows_per_state)
    for classifier in experts:
        check_classifier(classifier, weighted)
    return user_recipes(experts)
