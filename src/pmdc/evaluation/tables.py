"""Tables of results as in the paper: mean ± standard deviation and rank on each data set, and average ranks.

`comparison_table` computes the table from records of a cross-validation; it can be written as Markdown, LaTeX or HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.checks import check_count, shorten
from pmdc._support.extras import require
from pmdc.evaluation.statistics import ranks

if TYPE_CHECKING:
    import pandas as pd

_KEYS = ["set", "fold", "method"]


def comparison_table(
    records: Any,
    measure: str = "value",
    *,
    sets: Iterable[Any] | None = None,
    methods: Iterable[Any] | None = None,
    greater_is_better: bool = False,
    percent: bool = False,
    decimals: int = 2,
    folds: int | None = None,
    notes: Mapping[Any, str] | None = None,
) -> ComparisonTable:
    """Tabulate a measure of several methods on several data sets.

    Parameters
    ----------
    records : DataFrame or list of dicts
        One record for each set, fold and method, in columns of these names, and a column for each measure. A missing
        value is a fold that failed.
    measure : str, default="value"
        The column to tabulate.
    sets, methods : iterable, optional
        What to show, in this order; by default all, in the order of the records. Combinations without records are
        shown as missing.
    greater_is_better : bool, default=False
        Whether rank 1 is the greatest mean instead of the smallest.
    percent : bool, default=False
        Whether to show values times 100.
    decimals : int, default=2
        Number of decimals. Ranks are computed from the means before rounding.
    folds : int, optional
        The expected number of folds; by default the largest number of any data set.
    notes : mapping from set to str, optional
        Notes below the table, such as how a data set was obtained.

    Returns
    -------
    ComparisonTable
        A data set on which the methods have different folds is marked by a note and not ranked. One on which all
        methods lack the same folds is marked and ranked.

    Examples
    --------
    >>> from pmdc.evaluation import comparison_table
    >>> losses = {("edm", "GBNC"): [0.26, 0.28], ("edm", "BR"): [0.27, 0.29]}
    >>> records = [
    ...     {"set": name, "fold": fold, "method": method, "hamming": loss}
    ...     for (name, method), values in losses.items()
    ...     for fold, loss in enumerate(values)
    ... ]
    >>> print(comparison_table(records, "hamming", percent=True).to_markdown())
    | hamming (%) | GBNC | BR |
    | :-- | :-: | :-: |
    | edm | **27.00 ± 1.41** (1.0) | 28.00 ± 1.41 (2.0) |
    | average rank | **1.00** | 2.00 |
    """
    pandas = require("pandas")
    check_count("decimals", decimals, 0)
    frame = _read_records(records, measure)
    if folds is None:
        folds = int(frame.groupby("set", observed=True)["fold"].nunique().max())
    else:
        check_count("folds", folds, 1)
    set_names = list(dict.fromkeys(frame["set"] if sets is None else sets))
    method_names = list(dict.fromkeys(frame["method"] if methods is None else methods))
    values = {
        name: part.pivot(index="fold", columns="method", values=measure).reindex(columns=method_names)
        for name, part in frame.astype({"method": object}).groupby("set", observed=True)
    }
    nothing = pandas.DataFrame(columns=method_names, dtype=float)
    parts = {name: values.get(name, nothing) for name in set_names}

    def collect(statistic: Callable[[pd.DataFrame], pd.Series]) -> pd.DataFrame:
        return pandas.DataFrame([statistic(part) for part in parts.values()], index=set_names, columns=method_names)

    means = collect(lambda part: part.mean())
    ranked = means.loc[[name for name, part in parts.items() if _same_folds(part)]]
    texts = {name: [_completeness(part, folds)] for name, part in parts.items()}
    for name, text in (notes or {}).items():
        if name in texts:
            texts[name].append(text)
    return ComparisonTable(
        measure=measure,
        means=means,
        # An infinite loss has no standard deviation, and pandas would warn.
        deviations=collect(lambda part: part.where(np.isfinite(part)).std().where(np.isfinite(part.mean()))),
        ranks=ranks(-ranked if greater_is_better else ranked) if len(ranked) else ranked,
        notes={name: [text for text in written if text] for name, written in texts.items() if any(written)},
        percent=percent,
        decimals=decimals,
    )


@dataclass(frozen=True, eq=False)
class ComparisonTable:
    """A measure of several methods on several data sets; see `comparison_table`.

    Attributes
    ----------
    measure : str
    means, deviations : DataFrame
        Mean and standard deviation (n - 1) over folds, data sets by methods, not multiplied by 100; missing where
        there are too few folds.
    ranks : DataFrame
        Ranks on the data sets that are ranked, and only those. `friedman`, `nemenyi` and `conover` take it as it is.
    notes : dict
        For each data set that has any, the notes written below the table.
    percent, decimals : bool, int
        The format of the values.
    """

    measure: str
    means: pd.DataFrame
    deviations: pd.DataFrame
    ranks: pd.DataFrame
    notes: dict[Any, list[str]]
    percent: bool
    decimals: int

    @property
    def average_ranks(self) -> pd.Series:
        """The mean rank of each method over the ranked data sets; NaN if there are none."""
        return self.ranks.mean(axis=0)

    def to_markdown(self) -> str:
        """Return a GitHub Markdown table, followed by the notes as a list."""
        head, *rows = self._cells(_MARKDOWN)
        lines = [head, [":--"] + [":-:"] * (len(head) - 1), *rows]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        notes = "\n".join(f"- {note}" for note in self._notes(_MARKDOWN))
        return f"{table}\n\n{notes}" if notes else table

    def to_latex(self) -> str:
        """Return a LaTeX ``tabular`` with rules of the package booktabs; the notes are its last rows."""
        head, *body, last = (" & ".join(cells) + r" \\" for cells in self._cells(_LATEX))
        n_columns = 1 + self.means.shape[1]
        notes = [rf"\multicolumn{{{n_columns}}}{{l}}{{\footnotesize {note}}} \\" for note in self._notes(_LATEX)]
        return "\n".join(
            [
                rf"\begin{{tabular}}{{l{'c' * (n_columns - 1)}}}",
                *(r"\toprule", head),
                *(r"\midrule", *body),
                *(r"\midrule", last),
                *(r"\bottomrule", *notes),
                r"\end{tabular}",
            ]
        )

    def to_html(self) -> str:
        """Return an HTML ``table``; the notes are in its foot."""
        head, *body, last = self._cells(_HTML)

        def row(cells: list[str]) -> str:
            return f'<tr><th scope="row">{cells[0]}</th>' + "".join(f"<td>{c}</td>" for c in cells[1:]) + "</tr>"

        notes = [f'<tr><td colspan="{len(head)}">{note}</td></tr>' for note in self._notes(_HTML)]
        return "\n".join(
            [
                '<table class="comparison">',
                "<thead><tr>" + "".join(f'<th scope="col">{cell}</th>' for cell in head) + "</tr></thead>",
                *("<tbody>", *map(row, body), "</tbody>"),
                *("<tfoot>", row(last), *notes, "</tfoot>"),
                "</table>",
            ]
        )

    def _cells(self, markup: _Markup) -> list[list[str]]:
        """Return the texts of all cells: the head, a row for each data set, the average ranks."""
        numbers = {note: number for number, note in enumerate(self._distinct_notes(), start=1)}
        head = [markup.escape(self.measure + (" (%)" if self.percent else ""))]
        table = [head + [markup.escape(str(method)) for method in self.means.columns]]
        for name in self.means.index:
            marks = "".join(f" [{numbers[note]}]" for note in self.notes.get(name, ()))
            ranked = self.ranks.loc[name] if name in self.ranks.index else None
            row = [markup.escape(f"{name}{marks}")]
            for method in self.means.columns:
                text = self._value(self.means.loc[name, method], self.deviations.loc[name, method], markup)
                if ranked is not None:
                    best = ranked[method] == ranked.min()
                    text = f"{markup.bold(text) if best else text} ({ranked[method]:.1f})"
                row.append(text)
            table.append(row)
        average = self.average_ranks
        n_ranked, n_sets = len(self.ranks), len(self.means)
        last = ["average rank" + (f" on {n_ranked} of {n_sets} sets" if n_ranked < n_sets else "")]
        for value in average:
            # Halves are rounded up, as in the paper: 1.725 becomes 1.73 despite rounding errors.
            text = markup.missing if np.isnan(value) else f"{value + 1e-9:.2f}"
            last.append(markup.bold(text) if value == average.min() else text)
        return [*table, last]

    def _value(self, mean: float, deviation: float, markup: _Markup) -> str:
        if np.isnan(mean):
            return markup.missing
        if np.isinf(mean):
            return markup.infinity if mean > 0 else f"-{markup.infinity}"
        factor = 100 if self.percent else 1
        text = f"{factor * mean:.{self.decimals}f}"
        return text if np.isnan(deviation) else f"{text} {markup.plus_minus} {factor * deviation:.{self.decimals}f}"

    def _distinct_notes(self) -> list[str]:
        return list(dict.fromkeys(note for notes in self.notes.values() for note in notes))

    def _notes(self, markup: _Markup) -> list[str]:
        return [markup.escape(f"[{number}] {note}") for number, note in enumerate(self._distinct_notes(), start=1)]


# Markup ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Markup:
    escape: Callable[[str], str]
    bold: Callable[[str], str]
    plus_minus: str = "±"
    missing: str = "–"
    infinity: str = "∞"


_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After \\ or a rule these two would be read as options.
    "[": "{[}",
    "*": "{*}",
    "±": r"$\pm$",
} | {character: f"\\{character}" for character in "{}$&#_%"}


def _one_line(text: str) -> str:
    return " ".join(text.split())


_MARKDOWN = _Markup(
    escape=lambda text: re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", _one_line(text)), bold=lambda text: f"**{text}**"
)
_LATEX = _Markup(
    escape=lambda text: "".join(_LATEX_SPECIAL.get(character, character) for character in _one_line(text)),
    bold=lambda text: rf"\textbf{{{text}}}",
    plus_minus=r"$\pm$",
    missing="--",
    infinity=r"$\infty$",
)
_HTML = _Markup(escape=lambda text: html.escape(_one_line(text)), bold=lambda text: f"<b>{text}</b>")


# Reading ---------------------------------------------------------------------------------------------------


def _read_records(records: Any, measure: str) -> pd.DataFrame:
    pandas = require("pandas")
    frame = pandas.DataFrame(records)
    absent = [column for column in [*_KEYS, measure] if column not in frame.columns]
    if absent:
        raise ValueError(f"records has no column {absent[0]!r}; it has {shorten(list(map(str, frame.columns)))}.")
    if frame.empty:
        raise ValueError("records is empty: there is nothing to tabulate.")
    for column in _KEYS:
        if frame[column].isna().any():
            raise ValueError(f"records has a missing value in column {column!r}.")
    twice = frame[frame.duplicated(_KEYS)]
    if len(twice):
        where = ", ".join(f"{column}={twice.iloc[0][column]}" for column in _KEYS)
        raise ValueError(
            f"records has more than one record with {where}. Select the records first, for example those of "
            "one estimator."
        )
    try:
        return frame[[*_KEYS, measure]].astype({measure: float})
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {measure!r} of records does not hold numbers: {error}.") from error


def _same_folds(part: pd.DataFrame) -> bool:
    """Return whether there are folds, and each has either all methods or none."""
    present = part.notna()
    return bool(present.any(axis=None) and (present.all(axis=1) | ~present.any(axis=1)).all())


def _completeness(part: pd.DataFrame, folds: int) -> str:
    """Return a note on missing folds; empty if the data set is complete."""
    counts = part.notna().sum()
    if _same_folds(part):
        return "" if counts.iloc[0] >= folds else f"{counts.iloc[0]} of {folds} folds"
    if not counts.any():
        return "no results"
    lacking = counts[counts < max(folds, len(part))]
    listed = ", ".join(f"{method} {count} of {max(folds, len(part))}" for method, count in lacking.items())
    return f"not ranked, folds are missing: {listed}"
