"""A short demo: learn a network on real data, show it, and compare it with other methods on held-out rows.

python -m pmdc.demo --out out
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from pmdc._support.progress import tell_phase, watching
from pmdc.baselines import BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.classifier import GBNC
from pmdc.datasets import load_election
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.evaluation.held_out import Decision, evaluate
from pmdc.evaluation.verdict import Differences, Losses, RowLosses
from pmdc.model_selection import MultiStratifiedKFold
from pmdc.network.words import arcs, describe_structure, headline, n_rows_of, reading

_OTHERS: dict[str, tuple[MultiDimensionalClassifier, tuple[Decision, Decision]]] = {
    # the classifier, and its decisions for the Hamming loss and for the subset 0/1 loss
    "binary relevance": (BinaryRelevance(), ("hamming", "subset")),
    "classifier chain": (ClassifierChain(), ("greedy", "greedy")),
    "class powerset": (ClassPowerset(), ("hamming", "subset")),
}
_LOSSES = {"hamming_loss": "Hamming loss", "subset_loss": "subset 0/1 loss", "joint_log_loss": "joint log-loss"}

Progress = Callable[[str], AbstractContextManager[Any]]
"""Shows the progress of the work within its context, beginning with a phase of this name."""


class PhaseLines:
    """A progress watcher that writes each new phase as a line to the standard error stream."""

    def __init__(self) -> None:
        self._written: set[str] = set()

    def phase(self, name: str) -> None:
        if name not in self._written:
            self._written.add(name)
            sys.stderr.write(f"{name} ...\n")
            sys.stderr.flush()

    def step(self, done: float, total: float) -> None:
        pass


@contextmanager
def phase_lines(phase: str) -> Iterator[None]:
    """Write the phases within this context as lines."""
    watcher = PhaseLines()
    watcher.phase(phase)
    with watching(watcher):
        yield


def survey_table() -> Any:
    """Return the survey as one table."""
    survey = load_election(levels=3)
    return survey.X.join(survey.Y)


def graph_text(model: GBNC) -> str:
    """Return the arcs as text, one per line, with a reading of the strongest."""
    n_rows = n_rows_of(model)
    found = [arc for name in model.class_names_ for arc in arcs(model.graph_, name, n_rows)]
    lines = []
    for arc in found:
        arrow = "->" if arc.determined else "--"
        times = "" if arc.times is None else f"{arc.times:8.2f} times as likely"
        lines.append(f"  {arc.parent:>10} {arrow} {arc.child:<10}{times}")
    known = [arc for arc in found if arc.times is not None]
    if known:
        lines.append(f"For example, {reading(max(known, key=lambda arc: arc.times or 0.0), model.criterion)}.")
    if not all(arc.determined for arc in found):
        lines.append("Where there is no arrow head (--), the data do not determine the direction.")
    return "\n".join(lines)


def comparison_table(losses: dict[str, Losses]) -> str:
    """Return the mean losses with their standard errors as text."""
    lines = [f"  {'':<18}" + "".join(f"{label:>18}" for label in _LOSSES.values())]
    for name, found in losses.items():
        means = (getattr(found, loss) for loss in _LOSSES)
        cells = (f"{mean.value:.3f}" + ("" if mean.error is None else f" ± {mean.error:.3f}") for mean in means)
        lines.append(f"  {name:<18}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


def verdicts(model: RowLosses, others: dict[str, RowLosses]) -> str:
    """Return, for each other method and loss, whether GBNC is better."""
    lines = []
    for name, rows in others.items():
        differences = Differences.of(model, rows)
        for place, (loss, label) in enumerate(_LOSSES.items()):
            words = getattr(differences, loss).words()
            lines.append(f"  {name if place == 0 else '':<18}{label:<18}{words}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, progress: Progress = phase_lines) -> None:
    """Run the demo; writes ``graph.png`` into the folder given by ``--out``."""
    parser = argparse.ArgumentParser(prog="python -m pmdc.demo", description="Learn a network on an election survey.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    options = parser.parse_args(arguments)

    survey = load_election(levels=3)
    train, test = next(MultiStratifiedKFold(3, shuffle=True, random_state=0).split(survey.X, survey.Y))
    _write(
        f"US election survey 1996: {len(survey.X)} respondents\n"
        f"  class variables  {', '.join(survey.Y.columns)}\n"
        f"  features         {', '.join(survey.X.columns)} (education is discrete)\n\n"
    )
    training, testing = ((survey.X.iloc[rows], survey.Y.iloc[rows]) for rows in (train, test))
    with progress("learning the network"):
        model = GBNC().fit(*training)
    _write(f"Learned from {len(train)} of them:\n  {headline(model)}\n\n{graph_text(model)}\n")
    _write(f"Details of the graph: {describe_structure(model)}.\n\n")

    with progress("comparing with other methods"):
        rows = RowLosses.of(evaluate(model, *testing))
        others = {}
        for name, (other, decisions) in _OTHERS.items():
            tell_phase(f"fitting and testing: {name}")
            others[name] = RowLosses.of(evaluate(other.fit(*training), *testing, decisions), decisions)
    _write(f"Losses on the other {len(test)} respondents, mean ± standard error (lower is better):\n")
    _write(comparison_table({name: losses.means() for name, losses in {"GBNC": rows, **others}.items()}))
    _write(f"\n\nGBNC compared with the others on the same respondents:\n{verdicts(rows, others)}\n\n")
    with progress("drawing the graph"):
        picture = _draw(model, options.out)
    _write(f"The graph was drawn to {picture}\n")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _draw(model: GBNC, folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "graph.png"
    figure: Any = model.plot(title="What the answers depend on").figure
    figure.savefig(picture, dpi=150)
    return picture


if __name__ == "__main__":
    main()
