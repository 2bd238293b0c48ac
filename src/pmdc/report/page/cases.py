"""The sections about single rows: the hardest ones, and states that look wrong."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from pmdc._support.progress import tell_phase, tell_step
from pmdc.inference.evidence import NO_EVIDENCE, ImpossibleEvidenceError
from pmdc.report.page.data import long_table, probability
from pmdc.report.page.elements import Content, E, named, note, paragraph, section
from pmdc.report.page.findings import DoubtfulCells, Findings
from pmdc.report.page.pictures import TRUE, row_picture
from pmdc.report.page.waterfalls import waterfall
from pmdc.table.columns import MISSING, UNKNOWN

_DRAWN_CELLS = 2
"""The doubtful cells that are drawn."""
_MOST_STATES = 12
"""The class variables of a hard row that are listed, the most surprising ones."""


def hardest_section(found: Findings) -> Element | None:
    """Return the rows of the highest joint log-loss, each with its network and waterfall."""
    if not len(found.hardest):
        return None
    tell_phase("hardest rows")
    cases = []
    for i, row in enumerate(found.hardest.tolist()):
        cases.append(_hard_row(found, row))
        tell_step(i + 1, len(found.hardest))
    impossible = (
        f" {found.n_impossible} row(s) of probability zero, such as those with states that the model has not seen, are "
        "not among them."
    ) * bool(found.n_impossible)
    return section(
        "hardest",
        "The hardest rows",
        paragraph(
            f"The {len(cases)} rows of the highest joint log-loss: what happened there is what the model expected "
            f"least. Such rows show what it has not learned, or errors in the data.{impossible}"
        ),
        *cases,
    )


def _hard_row(found: Findings, row: int) -> Element:
    assert found.held_out.log_prob is not None
    marginals, truth = found.held_out.marginals or [], found.held_out.truth[row]
    likely = np.array(
        [own[row, code] if code >= 0 else np.inf for own, code in zip(marginals, truth.tolist(), strict=True)]
    )
    order = [k for k in np.argsort(likely, kind="stable").tolist() if truth[k] >= 0]
    place, loss = found.rows.place(row), -float(found.held_out.log_prob[row])
    X, _ = found.rows.take(np.array([row]))
    sizes = found.model.class_table_.sizes
    worst = max(order, key=lambda k: (sizes[k] > 1, -likely[k]))
    states = found.model.class_table_.states[worst].tolist()
    return E(
        "article",
        E("h3", f"{place.capitalize()}: log-loss {loss:.2f} nats (probability {np.exp(-loss):.2g})"),
        E(
            "div",
            E(
                "div",
                _states_of_row(found, row, order[:_MOST_STATES], len(order)),
                waterfall(found, row, found.names[worst], states[truth[worst]]),
            ),
            row_picture(found.model.predict_joint(X), truth, f"The network of {place} with its probabilities."),
            class_="pair",
        ),
        class_="case",
    )


def _states_of_row(found: Findings, row: int, listed: list[int], n_known: int) -> Element:
    lines: list[list[Content]] = []
    for k in listed:
        states, own = found.model.class_table_.states[k].tolist(), (found.held_out.marginals or [])[k][row]
        true, best = int(found.held_out.truth[row, k]), int(own.argmax())
        right: Content = TRUE if true == best else named(states[best])
        lines.append([named(found.names[k]), named(states[true]), probability(float(own[true])), right])
    caption = "States of the row, the most surprising first"
    caption += f" ({len(listed)} of {n_known})" * (len(listed) < n_known)
    return long_table(caption, ["class variable", "true state", "its probability", "prediction"], lines)


# Doubtful cells --------------------------------------------------------------------------------------------------


def doubtful_section(found: Findings) -> Element | None:
    """Return the states that are the least probable given the rest of their row."""
    doubtful = found.doubtful
    if doubtful is None or not len(doubtful.cells.rows):
        return None
    cells = doubtful.cells
    lines: list[list[Content]] = []
    for row, name, state, expected, prob in zip(*cells, strict=True):
        lines.append([found.rows.place(int(row)), named(name), named(state), named(expected), probability(float(prob))])
    n_drawn = min(_DRAWN_CELLS, len(cells.rows))
    tell_phase("doubtful rows")
    return section(
        "doubtful",
        "The most suspicious states",
        paragraph(
            "The known states that are the least probable given the features and all other known states of their row. "
            "They deserve a look. They need not be wrong: rare cases are improbable, too."
        ),
        long_table(
            f"The {len(lines)} most improbable states",
            [found.rows.word, "class variable", "state in the table", "expected", "its probability"],
            lines,
        ),
        note(_how(found, doubtful)),
        *(_doubtful_cell(found, doubtful, i) for i in range(n_drawn)),
    )


def _how(found: Findings, doubtful: DoubtfulCells) -> Content:
    """Say how the cells were found, and whether all rows were looked at."""
    n_rows = len(found.held_out.truth)
    if doubtful.complete:
        looked = f"No state of the other rows is less probable (proved by the joint log-loss of all {n_rows:,} rows)."
    else:
        looked = (
            f"Only the {doubtful.n_rows:,} rows of the highest joint log-loss, of {n_rows:,}, were looked at; another "
            "row may have a state that is less probable."
        )
    return [
        f"The probabilities are those of the model as it is. {looked} If the model was learned from these rows, it may "
        "have learned their errors as well: ",
        E("code", "pmdc check"),
        " and ",
        E("code", "model.suspicious_cells"),
        " fit it anew without the rows in question.",
    ]


def _doubtful_cell(found: Findings, doubtful: DoubtfulCells, i: int) -> Element:
    cells = doubtful.cells
    row, name, state = int(cells.rows[i]), str(cells.names[i]), cells.states[i]
    k, place = found.names.index(name), found.rows.place(row)
    truth = found.held_out.truth[row]
    X, _ = found.rows.take(np.array([row]))
    others = np.where((truth == MISSING) | (truth == UNKNOWN), NO_EVIDENCE, truth)
    others[k] = NO_EVIDENCE
    joint = found.model.predict_joint(X)
    given: dict[str, Any] | None = _states_by_name(found, others)
    try:
        joint = joint.given_codes(others[None, :])
    except ImpossibleEvidenceError:
        given = None
    known = " given the other known states" if given is not None else ""
    return E(
        "article",
        E("h3", f"{place.capitalize()}: ", named(name), " is ", named(state)),
        E(
            "div",
            E("div", waterfall(found, row, name, state, given)),
            row_picture(joint, truth, f"The network of {place}{known}."),
            class_="pair",
        ),
        class_="case",
    )


def _states_by_name(found: Findings, codes: Any) -> dict[str, Any]:
    states = found.model.class_table_.states
    return {
        name: states[k].tolist()[code]
        for k, (name, code) in enumerate(zip(found.names, codes.tolist(), strict=True))
        if code >= 0
    }
