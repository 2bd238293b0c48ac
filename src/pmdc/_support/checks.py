"""Checks of parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, choices: Iterable[Any], otherwise: str = "") -> None:
    """Raise a ValueError if the value is not one of the choices, and suggest the nearest."""
    listed = list(choices)
    if any(value is choice or (isinstance(value, str) and value == choice) for choice in listed):
        return
    near = difflib.get_close_matches(str(value).lower(), [c for c in listed if isinstance(c, str)], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ValueError(f"{name}={value!r} is not known{hint} Choose from {', '.join(map(repr, listed))}{otherwise}.")


def check_count(name: str, value: Any, least: int) -> None:
    """Raise a ValueError if the value is not an integer of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


_LONG_NAME = 200
"""Of a longer name only the beginning is compared, because the comparison takes long."""


def suggest(name: object, known: Sequence[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest known name, or all of them."""
    near = difflib.get_close_matches(str(name)[:_LONG_NAME], known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {shorten(known)}."


def shorten(names: Sequence[str], limit: int = 12) -> str:
    """Return names for a message, at most `limit` of them."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown + (f", ... ({len(names)} in all)" if len(names) > limit else "")
