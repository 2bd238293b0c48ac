"""States that look like misspellings of other states."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import NamedTuple

MIN_LENGTH = 3
"""Shorter texts, such as the genotypes Aa and aa, are codes."""
RARE = 20
"""A misspelling is this many times rarer than what is meant."""
SIMILARITY = 0.85
MAX_COMPARED = 100
"""At most so many states are compared with each other, the most frequent and the rarest."""


class Misspelling(NamedTuple):
    state: str
    meant: str
    same_letters: bool
    """Whether they differ only in capitals and blanks."""


def misspellings(counts: Mapping[str, int], near: bool = True) -> list[Misspelling]:
    """Return states that may be misspelt, with what they may mean, by the number of rows of each state.

    Either they differ from another state only in capitals and blanks, or they are rare, and a frequent one is nearly
    the same (unless ``near=False``). Texts with digits are codes, for which only the first holds.
    """
    ordered = sorted((state for state in counts if len(state) >= MIN_LENGTH), key=lambda state: (-counts[state], state))
    meant: dict[str, str] = {}
    found = {}
    for state in ordered:
        first = meant.setdefault(_letters(state), state)
        if first != state:
            found[state] = Misspelling(state, first, True)
    words = [state for state in meant.values() if not any(map(str.isdigit, state))]
    for state in words[-MAX_COMPARED:] if near else ():
        frequent = [word for word in words[:MAX_COMPARED] if counts[word] >= RARE * counts[state]]
        matches = difflib.get_close_matches(state, frequent, n=1, cutoff=SIMILARITY)
        if matches:
            found[state] = Misspelling(state, matches[0], False)
    return list(found.values())


def _letters(text: str) -> str:
    return re.sub(r"[\s_]+", " ", text.strip()).casefold()
