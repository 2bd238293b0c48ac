"""``pmdc fit``: learn a model from a table and write it to a file."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.progress import phases_of, tell_phase
from pmdc.cli.alternatives import check_alternatives
from pmdc.cli.display import Screen, print_json, show_hints, show_kinds
from pmdc.cli.findings import show_findings, structure_json
from pmdc.cli.gaps import gap_hints
from pmdc.cli.kinds import Choices, Training, read_training, select_columns
from pmdc.cli.running import BadInput, work
from pmdc.cli.targets import certain_states, has_alternatives, unlabelled_rows
from pmdc.table_files import STANDARD_STREAM, SUFFIXES, Format, TableFile, check_output, read_table

if TYPE_CHECKING:
    from pmdc._support.arrays import Codes
    from pmdc.evaluation.losses import LossReport


@dataclass(frozen=True)
class Settings:
    """The options of the command."""

    columns: Choices
    estimator: str
    criterion: str
    max_parents: int | None
    max_candidates: int | None
    time_limit: float | None
    test_size: float | None
    confidence: int | None
    seed: int
    jobs: int
    max_treewidth: int | None = None
    max_clique_cells: int | None = None
    tiers: Sequence[Sequence[str]] = ()

    def with_tiers(self, table: TableFile, classes: Collection[str]) -> Settings:
        """Return the same with the names of the class columns of each tier, after checks."""
        tiers = [select_columns(table, texts, "--tier") for texts in self.tiers]
        for name in chain.from_iterable(tiers):
            if name not in classes:
                raise BadInput(f"--tier names {name!r}, which is not one of --classes: leave it out, or add it there.")
        return replace(self, tiers=tiers)


def run(source: str, format: Format, settings: Settings, output: Path, *, force: bool, quiet: bool, json: bool) -> None:
    import pmdc

    screen = Screen(quiet, data=json)
    _check(source, settings, output, force)
    check_alternatives(settings.columns.alternatives, format.delimiter, settings.columns.missing_labels)
    table = read_table(source, format)
    for note in table.notes:
        screen.note("fit", note)
    training = read_training(table, settings.columns)
    settings = settings.with_tiers(table, training.Y.columns)
    training = replace(training, hints=[*training.hints, *gap_hints(training, settings.estimator)])
    if training.note:
        screen.note("fit", training.note)
    split = None if settings.test_size is None else _split(training, settings)
    show_kinds(screen, training.kinds, len(training.X), table.source)
    show_hints(screen, training.hints)
    report = None
    if split is not None:
        report = _test(training, *split, settings, screen)
    with screen.progress("fitting") as bar, work():
        model = _fit(training.X, training.Y, settings, bar)
        model.feature_table_.date_orders = training.date_orders
    with work():
        pmdc.save(model, output)  # before resampling, which may fail
    if settings.confidence is not None:
        with screen.progress("resampling"), work():
            _resample(model, training, settings)
            pmdc.save(model, output)
    if settings.estimator in ("forest", "boosting"):
        screen.note("fit", f"{output} holds trees: the other commands need --trust to read it.")
    if json:
        print_json(_document(model, training, report, output, source))
    else:
        _report(screen, model, report, output, training)


def _check(source: str, settings: Settings, output: Path, force: bool) -> None:
    """Check what can be checked before the table is read."""
    if str(output) == STANDARD_STREAM:
        raise BadInput("-o -: a model cannot be written to the standard output. Give a file name, such as model.skops.")
    if source != STANDARD_STREAM and Path(source).exists() and output.exists() and output.samefile(source):
        raise BadInput(f"-o {output} is the table itself: use another name.")
    if output.name.lower().endswith(SUFFIXES):
        raise BadInput(f"-o {output} is the name of a table: use another extension for a model, such as model.skops.")
    check_output(output, overwrite=force, suffixes=())
    if output.exists() and not output.is_file():
        raise BadInput(f"-o {output} is not a regular file: give another name, such as model.skops.")
    criterion, estimator = settings.criterion, settings.estimator
    able = {"loo": ["auto", "naive-bayes"], "bic-full": ["auto", "logistic", "naive-bayes"]}
    possible = able.get(criterion, [estimator])
    if estimator not in possible:
        works = f"--criterion {criterion} works only with --estimator {' or '.join(possible)}"
        raise BadInput(f"{works}: use --criterion cv.")
    if settings.test_size is not None and not 0 < settings.test_size < 1:
        raise BadInput(f"--test-size {settings.test_size:g} must be a fraction between 0 and 1, such as 0.2.")
    columns = settings.columns
    if columns.use_unlabelled and (columns.drop_missing or columns.missing_labels != "em"):
        other = "--drop-missing" if columns.drop_missing else f"--missing-labels {columns.missing_labels}"
        raise BadInput(f"--use-unlabelled has no effect with {other}, which leaves such rows out: remove one of them.")
    if settings.time_limit == 0:
        raise BadInput("--time-limit 0 must be positive; leave it out for no limit.")
    if settings.jobs == 0:
        raise BadInput("--jobs 0 must be a number of processes, or -1 for all cores.")


def _model(settings: Settings, bar: Any) -> Any:
    from pmdc.classifier import GBNC

    estimator = None
    if settings.estimator != "auto":
        from pmdc.evaluation.methods import ESTIMATORS

        estimator = ESTIMATORS[settings.estimator]()
    return GBNC(
        estimator,
        criterion=settings.criterion,
        max_parents=settings.max_parents,
        max_candidates=settings.max_candidates,
        max_treewidth=settings.max_treewidth,
        max_clique_cells=settings.max_clique_cells,
        tiers=settings.tiers or None,
        missing_labels=settings.columns.missing_labels,
        use_unlabelled=settings.columns.use_unlabelled,
        time_budget=_time_budget(settings),
        callback=None if bar is None else bar.searching,
        n_jobs=settings.jobs,
        random_state=settings.seed,
    )


def _time_budget(settings: Settings) -> float | None:
    """Return the seconds of one fit: a test takes two more, and each resample one."""
    n_fits = 1 + (0 if settings.test_size is None else 2) + (settings.confidence or 0)
    return None if settings.time_limit is None else settings.time_limit / n_fits


def _fit(X: Any, Y: Any, settings: Settings, bar: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[XY], column", UserWarning)  # already among the hints
        model = _model(settings, bar).fit(X, Y)
    return model.set_params(callback=None, n_jobs=None)


def _resample(model: Any, training: Training, settings: Settings) -> None:
    """Store with the model how often each arc appears in graphs of resampled rows."""
    from pmdc.report import resample_graph

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # those of the fit on all rows were shown
        try:
            consensus = resample_graph(
                _model(settings, None), training.X, training.Y, settings.confidence or 1, random_state=settings.seed
            )
        except ValueError as error:
            raise BadInput(
                f"--confidence {settings.confidence}: a resample of 63% of the {len(training.X)} rows cannot be "
                f"learned from: {error} The model itself was written. Leave --confidence out, or add rows."
            ) from error
    model.consensus_ = consensus
    for parent, child, data in model.graph_.edges(data=True):
        known = consensus.has_edge(parent, child)
        data["confidence"] = consensus.edges[parent, child]["confidence"] if known else 0.0


def _split(training: Training, settings: Settings) -> tuple[Codes, Codes]:
    """Return training and test rows, stratified by all class variables, where missing is a state of its own.

    Rows without any certainly known state cannot be tested, and are training rows.
    """
    from pmdc.model_selection import MultiStratifiedKFold

    usable = np.flatnonzero(~unlabelled_rows(certain_states(training.Y)))
    n_rows = len(usable)
    share = Fraction(settings.test_size or 0).limit_denominator(min(100, n_rows))
    if not 0 < share < 1:
        raise BadInput(
            f"--test-size {settings.test_size:g} is too small or too large for {n_rows} rows: use a fraction between "
            f"{max(0.01, 1 / n_rows):.2g} and {1 - max(0.01, 1 / n_rows):.2g}, such as 0.2."
        )
    folds = MultiStratifiedKFold(share.denominator, shuffle=True, random_state=settings.seed)
    strata = training.Y.iloc[usable].apply(lambda states: states.astype("category").cat.codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # small folds are joined to the test rows
        tests = [usable[test] for _, test in folds.split(strata, strata)]
    test = np.sort(np.concatenate(tests[: share.numerator]))
    return np.setdiff1d(np.arange(len(training.X)), test), test


def _without_arcs(settings: Settings, Y: Any) -> Settings:
    """Return the settings of independent models, each learned from the rows in which its class variable is known.

    Completed rows would tell such a model nothing, except for alternatives.
    """
    columns = settings.columns
    if columns.missing_labels == "em" and not has_alternatives(Y):
        columns = replace(columns, missing_labels="available", use_unlabelled=False)
    return replace(settings, max_parents=0, columns=columns)


def _test(training: Training, train: Codes, test: Codes, settings: Settings, screen: Screen) -> LossReport:
    X, Y = training.X.iloc[train], training.Y.iloc[train]
    with screen.progress("fitting for the test") as bar, work():
        from pmdc.evaluation.losses import has_class_arcs, report_losses

        try:
            with phases_of("test"):
                model = _fit(X, Y, settings, bar)
        except ValueError as error:
            if len(train) > 20:  # enough rows for other causes
                raise
            few = f"--test-size {settings.test_size:g} leaves {len(train)} rows to learn from, too few"
            raise BadInput(f"{few}: use a smaller fraction or more rows.") from error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # those of the first fit were shown; rare values in the test
            independent = None
            if has_class_arcs(model):
                with phases_of("test without arcs"):
                    independent = _fit(X, Y, _without_arcs(settings, Y), bar)
            tell_phase("testing")
            return report_losses(model, training.X.iloc[test], certain_states(training.Y.iloc[test]), independent)


def _report(screen: Screen, model: Any, report: LossReport | None, output: Path, training: Training) -> None:
    from pmdc.cli.verdicts import show_losses
    from pmdc.evaluation.wording import ignored_cells

    n_rows = len(training.X)
    show_findings(screen, model)
    screen.print()
    if report is not None:
        screen.print(f"Losses on {report.n_rows} held-out rows, learned from the other {n_rows - report.n_rows}:")
        screen.print()
        if report.cells_ignored:
            screen.print(ignored_cells(report))
            screen.print()
        show_losses(screen, report)
        screen.print()
    used = model.n_rows_used_
    rows = f"all {n_rows} rows" if used == n_rows else f"the {used} rows with a known state"
    screen.print(f"The model, fitted on {rows}, was written to {output}.")


def _document(model: Any, training: Training, report: LossReport | None, output: Path, source: str) -> dict[str, Any]:
    from pmdc import __version__

    columns = [
        {
            "name": kind.name,
            "kind": kind.role,
            **({"states": kind.states} if kind.states else {}),
            **({"missing": kind.missing} if kind.missing else {}),
            **({"alternatives": kind.alternatives} if kind.alternatives else {}),
        }
        for kind in training.kinds
    ]
    return {
        "pmdc": __version__,
        "table": source,
        "rows": len(training.X),
        "rows_dropped": training.dropped,
        "columns": columns,
        "hints": training.hints,
        "structure": structure_json(model),
        "test": None if report is None else report.as_json(),
        "model": str(output),
    }
