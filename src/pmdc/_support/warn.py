"""Warnings that point at the line of the user's own code, however deep they come from."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the first caller outside of pmdc as the place."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "pmdc":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
