"""``pmdc predict``: predict the class variables for the rows of a table."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from pmdc._support.checks import shorten
from pmdc._support.extras import require
from pmdc.cli.display import Screen
from pmdc.cli.kinds import select_columns
from pmdc.cli.matching import Matched, read_features, read_given
from pmdc.cli.models import load_model
from pmdc.cli.running import BadInput, work
from pmdc.evaluation.held_out import row_batches, take_rows
from pmdc.table_files import EXCEL, STANDARD_STREAM, Format, TableFile, check_output, read_table, write_table

_TOP_COLUMNS = ("row", "rank", "probability")
"""The columns of ``--top`` besides the outcome."""


def run(
    path: Path,
    source: str,
    format: Format,
    output: str,
    *,
    loss: str | None,
    given: Sequence[str],
    proba: bool,
    top: int | None,
    keep: Sequence[str],
    drop_missing: bool,
    trust: bool,
    force: bool,
    quiet: bool,
) -> None:
    screen = Screen(quiet, data=True)
    check_table_output(source, output, force)
    model = load_model(path, trust)
    _check(model, loss, proba, top)
    table = read_table(source, format)
    for note in table.notes:
        screen.note("predict", note)
    kept = _kept(table, keep, model)
    used = read_features(table, model, drop_missing)
    known = read_given(given, model, used.table)
    _show_notes(screen, used, model, given)
    with screen.progress("predicting"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        if top is None:
            frame = _predictions(model, used.X, used.table.n_rows, loss, known, proba)
            frame = _beside(used.table, kept, frame, output, np.arange(used.table.n_rows))
        else:
            frame = _top_outcomes(model, used, known, top)
            frame = _beside(used.table, kept, frame, output, np.repeat(np.arange(used.table.n_rows), top))
        write_table(frame, output)
    if output != STANDARD_STREAM:
        screen.note("predict", f"predictions for {used.table.n_rows} rows were written to {output}.")


def check_table_output(source: str, output: str, force: bool) -> None:
    """Check, before any work, that the output can be written and is not the table itself."""
    if output != STANDARD_STREAM:
        check_output(output, overwrite=force)
        paths = Path(source), Path(output)
        if source != STANDARD_STREAM and all(path.exists() for path in paths) and paths[0].samefile(paths[1]):
            raise BadInput(f"-o {output} is the table itself: use another name.")


def _check(model: Any, loss: str | None, proba: bool, top: int | None) -> None:
    try:
        if loss is not None:
            model._check_loss(loss)
            if loss not in model._own_decisions:
                from pmdc.decisions.decide import resolve

                resolve(loss).check(model.class_table_)
    except (ValueError, TypeError) as error:
        message = str(error).replace(", or give a loss object or a function (y_true, y_pred)", "")
        raise BadInput(f"--loss: {message}") from None
    if top is not None:
        taken = [name for name in model.class_names_ if name in _TOP_COLUMNS]
        if taken:
            raise BadInput(f"--top: the class variable {taken[0]!r} has the same name as an output column of --top.")
        if proba or loss is not None:
            raise BadInput("--top cannot be combined with --proba or --loss.")
        outcomes = math.prod(model.class_table_.sizes)
        if top > outcomes:
            raise BadInput(f"--top {top}: there are only {outcomes} outcomes.")


def _kept(table: TableFile, keep: Sequence[str], model: Any) -> list[str]:
    predicted = model.class_names_
    if list(keep) == ["*"]:
        return [name for name in table.names if name not in predicted]
    names = select_columns(table, keep, "--keep")
    for name in names:
        if name in predicted:
            raise BadInput(f"--keep {name!r}: the prediction has this name. Rename the column in {table.source}.")
    return names


def _show_notes(screen: Screen, used: Matched, model: Any, given: Sequence[str]) -> None:
    table = used.table
    if used.note:
        screen.note("predict", used.note)
    evidence = {text.partition("=@")[2] for text in given}
    unused = [name for name in model.class_names_ if name in table.names and name not in evidence]
    if unused:
        screen.note("predict", f"the class variables {shorten(unused)} in {table.source} are not used.")
    for warning in used.warnings:
        screen.warn("predict", warning)


def _predictions(model: Any, X: Any, n_rows: int, loss: str | None, known: dict[str, Any], proba: bool) -> Any:
    pd = require("pandas")
    names = model.class_names_
    decision = model.loss if loss is None else loss
    parts, probabilities = [], []
    for block in [slice(0, n_rows)] if _whole_batch(model, decision) else row_batches(n_rows):
        rows, given = take_rows(X, block), _given_rows(known, block)
        parts.append(as_pandas(model.predict(rows, loss=loss, given=given), names))
        if proba:
            answer = model.predict_proba(rows, given=given)
            probabilities.append(np.hstack(answer if isinstance(answer, list) else [answer]))
    frame = pd.concat(parts, ignore_index=True)
    if proba:
        frame = pd.concat([frame, pd.DataFrame(np.vstack(probabilities), columns=proba_names(model))], axis=1)
    return frame


def proba_names(model: Any) -> list[str]:
    """Return the names of the columns of probabilities."""
    states = zip(model.class_names_, model.class_table_.states, strict=True)
    return [f"P({name}={state})" for name, own in states for state in own.tolist()]


def _whole_batch(model: Any, loss: Any) -> bool:
    from pmdc.decisions.decide import resolve

    return not (isinstance(loss, str) and loss in model._own_decisions) and resolve(loss).whole_batch


def _given_rows(known: dict[str, Any], block: slice) -> dict[str, Any] | None:
    if not known:
        return None
    return {name: value[block] if isinstance(value, list) else value for name, value in known.items()}


def as_pandas(predicted: Any, names: Sequence[str]) -> Any:
    """Return predicted states as a pandas DataFrame."""
    pd = require("pandas")
    frame = nw.from_native(predicted, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        native = frame.to_pandas().reset_index(drop=True)
        return native.set_axis(list(names), axis=1).astype(dict.fromkeys(names, object)).infer_objects()
    return pd.DataFrame(np.asarray(predicted).reshape(len(predicted), -1), columns=list(names)).infer_objects()


def _top_outcomes(model: Any, used: Matched, known: dict[str, Any], k: int) -> Any:
    """Return the k most probable outcomes of each row, one per line."""
    pd = require("pandas")
    outcomes, probabilities = [], []
    for block in row_batches(len(used.rows)):
        found = model.predict_joint(take_rows(used.X, block), given=_given_rows(known, block)).top(k)
        outcomes.append(found.outcomes.reshape(-1, found.outcomes.shape[-1]))
        probabilities.append(np.exp(found.log_prob).reshape(-1))
    frame = pd.DataFrame(np.concatenate(outcomes), columns=model.class_names_).infer_objects()
    row, rank, probability = _TOP_COLUMNS
    frame.insert(0, rank, np.tile(np.arange(1, k + 1), len(used.rows)))
    frame.insert(0, row, np.repeat(used.rows + 1, k))
    frame[probability] = np.concatenate(probabilities)
    return frame


def is_typed(output: str) -> bool:
    """Return whether cells of an output file have types, as they have not in text files."""
    return output.lower().endswith((".parquet", *EXCEL))


def written_columns(table: TableFile, names: Sequence[str], output: str) -> Any:
    """Return columns to copy to a file; 1.10 stays 1.10 in a text file and is a number in others."""
    pd = require("pandas")
    typed = is_typed(output)
    columns = {name: table[name].own_type() if typed else table[name].as_written() for name in names}
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()}).infer_objects()


def _beside(table: TableFile, kept: Sequence[str], frame: Any, output: str, rows: Any) -> Any:
    """Put columns of the table before the predictions."""
    if not kept:
        return frame
    duplicates = [name for name in kept if name in frame.columns]
    if duplicates:
        raise BadInput(f"--keep {duplicates[0]!r}: the output has another column of this name.")
    own = written_columns(table, kept, output)
    return require("pandas").concat([own.iloc[rows].reset_index(drop=True), frame], axis=1)
