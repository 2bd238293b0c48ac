"""The summary of the data: class variables and features, with their values and gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from pmdc._support.arrays import Array
from pmdc.report.page.elements import Content, E, bar, details, histogram, named, note, paragraph, section, table
from pmdc.report.page.findings import Findings
from pmdc.table.columns import MISSING, UNKNOWN, Column

MAX_LINES = 100
"""The lines of a long table; the others are counted."""
_FOLDED, _OPEN = 30, 10
"""Of tables with more lines than the first number, so many are open on the screen."""
_STATES, _VALUES = 6, 3
"""States and values that are listed."""
RARE = 5
"""In a report to share, without single rows, values of fewer rows are not listed."""
_NAME = 400
_BINS = 12
NONE = "–"


def share(part: float, whole: float) -> str:
    """Return a share as a percentage; 0 % and 100 % only if exact."""
    if not whole:
        return NONE
    exact = 100 * part / whole
    if 0 < exact < 0.5:
        return "<1 %"
    if 99.5 <= exact < 100:
        return ">99 %"
    return f"{exact:.0f} %"


def data_section(found: Findings, least: int = 0) -> Element:
    """Return what the rows contain and what is missing; states and values of fewer than `least` rows are not listed."""
    rows, model = found.rows, found.model
    n_rows = len(found.held_out.truth)
    trained = getattr(getattr(model, "frequencies_", None), "n_rows", None)
    learned = f" The model was learned from {trained:,.10g} rows." if trained else ""
    return section(
        "data",
        "The data",
        paragraph(
            f"This report is about {n_rows:,} rows of ",
            named(rows.source),
            f", with {len(found.names)} class variables and {len(found.columns)} features.{learned}",
        ),
        _class_variables(found, least),
        _features(found, least),
        note("Unseen: states that the model has not seen in training; they have probability zero and count as wrong.")
        if np.any(found.held_out.truth == UNKNOWN)
        else None,
    )


def _class_variables(found: Findings, least: int) -> Element:
    truth = found.held_out.truth
    gaps, unseen = (truth == MISSING).sum(axis=0), (truth == UNKNOWN).sum(axis=0)
    states = found.model.class_table_.states
    columns: dict[str, list[Content]] = {
        "class variable": [named(name, _NAME) for name in found.names],
        "states": [str(len(own)) for own in states],
        "most frequent states": [_states(own, codes, least) for own, codes in zip(states, truth.T, strict=True)],
        "missing": list(map(count, gaps.tolist())),
        "unseen": list(map(count, unseen.tolist())),
    }
    return _without_empty("Class variables, which the model predicts", columns, ("missing", "unseen"), ["states"])


def _without_empty(
    caption: str, columns: dict[str, list[Content]], empty: Sequence[str], numbers: Sequence[str] = ()
) -> Element:
    """Return a table without those of the columns named `empty` in which nothing is counted."""
    kept = {name: cells for name, cells in columns.items() if name not in empty or any(cell != NONE for cell in cells)}
    none = [name for name in empty if name not in kept]
    caption += f" ({', '.join(f'none {name}' for name in none)})" * bool(none)
    return long_table(caption, list(kept), list(zip(*kept.values(), strict=True)), [*numbers, *empty])


def _states(states: Array, codes: Array, least: int) -> list[str | Element]:
    counts = np.bincount(codes[codes >= 0], minlength=len(states))
    order = np.argsort(-counts, kind="stable")
    most = order if len(order) <= _STATES else order[: _STATES - 1]
    listed = most[counts[most] >= least]
    rest = order[len(listed) :]
    others = "others" if len(listed) == len(most) else "rare values left out"
    left_out = f"{len(rest)} {others}: {share(int(counts[rest].sum()), int(counts.sum()))}" if len(rest) else ""
    return _listed([(states.tolist()[code], int(counts[code])) for code in listed.tolist()], counts.sum(), left_out)


def _listed(values: Sequence[tuple[Any, int]], total: int, left_out: str) -> list[str | Element]:
    parts: list[str | Element] = []
    for value, number in values:
        parts += [" · "] * bool(parts) + [named(value, 30), f": {share(number, total)}"]
    return [*parts, " · " * bool(parts and left_out) + left_out]


def count(number: int) -> str:
    return f"{number:,}" if number else NONE


def _features(found: Findings, least: int) -> Element:
    known = found.model.feature_table_
    kinds = [_kind(name, known) for name in known.names]
    columns: dict[str, list[Content]] = {
        "feature": [named(name, _NAME) for name in known.names],
        "kind": list(kinds),
        "values": [_values(column, kind, least) for column, kind in zip(found.columns, kinds, strict=True)],
        "missing": [count(int(column.missing.sum())) for column in found.columns],
        "missing in training": [count(known.gaps.get(name, 0)) for name in known.names],
    }
    return _without_empty("Features, from which it predicts", columns, ("missing", "missing in training"))


def _kind(name: str, features: Any) -> str:
    if name in features.ignored_names:
        return "ignored"
    if name in features.date_names:
        return "date"
    return "discrete" if name in features.discrete_names else "continuous"


def _values(column: Column, kind: str, least: int = 0) -> Content:
    values = column.values[~column.missing]
    if not len(values):
        return "no value"
    if kind == "date":
        return f"{_moment(values.min())} to {_moment(values.max())}"
    if kind == "continuous" and values.dtype.kind in "fiub":
        halves = values.astype(float) / 2  # whose sums and differences are finite
        lowest, middle, highest = halves.min(), np.median(halves), halves.max()
        text = f"{2 * lowest:.4g} to {2 * highest:.4g}, median {2 * middle:.4g}"
        if not lowest < highest:
            return text
        places = (halves - lowest) / (highest - lowest)
        return [histogram(np.histogram(places, _BINS, (0, 1))[0].tolist()), text]
    levels, codes = column.factors
    counts = np.bincount(codes[~column.missing], minlength=len(levels))
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    most = order[:_VALUES]
    listed = most[counts[most] >= least]
    others = "further values" if len(listed) == len(most) else "rare values left out"
    left_out = f"{len(order) - len(listed)} {others}" * (len(order) > len(listed))
    return _listed([(levels[i], int(counts[i])) for i in listed.tolist()], int(counts.sum()), left_out)


def _moment(value: Any) -> str:
    if np.asarray(value).dtype.kind == "m":
        minutes = int(value / np.timedelta64(1, "m"))
        return f"{minutes // 60:02d}:{minutes % 60:02d}"
    return str(value)[:16].replace("T00:00", "").replace("T", " ")


# Long tables -----------------------------------------------------------------------------------------------------


def long_table(
    caption: str, headings: Sequence[str], lines: Sequence[Sequence[Content]], numbers: Sequence[str] = ()
) -> Element:
    """Return a table; of a long one the further lines are folded on the screen, of a very long one the last counted."""
    shown = lines[:MAX_LINES]
    if len(shown) < len(lines):
        caption = f"{caption} (the first {len(shown)} of {len(lines)})"
    if len(shown) <= _FOLDED:
        return table(caption, headings, shown, numbers)
    rest = table(f"{caption}, further lines", headings, shown[_OPEN:], numbers)
    return E(
        "div", table(caption, headings, shown[:_OPEN], numbers), details(f"{len(shown) - _OPEN} further lines", rest)
    )


def probability(value: float) -> list[str | Element]:
    """Return a probability with its bar."""
    text = f"{value:.2g}" if 0 < value < 0.1 else f"{value:.2f}"
    return [E("span", text), " ", bar(value)]
