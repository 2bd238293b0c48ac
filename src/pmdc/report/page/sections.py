"""The sections about the model as a whole: what it is, how good it is, what it uses. Each function returns one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from pmdc.evaluation.verdict import Difference
from pmdc.evaluation.wording import (
    EACH_ITS_OWN,
    LOSSES,
    PAIRED_TEST,
    UNITS,
    ignored_cells,
    independent_is,
    mean_words,
    most_frequent_is,
    rivals,
    verdict,
)
from pmdc.explain import Importance
from pmdc.network.words import CONDITIONINGS, EITHER_WAY, Arc, arcs, n_rows_of, reading
from pmdc.report.page.data import NONE, long_table, share
from pmdc.report.page.elements import Content, E, bar, named, note, paragraph, section, sentence, table
from pmdc.report.page.findings import MAX_OUTCOMES, Findings, Sets, SetSizes
from pmdc.report.page.pictures import calibration_picture, graph_picture
from pmdc.report.selection import MAX_ARCS, strongest_arcs

_TOP_FEATURES = 5
_ADDED = "log-loss added, nats a row"
_NOW = "on these rows"
_UNSEEN = (
    "All numbers are about rows that the model should not have seen in training. It cannot tell whether it has; on "
    "training rows they would be too optimistic."
)
_KINDS = {"outcomes": "whole outcomes", "variables": "states of each class variable"}


# In short --------------------------------------------------------------------------------------------------------


def summary_section(found: Findings) -> Element:
    """Return the most important results in words and numbers."""
    said = found.model.summary() if hasattr(found.model, "graph_") else ""
    return section(
        "summary",
        "In short",
        _training_rows() if found.like_training else None,
        paragraph(sentence(said, found.names)) if said else None,
        paragraph(" ".join(verdict(found.losses))),
        _facts(found),
        None if found.like_training else note(_UNSEEN),
    )


def _training_rows() -> Element:
    return E(
        "p",
        E("strong", "These look like the training rows. "),
        "All states occur exactly as often as in the rows from which the model was learned. If they are the same rows, "
        "all losses below are too optimistic: a model knows its own training rows. Make the report with rows that were "
        "kept apart.",
        class_="warning",
    )


def _facts(found: Findings) -> Element:
    losses = found.losses.model
    nats = losses.joint_log_loss.value
    likely = f"{math.exp(-nats):.2g}" if math.isfinite(nats) else "0"
    accuracy, whole = _percent(1 - losses.hamming_loss.value), _percent(1 - losses.subset_loss.value)
    n_complete = found.losses.n_complete
    tiles = [
        ("States predicted right", accuracy, "of all known states"),
        (
            "Whole rows predicted right",
            whole,
            f"predicted as a whole; {n_complete:,} complete row{'s' * (n_complete != 1)}",
        ),
        ("Joint log-loss", _number(nats), f"the truth has probability {likely} (geometric mean)"),
        ("Calibration error", f"{found.losses.calibration_error:.3f}", "0 if all probabilities are right"),
    ]
    boxes = (E("div", E("dt", label), E("dd", value, E("small", what))) for label, value, what in tiles)
    return E("dl", *boxes, class_="facts")


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "infinite" if value > 0 else "unknown"


# The graph -------------------------------------------------------------------------------------------------------


def graph_section(found: Findings) -> Element | None:
    """Return the graph as a picture and its arcs in words; None if the model has no graph."""
    try:
        graph = found.model.to_networkx()
    except ValueError:
        return section("graph", "What depends on what", paragraph(f"A {type(found.model).__name__} has no graph."))
    n_rows = n_rows_of(found.model)
    every = [arc for name in found.names for arc in arcs(graph, name, n_rows)]
    if not every:
        nothing = paragraph("No class variable depends on another: each depends on the features alone.")
        return section("graph", "What depends on what", nothing)
    return section(
        "graph",
        "What depends on what",
        paragraph(
            "An arrow says that the state of one class variable helps to predict another, beyond the features and the "
            "other parents. It does not say that one causes the other."
        ),
        E("div", graph_picture(graph), _arcs(found, graph, every), class_="pair"),
        *_explained(found, every),
    )


def _arcs(found: Findings, graph: Any, every: Sequence[Arc]) -> Element:
    n_drawn = strongest_arcs(graph, MAX_ARCS).graph.number_of_edges()
    shown = sorted(every, key=lambda arc: -(arc.strength if arc.strength is not None else math.inf))
    strongest = max((arc.strength for arc in every if arc.strength is not None), default=0.0) or 1.0
    columns: dict[str, list[Content]] = {
        "class variable": [named(arc.child) for arc in shown],
        "depends on": [[named(arc.parent), "" if arc.determined else " (either way)"] for arc in shown],
        "times as likely": [NONE if arc.times is None else f"{arc.times:.2f}" for arc in shown],
        "nats a row": [
            "required" if arc.strength is None else [f"{arc.strength:.3f} ", bar(arc.strength / strongest)]
            for arc in shown
        ],
    }
    now = _arcs_now(found)
    if now:
        columns[_NOW] = [now.get((arc.parent, arc.child), NONE) for arc in shown]
    caption = "Arcs, the strongest first" + f" (the picture has {n_drawn} of {len(every)})" * (n_drawn < len(every))
    return long_table(
        caption, list(columns), list(zip(*columns.values(), strict=True)), ["times as likely", "nats a row", _NOW]
    )


def _arcs_now(found: Findings) -> dict[tuple[str, str], str]:
    """Return what is added to the log-loss on the rows of the report if the states of a parent are shuffled."""
    measured = found.importance
    if isinstance(measured, str):
        return {}
    numbers = zip(measured.arcs.importances_mean.tolist(), measured.arcs.standard_error.tolist(), strict=True)
    return {
        arc: _with_error(mean, error)
        for arc, (mean, error) in zip(measured.arc_names, numbers, strict=True)
        if math.isfinite(mean)
    }


def _explained(found: Findings, shown: Sequence[Arc]) -> list[Element]:
    """Explain the words and numbers of the table, those that are in it."""
    lines: list[str] = []
    known = [arc for arc in shown if arc.times is not None]
    if known:
        criterion = getattr(found.model, "criterion", "auto")
        lines.append(
            f"Times as likely: {reading(max(known, key=lambda arc: arc.times or 0.0), criterion)}. Nats: its logarithm "
            "(arc strength)."
        )
    if _arcs_now(found):
        lines.append(
            "On these rows: the nats that are added to the log-loss of the class variable if the states of the parent "
            "are shuffled. A model learned without the arc would make up for some of it, so the strength is smaller."
        )
    used = {arc.conditioning for arc in shown}
    lines += [f"{way.capitalize()}: {words}." for way, words in CONDITIONINGS.items() if way in used]
    if not all(arc.determined for arc in shown):
        lines.append(f"Either way: {EITHER_WAY}.")
    every = [*found.names, *(column.name for column in found.columns)]
    return [note(sentence(line, every)) for line in lines]


# Losses ----------------------------------------------------------------------------------------------------------


def loss_section(found: Findings) -> Element:
    """Return the losses beside those of simpler predictions, and those of each class variable."""
    report = found.losses
    others = report.most_frequent.losses, report.independent.losses
    headings = ["model", "most frequent", "independent"]
    lines: list[list[Content]] = [
        [label, *map(mean_words, means)] for label, *means in zip(LOSSES.values(), report.model, *others, strict=True)
    ]
    return section(
        "losses",
        "How good the predictions are",
        *(paragraph(sentence) for sentence in verdict(report)),
        table("Losses, mean ± standard error (lower is better)", ["loss", *headings], lines, numbers=headings),
        _impossible(found),
        note(EACH_ITS_OWN),
        note(f"{most_frequent_is(report)} {independent_is(report)}"),
        _comparisons(found),
        note(PAIRED_TEST),
        note(sentence(ignored_cells(report), found.names)) if report.cells_ignored else None,
        _each_variable(found),
    )


def _impossible(found: Findings) -> Element | None:
    if not found.n_impossible:
        return None
    return paragraph(
        f"The joint log-loss is infinite, because {found.n_impossible:,} row(s) have an outcome of probability zero, "
        "such as a state that the model has not seen in training."
    )


def _comparisons(found: Findings) -> Element:
    lines: list[list[Content]] = []
    for rival_name, rival in rivals(found.losses).items():
        for name, label in LOSSES.items():
            difference: Difference = getattr(rival.model_is, name)
            kind = {"better": "good", "worse": "bad"}.get(difference.answer, "")
            words = difference.words(UNITS.get(name, ""))
            lines.append([label, rival_name, E("span", words, class_=kind)])
    return table("Is the model better?", ["loss", "compared with", "the model is"], lines)


def _each_variable(found: Findings) -> Element:
    lines: list[list[Content]] = [
        [
            named(name),
            _percent(losses.accuracy.value, losses.accuracy.error),
            _percent(losses.most_frequent_accuracy),
            _percent(losses.balanced_accuracy),
            mean_words(losses.log_loss),
        ]
        for name, losses in found.losses.class_variables.items()
    ]
    headings = ["class variable", "right", "most frequent state", "balanced accuracy", "log-loss"]
    return long_table("Each class variable: how often the prediction is right", headings, lines, numbers=headings[1:])


def _percent(value: float, error: float | None = None) -> str:
    """Return a share that was measured, with its standard error."""
    if math.isnan(value):
        return "unknown"
    return f"{100 * value:.1f}" + (f" ± {100 * error:.1f} %" if error is not None else " %")


# Calibration -----------------------------------------------------------------------------------------------------


def calibration_section(found: Findings) -> Element:
    """Return the calibration curve of the marginal probabilities."""
    report = found.losses
    joint = report.joint_calibration_error
    whole = "" if math.isnan(joint) else f" For whole outcomes it is {joint:.3f}."
    return section(
        "calibration",
        "Whether the probabilities are right",
        paragraph(
            f"If the model says 80 %, it should be right in 80 % of such cases. On average it is off by "
            f"{report.calibration_error:.3f} (calibration error).{whole}"
        ),
        calibration_picture(found.names, found.held_out.truth, found.held_out.marginals or []),
    )


# Importance ------------------------------------------------------------------------------------------------------


def importance_section(found: Findings) -> Element:
    """Return the features that matter most, for all class variables together and for each of them."""
    title, measured = "Which features matter", found.importance
    if isinstance(measured, str):
        return section("importance", title, paragraph(measured))
    return section(
        "importance",
        title,
        paragraph(
            f"The values of one feature at a time were shuffled among {measured.n_rows:,} rows. The more log-loss this "
            "adds, the more the predictions depend on the feature. Features that carry the same information share "
            "their importance."
        ),
        E("div", _overall(measured), _by_variable(measured), class_="pair"),
        note("Features whose importance cannot be told from chance are not listed (false discovery rate 5 %)."),
    )


def _overall(measured: Importance) -> Element:
    """Return a table of the features that matter for the joint distribution."""
    mean, error = measured.overall.importances_mean, measured.overall.standard_error
    clear = measured.overall.clear()
    order = [j for j in np.argsort(-mean, kind="stable").tolist() if clear[j]]
    if not order:
        return paragraph("No feature matters for all class variables together by more than chance.")
    lines: list[list[Content]] = [
        [named(measured.feature_names[j]), _with_error(mean[j], error[j]), bar(mean[j] / mean[order[0]])] for j in order
    ]
    caption = f"All class variables together: {len(order)} of {len(mean)} features"
    return long_table(caption, ["feature", _ADDED, "compared"], lines, [_ADDED])


def _by_variable(measured: Importance) -> Element:
    """Return a table of the features that matter most for each class variable."""
    top, errors = measured.top(_TOP_FEATURES), measured.by_variable.standard_error
    each = [
        (increase, float(errors[measured.feature_names.index(feature), k]), name, feature)
        for k, name in enumerate(measured.class_names)
        for feature, increase in top[name].items()
    ]
    if not each:
        return paragraph("No feature matters for a single class variable by more than chance.")
    each.sort(key=lambda one: -one[0])
    lines: list[list[Content]] = [
        [named(feature), named(name), _with_error(increase, error), bar(increase / each[0][0])]
        for increase, error, name, feature in each
    ]
    caption = f"Each class variable: at most {_TOP_FEATURES} features"
    return long_table(caption, ["feature", "matters for", _ADDED, "compared"], lines, [_ADDED])


def _with_error(value: float, error: float) -> str:
    """Return a number and its standard error with two digits of the error, at most six after the point."""
    digits = min(6, max(0, 1 - math.floor(math.log10(error)))) if error > 0 else 3
    return f"{value:.{digits}f} ± {error:.{digits}f}"


# Prediction sets -------------------------------------------------------------------------------------------------


def sets_section(found: Findings) -> Element:
    """Return how large sets must be to contain the truth often enough."""
    title, sets = "Predictions that are almost surely right", found.sets
    if isinstance(sets, str):
        return section("sets", title, paragraph(sets))
    lines: list[list[Content]] = [
        [
            _KINDS[line.kind],
            share(line.coverage, 1),
            _percent(line.found, line.error),
            _size(float(np.median(line.sizes))),
            _size(float(np.quantile(line.sizes, 0.9, method="higher"))),
        ]
        for line in sets.lines
    ]
    headings = ["sets of", "wanted", "contained the truth", "median size", "90 % are at most"]
    return section(
        "sets",
        title,
        paragraph(
            "A prediction set holds as many outcomes, or states, as it takes to contain the true one with a wanted "
            "probability. Small sets mean a sure model; a row with a large set needs more information."
        ),
        table("Prediction sets, calibrated and then tested", headings, lines, numbers=headings[1:]),
        note(
            f"Calibrated on {sets.n_calibrated:,} of these rows and tested on {sets.n_tested:,} others, drawn at "
            "random from those without gaps (split conformal prediction). The coverage holds on average over rows like "
            "these."
        ),
        _unlisted(sets),
    )


def _unlisted(sets: Sets) -> Element | None:
    def everything(line: SetSizes) -> bool:
        return bool(np.isinf(line.sizes).any())

    if not any(map(everything, sets.lines)):
        return None
    return note(f"All: the set of all outcomes, where more than {MAX_OUTCOMES:,} would be needed.")


def _size(size: float) -> str:
    return "all" if math.isinf(size) else f"{size:.3g}"
