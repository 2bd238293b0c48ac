"""The model card of a report, in the format of `skops.card`."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from pmdc._support.extras import require
from pmdc.evaluation.wording import LOSSES, mean_words, verdict
from pmdc.network.words import arcs, n_rows_of
from pmdc.report.page.elements import shorten
from pmdc.report.page.findings import Findings
from pmdc.report.page.repeat import settings_of, versions

if TYPE_CHECKING:
    from pmdc.report.page.document import Options

_MARKUP = re.compile(r"([\\`*_{}\[\]#|~$])")
_MAX_ARCS = 40


def plain(text: Any, limit: int = 1000) -> str:
    """Return a text that Markdown and HTML show as it is."""
    return _MARKUP.sub(r"\\\1", escape(shorten(text, limit), quote=False))


def model_card(found: Findings, options: Options) -> str:
    """Return a model card in Markdown."""
    from pmdc.report.page.document import title_of

    model = found.model
    card = require("skops.card").Card(model, model_diagram=False, template=None)
    card.metadata = None
    described = model.summary() if hasattr(model, "graph_") else f"A {type(model).__name__}."
    trained = n_rows_of(model)
    learned = f" It was learned from {trained:,.10g} rows." if trained else ""
    card.add(
        **{
            "Model description": f"{plain(title_of(found, options))}: their joint distribution given "
            f"{len(found.columns)} features.{learned}\n\n{plain(described, 4000)}",
            "Model description/Intended uses & limitations": "The probabilities hold for rows like those that the "
            "model was learned from. An arc of the graph says that one class variable helps to predict another, not "
            "that it causes it.",
        }
    )
    _add_training(card, found)
    _add_evaluation(card, found)
    card.add(
        **{
            "How to Get Started with the Model": '```python\nimport pmdc\n\nmodel = pmdc.load("model.skops")\n'
            "model.predict(X)  # X: a table with the features below\n```\n\n"
            f"Features: {', '.join(plain(column.name) for column in found.columns)}"
        }
    )
    return str(card.render())


def _add_training(card: Any, found: Findings) -> None:
    section = "Model description/Training Procedure"
    settings = settings_of(found.model).replace("```", "'''")
    used = ", ".join(f"{package} {number}" for package, number in versions().items())
    card.add(**{section: f"Settings that differ from the defaults:\n\n```python\n{settings}\n```\n\n{used}"})
    states = {
        "Class variable": [plain(name) for name in found.names],
        "States": [", ".join(plain(state) for state in own.tolist()) for own in found.model.class_table_.states],
    }
    _add_table(card, f"{section}/Class variables", states)
    try:
        graph = found.model.to_networkx()
    except ValueError:
        return
    every = [arc for name in found.names for arc in arcs(graph, name, n_rows_of(found.model))]
    strongest = sorted(every, key=lambda arc: -(arc.strength or 0.0))[:_MAX_ARCS]
    if strongest:
        table = {
            "Class variable": [plain(arc.child) for arc in strongest],
            "Depends on": [plain(arc.parent) for arc in strongest],
            "Nats a row": ["" if arc.strength is None else f"{arc.strength:.3f}" for arc in strongest],
        }
        title = (
            "Graph" if len(strongest) == len(every) else f"Graph, the {len(strongest)} strongest of {len(every)} arcs"
        )
        _add_table(card, f"{section}/{title}", table)


def _add_evaluation(card: Any, found: Findings) -> None:
    report, section = found.losses, "Model description/Evaluation Results"
    seen = "These look like the training rows, so the losses are too optimistic. " if found.like_training else ""
    text = (
        f"On {report.n_rows:,} rows of {plain(found.rows.source)}, mean ± standard error. {seen}Losses are too "
        f"optimistic if the model has seen these rows in training.\n\n{plain(' '.join(verdict(report)))}"
    )
    card.add(**{section: text})
    table = {
        "Loss": list(LOSSES.values()),
        "Model": [mean_words(mean) for mean in report.model],
        "Most frequent": [mean_words(mean) for mean in report.most_frequent.losses],
        "Independent": [mean_words(mean) for mean in report.independent.losses],
    }
    _add_table(card, f"{section}/Losses", table)
    card.add(**{f"{section}/Calibration error": f"{report.calibration_error:.3f}"})


def _add_table(card: Any, section: str, table: dict[str, list[str]]) -> None:
    card.add_table(folded=False, **{section: table})
    card.select(section).title = section.rpartition("/")[2]  # skops would show the whole path
