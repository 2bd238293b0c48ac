"""Show the losses of a model, and whether it is better than simpler predictions."""

from __future__ import annotations

from rich.markup import escape

from pmdc.cli.display import Screen, make_table
from pmdc.evaluation.losses import LossReport
from pmdc.evaluation.wording import (
    EACH_ITS_OWN,
    LOSSES,
    PAIRED_TEST,
    UNITS,
    independent_is,
    mean_words,
    most_frequent_is,
    rivals,
    verdict,
)


def show_losses(screen: Screen, report: LossReport) -> None:
    """Show the losses of the model beside those of simpler predictions, and the verdict."""
    numbers = ("model", "most frequent", "independent")
    table = make_table("loss", *numbers, right=numbers)
    others = report.most_frequent.losses, report.independent.losses
    for label, *means in zip(LOSSES.values(), report.model, *others, strict=True):
        table.add_row(label, *map(mean_words, means))
    screen.out.print(table)
    screen.print()
    for line in (EACH_ITS_OWN, most_frequent_is(report), independent_is(report), ""):
        screen.print(line)
    _show_verdict(screen, report)


def _show_verdict(screen: Screen, report: LossReport) -> None:
    for sentence in verdict(report):
        screen.print(sentence)
    screen.print()
    table = make_table("compared with", "loss", "the model is")
    for rival_name, rival in rivals(report).items():
        for i, (name, label) in enumerate(LOSSES.items()):
            words = getattr(rival.model_is, name).words(UNITS.get(name, ""))
            table.add_row(rival_name if i == 0 else "", label, words)
    screen.out.print(table)
    screen.print()
    screen.print(PAIRED_TEST)


def show_variables(screen: Screen, report: LossReport) -> None:
    """Show accuracy and log-loss of each class variable."""
    numbers = ("accuracy", "most frequent", "balanced", "log-loss")
    table = make_table("class variable", *numbers, right=numbers)
    for name, losses in report.class_variables.items():
        table.add_row(
            escape(name),
            mean_words(losses.accuracy),
            f"{losses.most_frequent_accuracy:.3f}",
            f"{losses.balanced_accuracy:.3f}",
            mean_words(losses.log_loss),
        )
    screen.out.print(table)
