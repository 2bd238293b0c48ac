"""`write_page`: the page of the explorer as one HTML document that needs no other file."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic_core import to_json

SCRIPTS = (
    "words.js",
    "state.js",
    "server.js",
    "nodes.js",
    "graph.js",
    "editor.js",
    "rows.js",
    "answers.js",
    "waterfall.js",
    "compare.js",
    "files.js",
    "live.js",
    "main.js",
)
"""In the order in which they are joined: later files use earlier ones."""


def write_page(start: dict[str, Any]) -> str:
    """Return the page of the explorer as HTML.

    The policy in its head allows its own style and script, and requests to the server it came from only if it is live.

    Parameters
    ----------
    start : dict
        What the page starts with. ``{"live": True}``: it asks a server. ``{"live": False, "recorded": {key: answer},
        "state": "#..."}``: its answers are those recorded, and it asks nobody. With ``"server": address`` as well, the
        live page is shown instead, if it is there.

    Returns
    -------
    str

    Examples
    --------
    >>> from pmdc.explore.page.document import write_page
    >>> page = write_page({"live": False, "recorded": {"GET /schema": {"title": "</script>"}}, "state": ""})
    >>> page[:15], "\\\\u003c/script>" in page
    ('<!DOCTYPE html>', True)
    """
    style, script = _part("style.css"), _script()
    server = "'self'" if start.get("live") else "'none'"
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_digest(style)}",
            f"script-src {_digest(script)}",
            f"connect-src {server}",
            "frame-src " + start.get("server", "'none'"),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    parts = {"policy": policy, "style": style, "start": _data(start), "script": script}
    before, *rest = _part("page.html").split("{{")
    return before + "".join(parts[name] + text for name, text in (one.split("}}", 1) for one in rest))


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


@cache
def _script() -> str:
    """Return the scripts as one, whose names are visible nowhere else."""
    joined = "\n\n".join(map(_part, SCRIPTS))
    return f'(() => {{\n"use strict";\n{joined}\n}})();'


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _data(start: dict[str, Any]) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = to_json(start, inf_nan_mode="null").decode()  # as the server writes its answers
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
