"""Cells of class columns that name alternative states, such as red|blue: the option ``--alternatives``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pmdc.cli.running import BadInput
from pmdc.table_files import Cells, TableFile


def check_alternatives(sign: str | None, delimiter: str | None, missing_labels: str = "em") -> None:
    """Check the option ``--alternatives``."""
    if sign is None:
        return
    if len(sign) != 1 or sign.isalnum() or sign.isspace() or sign in "\"'.-+":
        raise BadInput(f"--alternatives {sign!r} must be one character that is in no state, such as '|'.")
    if sign == delimiter:
        raise BadInput(f"--alternatives {sign!r} is the delimiter of the table: separate the alternatives by another.")
    if missing_labels != "em":
        raise BadInput(
            f"--alternatives {sign!r} works only with --missing-labels em, not {missing_labels}: the state of such a "
            "cell is not known."
        )


def find_alternatives(table: TableFile, name: str, sign: str, known: Sequence[Any] = ()) -> dict[int, list[str]]:
    """Return the alternatives of each value of a class column that has some, by its index among the values.

    Parameters
    ----------
    sign : str
        The character that separates them.
    known : list
        The states of a fitted model; a value that is one of them has no alternatives.
    """
    cells = table[name]
    own = {state for state in known if isinstance(state, str)}
    found = [i for i in indices_with(cells, sign) if cells.values[i] not in own]
    sets = {i: [part.strip() for part in cells.values[i].split(sign)] for i in found}
    gaps = {"", *cells.format.missing} - own
    for i, states in sets.items():
        odd = [state for state in states if state in gaps]
        if odd:
            (row,) = np.flatnonzero(cells.codes == i)[:1]
            raise BadInput(
                f"{table.source}, class variable {name!r} holds {cells.values[i]!r} ({table.where([row])}): one of the "
                f"alternatives is {odd[0]!r}, which is no state. Name the possible states, such as red{sign}blue, or "
                "leave the cell empty if nothing is known."
            )
    return sets


def indices_with(cells: Cells, sign: str) -> list[int]:
    """Return which values consist of parts that are separated by a character."""
    values = [value if isinstance(value, str) else "" for value in cells.values]
    return [i for i, value in enumerate(values) if sign in value and value not in cells.format.missing]
