"""`write_report`: one HTML file about a fitted model that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import reprlib
from contextlib import ExitStack
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from pmdc._support.atomic_files import check_place, replacing
from pmdc._support.checks import check_choice, check_count
from pmdc._support.extras import require
from pmdc._support.progress import tell_phase
from pmdc.report.page.cases import doubtful_section, hardest_section
from pmdc.report.page.data import RARE, data_section
from pmdc.report.page.elements import E, clean, names, shorten, write
from pmdc.report.page.findings import Findings, Rows, measure
from pmdc.report.page.repeat import repeat_section, versions
from pmdc.report.page.sections import (
    calibration_section,
    graph_section,
    importance_section,
    loss_section,
    sets_section,
    summary_section,
)
from pmdc.table.weak_labels import take_sets

SUFFIXES = (".html", ".htm")
_TITLE_NAMES = 4


class Options(NamedTuple):
    """The arguments of `write_report` about what is written."""

    title: str | None = None
    card: Path | None = None
    n_rows: int = 3
    random_state: Any = 0


def write_report(
    model: Any,
    X: Any,
    Y: Any,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    card: str | PathLike[str] | None = None,
    n_rows: int = 3,
    random_state: Any = 0,
) -> None:
    """Write a report about a fitted model to one HTML file, to read, print and share.

    The file holds a summary in words, the data with their gaps, the graph, losses beside simpler predictions,
    calibration, the features that matter, the hardest rows, suspicious states, prediction sets, settings and versions.
    It needs no network and runs no scripts. It is written as a whole or not at all, and only
    when the model card is complete, too.

    Parameters
    ----------
    model : fitted model
        A `GBNC` or one of the baselines.
    X, Y : tables as for `fit`
        Rows with known outcomes, which may have gaps. They should not have been used in `fit`: the report measures the
        model on these rows, and losses are as true of new rows as these are unseen; on training rows they are too
        optimistic.
    path : str or path
        The file, whose name ends in ``.html`` or ``.htm``. An existing file is replaced.
    title : str, optional
        By default, and if it is blank, it names the class variables.
    card : str or path, optional
        Also write a model card in the format of `skops.card` to this file, whose name ends in ``.md``; this needs the
        extra "save".
    n_rows : int, default=3
        The number of hardest rows that are shown. With 0 the report shows no single row, no suspicious
        state, and in the table of the data no value of fewer than 5 rows except minima and maxima.
    random_state : int, RandomState instance or None, default=0
        Which rows are drawn for the importance of features (at most 1,000) and for prediction sets (at most 600).
        The report names the seed that repeats it; with a generator or None, that is drawn first.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.report import write_report
    >>> data = make_network(300, n_class_variables=2, random_state=0)
    >>> model = GBNC(experts=None, max_parents=1).fit(data.X[:200], data.Y[:200])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     write_report(model, data.X[200:], data.Y[200:], path)
    ...     print(path.read_text(encoding="utf-8")[:15])
    <!DOCTYPE html>
    """
    place = _place("path", path, SUFFIXES)
    card_place = None if card is None else _place("card", card, (".md",))
    write_page(model, X, Y, place, Options(title, card_place, n_rows, random_state))


def _place(argument: str, path: Any, suffixes: tuple[str, ...]) -> Path:
    """Return the path of a file that can be written."""
    if not isinstance(path, (str, PathLike)):
        raise TypeError(f"{argument}={path!r} is not the name of a file: give one that ends in {suffixes[0]}.")
    place = Path(path)
    check_choice(f"{argument}={str(place)!r}: extension", place.suffix.lower(), suffixes)
    check_place(place)
    return place


def write_page(
    model: Any, X: Any, Y: Any, path: Path, options: Options, source: tuple[str, str, Any] | None = None
) -> Findings:
    """Write a report, and return what was measured.

    `source` says where the rows come from, what their numbers count, and the number of each row.
    """
    require("matplotlib")
    if options.card is not None:
        require("skops.card")
    check_count("n_rows", options.n_rows, 0)
    options = options._replace(random_state=_seed(options.random_state))
    rows = _read(model, X, Y, source)
    found = measure(model, rows, options.n_rows, options.random_state)
    texts = {path: page(found, options)}
    if options.card is not None:
        from pmdc.report.page.card import model_card

        texts[options.card] = model_card(found, options)
    with ExitStack() as stack:
        for place, text in texts.items():
            stack.enter_context(replacing(place)).write_text(text, encoding="utf-8")
    return found


def _seed(random_state: Any) -> int:
    """Return a whole number that repeats what is drawn; from a generator, its next one."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _read(model: Any, X: Any, Y: Any, source: tuple[str, str, Any] | None) -> Rows:
    """Check that model and tables fit together."""
    from pmdc.estimator import MultiDimensionalClassifier

    if not isinstance(model, MultiDimensionalClassifier):
        raise TypeError(
            f"model is of type {type(model).__name__}: give a fitted model of pmdc, such as a GBNC. For a search use "
            "its best_estimator_, for a pipeline its last step, with X transformed by the steps before."
        )
    check_is_fitted(model)
    n_rows, n_outcomes = _count_rows("X", X), _count_rows("Y", Y)
    if n_rows != n_outcomes:
        raise ValueError(f"X has {n_rows} rows, Y has {n_outcomes}: they must have the same number of rows.")
    Y, _ = take_sets(Y)
    truth = model.class_table_.encode(Y, unknown="mark", missing="mark")
    for name, known in zip(model.class_table_.names, np.any(truth >= 0, axis=0).tolist(), strict=True):
        if not known:
            raise ValueError(
                f"Y, column {name!r} has no state that the model knows in any of its {n_rows} rows, so there is "
                "nothing to compare predictions with: give rows with true states."
            )
    name, word, places = source or ("the tables X and Y", "row", range(n_rows))
    return Rows(X, Y, name, word, places)


def _count_rows(argument: str, table: Any) -> int:
    try:
        if not isinstance(table, (str, bytes)):
            return int(_num_samples(table))
    except TypeError:
        pass
    raise TypeError(f"{argument}={reprlib.repr(table)} is not a table: give one like that for fit.")


# The page --------------------------------------------------------------------------------------------------------


def page(found: Findings, options: Options) -> str:
    """Return the whole page."""
    sections = [
        summary_section(found),
        data_section(found, 0 if options.n_rows else RARE),
        graph_section(found),
        loss_section(found),
        calibration_section(found),
        importance_section(found),
        sets_section(found),
        hardest_section(found),
        doubtful_section(found),
        repeat_section(found, options.random_state),
    ]
    shown = [one for one in sections if one is not None]
    title = title_of(found, options)
    body = E(
        "body",
        E("a", "Skip to the report", href="#summary", class_="skip"),
        E(
            "div",
            E("header", E("h1", E("bdi", title)), E("p", *_subtitle(found), class_="lead")),
            _contents(shown),
            E("main", *shown),
            E("footer", E("p", f"Made by pmdc {versions()['pmdc']}. This file needs no network and runs no scripts.")),
            class_="page",
        ),
    )
    tell_phase("writing the report")
    return "<!DOCTYPE html>\n" + write(E("html", _head(title), body, lang="en")) + "\n"


def title_of(found: Findings, options: Options) -> str:
    if options.title is not None and options.title.strip():
        return shorten(options.title, 200)
    some = [shorten(name, 40) for name in found.names[:_TITLE_NAMES]]
    more = len(found.names) - len(some)
    return "A model of " + (", ".join(some) + f" and {more} more" if more else _listed(some))


def _listed(some: list[str]) -> str:
    return some[0] if len(some) == 1 else f"{', '.join(some[:-1])} and {some[-1]}"


def _subtitle(found: Findings) -> list[Any]:
    features = [column.name for column in found.columns]
    shown = names(features[:6])
    more = f" and {len(features) - 6} more" if len(features) > 6 else ""
    return [
        f"{type(found.model).__name__}: the joint distribution of {len(found.names)} class variables given ",
        *shown,
        more,
        ".",
    ]


def _contents(sections: list[Element]) -> Element:
    entries = [E("li", E("a", one[0].text or "", href=f"#{one.get('id')}")) for one in sections]
    return E("nav", E("ol", *entries), aria_label="Contents")


@cache
def _style() -> str:
    return files("pmdc.report.page").joinpath("style.css").read_text(encoding="utf-8")


def _head(title: str) -> Element:
    """Return the head, with a policy that forbids every request and every script."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return E(
        "head",
        E("meta", charset="utf-8"),
        E("meta", http_equiv="Content-Security-Policy", content=policy),
        E("meta", name="viewport", content="width=device-width, initial-scale=1"),
        E("meta", name="color-scheme", content="light dark"),
        E("title", clean(title)),
        E("style", _style()),
    )
