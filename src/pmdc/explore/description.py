"""What /schema says of a model and the table beside it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import pmdc
from pmdc.baselines import BinaryRelevance
from pmdc.classifier import GBNC
from pmdc.explore.messages import MAX_SET_OUTCOMES, MAX_TOP
from pmdc.explore.reading import Reader
from pmdc.explore.table import Table
from pmdc.explore.values import MAX_EXACT
from pmdc.table.columns import MISSING


def describe(model: Any, reader: Reader, table: Table | None) -> dict[str, Any]:
    """Return what does not depend on the options of a service."""
    n_outcomes = prod(len(own.listed) for own in reader.states)
    features = [_feature(model, reader, table, name) for name in reader.features.names]
    return {
        "pmdc": pmdc.__version__,
        "model": type(model).__name__,
        "class_variables": [
            {"name": own.name, "states": own.listed, "parents": parents}
            for own, parents in zip(reader.states, parents_of(model), strict=True)
        ],
        "features": features,
        "n_outcomes": n_outcomes if n_outcomes <= MAX_EXACT else str(n_outcomes),
        "explains": _explains(model, table),
        "table": None if table is None else _about(table, [own.name for own in reader.states]),
        "limits": {"top": MAX_TOP, "set_outcomes": MAX_SET_OUTCOMES},
    }


def parents_of(model: Any) -> list[list[str]]:
    """Return the parents of each class variable that are class variables; none for a model without a graph."""
    names = model.class_table_.names
    try:
        graph = model.to_networkx()
    except ValueError:
        return [[] for _ in names]
    return [[parent for parent in graph.predecessors(name) if parent in names] for name in names]


def _explains(model: Any, table: Table | None) -> str | None:
    if not isinstance(model, (GBNC, BinaryRelevance)):
        return None
    return "differences" if table is None else "average"


def _feature(model: Any, reader: Reader, table: Table | None, name: str) -> dict[str, Any]:
    features, kind = reader.features, reader.kind(name)
    found: dict[str, Any] = {"name": name, "kind": kind, "gaps_in_training": name in features.gaps}
    if kind == "category":
        grouped = features.discrete_names.index(name) in features.grouped
        found |= {"values": reader.categories[name].listed, "other": grouped}
    if kind == "number":
        fill: Sequence[float] = features.filling.values  # earlier versions do not have them
        place = features.continuous.index(features.names.index(name))
        found["default"] = float(fill[place]) if len(fill) else None
    found["distribution"] = None if table is None else table.distribution(name, kind, reader.categories.get(name))
    return found


def _about(table: Table, names: Sequence[str]) -> dict[str, Any]:
    known = [] if table.truth is None else (table.truth != MISSING).any(axis=0)
    return {
        "name": table.name,
        "n_rows": len(table),
        "first_number": table.first_number,
        "known": [name for name, any_known in zip(names, known, strict=False) if any_known],
        "n_complete": len(table.complete()),
        "like_training": table.like_training,
    }
