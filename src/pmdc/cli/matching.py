"""A table beside a model that was fitted before: the same columns, in the types and states that the model knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import shorten, suggest
from pmdc._support.extras import require
from pmdc.cli.kinds import first_odd, missing_words, quoted, signs_advice, told_left_out
from pmdc.cli.running import BadInput
from pmdc.table_files import TableFile


@dataclass(frozen=True)
class Matched:
    """The rows of a table that a model can be asked about."""

    X: Any
    table: TableFile
    rows: npt.NDArray[np.int64]
    """Their places in the table that was read, from 0."""
    left_out: str
    """What to tell of rows with missing values, if there are any."""
    warnings: list[str]


def read_features(table: TableFile, model: Any, drop_missing: bool | None, needed: Sequence[str] = ()) -> Matched:
    """The features of a table in the types that a model was fitted with.

    Parameters
    ----------
    drop_missing : bool or None
        Whether rows with missing values are left out; None if the command has no option for it.
    needed : list of str
        Other columns, in which no value may be missing.
    """
    pd = require("pandas")
    known = model.feature_table_
    _refuse_absent(table, known.names)
    states = dict(zip(known.discrete_names, [list(s.tolist()) for s in known.states], strict=True))
    gaps = {name: table[name].missing(states.get(name, ())) for name in known.names}
    gaps |= {name: table[name].missing(_states_of(model, name)) for name in needed}
    gaps = {name: missing for name, missing in gaps.items() if missing.any()}
    kept, left_out = np.ones(table.n_rows, dtype=bool), ""
    if gaps:
        kept = ~reduce(np.logical_or, gaps.values())
        if not drop_missing:
            drop = "" if drop_missing is None else "--drop-missing"
            raise BadInput(missing_words(table, gaps, int((~kept).sum()), needed, drop=drop))
        if not kept.any():
            raise BadInput(f"{table.source}: every row has a missing value, the first in column {next(iter(gaps))!r}.")
        left_out = told_left_out(table, kept)
        table = table.rows(kept)
    columns: dict[str, Any] = {}
    warnings: list[str] = []
    used = {known.discrete_names[j] for j in model._used_discrete()}
    for name in known.names:
        cells = table[name]
        if name not in states:
            odd = cells.not_numbers()
            if odd.any():
                advice = signs_advice(cells) or "Correct them"
                if advice == "Correct them" and drop_missing is not None:
                    advice += f", or say what they mean: --missing {first_odd(cells)!r} --drop-missing"
                raise BadInput(
                    f"{table.source}, column {name!r} was a number when the model was fitted, but {int(odd.sum())} of "
                    f"{len(cells)} cells are not: {table.examples(cells, odd)}. {advice}."
                )
            columns[name] = cells.numbers().astype(float)
            continue
        values = cells.as_known(states[name])
        here = set(states[name])
        unseen = np.fromiter((value not in here for value in values), dtype=bool, count=len(values))
        if unseen.any() and name in used:
            warnings.append(
                f"column {name!r} holds values that the model has not seen, in {int(unseen.sum())} row(s): "
                f"{table.examples(cells, unseen)}. {model._unseen_answer()}"
            )
        more = list(dict.fromkeys(value for value, new in zip(values, unseen, strict=True) if new))
        columns[name] = pd.Categorical(values, categories=pd.Index([*states[name], *more], dtype=object))
    X = pd.DataFrame(columns)
    if not hasattr(model, "feature_names_in_"):  # it was fitted on an array, whose columns have no names
        X = X.astype(object).to_numpy() if states else X.to_numpy()
    return Matched(X, table, np.flatnonzero(kept), left_out, warnings)


def read_outcomes(table: TableFile, model: Any) -> tuple[Any, list[str]]:
    """The class variables of a table in the types that a model knows, and what is to be said of them."""
    pd = require("pandas")
    columns = {}
    notes = []
    for name in model.class_names_:
        states = _states_of(model, name)
        columns[name] = table[name].as_known(states)
        here = set(states)
        odd = np.fromiter((value not in here for value in columns[name]), dtype=bool, count=table.n_rows)
        if odd.all():
            raise BadInput(
                f"{table.source}, class variable {name!r}: none of its values ({table.examples(table[name], odd)}) is "
                f"a state of the model; these are {shorten([str(state) for state in states])}."
            )
        if odd.any():
            notes.append(
                f"class variable {name!r} has states that the model does not know, in {int(odd.sum())} row(s): "
                f"{table.examples(table[name], odd)}. They count as wrong, and have probability zero."
            )
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()}), notes


def _refuse_absent(table: TableFile, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in table.names]
    if absent:
        more = f" (and {len(absent) - 1} more: {shorten(absent[1:], 5)})" if len(absent) > 1 else ""
        raise BadInput(
            f"{table.source} lacks the column {absent[0]!r}, which the model was fitted with{more}"
            + suggest(absent[0], table.names)
        )


def require_classes(table: TableFile, model: Any) -> None:
    """Refuse a table without the class variables of a model."""
    _refuse_absent(table, model.class_names_)


def _states_of(model: Any, name: str) -> list[Any]:
    classes = model.class_table_
    return list(classes.states[classes.names.index(name)].tolist())


def read_given(given: Sequence[str], model: Any, table: TableFile) -> dict[str, Any]:
    """What is known of the class variables: ``name=state``, or ``name=@column`` for a column of the table."""
    names = model.class_names_
    known: dict[str, Any] = {}
    for text in given:
        fitting = [name for name in names if text.startswith(f"{name}=")]
        if not fitting:
            name, sign, _ = text.partition("=")
            if not sign:
                raise BadInput(f"--given {text!r}: say which state is known, as in --given {quoted(names[0])}=STATE.")
            raise BadInput(f"--given {text!r}: {name!r} is no class variable of the model" + suggest(name, names))
        name = max(fitting, key=len)
        if name in known:
            raise BadInput(f"--given names {name!r} twice: give each class variable once.")
        value = text[len(name) + 1 :]
        if value.startswith("@"):
            known[name] = _given_column(table, value[1:], model, name)
            continue
        states = _states_of(model, name)
        found = [state for state in states if str(state) == value]
        if not found:
            raise BadInput(
                f"--given {text!r}: {value!r} is no state of {name!r}"
                + suggest(value, [str(state) for state in states])
            )
        known[name] = found[0]
    return known


def _given_column(table: TableFile, column: str, model: Any, name: str) -> list[Any]:
    """One state for each row; a missing cell says that nothing is known."""
    table.require([column], f"--given {name}=@{column}")
    states, cells = _states_of(model, name), table[column]
    missing = cells.missing(states)
    values = [None if gone else v for v, gone in zip(cells.as_known(states), missing, strict=True)]
    here = set(states)
    odd = np.fromiter((v is not None and v not in here for v in values), dtype=bool, count=len(values))
    if odd.any():
        raise BadInput(
            f"--given {name}=@{column}: {table.examples(cells, odd)} of {table.source} is no state of {name!r}; these "
            f"are {shorten([str(state) for state in states])}."
        )
    return values
