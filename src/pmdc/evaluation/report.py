"""The tables and tests of a results file, written as files people can read.

For each estimator and each of the Hamming loss, the subset 0/1 loss and the joint log-loss: a table as Markdown,
LaTeX and HTML, and a page with the tests over data sets. Methods that have a decision for each loss appear with the
one for the loss of the table: GBNC-H and CC-H for the Hamming loss, GBNC-S and CC-S for the subset 0/1 loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pmdc.evaluation.statistics import compare, conover, friedman, nemenyi
from pmdc.evaluation.store import Store
from pmdc.evaluation.tables import ComparisonTable, comparison_table

if TYPE_CHECKING:
    import pandas as pd

METHODS = {
    "hamming_loss": ("GBNC-H", "GBNC-paper-H", "BR", "CC-H", "ECC", "CP", "MultiOutput"),
    "subset_loss": ("GBNC-S", "GBNC-paper-S", "BR", "CC-S", "ECC", "CP", "MultiOutput"),
    "joint_log_loss": ("GBNC-H", "GBNC-paper-H", "BR", "CC-H", "ECC", "CP"),
}
"""Which methods stand in the table of which measure, the first being the one that the others are compared with."""


def write_report(store: Store, folder: str | Path, notes: Mapping[str, str] | None = None) -> list[Path]:
    """Write the tables and tests of a results file.

    Parameters
    ----------
    store : Store
    folder : path
        Where to write; made if it is not there.
    notes : dict, optional
        Remarks about data sets, such as how they were obtained.

    Returns
    -------
    list of paths
        What was written.
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
    return written


def tests_text(records: pd.DataFrame, measure: str, table: ComparisonTable) -> str:
    """What the tests over data sets say, in Markdown; where one cannot be made, why not."""
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
