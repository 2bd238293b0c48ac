"""``pmdc show``: a model in the terminal, or as a picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from pmdc.cli.display import Screen, _table, print_json, show_graph, show_row, structure_json, structure_words
from pmdc.cli.matching import read_features, read_given
from pmdc.cli.models import load_model, written_by
from pmdc.cli.pictures import GRAPHS, PICTURES, check_picture, write_graph, write_row
from pmdc.cli.running import BadInput, work
from pmdc.table_files import Format, read_table


def run(
    path: Path,
    row: str | None,
    index: int,
    given: Sequence[str],
    output: Path | None,
    format: Format,
    *,
    trust: bool,
    force: bool,
    json: bool,
) -> None:
    if output is not None:
        check_picture(output, GRAPHS if row is None else PICTURES, "-o", overwrite=force)
    if row is None and (given or index != 1):
        raise BadInput("--given and --index are about a row: name its table with --row.")
    model = load_model(path, trust)
    screen = Screen(data=json)
    if row is not None:
        _one_row(screen, model, row, index, given, output, format, json)
        return
    if output is not None:
        with work():
            write_graph(model, output)
        screen.note("show", f"the graph is in {output}.")
    if json:
        print_json(_document(model, path))
    elif output is None:
        _model(screen, model, path)


def _model(screen: Screen, model: Any, path: Path) -> None:
    classes, features = model.class_table_, model.feature_table_
    screen.say(f"{path}: {type(model).__name__} of {len(classes.names)} class variables, by pmdc {written_by(path)}")
    screen.say()
    table = _table("class variable", "states")
    for name, states in zip(classes.names, classes.states, strict=True):
        table.add_row(escape(name), escape(", ".join(map(str, states.tolist()))))
    screen.out.print(table)
    screen.say()
    if hasattr(model, "structure_"):
        screen.say(f"The graph, {structure_words(model)}:")
        screen.say()
        show_graph(screen, model)
        screen.say()
    table = _table("features", "columns")
    continuous = [features.names[i] for i in features.continuous]
    if continuous:
        table.add_row("continuous", escape(", ".join(continuous)))
    for name, states in zip(features.discrete_names, features.states, strict=True):
        table.add_row("discrete", escape(f"{name}: {', '.join(map(str, states.tolist()))}"))
    screen.out.print(table)
    screen.say()
    screen.say(f"Settings: {_settings(model)}")


def _settings(model: Any) -> str:
    """What differs from the defaults, as scikit-learn shows it."""
    return " ".join(repr(model).split())


def _document(model: Any, path: Path) -> dict[str, Any]:
    classes, features = model.class_table_, model.feature_table_
    return {
        "model_file": str(path),
        "pmdc": written_by(path),
        "class": type(model).__name__,
        "class_variables": {n: list(s.tolist()) for n, s in zip(classes.names, classes.states, strict=True)},
        "features": {
            "continuous": [features.names[i] for i in features.continuous],
            "discrete": {n: list(s.tolist()) for n, s in zip(features.discrete_names, features.states, strict=True)},
        },
        "structure": structure_json(model) if hasattr(model, "structure_") else None,
        "settings": _settings(model),
    }


def _one_row(
    screen: Screen,
    model: Any,
    source: str,
    index: int,
    given: Sequence[str],
    output: Path | None,
    format: Format,
    json: bool,
) -> None:
    """What the model says of one row: its own small network."""
    table = read_table(source, format)
    if index > table.n_rows:
        raise BadInput(f"--index {index}: {table.source} has {table.n_rows} rows.")
    alone = table.rows(np.arange(table.n_rows) == index - 1)
    used = read_features(alone, model, drop_missing=None)
    known = read_given(given, model, alone)
    for warning in used.warnings:
        screen.warn("show", warning)
    with work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # told already, with lines
        joint = model.predict_joint(used.X, given=known or None)
        if output is not None:
            write_row(joint, output, f"{table.source}, {alone.where([0])}")
            screen.note("show", f"the network of the row is in {output}.")
            if not json:
                return
        marginals = [marginal[0] for marginal in joint.marginals()]
        best = joint.top(1)
    names, states = model.class_names_, model.class_table_.states
    likely = [list(s.tolist())[int(marginal.argmax())] for s, marginal in zip(states, marginals, strict=True)]
    outcome = best.outcomes[0, 0].tolist()
    if json:
        print_json(
            {
                "table": source,
                "row": index,
                "marginals": {
                    name: dict(zip(map(str, s.tolist()), marginal.tolist(), strict=True))
                    for name, s, marginal in zip(names, states, marginals, strict=True)
                },
                "most_probable_states": dict(zip(names, likely, strict=True)),
                "most_probable_outcome": dict(zip(names, outcome, strict=True)),
                "its_probability": float(np.exp(best.log_prob[0, 0])),
            }
        )
        return
    screen.say(f"{table.source}, {alone.where([0])}:")
    screen.say()
    show_row(screen, model, marginals, likely, [name for name, state in known.items() if state != [None]])
    screen.say()
    told = ", ".join(f"{name} {state}" for name, state in zip(names, outcome, strict=True))
    screen.say(f"The most probable outcome ({np.exp(best.log_prob[0, 0]):.1%}): {told}.")
