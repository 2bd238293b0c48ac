"""From the parameters of `GBNC` and a table to the settings of learning, and to the blocks that are learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pmdc._support.checks import shorten
from pmdc._support.warn import warn_user
from pmdc.blocks import Blocks, proposed_blocks, read_blocks
from pmdc.candidates.rules import ParentRules, parent_rules
from pmdc.experts.plan import ExpertPlan, plan_experts
from pmdc.experts.recipes import Recipe, check_classifier, user_recipes
from pmdc.learn import LearnedNetwork, learn_network
from pmdc.learners.validation import standard_error
from pmdc.scores.folds import read_folds
from pmdc.scores.guard import exceeds
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


def learn_blocks(model: GBNC, rows: TrainingRows) -> Learned:
    """Learn the network of a classifier over the blocks that it asks for, or over those that gain most."""
    if model.blocks is None:
        return _learn(model, rows, [])
    if model.blocks != "auto":
        return _learn(model, rows, read_blocks(model.blocks, model.class_table_.names))
    best = _learn(model, rows, [])
    home = {k: k for k in range(rows.n_classes)}  # the block that a class variable is in
    for proposed in proposed_blocks(rows.class_sizes, _arcs(best)):
        if len({home[k] for k in proposed}) < len(proposed):
            continue  # a member has been merged already
        taken = [block for block in best[0].members if len(block) > 1]
        trial = _learn(model, rows, [*taken, proposed], cheap=proposed)
        gain = _gain(best[2], trial[2], rows)
        best[1].log(f"block {proposed}: gain {gain.value:.4g}, standard error {gain.standard_error:.3g}")
        if exceeds(gain, model.guard):
            best = trial
            home |= dict.fromkeys(proposed, proposed[0])
    return best


def _learn(model: GBNC, rows: TrainingRows, members: Sequence[Sequence[int]], cheap: Sequence[int] = ()) -> Learned:
    blocks = Blocks.of(members, rows)
    settings = configure(model, rows, blocks, cheap)
    return blocks, settings, learn_network(blocks.merge(rows), settings, blocks)


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


def _gain(old: LearnedNetwork, new: LearnedNetwork, rows: TrainingRows) -> Gain:
    """Return by how much the held-out log-likelihood of one network exceeds that of another."""
    if old.held_out is None or new.held_out is None:
        raise ValueError("blocks='auto' needs a held-out criterion: choose criterion='auto', or give the blocks.")
    difference = new.held_out - old.held_out
    return Gain(float(rows.weights @ difference), standard_error(difference, rows.weights, rows.origin))


def configure(model: GBNC, rows: TrainingRows, blocks: Blocks, cheap: Sequence[int] = ()) -> Settings:
    """Return the settings of learning.

    Parameters
    ----------
    model : GBNC
    rows : TrainingRows
        Of the class variables, not of blocks.
    blocks : Blocks
    cheap : sequence of int
        A block for which only forests are experts.
    """
    plan = _plan(model, rows, blocks.n_states)
    experts = _by_block(model, blocks, "experts")
    recipes = [_recipes(one, plan, rows.weighted) for one in experts]
    recipes = [
        [r for r in own if r.cheap] if tuple(cheap) == block else own
        for block, own in zip(blocks.members, recipes, strict=True)
    ]
    cv = model.cv if isinstance(model.cv, Integral) or hasattr(model.cv, "split") else list(model.cv)
    fold = None
    if any(recipes) and not isinstance(cv, Integral):
        fold = read_folds(cv, rows).fold
        if fold is None:
            warn_user(
                "cv has folds that do not train on all other rows, so no experts are fitted: local models are on the "
                "features themselves. Give other folds, or experts=None."
            )
            experts, recipes = [None] * len(experts), [[] for _ in recipes]
    own = ("rules", "names", "estimators", "recipes", "n_folds", "refit", "fold", "cv")
    settings = Settings(
        rules=_rules(model, blocks, experts),
        names=[*blocks.names(model.class_table_.names), *model.feature_table_.discrete_names],
        estimators=_by_block(model, blocks, "estimator"),
        recipes=recipes,
        n_folds=plan.n_folds if fold is None else int(fold.max()) + 1,
        refit=plan.refit,
        fold=fold,
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


def plan_for(model: GBNC, rows: TrainingRows, recipes: Sequence[Sequence[Recipe]]) -> ExpertPlan | None:
    """Return the plan of the experts, with all their recipes; None if no class variable has experts."""
    every = tuple(recipe for own in recipes for recipe in own)
    distinct = tuple(recipe for place, recipe in enumerate(every) if recipe not in every[:place])
    return _plan(model, rows, rows.class_sizes)._replace(recipes=distinct) if distinct else None


def _rules(model: GBNC, blocks: Blocks, experts: Sequence[Any]) -> list[ParentRules]:
    table, class_names = model.feature_table_, model.class_table_.names
    rules = parent_rules(
        blocks.names(class_names),
        table.discrete_names,
        [table.names[i] for i in table.continuous],
        model.max_parents,
        model.max_discrete_parents,
        blocks.block_edges(model.required_edges, class_names),
        blocks.block_edges(model.forbidden_edges, class_names),
        inputs=model.conditioning != "partition",
    )
    n_blocks = len(rules)
    return [  # experts have seen the discrete features, which are parents then only if they are required
        rule if own is None else rule.keep(tuple(v for v in rule.optional if v < n_blocks))
        for rule, own in zip(rules, experts, strict=True)
    ]


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
        values = [given.get(name, "auto" if parameter == "experts" else None) for name in names]
    if parameter == "experts":  # an estimator of its own is on the features
        values = [
            None if isinstance(value, str) and estimator is not None else value
            for value, estimator in zip(values, _by_block(model, blocks, "estimator"), strict=True)
        ]
    return values


def _recipes(experts: Any, plan: ExpertPlan, weighted: bool) -> list[Recipe]:
    if experts is None or plan.n_folds < 2:  # no model can be without the only row
        return []
    if isinstance(experts, str):
        return list(plan.recipes)
    for classifier in experts:
        check_classifier(classifier, weighted)
    return user_recipes(experts)
