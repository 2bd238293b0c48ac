"""The Markdown tables of `incomplete.py`, from its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from incomplete_tables import GENERATED
from scipy import stats

UNIT = ["table", "split"]

NOTE = (
    "Differences are paired: a pair is a seed of a generated table, or a fold of a real one. The first 95 % interval "
    "(Student's t) takes pairs as independent; the second is over the means of the tables, where there are several."
)


def report(path: Path, part: str | None) -> Iterator[str]:
    """Yield the lines of the tables of one part, or of all."""
    if not path.exists():
        yield "There are no records."
        return
    records = pd.read_csv(path, keep_default_na=False, na_values={name: [""] for name in NUMBERS})
    yield f"{len(records)} records of commits {', '.join(sorted(set(records['commit'].astype(str))))}. {NOTE}"
    for name, lines in PARTS.items():
        own = records[(records["part"] == name) & (part in (None, name))]
        for (settings, rows), some in own.groupby(["settings", "rows"], sort=False):
            yield f"\n## {name}: settings {settings}, at most {rows} training rows\n"
            yield from lines(some)
            yield from notes(some)


def notes(records: pd.DataFrame) -> Iterator[str]:
    """List what failed, and count other warnings."""
    for _, row in records[records["note"].str.startswith("failed")].iterrows():
        yield f"- {row['table']}, {row['gaps']} {row['share']}, split {row['split']}, {row['method']}: {row['note']}"
    others = records[(records["note"] != "") & ~records["note"].str.startswith("failed")]
    if len(others):
        yield f"- {len(others)} records with warnings (column note)"


# Numbers -------------------------------------------------------------------------------------------------------

NUMBERS = (
    *("log_loss", "marginal_log_loss", "hamming", "subset", "precision", "n_flipped", "floored", "n_train", "n_test"),
    *("cpu", "cpu_complete", "cpu_ratio", "em_rounds", "em_pruned", "n_completions"),
)


def pairs(records: pd.DataFrame, measure: str, one: str, other: str) -> pd.DataFrame:
    """Return the values of two methods where both have one, as columns, by table and split."""
    wide = records.pivot_table(index=UNIT, columns="method", values=measure, aggfunc="last")
    return wide.reindex(columns=[one, other]).dropna()


def interval(values: Iterable[float], digits: int = 3) -> str:
    """Return the mean and its 95 % interval."""
    values = np.asarray(list(values), dtype=float)
    if len(values) < 2:
        return f"{values.mean():+.{digits}f}" if len(values) else "-"
    half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{values.mean():+.{digits}f} [{values.mean() - half:+.{digits}f}, {values.mean() + half:+.{digits}f}]"


def over_tables(difference: pd.Series, digits: int = 3) -> str:
    means = difference.groupby("table").mean()
    return interval(means, digits) if len(means) > 1 else "-"


def with_error(values: Any, digits: int = 3) -> str:
    """Return the mean and its standard error."""
    if not len(values):
        return "-"
    error = f" ± {stats.sem(values):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):+.{digits}f}{error}"


def mean(values: pd.Series, digits: int = 3) -> str:
    return f"{values.mean():.{digits}f}" if values.notna().any() else "-"


def percent(values: pd.Series, digits: int = 1) -> str:
    return mean(100 * values, digits)


def row(*cells: Any) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def head(*names: str, left: int = 1) -> list[str]:
    return [row(*names), row(*["---"] * left, *["---:"] * (len(names) - left))]


def in_order(records: pd.DataFrame, column: str = "method") -> list[Any]:
    return list(dict.fromkeys(records[column]))


# Parts ---------------------------------------------------------------------------------------------------------


def labels(records: pd.DataFrame) -> Iterator[str]:
    complete = records[records["method"] == "complete"]
    gapped = records[records["method"] != "complete"]
    shares = sorted(set(gapped["share"]))
    records = pd.concat([gapped, *(complete.assign(share=share) for share in shares)])
    for name, chosen in ((GENERATED, records["table"] == GENERATED), ("real tables", records["table"] != GENERATED)):
        own = records[chosen]
        if len(own):
            yield f"### {name}: {', '.join(in_order(own, 'table'))}\n"
            yield from against(own, "em", "log_loss", "joint log-loss")
            yield ""
            yield from how_em_went(own)
            yield ""
    yield from by_table(records, "em", ("available", "drop", "alone", "complete"), "log_loss", "joint log-loss")


def unlabelled(records: pd.DataFrame) -> Iterator[str]:
    yield from against(records, "em", "log_loss", "joint log-loss")
    yield ""
    yield from how_em_went(records)


def against(records: pd.DataFrame, base: str, measure: str, title: str) -> Iterator[str]:
    """For each share, the means of each method, and its difference to `base` on the same pairs."""
    yield from head(
        *("share", "method", "pairs", title, f"of {base}", "difference", "over tables"),
        *("Hamming, %", "subset, %", "difference", "floored rows", "CPU, s"),
        left=2,
    )
    for share, some in records.groupby("share"):
        for method in in_order(some):
            own = some[some["method"] == method]
            both, subset = pairs(some, measure, method, base), pairs(some, "subset", method, base)
            if method == base:
                yield row(
                    *(share, method, own[measure].notna().sum(), mean(own[measure]), "-", "-", "-"),
                    *(percent(own["hamming"]), percent(own["subset"]), "-", f"{own['floored'].sum():.0f}"),
                    mean(own["cpu"], 1),
                )
                continue
            difference, of_subset = both[method] - both[base], 100 * (subset[method] - subset[base])
            yield row(
                *(share, method, len(both), mean(both[method]), mean(both[base])),
                *(interval(difference), over_tables(difference)),
                *(percent(own["hamming"]), percent(own["subset"]), interval(of_subset, 1)),
                *(f"{own['floored'].sum():.0f}", mean(own["cpu"], 1)),
            )


def how_em_went(records: pd.DataFrame) -> Iterator[str]:
    own = records[records["em_rounds"].notna()]
    yield from head(
        "share", "method", "fits", "rounds", "most", "converged", "completions a row", "most pruned", left=2
    )
    for (share, method), some in own.groupby(["share", "method"], sort=False):
        converged = (some["em_converged"].astype(str) == "True").sum()
        yield row(
            *(share, method, len(some), mean(some["em_rounds"], 1), f"{some['em_rounds'].max():.0f}"),
            *(f"{converged} of {len(some)}", mean(some["n_completions"] / some["n_train"], 1)),
            f"{some['em_pruned'].max():.4f}",
        )


def by_table(records: pd.DataFrame, base: str, others: tuple[str, ...], measure: str, title: str) -> Iterator[str]:
    """For each table and share, the difference of `base` to other methods with its standard error."""
    yield f"### {title} of {base} minus that of others, by table (± standard error over splits)\n"
    yield from head(
        "table", "share", "splits", base, *(f"{base} - {other}" for other in others), "CPU of " + base, left=1
    )
    for (table, share), some in records.groupby(["table", "share"], sort=False):
        own = some[some["method"] == base]
        cells = []
        for other in others:
            both = pairs(some, measure, base, other)
            cells.append(with_error(both[base] - both[other]))
        yield row(table, share, len(own), mean(own[measure]), *cells, mean(own["cpu"], 1))


def features(records: pd.DataFrame) -> Iterator[str]:
    measures = (("marginal_log_loss", 1, 3), ("hamming", 100, 1), ("subset", 100, 1))
    yield "### By table: differences are of the method minus GBNC (± standard error over folds)\n"
    yield from head(
        *("table", "gaps", "share", "method", "folds", "marginal log-loss", "joint", "Hamming, %", "subset, %"),
        *("log-loss, difference", "Hamming", "subset", "CPU, s"),
        left=2,
    )
    for (table, gaps, share), some in records.groupby(["table", "gaps", "share"], sort=False):
        for method in in_order(some):
            own = some[some["method"] == method]
            differences = []
            for measure, scale, digits in measures:
                both = pairs(some, measure, method, "GBNC") if method != "GBNC" else pd.DataFrame()
                differences.append(
                    with_error(scale * (both[method] - both["GBNC"]), digits) if len(both.columns) else "-"
                )
            yield row(
                *(table, gaps, share, method, len(own), mean(own["marginal_log_loss"]), mean(own["log_loss"])),
                *(percent(own["hamming"]), percent(own["subset"]), *differences, mean(own["cpu"], 1)),
            )
    yield "\n### All tables: method minus GBNC\n"
    yield from head("gaps", "share", "method", "pairs", "marginal log-loss", "over tables", "Hamming, %", "subset, %")
    for (gaps, share), some in records.groupby(["gaps", "share"], sort=False):
        for method in in_order(some)[1:] if "GBNC" in in_order(some) else []:
            found = []
            for measure, scale, digits in measures:
                both = pairs(some, measure, method, "GBNC")
                difference = scale * (both[method] - both["GBNC"])
                found.append(interval(difference, digits))
                if measure == "marginal_log_loss":
                    found.append(over_tables(difference))
            yield row(gaps, share, method, len(both), *found)


def check(records: pd.DataFrame) -> Iterator[str]:
    methods = in_order(records)
    others = [method for method in methods if method != "GBNC"]
    yield from head("table", "seeds", "wrong cells", *methods, *(f"GBNC - {other}" for other in others), "CPU, s")
    for table, some in records.groupby("table", sort=False):
        cells = [percent(some[some["method"] == method]["precision"]) for method in methods]
        for other in others:
            both = pairs(some, "precision", "GBNC", other)
            cells.append(with_error(100 * (both["GBNC"] - both[other]), 1))
        seconds = " / ".join(mean(some[some["method"] == method]["cpu"], 0) for method in methods)
        yield row(table, some["split"].nunique(), f"{some['n_flipped'].mean():.0f}", *cells, seconds)
    yield "\nMean precision in percent, and GBNC minus the other in points:\n"
    yield from head("method", "pairs", "precision", "of GBNC", "difference", "over tables")
    for other in others:
        both = pairs(records, "precision", "GBNC", other)
        difference = 100 * (both["GBNC"] - both[other])
        yield row(
            *(other, len(both), percent(both[other]), percent(both["GBNC"])),
            *(interval(difference, 1), over_tables(difference, 1)),
        )


def cost(records: pd.DataFrame) -> Iterator[str]:
    yield from head("table", "rows", "share", "method", "complete, s", "with gaps, s", "times", "rounds", "converged")
    for (table, share, method), some in records.groupby(["table", "share", "method"], sort=False):
        converged = (some["em_converged"].astype(str) == "True").sum()
        yield row(
            *(table, f"{some['n_train'].mean():.0f}", share, method, mean(some["cpu_complete"], 1)),
            *(mean(some["cpu"], 1), f"**{mean(some['cpu_ratio'], 2)}**", mean(some["em_rounds"], 1)),
            f"{converged} of {len(some)}",
        )


PARTS: dict[str, Callable[[pd.DataFrame], Iterator[str]]] = {
    "labels": labels,
    "unlabelled": unlabelled,
    "features": features,
    "check": check,
    "cost": cost,
}
