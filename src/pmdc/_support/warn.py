"""Warnings that point at the user's own line of code."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the first caller outside pmdc."""
    level, frame = 2, sys._getframe(1)
    inside = ("pmdc", "importlib", "numba")  # kernels are imported and compiled at their first use
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in inside:
        level += not frame.f_code.co_filename.startswith("<frozen importlib")  # `warnings` does not count these
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)
