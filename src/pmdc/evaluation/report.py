"""Write the tables, tests and plots of a results file.

For each estimator and each of the Hamming loss, the subset 0/1 loss and the joint log-loss: a table as Markdown,
LaTeX and HTML, with the tests over data sets, and plots as PNG and SVG. Methods that have a decision for each loss
appear with the one for the loss of the table: GBNC-H and CC-H for the Hamming loss, GBNC-S and CC-S for the subset
0/1 loss.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.extras import require
from pmdc.evaluation import plots
from pmdc.evaluation.statistics import compare, conover, friedman, nemenyi
from pmdc.evaluation.store import Store
from pmdc.evaluation.tables import ComparisonTable, comparison_table
from pmdc.metrics import Reliability

if TYPE_CHECKING:
    import pandas as pd

METHODS = {
    "hamming_loss": ("GBNC-H", "GBNC-paper-H", "BR", "CC-H", "ECC", "CP", "MultiOutput", "RF-marginal", "ET-marginal"),
    "subset_loss": ("GBNC-S", "GBNC-paper-S", "BR", "CC-S", "ECC", "CP", "MultiOutput", "RF-joint", "ET-joint"),
    "joint_log_loss": ("GBNC-H", "GBNC-paper-H", "BR", "CC-H", "ECC", "CP", "RF-joint", "ET-joint"),
}
"""The methods in the table of each measure; the others are compared with the first one."""


def write_report(store: Store, folder: str | Path, notes: Mapping[str, str] | None = None) -> list[Path]:
    """Write the tables and tests of a results file.

    Parameters
    ----------
    store : Store
    folder : path
        The output folder; created if it does not exist.
    notes : dict, optional
        Notes on data sets, such as how they were obtained.

    Returns
    -------
    list of paths
        The files that were written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    records = store.frame().rename(columns={"data_set": "set"})
    written = []
    for estimator, part in records.groupby("estimator"):
        for measure, order in METHODS.items():
            methods = [name for name in order if name in set(part["method"])]
            if not methods:
                continue
            shown = part[part["method"].isin(methods)]
            percent = measure != "joint_log_loss"
            table = comparison_table(shown, measure, methods=methods, percent=percent, notes=notes)
            texts = {
                ".md": table.to_markdown() + "\n\n" + tests_text(shown, measure, table),
                ".tex": table.to_latex() + "\n",
                ".html": table.to_html() + "\n",
            }
            for ending, text in texts.items():
                path = folder / f"{measure}-{estimator}{ending}"
                path.write_text(text, encoding="utf-8")
                written.append(path)
            for name, figure in _figures(shown, measure, table):
                for ending in (".png", ".svg"):
                    path = folder / f"{measure}-{estimator}-{name}{ending}"
                    figure.savefig(path, dpi=150)
                    written.append(path)
                require("matplotlib.pyplot").close(figure)
    return written


def _figures(records: pd.DataFrame, measure: str, table: ComparisonTable) -> Iterator[tuple[str, Any]]:
    """Yield the figures of one table, as far as there are data for them."""
    control = table.means.columns[0]
    finished = records[records["status"] == "ok"]
    n_variables: dict[str, int] = {}
    details: dict[str, list[dict[str, Any]]] = {}
    for name, method, text in zip(finished["set"], finished["method"], finished["details"], strict=True):
        kept = json.loads(text)
        n_variables[str(name)] = kept.get("n_variables", 0)
        details.setdefault(str(method), []).append(kept)
    complete = table.means.loc[table.ranks.index]
    if complete.shape[0] >= 2 and complete.shape[1] >= 3:
        yield "critical-difference", plots.critical_difference_diagram(complete).figure
    if len(complete) and complete.shape[1] >= 2:
        yield "pairs", plots.pair_plots(complete, control, measure=measure)
        large = complete.loc[[name for name in complete.index if n_variables.get(name, 0) >= 7]]
        if 0 < len(large) < len(complete):
            yield "pairs-7-or-more", plots.pair_plots(large, control, measure=f"{measure}, 7 or more class variables")
        yield "differences", plots.difference_bars(complete, control, n_variables, measure=measure).figure
    pooled = {str(name): _pooled(details.get(name, [])) for name in table.means.columns}
    bins = {name: values for name, values in pooled.items() if values is not None}
    if bins and measure != "subset_loss":  # the same marginals as for the Hamming loss
        yield "calibration", plots.calibration_plot(bins).figure


def _pooled(details: Iterable[Mapping[str, Any]]) -> Reliability | None:
    """Pool the bins of all folds and data sets; each row has the same weight."""
    parts = [(np.array(d["reliability"]), d["n_rows"] * d["n_variables"]) for d in details if "reliability" in d]
    if not parts:
        return None
    counts = np.sum([n * bins[0] for bins, n in parts], axis=0)
    filled = np.where(counts > 0, counts, 1.0)
    confidence, accuracy = (np.sum([n * bins[0] * bins[i] for bins, n in parts], axis=0) / filled for i in (1, 2))
    return Reliability(counts / counts.sum(), confidence, accuracy)


def tests_text(records: pd.DataFrame, measure: str, table: ComparisonTable) -> str:
    """Return the results of the tests over data sets in Markdown, or why a test is not possible."""
    lines = ["## Tests over data sets", ""]
    control = table.means.columns[0]
    try:
        test = friedman(table.ranks)
        lines.append(
            f"Friedman: chi-square {test.statistic:.3f}, p = {test.p_value:.2g}; "
            f"Iman-Davenport: p = {test.f_p_value:.2g}."
        )
    except ValueError as error:
        return "\n".join([*lines, f"None: {error}", ""])
    for name, posthoc in (("Nemenyi", nemenyi), ("Conover, not corrected", conover)):
        lines += ["", f"### {name}", ""]
        try:
            lines.append(_matrix(posthoc(table.ranks)))
        except ValueError as error:
            lines.append(f"None: {error}")
    lines += ["", f"### {control} against the others", ""]
    complete = records[records["set"].isin(table.ranks.index)]
    try:
        folds = complete.pivot(index=["set", "fold"], columns="method", values=measure)[list(table.means.columns)]
        overall = compare(folds, control).overall
        lines.append("Over data sets, Wilcoxon's signed-rank test with Holm's correction:\n")
        lines.append("| method | mean difference | better | equal | worse | p (Holm) |")
        lines.append("| :-- | :-: | :-: | :-: | :-: | :-: |")
        for method, row in overall.iterrows():
            lines.append(
                f"| {method} | {row['difference']:+.4f} | {int(row['better'])} | {int(row['equal'])} | "
                f"{int(row['worse'])} | {row['p_holm']:.2g} |"
            )
    except ValueError as error:
        lines.append(f"None: {error}")
    return "\n".join([*lines, ""])


def _matrix(p_values: pd.DataFrame) -> str:
    names = [str(name) for name in p_values.columns]
    rows = ["| p | " + " | ".join(names) + " |", "| :-- |" + " :-: |" * len(names)]
    for name, values in zip(names, p_values.to_numpy(), strict=True):
        cells: list[Any] = ["–" if other == name else f"{p:.2g}" for other, p in zip(names, values, strict=True)]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)
