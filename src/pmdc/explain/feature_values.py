"""What to find out next: by how much the expected loss decreases if a missing feature becomes known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.checks import check_count, shorten
from pmdc._support.warn import warn_user
from pmdc.decisions.decide import LossLike, choose, resolve
from pmdc.decisions.losses import Loss
from pmdc.explain.columns import FeatureColumns, check_model, feature_numbers, read_table
from pmdc.explain.measures import refuse_whole_batch
from pmdc.inference.evidence import Evidence, ImpossibleEvidenceError

_ROUNDING = 1e-9
"""Largest negative value, relative to the expected loss, that is taken for a rounding error."""


@dataclass(frozen=True, repr=False)
class FeatureValues:
    """By how much the expected loss decreases if a feature becomes known; returned by `value_of_features`.

    Attributes
    ----------
    loss : str, loss object or callable
    feature_names : list of str
        The columns of X.
    value : array of shape (n_features,)
        The mean decrease of the expected loss. NaN for a feature that no row of X has.
    standard_error : array of shape (n_features,)
        The standard error over the rows; 0 for features that `row` has, NaN with fewer than two rows.
    n_rows : array of shape (n_features,)
        The number of rows that have the feature; 0 for features that `row` has.
    learned_gaps : array of bool, shape (n_features,)
        Whether the feature had gaps in training, so that the model has learned what a gap means.
    """

    loss: LossLike
    feature_names: list[str]
    value: Floats
    standard_error: Floats
    n_rows: Codes
    learned_gaps: Marks

    def __repr__(self) -> str:
        return f"FeatureValues(loss={self.loss!r}, {len(self.feature_names)} features)"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        width = max(map(len, self.feature_names))
        yield f"Decrease of the expected loss {self.loss!r} if the feature becomes known:"
        for j in np.argsort(-self.value, kind="stable").tolist():
            name, mark = f"  {self.feature_names[j]:{width}}", "" if self.learned_gaps[j] else " *"
            if self.value[j] == 0 and not self.n_rows[j]:
                yield f"{name} known"
            else:
                yield f"{name} {self.value[j]:.4f} ± {self.standard_error[j]:.4f}{mark}"
        if not self.learned_gaps[self.n_rows > 0].all():
            yield "  * no gaps in training: without it, it counts as the median, or as none of the known categories"


def value_of_features(
    model: Any,
    X: Any,
    loss: LossLike = "hamming",
    *,
    row: Any = None,
    given: Any = None,
    features: Any = None,
    max_rows: int | None = 1000,
    random_state: Any = 0,
) -> FeatureValues:
    """Estimate by how much the expected loss decreases if a feature becomes known.

    The prediction without the feature is that of `predict` for a row in which it is missing, the prediction with it
    that for the row as it is. The value is the difference of their expected losses, both under P(Y | x) with the
    feature, on average over rows. No outcomes are needed: it is what the model expects, not what was observed.

    Parameters
    ----------
    model : fitted classifier
        A `GBNC` or any other classifier of pmdc.
    X : table as for `fit`
        Rows like those in question. For each feature, those are used in which it is known.
    loss : str, loss object or callable, default="hamming"
        As in `decide`, but not a loss of the whole batch ("f1_macro", "f1_micro").
    row : table of a single row, optional
        Return the values of the features that are missing in this row, instead of the average over the rows of X. X
        then gives the values that they may turn out to have, each with the same weight.
    given : mapping, DataFrame or array, optional
        Known states of class variables, as in `predict`: of `row`, or without it of the rows of X.
    features : name or list of names, optional
        The columns of X to value; by default all.
    max_rows : int or None, default=1000
        Of more rows of X, a random sample of this size is used; None uses all.
    random_state : int, RandomState instance or None, default=0
        Of this sample.

    Returns
    -------
    FeatureValues
        `value`, `standard_error` and `n_rows` of each feature. Values are not negative if decisions are proved to be
        optimal (`Decision.proved`), and exactly 0 for a feature that the model does not use.

    See Also
    --------
    pmdc.inference.JointDistribution.value_of_information : The same for class variables, exactly, for each row.
    importance : How much observed losses increase if a feature is shuffled.

    Notes
    -----
    Without `row`, features are valued in rows in which they are known, so X should be a sample of the rows in question.
    With `row`, the values of the feature are those of other rows, whatever the row's other features are: where features
    depend on each other, some of these values do not fit the row.

    A model treats a missing feature as it has learned to. If the feature had no gaps in training, that is the median (a
    date or a number) or no information (a category), see ``learned_gaps``. Such a model may be surer of itself without
    the feature than it should be. Its value is then what `predict` loses, not what the best prediction without the
    feature would lose.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import make_network
    >>> from pmdc.explain import value_of_features
    >>> data = make_network(600, n_class_variables=3, random_state=0)
    >>> X = data.X.assign(x0=data.X["x0"].mask(data.X.index % 5 == 0))
    >>> model = GBNC(experts=None).fit(X[:400], data.Y[:400])
    >>> bool((value_of_features(model, X[400:]).value >= 0).all())
    True
    >>> value_of_features(model, X[400:], row=X[400:401]).n_rows.tolist()  # x0 is missing there
    [160, 0, 0, 0, 0, 0]
    """
    check_model(model)
    resolved = resolve(loss)
    refuse_whole_batch(loss, resolved)
    resolved.check(model.class_table_)
    if max_rows is not None:
        check_count("max_rows", max_rows, 2)
    table = model.feature_table_
    numbers = feature_numbers(table, features)
    columns, missing = read_table(model, X)
    question = _rows_in_question(model, columns, row, given)
    rows = np.arange(len(columns))
    if max_rows is not None and len(rows) > max_rows:
        rows = np.sort(check_random_state(random_state).choice(rows, max_rows, replace=False))
    value, error, n_rows, proved = np.zeros(len(numbers)), np.zeros(len(numbers)), np.zeros(len(numbers), int), True
    for place, i in enumerate(numbers):
        if question.missing is not None and not question.missing[i]:
            continue  # the row has it
        known = rows[~missing[rows, i]]
        found = _decreases(model, resolved, i, columns, known, question)
        value[place], error[place], n_rows[place] = *_mean(found.decrease), len(known)
        proved &= found.proved
    _check_found(value, [table.names[i] for i in numbers])
    if not proved:
        warn_user(
            f"loss={loss!r}: some predictions are not proved to be optimal, so the values of features are those of the "
            "predictions found and may be negative."
        )
    names = [table.names[i] for i in numbers]
    learned = np.array([name in table.filling.counts for name in names])
    return FeatureValues(loss, names, value, error, n_rows, learned)


class _Question(NamedTuple):
    """The rows in question: those of X (`row` is None) or a single one, which lacks some features."""

    row: FeatureColumns | None
    missing: Marks | None
    evidence: Evidence | None

    def batches(
        self, column: int, columns: FeatureColumns, known: Codes
    ) -> tuple[FeatureColumns, FeatureColumns, Evidence | None]:
        """Return the rows with the column, without it, and their known states."""
        values, index = columns.rows(known), known
        if self.row is None:
            having, lacking = values, values.mask(column)
        else:
            index = np.zeros_like(known)
            lacking = self.row.rows(index)
            having = lacking.replace(column, values)
        return having, lacking, None if self.evidence is None else self.evidence[index]


def _rows_in_question(model: Any, columns: FeatureColumns, row: Any, given: Any) -> _Question:
    if row is None:
        return _Question(None, None, model._read_given(given, len(columns)))
    if len(getattr(row, "shape", (1, 1))) == 1:
        raise ValueError("row has one dimension: give a table of a single row, such as X.iloc[[0]] or X[:1].")
    one, missing = read_table(model, row)
    if len(one) != 1:
        raise ValueError(f"row has {len(one)} rows: give a table of a single row, such as X.iloc[[0]] or X[:1].")
    return _Question(one, missing[0], model._read_given(given, 1))


class _Decreases(NamedTuple):
    decrease: Floats
    proved: bool


def _decreases(
    model: Any, loss: Loss, column: int, columns: FeatureColumns, known: Codes, question: _Question
) -> _Decreases:
    """Return the decrease of the expected loss in each row, and whether all decisions are proved to be optimal."""
    if not len(known) or not any(columns.places(column)):  # no row has it, or the model ignores it
        return _Decreases(np.zeros(len(known)), True)
    having, lacking, evidence = question.batches(column, columns, known)
    try:
        blind = model._choose(lacking.complete(), loss, evidence).codes
        found, proved, start = [], True, 0
        for part in model._chunk_distributions(having.complete(), evidence):
            own, other = choose(part, loss), blind[start : start + len(part)]
            start += len(part)
            before, after = loss.expected(part, other), loss.expected(part, own.codes)
            rounding = (before < after) & (before > after - _ROUNDING * (1 + np.abs(after)))
            found.append(np.where(rounding, 0.0, before - after))
            proved &= bool(own.proved.all())
    except ImpossibleEvidenceError as error:
        raise ImpossibleEvidenceError(0 if question.row is not None else int(known[error.row]), error.why) from None
    return _Decreases(np.concatenate(found), proved)


def _mean(rows: Floats) -> tuple[float, float]:
    """Return the mean and its standard error; NaN for too few rows."""
    if len(rows) < 2:
        return (float(rows[0]) if len(rows) else math.nan), math.nan
    return float(rows.mean()), float(rows.std(ddof=1) / math.sqrt(len(rows)))


def _check_found(value: Floats, names: Sequence[str]) -> None:
    """Refuse features of which no row of X has a value if there are no others; otherwise warn about them."""
    lost = [name for name, own in zip(names, value.tolist(), strict=True) if math.isnan(own)]
    if len(lost) == len(names):
        raise ValueError(f"X has no row in which {shorten(lost)} is known: give rows with values.")
    if lost:
        warn_user(f"X has no row in which {shorten(lost)} is known: the value is NaN. Give rows with values.")
