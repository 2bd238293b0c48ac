"""The commands ``pmdc explore`` and ``pmdc serve`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pmdc.cli.options import (
    Decimal,
    Delimiter,
    Encoding,
    Missing,
    Model,
    Quiet,
    Sheet,
    Trust,
    read_format,
)

_LIMITS, _NETWORK = "Limits", "Network"

OptionalTable = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE",
        show_default=False,
        help="CSV, TSV, Parquet or Excel file of rows like those of the fit, best with class columns; - is CSV from "
        "the standard input.",
    ),
]
MaxSeconds = Annotated[
    float, typer.Option(min=0.1, metavar="SECONDS", help="Longest time for an answer.", rich_help_panel=_LIMITS)
]


def explore(
    model: Model,
    table: OptionalTable = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Port on this computer; by default 8150, or another if that is in use. 0 for any free port.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", metavar="", help="Open the browser.")] = True,
    trust: Trust = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
) -> None:
    """Explore a model in the browser: fix states, change inputs, ask why.

    With TABLE its rows can be looked at; its class columns, where it has them, are the true states. The page is served
    by this computer, for this computer alone, until Ctrl-C.
    """
    from pmdc.cli.exploring import run_explorer

    format = read_format(delimiter, decimal, encoding, missing, sheet)
    run_explorer(model, table, format, port, browser=browser, trust=trust, quiet=quiet)


def serve(
    model: Model,
    table: OptionalTable = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen at; others than this computer's own (loopback) need --token-file.",
            rich_help_panel=_NETWORK,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="NUMBER", help="Port; 0 for any free port.", rich_help_panel=_NETWORK)
    ] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with a token of at least 16 characters, which clients must send as Authorization: Bearer TOKEN.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    max_body: Annotated[
        float,
        typer.Option(min=0.001, metavar="MB", help="Largest body of a request, in megabytes.", rich_help_panel=_LIMITS),
    ] = 20.0,
    max_rows: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Most rows of a request.", rich_help_panel=_LIMITS)
    ] = 10_000,
    max_seconds: MaxSeconds = 30.0,
    trust: Trust = False,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = None,
    missing: Missing = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
) -> None:
    """Serve predictions and explanations of a model as JSON over HTTP.

    The paths are /predict, /explain, /ask, /schema and /health, described in /openapi.json. TABLE is the background of
    explanations; its rows with known states calibrate prediction sets.
    """
    from pmdc.cli.exploring import Network, run_service
    from pmdc.explore.guards import Settings

    run_service(
        model,
        table,
        read_format(delimiter, decimal, encoding, missing, sheet),
        Network(host, port, token_file),
        Settings(max_body=int(max_body * 1_000_000), max_seconds=max_seconds),
        max_rows=max_rows,
        trust=trust,
        quiet=quiet,
    )
