"""Output of the command line: tables, graphs and bars in the terminal, progress with the remaining time, JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from pmdc._support.progress import watching
from pmdc.cli.kinds import Kind

if TYPE_CHECKING:
    from pmdc.cli.losses import LossReport, Mean

_MAX_FEATURES = 20
"""More features of a kind than this are summarised in one line, unless there is a note on them."""
_MAX_STATES = 8
"""The states of a class variable that are listed."""
_BAR_WIDTH = 16
_LOSSES = ("Hamming", "subset 0/1", "joint log-loss")
_ROLES = {"class variable": "cyan", "continuous": "", "discrete": "yellow", "date": "green", "ignored": "dim"}
_CONDITIONINGS = {"partition": "partitions the rows", "input": "input", "block": "same block"}


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

    @contextmanager
    def progress(self, phase: str) -> Iterator[Bar | None]:
        """Show a progress bar, if the standard error stream is a terminal."""
        console = Console(stderr=True)
        if self.quiet or not console.is_terminal:
            yield None
            return
        with Progress(*progress_columns(), console=console, transient=True) as shown:
            bar = Bar(shown, phase)
            with watching(bar):
                yield bar


def progress_columns() -> list[ProgressColumn]:
    """Return the columns of the progress bar."""
    return [
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _RemainingColumn(),
    ]


class _RemainingColumn(ProgressColumn):
    """The remaining time of the phase, where it can be estimated."""

    def render(self, task: Task) -> Text:
        if task.time_remaining is None:
            return Text("")
        minutes, seconds = divmod(round(task.time_remaining), 60)
        return Text(f"{minutes}:{seconds:02d} left")


class Bar:
    """A progress bar that shows the phase of the work; see `pmdc._support.progress.Watcher`."""

    def __init__(self, shown: Progress, phase: str):
        self._shown = shown
        self._phase = phase
        self._task = shown.add_task(phase, total=None)

    def phase(self, name: str) -> None:
        """Show a new phase; its total is unknown until the first step."""
        if name != self._phase:
            self._phase = name
            self._restart()

    def step(self, done: float, total: float) -> None:
        """Show how much of the phase is done."""
        if done >= total > 1:  # another round of this phase may follow
            self._restart()
        else:
            self._shown.update(self._task, completed=done, total=total)

    def _restart(self) -> None:
        """Replace the task: rich cannot make the total of a task unknown again."""
        self._shown.remove_task(self._task)
        self._task = self._shown.add_task(self._phase, total=None)

    def searching(self, structure: Any) -> bool:
        """Show score and gap; the callback of the search."""
        self._shown.update(
            self._task, description=f"{self._phase}: score {structure.score:.6g}, gap {structure.gap:.2g}"
        )
        return False


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


def show_losses(screen: Screen, report: LossReport) -> None:
    """Show the three losses of the model beside those of a constant prediction."""
    table = make_table("loss", "model", "most frequent", right=("model", "most frequent"))
    for label, model, constant in zip(_LOSSES, report.model, report.most_frequent, strict=True):
        table.add_row(label, _mean(model), _mean(constant))
    screen.out.print(table)


def show_variables(screen: Screen, report: LossReport) -> None:
    """Show accuracy and log-loss of each class variable."""
    numbers = ("accuracy", "most frequent", "log-loss")
    table = make_table("class variable", *numbers, right=numbers)
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
    """Show the parents of each class variable and how they enter its local model."""
    if not hasattr(model, "graph_"):
        return
    table = make_table("class variable", "depends on", "as")
    strengths = False
    for child in model.class_names_:
        edges = sorted(model.graph_.in_edges(child, data=True), key=lambda edge: -edge[2].get("strength", 0.0))
        strengths |= any("strength" in data for _, _, data in edges)
        rows = [
            (", ".join(_parent(parent, data) for parent, _, data in edges if data["conditioning"] == way), words)
            for way, words in _CONDITIONINGS.items()
        ]
        rows = [(parents, words) for parents, words in rows if parents] or [("the features alone", "")]
        for i, (parents, words) in enumerate(rows):
            table.add_row(escape(child) if i == 0 else "", escape(parents), words)
    screen.out.print(table)
    if strengths:
        screen.print()
        screen.print("In parentheses: arc strength, the score lost without the arc.")


def _parent(name: str, data: Mapping[str, Any]) -> str:
    return f"{name} ({data['strength']:.1f})" if "strength" in data else name


def structure_json(model: Any) -> dict[str, Any]:
    """Return the structure as JSON."""
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
