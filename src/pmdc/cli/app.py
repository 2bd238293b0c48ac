"""The commands and their options. What they do is imported when they are called, so that help comes at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pmdc.table_files import Format

_EPILOG = """\b
Example, from a table to predictions:
  pmdc fit survey.csv --classes vote,party -o survey.skops
  pmdc show survey.skops
  pmdc predict survey.skops new.csv --loss subset --proba -o predicted.csv"""

app = typer.Typer(
    help="Predict several things at once that depend on each other.\n\n"
    "From a table with numbers and categories pmdc learns a Bayesian network over the columns to be predicted "
    "(the class variables), whose nodes are classifiers of the other columns (the features).",
    epilog=_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_READING, _LOOKING = "Reading the table", "What is shown"

Table = Annotated[
    str, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet or Excel file; - is CSV from the standard input.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that pmdc fit has written.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN", help="What separates the columns of a text file, such as ';' or tab.", rich_help_panel=_READING
    ),
]
Decimal = Annotated[
    Literal[".", ","], typer.Option(metavar="SIGN", help="The decimal sign, . or a comma.", rich_help_panel=_READING)
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a text file: utf-8, utf-16, cp1252, ...", rich_help_panel=_READING),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS",
        help="Words that mean that there is no value, separated by commas, besides NA, N/A, NaN, null and the like; "
        "'' for empty cells alone.",
        rich_help_panel=_READING,
    ),
]
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help="Sheet of an Excel file.", rich_help_panel=_READING)]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.", rich_help_panel=_READING)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Nothing but errors and warnings.", rich_help_panel=_LOOKING)
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document, for machines.", rich_help_panel=_LOOKING)]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite the output file.")]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Read a model of trees (forest, boosting), because you know who wrote the file."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS=STATE",
        help="What is known: CLASS=STATE for all rows, or CLASS=@COLUMN, where COLUMN of the table holds it and an "
        "empty cell says nothing. May be given several times.",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        from pmdc import __version__

        sys.stdout.write(f"pmdc {__version__}\n")
        raise typer.Exit


@app.callback()
def tour(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_version)
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
            help="The columns to be predicted, separated by commas; * stands for any text.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write, such as model.skops.")
    ],
    discrete: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Columns of numbers that are categories. Text is categories anyway."),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="NAMES", help="Columns to leave out.")] = None,
    test_size: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Share of the rows to test the model on, such as 0.2. The model in the file is then fitted again, "
            "on all rows.",
        ),
    ] = None,
    estimator: Annotated[
        Literal["logistic", "naive-bayes", "forest", "boosting"],
        typer.Option(
            metavar="NAME",
            help="The classifier at each node: logistic, naive-bayes, forest or boosting.",
            rich_help_panel="How to learn",
        ),
    ] = "logistic",
    criterion: Annotated[
        Literal["auto", "loo", "cv", "bic", "bic-full", "aic", "cll"],
        typer.Option(
            metavar="NAME",
            help="What the best graph is best in: auto (held-out rows), loo, cv, bic, bic-full, aic or cll.",
            rich_help_panel="How to learn",
        ),
    ] = "auto",
    max_parents: Annotated[
        int,
        typer.Option(
            min=0, metavar="NUMBER", help="Most class variables that one depends on.", rich_help_panel="How to learn"
        ),
    ] = 3,
    max_candidates: Annotated[
        int | None,
        typer.Option(min=1, metavar="NUMBER", help="Most sets of parents to consider.", rich_help_panel="How to learn"),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="Most seconds for the search of the best graph.",
            rich_help_panel="How to learn",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="NUMBER", help="For all that is random.", rich_help_panel="How to learn")
    ] = 0,
    jobs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Parallel processes; -1: all cores.", rich_help_panel="How to learn")
    ] = 1,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    drop_missing: DropMissing = False,
    sheet: Sheet = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model from a table and keep it in a file."""
    from pmdc.cli.fitting import Settings, run

    run(
        table,
        _format(delimiter, decimal, encoding, missing, sheet),
        Settings(
            classes,
            discrete or [],
            ignore or [],
            drop_missing,
            estimator,
            criterion,
            max_parents,
            max_candidates,
            time_limit,
            test_size,
            seed,
            jobs,
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
        str | None, typer.Option(metavar="TABLE", help="A table: show what the model says of one of its rows.")
    ] = None,
    index: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Which row of that table, the first is 1.")] = 1,
    given: Given = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the graph as .svg, .png, .pdf, .dot or .graphml instead, or what the model says of the row as "
            ".svg, .png or .pdf.",
        ),
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
    """Look at a model: its graph, its class variables, and what it says of one row."""
    from pmdc.cli.showing import run

    run(
        model,
        row,
        index,
        given or [],
        output,
        _format(delimiter, decimal, encoding, missing, sheet),
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
            help="The mistakes to avoid: hamming (each wrong class variable counts; the default), subset (all must be "
            "right), sub-exact, f1_samples, f1_macro or f1_micro.",
        ),
    ] = None,
    given: Given = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of every state.")] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="NUMBER", help="Instead so many most probable outcomes of each row, each on its own line."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of the table to keep beside the predictions, such as an identifier; '*': all.",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A CSV, TSV, Parquet or Excel file; - is CSV on the standard output."
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
        _format(delimiter, decimal, encoding, missing, sheet),
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
        Path | None, typer.Option(metavar="FILE", help="Write a picture of the calibration, as .svg, .png or .pdf.")
    ] = None,
    trust: Trust = False,
    force: Force = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    drop_missing: DropMissing = False,
    sheet: Sheet = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare predictions with a table in which the outcomes are known."""
    from pmdc.cli.evaluating import run

    run(
        model,
        table,
        _format(delimiter, decimal, encoding, missing, sheet),
        plot,
        drop_missing=drop_missing,
        trust=trust,
        force=force,
        quiet=quiet,
        json=json,
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the picture.")] = Path("out"),
    folds: Annotated[int, typer.Option(min=2, metavar="NUMBER", help="Folds of the comparison.")] = 5,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Only write the survey as a CSV, Parquet or Excel file, to try the other commands on."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Take a tour in a minute, on a survey that comes along."""
    from pmdc.cli.running import work
    from pmdc.demo import main, survey_table
    from pmdc.table_files import check_output, write_table

    if table is not None:
        check_output(table, overwrite=force, option="--table")
        with work():
            write_table(survey_table(), table)
        return
    with work():
        main(["--out", str(out), "--folds", str(folds)])


@app.command()
def benchmark(
    sets: Annotated[str, typer.Option(help="all, or names or paths of table files separated by commas")] = "all",
    methods: Annotated[
        str, typer.Option(help="all, or some of GBNC, GBNC-paper, BR, CC, ECC, CP, MultiOutput")
    ] = "all",
    estimators: Annotated[str, typer.Option(help="some of logistic, naive-bayes, forest, boosting")] = "naive-bayes",
    folds: Annotated[int, typer.Option(help="folds of the cross-validation")] = 10,
    jobs: Annotated[int, typer.Option(help="parallel workers")] = 1,
    out: Annotated[Path, typer.Option(help="folder of the results file")] = Path("results"),
    data_dir: Annotated[Path | None, typer.Option(help="folder of the benchmark tables")] = None,
    classes: Annotated[str, typer.Option(help="class variables of files of your own, separated by commas")] = "",
    max_candidates: Annotated[int, typer.Option(help="most parent sets that GBNC considers")] = 2000,
    quick: Annotated[bool, typer.Option("--quick", help="three small sets, three folds")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="try failed cells again")] = False,
) -> None:
    """Compare methods by cross-validation; a run that was stopped is continued."""
    from pmdc._support.extras import require
    from pmdc.cli.running import BadInput
    from pmdc.evaluation.report import write_report
    from pmdc.evaluation.runner import benchmark as run
    from pmdc.evaluation.runner import origins

    try:
        for module in ("pandas", "matplotlib", "scikit_posthocs"):  # now, not after hours of work
            require(module)
        store = run(
            sets if sets == "all" else _listed(sets),
            methods=None if methods == "all" else _listed(methods),
            estimators=_listed(estimators),
            n_folds=folds,
            n_jobs=jobs,
            out=out,
            data_dir=data_dir,
            classes=_listed(classes),
            max_candidates=max_candidates,
            quick=quick,
            retry_failed=retry_failed,
        )
        records = store.frame()
        written = write_report(store, out, origins(sorted(records["data_set"].unique()), data_dir))
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as error:
        raise BadInput(str(error)) from error
    failed = int((records["status"] == "failed").sum())
    sys.stdout.write(f"{len(records)} records in {store.path}" + (f", {failed} failed\n" if failed else "\n"))
    for path in written:
        sys.stdout.write(f"  {path}\n")


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _format(
    delimiter: str | None, decimal: str, encoding: str | None, missing: str | None, sheet: str | None
) -> Format:
    from pmdc.cli.running import BadInput
    from pmdc.table_files import MISSING_WORDS, Format

    sign = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if sign is not None and (len(sign) != 1 or sign in "\"'\n\r"):
        raise BadInput(f"--delimiter {delimiter!r} must be a single sign, such as ',' or ';', or the word tab.")
    named = _listed(missing or "")
    words = () if missing is not None and not named else (*MISSING_WORDS, *named)
    return Format(sign, decimal, encoding, words, sheet)
