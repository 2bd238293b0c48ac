"""Pages that ask no server: the answers to the questions that they can ask, made beforehand.

The keys are those that the page makes of its questions (`page/server.js`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pmdc.explore.explorer import Explorer
from pmdc.explore.messages import Problem

COVERAGES = (0.8, 0.9, 0.95)
TOP = 10
MAX_KNOWN = 2000
"""If rows times states are more, what follows from single known states is not recorded."""


class Question(NamedTuple):
    key: str
    path: str
    body: Any


def record(own: Explorer, rows: Sequence[int], explained: Sequence[int]) -> dict[str, Any]:
    """Return the answers about some rows of the table, and the explanations of the predictions for some of these."""
    interface = own.interface
    losses = [name for name, loss in interface.losses.items() if not loss.to_json(name)["whole_batch"]]
    n_states = sum(len(states.listed) for states in interface.reader.states)
    singles = len(rows) * n_states <= MAX_KNOWN
    recorded = {"GET /schema": interface.schema, "GET /graph": own.graph()}
    for index in rows:
        recorded[f"GET /rows/{index}"] = own.row(index)
        values = own.table.values(index)
        for question in _questions(own, index, values, losses, singles):
            recorded[question.key] = own.answer(question.path, question.body)
        if index in explained and interface.schema["explains"]:
            predicted = recorded[f"predict {index} {{}} {losses[0]} null"]["rows"][0]["prediction"]
            for name, state in predicted.items():
                key = f"explain {index} {{}} {name} {_text(state)}"
                body = {"row": values, "variable": name, "state": state, "index": index}
                try:
                    recorded[key] = own.answer("/explain", body)
                except Problem:  # a class variable of one state, or probabilities of zero
                    continue
    return recorded


def _questions(
    own: Explorer, index: int, row: dict[str, Any], losses: Sequence[str], singles: bool
) -> Iterator[Question]:
    """Yield what is asked about a row, and with `singles` what follows from each known state."""
    for loss in losses:
        yield _predict(index, row, {}, loss)
        for coverage in COVERAGES:
            more = {"marginals": False, "top": TOP, "coverage": coverage}
            yield _predict(index, row, {}, loss, **more)
        yield Question(f"ask {index} {{}} {loss}", "/ask", {"row": row, "loss": loss})
    for states in own.interface.reader.states if singles else ():
        for state in states.listed:
            yield _predict(index, row, {states.name: state}, losses[0])


def _predict(index: int, row: dict[str, Any], given: dict[str, Any], loss: str, **more: Any) -> Question:
    key = f"predict {index} {_text(given)} {loss} {more.get('coverage', 'null')}"
    return Question(key, "/predict", {"rows": [row], "given": given or None, "loss": loss, **more})


def _text(value: Any) -> str:
    """Return JSON as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
