"""Rows and known states of a request, as a model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pmdc._support.arrays import Array, Marks
from pmdc._support.extras import require
from pmdc.explore.messages import Problem
from pmdc.explore.values import States, read_dates, read_times
from pmdc.inference.evidence import NO_EVIDENCE, Evidence
from pmdc.table.columns import as_plain_objects

Row = dict[str, Any]
Known = dict[str, Any] | None
"""By the name of a class variable, the code of its known state, or a list of the codes that are possible."""


class Reader:
    """Reads rows and known states for one model.

    Attributes
    ----------
    states : list of States
        Of the class variables.
    categories : dict of str to States
        The values of the discrete features.
    """

    def __init__(self, model: Any):
        classes, self.features = model.class_table_, model.feature_table_
        self._with_names = hasattr(model, "feature_names_in_")
        self.states = [States(name, own) for name, own in zip(classes.names, classes.states, strict=True)]
        self._class_values = [as_plain_objects(own) for own in classes.states]
        listed = [(name, self.features.values(j)) for j, name in enumerate(self.features.discrete_names)]
        self.categories = {name: States(name, own) for name, own in listed}
        self._category_values = {name: as_plain_objects(own) for name, own in listed}

    def kind(self, name: str) -> str:
        """Return the kind of a column: "number", "category", "date", "time" or "ignored"."""
        if name in self.categories:
            return "category"
        parts = self.features.date_names.get(name)
        if parts is not None:
            return "time" if parts == ["time"] else "date"
        return "ignored" if name in self.features.ignored_names else "number"

    def frame(self, rows: Sequence[Row]) -> Any:
        """Return rows as a pandas DataFrame."""
        columns = {name: self._column(name, [row[name] for row in rows]) for name in self.features.names}
        return require("pandas").DataFrame(columns)

    def table(self, rows: Sequence[Row]) -> Any:
        """Return rows as a table like the one given to `fit`."""
        return self.as_fitted(self.frame(rows))

    def as_fitted(self, frame: Any) -> Any:
        """Return a DataFrame as it is, or for a model fitted on an array, as an array."""
        if self._with_names:
            return frame
        return frame.astype(object).to_numpy() if self.categories else frame.to_numpy()

    def _column(self, name: str, values: list[Any]) -> Array:
        kind = self.kind(name)
        if kind == "number":
            return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        if kind == "category":
            known, states = self._category_values[name], self.categories[name]
            codes = [states.code(value) for value in values]
            values = [value if code < 0 else known[code] for value, code in zip(values, codes, strict=True)]
            return np.fromiter(values, dtype=object, count=len(values))
        if kind == "date":
            return np.array(read_dates(values), dtype="M8[us]")
        if kind == "time":
            return np.array(read_times(values), dtype=object)
        return np.full(len(values), np.nan)

    def named(self, given: Known) -> dict[str, Any] | None:
        """Return known states of one row as the methods of a model take them."""
        known: dict[str, Any] = {}
        for own, values in zip(self.states, self._class_values, strict=True):
            code = (given or {}).get(own.name)
            if isinstance(code, list):
                known[own.name] = frozenset(values[one] for one in code)
            elif code is not None:
                known[own.name] = values[code]
        return known or None

    def state(self, k: int, code: int) -> Any:
        """Return a state as the model knows it."""
        return self._class_values[k][code]

    def state_json(self, k: int, state: Any) -> Any:
        """Return a state of the model as JSON."""
        return self.states[k].listed[next(i for i, own in enumerate(self._class_values[k]) if own == state)]

    def evidence(self, given: Known | Sequence[Known], n: int) -> Evidence:
        """Return known states of `n` rows, given for all of them or as a list with those of each row."""
        if isinstance(given, list) and len(given) != n:
            raise Problem(f"given: {len(given)} are given for {n} rows: give one for each row, or one object.", "given")
        codes = np.full((n, len(self.states)), NO_EVIDENCE)
        if given is None:
            return Evidence(codes)
        each: Sequence[Any] = given if isinstance(given, list) else [given] * n
        possible: list[Marks | None] = [None] * len(self.states)
        for i, known in enumerate(each):
            for k, own in enumerate(self.states):
                code = known.get(own.name) if known else None
                if isinstance(code, list):
                    marks = possible[k]
                    if marks is None:
                        marks = possible[k] = np.ones((n, len(own.listed)), dtype=bool)
                    marks[i] = np.isin(np.arange(len(own.listed)), code)
                elif code is not None:
                    codes[i, k] = code
        return Evidence(codes, possible if any(own is not None for own in possible) else None)
