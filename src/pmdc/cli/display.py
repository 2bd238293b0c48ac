"""What the command line shows: tables, graphs and bars in the terminal, progress with the time left, JSON."""

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
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from pmdc._support.progress import watching
from pmdc.cli.kinds import Kind
from pmdc.cli.losses import LossReport, Mean

_PLAIN_FEATURES = 20
"""More features of a kind than this that need no remark are shown together."""
_STATES = 8
"""The most states of a class variable that are listed."""
_BAR = 16
_LOSSES = ("Hamming", "subset 0/1", "joint log-loss")
_ROLES = {"class variable": "cyan", "continuous": "", "discrete": "yellow", "ignored": "dim"}
_WAYS = {"partition": "divides the rows", "input": "input"}


class Screen:
    """Where reports and remarks go.

    Parameters
    ----------
    quiet : bool
        Only errors and warnings.
    data : bool
        The standard output is for data, so that reports go to the standard error stream.
    """

    def __init__(self, quiet: bool = False, data: bool = False):
        self.quiet = quiet
        self.out = Console(stderr=data, quiet=quiet, highlight=False, emoji=False)
        self.remarks = Console(stderr=True, quiet=quiet, highlight=False, emoji=False)

    def say(self, message: str = "") -> None:
        """A line of the report."""
        self.out.print(message, markup=False, soft_wrap=not self.out.is_terminal)

    def note(self, command: str, message: str) -> None:
        """A remark for people, never in the way of data."""
        self.remarks.print(f"pmdc {command}: {message}", markup=False, soft_wrap=True)

    def warn(self, command: str, message: str) -> None:
        """What may make results worse, told in any case."""
        Console(stderr=True, highlight=False, emoji=False).print(
            f"pmdc {command}: warning: {message}", markup=False, soft_wrap=True
        )

    @contextmanager
    def progress(self, phase: str) -> Iterator[Bar | None]:
        """A progress bar, if somebody looks at it."""
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            yield None
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console, transient=True) as shown:
            bar = Bar(shown, phase)
            with watching(bar):
                yield bar


class Bar:
    """A progress bar that is told of the phases of the work."""

    def __init__(self, shown: Progress, phase: str):
        self._shown = shown
        self._phase = phase
        self._task = shown.add_task(phase, total=None)

    def phase(self, name: str) -> None:
        if name != self._phase:
            self._phase = name
            self._shown.reset(self._task, description=name, total=None)

    def step(self, done: float, total: float) -> None:
        if done >= total > 1:  # the next phase, or another round of this one
            self._shown.reset(self._task, total=None)
        else:
            self._shown.update(self._task, completed=done, total=total)

    def searching(self, structure: Any) -> bool:
        """Told by the search of every better graph and bound."""
        self._shown.update(
            self._task, description=f"{self._phase}: score {structure.score:.6g}, gap {structure.gap:.2g}"
        )
        return False


def print_json(document: Mapping[str, Any]) -> None:
    """One document on the standard output; what is not finite is null."""
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


def _table(*headings: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        aligned = heading in right
        table.add_column(
            heading, justify="right" if aligned else "left", no_wrap=aligned, overflow="fold", header_style="bold"
        )
    return table


def show_kinds(screen: Screen, kinds: Sequence[Kind], n_rows: int, source: str) -> None:
    """What each column is taken for."""
    counts = {role: sum(kind.role == role for kind in kinds) for role in _ROLES}
    told = [f"{count} {_plural(role, count)}" for role, count in counts.items() if count]
    screen.say(f"{source}: {n_rows} rows; {', '.join(told)}")
    screen.say()
    table = _table("column", "kind", "values")
    plain = {
        role: [kind for kind in kinds if kind.role == role and not kind.note]
        for role in _ROLES
        if role != "class variable"
    }
    together = {role: few for role, few in plain.items() if len(few) > _PLAIN_FEATURES}
    for kind in kinds:
        if not kind.note and kind.role in together:
            continue
        values = kind.values
        if kind.states:
            values += ": " + _some_states(kind.states)
        holds = Text(values)
        if kind.note:
            holds.append(f"\n{kind.note}" if kind.states else f"; {kind.note}", style="magenta")
        table.add_row(escape(kind.name), Text(kind.role, style=_ROLES[kind.role]), holds)
    for role, some in together.items():
        table.add_row(
            f"{len(some)} columns", Text(role, style=_ROLES[role]), escape(f"{some[0].name} ... {some[-1].name}")
        )
    screen.out.print(table)
    screen.say()


def _plural(role: str, count: int) -> str:
    if role in ("continuous", "discrete"):
        role += " feature"
    return role if count == 1 or role == "ignored" else role + "s"


def _some_states(states: Mapping[str, int]) -> str:
    shown = ", ".join(f"{state} ({count})" for state, count in list(states.items())[:_STATES])
    return shown + (f", ... ({len(states) - _STATES} more)" if len(states) > _STATES else "")


def show_losses(screen: Screen, report: LossReport) -> None:
    """Show the three losses of the model beside those of a constant prediction."""
    table = _table("loss", "model", "most frequent", right=("model", "most frequent"))
    for label, model, constant in zip(_LOSSES, report.model, report.most_frequent, strict=True):
        table.add_row(label, _mean(model), _mean(constant))
    screen.out.print(table)


def show_variables(screen: Screen, report: LossReport) -> None:
    """Show accuracy and log-loss of each class variable."""
    numbers = ("accuracy", "most frequent", "log-loss")
    table = _table("class variable", *numbers, right=numbers)
    for name, losses in report.class_variables.items():
        table.add_row(
            escape(name), _mean(losses.accuracy), f"{losses.most_frequent_accuracy:.3f}", _mean(losses.log_loss)
        )
    screen.out.print(table)


def _mean(mean: Mean) -> str:
    if not math.isfinite(mean.value):
        return "infinite"
    return f"{mean.value:.3f}" + ("" if mean.error is None else f" ± {mean.error:.3f}")


# Models -------------------------------------------------------------------------------------------------------


def show_graph(screen: Screen, model: Any) -> None:
    """The structure in words: on what each class variable depends, and in which way."""
    if not hasattr(model, "graph_"):
        return
    table = _table("class variable", "depends on", "as")
    strengths = False
    for child in model.class_names_:
        edges = sorted(model.graph_.in_edges(child, data=True), key=lambda edge: -edge[2].get("strength", 0.0))
        strengths |= any("strength" in data for _, _, data in edges)
        rows = [
            (", ".join(_parent(parent, data) for parent, _, data in edges if data["conditioning"] == way), words)
            for way, words in _WAYS.items()
        ]
        rows = [(parents, words) for parents, words in rows if parents] or [("the continuous features alone", "")]
        for i, (parents, words) in enumerate(rows):
            table.add_row(escape(child) if i == 0 else "", escape(parents), words)
    screen.out.print(table)
    if strengths:
        screen.say()
        screen.say("In brackets is what the score loses without the parent.")


def _parent(name: str, data: Mapping[str, Any]) -> str:
    return f"{name} ({data['strength']:.1f})" if "strength" in data else name


def structure_words(model: Any) -> str:
    """Status, score and gap of the structure."""
    structure = model.structure_
    return f"{structure.status}; score {structure.score:.2f}, gap {structure.gap:.3g}"


def structure_json(model: Any) -> dict[str, Any]:
    """The structure for machines."""
    structure = model.structure_
    edges = [{"parent": parent, "child": child, **data} for parent, child, data in model.graph_.edges(data=True)]
    return {
        "status": structure.status,
        "score": structure.score,
        "bound": structure.bound,
        "gap": structure.gap,
        "method": structure.method,
        "edges": edges,
    }


def show_row(
    screen: Screen, model: Any, marginals: Sequence[Any], predicted: Sequence[Any], given: Sequence[str]
) -> None:
    """The marginals of one row as bars, the predicted state marked."""
    table = _table("class variable", "state", "probability", "", right=("probability",))
    for name, states, marginal, state in zip(
        model.class_names_, model.class_table_.states, marginals, predicted, strict=True
    ):
        parents = list(model.graph_.predecessors(name)) if hasattr(model, "graph_") else []
        for i, (one, probability) in enumerate(zip(states.tolist(), marginal.tolist(), strict=True)):
            mark = ""
            if one == state:
                mark = "known" if name in given else "predicted"
            length = round(_BAR * probability)
            bar = Text("█" * length + "·" * (_BAR - length), style="cyan" if mark else "dim")
            label = escape(name) if i == 0 else ""
            if i == 1 and parents:
                label = f"[dim]from {escape(', '.join(parents))}[/dim]"
            table.add_row(label, escape(str(one)), bar + Text(f" {probability:6.1%}"), mark)
        table.add_section()
    screen.out.print(table)
