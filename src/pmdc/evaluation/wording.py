"""Losses and verdicts in words, for the command line and for reports."""

from __future__ import annotations

import math

from pmdc.evaluation.losses import ITS_MARGINALS, NO_ARCS, NO_DEPENDENCE, THIS_TABLE, LossReport, Rival
from pmdc.evaluation.verdict import LEVEL, Mean
from pmdc.network.words import listing

LOSSES = {
    "hamming_loss": "Hamming",
    "balanced_loss": "balanced",
    "subset_loss": "subset 0/1",
    "joint_log_loss": "joint log-loss",
}
UNITS = {"joint_log_loss": " nats a row"}

EACH_ITS_OWN = (
    "Each loss has its own prediction: for Hamming the most probable state of each class variable, for balanced (one "
    "minus the mean recall of the states, so that rare ones count) the state that is most probable relative to its "
    "frequency in training, for subset 0/1 the most probable outcome as a whole; the log-loss judges the probabilities "
    "themselves, in nats a row."
)
PAIRED_TEST = (
    "± is the standard error of the difference over the same rows. It is called better or worse if chance alone would "
    f"make such a difference in fewer than {LEVEL:.0%} of cases (paired t-test)."
)


def most_frequent_is(report: LossReport) -> str:
    """Say what the constant prediction is."""
    training = report.most_frequent.source != THIS_TABLE
    whose = "the training rows" if training else "this table (the model does not hold those of its training rows)"
    return f"Most frequent: always the most frequent states of {whose}."


def independent_is(report: LossReport) -> str:
    """Say what the independent models are."""
    what = {
        NO_ARCS: "models of the same kind for each class variable alone, without the graph",
        ITS_MARGINALS: "the model's own probabilities of each class variable, multiplied; for Hamming and balanced "
        "they predict the same",
        NO_DEPENDENCE: "the model itself, as it has no arc between class variables",
    }[report.independent.source]
    return f"Independent: {what}."


def verdict(report: LossReport) -> list[str]:
    """Return the sentences of the verdict."""
    sentences = [f"Verdict: {_sentence(report.most_frequent, 'always predicting the most frequent states')}."]
    if report.independent.source != NO_DEPENDENCE:
        sentences.append(f"Besides, {_sentence(report.independent, 'independent models')}.")
    return sentences


def rivals(report: LossReport) -> dict[str, Rival]:
    """Return what the model is compared with, by name; a model without arcs is not compared with itself."""
    found = {"most frequent": report.most_frequent, "independent": report.independent}
    if report.independent.source == NO_DEPENDENCE:
        del found["independent"]
    return found


def _sentence(rival: Rival, than: str) -> str:
    """Return in which losses the model is better, worse, or neither."""
    by_answer: dict[str, list[str]] = {}
    for name, label in LOSSES.items():
        answer = getattr(rival.model_is, name).answer
        by_answer.setdefault("no clear difference" if answer == "the same" else answer, []).append(label)
    every = len(by_answer) == 1
    parts = []
    for answer, words in (("worse", "WORSE"), ("better", "better")):
        if answer in by_answer:
            losses = "all losses" if every else listing(by_answer[answer])
            parts.append(f"the model is {words} than {than} in {losses}")
    if "no clear difference" in by_answer:
        losses = "all losses" if every else listing(by_answer["no clear difference"])
        parts.append(f"no clear difference {'from ' + than + ' ' if every else ''}in {losses}")
    return "; ".join(parts)


def ignored_cells(report: LossReport) -> str:
    """Say which cells are missing in the true outcomes, and what that means for the losses."""
    each = ", ".join(f"{name!r} ({count})" for name, count in report.cells_ignored.items())
    return (
        f"{sum(report.cells_ignored.values())} missing cell(s) of class variables are ignored: {each}. The subset 0/1 "
        f"loss uses the {report.n_complete} of {report.n_rows} rows that are complete."
    )


def mean_words(mean: Mean) -> str:
    """Return a mean with its standard error."""
    if math.isnan(mean.value):
        return "unknown"
    if not math.isfinite(mean.value):
        return "infinite"
    return f"{mean.value:.3f}" + ("" if mean.error is None else f" ± {mean.error:.3f}")
