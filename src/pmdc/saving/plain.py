"""Convert a fitted model to plain data, and back.

Plain data is what JSON can represent. None, booleans, numbers, strings and lists stand for themselves; anything else is
a mapping with its type under "is", by a name from the tables of this module. Arrays are stored in pools, one for each
dtype, and objects of other libraries in a list; the plain data holds their positions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal

import narwhals as nw
import numpy as np

from pmdc._support.arrays import Array
from pmdc.baselines import BinaryRelevance, ChainEnsemble, ClassifierChain, ClassPowerset
from pmdc.baselines.calibration import Calibrated
from pmdc.baselines.classifier_chain import Chain
from pmdc.blocks import Blocks
from pmdc.candidates.families import Family
from pmdc.classifier import GBNC
from pmdc.decisions.f_measure import FMeasure
from pmdc.decisions.jaccard import JaccardLoss
from pmdc.decisions.losses import BalancedLoss, BlockLoss, CostLoss, HammingLoss, SubsetLoss
from pmdc.decisions.outcome_search import CustomLoss, SubExactLoss
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.experts.features import EXPERT_TYPES
from pmdc.incomplete import EMResult
from pmdc.inference import JunctionTree, family_scopes
from pmdc.learners.partition import Configurations
from pmdc.learners.registry import ENGINES
from pmdc.model_selection import MultiStratifiedKFold
from pmdc.network.network import Level, Network, Node
from pmdc.saving.values import VALUES, column_fields, make_column, value_name
from pmdc.search import Structure
from pmdc.table.classes import ClassTable
from pmdc.table.columns import as_objects
from pmdc.table.features import FeatureTable
from pmdc.table.frequencies import Frequencies
from pmdc.table.gaps import Filling

Plain = Any
"""What JSON can represent."""

# Types and their names in files. A name stays the same when a class is moved or renamed. -----------------------------

MODELS: dict[str, type[MultiDimensionalClassifier]] = {
    "GBNC": GBNC,
    "BinaryRelevance": BinaryRelevance,
    "ClassifierChain": ClassifierChain,
    "ChainEnsemble": ChainEnsemble,
    "ClassPowerset": ClassPowerset,
}
"""The classifiers that `pmdc.save` accepts."""

_ESTIMATORS: dict[str, type] = {**MODELS, **{kind.__name__: kind for one in ENGINES for kind in one.estimators}}
"""Built from their parameters; then the fitted attributes are set."""

_PARTS: dict[str, type] = {
    "ClassTable": ClassTable,
    "FeatureTable": FeatureTable,
    "Filling": Filling,
    "Frequencies": Frequencies,
    "EMResult": EMResult,
    "Network": Network,
    "Node": Node,
    "Family": Family,
    "Level": Level,
    "Configurations": Configurations,
    **{kind.__name__: kind for one in ENGINES for kind in (one.models, *one.saved)},
    "Blocks": Blocks,
    **{kind.__name__: kind for kind in EXPERT_TYPES},
    "Calibrated": Calibrated,
    "Chain": Chain,
    "JunctionTree": JunctionTree,
    "Structure": Structure,
    "HammingLoss": HammingLoss,
    "BalancedLoss": BalancedLoss,
    "SubsetLoss": SubsetLoss,
    "SubExactLoss": SubExactLoss,
    "CostLoss": CostLoss,
    "BlockLoss": BlockLoss,
    "CustomLoss": CustomLoss,
    "FMeasure": FMeasure,
    "JaccardLoss": JaccardLoss,
    "MultiStratifiedKFold": MultiStratifiedKFold,
}
"""Built from their fields, which are the parameters of their constructors."""

_FIELDS: dict[type, Sequence[str]] = {JunctionTree: ("sizes", "scopes", "order", "memory_budget")}
"""Fields of types that do not store all parameters."""


def _update_tree(fields: dict[str, Any]) -> None:
    """Convert the parents of each class variable, found in earlier files, to scopes."""
    if "parents" in fields:
        fields["scopes"] = family_scopes(fields.pop("parents"))


def _update_level(fields: dict[str, Any]) -> None:
    """Rename the strength of earlier files to kappa."""
    if "strength" in fields:
        fields["kappa"] = fields.pop("strength")


def _update_network(fields: dict[str, Any]) -> None:
    """Give each class variable the one preparation of earlier files."""
    if "prepare" in fields:
        fields["prepares"] = (fields.pop("prepare"),) * len(fields["nodes"])


_UPDATES: dict[str, Callable[[dict[str, Any]], None]] = {
    "JunctionTree": _update_tree,
    "Level": _update_level,
    "Network": _update_network,
}
"""Functions that update the fields of earlier files, by the name of the type."""

_RENAMED: dict[str, str] = {
    "standard_errors": "guard",
    "_classes": "class_table_",
    "_features": "feature_table_",
    "ways_": "conditioning_",
    "strengths_": "C_",
}
"""New names of parameters and attributes of classifiers by their names in earlier files."""

_FUNCTIONS: dict[str, Callable[..., Any]] = {one.__name__: one for engine in ENGINES for one in engine.functions}

_NAMES: dict[Any, str] = {kind: name for name, kind in (*_ESTIMATORS.items(), *_PARTS.items())}

_CONTAINERS: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def _fields(kind: type) -> Sequence[str]:
    return _FIELDS.get(kind) or tuple(signature(kind).parameters)


# Writing --------------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Converts a model to plain data.

    Attributes
    ----------
    pools : dict of dtype to list of arrays
        The numbers of all arrays, flat, one after the other.
    objects : list of (where, object)
        Objects of other libraries, with the attribute of the model that holds them.
    """

    pools: dict[str, list[Array]] = field(default_factory=dict)
    objects: list[tuple[str, Any]] = field(default_factory=list)
    _lengths: dict[str, int] = field(default_factory=dict)

    def arrays(self) -> dict[str, Array]:
        return {dtype: np.concatenate(parts, dtype=dtype) for dtype, parts in self.pools.items()}

    def write(self, value: Any, where: str = "") -> Plain:
        """Return the plain data of a value; `where` is the attribute of the model that holds it."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if kind is list:
            return self._each(value, where)
        if kind in _ESTIMATORS.values():
            return self._estimator(value, where)
        if kind in _NAMES:
            fields = {name: self.write(getattr(value, name), where or name) for name in _fields(kind)}
            return {"is": _NAMES[kind], **fields}
        for name, container in _CONTAINERS.items():
            if kind is container:
                items = value if kind is tuple else sorted(value, key=lambda item: (type(item).__name__, repr(item)))
                return {"is": name, "items": self._each(items, where)}
        if kind is dict:
            pairs = [[self.write(key, where), self.write(entry, where)] for key, entry in value.items()]
            return {"is": "dict", "items": pairs}
        if isinstance(value, (np.ndarray, np.generic)) and kind.__module__ == "numpy":
            return self._numbers(value, where)
        for name, function in _FUNCTIONS.items():
            if value is function:
                return {"is": "function", "name": name}
        return self._other(value, where)

    def _each(self, values: Sequence[Any], where: str) -> list[Plain]:
        return [self.write(value, where) for value in values]

    def _estimator(self, value: Any, where: str) -> Plain:
        given = value.get_params(deep=False)
        left = {name: one for name, one in vars(value).items() if name not in given}
        return {
            "is": _NAMES[type(value)],
            "parameters": {name: self.write(one, where or name) for name, one in given.items()},
            "fitted": {name: self.write(one, where or name) for name, one in left.items()},
        }

    def _numbers(self, value: Any, where: str) -> Plain:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            items = self._each(array.ravel().tolist(), where)
            return {"is": "objects", "shape": list(array.shape), "items": items}
        if array.dtype.kind not in "fiubUScmM":
            return self._object(value, where)
        # The memory order is kept: sums in another order would differ in the last bits.
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        dtype = array.dtype.str
        start = self._lengths.get(dtype, 0)
        self.pools.setdefault(dtype, []).append(array.ravel(order=order))
        self._lengths[dtype] = start + array.size
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {"is": kind, "dtype": dtype, "shape": list(array.shape), "order": order, "start": start}

    def _other(self, value: Any, where: str) -> Plain:
        name = value_name(value)
        if name in VALUES:
            return {"is": name, "fields": self._each(VALUES[name].apart(value), where)}
        if nw.dependencies.is_into_series(value):
            return {"is": "column", "fields": self._each(column_fields(value), where)}
        if name == "networkx.DiGraph":
            nodes = [[node, dict(about)] for node, about in value.nodes.items()]
            edges = [[*edge, dict(about)] for edge, about in value.edges.items()]
            about = {"about": self.write(dict(value.graph), where)} if value.graph else {}
            return {"is": "graph", "nodes": self._each(nodes, where), "edges": self._each(edges, where), **about}
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> Plain:
        self.objects.append((where, value))
        return {"is": "object", "number": len(self.objects) - 1}


# Reading --------------------------------------------------------------------------------------------------------


@dataclass
class Reader:
    """Builds a model from plain data and the arrays and objects that a `Writer` has collected."""

    arrays: dict[str, Array]
    objects: list[Any]

    def read(self, plain: Plain) -> Any:
        if isinstance(plain, list):
            return self._each(plain)
        if not isinstance(plain, dict):
            return plain
        name, fields = plain["is"], {key: value for key, value in plain.items() if key != "is"}
        if name in VALUES:
            return VALUES[name].together(*self._each(fields["fields"]))
        if name in _CONTAINERS:
            return _CONTAINERS[name](self._each(fields["items"]))
        if name in _ESTIMATORS:
            return self._estimator(_ESTIMATORS[name], **fields)
        if name in _PARTS:
            fields = {key: self.read(value) for key, value in fields.items()}
            if name in _UPDATES:
                _UPDATES[name](fields)
            return _PARTS[name](**fields)
        return self._special(name, fields)

    def _each(self, plain: list[Plain]) -> list[Any]:
        return [self.read(one) for one in plain]

    def _special(self, name: str, fields: dict[str, Any]) -> Any:
        match name:
            case "dict":
                return {self.read(key): self.read(value) for key, value in fields["items"]}
            case "array":
                return self._array(**fields)
            case "scalar":
                return self._array(**fields)[()]
            case "objects":
                return as_objects(self._each(fields["items"])).reshape(fields["shape"])
            case "function":
                return _FUNCTIONS[fields["name"]]
            case "column":
                return make_column(*self._each(fields["fields"]))
            case "graph":
                return self._graph(**fields)
            case "object":
                return self.objects[fields["number"]]
        raise ValueError(f"it names the unknown type {name!r}")

    def _estimator(self, kind: type, parameters: dict[str, Plain], fitted: dict[str, Plain]) -> Any:
        if kind in MODELS.values():
            parameters, fitted = (
                {_RENAMED.get(name, name): value for name, value in given.items()} for given in (parameters, fitted)
            )
        if kind is GBNC:
            parameters = {"experts": None, **parameters}  # earlier files have no experts
        estimator = kind(**{name: self.read(value) for name, value in parameters.items()})
        for name, value in fitted.items():
            if hasattr(kind, name) or name in parameters:
                raise ValueError(f"it has a value for {name!r} of {kind.__name__}, which is not a fitted attribute")
            setattr(estimator, name, self.read(value))
        if kind in MODELS.values() and "frequencies_" in fitted:
            estimator.class_table_.frequencies = estimator.frequencies_
        if kind is GBNC and "_network" in fitted and "_blocks" not in fitted:  # a file of an earlier version
            estimator._blocks, estimator.blocks_ = Blocks.alone(estimator.class_table_.sizes), []
        return estimator

    def _array(self, dtype: str, shape: list[int], order: Any, start: int) -> Array:
        pool, size = self.arrays[dtype], math.prod(shape)
        if not 0 <= start <= start + size <= len(pool):
            raise ValueError("an array is larger than its pool")
        return pool[start : start + size].reshape(shape, order=order)

    def _graph(self, nodes: list[Plain], edges: list[Plain], about: Plain = None) -> Any:
        import networkx

        graph = networkx.DiGraph(**(self.read(about) or {}))
        graph.add_nodes_from(self.read(node) for node in nodes)
        graph.add_edges_from(self.read(edge) for edge in edges)
        for _, _, about in graph.edges(data=True):
            if "way" in about:  # its name in earlier files
                about["conditioning"] = about.pop("way")
        return graph
