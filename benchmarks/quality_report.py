"""The report of `quality.py`, in Markdown, from its records alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon

FIRST_HALF = ("enb", "voice", "flare1", "flags", "wqanimals", "wqplants", "belae", "oes97", "birds")
SECOND_HALF = ("edm", "emotions", "scene", "waterquality", "adult", "default", "rf1", "thyroid", "scm20d")

LOSSES = {"hamming": "Hamming %", "subset": "subset 0/1 %", "log_loss": "log-loss"}
OTHERS = {"ece": "ECE", "joint_ece": "joint ECE", "fit_cpu": "fit CPU s", "predict_cpu": "CPU ms a row"}
DEFAULT = "default"
PLAIN = "sklearn "
"""How the names of plain scikit-learn models begin."""

Cell = tuple[str, int, str, str]


def report(
    rows: Sequence[dict[str, str]], cells: Sequence[Cell], tables: Sequence[str], folds: Sequence[int]
) -> Iterator[str]:
    """Yield the lines of the report.

    Parameters
    ----------
    rows : records, as read from the file
    cells : the cells that were asked for; those without a record are listed
    tables, folds : what the report is about
    """
    frame = _read(rows, tables, folds)
    good = frame[frame["status"] == "ok"]
    means = _means(good, folds)
    yield "# Quality of predictions"
    yield ""
    yield (
        f"Folds {', '.join(map(str, folds))}; at most 1,500 training and 1,000 test rows of a fold, drawn at random; "
        f"{len(good)} cells; pmdc {_all(good['version'])}, commit {_all(good['commit'])}. Means over folds, then over "
        "tables. The log-loss is that of the whole outcome, in nats for each row. Baselines are calibrated "
        "(`calibrate=True`), plain scikit-learn models are not, and their probabilities below 1e-15 are raised to it. "
        f"{_unseen(good)} Predictions are exact for each loss except those of chains, which are greedy, of forest-joint, "
        "whose outcome is the best of those that single trees prefer, and of the methods under 'Decisions' below."
    )
    yield ""
    halves = (("second half", SECOND_HALF), ("first half, on which settings may be chosen", FIRST_HALF))
    for title, names in halves:
        if chosen := [name for name in names if name in tables]:
            yield from _half(title, means, chosen)
    for title, names in (*halves, ("all tables", (*FIRST_HALF, *SECOND_HALF))):
        if chosen := [name for name in names if name in tables]:
            yield from _against_default(title, means, chosen)
    yield from _plain_ahead(good, tables, folds)
    yield from _calibration(means, tables)
    yield from _decisions(good)
    yield from _absent(frame, cells)


def _read(rows: Sequence[dict[str, str]], tables: Sequence[str], folds: Sequence[int]) -> pd.DataFrame:
    columns = [
        "table",
        "fold",
        "method",
        "estimator",
        *LOSSES,
        *OTHERS,
        "n_unseen",
        "decision",
        "status",
        "version",
        "commit",
    ]
    frame = pd.DataFrame(rows, columns=columns)
    for name in ("fold", *LOSSES, *OTHERS, "n_unseen"):
        frame[name] = pd.to_numeric(frame[name])
    frame["predict_cpu"] *= 1000
    frame["name"] = np.where(frame["estimator"] == "-", frame["method"], frame["method"] + ", " + frame["estimator"])
    return frame[frame["table"].isin(tables) & frame["fold"].isin(folds)]


def _means(good: pd.DataFrame, folds: Sequence[int]) -> pd.DataFrame:
    """Return the means over folds by (name, table), only where all folds are there."""
    groups = good.groupby(["name", "table"])
    means = groups[[*LOSSES, *OTHERS]].agg(lambda values: values.mean(skipna=False))
    return means[groups.size() == len(folds)]


def _all(values: pd.Series) -> str:
    return ", ".join(sorted(values.unique())) or "none"


def _unseen(good: pd.DataFrame) -> str:
    one = good.drop_duplicates(["table", "fold"])
    found = one.groupby("table")["n_unseen"].sum()
    told = ", ".join(f"{table} {int(count)}" for table, count in found.items() if count)
    return f"Test rows with states that no training row has, left out of all log-losses: {told or 'none'}."


# Losses and ranks -----------------------------------------------------------------------------------------------


def _half(title: str, means: pd.DataFrame, tables: Sequence[str]) -> Iterator[str]:
    whole, part = _split_names(means, tables)
    yield f"## Losses: {title} ({len(tables)} tables)"
    yield ""
    if whole:
        yield f"Mean ranks among the {len(whole)} methods that have all tables (1 is best), and means over the tables:"
        yield ""
        heads = [*(f"rank {head}" for head in LOSSES.values()), *LOSSES.values(), *OTHERS.values()]
        yield _line("method", *heads)
        yield _line(*["---"] * (1 + len(heads)))
        ranks = {loss: _mean_ranks(means, whole, tables, loss) for loss in LOSSES}
        for name in sorted(whole, key=lambda one: ranks["log_loss"][one]):
            own = means.loc[name].loc[list(tables)].mean(skipna=False)
            yield _line(
                name,
                *(f"{ranks[loss][name]:.2f}" for loss in LOSSES),
                *(
                    _number(own[column], 3 if column not in ("hamming", "subset", "fit_cpu") else 2)
                    for column in own.index
                ),
            )
        yield ""
    if part:
        yield "Methods without all tables, log-loss and, in brackets, Hamming and subset 0/1 loss on each:"
        yield ""
        yield _line("method", *tables)
        yield _line(*["---"] * (1 + len(tables)))
        for name in part:
            yield _line(name, *(_losses(means, name, table) for table in tables))
        yield ""


def _split_names(means: pd.DataFrame, tables: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the methods that have all tables, and those that have only some."""
    counts = means[means.index.get_level_values("table").isin(tables)].groupby("name").size()
    return list(counts.index[counts == len(tables)]), list(counts.index[counts < len(tables)])


def _mean_ranks(means: pd.DataFrame, names: Sequence[str], tables: Sequence[str], loss: str) -> dict[str, float]:
    values = means[loss].unstack("table").loc[list(names), list(tables)].round(9)
    return dict(zip(names, rankdata(values, axis=0).mean(axis=1), strict=True))


def _losses(means: pd.DataFrame, name: str, table: str) -> str:
    if (name, table) not in means.index:
        return "–"
    own = means.loc[(name, table)]
    return f"{own['log_loss']:.3f} ({own['hamming']:.1f}, {own['subset']:.1f})"


# The default against the others ---------------------------------------------------------------------------------


def _against_default(title: str, means: pd.DataFrame, tables: Sequence[str]) -> Iterator[str]:
    yield f"## The default against the others: {title}"
    yield ""
    names = means.index.get_level_values("name").unique()
    if DEFAULT not in names:
        yield "The default has no records yet."
        yield ""
        return
    yield (
        "Mean over tables of the loss of the default minus that of the method (negative: the default is better); for the "
        "log-loss also tables where the default is better or worse, and the p-value of Wilcoxon's signed-rank test."
    )
    yield ""
    yield _line("method", "tables", *LOSSES.values(), "better : worse", "p")
    yield _line(*["---"] * 7)
    values = {loss: means[loss].unstack("table") for loss in LOSSES}
    lines = []
    for name in names.drop(DEFAULT):
        pairs = {loss: (one.loc[DEFAULT] - one.loc[name]).reindex(tables).dropna() for loss, one in values.items()}
        found = pairs["log_loss"]
        if len(found):
            p = wilcoxon(found).pvalue if len(found) > 1 and found.any() else math.nan
            record = f"{int((found < 0).sum())} : {int((found > 0).sum())}"
            texts = [f"{pairs['hamming'].mean():+.2f}", f"{pairs['subset'].mean():+.2f}", f"{found.mean():+.3f}"]
            lines.append((found.mean(), _line(name, str(len(found)), *texts, record, _number(p, 4))))
    yield from (line for _, line in sorted(lines, reverse=True))
    yield ""


def _plain_ahead(good: pd.DataFrame, tables: Sequence[str], folds: Sequence[int]) -> Iterator[str]:
    """Yield where a plain model of scikit-learn is ahead by more than two standard errors over folds."""
    yield "## Where plain scikit-learn models are ahead of the default"
    yield ""
    default = good[good["name"] == DEFAULT].set_index(["table", "fold"])
    plain = [name for name in sorted(good["name"].unique()) if name.startswith(PLAIN)]
    found, compared = [], 0
    for name in plain:
        other = good[good["name"] == name].set_index(["table", "fold"])
        for loss, head in LOSSES.items():
            difference = (default[loss] - other[loss]).dropna().unstack("fold")
            for table in (t for t in tables if t in difference.index):
                values = difference.loc[table].dropna()
                if len(values) < max(2, len(folds)):
                    continue
                compared += 1
                error = values.std(ddof=1) / math.sqrt(len(values))
                if values.mean() > 2 * error and values.mean() > 0:
                    found.append(_line(table, head, name, f"{values.mean():.3f}", f"{error:.3f}"))
    if not compared:
        yield "Nothing to compare: the default or the plain models have no complete tables."
    else:
        yield f"By more than two standard errors of the paired differences over folds: {len(found)} of {compared}."
        yield ""
        yield _line("table", "loss", "model", "ahead by", "standard error")
        yield _line(*["---"] * 5)
        yield from sorted(found)
    yield ""


def _calibration(means: pd.DataFrame, tables: Sequence[str]) -> Iterator[str]:
    """Yield calibration errors of the default and of calibrated binary relevance."""
    yield "## Calibration"
    yield ""
    yield "Expected calibration error of the marginals and, in brackets, of the predicted outcome:"
    yield ""
    known = means.index.get_level_values("name").unique()
    names = [DEFAULT] * (DEFAULT in known) + [name for name in known if name.startswith("BR")]
    yield _line("table", *names)
    yield _line(*["---"] * (1 + len(names)))
    columns = [means.loc[name].reindex(list(tables)) for name in names]
    for table in tables:
        yield _line(table, *(_pair(column.loc[table]) for column in columns))
    yield _line("mean", *(_pair(column.mean(skipna=False)) for column in columns))
    yield ""


def _pair(row: pd.Series) -> str:
    return f"{_number(row['ece'], 3)} ({_number(row['joint_ece'], 3)})"


# What is different or absent ------------------------------------------------------------------------------------


def _decisions(good: pd.DataFrame) -> Iterator[str]:
    """Yield where PCC and ECC do not have exact predictions."""
    yield "## Decisions"
    yield ""
    inexact = good[good["method"].isin(["PCC", "ECC"]) & (good["decision"] != "exact")]
    for (name, decision), rows in inexact.groupby(["name", "decision"]):
        yield f"- {name}: {decision} on {_all(rows['table'])}."
    if inexact.empty:
        yield "All predictions of PCC and ECC are exact."
    yield ""


def _absent(frame: pd.DataFrame, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the cells that were left out, failed or are missing."""
    yield "## Cells left out, failed and missing"
    yield ""
    absent = frame[frame["status"] != "ok"]
    for (name, status), rows in absent.groupby(["name", "status"]):
        yield f"- {name}: {_by_table(zip(rows['table'], rows['fold'], strict=True), status.startswith('left'))} ({status})."
    done = set(zip(frame["table"], frame["fold"], frame["method"], frame["estimator"], strict=True))
    missing: dict[str, list[tuple[str, int]]] = {}
    for table, fold, method, estimator in cells:
        if (table, fold, method, estimator) not in done:
            missing.setdefault(method if estimator == "-" else f"{method}, {estimator}", []).append((table, fold))
    for name, places in missing.items():
        yield f"- {name}: {_by_table(places)} (no record)."
    if absent.empty and not missing:
        yield "None."
    yield ""


def _by_table(places: Iterable[tuple[str, int]], all_folds: bool = False) -> str:
    found: dict[str, list[int]] = {}
    for table, fold in places:
        found.setdefault(table, []).append(fold)
    if all_folds:
        return ", ".join(sorted(found))
    return ", ".join(f"{table} (folds {', '.join(map(str, sorted(own)))})" for table, own in sorted(found.items()))


def _line(*entries: str) -> str:
    return "| " + " | ".join(entries) + " |"


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"
