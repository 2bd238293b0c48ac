"""``pmdc impute``: fill in the missing states of the class variables of a table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc.cli.alternatives import check_alternatives
from pmdc.cli.display import Screen
from pmdc.cli.kinds import select_columns
from pmdc.cli.matching import KnownStates, read_features, read_states, unknown_alternatives
from pmdc.cli.models import load_model
from pmdc.cli.predicting import as_pandas, check_table_output, is_typed, proba_names, written_columns
from pmdc.cli.running import BadInput, work
from pmdc.table_files import STANDARD_STREAM, Format, TableFile, read_table, write_table

_DRAW = "draw"
"""The first column of the completed tables of ``--kind sample``."""


@dataclass(frozen=True)
class Completion:
    """How gaps are filled: the options of the command."""

    kind: str
    n_draws: int
    seed: int


def run(
    path: Path,
    source: str,
    format: Format,
    output: str,
    completion: Completion,
    *,
    keep: Sequence[str],
    alternatives: str | None,
    trust: bool,
    force: bool,
    quiet: bool,
) -> None:
    screen = Screen(quiet, data=True)
    check_table_output(source, output, force)
    check_alternatives(alternatives, format.delimiter)
    model = load_model(path, trust)
    table = read_table(source, format)
    for note in table.notes:
        screen.note("impute", note)
    names = _columns(table, keep, model)
    _check_names(names, completion.kind, table, model)
    used = read_features(table, model, drop_missing=False)
    known = {name: read_states(table, model, name, alternatives) for name in model.class_names_}
    for message in [*used.warnings, *_unknown_states(known, table, completion.kind)]:
        screen.warn("impute", message)
    given = require("pandas").DataFrame({name: states.evidence() for name, states in known.items()})
    with screen.progress("imputing"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        filled = model.impute(used.X, given, completion.kind, n_draws=completion.n_draws, random_state=completion.seed)
        own = written_columns(table, [name for name in names if name in table.names], output)
        write_table(_completed(model, filled, own, names, known, completion.kind, is_typed(output)), output)
    _report(screen, known, table, completion, output)


def _columns(table: TableFile, keep: Sequence[str], model: Any) -> list[str]:
    """Return the columns of the output: all by default, and class variables in any case."""
    targets = model.class_names_
    chosen = set(select_columns(table, keep, "--keep") if keep else table.names) | set(targets)
    return [name for name in table.names if name in chosen] + [name for name in targets if name not in table.names]


def _check_names(names: Sequence[str], kind: str, table: TableFile, model: Any) -> None:
    new = {"sample": [_DRAW], "proba": proba_names(model)}.get(kind, [])
    taken = [name for name in new if name in names]
    if taken:
        raise BadInput(
            f"{table.source} has a column {taken[0]!r}, and --kind {kind} adds another of this name: rename it, or "
            "leave it out with --keep."
        )


def _unknown_states(known: dict[str, KnownStates], table: TableFile, kind: str) -> list[str]:
    kept = "They stay as they are" if kind != "proba" else "Their probabilities are those of a missing state"
    answer = f"{kept}, and tell the model nothing about the other class variables."
    single = [
        f"class variable {name!r} has states that the model does not know, in {int(states.unknown.sum())} row(s): "
        f"{table.examples(table[name], states.unknown)}. {answer}"
        for name, states in known.items()
        if states.unknown.any()
    ]
    return single + unknown_alternatives(table, known, answer)


def _completed(
    model: Any,
    filled: Any,
    own: Any,
    names: Sequence[str],
    known: dict[str, KnownStates],
    kind: str,
    typed: bool,
) -> Any:
    """Return the output table."""
    pd = require("pandas")
    if kind == "proba":
        proba = np.hstack(filled if isinstance(filled, list) else [filled])
        empty = pd.DataFrame({name: np.full(len(own), None) for name in names if name not in own}, dtype=object)
        gaps = pd.concat([own, empty], axis=1)[list(names)]
        return pd.concat([gaps, pd.DataFrame(proba, columns=proba_names(model))], axis=1)
    tables = [_fill(own, as_pandas(one, model.class_names_), names, known, typed) for one in _listed(filled, kind)]
    if kind == "mode":
        return tables[0]
    stacked = pd.concat(tables, ignore_index=True)
    stacked.insert(0, _DRAW, np.repeat(np.arange(1, len(tables) + 1), len(own)))
    return stacked


def _listed(filled: Any, kind: str) -> list[Any]:
    return list(filled) if kind == "sample" else [filled]


def _fill(own: Any, states: Any, names: Sequence[str], known: dict[str, KnownStates], typed: bool) -> Any:
    """Return the columns of the table with states in place of the gaps of class variables."""
    pd = require("pandas")
    columns = {}
    for name in names:
        if name not in known:
            columns[name] = own[name]
            continue
        column = known[name]
        gaps = column.missing | column.alternatives
        new = states[name].astype(object).tolist()
        if name not in own:
            values = new
        elif not typed:
            rows = zip(own[name].tolist(), new, gaps, strict=True)
            values = [state if gone else cell for cell, state, gone in rows]
        else:
            rows = zip(column.values, new, gaps, strict=True)
            values = [state if gone else cell for cell, state, gone in rows]
            if (column.unknown | column.unknown_alternatives).any():  # a column of such a file has one type
                values = list(map(str, values))
        columns[name] = pd.Series(values, dtype=object).infer_objects()
    return pd.DataFrame(columns)


def _report(
    screen: Screen, known: dict[str, KnownStates], table: TableFile, completion: Completion, output: str
) -> None:
    absent = [name for name in known if name not in table.names]
    if absent:
        screen.note(
            "impute",
            f"{table.source} has no column {shorten(absent)}: "
            f"{'its states are' if len(absent) == 1 else 'their states are'} missing in all {table.n_rows} rows.",
        )
    gaps = {name: int((states.missing | states.alternatives).sum()) for name, states in known.items()}
    each = ", ".join(f"{name!r} {count}" for name, count in gaps.items() if count)
    cells = f"{sum(int(states.missing.sum()) for states in known.values())} missing cell(s)"
    several = sum(int(states.alternatives.sum()) for states in known.values())
    if several:
        cells += f" and {several} with alternatives"
    if not each:
        screen.note("impute", f"no state of a class variable is missing in {table.source}: nothing was filled.")
    elif completion.kind == "proba":
        screen.note("impute", f"{cells} got probabilities: {each}.")
    else:
        draws = f" in each of {completion.n_draws} completed tables" * (completion.kind == "sample")
        screen.note("impute", f"{cells} were filled{draws}: {each}.")
    if output != STANDARD_STREAM:
        screen.note("impute", f"the table was written to {output}.")
