"""``pmdc check``: rank the known states of a table by how improbable they are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from rich.markup import escape

from pmdc._support.extras import require
from pmdc.cli.alternatives import check_alternatives
from pmdc.cli.display import Screen, make_table, print_json
from pmdc.cli.matching import KnownStates, read_features, read_states, require_columns, unknown_alternatives
from pmdc.cli.models import load_model
from pmdc.cli.predicting import check_table_output
from pmdc.cli.running import BadInput, work
from pmdc.table_files import STANDARD_STREAM, Format, TableFile, read_table, write_table


def run(
    path: Path,
    source: str,
    format: Format,
    output: str | None,
    *,
    most: int,
    folds: int,
    jobs: int,
    alternatives: str | None,
    trust: bool,
    force: bool,
    quiet: bool,
    json: bool,
) -> None:
    screen = Screen(quiet, data=json or output == STANDARD_STREAM)
    if output is not None:
        check_table_output(source, output, force)
    check_alternatives(alternatives, format.delimiter)
    if jobs == 0:
        raise BadInput("--jobs 0 must be a number of processes, or -1 for all cores.")
    if json and output == STANDARD_STREAM:
        raise BadInput("-o -: the standard output has the JSON document: give a file name, or leave out --json.")
    model = load_model(path, trust)
    table = read_table(source, format)
    for note in table.notes:
        screen.note("check", note)
    require_columns(table, model.class_names_)
    if folds > table.n_rows:
        raise BadInput(f"--folds {folds} is more than the {table.n_rows} rows of {table.source}: use fewer.")
    used = read_features(table, model, drop_missing=False)
    found = {name: read_states(table, model, name, alternatives, refitted=True) for name in model.class_names_}
    ignored = "They are taken as missing."
    for warning in [*used.warnings, *unknown_alternatives(table, found, ignored)]:
        screen.warn("check", warning)
    Y = _states(table, model, found)
    _prepare(model, jobs, found, table)
    with screen.progress("checking"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[XY], column", UserWarning)  # already shown, with line numbers
        cells = _ranked(model, used.X, Y, folds, table)
    if output is not None:
        with work():
            write_table(cells, output)
    if json:
        shown = cells.head(most).to_dict("records")
        print_json({"model_file": str(path), "table": source, "folds": folds, "cells": len(cells), "most": shown})
    elif output != STANDARD_STREAM:
        _show(screen, cells, most, table, folds)
    if output not in (None, STANDARD_STREAM):
        screen.note("check", f"all {len(cells)} known states were written to {output}.")


def _states(table: TableFile, model: Any, columns: dict[str, KnownStates]) -> Any:
    """Return the class variables of a table; their states need not be known to the model, which is fitted again."""
    pd, Y = require("pandas"), {}
    for k, (name, found) in enumerate(columns.items()):
        certain = found.certain()
        present = list(dict.fromkeys(certain[certain.notna()]))
        if len(present) < 2:
            what = f"only the state {str(present[0])!r}" if present else "no known state"
            raise BadInput(
                f"{table.source}, class variable {name!r} has {what}, so there is nothing to check: fill in others, or "
                "check a longer table."
            )
        if found.alternatives.any():
            Y[name] = found.present()
            continue
        states = [state for state in model.class_table_.states[k].tolist() if state in present]
        states += [state for state in present if state not in states]
        Y[name] = pd.Categorical(certain, categories=pd.Index(states, dtype=object))
    return pd.DataFrame(Y)


def _prepare(model: Any, jobs: int, columns: dict[str, KnownStates], table: TableFile) -> None:
    """Set the number of processes, and refuse gaps if the model was not to learn from them."""
    gaps = {name: int(found.certain().isna().sum()) for name, found in columns.items()}
    learns = getattr(model, "missing_labels", "error") != "error"
    if any(gaps.values()) and not learns:
        name = max(gaps, key=lambda name: gaps[name])
        what = "missing value(s) or alternatives" if columns[name].alternatives.any() else "missing value(s)"
        raise BadInput(
            f"{table.source}, class variable {name!r} has {gaps[name]} {what}, and models with the settings of this "
            "one do not learn from such rows: fill them in, or fit the model with --missing-labels em."
        )
    model.set_params(n_jobs=jobs)


def _ranked(model: Any, X: Any, Y: Any, folds: int, table: TableFile) -> Any:
    """Return the known cells as a table, the most improbable first."""
    found = model.suspicious_cells(X, Y, cv=folds)
    written = {name: [str(cell) for cell in table[name].as_written()] for name in Y}
    spelling = {name: dict(zip(Y[name], written[name], strict=True)) for name in Y}
    expected = zip(found.names, found.expected, strict=True)  # may be a state that only alternatives name
    return require("pandas").DataFrame(
        {
            table.word: table.places[found.rows],
            "class variable": found.names.astype(str),
            "state": [written[name][row] for name, row in zip(found.names, found.rows, strict=True)],
            "expected": [spelling[name].get(state, str(state)) for name, state in expected],
            "probability": found.prob,
        }
    )


def _show(screen: Screen, cells: Any, most: int, table: TableFile, folds: int) -> None:
    shown = cells.head(most)
    which = f"the {len(shown)} most improbable of {len(cells)}" if len(shown) < len(cells) else f"all {len(cells)}"
    screen.print(f"{table.source}: {which} known states of class variables")
    screen.print()
    printed = make_table(*cells.columns, right=(table.word, "probability"))
    for place, name, state, expected, prob in shown.itertuples(index=False):
        printed.add_row(str(place), escape(name), escape(state), escape(expected), f"{prob:.2g}")
    screen.out.print(printed)
    screen.print()
    screen.print(
        "Probability: of the state in the table, given the features and all other known class variables of its row, by "
        f"a model that has not seen the row (the settings of the model, fitted {folds} times, each time without one of "
        f"{folds} parts of the table). Expected: the most probable state."
    )
    screen.print("The first ones deserve a look. They need not be wrong: rare cases are improbable, too.")
