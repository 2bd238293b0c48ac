"""The benchmark tables: one folder each, with ``data.csv.gz``, ``meta.json`` and ``folds.npz``.

The tables are not part of the package. Give their folder as `data_dir` or in the environment variable ``PMDC_DATA``.
"""

from __future__ import annotations

import json
import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from pmdc._support.extras import require

_FILES = ("data.csv.gz", "meta.json", "folds.npz")


def available(data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names of the benchmark tables in the data folder.

    Parameters
    ----------
    data_dir : path-like, optional
        The data folder; see `load`.

    Returns
    -------
    list of str
        Sorted names, each of which `load` accepts.
    """
    folder = _data_folder(data_dir)
    return sorted(entry.name for entry in folder.iterdir() if not _missing(entry))


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Bunch:
    """Load a benchmark table with its ten folds.

    Parameters
    ----------
    name : str
        One of `available`.
    data_dir : path-like, optional
        The folder that contains one folder for each table. By default the value of the environment variable
        ``PMDC_DATA``.

    Returns
    -------
    Bunch
        With the attributes

        - ``X`` : DataFrame; continuous features are floats (NaN for empty cells), discrete features are categorical;
        - ``Y`` : DataFrame; class variables are categorical with all states of the whole table in sorted order, so
          that a training fold without rows of some state still has it;
        - ``folds`` : list of ten arrays with the test rows; the other rows are for training;
        - ``name``, ``meta`` (contents of ``meta.json``), ``DESCR``.

    Examples
    --------
    >>> from pmdc.datasets import load
    >>> table = load("edm")  # doctest: +SKIP
    >>> table.Y.nunique().to_dict()  # doctest: +SKIP
    {'DFlow': 3, 'DGap': 3}
    """
    pd = require("pandas")
    folder = _table_folder(name, _data_folder(data_dir))
    described = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    # "NA" and "None" are ordinary states; an empty cell of a continuous feature is missing.
    frame = pd.read_csv(folder / "data.csv.gz", na_filter=False, low_memory=False)
    meta: dict[str, Any] = {"name": name, "n": len(frame), "origin": "extra", "folds": "ten folds"} | described
    if len(frame) != meta["n"]:
        raise ValueError(
            f"{folder / 'data.csv.gz'} has {len(frame)} rows, but meta.json says {meta['n']}: "
            "the files belong to different tables. Copy the folder again."
        )
    types = dict.fromkeys(meta["continuous"], "float64")
    types |= dict.fromkeys([*meta["discrete"], *meta["classes"]], "category")
    for column in meta["continuous"]:
        frame[column] = pd.to_numeric(frame[column])
    frame = frame.astype(types)
    with np.load(folder / "folds.npz") as archive:
        folds = [archive[f"fold{i}_test"] for i in range(len(archive.files))]
    return Bunch(
        X=frame.drop(columns=list(meta["classes"])),
        Y=frame[list(meta["classes"])],
        folds=folds,
        name=name,
        meta=meta,
        DESCR=_describe(meta),
    )


def _data_folder(data_dir: str | os.PathLike[str] | None) -> Path:
    origin, folder = "PMDC_DATA", os.environ.get("PMDC_DATA")
    if data_dir is not None:
        origin, folder = "data_dir", os.fspath(data_dir)
    if not folder:
        raise FileNotFoundError(
            "The folder of the benchmark tables is not known: give it as data_dir, or set the environment variable "
            "PMDC_DATA. It contains one folder for each table."
        )
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"{origin}={folder!r} is not a folder: give the folder of the benchmark tables.")
    return Path(folder)


def _table_folder(name: str, data_folder: Path) -> Path:
    names = available(data_folder)
    if name in names:
        return data_folder / name
    if name in os.listdir(data_folder) and len(missing := _missing(data_folder / name)) < len(_FILES):
        raise FileNotFoundError(
            f"The table {name!r} is incomplete: {data_folder / name} has no {' and no '.join(missing)}."
        )
    nearest = get_close_matches(str(name).lower(), names, n=1)
    suggestion = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(
        f"There is no table {name!r} in {data_folder}.{suggestion} Available: {', '.join(names) or 'none'}."
    )


def _missing(folder: Path) -> list[str]:
    return [file for file in _FILES if not (folder / file).is_file()]


def _describe(meta: dict[str, Any]) -> str:
    states = ", ".join(f"{variable} ({size})" for variable, size in meta["classes"].items())
    return "\n".join(
        [
            f"{meta['name']}: {meta['n']} rows, {len(meta['continuous'])} continuous and "
            f"{len(meta['discrete'])} discrete features",
            f"Class variables (states): {states}",
            f"Origin: {meta['origin']}; {meta['source']}",
            f"Folds: {meta['folds']}",
            f"Notes: {meta['notes']}",
        ]
    )
