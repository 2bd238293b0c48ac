"""Read a table for a fitted model: the same columns, in the types and states that the model knows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from pmdc._support.checks import shorten, suggest
from pmdc._support.extras import require
from pmdc.cli.alternatives import find_alternatives
from pmdc.cli.refusals import Mask, number_advice, rows_without_missing
from pmdc.cli.running import BadInput
from pmdc.table_files import Cells, Order, TableFile

if TYPE_CHECKING:
    from pmdc.table.features import FeatureTable

_ORDERS = {"dmy": "day before month", "mdy": "month before day"}


@dataclass(frozen=True)
class Matched:
    """The rows of a table that a model can predict."""

    X: Any
    table: TableFile
    rows: npt.NDArray[np.int64]
    """Their positions in the table that was read, from 0."""
    note: str
    """A message about rows with missing values, if any."""
    warnings: list[str]


def read_features(
    table: TableFile,
    model: Any,
    drop_missing: bool | None,
    needed: Sequence[str] = (),
    *,
    complete: bool = True,
) -> Matched:
    """Return the features of a table in the types that a model was fitted with.

    Parameters
    ----------
    drop_missing : bool or None
        Whether rows with missing values are left out; None if the command has no option for it. Otherwise features may
        be missing.
    needed : list of str
        Class variables in which no value may be missing.
    complete : bool
        Whether `drop_missing` is also about features, not only about these class variables.
    """
    pd = require("pandas")
    known = model.feature_table_
    require_columns(table, known.names)
    states = {name: list(known.values(j).tolist()) for j, name in enumerate(known.discrete_names)}
    missing = {name: table[name].missing(states.get(name, ())) for name in known.names if drop_missing and complete}
    missing |= {name: table[name].missing(_states_of(model, name)) for name in needed}
    kept, note = rows_without_missing(table, missing, drop_missing, needed)
    table = table.rows(kept)
    columns: dict[str, Any] = {}
    warnings: list[str] = []
    used = {known.discrete_names[j] for j in model._used_discrete()}
    limited = {known.discrete_names[j] for j in known.grouped}
    for name in known.names:
        cells = table[name]
        if name in known.ignored_names:
            columns[name] = np.full(len(cells), np.nan)
            continue
        gone = cells.missing(states.get(name, ()))
        if gone.any() and name not in known.gaps and (name in used or name not in states):
            answer = model._unseen_answer() if name in states else "They are filled with the median of these rows."
            warnings.append(
                f"column {name!r} has {int(gone.sum())} missing value(s), {table.where(gone)}, but had none in the "
                f"rows that the model was fitted on. {answer}"
            )
        if name in known.date_names:
            columns[name] = _read_dates(table, cells, known, drop_missing)
            continue
        if name not in states:
            columns[name] = _read_numbers(table, cells, drop_missing)
            continue
        values = cells.as_known(states[name])
        unseen = _not_in(values, states[name]) & ~gone
        if unseen.any() and name in used - limited:
            warnings.append(
                f"column {name!r} holds values that the model has not seen, in {int(unseen.sum())} row(s): "
                f"{table.examples(cells, unseen)}. {model._unseen_answer()}"
            )
        new = dict.fromkeys(value for value, odd in zip(values, unseen, strict=True) if odd)
        shown = [None if odd else value for value, odd in zip(values, gone, strict=True)]
        columns[name] = pd.Categorical(shown, categories=pd.Index([*states[name], *new], dtype=object))
    X = pd.DataFrame(columns)
    if not hasattr(model, "feature_names_in_"):  # fitted on an array, whose columns have no names
        X = X.astype(object).to_numpy() if states else X.to_numpy()
    return Matched(X, table, np.flatnonzero(kept), note, warnings)


def _read_numbers(table: TableFile, cells: Cells, drop_missing: bool | None) -> Any:
    odd = cells.not_numbers()
    if odd.any():
        advice = number_advice(cells)
        if not advice:
            word = shlex.quote(str(cells.not_number_values[0]))
            declare = "" if drop_missing is None else f", or declare them missing: --missing {word}"
            advice = f"Correct them{declare}"
        raise BadInput(
            f"{table.source}, column {cells.name!r} was a number when the model was fitted, but {int(odd.sum())} of "
            f"{len(cells)} cells are not: {table.examples(cells, odd)}. {advice}."
        )
    return cells.numbers().astype(float)


def _read_dates(table: TableFile, cells: Cells, known: FeatureTable, drop_missing: bool | None) -> Any:
    kind = "time" if known.date_names[cells.name] == ["time"] else "date"
    order = cast("Order | None", known.date_orders.get(cells.name)) or cells.date_order
    odd = cells.not_dates(order) if cells.date_kind == kind else ~cells.missing()
    where = f"{table.source}, column {cells.name!r}"
    if odd.any():
        word = shlex.quote(str(cells.values[cells.codes[np.flatnonzero(odd)[0]]]))
        declare = "" if drop_missing is None else f", or declare them missing: --missing {word}"
        way = "" if kind == "time" or order is None else f" (2024-01-31, or as in training, {_ORDERS[order]})"
        raise BadInput(
            f"{where} was a {kind} when the model was fitted, but {int(odd.sum())} of {len(cells)} cells are not one"
            f"{way}: {table.examples(cells, odd)}. Correct them{declare}."
        )
    if order is None and cells.present:
        raise BadInput(
            f"{where} holds dates such as {cells.present[0]!r}, in none of which day and month can be told apart: "
            "write them as 2024-01-31."
        )
    moments = cells.dates(order)
    return moments if kind == "time" else np.array(moments, dtype="M8[us]")


@dataclass(frozen=True)
class KnownStates:
    """A class column of a table, in the types of the states that a model knows.

    Attributes
    ----------
    values : list
        States; frozensets of states where a cell names alternatives.
    missing, unknown, alternatives : arrays of bool
        Which cells are missing, hold a state that the model does not know, or name alternatives of which the model
        knows some.
    unknown_alternatives : array of bool
        Which cells name alternatives of which the model knows none; their values are as in the table.
    """

    values: list[Any]
    missing: Mask
    unknown: Mask
    alternatives: Mask
    unknown_alternatives: Mask

    def evidence(self) -> Any:
        """Return the states that the model knows and the alternatives, None elsewhere."""
        return self._without(self.missing | self.unknown | self.unknown_alternatives)

    def present(self) -> Any:
        """Return all states and alternatives, None where they are missing."""
        return self._without(self.missing | self.unknown_alternatives)

    def certain(self) -> Any:
        """Return all states, None where they are missing or a cell names alternatives."""
        return self._without(self.missing | self.alternatives | self.unknown_alternatives)

    def _without(self, gone: Mask) -> Any:
        values = [None if out else value for value, out in zip(self.values, gone, strict=True)]
        return require("pandas").Series(values, dtype=object)


def read_states(
    table: TableFile, model: Any, name: str, sign: str | None = None, *, refitted: bool = False
) -> KnownStates:
    """Return the states of a class variable in a table; all are missing if it is not a column.

    Parameters
    ----------
    sign : str or None
        The character that separates alternative states in a cell.
    refitted : bool
        Whether the model is to be fitted to this table, so that it will know the states in it.
    """
    if name not in table.names:
        nothing = np.zeros(table.n_rows, dtype=bool)
        return KnownStates([None] * table.n_rows, ~nothing, nothing, nothing, nothing)
    states, cells = _states_of(model, name), table[name]
    missing, values = cells.missing(states), cells.as_known(states)
    sets = {} if sign is None else _alternatives(table, name, sign, states)
    own = [sets.get(code) for code in cells.codes.tolist()]
    several = np.array([found is not None and len(found) > 1 for found in own], dtype=bool)
    for i, found in enumerate(own):
        if found is not None and len(found) == 1:
            (values[i],) = found
    unknown = _not_in(values, states) & ~missing & ~several
    known = {*states, *(value for value, out in zip(values, missing | several, strict=True) if refitted and not out)}
    strange = several & np.array([found is not None and not found & known for found in own], dtype=bool)
    for i in np.flatnonzero(several & ~strange).tolist():
        values[i] = own[i]
    return KnownStates(values, missing, unknown, several & ~strange, strange)


def _alternatives(table: TableFile, name: str, sign: str, states: Sequence[Any]) -> dict[int, frozenset[Any]]:
    """Return the alternatives of each value that has some, in the types that a model knows."""
    found = find_alternatives(table, name, sign, states)
    parts = list(dict.fromkeys(part for own in found.values() for part in own))
    cells = Cells(name, np.arange(len(parts)), parts, table[name].format)
    typed = dict(zip(parts, cells.as_known(states), strict=True))
    return {i: frozenset(typed[part] for part in own) for i, own in found.items()}


def unknown_alternatives(table: TableFile, columns: Mapping[str, KnownStates], answer: str) -> list[str]:
    """Return a warning for each class variable with alternatives of which the model knows none."""
    return [
        f"class variable {name!r} has {int(rows.sum())} cell(s) with alternatives of which the model knows none: "
        f"{table.examples(table[name], rows)}. {answer}"
        for name, rows in ((name, column.unknown_alternatives) for name, column in columns.items())
        if rows.any()
    ]


def read_outcomes(table: TableFile, model: Any, sign: str | None = None) -> tuple[Any, list[str]]:
    """Return the class variables of a table in the types that a model knows, and warnings about unknown states.

    Missing values are None, and so are cells that name alternatives, separated by `sign`.
    """
    columns, warnings = {}, []
    found = {name: read_states(table, model, name, sign) for name in model.class_names_}
    for name, column in found.items():
        unknown, outcomes = column.unknown, column.certain()
        examples = table.examples(table[name], unknown)
        if outcomes.isna().all():
            but = "" if column.missing.all() else " but alternatives"
            raise BadInput(
                f"{table.source}, class variable {name!r} has no value{but} in any row: fill in some true states."
            )
        if (unknown | outcomes.isna()).all():
            raise BadInput(
                f"{table.source}, class variable {name!r}: none of its values ({examples}) is a state of the model; "
                f"the states are {shorten(list(map(str, _states_of(model, name))))}."
            )
        if unknown.any():
            warnings.append(
                f"class variable {name!r} has states that the model does not know, in {int(unknown.sum())} row(s): "
                f"{examples}. They count as wrong and have probability zero."
            )
        columns[name] = outcomes
    warnings += unknown_alternatives(table, found, "They are ignored, as are other alternatives.")
    return require("pandas").DataFrame(columns), warnings


def require_columns(table: TableFile, names: Sequence[str]) -> None:
    """Raise an error if a column that the model was fitted with is not in the table."""
    absent = [name for name in names if name not in table.names]
    if absent:
        more = f" (and {len(absent) - 1} more: {shorten(absent[1:], 5)})" if len(absent) > 1 else ""
        raise BadInput(
            f"{table.source} has no column {absent[0]!r}, which the model was fitted with{more}"
            + suggest(absent[0], table.names)
        )


def _states_of(model: Any, name: str) -> list[Any]:
    classes = model.class_table_
    return list(classes.states[classes.names.index(name)].tolist())


def _not_in(values: Sequence[Any], states: Sequence[Any]) -> npt.NDArray[np.bool_]:
    known = set(states)
    return np.fromiter((value not in known for value in values), dtype=bool, count=len(values))


def read_given(given: Sequence[str], model: Any, table: TableFile) -> dict[str, Any]:
    """Return the evidence: ``name=state`` for all rows, or ``name=@column`` for a column of the table."""
    names = model.class_names_
    evidence: dict[str, Any] = {}
    for text in given:
        matching = [name for name in names if text.startswith(f"{name}=")]
        if not matching:
            name, sign, _ = text.partition("=")
            if not sign:
                raise BadInput(f"--given {text!r} must be CLASS=STATE, such as --given {shlex.quote(names[0])}=STATE.")
            raise BadInput(f"--given {text!r}: {name!r} is not a class variable of the model" + suggest(name, names))
        name = max(matching, key=len)
        if name in evidence:
            raise BadInput(f"--given names {name!r} twice: give each class variable once.")
        value = text[len(name) + 1 :]
        if value.startswith("@"):
            evidence[name] = _given_column(table, value[1:], model, name)
            continue
        states = {str(state): state for state in _states_of(model, name)}
        if value not in states:
            raise BadInput(f"--given {text!r}: {value!r} is not a state of {name!r}" + suggest(value, list(states)))
        evidence[name] = states[value]
    return evidence


def _given_column(table: TableFile, column: str, model: Any, name: str) -> list[Any]:
    """Return one state for each row; None where the cell is missing."""
    table.require([column], f"--given {name}=@{column}")
    states, cells = _states_of(model, name), table[column]
    missing = cells.missing(states)
    values = cells.as_known(states)
    unknown = _not_in(values, states) & ~missing
    if unknown.any():
        raise BadInput(
            f"--given {name}=@{column}: {table.examples(cells, unknown)} in {table.source} is not a state of {name!r}; "
            f"the states are {shorten(list(map(str, states)))}."
        )
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]
