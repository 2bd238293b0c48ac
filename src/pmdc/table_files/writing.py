"""Write table files, completely or not at all."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmdc._support.atomic_files import is_special, replacing
from pmdc._support.extras import require
from pmdc.table_files.columns import TableFileError
from pmdc.table_files.reading import EXCEL, STANDARD_STREAM, SUFFIXES


def check_output(path: str | Path, *, overwrite: bool, suffixes: Sequence[str] = SUFFIXES, option: str = "-o") -> None:
    """Check, before any work, that an output file can be written and does not exist yet.

    `option` is the name of the argument in messages.

    Raises
    ------
    TableFileError
    """
    path = Path(path)
    if suffixes and not str(path).lower().endswith(tuple(suffixes)) and not is_special(path):
        raise TableFileError(f"{option} {path}: the file name must end in one of {', '.join(suffixes)}.")
    if str(path).lower().endswith(".parquet"):
        require("pyarrow")
    if str(path).lower().endswith(EXCEL):
        require("openpyxl")
    if path.is_dir():
        raise TableFileError(f"{option} {path} is a folder: give the name of a file in it.")
    if not path.parent.is_dir():
        raise TableFileError(f"{option} {path}: there is no folder {path.parent}. Create it first.")
    if is_special(path):
        return
    if path.exists() and not overwrite:
        raise TableFileError(
            f"{option} {path}: this file exists already. Use another name, or overwrite it with --force."
        )
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise TableFileError(f"{option} {path} cannot be written: {error.strerror}.") from None


def write_table(frame: Any, path: str | Path) -> None:
    """Write a pandas DataFrame as a table file of the type of its extension; ``-`` is CSV on the standard output."""
    name = str(path).lower()
    if name == STANDARD_STREAM:
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")
        return
    with replacing(path) as new:
        if name.endswith(".parquet"):
            frame.to_parquet(new, index=False)
        elif name.endswith(EXCEL):
            _write_excel(frame, new)
        else:
            compression = "gzip" if name.endswith(".gz") else None
            sign = "\t" if ".tsv" in name or ".tab" in name else ","
            frame.to_csv(new, index=False, sep=sign, compression=compression, lineterminator="\n", encoding="utf-8")


def _write_excel(frame: Any, path: Path) -> None:
    """Write all texts as text cells: openpyxl takes those that begin with "=" for formulas."""
    with require("pandas").ExcelWriter(path, engine="openpyxl") as writer:
        frame.to_excel(writer, index=False)
        for row in writer.book.active.iter_rows():
            for cell in row:
                if isinstance(cell.value, str):
                    cell.data_type = "s"
                    cell.quotePrefix = cell.value.startswith("=")  # stays text when somebody edits the cell
