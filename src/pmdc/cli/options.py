"""Options that commands share. What a command needs is imported when it is called, so that help is fast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pmdc.table_files import Format

READING, OUTPUT = "Reading the table", "Output"

Table = Annotated[
    str, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet or Excel file; - is CSV from the standard input.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file written by pmdc fit.")]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="CHAR", help="Delimiter of a text file, such as ';' or tab.", rich_help_panel=READING),
]
Decimal = Annotated[
    Literal[".", ","], typer.Option(metavar="CHAR", help="Decimal separator, . or a comma.", rich_help_panel=READING)
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of a text file: utf-8, utf-16, cp1252, ...", rich_help_panel=READING),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS",
        help="Words that mean a missing value, separated by commas, in addition to NA, N/A, NaN and null; '' for "
        "empty cells only.",
        rich_help_panel=READING,
    ),
]
Sheet = Annotated[str | None, typer.Option(metavar="NAME", help="Sheet of an Excel file.", rich_help_panel=READING)]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", metavar="", help="Drop rows with any missing value.", rich_help_panel=READING)
]
Alternatives = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Separates the possible states in cells of class variables of which only these are known: with '|', "
        "red|blue means red or blue.",
        rich_help_panel=READING,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", metavar="", help="Print only errors and warnings.", rich_help_panel=OUTPUT)
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON document.", rich_help_panel=OUTPUT)]
Force = Annotated[bool, typer.Option("--force", "-f", metavar="", help="Overwrite an existing output file.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", metavar="", help="Load a model of trees (forest, boosting); only for files whose author you trust."
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLASS=STATE",
        help="Known state of a class variable: CLASS=STATE for all rows, or CLASS=@COLUMN to read it from a column "
        "of the table, where an empty cell means unknown. Can be repeated.",
    ),
]


def split_names(text: str) -> list[str]:
    """Return the parts between commas, without empty ones."""
    return [item.strip() for item in text.split(",") if item.strip()]


def read_format(
    delimiter: str | None, decimal: str, encoding: str | None, missing: str | None, sheet: str | None
) -> Format:
    """Return how a table is to be read, by the options of a command."""
    from pmdc.cli.running import BadInput
    from pmdc.table_files import MISSING_WORDS, Format

    char = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if char is not None and (len(char) != 1 or char in "\"'\n\r"):
        raise BadInput(f"--delimiter {delimiter!r} must be one character, such as ',' or ';', or the word tab.")
    words = split_names(missing or "")
    return Format(char, decimal, encoding, () if missing is not None and not words else (*MISSING_WORDS, *words), sheet)
