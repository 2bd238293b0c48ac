"""The results of a comparison in one SQLite file; each record is written as soon as it is computed.

Schema (version 1)
------------------
``info(key, value)``
    "schema", "version" (of pmdc) and "settings" (JSON) of the run that created the file.
``records(data_set, fold, method, estimator, status, error, details, <measures>)``
    One row for each (data_set, fold, method, estimator). ``status`` is "ok" or "failed"; ``error`` says why;
    ``details`` is JSON (accuracy of each class variable, the learned structure, ...); each of `MEASURES` is a column,
    NULL where a method does not provide it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "1"

MEASURES = (
    "hamming_loss",
    "subset_loss",
    "sub_exact_loss",
    "joint_log_loss",
    "marginal_log_loss",
    "brier_score",
    "calibration_error",
    "joint_calibration_error",
    "fit_seconds",
    "predict_seconds",
    "peak_megabytes",
)
"""The measures of a record. Seconds are CPU time; megabytes are the peak memory while fitting and predicting."""

Key = tuple[str, int, str, str]
"""(data set, fold, method, estimator)."""


@dataclass(frozen=True)
class Record:
    """The result of one method on one fold of one data set."""

    key: Key
    measures: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


class Store:
    """A results file, created if it does not exist.

    Parameters
    ----------
    path : path of the file
    settings : dict, optional
        The settings of the run. A file with other settings is refused, since its records would not be comparable.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any] | None = None):
        from pmdc import __version__

        self.path = Path(path)
        is_new = not self.path.exists()
        if is_new and settings is None:
            raise FileNotFoundError(f"there is no results file {self.path}.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._connect()) as connection, connection:
            if is_new:
                columns = "".join(f", {measure} REAL" for measure in MEASURES)
                connection.execute("CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT)")
                connection.execute(
                    "CREATE TABLE records (data_set TEXT, fold INTEGER, method TEXT, estimator TEXT, status TEXT, "
                    f"error TEXT, details TEXT{columns}, PRIMARY KEY (data_set, fold, method, estimator))"
                )
                info = {"schema": SCHEMA, "version": __version__, "settings": json.dumps(settings, sort_keys=True)}
                connection.executemany("INSERT INTO info VALUES (?, ?)", info.items())
            self._check(connection, settings)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60)

    def _check(self, connection: sqlite3.Connection, settings: Mapping[str, Any] | None) -> None:
        remedy = f"Its records are kept. Use another folder, or move {self.path.name} away."
        try:
            info = dict(connection.execute("SELECT key, value FROM info").fetchall())
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is not a results file of pmdc ({error}). {remedy}") from None
        if info.get("schema") != SCHEMA:
            raise ValueError(f"{self.path} has schema {info.get('schema')!r}, this version needs {SCHEMA!r}. {remedy}")
        known = json.loads(info["settings"])
        for name, value in (settings or {}).items():
            if known.get(name) != json.loads(json.dumps(value)):
                raise ValueError(
                    f"{self.path} was created with {name}={known.get(name)!r}, not {value!r}: the records would not be "
                    f"comparable. {remedy}"
                )

    def keys(self) -> set[Key]:
        """Return the keys of all records, including failed ones."""
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT data_set, fold, method, estimator FROM records").fetchall()
        return {(str(d), int(f), str(m), str(e)) for d, f, m, e in rows}

    def write(self, records: Iterable[Record]) -> None:
        """Write records in one transaction: all of them or none."""
        names = ["data_set", "fold", "method", "estimator", "status", "error", "details", *MEASURES]
        rows = [
            (
                *record.key,
                "failed" if record.error else "ok",
                record.error,
                json.dumps(record.details, sort_keys=True),
                *(record.measures.get(measure) for measure in MEASURES),
            )
            for record in records
        ]
        marks = ", ".join("?" for _ in names)
        with closing(self._connect()) as connection, connection:
            connection.executemany(f"INSERT OR REPLACE INTO records ({', '.join(names)}) VALUES ({marks})", rows)

    def drop_failed(self) -> int:
        """Delete the records of failed runs, so that they are repeated; return their number."""
        with closing(self._connect()) as connection, connection:
            return connection.execute("DELETE FROM records WHERE status = 'failed'").rowcount

    def frame(self) -> pd.DataFrame:
        """Return all records as a pandas DataFrame, sorted by key."""
        from pmdc._support.extras import require

        with closing(self._connect()) as connection:
            query = "SELECT * FROM records ORDER BY data_set, fold, method, estimator"
            return require("pandas").read_sql_query(query, connection)
