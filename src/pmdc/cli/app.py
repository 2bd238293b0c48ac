"""The commands and their options. What a command needs is imported when it is called, so that help is fast."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pmdc.cli import serving_app
from pmdc.cli.options import (
    READING,
    Alternatives,
    Decimal,
    Delimiter,
    DropMissing,
    Encoding,
    Force,
    Given,
    Json,
    Missing,
    Model,
    Quiet,
    Sheet,
    Table,
    Trust,
    read_format,
    split_names,
)

_EPILOG = """\b
Example, from a table to predictions, filled gaps and doubtful cells:
  pmdc fit survey.csv --classes vote,party -o survey.skops
  pmdc show survey.skops
  pmdc report survey.skops held_out.csv -o report.html
  pmdc explore survey.skops survey.csv
  pmdc predict survey.skops new.csv --loss subset --proba -o predicted.csv
  pmdc impute survey.skops survey.csv -o filled.csv
  pmdc check survey.skops survey.csv"""

app = typer.Typer(
    help="Predict several class variables that depend on each other.\n\n"
    "From a table of numbers and categories pmdc learns a Bayesian network over the columns to predict (the class "
    "variables). Each node is a classifier that uses the other columns (the features).",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_LEARNING = "Learning"


def _version(requested: bool) -> None:
    if requested:
        from pmdc import __version__

        sys.stdout.write(f"pmdc {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Show the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    table: Table,
    classes: Annotated[
        list[str],
        typer.Option(
            "--classes",
            "-c",
            metavar="NAMES",
            help="Columns to predict, separated by commas; * matches any text. Can be repeated, for names with commas.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write, such as model.skops.")
    ],
    discrete: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Numeric columns to use as categories; text columns always are."),
    ] = None,
    continuous: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of numbers to use as such, even if they look like identifiers."),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="NAMES", help="Columns to ignore.")] = None,
    test_size: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="FRACTION",
            help="Fraction of the rows to hold out for a test, such as 0.2. The model in the file is then fitted on "
            "all rows.",
        ),
    ] = None,
    confidence: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Learn the graph from this many resamples of the rows, too, and show how often each arc appears; each "
            "takes about as long as the fit itself.",
        ),
    ] = None,
    estimator: Annotated[
        Literal["auto", "logistic", "naive-bayes", "forest", "boosting"],
        typer.Option(
            metavar="NAME",
            help="Local models: auto (on strong experts), logistic, naive-bayes, forest or boosting.",
            rich_help_panel=_LEARNING,
        ),
    ] = "auto",
    criterion: Annotated[
        Literal["auto", "loo", "cv", "bic", "bic-full", "aic", "cll"],
        typer.Option(
            metavar="NAME",
            help="Score of the graph: auto (held-out rows), loo, cv, bic, bic-full, aic or cll.",
            rich_help_panel=_LEARNING,
        ),
    ] = "auto",
    max_parents: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="Maximum number of class variables in a parent set; by default 3, and more as inputs.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    max_candidates: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="Maximum number of parent sets.", rich_help_panel=_LEARNING),
    ] = None,
    max_treewidth: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Maximum treewidth of the graph: no table of inference is over more class variables, but one.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    max_clique_cells: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Maximum number of cells of such a table, for fast predictions with many class variables; by default "
            "what the memory allows.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    tier: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Class variables that come before those of the next --tier: no arc leads back. Repeat it for each.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    missing_labels: Annotated[
        Literal["em", "available", "drop", "error"],
        typer.Option(
            metavar="NAME",
            help="Rows with missing states of class variables: em (complete them by their probabilities), available "
            "(learn each class variable from the rows in which it and its parents are known), drop (leave them out) or "
            "error (refuse them).",
            rich_help_panel=_LEARNING,
        ),
    ] = "em",
    use_unlabelled: Annotated[
        bool,
        typer.Option(
            "--use-unlabelled",
            metavar="",
            help="Learn from rows without any known state, too, with --missing-labels em.",
            rich_help_panel=_LEARNING,
        ),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="Time for all fits; the model is the best found in that time. --test-size takes two more fits, each "
            "resample of --confidence one; all get an equal share.",
            rich_help_panel=_LEARNING,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Random seed.", rich_help_panel=_LEARNING)] = 0,
    jobs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Parallel processes; -1 for all cores.", rich_help_panel=_LEARNING)
    ] = 1,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    drop_missing: DropMissing = False,
    sheet: Sheet = None,
    alternatives: Alternatives = None,
    date_order: Annotated[
        Literal["dmy", "mdy"] | None,
        typer.Option(
            metavar="ORDER",
            help="Order of day and month in dates such as 01/02/2024, where the column does not tell: dmy or mdy.",
            rich_help_panel=READING,
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model from a table and write it to a file."""
    from pmdc.cli.fitting import Settings, run
    from pmdc.cli.kinds import Choices

    run(
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        Settings(
            Choices(
                classes,
                discrete or [],
                continuous or [],
                ignore or [],
                drop_missing,
                date_order,
                missing_labels,
                use_unlabelled,
                alternatives,
            ),
            estimator,
            criterion,
            max_parents,
            max_candidates,
            time_limit,
            test_size,
            confidence,
            seed,
            jobs,
            max_treewidth,
            max_clique_cells,
            [[names] for names in tier or []],
        ),
        output,
        force=force,
        quiet=quiet,
        json=json,
    )


@app.command()
def show(
    model: Model,
    row: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Table: show the prediction for one of its rows.")
    ] = None,
    index: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Number of the row in that table, from 1 (the default).")
    ] = None,
    conditional: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Show the conditional table of this class variable given its parents instead, for the row --index of "
            "the table --row, or without --index over all its rows.",
        ),
    ] = None,
    given: Given = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the graph as .svg, .png, .pdf, .dot or .graphml instead, or the prediction for the row as "
            ".svg, .png or .pdf.",
        ),
    ] = None,
    max_arcs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", help="Largest number of arcs in a picture of the graph, the strongest; default 40."
        ),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            help="Show the features that matter most for each class variable, at most this many; needs --table.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Table with known outcomes for --features, best not that of the fit."),
    ] = None,
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
    json: Json = False,
) -> None:
    """Show a model: its graph, its class variables, and its prediction for one row."""
    from pmdc.cli.showing import GraphOptions, run

    run(
        model,
        row,
        index,
        given or [],
        output,
        read_format(delimiter, decimal, encoding, missing, sheet),
        GraphOptions(max_arcs, features, table),
        conditional=conditional,
        trust=trust,
        force=force,
        json=json,
    )


@app.command()
def predict(
    model: Model,
    table: Table,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Loss to minimise: hamming (the share of wrong class variables; the default), subset (whether any is "
            "wrong), sub-exact, balanced (rare states count as much as frequent ones), or, for class variables with "
            "two states, f1_samples, f1_macro, f1_micro or jaccard. Each loss has its own prediction: choose the loss "
            "that matters to you.",
        ),
    ] = None,
    given: Given = None,
    proba: Annotated[bool, typer.Option("--proba", metavar="", help="Add the probability of each state.")] = False,
    top: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="List this many most probable outcomes of each row instead."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES", help="Columns of the table to copy to the output, such as an identifier; '*' for all."
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="CSV, TSV, Parquet or Excel file; - is CSV on the standard output."
        ),
    ] = "-",
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    drop_missing: DropMissing = False,
    sheet: Sheet = None,
    quiet: Quiet = False,
) -> None:
    """Predict the class variables for the rows of a table."""
    from pmdc.cli.predicting import run

    run(
        model,
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        output,
        loss=loss,
        given=given or [],
        proba=proba,
        top=top,
        keep=keep or [],
        drop_missing=drop_missing,
        trust=trust,
        force=force,
        quiet=quiet,
    )


@app.command()
def evaluate(
    model: Model,
    table: Table,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a calibration plot, as .svg, .png or .pdf.")
    ] = None,
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    drop_missing: DropMissing = False,
    sheet: Sheet = None,
    alternatives: Alternatives = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compute losses on a table with known outcomes, and compare with simpler predictions.

    Each loss is that of its own prediction: the most probable state of each class variable for the Hamming loss, the
    most probable outcome for the subset 0/1 loss.
    """
    from pmdc.cli.evaluating import run

    run(
        model,
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        plot,
        drop_missing=drop_missing,
        alternatives=alternatives,
        trust=trust,
        force=force,
        quiet=quiet,
        json=json,
    )


@app.command()
def report(
    model: Model,
    table: Table,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write, such as report.html.")
    ],
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title; by default it names the class variables.")
    ] = None,
    card: Annotated[
        bool,
        typer.Option(
            "--card/--no-card",
            metavar="",
            help="Write a model card beside the report, with the same name and the ending .md.",
        ),
    ] = True,
    rows: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="NUMBER",
            help="How many of the hardest rows to show; 0 for a report without any single row or suspicious state.",
        ),
    ] = 3,
    seed: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="Random seed, for rows that are drawn at random.")
    ] = 0,
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    drop_missing: DropMissing = False,
    sheet: Sheet = None,
    alternatives: Alternatives = None,
    quiet: Quiet = False,
) -> None:
    """Write a report about a model as one HTML file, to read, print and share.

    TABLE has rows with known outcomes that the model has not seen in training; on others the losses are too optimistic.
    The report shows single rows of it, unless --rows is 0.
    """
    from pmdc.cli.reporting import Wanted, run

    run(
        model,
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        Wanted(output, title, card, rows, seed),
        drop_missing=drop_missing,
        alternatives=alternatives,
        trust=trust,
        force=force,
        quiet=quiet,
    )


app.command()(serving_app.explore)
app.command()(serving_app.serve)


@app.command()
def impute(
    model: Model,
    table: Table,
    kind: Annotated[
        Literal["mode", "proba", "sample"],
        typer.Option(
            metavar="NAME",
            help="mode: fill gaps with the most probable completion of each row. proba: leave them, and add the "
            "probability of each state. sample: several tables, one after the other, each completed at random by the "
            "probabilities (multiple imputation).",
        ),
    ] = "mode",
    draws: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Number of tables of --kind sample; 5 by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="Random seed of --kind sample.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES", help="Columns of the table to copy to the output besides class variables; all by default."
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="CSV, TSV, Parquet or Excel file; - is CSV on the standard output."
        ),
    ] = "-",
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
    alternatives: Alternatives = None,
    quiet: Quiet = False,
) -> None:
    """Fill in the missing states of class variables in a table."""
    from pmdc.cli.imputing import Completion, run
    from pmdc.cli.running import BadInput

    for flag, value in (("--draws", draws), ("--seed", seed)):
        if value is not None and kind != "sample":
            raise BadInput(f"{flag} {value} has an effect only with --kind sample, not {kind}: remove it.")
    run(
        model,
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        output,
        Completion(kind, 5 if draws is None else draws, seed or 0),
        keep=keep or [],
        alternatives=alternatives,
        trust=trust,
        force=force,
        quiet=quiet,
    )


def _no_classes(names: list[str] | None) -> None:
    """Refuse the option ``--classes`` of ``pmdc fit``."""
    from pmdc.cli.running import BadInput

    if names:
        raise BadInput(
            f"--classes {','.join(names)}: the class variables and features are those of MODEL, a fitted model, whose "
            "settings are used, too. For others, fit another model with pmdc fit, and give its file as MODEL."
        )


@app.command()
def check(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Model file written by pmdc fit; its class variables, features and settings are used.",
        ),
    ],
    table: Table,
    classes: Annotated[
        list[str] | None, typer.Option("--classes", "-c", hidden=True, is_eager=True, callback=_no_classes)
    ] = None,
    most: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="How many states to show.")] = 20,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write all known states with their probabilities to a CSV, TSV, Parquet or Excel file; - is CSV on "
            "the standard output.",
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            min=2, metavar="NUMBER", help="Parts of the table; the model is fitted anew without each, in turn."
        ),
    ] = 5,
    jobs: Annotated[int, typer.Option(metavar="NUMBER", help="Parallel processes; -1 for all cores.")] = 1,
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
    alternatives: Alternatives = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find states of class variables in a table that look wrong.

    MODEL is a fitted model: its settings, class variables and features are used, and it is fitted anew to the table.
    Each known state gets its probability given the features and the other known states of its row, by such a model of
    other rows. The most improbable ones are shown.
    """
    from pmdc.cli.checking import run

    run(
        model,
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        output,
        most=most,
        folds=folds,
        jobs=jobs,
        alternatives=alternatives,
        trust=trust,
        force=force,
        quiet=quiet,
        json=json,
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the picture.")] = Path("out"),
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Only write the survey to a CSV, Parquet or Excel file, to try the other commands."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Learn from a built-in survey and compare with other methods, in half a minute."""
    from pmdc.cli.display import Screen
    from pmdc.cli.running import work
    from pmdc.demo import main, phase_lines, survey_table
    from pmdc.table_files import check_output, write_table

    if table is not None:
        check_output(table, overwrite=force, option="--table")
        with work():
            write_table(survey_table(), table)
        return
    screen = Screen()
    with work():
        main(["--out", str(out)], screen.progress if screen.shows_progress else phase_lines)


@app.command()
def benchmark(
    sets: Annotated[str, typer.Option(help="all, or names or paths of table files, separated by commas.")] = "all",
    methods: Annotated[
        str, typer.Option(help="all, or some of GBNC, GBNC-paper, BR, CC, ECC, CP, MultiOutput, RF, ET.")
    ] = "all",
    estimators: Annotated[str, typer.Option(help="Some of logistic, naive-bayes, forest, boosting.")] = "naive-bayes",
    folds: Annotated[int, typer.Option(help="Number of folds of the cross-validation.")] = 10,
    jobs: Annotated[int, typer.Option(help="Number of parallel processes.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    data: Annotated[
        Path | None, typer.Option("--data", "--data-dir", help="Folder of the benchmark tables; default: PMDC_DATA.")
    ] = None,
    classes: Annotated[str, typer.Option(help="Class variables of your own files, separated by commas.")] = "",
    max_candidates: Annotated[int, typer.Option(help="Maximum number of parent sets that GBNC considers.")] = 2000,
    quick: Annotated[bool, typer.Option("--quick", metavar="", help="Three small tables, three folds.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", metavar="", help="Repeat failed runs.")] = False,
) -> None:
    """Compare methods by cross-validation; an interrupted run can be continued."""
    from pmdc._support.extras import require
    from pmdc.cli.running import BadInput
    from pmdc.evaluation.report import write_report
    from pmdc.evaluation.runner import benchmark as run
    from pmdc.evaluation.runner import origins

    _check_data_folder(sets, quick, data)
    try:
        for module in ("pandas", "matplotlib", "scikit_posthocs"):  # check them before hours of work
            require(module)
        store = run(
            sets if sets == "all" else split_names(sets),
            methods=None if methods == "all" else split_names(methods),
            estimators=split_names(estimators),
            n_folds=folds,
            n_jobs=jobs,
            out=out,
            data_dir=data,
            classes=split_names(classes),
            max_candidates=max_candidates,
            quick=quick,
            retry_failed=retry_failed,
        )
        records = store.frame()
        written = write_report(store, out, origins(sorted(records["data_set"].unique()), data))
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        raise BadInput(str(error)) from error
    failed = int((records["status"] == "failed").sum())
    sys.stdout.write(f"{len(records)} records in {store.path}" + (f", {failed} failed\n" if failed else "\n"))
    for path in written:
        sys.stdout.write(f"  {path}\n")


def _check_data_folder(sets: str, quick: bool, data: Path | None) -> None:
    """Raise an error if benchmark tables are needed and their folder is not given or does not exist."""
    from pmdc.cli.running import BadInput
    from pmdc.table_files import SUFFIXES

    if not quick and all(name.endswith(SUFFIXES) for name in split_names(sets)):
        return
    source = "--data" if data is not None else "PMDC_DATA"
    folder = str(data) if data is not None else os.environ.get("PMDC_DATA")
    if not folder:
        raise BadInput(
            "the benchmark tables are not part of pmdc: give their folder with --data or in the environment variable "
            "PMDC_DATA, or give your own table files with --sets."
        )
    if not Path(folder).is_dir():
        raise BadInput(f"{source} is {folder!r}, which is not a folder: give the folder of the benchmark tables.")
