"""The waterfall of one state in one row: the only place that knows of `pmdc.explain`."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element


def waterfall(model: Any, X: Any, row: int, name: str, state: Any, given: Any = None) -> Element | None:
    """Return a picture of what speaks for and against a state; None where that cannot be explained."""
    return None
