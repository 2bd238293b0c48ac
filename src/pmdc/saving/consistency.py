"""Whether the numbers of a model that was read fit together.

Compiled loops take numbers for places in arrays and do not look twice. What `fit` leaves is always right; what a file
holds may have been made with malice, so it is checked before anything is computed with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pmdc.base import MultiDimensionalClassifier
from pmdc.baselines import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.baselines.classifier_chain import Chain
from pmdc.classifier import GBNC
from pmdc.learners import Logistic, NaiveBayes
from pmdc.learners.groups import GroupedModels
from pmdc.learners.logistic import LogisticModels
from pmdc.learners.naive_bayes import NaiveBayesModels
from pmdc.network import Node
from pmdc.table import Array, Features, Floats


def check_model(model: MultiDimensionalClassifier) -> None:
    """Refuse a classifier whose local models do not fit its tables or each other."""
    classes = model._classes.sizes
    values = [len(states) for states in model._features.states]
    row = _one_row(len(model._features.continuous), len(values))
    if isinstance(model, GBNC):
        network, tree = model._network, model._junction_tree
        sizes = (*classes, *values)
        _demand(tuple(network.sizes) == sizes and len(network.nodes) == len(classes))
        _demand(tree.sizes == classes and list(tree.parents) == network.class_parents)
        for node, n_states in zip(network.nodes, classes, strict=True):
            _check_node(node, n_states, sizes, network.prepare(row.numbers()), [])
    elif isinstance(model, BinaryRelevance):
        for (node, prepare), n_states in zip(model._models, classes, strict=True):
            _check_node(node, n_states, (), prepare(row), values)
    elif isinstance(model, ClassifierChain):
        _check_chain(model._chain, classes, row, values)
    elif isinstance(model, ChainEnsemble):
        for chain in model._chains:
            _check_chain(chain, classes, row, values)
    elif isinstance(model, ClassPowerset):
        node, prepare = model._model
        _demand(_are_places(model._outcomes, classes))
        _check_node(node, len(model._outcomes), (), prepare(row), values)


def check_learners(objects: Iterable[Any]) -> None:
    """Refuse learners of ours, anywhere within these objects, whose numbers do not fit together."""
    for learner in _learners(objects):
        if hasattr(learner, "_models"):
            table = getattr(learner, "_features", None)
            values = [] if table is None else [len(states) for states in table.states]
            row = _one_row(learner.n_features_in_ - len(values), len(values))
            _check_models(learner._models, 1, len(learner.classes_), learner._prepare(row).shape[1], values)


def _learners(objects: Iterable[Any]) -> Iterator[Any]:
    """What is of ours within objects of others."""
    ahead, seen = list(objects), set()
    while ahead:
        value = ahead.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (Logistic, NaiveBayes)):
            yield value
        if isinstance(value, dict):
            ahead.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            ahead.extend(value)
        elif isinstance(value, np.ndarray):
            ahead.extend(value.ravel().tolist() if value.dtype.kind == "O" else ())
        ahead.extend(getattr(value, "__dict__", {}).values())


def _one_row(n_continuous: int, n_discrete: int) -> Features:
    return Features(np.zeros((1, n_continuous)), np.zeros((1, n_discrete), dtype=np.int64))


def _check_chain(chain: Chain, classes: Sequence[int], row: Features, values: Sequence[int]) -> None:
    _demand(sorted(chain.order) == list(range(len(classes))) and tuple(chain.sizes) == tuple(classes))
    for place, ((node, prepare), k) in enumerate(zip(chain.links, chain.order, strict=True)):
        before = [classes[j] for j in chain.order[:place]]
        seen = row.with_discrete(np.zeros((1, place), dtype=np.int64))
        _check_node(node, classes[k], (), prepare(seen), [*values, *before])


def _check_node(node: Node, n_states: int, sizes: tuple[int, ...], X: Floats, values: Sequence[int]) -> None:
    """`values` are the numbers of values of the discrete inputs of X."""
    _demand(node.n_states == n_states and tuple(node.sizes) == sizes and node.family in node.levels)
    for family, level in node.levels.items():
        found = level.configurations
        inputs = [sizes[p] for p in family.inputs]
        _demand(min((*family.partition, *family.inputs), default=0) >= 0)
        _demand(tuple(found.parents) == family.partition and found.sizes == tuple(sizes[p] for p in family.partition))
        n_parts = len(found.observed)
        _demand(n_parts > 0 and level.weights.shape == (n_parts,))
        if isinstance(level.models, GroupedModels):
            codes = np.zeros((1, len(inputs)), dtype=np.int64)
            width = (level.models.join(X, codes) if inputs else X).shape[1]
            _check_models(level.models, n_parts, n_states, width, [*values, *inputs])
    for finer, coarser in node.fewer.items():
        _demand(coarser in node.levels and set(coarser.partition) <= set(finer.partition))


def _check_models(models: GroupedModels, n_parts: int, n_states: int, width: int, values: Sequence[int]) -> None:
    """`width` is the number of inputs; `values` are the numbers of values of the discrete ones."""
    n_groups = len(models.log_frequency)
    _demand(models.number.shape == (n_parts, n_states) and _are_places(models.number + 1, n_groups + 1))
    _demand(models.part_weights.shape == models.uniform.shape == (n_parts,))
    if isinstance(models, LogisticModels):
        _demand(models.coef.shape == (n_groups, width + 1))
    elif isinstance(models, NaiveBayesModels):
        ends = models.starts + np.array(values, dtype=np.int64)
        _demand(models.offset.shape == (n_groups,))
        _demand(models.mean.shape == models.precision.shape == (n_groups, width - len(values)))
        _demand(len(models.log_theta) == n_groups and _are_places(models.starts, ends))
        _demand(ends.max(initial=0) <= models.log_theta.shape[1])


def _are_places(codes: Array, below: Any) -> bool:
    """Whether whole numbers are at least 0 and below others."""
    return codes.dtype.kind == "i" and bool(((codes >= 0) & (codes < np.asarray(below))).all())


def _demand(fits: bool) -> None:
    if not fits:
        raise ValueError("its numbers do not fit together")
