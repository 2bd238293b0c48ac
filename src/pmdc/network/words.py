"""What a learned graph says, in sentences for readers who do not know families, criteria or gaps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pmdc.scores.criteria import is_held_out
from pmdc.search import Structure

if TYPE_CHECKING:
    import networkx

CONDITIONINGS = {
    "partition": "the parent divides the rows, and each part has a model of its own",
    "input": "the parent enters the model like a feature",
    "block": "both are learned as one class variable, whose states are their combinations",
}
"""How parents enter, explained."""

EITHER_WAY = "the data do not determine the direction of this arc: the arrow could as well point the other way"

_MAX_SENTENCES = 6
"""With more class variables that depend on others, only the strongest arcs are in the headline."""


class Arc(NamedTuple):
    """An arc of a learned graph.

    Attributes
    ----------
    strength : float or None
        Nats a row that are lost without the arc, over the rows that count in it; None if not known.
    determined : bool
        Whether the data determine its direction.
    """

    parent: str
    child: str
    strength: float | None
    conditioning: str
    determined: bool
    attributes: Mapping[str, Any]

    @property
    def times(self) -> float | None:
        """How many times as likely the true state of the child becomes (geometric mean) if the parent is known."""
        return None if self.strength is None else math.exp(self.strength)


def n_rows_of(model: Any) -> float | None:
    """Return the number of training rows, or their weight; None for a model of a file that does not have it."""
    frequencies = getattr(model, "frequencies_", None)
    return None if frequencies is None else frequencies.n_rows


def arcs(graph: networkx.DiGraph, child: str, n_rows: float | None) -> list[Arc]:
    """Return the arcs into a class variable, class variables first, then the strongest first."""
    found = []
    for parent, _, data in graph.in_edges(child, data=True):
        total, counted = data.get("strength"), data.get("n_rows", n_rows)
        strength = None if total is None or counted is None else total / counted
        way = data.get("conditioning", "")
        found.append(Arc(parent, child, strength, way, way != "block" and data.get("determined", True), data))
    return sorted(found, key=lambda arc: (_is_feature(graph, arc), -arc.attributes.get("strength", math.inf)))


def _is_feature(graph: networkx.DiGraph, arc: Arc) -> bool:
    return graph.nodes[arc.parent].get("kind", "class") != "class"


def headline(model: Any) -> str:
    """Return what a fit has found: which class variables depend on which, and whether the graph is proved the best.

    Parameters
    ----------
    model : fitted GBNC
    """
    names, graph, n_rows = model.class_names_, model.graph_, n_rows_of(model)
    found = [arc for name in names for arc in arcs(graph, name, n_rows) if not _is_feature(graph, arc)]
    if "time_budget" in model.structure_.status and not found:
        return "Whether class variables depend on each other was not found out: the time budget ran out."
    n_sets = sum(map(len, model.scores_.values()))
    imposed = [f"{arc.parent} and {arc.child}" for arc in found if arc.strength is None]
    said = f" Joined as required, not found: {'; '.join(imposed)}." if imposed and n_rows is not None else ""
    return f"{_dependences(names, found)}{said} {_proof(model.structure_, n_sets, n_rows)}"


def _dependences(names: Sequence[str], found: Sequence[Arc]) -> str:
    if len(names) == 1:
        return f"{names[0]} depends on the features alone."
    if not found:
        return "No class variable depends on another: each depends on the features alone."
    dependent = {arc.child for arc in found} | {arc.parent for arc in found if not arc.determined}
    if len(dependent) > _MAX_SENTENCES:
        strongest = sorted(found, key=lambda arc: -arc.attributes.get("strength", 0.0))[:_MAX_SENTENCES]
        listed = "; ".join(_pair(arc) for arc in strongest)
        return (
            f"{len(dependent)} of {len(names)} class variables depend on others, by {len(found)} arcs. The strongest: "
            f"{listed}."
        )
    text = "; ".join(_sentences(names, found, dependent)) + "."
    return text if text.startswith(tuple(names)) else text[0].upper() + text[1:]


def _sentences(names: Sequence[str], found: Sequence[Arc], dependent: set[str]) -> Iterator[str]:
    for name in names:
        parents = [arc.parent for arc in found if arc.child == name and arc.determined]
        if parents:
            yield f"{name} depends on {listing(parents)}"
    pairs = [arc for arc in found if not arc.determined]
    if pairs:
        listed = listing([f"{arc.parent} -- {arc.child}" for arc in pairs])
        yield f"dependent, in a direction that the data do not determine: {listed}"
    alone = [name for name in names if name not in dependent]
    if alone:
        yield f"{listing(alone)} {'depends' if len(alone) == 1 else 'depend'} on the features alone"


def _pair(arc: Arc) -> str:
    times = "" if arc.times is None else f" (x{arc.times:.2f})"
    joined = f"{arc.child} depends on {arc.parent}" if arc.determined else f"{arc.parent} -- {arc.child}"
    return joined + times


def _proof(structure: Structure, n_sets: int, n_rows: float | None) -> str:
    sets = f"{n_sets} candidate parent set{'s' * (n_sets != 1)}"
    if structure.gap == 0 and structure.status.startswith("optimal"):
        if "guard" in structure.status:
            sets = f"those of {sets} that pass the guard"
        later = " Some arcs were added after the search." if "experts given the parents" in structure.status else ""
        left = " Others were not scored: the time budget ran out." if "time_budget" in structure.status else ""
        return f"The graph is the best{_within(structure)} over {sets} (proved).{left}{later}"
    lost = structure.bound - structure.score
    size = f"{lost:.3g} nats" if n_rows is None else f"{lost / n_rows:.3g} nats a row"
    return (
        f"The graph is the best that was found{_within(structure)} over {sets}; another may be better, by at most "
        f"{size} (not proved: {re.split(' within | over ', structure.status)[0]})."
    )


def _within(structure: Structure) -> str:
    """Return in words the bounds that the status of a structure names; empty if there are none."""
    treewidth = re.search(r" within .*?max_treewidth=(\d+)", structure.status)
    cells = re.search(r" within .*?max_clique_cells=(\d+)", structure.status)
    bounds = [f"treewidth at most {treewidth[1]}"] if treewidth else []
    if cells:
        bounds.append(f"at most {int(cells[1]):,} cells in each table of inference")
    return f" with {listing(bounds)}" if bounds else ""


def describe_structure(model: Any) -> str:
    """Return status, score and gap of the structure of a fitted model, with a reading of the score."""
    structure, n_rows = model.structure_, n_rows_of(model)
    status = re.sub(r"^optimal (over|within)", r"the best \1", structure.status)
    status = re.sub(
        r" families accepted by (\S+)", r" candidate families that pass the significance guard (\1)", status
    )
    score = f"score {structure.score:.2f} nats"
    if n_rows is not None:
        score += f", {structure.score / n_rows:.3f} a row"
        if hasattr(model, "em_"):  # the score counts completed states, which are more probable than true ones
            score += " (of the completed rows)"
        elif any("n_rows" in about for _, about in model.graph_.nodes(data=True)):  # no score of whole outcomes
            score += " (of the known states)"
        elif is_held_out(model.criterion):
            likely = math.exp(structure.score / n_rows)
            score += f" (the true outcome of a row not seen in training has probability {likely:.2g}, geometric mean)"
    return f"{status}; {score}; gap {structure.gap:.3g}"


def reading(arc: Arc, criterion: Any) -> str:
    """Return what the strength of an arc means."""
    assert arc.times is not None
    after = "" if is_held_out(criterion) else ", after the penalty for more parameters"
    counted = f"the {arc.attributes['n_rows']:g} rows that count" if "n_rows" in arc.attributes else "rows"
    return (
        f"knowing {arc.parent} makes the true state of {arc.child} {arc.times:.2f} times as likely (geometric mean "
        f"over {counted}; beyond the features and the other parents{after})"
    )


def listing(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
