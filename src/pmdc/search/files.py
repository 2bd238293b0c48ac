"""Local-score files in the format of GOBNILP and other programs for structure learning.

The first line has the number of class variables. For each class variable there is one line with its name and the number
of its parent sets, then one line for each set: the score, the number of parents, their names. Lines that begin with
``#`` are comments.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

from .structure import check_scores


def write_scores(scores: Mapping[str, Mapping[frozenset[str], float]], path: str | os.PathLike[str]) -> None:
    """Write a score table to a local-score file.

    Parameters
    ----------
    scores : dict of str to dict of frozenset to float
        As for `find_structure`, or `GBNC.scores_` if no class variable has a discrete feature as parent. Sets with a
        score of -inf are omitted. Reading the file gives the same numbers.
    path : str or path
    """
    table = check_scores(scores)
    for name in table:
        if not name or any(character.isspace() for character in name) or name.startswith("#"):
            raise ValueError(
                f"scores has the class variable {name!r}: in a local-score file, names must not contain spaces or "
                "begin with '#'; rename it"
            )
    lines = [str(len(table))]
    for name, sets in table.items():
        lines.append(f"{name} {len(sets)}")
        for parents, score in sets.items():
            lines.append(" ".join([repr(score), str(len(parents)), *sorted(parents)]))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_scores(path: str | os.PathLike[str]) -> dict[str, dict[frozenset[str], float]]:
    """Read a score table from a local-score file.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict of str to dict of frozenset to float
        For `find_structure`.

    Raises
    ------
    ValueError
        If a line is invalid; the message has its number.
    """
    lines = _Lines(Path(path))
    lines.next("the number of class variables")
    count = lines.integer(0, "the number of class variables")
    lines.check_length(1)
    scores: dict[str, dict[frozenset[str], float]] = {}
    first_line: dict[str, int] = {}
    for number in range(1, count + 1):
        name = lines.next(f"class variable {number} of {count}")[0]
        n_sets = lines.integer(1, f"the number of parent sets of {name!r}")
        lines.check_length(2)
        if name in scores:
            raise lines.error(f"duplicate class variable {name!r}")
        scores[name] = {}
        for done in range(1, n_sets + 1):
            _, *names = lines.next(f"parent set {done} of {n_sets} of {name!r}")[1:] or [""]
            score, size, parents = lines.score(), lines.integer(1, "the number of parents"), frozenset(names)
            if len(names) != size:
                raise lines.error(f"expected {size} parents, found {len(names)}")
            if len(parents) < size:
                raise lines.error("duplicate parent")
            if parents in scores[name]:
                raise lines.error(f"duplicate parent set of {name!r}")
            for parent in parents:
                first_line.setdefault(parent, lines.number)
            scores[name][parents] = score
    lines.check_end()
    for parent, number in first_line.items():
        if parent not in scores:
            raise ValueError(f"{path}, line {number}: the parent {parent!r} is not a class variable of this file")
    return scores


class _Lines:
    """The lines of a file without comments, split into fields; errors have the line number."""

    def __init__(self, path: Path):
        self.path, self.number = path, 0
        self.fields: list[str] = []
        lines = enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)
        self.left = [(number, line.split()) for number, line in lines if line.strip() and line.lstrip()[0] != "#"][::-1]

    def next(self, expected: str) -> list[str]:
        if not self.left:
            raise ValueError(f"{self.path} ends after line {self.number}: expected {expected}")
        self.number, self.fields = self.left.pop()
        return self.fields

    def error(self, what: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.number}: {what} ({' '.join(self.fields)!r})")

    def integer(self, place: int, what: str) -> int:
        text = self.fields[place] if place < len(self.fields) else ""
        if not (text.isascii() and text.isdigit()):
            raise self.error(f"{what} must be a non-negative integer, not {text!r}")
        return int(text)

    def score(self) -> float:
        try:
            score = float(self.fields[0])
        except ValueError:
            score = math.nan
        if math.isnan(score) or score == math.inf:
            raise self.error(f"the score must be a number, not {self.fields[0]!r}")
        return score

    def check_length(self, count: int) -> None:
        if len(self.fields) > count:
            raise self.error(f"unexpected text after {self.fields[count - 1]!r}")

    def check_end(self) -> None:
        if self.left:
            raise ValueError(f"{self.path}, line {self.left[-1][0]}: unexpected text after the last class variable")
