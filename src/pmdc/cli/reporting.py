"""``pmdc report``: write a report about a model as an HTML file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

from pmdc._support.extras import require
from pmdc.cli.alternatives import check_alternatives
from pmdc.cli.display import Screen
from pmdc.cli.matching import read_features, read_outcomes, require_columns
from pmdc.cli.models import load_model
from pmdc.cli.running import BadInput, work
from pmdc.table_files import Format, check_output, read_table


class Wanted(NamedTuple):
    """What is to be written: the options of the command."""

    output: Path
    title: str | None
    card: bool
    n_rows: int
    seed: int


def run(
    path: Path,
    source: str,
    format: Format,
    wanted: Wanted,
    *,
    alternatives: str | None,
    drop_missing: bool,
    trust: bool,
    force: bool,
    quiet: bool,
) -> None:
    from pmdc.report.page.document import SUFFIXES, Options, write_page

    screen = Screen(quiet)
    card = wanted.output.with_suffix(".md") if wanted.card else None
    check_output(wanted.output, overwrite=force, suffixes=SUFFIXES)
    if card is not None:
        _check_card(card, force)
    require("matplotlib")
    check_alternatives(alternatives, format.delimiter)
    model = load_model(path, trust)
    table = read_table(source, format)
    require_columns(table, model.class_names_)
    for message in table.notes:
        screen.note("report", message)
    used = read_features(table, model, drop_missing, needed=model.class_names_ if drop_missing else ())
    if used.note:
        screen.note("report", used.note)
    Y, more = read_outcomes(used.table, model, alternatives)
    for warning in [*used.warnings, *more]:
        screen.warn("report", warning)
    options = Options(wanted.title, card, wanted.n_rows, wanted.seed)
    with screen.progress("predicting"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        name = Path(table.source).name
        found = write_page(model, used.X, Y, wanted.output, options, (name, table.word, used.table.places))
    if found.like_training:
        screen.warn(
            "report",
            f"the states in {table.source} occur exactly as often as in the training rows. If they are the same rows, "
            "all losses in the report are too optimistic: use rows that were kept apart.",
        )
    beside = f", a model card to {card}" if card is not None else ""
    screen.note("report", f"the report was written to {wanted.output}{beside}.")


def _check_card(card: Path, force: bool) -> None:
    if card.exists() and not force:
        raise BadInput(
            f"{card}, the model card beside the report, exists already: leave it out with --no-card, use another name "
            "for the report, or overwrite both with --force."
        )
    check_output(card, overwrite=force, suffixes=())
