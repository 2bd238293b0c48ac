"""The command line: ``pmdc``, or ``python -m pmdc``. Needs the extra "cli"."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pmdc.extras import require

app = typer.Typer(help="Probabilistic multi-dimensional classification.", no_args_is_help=True, add_completion=False)


@app.callback()
def tour() -> None:
    """Probabilistic multi-dimensional classification."""


@app.command()
def benchmark(
    sets: Annotated[str, typer.Option(help="all, or names or CSV/Parquet paths separated by commas")] = "all",
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
    """Compare methods by cross-validation and write tables and tests; a run that was stopped is continued."""
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
    except (ValueError, OSError, ImportError) as error:
        sys.stderr.write(f"pmdc benchmark: {error}\n")
        raise typer.Exit(2) from None
    failed = int((records["status"] == "failed").sum())
    sys.stdout.write(f"{len(records)} records in {store.path}" + (f", {failed} failed\n" if failed else "\n"))
    for path in written:
        sys.stdout.write(f"  {path}\n")


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
