"""``pmdc show``: show a model, or its predictions for one row, in the terminal or as a picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.markup import escape

from pmdc.cli.conditional import check_name, show_conditional
from pmdc.cli.display import Screen, make_table, print_json, show_row
from pmdc.cli.findings import show_findings, structure_json
from pmdc.cli.matching import Matched, read_features, read_given, read_outcomes, require_columns
from pmdc.cli.models import load_model, written_by
from pmdc.cli.pictures import GRAPHS, PICTURES, check_picture, save_figure
from pmdc.cli.running import BadInput, work
from pmdc.table_files import Format, read_table

if TYPE_CHECKING:
    from pmdc.explain import Importance


_MAX_SENTENCES = 6
"""Of more arcs, those that matter most are told in words."""


class GraphOptions(NamedTuple):
    """What is shown of the graph of a model."""

    max_arcs: int | None
    """The largest number of arcs in a picture; None for the default."""
    features: int | None
    """The number of features for each class variable; None for none."""
    table: str | None
    """The table whose rows say which features matter."""

    def check(self, row: str | None, output: Path | None) -> None:
        if self.max_arcs is not None and (row is not None or output is None):
            raise BadInput(f"--max-arcs {self.max_arcs} is for a picture of the graph: name its file with -o.")
        if self.features is None and self.table is not None:
            raise BadInput(f"--table {self.table} is for --features: give their number, such as --features 3.")
        if self.features is not None and self.table is None:
            raise BadInput(
                f"--features {self.features} needs rows with known outcomes, which a model file does not contain: give "
                "them with --table."
            )
        if self.features is not None and row is not None:
            raise BadInput("--features is about the graph of the model, --row about one row: give only one of them.")


def run(
    path: Path,
    row: str | None,
    index: int | None,
    given: Sequence[str],
    output: Path | None,
    format: Format,
    graph: GraphOptions,
    *,
    conditional: str | None,
    trust: bool,
    force: bool,
    json: bool,
) -> None:
    if output is not None:
        check_picture(output, GRAPHS if row is None else PICTURES, "-o", overwrite=force)
    if row is None and (given or index is not None):
        raise BadInput("--given and --index need a row: give its table with --row.")
    graph.check(row, output)
    if conditional is not None:
        _check_conditional(conditional, row, index, given, output)
    model = load_model(path, trust)
    screen = Screen(data=json)
    if row is not None and conditional is not None:
        check_name(model, conditional)
        used, place = _read_rows(screen, model, row, index, format)
        show_conditional(screen, model, conditional, used, place, output, json)
        return
    if row is not None:
        _one_row(screen, model, row, index or 1, given, output, format, json)
        return
    importance = None if graph.table is None else _importance(screen, model, graph.table, format)
    if output is not None:
        from pmdc.report import write_graph
        from pmdc.report.features import add_features
        from pmdc.report.selection import MAX_ARCS

        with work():
            shown = model if importance is None else add_features(model, importance, graph.features or 1)
            write_graph(shown, output, max_arcs=graph.max_arcs or MAX_ARCS)
        screen.note("show", f"the graph was written to {output}.")
    if json:
        document = _document(model, path)
        if importance is not None:
            document["features_that_matter"] = importance.top(graph.features or 1)
            document["arcs_that_matter"] = _arcs_json(importance)
        print_json(document)
    elif output is None:
        _model(screen, model, path)
        if importance is not None:
            _features(screen, importance, graph.features or 1)


def _importance(screen: Screen, model: Any, source: str, format: Format) -> Importance:
    """Measure the importance of the features on the rows of a table whose outcomes are known."""
    table = read_table(source, format)
    require_columns(table, model.class_names_)
    used = read_features(table, model, drop_missing=True, needed=model.class_names_, complete=False)
    Y, more = read_outcomes(used.table, model)
    for message in [*table.notes, *filter(None, [used.note])]:
        screen.note("show", message)
    for warning in [*used.warnings, *more]:
        screen.warn("show", warning)
    with work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        return model.feature_importance(used.X, Y)


def _features(screen: Screen, importance: Importance, n_features: int) -> None:
    table = make_table("class variable", "features that matter")
    for name, found in importance.top(n_features).items():
        shown = ", ".join(f"{feature} (+{increase:.2g})" for feature, increase in found.items())
        table.add_row(escape(name), escape(shown or "none by more than chance"))
    screen.print()
    screen.print(
        "Features that matter, with the log-loss that is added if their values are shuffled, in nats per row (by "
        f"{importance.n_rows} rows):"
    )
    screen.print()
    screen.out.print(table)
    said = importance.sentences()
    if said:
        screen.print()
        for sentence in said[:_MAX_SENTENCES]:
            screen.print(sentence)
        if len(said) > _MAX_SENTENCES:
            screen.print(f"{len(said) - _MAX_SENTENCES} more arcs matter less; --json has them all.")


def _arcs_json(importance: Importance) -> list[dict[str, Any]]:
    arcs = importance.arcs
    columns = arcs.importances_mean.tolist(), arcs.standard_error.tolist(), arcs.clear().tolist(), arcs.n_rows.tolist()
    return [
        {"parent": parent, "child": child, "importance": mean, "standard_error": error, "clear": clear, "rows": n_rows}
        for (parent, child), mean, error, clear, n_rows in zip(importance.arc_names, *columns, strict=True)
    ]


def _check_conditional(
    name: str, row: str | None, index: int | None, given: Sequence[str], output: Path | None
) -> None:
    if row is None:
        raise BadInput(
            f"--conditional {name!r} depends on the features: give a table with --row, and --index for one of its rows."
        )
    if given:
        raise BadInput("--given cannot be combined with --conditional, which shows all states of the parents.")
    if output is not None and index is None:
        raise BadInput(f"-o {output} draws the conditional table of one row: add --index.")


def _model(screen: Screen, model: Any, path: Path) -> None:
    classes, features = model.class_table_, model.feature_table_
    screen.print(f"{path}: {type(model).__name__} of {len(classes.names)} class variables, by pmdc {written_by(path)}")
    screen.print()
    if hasattr(model, "structure_"):
        show_findings(screen, model)
        screen.print()
    table = make_table("class variable", "states")
    for name, states in zip(classes.names, classes.states, strict=True):
        table.add_row(escape(name), escape(", ".join(map(str, states.tolist()))))
    screen.out.print(table)
    screen.print()
    table = make_table("features", "columns")
    if features.number_names:
        table.add_row("continuous", escape(", ".join(features.number_names)))
    for name, parts in features.date_names.items():
        table.add_row("date", escape(f"{name}: {', '.join(parts)}"))
    for name, states in zip(features.discrete_names, features.states, strict=True):
        table.add_row("discrete", escape(f"{name}: {', '.join(map(str, states.tolist()))}"))
    screen.out.print(table)
    screen.print()
    screen.print(f"Settings: {_settings(model)}")


def _settings(model: Any) -> str:
    """Return the parameters that differ from their defaults."""
    return " ".join(repr(model).split())


def _document(model: Any, path: Path) -> dict[str, Any]:
    classes, features = model.class_table_, model.feature_table_
    return {
        "model_file": str(path),
        "pmdc": written_by(path),
        "class": type(model).__name__,
        "class_variables": {n: list(s.tolist()) for n, s in zip(classes.names, classes.states, strict=True)},
        "features": {
            "continuous": features.number_names,
            "dates": features.date_names,
            "discrete": {n: list(s.tolist()) for n, s in zip(features.discrete_names, features.states, strict=True)},
        },
        "structure": structure_json(model) if hasattr(model, "structure_") else None,
        "settings": _settings(model),
    }


def _read_rows(screen: Screen, model: Any, source: str, index: int | None, format: Format) -> tuple[Matched, str]:
    """Return one row of a table, or all rows, and where they come from."""
    table = read_table(source, format)
    place = table.source
    if index is not None:
        if index > table.n_rows:
            raise BadInput(f"--index {index}: {table.source} has {table.n_rows} rows; choose 1 to {table.n_rows}.")
        table = table.rows(np.arange(table.n_rows) == index - 1)
        place = f"{table.source}, {table.where([0])}"
    used = read_features(table, model, drop_missing=None)
    for warning in used.warnings:
        screen.warn("show", warning)
    return used, place


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
    """Show the marginals of one row and its most probable outcome."""
    used, place = _read_rows(screen, model, source, index, format)
    known = read_given(given, model, used.table)
    with work(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X, column", UserWarning)  # already shown, with line numbers
        joint = model.predict_joint(used.X, given=known or None)
        if output is not None:
            save_figure(joint.plot(0, title=place), output)
            screen.note("show", f"the network of the row was written to {output}.")
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
    screen.print(f"{place}:")
    screen.print()
    show_row(screen, model, marginals, likely, [name for name, state in known.items() if state != [None]])
    screen.print()
    states_text = ", ".join(f"{name}={state}" for name, state in zip(names, outcome, strict=True))
    screen.print(f"Most probable outcome ({np.exp(best.log_prob[0, 0]):.1%}): {states_text}")
