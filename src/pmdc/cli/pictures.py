"""Pictures that the commands write."""

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
    """Refuse what cannot be written, before any work."""
    check_output(path, overwrite=overwrite, suffixes=suffixes, option=option)
    if str(path).lower().endswith(PICTURES):
        require("matplotlib").use("Agg")


def write_graph(model: Any, path: Path) -> None:
    """The graph of a model."""
    from pmdc import report

    report.write_graph(model, path)


def write_row(joint: Any, path: Path, title: str) -> None:
    """The network of one row."""
    _save(joint.plot(0, title=title), path)


def write_calibration(model: Any, X: Any, Y: Any, path: Path) -> None:
    """How sure the model is, and how often it is right."""
    from pmdc.report import plot_calibration

    _save(plot_calibration(model, X, Y), path)


def _save(axes: Any, path: Path) -> None:
    with replacing(path) as new:
        axes.figure.savefig(new, dpi=150)
