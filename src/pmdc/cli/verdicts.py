"""Show the losses of a model, and whether it is better than simpler predictions."""

from __future__ import annotations

import math

from rich.markup import escape

from pmdc.cli.display import Screen, make_table
from pmdc.cli.losses import ITS_MARGINALS, NO_ARCS, NO_DEPENDENCE, THIS_TABLE, LossReport, Rival
from pmdc.evaluation.verdict import LEVEL, Mean
from pmdc.network.words import listing

_LOSSES = {"hamming_loss": "Hamming", "subset_loss": "subset 0/1", "joint_log_loss": "joint log-loss"}
_UNITS = {"joint_log_loss": " nats a row"}
_CONSTANT, _INDEPENDENT = "most frequent", "independent"


def show_losses(screen: Screen, report: LossReport) -> None:
    """Show the three losses of the model beside those of simpler predictions, and the verdict."""
    numbers = ("model", _CONSTANT, _INDEPENDENT)
    table = make_table("loss", *numbers, right=numbers)
    rivals = report.most_frequent.losses, report.independent.losses
    for label, *means in zip(_LOSSES.values(), report.model, *rivals, strict=True):
        table.add_row(label, *map(_mean, means))
    screen.out.print(table)
    screen.print()
    screen.print(
        "Each loss has its own prediction: for Hamming the most probable state of each class variable, for subset 0/1 "
        "the most probable outcome as a whole; the log-loss judges the probabilities themselves, in nats a row."
    )
    screen.print(f"Most frequent: always the most frequent states of {_whose(report.most_frequent)}.")
    screen.print(f"Independent: {_independent(report.independent)}.")
    screen.print()
    _show_verdict(screen, report)


def ignored_cells(report: LossReport) -> str:
    """Say which cells are missing in the true outcomes, and what that means for the losses."""
    each = ", ".join(f"{name!r} ({count})" for name, count in report.cells_ignored.items())
    return (
        f"{sum(report.cells_ignored.values())} missing cell(s) of class variables are ignored: {each}. The subset 0/1 "
        f"loss uses the {report.n_complete} of {report.n_rows} rows that are complete."
    )


def _whose(rival: Rival) -> str:
    if rival.source == THIS_TABLE:
        return "this table (the model does not hold those of its training rows)"
    return "the training rows"


def _independent(rival: Rival) -> str:
    return {
        NO_ARCS: "models of the same kind for each class variable alone, without the graph",
        ITS_MARGINALS: "the model's own probabilities of each class variable, multiplied; for Hamming they predict the "
        "same",
        NO_DEPENDENCE: "the model itself, as it has no arc between class variables",
    }[rival.source]


def _show_verdict(screen: Screen, report: LossReport) -> None:
    rivals = {_CONSTANT: report.most_frequent, _INDEPENDENT: report.independent}
    screen.print(f"Verdict: {_sentence(report.most_frequent, 'always predicting the most frequent states')}.")
    if report.independent.source == NO_DEPENDENCE:
        del rivals[_INDEPENDENT]
    else:
        screen.print(f"Besides, {_sentence(report.independent, 'independent models')}.")
    screen.print()
    table = make_table("compared with", "loss", "the model is")
    for rival_name, rival in rivals.items():
        for i, (name, label) in enumerate(_LOSSES.items()):
            words = getattr(rival.model_is, name).words(_UNITS.get(name, ""))
            table.add_row(rival_name if i == 0 else "", label, words)
    screen.out.print(table)
    screen.print()
    screen.print(
        "± is the standard error of the difference over the same rows. It is called better or worse if chance alone "
        f"would make such a difference in fewer than {LEVEL:.0%} of cases (paired t-test)."
    )


def _sentence(rival: Rival, than: str) -> str:
    """Return in which losses the model is better, worse, or neither."""
    by_answer: dict[str, list[str]] = {}
    for name, label in _LOSSES.items():
        answer = getattr(rival.model_is, name).answer
        by_answer.setdefault("no clear difference" if answer == "the same" else answer, []).append(label)
    every = len(by_answer) == 1
    parts = []
    for answer, words in (("worse", "WORSE"), ("better", "better")):
        if answer in by_answer:
            losses = "all three losses" if every else listing(by_answer[answer])
            parts.append(f"the model is {words} than {than} in {losses}")
    if "no clear difference" in by_answer:
        losses = "all three losses" if every else listing(by_answer["no clear difference"])
        parts.append(f"no clear difference {'from ' + than + ' ' if every else ''}in {losses}")
    return "; ".join(parts)


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
    if math.isnan(mean.value):
        return "unknown"
    if not math.isfinite(mean.value):
        return "infinite"
    return f"{mean.value:.3f}" + ("" if mean.error is None else f" ± {mean.error:.3f}")
