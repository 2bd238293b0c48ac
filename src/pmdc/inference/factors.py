"""Factors of a distribution over class variables, and their log tables for a batch of rows.

The scope of a factor is a tuple of class variables: the axes of its table, after the axis of the rows. The tables of a
Bayesian network are factors too, each with the scope `(*parents, variable)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmdc._support.arrays import Codes, Floats

Scopes = Sequence[tuple[int, ...]]


def family_scopes(parents: Scopes) -> tuple[tuple[int, ...], ...]:
    """Return the scopes of the conditional tables of a Bayesian network, one for each class variable.

    Examples
    --------
    >>> family_scopes([(), (0,), (0, 1)])
    ((0,), (0, 1), (0, 1, 2))
    """
    return tuple((*members, k) for k, members in enumerate(parents))


def check_scopes(sizes: Sequence[int], scopes: Scopes) -> None:
    """Raise ValueError unless each scope is valid and each class variable is in at least one scope."""
    if not sizes or min(sizes) < 1:
        raise ValueError(f"sizes={sizes}: give at least one class variable, each with at least one state.")
    for i, scope in enumerate(scopes):
        if not scope or len(set(scope)) != len(scope) or not all(0 <= v < len(sizes) for v in scope):
            raise ValueError(
                f"scopes[{i}]={scope}: give at least one class variable, as distinct indices below {len(sizes)}."
            )
    absent = sorted(set(range(len(sizes))).difference(*scopes))
    if absent:
        raise ValueError(f"scopes must hold every class variable at least once, but {absent} are in none of them.")


def check_tables(sizes: Sequence[int], scopes: Scopes, tables: Sequence[Floats], name: str = "tables") -> int:
    """Compare the shape of each table with its scope and return the number of rows."""
    if len(tables) != len(scopes):
        raise ValueError(f"{name} has {len(tables)} entries; {len(scopes)} are needed, one for each factor.")
    n_rows = len(tables[0])
    for i, (table, scope) in enumerate(zip(tables, scopes, strict=True)):
        shape = (n_rows, *(sizes[v] for v in scope))
        if table.shape != shape:
            raise ValueError(
                f"{name}[{i}] has shape {table.shape}; for its class variables {tuple(scope)} it must be {shape}."
            )
    return n_rows


def outcome_log_prob(scopes: Scopes, tables: Sequence[Floats], codes: Codes, rows: Codes | None = None) -> Floats:
    """Return the log probability of one outcome for each row (or for the given rows)."""
    every = np.arange(len(codes)) if rows is None else rows
    total = np.zeros(len(codes))
    for scope, table in zip(scopes, tables, strict=True):
        total += table[(every, *(codes[:, v] for v in scope))]
    return total
