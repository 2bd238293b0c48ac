"""The benchmark tables: one folder each, with ``data.csv.gz``, ``meta.json`` and ``folds.npz``.

The tables are not part of the package; `load` reads them from a folder on this machine.
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

_VARIABLE = "PMDC_DATA"
_DEFAULT = Path("../shared/data")
_FILES = ("data.csv.gz", "meta.json", "folds.npz")


def available(data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Names of the benchmark tables in the data folder.

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
        The folder that holds one folder for each table. By default the folder that the environment variable
        ``PMDC_DATA`` names, otherwise ``../shared/data`` if it exists.

    Returns
    -------
    Bunch
        With the attributes

        - ``X`` : DataFrame; continuous features are floats (NaN where cells are empty), discrete features have a
          categorical type;
        - ``Y`` : DataFrame; class variables have a categorical type that declares, in sorted order, all
          states of the whole table, so that a training fold without rows of some state still knows it;
        - ``folds`` : list of ten arrays with the test rows; all other rows of the table are for training;
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
    # "NA" or "None" in a column is a state like any other; an empty cell of a continuous feature is missing.
    frame = pd.read_csv(folder / "data.csv.gz", na_filter=False, low_memory=False)
    meta: dict[str, Any] = {"name": name, "n": len(frame), "origin": "extra", "folds": "ten folds"} | described
    if len(frame) != meta["n"]:
        raise ValueError(
            f"{folder / 'data.csv.gz'} has {len(frame)} rows, but meta.json says {meta['n']}: "
            "the two files are not of one table. Copy the folder again."
        )
    # Categories of a column are its sorted values, in their own type.
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
    advice = f"Give the folder of the benchmark tables as data_dir= or in the environment variable {_VARIABLE}."
    if data_dir is not None:
        folder, origin = Path(data_dir), "data_dir"
    elif os.environ.get(_VARIABLE):
        folder, origin = Path(os.environ[_VARIABLE]), _VARIABLE
    else:
        folder, origin = _DEFAULT, "the default data folder"
    if not folder.is_dir():
        raise FileNotFoundError(f"{origin} is {str(folder)!r}, which is no folder. {advice}")
    return folder


def _table_folder(name: str, data_folder: Path) -> Path:
    names = available(data_folder)
    if name in names:
        return data_folder / name
    if name in os.listdir(data_folder):
        folder = data_folder / name
        missing = _missing(folder)
        if len(missing) < len(_FILES):
            raise FileNotFoundError(f"The table {name!r} is incomplete: {folder} lacks {' and '.join(missing)}.")
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
