"""The waterfall of one state in one row: what speaks for it, and what against."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

import numpy as np

from pmdc.inference import JointDistribution
from pmdc.report.canvas import plain_figure
from pmdc.report.page.elements import note, shorten
from pmdc.report.page.findings import Findings
from pmdc.report.page.pictures import picture

if TYPE_CHECKING:
    from pmdc.explain import Contribution, Explanation

_MAX_NAME, _MAX_VALUE = 30, 20
_BARS, _LEAST = 10, 1e-9
"""The bars that are drawn: at most, and contributions of at least so many nats."""
_ROWS, _MIN_ROWS, _WORK = 100, 20, 10_000
"""Background rows: at most, at least, and rows times features."""
_TOLD = 3
"""The contributions that the text for those who do not see the picture names."""


def waterfall(found: Findings, row: int, name: str, state: Any, given: Any = None) -> Element | None:
    """Return a picture of what a state owes to each feature and class variable.

    None if the model has no conditional tables (a chain or a powerset), or if the class variable has no other state.
    """
    from pmdc.explain import explain_row
    from pmdc.report.waterfall import draw_waterfall

    X, _ = found.rows.take(np.array([row]))
    n_states = len(found.model.class_table_.states[found.names.index(name)])
    if n_states < 2 or not isinstance(found.model.predict_joint(X), JointDistribution):
        return None
    n_rows = min(_ROWS, max(_MIN_ROWS, _WORK // max(1, len(found.columns))))
    try:
        explanation = explain_row(
            found.model, found.rows.X, row, name, state, given, max_background=n_rows, random_state=0
        )
    except ValueError:  # log-odds that are infinite or nearly so
        return note("No waterfall: some probabilities of this row are zero, or too small to be told apart from zero.")
    short = _shortened(explanation)
    n_rows = min(n_rows, len(found.held_out.truth))
    known = " Other states of the row are known." if given else ""
    return picture(
        draw_waterfall(short, None, _BARS, None, plain_figure),
        _in_words(short),
        "What speaks for this state (to the right) and against it (to the left): the log-odds of the average of "
        f"{n_rows} rows, and what each value adds.{known} The bars add up exactly; ± is the error of an estimate.",
    )


def _shortened(explanation: Explanation) -> Explanation:
    """Return the same with short names and values, without those that add nothing."""

    def short(part: Contribution) -> Contribution:
        value = shorten(part.value, _MAX_VALUE) if isinstance(part.value, str) else part.value
        return part._replace(name=shorten(part.name, _MAX_NAME), value=value)

    return replace(
        explanation,
        variable=shorten(explanation.variable, _MAX_NAME),
        state=shorten(explanation.state, _MAX_NAME),
        contributions=[short(part) for part in explanation.contributions if abs(part.contribution) >= _LEAST],
    )


def _in_words(explanation: Explanation) -> str:
    from pmdc.explain.explanation import label

    largest = ", ".join(f"{label(part)} {part.contribution:+.2f}" for part in explanation.contributions[:_TOLD])
    return (
        f"Waterfall of {explanation.variable} = {explanation.state}: log-odds {explanation.log_odds:.2f}, "
        f"{explanation.base:.2f} in the average row. The largest contributions: {largest or 'none'}."
    )
