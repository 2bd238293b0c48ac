"""HTML as a tree of elements, which escapes every text when it is written (`xml.etree.ElementTree`).

Text of the user, such as the name of a column, enters as text or as an attribute, never as markup.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

Content = str | Element | Sequence["str | Element"]
"""What an element holds, or a cell of a table."""

MAX_NAME = 60
"""Longer names and states are shortened, except where the columns are listed."""

EMPTY = "(empty)"

_KEPT = "\n\t\u200c\u200d"
"""Characters that are not printable but part of a text: the last two join letters of some scripts."""
_LONG_WORD = 20
"""Longer words may be broken anywhere."""
_SHORT = 15
"""Tables of so many rows are printed on one page."""
_STEPS = 100
"""Units of the width of a bar."""


def clean(text: Any) -> str:
    """Return a text without control characters, lone surrogates and marks that change the direction of what follows."""
    return "".join(c if c.isprintable() or c in _KEPT else _replacement(c) for c in str(text))


def _replacement(character: str) -> str:
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"


def shorten(text: Any, limit: int = MAX_NAME) -> str:
    """Return a text in one line of at most so many characters; an empty one can be seen."""
    line = re.sub(r"\s+", " ", clean(text)).strip() or EMPTY
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def E(tag: str, *content: Content | None, **attributes: Any) -> Element:
    """Return an element; an underscore in the name of an attribute stands for a hyphen or, at the end, for nothing."""
    given = {name.rstrip("_").replace("_", "-"): clean(value) for name, value in attributes.items() if value != ""}
    element = Element(tag, given)
    for item in content:
        if item is not None:
            _append(element, item)
    return element


def _append(element: Element, item: Content) -> None:
    if isinstance(item, Element):
        element.append(item)
    elif isinstance(item, str):
        if len(element):
            element[-1].tail = (element[-1].tail or "") + clean(item)
        else:
            element.text = (element.text or "") + clean(item)
    else:
        for part in item:
            _append(element, part)


def write(element: Element) -> str:
    """Return the HTML of an element."""
    return ElementTree.tostring(element, encoding="unicode", method="html")


# Parts of a page -------------------------------------------------------------------------------------------------


def named(text: Any, limit: int = MAX_NAME) -> Element:
    """Return a name or state, isolated from the direction of the text around it."""
    shown = shorten(text, limit)
    longest = max(map(len, shown.split()), default=0)
    return E("bdi", shown, class_="long" if longest > _LONG_WORD else "")


def names(texts: Sequence[Any], separator: str = ", ") -> list[str | Element]:
    """Return names in a list."""
    parts: list[str | Element] = []
    for text in texts:
        parts += [separator] * bool(parts) + [named(text)]
    return parts


def sentence(text: str, names_in_it: Sequence[Any]) -> list[str | Element]:
    """Return a sentence in which names that are long or written from right to left are set apart as `named` does."""
    odd = sorted((str(name) for name in names_in_it if _is_odd(str(name))), key=len, reverse=True)
    if not odd:
        return [text]
    parts = re.split("(" + "|".join(map(re.escape, odd)) + ")", text)
    return [named(part) if i % 2 else part for i, part in enumerate(parts)]


def _is_odd(name: str) -> bool:
    return len(name) > MAX_NAME or any(unicodedata.bidirectional(c) in ("R", "AL") for c in name)


def paragraph(*content: Content | None, **attributes: Any) -> Element:
    return E("p", *content, **attributes)


def note(*content: Content | None) -> Element:
    """Return an explanation, less prominent than a paragraph."""
    return E("p", *content, class_="note")


def section(identifier: str, title: str, *content: Content | None) -> Element:
    heading = E("h2", title, id=f"{identifier}-title")
    return E("section", heading, *content, id=identifier, aria_labelledby=f"{identifier}-title")


def table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[Content]], numbers: Sequence[str] = ()
) -> Element:
    """Return a table, whose first column has the headings of its rows; `numbers` are the columns of numbers."""
    kinds = ["number" if heading in numbers else "" for heading in headings]
    head = [
        E("th", text, scope="col", role="columnheader", class_=kind) for text, kind in zip(headings, kinds, strict=True)
    ]
    body = [_line(cells, headings, kinds) for cells in rows]
    whole = E(
        "table",
        E("caption", caption),
        E("thead", E("tr", *head, role="row"), role="rowgroup"),
        E("tbody", *body, role="rowgroup"),
        role="table",
        class_="short" if len(rows) <= _SHORT else "",
    )
    return E("div", whole, class_="scroll", role="group", tabindex="0", aria_label=caption)


def _line(cells: Sequence[Content], headings: Sequence[str], kinds: Sequence[str]) -> Element:
    """Return a row; roles keep its meaning where narrow screens show it as a block, with headings beside the cells."""
    first, *others = ((cell, heading, kind) for cell, heading, kind in zip(cells, headings, kinds, strict=True))
    return E(
        "tr",
        E("th", first[0], scope="row", role="rowheader", class_=first[2]),
        *(E("td", E("span", cell), role="cell", class_=kind, data_label=heading) for cell, heading, kind in others),
        role="row",
    )


def details(summary: str, *content: Content | None) -> Element:
    """Return what is folded on the screen and open in print."""
    return E("details", E("summary", summary), *content)


def bar(share: float) -> Element:
    """Return a horizontal bar, for the eye only: the number is beside it."""
    width = round(_STEPS * min(max(share, 0.0), 1.0))
    box = {"viewBox": f"0 0 {_STEPS} 8", "preserveAspectRatio": "none", "aria-hidden": "true", "class": "bar"}
    svg = Element("svg", box)
    svg.append(E("rect", width=_STEPS, height=8, class_="track"))
    svg.append(E("rect", width=width, height=8, class_="fill"))
    return svg


def histogram(counts: Sequence[float]) -> Element:
    """Return a small histogram, for the eye only."""
    most = max(counts, default=0) or 1
    box = {"viewBox": f"0 0 {4 * len(counts)} 16", "aria-hidden": "true", "class": "spark"}
    svg = Element("svg", box)
    for i, count in enumerate(counts):
        height = round(15 * count / most, 1) + (0.6 if count else 0)
        svg.append(E("rect", x=4 * i, y=f"{16 - height:.1f}", width=3, height=f"{height:.1f}", class_="fill"))
    return svg
