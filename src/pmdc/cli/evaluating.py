"""``pmdc evaluate``: compare predictions with known outcomes."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

from pmdc.cli.alternatives import check_alternatives
from pmdc.cli.display import Screen, print_json
from pmdc.cli.matching import read_features, read_outcomes, require_columns
from pmdc.cli.models import load_model
from pmdc.cli.pictures import PICTURES, check_picture, save_figure
from pmdc.cli.running import work
from pmdc.cli.verdicts import show_losses, show_variables
from pmdc.evaluation.losses import LossReport, report_losses
from pmdc.evaluation.wording import ignored_cells
from pmdc.table_files import Format, read_table


def run(
    path: Path,
    source: str,
    format: Format,
    plot: Path | None,
    *,
    alternatives: str | None,
    drop_missing: bool,
    trust: bool,
    force: bool,
    quiet: bool,
    json: bool,
) -> None:
    screen = Screen(quiet, data=json)
    check_alternatives(alternatives, format.delimiter)
    if plot is not None:
        check_picture(plot, PICTURES, "--plot", overwrite=force)
    model = load_model(path, trust)
    table = read_table(source, format)
    require_columns(table, model.class_names_)
    for note in table.notes:
        screen.note("evaluate", note)
    used = read_features(table, model, drop_missing, needed=model.class_names_ if drop_missing else ())
    if used.note:
        screen.note("evaluate", used.note)
    Y, more = read_outcomes(used.table, model, alternatives)
    for warning in [*used.warnings, *more]:
        screen.warn("evaluate", warning)
    with screen.progress("evaluating"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        report = report_losses(model, used.X, Y)
    if report.cells_ignored:
        screen.note("evaluate", ignored_cells(report))
    if plot is not None:
        from pmdc.report import plot_calibration

        with work(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            save_figure(plot_calibration(model, used.X, Y), plot)
    if json:
        dropped = table.n_rows - used.table.n_rows
        print_json(
            {
                "model_file": str(path),
                "table": source,
                "rows_dropped": dropped,
                **report.as_json(),
            }
        )
    else:
        _show(screen, report, used.table.source)


def _show(screen: Screen, report: LossReport, source: str) -> None:
    screen.print(f"{source}: {report.n_rows} rows, mean ± standard error (lower is better)")
    screen.print()
    show_losses(screen, report)
    screen.print()
    show_variables(screen, report)
    screen.print()
    joint = report.joint_calibration_error
    whole = "unknown" if math.isnan(joint) else f"{joint:.3f}"
    screen.print(f"Calibration error {report.calibration_error:.3f}, of whole outcomes {whole}.")
