"""Local-score files in the format of GOBNILP and other programs for structure learning.

The first line has the number of class variables. For each class variable there is one line with its name and the number
of its parent sets, then one line for each set: the score, the number of parents, their names. Lines that begin with
``#`` are comments.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
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
    count = lines.integer(lines.next("the number of class variables"), 0, "the number of class variables")
    lines.end_of_line(1)
    scores: dict[str, dict[frozenset[str], float]] = {}
    first_line: dict[str, int] = {}
    for _ in range(count):
        fields = lines.next(f"class variable {len(scores) + 1} of {count}")
        name, n_sets = fields[0], lines.integer(fields, 1, f"the number of parent sets of {fields[0]!r}")
        lines.end_of_line(2)
        if name in scores:
            raise lines.error(f"duplicate class variable {name!r}")
        scores[name] = {}
        for done in range(n_sets):
            fields = lines.next(f"parent set {done + 1} of {n_sets} of {name!r}")
            score, size = lines.score(fields), lines.integer(fields, 1, "the number of parents")
            if len(fields) != size + 2:
                raise lines.error(f"expected {size} parents, found {len(fields) - 2}")
            parents = frozenset(fields[2:])
            if len(parents) < size:
                raise lines.error("duplicate parent")
            if parents in scores[name]:
                raise lines.error(f"duplicate parent set of {name!r}")
            for parent in parents:
                first_line.setdefault(parent, lines.number)
            scores[name][parents] = score
    lines.end_of_file()
    for parent, number in first_line.items():
        if parent not in scores:
            raise ValueError(f"{path}, line {number}: the parent {parent!r} is not a class variable of this file")
    return scores


class _Lines:
    """The lines of a file without comments, split into fields; errors have the line number."""

    def __init__(self, path: Path):
        self.path, self.number = path, 0
        self.fields: list[str] = []
        self._lines = self._read()

    def _read(self) -> Iterator[list[str]]:
        with self.path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip() and not line.lstrip().startswith("#"):
                    self.number = number
                    yield line.split()

    def next(self, expected: str) -> list[str]:
        fields = next(self._lines, None)
        if fields is None:
            raise ValueError(f"{self.path} ends after line {self.number}: expected {expected}")
        self.fields = fields
        return fields

    def error(self, what: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.number}: {what} ({' '.join(self.fields)!r})")

    def integer(self, fields: list[str], place: int, what: str) -> int:
        text = fields[place] if place < len(fields) else ""
        if not (text.isascii() and text.isdigit()):
            raise self.error(f"{what} must be a non-negative integer, not {text!r}")
        return int(text)

    def score(self, fields: list[str]) -> float:
        try:
            score = float(fields[0])
        except ValueError:
            score = math.nan
        if math.isnan(score) or score == math.inf:
            raise self.error(f"the score must be a number, not {fields[0]!r}")
        return score

    def end_of_line(self, count: int) -> None:
        if len(self.fields) > count:
            raise self.error(f"unexpected text after {self.fields[count - 1]!r}")

    def end_of_file(self) -> None:
        if next(self._lines, None) is not None:
            raise ValueError(f"{self.path}, line {self.number}: unexpected text after the last class variable")
