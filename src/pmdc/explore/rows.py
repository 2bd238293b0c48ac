"""The list of rows of a table: search and filters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time
from typing import Any

import numpy as np

from pmdc._support.arrays import Array, Marks
from pmdc.explore.messages import Problem
from pmdc.explore.reading import Reader
from pmdc.explore.table import Table
from pmdc.explore.values import States, to_json, to_key
from pmdc.table.columns import Column
from pmdc.table.dates import dates, times


def list_rows(table: Table, reader: Reader, request: Any) -> dict[str, Any]:
    """Answer /rows: the rows that match a search and all filters, a page of them."""
    kept = table.search(request.search, reader.states) if request.search.strip() else np.ones(len(table), dtype=bool)
    for i, own in enumerate(request.filters):
        try:
            kept &= _filter(table, reader, own)
        except ValueError as error:
            raise Problem(f"filters[{i}]: {str(error).rstrip('.')}.", f"filters[{i}]") from None
    found = np.flatnonzero(kept)
    shown = found[request.offset : request.offset + request.limit].tolist()
    wrong = table.wrong()  # of the rows predicted until now, while others are being predicted
    return {
        "n_rows": len(table),
        "found": len(found),
        "predicted": len(wrong),
        "rows": [_row(table, reader.states, index, wrong) for index in shown],
    }


def _row(table: Table, states: Sequence[States], index: int, wrong: Marks) -> dict[str, Any]:
    done = index < len(wrong)
    return {
        "index": index,
        "text": table.text(index),
        "true": table.true_states(index, states),
        "predicted": table.by_name(table.predicted[index], states) if done else None,
        "wrong": [own.name for own, missed in zip(states, wrong[index], strict=True) if missed] if done else [],
    }


def _filter(table: Table, reader: Reader, wanted: Any) -> Marks:
    """Return which rows match a filter."""
    if hasattr(wanted, "feature"):
        column = next(own for own in table.columns if own.name == wanted.feature)
        return _by_value(column, reader.kind(column.name), wanted)
    names = [own.name for own in reader.states]
    if hasattr(wanted, "state"):
        k = names.index(wanted.variable)
        codes = table.predicted if wanted.of == "predicted" else table.truth
        if codes is None:
            raise ValueError("the table has no true states")
        return np.asarray(codes[:, k] == reader.states[k].require(wanted.state))
    known = table.wrong()
    wrong = np.zeros((len(table), len(names)), dtype=bool)
    wrong[: len(known)] = known
    if wanted.error == "variable":
        if wanted.variable is None:
            raise ValueError("variable is missing: give the class variable that is predicted wrongly")
        return np.asarray(wrong[:, names.index(wanted.variable)])
    if wanted.error == "any":
        return np.asarray(wrong.any(axis=1))
    return ~wrong.any(axis=1) & (np.arange(len(table)) < len(known)) & table.has_truth()


def _by_value(column: Column, kind: str, wanted: Any) -> Marks:
    kept = np.ones(len(column.values), dtype=bool)
    for bound, below in ((wanted.min, False), (wanted.max, True)):
        if bound is not None:
            values, limit = _comparable(column, kind, bound)
            with np.errstate(invalid="ignore"):
                kept &= (values <= limit) if below else (values >= limit)
            kept &= ~column.missing
    if wanted.values is not None:
        known = {to_key(value) for value in wanted.values}
        keys = (to_key(None if gone else to_json(v)) for v, gone in zip(column.values, column.missing, strict=True))
        kept &= np.fromiter((key in known for key in keys), dtype=bool, count=len(kept))
    return kept


def _comparable(column: Column, kind: str, bound: float | str) -> tuple[Array, Any]:
    """Return the values of a column and a bound that they can be compared with."""
    if kind == "number":
        if isinstance(bound, str):
            raise ValueError(f"{bound!r} is not a number, as the values of {column.name!r} are")
        return column.values.astype(float), bound
    if kind not in ("date", "time"):
        raise ValueError(f"{column.name!r} is not a number or a date: filter it by values")
    read = datetime.fromisoformat if kind == "date" else time.fromisoformat
    try:
        moment: Any = read(bound)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{bound!r} is not a {kind} in the form 2024-01-31 or 12:30:00") from None
    return column.values, (dates if kind == "date" else times)([moment])[0]
