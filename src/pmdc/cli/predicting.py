"""``pmdc predict``: a model, a table, and predictions for its rows."""

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
from pmdc.cli.kinds import chosen
from pmdc.cli.matching import Matched, read_features, read_given
from pmdc.cli.models import load_model
from pmdc.cli.running import BadInput, work
from pmdc.evaluation.held_out import row_batches, take_rows
from pmdc.table_files import EXCEL, STANDARD_STREAM, Format, TableFile, check_output, read_table, write_table

_OF_TOP = ("row", "rank", "probability")
"""Columns beside the outcomes that ``--top`` lists."""


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
    if output != STANDARD_STREAM:
        check_output(output, overwrite=force)
        if (
            source != STANDARD_STREAM
            and Path(source).exists()
            and Path(output).exists()
            and Path(output).samefile(source)
        ):
            raise BadInput(f"-o {output} is the table itself: take another name.")
    model = load_model(path, trust)
    _check(model, loss, proba, top)
    table = read_table(source, format)
    for note in table.notes:
        screen.note("predict", note)
    kept = _kept(table, keep, model)
    used = read_features(table, model, drop_missing)
    known = read_given(given, model, used.table)
    _tell(screen, used, model, given)
    with screen.progress("predicting"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # told already, with lines
        if top is None:
            frame = _predictions(model, used.X, used.table.n_rows, loss, known, proba)
            frame = _beside(used.table, kept, frame, output, np.arange(used.table.n_rows))
        else:
            frame = _tops(model, used, known, top)
            frame = _beside(used.table, kept, frame, output, np.repeat(np.arange(used.table.n_rows), top))
        write_table(frame, output)
    if output != STANDARD_STREAM:
        screen.note("predict", f"{used.table.n_rows} rows are predicted in {output}.")


def _check(model: Any, loss: str | None, proba: bool, top: int | None) -> None:
    try:
        if loss is not None:
            model._check_loss(loss)
            if loss not in model._own_decisions:
                from pmdc.decisions.decide import resolve

                resolve(loss).check(model.class_table_)
    except (ValueError, TypeError) as error:
        raise BadInput(f"--loss: {error}") from None
    if top is not None:
        taken = [name for name in model.class_names_ if name in _OF_TOP]
        if taken:
            raise BadInput(f"--top: a column of its answer has the name of the class variable {taken[0]!r}.")
        if proba or loss is not None:
            raise BadInput("--top lists outcomes: it goes neither with --proba nor with --loss.")
        outcomes = math.prod(model.class_table_.sizes)
        if top > outcomes:
            raise BadInput(f"--top {top}: there are {outcomes} outcomes; ask for as many at the most.")


def _kept(table: TableFile, keep: Sequence[str], model: Any) -> list[str]:
    predicted = model.class_names_
    if list(keep) == ["*"]:
        return [name for name in table.names if name not in predicted]
    names = chosen(table, keep, "--keep")
    both = [name for name in names if name in predicted]
    if both:
        raise BadInput(f"--keep {both[0]!r}: the prediction has this name. Rename the column in {table.source}.")
    return names


def _tell(screen: Screen, used: Matched, model: Any, given: Sequence[str]) -> None:
    table = used.table
    if used.left_out:
        screen.note("predict", used.left_out)
    taken = {text.partition("=@")[2] for text in given}
    there = [name for name in model.class_names_ if name in table.names and name not in taken]
    if there:
        screen.note("predict", f"{table.source} has the class variables {shorten(there)} already; they are not used.")
    for warning in used.warnings:
        screen.warn("predict", warning)


def _predictions(model: Any, X: Any, n_rows: int, loss: str | None, known: dict[str, Any], proba: bool) -> Any:
    pd = require("pandas")
    names = model.class_names_
    wanted = model.loss if loss is None else loss
    parts, chances = [], []
    for block in [slice(0, n_rows)] if _whole_batch(model, wanted) else row_batches(n_rows):
        rows, given = take_rows(X, block), _given_rows(known, block)
        parts.append(_as_pandas(model.predict(rows, loss=loss, given=given), names))
        if proba:
            answer = model.predict_proba(rows, given=given)
            chances.append(np.hstack(answer if isinstance(answer, list) else [answer]))
    frame = pd.concat(parts, ignore_index=True)
    if proba:
        columns = [
            f"P({name}={state})"
            for name, states in zip(names, model.class_table_.states, strict=True)
            for state in states.tolist()
        ]
        frame = pd.concat([frame, pd.DataFrame(np.vstack(chances), columns=columns)], axis=1)
    return frame


def _whole_batch(model: Any, loss: Any) -> bool:
    from pmdc.decisions.decide import resolve

    return not (isinstance(loss, str) and loss in model._own_decisions) and resolve(loss).whole_batch


def _given_rows(known: dict[str, Any], block: slice) -> dict[str, Any] | None:
    if not known:
        return None
    return {name: value[block] if isinstance(value, list) else value for name, value in known.items()}


def _as_pandas(predicted: Any, names: Sequence[str]) -> Any:
    pd = require("pandas")
    frame = nw.from_native(predicted, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        native = frame.to_pandas().reset_index(drop=True)
        return native.set_axis(list(names), axis=1).astype(dict.fromkeys(names, object)).infer_objects()
    return pd.DataFrame(np.asarray(predicted).reshape(len(predicted), -1), columns=list(names)).infer_objects()


def _tops(model: Any, used: Matched, known: dict[str, Any], k: int) -> Any:
    """The k most probable outcomes of each row, one below the other."""
    pd = require("pandas")
    outcomes, chances = [], []
    for block in row_batches(len(used.rows)):
        found = model.predict_joint(take_rows(used.X, block), given=_given_rows(known, block)).top(k)
        outcomes.append(found.outcomes.reshape(-1, found.outcomes.shape[-1]))
        chances.append(np.exp(found.log_prob).reshape(-1))
    frame = pd.DataFrame(np.concatenate(outcomes), columns=model.class_names_).infer_objects()
    row, rank, probability = _OF_TOP
    frame.insert(0, rank, np.tile(np.arange(1, k + 1), len(used.rows)))
    frame.insert(0, row, np.repeat(used.rows + 1, k))
    frame[probability] = np.concatenate(chances)
    return frame


def _beside(table: TableFile, kept: Sequence[str], frame: Any, output: str, rows: Any) -> Any:
    """Columns of the table before the predictions: 1.10 stays 1.10 in a text file, and is a number in others."""
    pd = require("pandas")
    if not kept:
        return frame
    typed = output.lower().endswith((".parquet", *EXCEL))
    columns = {name: table[name].own_type() if typed else table[name].as_written() for name in kept}
    own = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()}).infer_objects()
    double = [name for name in kept if name in frame.columns]
    if double:
        raise BadInput(f"--keep {double[0]!r}: there is another column of this name among the predictions.")
    return pd.concat([own.iloc[rows].reset_index(drop=True), frame], axis=1)
