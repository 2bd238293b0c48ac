"""Check that the parts of a model read from a file are consistent.

Compiled loops use numbers as array indices without bounds checks. A fitted model is always consistent; one from a file
may be malicious, so it is checked before anything is computed with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from pmdc.baselines import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.baselines.calibration import Calibrated
from pmdc.baselines.classifier_chain import Chain
from pmdc.blocks import Blocks
from pmdc.classifier import GBNC
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.experts.features import ExpertFeatures
from pmdc.inference import JunctionTree, family_scopes
from pmdc.learners.conditional_logit import continuous
from pmdc.learners.fitted import Fitted, are_places, is_affine, is_numbers
from pmdc.learners.groups import LogProbaClassifier
from pmdc.learners.inputs import CodesBehind, Indicators, Rotated
from pmdc.learners.partition import Configurations
from pmdc.learners.registry import ENGINES
from pmdc.network.network import Level, Network, Node
from pmdc.table.dates import PARTS
from pmdc.table.features import Features, FeatureTable
from pmdc.table.frequencies import Frequencies


def check(*objects: Any) -> None:
    """Raise an error for inconsistent models, learners and sparse matrices anywhere in these objects."""
    for value in _within(objects):
        if isinstance(value, MultiDimensionalClassifier):
            if vars(value).keys() - value.get_params(deep=False).keys():  # it is fitted
                _check_model(value)
        elif isinstance(value, LogProbaClassifier):
            if hasattr(value, "_models"):
                _check_learner(value)
        elif issparse(value) and hasattr(value, "check_format"):
            value.check_format(full_check=True)  # scipy checks only the shapes when it reads one


def _within(objects: Iterable[Any]) -> Iterator[Any]:
    """Yield these objects and everything in them; refuse objects of pmdc with an attribute that hides a method."""
    stack, seen = list(objects), set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            stack.extend(value)
        elif isinstance(value, np.ndarray):
            stack.extend(value.ravel().tolist() if value.dtype.kind == "O" else ())
        own = getattr(value, "__dict__", {})
        stack.extend(own.values())
        if type(value).__module__.startswith("pmdc."):
            _demand(not any(callable(getattr(type(value), name, None)) for name in own))


def _check_model(model: MultiDimensionalClassifier) -> None:
    """Raise an error if the local models of a classifier do not match its tables or each other."""
    classes = model.class_table_.sizes
    if hasattr(model, "frequencies_"):  # not in earlier files
        counts, outcome = model.frequencies_.counts, model.frequencies_.outcome
        _demand(type(model.frequencies_) is Frequencies and all(is_numbers(count, 1) for count in counts))
        _demand(tuple(map(len, counts)) == classes and len(outcome) == len(classes))
        _demand(are_places(np.array(outcome), classes))
        _demand(model.frequencies_.weight is None or type(model.frequencies_.weight) is float)
    row, values = _one_row(model.feature_table_)
    if isinstance(model, GBNC):
        network, tree, blocks = model._network, model._junction_tree, model._blocks
        _demand(type(network) is Network and type(tree) is JunctionTree and type(blocks) is Blocks)
        _demand(blocks.consistent(classes))
        nodes = blocks.n_states
        sizes = (*nodes, *values)
        _demand(tuple(network.sizes) == sizes and len(network.nodes) == len(nodes))
        _demand(tree.sizes == classes)
        _demand(tree.scopes == family_scopes(blocks.class_parents(network.class_parents)))
        experts = network.experts
        if experts is not None:
            _demand(type(experts) is ExpertFeatures)
            n_indicators = row.continuous.shape[1] - row.with_nan().continuous.shape[1]
            _demand(experts.consistent(row.continuous.shape[1], values, nodes, n_indicators))
        for k, (node, n_states, prepare) in enumerate(zip(network.nodes, nodes, network.prepares, strict=True)):
            inputs = row.numbers()
            if experts is not None and network.has_experts(k):
                inputs = Features(np.zeros((1, experts.width(k) * n_states)), inputs.discrete)
                given = experts.conditional(k)
                if given is not None:
                    _demand(set(given.parents) <= set(node.family.classes(len(nodes))) and prepare is continuous)
            _check_node(node, n_states, sizes, prepare, inputs, [])
    elif isinstance(model, BinaryRelevance):
        for target, n_states in zip(model._models, classes, strict=True):
            _check_target(target, n_states, row, values)
    elif isinstance(model, ClassifierChain):
        _check_chain(model._chain, classes, row, values)
    elif isinstance(model, ChainEnsemble):
        for chain in model._chains:
            _check_chain(chain, classes, row, values)
    elif isinstance(model, ClassPowerset):
        outcomes = model._outcomes
        _demand(outcomes.shape == (len(outcomes), len(classes)) and are_places(outcomes, classes))
        _check_target(model._model, len(outcomes), row, values)


def _check_learner(learner: LogProbaClassifier) -> None:
    models, prepare, table = learner.fitted_parts()
    row = Features(np.zeros((1, learner.n_features_in_)), np.zeros((1, 0), dtype=np.int64))
    values: list[int] = []
    if table is not None:
        row, values = _one_row(table)
    fitted = Fitted(1, len(learner.classes_), prepare, _width(prepare, row, values), values, [])
    _demand(_is_own(models) and models.fits(fitted))


def _one_row(table: Any) -> tuple[Features, list[int]]:
    """Return a row as a table of features encodes it, and the numbers of values of its discrete features."""
    _demand(type(table) is FeatureTable and len(table.discrete) == len(table.states) == len(table.observed))
    _demand(set(table.parts) <= set(range(len(table.continuous))) and set(table.parts.values()) <= set(PARTS))
    _demand(set(table.date_orders.values()) <= {"dmy", "mdy"})
    _demand(all(j in range(len(table.states)) and len(table.states[j]) for j in table.grouped))
    _demand(all(len(states) == len(rows) for states, rows in zip(table.states, table.observed, strict=True)))
    n_discrete = len(table.states)
    _demand(table.filling.consistent(len(table.continuous), n_discrete))
    _demand(all(len(table.states[j]) > (j in table.grouped) for j in table.filling.states))
    row = table.complete(np.zeros((1, len(table.continuous))), np.zeros((1, n_discrete), dtype=np.int64))
    return row, [len(states) for states in table.states]


def _check_chain(chain: Chain, classes: Sequence[int], row: Features, values: Sequence[int]) -> None:
    _demand(type(chain) is Chain)
    _demand(sorted(chain.order) == list(range(len(classes))) and tuple(chain.sizes) == tuple(classes))
    for place, (link, k) in enumerate(zip(chain.links, chain.order, strict=True)):
        before = [classes[j] for j in chain.order[:place]]
        seen = row.with_discrete(np.zeros((1, place), dtype=np.int64))
        _check_target(link, classes[k], seen, [*values, *before])


def _check_target(target: tuple[Any, Any], n_states: int, row: Features, values: Sequence[int]) -> None:
    """Check the model of a target of a baseline, and its temperature if it is calibrated."""
    node, prepare = target
    if type(node) is Calibrated:
        temperature = node.temperature
        _demand(type(temperature) is float and math.isfinite(temperature) and temperature > 0)
        node = node.node
    _check_node(node, n_states, (), prepare, row, values)


def _check_node(
    node: Node, n_states: int, sizes: tuple[int, ...], prepare: Any, row: Features, values: Sequence[int]
) -> None:
    """Check a node; `values` are the numbers of values of the discrete inputs of a row."""
    _demand(type(node) is Node and node.n_states == n_states and tuple(node.sizes) == sizes)
    _demand(node.family in node.levels)
    width = _width(prepare, row, values)
    for family, level in node.levels.items():
        found, models = level.configurations, level.models
        _demand(type(level) is Level and type(found) is Configurations)
        inputs = [sizes[p] for p in family.inputs]
        for parents in family:
            _demand(list(parents) == sorted(set(parents)) and min(parents, default=0) >= 0)
        _demand(tuple(found.parents) == family.partition and found.sizes == tuple(sizes[p] for p in family.partition))
        n_parts = len(found.observed)
        _demand(n_parts > 0 and level.weights.shape == (n_parts,))
        _demand(_is_own(models) and models.fits(Fitted(n_parts, n_states, prepare, width, values, inputs)))
    for finer, coarser in node.fewer.items():
        _demand(coarser in node.levels and set(coarser.partition) <= set(finer.partition))


def _is_own(models: Any) -> bool:
    return type(models) in [engine.models for engine in ENGINES]


def _width(prepare: Any, row: Features, values: Sequence[int]) -> int:
    """Return how many columns a preparation produces, which is the same for all rows."""
    inner = prepare
    if inner is continuous:
        return row.continuous.shape[1]
    if type(inner) is Rotated:
        _demand(inner.axes is None or is_numbers(inner.axes, 2))
        inner = inner.prepare
    if type(inner) is Indicators:
        _demand(list(inner.sizes) == list(values) and type(inner.nan) is bool)
        _demand(inner.affine is None or is_affine(inner.affine))
    else:
        _demand(type(inner) is CodesBehind and is_affine(inner.affine))
    return int(prepare(row).shape[1])


def _demand(fits: bool) -> None:
    if not fits:
        raise ValueError("its parts are inconsistent")
