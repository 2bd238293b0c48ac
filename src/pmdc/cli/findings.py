"""Show what a model has found: a headline, its arcs with a reading, and the details of the search."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from pmdc.cli.display import Screen, make_table


def show_findings(screen: Screen, model: Any) -> None:
    """Show the graph of a model in words and as a table of its arcs."""
    from pmdc.network.words import describe_structure, headline

    screen.print(headline(model))
    screen.print()
    _show_arcs(screen, model)
    screen.print()
    screen.print(f"Details of the graph: {describe_structure(model)}.")
    if hasattr(model, "em_"):
        screen.print()
        screen.print(em_sentence(model.em_))


def em_sentence(em: Any) -> str:
    """Say how structural EM went."""
    from pmdc.e_step import MAX_COMPLETIONS, N_DRAWS

    rounds = f"{em.n_rounds} round{'s' * (em.n_rounds != 1)}"
    ended = f"settled after {rounds}" if em.converged else f"did not settle in {rounds}; the last network is kept"
    text = (
        f"Rows with missing states: structural EM {ended}. The log-likelihood of the known states is "
        f"{em.log_likelihood[-1]:.6g} nats, by {em.n_completions} completed rows"
    )
    if em.pruned >= 0.0005:
        text += f" (improbable completions, at most {em.pruned:.1%} of the probability of a row, are left out)"
    drawn = getattr(em, "n_drawn", 0)  # not in files of earlier versions
    if drawn and drawn == em.n_completions:  # every row is there once
        text += "; missing states are completed by one draw for each row, because an estimator takes no sample weights"
    elif drawn:
        text += f"; {drawn} row{'s' * (drawn != 1)} with more than {MAX_COMPLETIONS} ways get {N_DRAWS} draws each"
    return f"{text}."


def _show_arcs(screen: Screen, model: Any) -> None:
    """Show the parents of each class variable, how strong each arc is and how it enters the local model."""
    from pmdc.network.words import arcs, n_rows_of

    n_rows, consensus = n_rows_of(model), getattr(model, "consensus_", None)
    found = {child: arcs(model.graph_, child, n_rows) for child in model.class_names_}
    every = [arc for some in found.values() for arc in some]
    with_times = any(arc.times is not None for arc in every)
    numbers = [*(["times", "nats"] if with_times else []), *(["in resamples"] if consensus else [])]
    table = make_table("class variable", "depends on", *numbers, "as", right=numbers)
    for child, some in found.items():
        if not some:
            table.add_row(escape(child), "features alone")
        for i, arc in enumerate(some):
            cells = []
            if with_times:
                cells += ["", ""] if arc.times is None else [f"{arc.times:.2f}", f"{arc.strength:.3f}"]
            if consensus is not None:
                cells.append(_shares(consensus, arc))
            name = escape(arc.parent) + ("" if arc.determined else " (either way)")
            table.add_row(escape(child) if i == 0 else "", name, *cells, arc.conditioning)
    screen.out.print(table)
    _explain(screen, model, every, consensus)


def _shares(consensus: Any, arc: Any) -> str:
    forward, backward = _confidence(consensus, arc.parent, arc.child), _confidence(consensus, arc.child, arc.parent)
    return f"{forward:.0%}" + (f" (reversed {backward:.0%})" if backward else "")


def _confidence(consensus: Any, parent: str, child: str) -> float:
    return float(consensus.edges[parent, child]["confidence"]) if consensus.has_edge(parent, child) else 0.0


def _explain(screen: Screen, model: Any, every: list[Any], consensus: Any) -> None:
    """Explain the words and numbers of the table, those that are in it."""
    from pmdc.network.words import CONDITIONINGS, EITHER_WAY, reading

    known = [arc for arc in every if arc.times is not None]
    if every:
        screen.print()
    if known:
        strongest = max(known, key=lambda arc: arc.times)
        screen.print(f"Times: {reading(strongest, model.criterion)}.")
        screen.print("Nats: its logarithm, the score that is lost without the arc (arc strength), for each row.")
    for way, words in CONDITIONINGS.items():
        if any(arc.conditioning == way for arc in every):
            screen.print(f"{way.capitalize()}: {words}.")
    if not all(arc.determined for arc in every):
        screen.print(f"Either way: {EITHER_WAY}.")
    if consensus is not None:
        _explain_resamples(screen, model, consensus)


def _explain_resamples(screen: Screen, model: Any, consensus: Any) -> None:
    n_models = consensus.graph.get("n_models")
    screen.print(
        f"In resamples: in how many of {n_models} graphs, each learned from 63% of the rows drawn at random, the arc "
        "appears."
    )
    graph = model.graph_
    others = [
        (share, parent, child)
        for parent, child, share in consensus.edges(data="confidence")
        if share >= 0.5 and not graph.has_edge(parent, child) and not graph.has_edge(child, parent)
    ]
    if others:
        listed = ", ".join(f"{parent} -> {child} ({share:.0%})" for share, parent, child in sorted(others)[::-1])
        screen.print(f"In at least half of the resamples, but not in this graph: {listed}.")


def structure_json(model: Any) -> dict[str, Any]:
    """Return the structure as JSON."""
    from pmdc.network.words import headline, n_rows_of

    structure, n_rows, consensus = model.structure_, n_rows_of(model), getattr(model, "consensus_", None)
    edges = []
    for parent, child, data in model.graph_.edges(data=True):
        counted = data.get("n_rows", n_rows)
        per_row = {"strength_per_row": data["strength"] / counted} if "strength" in data and counted else {}
        edges.append({"parent": parent, "child": child, **data, **per_row})
    document = {
        "headline": headline(model),
        "status": structure.status,
        "score": structure.score,
        "score_per_row": structure.score / n_rows if n_rows else None,
        "bound": structure.bound,
        "gap": structure.gap,
        "method": structure.method,
        "edges": edges,
    }
    if hasattr(model, "em_"):
        em = model.em_
        document["em"] = {
            "n_rounds": em.n_rounds,
            "converged": em.converged,
            "log_likelihood": list(em.log_likelihood),
            "n_completions": em.n_completions,
            "pruned": em.pruned,
            "n_drawn": getattr(em, "n_drawn", 0),
        }
    if consensus is not None:
        shares = consensus.edges(data="confidence")
        document["resamples"] = {
            "number": consensus.graph.get("n_models"),
            "edges": [{"parent": parent, "child": child, "confidence": share} for parent, child, share in shares],
        }
    return document
