"""Pictures that the commands write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmdc.cli.judging import Judgement
from pmdc.extras import require
from pmdc.table_files import check_output, replacing

PICTURES = (".svg", ".png", ".pdf")
GRAPHS = (*PICTURES, ".dot", ".graphml")


def check_picture(path: Path, suffixes: Sequence[str], *, overwrite: bool) -> None:
    """Refuse what cannot be written, before any work."""
    check_output(path, overwrite=overwrite, suffixes=suffixes)
    if str(path).lower().endswith(PICTURES):
        require("matplotlib").use("Agg")


def write_graph(model: Any, path: Path) -> None:
    """The graph of a model."""
    raise NotImplementedError


def write_row(joint: Any, path: Path) -> None:
    """The network of one row."""
    raise NotImplementedError


def write_calibration(judgement: Judgement, path: Path) -> None:
    """How sure the model is, and how often it is right."""
    raise NotImplementedError


_ = replacing
