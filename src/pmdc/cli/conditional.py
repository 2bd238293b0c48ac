"""``pmdc show --conditional``: the conditional table of a class variable given its parents, for one or many rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from pmdc._support.arrays import Codes, Floats
from pmdc._support.checks import suggest
from pmdc.cli.display import Screen, make_table, print_json
from pmdc.cli.matching import Matched
from pmdc.cli.pictures import save_figure
from pmdc.cli.running import BadInput, work

_MAX_CONFIGURATIONS = 40
"""The configurations of the parents that are listed, the most probable ones."""
_MAX_STATES = 8
"""The states that have a column, the most probable ones."""


@dataclass(frozen=True)
class ConditionalTable:
    """P(class variable | parents), the mean over rows.

    Attributes
    ----------
    name : str
    parents : list of str
    configurations : list of lists of states
        The states of the parents.
    states : list of states
        Of the class variable.
    probabilities : array of shape (n_configurations, n_states)
    shares : array of shape (n_configurations,)
        The mean probability of each configuration.
    """

    name: str
    parents: list[str]
    configurations: list[list[Any]]
    states: list[Any]
    probabilities: Floats
    shares: Floats

    def as_json(self) -> dict[str, Any]:
        return {
            "class_variable": self.name,
            "parents": self.parents,
            "rows": [
                {
                    "given": dict(zip(self.parents, configuration, strict=True)),
                    "probability_of_given": float(share),
                    "probabilities": {str(s): float(p) for s, p in zip(self.states, some, strict=True)},
                }
                for configuration, share, some in zip(self.configurations, self.shares, self.probabilities, strict=True)
            ],
        }


def check_name(model: Any, name: str) -> None:
    """Raise an error if there is no such class variable, or if the model has no conditional tables."""
    if name not in model.class_names_:
        raise BadInput(
            f"--conditional {name!r} is not a class variable of the model{suggest(name, model.class_names_)}"
        )
    if not hasattr(model, "graph_"):
        raise BadInput(
            f"--conditional needs a model with a graph, and this is a {type(model).__name__}: fit one by pmdc fit."
        )


def show_conditional(
    screen: Screen, model: Any, name: str, used: Matched, place: str, output: Path | None, json: bool
) -> None:
    """Show the conditional table for the rows of a table, or draw it for one row.

    Parameters
    ----------
    name : str
        The class variable.
    used : Matched
        The rows.
    place : str
        Where they come from.
    output : path or None
        A picture, for one row.
    """
    with screen.progress("computing the table"), work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        if output is not None:
            save_figure(model.predict_joint(used.X).plot_table(name, 0), output)
            screen.note("show", f"the table was written to {output}.")
        found = conditional_table(model, used.X, name)
    if json:
        print_json({"table": place, **found.as_json()})
    elif output is None:
        _show(screen, found, place, len(used.rows))


def conditional_table(model: Any, X: Any, name: str) -> ConditionalTable:
    """Return P(class variable | parents) over the rows of X.

    It is the mean of P(class variable, parents | x) over the rows, divided by the mean of P(parents | x): rows in which
    a configuration of the parents is more probable count more.
    """
    from pmdc.evaluation.held_out import row_batches, take_rows

    names, states = model.class_table_.names, [list(s.tolist()) for s in model.class_table_.states]
    k = names.index(name)
    joint_sum: Any = 0.0
    plain_sum: Any = 0.0
    weights: Any = 0.0
    parents: tuple[int, ...] = ()
    for block in row_batches(len(X)):
        joint = model.predict_joint(take_rows(X, block))
        parents = joint.parents[k]
        tables = np.exp(joint.log_tables[k]).reshape(len(joint), -1, len(states[k]))
        weight = joint.joint(parents).reshape(len(joint), -1) if parents else np.ones((len(joint), 1))
        joint_sum = joint_sum + np.einsum("nc,ncs->cs", weight, tables)
        plain_sum, weights = plain_sum + tables.sum(axis=0), weights + weight.sum(axis=0)
    possible = weights > 0
    probabilities = np.where(possible[:, None], joint_sum, plain_sum)
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    sizes = [len(states[p]) for p in parents]
    codes: Codes = (
        np.column_stack(np.unravel_index(np.arange(len(weights)), sizes)) if parents else np.empty((1, 0), int)
    )
    return ConditionalTable(
        name,
        [names[p] for p in parents],
        [[states[p][code] for p, code in zip(parents, some, strict=True)] for some in codes.tolist()],
        states[k],
        probabilities,
        weights / len(X),
    )


def _show(screen: Screen, found: ConditionalTable, place: str, n_rows: int) -> None:
    over = "" if n_rows == 1 else f", over {n_rows} rows"
    words = f" given {', '.join(found.parents)} and the features" if found.parents else " given the features alone"
    screen.print(f"{place}: probabilities of {found.name}{words}{over}:")
    screen.print()
    rows = np.arange(len(found.shares))
    if len(rows) > _MAX_CONFIGURATIONS:
        rows = np.argsort(-found.shares, kind="stable")[:_MAX_CONFIGURATIONS]
    order = np.argsort(-(found.shares @ found.probabilities), kind="stable")
    columns = np.sort(order[:_MAX_STATES])
    given = " · ".join(found.parents) or "no parents"
    numbers = [str(found.states[j]) for j in columns]
    table = make_table(*map(escape, [given, *numbers, "share"]), right=[*map(escape, numbers), "share"])
    for i in rows:
        states = " · ".join(map(str, found.configurations[i])) or "-"
        table.add_row(escape(states), *(f"{found.probabilities[i, j]:.1%}" for j in columns), f"{found.shares[i]:.1%}")
    screen.out.print(table)
    screen.print()
    if found.parents:
        mean = "" if n_rows == 1 else ", the mean over the rows"
        screen.print(f"Share: the probability of these states of the parents{mean}.")
    if len(rows) < len(found.shares):
        screen.print(
            f"The {len(rows)} most probable of {len(found.shares)} configurations of the parents "
            f"({found.shares[rows].sum():.1%} in total); --json prints all."
        )
    if len(columns) < len(found.states):
        screen.print(f"The {len(columns)} most probable of {len(found.states)} states; --json prints all.")
