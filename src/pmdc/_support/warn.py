"""Warnings that point at the user's own line of code."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the first caller outside pmdc."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None:
        importing = frame.f_code.co_filename.startswith("<frozen importlib")  # `warnings` does not count these
        if not importing and frame.f_globals.get("__name__", "").partition(".")[0] != "pmdc":
            break
        level, frame = level + (not importing), frame.f_back
    warnings.warn(message, category, stacklevel=level)
