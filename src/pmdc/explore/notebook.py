"""The explorer in a notebook: the page of a server on this computer, or a saved one."""

from __future__ import annotations

import html
import threading
from pathlib import Path
from typing import Any

from pmdc._support.atomic_files import replacing
from pmdc._support.checks import check_count
from pmdc.explore.explorer import Explorer, explorer
from pmdc.explore.guards import Settings, guarded
from pmdc.explore.interface import Interface
from pmdc.explore.page.document import write_page
from pmdc.explore.recording import record
from pmdc.explore.server import Background, in_background
from pmdc.explore.table import Table

_NOTEBOOKS = ("http://localhost:*", "https://localhost:*", "http://127.0.0.1:*", "vscode-webview:")
"""The origins of pages that may show the live page in a frame."""


class Exploration:
    """A model and a table in the browser; returned by the method `explore` of a classifier.

    A notebook shows the live page where it can be reached, and otherwise, or later without its server, a saved one.

    Attributes
    ----------
    url : str or None
        The address of the live page; None if no server runs.
    """

    def __init__(self, model: Any, X: Any, Y: Any, live: bool, n_saved: int, height: int):
        check_count("n_saved", n_saved, 1)
        check_count("height", height, 100)
        interface = Interface(model, Table.of(model, X, Y), type(model).__name__)
        self._explorer, self._n_saved, self._height = Explorer(interface, write_page), n_saved, height
        self._server: Background | None = None
        if live:
            threading.Thread(target=interface.predict_table, daemon=True).start()
            app = guarded(explorer(interface, write_page), Settings(frame_ancestors=_NOTEBOOKS))
            self._server = in_background(app)

    @property
    def url(self) -> str | None:
        return None if self._server is None else self._server.url

    def __repr__(self) -> str:
        return f"Exploration({self._explorer.interface.title}, {self.url or 'saved page'})"

    def stop(self) -> None:
        """End the server; the saved page remains."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def save(self, path: str | Path) -> None:
        """Write a page about the first rows that needs no server, with explanations of all their predictions.

        Parameters
        ----------
        path : str or Path
            The HTML file; an existing one is replaced.
        """
        n = min(self._n_saved, len(self._explorer.table))
        with replacing(path) as file:
            file.write_text(self._page(range(n)), encoding="utf-8")

    def _page(self, explained: range, live: str | None = None) -> str:
        rows = range(min(self._n_saved, len(self._explorer.table)))
        start = {"live": False, "state": "", "recorded": record(self._explorer, rows, explained)}
        return write_page(start if live is None else start | {"server": live})

    def _repr_html_(self) -> str:
        page = self._page(range(1), self.url)
        return (
            f"<iframe title='{html.escape(repr(self))}' style='width:100%;height:{self._height}px;border:0' "
            f"srcdoc='{page.replace('&', '&amp;').replace(chr(39), '&#39;')}'></iframe>"
        )
