"""Output of the command line: notes, tables of columns and of rows, JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from pmdc._support.progress import watching
from pmdc.cli.kinds import Kind
from pmdc.cli.progress import Bar, Clock, progress_columns

_MAX_FEATURES = 20
"""More features of a kind than this are summarised in one line, unless there is a note on them."""
_MAX_STATES = 8
"""The states of a class variable that are listed."""
_BAR_WIDTH = 16
_ROLES = {"class variable": "cyan", "continuous": "", "discrete": "yellow", "date": "green", "ignored": "dim"}


class Screen:
    """Writes reports to the standard output, and notes and warnings to the standard error stream.

    Parameters
    ----------
    quiet : bool
        Only errors and warnings.
    data : bool
        Whether the standard output is for data; reports then go to the standard error stream.
    """

    def __init__(self, quiet: bool = False, data: bool = False):
        self.quiet = quiet
        self._clock = Clock()
        self.out = Console(stderr=data, quiet=quiet, highlight=False, emoji=False)
        self.err = Console(stderr=True, quiet=quiet, highlight=False, emoji=False)

    def print(self, message: str = "") -> None:
        """Print a line of the report."""
        self.out.print(message, markup=False, soft_wrap=not self.out.is_terminal)

    def note(self, command: str, message: str) -> None:
        """Print a note, unless quiet."""
        self.err.print(f"pmdc {command}: {message}", markup=False, soft_wrap=True)

    def warn(self, command: str, message: str) -> None:
        """Print a warning, even if quiet."""
        Console(stderr=True, highlight=False, emoji=False).print(
            f"pmdc {command}: warning: {message}", markup=False, soft_wrap=True
        )

    @property
    def shows_progress(self) -> bool:
        """Whether there is a terminal for a progress bar, and somebody who wants it."""
        return not self.quiet and Console(stderr=True).is_terminal

    @contextmanager
    def progress(self, phase: str) -> Iterator[Bar | None]:
        """Show a progress bar, if the standard error stream is a terminal."""
        if not self.shows_progress:
            yield None
            return
        with Progress(*progress_columns(), console=Console(stderr=True), transient=True, expand=True) as shown:
            bar = Bar(shown, phase, self._clock)
            with watching(bar):
                yield bar


def print_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document on the standard output; numbers that are not finite become null."""
    sys.stdout.write(json.dumps(_finite(document), indent=2, ensure_ascii=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return value.item() if hasattr(value, "item") else str(value)


# Tables -------------------------------------------------------------------------------------------------------


def make_table(*headings: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        aligned = heading in right
        table.add_column(
            heading, justify="right" if aligned else "left", no_wrap=aligned, overflow="fold", header_style="bold"
        )
    return table


def show_kinds(screen: Screen, kinds: Sequence[Kind], n_rows: int, source: str) -> None:
    """Show how each column is used."""
    counts = {role: sum(kind.role == role for kind in kinds) for role in _ROLES}
    counted = [f"{count} {_plural(role, count)}" for role, count in counts.items() if count]
    screen.print(f"{source}: {n_rows} rows; {', '.join(counted)}")
    screen.print()
    table = make_table("column", "kind", "values")
    plain = {
        role: [kind for kind in kinds if kind.role == role and not kind.note]
        for role in _ROLES
        if role != "class variable"
    }
    together = {role: few for role, few in plain.items() if len(few) > _MAX_FEATURES}
    for kind in kinds:
        if not kind.note and kind.role in together:
            continue
        values = kind.values
        if kind.states:
            values += ": " + _some_states(kind.states)
            values += f"; {kind.missing} missing" if kind.missing else ""
            values += f"; {kind.alternatives} with alternatives" if kind.alternatives else ""
        holds = Text(values)
        if kind.note:
            holds.append(f"\n{kind.note}" if kind.states else f"; {kind.note}", style="magenta")
        table.add_row(escape(kind.name), Text(kind.role, style=_ROLES[kind.role]), holds)
    for role, some in together.items():
        table.add_row(
            f"{len(some)} columns", Text(role, style=_ROLES[role]), escape(f"{some[0].name} ... {some[-1].name}")
        )
    screen.out.print(table)
    screen.print()


def show_hints(screen: Screen, hints: Sequence[str]) -> None:
    """Show what deserves a word before the work."""
    for hint in hints:
        screen.print(f"- {hint}")
    if hints:
        screen.print()


def _plural(role: str, count: int) -> str:
    if role in ("continuous", "discrete"):
        role += " feature"
    return role if count == 1 or role == "ignored" else role + "s"


def _some_states(states: Mapping[str, int]) -> str:
    shown = ", ".join(f"{state} ({count})" for state, count in list(states.items())[:_MAX_STATES])
    return shown + (f", ... ({len(states) - _MAX_STATES} more)" if len(states) > _MAX_STATES else "")


def show_row(
    screen: Screen, model: Any, marginals: Sequence[Any], predicted: Sequence[Any], given: Sequence[str]
) -> None:
    """Show the marginals of one row as bars, with predicted and known states marked."""
    table = make_table("class variable", "state", "probability", "", right=("probability",))
    for name, states, marginal, state in zip(
        model.class_names_, model.class_table_.states, marginals, predicted, strict=True
    ):
        parents = list(model.graph_.predecessors(name)) if hasattr(model, "graph_") else []
        for i, (one, probability) in enumerate(zip(states.tolist(), marginal.tolist(), strict=True)):
            mark = ""
            if one == state:
                mark = "known" if name in given else "predicted"
            length = round(_BAR_WIDTH * probability)
            bar = Text("█" * length + "·" * (_BAR_WIDTH - length), style="cyan" if mark else "dim")
            label = escape(name) if i == 0 else ""
            if i == 1 and parents:
                label = f"[dim]from {escape(', '.join(parents))}[/dim]"
            table.add_row(label, escape(str(one)), bar + Text(f" {probability:6.1%}"), mark)
        table.add_section()
    screen.out.print(table)
