"""Writing table files, as a whole or not at all."""

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
    """Refuse, before any work, an output path that cannot be written or is not to be.

    `option` is what the user calls it.

    Raises
    ------
    TableFileError
    """
    path = Path(path)
    if suffixes and not str(path).lower().endswith(tuple(suffixes)) and not is_special(path):
        raise TableFileError(f"{option} {path}: the name must end in one of {', '.join(suffixes)}.")
    if str(path).lower().endswith(".parquet"):
        require("pyarrow")
    if str(path).lower().endswith(EXCEL):
        require("openpyxl")
    if path.is_dir():
        raise TableFileError(f"{option} {path} is a folder: name a file in it.")
    if not path.parent.is_dir():
        raise TableFileError(f"{option} {path}: there is no folder {path.parent}. Create it first.")
    if is_special(path):
        return
    if path.exists() and not overwrite:
        raise TableFileError(
            f"{option} {path}: this file exists already. Take another name, or overwrite it with --force."
        )
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise TableFileError(f"{option} {path} cannot be written: {error.strerror}.") from None


def write_table(frame: Any, path: str | Path) -> None:
    """Write a pandas DataFrame as a table file, told by the end of its name; ``-`` is CSV on the standard output."""
    name = str(path).lower()
    if name == STANDARD_STREAM:
        frame.to_csv(sys.stdout, index=False, lineterminator="\n")
        return
    with replacing(path) as new:
        if name.endswith(".parquet"):
            frame.to_parquet(new, index=False)
        elif name.endswith(EXCEL):
            frame.to_excel(new, index=False)
        else:
            compression = "gzip" if name.endswith(".gz") else None
            sign = "\t" if ".tsv" in name or ".tab" in name else ","
            frame.to_csv(new, index=False, sep=sign, compression=compression, lineterminator="\n", encoding="utf-8")
