"""Write the pictures of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmdc._support.atomic_files import replacing
from pmdc._support.extras import require
from pmdc.table_files import check_output

PICTURES = (".svg", ".png", ".pdf")
GRAPHS = (*PICTURES, ".dot", ".gv", ".graphml")


def check_picture(path: Path, suffixes: Sequence[str], option: str, *, overwrite: bool) -> None:
    """Check, before any work, that a picture can be written."""
    check_output(path, overwrite=overwrite, suffixes=suffixes, option=option)
    if str(path).lower().endswith(PICTURES):
        require("matplotlib").use("Agg")


def save_figure(axes: Any, path: Path) -> None:
    """Write the figure of matplotlib axes."""
    with replacing(path) as new:
        axes.figure.savefig(new, dpi=150)
