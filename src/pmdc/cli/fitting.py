"""``pmdc fit``: from a table to a model file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.progress import tell_phase
from pmdc.cli.display import Screen, print_json, show_graph, show_kinds, show_losses, structure_json, structure_words
from pmdc.cli.kinds import Training, read_training
from pmdc.cli.losses import LossReport, report_losses
from pmdc.cli.models import save_model
from pmdc.cli.running import BadInput, work
from pmdc.table_files import STANDARD_STREAM, Format, check_output, read_table

if TYPE_CHECKING:
    from pmdc._support.arrays import Codes


@dataclass(frozen=True)
class Settings:
    """What the user wants to be learned, and how."""

    classes: list[str]
    discrete: list[str]
    ignore: list[str]
    drop_missing: bool
    estimator: str
    criterion: str
    max_parents: int
    max_candidates: int | None
    time_limit: float | None
    test_size: float | None
    seed: int
    jobs: int


def run(source: str, format: Format, settings: Settings, output: Path, *, force: bool, quiet: bool, json: bool) -> None:
    screen = Screen(quiet, data=json)
    _check(source, settings, output, force)
    table = read_table(source, format)
    for note in table.notes:
        screen.note("fit", note)
    training = read_training(table, settings.classes, settings.discrete, settings.ignore, settings.drop_missing)
    if training.left_out:
        screen.note("fit", training.left_out)
    split = None if settings.test_size is None else _split(training, settings)
    show_kinds(screen, training.kinds, len(training.X), table.source)
    report = None
    if split is not None:
        report = _test(training, *split, settings, screen)
    with screen.progress("fitting") as bar, work():
        model = _fit(training.X, training.Y, settings, bar)
    with work():
        save_model(model, output)
    if settings.estimator in ("forest", "boosting"):
        screen.note("fit", f"{output} holds trees: the other commands read it with --trust only.")
    if json:
        print_json(_document(model, training, report, output, source))
    else:
        _report(screen, model, report, output, len(training.X))


def _check(source: str, settings: Settings, output: Path, force: bool) -> None:
    """Everything that can be wrong before the table is read."""
    if str(output) == STANDARD_STREAM:
        raise BadInput("-o -: a model cannot be written to the standard output. Name a file, such as model.skops.")
    check_output(output, overwrite=force, suffixes=())
    if output.exists() and not output.is_file():
        raise BadInput(f"-o {output} is no regular file: name one, such as model.skops.")
    if source != STANDARD_STREAM and Path(source).exists() and output.exists() and output.samefile(source):
        raise BadInput(f"-o {output} is the table itself: take another name.")
    if settings.test_size is not None and not 0 < settings.test_size < 1:
        raise BadInput(f"--test-size {settings.test_size:g} must be a share of the rows between 0 and 1, such as 0.2.")
    if settings.time_limit == 0:
        raise BadInput("--time-limit 0: give more seconds than that, or no limit.")
    if settings.jobs == 0:
        raise BadInput("--jobs 0: give a number of processes, or -1 for all cores.")


def _model(settings: Settings, bar: Any) -> Any:
    from pmdc.classifier import GBNC

    estimator = None
    if settings.estimator != "logistic":
        from pmdc.evaluation.methods import ESTIMATORS

        estimator = ESTIMATORS[settings.estimator]()
    return GBNC(
        estimator,
        criterion=settings.criterion,
        max_parents=settings.max_parents,
        max_candidates=settings.max_candidates,
        time_limit=settings.time_limit,
        callback=None if bar is None else bar.searching,
        n_jobs=settings.jobs,
        random_state=settings.seed,
    )


def _fit(X: Any, Y: Any, settings: Settings, bar: Any) -> Any:
    model = _model(settings, bar).fit(X, Y)
    return model.set_params(callback=None, n_jobs=None)


def _split(training: Training, settings: Settings) -> tuple[Codes, Codes]:
    """Rows to learn from and rows to test on, alike in all class variables."""
    from pmdc.model_selection import MultiStratifiedKFold

    n_rows = len(training.X)
    share = Fraction(settings.test_size or 0).limit_denominator(min(100, n_rows))
    if not 0 < share < 1:
        raise BadInput(
            f"--test-size {settings.test_size:g} is too little or too much of {n_rows} rows: give a share between "
            f"{max(0.01, 1 / n_rows):.2g} and {1 - max(0.01, 1 / n_rows):.2g}, such as 0.2."
        )
    folds = MultiStratifiedKFold(share.denominator, shuffle=True, random_state=settings.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a fold is a small part of the rows held out
        tests = [test for _, test in folds.split(training.X, training.Y)]
    test = np.sort(np.concatenate(tests[: share.numerator]))
    return np.setdiff1d(np.arange(n_rows), test), test


def _test(training: Training, train: Codes, test: Codes, settings: Settings, screen: Screen) -> LossReport:
    with screen.progress("fitting for the test") as bar, work():
        model = _fit(training.X.iloc[train], training.Y.iloc[train], settings, bar)
        tell_phase("testing")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X, column", UserWarning)  # rare values are met by chance
            known = model.class_table_.encode(training.Y.iloc[train])
            return report_losses(model, training.X.iloc[test], training.Y.iloc[test], known)


def _report(screen: Screen, model: Any, report: LossReport | None, output: Path, n_rows: int) -> None:
    if report is not None:
        screen.say(f"Test on {report.n_rows} rows held out, learned from the other {n_rows - report.n_rows}:")
        screen.say()
        show_losses(screen, report)
        screen.say()
    screen.say(f"The graph, {structure_words(model)}:")
    screen.say()
    show_graph(screen, model)
    screen.say()
    screen.say(f"The model, fitted on all {n_rows} rows, is in {output}.")


def _document(model: Any, training: Training, report: LossReport | None, output: Path, source: str) -> dict[str, Any]:
    from pmdc import __version__

    columns = [
        {"name": kind.name, "kind": kind.role, **({"states": kind.states} if kind.states else {})}
        for kind in training.kinds
    ]
    return {
        "pmdc": __version__,
        "table": source,
        "rows": len(training.X),
        "rows_dropped": training.dropped,
        "columns": columns,
        "structure": structure_json(model),
        "test": None if report is None else report.as_json(),
        "model": str(output),
    }
